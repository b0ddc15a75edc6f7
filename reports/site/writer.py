"""Texts, marks and files of the site; files are written to a temporary folder and moved into place at the end."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

import jinja2

from ...cases.errors import OpconformError
from ..badge import file_part
from ..tally import Figures
from ..text import counted, percent, printable

LONGEST = 2000  # maximum characters of a text from elsewhere
_SAFE = re.compile(r"[^A-Za-z0-9.\-]+")

FAILED = "failed"
"""In place of an outcome in a URL: everything that fails."""


def shown(text: object, longest: int = LONGEST) -> str:
    """Return a text from elsewhere made safe to show: control and direction characters escaped, cut with a note."""
    full = str(text)
    cut = _escaped(full[:longest])
    return f"{cut}… (cut: {counted(len(full), 'character')} in all)" if len(full) > longest else cut


def _escaped(text: str) -> str:
    # Cf: format characters, some of which reverse the text after them; Python too calls them unprintable
    return "".join(ascii(c)[1:-1] if unicodedata.category(c) == "Cf" else c for c in printable(text))


def operator_page_name(operator_version: str) -> str:
    """Return the path of an operator version's page: `operators/onnx-ReduceMean-18.html`."""
    standard, slash, rest = operator_version.partition("/")
    plain = slash and _SAFE.sub("", standard + rest) == standard + rest
    return f"operators/{standard}-{rest}.html" if plain else f"operators/{file_part(operator_version)}.html"


def cases_link(**parameters: object) -> str:
    """Return the URL of a list of cases: `operator`, `type`, `backend`, `outcome`, `clause`, `q`."""
    given = {name: str(value) for name, value in parameters.items() if value not in (None, "")}
    return f"cases.html?{_query(given)}" if given else "cases.html"


def case_link(case: str, backend: str | None = None) -> str:
    """Return the URL of a case's page."""
    return f"case.html?{_query({'id': case, **({'backend': backend} if backend else {})})}"


def _query(given: Mapping[str, str]) -> str:
    return "&".join(f"{name}={query(value)}" for name, value in given.items())


def query(value: str) -> str:
    """Return a value as it stands in the query of a link."""
    return quote(value, safe="/,;.*", errors="replace")


def web(address: str) -> str:
    """Return a web address; empty for other schemes, such as a script's."""
    return address if address.startswith(("https://", "http://")) else "#"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "anchor": file_part,
    "query": query,
    "web": web,
    "shown": shown,
    "percent": percent,
    "counted": counted,
    "number": lambda value: f"{value:,}",
}


Level: TypeAlias = Literal["full", "few", "some", "all", "none"]

FEW = Fraction(9, 10)
LEGEND: tuple[tuple[Level, str], ...] = (
    ("full", "every judged case passes"),
    ("few", "at least 90% pass"),
    ("some", "some pass"),
    ("all", "none passes"),
    ("none", "nothing judged: not supported, or only invalid inputs"),
)


@dataclass(frozen=True)
class Mark:
    """The content of a cell: its level, a share or a word, the counts behind it, and all of it in a sentence.

    `outcome` is the filter for the list of cases: the outcome that fails, if any does.
    """

    level: Level
    share: str
    counts: str
    title: str
    outcome: str | None


def level_of(share: Fraction) -> Level:
    """Return the level of a share of right answers."""
    return "full" if share == 1 else "few" if share >= FEW else "some" if share else "all"


def mark_of(figures: Figures) -> Mark:
    """Return the mark of these figures."""
    share = figures.correctness
    outcome = FAILED if figures.failed else None
    if share is None:
        level: Level = "all" if figures.failed else "none"
        return Mark(level, _unjudged(figures), "", outcomes_told(figures), outcome)
    level = level_of(share)
    if level == "full" and figures.failed:  # counts that are not part of correctness
        level = "few"
    return Mark(level, percent(share), f"{figures.strict:,}/{figures.judged:,}", outcomes_told(figures), outcome)


def outcomes_told(figures: Figures) -> str:
    """Return how often each outcome occurred: `103 pass, 4 wrong-value`."""
    return ", ".join(f"{count:,} {outcome}" for outcome, count in figures.outcomes.items())


def _unjudged(figures: Figures) -> str:
    if figures.unsupported:
        return "unsupported"
    if figures.put:
        return f"{figures.refused:,}/{figures.put:,} refused"
    return "not judged"


MARKER = "opconform-site.json"
"""The marker of a folder that holds a site, with the list of the site's files."""


def templates() -> jinja2.Environment:
    """Return the environment of the pages' templates: everything is escaped, and an unknown name is an error."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(resources.files(__package__) / "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters.update(FILTERS)
    return made


class SiteWriter:
    """Renders pages and copies assets into a folder; `given` are the variables of every template."""

    def __init__(self, folder: Path, given: Mapping[str, Any]) -> None:
        self.folder = folder
        self._files: set[str] = set()
        self._templates = templates()
        self._templates.globals.update(given)

    @property
    def files(self) -> list[str]:
        """Return the files written so far, by their path in the site."""
        return sorted(self._files)

    def page(self, path: str, template: str, **values: Any) -> None:
        """Render a template into a page, `operators/x.html`; it gets `root`, the relative path to the site's root."""
        root = "../" * (len(PurePosixPath(path).parts) - 1)
        text = self._templates.get_template(template).render(root=root, path=path, **values)
        self.write(path, text)

    def script(self, path: str, call: str, *values: Any) -> None:
        """Write data as a classic script that calls a function with it: `call(…, …);`. Raises ValueError for NaN."""
        arguments = ",".join(json.dumps(v, allow_nan=False, separators=(",", ":")) for v in values)
        self.write(path, f"{call}({arguments.replace('<', chr(92) + 'u003c')});\n")

    def asset(self, *names: str) -> None:
        """Copy files of the package's `assets` folder to the site's."""
        for name in names:
            source = resources.files(__package__).joinpath("assets", *PurePosixPath(name).parts)
            self.write(f"assets/{name}", source.read_bytes())

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file. Raises OpconformError if that is not possible."""
        target = self.folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None
        self._files.add(path)


def check_folder(out: Path) -> None:
    """Raise OpconformError unless a folder is new or empty, or holds an earlier site."""
    try:
        if out.is_dir() and any(out.iterdir()) and not (out / MARKER).is_file():
            raise OpconformError(f"{out}: is not empty and not a site of opconform; choose a new or empty folder")
        if out.exists() and not out.is_dir():
            raise OpconformError(f"{out}: is a file; choose a new or empty folder for the site")
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise OpconformError(f"{out}: cannot be read: {error}") from None


@contextlib.contextmanager
def written(out: Path, given: Mapping[str, Any]) -> Iterator[SiteWriter]:
    """Yield a writer whose files are in `out` at the end, in place of an earlier site's files.

    Raises OpconformError if `out` cannot be written to. After an error `out` is unchanged.
    """
    check_folder(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise OpconformError(f"{out}: cannot be written: {error.strerror}") from None
    try:
        site = SiteWriter(aside, given)
        yield site
        site.write(".nojekyll", b"")  # with this file, GitHub Pages serves files unchanged
        _put_in_place(site, out)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put_in_place(site: SiteWriter, out: Path) -> None:
    try:
        old = _files_of(out)
        out.mkdir(exist_ok=True)
        # the marker first: if the rest fails, the folder is still recognised as a site
        _mark(out, sorted({*old, *site.files}))
        for name in site.files:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(site.folder / name, out / name)  # noqa: PTH105 - says that it overwrites
        for name in set(old) - set(site.files):
            (out / name).unlink(missing_ok=True)
        _mark(out, site.files)
    except OSError as error:
        raise OpconformError(f"{error.filename or out}: cannot be written: {error.strerror}") from None


def _mark(out: Path, files: list[str]) -> None:
    aside = out / f".{MARKER}.part"
    aside.write_text(json.dumps({"site": 1, "files": files}, indent=1) + "\n", encoding="utf-8")
    os.replace(aside, out / MARKER)  # noqa: PTH105


def _files_of(out: Path) -> list[str]:
    """Return the files of an earlier site that are inside its folder."""
    try:
        marker = json.loads((out / MARKER).read_bytes())
        files = [name for name in marker["files"] if isinstance(name, str)]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        raise OpconformError(f"{out / MARKER}: is not a valid site marker; choose another folder") from None
    parts = {name: PurePosixPath(name).parts for name in files}
    return [name for name, of in parts.items() if of and ".." not in of and not PurePosixPath(name).is_absolute()]

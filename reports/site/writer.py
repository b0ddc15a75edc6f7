"""The files of a site, written aside and moved to their place at the end; nothing that is not ours is deleted."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

import jinja2

from ...cases.errors import OpconformError
from .words import FILTERS

MARKER = "opconform-site.json"
"""Says that a folder holds a site, and which of its files are the site's."""

_BESIDE = {".nojekyll": b""}  # GitHub Pages serves files as they are where there is one


def templates() -> jinja2.Environment:
    """Return the environment of our pages' templates: everything is escaped, and an unknown name is an error."""
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
    """Renders pages and copies assets into a folder; `given` is what every template sees."""

    def __init__(self, folder: Path, given: Mapping[str, Any]) -> None:
        self.folder = folder
        self._files: set[str] = set()
        self._templates = templates()
        self._templates.globals.update(given)

    @property
    def files(self) -> list[str]:
        """The files written so far, by their path in the site."""
        return sorted(self._files)

    def page(self, path: str, template: str, **values: Any) -> None:
        """Render a template into a page, `operators/x.html`; it sees `root`, the way up to the site's root."""
        root = "../" * (len(PurePosixPath(path).parts) - 1)
        text = self._templates.get_template(template).render(root=root, path=path, **values)
        self.write(path, text)

    def script(self, path: str, call: str, *values: Any) -> None:
        """Write data as a classic script that calls a function with it: `call(…, …);`. NaN is none of JSON's."""
        told = ",".join(json.dumps(v, allow_nan=False, separators=(",", ":")) for v in values)
        self.write(path, f"{call}({told.replace('<', chr(92) + 'u003c')});\n")

    def asset(self, *names: str) -> None:
        """Copy files of the package's `assets` folder to the site's."""
        for name in names:
            source = resources.files(__package__).joinpath("assets", *PurePosixPath(name).parts)
            self.write(f"assets/{name}", source.read_bytes())

    def write(self, path: str, content: str | bytes) -> None:
        """Write a file. Raises OpconformError where that is not possible."""
        target = self.folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None
        self._files.add(path)


def check_folder(out: Path) -> None:
    """Raise OpconformError unless a folder is new or empty, or holds a site made earlier."""
    try:
        if out.is_dir() and any(out.iterdir()) and not (out / MARKER).is_file():
            raise OpconformError(f"{out}: is not empty and holds no site of opconform; choose a new or an empty folder")
        if out.exists() and not out.is_dir():
            raise OpconformError(f"{out}: is a file; choose a new or an empty folder for the site")
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise OpconformError(f"{out}: cannot be read: {error}") from None


@contextlib.contextmanager
def written(out: Path, given: Mapping[str, Any]) -> Iterator[SiteWriter]:
    """Yield a writer whose files are in `out` at the end, in the place of those of an earlier site.

    Raises OpconformError where `out` is not to be written to. An error on the way leaves `out` as it was.
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
        for name, content in _BESIDE.items():
            site.write(name, content)
        _put_in_place(site, out)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put_in_place(site: SiteWriter, out: Path) -> None:
    try:
        old = _files_of(out)
        out.mkdir(exist_ok=True)
        # the marker first: should the rest fail, the folder is still known as a site's
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
    """Return the files of an earlier site, none that lies outside of its folder."""
    try:
        told = json.loads((out / MARKER).read_bytes())
        files = [name for name in told["files"] if isinstance(name, str)]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError):
        raise OpconformError(f"{out / MARKER}: is not as a site has it; choose another folder") from None
    parts = {name: PurePosixPath(name).parts for name in files}
    return [name for name, of in parts.items() if of and ".." not in of and not PurePosixPath(name).is_absolute()]

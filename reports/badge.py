"""Badges, one per backend and standard: correctness, and the number of operator versions covered; SVG or JSON."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from ..cases.errors import OpconformError
from ..cases.ids import split_version
from .junit import check_target
from .tally import CONFORMANT, NON_CONFORMANT, Figures, Tally
from .text import STANDARD_NAMES, counted, percent, printable, xml_text

GREEN, LIME, AMBER, ORANGE, RED, GREY = "#1a7f37", "#4d7a0f", "#8a6100", "#b35309", "#c62828", "#5f6368"
"""White text has a contrast of at least 4.5 to 1 on each colour; the percentage repeats what the colour says."""

_SHARES = ((Fraction(99, 100), LIME), (Fraction(9, 10), AMBER), (Fraction(1, 2), ORANGE), (Fraction(0), RED))
"""The colours of what is not completely right, each from a share of correct cases on."""

_LONGEST, _LONGEST_NAME = 60, 36
_SIZE, _PAD, _HEIGHT = 11, 6, 20
_WIDTH = 0.6  # width of a character as a share of the font size, about Verdana's


@dataclass(frozen=True)
class Badge:
    """The text of a badge: `label` on the left, `title` for pointers and screen readers.

    `called` is what it calls the backend. On the right is `correctness`, None if nothing was judged, always with
    `covered`, the number of operator versions with judged cases, and `in_suite`, the number that the suite has.
    """

    backend: str
    standard: str
    label: str
    correctness: Fraction | None
    covered: int
    in_suite: int
    color: str
    title: str
    called: str

    @property
    def message(self) -> str:
        """Return the text on the right."""
        if self.correctness is None or not self.covered:
            return f"nothing judged of {counted(self.in_suite, 'version')}"
        return f"{percent(self.correctness)} correct in {self.covered:,} of {counted(self.in_suite, 'version')}"

    @property
    def name(self) -> str:
        """Return the name of its file, without an ending."""
        return f"{file_part(self.called)}-{file_part(self.standard)}"

    def svg(self) -> str:
        """Return it as SVG."""
        return badge_svg(self.label, self.message, color=self.color, title=self.title)

    def endpoint(self) -> str:
        """Return the JSON that https://shields.io/endpoint reads."""
        fields = {"schemaVersion": 1, "label": self.label, "message": self.message, "color": self.color}
        return json.dumps(fields) + "\n"


def badges_of(
    tally: Tally,
    versions: Mapping[str, str] | None = None,
    suite: Mapping[str, int] | None = None,
    names: Mapping[str, str] | None = None,
) -> list[Badge]:
    """Return a badge for each backend and standard in these figures.

    `versions` has the version of each backend. `suite` has the number of operator versions in the suite, by standard,
    of which a badge shows how many are covered; without it, the versions that ran count. `names` has what a badge calls
    a backend, if not as the command line does.
    """
    return [
        _badge(
            (backend, (names or {}).get(backend, backend), (versions or {}).get(backend, "")),
            standard,
            operator_versions,
            (suite or {}).get(standard, 0),
        )
        for backend in tally.backends
        for standard, operator_versions in _by_standard(tally.operator_versions(backend)).items()
    ]


def coverage(operator_versions: Collection[Figures], in_suite: int = 0) -> tuple[int, int]:
    """Return the number of operator versions with judged cases, and the number in the suite, or of those that ran."""
    return sum(figures.judged > 0 for figures in operator_versions), max(in_suite, len(operator_versions))


def badge_svg(label: str, message: str, *, color: str = GREY, title: str | None = None) -> str:
    """Return a badge as SVG, 20 pixels high: `label` on grey, `message` on `color`.

    `title` is for screen readers and pointers; None means label and message. Any text is safe.
    """
    label, message = _cut(label), _cut(message)
    left, right = (text_width(text) + 2 * _PAD for text in (label, message))
    spoken = _line(title) if title is not None else f"{label}: {message}"
    edge = "a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z"  # no clip path: its id would not be unique in a page with two badges
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" role="img" '
        f"aria-label={quoteattr(spoken)}>\n"
        f"<title>{escape(spoken)}</title>\n"
        f'<path fill="#3d4147" d="M3 0H{left}V{_HEIGHT}H3{edge}"/>\n'
        f'<path fill={quoteattr(color)} d="M{left} 0H{left + right - 3}a3 3 0 0 1 3 3V{_HEIGHT - 3}'
        f'a3 3 0 0 1-3 3H{left}z"/>\n'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="{_SIZE}" '
        'aria-hidden="true">\n'
        f"{_text(label, _PAD)}{_text(message, left + _PAD)}</g>\n</svg>\n"
    )


def text_width(text: str) -> int:
    """Return the width of a text in pixels at a badge's font size; the SVG forces this width in every font."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    combining = sum(map(bool, map(unicodedata.combining, text)))
    return round((_WIDTH * (len(text) - wide - combining) + wide) * _SIZE)


def file_part(name: str) -> str:
    """Return a name as part of a file's name; a changed name ends with eight digits of its digest."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:80]
    if plain == name:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest


def check_badge_target(target: Path) -> None:
    """Raise OpconformError if badges cannot be written there; to be called before a long report."""
    if not _is_folder(target):
        check_target(target)
    elif target.exists() and not target.is_dir():
        raise OpconformError(f"{target}: is not a folder; a badge's name ends in .svg or .json")


def write_badges(badges: list[Badge], target: Path) -> list[Path]:
    """Write badges, and return the files.

    `target` is one file, SVG or shields.io's JSON by its ending, whose name may contain `{backend}` and `{standard}`;
    or a folder, which gets both of each. Raises OpconformError if several badges would have the same file, or if it
    cannot be written.
    """
    files = dict(_folder_files(badges, target) if _is_folder(target) else _named_files(badges, target))
    try:
        if _is_folder(target):
            target.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None
    return list(files)


def _is_folder(target: Path) -> bool:
    return target.is_dir() or target.suffix.lower() not in (".svg", ".json")


def _folder_files(badges: list[Badge], folder: Path) -> Iterator[tuple[Path, str]]:
    for badge in badges:
        yield folder / f"{badge.name}.svg", badge.svg()
        yield folder / f"{badge.name}.json", badge.endpoint()


def _named_files(badges: list[Badge], target: Path) -> Iterator[tuple[Path, str]]:
    seen: dict[str, Badge] = {}
    for badge in badges:
        name = target.name.replace("{backend}", file_part(badge.called))
        name = name.replace("{standard}", file_part(badge.standard))
        if other := seen.get(name):
            both = " and ".join(f"{printable(b.backend)} ({printable(b.standard)})" for b in (other, badge))
            missing = "{backend}" if badge.backend != other.backend else "{standard}"
            raise OpconformError(
                f"{target}: would be the file of several badges ({both}); add {missing} to the name, or give a folder"
            )
        seen[name] = badge
        yield target.with_name(name), badge.endpoint() if target.suffix.lower() == ".json" else badge.svg()


def _by_standard(operator_versions: Mapping[str, Figures]) -> dict[str, dict[str, Figures]]:
    groups: dict[str, dict[str, Figures]] = {}
    for operator_version, figures in operator_versions.items():
        groups.setdefault(operator_version.partition("/")[0], {})[operator_version] = figures
    return groups


def _badge(
    backend: tuple[str, str, str], standard: str, operator_versions: Mapping[str, Figures], in_suite: int
) -> Badge:
    """Return the badge of a backend, given as its name on the command line, its name in reports, and its version."""
    figures = sum(operator_versions.values(), Figures())
    name, called, version = backend
    of_standard = STANDARD_NAMES.get(standard, standard)
    of = counted(len({split_version(o)[0] for o in operator_versions}), "operator")
    correct = f"{percent(figures.correctness)} of {counted(figures.judged, 'valid case')} of {of} correct"
    title = f"{f'{_cut(called)} {version}'.strip()}, {of_standard}: {_verdict(figures)}. {correct}"
    covered, suite_size = coverage(operator_versions.values(), in_suite)
    title += f", {percent(figures.support)} supported; covers {covered:,} of {counted(suite_size, 'operator version')}"
    label = f"{_cut(called, _LONGEST_NAME)} · {of_standard}"
    color = _color(figures)
    return Badge(name, standard, label, figures.correctness, covered, suite_size, color, _line(title), called)


def _verdict(figures: Figures) -> str:
    words = {CONFORMANT: "conformant", NON_CONFORMANT: "non-conformant"}
    return words.get(figures.exit_code, "no verdict")


def _color(figures: Figures) -> str:
    correctness = figures.correctness
    if figures.exit_code not in (CONFORMANT, NON_CONFORMANT) or correctness is None:
        return GREY
    if figures.exit_code == CONFORMANT:
        return GREEN if correctness == 1 else AMBER  # waivers, or declared arithmetic
    return next(color for share, color in _SHARES if correctness >= share)


def _text(text: str, x: int) -> str:
    width = text_width(text)
    return f'<text x="{x}" y="14" textLength="{width}">{escape(text)}</text>\n' if width else ""


def _line(text: str) -> str:
    return xml_text(printable(" ".join(text[: 20 * _LONGEST].split())))


def _cut(text: str, longest: int = _LONGEST) -> str:
    line = _line(text)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"

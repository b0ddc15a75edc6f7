"""Words, links and file names of the site: what comes from elsewhere is made fit to show, and cut with a note."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from ..badge import file_part
from ..text import counted, percent, printable

LONGEST = 2000  # characters of a text from elsewhere
_SAFE = re.compile(r"[^A-Za-z0-9.\-]+")

FAILED = "failed"
"""In the place of an outcome in an address: all that fails."""


def shown(text: object, longest: int = LONGEST) -> str:
    """Return a text from elsewhere fit to show: controls and direction marks escaped visibly, cut with a note."""
    whole = str(text)
    cut = _escaped(whole[:longest])
    return f"{cut}… (cut: {counted(len(whole), 'character')} in all)" if len(whole) > longest else cut


def _escaped(text: str) -> str:
    # Cf: format characters, among them those that turn the direction of what follows; Python calls them unprintable too
    return "".join(ascii(c)[1:-1] if unicodedata.category(c) == "Cf" else c for c in printable(text))


def operator_page_name(operator_version: str) -> str:
    """Return the path of an operator version's page: `operators/onnx-ReduceMean-18.html`."""
    standard, slash, rest = operator_version.partition("/")
    plain = slash and _SAFE.sub("", standard + rest) == standard + rest
    return f"operators/{standard}-{rest}.html" if plain else f"operators/{file_part(operator_version)}.html"


def cases_link(**parameters: object) -> str:
    """Return the address of a list of cases: `operator`, `type`, `backend`, `outcome`, `clause`, `q`."""
    given = {name: str(value) for name, value in parameters.items() if value not in (None, "")}
    return f"cases.html?{_query(given)}" if given else "cases.html"


def case_link(case: str, backend: str | None = None) -> str:
    """Return the address of a case's page."""
    return f"case.html?{_query({'id': case, **({'backend': backend} if backend else {})})}"


def _query(given: Mapping[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='/,;.*', errors='replace')}" for name, value in given.items())


def anchor(text: str) -> str:
    """Return a name for a place in a page."""
    return file_part(text)


def web(address: str) -> str:
    """Return an address on the web; anything else leads nowhere, as that of a script would."""
    return address if address.startswith(("https://", "http://")) else "#"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "anchor": anchor,
    "web": web,
    "shown": shown,
    "percent": percent,
    "counted": counted,
    "number": lambda value: f"{value:,}",
}

"""Suites: lists of cases by name, files of this package."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable

from ..cases.errors import OpconformError, did_you_mean

_FOLDER = "suites"
_ENDING = ".txt"


def suite_names() -> tuple[str, ...]:
    """Return the names of the suites there are."""
    folder = importlib.resources.files(__package__ or "opconform.generators") / _FOLDER
    return tuple(sorted(f.name.removesuffix(_ENDING) for f in folder.iterdir() if f.name.endswith(_ENDING)))


def suite_cases(name: str) -> tuple[str, ...]:
    """Return the case ids of a suite, in their order. Raises OpconformError if no suite is called that."""
    known = suite_names()
    if name not in known:
        raise OpconformError(f"no suite is called {name!r}{did_you_mean(name, known)}; there is {', '.join(known)}")
    folder = importlib.resources.files(__package__ or "opconform.generators") / _FOLDER
    return _ids((folder / f"{name}{_ENDING}").read_text("utf-8"))


def suite_text(ids: Iterable[str], remark: str) -> str:
    """Return the content of a suite's file."""
    return "".join(f"{line}\n" for line in (*(f"# {line}" for line in remark.splitlines()), *ids))


def _ids(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))

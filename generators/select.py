"""What a user selects: cases of the plan, of a suite (a list in a file of this package), and any case by its id."""

from __future__ import annotations

import importlib.resources
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..cases.errors import CaseIdError, OpconformError, did_you_mean
from ..cases.ids import parse_id
from .plan import Expected, Selection, counted, expected, planned
from .source import GeneratedCases


def selected(source: GeneratedCases, selection: Selection) -> Iterator[str]:
    """Yield the ids of the selected cases, once each. Raises CaseIdError for an id that names no case.

    A glob that is a case id selects that case even if the strength or the draws would not plan it, so that every
    result can be run again by its id alone.
    """
    named = {glob: None for glob in selection.globs if _is_id(glob)}
    of_suite = None if selection.suite is None else suite_cases(selection.suite)
    for text in planned(source.library, selection) if of_suite is None else _admitted(of_suite, selection):
        named.pop(text, None)
        yield text
    for text in named:
        if selection.standards and text.partition("/")[0] not in selection.standards:
            continue
        source.case(text)
        yield text


def selected_counts(source: GeneratedCases, selection: Selection) -> Counter[str]:
    """Return how many ids `selected` yields, by standard. Raises what it raises."""
    if selection.suite is None and not any(_is_id(glob) for glob in selection.globs):
        return counted(source.library, selection)
    return Counter(text.partition("/")[0] for text in selected(source, selection))


def selected_size(source: GeneratedCases, selection: Selection) -> dict[str, Expected]:
    """Return what is going to run, by standard. Raises what `selected` raises."""
    if selection.suite is None and not any(_is_id(glob) for glob in selection.globs):
        return expected(source.library, selection)
    programs: dict[str, Counter[tuple[str, ...]]] = {}
    for text in selected(source, selection):
        parts = text.split("/")
        programs.setdefault(parts[0], Counter())[*parts[1:5]] += 1
    return {standard: Expected(found.total(), len(found)) for standard, found in programs.items()}


def _admitted(ids: Sequence[str], selection: Selection) -> Iterator[str]:
    """Yield the ids of a suite that the selection admits. Raises OpconformError where it wants others drawn."""
    if selection.draws != 1 or selection.seed:
        raise OpconformError(f"the cases of suite {selection.suite!r} are fixed: leave --draws and --seed out")
    for text in ids:
        case = parse_id(text)
        if selection.may_admit(case.operator) and selection.admits(case, text):
            yield text


def _is_id(glob: str) -> bool:
    try:
        return str(parse_id(glob)) == glob
    except CaseIdError:
        return False


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


def suite_file(file: Path) -> tuple[str, ...]:
    """Return the case ids of a suite's file, in their order."""
    return _ids(file.read_text("utf-8"))


def suite_text(ids: Iterable[str], remark: str) -> str:
    """Return the content of a suite's file."""
    return "".join(f"{line}\n" for line in (*(f"# {line}" for line in remark.splitlines()), *ids))


def _ids(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))

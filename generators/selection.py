"""The user's selection of cases: of the plan, of a suite in a file, or single cases by their ids."""

from __future__ import annotations

import importlib.resources
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..cases.errors import CaseIdError, OpconformError, did_you_mean
from ..cases.ids import Selection, parse_id
from ..specs.loader import UnknownOperator
from .plan import Expected, Watched, counted, expected, planned
from .source import GeneratedCases
from .suggestions import with_nearest


def selected(source: GeneratedCases, selection: Selection) -> Iterator[str]:
    """Yield the ids of the selected cases, once each. Raises CaseIdError for an id that names no case.

    A glob that is a case id selects that case even if the strength or the draws don't include it, so that the id is
    enough to run any result again.
    """
    named = {glob: None for glob in selection.globs if is_id(glob)}
    of_suite = None if selection.suite is None else suite_cases(selection.suite)
    plan = planned(source.library, selection, from_lock=True) if of_suite is None else _admitted(of_suite, selection)
    for text in plan:
        named.pop(text, None)
        yield text
    for text in named:
        if selection.standards and text.partition("/")[0] not in selection.standards:
            continue
        try:
            source.case(text)
        except (CaseIdError, UnknownOperator) as error:
            raise with_nearest(source.library, text, error) from None
        yield text


def selected_counts(source: GeneratedCases, selection: Selection) -> Counter[str]:
    """Return the number of ids that `selected` yields, by standard. Raises the same errors."""
    if selection.suite is None and not any(is_id(glob) for glob in selection.globs):
        return counted(source.library, selection, from_lock=True)
    return Counter(text.partition("/")[0] for text in selected(source, selection))


def selected_size(source: GeneratedCases, selection: Selection, watched: Watched = iter) -> dict[str, Expected]:
    """Return the cost of a run, by standard; `watched` as in `expected`. Raises the errors of `selected`."""
    if selection.suite is None and not any(is_id(glob) for glob in selection.globs):
        return expected(source.library, selection, watched, from_lock=True)
    programs: dict[str, Counter[tuple[str, ...]]] = {}
    for text in selected(source, selection):
        parts = text.split("/")
        programs.setdefault(parts[0], Counter())[*parts[1:5]] += 1
    return {standard: Expected(sizes.total(), len(sizes)) for standard, sizes in programs.items()}


def _admitted(ids: Sequence[str], selection: Selection) -> Iterator[str]:
    """Yield the ids of a suite that the selection admits. Raises OpconformError if it asks for other draws."""
    if selection.draws != 1 or selection.seed:
        raise OpconformError(f"the cases of suite {selection.suite!r} are fixed: leave --draws and --seed out")
    for text in ids:
        case = parse_id(text)
        if selection.may_admit(case.operator) and selection.admits(case.operator, text):
            yield text


def is_id(glob: str) -> bool:
    """Return whether a glob has the form of a case id."""
    try:
        return str(parse_id(glob)) == glob
    except CaseIdError:
        return False


_FOLDER = "suites"
_ENDING = ".txt"


def suite_cases(name: str) -> tuple[str, ...]:
    """Return the case ids of a suite, in order. Raises OpconformError if there is no such suite."""
    folder = importlib.resources.files(__package__ or "opconform.generators") / _FOLDER
    known = sorted(file.name.removesuffix(_ENDING) for file in folder.iterdir() if file.name.endswith(_ENDING))
    if name not in known:
        raise OpconformError(f"no suite is called {name!r}{did_you_mean(name, known)}; there is {', '.join(known)}")
    return _ids((folder / f"{name}{_ENDING}").read_text("utf-8"))


def suite_file(file: Path) -> tuple[str, ...]:
    """Return the case ids of a suite's file, in order."""
    return _ids(file.read_text("utf-8"))


def suite_text(ids: Iterable[str], remark: str) -> str:
    """Return the content of a suite's file."""
    return "".join(f"{line}\n" for line in (*(f"# {line}" for line in remark.splitlines()), *ids))


def _ids(text: str) -> tuple[str, ...]:
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))

"""Suggestions: the nearest operator version or case to a name that selects nothing."""

from __future__ import annotations

import difflib

from ..cases.errors import CaseIdError, OpconformError
from ..cases.ids import Selection, is_of_versions, split_version
from ..specs.loader import Library
from .plan import planned

_LONGEST = 500  # characters of an id that are compared with known ids
_WILD = frozenset("*?[")


def selects_nothing(library: Library, selection: Selection) -> OpconformError:
    """Return the error for a selection that has no cases, with suggestions."""
    hints = [hint for glob in selection.globs if (hint := suggestion(library, glob))]
    problem = f"{', '.join(selection.globs) or 'the suite'} selects no case"
    return OpconformError("; ".join([problem, *hints]))


def suggestion(library: Library, glob: str) -> str:
    """Return a suggestion for a glob, `did you mean 'onnx/ReduceMean-*'?`; empty if nothing is near."""
    standards = _standards(library)
    standard, slash, rest = glob[:_LONGEST].partition("/")
    if standard not in standards:
        standard, rest = ("", glob[:_LONGEST]) if not slash or _WILD.isdisjoint(standard) else (standard, rest)
    named, slash, case = rest.partition("/")
    name, version = split_version(named)
    if _WILD & set(standard + name):
        hint = f"one slash names operator versions; for cases write '{standard}/*/{rest}'"
        return hint if is_of_versions(glob) else ""
    operators = _near(library, standard, name)
    if not operators:
        return ""
    known = {name: [str(spec.operator) for spec in library.spec(name).versions.values()] for name in operators}
    for operator, versions in known.items():
        wanted = f"{operator}-{version}" if version else operator
        if wanted in versions or (_WILD & set(version) and versions != [operator]):
            return _meant(library, glob, f"{wanted}{slash}{case}")
    operator, versions = next(iter(known.items()))
    if version and not _WILD & set(version):
        return f"there is {', '.join(versions)}"
    return _meant(library, glob, f"{operator if versions == [operator] else f'{operator}-*'}{slash}{case}")


def _standards(library: Library) -> set[str]:
    return {operator.partition("/")[0] for operator in library.operators()}


def _meant(library: Library, glob: str, meant: str) -> str:
    """Return the hint; if it equals the glob, the rest of the glob is wrong, and the hint is the nearest case."""
    if meant != glob:
        return f"did you mean {meant!r}?"
    near = nearest_case(library, glob)
    return f"the nearest case is {near}" if near else ""


def _near(library: Library, standard: str, name: str) -> list[str]:
    """Return the operators with this name in a standard or in all, ignoring case; else the most similar ones."""
    known: dict[str, list[str]] = {}
    for operator in library.operators():
        if not standard or operator.partition("/")[0] == standard:
            known.setdefault(operator.partition("/")[2].casefold(), []).append(operator)
    near = [name.casefold()] if name.casefold() in known else difflib.get_close_matches(name.casefold(), known, 1)
    return sorted(
        (operator for name_ in near for operator in known[name_]), key=lambda name_: not name_.startswith("onnx/")
    )


def with_nearest(library: Library, text: str, error: OpconformError) -> CaseIdError:
    """Return the error for an id without a case, with the nearest case."""
    if text.partition("/")[0] not in _standards(library) and (hint := suggestion(library, text)):
        return CaseIdError(f"{error}\n  {hint}")
    near = nearest_case(library, text)
    advice = f"the nearest case is {near}" if near else "`opconform list cases` shows all cases"
    return CaseIdError(f"{error}\n  {advice}")


def nearest_case(library: Library, text: str) -> str | None:
    """Return the nearest id in the nearest operator's default suite, with the same version and types if possible."""
    parts = text[:_LONGEST].split("/")
    named, version = split_version("/".join(parts[:2]))
    operators = difflib.get_close_matches(named, library.operators(), 1)
    if not operators:
        return None
    parts[:2] = f"{operators[0]}-{version}".split("/") if version else operators[0].split("/")
    known = list(planned(library, Selection((f"{operators[0]}-*", operators[0]))))
    for length in (2, 3):
        known = [case for case in known if case.split("/")[:length] == parts[:length]] or known
    return next(iter(difflib.get_close_matches("/".join(parts), known, 1, cutoff=0.3)), None)

"""What there is: operators, cases, backends; and one case by its id, with a hint where there is none such."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ..cases.batch import Batch
from ..cases.elements import Declaration
from ..cases.errors import CaseIdError, OpconformError
from ..cases.ids import operator_version_of, parse_id, print_shape
from ..cases.program import Structure
from ..generators.plan import Selection, planned, selected
from ..generators.source import GeneratedCases
from ..runners.registry import known_backends
from ..runners.terms import load_declaration
from ..specs.loader import UnknownOperator


def listed(what: str, specs: Path | None, selection: Selection, *, as_json: bool) -> Iterator[str]:
    """Yield the lines of a list. Raises OpconformError if a glob selects nothing; at last, if spec files are wrong."""
    if what == "backends":
        return _backends(as_json)
    return _generated(what, GeneratedCases(specs), selection, as_json)


def _generated(what: str, source: GeneratedCases, selection: Selection, as_json: bool) -> Iterator[str]:
    yield from (_cases if what == "cases" else _operators)(source, selection, as_json)
    source.library.refuse_broken()


def _cases(source: GeneratedCases, selection: Selection, as_json: bool) -> Iterator[str]:
    empty = True
    for text in selected(source, selection):
        empty = False
        yield json.dumps(_parts(text)) if as_json else text
    if empty:
        raise OpconformError(f"{', '.join(selection.globs) or 'the suite'} selects no case")


def _parts(text: str) -> dict[str, object]:
    case = parse_id(text)
    shapes = [print_shape(shape) if isinstance(shape, Structure) else shape and list(shape) for shape in case.shapes]
    settings = dict(case.settings)
    return {
        "case": text,
        "operator": case.operator,
        "types": list(case.types),
        "shapes": shapes,
        "settings": settings,
        "fill": case.fill,
        "edge": case.edge,
    }


def _operators(source: GeneratedCases, selection: Selection, as_json: bool) -> Iterator[str]:
    counts = Counter(map(operator_version_of, selected(source, selection)))
    if not counts:
        raise OpconformError(f"{', '.join(selection.globs) or 'the suite'} selects no case")
    for spec in source.library.specs():
        for version in spec.versions.values():
            name = str(version.operator)
            if name in counts:
                facts = {"operator": name, "cases": counts[name], "clauses": len(version.clauses)}
                yield json.dumps(facts) if as_json else f"{name:<28} {counts[name]:>7} cases"


def _backends(as_json: bool) -> Iterator[str]:
    for one in known_backends():
        if as_json:
            facts = {"name": one.name, "standards": list(one.standards), "summary": one.summary}
            yield json.dumps({**facts, "installed": one.installed, "install": one.install})
        else:
            state = "installed" if one.installed else f"not installed: {one.install or 'see its documentation'}"
            yield f"{one.name:<22} {', '.join(one.standards):<16} {one.summary} ({state})"


_LONGEST = 500  # characters of an id that are compared with those there are


def case_of(text: str, specs: Path | None = None, arithmetic: Path | None = None) -> tuple[GeneratedCases, Batch]:
    """Return a case and its source. Raises CaseIdError that names the nearest case of the suite."""
    declaration = load_declaration(arithmetic) if arithmetic else Declaration()
    source = GeneratedCases(specs, declaration)
    try:
        return source, source.case(text)
    except (CaseIdError, UnknownOperator) as error:
        raise CaseIdError(f"{error}{_nearest(source, text)}") from None


def _nearest(source: GeneratedCases, text: str) -> str:
    """Return the nearest id of the nearest operator's default suite, of the same version and types if there is one."""
    parts = text[:_LONGEST].split("/")
    named = "/".join(parts[:2])
    operators = difflib.get_close_matches(named.rpartition("-")[0] or named, source.library.operators(), 1)
    known = list(planned(source.library, Selection((f"{operators[0]}-*", operators[0])))) if operators else []
    for length in (2, 3):
        known = [case for case in known if case.split("/")[:length] == parts[:length]] or known
    near = difflib.get_close_matches(text[:_LONGEST], known, 1, cutoff=0.3)
    return f"\n  the nearest case is {near[0]}" if near else "\n  `opconform list cases` shows all cases"

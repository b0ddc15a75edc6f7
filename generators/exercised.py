"""What the default suite's cases touch of each operator version, for coverage."""

from __future__ import annotations

from ..cases.ids import parse_id
from ..specs.audit.coverage import Exercise
from ..specs.model import Word
from .clauses import clauses_of
from .plan import Selection, planned
from .ports import bound_type, free_letters
from .rows import Row
from .source import GeneratedCases


def exercised(source: GeneratedCases) -> dict[str, Exercise]:
    """Return what is touched, by operator version; an invalid case touches the clauses that it tests alone."""
    found: dict[str, Exercise] = {}
    for text in planned(source.library, Selection()):
        row = source.row(parse_id(text))
        name = str(row.version.operator)
        found[name] = _with(found.get(name, Exercise()), row)
    return found


def _with(known: Exercise, row: Row) -> Exercise:
    clauses = known.clauses | {clause.partition("#")[2] for clause in clauses_of(row)}
    if row.rejected:
        return Exercise(known.types, known.attributes, clauses)
    version, types = row.version, row.id.types
    varied = zip(free_letters(version), types, strict=False)
    tied = ((letter, bound_type(version, types, text)) for letter, text in version.signature.ties.items())
    return Exercise(known.types | {*varied, *tied}, known.attributes | _set(row), clauses)


def _set(row: Row) -> set[str]:
    """Return the attributes that a case sets to another value than their default, or that it has for its type."""
    made = {told.attribute for told in row.version.types_from.values()}
    return {
        attribute.name
        for attribute in row.version.signature.attributes
        if attribute.name in made or row.get(attribute.name) not in (Word.ABSENT, attribute.default)
    }

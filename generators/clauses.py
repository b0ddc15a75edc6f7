"""Which clauses a case tests: those whose conditions hold, and those that its edge names."""

from __future__ import annotations

from ..cases.ids import print_shape
from ..specs.model import Clause, Condition, Value, Word
from .ports import free_letters
from .rows import Row


def clauses_of(row: Row) -> tuple[str, ...]:
    """Return the clauses that a case tests, as `onnx/ReduceMean#mean`; an invalid one those that its edge names."""
    edge = row.edge
    named = [i for i in edge.tests if i in row.version.clauses] if edge else []
    known: dict[str, Value] = {}
    held = [] if row.rejected else [c.id for c in row.version.clauses.values() if _holds(c, row, known)]
    operator = f"{row.spec.standard}/{row.spec.name}"
    return tuple(f"{operator}#{clause}" for clause in dict.fromkeys([*named, *held]))


def _holds(clause: Clause, row: Row, known: dict[str, Value]) -> bool:
    """Return whether a clause's conditions hold; `known` gathers what the case has by the names that they are about."""
    if clause.when is None:
        return False
    for name, condition in clause.when.items():
        if name not in known:
            known[name] = _content(row, name)
        if not _meets(condition, known[name]):
            return False
    return True


def _meets(condition: Condition, content: Value) -> bool:
    return any(_matches(content, value) for value in condition.values) != condition.negated


def _content(row: Row, name: str) -> Value:
    """Return what a case has by the name of a parameter."""
    if name in free_letters(row.version):
        return row.id.types[free_letters(row.version).index(name)]
    if name == "shapes":
        return tuple(print_shape(shape) for shape in row.id.shapes)
    if name == "fill":
        return row.id.fill
    port = row.version.signature.input(name)
    if port is not None and port.is_variadic:
        return len(row.parts[name])
    if port is not None and not row.is_written(port) and name not in row.settings:
        parts = row.parts[name]
        return Word.ABSENT if not parts else Word.OMITTED if parts == (None,) else Word.GIVEN
    return row.get(name)


def _matches(content: Value, wanted: Value) -> bool:
    if wanted is Word.NONE:
        return content == ()
    if wanted is Word.NEGATIVE:
        values = content if isinstance(content, tuple) else (content,)
        return any(isinstance(v, int) and v < 0 for v in values)
    if isinstance(wanted, Word) and wanted is not Word.SYMBOLIC:
        return content is wanted
    if wanted is Word.SYMBOLIC:
        return bool(content == wanted.value)
    return bool(content == wanted) or (isinstance(wanted, str) and isinstance(content, tuple) and wanted in content)

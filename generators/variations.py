"""Variations of the grid: delivery of inputs, one tensor at two inputs, numbers of inputs, opsets, runs of a program.

Each is a case of the grid with one such change, and is only made if neither the grid nor an edge has one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import combinations

from ..cases.elements import element_type
from ..cases.ids import CaseId, Part, part_size
from ..specs.model import MEMORY, Port, Recipe, Spec, VersionSpec
from .parameters import CONSTANT, FED, FROM, kindest_opset, opset_range, usual_delivery
from .rows import Row, draws, read_row, settle

ARITIES = (*range(1, 13), 16, 17, 32, 33, 40, 64, 300)
"""Numbers of inputs: all small ones, and numbers around unrolled loops and narrow counters."""
STANDARDS = ("onnx",)
_TELLING = ("uniform", "lattice", "ramp")  # fills that expose the most mistakes, the best first
_MANY = 3  # inputs; more would show nothing new
_RUNS = 3  # of one program: a first, a second, a later one
_TYPES = 2  # in each of the two outermost opsets
_LARGEST = 300  # elements in a varied case, so that constants of programs stay small


def variations(spec: Spec, version: VersionSpec, planned: Sequence[CaseId]) -> Iterator[CaseId]:
    """Yield the variations that the planned cases of an operator version lack."""
    if spec.standard == "openvino":
        yield from _unranked(version, planned)
    if spec.standard == "onednn":
        yield from _in_memory(version, planned)
    if spec.standard not in STANDARDS:
        return
    static = _telling(version, (case for case in planned if case.edge is None and case.setting("dims") is None))
    usable = [case for case in dict.fromkeys(static) if settle(version, case) == case]
    bases = [read_row(spec, version, case) for case in sorted(usable, key=lambda case: _worth(usable[0], case))]
    yield from _deliveries(version, planned, bases)
    yield from tensor_twice(version, bases)
    yield from _arities(version, planned, bases)
    yield from _opsets(spec, version, planned, bases)
    yield from _runs(spec, version, planned, bases)
    yield from _resized(version, planned, bases)
    yield from _extents(version, planned, bases)


def _unranked(version: VersionSpec, planned: Sequence[CaseId]) -> Iterator[CaseId]:
    """Yield a case with inputs of no declared rank, if there is none; one with symbolic dimensions if there is one."""
    dims = {case: case.setting("dims") or "static" for case in planned if case.edge is None}
    if any(case.setting("dims") == "unranked" for case in planned):
        return
    for case in sorted(dims, key=lambda case: (dims[case] == "static", not _is_whole(case))):
        varied = case.having({"dims": "unranked"})
        if is_valid(version, case) and settle(version, varied) == varied:
            yield varied
            return


def _in_memory(version: VersionSpec, planned: Sequence[CaseId]) -> Iterator[CaseId]:
    """Yield a case for each order of inputs or outputs in memory, if no edge has one."""
    if any(case.setting("memory") for case in planned):
        return
    usual = _telling(version, (case for case in planned if case.edge is None))
    usual = [case for case in usual if is_valid(version, case) and settle(version, case) == case]

    def worth(case: CaseId) -> tuple[object, ...]:
        others, large, *rest = _worth(usual[0], case)
        return others, large, len(case.settings), *rest

    known = sorted(usual, key=worth)
    for memory in MEMORY[1:]:
        for case in known:
            varied = case.having({"memory": memory})
            if settle(version, varied) == varied:
                yield varied
                break


def _telling(version: VersionSpec, cases: Iterable[CaseId]) -> list[CaseId]:
    """Return cases, with the fill that exposes the most mistakes in place of those that are levels."""
    fills = version.parameters.get("fill", {})
    fill = next((name for name in _TELLING if name in fills), None)
    return [replace(case, fill=fill) if fill and case.fill in fills else case for case in cases]


def _worth(first: CaseId, case: CaseId) -> tuple[object, ...]:
    """Return a sort key for cases to vary: first those with the first types, small and with the most inputs."""
    sizes = [part_size(part) for part in case.shapes if part is not None]
    several = min(sum(size > 1 for size in sizes), _MANY if len(set(case.shapes)) < len(sizes) else len(sizes))
    return case.types != first.types, sum(sizes) > _LARGEST or 0 in sizes, -several, len(sizes), -sum(sizes)


def given(row: Row, port: Port) -> bool:
    """Return whether an input is given as a tensor, which may be a constant or fed."""
    if row.version.signature.attribute(port.name) is not None:
        return False
    if row.is_written(port):
        return isinstance(row.get(port.name), tuple | int | float | str)
    parts = row.parts[port.name]
    return bool(parts) and all(isinstance(part, tuple) for part in parts)


def _deliveries(version: VersionSpec, planned: Sequence[CaseId], bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield cases with another delivery of inputs: all given ones but the first, then the first."""
    settings = {setting for case in planned for setting in case.settings}
    missing: dict[Port, str] = {}
    for port in version.signature.inputs:
        other = FED if usual_delivery(version, port) == CONSTANT else CONSTANT
        if (f"{port.name}{FROM}", other) not in settings:
            missing[port] = other
    for _ in version.signature.inputs:  # until no case adds a missing one
        best = max(bases, key=lambda row: sum(_comes(row, port, missing[port]) for port in missing), default=None)
        named = [] if best is None else [port for port in missing if _comes(best, port, missing[port])]
        if best is None or not named:
            return
        first = next(port for port in version.signature.inputs if given(best, port))
        for some in ([port for port in named if port is not first or port.is_variadic], [first]):
            if some and set(some) <= set(missing):
                yield best.id.having({f"{port.name}{FROM}": missing[port] for port in some})
                missing = {port: how for port, how in missing.items() if port not in some}


def _comes(row: Row, port: Port, how: str) -> bool:
    """Return whether an input is given, and may have this delivery, which it doesn't have yet."""
    if not given(row, port) or how == row.get(f"{port.name}{FROM}"):
        return False
    return not port.is_variadic or len(row.parts[port.name]) > 1


def tensor_twice(version: VersionSpec, bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield a case in which two inputs, or all tensors of a variadic one, are the same tensor."""
    for row in bases:
        if isinstance(row.get("around"), str):  # its nodes name each input
            continue
        filled = [port for port in version.signature.inputs if given(row, port) and not row.is_written(port)]
        filled = [port for port in filled if not _is_drawn(row, port)]
        for port in filled:
            if port.is_variadic and len(set(row.parts[port.name])) == 1 < len(row.parts[port.name]):
                yield row.id.having({f"{port.name}{FROM}": port.name})
                return
        for port_, other_port in combinations(filled, 2):
            alike = port_.type == other_port.type and row.parts[port_.name] == row.parts[other_port.name]
            if (
                alike
                and not port_.is_variadic
                and not other_port.is_variadic
                and _operand(row, port_) == _operand(row, other_port)
            ):
                yield row.id.having({f"{other_port.name}{FROM}": port_.name})
                return


def _is_drawn(row: Row, port: Port) -> bool:
    operand = row.version.operands.get(port.name)
    return isinstance(row.settings.get(port.name), Recipe) or (operand is not None and bool(operand.draws))


def _operand(row: Row, port: Port) -> tuple[object, ...]:
    """Return the settings of an operand that determine an input's elements."""
    operand = row.version.operands.get(port.name)
    return () if operand is None else (operand.draws, operand.domain, operand.fill)


def _arities(version: VersionSpec, planned: Sequence[CaseId], bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield cases with numbers of inputs that the planned ones lack, if a parameter sets the number."""
    port = next((input_ for input_ in version.signature.inputs if input_.is_variadic), None)
    if port is None or len(version.signature.inputs) > 1 or port.name not in version.parameters:
        return
    alike = [row for row in bases if len(set(row.id.shapes)) == 1 and len(row.id.shapes) > 1]
    if alike:
        base, had = alike[0].id, {len(case.shapes) for case in planned}
        yield from (replace(base, shapes=base.shapes[:1] * number) for number in ARITIES if number not in had)


def _opsets(spec: Spec, version: VersionSpec, planned: Sequence[CaseId], bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield cases in the first and in the last opset with the version, of several types; not where there are enough.

    With bodies only of the first types: not every opset of the version has operators for the others.
    """
    rows = bases[:1] if version.graphs else bases
    for number in dict.fromkeys(opset_range(spec, version) or ()):
        cases = [case for case in planned if case.setting("opset") == str(number) and is_valid(version, case)]
        had = {case.types for case in cases}
        while rows and len(had) < _TYPES and number != kindest_opset(spec, version):
            best = min(rows, key=partial(_likeness, had))
            if best.id.types in had:
                break
            yield best.id.having({"opset": str(number)})
            had.add(best.id.types)


def _likeness(had: Set[tuple[str, ...]], row: Row) -> tuple[bool, ...]:
    """Return a sort key for cases of other types than those that there are: of other kinds first, empty ones last."""
    empty = any(part_size(part) == 0 for part in row.id.shapes if part is not None)
    return row.id.types in had, empty, _kinds(row.id.types) in map(_kinds, had)


def _kinds(types: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of elements that types have, each once."""
    return tuple(sorted({element_type(re.split(r"\W", type_.rstrip(")"))[-1]).kind for type_ in types}))


def _runs(spec: Spec, version: VersionSpec, planned: Sequence[CaseId], bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield draws of a case, if no program runs three times; with uniform numbers if its fill draws nothing."""
    runs = Counter(_program(case) for case in planned if is_valid(version, case))
    if max(runs.values(), default=0) >= _RUNS:
        return
    drawn = (case for row in bases for case in (row.id, replace(row.id, fill=_TELLING[0])) if draws(version, case))
    base = next((case for case in drawn if settle(version, case) == case), None)
    if base is not None:
        row = read_row(spec, version, base)
        yield from (row.id, *(row.id.having({"draw": str(number)}) for number in range(1, _RUNS)))


def _resized(version: VersionSpec, planned: Sequence[CaseId], bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield two cases of one program with symbolic dimensions, if no program has two shapes."""
    symbolic = {_program(c) for c in planned if c.setting("dims") is not None and is_valid(version, c) and _is_whole(c)}
    shapes = Counter((types, settings, _ranks(shapes)) for types, shapes, settings in symbolic)
    if max(shapes.values(), default=0) > 1:
        return
    first: dict[tuple[object, ...], Row] = {}
    for row in bases:
        key = row.id.types, row.id.settings, _ranks(row.id.shapes)
        before = first.setdefault(key, row) if _is_whole(row.id) else row
        if before.id.shapes != row.id.shapes:
            yield from (shown.id.having({"dims": "symbolic"}) for shown in (before, row))
            return
    if all(attribute.kind != "graph" for attribute in version.signature.attributes):  # bodies declare shapes
        yield from _resized_anew(version, [row for row in bases if _is_whole(row.id)])


def _resized_anew(version: VersionSpec, bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield a case of one tensor with symbolic dimensions, and the same case with another shape of that rank.

    If no other case has such a shape, the first axis gets one more element.
    """
    for row in sorted(bases, key=lambda row: len(row.id.settings)):
        case, part = row.id.having({"dims": "symbolic"}), row.id.shapes[0]
        if len(row.id.shapes) != 1 or not isinstance(part, tuple) or _names_extents(row, part):
            continue
        if part and settle(version, case) == case:
            others = (shape.id.shapes[0] for shape in bases if len(shape.id.shapes) == 1)
            alike = (
                shape for shape in others if isinstance(shape, tuple) and len(shape) == len(part) and shape != part
            )
            larger = (*(n + (axis == 0) for axis, n in enumerate(part)),)
            yield from (case, replace(case, shapes=(next(alike, larger),)))
            return


def _extents(version: VersionSpec, planned: Sequence[CaseId], bases: Sequence[Row]) -> Iterator[CaseId]:
    """Yield a case with long extents in front and in the middle, and one with equal extents, unless there are such."""
    firsts = [case.shapes[0] for case in planned if case.shapes and is_valid(version, case)]
    known = [part for part in firsts if isinstance(part, tuple) and all(isinstance(n, int) for n in part)]
    wanted = []
    if not all(any(len(part) > 2 and _is_long(part[at]) for part in known) for at in (0, 1)):
        wanted.append(_LONG)
    if not all(any(_are_equal(part, fits) for part in known) for fits in (int.__eq__, int.__lt__)):
        wanted.append(_ALIKE)
    for shape in wanted:
        deep = (row for row in bases if _may_change(row))
        base = min(deep, key=lambda row: (len(str(row.id.shapes[0])), len(row.id.settings)), default=None)
        part = None if base is None else base.id.shapes[0]
        if base is not None and isinstance(part, tuple):
            longer = (*shape, *(1,) * len(part))
            other = tuple(1 if n == 1 else m for n, m in zip(part, longer, strict=False))
            yield replace(base.id, shapes=tuple(other if dims == part else dims for dims in base.id.shapes))


_LONG, _ALIKE = (65, 67, 2), (3, 3, 3)
_REGISTER, _LEAST = 8, 64
_INDEPENDENT = frozenset(
    {"axes", "perm", "pads", "strides", "dilations", "kernel_shape", "consumed_inputs", "axis", "to"}
)
"""Attributes that do not depend on extents."""


def _is_long(extent: object) -> bool:
    return isinstance(extent, int) and extent > _LEAST and extent % _REGISTER > 0


def _are_equal(part: Part, fits: Callable[[int, int], bool]) -> bool:
    """Return whether two extents are equal, by their distance: side by side, or further apart."""
    numbers = part if isinstance(part, tuple) else ()
    pairs = combinations(enumerate(numbers), 2)
    return any(a == b and isinstance(a, int) and a > 1 and fits(1, there - here) for (here, a), (there, b) in pairs)


def _may_change(row: Row) -> bool:
    """Return whether the first input's shape, of rank 3 or more, may change without making a case invalid."""
    first, *rest = row.id.shapes or (None,)
    if not isinstance(first, tuple) or len(first) < len(_LONG) or _names_extents(row, first):
        return False
    if 0 in first or 1 in first[:2] or len({*first}) < len(first):  # equal ones may have to be equal
        return False
    if any(a.required and a.kind == "int" and a.name not in _INDEPENDENT for a in row.version.signature.attributes):
        return False  # a block's size, which divides extents
    lists = (value for name, value in row.settings.items() if isinstance(value, tuple) and name not in _INDEPENDENT)
    return all(part is None or part in ((), first) for part in rest) and not any(lists)


def _names_extents(row: Row, part: tuple[object, ...]) -> bool:
    """Return whether a written input contains extents of `part`."""
    ports = (row.get(port.name) for port in row.version.signature.inputs if row.is_written(port))
    numbers = {n for value in ports if isinstance(value, tuple) for n in value if isinstance(n, int)}
    return any(n in numbers for n in part if isinstance(n, int) and n > 1)


def _program(case: CaseId) -> tuple[tuple[str, ...], tuple[Part, ...], tuple[tuple[str, str], ...]]:
    return case.types, case.shapes, case.settings


def _is_whole(case: CaseId) -> bool:
    """Return whether a case has only tensors, none of them empty and not all of them scalars."""
    return any(case.shapes) and all(isinstance(part, tuple) and all(part) for part in case.shapes)


def _ranks(shapes: Sequence[Part]) -> tuple[object, ...]:
    return tuple(len(part) if isinstance(part, tuple) else part for part in shapes)


def is_valid(version: VersionSpec, case: CaseId) -> bool:
    """Return whether a case is no edge with an invalid input."""
    edge = version.edge(case.edge) if case.edge else None
    return edge is None or not edge.rejected

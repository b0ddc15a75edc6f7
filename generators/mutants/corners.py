"""Corners: numbers that a node of a formula easily gets wrong, and the mistakes that show there alone.

Rounding: ties, numbers beside whole ones, rounding twice, the last number before a limit. Whole numbers: operands
within a narrower type, and a result beyond it. A deviation is right for all other numbers: the data set it off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ...cases.elements import Array, FloatFormat, element_type
from ..arithmetic.graph import Graph, Node
from ..primitives.conversions import rounded_to
from ..primitives.errors import format_of, kind_of, limits, lowest_of
from ..primitives.machine import Deviation

Derived: TypeAlias = "Deviation | None"
Change: TypeAlias = Callable[[Array, Array], Array]
"""Returns a wrong result from the operand, as float64 or a whole number, and the right result."""
Way: TypeAlias = Literal["wrapped", "saturated", "rounded"]

CORNER = "corner"
"""The prefix of a corner's name where an implementation names its deviating nodes."""
_ROUNDS = frozenset({"rint", "rint_away"})
_WHOLES = frozenset({*_ROUNDS, "floor", "ceil", "trunc"})
_BETWEEN: Mapping[str, str] = {"float64": "float32", "float32": "float16", "bfloat16": "float16"}
"""The type by which an implementation may convert a type to a much narrower one."""
_SMALL = 11  # bits of the significand: at most these are reached by way of another type
_FLOAT = 24  # bits of float32's significand
_UNSIGNED = (16, 32)  # limits of types without a sign
_NEAR = 3  # bits of the significand that numbers beside a whole one differ in
_ELEMENTWISE = frozenset({"add", "sub", "mul", "neg", "abs", "whole_power", "shift"})
_REDUCED = frozenset({"sum", "prod", "matmul", "cumsum"})


@dataclass(frozen=True)
class Corner:
    """A mistake at a corner: `number=tie:away`. `trigger` and `text` describe it; `at` returns the deviation of a node.

    `at` returns None for nodes that have no such corner.
    """

    group: str
    level: str
    trigger: str
    effect: str
    text: str
    at: Callable[[Graph, Node], Derived]

    @property
    def name(self) -> str:
        """The name of the deviations, `number=tie:away`."""
        return f"{self.group}={self.level}:{self.effect}"


def corner_deviations(graph: Graph, live: Sequence[int]) -> Mapping[str, Mapping[int, Deviation]]:
    """Return the mistakes that a formula allows, by name: deviations by node. `live`: the nodes of its answer."""
    deviations: dict[str, dict[int, Deviation]] = {}
    for at in live:
        node = graph.nodes[at]
        if node.args:
            for corner in CORNERS:
                deviation = corner.at(graph, node)
                if deviation is not None:
                    deviations.setdefault(corner.name, {})[at] = deviation
    return deviations


def _changed(change: Change) -> Deviation:
    """Return the deviation that changes a result by its first operand."""
    return _changed_by_all(lambda xs, y: change(_number(xs[0]), y))


def _changed_by_all(change: Callable[[Sequence[Array], Array], Array]) -> Deviation:
    """Return the deviation that changes a result by its operands."""

    def deviate(m: Any, room: Any, xs: Sequence[Array], p: Mapping[str, Any]) -> Array:
        y = np.asarray(room.native(m, *xs, **p))
        return np.asarray(change(xs, y)).astype(y.dtype)

    return deviate


def _number(x: Array) -> Array:
    return x if x.dtype.kind in "iuO" else x.astype(np.float64)


def _where(condition: Array, wrong: Any, y: Array) -> Array:
    return np.where(condition, wrong, y.astype(np.float64)) if np.any(condition) else y


# Rounding to whole numbers


def _at_ties(of: str, change: Callable[[Array], Array]) -> Callable[[Graph, Node], Derived]:
    def tie(x: Array, y: Array) -> Array:
        return _where(np.abs(x - np.trunc(x)) == 0.5, change(x), y)

    return lambda _, node: _changed(tie) if node.name == of else None


def _away(x: Array) -> Array:
    return np.trunc(x) + np.copysign(1.0, x)


def _below_half(_: Graph, node: Node) -> Derived:
    """floor(x + 1/2) with a rounded sum: 1 for the last number before 1/2, and an even number for large odd ones."""
    if node.name not in _ROUNDS:
        return None
    dtype = element_type(node.type).dtype

    def change(x: Array, y: Array) -> Array:
        with np.errstate(all="ignore"):
            floor = np.floor(x)
            right = np.where(x - floor >= 0.5, floor + 1, floor)
            wrong = np.floor((x.astype(dtype) + dtype.type(0.5)).astype(np.float64))
        return _where(np.isfinite(x) & (wrong != right), wrong, y)

    return _changed(change)


def _near_whole(_: Graph, node: Node) -> Derived:
    """Numbers a few units in the last place beside a whole one are taken for it."""
    if node.name not in ("floor", "ceil", "trunc") and not _is_cast(node, "real", "int"):
        return None
    operand = node.parameters.get("of", node.type)
    share = 2.0 ** (_NEAR - format_of(operand).precision)

    def change(x: Array, y: Array) -> Array:
        nearest = np.rint(x)
        beside = (x != nearest) & (np.abs(x - nearest) <= share * np.abs(x)) & (np.abs(x - nearest) < 0.25)
        return _where(beside, nearest, y)

    return _changed(change)


def _beyond(bits: int) -> Callable[[Graph, Node], Derived]:
    """Numbers beyond a type of whole numbers become its smallest one, as in a conversion to it and back."""

    def change(x: Array, y: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return _where(np.isfinite(x) & (np.abs(x) >= 2.0 ** (bits - 1)), -(2.0 ** (bits - 1)), y)

    return lambda _, node: _changed(change) if node.name in _WHOLES else None


def _by_signed(bits: int) -> Callable[[Graph, Node], Derived]:
    """Return the deviation of a cast to whole numbers that goes by way of a signed type, which saturates."""

    def at(_: Graph, node: Node) -> Derived:
        if not _is_cast(node, "real", "int") or limits(node.type)[1] < 1 << (bits - 1):
            return None
        high = limits(node.type)[1]

        def change(x: Array, y: Array) -> Array:
            beyond = (x >= 2.0 ** (bits - 1)) & (x < float(high))
            return np.where(beyond, y.dtype.type(2 ** (bits - 1) - 1), y)

        return _changed(change)

    return at


# Rounding to a type


def _is_cast(node: Node, of: str, to: str) -> bool:
    return node.name == "cast" and (kind_of(node.parameters["of"]), kind_of(node.parameters["to"])) == (of, to)


def _narrows(node: Node) -> bool:
    """Return whether a node rounds numbers to a type of floating-point numbers, to nearest."""
    if node.name != "cast" or kind_of(node.parameters["to"]) != "real" or "mode" in node.parameters:
        return False
    of = kind_of(node.parameters["of"])
    form = format_of(node.parameters["to"])
    if of == "int":
        return limits(node.parameters["of"])[1] > 1 << form.precision
    if of != "real":
        return False
    own = format_of(node.parameters["of"])
    return own.precision > form.precision or own.emax > form.emax


def _unit(form: FloatFormat, x: Array) -> Array:
    """Return the distance of neighbours in a format, at each number."""
    lowest = lowest_of(form) if form.subnormals else form.emin
    return np.asarray(np.ldexp(1.0, np.maximum(np.frexp(x)[1] - form.precision, lowest)))


def _rounding(wrong: Callable[[Node, FloatFormat, Array, Array], Array]) -> Callable[[Graph, Node], Derived]:
    """Return the deviation of casts to floats. `wrong` gets the node, its format, finite numbers and them rounded."""

    def at(_: Graph, node: Node) -> Derived:
        if not _narrows(node):
            return None
        form = format_of(node.parameters["to"])

        def change(x: Array, y: Array) -> Array:
            floats = x.astype(np.float64)
            finite = np.isfinite(floats)
            numbers = np.where(finite, floats, 0.0)
            exact = np.where(finite, x, 0) if x.dtype == object else numbers
            right = np.asarray(rounded_to(form, exact, saturate=bool(node.parameters["saturate"]))).astype(np.float64)
            with np.errstate(all="ignore"):
                result = wrong(node, form, numbers, right)
            same = (result == right) | (np.isnan(result) & np.isnan(right))
            return np.where(finite & ~same, result, y.astype(np.float64))

        return _changed(change)

    return at


def _tie(way: Literal["away", "to-zero"]) -> Callable[[Graph, Node], Derived]:
    def wrong(_node: Node, form: FloatFormat, x: Array, y: Array) -> Array:
        unit = _unit(form, x)
        steps = np.abs(x) / unit
        tie = (steps - np.floor(steps) == 0.5) & (np.abs(x) < form.largest)
        rounded = np.ceil(steps) if way == "away" else np.floor(steps)
        return np.where(tie, np.copysign(rounded * unit, x), y)

    return _rounding(wrong)


def _twice(node: Node, form: FloatFormat, x: Array, y: Array) -> Array:
    of = node.parameters["of"]
    if kind_of(of) == "int":
        between = "float32" if form.precision <= _SMALL else "float64"
    else:
        between = _BETWEEN.get(of, "") if form.precision <= _SMALL else ""
        between = between if between and format_of(between).precision > form.precision else ""
    if not between:
        return y
    once = rounded_to(format_of(between), x)
    return np.asarray(rounded_to(form, once.astype(np.float64), saturate=bool(node.parameters["saturate"])))


def _largest_lost(_: Node, form: FloatFormat, x: Array, y: Array) -> Array:
    """Numbers that are rounded down to the largest one overflow."""
    over = (np.abs(x) > form.largest) & (np.abs(x) < form.overflow) & (np.abs(y) == form.largest)
    return np.where(over, np.copysign(np.inf if form.infinities else np.nan, x), y)


def _overflow_kept(_: Node, form: FloatFormat, x: Array, y: Array) -> Array:
    """Keep a tie between the largest number and overflow finite."""
    return np.where((np.abs(x) == form.overflow) & ~np.isfinite(y), np.copysign(form.largest, x), y)


def _flushed(_: Node, form: FloatFormat, _x: Array, y: Array) -> Array:
    """Flush subnormal results to zero."""
    return np.where((np.abs(y) < form.tiny) & (y != 0), 0.0, y) if form.subnormals else y


_PAYLOADS: Mapping[str, tuple[type[Any], int, int]] = {
    "float32": (np.uint32, 23, 13),
    "float64": (np.uint64, 52, 29),
}
"""By type: its bits as whole numbers, how many there are in a significand, how many a cut removes."""


def _payload(_: Graph, node: Node) -> Derived:
    """Cut bits off, which makes an infinity of NaN if its other bits are zero."""
    of = node.parameters.get("of", "")
    if of not in _PAYLOADS or not _narrows(node):
        return None
    bits_type, bits, cut = _PAYLOADS[of]
    form = format_of(node.parameters["to"])

    def change(xs: Sequence[Array], y: Array) -> Array:
        x = xs[0]
        if not form.infinities or x.dtype.name != of or not np.isnan(x).any():
            return y
        kept = (np.ascontiguousarray(x).view(bits_type) & bits_type((1 << bits) - 1)) >> bits_type(cut)
        return np.where(np.isnan(x) & (kept == 0), np.copysign(np.inf, x), y)

    return _changed_by_all(change)


def _by_signed_integer(_: Graph, node: Node) -> Derived:
    """Read the upper half of uint64 as negative numbers."""
    if not _is_cast(node, "int", "real") or node.parameters["of"] != "uint64":
        return None

    def change(x: Array, y: Array) -> Array:
        high = x >= 1 << 63
        if not np.any(high):
            return y
        return np.where(high, x.astype(np.float64) - 2.0**64, y.astype(np.float64))

    return _changed(change)


# Limits


def _literals(graph: Graph, node: Node) -> Iterator[float]:
    for at in node.args:
        operand = graph.nodes[at]
        while operand.name in ("reshape", "broadcast"):
            operand = graph.nodes[operand.args[0]]
        if operand.name == "literal" and operand.kind in ("real", "int"):
            yield float(np.asarray(operand.parameters["number"], np.float64).reshape(-1)[0])


def _clamped(far: bool) -> Callable[[Graph, Node], Derived]:
    """Numbers just beyond a bound stay, or those beyond 32 bits fall on the other side."""

    def at(graph: Graph, node: Node) -> Derived:
        bound = next(_literals(graph, node), None) if node.name in ("maximum", "minimum") else None
        if bound is None or not np.isfinite(bound) or node.kind != "real":
            return None
        if far and not any(other.name in _ROUNDS for other in graph.nodes):
            return None
        sign = 1.0 if node.name == "minimum" else -1.0

        def change(xs: Sequence[Array], y: Array) -> Array:
            x = next((x for x in xs if x.shape == y.shape), xs[0]).astype(np.float64)
            with np.errstate(invalid="ignore"):
                if far:
                    return _where(np.isfinite(x) & (sign * x >= 2.0**31), -sign * 2.0**31, y)
                beyond = sign * (x - bound)
                return _where((beyond > 0) & (beyond <= 1), x, y)

        return _changed_by_all(change)

    return at


def _equals(_: Graph, node: Node) -> Derived:
    """Equal operands compare the other way."""
    if node.name not in ("less", "less_equal"):
        return None
    return _changed_by_all(lambda xs, y: np.where(xs[0] == xs[1], ~y, y))


# Whole numbers between small and extreme


def _beyond_whole(bits: int, way: Way) -> Callable[[Graph, Node], Derived]:
    """Results beyond so many bits, of operands within them: wrapped or saturated there, or rounded to a float."""
    limit = 1 << bits

    def at(_: Graph, node: Node) -> Derived:
        if node.kind != "int" or node.name not in _ELEMENTWISE | _REDUCED or limits(node.type)[1] <= limit:
            return None

        def change(xs: Sequence[Array], y: Array) -> Array:
            if not y.size or not any(x.dtype.kind in "iuO" for x in xs):
                return y
            over = np.greater_equal(_magnitude(y), limit)
            if not over.any():
                return y
            if node.name in _ELEMENTWISE:
                for x in xs:
                    over = over & np.less(_magnitude(x), limit)
            elif any(x.size and np.max(_magnitude(x)) >= limit for x in xs):
                return y
            return _replaced(y, np.broadcast_to(over, y.shape), lambda n: _narrow(n, bits, way))

        return _changed_by_all(change)

    return at


def _magnitude(x: Array) -> Array:
    return np.abs(x.astype(object)) if x.dtype == object or x.dtype.itemsize == 8 else np.abs(x.astype(np.int64))


def _narrow(number: int, bits: int, way: Way) -> int:
    if way == "rounded":
        return int(np.float32(number)) if bits == _FLOAT else int(float(number))
    low, high = (0 if bits in _UNSIGNED else -(1 << bits)), (1 << bits) - 1
    return min(max(number, low), high) if way == "saturated" else (number - low) % (high - low + 1) + low


def _replaced(y: Array, there: Array, change: Callable[[int], int]) -> Array:
    result = y.copy()
    low, high = (0, 0) if y.dtype == object else (np.iinfo(y.dtype).min, np.iinfo(y.dtype).max)
    numbers = [change(int(n)) for n in result[there]]
    result[there] = numbers if y.dtype == object else [(n - low) % (high - low + 1) + low for n in numbers]
    return result


def _corners() -> Iterator[Corner]:
    tie, type_tie = "a number half-way between two whole ones", "a number half-way between two of a narrower type"
    yield Corner("number", "tie", tie, "away", "rounds away from zero", _at_ties("rint", _away))
    yield Corner("number", "tie", tie, "up", "rounds up", _at_ties("rint", lambda x: np.floor(x) + 1))
    yield Corner("number", "tie", tie, "to-even", "rounds to the even one", _at_ties("rint_away", np.rint))
    yield Corner(
        "number", "below-half", "a number whose sum with 1/2 rounds", "added", "rounds floor(x + 1/2)", _below_half
    )
    yield Corner("number", "near-whole", "a number just beside a whole one", "taken", "takes it for that", _near_whole)
    for bits in (32, 64):
        beyond = f"a number beyond {bits} bits with a sign"
        yield Corner("number", f"beyond-int{bits}", beyond, "overflows", "overflows", _beyond(bits))
        yield Corner("number", f"beyond-int{bits}", beyond, "saturated", "saturates", _by_signed(bits))
    yield Corner("number", "type-tie", type_tie, "away", "rounds away from zero", _tie("away"))
    yield Corner("number", "type-tie", type_tie, "to-zero", "rounds towards zero", _tie("to-zero"))
    between = "a number that rounds another way by a type in between"
    yield Corner("number", "twice", between, "rounded", "rounds twice", _rounding(_twice))
    largest = "a number that rounds down to the type's largest"
    yield Corner("number", "largest", largest, "overflows", "overflows", _rounding(_largest_lost))
    half = "a number half-way between the type's largest and the next power of two"
    yield Corner("number", "overflow-tie", half, "kept", "stays finite", _rounding(_overflow_kept))
    yield Corner("number", "subnormal", "a subnormal result of a cast", "flushed", "becomes 0", _rounding(_flushed))
    yield Corner("number", "nan-bits", "a NaN whose higher bits are zero", "cut", "becomes an infinity", _payload)
    yield Corner(
        "number", "beyond-int64", "a number beyond 64 bits with a sign", "negative", "is negative", _by_signed_integer
    )
    yield Corner("number", "bound", "a number just beyond a bound", "kept", "is not clamped", _clamped(far=False))
    yield Corner("number", "bound-far", "a number far beyond a bound", "wrapped", "wraps first", _clamped(far=True))
    yield Corner("number", "equal", "equal numbers that are compared", "inverted", "compare otherwise", _equals)
    for bits, ways in ((15, _BOTH), (16, _BOTH), (24, _ROUNDED), (31, _BOTH), (32, _BOTH), (53, _ROUNDED)):
        for way in ways:
            text = f"a whole result over 2^{bits}, of numbers within it"
            does = {"wrapped": "wraps", "saturated": "saturates", "rounded": "is rounded"}[way]
            yield Corner("whole", f"over-2^{bits}", text, way, f"{does} there", _beyond_whole(bits, way))


_BOTH: tuple[Way, ...] = ("wrapped", "saturated")
_ROUNDED: tuple[Way, ...] = ("rounded",)
CORNERS: tuple[Corner, ...] = tuple(_corners())
CORNER_GROUPS = frozenset(corner.group for corner in CORNERS)
"""The groups of triggers that data set off; an operator has those that some data set off."""

"""A formula as a graph of primitives, and its interpretation: exact values once, then errors for each arithmetic."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ...cases.elements import Array
from ..primitives import ROOMS
from ..primitives.errors import (
    NEGATIVE,
    NEGATIVE_ZERO,
    POSITIVE,
    SLACK,
    Arithmetic,
    Charge,
    Context,
    Error,
    Flags,
    Known,
    Size,
    charged,
    contains,
    each,
    format_of,
    kind_of,
    limits,
    precise,
    widened,
    without_nan,
)
from ..primitives.primitive import Primitive

NO_LANE = MappingProxyType({"real": np.float64, "int": np.int64, "bool": np.bool_, "text": object, "complex": complex})
"""The dtype that carries the exact values of each kind of elements, unless a wider one is needed."""


Room: TypeAlias = type[Primitive]


class Node(NamedTuple):
    """A primitive applied to earlier nodes, by their indices. `type` is the element type of the result.

    `computes` is the floating-point type whose arithmetic applies: the result's, else the first such type among the
    operands, else none. Besides primitives there are nodes called `port` and `literal`. Nodes with the same `operation`
    differ only in their operands. While a formula is recorded there are also `choice` nodes; their operands are the
    results for each option of a silence.
    """

    name: str
    args: tuple[int, ...]
    parameters: Mapping[str, Any]
    shape: tuple[int, ...]
    type: str
    computes: str
    operation: Hashable = ()

    @property
    def kind(self) -> str:
        """The kind of the result: `real`, `int`, `bool`, `text` or `complex`."""
        return kind_of(self.type)

    @property
    def room(self) -> Room:
        """The primitive. Raises KeyError for ports and literals."""
        return ROOMS[self.name]


class Asked(Protocol):
    """Knows the chosen options of silences: a Call."""

    def deferred(self, silence: str, where: Callable[[], Value] | None = None) -> tuple[str, ...]:
        """Return the options of a silence that may be chosen later, or the chosen one; empty without such a silence.

        If an option ends the reading, the silence is open in lanes with any true element of `where`.
        """

    def open(self, silence: str, where: Value | None = None) -> str:
        """Return the chosen option of a silence, which is open in lanes with any true element of `where`."""


class Graph:
    """Nodes in an order in which they can be computed; equal expressions, also of two forks, are one node.

    `asked` answers for the silences that primitives meet. `precision`: functions' budgets in ulp, if a spec has them.
    """

    def __init__(self, precision: Mapping[str, float] = MappingProxyType({})) -> None:
        self.nodes: list[Node] = []
        self.asked: Asked | None = None
        self.precision = precision
        self._places: dict[object, int] = {}
        self._hangs: dict[int, tuple[str, ...]] = {}  # the silences that a node depends on
        self._resolved: dict[tuple[object, ...], int] = {}

    def choose(
        self,
        silence: str,
        usual: str,
        make: Callable[[str], Value],
        where: Callable[[], Value] | None = None,
    ) -> Value:
        """Return the value that `make` gives for the option of a silence, or for `usual` if there is no such silence.

        It represents the values for all options until `resolved` picks one, so that formulas run only once. `where`
        gives the elements in which an option that ends the reading applies.
        """
        options = () if self.asked is None else self.asked.deferred(silence, where)
        if len(options) < 2:
            return make(options[0] if options else usual)
        made = tuple(make(option).at for option in options)
        node = self.nodes[made[0]]
        parameters = {"silence": silence, "options": options}
        return self._added(("choice", silence, made), node._replace(name="choice", args=made, parameters=parameters))

    def resolved(self, places: Iterable[int], chosen: Mapping[str, str]) -> dict[int, int]:
        """Return the nodes that some nodes become with the chosen options."""
        todo = list(places)
        while todo:
            at = todo[-1]
            node = self.nodes[at]
            needed: Sequence[int] = node.args
            if node.name == "choice":
                needed = (node.args[node.parameters["options"].index(chosen[node.parameters["silence"]])],)
            resolved = [self._known(a, chosen) for a in needed]
            if self._known(at, chosen) is not None:
                todo.pop()
            elif None in resolved:
                todo += [a for a, known in zip(needed, resolved, strict=True) if known is None]
            elif node.name == "choice":
                self._resolved[self._key(at, chosen)] = resolved[0]  # type: ignore[assignment]  # not None
            else:
                operands = [Value(self, a) for a in resolved]  # type: ignore[arg-type]  # likewise
                self._resolved[self._key(at, chosen)] = self.node(node.name, operands, node.parameters).at
        return {at: self._known(at, chosen) or 0 for at in places}

    def _known(self, at: int, chosen: Mapping[str, str]) -> int | None:
        return self._resolved.get(self._key(at, chosen)) if at in self._hangs else at

    def _key(self, at: int, chosen: Mapping[str, str]) -> tuple[object, ...]:
        return at, *[chosen[silence] for silence in self._hangs[at]]

    def port(self, index: int, shape: tuple[int, ...], type_: str) -> Value:
        """Return the node of an input array, by its index among the case's."""
        return self._leaf("port", ("port", index), shape, type_)

    def literal(self, number: Any, type_: str) -> Value:
        """Return the node of a number or array of numbers, exactly as written."""
        shape = () if isinstance(number, float) else np.shape(number)
        return self._leaf("literal", ("number", number), shape, type_)

    def node(self, name: str, operands: Sequence[Value], parameters: Mapping[str, Any]) -> Value:
        """Return the node of a primitive; its shape comes from its exact value over zero lanes."""
        args = tuple([o.at for o in operands])
        keys = _Frozen([(k, frozen(v)) for k, v in parameters.items()])
        key = (name, args, keys)
        if key in self._places:
            return Value(self, self._places[key])
        nodes = [self.nodes[a] for a in args]
        keys.parameters = parameters
        shape, type_ = _result(name, tuple([node.type for node in nodes]), tuple([node.shape for node in nodes]), keys)
        computes = type_ if kind_of(type_) == "real" else next((n.computes for n in nodes if n.computes), "")
        return self._added(key, Node(name, args, parameters, shape, type_, computes, (name, type_, keys)))

    def _leaf(self, name: str, parameter: tuple[str, object], shape: tuple[int, ...], type_: str) -> Value:
        computes = type_ if kind_of(type_) == "real" else ""
        key = (name, type_, shape, frozen(parameter[1]))
        return self._added(key, Node(name, (), dict([parameter]), shape, type_, computes))

    def _added(self, key: object, node: Node) -> Value:
        if key not in self._places:
            at = self._places[key] = len(self.nodes)
            self.nodes.append(node)
            hangs = {silence: None for a in node.args if a in self._hangs for silence in self._hangs[a]}
            if node.name == "choice":
                hangs[node.parameters["silence"]] = None
            if hangs:
                self._hangs[at] = tuple(hangs)
        return Value(self, self._places[key])

    @property
    def content(self) -> tuple[object, ...]:
        """The nodes, hashable: graphs with the same content compute the same, at the same places."""
        return tuple(self._places)

    def live(self, outputs: Iterable[int]) -> tuple[int, ...]:
        """Return the nodes that `outputs` need, in order."""
        need: set[int] = set()
        todo = list(outputs)
        while todo:
            at = todo.pop()
            if at not in need:
                need.add(at)
                todo += self.nodes[at].args
        return tuple(sorted(need))


class _Frozen(tuple[object, ...]):
    """The keys of a primitive's `parameters`, which make two of them equal."""

    parameters: Mapping[str, Any]


@functools.lru_cache(maxsize=8192)
def _result(
    name: str, types: tuple[str, ...], shapes: tuple[tuple[int, ...], ...], parameters: _Frozen
) -> tuple[tuple[int, ...], str]:
    """Return the shape of a primitive's result, which is that of its exact value over zero lanes, and its type."""
    room = ROOMS[name]
    empty: list[Array] = [
        np.zeros((0, *shape), NO_LANE[kind_of(type_)]) for type_, shape in zip(types, shapes, strict=True)
    ]
    with np.errstate(all="ignore"):
        shape = np.shape(room.exact(*empty, **parameters.parameters))[1:]
    return shape, room.type(types, **parameters.parameters)


def frozen(parameter: object) -> object:
    """Return a hashable key that two parameters share only if they are the same to the bit."""
    if isinstance(parameter, np.ndarray):
        content = repr(parameter.tolist()) if parameter.dtype == object else parameter.tobytes()
        return parameter.shape, parameter.dtype.str, content
    if isinstance(parameter, float):
        return type(parameter), parameter.hex()
    return type(parameter), parameter


class Value:
    """A tensor of a formula, with a known shape (without lanes) and element type.

    Besides the operators, every primitive is a method: `x.exp()`, `x.mean(axes)`, `x.reshape(*shape)`.
    Operands broadcast; numbers and arrays of numbers are literals of the other operand's type, exactly as written.
    """

    __slots__ = ("at", "graph")
    __array_ufunc__ = None

    def __init__(self, graph: Graph, at: int) -> None:
        self.graph, self.at = graph, at

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, without lanes."""
        return self.graph.nodes[self.at].shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def type(self) -> str:
        """The element type's name."""
        return self.graph.nodes[self.at].type

    @property
    def kind(self) -> str:
        """The kind of the elements: `real`, `int`, `bool`, `text` or `complex`."""
        return kind_of(self.type)

    def node(self, name: str, *others: Value, **parameters: Any) -> Value:
        """Return a primitive of this value and others, without conversion."""
        value = self.graph.node(name, (self, *others), parameters)
        if ROOMS[name].overflows and value.kind == "int":
            return self.graph.choose("integer-overflow", "exact", value._fitted, lambda: value._beyond)
        return value

    def _fitted(self, way: str) -> Value:
        return self.fit("wraps").undefined(self._beyond) if way == "any" else self.fit(way)

    @property
    def _beyond(self) -> Value:
        """A mask of the whole numbers that do not fit the type."""
        low, high = limits(self.type)
        return (self > high) | (self < low)

    def __getattr__(self, name: str) -> Callable[..., Value]:
        room = ROOMS.get(name)
        if room is None:
            raise AttributeError(f"no primitive is called {name!r}")
        return lambda *others, **parameters: room.record(self, *others, **parameters)

    def of(self, number: object) -> Value:
        """Return a literal of this value's type, exactly as written; a Value is returned unchanged."""
        return number if isinstance(number, Value) else self.graph.literal(number, self.type)

    def aligned(self, *others: object) -> tuple[Value, ...]:
        """Return this value and others, with leading dimensions of 1 up to the largest rank."""
        every = (self, *map(self.of, others))
        ranks = {len(value.shape) for value in every}
        return every if len(ranks) == 1 else tuple(value.to_rank(max(ranks)) for value in every)

    def to_rank(self, rank: int) -> Value:
        """Return this value with leading dimensions of 1."""
        return self if self.rank == rank else self.node("reshape", to=((1,) * (rank - self.rank) + self.shape))

    def axes(self, axes: int | Sequence[int] | None) -> tuple[int, ...]:
        """Return axes sorted and counted from the front; None: all."""
        if axes is None:
            return tuple(range(self.rank))
        listed = (axes,) if isinstance(axes, (int, np.integer)) else axes
        return tuple(sorted({int(a) % max(self.rank, 1) for a in listed}))

    def undefined(self, mask: Value, silence: str | None = None) -> Value:
        """Return this value, with every result admitted under the mask: always, or for a silence's option `any`."""
        if silence is not None and self.graph.asked is not None and self.graph.asked.open(silence, mask) != "any":
            return self
        first, second = self.aligned(mask)
        return first.node("free", second)

    def __add__(self, other: object) -> Value:
        return self._pair("add", other)

    def _pair(self, name: str, other: object, *, flip: bool = False, **parameters: object) -> Value:
        first, second = self.aligned(other)
        if flip:
            first, second = second, first
        return first.node(name, second, **parameters)

    def __radd__(self, other: object) -> Value:
        return self._pair("add", other, flip=True)

    def __sub__(self, other: object) -> Value:
        return self._pair("sub", other)

    def __rsub__(self, other: object) -> Value:
        return self._pair("sub", other, flip=True)

    def __mul__(self, other: object) -> Value:
        return self._pair("mul", other)

    def __rmul__(self, other: object) -> Value:
        return self._pair("mul", other, flip=True)

    def __truediv__(self, other: object) -> Value:
        return self._pair("div", other)

    def __rtruediv__(self, other: object) -> Value:
        return self._pair("div", other, flip=True)

    def __pow__(self, other: object) -> Value:
        return self.pow(other)

    def __matmul__(self, other: Value) -> Value:
        return self.matmul(other)

    def __neg__(self) -> Value:
        return self.node("neg")

    def __lt__(self, other: object) -> Value:
        return self._pair("less", other)

    def __gt__(self, other: object) -> Value:
        return self._pair("less", other, flip=True)

    def __le__(self, other: object) -> Value:
        return self._pair("less_equal", other)

    def __ge__(self, other: object) -> Value:
        return self._pair("less_equal", other, flip=True)

    def __and__(self, other: object) -> Value:
        return self._pair("and", other)

    def __or__(self, other: object) -> Value:
        return self._pair("or", other)

    def __xor__(self, other: object) -> Value:
        return self._pair("xor", other)

    def __invert__(self) -> Value:
        return self.__getattr__("not")()

    def __getitem__(self, key: Any) -> Value:
        return self.slice(*(key if isinstance(key, tuple) else (key,)))

    @property
    def mT(self) -> Value:  # noqa: N802 - the array API's name
        """The value with its matrices transposed."""
        return self.transpose(*range(self.rank - 2), self.rank - 1, self.rank - 2)


Values: TypeAlias = Mapping[int, Known]
"""The exact values of each live node."""
Errors: TypeAlias = Mapping[int, Error]


def lifted(array: Array, type_: str) -> Array:
    """Return an input's exact values in the carrier of their kind."""
    kind = kind_of(type_)
    if kind == "real":
        with np.errstate(invalid="ignore"):  # a signalling NaN
            return array.astype(np.float64)
    if kind == "int":
        large = array.dtype == np.uint64 and bool(array.size) and int(array.max()) >= 1 << 62
        return array.astype(object if large else np.int64)
    return array.astype(np.complex128) if kind == "complex" else array


def exact(graph: Graph, live: Sequence[int], arrays: Sequence[Array], *, wide: bool) -> dict[int, Known]:
    """Return every live node's exact values, shared by all contexts and forks.

    `wide`: computed real numbers are gmpy2's, for float64 results; otherwise they are float64.
    """
    known: dict[int, Known] = {}
    made: dict[tuple[object, ...], Known] = {}  # forks often share their values
    with np.errstate(all="ignore"), precise():
        for at in live:
            node = graph.nodes[at]
            same = (node.operation, *[id(known[a]) for a in node.args])
            if not node.args or (result := made.get(same)) is None:
                value = _exact(node, known, arrays, wide=wide)
                made[same] = result = next((known[a] for a in node.args if known[a].v is value), None) or Known(value)
            known[at] = result
    return known


def _exact(node: Node, known: Values, arrays: Sequence[Array], *, wide: bool) -> Array:
    if node.name == "port":
        return lifted(arrays[node.parameters["port"]], node.type)
    if node.name == "literal":
        return literal(node)
    xs, room = [known[a].v for a in node.args], node.room
    if wide and room.work == "rounds" and node.kind == "real":
        if room.widens:
            return np.asarray(room.exact(*xs, wide=True, **node.parameters))
        xs = [known[a].wide if x.dtype == np.float64 else x for a, x in zip(node.args, xs, strict=True)]
    return np.asarray(room.exact(*xs, **node.parameters))


def literal(node: Node) -> Array:
    """Return a literal's values, as one lane."""
    number = node.parameters["number"]
    if node.kind == "int":
        integers = np.asarray(number)
        if integers.dtype.kind not in "iu":
            integers = integers.astype(object)
        fits = not integers.size or -(1 << 62) < int(integers.min()) <= int(integers.max()) < 1 << 62
        return (integers.astype(np.int64) if fits else each(int, integers))[None]
    return np.asarray(number, NO_LANE[node.kind])[None]


def bounded(
    graph: Graph, live: Sequence[int], known: Values, context: Context, outputs: Iterable[int]
) -> dict[int, Error]:
    """Return the admissible errors of `outputs`, and of nodes with exact means."""
    errors: dict[int, Error] = {}
    made: dict[tuple[object, ...], tuple[Error, list[Error]]] = {}  # as in `exact`, for values that are never rounded
    kept = set(outputs)
    last = {a: at for at in live for a in graph.nodes[at].args}
    with np.errstate(all="ignore"), precise():
        for at in live:
            node, y = graph.nodes[at], known[at]
            xs, es = [known[a] for a in node.args], [errors[a] for a in node.args]
            if node.computes:
                error = errors[at] = _fitted(_error(node, y, xs, es, context), y.v.shape)
            else:
                same = (node.operation, *map(id, (y, *xs, *es)))
                if not es or same not in made:
                    made[same] = _fitted(_error(node, y, xs, es, context), y.v.shape), es
                error = errors[at] = made[same][0]
            if error.exact_mean is not None:
                kept.add(at)
            for a in node.args:
                if last[a] == at and a not in kept:
                    del errors[a]
                    last[a] = -1
    return errors


def charges(
    graph: Graph, live: Sequence[int], known: Values, context: Context
) -> dict[int, tuple[Error, list[Charge]]]:
    """Return the admissible errors of every node, and its charges."""
    by_node: dict[int, tuple[Error, list[Charge]]] = {}
    with np.errstate(all="ignore"), precise():
        for at in live:
            node, y, noted = graph.nodes[at], known[at], list[Charge]()
            operands = [known[a] for a in node.args]
            error = _error(
                node, y, operands, [by_node[a][0] for a in node.args], context.using("charges", charges=noted)
            )
            by_node[at] = _fitted(error, y.v.shape), noted
    return by_node


def _error(node: Node, y: Known, xs: Sequence[Known], es: Sequence[Error], context: Context) -> Error:
    c = context.at(node.computes)
    if node.name == "port":
        if node.kind != "real":
            return Error()
        flags: Flags = y.fact("signs", lambda: _signs(y.v))
        if contains(c.storage, format_of(node.type)):
            return Error(0.0, flags)
        return charged(c, y, 0.0, flags, rule="convert")
    if node.name == "literal":
        return charged(c, y, 0.0, _signs(y.v), rule="convert") if node.kind == "real" else Error()
    if node.kind == "real" and [value for value in (y, *xs) if value.beyond is not None]:
        return _error_beyond(c, node, y, xs, es)
    return node.room.bound(c, y, xs, es, **node.parameters)


def _error_beyond(c: Arithmetic, node: Node, y: Known, xs: Sequence[Known], es: Sequence[Error]) -> Error:
    """Return the error of a result that is, or depends on, a number beyond float64's range.

    Its elements there are in gmpy2's numbers: the farthest result within the operands' errors, and the roundings. Every
    primitive is monotone within so small errors. An implementation may also overflow. Other elements have the usual
    error.
    """
    room, p = node.room, node.parameters
    if room.work == "moves":
        error = room.bound(c, y, xs, es, **p)
    else:
        plain = [
            e if x.beyond is None else replace(e, e=_floats(np.where(x.beyond, 0.0, e.e)))
            for x, e in zip(xs, es, strict=True)
        ]
        error = room.bound(c, y, xs, plain, **p)
        lost = [np.where(False if x.beyond is None else x.beyond, np.nan, x.f) for x in xs]
        there = np.isnan(np.asarray(room.exact(*lost, **p))) & ~np.isnan(y.f)
        there = there if y.beyond is None else there | y.beyond
        if there.any():
            usual = without_nan(np.broadcast_to(error.e, y.v.shape), 0.0)
            least = np.where(np.isfinite(usual), usual, 0.0)
            farthest = _farthest(c, node, (y, *xs), es, there)
            error.e = np.broadcast_to(np.asarray(error.e), y.v.shape).astype(object)
            error.e[there] = np.maximum(farthest, least[there])
    if y.beyond is None:
        error.e = _floats(error.e)
    else:
        error.flags = error.flags | np.where(y.beyond, np.where(y.f > 0, POSITIVE, NEGATIVE), np.uint8(0))
    return error


def _farthest(c: Arithmetic, node: Node, values: Sequence[Known], es: Sequence[Error], there: Array) -> Array:
    """Return the error that operands' errors of any size and the roundings make under the mask `there`: [n], gmpy2's.

    `values` are the result's, and each operand's.
    """
    room, p = node.room, node.parameters
    exact, *operands = [x.v for x in values]
    errors = [np.broadcast_to(np.asarray(e.e), x.shape) for x, e in zip(operands, es, strict=True)]
    if room.elementwise:  # as if each of these elements were a lane
        operands, errors = ([np.broadcast_to(a, exact.shape)[there] for a in arrays] for arrays in (operands, errors))
        exact, there = exact[there], np.ones(np.count_nonzero(there), bool)
    exact, wide, errors = widened(exact), [widened(x) for x in operands], [widened(e) for e in errors]
    far = np.zeros(exact.shape, object)
    for signs in itertools.product((-1, 1), repeat=len(wide)):
        end = room.exact(*(x + sign * e for x, e, sign in zip(wide, errors, signs, strict=True)), **p)
        far = np.maximum(far, _or_infinite(abs(end - exact)))
    size = abs(exact) + far
    if room.accumulates:
        size = room.exact(*(abs(x) + e for x, e in zip(wide, errors, strict=True)), **p)
    unit = max(c.accumulator.roundoff, c.storage.roundoff)
    most: Array = (far + room.roundings(c, [x.v.shape[1:] for x in values[1:]], **p) * unit * size) * SLACK
    return most[there]


def _floats(error: Size) -> Size:
    return error if isinstance(error, float) else np.asarray(error, np.float64)


def _or_infinite(errors: Array) -> Array:
    return np.where(np.asarray(errors != errors, bool), np.inf, errors)  # noqa: PLR0124 - NaN


def _signs(values: Array) -> Flags:
    zero = (values == 0) & np.signbit(values)
    return zero.astype(np.uint8) * NEGATIVE_ZERO if zero.any() else 0


def _fitted(error: Error, shape: tuple[int, ...]) -> Error:
    """Return an error whose arrays have the value's shape, with infinity for NaN; plain zeros for no error or flag."""
    e, flags = error.e, error.flags
    if not isinstance(e, float):
        most = 1.0 if e.dtype == object else float(e.max(initial=0.0))
        e = 0.0 if most == 0.0 else np.where(np.isnan(e), np.inf, e) if math.isnan(most) else e
        if not isinstance(e, float) and e.shape != shape:
            e = np.broadcast_to(e, shape)
    if not isinstance(flags, int):
        flags = np.broadcast_to(flags, shape) if flags.any() else 0
    if error.instead is not None:
        error.instead = np.broadcast_to(error.instead, shape)
    error.e, error.flags = e, flags
    return error

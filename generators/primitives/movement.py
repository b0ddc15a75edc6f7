"""Primitives that move elements without computing, the same for values, errors, flags and native arrays; and text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...cases.elements import Array
from .errors import FREE, Arithmetic, Error, Known, each
from .primitive import Primitive


def lanes_of(*arrays: Array) -> int:
    """Return the number of lanes of a result; zero if an operand has none."""
    counts = [len(a) for a in arrays]
    return max(counts) if all(counts) else 0


def to_lanes(array: Array, lanes: int) -> Array:
    """Return an array of one lane repeated to `lanes` lanes."""
    return array if len(array) == lanes else np.broadcast_to(array, (lanes, *array.shape[1:]))


class Movement(Primitive):
    """A primitive that moves its first `moved` operands (0: all); the others are indices."""

    work, rational, keeps_zeros = "moves", True, True
    text = "{name}({0}, …)"
    moved: ClassVar[int] = 1

    @classmethod
    def bound(cls, c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        n = cls.moved or len(xs)
        if all(e.none for e in es):
            return Error()
        places, p = [x.v for x in xs[n:]], cls.beside(p)
        error: Any = 0.0
        flags: Any = 0
        if not all(e.quiet for e in es[:n]):
            spread = [np.broadcast_to(e.e, x.v.shape) for e, x in zip(es[:n], xs, strict=False)]
            error = cls.exact(*spread, *places, **p)
        if not all(isinstance(e.flags, int) for e in es[:n]):
            spread = [
                np.broadcast_to(np.asarray(e.flags, np.uint8), x.v.shape) for e, x in zip(es[:n], xs, strict=False)
            ]
            flags = cls.exact(*spread, *places, **p).astype(np.uint8)
        if any(not e.none for e in es[n:]):
            flags = np.bitwise_or(flags, np.broadcast_to(cls.open_places(y, xs, es), y.v.shape)).astype(np.uint8)
        if any(e.ends is not None for e in es[:n]):
            every = [(x.v, x.v) if e.ends is None else e.ends for e, x in zip(es[:n], xs, strict=False)]
            low, high = (cls.exact(*side, *places, **p) for side in zip(*every, strict=True))
            return Error(error, flags, ends=(low, high))
        if any(e.instead is not None for e in es[:n]) and all(e.none for e in es[n:]):
            lossy = [
                np.full(x.v.shape, np.nan) if e.instead is None else e.instead for e, x in zip(es[:n], xs, strict=False)
            ]
            known = cls.exact(*(1.0 - np.isnan(some) for some in lossy), *places, **p) > 0
            numbers = cls.exact(*(np.where(np.isnan(some), 0.0, some) for some in lossy), *places, **p)
            return Error(error, flags, instead=np.where(known, numbers, np.nan))
        return Error(error, flags)

    @classmethod
    def open_places(cls, y: Known, xs: Sequence[Known], es: Sequence[Error]) -> Any:
        """Return FREE for elements whose index is open."""
        return np.full(y.v.shape, FREE)

    @staticmethod
    def beside(parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters for errors and flags: inserted elements have none."""
        return parameters

    @classmethod
    def native(cls, m: Any, *xs: Array, **parameters: Any) -> Array:
        return np.asarray(cls.exact(*xs, **parameters))


class Reshape(Movement):
    """The same elements in another shape; -1 is the remaining extent."""

    name, text = "reshape", "{0} in the shape {to}"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        to = tuple(int(d) for d in others)
        if -1 in to:
            known = math.prod(d for d in to if d != -1)
            to = tuple(math.prod(value.shape) // max(known, 1) if d == -1 else d for d in to)
        return value if to == value.shape else value.node("reshape", to=to)

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        return xs[0].reshape(len(xs[0]), *p["to"])


class Transpose(Movement):
    """The dimensions in another order."""

    name, text = "transpose", "{0} with its dimensions in the order {order}"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        order = tuple(int(a) % max(value.rank, 1) for a in others) or tuple(reversed(range(value.rank)))
        return value if order == tuple(range(value.rank)) else value.node("transpose", order=order)

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        return xs[0].transpose(0, *(i + 1 for i in p["order"]))


class Broadcast(Movement):
    """The operand broadcast to a shape by NumPy's rule."""

    name, text = "broadcast", "{0} broadcast to {to}"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        to = tuple(int(d) for d in others)
        return value if to == value.shape else value.to_rank(len(to)).node("broadcast", to=to)

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        return np.broadcast_to(xs[0], (len(xs[0]), *p["to"]))


class Stack(Movement):
    """Operands broadcast to one shape, along a new first dimension."""

    name, moved, text = "stack", 0, "operands along a new first dimension"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        every = others[0] if len(others) == 1 and isinstance(others[0], (list, tuple)) else others
        return value.node("stack", *every)

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        shape = np.broadcast_shapes(*{a.shape[1:] for a in xs}) if len(xs) < 32 else _shape_of_many(xs)
        lanes = lanes_of(*xs)
        stacked = np.empty((lanes, len(xs), *shape), _dtype(xs))
        for i, array in enumerate(xs):
            stacked[:, i] = array.reshape(array.shape[:1] + (1,) * (len(shape) + 1 - array.ndim) + array.shape[1:])
        return stacked


def _shape_of_many(xs: Sequence[Array]) -> tuple[int, ...]:
    full: tuple[int, ...] = ()
    for shape in dict.fromkeys(a.shape[1:] for a in xs):
        full = np.broadcast_shapes(full, shape)
    return full


def _dtype(xs: Sequence[Array]) -> np.dtype[Any]:
    return xs[0].dtype if all(a.dtype == xs[0].dtype for a in xs) else np.dtype(object)


class Slice(Movement):
    """Elements selected by whole numbers and slices."""

    name, text = "slice", "{0}[{key}]"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        used = sum(k is not None and k is not Ellipsis for k in others)
        key: list[Any] = []
        for k in others:
            key += [slice(None)] * (value.rank - used) if k is Ellipsis else [k]
        frozen = tuple((k.start, k.stop, k.step) if isinstance(k, slice) else k if k is None else int(k) for k in key)
        return value.node("slice", key=frozen)

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        return np.asarray(xs[0][(slice(None), *(slice(*k) if isinstance(k, tuple) else k for k in p["key"]))])


class Flip(Movement):
    """The elements in reverse along axes."""

    name, text = "flip", "{0} in reverse along {axes}"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        return value.node("flip", axes=value.axes(others[0]))

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        return np.flip(xs[0], tuple(a + 1 for a in p["axes"]))


class Pad(Movement):
    """The operand with a frame of one number around its last dimensions; negative extents crop."""

    name, text = "pad", "{0} with a frame of {frame}, filled with {number}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        frame = tuple((int(a), int(b)) for a, b in others[0])
        number = others[1] if len(others) > 1 else p.get("number", 0)
        return value.node("pad", frame=frame, number=number) if any(map(any, frame)) else value

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        frame = [(0, 0)] * (xs[0].ndim - len(p["frame"])) + list(p["frame"])
        cut = tuple(slice(max(-a, 0), d - max(-b, 0)) for (a, b), d in zip(frame, xs[0].shape, strict=True))
        integer = xs[0].dtype == object and xs[0].size > 0 and isinstance(xs[0].flat[0], int)
        number = np.asarray(p["number"], object) if integer else p["number"]  # NumPy's integers would overflow
        return np.pad(xs[0][cut], [(max(a, 0), max(b, 0)) for a, b in frame], constant_values=number)

    @staticmethod
    def beside(parameters: dict[str, Any]) -> dict[str, Any]:
        return parameters | {"number": 0}


class Windows(Movement):
    """Windows over the last dimensions, which become the dimensions of windows' starts, then of a window's elements."""

    name, text = "windows", "windows of {kernel} over {0}, strides {strides}, dilations {dilations}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        kernel = tuple(map(int, others[0] if others else p["kernel"]))
        given = [others[i] if len(others) > i else p.get(n) for i, n in ((1, "strides"), (2, "dilations"))]
        strides, dilations = (tuple(map(int, g)) if g is not None else (1,) * len(kernel) for g in given)
        return value.node("windows", kernel=kernel, strides=strides, dilations=dilations)

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        a, k = xs[0], len(p["kernel"])
        extents = [(n - 1) * d + 1 for n, d in zip(p["kernel"], p["dilations"], strict=True)]
        seen = np.lib.stride_tricks.sliding_window_view(a, extents, axis=tuple(range(a.ndim - k, a.ndim)))
        steps = [slice(None, None, step) for step in (*p["strides"], *p["dilations"])]
        return np.asarray(seen[(..., *steps)])  # type: ignore[arg-type]  # slices, which NumPy's types leave out


class Concat(Movement):
    """Operands one after the other along an axis."""

    name, moved, text = "concat", 0, "operands one after the other along {axis}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        every, axis = others[0], others[1] if len(others) > 1 else p["axis"]
        return value.node("concat", *every, axis=int(axis) % value.rank) if every else value

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        lanes, dtype = lanes_of(*xs), _dtype(xs)
        return np.concatenate([to_lanes(a, lanes).astype(dtype, copy=False) for a in xs], p["axis"] + 1)


class Take(Movement):
    """Elements along an axis, by indices that all lanes share."""

    name, text = "take", "{0} at {index} along {axis}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        axis = int(others[1] if len(others) > 1 else p["axis"]) % value.rank
        return value.node("take", index=np.asarray(others[0], np.int64), axis=axis)

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        return np.asarray(np.take(xs[0], p["index"], p["axis"] + 1))


class Gather(Movement):
    """Elements along an axis, by each lane's own indices.

    An index out of range gives some element: the reference decides whether it is invalid or free.
    """

    name, text = "gather", "{0} at {1} along {axis}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        axis = int(others[1] if len(others) > 1 else p["axis"]) % value.rank
        return value.node("gather", others[0], axis=axis)

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        a, index, axis = *xs, p["axis"]
        lanes, n = lanes_of(a, index), a.shape[axis + 1]
        if not lanes or not n:
            return np.zeros((lanes, *a.shape[1 : axis + 1], *index.shape[1:], *a.shape[axis + 2 :]), a.dtype)
        flat = to_lanes(index, lanes).reshape(lanes, -1)
        taken = np.moveaxis(to_lanes(a, lanes), axis + 1, 1)[
            np.arange(lanes)[:, None], flat.clip(0, n - 1).astype(np.int64)
        ]
        elements = taken.reshape(lanes, *index.shape[1:], *taken.shape[2:])
        return np.moveaxis(elements, range(1, index.ndim), range(axis + 1, axis + index.ndim))


class Along(Movement):
    """The elements of each line along an axis at its own indices; these have the result's shape."""

    name, text = "along", "{0} along {axis}, each line at its own {1}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        axis = int(others[1] if len(others) > 1 else p["axis"]) % value.rank
        return value.node("along", others[0], axis=axis)

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        a, index, axis = *xs, p["axis"] + 1
        lanes = lanes_of(a, index)
        cut = tuple(slice(None) if i in (0, axis) else slice(0, d) for i, d in enumerate(index.shape))
        a, index = to_lanes(a[cut], lanes), to_lanes(index, lanes)
        if not a.shape[axis]:
            return np.zeros(index.shape, a.dtype)
        return np.take_along_axis(a, (index % a.shape[axis]).astype(np.int64), axis)

    @classmethod
    def open_places(cls, y: Known, xs: Sequence[Known], es: Sequence[Error]) -> Any:
        error = es[1]
        vague = np.greater(error.e, 0) | (np.bitwise_and(error.flags, FREE) > 0)
        return np.broadcast_to(vague, y.v.shape).astype(np.uint8) * FREE


class Scatter(Movement):
    """The first operand with elements of the third at the flat indices in the second, for each lane its own.

    The caller flattens `data`; indices have the updates' shape, one dimension. The last of equal indices counts; the
    reference handles other meanings.
    """

    name, moved, text = "scatter", 0, "{0} with {2} at {1}"

    @classmethod
    def record(cls, value: Any, *others: Any, **_: Any) -> Any:
        return value.node("scatter", others[0], others[1])

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        a, index, updates = xs
        lanes = lanes_of(*xs)
        result = np.array(to_lanes(a, lanes), copy=True)
        if updates.dtype != result.dtype and object in (updates.dtype, result.dtype):
            result = result.astype(object)
        if result.size and index.size:
            lane = np.arange(lanes)[:, None]
            result[lane, (to_lanes(index, lanes) % a.shape[1]).astype(np.int64)] = to_lanes(updates, lanes)
        return result

    @classmethod
    def bound(cls, c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **p: Any) -> Error:
        (a, index, updates), (ea, ei, eu) = xs, es
        if all(e.none for e in es):
            return Error()
        error, flags = (
            cls.exact(np.broadcast_to(x, a.v.shape), index.v, np.broadcast_to(z, updates.v.shape))
            for x, z in ((np.asarray(ea.e, float), np.asarray(eu.e, float)), (ea.flags, eu.flags))
        )
        flags = flags.astype(np.uint8)
        return Error(error, flags if ei.none else flags | FREE)


class Join(Primitive):
    """Two texts, one after the other."""

    name, work, text = "join", "moves", "{0} and then {1}"

    @staticmethod
    def exact(*xs: Array, **_: Any) -> Array:
        return each(lambda a, b: str(a) + str(b), *xs)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return Error()


class Mapped(Primitive):
    """A function applied to each text: `value.mapped(function)`; the function must have a unique name."""

    name, work, text = "mapped", "moves", "{function.__name__} of {0}"

    @classmethod
    def record(cls, value: Any, *others: Any, **p: Any) -> Any:
        return value.node("mapped", function=others[0], to=str(p.get("to", value.type)))

    @classmethod
    def type(cls, types: Sequence[str], **p: Any) -> str:
        return str(p["to"])

    @staticmethod
    def exact(*xs: Array, **p: Any) -> Array:
        results = each(p["function"], xs[0])
        kinds = {"bool": bool, "string": object}
        return results.astype(kinds.get(p["to"], "int64"))

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **_: Any) -> Error:
        return Error()

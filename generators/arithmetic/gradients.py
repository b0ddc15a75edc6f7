"""Gradients of recorded formulas: walks the tape back from a result, and records the derivative as more primitives.

So a backward operation has exact values, bounds and options like any other formula. What a derivative leaves open are
silences: which branch counts where two meet (`tie`), and what zero times infinity or NaN is (`zero-times-infinite`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ...cases.errors import OpconformError
from ..primitives import ROOMS
from ..primitives.movement import Along, Gather, Movement, Scatter
from .graph import Node, Value
from .tape import Call

_TWO_OVER_ROOT_PI: Final = 1.1283791670955126, 1.533545961316588e-17
"""2/√π in 106 bits, as the sum of two numbers."""


def _bell(x: Value) -> Value:
    """Return the derivative of erf."""
    high, low = (x.of(number) for number in _TWO_OVER_ROOT_PI)
    return (-(x * x)).exp() * (high + low)


_DERIVATIVES: Final[Mapping[str, Callable[..., tuple[Value, ...]]]] = {
    "mul": lambda _, a, b: (b, a),
    "div": lambda y, a, b: (b.reciprocal(), -(y / b).either(a / (b * b))),
    "pow": lambda y, a, b: (b * a ** (b - 1.0), y * a.log()),
    "reciprocal": lambda y, _: (-(y * y),),
    "exp": lambda y, _: (y,),
    "expm1": lambda _, x: (x.exp(),),
    "log": lambda _, x: (x.reciprocal(),),
    "log1p": lambda _, x: ((x + 1.0).reciprocal(),),
    "sqrt": lambda y, _: ((2.0 * y).reciprocal(),),
    "tanh": lambda y, _: ((1.0 - y * y).either((1.0 - y) * (1.0 + y)),),
    "erf": lambda _, x: (_bell(x),),
    "erfc": lambda _, x: (-_bell(x),),
    "abs": lambda _, x: (x.sign(),),
    "sign": lambda y, _: (y.of(0.0).broadcast(*y.shape),),
}
"""The derivatives of functions of single elements for each operand, from the result and the operands."""


def gradients(
    c: Call, y: Value, seed: Value, xs: Sequence[Value], *, smooth: bool = False, pointwise: bool = False
) -> tuple[Value, ...]:
    """Return the gradients of the sum of y times `seed` with respect to `xs`, nodes from which y was computed.

    y, seed: one shape and type; results: of the shapes and types of xs; their zeros have either sign. Where y has two
    forms, by `either`, the derivatives of both are admitted. Opens the call's silences `tie` (options `written` and
    `other`), unless the branches of the formula meet smoothly, and `zero-times-infinite` (`not-a-number`, `zero`).
    `pointwise`: y depends on the same element of xs alone, so that `seed` is multiplied by the complete derivative.
    Raises OpconformError for a primitive without a derivative.
    """
    start = y.graph.literal(1.0, y.type).broadcast(*y.shape) if pointwise else seed

    def walked(**ways: Any) -> tuple[_Walk, list[Value]]:
        walk = _Walk(y, start, xs, **ways)
        results = walk.gradients()
        return walk, [walk.times(_Part(seed), part).value for part in results] if pointwise else results

    walk, results = walked()
    other = bool(walk.ties) and not smooth and c.open("tie", _any(walk.ties)) == "other"
    zero = bool(walk.lost) and c.open("zero-times-infinite", _any(walk.lost)) == "zero"
    results = walked(other=other, zero=zero)[1] if other or zero else results
    second = walked(other=other, zero=zero, form=1)[1]
    return tuple((a if a.at == b.at else a.either(b)).any_zero() for a, b in zip(results, second, strict=True))


def times(c: Call, seed: Value, derivative: Value) -> Value:
    """Return a gradient times a derivative that a reference wrote itself, with the silence `zero-times-infinite`."""
    product, lost = _product(seed, derivative)
    return (
        _zero(product).where(lost, product) if c.open("zero-times-infinite", lost) == "zero" else product
    ).any_zero()


def _product(g: Value, d: Value) -> tuple[Value, Value]:
    product = g * d
    return product, product.isnan() & (g.equal(0.0) | d.equal(0.0))


def _zero(of: Value) -> Value:
    return of.graph.literal(0.0, of.type)


def _any(masks: Sequence[Value]) -> Value:
    """Return all elements of masks of any shapes, one after the other."""
    first, *rest = (mask.reshape(mask.size) for mask in masks)
    return first.concat(rest, 0) if rest else first


@dataclass(frozen=True)
class _Part:
    """A contribution to the gradient of a node. It is zero outside `mask`, whose shape it has; None: it has no zeros.

    What the branch that was not taken contributes is not zero times its derivative, which may be infinite, but nothing.
    """

    value: Value
    mask: Value | None = None


@dataclass
class _Walk:
    """One way back. `form`: which operand of `either` is derived; `lost`, `ties`: masks of what silences are about."""

    y: Value
    seed: Value
    xs: Sequence[Value]
    other: bool = False
    zero: bool = False
    form: int = 0
    lost: list[Value] = field(default_factory=list)
    ties: list[Value] = field(default_factory=list)

    def gradients(self) -> list[Value]:
        graph, ends = self.y.graph, {x.at for x in self.xs}
        live, needs = graph.live([self.y.at]), set[int]()
        for at in live:
            if at in ends or any(a in needs for a in graph.nodes[at].args):
                needs.add(at)
        parts: dict[int, list[_Part]] = {self.y.at: [_Part(self.seed)]}
        for at in reversed(live):
            if at not in parts or at not in needs or at in ends:
                continue
            total, node = self._total(parts.pop(at)), graph.nodes[at]
            operands = [Value(graph, a) for a in node.args]
            wanted = [a in needs for a in node.args]
            parts_of = self._rule(node, Value(graph, at), total, operands, wanted)
            for x, want, part in zip(operands, wanted, parts_of, strict=True):
                if want and part is not None:
                    parts.setdefault(x.at, []).append(self._summed_to(part, x.shape))
        return [
            self._applied(self._total(parts[x.at])) if x.at in parts else _zero(x).broadcast(*x.shape) for x in self.xs
        ]

    def _total(self, parts: Sequence[_Part]) -> _Part:
        """Return the sum of contributions; if they are of opposite branches, the one or the other."""
        if len(parts) == 1:
            return parts[0]
        first, second = parts[0], parts[1]
        if len(parts) == 2 and first.mask and second.mask and first.mask.at == (~second.mask).at:
            first, second = second, first
        if len(parts) == 2 and first.mask and second.mask and second.mask.at == (~first.mask).at:
            return _Part(first.value.where(first.mask, second.value))
        applied = [self._applied(part) for part in parts]
        return _Part(applied[0].stack(*applied[1:]).sum((0,), keep=False))

    def _applied(self, part: _Part) -> Value:
        """Return a contribution with its zeros, or with zero times it outside the mask."""
        if part.mask is None:
            return part.value
        product, lost = _product(part.value, _zero(part.value))
        self.lost.append(lost & ~part.mask)
        return part.value.where(part.mask, _zero(product) if self.zero else product)

    def _summed_to(self, part: _Part, shape: tuple[int, ...]) -> _Part:
        """Return the sum of the contributions of each element that was broadcast."""
        if part.value.shape == shape:
            return part
        value = self._applied(part)
        lead = value.rank - len(shape)
        axes = [*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1 != value.shape[lead + i])]
        return _Part((value.sum(axes) if axes else value).reshape(*shape))

    def times(self, part: _Part, derivative: Value) -> _Part:
        """Return a contribution times a derivative of its shape."""
        product, lost = _product(part.value, derivative)
        self.lost.append(lost if part.mask is None else lost & part.mask)
        value = _zero(product).where(lost, product) if self.zero else product
        return _Part(value, part.mask)

    def _rule(
        self, node: Node, y: Value, part: _Part, xs: Sequence[Value], wanted: Sequence[bool]
    ) -> Sequence[_Part | None]:
        """Return the contributions to a node's operands, from the contribution to it."""
        if node.name in _DERIVATIVES:
            slopes = _DERIVATIVES[node.name](y, *xs)
            return [self.times(part, slope) if want else None for slope, want in zip(slopes, wanted, strict=True)]
        if node.name in ("add", "sub", "neg"):
            minus = _Part(-part.value, part.mask)
            return {"add": (part, part), "sub": (part, minus), "neg": (minus,)}[node.name]
        if node.name == "either":
            return (part, None) if self.form == 0 else (None, part)
        if node.name in ("free", "any_zero", "within"):
            return (part, *(None,) * (len(xs) - 1))
        if node.name in ("where", "maximum", "minimum"):
            return self._branches(node, xs, self._applied(part))
        return list(map(_Part, self._mixing(node, y, self._applied(part), xs)))

    def _branches(self, node: Node, xs: Sequence[Value], g: Value) -> Sequence[_Part | None]:
        """Return the contributions to two operands of which each result is one or the other."""
        a, b = xs[:2]
        if node.name == "where":
            mask, compared = xs[2], _compared(xs[2])
        else:
            mask, compared = (a >= b if node.name == "maximum" else a <= b), (a, b)
        if compared is not None:
            tie = compared[0].equal(compared[1])
            self.ties.append(tie)
            mask = mask ^ tie if self.other else mask
        mask = mask.broadcast(*g.shape)
        first, second = _Part(g, mask), _Part(g, ~mask)
        return first, second, *(None,) * (len(xs) - 2)

    def _mixing(self, node: Node, y: Value, g: Value, xs: Sequence[Value]) -> Sequence[Value]:
        """Return the gradients of a primitive that mixes elements."""
        x, axes = xs[0], node.parameters.get("axes", ())
        if issubclass(node.room, Movement) and not issubclass(node.room, (Along, Gather, Scatter)):
            return _moved(node, g, xs)
        match node.name:
            case "sum" | "mean":
                spread = g.broadcast(*x.shape)
                return (spread if node.name == "sum" else spread / float(math.prod(x.shape[a] for a in axes)),)
            case "max" | "min" if len(axes) == 1:
                return (self._largest(x, y, g, axes[0]),)
            case "matmul":
                return g @ xs[1].mT, x.mT @ g
            case "cast" if x.kind == "real":
                return (g.cast(x.type),)
        raise OpconformError(f"no derivative of {node.name} is known")

    def _largest(self, x: Value, y: Value, g: Value, axis: int) -> Value:
        """Return the gradient of the largest or smallest element: at the first such element, or at the last."""
        hit = x.equal(y)
        self.ties.append(hit.cast("int64").sum((axis,)) > 1)
        index = hit.cast("uint8").argmax(axis, late=self.other)
        own = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.rank)])
        return g.broadcast(*x.shape).where(index.equal(own), _zero(g))


def _compared(mask: Value) -> tuple[Value, Value] | None:
    """Return the two numbers whose comparison is a mask, None if it is something else."""
    node = mask.graph.nodes[mask.at]
    if node.name not in ("less", "less_equal"):
        return None
    a, b = (Value(mask.graph, at) for at in node.args)
    return a, b


def _moved(node: Node, g: Value, xs: Sequence[Value]) -> Sequence[Value]:
    """Return the gradients of operands whose elements a primitive moves: one rule for all.

    The primitive, applied to the indices of the elements, says where each result came from.
    """
    starts = np.cumsum([0, *(x.size for x in xs)])
    indices = [np.arange(a, a + x.size).reshape(1, *x.shape) for a, x in zip(starts[:-1], xs, strict=True)]
    inserted = {"number": -1} if "number" in node.parameters else {}
    origin = np.asarray(ROOMS[node.name].exact(*indices, **dict(node.parameters) | inserted)).reshape(-1)
    line = g.reshape(g.size).concat([_zero(g).broadcast(1)], 0)
    gradients: list[Value] = []
    for start, x in zip(starts[:-1], xs, strict=True):
        copies = np.flatnonzero((origin >= start) & (origin < start + x.size))
        owners = origin[copies] - start
        counts = np.bincount(owners, minlength=x.size)
        table = np.full((x.size, max(1, counts.max(initial=0))), g.size)  # the last element of the line is zero
        order = np.argsort(owners, kind="stable")
        table[owners[order], np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)] = copies[order]
        parts = line.take(table, 0)
        gradients.append(parts.sum((1,)).reshape(*x.shape))
    return gradients

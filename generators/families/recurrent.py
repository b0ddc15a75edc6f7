"""Operators that walk along a sequence with a state: LSTM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from . import Shaping


def lstm(
    c: Call,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lens: Value | None = None,
    h0: Value | None = None,
    c0: Value | None = None,
    p: Value | None = None,
) -> tuple[Value, Value, Value]:
    """One layer of long short-term memory, forward, backward or both.

    x: [L, N, I]; w: [D, 4 H, I], r: [D, 4 H, H], b: [D, 8 H], gates in the order i o f c; lens: int32 [N]; h0, c0:
    [D, N, H]; p: [D, 3 H], in the order i o f; results: Y [L, D, N, H], Y_h and Y_c [D, N, H]. With layout=1 the batch
    comes first in x, h0, c0 and the results. Source: ONNX LSTM-1 to 22.
    """
    batch_first = c.attr("layout", 0) == 1
    if batch_first:
        x = x.transpose(1, 0, 2)
        h0, c0 = (None if s is None else s.transpose(1, 0, 2) for s in (h0, c0))
    steps, batch = x.shape[:2]
    directions, hidden = r.shape[0], r.shape[2]
    way = c.attr("direction")
    c.require("direction", way in ("forward", "reverse", "bidirectional"))
    c.require("directions", directions == (2 if way == "bidirectional" else 1))
    if c.attr("hidden_size") is None:
        c.open("hidden-absent")
    c.require("hidden-size", c.attr("hidden_size") in (None, hidden))
    shapes = ((w, (4 * hidden, x.shape[2])), (r, (4 * hidden, hidden)), (b, (8 * hidden,)), (p, (3 * hidden,)))
    c.require("shapes", all(v is None or v.shape == (directions, *shape) for v, shape in shapes))
    c.require("states", all(v is None or v.shape == (directions, batch, hidden) for v in (h0, c0)))
    if lens is not None:
        c.require("lens-range", (lens >= 0) & (lens <= steps))
    functions = activations(c, directions, ("Sigmoid", "Tanh", "Tanh"))
    if c.attr("output_sequence", 1) == 0 and c.wants("Y"):
        c.open("output-sequence")
    zero = c.constant(0.0, x.type).broadcast(batch, hidden)
    found = []
    for d in range(directions):
        parts = _Direction(c, w[d], r[d], None if b is None else b[d], None if p is None else p[d], functions[d])
        start = [zero if s is None else s[d] for s in (h0, c0)]
        found.append(_walk(c, parts, x, lens, start[0], start[1], backward=way == "reverse" or d == 1))
    ys, hs, cs = ([one[i] for one in found] for i in range(3))
    y = ys[0].concat(ys[1:], 1)
    h, s = hs[0].concat(hs[1:], 0), cs[0].concat(cs[1:], 0)
    if batch_first:
        return y.transpose(2, 0, 1, 3), h.transpose(1, 0, 2), s.transpose(1, 0, 2)
    return y, h, s


@dataclass(frozen=True)
class _Direction:
    """The weights and functions of one direction. w: [4 H, I], r: [4 H, H], b: [8 H], p: [3 H]."""

    c: Call
    w: Value
    r: Value
    b: Value | None
    p: Value | None
    functions: tuple[Callable[[Value], Value], ...]

    def step(self, x: Value, h: Value, s: Value) -> tuple[Value, Value]:
        """From x: [N, I] and the states before, [N, H], to those after."""
        f, g, out = self.functions
        size = h.shape[1]

        def part(v: Value, n: int) -> Value:
            return v[..., n * size : (n + 1) * size]

        r = self.r.transpose(1, 0)
        if "recurrence-transposed" not in self.c.clauses and self.c.open("recurrence-early") == "as-written":
            r = self.r.reshape(4, size, size).transpose(1, 0, 2).reshape(size, 4 * size)
        given, weights = [h], [r]
        if self.b is not None:  # two more addends of the sum
            given.append(self.c.constant(1.0, x.type).broadcast(x.shape[0], 2))
            weights.append(self.b.reshape(2, 4 * size))
        z = x.concat(given, 1).matmul(self.w.transpose(1, 0).concat(weights, 0))
        i, o, forget, cell = (part(z, n) for n in range(4))
        if self.p is not None:
            i, forget = i + part(self.p, 0) * s, forget + part(self.p, 2) * s
        i = f(_clipped(self.c, i))
        forget = 1.0 - i if self.c.attr("input_forget") else f(_clipped(self.c, forget))
        s = forget * s + i * g(_clipped(self.c, cell))
        if self.p is not None:
            o = o + part(self.p, 1) * s
        return f(_clipped(self.c, o)) * out(self._clipped_cell(s)), s

    def _clipped_cell(self, s: Value) -> Value:
        limit = self.c.attr("clip")
        if limit is None or self.c.open("clip-cell") == "not-before-h":
            return s
        return _clipped(self.c, s)


def _walk(
    c: Call, parts: _Direction, x: Value, lens: Value | None, h: Value, s: Value, *, backward: bool
) -> tuple[Value, Value, Value]:
    """Y of one direction, [L, 1, N, H], and its last states, [1, N, H]; a sequence is walked over its own length."""
    steps, batch = x.shape[:2]
    size = h.shape[1]
    outs: list[Value] = []
    for t in range(steps - 1, -1, -1) if backward else range(steps):
        h_next, s_next = parts.step(x[t], h, s)
        y = h_next
        if lens is not None:  # backward, a short sequence's last step comes after steps that are not its own
            within = (lens > t).reshape(batch, 1)
            h_next, s_next = h_next.where(within, h), s_next.where(within, s)
            y = y.where(within, 0.0).undefined(~within, "beyond-length")
        h, s = h_next, s_next
        outs.append(y.reshape(1, 1, batch, size))
    outs = outs[::-1] if backward else outs
    if not outs:
        empty = c.constant(0.0, x.type).broadcast(0, 1, batch, size)
        return empty, h.reshape(1, batch, size), s.reshape(1, batch, size)
    return outs[0].concat(outs[1:], 0), h.reshape(1, batch, size), s.reshape(1, batch, size)


def _clipped(c: Call, x: Value) -> Value:
    """What goes into a function, in [-clip, clip] where that is given."""
    limit = None if c.attr("clip") is None else c.float32("clip")
    return x if limit is None else x.clip(-limit, limit)


def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x)), in [0, 1]; many have it as (1 + tanh(x / 2)) / 2."""
    return (1.0 / (1.0 + (-x).exp())).either(0.5 + 0.5 * (0.5 * x).tanh()).clip(0.0, 1.0)


def activations(c: Call, directions: int, usual: tuple[str, ...]) -> list[tuple[Callable[[Value], Value], ...]]:
    """The functions of each direction, as `activations` names them; `usual` where it is missing.

    `activation_alpha` and `activation_beta` are used up in the order of the functions that have such a number.
    Source: ONNX RNN, GRU and LSTM.
    """
    names = c.attr("activations") or usual * directions
    known = _known_functions()
    c.require("activations-known", all(name in known for name in names) and len(names) == len(usual) * directions)
    numbers = [iter(float(np.float32(v)) for v in c.attr(f"activation_{letter}") or ()) for letter in ("alpha", "beta")]

    def function(name: str) -> Callable[[Value], Value]:
        usual_numbers, formula = known[name]
        own = [
            usual if usual is None else next(given, usual) for usual, given in zip(usual_numbers, numbers, strict=True)
        ]
        return lambda x: formula(x, *(n for n in own if n is not None))

    functions = [function(name) for name in names]
    return [tuple(functions[n : n + len(usual)]) for n in range(0, len(functions), len(usual))]


def _known_functions() -> dict[str, tuple[tuple[float | None, float | None], Callable[..., Value]]]:
    """Functions by name: what alpha and beta are where they are not given, None where there is none."""
    return {
        "Sigmoid": ((None, None), sigmoid),
        "Tanh": ((None, None), lambda x: x.tanh()),
        "Relu": ((None, None), lambda x: x.where(x > 0, 0.0)),
        "Affine": ((1.0, 0.0), lambda x, alpha, beta: x * alpha + beta),
        "LeakyRelu": ((float(np.float32(0.01)), None), lambda x, alpha: x.where(x >= 0, x * alpha)),
        "ThresholdedRelu": ((1.0, None), lambda x, alpha: x.where(x >= alpha, 0.0)),
        "ScaledTanh": ((1.0, 1.0), lambda x, alpha, beta: (x * beta).tanh() * alpha),
        "HardSigmoid": ((float(np.float32(0.2)), 0.5), lambda x, alpha, beta: (x * alpha + beta).clip(0.0, 1.0)),
        "Elu": ((1.0, None), lambda x, alpha: x.where(x >= 0, (x.exp() - 1.0) * alpha)),
        "Softsign": ((None, None), lambda x: x / (x.abs() + 1.0)),
        "Softplus": ((None, None), lambda x: (x.exp() + 1.0).log()),
    }


def full(drawing: Drawing) -> Array:
    """Lengths of sequences that fill all steps."""
    return np.full(drawing.size, _steps(drawing))


def mixed(drawing: Drawing) -> Array:
    """Lengths from 1 on, one of them that of all steps."""
    steps = _steps(drawing)
    return np.where(np.arange(drawing.size) == drawing.size // 2, steps, 1 + drawing.draw.below(steps, drawing.size))


def with_zero(drawing: Drawing) -> Array:
    """Lengths of which the first is 0."""
    return np.where(np.arange(drawing.size) == 0, 0, mixed(drawing))


def too_long(drawing: Drawing) -> Array:
    """Lengths of which the first is more than there are steps."""
    return np.where(np.arange(drawing.size) == 0, _steps(drawing) + 1, mixed(drawing))


def _steps(drawing: Drawing) -> int:
    return max(1, int(drawing.values["X"].shape[2 if drawing.attributes.get("layout") == 1 else 1]))


def sequences(shaping: Shaping) -> tuple[int, ...]:
    """[L, N, I], or [N, L, I] with layout=1."""
    steps, batch, size = (shaping.extent(name) for name in ("L", "N", "I"))
    return (batch, steps, size) if shaping.attr("layout") == 1 else (steps, batch, size)


def states(shaping: Shaping) -> tuple[int, ...]:
    """[D, N, H], or [N, D, H] with layout=1."""
    directions, batch, hidden = (shaping.extent(name) for name in ("D", "N", "H"))
    return (batch, directions, hidden) if shaping.attr("layout") == 1 else (directions, batch, hidden)

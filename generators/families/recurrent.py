"""Operators that process a sequence with a state: RNN, GRU and LSTM."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw, Drawing
from . import Shaping

States: TypeAlias = tuple[Value, ...]
"""The states between steps, each [N, H]; the first is also the output."""


def rnn(
    c: Call,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lens: Value | None = None,
    h0: Value | None = None,
) -> tuple[Value, ...]:
    """One layer of the simple recurrence f(W x + R h + b), forward, backward or both.

    x: [L, N, I]; w: [D, H, I], r: [D, H, H], b: [D, 2 H]; lens: int32 [N]; h0: [D, N, H]; results: Y [L, D, N, H] and
    Y_h [D, N, H]. With layout=1 the batch comes first in x, h0 and the results. Source: ONNX RNN-1 to 22.
    """
    return _layer(c, x, w, r, b, lens, (h0,), None, 1, ("Tanh",), _rnn_step)


def gru(
    c: Call,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None = None,
    lens: Value | None = None,
    h0: Value | None = None,
) -> tuple[Value, ...]:
    """One layer of gated recurrent units, forward, backward or both.

    x: [L, N, I]; w: [D, 3 H, I], r: [D, 3 H, H], b: [D, 6 H], gates in the order z r h; lens: int32 [N]; h0: [D, N, H];
    results: Y [L, D, N, H] and Y_h [D, N, H]. With layout=1 the batch comes first in x, h0 and the results.
    Source: ONNX GRU-1 to 22.
    """
    return _layer(c, x, w, r, b, lens, (h0,), None, 3, ("Sigmoid", "Tanh"), _gru_step)


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
) -> tuple[Value, ...]:
    """One layer of long short-term memory, forward, backward or both.

    x: [L, N, I]; w: [D, 4 H, I], r: [D, 4 H, H], b: [D, 8 H], gates in the order i o f c; lens: int32 [N]; h0, c0:
    [D, N, H]; p: [D, 3 H], in the order i o f; results: Y [L, D, N, H], Y_h and Y_c [D, N, H]. With layout=1 the batch
    comes first in x, h0, c0 and the results. Source: ONNX LSTM-1 to 22.
    """
    return _layer(c, x, w, r, b, lens, (h0, c0), p, 4, ("Sigmoid", "Tanh", "Tanh"), _lstm_step)


@dataclass(frozen=True)
class _Direction:
    """The weights of one direction with G gates, its functions, and the number of its steps.

    w: [G H, I], r: [G H, H], b: [2 G H], peepholes p: [3 H].
    """

    c: Call
    w: Value
    r: Value
    b: Value | None
    p: Value | None
    functions: tuple[Callable[[Value], Value], ...]
    steps: int

    @property
    def weights(self) -> Value:
        """The weights of inputs, state and biases in the sum: [I + H + 2, G H], or [I + H, G H] without b."""
        rows, size = self.r.shape
        r = self.r.transpose(1, 0)
        if "recurrence-transposed" not in self.c.clauses and self.c.open("recurrence-early") == "as-written":
            r = self.r.reshape(rows // size, size, size).transpose(1, 0, 2).reshape(size, rows)
        biases = [] if self.b is None else [self.b.reshape(2, rows)]
        return self.w.transpose(1, 0).concat([r, *biases], 0)

    def joined(self, x: Value, h: Value) -> Value:
        """The factors of the weights: x: [N, I], h: [N, H], and a one for each bias."""
        ones = [] if self.b is None else [self.c.constant(1.0, x.type).broadcast(x.shape[0], 2)]
        return x.concat([h, *ones], 1)


_SHARES = {"Sigmoid", "HardSigmoid"}
"""The functions whose results lie in [0, 1]."""
_BOUNDED = {*_SHARES, "Tanh", "Softsign"}
"""The functions whose results lie in [-1, 1]."""
_STEP_ROUNDINGS = 8  # in unit roundoffs of 1: the sum of two products, or a product of a difference of at most 2

Step: TypeAlias = Callable[[_Direction, Value, States], States]
"""From x: [N, I] and the previous states to the next ones."""


def _rnn_step(part: _Direction, x: Value, states: States) -> States:
    (f,), (h,) = part.functions, states
    return (f(_clipped(part.c, part.joined(x, h).matmul(part.weights))),)


def _gru_step(part: _Direction, x: Value, states: States) -> States:
    (h,) = states
    c, (f, g) = part.c, part.functions
    (batch, inputs), size = x.shape, h.shape[1]
    weights = part.weights
    gates = f(_clipped(c, part.joined(x, h).matmul(weights[:, : 2 * size])))
    update, reset = gates[:, :size], gates[:, size:]
    own = weights[:, 2 * size :]
    if c.attr("linear_before_reset", 0) == 0:
        hidden = part.joined(x, reset * h).matmul(own)
    else:  # the gated part is one more addend of the sum for each output
        unit = c.constant(1.0, x.type)
        biased = part.b is not None
        state = h.concat([unit.broadcast(batch, 1)], 1) if biased else h
        recurrent = own[inputs : inputs + size].concat([own[inputs + size + 1 :]], 0) if biased else own[inputs:]
        linear = state.matmul(recurrent).reshape(batch, size, 1)
        factors = [x.reshape(batch, 1, inputs).broadcast(batch, size, inputs), reset.reshape(batch, size, 1)]
        terms = [own[:inputs].transpose(1, 0).reshape(1, size, inputs).broadcast(batch, size, inputs), linear]
        if biased:
            factors.append(unit.broadcast(batch, size, 1))
            terms.append(own[inputs + size].reshape(1, size, 1).broadcast(batch, size, 1))
        width = inputs + len(factors) - 1
        row = factors[0].concat(factors[1:], 2).reshape(batch, size, 1, width)
        hidden = row.matmul(terms[0].concat(terms[1:], 2).reshape(batch, size, width, 1)).reshape(batch, size)
    hidden = g(_clipped(c, hidden))
    y = ((1.0 - update) * hidden + update * h).either(hidden + update * (h - hidden))
    names = c.attr("activations") or ("Sigmoid", "Tanh")
    if not c.given("initial_h") and {*names[::2]} <= _SHARES and {*names[1::2]} <= _BOUNDED:
        # between the hidden gate and the last state, which begins at 0; each step may round away from them
        most = 1.0 + _STEP_ROUNDINGS * part.steps * element_type(x.type).float_format.roundoff
        y = y.within(-most, most)
    return (y,)


def _lstm_step(part: _Direction, x: Value, states: States) -> States:
    h, s = states
    c, (f, g, out) = part.c, part.functions
    size = h.shape[1]

    def gates(v: Value, start: int, stop: int) -> Value:
        return v[..., start * size : stop * size]

    z = part.joined(x, h).matmul(part.weights)
    coupled, o = c.attr("input_forget"), gates(z, 1, 2)
    if part.p is None:  # one function of several gates makes a formula of fewer nodes
        shut = f(_clipped(c, gates(z, 0, 2 if coupled else 3)))
        i, o = gates(shut, 0, 1), gates(shut, 1, 2)
        forget = 1.0 - i if coupled else gates(shut, 2, 3)
    else:
        i = gates(z, 0, 1) + gates(part.p, 0, 1) * s
        if coupled:
            i = f(_clipped(c, i))
            forget = 1.0 - i
        else:
            shut = f(_clipped(c, i.concat([gates(z, 2, 3) + gates(part.p, 2, 3) * s], 1)))
            i, forget = gates(shut, 0, 1), gates(shut, 1, 2)
    s = forget * s + i * g(_clipped(c, gates(z, 3, 4)))
    if part.p is not None:
        o = f(_clipped(c, o + gates(part.p, 1, 2) * s))
    clips_cell = c.attr("clip") is not None and c.open("clip-cell") == "before-h"
    return o * out(_clipped(c, s) if clips_cell else s), s


def _layer(
    c: Call,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    lens: Value | None,
    starts: tuple[Value | None, ...],
    p: Value | None,
    gates: int,
    usual: tuple[str, ...],
    step: Step,
) -> tuple[Value, ...]:
    """Y and the last states of a layer with such steps; `usual` are its default functions."""
    batch_first = c.attr("layout", 0) == 1
    c.require("shapes", x.rank == 3)
    if batch_first:
        x = x.transpose(1, 0, 2)
        starts = tuple(None if s is None else s.transpose(1, 0, 2) for s in starts)
    steps, batch = x.shape[:2]
    directions, hidden = r.shape[0], r.shape[2]
    way = c.attr("direction")
    if way == "foward" and c.silent("direction-misspelt"):
        c.open("direction-misspelt")
        way = "forward"
    c.require("direction", way in ("forward", "reverse", "bidirectional"))
    c.require("directions", directions == (2 if way == "bidirectional" else 1))
    if c.attr("hidden_size") is None:
        c.open("hidden-absent")
    c.require("hidden-size", c.attr("hidden_size") in (None, hidden))
    rows = gates * hidden
    shapes = ((w, (rows, x.shape[2])), (r, (rows, hidden)), (b, (2 * rows,)))
    c.require("shapes", all(v is None or v.shape == (directions, *shape) for v, shape in shapes))
    c.require("shapes", p is None or p.shape == (directions, 3 * hidden))
    c.require("shapes", lens is None or lens.shape == (batch,))
    c.require("states", all(v is None or v.shape == (directions, batch, hidden) for v in starts))
    if lens is not None:
        c.require("lens-range", (lens >= 0) & (lens <= steps))
    functions = activations(c, directions, usual)
    if c.silent("output-sequence") and bool(c.attr("output_sequence")) != c.wants("Y"):
        c.open("output-sequence")
    zero = c.constant(0.0, x.type).broadcast(batch, hidden)
    walks = []
    for d in range(directions):
        biases, peepholes = (None if v is None else v[d] for v in (b, p))
        part = _Direction(c, w[d], r[d], biases, peepholes, functions[d], steps)
        start = tuple(zero if s is None else s[d] for s in starts)
        walk = _walk(c, functools.partial(step, part), x, lens, start, backward=way == "reverse" or d == 1)
        walks.append(walk)
    y, *last = (first.concat(others, 0 if i else 1) for i, (first, *others) in enumerate(zip(*walks, strict=True)))
    if batch_first:
        return y.transpose(2, 0, 1, 3), *(s.transpose(1, 0, 2) for s in last)
    return y, *last


def _walk(
    c: Call,
    step: Callable[[Value, States], States],
    x: Value,
    lens: Value | None,
    states: States,
    *,
    backward: bool,
) -> tuple[Value, ...]:
    """Y of one direction, [L, 1, N, H], and its last states, [1, N, H]; each sequence runs over its own length."""
    (steps, batch), size = x.shape[:2], states[0].shape[1]
    outs: list[Value] = []
    for t in range(steps - 1, -1, -1) if backward else range(steps):
        after = step(x[t], states)
        y = after[0]
        if lens is not None:  # backward, a short sequence's first step comes after steps beyond its end
            within = (lens > t).reshape(batch, 1)
            after = tuple(new.where(within, old) for new, old in zip(after, states, strict=True))
            y = y.where(within, 0.0).undefined(~within, "beyond-length")
        states = after
        outs.append(y.reshape(1, 1, batch, size))
    outs = outs[::-1] if backward else outs
    y = outs[0].concat(outs[1:], 0) if outs else c.constant(0.0, x.type).broadcast(0, 1, batch, size)
    return y, *(s.reshape(1, batch, size) for s in _without_steps(c, lens, steps, states))


def _without_steps(c: Call, lens: Value | None, steps: int, states: States) -> States:
    """The last states, [N, H], which are undefined for sequences without a step."""
    if c.silent("no-steps") and (lens is not None or steps == 0):
        none = c.constant(0, "int32").broadcast(states[0].shape[0]) if lens is None else lens
        walked = (none > 0).reshape(states[0].shape[0], 1)
        if c.open("no-steps", ~walked) == "zeros":
            return tuple(s.where(walked, 0.0) for s in states)
    return states


def _clipped(c: Call, x: Value) -> Value:
    """The argument of a function, clipped to [-clip, clip] if clip is given."""
    limit = None if c.attr("clip") is None else c.float32("clip")
    return x if limit is None else x.clip(-limit, limit)


def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x)), in [0, 1]; many implementations use (1 + tanh(x / 2)) / 2."""
    return (1.0 / (1.0 + (-x).exp())).either(0.5 + 0.5 * (0.5 * x).tanh()).clip(0.0, 1.0)


def tanh(x: Value) -> Value:
    """Tanh(x); or by the pages' formula with exponentials, of the magnitude, so that none overflows."""
    e = (-2.0 * x.abs()).exp()
    y = (1.0 - e) / (1.0 + e)
    return x.tanh().either((-y).where(x < 0.0, y)).within(-1.0, 1.0)


def activations(c: Call, directions: int, usual: tuple[str, ...]) -> list[tuple[Callable[[Value], Value], ...]]:
    """The functions of each direction, by their names in `activations`; `usual` if it is missing.

    `activation_alpha` and `activation_beta` are assigned in order to the functions that have such a number.
    Source: ONNX RNN, GRU and LSTM.
    """
    names = (c.attr("activations") if c.sets("activations") else None) or usual * directions
    known = _known_functions()
    if len(names) == 2 * len(usual) and directions == 1 and c.silent("activations-spare"):
        c.open("activations-spare")
        names = names[: len(usual)]
    c.require("activations-known", all(name in known for name in names) and len(names) == len(usual) * directions)
    numbers = [iter(float(np.float32(v)) for v in c.attr(f"activation_{letter}") or ()) for letter in ("alpha", "beta")]

    def number(name: str, default: float | None, given: Iterator[float]) -> float | None:
        if default is None:
            return None
        listed = next(given, None)
        if listed is None and c.silent("alpha-absent") and ("alpha-default" not in c.clauses or name in _UNLISTED):
            c.open("alpha-absent")
        return default if listed is None else listed

    def function(name: str) -> Callable[[Value], Value]:
        usual_numbers, formula = known[name]
        own = [number(name, default, given) for default, given in zip(usual_numbers, numbers, strict=True)]
        return lambda x: formula(x, *(n for n in own if n is not None))

    functions = [function(name) for name in names]
    return [tuple(functions[n : n + len(usual)]) for n in range(0, len(functions), len(usual))]


def _known_functions() -> dict[str, tuple[tuple[float | None, float | None], Callable[..., Value]]]:
    """Functions by name, with their default alpha and beta; None if a function has none."""
    return {
        "Sigmoid": ((None, None), sigmoid),
        "Tanh": ((None, None), tanh),
        "Relu": ((None, None), lambda x: x.where(x > 0, 0.0)),
        "Affine": ((1.0, 0.0), lambda x, alpha, beta: x * alpha + beta),
        "LeakyRelu": ((float(np.float32(0.01)), None), lambda x, alpha: x.where(x >= 0, x * alpha)),
        "ThresholdedRelu": ((1.0, None), lambda x, alpha: x.where(x >= alpha, 0.0)),
        "ScaledTanh": ((1.0, 1.0), lambda x, alpha, beta: tanh(x * beta) * alpha),
        "HardSigmoid": ((float(np.float32(0.2)), 0.5), lambda x, alpha, beta: (x * alpha + beta).clip(0.0, 1.0)),
        "Elu": ((1.0, None), lambda x, alpha: x.where(x >= 0, (x.exp() - 1.0) * alpha)),
        "Softsign": ((None, None), lambda x: (x / (x.abs() + 1.0)).within(-1.0, 1.0)),
        "Softplus": ((None, None), lambda x: (x.exp() + 1.0).log()),
    }


_UNLISTED = ("Affine", "ScaledTanh")
"""Functions whose numbers have no default; the others have the defaults of the ONNX operators with their names."""


def quarters(blank: Blank, draw: Draw) -> Array:
    """Multiples of 1/4 in [-1, 1], whose sums of products are exact, and which saturate no state."""
    return draw.between(-4, 4, blank.size) / 4.0


def full(drawing: Drawing) -> Array:
    """Lengths of sequences that use all steps."""
    return np.full(drawing.size, _steps(drawing))


def mixed(drawing: Drawing) -> Array:
    """Lengths from 1 on; one uses all steps."""
    steps = _steps(drawing)
    return np.where(np.arange(drawing.size) == drawing.size // 2, steps, 1 + drawing.draw.below(steps, drawing.size))


def with_zero(drawing: Drawing) -> Array:
    """Lengths, the first of which is 0."""
    return np.where(np.arange(drawing.size) == 0, 0, mixed(drawing))


def too_long(drawing: Drawing) -> Array:
    """Lengths, the first of which is larger than the number of steps."""
    return np.where(np.arange(drawing.size) == 0, _steps(drawing) + 1, mixed(drawing))


def negative(drawing: Drawing) -> Array:
    """Lengths, the first of which is -1."""
    return np.where(np.arange(drawing.size) == 0, -1, mixed(drawing))


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

"""OpenVINO's recurrent cells and sequences in terms of ONNX's layers: axes, gates, biases and names of functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cases.elements import Array
from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value
from ..fills import Drawing

_FORMATS = ("fico", "icof", "ifco", "ifoc", "iofc")
"""The orders of gates that LSTMCell-1 may have; other operations have the first."""


def rnn_cell(c: Call, formula: Formula, x: Value, h: Value, w: Value, r: Value, b: Value) -> Value:
    """One step of the simple recurrence f(W x + R h + b).

    x: [N, I]; h and the result: [N, H]; w: [H, I], r: [H, H], b: [H]. Source: OpenVINO RNNCell-3.
    """
    _require_cell(c, 1, x, (h,), w, r, b)
    names = _activations(c, 1, 1)
    _, last = formula(
        _unsqueezed(x),
        _unsqueezed(w),
        _unsqueezed(r),
        _biases(c, _unsqueezed(b)),
        None,
        _unsqueezed(h),
        activations=names,
    )
    state: Value = last.reshape(*h.shape)
    return state


def lstm_cell(
    c: Call, formula: Formula, x: Value, h: Value, s: Value, w: Value, r: Value, b: Value | None = None
) -> tuple[Value, Value]:
    """One step of long short-term memory, with gates in the order f i c o, or in weights_format's: (state, cell).

    x: [N, I]; h, s and the results: [N, H]; w: [4 H, I], r: [4 H, H], b: [4 H]. Source: OpenVINO LSTMCell-1
    and 4.
    """
    _require_cell(c, 4, x, (h, s), w, r, b)
    names, order = _activations(c, 3, 1), c.attr("weights_format") if c.given("weights_format") else _FORMATS[0]
    c.require_if_stated("weights-format-known", order in _FORMATS)
    w, r = (_gates(_unsqueezed(v), order) for v in (w, r))
    biases = None if b is None else _biases(c, _gates(_unsqueezed(b), order))
    _, last, cell = formula(_unsqueezed(x), w, r, biases, None, _unsqueezed(h), _unsqueezed(s), activations=names)
    return last.reshape(*h.shape), cell.reshape(*s.shape)


def rnn_sequence(
    c: Call, formula: Formula, x: Value, h: Value, lengths: Value, w: Value, r: Value, b: Value
) -> tuple[Value, Value]:
    """One layer of the simple recurrence: all states, and the last ones.

    x: [N, L, I]; h and the last states: [N, D, H]; lengths: [N]; w: [D, H, I], r: [D, H, H], b: [D, H]; all states:
    [N, D, L, H]. Source: OpenVINO RNNSequence-5.
    """
    directions = _require_sequence(c, 1, x, (h,), lengths, w, r, b)
    y, last = formula(x, w, r, _biases(c, b), lengths, h, activations=_activations(c, 1, directions))
    return y.transpose(0, 2, 1, 3), last


def gru_sequence(
    c: Call, formula: Formula, x: Value, h: Value, lengths: Value, w: Value, r: Value, b: Value
) -> tuple[Value, Value]:
    """One layer of gated recurrent units, with gates in the order z r h: all states, and the last ones.

    x: [N, L, I]; h and the last states: [N, D, H]; lengths: [N]; w: [D, 3 H, I], r: [D, 3 H, H]; b: [D, 3 H], or with
    linear_before_reset [D, 4 H], the last part R's bias of the hidden gate; all states: [N, D, L, H]. Source: OpenVINO
    GRUSequence-5.
    """
    linear = bool(c.attr("linear_before_reset"))
    directions = _require_sequence(c, 3, x, (h,), lengths, w, r, b, biases=3 + linear)
    size, names = h.shape[-1], _activations(c, 2, directions)
    zero = c.constant(0.0, b.type).broadcast(directions, size)
    both = b[:, : 3 * size].concat([zero, zero, b[:, 3 * size :] if linear else zero], 1)
    y, last = formula(x, w, r, both, lengths, h, activations=names, linear_before_reset=int(linear))
    return y.transpose(0, 2, 1, 3), last


def lstm_sequence(
    c: Call, formula: Formula, x: Value, h: Value, s: Value, lengths: Value, w: Value, r: Value, b: Value
) -> tuple[Value, Value, Value]:
    """One layer of long short-term memory, with gates in the order f i c o: all states, the last ones and cells.

    x: [N, L, I]; h, s, the last states and cells: [N, D, H]; lengths: [N]; w: [D, 4 H, I], r: [D, 4 H, H], b: [D, 4 H];
    all states: [N, D, L, H]. Source: OpenVINO LSTMSequence-5.
    """
    directions = _require_sequence(c, 4, x, (h, s), lengths, w, r, b)
    names = _activations(c, 3, directions)
    w, r, b = (_gates(v, _FORMATS[0]) for v in (w, r, b))
    y, last, cell = formula(x, w, r, _biases(c, b), lengths, h, s, activations=names)
    return y.transpose(0, 2, 1, 3), last, cell


def _require_cell(c: Call, gates: int, x: Value, states: Sequence[Value], w: Value, r: Value, b: Value | None) -> None:
    """Require the shapes of a cell, which ONNX's layer has with one axis more."""
    size = c.attr("hidden_size")
    c.require("shapes", all(v.rank == 2 for v in (x, w, r)) and all(s.shape == (x.shape[0], size) for s in states))
    c.require("shapes", w.shape == (gates * size, x.shape[1]) and r.shape == (gates * size, size))
    c.require("shapes", b is None or b.shape == (gates * size,))


def _require_sequence(
    c: Call,
    gates: int,
    x: Value,
    states: Sequence[Value],
    lengths: Value,
    w: Value,
    r: Value,
    b: Value,
    biases: int | None = None,
) -> int:
    """Require the shapes of a sequence, and return the number of directions.

    biases: the parts of b, if they are not as many as the gates.
    """
    way, size = c.attr("direction"), c.attr("hidden_size")
    c.require("direction", way in ("forward", "reverse", "bidirectional"))
    directions = 2 if way == "bidirectional" else 1
    c.require("shapes", x.rank == w.rank == r.rank == 3 and lengths.shape == x.shape[:1])
    c.require("directions", w.shape[0] == directions)
    c.require("shapes", all(s.shape == (x.shape[0], directions, size) for s in states))
    rows = gates * size
    c.require("shapes", w.shape[1:] == (rows, x.shape[2]) and r.shape == (directions, rows, size))
    c.require("shapes", b.shape == (directions, (biases or gates) * size))
    return directions


def _activations(c: Call, count: int, directions: int) -> tuple[str, ...] | None:
    """The functions by their names in ONNX, for each direction; None if they are missing. Requires a positive clip."""
    clip, names = c.attr("clip"), c.attr("activations")
    c.require("clip-positive", clip is None or clip > 0)
    if names is None:
        return None
    known = ("relu", "sigmoid", "tanh")
    c.require("activations-known", len(names) == count and all(name in known for name in names))
    return tuple(name.capitalize() for name in names) * directions


def _unsqueezed(v: Value) -> Value:
    """A value with an axis more in front, for one direction or one step."""
    return v.reshape(1, *v.shape)


def _gates(v: Value, order: str) -> Value:
    """The blocks of gates along axis 1, which have this order, in ONNX's order i o f c."""
    size = v.shape[1] // len(order)
    starts = (order.index(gate) * size for gate in "iofc")
    return v.take(np.concatenate([np.arange(start, start + size) for start in starts]), 1)


def _biases(c: Call, b: Value) -> Value:
    """The biases of W and R, [D, 2 G H], from their sums, [D, G H]."""
    return b.concat([c.constant(0.0, b.type).broadcast(*b.shape)], 1)


def all_steps(drawing: Drawing) -> Array:
    """Lengths of sequences that use all steps."""
    return np.full(drawing.size, _steps(drawing))


def some_steps(drawing: Drawing) -> Array:
    """Lengths from 1 on; one uses all steps."""
    steps = _steps(drawing)
    return np.where(np.arange(drawing.size) == drawing.size // 2, steps, 1 + drawing.draw.below(steps, drawing.size))


def no_steps(drawing: Drawing) -> Array:
    """Lengths, the first of which is 0."""
    return np.where(np.arange(drawing.size) == 0, 0, some_steps(drawing))


def _steps(drawing: Drawing) -> int:
    return max(1, int(drawing.values["X"].shape[2]))

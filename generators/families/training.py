"""One step of training: Adam, Adagrad and Momentum of ai.onnx.preview.training, for any number of tensors at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw
from ..fills import uniform as signed

_ZERO = "zero-coefficient"


def adam(c: Call, rate: Value, count: Value, inputs: list[Value]) -> tuple[Value, ...]:
    """Tensors less their smoothed gradient over the root of the smoothed squared gradient; and both, updated.

    inputs: tensors, then for each its gradient, the smoothed gradient and the smoothed squared gradient, of its shape;
    results: all but the gradients. Source: ONNX ai.onnx.preview.training Adam-1.
    """
    alpha, beta, after = (c.float32(name) for name in ("alpha", "beta", "norm_coefficient_post"))
    updates = []
    for x, gradient, old, old_squares in _groups(c, inputs, 4):
        r, times = _narrow(rate, x), int(c.known(count))
        if times > 0:
            unit, power = c.constant(1.0, r.type), c.constant(float(times), r.type)
            r = r * (unit - c.constant(beta, r.type) ** power).sqrt() / (unit - c.constant(alpha, r.type) ** power)
        g = _regularized(c, x, gradient)
        smooth = old * alpha + g * (1.0 - alpha)
        squares = old_squares * beta + g * g * (1.0 - beta)
        new = x - smooth * r.store(x.type) / (squares.sqrt() + c.float32("epsilon"))
        updates.append((new * (1.0 - after) if after else new, smooth, squares))
    return _outputs(updates)


def adagrad(c: Call, rate: Value, count: Value, inputs: list[Value]) -> tuple[Value, ...]:
    """Tensors less their gradient over the root of the sum of all squared gradients; and this sum.

    inputs: tensors, then for each its gradient, then the sum of its squared gradients; results: all but the gradients.
    Source: ONNX ai.onnx.preview.training Adagrad-1.
    """
    updates = []
    for x, gradient, old in _groups(c, inputs, 3):
        r = _narrow(rate, x)
        r = r / (1.0 + count.cast(r.type) * c.float32("decay_factor"))
        g = _regularized(c, x, gradient)
        squares = old + g * g
        new = x - g * r.store(x.type) / (squares.sqrt() + c.float32("epsilon"))
        updates.append((new, squares))
    return _outputs(updates)


def momentum(c: Call, rate: Value, count: Value, inputs: list[Value]) -> tuple[Value, ...]:
    """Tensors less their momentum, updated by the gradient, or less Nesterov's combination of both; and the momentum.

    inputs: tensors, then for each its gradient, then its momentum; results: all but the gradients.
    Source: ONNX ai.onnx.preview.training Momentum-1.
    """
    mode, alpha = str(c.attr("mode")), c.float32("alpha")
    c.require("modes", mode in ("standard", "nesterov"))
    beta = c.float32("beta") if int(c.known(count)) > 0 else 1.0
    updates = []
    for x, gradient, old in _groups(c, inputs, 3):
        r, g = _narrow(rate, x).store(x.type), _regularized(c, x, gradient)
        velocity = old * alpha + g * beta
        updates.append((x - (velocity if mode == "standard" else g + velocity * alpha) * r, velocity))
    return _outputs(updates)


def _groups(c: Call, inputs: list[Value], parts: int) -> Iterator[tuple[Value, ...]]:
    """Yield each tensor with its gradient and states: the inputs have all tensors, then all gradients, and so on."""
    c.require("groups", len(inputs) % parts == 0 and len(c.output_types) * parts == len(inputs) * (parts - 1))
    many = len(inputs) // parts
    if c.float32("norm_coefficient") == 0 and many:
        first, *others = [(~(x.abs() < math.inf)).reshape(x.size) for x in inputs[:many]]
        c.open(_ZERO, first.concat(others, axis=0))
    for index in range(many):
        group = tuple(inputs[index::many])
        c.require("shapes", len({(tensor.shape, tensor.type) for tensor in group}) == 1)
        yield group


def _outputs(updates: Sequence[tuple[Value, ...]]) -> tuple[Value, ...]:
    return tuple(tensor for kind in zip(*updates, strict=True) for tensor in kind)


def _narrow(rate: Value, x: Value) -> Value:
    """The learning rate in the narrower of both types: the type of its adjustment is not defined."""
    return rate.store("float32") if "float32" in (rate.type, x.type) else rate


def _regularized(c: Call, x: Value, gradient: Value) -> Value:
    """The gradient plus norm_coefficient times the tensor; for 0, either nothing or also 0 times infinity is added."""
    coefficient = c.float32("norm_coefficient")
    return gradient if coefficient == 0 and c.met.get(_ZERO) == "left-out" else x * coefficient + gradient


def sizes(blank: Blank, draw: Draw) -> Array:
    """Positive numbers of moderate size, so that they can be sums of squares."""
    return np.asarray(np.abs(signed(blank, draw)) + 0.125)

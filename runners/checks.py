"""The tests that an option makes beside its bounds, on whole outputs.

`order(axis, whole)`: what stands along an axis may come in any order, the same in all outputs named. With `whole` each
slice across the axis is one thing (rows of indices), else each line along it is put in order by itself.

`follows(axis, distinct, squeezed)`: the first output named is indices along an axis of the first array (without an
axis: into all its elements), and what stands there is the second output named, or else the second array. `distinct`:
no index comes twice along the axis; `squeezed`: the axis is missing in the indices.

`moments(alarm, reach, law, unit)`: the elements are random, independent, of the mean and the variance that the first
two arrays tell; the third is the fourth central moment (else that of a normal distribution), `reach` how far an element
may be from its mean (else as a normal one). With `law="normal"` they are normal, each rounded by `unit` of itself at
most. Right answers fail with a probability of at most `alarm`.

`mask-agrees`: the first output named is zero exactly where the second says false; elsewhere it is within its bounds.

`same-seed`: a fresh program gives the same answer to the bit; what runs it is the worker.

Arrays have lanes first; axes count without them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from ..cases.elements import Array, comparable, equal
from ..cases.expectation import Bounds, Check, Flag
from .comparison import admitted, all_of_lane, within

_ALARM = 1e-9


def arranged(
    checks: Sequence[Check], outputs: Sequence[Bounds], numbers: Sequence[Array]
) -> tuple[list[Bounds], list[Array]]:
    """Return bounds and answers with what may come in any order put in the same one."""
    bounds, found = list(outputs), list(numbers)
    for check in checks:
        if check.name != "order":
            continue
        settings = dict(check.settings)
        axis, whole = int(settings["axis"]) + 1, bool(settings.get("whole"))
        codes = [_codes(comparable(bounds[place].value), found[place]) for place in check.outputs]
        wanted = _order([one for one, _ in codes], axis, whole=whole)
        given = _order([other for _, other in codes], axis, whole=whole)
        for place in check.outputs:
            shape = bounds[place].value.shape
            bounds[place] = bounds[place].mapped(functools.partial(_taken, order=wanted, axis=axis, shape=shape))
            found[place] = _taken(found[place], given, axis, shape)
    return bounds, found


def _codes(value: Array, answer: Array) -> tuple[Array, Array]:
    """Return whole numbers that are in the order of the elements of both, NaN last."""
    both = np.concatenate([value.reshape(-1), answer.reshape(-1)])
    _, codes = np.unique(both, return_inverse=True)
    codes = codes.reshape(-1)
    return codes[: value.size].reshape(value.shape), codes[value.size :].reshape(answer.shape)


def _order(codes: Sequence[Array], axis: int, *, whole: bool) -> Array:
    """Return the places along an axis in order, by the first output, then the next; of shape (lanes, n) if `whole`."""
    if not whole:
        keys = [np.moveaxis(one, axis, -1) for one in codes]
        return np.moveaxis(np.lexsort(keys[::-1], axis=-1), -1, axis)
    moved = [np.moveaxis(one, axis, 1) for one in codes]
    rows = [one.reshape(*one.shape[:2], math.prod(one.shape[2:])) for one in moved]
    columns = np.concatenate(rows, axis=2).transpose(2, 0, 1)
    if not len(columns):
        return np.tile(np.arange(codes[0].shape[axis]), (len(codes[0]), 1))
    return np.asarray(np.lexsort(columns[::-1], axis=-1))


def _taken(array: Array, order: Array, axis: int, shape: tuple[int, ...]) -> Array:
    if order.ndim == 2 and len(shape) > 2:
        order = order.reshape(len(order), *(order.shape[1] if at == axis else 1 for at in range(1, len(shape))))
        order = np.broadcast_to(order, shape)
    return np.take_along_axis(array, order, axis)


def holds(check: Check, outputs: Sequence[Bounds], numbers: Sequence[Array]) -> Array:
    """Return in which lanes a check holds, bool; `numbers` are the answers as they are compared."""
    lanes = len(numbers[0])
    match check.name:
        case "follows":
            return _follows(check, numbers)
        case "moments":
            return _moments(check, numbers[check.outputs[0]])
        case "mask-agrees":
            return _mask_agrees(check, outputs, numbers)
        case "order" | "same-seed":  # the one is a matter of comparing, the other of running
            return np.ones(lanes, bool)
    raise KeyError(check.name)


def _follows(check: Check, numbers: Sequence[Array]) -> Array:
    settings, indices = dict(check.settings), numbers[check.outputs[0]]
    source = comparable(check.arrays[0])
    wanted = numbers[check.outputs[1]] if len(check.outputs) > 1 else comparable(check.arrays[1])
    lanes = len(indices)
    if "axis" not in settings:
        source, indices = source.reshape(lanes, -1), indices.reshape(lanes, -1)
        axis, wanted = 1, wanted.reshape(lanes, -1)
    else:
        axis = int(settings["axis"]) + 1
        if settings.get("squeezed"):
            indices, wanted = np.expand_dims(indices, axis), np.expand_dims(wanted, axis)
    inside = (indices >= 0) & (indices < source.shape[axis])
    if not source.shape[axis]:
        return all_of_lane(inside)
    found = np.take_along_axis(source, np.where(inside, indices, 0).astype(np.intp), axis)
    same = inside & equal(found, wanted)
    if settings.get("distinct"):
        ordered = np.sort(indices, axis)
        same &= np.insert(np.diff(ordered, axis=axis) > 0, 0, values=True, axis=axis)
    return all_of_lane(same)


def _moments(check: Check, output: Array) -> Array:
    """Hold the sums of the errors and of their squares against tail bounds: Bernstein's, Laurent and Massart's.

    With `law="normal"` also the share of elements up to each one against the normal distribution's, where each element
    may be off by `unit` of itself, by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart.
    """
    settings, (mean, variance, *fourth) = dict(check.settings), check.arrays
    lanes, reach = len(output), float(settings.get("reach", 0.0))
    mean, variance = (np.broadcast_to(one, output.shape).reshape(lanes, -1) for one in (mean, variance))
    errors = output.reshape(lanes, -1).astype(np.float64) - mean
    peaked = np.broadcast_to(fourth[0], output.shape).reshape(lanes, -1) if fourth else 3 * variance**2
    is_normal = settings.get("law") == "normal"
    doubt = math.log((6 if is_normal else 4) / float(settings.get("alarm", _ALARM)))  # two sums, two sides, and the law
    first, total = errors.sum(axis=1), variance.sum(axis=1)
    second, spread = (errors**2).sum(axis=1) - total, (peaked - variance**2).sum(axis=1)
    farthest = reach**2 / 3 if reach else 2 * variance.max(axis=1, initial=0.0)
    allowed = np.sqrt(2 * doubt * total) + doubt * reach / 3
    allowed_second = np.sqrt(2 * doubt * spread) + doubt * farthest
    found = np.isfinite(errors).all(axis=1) & (np.abs(first) <= allowed) & (np.abs(second) <= allowed_second)
    if is_normal and errors.size:
        unit = float(settings.get("unit", 0.0))
        found &= _is_normal(errors, np.abs(errors + mean) * unit, np.sqrt(2 * variance), doubt)
    return np.asarray(found)


def _is_normal(errors: Array, reach: Array, scale: Array, doubt: float) -> Array:
    """Return in which lanes errors may be normal, each off by `reach` at most; `scale`: deviations times root 2."""
    order = np.argsort(errors / scale, axis=1)
    low, high = (np.take_along_axis((errors + sign * reach) / scale, order, axis=1) for sign in (-1, 1))
    below, above = ((1 + np.vectorize(math.erf, otypes=[float])(one)) / 2 for one in (low, high))
    count = errors.shape[1]
    ranks, slack = np.arange(count) / count, math.sqrt(doubt / (2 * count))
    return np.asarray(((below - slack <= ranks) & (ranks + 1 / count <= above + slack)).all(axis=1))


def _mask_agrees(check: Check, outputs: Sequence[Bounds], numbers: Sequence[Array]) -> Array:
    place, mask = check.outputs[0], numbers[check.outputs[1]].astype(bool)
    bounds, output = outputs[place], numbers[place]
    flags = None if bounds.flags is None else bounds.flags & ~np.uint8(Flag.ZERO)
    kept = Bounds(bounds.type, bounds.value, bounds.lower, bounds.upper, flags)
    return all_of_lane(np.where(mask, admitted(kept, output, within(bounds, output)), output == 0))

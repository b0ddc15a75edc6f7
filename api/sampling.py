"""Samples of large answers: elements chosen by structure and by seed, and the formula of only these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..cases.elements import Array
from ..generators.arithmetic.cutting import Cut, cut, taken
from ..generators.arithmetic.recording import Recording

_BLOCKS = (8, 16, 32, 64, 128, 256, 512, 1024, 4096)
_FEW = 6
_LEAST = 256


@dataclass(frozen=True)
class Sampled:
    """A sample: its formula, the arrays of that with lanes, the answer's outputs on `grids`, one grid for each output.

    `wrong_shape`: why the answer cannot be sampled, `broken`: a clause that the inputs break; the rest is then empty.
    """

    recording: Recording
    arrays: list[Array]
    outputs: tuple[Array, ...]
    grids: tuple[tuple[Array, ...], ...]
    wrong_shape: str = ""
    broken: str = ""


def sampled(
    recording: Recording, arrays: Sequence[Array], outputs: Sequence[Array], most_work: int, seed: int
) -> Sampled | None:
    """Return a sample of an answer whose formula has more than `most_work` elements; None to judge all of them.

    All are judged if a test is about whole outputs, or if readings differ in their outputs' shapes.
    """
    shapes = recording.shapes
    if recording.weight <= most_work or any(fork.checks or fork.structure for fork in recording.forks):
        return None
    if any(shape is None for shape in shapes) or any(fork.kind != "values" for fork in recording.forks):
        return None
    wanted = [shape for shape in shapes if shape is not None]
    if [output.shape for output in outputs] != wanted:
        sizes = ", ".join(str(list(output.shape)) for output in outputs)
        words = f"got shape {sizes}, want {', '.join(str(list(shape)) for shape in wanted)}"
        return Sampled(recording, [], (), (), words)
    masks = recording.premises([array[np.newaxis] for array in arrays], 1)
    conditions = {at: bool(mask.all()) for at, mask in masks.items()}  # whether each holds of all elements
    requirements = [pair for fork in recording.forks for pair in fork.requirements]
    broken = next((clause for clause, at in requirements if not conditions[at]), "")
    if broken:
        return Sampled(recording, [], (), (), broken=broken)
    small, grids = max(
        (_cut(recording, conditions, outputs, most_work, seed, keep_last=keep_last) for keep_last in (True, False)),
        key=lambda pair: sum(math.prod(map(len, grid)) for grid in pair[1]),
    )
    kept = [array[np.newaxis] for array in small.arrays(arrays)]
    parts = tuple(taken(output, grid) for output, grid in zip(outputs, grids, strict=True))
    return Sampled(small.recording, kept, parts, grids)


def _cut(
    recording: Recording,
    conditions: Mapping[int, bool],
    outputs: Sequence[Array],
    most_work: int,
    seed: int,
    *,
    keep_last: bool,
) -> tuple[Cut, tuple[tuple[Array, ...], ...]]:
    """Return the largest of a few cuts that need at most `most_work` elements, or the smallest of them."""
    most = most_work
    while True:
        share = max(_LEAST, most // 4 // max(1, len(outputs)))
        grids = tuple(_grid(output, min(share, output.size), seed, keep_last=keep_last) for output in outputs)
        small = cut(recording, grids, conditions)
        if small.weight <= most_work or share == _LEAST:
            return small, grids
        most //= 2


def _grid(output: Array, most: int, seed: int, *, keep_last: bool) -> tuple[Array, ...]:
    """Return the sampled indices along each axis; at most about `most` elements lie on the grid.

    `keep_last`: keep the last axes whole as far as possible, which costs nothing where the formula needs them whole.

    Along each axis: the ends, the middle, the ends of blocks, where the answer's largest and smallest elements and its
    first NaN lie, and others at random.
    """
    draw = np.random.default_rng([seed, *output.shape])
    counts = _counts(output.shape, most, keep_last=keep_last)
    special = _extremes(output)
    return tuple(
        _along(extent, count, {indices[axis] for indices in special}, draw)
        for axis, (extent, count) in enumerate(zip(output.shape, counts, strict=True))
    )


def _counts(shape: tuple[int, ...], most: int, *, keep_last: bool) -> list[int]:
    """Share a number of elements among the axes; each keeps a few."""
    counts = [min(extent, _FEW) for extent in shape]
    left = max(1.0, most / max(1, math.prod(counts)))
    order = reversed(range(len(shape))) if keep_last else sorted(range(len(shape)), key=lambda at: shape[at])
    for number, axis in enumerate(order):
        share = left if keep_last else left ** (1 / (len(shape) - number))
        kept = max(counts[axis], min(shape[axis], int(counts[axis] * share)))
        left, counts[axis] = left / max(1.0, kept / max(1, counts[axis])), kept
    return counts


def _extremes(output: Array) -> list[tuple[int, ...]]:
    if not output.size or output.dtype.kind not in "fiu":
        return []
    with np.errstate(all="ignore"):
        flat = np.nan_to_num(output.reshape(-1).astype(np.float64, copy=False), nan=0.0)
    places = {int(flat.argmax()), int(flat.argmin()), int(np.abs(flat).argmin())}
    if output.dtype.kind == "f" and np.isnan(output).any():
        places.add(int(np.isnan(output.reshape(-1)).argmax()))
    return [tuple(int(i) for i in np.unravel_index(position, output.shape)) for position in sorted(places)]


def _along(extent: int, count: int, special: set[int], draw: np.random.Generator) -> Array:
    if count >= extent:
        return np.arange(extent)
    blocks = [block for block in _BLOCKS if block < extent]
    ends = [0, extent - 1, *sorted(special), extent // 2, *(b for block in blocks for b in (block - 1, block))]
    ends += [extent - extent % block - 1 for block in blocks]
    fixed = list(dict.fromkeys(index for index in ends if 0 <= index < extent))[: max(count, 2 + len(special))]
    rest = draw.choice(extent, size=max(0, count - len(fixed)), replace=False)
    return np.unique(np.array([*fixed, *rest.tolist()], np.int64))

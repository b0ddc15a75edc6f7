"""Operators with random results: Dropout, RandomNormal, RandomUniform, Bernoulli, Multinomial and others.

Random numbers have no expected value each, but together they must be plausible.
"""

from __future__ import annotations

import math

import numpy as np

from ...cases.elements import element_type
from ..arithmetic.tape import Call, Value

TELLING = 64
"""So many elements differ in a second draw, except with negligible probability."""


def normal(c: Call, like: Value | None = None) -> Value:
    """Independent draws from the normal distribution with `mean` and the standard deviation `scale`.

    like: any shape and type; result: its shape, or the attribute `shape`; the type is `dtype`, else the type of `like`.
    Source: ONNX RandomNormal-1 and 22, RandomNormalLike-1 and 22.
    """
    shape, type_ = _drawn(c, like)
    mean, scale = c.float32("mean"), c.float32("scale")
    drawn = c.constant(mean, type_).broadcast(*shape)
    c.require("scale-range", scale >= 0)
    _seeded(c, math.prod(shape))
    if scale == 0:
        return drawn
    moments = [c.constant(v, "float64").broadcast(*shape) for v in (mean, scale * scale)]
    c.check("moments", arrays=moments, law="normal", unit=2.0 ** (3 - element_type(type_).float_format.precision))
    return drawn.undefined(c.constant(True, "bool").broadcast(*shape))


def uniform(c: Call, like: Value | None = None) -> Value:
    """Independent draws from the uniform distribution between `low` and `high`.

    like: any shape and type; result: its shape, or the attribute `shape`; the type is `dtype`, else the type of `like`.
    Source: ONNX RandomUniform-1 and 22, RandomUniformLike-1 and 22.
    """
    shape, type_ = _drawn(c, like)
    low, high = c.float32("low"), c.float32("high")
    half = (high - low) / 2
    middle, upper = (c.constant(v, type_).broadcast(*shape) for v in (low + half, high))
    c.require("bounds", low <= high)
    _seeded(c, math.prod(shape))
    if half == 0:
        return upper
    moments = [c.constant(v, "float64").broadcast(*shape) for v in (low + half, half**2 / 3, half**4 / 5)]
    coarse = 2.0 ** (2 - element_type(type_).float_format.precision) * max(abs(low), abs(high), 2 * half)
    c.check("moments", arrays=moments, reach=half, law="uniform", unit=coarse)
    lower = c.constant(low, type_).broadcast(*shape)
    return middle.node("between", lower, upper)


def _drawn(c: Call, like: Value | None) -> tuple[tuple[int, ...], str]:
    """The shape and the type of the result."""
    type_ = c.output_types["output"]
    assert type_ is not None
    shape = (c.ints("shape") or ()) if like is None else like.shape
    c.require_if_stated("shape", min(shape, default=0) >= 0)
    return shape, type_


def _seeded(c: Call, elements: int) -> None:
    """Test that a fresh program draws the same numbers from the same seed, if there are enough of them."""
    if c.given("seed") and elements >= TELLING:
        c.check("same-seed", differs=float(c.open("seed") != "repeatable"))


def bernoulli(c: Call, p: Value) -> Value:
    """1 with probability p, else 0.

    p: any shape, within [0, 1]; result: its shape; the type is `dtype`, else the type of p. Source: ONNX Bernoulli-15
    and 22.
    """
    type_ = c.output_types["output"]
    assert type_ is not None
    c.require("probability", (p >= 0.0) & (p <= 1.0))
    _seeded(c, p.size)
    chance = p.cast("float64")
    against = 1.0 - chance
    variance = chance * against
    c.check("moments", arrays=(chance, variance, variance * (1.0 - 3.0 * variance)), reach=1.0)
    return c.constant(1, type_).broadcast(*p.shape).or_zero().where((p > 0.0) & (p < 1.0), (p > 0.0).cast(type_))


def multinomial(c: Call, logits: Value) -> Value:
    """`sample_size` draws from the classes of each row; probabilities are proportional to its exponentials.

    logits: (batch, classes); result: (batch, sample_size), of the type `dtype`.
    Source: ONNX Multinomial-7 and 22.
    """
    c.require("rank-2", logits.rank == 2)
    size, type_ = int(c.attr("sample_size")), c.output_types["output"]
    assert type_ is not None
    c.require("sample-size-range", size >= 0)
    (batch, classes), known = logits.shape, c.known("input").astype(np.float64)
    c.require("distribution", bool(classes and np.isfinite(known.max(axis=1)).all()))
    if not size:
        c.open("no-samples")
        return c.constant(0, type_).broadcast(batch, size)
    wide = logits.cast("float64")
    largest = wide.max(1)
    weights = (wide - largest).exp()
    chances = weights / weights.sum(1)
    drawn = classes_drawn(c, chances, size, type_, 2.0 ** (3 - element_type(logits.type).float_format.precision))
    _seeded(c, batch * size)
    return drawn


def classes_drawn(c: Call, chances: Value, size: int, type_: str, rough: float) -> Value:
    """`size` independent draws of classes for each row: (batch, size).

    chances: (batch, classes), float64, which may be off by `rough` of themselves.
    """
    batch, classes = chances.shape
    places = c.constant(np.arange(float(classes)).reshape(1, classes), "float64")
    mean = (chances * places).sum(1)
    powers = [(chances * (places - mean) ** k).sum(1).broadcast(batch, size) for k in (2.0, 4.0)]
    reach = float(classes - 1)
    c.check("moments", arrays=(mean.broadcast(batch, size), *powers), reach=reach, unit=rough * reach)
    c.check("frequencies", arrays=(chances,), unit=rough)
    middle, first, last = (c.constant(n, type_).broadcast(batch, size) for n in (classes // 2, 0, classes - 1))
    return middle.node("between", first, last)


def dropout(c: Call, data: Value, ratio: Value | None = None, training: Value | None = None) -> tuple[Value, Value]:
    """In training, each element is 0 with probability `ratio`, else divided by 1 - ratio; otherwise it stays unchanged.

    data: any shape; ratio, training_mode: inputs of rank 0 from version 12 on; results: the data's shape, and the mask,
    true where an element stays. Source: ONNX Dropout-1 to 22.
    """
    everywhere = c.constant(True, "bool").broadcast(*data.shape)
    mask_type = c.output_types.get("mask") or "bool"
    kept = everywhere if mask_type == "bool" else c.constant(1.0, mask_type).broadcast(*data.shape)
    if "training-mode" not in c.clauses:
        return _early(c, data, kept, everywhere)
    c.require("scalars", all(v is None or v.rank == 0 for v in (ratio, training)))
    part = 0.5 if ratio is None else float(c.known("ratio"))
    c.require("ratio-range", 0 <= part < 1)
    if training is None or not c.known("training_mode") or part == 0:
        return data, kept
    if ratio is None and c.open("ratio-missing") == "copy":
        return data, kept
    scaled = data * (c.constant(1.0, data.type) / (1.0 - part))
    if not c.wants("mask"):
        return scaled.or_zero(), kept
    c.check("mask-agrees", ("output", "mask"))
    moments = [c.constant(v, "float64").broadcast(*data.shape) for v in (1 - part, part * (1 - part))]
    c.check("moments", ("mask",), moments, reach=max(part, 1 - part))
    return scaled.or_zero(), kept.undefined(everywhere)


def seeded_dropout(c: Call, src: Value, seed: Value, offset: Value, probability: Value) -> Value:
    """Each element is 0 with the given probability, else divided by 1 - probability; the same for the same seed.

    src: any shape; seed, offset, probability: rank 0. Which elements are 0, the generator decides, whose algorithm is
    the implementation's own. Source: oneDNN Graph Dropout.
    """
    c.require("scalars", seed.rank == offset.rank == probability.rank == 0)
    part = float(c.known("probability"))
    c.require("probability-range", 0 <= part <= 1)
    if seed.type != "uint64" or offset.type != "uint64":
        c.open("signed-seed")
    if part == 0:
        return src
    if part == 1:
        lost = c.open("all-dropped") == "not-a-number"
        return c.constant(math.nan if lost else 0.0, src.type).broadcast(*src.shape).any_zero()
    kept = src * (c.constant(1.0, src.type) / (1.0 - part))
    wide = src.cast("float64")
    square = wide * wide
    odds = part / (1 - part)
    reach = max(1.0, odds)  # for elements between -1 and 1
    moments = (wide, square * odds, square * square * (part + part * odds**3))
    rough = 2.0 ** (2 - element_type(src.type).float_format.precision)
    c.check("moments", arrays=moments, reach=reach, unit=reach * rough)
    if src.size >= TELLING:
        c.check("same-seed", differs=0.0)
    return kept.or_zero()


def _early(c: Call, data: Value, kept: Value, everywhere: Value) -> tuple[Value, Value]:
    """Dropout before version 12: early versions drop unless is_test is set; later ones do not say whether to."""
    if "is-test" in c.clauses:
        training = c.attr("is_test") == 0 and c.open("training-early") == "training"
    else:
        training = c.open("mode-early") == "training"
    part = c.float32("ratio")
    if training and part < 1:
        data = (data * (c.constant(1.0, data.type) / (1.0 - part))).or_zero()
    elif training:
        data = data.undefined(everywhere)
    return data, kept.undefined(everywhere)

"""Operators that draw at random: Dropout, RandomNormal. What is drawn has no value of its own, but must be likely."""

from __future__ import annotations

from ...cases.elements import element_type
from ..arithmetic.tape import Call, Value


def normal(c: Call) -> Value:
    """Independent draws from the normal distribution with `mean` and the standard deviation `scale`.

    Result: `shape`, of the type `dtype`. Source: ONNX RandomNormal-1 and 22.
    """
    shape, mean, scale = c.ints("shape") or (), c.float32("mean"), c.float32("scale")
    c.require("shape", min(shape, default=0) >= 0)
    if scale < 0:
        c.open("scale-negative")
    if c.given("seed") and c.open("seed") == "repeatable":
        c.check("same-seed")
    drawn = c.constant(mean, c.output_types["output"] or "float32").broadcast(*shape)
    if scale == 0:
        return drawn
    moments = [c.constant(v, "float64").broadcast(*shape) for v in (mean, scale * scale)]
    float_format = element_type(drawn.type).format
    assert float_format is not None
    c.check("moments", arrays=moments, law="normal", unit=2.0 ** (3 - float_format.precision))
    return drawn.undefined(c.constant(True, "bool").broadcast(*shape))


def dropout(c: Call, data: Value, ratio: Value | None = None, training: Value | None = None) -> tuple[Value, Value]:
    """In training each element is 0 with the probability `ratio`, else divided by 1 - ratio; else it stays as it is.

    data: any shape; ratio, training_mode: inputs of rank 0 from version 12 on; results: the data's shape, and the mask,
    true where an element stays. Source: ONNX Dropout-1 to 22.
    """
    whole = c.constant(True, "bool").broadcast(*data.shape)
    mask_type = c.output_types.get("mask") or "bool"
    kept = whole if mask_type == "bool" else c.constant(1.0, mask_type).broadcast(*data.shape)
    if "training-mode" not in c.clauses:
        return _early(c, data, kept, whole)
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
    return scaled.or_zero(), kept.undefined(whole)


def _early(c: Call, data: Value, kept: Value, whole: Value) -> tuple[Value, Value]:
    """Before version 12: is_test says whether to drop in the first ones, nothing does from version 7 on."""
    if "is-test" in c.clauses:
        if c.attr("is_test") == 0:
            c.open("training-early")
    else:
        c.open("mode-early")
    return data, kept.undefined(whole)

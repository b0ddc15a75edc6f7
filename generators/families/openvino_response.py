"""OpenVINO's normalization of responses across channels: GRN."""

from __future__ import annotations

from ..arithmetic.tape import Call, Value


def grn(c: Call, data: Value) -> Value:
    """Data divided by the root of its sum of squares over the channels, to which bias is added.

    data: [N, C, ...], floats of rank 2 to 4; result: the same shape. A product with a reciprocal may be inexact even if
    the quotient is exact, so that both are admitted. Source: OpenVINO GRN-1.
    """
    c.require("rank", 2 <= data.rank <= 4)
    c.require("bias-range", c.attr("bias") > 0)
    root = ((data * data).sum((1,)) + c.constant(c.float32("bias"), data.type)).sqrt()
    return (data / root).either(data * (1.0 / root))

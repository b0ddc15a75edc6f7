"""Reductions over axes."""

from __future__ import annotations

from typing import TypeVar

from ..arithmetic.tensors import Axes, Tensor, extent

T = TypeVar("T", bound=Tensor)


def mean(x: T, axes: Axes, keepdims: bool) -> T:
    """Arithmetic mean over `axes`.

    x: shape D, any numeric type; axes: sorted, distinct, in [0, rank). Result: D without `axes`, or with 1 there.
    Source: ONNX ReduceMean-1 to -18, OpenVINO ReduceMean-1, oneDNN Graph ReduceMean.
    """
    return x.sum(axes, keepdims) / extent(x, axes)

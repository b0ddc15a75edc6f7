"""Operators that combine tensors element by element, with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..arithmetic.tensors import Tensor

T = TypeVar("T", bound=Tensor)


def mean(xs: Sequence[T]) -> T:
    """Arithmetic mean of one or more tensors.

    xs: shapes that broadcast to D, one floating-point type. Result: D.
    Source: ONNX Mean-1 to -13.
    """
    return xs[0].stack(xs[1:]).sum((0,), keepdims=False) / len(xs)

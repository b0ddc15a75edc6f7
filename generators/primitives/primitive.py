"""What a room tells of one primitive: all interpretations of a recorded formula ask here, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from ...cases.elements import Array
from ..arithmetic.errors import Arithmetic, Error, Known

if TYPE_CHECKING:
    from ..arithmetic.graph import Value
    from ..arithmetic.native import Machine

Work: TypeAlias = Literal["moves", "selects", "rounds"]


class Primitive:
    """One primitive. Arrays have lanes first, one lane standing for all; parameters (axes too) are those of a lane.

    `work`: whether it moves elements as they are; selects, compares or changes signs, where subnormal numbers may be
    read as zero but nothing rounds; or rounds. `keeps_zeros`: the result's zeros have the sign that the operand's have;
    `frees_zeros`: they have either, whatever the operand's.
    `rational`: fractions are enough to compute it. `overflows`: a whole result may not fit its type. `widens`: `exact`
    takes float64 and, told `wide`, returns gmpy2.mpfr. `accumulates`: a machine's order and its accumulator make a
    difference. `text` tells what it is and what it is charged.
    """

    name: ClassVar[str] = ""
    work: ClassVar[Work] = "rounds"
    keeps_zeros: ClassVar[bool] = False
    frees_zeros: ClassVar[bool] = False
    rational: ClassVar[bool] = False
    overflows: ClassVar[bool] = False
    widens: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False
    text: ClassVar[str] = ""

    @classmethod
    def record(cls, value: Value, *others: Any, **parameters: Any) -> Value:
        """Return the node of `value.<name>(*others, **parameters)`: operands aligned, numbers taken as literals."""
        first, *rest = value.aligned(*others)
        return first.node(cls.name, *rest, **parameters)

    @classmethod
    def type(cls, types: Sequence[str], **parameters: Any) -> str:
        """Return the element type of the result, of the operands'."""
        return types[0]

    @staticmethod
    def exact(*xs: Array, **parameters: Any) -> Array:
        """Return the exact result: float64 or gmpy2.mpfr for real numbers, int64 or Python's integers for whole ones.

        Total: what is invalid does not raise. Also asked over zero lanes, for the result's shape.
        """
        raise NotImplementedError

    @classmethod
    def fractions(cls, *xs: Array, **parameters: Any) -> Array:
        """Return the exact result over arrays of Fraction, of a rational primitive."""
        return cls.exact(*xs, **parameters)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **parameters: Any) -> Error:
        """Return what an implementation in the arithmetic `c` may err by, from the result and the operands' errors."""
        raise NotImplementedError

    @classmethod
    def native(cls, m: Machine, *xs: Array, **parameters: Any) -> Array:
        """Return what a machine computes, in its own types."""
        return m.rounded(np.asarray(cls.exact(*xs, **parameters)))

    @classmethod
    def terms(cls, shapes: Sequence[tuple[int, ...]], **parameters: Any) -> int:
        """Return how many elements are added up into one."""
        return 1

    @staticmethod
    def underflows(c: Arithmetic, y: Known, xs: Sequence[Known], **parameters: Any) -> Array | None:
        """Return where what is computed on the way may be below the normal range, lanes first; None: nowhere."""
        return None


def lane_axes(axes: Sequence[int]) -> tuple[int, ...]:
    """Return axes of a lane as axes of the array with its leading lane axis."""
    return tuple(a + 1 for a in axes)

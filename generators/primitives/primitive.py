"""The interface of a primitive: the only source for all interpretations of a recorded formula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from ...cases.elements import Array
from .errors import Arithmetic, Error, Known
from .machine import Machine

Work: TypeAlias = Literal["moves", "selects", "rounds"]


class Primitive:
    """One primitive. Arrays have lanes first, where a single lane means all; parameters, including axes, are a lane's.

    `work`: `moves` elements unchanged; `selects`, including comparisons and changes of sign, so that subnormal numbers
    may be read as zero but nothing rounds; or `rounds`. `keeps_zeros`: the result's zeros have the signs of the
    operand's; `frees_zeros`: they have either sign. `rational`: fractions are enough to compute it. `overflows`: a
    whole result may not fit its type. `widens`: `exact` accepts float64 and, with `wide`, returns gmpy2.mpfr.
    `accumulates`: a machine's order and its accumulator make a difference. `elementwise`: it rounds, and each
    element of the result depends on the operands' elements at its index alone. `text` describes it and its charge.
    """

    name: ClassVar[str] = ""
    work: ClassVar[Work] = "rounds"
    keeps_zeros: ClassVar[bool] = False
    frees_zeros: ClassVar[bool] = False
    rational: ClassVar[bool] = False
    overflows: ClassVar[bool] = False
    widens: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False
    elementwise: ClassVar[bool] = False
    text: ClassVar[str] = ""

    @classmethod
    def record(cls, value: Any, *others: Any, **parameters: Any) -> Any:
        """Return the node of `value.<name>(*others, **parameters)`, with operands aligned and numbers as literals.

        `value` and the result are values of a formula (graph.Value), which are made of primitives.
        """
        first, *rest = value.aligned(*others)
        return first.node(cls.name, *rest, **parameters)

    @classmethod
    def type(cls, types: Sequence[str], **parameters: Any) -> str:
        """Return the element type of the result, from the operands' types."""
        return types[0]

    @staticmethod
    def exact(*xs: Array, **parameters: Any) -> Array:
        """Return the exact result: float64 or gmpy2.mpfr for real numbers, int64 or Python's integers for whole ones.

        Total: invalid operands do not raise. Also called with zero lanes, for the result's shape.
        """
        raise NotImplementedError

    @classmethod
    def fractions(cls, *xs: Array, **parameters: Any) -> Array:
        """Return the exact result for arrays of Fraction, if the primitive is rational."""
        return cls.exact(*xs, **parameters)

    @staticmethod
    def bound(c: Arithmetic, y: Known, xs: Sequence[Known], es: Sequence[Error], **parameters: Any) -> Error:
        """Return the error of an implementation in the arithmetic `c`, from the result and the operands' errors."""
        raise NotImplementedError

    @classmethod
    def native(cls, m: Machine, *xs: Array, **parameters: Any) -> Array:
        """Return a machine's result, in its own types."""
        return m.rounded(np.asarray(cls.exact(*xs, **parameters)))

    @classmethod
    def terms(cls, shapes: Sequence[tuple[int, ...]], **parameters: Any) -> int:
        """Return the number of elements that are summed into one."""
        return 1

    @classmethod
    def roundings(cls, c: Arithmetic, shapes: Sequence[tuple[int, ...]], **parameters: Any) -> float:
        """Return the most roundings, in unit roundoffs, on the way to a result beyond float64's range, or from one."""
        return 2.0 + cls.terms(shapes, **parameters)

    @staticmethod
    def underflows(c: Arithmetic, y: Known, xs: Sequence[Known], **parameters: Any) -> Array | None:
        """Return a mask of intermediate results that may be below the normal range, lanes first; None for none."""
        return None


def lane_axes(axes: Sequence[int]) -> tuple[int, ...]:
    """Return a lane's axes as axes of the array, which has a leading lane axis."""
    return tuple(a + 1 for a in axes)

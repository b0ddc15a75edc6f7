"""Element types of tensors: what they hold, how precisely, and how NumPy stores them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Kind: TypeAlias = Literal["float", "signed", "unsigned", "bool"]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format with subnormals (IEEE 754-2019, clause 3.3).

    `precision` counts significant bits with the hidden one; `emin`, `emax` are the exponents of the smallest normal and
    the largest finite number.
    """

    precision: int
    emin: int
    emax: int

    @property
    def roundoff(self) -> float:
        """The unit roundoff u: half the distance from 1 to the next number."""
        return math.ldexp(1.0, -self.precision)

    @property
    def tiny(self) -> float:
        """The smallest positive normal number."""
        return math.ldexp(1.0, self.emin)

    @property
    def eta(self) -> float:
        """The smallest positive subnormal number."""
        return math.ldexp(1.0, self.emin - self.precision + 1)

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return math.ldexp(2.0 - math.ldexp(1.0, 1 - self.precision), self.emax)

    @property
    def overflow(self) -> float:
        """The magnitude from which rounding to nearest gives infinity; infinity for float64, whose is beyond it."""
        if self.emax >= 1023:
            return math.inf
        return math.ldexp(2.0 - self.roundoff, self.emax)


@dataclass(frozen=True, slots=True)
class ElementType:
    """The type of a tensor's elements, by ONNX's name for it in NumPy's spelling (`float32`, `bfloat16`, `uint8`)."""

    name: str
    kind: Kind
    bits: int
    onnx: int
    format: FloatFormat | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype; bfloat16 is that of ml_dtypes."""
        return _dtype(self.name)

    @property
    def is_integer(self) -> bool:
        """Whether the values are integers (bool is not)."""
        return self.kind in ("signed", "unsigned")

    @property
    def smallest(self) -> int:
        """The smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.kind == "signed" else 0

    @property
    def largest(self) -> int:
        """The largest value of an integer type."""
        return (1 << (self.bits - (self.kind == "signed"))) - 1

    @property
    def float_format(self) -> FloatFormat:
        """The format of a floating-point type; TypeError for another."""
        if self.format is None:
            raise TypeError(f"{self.name} is no floating-point type")
        return self.format


@functools.cache
def _dtype(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        import ml_dtypes  # noqa: PLC0415 - only the runs that need it pay for it

        bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return bfloat16
    return np.dtype(name)


@functools.cache
def element_types() -> dict[str, ElementType]:
    """All element types that cases can be made of, by name. The numbers are those of ONNX's TensorProto.DataType."""
    formats = {
        "float16": (FloatFormat(11, -14, 15), 10),
        "bfloat16": (FloatFormat(8, -126, 127), 16),
        "float32": (FloatFormat(24, -126, 127), 1),
        "float64": (FloatFormat(53, -1022, 1023), 11),
    }
    found = [
        ElementType(name, "float", 64 if "64" in name else 32 if "32" in name else 16, number, format_)
        for name, (format_, number) in formats.items()
    ]
    found += [ElementType(f"int{b}", "signed", b, n) for b, n in ((8, 3), (16, 5), (32, 6), (64, 7))]
    found += [ElementType(f"uint{b}", "unsigned", b, n) for b, n in ((8, 2), (16, 4), (32, 12), (64, 13))]
    found.append(ElementType("bool", "bool", 8, 9))
    return {t.name: t for t in found}


def element_type(name: str) -> ElementType:
    """Return the element type called `name`; KeyError if cases cannot be made of it."""
    return element_types()[name]


@functools.cache
def _by_dtype() -> dict[np.dtype[Any], ElementType]:
    return {t.dtype: t for t in element_types().values()}


def type_of(array: Array) -> str:
    """Return the name of an array's element type, or NumPy's name where it is none of ours."""
    known = _by_dtype().get(array.dtype)
    return known.name if known else str(array.dtype)

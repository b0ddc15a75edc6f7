"""Operations that change nothing, beside which oneDNN supports an operation that it does not support alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...cases.elements import content, element_type
from ...cases.program import Attribute, Input, Program


@dataclass(frozen=True, slots=True)
class Companion:
    """An operation that returns its first input as it is; `operand` is its second input, a constant."""

    name: str
    attributes: tuple[Attribute, ...] = ()
    operand: Input | None = None

    def __str__(self) -> str:
        return self.name if self.operand is None else f"{self.name} by ones"


@dataclass(frozen=True, slots=True)
class Company:
    """What computes the first input of an operation, and what goes on with its first output."""

    before: tuple[Companion, ...] = ()
    after: tuple[Companion, ...] = ()

    @property
    def operands(self) -> tuple[Input, ...]:
        """Return the constants, in order."""
        return tuple(companion.operand for companion in (*self.before, *self.after) if companion.operand is not None)

    def __str__(self) -> str:
        sides = (("after", self.before), ("before", self.after))
        return " and ".join(f"{side} {', '.join(map(str, ones))}" for side, ones in sides if ones)


ALONE: Final = Company()


def company(program: Program) -> Company:
    """Return the smallest graph in which some release supports the operation, with companions that change nothing.

    ALONE if there is none: Pow and BiasAddBackward (in no pattern that is enabled), Select (in oneDNN 3.2 in attention
    alone), StaticReshape (3.2 has it beside a transpose that moves elements or a product that loses them).
    Source: src/graph/backend/dnnl/patterns of oneDNN 3.2 and 3.13.
    """
    source = program.inputs[0] if program.inputs else None
    pattern = _COMPANY.get(program.operator.name)
    if pattern is None or source is None or not all(isinstance(d, int) for d in source.dims):
        return ALONE
    return pattern(program, source)


def _before_product(_program: Program, source: Input) -> Company:
    return Company(after=(_product_with_ones(source),))


def _after_product(_program: Program, source: Input) -> Company:
    if source.type != "bfloat16":  # float32 needs no product, and float16 has none either where it aborts
        return ALONE
    return Company(before=(_product_with_ones(source),))


def _between_reshapes(program: Program, source: Input) -> Company:
    rank = len(source.dims)
    order = next((a.value for a in program.attributes if a.name == "order"), ())
    if not rank or not isinstance(order, tuple):
        return ALONE
    axes = [axis % rank for axis in order if isinstance(axis, int)]
    moved = [axis for axis in axes if source.dims[axis] != 1]
    if moved == sorted(moved):
        return ALONE  # oneDNN 3.2 dies of a segmentation fault if such a graph moves nothing
    # a 0 stands for the extent of the input
    same = Companion(
        "StaticReshape", (Attribute("shape", "s64s", (0,) * rank), Attribute("special_zero", "bool", value=True))
    )
    return Company((same,), (same,))


def _product_with_ones(source: Input) -> Companion:
    ones = np.ones(tuple(map(int, source.dims)), element_type(source.type).dtype)
    return Companion("Multiply", operand=Input("ones", source.type, source.dims, content(ones)))


_COMPANY: Final[Mapping[str, Callable[[Program, Input], Company]]] = {
    "Reciprocal": _before_product,  # 3.2 and 3.13
    "Round": _after_product,  # bfloat16 in 3.13
    "StaticTranspose": _between_reshapes,  # 3.2
}

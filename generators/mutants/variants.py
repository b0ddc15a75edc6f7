"""Right implementations that differ in what the standards leave open. None of them may be blamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from ...specs.model import VersionSpec
from ..arithmetic.native import Machine, Order
from .implementation import Implementation
from .invocation import Invocation

MachineFor: TypeAlias = Callable[[Invocation], Machine]

ORDERS: tuple[Order, ...] = ("forward", "reverse", "pairwise")
_SMALL = frozenset({"float16", "bfloat16"})


def usual_machine(i: Invocation) -> Machine:
    """Return the arithmetic of an ordinary implementation: that of each type, at least float32."""
    return _machine(i, wide=True, stored=False)


def _machine(i: Invocation, *, wide: bool, stored: bool, order: Order = "forward") -> Machine:
    """Return an arithmetic for types of 16 bits; wider ones have their own.

    `stored`: results are rounded to the small type after each primitive; `wide`: not so inside sums.
    """
    small = next(iter(sorted(_SMALL & i.types)), "float32")
    return Machine(np.dtype(small if stored else "float32"), np.dtype("float32" if wide else small), order)


def variants_of(version: VersionSpec) -> Iterator[Implementation]:
    """Yield the compliant variants of an operator version: orders, accumulators, and each option of each silence."""
    for order in ORDERS:
        yield _variant(f"{order}-wide", f"adds up {order}, in float32 or wider", True, False, order)
        yield _variant(
            f"{order}-stepwise", f"adds up {order}, and rounds to the type after each step", True, True, order
        )
        yield _variant(f"{order}-narrow", f"adds up {order} in the type itself", False, True, order)
    for silence in version.silences.values():
        for option in silence.options:
            text = f"answers {silence.id} by {option}"
            yield Implementation(f"{silence.id}={option}", "variant", text, choices={silence.id: option})


def _variant(name: str, text: str, wide: bool, stored: bool, order: Order) -> Implementation:
    return Implementation(name, "variant", text, machine=lambda i: _machine(i, wide=wide, stored=stored, order=order))

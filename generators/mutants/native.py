"""Arithmetic as implementations do it: NumPy arrays in a working format, with a chosen order, division and rounding.

The references run over these types as over Bounded and Exact, so that one formula gives the expectation and the
implementations, right ones and wrong ones, that it is put to. There is one lane.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from ...cases.elements import Array, ElementType, element_type, type_of
from ...cases.program import count
from ..arithmetic.formats import nearest
from ..arithmetic.integral import ROUNDINGS
from ..arithmetic.tensors import Axes, lane_axes, lane_stack
from .orders import ORDERS, fused, running_mean

Addends: TypeAlias = Callable[[Array], Array]
Width: TypeAlias = Literal["own", "wide", "widest"]
Division: TypeAlias = Literal["after", "reciprocal", "before", "before-reciprocal", "fused"]

_WIDENED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "own": {},
        "wide": {"float16": "float32", "bfloat16": "float32"},
        "widest": {"float16": "float64", "bfloat16": "float64", "float32": "float64", "float64": "longdouble"},
    }
)


@dataclass(frozen=True)
class Working:
    """How an implementation computes.

    `accumulator`: `own` is the element type, `wide` at least float32, `widest` more than the type has. `order` is a
    name from ORDERS, or `running-means`. `stepwise`: a sum is rounded to the element type before it is divided.
    `flush`: subnormal inputs, or outputs, become zeros. `through`: element types that are computed in another one.

    What follows is for wrong implementations. `addends` replaces what is added up, one row an addend; `count` by how
    many it is divided, from that number and the extents reduced; `mean` all of adding up and dividing; `stretch` how
    tensors are broadcast and stacked; `copied` what becomes of a tensor that is reduced over no axis.
    """

    accumulator: Width = "widest"
    order: str = "sequential"
    division: Division = "after"
    stepwise: bool = False
    flush: frozenset[str] = frozenset()
    rounding: str = "truncate"
    overflow: str = "exact"
    through: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    addends: Addends | None = None
    count: Callable[[int, tuple[int, ...]], int] | None = None
    mean: Addends | None = None
    stretch: Callable[[Sequence[Array]], Array] | None = None
    copied: Addends | None = None

    def lift(self, array: Array) -> Native:
        """Take an input, without a lane axis; it is computed in the type that `through` names."""
        element = element_type(self.through.get(type_of(array), type_of(array)))
        with np.errstate(all="ignore"):
            own = array.astype(element.dtype)
        if element.is_integer:
            narrow = not own.size or max(abs(int(own.max())), abs(int(own.min()))) * own.size < 1 << 62
            return Native(self, element, own.astype(np.int64 if narrow else object)[np.newaxis])
        if "input" in self.flush:
            own = flushed(own, element)
        return Native(self, element, own.astype(self.format(element))[np.newaxis])

    def on(self, type_name: str) -> Hashable:
        """Return what is the same for all workings that treat data of this type alike."""
        element = element_type(self.through.get(type_name, type_name))
        wrong = (self.addends, self.count, self.mean, self.stretch, self.copied)
        if element.format is None:
            return element.name, self.rounding, self.overflow, *wrong
        form = self.format(element)
        stored = self.stepwise and form != element.dtype
        return element.name, form, self.order, self.division, stored, self.flush, *wrong

    def format(self, element: ElementType) -> np.dtype[np.generic]:
        """Return the NumPy type that a floating-point element is computed in."""
        widened = _WIDENED[self.accumulator].get(element.name)
        return np.dtype(widened) if widened else element.dtype

    def lower(self, result: Native, output: ElementType) -> Array:
        """Return a result as the output's type, rounded once."""
        value, form = result.value.reshape(result.shape), output.format
        with np.errstate(all="ignore"):
            if form is None:
                return np.asarray(value if value.dtype.kind in "iuO" else np.nan_to_num(value)).astype(output.dtype)
            if value.dtype == output.dtype:
                lowered = value
            else:  # through integers: NumPy's own cast of float64 to bfloat16 rounds twice
                lowered = nearest(form, np.asarray(value).astype(np.float64)).astype(output.dtype)
        return flushed(lowered, output) if "output" in self.flush else np.asarray(lowered)


class Native:
    """A tensor in an implementation's own arithmetic, with a lane axis of extent 1; a sum remembers its addends."""

    __slots__ = ("_addends", "_extents", "element", "value", "working")

    def __init__(self, working: Working, element: ElementType, value: Array) -> None:
        self.working, self.element, self.value = working, element, value
        self._addends: Array | None = None
        self._extents: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one lane."""
        return self.value.shape[1:]

    def sum(self, axes: Axes, keepdims: bool) -> Native:
        """Add up the elements along `axes`, in the order of the implementation."""
        if not axes:
            copied = self.working.copied
            return self._like(copied(self.value)) if copied else self
        lanes = lane_axes(axes)
        kept = [i for i in range(self.value.ndim) if i not in lanes]
        rest = tuple(self.value.shape[i] for i in kept)
        extents = tuple(self.value.shape[i] for i in lanes)
        addends = self.value.transpose(*lanes, *kept).reshape(count(extents), *rest)
        if not addends.size and extents and count(rest) == 0:  # no element of the output, whatever is added up
            return self._like(np.zeros(self._reduced(lanes, keepdims), self.value.dtype))
        if self.working.addends is not None:
            addends = self.working.addends(addends)
        with np.errstate(all="ignore"):
            total = self._like(self._added(addends))
        total._addends, total._extents = addends, extents
        total.value = total.value.reshape(self._reduced(lanes, keepdims))
        return total

    def _reduced(self, lanes: Axes, keepdims: bool) -> tuple[int, ...]:
        shape = self.value.shape
        return tuple(1 if i in lanes else d for i, d in enumerate(shape) if keepdims or i not in lanes)

    def __truediv__(self, divisor: int) -> Native:
        """Divide by a positive whole number."""
        if self._addends is None:
            return self if divisor == 1 else self._like(self._quotient(self.value, divisor))
        working = self.working
        number = working.count(divisor, self._extents) if working.count else divisor
        with np.errstate(all="ignore"):
            if working.mean is not None:
                mean = working.mean(self._addends)
            elif self.element.is_integer:
                mean = self._quotient(self.value, number)
            else:
                mean = self._mean(self._addends, number)
        return self._like(np.asarray(mean).reshape(self.value.shape))

    def stack(self, others: Sequence[Native]) -> Native:
        """Broadcast this tensor and `others` to one shape and stack them along a new first axis."""
        stacked = self.working.stretch or lane_stack
        values = [t.value for t in (self, *others)]
        if any(v.dtype == object for v in values):
            values = [v.astype(object) for v in values]
        return self._like(stacked(values))

    def _like(self, value: Array) -> Native:
        return Native(self.working, self.element, value)

    def _added(self, addends: Array) -> Array:
        if not self.element.is_integer:
            order = "sequential" if self.working.order == "running-means" else self.working.order
            total = ORDERS[order](addends)
            return self._stored(total) if self.working.stepwise else total
        total = np.asarray(addends.astype(object).sum(axis=0) if self.element.bits == 64 else addends.sum(axis=0))
        low, high = self.element.smallest, self.element.largest
        if self.working.overflow == "wraps":
            return np.asarray((total - low) % (high - low + 1) + low)
        return np.asarray(np.clip(total, low, high)) if self.working.overflow == "saturates" else total

    def _mean(self, addends: Array, number: int) -> Array:
        working = self.working
        if working.order == "running-means":
            return running_mean(addends)
        if working.division == "fused":
            return fused(addends, addends.dtype.type(1) / addends.dtype.type(number))
        if working.division.startswith("before"):
            return self._added(self._quotient(addends, number))
        return self._quotient(self._added(addends), number)

    def _quotient(self, value: Array, number: int) -> Array:
        if self.element.is_integer:
            return ROUNDINGS[self.working.rounding](value, number) if number else np.zeros_like(value)
        form = value.dtype
        wide = form if form.itemsize > 2 else np.dtype(np.float32)  # a 16-bit type does not hold every count
        if self.working.division.endswith("reciprocal"):
            inverse = (wide.type(1) / wide.type(number)).astype(form)
            return np.asarray(value * inverse)
        quotient = np.asarray(value.astype(wide) / wide.type(number)).astype(form)
        return self._stored(quotient) if self.working.stepwise else quotient

    def _stored(self, value: Array) -> Array:
        """Round to the element type, and go on in the working format."""
        return np.asarray(value).astype(self.element.dtype).astype(value.dtype)


def flushed(array: Array, element: ElementType) -> Array:
    """Return an array with its subnormal numbers as zeros of their sign."""
    if element.format is None:
        return array
    with np.errstate(all="ignore"):
        small = np.abs(array.astype(np.float64)) < element.format.tiny
    return np.where(small, np.copysign(array.dtype.type(0), array), array).astype(array.dtype)

"""Backends whose arithmetic is known: formats of inputs, sums and results, flushing, and the order of summation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from fakes.backends import Right

from opconform.cases.elements import Array, FloatFormat, element_type, type_of
from opconform.generators.primitives.errors import format_of, nearest

Round = Callable[[Array], Array]


class Computes(Right):
    """Float means with inputs read in `inputs`, added up in `accumulator`, stored and divided in `storage`.

    Names of formats; None is the data's own type. `flushes` every result of an operation, and inputs.
    """

    inputs: str | None = None
    accumulator: str | None = None
    storage: str | None = None
    flushes = False
    pairwise = False

    def reduce(self, data: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        count = math.prod(data.shape[axis] for axis in axes)
        if not axes or data.dtype.kind in "iu" or not count:
            return super().reduce(data, axes, keepdims)
        moved = np.moveaxis(data, axes, range(len(axes)))
        mean = self.of(list(moved.reshape(count, *moved.shape[len(axes) :])), data.dtype)
        return np.expand_dims(mean, axes) if keepdims else mean

    def mean(self, inputs: list[Array], version: int) -> Array:
        super().mean(inputs, version)
        shape = np.broadcast_shapes(*(x.shape for x in inputs))
        return self.of([np.broadcast_to(x, shape) for x in inputs], inputs[0].dtype)

    def of(self, terms: list[Array], dtype: np.dtype[np.generic]) -> Array:
        own = element_type(type_of(np.empty(0, dtype))).float_format
        read, add, store = (self.rounding(name, own) for name in (self.inputs, self.accumulator, self.storage))
        total = add(self.added([read(t.astype(np.float64)) for t in terms], add))
        return self.rounding(None, own)(store(store(total) / len(terms))).astype(dtype)

    def added(self, terms: list[Array], add: Round) -> Array:
        if len(terms) == 1:
            return terms[0]
        half = len(terms) // 2 if self.pairwise else len(terms) - 1
        return add(self.added(terms[:half], add) + self.added(terms[half:], add))

    def rounding(self, name: str | None, own: FloatFormat) -> Round:
        form = format_of(name) if name else own

        def rounded(values: Array) -> Array:
            found = nearest(form, np.asarray(values))
            return np.where(np.abs(found) < form.tiny, np.copysign(0.0, found), found) if self.flushes else found

        return rounded


class Float16Steps(Computes):
    accumulator, storage = "float16", "float16"


class Bfloat16Steps(Computes):
    accumulator, storage = "bfloat16", "bfloat16"


class Float32Wide(Computes):
    accumulator, storage = "float32", "float32"


class Float32Stored(Computes):
    """Sums in float32, each result stored in the type itself."""

    accumulator = "float32"


class Float32Pairwise(Float32Wide):
    pairwise = True


class Float64Wide(Computes):
    accumulator, storage = "float64", "float64"


class TensorFloat(Computes):
    """Reads inputs as TensorFloat-32, and adds up in float32."""

    inputs, accumulator, storage = "tf32", "float32", "float32"


class Flushing(Computes):
    flushes = True

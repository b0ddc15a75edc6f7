"""An example backend: ONNX ReduceMean and Mean, every version, computed by NumPy in float64.

From this folder: `opconform run python:numpy_backend:NumpyBackend --select 'onnx/ReduceMean-*'`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opconform.cases.elements import Array
from opconform.cases.program import Program
from opconform.cases.runner import Unsupported

FLOATS = {"float16", "float32", "float64"}
TYPES = {"ReduceMean": FLOATS | {"int32", "uint32"}, "Mean": FLOATS}
ATTRIBUTES = {
    ("ReduceMean", 1): {"axes", "keepdims"},
    ("ReduceMean", 11): {"axes", "keepdims"},
    ("ReduceMean", 13): {"axes", "keepdims"},
    ("ReduceMean", 18): {"keepdims", "noop_with_empty_axes"},
    ("Mean", 1): {"consumed_inputs"},
    ("Mean", 6): set(),
    ("Mean", 8): set(),
    ("Mean", 13): set(),
}


class NumpyBackend:
    """NumPy, accumulating in float64 and rounding once at the end."""

    name = "numpy"
    standards = ("onnx",)

    def version(self) -> str:
        """Return NumPy's version."""
        return np.__version__

    def prepare(self, program: Program) -> Prepared:
        """Check what can be checked without inputs. Raises Unsupported, or ValueError for an invalid program."""
        operator = program.operator
        if (operator.name, operator.version) not in ATTRIBUTES:
            raise Unsupported(f"{operator} is not implemented yet", "operator-version")
        check_types(program)
        attributes = {a.name: a.value for a in program.attributes}
        unknown = attributes.keys() - ATTRIBUTES[operator.name, int(operator.version)]
        if unknown:
            raise ValueError(f"{operator} has no attribute {', '.join(sorted(unknown))}")
        return Prepared(program, attributes)


class Prepared:
    """A program that is ready to run."""

    def __init__(self, program: Program, attributes: dict[str, Any]) -> None:
        self.program = program
        self.attributes = attributes
        self.compute: Callable[..., Array] = reduce_mean if program.operator.name == "ReduceMean" else mean

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for the arrays of `program.feeds`."""
        arrays = self.program.operands(inputs)  # omitted inputs are None, constants have their content
        with np.errstate(all="ignore"):
            return [self.compute(int(self.program.operator.version), self.attributes, *arrays)]


def check_types(program: Program) -> None:
    """Raise Unsupported for types that float64 cannot accumulate, TypeError for those that the standard excludes."""
    name, version = program.operator.name, int(program.operator.version)
    admitted = TYPES[name] | ({"bfloat16"} if version >= 13 else set())
    types = [i.type for i in program.inputs if i is not None]
    judged = types[:1] if name == "ReduceMean" else types
    if name == "ReduceMean" and {"int64", "uint64"} & set(judged):
        raise Unsupported("float64 does not hold every 64-bit integer", "type")
    if not judged or not set(judged) <= admitted or len(set(judged)) != 1:
        raise TypeError(f"{program.operator} does not take inputs of {types}")


def reduce_mean(version: int, attributes: dict[str, Any], data: Array, axes: Array | None = None) -> Array:
    """Compute ReduceMean: axes are an attribute before version 18 and an input since."""
    chosen = attributes.get("axes") if version < 18 else axes
    if axes is not None and axes.ndim != 1:
        raise ValueError(f"axes have rank {axes.ndim}, not 1")
    where = tuple(int(axis) for axis in chosen) if chosen is not None else ()
    if not where and not attributes.get("noop_with_empty_axes", 0):
        where = tuple(range(data.ndim))
    if not where:  # a copy keeps the signs of zeros, which adding up would lose
        return data.copy()
    total = np.sum(data.astype(np.float64), axis=where, keepdims=bool(attributes.get("keepdims", 1)))
    return rounded(np.divide(total, math.prod(data.shape[axis] for axis in where)), data.dtype)


def mean(version: int, _attributes: dict[str, Any], *inputs: Array) -> Array:
    """Compute Mean: inputs broadcast since version 8."""
    if version < 8 and len({x.shape for x in inputs}) > 1:
        raise ValueError("inputs of different shapes")
    total = np.zeros(())
    for x in inputs:
        total = total + x.astype(np.float64)
    return rounded(np.divide(total, len(inputs)), inputs[0].dtype)


def rounded(exact: Array, dtype: np.dtype[Any]) -> Array:
    """Return `exact` in the output's type; integers are truncated, which the standard leaves open."""
    return np.asarray(np.trunc(exact) if dtype.kind in "iu" else exact).astype(dtype)

"""Backends for `python:fakes.backends:NAME`: one that is right everywhere, and ones that each go wrong in one way."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opconform.cases.elements import Array, FloatFormat, element_type, type_of
from opconform.cases.onnx_model import onnx_bytes
from opconform.cases.program import Program
from opconform.cases.runner import Unsupported

ONE = (2, 2)
"""The shape of data that some backends stumble over: that of the edge `fraction`, which each integer type has once."""

FLOATS = {"float16", "float32", "float64"}
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


class Right:
    """Every version and type of ReduceMean and Mean, exactly where NumPy can; a base for what goes wrong."""

    name = "right"
    standards: tuple[str, ...] = ("onnx",)

    def version(self) -> str:
        return "1.0"

    def prepare(self, program: Program) -> Prepared:
        check(program)
        return Prepared(self, program)

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        version = int(program.operator.version)
        attributes: dict[str, Any] = {a.name: a.value for a in program.attributes}
        if program.operator.name == "Mean":
            return self.mean([a for a in arrays if a is not None], version)
        (data, axes) = (*arrays, None)[:2]
        assert data is not None
        chosen = attributes.get("axes") if version < 18 else axes
        return self.reduce(data, axes_of(chosen, data.ndim, attributes), bool(attributes.get("keepdims", 1)))

    def reduce(self, data: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        if not axes:
            return data
        count = math.prod(data.shape[axis] for axis in axes)
        total = np.sum(wide(data), axis=axes, keepdims=keepdims)
        return quotient(np.asarray(total), count, data.dtype)

    def mean(self, inputs: list[Array], version: int) -> Array:
        if version < 8 and len({x.shape for x in inputs}) > 1:
            raise ValueError("inputs of different shapes")
        total = wide(inputs[0])
        for x in inputs[1:]:
            total = total + wide(x)
        return quotient(np.asarray(total), len(inputs), inputs[0].dtype)


class Prepared:
    def __init__(self, runner: Right, program: Program) -> None:
        self.runner = runner
        self.program = program

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        arrays = self.program.operands(inputs)
        with np.errstate(all="ignore"):
            return [self.runner.compute(self.program, arrays)]


def check(program: Program) -> None:
    """Raise ValueError for what the standard excludes."""
    name, version = program.operator.name, int(program.operator.version)
    unknown = {a.name for a in program.attributes} - ATTRIBUTES[name, version]
    integers = {"int32", "int64", "uint32", "uint64"} if name == "ReduceMean" else set()
    admitted = FLOATS | integers | ({"bfloat16"} if version >= 13 else set())
    types = [i.type for i in program.inputs if i is not None][: 1 if name == "ReduceMean" else None]
    if unknown or not types or not set(types) <= admitted or len(set(types)) > 1:
        raise ValueError(f"{program.operator} does not take {sorted(unknown)} {types}")


def axes_of(chosen: Any, rank: int, attributes: dict[str, Any]) -> tuple[int, ...]:
    axes = [] if chosen is None else np.asarray(chosen).reshape(-1).tolist()
    if not axes and not attributes.get("noop_with_empty_axes", 0):
        return tuple(range(rank))
    if any(not -rank <= axis < rank for axis in axes):
        raise ValueError(f"axes {axes} of a tensor of rank {rank}")
    return tuple(sorted({axis % rank for axis in axes}))


def wide(array: Array) -> Array:
    return array.astype(object if array.dtype.kind in "iu" else np.float64)


def quotient(total: Array, count: int, dtype: np.dtype[Any]) -> Array:
    if dtype.kind not in "iu":
        return np.asarray(np.divide(total, count)).astype(dtype)
    if count == 0:
        return np.zeros(total.shape, dtype)
    whole = [abs(int(t)) // count * (1 if t >= 0 else -1) for t in total.reshape(-1)]
    return np.array(whole, object).astype(dtype).reshape(total.shape)


# Processes


class Crashes(Right):
    """SIGSEGV on one program."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if stumbles(arrays):
            os.write(2, b"about to fall\n")
            ctypes.string_at(0)
        return super().compute(program, arrays)


class Hangs(Right):
    """Native code that does not come back, on one program."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if stumbles(arrays):
            ctypes.PyDLL(None).sleep(3600)
        return super().compute(program, arrays)


class CrashesInPrepare(Right):
    def prepare(self, program: Program) -> Prepared:
        if any(i is not None and i.dims == ONE for i in program.inputs):
            os.abort()
        return super().prepare(program)


class CrashesOnValidSibling(Right):
    """Refuses an axis beyond the rank, as is welcome, and dies on the valid case beside it: the last axis."""

    def prepare(self, program: Program) -> Prepared:
        if ("axes", (2,)) in {(a.name, a.value) for a in program.attributes}:
            os.abort()
        return super().prepare(program)


class Slow(Right):
    """Takes a third of a second for each case."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        time.sleep(0.3)
        return super().compute(program, arrays)


class PrintsControlCharacters(Right):
    """Fails with an escape sequence, a null and a line separator in its words, and prints some."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        print("\x1b[2J\x07printed\x00", flush=True)
        if stumbles(arrays):
            raise RuntimeError("\x1b[31mred\x1b[0m \x00 \x07 \u2028 \ud800 <&]]>")
        return super().compute(program, arrays)


class LeaksState(Right):
    """Right at the first run of a program; every later one adds what the first left behind."""

    def prepare(self, program: Program) -> Prepared:
        check(program)
        return Leaking(self, program)


class Leaking(Prepared):
    runs = 0

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        self.runs += 1
        (output,) = super().run(inputs)
        return [output if self.runs == 1 else output + output.dtype.type(1)]


class LeaksIntoOneBuffer(LeaksState):
    """Leaks state, and has one piece of memory for all its answers."""

    def __init__(self) -> None:
        self.buffer = bytearray(1 << 16)

    def prepare(self, program: Program) -> Prepared:
        check(program)
        return LeakingIntoOneBuffer(self, program)


class LeakingIntoOneBuffer(Leaking):
    def run(self, inputs: Sequence[Array]) -> list[Array]:
        (output,) = super().run(inputs)
        assert isinstance(self.runner, LeaksIntoOneBuffer)
        view = np.frombuffer(self.runner.buffer, output.dtype, output.size).reshape(output.shape)
        view[...] = output
        return [view]


# Arithmetic


def flushed(array: Array) -> Array:
    """Read subnormal numbers as zeros of their sign."""
    if array.dtype.kind in "iu":
        return array
    name = "bfloat16" if array.dtype == element_type("bfloat16").dtype else array.dtype.name
    small = np.abs(array.astype(np.float64)) < element_type(name).float_format.tiny
    return np.where(small, np.copysign(array.dtype.type(0), array), array).astype(array.dtype)


class Flushes(Right):
    """Flushes subnormal inputs, intermediate results and outputs; divides before it adds up, in the type itself."""

    def reduce(self, data: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        if not axes or data.dtype.kind in "iu":
            return super().reduce(data, axes, keepdims)
        count = math.prod(data.shape[axis] for axis in axes)
        if 0 in data.shape:
            return super().reduce(data, axes, keepdims)
        moved = np.moveaxis(data, axes, range(len(axes)))
        total = self.shares(list(moved.reshape(count, *moved.shape[len(axes) :])), count, data.dtype)
        return np.expand_dims(total, axes) if keepdims else total

    def mean(self, inputs: list[Array], version: int) -> Array:
        super().mean(inputs, version)
        shapes = np.broadcast_shapes(*(x.shape for x in inputs))
        return self.shares([np.broadcast_to(x, shapes) for x in inputs], len(inputs), inputs[0].dtype)

    def shares(self, parts: list[Array], count: int, dtype: np.dtype[Any]) -> Array:
        total = None
        for part in parts:
            share = flushed((flushed(part) / dtype.type(count)).astype(dtype))
            total = share if total is None else flushed((total + share).astype(dtype))
        assert total is not None
        return total


class Narrow(Right):
    """Adds up 16-bit numbers in their own type, one after the other."""

    def reduce(self, data: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        if not axes or data.dtype.kind in "iu" or 0 in data.shape:
            return super().reduce(data, axes, keepdims)
        count = math.prod(data.shape[axis] for axis in axes)
        total = data
        for axis in axes:
            total = np.take(np.add.accumulate(total, axis=axis, dtype=data.dtype), [-1], axis=axis)
        total = total if keepdims else np.squeeze(total, axes)
        return np.asarray(total / data.dtype.type(count)).astype(data.dtype)


class DoubleAsFloat(Right):
    """Computes float64 in float32."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        lower = [a.astype(np.float32) if a is not None and a.dtype == np.float64 else a for a in arrays]
        output = super().compute(program, lower)
        return output.astype(np.float64) if arrays[0] is not None and arrays[0].dtype == np.float64 else output


# Wrong answers


class WrongOnUint32(Right):
    """Two more than right, where the data are uint32: more than any rounding."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        output = super().compute(program, arrays)
        return output + output.dtype.type(2) if output.dtype == np.uint32 else output


class WrongShape(Right):
    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        return super().compute(program, arrays)[np.newaxis]


class WrongType(Right):
    """Answers everything in float64, as a careless NumPy backend does."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        return super().compute(program, arrays).astype(np.float64)


class AnswersInvalid(Right):
    """Checks nothing, and answers zeros where it cannot compute."""

    def prepare(self, program: Program) -> Prepared:
        return Answering(self, program)


class Answering(Prepared):
    def run(self, inputs: Sequence[Array]) -> list[Array]:
        try:
            check(self.program)
            return super().run(inputs)
        except ValueError:
            return [np.zeros((), np.float32)]


# Refusals


class RefusesEverything(Right):
    """Implements nothing, and says so."""

    def prepare(self, program: Program) -> Prepared:
        raise Unsupported(f"{program.operator} is not implemented", "operator-version")


class RefusesTypes(Right):
    """Has no 16-bit types."""

    def prepare(self, program: Program) -> Prepared:
        check(program)
        for i in program.inputs:
            if i is not None and i.type in ("float16", "bfloat16"):
                raise Unsupported(f"no kernel for {i.type}", "type")
        return super().prepare(program)


class Raises(Right):
    """Refuses one valid program with an error of its own, and runs out of memory at another."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if stumbles(arrays):
            raise RuntimeError("kernel launch failed")
        if arrays[0] is not None and arrays[0].shape == (4,):
            raise MemoryError("cannot allocate")
        return super().compute(program, arrays)


# No runners


class NoVersion:
    name = "half"
    standards = ("onnx",)

    def prepare(self, program: Program) -> Prepared:
        return Prepared(Right(), program)


class FailsToStart(Right):
    def __init__(self) -> None:
        raise OSError("no device found")


class OtherStandard(Right):
    standards = ("openvino",)


class LosesItsLibrary(Right):
    """Asks our side for what it cannot do: our own error, from our own code, which no backend is charged with."""

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        if stumbles(arrays):
            onnx_bytes(replace(program, operator=replace(program.operator, standard="openvino")))
        return super().compute(program, arrays)


class ReturnsNothing(Right):
    """Returns what is no sequence of arrays."""

    def prepare(self, program: Program) -> Prepared:
        return ReturningNothing(self, program)


class ReturningNothing(Prepared):
    def run(self, inputs: Sequence[Array]) -> list[Array]:
        return None  # type: ignore[return-value]


def stumbles(arrays: list[Array | None]) -> bool:
    return arrays[0] is not None and arrays[0].shape == ONE


# Runs that are killed, and go on


class Unhurried(WrongOnUint32):
    """Takes a few milliseconds for each case, and is of the version that the environment names."""

    def version(self) -> str:
        return os.environ.get("FAKE_VERSION", "1.0")

    def compute(self, program: Program, arrays: list[Array | None]) -> Array:
        time.sleep(0.015)
        return super().compute(program, arrays)


# Arithmetic that is known: formats of inputs, sums and results, flushing, and the order of summation


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
        from opconform.generators.primitives.errors import format_of, nearest  # few of the hosts need it

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


# Nodes of a cluster: one that needs a device, and one that takes the node down with it


WORKER = "FAKE_DASK_WORKER"
"""The environment variable in which a worker of the tests tells its process id."""

STRUCK = "struck"
"""The file, in the current folder of the workers, with a line for each time that a node might have been killed."""


class NeedsDevice(Right):
    name = "needs-device"

    def __init__(self) -> None:
        if "FAKE_DEVICE" not in os.environ:
            raise OSError("no device found")


class KillsNode(Right):
    name = "kills-node"

    def reduce(self, data: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        if data.shape == ONE and self.strikes():
            os.kill(int(os.environ[WORKER]), signal.SIGKILL)
            time.sleep(60)
        return super().reduce(data, axes, keepdims)

    def strikes(self) -> bool:
        return True


class KillsNodeOnce(KillsNode):
    """As a power cut does."""

    def strikes(self) -> bool:
        with open(STRUCK, "a") as file:  # noqa: PTH123 - its position is what is asked for
            file.write("once\n")
            return file.tell() == len("once\n")


class AVersionEach(Right):
    """What comes of installing backends by hand."""

    def version(self) -> str:
        return os.environ[WORKER]

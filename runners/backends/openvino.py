"""OpenVINO in three forms: its operations on the CPU plugin or the core's own kernels, and ONNX by its front end."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, canonical, from_content, type_of
from ...cases.onnx_model import onnx_bytes
from ...cases.program import UNRANKED, Input, Output, Program, is_tensor
from ...cases.runner import Executable, NotInstalled, Unsupported, Words
from ..clients.python_client import OPENVINO_SETTINGS, OPENVINO_TYPES, places_of
from .base import Refusing, Runs
from .openvino_nodes import NodeMaker, is_whole, memory_of, tensor_of

WORDS = (
    # What it does not implement.
    Words(r"Couldn't create operation|Unsupported opset version requested", "operator-version", plain=True),
    Words(r"No conversion rule found for operations", "operator-version", plain=True),
    Words(r"does not support the following ONNX operations", "operator-version", plain=True),
    Words(r"doesn't support .* operation with dynamic rank", "dynamic", plain=True),
    Words(r"Unsupported input type|Unsupported data type|Bad format for f8 conversion type", "type", plain=True),
    Words(r"unsupported element type", "type", plain=True),
    Words(r"unsupported reorder case|unsupported src_prc|unsupported precision", "type", plain=True),
    Words(r"support demanded output precision", "type", plain=True),
    Words(r"does not support \S+ for use with oneDNN|cpu_convert can't convert from", "type", plain=True),
    Words(r"dtype is supported only for ndims", "type", plain=True),
    Words(r"mode is not supported|attribute of \S+ op is not supported", "attribute", plain=True),
    Words(r"Unsupported padding mode", "attribute", plain=True),
    Words(r"Non-constant \S+ input is not supported", "dynamic", plain=True),
    Words(r"Not Implemented:", "other", plain=True),
    # The whole message if a node's evaluate() returns false: there is no kernel for these types.
    Words(r"Evaluation failed on", "type", plain=True),
    # Refusals of valid or invalid programs.
    Words(r"bad_alloc", "memory"),
    Words(r"Element type of .* must be|do not have the same element type|Failed to set tensor .* precision", "type"),
    Words(r"Invalid attribute type|unknown attribute", "attribute"),
    Words(r"shape needs to be known\(static\)", "dynamic"),
    Words(r"must be a scalar or 1D input", "rank"),
    Words(r"Argument shapes are inconsistent|incorrect number of input/output dimensions", "shape"),
    Words(r"Can't set the input tensor .* incompatible|Eltwise shape infer input shapes", "shape"),
    Words(r"conflicts with the reshape pattern", "shape"),
    Words(r"out of the tensor rank range|index '\d+' out of range", "invalid"),
)
"""The messages of OpenVINO 2023.1 to 2026.4."""

Run: TypeAlias = tuple[Program, Sequence[Array]]
_AnswersOfRows: TypeAlias = Sequence[Sequence[Array]]
"""The outputs of a program for each of its rows; none if it must run alone."""

_DEVICE = "CPU"
_OLDEST_YEAR = 2024
_INSTALL = "pip install openvino"
_MOST_TOGETHER = 32
"""Number of programs in one model: more are hardly faster."""
_QUANTIZES = "FakeQuantize"
"""With such a node, the plugin runs its passes for quantized models on all nodes."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """A program with the inputs of each of its runs."""

    program: Program
    inputs: Sequence[Sequence[Array]]


class _OpenVino(Refusing):
    """What the three backends share; by default, OpenVINO operations on the CPU plugin."""

    name = ""
    standards: tuple[str, ...] = ("openvino",)
    words = WORDS
    without_device = ""
    """What does the work, if it is not a device's plugin."""

    def __init__(self) -> None:
        self.library = _library()
        self._core = self.library.Core()
        self._nodes = NodeMaker(self.library)

    def version(self) -> str:
        """Return OpenVINO's version, without its build."""
        return _short(self.library.get_version())

    def describe(self) -> dict[str, str]:
        """Return the device, the plugin, its settings, and the capabilities that the plugin reports, or the build."""
        if self.without_device:
            return {"device": f"none: {self.without_device}", "build": str(self.library.get_version())}
        plugin = self._core.get_versions(_DEVICE)[_DEVICE]
        capabilities = self._core.get_property(_DEVICE, "OPTIMIZATION_CAPABILITIES")
        return {
            "device": f"{_DEVICE}: {str(self._core.get_property(_DEVICE, 'FULL_DEVICE_NAME')).strip()}",
            "plugin": f"{plugin.description} {plugin.build_number}",
            "capabilities": " ".join(str(c) for c in capabilities),
            "precision_hint": OPENVINO_SETTINGS["INFERENCE_PRECISION_HINT"],
            "threads": OPENVINO_SETTINGS["INFERENCE_NUM_THREADS"],
        }

    def prepare(self, program: Program, /) -> Executable:
        """Make and compile the model of `program`. Raises Unsupported, or OpenVINO's own error."""
        _check_types(program)
        with self.refusing():
            model = self._model(program)
            compiled = self._core.compile_model(model, _DEVICE, OPENVINO_SETTINGS)
        return _Request(self, compiled, program)

    def _model(self, program: Program) -> Any:
        return self.library.Model(*self._nodes.parts(program), program.operator.name)


class OpenVino(_OpenVino):
    """OpenVINO operations on the CPU plugin, which computes in float32."""

    name = "openvino"

    def run_together(self, runs: Sequence[Run], /) -> list[Sequence[Array] | None]:
        """Return the answers of programs that run as one model; None for a program that must run alone."""
        numbers: dict[str, list[int]] = {}
        for number, (program, _) in enumerate(runs):
            numbers.setdefault(program.key, []).append(number)
        rows = [_Rows(runs[own[0]][0], [runs[number][1] for number in own]) for own in numbers.values()]
        able = [several for several in rows if self._may_share(several.program)]
        able.sort(key=lambda several: _is_dynamic(several.program))  # most that a compiler refuses are dynamic
        answers: list[Sequence[Array] | None] = [None] * len(runs)
        for part in (able[at : at + _MOST_TOGETHER] for at in range(0, len(able), _MOST_TOGETHER)):
            for several, answered in zip(part, self._split(part), strict=True):
                for number, answer in zip(numbers[several.program.key], answered, strict=False):
                    answers[number] = answer
        return answers

    def _may_share(self, program: Program) -> bool:
        """Return whether a program's nodes can be made, and leave other nodes of their model alone."""
        types = [given.type for given in program.given] + [output.type for output in program.answers]
        if any(given.dims == UNRANKED for given in program.given):
            return False  # the plugin refuses the model, with an error that names no node
        if program.operator.name == _QUANTIZES or not all(is_tensor(t) and is_whole(t) for t in types):
            return False  # StridedSlice of strings, or of elements smaller than a byte, writes beyond its memory
        try:
            _check_types(program)
            self._nodes.parts(program)
        except Exception:
            return False
        return True

    def _split(self, programs: Sequence[_Rows]) -> list[_AnswersOfRows]:
        """Return the answers of one model; if it is refused or raises, the culprit has none.

        If the error names no node, each half is tried.
        """
        if len(programs) < 2:
            return [()] * len(programs)
        try:
            return self._together(programs)
        except Exception as error:
            names = (rf"\b{number}/{rows.program.operator.name}\b" for number, rows in enumerate(programs))
            culprit = next((number for number, name in enumerate(names) if re.search(name, str(error))), None)
            if culprit is not None:
                answers = self._split([*programs[:culprit], *programs[culprit + 1 :]])
                return [*answers[:culprit], (), *answers[culprit:]]
            middle = len(programs) // 2
            return [*self._split(programs[:middle]), *self._split(programs[middle:])]

    def _together(self, programs: Sequence[_Rows]) -> list[_AnswersOfRows]:
        """Return the answers of one model, which runs once for each row; a program with fewer repeats its last."""
        made = [self._nodes.parts(rows.program, f"{number}/") for number, rows in enumerate(programs)]
        outputs = [port for ports, _ in made for port in ports]
        model = self.library.Model(outputs, [node for _, fed in made for node in fed], "together")
        request = self._core.compile_model(model, _DEVICE, OPENVINO_SETTINGS).create_infer_request()
        answers: list[list[Sequence[Array]]] = [[] for _ in programs]
        for row in range(max(len(rows.inputs) for rows in programs)):
            fed = itertools.chain.from_iterable(rows.inputs[min(row, len(rows.inputs) - 1)] for rows in programs)
            for index, x in enumerate(fed):
                request.set_input_tensor(index, tensor_of(self.library, x))
            _run(request)
            read = iter([_read(request.get_output_tensor(index)) for index in range(len(outputs))])
            for answered, (ports, _) in zip(answers, made, strict=True):
                answered.append(list(itertools.islice(read, len(ports))))
        return [answered[: len(rows.inputs)] for answered, rows in zip(answers, programs, strict=True)]


class OpenVinoEvaluate(_OpenVino):
    """OpenVINO operations on the core's reference kernels, without a plugin."""

    name = "openvino-evaluate"
    without_device = "the core's reference kernels"

    def prepare(self, program: Program, /) -> Executable:
        """Make the model of `program`. Raises Unsupported, or OpenVINO's own error."""
        _check_types(program)
        library = self.library
        vector: Any = getattr(library, "TensorVector", list)  # old versions take lists
        with self.refusing():
            model = self._model(program)
            types = [port.get_element_type() for port in model.outputs]

        def run(inputs: Sequence[Array]) -> Sequence[Array]:
            outputs = vector([library.Tensor(type_, library.Shape([0])) for type_ in types])  # the core sets shapes
            given = vector([tensor_of(library, x) for x in inputs])
            with self.refusing():
                if not model.evaluate(outputs, given):
                    raise Unsupported("Model.evaluate returned False")
            return [_read(tensor) for tensor in outputs]

        return Runs(run)


class OpenVinoOnnx(_OpenVino):
    """ONNX programs through OpenVINO's ONNX front end, on the CPU plugin."""

    name = "openvino-onnx"
    standards: tuple[str, ...] = ("onnx",)

    def _model(self, program: Program) -> Any:
        return self._core.read_model(onnx_bytes(program))


class _Request:
    """A compiled model with the one request that runs it; input memory is reused while shapes stay the same."""

    def __init__(self, runner: _OpenVino, compiled: Any, program: Program) -> None:
        self._runner = runner
        self._request = compiled.create_infer_request()
        feeds = [(feed.name, OPENVINO_TYPES.get(feed.type), len(feed.dims)) for feed in program.feeds]
        self._places = places_of(compiled.inputs, feeds)
        self._outputs = range(len(compiled.outputs))
        self._memory: dict[int, Array] = {}

    def run(self, inputs: Sequence[Array], /) -> Sequence[Array]:
        """Return copies of the outputs. Raises Unsupported, or OpenVINO's own error."""
        for index, x in zip(self._places, inputs, strict=True):
            if index is not None:
                self._put(index, x)
        with self._runner.refusing():
            _run(self._request)
        return [_read(self._request.get_output_tensor(index)) for index in self._outputs]

    def _put(self, index: int, x: Array) -> None:
        memory = self._memory.get(index)
        if memory is not None and (memory.shape, memory.dtype) == (x.shape, x.dtype):
            memory[...] = x
            return
        tensor = tensor_of(self._runner.library, x)
        self._request.set_input_tensor(index, tensor)
        if is_whole(type_of(x)):
            self._memory[index] = memory_of(tensor)


def _run(request: Any) -> None:
    # with one thread, infer() loses errors of nodes (seen in 2026.4), and returns garbage
    request.start_async()
    request.wait()


def _is_dynamic(program: Program) -> bool:
    return any(isinstance(size, str) for feed in program.feeds for size in feed.dims)


def _check_types(program: Program) -> None:
    """Raise Unsupported for types that inputs and outputs of the library's models cannot have."""
    ports: tuple[Input | Output, ...] = (*program.feeds, *program.answers)
    for port in ports:
        if not is_tensor(port.type):
            raise Unsupported(f"OpenVINO has no inputs and outputs of type {port.type}", "type")


def _read(tensor: Any) -> Array:
    """Return a copy of a tensor; if its type is not one of ours, the array that the library shows."""
    library_name = tensor.get_element_type().get_type_name()
    name = next((ours for ours, theirs in OPENVINO_TYPES.items() if theirs == library_name), None)
    if name is None or is_whole(name):
        return np.array(memory_of(tensor))
    if name == "string":
        return canonical(tensor.bytes_data) if tensor.get_size() else np.empty(tuple(tensor.get_shape()), object)
    return from_content(name, tuple(tensor.get_shape()), tensor.data.tobytes())


def _library() -> Any:
    from .openvino_package import PACKAGE  # noqa: PLC0415 - raises NotInstalled

    version = str(PACKAGE.get_version()) if hasattr(PACKAGE, "get_version") else "before 2023"
    year = re.match(r"\d+", version)
    if not hasattr(PACKAGE, "Core") or (year and int(year[0]) < _OLDEST_YEAR):
        raise NotInstalled(f"openvino {_short(version)} is too old, {_OLDEST_YEAR}.0 is the oldest: {_INSTALL}")
    return PACKAGE


def _short(version: object) -> str:
    return str(version).partition("-")[0]

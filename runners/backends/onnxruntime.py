"""ONNX programs on onnxruntime's CPU provider, with and without its graph optimisations."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...cases.elements import Array, content, element_type, element_types, from_content, type_of
from ...cases.onnx_model import feeds, onnx_bytes, output_names
from ...cases.program import Program, element_names, is_tensor
from ...cases.runner import Executable, Reason, Unsupported, Words, meaning
from ..clients.python_client import NO_KERNEL, missing_kernel, quiet_options, runtime_facts
from .base import Refusing, imported

WORDS = (
    # Versions that the library does not know, or no longer supports.
    Words(r"Unsupported model IR version", "operator-version", plain=True),
    Words(r"Current official support for domain \S+ is till opset", "operator-version", plain=True),
    Words(r"No Op registered for", "operator-version", plain=True),
    Words(r"is not a registered function/op", "operator-version", plain=True),
    Words(r"MLDataType for: \S+ is not currently registered|Invalid tensor data type", "type", plain=True),
    Words(r"data type is not supported with|Unsupported value attribute datatype", "type", plain=True),
    Words(r"Numpy_type \d+ can't be converted to MLDataType", "type", plain=True),
    # Maps that its Python cannot make.
    Words(r"it cannot be linked to C type|Actual: \(\(map\(|Size of dictionary is empty", "type", plain=True),
    Words(r"mode only supports:", "shape", plain=True),
    Words(r"Unsupported pooling size|Unsupported kernel dimension", "rank", plain=True),
    Words(r"Dilation not supported for", "attribute", plain=True),
    Words(r"assigned to the default CPU EP, but fallback", "operator-version", plain=True),
    Words(r"operator does not support \S+ yet", "type", plain=True),
    Words(r"are not supported. If you need support create a github issue", "attribute", plain=True),
    # Refusals of valid or invalid programs.
    Words(r"node in the model has the following type", "type"),
    Words(r"Failed to allocate memory|bad_alloc", "memory"),
    Words(r"Type Error:|Unexpected input data type", "type"),
    Words(r"Unrecognized attribute|Mismatched attribute type|Required attribute", "attribute"),
    Words(r"Invalid rank for input|must be a vector tensor", "rank"),
    Words(r"Got invalid dimensions|Incompatible dimensions|must have the same shape|to broadcast an axis", "shape"),
    Words(r"cannot be reshaped", "shape"),
    Words(r"axis must be in|is not in valid range|has input size \d+ not in range", "invalid"),
    Words(r"INVALID_GRAPH|INVALID_ARGUMENT|ShapeInferenceError", "invalid"),
)
"""The messages of onnxruntime 1.15 to 1.31; for "NOT_IMPLEMENTED", the list of kernels gives the reason."""


def words_of(message: str) -> Words | None:
    """Return the meaning of an error's message; None if it is not onnxruntime's."""
    if not message.startswith("[ONNXRuntimeError]") and "MLDataType" not in message:
        return None
    if NO_KERNEL.search(message):
        return Words(NO_KERNEL.pattern, "other", plain=True)
    return meaning(WORDS, message) or Words("", "other", plain="NOT_IMPLEMENTED" in message)


class OnnxRuntime(Refusing):
    """onnxruntime's CPU provider with all graph optimisations: one thread, no console output."""

    name = "onnxruntime"
    standards: tuple[str, ...] = ("onnx",)
    optimisations = "ORT_ENABLE_ALL"
    provider = "CPUExecutionProvider"
    words = WORDS

    def __init__(self) -> None:
        self.library = imported("onnxruntime", "onnxruntime")
        self._native = self.library.capi.onnxruntime_pybind11_state
        self.unimplemented = (self._native.NotImplemented,)
        # run options for all runs: making them costs as much as a small run
        self.options, self.run_options = quiet_options(self.library, self.optimisations)
        self.provider_options: dict[str, str] = {}

    def version(self) -> str:
        """Return onnxruntime's version."""
        return str(self.library.__version__)

    def describe(self) -> dict[str, str]:
        """Return how sessions are made, and how the library was built."""
        return runtime_facts(self.library, self.provider, self.optimisations)

    def prepare(self, program: Program, /) -> Executable:
        """Make a session for `program`. Raises Unsupported, or onnxruntime's own error."""
        model = onnx_bytes(program)
        with self.refusing():
            session = self.session(model)
        return _Session(self, session, program)

    def session(self, model: bytes) -> Any:
        """Return a session, without the library's own fallback, which would print, and hide the first error."""
        provider = (self.provider, self.provider_options)
        return self.library.InferenceSession(model, self.options, providers=[provider], enable_fallback=0)

    def reason(self, error: BaseException, /) -> Reason:
        """Return why onnxruntime refused, as far as its message and its list of kernels show."""
        return missing_kernel(self._native, self.provider, str(error)) or super().reason(error)

    def make_ort_value(self, array: Array) -> Any:
        """Return a tensor as an OrtValue; Unsupported if the library takes none of its type from Python."""
        name, ort_value = type_of(array), self.library.OrtValue
        if _is_numpy(name) and name != "string":
            return ort_value.ortvalue_from_numpy(array if array.flags.c_contiguous else array.copy())
        # one release added both functions, and the type numbers below
        if name == "string" or not hasattr(ort_value, "ortvalue_from_numpy_with_onnx_type"):
            raise self.no_way(name)
        value, held = ort_value.ortvalue_from_shape_and_type(array.shape, element_type(name).onnx), content(array)
        if held:
            ctypes.memmove(value.data_ptr(), held, len(held))
        return value

    def no_way(self, name: str) -> Unsupported:
        """Return the refusal of a value that the library only takes from C++."""
        return Unsupported(f"onnxruntime {self.version()} takes no {name} from Python with such types", "type")


class OnnxRuntimeNoOpt(OnnxRuntime):
    """onnxruntime's CPU provider without graph optimisations."""

    name = "onnxruntime-noopt"
    optimisations = "ORT_DISABLE_ALL"


class _Session:
    """A session; tensors of types that NumPy lacks are passed as onnxruntime's own values."""

    def __init__(self, runner: OnnxRuntime, session: Any, program: Program) -> None:
        self._runner = runner
        self._session = session
        self._program = program
        self._outputs = output_names(program)
        self._are_fed = _are_numpy(feed.type for feed in program.feeds)
        self._are_read = _are_numpy(answer.type for answer in program.answers)
        types = [i.type for i in program.feeds] + [o.type for o in program.answers]
        self._odd = next((type_ for type_ in types if not is_tensor(type_) and not _are_numpy([type_])), None)

    def run(self, inputs: Sequence[Array], /) -> Sequence[Any]:
        """Return the outputs. Raises Unsupported, or onnxruntime's own error."""
        if self._odd:
            raise self._runner.no_way(self._odd)
        given = feeds(self._program, inputs)
        if not self._are_fed or not self._are_read:
            given = {name: self._value(array) for name, array in given.items()}
        with self._runner.refusing():
            if self._are_read:
                outputs: Sequence[Any] = self._session.run(self._outputs, given, self._runner.run_options)
                return outputs
            values = self._session.run_with_ort_values(self._outputs, given, self._runner.run_options)
        return [_array(value) for value in values]

    def _value(self, given: Any) -> Any:
        """Return an input as the run needs it: if an output's type is not in NumPy, all are the library's values."""
        if isinstance(given, np.ndarray) and not (self._are_read and _is_numpy(type_of(given))):
            return self._runner.make_ort_value(given)
        if not self._are_read:
            raise self._runner.no_way("sequences, optionals and maps")
        return given


def _are_numpy(types: Iterable[str]) -> bool:
    return all(_is_numpy(name) for type_ in types for name in element_names(type_))


@functools.cache
def _is_numpy(name: str) -> bool:
    """Return whether NumPy has the element type itself, and so the library's Python."""
    return name not in element_types() or element_type(name).dtype.isbuiltin == 1


def _array(value: Any) -> Array:
    """Return an output, which the library returns in CPU memory."""
    name = str(value.data_type()).removeprefix("tensor(").removesuffix(")")
    if _is_numpy(name):
        plain: Array = value.numpy()
        return plain
    # OrtValue.numpy() and its DLPack exporter refuse these types, so the bytes are copied from their address.
    shape = tuple(value.shape())
    size = element_type(name).size(math.prod(shape))
    return from_content(name, shape, ctypes.string_at(value.data_ptr(), size) if size else b"")

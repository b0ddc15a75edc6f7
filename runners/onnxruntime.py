"""ONNX programs on onnxruntime's CPU provider, with and without its graph optimisations."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..cases.elements import Array, element_type
from ..cases.model import Input, OperatorVersion, Output, Program
from ..cases.onnx_model import feed_names, onnx_bytes, output_names
from ..cases.runner import Executable, NotInstalled, Reason, Unsupported
from .words import Words, meaning

WORDS = (
    # Versions that the library does not know, or no longer carries.
    Words(r"Unsupported model IR version", "operator-version", plain=True),
    Words(r"Current official support for domain \S+ is till opset", "operator-version", plain=True),
    Words(r"No Op registered for", "operator-version", plain=True),
    Words(r"is not a registered function/op", "operator-version", plain=True),
    # Refusals of a valid or an invalid program.
    Words(r"Failed to allocate memory|bad_alloc", "memory"),
    Words(r"Type Error:|Unexpected input data type", "type"),
    Words(r"Unrecognized attribute|Mismatched attribute type|Required attribute", "attribute"),
    Words(r"Invalid rank for input|must be a vector tensor", "rank"),
    Words(r"Got invalid dimensions|Incompatible dimensions|must have the same shape|to broadcast an axis", "shape"),
    Words(r"cannot be reshaped", "shape"),
    Words(r"axis must be in|is not in valid range|has input size \d+ not in range", "invalid"),
    Words(r"INVALID_GRAPH|INVALID_ARGUMENT|ShapeInferenceError", "invalid"),
)
"""The words of onnxruntime 1.15 to 1.31; "NOT_IMPLEMENTED" is told apart by asking for the operator's kernels."""

_NO_KERNEL = re.compile(r"Could not find an implementation for (\S+?)\((\d+)\)")
_FATAL_ONLY = 4
_PROVIDER = "CPUExecutionProvider"


class OnnxRuntime:
    """onnxruntime's CPU provider with all graph optimisations: one thread, nothing on the console."""

    name = "onnxruntime"
    standards: tuple[str, ...] = ("onnx",)
    optimisations = "ORT_ENABLE_ALL"

    def __init__(self) -> None:
        self._library = _library()
        self._native = self._library.capi.onnxruntime_pybind11_state
        self._library.set_default_logger_severity(_FATAL_ONLY)
        self._options = _quiet_single_thread(self._library, self.optimisations)
        self.run_options = self._library.RunOptions()  # one for all: making one costs as much as a small run
        self.run_options.log_severity_level = _FATAL_ONLY

    def version(self) -> str:
        """Return onnxruntime's version."""
        return str(self._library.__version__)

    def describe(self) -> dict[str, str]:
        """Return how sessions are made, and how the library was built."""
        build = getattr(self._library, "get_build_info", lambda: "unknown")
        return {
            "provider": _PROVIDER,
            "graph_optimisations": self.optimisations,
            "threads": "1",
            "build": str(build()),
        }

    def prepare(self, program: Program, /) -> Executable:
        """Make a session for `program`. Raises Unsupported, or onnxruntime's own error."""
        types = {i.type for i in program.feeds} | {o.type for o in program.outputs}
        executable = _OrtValueSession if "bfloat16" in types else _Session
        make = self._session if executable is _OrtValueSession else self._lean_session
        try:
            session = make(onnx_bytes(program))
        except Exception as error:
            if self._is_plain(error):
                raise Unsupported(str(error), self.reason(error)) from error
            raise
        return executable(self, session, program)

    def _session(self, model: bytes) -> Any:
        # Without its own fallback: that would print, and hide what the first attempt said.
        return self._library.InferenceSession(model, self._options, providers=[_PROVIDER], enable_fallback=0)

    @functools.cached_property
    def _lean_session(self) -> Callable[[bytes], Any]:
        """Makes a session without the Python class around it, which costs a fifth more; with it if that is not so."""

        def lean(model: bytes) -> Any:
            session = self._native.InferenceSession(self._options, model, False, False)
            session.initialize_session([_PROVIDER], [{}], set())
            return session

        try:
            given, got = Input("x", "float32", (1,)), Output("y", "float32", 1)
            tried = onnx_bytes(Program(OperatorVersion("onnx", "Identity", 1), (), (given,), (got,), 7))
            found: list[Array] = lean(tried).run(["y"], {"x": np.ones(1, np.float32)}, self.run_options)
        except Exception:  # another version may do it in another way
            return self._session
        return lean if len(found) == 1 and found[0] == 1.0 else self._session

    def reason(self, error: BaseException, /) -> Reason:
        """Return why onnxruntime refused, as far as its words and its list of kernels tell."""
        if isinstance(error, MemoryError):
            return "memory"
        if absent := _NO_KERNEL.search(str(error)):
            return self._reason_of_absence(absent[1], int(absent[2]))
        found = meaning(WORDS, str(error))
        return found.reason if found else "other"

    def make_ort_value(self, array: Array) -> Any:
        """Return `array` as an OrtValue, which may share its memory; Unsupported if the library takes no such type."""
        ort_value = self._library.OrtValue
        whole = array if array.flags.c_contiguous else array.copy()
        if array.dtype != element_type("bfloat16").dtype:
            return ort_value.ortvalue_from_numpy(whole)
        if not hasattr(ort_value, "ortvalue_from_numpy_with_onnx_type"):
            raise Unsupported(f"onnxruntime {self.version()} takes no bfloat16 tensors from Python", "type")
        return ort_value.ortvalue_from_numpy_with_onnx_type(whole.view(np.uint16), element_type("bfloat16").onnx)

    @property
    def not_implemented(self) -> type[Exception]:
        """The library's own exception for what it does not implement."""
        found: type[Exception] = self._native.NotImplemented
        return found

    def _is_plain(self, error: Exception) -> bool:
        if isinstance(error, self.not_implemented):
            return True
        found = meaning(WORDS, str(error))
        return found is not None and found.plain

    def _reason_of_absence(self, operator: str, since: int) -> Reason:
        """Tell by the provider's kernels what is absent; onnxruntime before 1.16 cannot be asked."""
        if not hasattr(self._native, "get_all_opkernel_def"):
            return "other"
        of_version = (low <= since <= high for low, high in self._kernels.get(operator, ()))
        return "type" if any(of_version) else "operator-version"

    @functools.cached_property
    def _kernels(self) -> dict[str, list[tuple[int, int]]]:
        """The provider's kernels: by operator, the first and last version that each is for."""
        found: dict[str, list[tuple[int, int]]] = {}
        for kernel in self._native.get_all_opkernel_def():
            if kernel.provider == _PROVIDER:
                found.setdefault(kernel.op_name, []).append(tuple(kernel.version_range))
        return found


class OnnxRuntimeNoOpt(OnnxRuntime):
    """onnxruntime's CPU provider with the graph optimisations switched off."""

    name = "onnxruntime-noopt"
    optimisations = "ORT_DISABLE_ALL"


class _Session:
    """A session whose tensors NumPy can hold."""

    def __init__(self, runner: OnnxRuntime, session: Any, program: Program) -> None:
        self._runner = runner
        self._session = session
        # The class around it checks names once more, at each run, which costs as much as a small run.
        self._run = getattr(session, "_sess", session).run
        self._feeds = feed_names(program)
        self._outputs = output_names(program)

    def run(self, inputs: Sequence[Array], /) -> Sequence[Array]:
        """Return the outputs. Raises Unsupported, or onnxruntime's own error."""
        try:
            feeds = dict(zip(self._feeds, inputs, strict=True))
            outputs: list[Array] = self._run(self._outputs, feeds, self._runner.run_options)
        except self._runner.not_implemented as error:
            raise Unsupported(str(error), self._runner.reason(error)) from error
        return outputs


class _OrtValueSession(_Session):
    """A session with tensors that NumPy lacks: they go in and come out through onnxruntime's own values."""

    def run(self, inputs: Sequence[Array], /) -> Sequence[Array]:
        """Return the outputs. Raises Unsupported, or onnxruntime's own error."""
        values = {name: self._runner.make_ort_value(x) for name, x in zip(self._feeds, inputs, strict=True)}
        try:
            outputs = self._session.run_with_ort_values(self._outputs, values)
        except self._runner.not_implemented as error:
            raise Unsupported(str(error), self._runner.reason(error)) from error
        return [_array(value) for value in outputs]


def _array(value: Any) -> Array:
    if value.data_type() != "tensor(bfloat16)":
        plain: Array = value.numpy()
        return plain
    # OrtValue.numpy() and its DLPack exporter refuse bfloat16, so the bytes are copied from where they lie.
    dtype, shape = element_type("bfloat16").dtype, tuple(value.shape())
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size) if size else b"", dtype).reshape(shape)


def _library() -> Any:
    try:
        import onnxruntime  # noqa: PLC0415 - only a worker that runs it pays for it
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise
        raise NotInstalled("onnxruntime is not installed: pip install 'opconform[onnxruntime]'") from error
    return onnxruntime


def _quiet_single_thread(library: Any, optimisations: str) -> Any:
    options = library.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL_ONLY
    options.graph_optimization_level = getattr(library.GraphOptimizationLevel, optimisations)
    for pool in ("intra_op", "inter_op"):
        options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
    return options

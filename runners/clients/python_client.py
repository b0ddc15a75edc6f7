"""Python libraries behind the process protocol: `python python_client.py onnxruntime`; see docs/process-protocol.md.

It runs under an interpreter that has only the library and NumPy, from Python 3.9 on, and imports nothing of the
package. The package decides from the library's words what a refusal means, unless the library's exception itself says
that something is not implemented.
"""

from __future__ import annotations

import base64
import ctypes
import functools
import importlib
import json
import math
import os
import platform
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable, Literal, NamedTuple

if __name__ == "__main__":
    sys.path.pop(0)  # removes this file's folder

import numpy as np


class OddType(NamedTuple):
    """An element type that NumPy lacks: its bits, its number in ONNX's TensorProto.DataType, and its other names."""

    bits: int
    number: int
    ml_dtypes: str
    openvino: str = ""


ODD_TYPES: Mapping[str, OddType] = {
    "bfloat16": OddType(16, 16, "bfloat16", "bf16"),
    "float8e4m3fn": OddType(8, 17, "float8_e4m3fn", "f8e4m3"),
    "float8e4m3fnuz": OddType(8, 18, "float8_e4m3fnuz"),
    "float8e5m2": OddType(8, 19, "float8_e5m2", "f8e5m2"),
    "float8e5m2fnuz": OddType(8, 20, "float8_e5m2fnuz"),
    "float8e8m0": OddType(8, 24, "float8_e8m0fnu", "f8e8m0"),
    "float6e2m3": OddType(6, 27, "float6_e2m3fn"),
    "float6e3m2": OddType(6, 28, "float6_e3m2fn"),
    "float4e2m1": OddType(4, 23, "float4_e2m1fn", "f4e2m1"),
    "uint4": OddType(4, 21, "uint4", "u4"),
    "int4": OddType(4, 22, "int4", "i4"),
    "uint2": OddType(2, 25, "uint2", "u2"),
    "int2": OddType(2, 26, "int2"),
}


CAUSE = "\ncaused by "
"""The text between the words of an error and those of its cause."""


class Unsupported(Exception):  # noqa: N818 - an answer
    """The library does not implement this."""

    def __init__(self, words: str, reason: str = "other") -> None:
        super().__init__(words)
        self.reason = reason


class Odd(NamedTuple):
    """A tensor of a type that NumPy lacks; its content is packed, as in the protocol."""

    type: str
    shape: tuple[int, ...]
    content: bytes


class Library:
    """One library; subclasses implement what differs. `kind` is what it does with programs."""

    standards = ("onnx",)
    kind = "run"
    version: str
    facts: Mapping[str, str] = {}

    def prepare(self, question: Mapping[str, Any]) -> Callable[[list[Any]], Sequence[Any]]:
        """Return a function that runs the program of a question on one value for each of its feeds.

        Raises the library's errors.
        """
        raise NotImplementedError

    def meaning(self, error: Exception) -> Unsupported | None:  # noqa: ARG002 - of subclasses
        """Return the kind of refusal that an exception's type shows; None if only its words show it."""
        return None


# Tensors and values


def tensor_of(tensor: Mapping[str, Any]) -> Any:
    """Return the tensor in a question: an array, or an Odd."""
    shape, held = tuple(tensor["shape"]), tensor["content"]
    if tensor["type"] == "string":
        texts = np.empty(len(held), object)
        texts[:] = held
        return texts.reshape(shape)
    content = base64.b64decode(held)
    if tensor["type"] in ODD_TYPES:
        return Odd(tensor["type"], shape, content)
    return np.frombuffer(content, np.dtype(tensor["type"]).newbyteorder("<")).reshape(shape).copy()


def told_of(value: Any) -> dict[str, Any]:
    """Return a tensor in the form of an answer. Raises TypeError if it is not a tensor."""
    if isinstance(value, Odd):
        return {"type": value.type, "shape": value.shape, "content": base64.b64encode(value.content).decode()}
    array = np.asarray(value)
    if array.dtype.kind in "OUST":
        texts = [_text(element) for element in array.reshape(-1).tolist()]
        return {"type": "string", "shape": array.shape, "content": texts}
    if array.dtype.kind not in "fiubc":
        raise TypeError(f"an output of type {array.dtype.name}")
    content = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return {"type": array.dtype.name, "shape": array.shape, "content": base64.b64encode(content).decode()}


def _text(text: Any) -> str:
    if not isinstance(text, (bytes, str)):
        raise TypeError(f"expected text, got {type(text).__name__}")
    held = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    return held.decode("utf-8", "backslashreplace")  # text that is not UTF-8 is a wrong answer, not a failure to answer


def value_of(structure: Mapping[str, Any], tensors: Iterator[Any]) -> Any:
    """Return a value of a structure: a tensor, a list, None for an empty optional, a dict for a map."""
    kind = structure["kind"]
    if kind == "sequence":
        return [value_of(item, tensors) for item in structure["items"]]
    if kind == "optional":
        return value_of(structure["items"][0], tensors) if structure["items"] else None
    if kind == "map":
        keys, values = next(tensors), next(tensors)
        return dict(zip(keys.tolist(), values.tolist()))
    if kind == "sparse":
        return next(tensors), next(tensors), tuple(structure["dims"])
    return next(tensors)


def flattened(type_: str, value: Any, tensors: list[Any]) -> dict[str, Any]:
    """Append the tensors of a value of this type to `tensors`, and return its structure."""
    kind, _, held = type_.partition("(")
    held = held[:-1]
    if value is None:
        return {"kind": "optional", "items": []}
    if kind == "optional":
        return {"kind": kind, "items": [flattened(held, value, tensors)]}
    if isinstance(value, dict):
        names = held.split(",") if kind == "map" else ["", ""]
        keys = sorted(value)
        tensors += [_column(name.strip(), part) for name, part in zip(names, (keys, [value[key] for key in keys]))]
        return {"kind": "map", "count": len(keys)}
    if isinstance(value, (list, tuple)) and not isinstance(value, Odd) and (held or not type_):
        return {
            "kind": "sequence",
            "items": [flattened(held if kind == "seq" else "", entry, tensors) for entry in value],
        }
    tensors.append(value)
    return {"kind": "tensor"}


def _column(name: str, entries: Sequence[Any]) -> Any:
    """Return a map's keys or values; plain numbers get the type that the program declares."""
    is_typed = any(isinstance(entry, (np.ndarray, np.generic)) for entry in entries)
    if name == "string" or any(isinstance(entry, str) for entry in entries):
        return np.array([*entries, ""], object)[:-1]
    return np.asarray(entries) if is_typed or not name else np.asarray(entries, name)


def answers_of(program: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the outputs that the program returns."""
    return [output for output in program["outputs"] if output is not None]


def feeds_of(program: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the inputs that the program is fed, in the order of a run's tensors."""
    given = [port for port in (*program["inputs"], *program.get("captured", ())) if port is not None]
    return list({port["name"]: port for port in given if port["constant"] is None}.values())


def names_in(types: Iterable[str]) -> set[str]:
    """Return the element types in some types."""
    return set(re.findall(r"\w+(?![\w(])", " ".join(types)))


# Libraries; the built-in runners use the functions and tables, too

NO_KERNEL = re.compile(r"Could not find an implementation for (\S+?)\((\d+)\)")
"""Onnxruntime's words for an operator version that a provider has no kernel for."""
_FATAL_ONLY = 4


def quiet_options(library: Any, optimisations: str) -> tuple[Any, Any]:
    """Return options of onnxruntime's sessions and of their runs: one thread, no console output."""
    library.set_default_logger_severity(_FATAL_ONLY)
    options, run_options = library.SessionOptions(), library.RunOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = run_options.log_severity_level = _FATAL_ONLY
    options.graph_optimization_level = getattr(library.GraphOptimizationLevel, optimisations)
    for pool in ("intra_op", "inter_op"):
        options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
    return options, run_options


def runtime_facts(library: Any, provider: str, optimisations: str) -> dict[str, str]:
    """Return how onnxruntime's sessions are made, and how the library was built."""
    build = getattr(library, "get_build_info", lambda: "unknown")
    return {"provider": provider, "graph_optimisations": optimisations, "threads": "1", "build": str(build())}


def missing_kernel(native: Any, provider: str, words: str) -> Literal["other", "type", "operator-version"] | None:
    """Return what a provider's kernels lack if an error says that there is none, else None.

    `other` if the library does not list its kernels: onnxruntime before 1.16.
    """
    absent = NO_KERNEL.search(words)
    if absent is None:
        return None
    if not hasattr(native, "get_all_opkernel_def"):
        return "other"
    of_version = (low <= int(absent[2]) <= high for low, high in _kernels_of(native, provider).get(absent[1], ()))
    return "type" if any(of_version) else "operator-version"


@functools.cache
def _kernels_of(native: Any, provider: str) -> Mapping[str, Sequence[tuple[int, int]]]:
    """Return a provider's kernels: by operator, the first and last version of each."""
    versions: dict[str, list[tuple[int, int]]] = {}
    for kernel in native.get_all_opkernel_def():
        if kernel.provider == provider:
            versions.setdefault(kernel.op_name, []).append(tuple(kernel.version_range))
    return versions


class OnnxRuntime(Library):
    """onnxruntime on its CPU provider, set up like the built-in runner."""

    _provider = "CPUExecutionProvider"

    def __init__(self, optimisations: str = "ORT_ENABLE_ALL") -> None:
        import onnxruntime  # noqa: PLC0415

        self.library: Any = onnxruntime
        self.native: Any = onnxruntime.capi.onnxruntime_pybind11_state
        self._options, self.run_options = quiet_options(self.library, optimisations)
        self.version = str(self.library.__version__)
        self.facts = runtime_facts(self.library, self._provider, optimisations)

    def session(self, model: bytes) -> Any:
        """Return a session, without the library's own fallback, which would print, and hide the first error."""
        return self.library.InferenceSession(model, self._options, providers=[self._provider], enable_fallback=0)

    def prepare(self, question: Mapping[str, Any]) -> Callable[[list[Any]], Sequence[Any]]:
        """Make a session."""
        program, session = question["program"], self.session(base64.b64decode(question["model"]))
        fed = [(feed["name"], feed["type"]) for feed in feeds_of(program)]
        wanted = [(output["name"], output["type"]) for output in answers_of(program)]
        are_read = not names_in(type_ for _, type_ in wanted) & ODD_TYPES.keys()
        odd = [type_ for _, type_ in (*fed, *wanted) if "(" in type_ and names_in([type_]) & ODD_TYPES.keys()]

        def run(values: list[Any]) -> Sequence[Any]:
            if odd:
                raise self._no_way(odd[0])
            given = {name: self._given(value, are_read) for (name, _), value in zip(fed, values)}
            names = [name for name, _ in wanted]
            if are_read:
                outputs: Sequence[Any] = session.run(names, given, self.run_options)
                return outputs
            return [_read(value) for value in session.run_with_ort_values(names, given, self.run_options)]

        return run

    def _given(self, value: Any, are_read: bool) -> Any:
        """Return a session's inputs; if an output's type is not in NumPy, all must be onnxruntime's own values."""
        ort_value = self.library.OrtValue
        if isinstance(value, Odd):
            # one release added both functions and the type numbers below
            if not hasattr(ort_value, "ortvalue_from_numpy_with_onnx_type"):
                raise self._no_way(value.type)
            made = ort_value.ortvalue_from_shape_and_type(value.shape, ODD_TYPES[value.type].number)
            if value.content:
                ctypes.memmove(made.data_ptr(), value.content, len(value.content))
            return made
        if are_read:
            return value
        if not isinstance(value, np.ndarray) or value.dtype.hasobject:
            raise self._no_way("strings, sequences, optionals and maps")
        return ort_value.ortvalue_from_numpy(value)

    def _no_way(self, name: str) -> Unsupported:
        return Unsupported(f"onnxruntime {self.version} takes no {name} from Python with such types", "type")

    def meaning(self, error: Exception) -> Unsupported | None:
        """Return what NOT_IMPLEMENTED means; the list of kernels shows what is missing."""
        if not isinstance(error, self.native.NotImplemented):
            return None
        return Unsupported(str(error), missing_kernel(self.native, self._provider, str(error)) or "other")


class OnnxRuntimeInfer(OnnxRuntime):
    """What onnxruntime infers when it loads a model without the types of its outputs."""

    kind = "infer"

    def __init__(self) -> None:
        super().__init__("ORT_DISABLE_ALL")

    def prepare(self, question: Mapping[str, Any]) -> Callable[[list[Any]], Sequence[Any]]:
        """Load the model."""
        answer = inferred_by_runtime(base64.b64decode(question["model"]), self.session)
        return lambda _values: answer


def inferred_by_runtime(model: bytes, session_of: Callable[[bytes], Any]) -> list[str]:
    """Return what onnxruntime infers of a model's outputs, as text; `session_of` loads a model.

    Where the library cannot find a type itself, its model with the types that ONNX's IR wants is valid, and nothing is
    known. Raises the library's errors.
    """
    typed, model = model, untyped(model)

    def is_scalar(name: str) -> bool:
        """Return whether an output has no dimensions, not an unknown rank: the shape of an added Shape shows it."""
        asked = "opconform_rank"
        node = _field(1, _field(1, name) + _field(2, asked) + _field(4, "Shape"))
        try:  # messages of protobuf merge where they are joined
            ports = session_of(model + _field(7, node + _field(12, _field(1, asked)))).get_outputs()
        except Exception:  # Shape is missing for this type or in this opset
            return False
        return any(port.name == asked and port.shape == [0] for port in ports)

    def text(port: Any) -> str:
        words = re.sub(r"tensor\((\w+)\)", lambda match: RUNTIME_NAMES.get(match[1], match[1]), port.type)
        words = words.replace("sparse_", "sparse:") if words.startswith("sparse_") else words
        if "(" in words:
            return words.replace(" ", "")
        if not port.shape and not is_scalar(port.name):
            return words
        return f"{words}[{','.join('?' if dim is None else str(dim) for dim in port.shape)}]"

    try:
        return [text(port) for port in session_of(model).get_outputs()]
    except Exception as error:
        if "type inference failed" not in str(error):
            raise
        return ["?" for _ in session_of(typed).get_outputs()]


RUNTIME_NAMES: Mapping[str, str] = {"float": "float32", "double": "float64"}
"""Element types that ONNX names otherwise."""


def untyped(model: bytes) -> bytes:
    """Return the bytes of an ONNX model without what it says of the types of its outputs."""
    return _mapped(model, {7: lambda graph: _mapped(graph, {12: lambda port: _mapped(port, {2: lambda _: b""})})})


def _mapped(message: bytes, changes: Mapping[int, Callable[[bytes], bytes]]) -> bytes:
    """Return a message of protobuf with some of its fields changed; a field that becomes empty is left out."""
    made, at = bytearray(), 0
    while at < len(message):
        start = at
        key, at = _number(message, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            _, at = _number(message, at)
        elif wire == 2:
            size, at = _number(message, at)
            at += size
            if number in changes:
                held = changes[number](message[at - size : at])
                made += _field(number, held) if held else b""
                continue
        else:
            at += 8 if wire == 1 else 4
        made += message[start:at]
    return bytes(made)


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that starts somewhere in a message, and where it ends."""
    number = shift = 0
    while True:
        byte = message[at]
        number, shift, at = number | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return number, at


def _field(number: int, content: bytes | str) -> bytes:
    """Return a field of protobuf that holds bytes, text or a message."""
    held = content.encode() if isinstance(content, str) else content
    return _written(number << 3 | 2) + _written(len(held)) + held


def _written(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes((*made, number))


def _read(value: Any) -> Any:
    """Return the array of an onnxruntime value, by copying bytes: it exposes no array for types that NumPy lacks."""
    name = str(value.data_type())[len("tensor(") : -1]
    if name not in ODD_TYPES:
        return value.numpy()
    shape = tuple(value.shape())
    size = -(-math.prod(shape) * ODD_TYPES[name].bits // 8)
    return Odd(name, shape, ctypes.string_at(value.data_ptr(), size) if size else b"")


class OnnxReference(Library):
    """onnx.reference.ReferenceEvaluator without NumPy's warnings; it takes arrays of ml_dtypes if that is installed."""

    def __init__(self) -> None:
        import onnx.reference  # noqa: PLC0415

        self.library: Any = onnx
        self.version = str(onnx.__version__)

    def prepare(self, question: Mapping[str, Any]) -> Callable[[list[Any]], Sequence[Any]]:
        """Make an evaluator."""
        model = self.library.ModelProto()
        model.ParseFromString(base64.b64decode(question["model"]))
        feeds = feeds_of(question["program"])
        types = [output["type"] for output in answers_of(question["program"])]
        evaluator = self.library.reference.ReferenceEvaluator(model)

        def run(values: list[Any]) -> Sequence[Any]:
            given = {feed["name"]: _array(_typed(feed["type"], value)) for feed, value in zip(feeds, values)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                outputs: Sequence[Any] = evaluator.run(None, given)
            if len(types) != len(outputs):
                return outputs
            return [optional_item(type_, _plain(output)) for type_, output in zip(types, outputs)]

        return run

    def meaning(self, error: Exception) -> Unsupported | None:
        """Return what NotImplementedError means; its first line comes before a list of everything implemented."""
        words = str(error).partition("\n")[0] or type(error).__name__
        return Unsupported(words) if isinstance(error, NotImplementedError) else None


def optional_item(type_: str, answer: Any) -> Any:
    """Return an answer as a value: the evaluator gives an optional as a list of one item, which may be missing."""
    if not type_.startswith("optional(") or not isinstance(answer, list):
        return answer
    held = answer[0] if answer else None
    of_list = type_.startswith("optional(seq(")
    return held if len(answer) <= 1 and (held is None or isinstance(held, list) == of_list) else answer


def _typed(type_: str, value: Any) -> Any:
    """Return the inputs: a map's values keep their type, which the evaluator cannot know otherwise.

    type_: such as `map(int64,float32)`.
    """
    name = type_.rpartition(",")[2].strip()[:-1]
    if not type_.startswith("map(") or name == "string":
        return value
    return {key: np.dtype(name).type(number) for key, number in value.items()}


def _array(value: Any) -> Any:
    """Return the inputs, with arrays of ml_dtypes for types that NumPy lacks. Raises Unsupported without ml_dtypes."""
    if isinstance(value, list):
        return [_array(entry) for entry in value]
    if not isinstance(value, Odd):
        return value
    dtype, bits, size = _ml_dtypes().get(value.type), ODD_TYPES[value.type].bits, math.prod(value.shape)
    if dtype is None:
        raise Unsupported(f"there is no {value.type} without a newer ml_dtypes", "type")
    held = np.frombuffer(value.content, np.uint8)
    if bits < 8:
        spread = np.unpackbits(held, count=size * bits, bitorder="little").reshape(size, bits)
        held = np.packbits(spread, axis=1, bitorder="little")
    return held.reshape(-1).view(dtype).reshape(value.shape).copy()


def _plain(value: Any) -> Any:
    """Return an answer, with arrays of ml_dtypes as Odds."""
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    dtype = getattr(value, "dtype", None)
    name = next((name for name, known in _ml_dtypes().items() if dtype == known), None)
    if dtype is None or name is None:
        return value
    held = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    if ODD_TYPES[name].bits < 8:
        spread = np.unpackbits(held.reshape(-1, 1), axis=1, bitorder="little")[:, : ODD_TYPES[name].bits]
        held = np.packbits(spread, bitorder="little")
    return Odd(name, value.shape, held.tobytes())


@functools.cache
def _ml_dtypes() -> Mapping[str, Any]:
    """Return the dtypes of ml_dtypes by our names; none if it is not installed, as with old releases of onnx."""
    try:
        import ml_dtypes  # noqa: PLC0415
    except ModuleNotFoundError:
        return {}
    names = {name: odd.ml_dtypes for name, odd in ODD_TYPES.items()}
    return {name: np.dtype(getattr(ml_dtypes, theirs)) for name, theirs in names.items() if hasattr(ml_dtypes, theirs)}


OPENVINO_SETTINGS: Mapping[str, str] = {
    "INFERENCE_PRECISION_HINT": "f32",
    "NUM_STREAMS": "1",
    "INFERENCE_NUM_THREADS": "1",
    "ENABLE_CPU_PINNING": "NO",  # pinned workers could share one core
}
"""The settings of OpenVINO's CPU plugin."""

OPENVINO_TYPES: Mapping[str, str] = {
    "bool": "boolean",
    "string": "string",
    **{name: odd.openvino for name, odd in ODD_TYPES.items() if odd.openvino},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}
"""OpenVINO's names of its element types."""

_MISNAMED: Mapping[tuple[str, str], str] = {("LogicalXor", "opset1"): "opset2"}
"""Operations whose name differs in the set that introduced them."""


def openvino_part(name: str) -> Any:
    """Return a module of OpenVINO, which old versions have in `openvino.runtime`."""
    try:
        return importlib.import_module(f"openvino.{name}")
    except ModuleNotFoundError:
        return importlib.import_module(f"openvino.runtime.{name}")


def places_of(ports: Sequence[Any], feeds: Sequence[tuple[str, str | None, int]]) -> list[int | None]:
    """Return the position of each feed among a compiled model's inputs, None for one that is unused and dropped.

    `feeds` are names, OpenVINO's element types and ranks. An input that is also an output only has the output's name.
    Such inputs are matched with the remaining feeds in order, by type and rank.
    """
    named = {name: index for index, port in enumerate(ports) for name in port.get_names()}
    places: dict[str, int | None] = {name: named.get(name) for name, _, _ in feeds}
    for index in sorted(set(range(len(ports))) - set(places.values())):
        of_port, shape = ports[index].get_element_type().get_type_name(), ports[index].get_partial_shape()
        for name, type_, rank in feeds:
            has_rank = shape.rank.is_dynamic or shape.rank.get_length() == rank
            if places[name] is None and type_ == of_port and has_rank:
                places[name] = index
                break
    return list(places.values())


def openvino_factory(name: str, version: int | str) -> tuple[Any, str]:
    """Return what makes nodes of an operation set, and the set's fault: its node is not of exactly this version.

    A version is named after the set that introduced it. The fault is empty if there is none.
    """
    factory = openvino_part("utils.node_factory").NodeFactory(f"opset{version}")
    made = factory.create(name).get_type_info().version_id
    if made == _MISNAMED.get((name, f"opset{version}"), f"opset{version}"):
        return factory, ""
    return factory, f"the newest {name} in operation set {version} comes from {made}"


class OpenVinoOnnx(Library):
    """OpenVINO's ONNX front end and CPU plugin, set up like the built-in runner: float32, one thread."""

    def __init__(self) -> None:
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # it would send on import
        import openvino  # noqa: PLC0415

        self.library: Any = openvino
        self.version = str(openvino.get_version()).partition("-")[0]
        self._core = openvino.Core()
        plugin = self._core.get_versions("CPU")["CPU"]
        self.facts = {
            "device": "CPU",
            "plugin": f"{plugin.description} {plugin.build_number}",
            "precision_hint": "f32",
            "threads": OPENVINO_SETTINGS["INFERENCE_NUM_THREADS"],
        }
        self._names = {theirs: ours for ours, theirs in OPENVINO_TYPES.items()}

    def prepare(self, question: Mapping[str, Any]) -> Callable[[list[Any]], Sequence[Any]]:
        """Compile the model."""
        feeds = feeds_of(question["program"])
        for port in (*feeds, *answers_of(question["program"])):
            if "(" in port["type"]:
                raise Unsupported(f"OpenVINO has no inputs and outputs of type {port['type']}", "type")
        compiled = self._core.compile_model(self._model(question), "CPU", OPENVINO_SETTINGS)
        request = compiled.create_infer_request()
        described = [(feed["name"], OPENVINO_TYPES.get(feed["type"]), len(feed["dims"])) for feed in feeds]
        places = places_of(compiled.inputs, described)

        def run(values: list[Any]) -> Sequence[Any]:
            for index, value in zip(places, values):
                if index is not None:
                    request.set_input_tensor(index, self._tensor(value))
            request.start_async()  # infer() loses the errors of nodes
            request.wait()
            return [self._read(request.get_output_tensor(index)) for index in range(len(compiled.outputs))]

        return run

    def _model(self, question: Mapping[str, Any]) -> Any:
        return self._core.read_model(base64.b64decode(question["model"]))

    def _name(self, tensor: Any) -> str:
        theirs = str(tensor.get_element_type().get_type_name())
        return self._names.get(theirs, theirs)

    def _tensor(self, value: Any) -> Any:
        name, shape = (value.type, value.shape) if isinstance(value, Odd) else (value.dtype.name, value.shape)
        name = "string" if name == "object" else name
        tensor = self.library.Tensor(self._type(name), self.library.Shape(list(shape)))
        if isinstance(value, Odd):
            tensor.data.reshape(-1).view(np.uint8)[:] = np.frombuffer(value.content, np.uint8)
        elif name != "string":
            tensor.data[...] = value
        elif value.size:  # an empty list crashes the library
            tensor.bytes_data = np.array([text.encode() for text in value.reshape(-1).tolist()]).reshape(shape)
        return tensor

    def _type(self, name: str) -> Any:
        theirs = OPENVINO_TYPES.get(name, "")
        if not hasattr(self.library.Type, theirs):
            raise Unsupported(f"OpenVINO has no element type {name}", "type")
        return getattr(self.library.Type, theirs)

    def _read(self, tensor: Any) -> Any:
        name, shape = self._name(tensor), tuple(tensor.get_shape())
        if name in ODD_TYPES:
            return Odd(name, shape, tensor.data.tobytes())
        if name == "string":
            return tensor.bytes_data if tensor.get_size() else np.empty(shape, object)
        return np.array(tensor.data)


class OpenVino(OpenVinoOnnx):
    """OpenVINO's own operations on its CPU plugin; each program is a model of one node."""

    standards = ("openvino",)

    def _model(self, question: Mapping[str, Any]) -> Any:
        program, nodes = question["program"], dict[str, Any]()
        name = program["name"]
        for operand in filter(None, program["inputs"]):
            if operand["name"] not in nodes:
                constant = question["constants"].get(operand["constant"])
                nodes[operand["name"]] = self._input(operand, None if constant is None else tensor_of(constant))
        if any(attribute["kind"] == "graph" for attribute in program["attributes"]):
            raise Unsupported(f"this runner does not support the bodies of {name}", "attribute")
        factory, fault = openvino_factory(name, program["version"])
        if fault:
            raise Unsupported(fault, "operator-version")
        given = [nodes[operand["name"]] for operand in program["inputs"] if operand is not None]
        node = factory.create(
            name, given, {attribute["name"]: _attribute(attribute) for attribute in program["attributes"]}
        )
        known = node.get_attributes()
        if ignored := [attribute["name"] for attribute in program["attributes"] if attribute["name"] not in known]:
            raise Unsupported(f"this release's {name} ignores {', '.join(ignored)}", "attribute")
        node.set_friendly_name(name)
        outputs = [port for port, output in zip(node.outputs(), program["outputs"]) if output is not None]
        return self.library.Model(outputs or node.outputs(), [nodes[feed["name"]] for feed in feeds_of(program)], name)

    def _input(self, port: Mapping[str, Any], constant: Any) -> Any:
        operations, dims = openvino_part("op"), [-1 if isinstance(size, str) else size for size in port["dims"]]
        if constant is not None:
            node = operations.Constant(self._tensor(constant))
        else:
            shape = self.library.PartialShape
            node = operations.Parameter(
                self._type(port["type"]), shape.dynamic() if port["dims"] == ["..."] else shape(dims)
            )
            node.output(0).get_tensor().set_names({port["name"]})
        node.set_friendly_name(port["name"])
        return node


def _attribute(attribute: Mapping[str, Any]) -> Any:
    """Return the value of an attribute; numbers that JSON lacks come as text."""
    kind, value = attribute["kind"], attribute["value"]
    if kind in ("float", "floats"):
        return [float(number) for number in value] if kind == "floats" else float(value)
    return bool(value) if kind == "boolean" else value


class OnnxTool(Library):
    """A tool of the onnx package that runs nothing; `kind` and settings as in the built-in runner."""

    newest = 26  # of conversions, as in the built-in runner

    def __init__(self, kind: str, **settings: bool) -> None:
        import onnx.checker  # noqa: PLC0415
        import onnx.shape_inference  # noqa: PLC0415
        import onnx.version_converter  # noqa: PLC0415

        self.library: Any = onnx
        self.kind = kind
        self.version = str(onnx.__version__)
        self._settings = settings

    def prepare(self, question: Mapping[str, Any]) -> Callable[[list[Any]], Sequence[Any]]:
        """Infer, check or convert."""
        model = self.library.ModelProto()
        model.ParseFromString(base64.b64decode(question["model"]))
        answer: list[Any] = []
        if self.kind == "check":
            self.library.checker.check_model(model, **self._settings)
        elif self.kind == "infer":
            answer = inferred_by_onnx(self.library, model, self._settings)
        else:
            program = question["program"]
            if program["domain"]:
                raise Unsupported("the version converter only converts the default domain", "operator-version")
            target = max(min(self.newest, self.library.defs.onnx_opset_version()), program["opset"])
            made = self.library.version_converter.convert_version(model, target)
            answer = [np.frombuffer(made.SerializeToString(), np.uint8)]
        return lambda _values: answer


def inferred_by_onnx(library: Any, model: Any, settings: Mapping[str, bool]) -> list[str]:
    """Return what the onnx package infers of a model's outputs, as text, without what the model says of their types."""
    for output in model.graph.output:
        output.ClearField("type")
    made = library.shape_inference.infer_shapes(model, **settings)
    numbers = library.TensorProto.DataType.items()
    names = {number: RUNTIME_NAMES.get(name.lower(), name.lower()) for name, number in numbers}
    return [type_text(output.type, names) for output in made.graph.output]


def type_text(proto: Any, names: Mapping[int, str]) -> str:
    """Return a TypeProto of ONNX as text, `?` if it is unknown; `names` of element types, by ONNX's numbers."""

    def plain(inner: Any) -> str:  # without dimensions
        return re.sub(r"\[.*\]", "", type_text(inner, names))

    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        name = names.get(tensor.elem_type, "?") if tensor.elem_type else "?"
        if name == "?" or not tensor.HasField("shape"):
            return name
        dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
        return f"{name}[{','.join(dims)}]"
    if kind == "map_type":
        return f"map({names.get(proto.map_type.key_type)},{plain(proto.map_type.value_type)})"
    if kind == "sparse_tensor_type":
        return f"sparse({names.get(proto.sparse_tensor_type.elem_type)})"
    held = {"sequence_type": "seq", "optional_type": "optional"}.get(kind)
    return f"{held}({plain(getattr(proto, kind).elem_type)})" if held else "?"


LIBRARIES: Mapping[str, Callable[[], Library]] = {
    "onnxruntime": OnnxRuntime,
    "onnxruntime-noopt": lambda: OnnxRuntime("ORT_DISABLE_ALL"),
    "onnx-reference": OnnxReference,
    "openvino-onnx": OpenVinoOnnx,
    "openvino": OpenVino,
    "onnx-infer": lambda: OnnxTool("infer"),
    "onnx-infer-strict": lambda: OnnxTool("infer", check_type=True, strict_mode=True),
    "onnx-infer-data": lambda: OnnxTool("infer", data_prop=True),
    "onnx-check": lambda: OnnxTool("check"),
    "onnx-check-full": lambda: OnnxTool("check", full_check=True),
    "onnx-convert": lambda: OnnxTool("convert"),
    "onnxruntime-infer": OnnxRuntimeInfer,
}
"""By the names of the built-in runners."""


# Questions and answers


class Client:
    """A library, and the programs that it has prepared, by the ids of the questions."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._library: Library | None = None
        self._prepared: dict[int, tuple[Mapping[str, Any], Callable[[list[Any]], Sequence[Any]]]] = {}

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question, without its id."""
        try:
            answers = {"hello": self._hello, "prepare": self._prepare, "run": self._run}
            return answers[question["ask"]](question)
        except Exception as error:
            refusal = error if isinstance(error, Unsupported) else self._library and self._library.meaning(error)
            if refusal:
                return {"answer": "unsupported", "words": str(refusal), "reason": refusal.reason}
            reason = "memory" if isinstance(error, MemoryError) else "other"
            words = [f"{type(raised).__name__}: {raised}" for raised in (error, error.__cause__) if raised is not None]
            return {"answer": "error", "words": CAUSE.join(words), "reason": reason}

    def _hello(self, _question: Mapping[str, Any]) -> dict[str, Any]:
        self._library = LIBRARIES[self._name]()
        description = {"answer": "hello", "protocol": 1, "name": self._name, "version": self._library.version}
        facts = {**self._library.facts, "python": platform.python_version(), "numpy": np.__version__}
        return {**description, "standards": self._library.standards, "facts": facts, "kind": self._library.kind}

    def _prepare(self, question: Mapping[str, Any]) -> dict[str, Any]:
        for dropped in question.get("drop", ()):
            self._prepared.pop(dropped, None)
        if self._library is None:
            raise RuntimeError("there was no hello question")
        self._prepared[question["id"]] = question["program"], self._library.prepare(question)
        return {"answer": "prepared"}

    def _run(self, question: Mapping[str, Any]) -> dict[str, Any]:
        program, run = self._prepared[question["program"]]
        tensors = map(tensor_of, question["inputs"])
        values = [value_of(feed.get("structure", {"kind": "tensor"}), tensors) for feed in feeds_of(program)]
        flat: list[Any] = []
        types = [output["type"] for output in answers_of(program)]
        outputs = list(run(values))
        if self._library and self._library.kind != "run":  # texts or bytes, whatever the types of the program's outputs
            return {"answer": "outputs", "outputs": [told_of(output) for output in outputs]}
        types += ["float32"] * (len(outputs) - len(types))
        structure = [flattened(type_, value, flat) for type_, value in zip(types, outputs)]
        answer = {"answer": "outputs", "outputs": [told_of(tensor) for tensor in flat]}
        return answer if all(part == {"kind": "tensor"} for part in structure) else {**answer, "structure": structure}


def main(name: str) -> None:
    """Answer the questions on stdin until it ends. Whatever the library prints to stdout goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    client = Client(name)
    for line in sys.stdin.buffer:
        question = json.loads(line)
        answer = json.dumps({"id": question["id"], **client.answer(question)}, allow_nan=False)
        answers.write(answer + "\n")
        answers.flush()
    os._exit(0)  # some libraries crash while they are unloaded


if __name__ == "__main__":
    main(sys.argv[1])

"""Test data in the layout of ONNX's backend tests, without descriptors; answers are judged by their tolerances."""

from __future__ import annotations

import functools
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from .batch import Batch, Bounds, Expectation, Flag, Option
from .corpus.files import LARGEST_JSON, CorpusError, Files, open_files, read_json
from .corpus.tensors import parsed, read_value_file
from .elements import Array, comparable, element_type, from_tensor_proto, numbered, type_of
from .errors import CaseIdError, did_you_mean
from .ids import CaseId, parse_id
from .program import Input, ModelProgram, OperatorVersion, Output, Structure, parse_type

MODEL, TOLERANCES = "model.onnx", "data.json"
LARGEST_MODEL = 512 << 20
"""Maximum size of a file in bytes."""

_DATA_SET = re.compile(
    r"(?:(?P<folder>.+)/)?(?P<set>test_data_set_\d{1,6})/(?P<kind>input|output)_(?P<place>\d{1,4})\.pb"
)
_UNSAFE = re.compile(r"[^A-Za-z0-9_.^+-]+")
_MODEL_NAME = "model"
"""The operator's name in the id of a model with more than one node."""


class _LeftOut(Exception):  # noqa: N818 - no error: the other data sets are run
    """A data set that cannot be a case; the message says why."""


@dataclass(frozen=True, slots=True)
class _DataSet:
    """The files of one case."""

    folder: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def path(self) -> str:
        return self._inside(self.name)

    @property
    def model(self) -> str:
        return self._inside(MODEL)

    @property
    def tolerances(self) -> str:
        return self._inside(TOLERANCES)

    def _inside(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name


@dataclass(frozen=True)
class StoredValue:
    """The content of a file for one input or output of a model: a tensor, or the tensors of a sequence or the like."""

    name: str
    type: str
    arrays: list[Array]
    structure: Structure

    @classmethod
    def of_tensor(cls, name: str, array: Array) -> StoredValue:
        """Return the value that is a tensor."""
        return cls(name, type_of(array), [array], Structure("tensor", array.shape))


@dataclass(frozen=True)
class StoredCase:
    """A data set as read from its files; `model` is the ModelProto."""

    id: str
    program: ModelProgram
    model: Any
    inputs: tuple[StoredValue, ...]
    outputs: tuple[StoredValue, ...]


@dataclass(frozen=True)
class ForeignCases:
    """The cases of a folder or an archive, by ids made from models and tensors; picklable.

    An id's settings name the folder (`from`), its fill names the data set. Files are read with size limits, links are
    refused, and nothing outside the folder is opened. Raises CorpusError, which names the file, if there is no case at
    all.
    """

    path: Path

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path}

    @property
    def left_out(self) -> Mapping[str, str]:
        """Return the data sets that cannot be cases, each with the reason."""
        return self._scan.left_out

    @functools.cached_property
    def digest(self) -> str:
        """Return the sha256 of the names and contents of all files that the cases come from."""
        digest = hashlib.sha256()
        for data_set in self._scan.cases.values():
            tolerances = [data_set.tolerances] if data_set.tolerances in self._sizes else []
            for path in (data_set.model, *tolerances, *data_set.inputs, *data_set.outputs):
                content = hashlib.sha256(self._files.read(path, LARGEST_MODEL)).hexdigest()
                digest.update(f"{path}\n{content}\n".encode())
        return digest.hexdigest()

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all cases, in the order of their paths."""
        return tuple(self._scan.cases)

    def case(self, text: str, /) -> Batch:
        """Return one case by its id. Raises CaseIdError."""
        parts = parse_id(text)
        known = self._by_name.get((parts.setting("from") or "", parts.fill))  # only the files of this case are read
        if known is None:
            raise CaseIdError(f"{self.path}: has no case {text!r}{did_you_mean(text, self._scan.cases)}")
        case = self._case(known)
        if case.id != text:
            raise CaseIdError(f"{self.path}: {known.path} is {case.id} now, not {text}")
        return case

    def batches(self, texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order, one at a time."""
        return map(self.case, texts)

    @functools.cached_property
    def _files(self) -> Files:
        return open_files(self.path)

    @functools.cached_property
    def _sizes(self) -> Mapping[str, int]:
        return self._files.sizes()

    @functools.cached_property
    def _data_sets(self) -> tuple[_DataSet, ...]:
        """Return all data sets that have a model, in the order of their paths."""
        files: dict[tuple[str, str], dict[str, dict[int, str]]] = {}
        for path in self._sizes:
            if match := _DATA_SET.fullmatch(path):
                kinds = files.setdefault((match["folder"] or "", match["set"]), {"input": {}, "output": {}})
                kinds[match["kind"]][int(match["place"])] = path
        made = [
            _DataSet(folder, name, *(tuple(kinds[k][i] for i in sorted(kinds[k])) for k in ("input", "output")))
            for (folder, name), kinds in files.items()
        ]
        made.sort(key=lambda data_set: (data_set.folder, int(data_set.name.rpartition("_")[2])))
        return tuple(data_set for data_set in made if data_set.model in self._sizes)

    @functools.cached_property
    def _scan(self) -> _Scan:
        scan = _Scan()
        for data_set in self._data_sets:
            try:
                text = self._case(data_set).id
            except (_LeftOut, CorpusError) as why:
                scan.left_out[data_set.path] = str(why).removeprefix(f"{self._files.name}: ")
                continue
            if text in scan.cases:
                scan.left_out[data_set.path] = f"has the same id as {scan.cases[text].path}"
            else:
                scan.cases[text] = data_set
        if not scan.cases:
            first = next((f": {path}: {why}" for path, why in scan.left_out.items()), "")
            expected = f"expected a corpus, or folders with {MODEL} and test_data_set_0/input_0.pb, output_0.pb"
            raise CorpusError(f"{self.path}: has no cases{first}; {expected}")
        return scan

    @functools.cached_property
    def _by_name(self) -> dict[tuple[str, str], _DataSet]:
        return {(_safe(data_set.folder), data_set.name): data_set for data_set in reversed(self._data_sets)}

    @functools.cached_property
    def _recent_model(self) -> dict[str, tuple[bytes, Any]]:
        return {}

    def _model(self, path: str) -> tuple[bytes, Any]:
        """Return a model's bytes and the model; the last model is cached, because its data sets follow each other."""
        if path not in self._recent_model:
            content = self._files.read(path, LARGEST_MODEL)
            model = parsed("ModelProto", content, f"{self._files.name}: {path}")
            self._recent_model.clear()
            self._recent_model[path] = content, model
        return self._recent_model[path]

    def stored(self) -> Iterator[tuple[str, StoredCase | str]]:
        """Yield every data set by its path, as read from its files, or the reason why it cannot be a case."""
        for data_set in self._data_sets:
            try:
                yield data_set.path, self._stored(data_set)
            except (_LeftOut, CorpusError) as why:
                yield data_set.path, str(why).removeprefix(f"{self._files.name}: ")

    def expectation(self, path: str, stored: StoredCase) -> Expectation:
        """Return the expectation of the data set at a path: its outputs, within its tolerances. Raises CorpusError."""
        tolerances = self._tolerances(f"{path.rpartition('/')[0]}/{TOLERANCES}".removeprefix("/"))
        outputs = [array for value in stored.outputs for array in value.arrays]
        try:
            bounds = tuple(tolerances.bounds(array[np.newaxis]) for array in outputs)
        except ValueError as error:
            raise CorpusError(f"{self._files.name}: {error}") from None
        structure = () if stored.program.is_plain else tuple(value.structure.outline for value in stored.outputs)
        return Expectation((Option((), bounds, structure=structure),), tuple(map(type_of, outputs)))

    def _stored(self, data_set: _DataSet) -> StoredCase:
        content, model = self._model(data_set.model)
        if not data_set.outputs:
            raise _LeftOut("has no output_0.pb")
        if _refers_elsewhere(model):
            raise _LeftOut("its weights are in another file")
        if any(isinstance(name, bytes) for name in _names(model)):  # protobuf's message for invalid UTF-8
            raise _LeftOut("a name in its model is not text")
        graph = model.graph
        fed = _fed(graph, len(data_set.inputs))
        if len(fed) != len(data_set.inputs) or len(graph.output) != len(data_set.outputs):
            raise _LeftOut("its number of inputs or outputs differs from its model")
        given = [self._value(path, port) for path, port in zip(data_set.inputs, fed, strict=True)]
        wanted = [self._value(path, port) for path, port in zip(data_set.outputs, graph.output, strict=True)]
        program = _program(content, model, given, wanted)
        inputs = [array for value in given for array in value.arrays]
        types, shapes = tuple(map(type_of, inputs)) or ("none",), tuple(array.shape for array in inputs)
        settings = (("from", _safe(data_set.folder)),)
        case_id = CaseId(str(program.operator), types, shapes, settings, data_set.name)
        return StoredCase(str(case_id), program, model, tuple(given), tuple(wanted))

    def _case(self, data_set: _DataSet) -> Batch:
        stored = self._stored(data_set)
        inputs = [array for value in stored.inputs for array in value.arrays]
        return Batch.of_case(stored.id, stored.program, inputs, self.expectation(data_set.path, stored))

    def _tolerances(self, path: str) -> Tolerances:
        """Return the tolerances in a model's `data.json`, read as ONNX's loader reads them."""
        if path not in self._sizes:
            return Tolerances()
        tolerances = read_json(self._files.read(path, LARGEST_JSON), f"{self._files.name}: {path}")
        try:
            return Tolerances(tolerances.get("rtol", RELATIVE), tolerances.get("atol", ABSOLUTE))
        except ValueError as error:
            raise _LeftOut(f"its {TOLERANCES}: {error}") from None

    def _value(self, path: str, port: Any) -> StoredValue:
        """Return the content of a file for an input or output of a model, whose type decides which message to parse."""
        held, name = self._files.read(path, LARGEST_MODEL), path.rpartition("/")[2]
        try:
            type_ = _type_of(port.type)
            if type_ is None:  # a tensor, whatever element type the model declares
                array = from_tensor_proto(parsed("TensorProto", held, f"{self._files.name}: {path}"))
                return StoredValue.of_tensor(port.name, array)
            return StoredValue(port.name, type_, *read_value_file(held, type_, name))
        except ValueError as error:
            raise _LeftOut(f"{name}: {error}") from None


@dataclass
class _Scan:
    cases: dict[str, _DataSet] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def _safe(folder: str) -> str:
    """Return a folder's path in the form of an id's setting."""
    return _UNSAFE.sub("_", folder.replace("/", ".")) or "."


def _refers_elsewhere(message: Any) -> bool:
    """Return whether a tensor anywhere in a message has its content in another file."""
    if message.DESCRIPTOR.name == "TensorProto" and (message.external_data or message.data_location):
        return True
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            parts = value if hasattr(value, "append") or hasattr(value, "add") else [value]
            if any(_refers_elsewhere(part) for part in parts):
                return True
    return False


def _names(model: Any) -> Iterator[str | bytes]:
    """Yield the names of a model that ids and messages contain."""
    yield from (opset.domain for opset in model.opset_import)
    for node in model.graph.node:
        yield from (node.op_type, node.domain)
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        yield value.name


def _type_of(type_proto: Any) -> str | None:
    """Return an ONNX type as an expression, None for a tensor; ValueError for types that cases cannot have."""
    match type_proto.WhichOneof("value"):
        case "sequence_type":
            return f"seq({_element_of(type_proto.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({_element_of(type_proto.optional_type.elem_type)})"
        case "map_type":
            key = numbered(type_proto.map_type.key_type)
            return str(parse_type(f"map({key and key.name},{_element_of(type_proto.map_type.value_type)})"))
        case "tensor_type" | None:
            return None
        case other:
            raise ValueError(f"of a type that cases cannot have: {other}")


def _element_of(type_proto: Any) -> str:
    if inner := _type_of(type_proto):
        return inner
    known = numbered(type_proto.tensor_type.elem_type)
    if known is None:
        raise ValueError("of a type that cases cannot have")
    return known.name


def _fed(graph: Any, count: int) -> list[Any]:
    """Return the graph inputs that a run is given: before IR version 4 an initializer is an input with a default."""
    initialized = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in initialized]
    return inputs if len(inputs) == count else list(graph.input)[:count]


def _program(content: bytes, model: Any, given: Sequence[StoredValue], wanted: Sequence[StoredValue]) -> ModelProgram:
    fed = tuple(
        Input(v.name, v.type, v.arrays[0].shape)
        if v.structure.kind == "tensor"
        else Input(v.name, v.type, (), structure=v.structure)
        for v in given
    )
    made = tuple(Output(v.name, v.type, v.arrays[0].ndim if v.structure.kind == "tensor" else None) for v in wanted)
    operator, opset = _operator(model)
    return ModelProgram(operator, (), fed, made, opset, model=content)


def _operator(model: Any) -> tuple[OperatorVersion, int]:
    """Return the operator version of a model's only node, or `model` with the opset; and the opset of its domain."""
    from onnx import defs  # noqa: PLC0415

    opsets = {_domain(entry.domain): int(entry.version) for entry in model.opset_import}
    nodes = model.graph.node
    if len(nodes) != 1:
        return OperatorVersion("onnx", _MODEL_NAME, opsets.get("", 0)), opsets.get("", 0)
    name, domain = _UNSAFE.sub("_", nodes[0].op_type) or "_", _domain(nodes[0].domain)
    opset = opsets.get(domain, 0)
    try:
        version = int(defs.get_schema(nodes[0].op_type, opset, domain).since_version)
    except Exception:  # an operator or an opset that the installed onnx does not know
        version = opset
    return OperatorVersion("onnx", name, version, domain), opset


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


RELATIVE, ABSOLUTE = 1e-3, 1e-7
"""The tolerances of ONNX's own runner of backend tests, unless a folder has others."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The admissible distance of an answer from the expected value.

    Raises ValueError if a tolerance is out of range.
    """

    relative: float = RELATIVE
    absolute: float = ABSOLUTE

    def __post_init__(self) -> None:
        for tolerance, below in ((self.relative, 1.0), (self.absolute, math.inf)):
            if type(tolerance) not in (int, float) or not 0 <= tolerance < below:
                raise ValueError(f"expected 0 <= rtol < 1 and 0 <= atol; read {self.relative!r} and {self.absolute!r}")

    def bounds(self, array: Array) -> Bounds:
        """Return the admissible answers: |expected - answer| <= atol + rtol * |answer|, NaN and infinities in place.

        Text and truth values must be equal. Raises ValueError for complex numbers, which have no tolerances.
        """
        name = type_of(array)
        kind = element_type(name)
        if kind.kind == "complex":
            raise ValueError(f"tolerances of {name} do not give bounds")
        if kind.kind in ("bool", "string"):
            return Bounds(name, array, array, array)
        if kind.is_integer:
            return Bounds(name, array, self._integers(array, -1), self._integers(array, 1))
        value = comparable(array)
        finite = np.isfinite(value)
        number = np.where(finite, value, 0.0)
        lower, upper = -self._farthest(-number), self._farthest(number)
        flags = np.zeros(value.shape, np.uint8)
        for flag, where in (
            (Flag.NAN, np.isnan(value)),
            (Flag.POSITIVE_INFINITY, value == np.inf),
            (Flag.NEGATIVE_INFINITY, value == -np.inf),
        ):
            flags[where] = flag
        lower, upper = (np.where(finite, end, np.nan) for end in (lower, upper))
        return Bounds(name, value, lower, upper, flags if flags.any() else None)

    def _farthest(self, number: Array) -> Array:
        """Return the largest admissible answer for each expected number."""
        reach = number + self.absolute
        with np.errstate(over="ignore"):
            return np.where(reach >= 0, reach / (1 - self.relative), reach / (1 + self.relative))

    def _integers(self, array: Array, sign: int) -> Array:
        kind, relative, absolute = element_type(type_of(array)), Fraction(self.relative), Fraction(self.absolute)
        ends = []
        for number in array.reshape(-1).tolist():
            reach = sign * number + absolute
            end = math.floor(reach / (1 - relative) if reach >= 0 else reach / (1 + relative))
            ends.append(min(max(sign * end, kind.smallest), kind.largest))
        return np.array(ends, array.dtype).reshape(array.shape)

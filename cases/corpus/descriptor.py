"""Converts a case to a descriptor, with its program as JSON and named tensors, and back: see docs/corpus.md."""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np

from ..batch import Batch, Bounds, Check, CheckName, Expectation, Option, Residue, Spread
from ..elements import Array, content, element_type, from_content, type_of
from ..program import (
    Attribute,
    AttributeKind,
    Body,
    Input,
    Node,
    OperatorVersion,
    Output,
    Program,
    SparseTensor,
    Structure,
    Tensor,
    leaves,
    parse_type,
)
from .files import CorpusError
from .tensors import read_value_file, restored, value_file

TakeConstant = Callable[[str, str, Sequence[int]], Array]
"""Returns the tensor with this name; it must have this type and shape."""

_DEEPEST = 8  # bodies within bodies, and items within items


def constants(program: Program) -> dict[str, Array]:
    """Return the tensors of a program's constants by the names that `program_json` gives them."""
    held = [input_ for input_ in program.given if input_.constant is not None]
    return {f"constant_{number}": input_.array() for number, input_ in enumerate(held)}


def program_json(program: Program) -> dict[str, Any]:
    """Return a program as JSON; unused structures, bodies and omitted outputs do not appear."""
    names = (f"constant_{number}" for number in itertools.count())
    return {
        **asdict(program.operator),
        "opset": program.opset,
        "attributes": [_attribute(part) for part in program.attributes],
        "inputs": [None if part is None else _input(part, names) for part in program.inputs],
        "outputs": [_output(part) for part in program.outputs],
        **({"captured": [_input(part, names) for part in program.captured]} if program.captured else {}),
        **({} if program.around is None else {"around": attribute_value(program.around)}),
    }


def program_from(fields: Mapping[str, Any], take: TakeConstant) -> Program:
    """Return the program that `program_json` wrote; `take` returns its constants.

    Raises KeyError, TypeError, ValueError or AttributeError if the JSON is not a program.
    """
    return Program(
        _operator_from(fields),
        tuple(_attribute_from(part, _DEEPEST) for part in fields["attributes"]),
        tuple(None if part is None else _input_from(part, take) for part in fields["inputs"]),
        tuple(_output_from(part) for part in fields["outputs"]),
        fields["opset"],
        tuple(_input_from(part, take) for part in fields.get("captured", ())),
        _value_from("graph", fields["around"], _DEEPEST) if "around" in fields else None,
    )


def structure_json(structure: Structure) -> dict[str, Any]:
    """Return a structure as JSON, without empty fields."""
    fields: dict[str, Any] = {"kind": structure.kind}
    if structure.dims is not None:
        fields["dims"] = list(structure.dims)
    if structure.kind in ("sequence", "optional"):
        fields["items"] = [structure_json(item) for item in structure.items]
    if structure.kind in ("map", "sparse"):
        fields["count"] = structure.count
    return fields


def structure_from(fields: Mapping[str, Any], depth: int = _DEEPEST) -> Structure:
    """Return the structure that `structure_json` wrote; ValueError if the JSON is not a structure."""
    if not depth or fields["kind"] not in ("tensor", "sequence", "optional", "map", "sparse"):
        raise ValueError(f"not a structure: {fields['kind']!r}")
    dims = None if fields.get("dims") is None else tuple(fields["dims"])
    items = tuple(structure_from(item, depth - 1) for item in fields.get("items", ()))
    return Structure(fields["kind"], dims, items, int(fields.get("count", 0)))


def _operator_from(fields: Mapping[str, Any]) -> OperatorVersion:
    return OperatorVersion(fields["standard"], fields["name"], fields["version"], fields["domain"])


def _attribute(attribute: Attribute) -> dict[str, Any]:
    value = attribute.value
    encoded = [attribute_value(entry) for entry in value] if isinstance(value, tuple) else attribute_value(value)
    return {"name": attribute.name, "kind": attribute.kind, "value": encoded}


def attribute_value(value: object) -> Any:
    """Return the value of an attribute, or one item of it, as JSON; infinities and NaN as text."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)  # JSON has no infinities and no NaN
        case Tensor():
            return _tensor(value)
        case SparseTensor():
            return {"values": _tensor(value.values), "indices": _tensor(value.indices), "dims": list(value.dims)}
        case Body():
            return {
                "name": value.name,
                "inputs": [_input(part, None) for part in value.inputs],
                "outputs": [_output(part) for part in value.outputs],
                "nodes": [
                    {
                        **asdict(node.operator),
                        "inputs": list(node.inputs),
                        "outputs": list(node.outputs),
                        "attributes": [_attribute(part) for part in node.attributes],
                    }
                    for node in value.nodes
                ],
            }
    return value


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {"type": tensor.type, "dims": list(tensor.dims), "content": base64.b64encode(tensor.content).decode()}


def _attribute_from(fields: Mapping[str, Any], depth: int) -> Attribute:
    kind, value = fields["kind"], fields["value"]
    if kind not in get_args(AttributeKind) or not depth:
        raise ValueError(f"no attribute of kind {kind!r}")
    if isinstance(value, list):
        return Attribute(fields["name"], kind, tuple(_value_from(kind, entry, depth) for entry in value))
    return Attribute(fields["name"], kind, _value_from(kind, value, depth))


def _value_from(kind: str, value: Any, depth: int) -> Any:
    match kind.removesuffix("s"):
        case "float" | "f32" if isinstance(value, str):
            return float(value)
        case "tensor":
            return _tensor_from(value)
        case "sparse_tensor":
            values, indices = _tensor_from(value["values"]), _tensor_from(value["indices"])
            return SparseTensor(values, indices, tuple(map(int, value["dims"])))
        case "graph":
            return Body(
                value["name"],
                tuple(_input_from(part, None) for part in value["inputs"]),
                tuple(part for part in map(_output_from, value["outputs"]) if part is not None),
                tuple(
                    Node(
                        _operator_from(node),
                        tuple(node["inputs"]),
                        tuple(node["outputs"]),
                        tuple(_attribute_from(part, depth - 1) for part in node["attributes"]),
                    )
                    for node in value["nodes"]
                ),
            )
    if not isinstance(value, int | float | str):
        raise TypeError(f"no value of kind {kind}: {value!r}")
    return value


def _tensor_from(fields: Mapping[str, Any]) -> Tensor:
    held = base64.b64decode(fields["content"], validate=True)
    return Tensor.of(from_content(fields["type"], tuple(fields["dims"]), held))


def _input(given: Input, names: Iterator[str] | None) -> dict[str, Any]:
    """Return an input; its constant has the next of `names`, or is inline if there are no names."""
    fields: dict[str, Any] = {"name": given.name, "type": given.type, "dims": list(given.dims), "constant": None}
    if given.constant is not None:
        fields["constant"] = base64.b64encode(given.constant).decode() if names is None else next(names)
    if given.strides is not None:
        fields["strides"] = list(given.strides)
    return fields if given.structure is None else {**fields, "structure": structure_json(given.structure)}


def _input_from(fields: Mapping[str, Any], take: TakeConstant | None) -> Input:
    name, type_, dims, constant = fields["name"], fields["type"], tuple(fields["dims"]), fields["constant"]
    structure = None if fields.get("structure") is None else structure_from(fields["structure"])
    leaves(type_, Structure("tensor", dims) if structure is None else structure)
    if constant is None:
        strides = None if fields.get("strides") is None else tuple(map(int, fields["strides"]))
        if strides is not None and len(strides) != len(dims):
            raise ValueError(f"{name} has {len(dims)} dimensions and {len(strides)} strides")
        return Input(name, type_, dims, None, structure, strides)
    if take is None:
        return Input(name, type_, dims, content(from_content(type_, dims, base64.b64decode(constant, validate=True))))
    return Input(name, type_, dims, content(take(constant, element_type(type_).name, dims)))


def _output(output: Output | None) -> dict[str, Any] | None:
    if output is None:
        return None
    fixed = {} if output.shape is None else {"shape": list(output.shape)}
    free = {"free": True} if output.free else {}
    return {"name": output.name, "type": output.type, "rank": output.rank, **fixed, **free}


def _output_from(fields: Mapping[str, Any] | None) -> Output | None:
    if fields is None:
        return None
    parse_type(fields["type"])
    shape = None if fields.get("shape") is None else tuple(map(int, fields["shape"]))
    return Output(fields["name"], fields["type"], fields["rank"], shape, free=bool(fields.get("free", False)))


SCHEMA = 2
"""The version of the layout and of the descriptor."""

_REST_OF_BOUNDS = ("lower", "upper", "flags", "sigma")
_SHARED = ("value", "rest", "doubt")

KINDS = ("values", "rejected", "anything")


@dataclass(frozen=True)
class CorpusCase:
    """A case with everything that a corpus keeps of it.

    `answer` has one admissible value of each output, of the output's type, for readers that only know tolerances; None
    if only a refusal is right. `certificate` says where the bounds come from, as JSON.
    """

    case: Batch
    answer: tuple[Array, ...] | None = None
    certificate: Mapping[str, Any] | None = None


def described(corpus_case: CorpusCase) -> dict[str, Any]:
    """Return the descriptor of a case, as JSON."""
    case = corpus_case.case
    return {
        "schema": SCHEMA,
        "id": case.id,
        "standard": case.program.operator.standard,
        "operator": str(case.program.operator),
        "program": program_json(case.program),
        "inputs": [
            {"name": name, "type": leaf.type, "shape": list(array.shape)}
            for (name, leaf), array in zip(case.program.named_leaves, case.tensors(), strict=True)
        ],
        "types": list(case.expectation.types),
        "rejected": case.expectation.invalid,
        "mended": case.valid_variant,
        "options": [_option(option) for option in case.expectation.options],
        "clauses": list(case.clauses),
        "certificate": corpus_case.certificate,
    }


def tensors(corpus_case: CorpusCase) -> dict[str, Array]:
    """Return all tensors of a case by name: the inputs, an admissible answer, and the result of `other_tensors`."""
    arrays_by_name = {f"input_{number}": array for number, array in enumerate(corpus_case.case.tensors())}
    arrays_by_name |= {f"output_{number}": array for number, array in enumerate(corpus_case.answer or ())}
    return arrays_by_name | other_tensors(corpus_case.case)


def value_files(corpus_case: CorpusCase) -> Iterator[tuple[str, bytes]]:
    """Yield the inputs and the admissible answer as ONNX messages, one for each input and output, by file name."""
    case, outputs = corpus_case.case, iter(corpus_case.answer or ())
    program, inputs = case.program, iter(case.tensors())
    for number, feed in enumerate(program.feeds):
        yield f"input_{number}.pb", value_file(feed.name, feed.type, feed.layout, inputs)
    if corpus_case.answer is not None:
        plain = (Structure("tensor"),) * len(program.answers)
        structures = next((o.structure for o in case.expectation.options if o.structure), plain)
        for number, output in enumerate(program.answers):
            yield f"output_{number}.pb", value_file(output.name, output.type, structures[number], outputs)


def read_values(descriptor: Mapping[str, Any], files: Mapping[str, bytes], file: str) -> dict[str, Array]:
    """Return the tensors in the files that `value_files` yields for the case of a descriptor, by name.

    Raises CorpusError whose message begins with `file` or with a file's name.
    """
    arrays_by_name: dict[str, Array] = {}
    try:
        given = (*descriptor["program"]["inputs"], *descriptor["program"].get("captured", ()))
        ports = {port["name"]: port for port in given if port is not None}.values()  # one name is one tensor
        types = {"input": [_text(port["type"]) for port in ports if port["constant"] is None]}
        types["output"] = [_text(port["type"]) for port in descriptor["program"]["outputs"] if port is not None]
        for kind, of_kind in types.items():
            arrays: list[Array] = []
            for number, type_ in enumerate(of_kind):
                if (name := f"{kind}_{number}.pb") in files:
                    arrays += read_value_file(files[name], type_, f"{file}: {name}")[0]
            arrays_by_name |= {f"{kind}_{number}": array for number, array in enumerate(arrays)}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorpusError(f"{file}: not a descriptor of schema {SCHEMA}: {type(error).__name__}: {error}") from None
    return arrays_by_name


def other_tensors(case: Batch) -> dict[str, Array]:
    """Return the tensors that a reader of ONNX's layout does not know, by name: the program's constants, the bounds.

    Omitted are tensors that decide no verdict and follow from others: `value` if it equals both `lower` and `upper`;
    and `value`, `rest` and `doubt` if they equal those of the previous option, unless `lower` and `upper` are the same.
    """
    arrays_by_name = constants(case.program)
    last: dict[tuple[str, int], bytes] = {}
    for position, option in enumerate(case.expectation.options):
        for output, bounds in enumerate(option.outputs):
            for part, array in _parts(bounds):
                if part in _SHARED:
                    held = repr(array.shape).encode() + content(array)
                    same, last[part, output] = last.get((part, output)) == held, held
                    if bounds.spread is None and _is_told(part, bounds, same):
                        continue
                arrays_by_name[f"option_{position}_{part}_{output}"] = array
        for number, check in enumerate(option.checks):
            name = f"option_{position}_check_{number}"
            arrays_by_name |= {f"{name}_{at}": array[0, ...] for at, array in enumerate(check.arrays)}
    return arrays_by_name


def _is_told(part: str, bounds: Bounds, same: bool) -> bool:
    """Return whether a tensor need not be written; `same`: it equals the one of the previous option."""
    lower = content(bounds.lower)
    if part == "value" and lower == content(bounds.upper):
        return content(bounds.value) == lower
    return same


def case_from(descriptor: Mapping[str, Any], arrays: Mapping[str, Array], digests: tuple[str, str], file: str) -> Batch:
    """Return the case of a descriptor and its tensors; `digests` are the digests of the case and of its expectation.

    Raises CorpusError whose message begins with `file` if the descriptor is invalid, or if the parts do not belong
    together.
    """
    check_schema(descriptor, file)
    try:
        case = _case(descriptor, _Tensors(arrays, file))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise CorpusError(f"{file}: not a descriptor of schema {SCHEMA}: {type(error).__name__}: {error}") from None
    made = (case.digest, case.expectation.digest)
    for name, wanted, digest in zip(("case_digest", "expectation_digest"), digests, made, strict=True):
        if wanted != digest:
            raise CorpusError(
                f"{file}: descriptor and tensors do not match the {name} {wanted}; their digest is {digest}"
            )
    return case


def check_schema(fields: Mapping[str, Any], file: str) -> None:
    """Raise CorpusError for a descriptor or manifest of another schema."""
    if fields.get("schema") != SCHEMA:
        read = fields.get("schema")
        raise CorpusError(f"{file}: has schema {read!r}; this version of opconform reads schema {SCHEMA}")


class _Tensors:
    """Tensors by name; each must have the declared shape and type."""

    def __init__(self, arrays: Mapping[str, Array], file: str) -> None:
        self._arrays, self._file = arrays, file
        self._last: dict[tuple[str, int], Array] = {}

    def parts(self, name: str, position: int, fields: Mapping[str, Any]) -> dict[str, Array]:
        """Return the tensors of one output's bounds, including the omitted ones, which follow from others."""
        type_, shape = fields["type"], fields["shape"]
        # floats are bounded in float64, everything else in its own type
        number = "float64" if element_type(type_).kind == "float" else type_
        parts: dict[str, Array] = {}
        for part in (*_REST_OF_BOUNDS, *_SHARED):
            if part not in fields["tensors"]:
                continue
            full, array = f"{name}_{part}_{position}", None
            if part in _SHARED and full not in self._arrays:
                is_exact = part == "value" and content(parts["lower"]) == content(parts["upper"])
                array = parts["lower"] if is_exact else self._last.get((part, position))
            if array is None or array.shape != tuple(shape):
                array = self.take(full, "uint8" if part == "flags" else number, shape)
            parts[part] = self._last[part, position] = array
        return parts

    def take(self, name: str, type_: str, shape: Sequence[int]) -> Array:
        array = self._arrays.get(name)
        if array is None:
            raise CorpusError(f"{self._file}: tensor {name} is missing")
        try:
            return restored(array, type_, shape)
        except ValueError as error:
            expected = f"told {type_} {list(shape)}, {error}"
            raise CorpusError(f"{self._file}: tensor {name} does not match the descriptor: {expected}") from None


def _case(descriptor: Mapping[str, Any], taken: _Tensors) -> Batch:
    program = program_from(descriptor["program"], taken.take)
    inputs = tuple(
        taken.take(f"input_{number}", fields["type"], fields["shape"])
        for number, fields in enumerate(descriptor["inputs"])
    )
    if [leaf.type for leaf in program.leaves] != [fields["type"] for fields in descriptor["inputs"]]:
        raise ValueError("the inputs do not match the program")
    options = tuple(
        _option_from(fields, f"option_{number}", taken) for number, fields in enumerate(descriptor["options"])
    )
    valid_variant = None if descriptor["mended"] is None else _text(descriptor["mended"])
    expectation = Expectation(options, _texts(descriptor["types"]))
    if any([option.labels for option in options] != expectation.labels(pattern) for pattern in expectation.patterns):
        raise ValueError("a label names a silence that is not open")
    return Batch.of_case(
        _text(descriptor["id"]),
        program,
        inputs,
        expectation,
        clauses=_texts(descriptor["clauses"]),
        valid_variant=valid_variant,
    )


def _text(word: Any) -> str:
    if not isinstance(word, str):
        raise TypeError(f"expected a string, read {word!r}")
    return word


def _texts(words: Any) -> tuple[str, ...]:
    return tuple(_text(word) for word in words)


def _option(option: Option) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if option.structure:
        more["structure"] = [structure_json(structure) for structure in option.structure]
    if option.checks:
        more["checks"] = [
            {
                "name": check.name,
                "outputs": list(check.outputs),
                "settings": dict(check.settings),
                "arrays": [{"type": type_of(array), "shape": list(array.shape[1:])} for array in check.arrays],
            }
            for check in option.checks
        ]
    return {
        "labels": dict(option.labels),
        "kind": option.kind,
        "level": option.level,
        "exceptional": option.exceptional,
        **more,
        "outputs": [
            {
                "type": bounds.type,
                "shape": list(bounds.shape),
                "tensors": [part for part, _ in _parts(bounds)],
                "limit": None if bounds.spread is None else bounds.spread.limit,
            }
            for bounds in option.outputs
        ],
    }


def _parts(laned: Bounds) -> Iterator[tuple[str, Array]]:
    """Yield the tensors of a single case's bounds, without lanes."""
    bounds = laned.mapped(lambda array: array[0, ...])
    yield from (("value", bounds.value), ("lower", bounds.lower), ("upper", bounds.upper))
    if bounds.flags is not None:
        yield "flags", bounds.flags
    if bounds.spread is not None:
        yield "sigma", bounds.spread.sigma
    if bounds.residue is not None:
        yield from (("rest", bounds.residue.rest), ("doubt", bounds.residue.doubt))


def _option_from(fields: Mapping[str, Any], name: str, taken: _Tensors) -> Option:
    if fields["kind"] not in KINDS or fields["level"] not in ("strict", "declared"):
        raise ValueError(f"{name} is of kind {fields['kind']!r} and level {fields['level']!r}")
    outputs = tuple(_bounds_from(part, name, number, taken) for number, part in enumerate(fields["outputs"]))
    labels = tuple((silence, _text(answer)) for silence, answer in fields["labels"].items())
    structure = tuple(map(structure_from, fields.get("structure", ())))
    checks = tuple(
        _check_from(part, f"{name}_check_{number}", taken) for number, part in enumerate(fields.get("checks", ()))
    )
    kind, exceptional, level = fields["kind"], fields["exceptional"], fields["level"]
    return Option(labels, outputs, kind, exceptional, level, structure=structure, checks=checks)


def _check_from(fields: Mapping[str, Any], name: str, taken: _Tensors) -> Check:
    if fields["name"] not in get_args(CheckName):
        raise ValueError(f"{name} is called {fields['name']!r}")
    arrays = (
        taken.take(f"{name}_{number}", array_fields["type"], array_fields["shape"])
        for number, array_fields in enumerate(fields["arrays"])
    )
    settings = tuple(fields["settings"].items())
    return Check(fields["name"], tuple(fields["outputs"]), settings, tuple(array[np.newaxis] for array in arrays))


def _bounds_from(fields: Mapping[str, Any], name: str, number: int, taken: _Tensors) -> Bounds:
    parts = taken.parts(name, number, fields)
    spread = Spread(parts["sigma"], float(fields["limit"])) if "sigma" in parts else None
    residue = Residue(parts["rest"], parts["doubt"]) if "rest" in parts else None
    bounds = Bounds(fields["type"], parts["value"], parts["lower"], parts["upper"], parts.get("flags"), spread, residue)
    return bounds.mapped(lambda array: array[np.newaxis])

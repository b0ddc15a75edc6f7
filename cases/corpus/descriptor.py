"""A case as a descriptor and named tensors, and back: see docs/corpus.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..elements import Array, element_type, element_types
from ..expectation import Bounds, Expectation, Option, Residue, Spread
from ..model import Attribute, Case, Input, OperatorVersion, Output, Program
from .files import CorpusError

SCHEMA = 2
"""The version of the layout and of the descriptor."""

_REST_OF_BOUNDS = ("lower", "upper", "flags", "sigma")
_SHARED = ("value", "rest", "doubt")

KINDS = ("values", "rejected", "anything")


@dataclass(frozen=True)
class CorpusCase:
    """A case with all that a corpus tells of it.

    `answer` has an admissible value of each output, of the output's type, for readers that know tolerances alone; None
    where only a refusal is right. `certificate` says where the bounds come from, as JSON.
    """

    case: Case
    answer: tuple[Array, ...] | None = None
    certificate: Mapping[str, Any] | None = None


def described(one: CorpusCase) -> dict[str, Any]:
    """Return the descriptor of a case, as JSON."""
    case = one.case
    return {
        "schema": SCHEMA,
        "id": case.id,
        "standard": case.program.operator.standard,
        "operator": str(case.program.operator),
        "program": _program(case.program),
        "inputs": [
            {"name": i.name, "type": i.type, "shape": list(array.shape)}
            for i, array in zip(case.program.feeds, case.inputs, strict=True)
        ],
        "types": list(case.expectation.types),
        "rejected": case.expectation.invalid,
        "mended": case.mended,
        "options": [_option(option) for option in case.expectation.options],
        "clauses": list(case.clauses),
        "certificate": one.certificate,
    }


def tensors(one: CorpusCase) -> dict[str, Array]:
    """Return all tensors of a case by name: inputs, an admissible answer, and those of `other_tensors`."""
    found = {f"input_{place}": array for place, array in enumerate(one.case.inputs)}
    found |= {f"output_{place}": array for place, array in enumerate(one.answer or ())}
    return found | other_tensors(one.case)


def other_tensors(case: Case) -> dict[str, Array]:
    """Return the tensors by name that a reader of ONNX's layout does not know: the program's constants, the bounds."""
    constants = [one for one in case.program.inputs if one is not None and one.constant is not None]
    return {f"constant_{place}": one.array() for place, one in enumerate(constants)} | bounds_tensors(case.expectation)


def bounds_tensors(expectation: Expectation) -> dict[str, Array]:
    """Return the tensors of an expectation's bounds by name.

    Left out are those that decide no verdict and are told by others: a `value` that is both `lower` and `upper`, and
    `value`, `rest` and `doubt` where they are those of the option before, unless `lower` and `upper` are the same.
    """
    found: dict[str, Array] = {}
    last: dict[tuple[str, int], bytes] = {}
    for place, option in enumerate(expectation.options):
        for output, bounds in enumerate(option.outputs):
            for part, array in _parts(bounds):
                if part in _SHARED:
                    content = repr(array.shape).encode() + array.tobytes()
                    same, last[part, output] = last.get((part, output)) == content, content
                    if bounds.spread is None and _is_told(part, bounds, same):
                        continue
                found[f"option_{place}_{part}_{output}"] = array
    return found


def _is_told(part: str, bounds: Bounds, same: bool) -> bool:
    """Return whether a tensor need not be written; `same`: it is that of the option before."""
    lower = bounds.lower.tobytes()
    if part == "value" and lower == bounds.upper.tobytes():
        return bounds.value.tobytes() == lower
    return same


def case_from(told: Mapping[str, Any], found: Mapping[str, Array], digests: tuple[str, str], file: str) -> Case:
    """Return the case of a descriptor and its tensors; `digests` are those of the case and of its expectation.

    Raises CorpusError that begins with `file` if the descriptor is none of ours, or if they do not belong together.
    """
    _check_schema(told, file)
    try:
        case = _case(told, _Tensors(found, file))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise CorpusError(f"{file}: no descriptor of schema {SCHEMA}: {type(error).__name__}: {error}") from None
    made = (case.digest, case.expectation.digest)
    for name, wanted, digest in zip(("case_digest", "expectation_digest"), digests, made, strict=True):
        if wanted != digest:
            raise CorpusError(
                f"{file}: descriptor and tensors are not those of its {name} {wanted}: theirs is {digest}"
            )
    return case


def _check_schema(told: Mapping[str, Any], file: str) -> None:
    if told.get("schema") != SCHEMA:
        read = told.get("schema")
        raise CorpusError(f"{file}: of schema {read!r}; this version of opconform reads schema {SCHEMA}")


class _Tensors:
    """Tensors by name, of which every one must have the shape and type that is told."""

    def __init__(self, found: Mapping[str, Array], file: str) -> None:
        self._found, self._file = found, file
        self._last: dict[tuple[str, int], Array] = {}

    def parts(self, name: str, place: int, told: Mapping[str, Any]) -> dict[str, Array]:
        """Return the tensors of one output's bounds, those included that are left out because others tell them."""
        type_, shape = told["type"], told["shape"]
        # floats are bounded in float64, everything else in its own type
        number = "float64" if element_type(type_).kind == "float" else type_
        parts: dict[str, Array] = {}
        for part in (*_REST_OF_BOUNDS, *_SHARED):
            if part not in told["tensors"]:
                continue
            full = f"{name}_{part}_{place}"
            if part not in _SHARED:
                parts[part] = self.take(full, "uint8" if part == "flags" else number, shape)
            elif full in self._found:
                parts[part] = self._last[part, place] = self.take(full, number, shape)
            elif part == "value" and parts["lower"].tobytes() == parts["upper"].tobytes():
                parts[part] = self._last[part, place] = parts["lower"]
            else:
                parts[part] = self._earlier(full, part, place, tuple(shape))
        return parts

    def _earlier(self, name: str, part: str, place: int, shape: tuple[int, ...]) -> Array:
        array = self._last.get((part, place))
        if array is None or array.shape != shape:
            raise CorpusError(f"{self._file}: tensor {name} is missing")
        return array

    def take(self, name: str, type_: str, shape: Sequence[int]) -> Array:
        array = self._found.get(name)
        if array is None:
            raise CorpusError(f"{self._file}: tensor {name} is missing")
        wanted = element_types()[type_].dtype
        if type_ == "bfloat16" and array.dtype == np.uint16:
            array = array.view(wanted)
        if array.dtype != wanted or array.shape != tuple(shape):
            read = f"read {array.dtype} {list(array.shape)}, told {type_} {list(shape)}"
            raise CorpusError(f"{self._file}: tensor {name} is not what the descriptor tells: {read}")
        return array


def _case(told: Mapping[str, Any], found: _Tensors) -> Case:
    program = _program_from(told["program"], found)
    inputs = tuple(found.take(f"input_{place}", one["type"], one["shape"]) for place, one in enumerate(told["inputs"]))
    if [i.type for i in program.feeds] != [one["type"] for one in told["inputs"]]:
        raise ValueError("the inputs are not those of the program")
    options = tuple(_option_from(one, f"option_{place}", found) for place, one in enumerate(told["options"]))
    mended = None if told["mended"] is None else _text(told["mended"])
    return Case(
        _text(told["id"]), program, inputs, Expectation(options, _texts(told["types"])), _texts(told["clauses"]), mended
    )


def _text(word: Any) -> str:
    if not isinstance(word, str):
        raise TypeError(f"expected a text, read {word!r}")
    return word


def _texts(words: Any) -> tuple[str, ...]:
    return tuple(_text(word) for word in words)


def _program(program: Program) -> dict[str, Any]:
    operator = program.operator
    return {
        "standard": operator.standard,
        "name": operator.name,
        "version": operator.version,
        "domain": operator.domain,
        "opset": program.opset,
        "attributes": [{"name": a.name, "kind": a.kind, "value": _number(a.value)} for a in program.attributes],
        "inputs": list(_inputs(program)),
        "outputs": [{"name": o.name, "type": o.type, "rank": o.rank} for o in program.outputs],
    }


def _number(value: Any) -> Any:
    """Return an attribute's value for JSON, which has no word for infinities and NaN."""
    if isinstance(value, tuple):
        return [_number(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _inputs(program: Program) -> Iterator[dict[str, Any] | None]:
    constants = itertools.count()
    for one in program.inputs:
        if one is None:
            yield None
            continue
        constant = None if one.constant is None else f"constant_{next(constants)}"
        yield {"name": one.name, "type": one.type, "dims": list(one.dims), "constant": constant}


def _program_from(told: Mapping[str, Any], found: _Tensors) -> Program:
    return Program(
        OperatorVersion(told["standard"], told["name"], told["version"], told["domain"]),
        tuple(Attribute(a["name"], a["kind"], _value(a["kind"], a["value"])) for a in told["attributes"]),
        tuple(None if one is None else _input_from(one, found) for one in told["inputs"]),
        tuple(Output(o["name"], o["type"], o["rank"]) for o in told["outputs"]),
        told["opset"],
    )


def _value(kind: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_value(kind, one) for one in value)
    return float(value) if isinstance(value, str) and kind.startswith("f") else value


def _input_from(told: Mapping[str, Any], found: _Tensors) -> Input:
    name, dims = told["constant"], tuple(told["dims"])
    if told["type"] not in element_types():
        raise ValueError(f"{told['type']!r} is no type of an input")
    constant = None if name is None else found.take(_text(name), told["type"], dims).tobytes()
    return Input(told["name"], told["type"], dims, constant)


def _option(option: Option) -> dict[str, Any]:
    return {
        "labels": dict(option.labels),
        "kind": option.kind,
        "level": option.level,
        "exceptional": option.exceptional,
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


def _parts(bounds: Bounds) -> Iterator[tuple[str, Array]]:
    yield from (("value", bounds.value), ("lower", bounds.lower), ("upper", bounds.upper))
    if bounds.flags is not None:
        yield "flags", bounds.flags
    if bounds.spread is not None:
        yield "sigma", bounds.spread.sigma
    if bounds.residue is not None:
        yield from (("rest", bounds.residue.rest), ("doubt", bounds.residue.doubt))


def _option_from(told: Mapping[str, Any], name: str, found: _Tensors) -> Option:
    if told["kind"] not in KINDS or told["level"] not in ("strict", "declared"):
        raise ValueError(f"{name} is of kind {told['kind']!r} and level {told['level']!r}")
    outputs = tuple(_bounds_from(one, name, place, found) for place, one in enumerate(told["outputs"]))
    labels = tuple((silence, _text(answer)) for silence, answer in told["labels"].items())
    return Option(labels, outputs, told["kind"], told["exceptional"], told["level"])


def _bounds_from(told: Mapping[str, Any], name: str, place: int, found: _Tensors) -> Bounds:
    parts = found.parts(name, place, told)
    spread = Spread(parts["sigma"], float(told["limit"])) if "sigma" in parts else None
    residue = Residue(parts["rest"], parts["doubt"]) if "rest" in parts else None
    return Bounds(told["type"], parts["value"], parts["lower"], parts["upper"], parts.get("flags"), spread, residue)

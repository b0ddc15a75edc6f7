"""A case as a descriptor and named tensors, and back: see docs/corpus.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from ..batch import Batch
from ..elements import Array, content, element_type, type_of
from ..expectation import Bounds, Check, CheckName, Expectation, Option, Residue, Spread
from ..structures import Structure
from .files import CorpusError
from .programs import constants, program_from, program_json, structure_from, structure_json
from .tensors import read_value_file, restored, value_file

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

    case: Batch
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
        "program": program_json(case.program),
        "inputs": [
            {"name": name, "type": leaf.type, "shape": list(array.shape)}
            for (name, leaf), array in zip(case.program.named_leaves, case.tensors(), strict=True)
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
    found = {f"input_{place}": array for place, array in enumerate(one.case.tensors())}
    found |= {f"output_{place}": array for place, array in enumerate(one.answer or ())}
    return found | other_tensors(one.case)


def value_files(one: CorpusCase) -> Iterator[tuple[str, bytes]]:
    """Yield the inputs and the admissible answer as messages of ONNX, one for each feed and each answer, by names."""
    program, inputs, outputs = one.case.program, iter(one.case.tensors()), iter(one.answer or ())
    for place, feed in enumerate(program.feeds):
        yield f"input_{place}.pb", value_file(feed.name, feed.type, feed.layout, inputs)
    if one.answer is not None:
        plain = (Structure("tensor"),) * len(program.answers)
        structures = plain if program.is_plain else next(o.structure for o in one.case.expectation.options)
        for place, output in enumerate(program.answers):
            yield f"output_{place}.pb", value_file(output.name, output.type, structures[place], outputs)


def read_values(told: Mapping[str, Any], files: Mapping[str, bytes], file: str) -> dict[str, Array]:
    """Return the tensors in the files that `value_files` yields of the case that a descriptor tells, by their names.

    Raises CorpusError that begins with `file` or with a file's name.
    """
    found: dict[str, Array] = {}
    try:
        ports = [one for one in (*told["program"]["inputs"], *told["program"].get("captured", ())) if one is not None]
        types = {"input": [_text(one["type"]) for one in ports if one["constant"] is None]}
        types["output"] = [_text(one["type"]) for one in told["program"]["outputs"] if one is not None]
        for kind, of_kind in types.items():
            arrays: list[Array] = []
            for place, type_ in enumerate(of_kind):
                if (name := f"{kind}_{place}.pb") in files:
                    arrays += read_value_file(files[name], type_, f"{file}: {name}")[0]
            found |= {f"{kind}_{place}": array for place, array in enumerate(arrays)}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorpusError(f"{file}: no descriptor of schema {SCHEMA}: {type(error).__name__}: {error}") from None
    return found


def other_tensors(case: Batch) -> dict[str, Array]:
    """Return the tensors by name that a reader of ONNX's layout does not know: the program's constants, the bounds."""
    return constants(case.program) | bounds_tensors(case.expectation)


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
                    held = repr(array.shape).encode() + content(array)
                    same, last[part, output] = last.get((part, output)) == held, held
                    if bounds.spread is None and _is_told(part, bounds, same):
                        continue
                found[f"option_{place}_{part}_{output}"] = array
        for number, check in enumerate(option.checks):
            found |= {f"option_{place}_check_{number}_{at}": array[0, ...] for at, array in enumerate(check.arrays)}
    return found


def _is_told(part: str, bounds: Bounds, same: bool) -> bool:
    """Return whether a tensor need not be written; `same`: it is that of the option before."""
    lower = content(bounds.lower)
    if part == "value" and lower == content(bounds.upper):
        return content(bounds.value) == lower
    return same


def case_from(told: Mapping[str, Any], found: Mapping[str, Array], digests: tuple[str, str], file: str) -> Batch:
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
            elif part == "value" and content(parts["lower"]) == content(parts["upper"]):
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
        try:
            return restored(array, type_, shape)
        except ValueError as error:
            told = f"told {type_} {list(shape)}, {error}"
            raise CorpusError(f"{self._file}: tensor {name} is not what the descriptor tells: {told}") from None


def _case(told: Mapping[str, Any], found: _Tensors) -> Batch:
    program = program_from(told["program"], found.take)
    inputs = tuple(found.take(f"input_{place}", one["type"], one["shape"]) for place, one in enumerate(told["inputs"]))
    if [leaf.type for leaf in program.leaves] != [one["type"] for one in told["inputs"]]:
        raise ValueError("the inputs are not those of the program")
    options = tuple(_option_from(one, f"option_{place}", found) for place, one in enumerate(told["options"]))
    mended = None if told["mended"] is None else _text(told["mended"])
    expectation = Expectation(options, _texts(told["types"]))
    if any([option.labels for option in options] != expectation.labels(pattern) for pattern in expectation.patterns):
        raise ValueError("a label tells of what is settled")
    return Batch.of_case(
        _text(told["id"]), program, inputs, expectation, clauses=_texts(told["clauses"]), mended=mended
    )


def _text(word: Any) -> str:
    if not isinstance(word, str):
        raise TypeError(f"expected a text, read {word!r}")
    return word


def _texts(words: Any) -> tuple[str, ...]:
    return tuple(_text(word) for word in words)


def _option(option: Option) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if option.structure:
        more["structure"] = [structure_json(one) for one in option.structure]
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


def _option_from(told: Mapping[str, Any], name: str, found: _Tensors) -> Option:
    if told["kind"] not in KINDS or told["level"] not in ("strict", "declared"):
        raise ValueError(f"{name} is of kind {told['kind']!r} and level {told['level']!r}")
    outputs = tuple(_bounds_from(one, name, place, found) for place, one in enumerate(told["outputs"]))
    labels = tuple((silence, _text(answer)) for silence, answer in told["labels"].items())
    structure = tuple(map(structure_from, told.get("structure", ())))
    checks = tuple(_check_from(one, f"{name}_check_{place}", found) for place, one in enumerate(told.get("checks", ())))
    kind, exceptional, level = told["kind"], told["exceptional"], told["level"]
    return Option(labels, outputs, kind, exceptional, level, structure=structure, checks=checks)


def _check_from(told: Mapping[str, Any], name: str, found: _Tensors) -> Check:
    if told["name"] not in get_args(CheckName):
        raise ValueError(f"{name} is called {told['name']!r}")
    arrays = (found.take(f"{name}_{place}", one["type"], one["shape"]) for place, one in enumerate(told["arrays"]))
    settings = tuple(told["settings"].items())
    return Check(told["name"], tuple(told["outputs"]), settings, tuple(array[np.newaxis] for array in arrays))


def _bounds_from(told: Mapping[str, Any], name: str, place: int, found: _Tensors) -> Bounds:
    parts = found.parts(name, place, told)
    spread = Spread(parts["sigma"], float(told["limit"])) if "sigma" in parts else None
    residue = Residue(parts["rest"], parts["doubt"]) if "rest" in parts else None
    bounds = Bounds(told["type"], parts["value"], parts["lower"], parts["upper"], parts.get("flags"), spread, residue)
    return bounds.mapped(lambda array: array[np.newaxis])

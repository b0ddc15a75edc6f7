"""Certificates as JSON, one line per case: see docs/certificates.md."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..cases.batch import Batch, Bounds, Flag, Option
from ..cases.elements import Array, FloatFormat, element_types
from ..cases.program import Program, Tensor
from ..cases.results import SIDE_EFFECTS
from ..generators.arithmetic.graph import Node
from ..generators.certificate import Certificate, Derivation, Number, Result, Step, certificate
from ..generators.primitives.errors import Arithmetic
from ..generators.source import GeneratedCases
from ..runners.judging.answers import Answers
from ..runners.judging.judge import Verdict
from ..runners.judging.kept import KeepOutputs, tensor_to_json
from .folder import deflated
from .show import clauses_of

FORMAT = 2
LISTED = 1 << 12

_MOST_BITS = 8192  # of a number written in decimals: some 2,500 digits
"""The number of elements up to which numbers are written one by one; larger tensors are written as bytes."""
_DERIVED = frozenset(
    (
        *("port", "literal", "add", "sub", "mul", "div", "neg", "abs", "sum", "mean", "matmul", "reshape", "slice"),
        *("scatter", "transpose", "broadcast", "stack", "flip", "concat", "pad", "windows", "along", "take", "gather"),
    )
)
"""Primitives whose value and error follow from their operands by rules that examples/check_certificate.py knows."""


@dataclass(frozen=True)
class AttachCertificate:
    """Attaches the certificate of a case whose outputs are kept; picklable."""

    source: GeneratedCases
    kept: KeepOutputs

    def __call__(
        self,
        batch: Batch,
        answers: Answers,  # noqa: ARG002 - the protocol of Attach
        verdicts: Sequence[Verdict],
    ) -> list[Mapping[str, Any] | None]:
        """Return the certificate of each case as JSON, a long one compressed, or None."""
        kept = [lane for lane, verdict in enumerate(verdicts) if self.kept.keeps(verdict)]
        by_lane: list[Mapping[str, Any] | None] = [None] * len(batch)
        if kept:
            cases = [batch.case(lane) for lane in kept]
            for lane, fields in zip(kept, _certificates_json(self.source, cases), strict=True):
                by_lane[lane] = deflated(fields)
        return by_lane


def certificate_text(source: GeneratedCases, case: Batch) -> str:
    """Return a case's certificate as a line of strict JSON."""
    return json.dumps(certificate_json(source, case), allow_nan=False, separators=(",", ":"))


def certificate_json(source: GeneratedCases, case: Batch) -> dict[str, Any]:
    """Return everything needed to judge an answer to a case, and to check that verdict."""
    return _certificates_json(source, [case])[0]


def _certificates_json(source: GeneratedCases, cases: Sequence[Batch]) -> list[dict[str, Any]]:
    """Return the certificates of cases of one program."""
    program, clauses = cases[0].program, clauses_of(source, cases[0])
    constants = [i for i in program.inputs if i is not None and i.constant is not None]
    shared = {
        "format": FORMAT,
        "operator": str(program.operator),
        "opset": program.opset,
        "attributes": [{"name": a.name, "kind": a.kind, "value": _plain(a.value)} for a in program.attributes],
        "program_key": program.key,
        "constants": [{"name": i.name, **tensor_to_json(i.array())} for i in constants],
        "clauses": [{"id": i, "text": c.text, "status": c.status, "source": c.source} for i, c in clauses.items()],
    }
    return [_certificate_json(certificate(source, case), shared) for case in cases]


def _plain(value: object) -> object:
    """Return an attribute's value for JSON: numbers, text and lists of them, a tensor's bytes; otherwise its text."""
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Tensor):
        return tensor_to_json(value.array())
    return value if isinstance(value, int | str) else str(value)


def _certificate_json(issued: Certificate, shared: Mapping[str, Any]) -> dict[str, Any]:
    case, program = issued.case, issued.case.program
    return {
        "case": case.id,
        "format": shared["format"],
        "case_digest": case.digest,
        "expectation_digest": case.expectation.digest,
        **{key: shared[key] for key in ("operator", "opset", "attributes", "program_key")},
        "inputs": [
            {"name": name, **tensor_to_json(array)}
            for name, array in zip(_leaf_names(program), case.tensors(), strict=True)
        ],
        "constants": shared["constants"],
        "outputs": list(case.expectation.types),
        "mended": case.valid_variant,
        "options": [
            _option(option, number) for option, number in zip(case.expectation.options, issued.of_option, strict=True)
        ],
        "derivations": [_derivation(derivation) for derivation in issued.derivations],
        "clauses": shared["clauses"],
        "also_fails": dict(SIDE_EFFECTS),
    }


def _leaf_names(program: Program) -> list[str]:
    """Return a name for each tensor that is fed: its input's name, numbered if the input has several."""
    names = []
    for feed in program.feeds:
        several = feed.structure is not None
        names += [f"{feed.name}[{number}]" if several else feed.name for number in range(len(feed.leaves))]
    return names


def derivations_json(source: GeneratedCases, case: Batch) -> dict[str, Any]:
    """Return where a case's bounds come from: its derivations, and for each option which one, or None.

    Results, steps and errors are omitted, because they follow from formula, arithmetic and inputs.
    """
    issued = certificate(source, case)
    readings = [_reading(derivation) | {"arithmetic": _named(derivation)} for derivation in issued.derivations]
    return {"of_option": list(issued.of_option), "derivations": readings}


def _named(derivation: Derivation) -> dict[str, Any]:
    """Return an arithmetic with its formats by their names."""
    names = {element.format: name for name, element in reversed(element_types().items()) if element.format is not None}
    types = {}
    for name in _computed(derivation):
        level = derivation.context.at(name)
        formats = {"accumulator": names[level.accumulator], "storage": names[level.storage]}
        shares = {} if level.shares else {"shares": False}
        types[name] = {**formats, "flush": level.flush, **shares, "summation": level.summation}
    return {"name": derivation.context.name, "types": types}


def _computed(derivation: Derivation) -> list[str]:
    """Return the types in which a formula computes."""
    return sorted({node.computes for node in derivation.formula.values() if node.computes})


def _option(option: Option, derivation: int | None) -> dict[str, Any]:
    return {
        "labels": dict(option.labels),
        "kind": option.kind,
        "level": option.level,
        "exceptional": option.exceptional,
        "derivation": derivation,
        "beside": _beside(option),
        "checks": [check.name for check in option.checks],
        "check_arrays": [tensor_to_json(array[0, ...]) for check in option.checks for array in check.arrays],
        "outputs": [_bounds(bounds) for bounds in option.outputs],
    }


def _beside(option: Option) -> str | None:
    """Return what else the expectation's digest covers, as Python prints it; None if there is nothing."""
    if not option.structure and not option.checks:
        return None
    content = option.structure, [(check.name, check.outputs, check.settings) for check in option.checks]
    return repr(content)[1:-1]


def _bounds(bounds: Bounds) -> dict[str, Any]:
    fields = {
        "type": bounds.type,
        "shape": list(bounds.shape),
        "value": numbers_json(bounds.value),
        "lower": numbers_json(bounds.lower),
        "upper": numbers_json(bounds.upper),
        "flags": None if bounds.flags is None else _flags(bounds.flags),
        "spread": None,
    }
    if bounds.spread is not None:
        fields["spread"] = {"limit": bounds.spread.limit, "sigma": numbers_json(bounds.spread.sigma)}
    return fields


def flag_names(bits: int) -> list[str]:
    """Return the names of an element's flags."""
    return [flag.name.lower().replace("_", "-") for flag in Flag if flag & bits and flag.name]


def _flags(flags: Array) -> Any:
    if flags.size > LISTED:
        return tensor_to_json(flags)
    return [flag_names(bits) for bits in flags.reshape(-1).tolist()]


def numbers_json(array: Array) -> Any:
    """Return elements in C order as text, floats hexadecimal, complex ones as pairs; for many, a tensor's bytes."""
    if array.size > LISTED:
        return tensor_to_json(array)
    listed = array.reshape(-1).tolist()
    if array.dtype.kind == "f":
        return [number.hex() for number in listed]
    return [_element(number) for number in listed]


def _element(number: Any) -> Any:
    if isinstance(number, complex):
        return [number.real.hex(), number.imag.hex()]
    if isinstance(number, float):
        return number.hex()
    return number if isinstance(number, str) else str(int(number))


def _derivation(derivation: Derivation) -> dict[str, Any]:
    places = {at: number for number, at in enumerate(derivation.formula)}
    outputs = [(at, derivation.results[at]) for at in derivation.outputs]
    return {
        **_reading(derivation),
        "arithmetic": _arithmetics(derivation),
        "error": [numbers_json(r.error) if derivation.formula[at].kind == "real" else None for at, r in outputs],
        "steps": [_step(step, places[step.node]) for step in derivation.steps],
        "taken": {
            str(places[at]): _taken(result)
            for at, result in derivation.results.items()
            if result.fractions is None or derivation.formula[at].name not in _DERIVED
        },
    }


def _reading(derivation: Derivation) -> dict[str, Any]:
    """Return the inputs and the results of a derivation, without what follows from them."""
    places = {at: number for number, at in enumerate(derivation.formula)}
    return {
        "labels": dict(derivation.labels),
        "level": derivation.level,
        "flushed_inputs": derivation.flushed,
        "formula": [_node(node, places, derivation) for node in derivation.formula.values()],
        "results": [places[at] for at in derivation.outputs],
        "exact": [
            None if math.prod(derivation.formula[at].shape) > LISTED else _exact(derivation.results[at])
            for at in derivation.outputs
        ],
    }


def _node(node: Node, places: Mapping[int, int], derivation: Derivation) -> dict[str, Any]:
    fields: dict[str, Any] = {"op": node.name, "of": [places[a] for a in node.args]}
    fields |= {"type": node.type, "shape": list(node.shape), "computes": node.computes}
    if node.name == "port":
        port = node.parameters["port"]
        fixed = [position for position, where in enumerate(derivation.ports) if where is None]
        where = derivation.ports[port]
        return fields | ({"constant": fixed.index(port)} if where is None else {"input": where})
    if node.name == "literal":
        number = np.asarray(node.parameters["number"])
        return fields | {"elements": [_parameter(entry) for entry in number.reshape(-1).tolist()]}
    return fields | {"parameters": {name: _parameter(value) for name, value in node.parameters.items()}}


def _parameter(value: Any) -> Any:
    """Return a parameter for JSON: floats hexadecimal, arrays as nested lists."""
    if isinstance(value, np.ndarray):
        return _parameter(value.tolist())
    if isinstance(value, tuple | list):
        return [_parameter(entry) for entry in value]
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, float):
        return value.hex()
    return int(value) if isinstance(value, int | np.integer) else str(value)


def _exact(result: Result) -> list[Any] | None:
    exact = None if result.values.size > LISTED else result.exact
    return None if exact is None else [number_text(number) for number in exact]


def _taken(result: Result) -> dict[str, Any]:
    """Return what the standard library alone may be unable to compute: an elementary function's value, and an error."""
    exact = _exact(result)
    return {"value": exact or numbers_json(result.values), "error": numbers_json(result.error)}


def _arithmetics(derivation: Derivation) -> dict[str, Any]:
    types = _computed(derivation)
    return {
        "name": derivation.context.name,
        "types": {name: _arithmetic(derivation.context.at(name)) for name in types},
        "formats": {name: _format(form) for name in types if (form := element_types()[name].format) is not None},
    }


def _arithmetic(arithmetic: Arithmetic) -> dict[str, Any]:
    return {
        "accumulator": _format(arithmetic.accumulator),
        "storage": _format(arithmetic.storage),
        "flush": arithmetic.flush,
        **({} if arithmetic.shares else {"shares": False}),
        "summation": arithmetic.summation,
    }


def number_text(number: Number) -> str:
    """Return an exact number: `7/2`, `-3`, `nan`, `inf` or `-inf`; text and truth values unchanged.

    If it has more digits than Python reads as decimals, it is a fraction in hexadecimal notation, `0x7/0x2`.
    """
    if isinstance(number, (Fraction, int)) and max(abs(number.numerator), number.denominator) >> _MOST_BITS:
        return f"{number.numerator:#x}/{number.denominator:#x}"
    return number.hex() if isinstance(number, float) else str(number)


def _format(form: FloatFormat) -> dict[str, Any]:
    """Return a format with its derived numbers: the unit roundoff u and the smallest subnormal number eta."""
    return {
        "precision": form.precision,
        "emin": form.emin,
        "emax": form.emax,
        "u": form.roundoff.hex(),
        "eta": form.eta.hex(),
    }


def _step(step: Step, node: int) -> dict[str, Any]:
    return {
        "node": node,
        "rule": step.rule,
        "u": step.unit.hex(),
        "n": step.terms,
        "M": None if step.magnitude is None else numbers_json(step.magnitude),
        "error": numbers_json(step.error),
    }

"""Certificates as JSON, one line a case: see docs/certificates.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..cases.batch import Batch
from ..cases.elements import Array, FloatFormat
from ..cases.expectation import Bounds, Flag, Option
from ..generators.arithmetic.bounded import Arithmetic
from ..generators.arithmetic.formula import Primitive
from ..generators.arithmetic.integral import IntegerArithmetic
from ..generators.arithmetic.rounding import formats
from ..generators.certificate import Certificate, Derivation, Number, Step, certificate, certificates
from ..generators.source import GeneratedCases
from ..runners.answers import Answers
from ..runners.judge import Verdict
from ..runners.kept import KeepOutputs, tensor_to_json
from .show import clauses_of

LISTED = 1 << 12
"""The elements up to which numbers are written one by one; more are written as a tensor's bytes."""


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
    ) -> list[dict[str, Any] | None]:
        """Return the certificate of each case as JSON, or None."""
        kept = [lane for lane, verdict in enumerate(verdicts) if self.kept.keeps(verdict)]
        found: list[dict[str, Any] | None] = [None] * len(batch)
        if kept:
            for lane, told in zip(kept, _told(self.source, [batch.case(lane) for lane in kept]), strict=True):
                found[lane] = told
        return found


def certificate_text(source: GeneratedCases, case: Batch) -> str:
    """Return a case's certificate as a line of strict JSON."""
    return _text(certificate_json(source, case))


def certificate_json(source: GeneratedCases, case: Batch) -> dict[str, Any]:
    """Return all that it takes to judge an answer to a case, and to check why it is judged so."""
    return _told(source, [case])[0]


def _text(told: dict[str, Any]) -> str:
    return json.dumps(told, allow_nan=False, separators=(",", ":"))


def _told(source: GeneratedCases, cases: Sequence[Batch]) -> list[dict[str, Any]]:
    """Return the certificates of cases that differ in their draw alone."""
    program, clauses = cases[0].program, clauses_of(source, cases[0])
    constants = [i for i in program.inputs if i is not None and i.constant is not None]
    shared = {
        "operator": str(program.operator),
        "opset": program.opset,
        "attributes": [{"name": a.name, "kind": a.kind, "value": a.value} for a in program.attributes],
        "program_key": program.key,
        "constants": [{"name": i.name, **tensor_to_json(i.array())} for i in constants],
        "clauses": [{"id": i, "text": c.text, "status": c.status, "source": c.source} for i, c in clauses.items()],
    }
    return [_one(found, shared) for found in certificates(source, cases)]


def _one(found: Certificate, shared: Mapping[str, Any]) -> dict[str, Any]:
    case, program = found.case, found.case.program
    return {
        "case": case.id,
        "case_digest": case.digest,
        "expectation_digest": case.expectation.digest,
        **{key: shared[key] for key in ("operator", "opset", "attributes", "program_key")},
        "inputs": [
            {"name": one.name, **tensor_to_json(array)}
            for one, array in zip(program.feeds, case.tensors(), strict=True)
        ],
        "constants": shared["constants"],
        "outputs": list(case.expectation.types),
        "mended": case.mended,
        "options": [
            _option(option, place) for option, place in zip(case.expectation.options, found.of_option, strict=True)
        ],
        "derivations": [_derivation(derivation) for derivation in found.derivations],
        "clauses": shared["clauses"],
    }


def derivations_json(source: GeneratedCases, case: Batch) -> dict[str, Any]:
    """Return where a case's bounds come from: its derivations, and of each option which one, or None.

    What follows from formula, arithmetic and inputs is left out: steps and errors; formats are told by their names.
    """
    found = certificate(source, case)
    derivations = [_essence(_derivation(one), one.arithmetic) for one in found.derivations]
    return {"of_option": list(found.of_option), "derivations": derivations}


def _essence(told: dict[str, Any], arithmetic: Arithmetic | IntegerArithmetic) -> dict[str, Any]:
    kept = {key: part for key, part in told.items() if key not in ("steps", "error")}
    if isinstance(arithmetic, IntegerArithmetic):
        return kept
    names = {form: name for name, form in formats().items()}
    used = {"accumulator": arithmetic.accumulator, "storage": arithmetic.storage, "output": arithmetic.output}
    return {**kept, "arithmetic": told["arithmetic"] | {key: names[form] for key, form in used.items()}}


def _option(option: Option, derivation: int | None) -> dict[str, Any]:
    return {
        "labels": dict(option.labels),
        "kind": option.kind,
        "level": option.level,
        "exceptional": option.exceptional,
        "derivation": derivation,
        "outputs": [_bounds(bounds) for bounds in option.outputs],
    }


def _bounds(laned: Bounds) -> dict[str, Any]:
    """Return the bounds of a single case."""
    bounds = laned.mapped(lambda array: array[0, ...])
    told = {
        "type": bounds.type,
        "shape": list(laned.shape),
        "value": numbers_json(bounds.value),
        "lower": numbers_json(bounds.lower),
        "upper": numbers_json(bounds.upper),
        "flags": None if bounds.flags is None else _flags(bounds.flags),
        "spread": None,
    }
    if bounds.spread is not None:
        told["spread"] = {"limit": bounds.spread.limit, "sigma": numbers_json(bounds.spread.sigma)}
    return told


def flag_names(bits: int) -> list[str]:
    """Return the names of an element's flags."""
    return [flag.name.lower().replace("_", "-") for flag in Flag if flag & bits and flag.name]


def _flags(flags: Array) -> Any:
    if flags.size > LISTED:
        return tensor_to_json(flags)
    return [flag_names(bits) for bits in flags.reshape(-1).tolist()]


def numbers_json(array: Array) -> Any:
    """Return numbers in C order as text, floats hexadecimal and integers decimal; of many the bytes, as a tensor."""
    if array.size > LISTED:
        return tensor_to_json(array)
    listed = array.reshape(-1).tolist()
    return [number.hex() if isinstance(number, float) else str(int(number)) for number in listed]


def _derivation(derivation: Derivation) -> dict[str, Any]:
    exact = derivation.exact
    return {
        "labels": dict(derivation.labels),
        "formula": [_primitive(primitive) for primitive in derivation.formula],
        "flushed_inputs": derivation.flushed,
        "exact": None if exact is None or len(exact) > LISTED else [number_text(number) for number in exact],
        "arithmetic": _arithmetic(derivation.name, derivation.arithmetic),
        "steps": [_step(step) for step in derivation.steps],
        "error": None if derivation.error is None else numbers_json(derivation.error),
    }


def _primitive(primitive: Primitive) -> dict[str, Any]:
    return {"op": primitive.name, "of": list(primitive.of), **primitive.parameters}


def number_text(number: Number) -> str:
    """Return an exact number: `7/2`, `-3`, `nan`, `inf` or `-inf`."""
    return str(number) if isinstance(number, Fraction) else number.hex()


def _arithmetic(name: str, arithmetic: Arithmetic | IntegerArithmetic) -> dict[str, Any]:
    if isinstance(arithmetic, IntegerArithmetic):
        kind = arithmetic.type
        return {
            "name": name,
            "rounding": arithmetic.rounding,
            "overflow": arithmetic.overflow,
            "smallest": str(kind.smallest),
            "largest": str(kind.largest),
        }
    return {
        "name": name,
        "accumulator": _format(arithmetic.accumulator),
        "storage": _format(arithmetic.storage),
        "output": _format(arithmetic.output),
        "flush": arithmetic.flush,
        "summation": arithmetic.summation,
    }


def _format(form: FloatFormat) -> dict[str, Any]:
    """Return a format with its unit roundoff u and its smallest subnormal number eta, which follow from it."""
    return {
        "precision": form.precision,
        "emin": form.emin,
        "emax": form.emax,
        "u": form.roundoff.hex(),
        "eta": form.eta.hex(),
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "rule": step.rule,
        "u": step.unit.hex(),
        "n": step.terms,
        "M": None if step.magnitude is None else numbers_json(step.magnitude),
        "error": numbers_json(step.error),
    }

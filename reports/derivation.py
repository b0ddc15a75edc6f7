"""How the bounds of a case come about, as lines of `opconform show`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ..cases.elements import element_type
from ..cases.expectation import Bounds
from ..generators.arithmetic.bounded import Arithmetic
from ..generators.certificate import Certificate, Derivation, Number, Step

_SHOWN = 12  # elements
_LARGEST_DENOMINATOR = 1 << 20


def certificate_lines(found: Certificate) -> Iterator[str]:
    """Yield exact results, the rules with what they charge, and the bounds to the last bit."""
    shown = set()
    for derivation in found.derivations:
        exact = _exact(derivation)
        if exact is not None and exact not in shown:
            shown.add(exact)
            yield exact
    for derivation in found.derivations:
        for step in derivation.steps:
            yield f"rule         {_name(derivation)}: {_step_text(step)}"
    form = element_type(found.case.expectation.types[0]).format if found.derivations else None
    if form is not None:
        yield f"rounding     to the output: u_o = {form.roundoff.hex()}, eta = {form.eta.hex()}"
    for number, option in enumerate(found.case.expectation.options, 1):
        for bounds in option.outputs:
            if bounds.value.dtype.kind == "f" and bounds.value.size:
                yield f"bits {number:<8}{_bits(bounds)}"


def _exact(derivation: Derivation) -> str | None:
    if derivation.exact is None:
        return None
    shown = ", ".join(map(_number, derivation.exact[:_SHOWN]))
    beside = [f"{silence}={answer}" for silence, answer in derivation.labels]
    beside += ["subnormal inputs read as zero"] if derivation.flushed else []
    return f"exact        [{shown}{', …' if len(derivation.exact) > _SHOWN else ''}]{_in_brackets(beside)}"


def _name(derivation: Derivation) -> str:
    beside = [f"{silence}={answer}" for silence, answer in derivation.labels]
    if isinstance(derivation.arithmetic, Arithmetic) and derivation.arithmetic.summation != "sums":
        beside.append(derivation.arithmetic.summation)
    beside += ["subnormal inputs read as zero"] if derivation.flushed else []
    return derivation.name + _in_brackets(beside)


def _in_brackets(words: list[str]) -> str:
    return f" ({', '.join(words)})" if words else ""


def _step_text(step: Step) -> str:
    place = int(np.argmax(step.error))  # the first element that it charges most
    parts = [f"{step.rule}, u = {step.unit.hex()}"]
    if step.terms is not None and step.magnitude is not None:
        parts.append(f"n = {step.terms}, M = Σ|x|/n = {float(step.magnitude.reshape(-1)[place])!r}")
    parts.append(f"at most {float(step.error.reshape(-1)[place])!r}")
    return "; ".join(parts)


def _number(value: Number) -> str:
    """Return a fraction; a hexadecimal float where that is shorter and exact."""
    if not isinstance(value, Fraction):
        return str(value)
    denominator = value.denominator
    if denominator & (denominator - 1) or denominator <= _LARGEST_DENOMINATOR:
        return str(value)
    try:
        nearest = float(value)
    except OverflowError:
        nearest = 0.0
    return nearest.hex() if Fraction(nearest) == value else f"{value.numerator}/2^{denominator.bit_length() - 1}"


def _bits(bounds: Bounds) -> str:
    ends = zip(bounds.lower.reshape(-1)[:_SHOWN].tolist(), bounds.upper.reshape(-1)[:_SHOWN].tolist(), strict=True)
    texts = [lower.hex() if lower == upper else f"[{lower.hex()}, {upper.hex()}]" for lower, upper in ends]
    more = f", … {bounds.value.size - _SHOWN} more" if bounds.value.size > _SHOWN else ""
    sigma = ""
    if bounds.spread is not None:
        sigma = f"; sigma {', '.join(s.hex() for s in bounds.spread.sigma.reshape(-1)[:_SHOWN].tolist())}{more}"
    return ", ".join(texts) + more + sigma

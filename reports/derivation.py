"""How the bounds of a case come about, as lines of `opconform show`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ..cases.elements import element_types
from ..cases.expectation import Bounds
from ..generators.certificate import Certificate, Derivation, Number, Step

_SHOWN = 12  # elements
_NODES = 40
_UNCHARGED = re.compile(r": [^:]*u·.*?(?=  \()")
"""What a line says that is charged, where nothing computes in floating point."""
_LARGEST_DENOMINATOR = 1 << 20


def certificate_lines(found: Certificate) -> Iterator[str]:
    """Yield formulas, exact results, the rules with what they charge, and the bounds to the last bit."""
    shown = set[str]()
    for derivation in found.derivations:
        for line in (*_formula(derivation), *_exact(derivation)):
            if line not in shown:
                shown.add(line)
                yield line
    for derivation in found.derivations:
        yield from _steps(derivation)
    yield from _roundings(found)
    for number, option in enumerate(found.case.expectation.options, 1):
        for bounds in option.outputs:
            if bounds.value.dtype.kind == "f" and bounds.value.size:
                yield f"bits {number:<8}{_bits(bounds)}"


def _formula(derivation: Derivation) -> Iterator[str]:
    for node, line in list(zip(derivation.formula.values(), derivation.text, strict=True))[:_NODES]:
        yield f"formula      {line if node.computes else _UNCHARGED.sub('', line)}"
    if len(derivation.text) > _NODES:
        yield f"             … {len(derivation.text) - _NODES} more"
    results = ", ".join(f"%{at}" for at in derivation.outputs)
    yield f"result       {results}{_in_brackets(_beside(derivation))}"


def _steps(derivation: Derivation) -> Iterator[str]:
    for step in derivation.steps[:_NODES]:
        yield f"rule         {_name(derivation)}: {_step_text(step)}"
    if len(derivation.steps) > _NODES:
        yield f"             … {len(derivation.steps) - _NODES} more; the certificate has all"


def _exact(derivation: Derivation) -> Iterator[str]:
    """Yield the exact results that fractions express."""
    for at in derivation.outputs:
        numbers = derivation.results[at].exact
        if numbers is not None:
            shown = ", ".join(map(_number, numbers[:_SHOWN]))
            more = ", …" if len(numbers) > _SHOWN else ""
            yield f"exact        [{shown}{more}]{_in_brackets(_beside(derivation))}"


def _roundings(found: Certificate) -> Iterator[str]:
    for name in dict.fromkeys(found.case.expectation.types if found.derivations else ()):
        form = element_types()[name].format if name in element_types() else None
        if form is not None:
            yield f"rounding     to {name}: u_o = {form.roundoff.hex()}, eta = {form.eta.hex()}"


def _beside(derivation: Derivation) -> list[str]:
    beside = [f"{silence}={answer}" for silence, answer in derivation.labels]
    return beside + (["subnormal inputs read as zero"] if derivation.flushed else [])


def _name(derivation: Derivation) -> str:
    beside = _beside(derivation)
    summations = {arithmetic.summation for arithmetic in derivation.context.types.values()} - {"sums"}
    return derivation.context.name + _in_brackets([*beside, *sorted(summations)])


def _in_brackets(words: list[str]) -> str:
    return f" ({', '.join(words)})" if words else ""


def _step_text(step: Step) -> str:
    parts = [f"%{step.node} {step.rule}, u = {step.unit.hex()}"]
    if not step.error.size:
        return "; ".join(parts)
    place = int(np.argmax(step.error))  # the first element that it charges most
    if step.terms is not None and step.magnitude is not None:
        mean = np.broadcast_to(step.magnitude, step.error.shape).reshape(-1)[place]
        parts.append(f"n = {step.terms}, M = Σ|x|/n = {float(mean)!r}")
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
    size = bounds.value.size
    more = f", … {size - _SHOWN} more" if size > _SHOWN else ""
    sigma = ""
    if bounds.spread is not None:
        sigma = f"; sigma {', '.join(s.hex() for s in bounds.spread.sigma.reshape(-1)[:_SHOWN].tolist())}{more}"
    return ", ".join(texts) + more + sigma

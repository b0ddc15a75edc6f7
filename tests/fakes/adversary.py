"""An adversary: data and orders that comply and yet err as much as a search can make them err."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from opconform.generators.arithmetic.graph import bounded

from .formats import FORMATS, Number, in_units, numbers, tensor
from .machines import Machine, in_order
from .recorded import recorded

LENGTHS = (3, 7, 16, 64)
BROOD = 8
GENERATIONS = 8


@dataclass(frozen=True)
class Finding:
    """A vector, the mean that a machine stored of it, and its error as a share of the bound."""

    ratio: float
    vector: Any
    stored: Number


def reached(machine: Machine, division: str, seed: int = 0) -> Finding:
    """Return what errs most of all that a search finds; it climbs from data whose additions err alike."""
    best = Finding(0.0, None, 0)
    for n in LENGTHS:
        draw = random.Random(f"{seed} {n}")
        brood = [(_lost, _alike)[i % 2](machine, n, draw) for i in range(2 * BROOD)]
        top = Finding(0.0, None, 0)
        for _ in range(GENERATIONS):
            top = max([top, *_judged(machine, division, brood)], key=lambda finding: finding.ratio)
            brood = [_changed(machine, numbers(top.vector), draw) for _ in range(BROOD)]
        best = max(best, top, key=lambda finding: finding.ratio)
    return best


def bounds(machine: Machine, vectors: Sequence[Any]) -> list[float]:
    """Return the errors that the package admits of the means of vectors of one length, before the last rounding."""
    arrays = [np.stack(vectors)]
    recording = recorded(lambda c, x: x.mean((0,)), arrays, [machine.type])
    context = next(context for context in recording.contexts if context.name == machine.label)
    (output,) = recording.forks[0].outputs
    errors = bounded(recording.graph, recording.live, recording.exact(arrays), context, [output])
    return [float(e) for e in np.broadcast_to(errors[output].e, (len(vectors), 1))[:, 0]]


def _judged(machine: Machine, division: str, brood: Sequence[Any]) -> list[Finding]:
    found = []
    for vector, bound in zip(brood, bounds(machine, brood), strict=True):
        elements = numbers(vector)
        stored = machine.mean(elements, in_order, division)
        assert isinstance(stored, int)
        error = abs(stored - Fraction(sum(elements), len(elements)))  # type: ignore[arg-type]
        limit = in_units(bound)
        found.append(Finding(float(error / limit) if limit else float(error > 0), vector, stored))
    return found


def _lost(machine: Machine, n: int, draw: random.Random) -> Any:
    """One large number, and after it halves of the last place of the sum, each of which is rounded away.

    Times n, so that the shares of those who divide first are such numbers.
    """
    scale = (1 << 1074 + draw.randint(0, 6)) * draw.choice((1, n))
    half, impure = scale >> machine.accumulator.precision, draw.choice((0, 0.1, 0.4))
    rest = [half + draw.choice((half, half >> 2)) * (draw.random() < impure) for _ in range(n - 1)]
    return _as_vector(machine, [scale + (draw.getrandbits(7) * (scale >> 7)) * (draw.random() < impure), *rest])


def _alike(machine: Machine, n: int, draw: random.Random) -> Any:
    """Numbers of one sign whose mean is a little more than a power of two, where a rounding weighs most.

    Half of the time they are all one, of few bits, so that their sum is exact and their shares err alike.
    """
    if draw.random() < 0.5:
        return _as_vector(machine, [(1 << 1074) + (draw.getrandbits(5) << 1069)] * n)
    return _as_vector(machine, [(1 << 1074) + draw.getrandbits(1070) for _ in range(n)])


def _changed(machine: Machine, elements: list[Number], draw: random.Random) -> Any:
    """Change a few elements: a last place more or less, another's value, or all of them scaled."""
    form, changed = FORMATS[machine.type], [e for e in elements if isinstance(e, int)]
    for _ in range(draw.randint(1, 3)):
        place = draw.choice((0, draw.randrange(len(changed))))
        step = 1 << max(changed[place].bit_length() - form.precision, form.lowest)
        changed[place] += draw.choice((-8, -3, -2, -1, 1, 2, 3, 8)) * step
    if draw.random() < 0.4:
        factor = draw.randint(65, 127)
        changed = [c * factor >> 6 for c in changed]
    if draw.random() < 0.2:
        changed[draw.randrange(1, len(changed))] = draw.choice(changed[1:])
    return _as_vector(machine, changed)


def _as_vector(machine: Machine, elements: Sequence[int]) -> Any:
    return tensor([FORMATS[machine.type].nearest(e) for e in elements], machine.type, (len(elements),))

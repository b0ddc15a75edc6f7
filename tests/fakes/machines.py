"""Machines that compute a mean as an implementation may, and an adversary that picks data and orders for them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from opconform.generators.arithmetic.graph import bounded

from .exact import BRAIN, DOUBLE, FORMATS, HALF, SINGLE, UNIT, Binary, Number, in_units, numbers, tensor
from .recorded import recorded

Add: TypeAlias = Callable[[Number, Number], Number]
Tree: TypeAlias = Callable[[Sequence[Number], Add], Number]

_ZERO: Number = 0
RUNNING = ("running", "running by reciprocal")
DIVISIONS = ("after", "after by reciprocal", "before", "before by reciprocal", "fused")


@dataclass(frozen=True)
class Machine:
    """A format inside sums, one for every other result, and the output's.

    `type` is the tensors' and `label` the option of the silence `accumulator` that the machine takes.
    """

    type: str
    label: str
    accumulator: Binary
    storage: Binary
    output: Binary

    def mean(self, values: Sequence[Number], tree: Tree, division: str) -> Number:
        """Return the mean as stored, before it is rounded to the output."""
        n = len(values)
        if division == "fused":
            return self._fused(values)
        if division in RUNNING:
            return self._running(values, division)
        if division.startswith("before"):
            shares = [self._divided(v, n, division) for v in values]
            return _through(self.storage, tree(shares, self._add))
        total = _through(self.storage, tree(values, self._add))
        return self._divided(total, n, division)

    def answer(self, stored: Number) -> Number:
        """Round what is stored to the output's type."""
        return _through(self.output, stored)

    def _add(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return self.accumulator.nearest(a + b)
        return _special(a) + _special(b)

    def _divided(self, number: Number, n: int, division: str) -> Number:
        if not isinstance(number, int):
            return number
        if division.endswith("reciprocal"):
            return self.storage.nearest(number * _reciprocal(self.storage, n), UNIT)
        return self.storage.nearest(number * UNIT, _finite(self.storage.nearest(n * UNIT)))

    def _running(self, values: Sequence[Number], division: str) -> Number:
        """Update a mean number by number, as Welford's algorithm does; of finite numbers."""
        mean = values[0]
        for k, number in enumerate(values[1:], 2):
            mean = self._add(mean, self._divided(self._add(number, -mean), k, division))
        return mean

    def _fused(self, values: Sequence[Number]) -> Number:
        """Add up shares by fused multiply-add, each step rounded once."""
        inverse, total = _reciprocal(self.accumulator, len(values)), _ZERO
        for number in values:
            if isinstance(number, int) and isinstance(total, int):
                total = self.accumulator.nearest(number * inverse + total * UNIT, UNIT)
            else:
                total = _special(number) + _special(total)
        return _through(self.storage, total)


def _reciprocal(form: Binary, n: int) -> int:
    """Return one divided by n, both numbers of the format."""
    return _finite(form.nearest(UNIT * UNIT, _finite(form.nearest(n * UNIT))))


def _finite(number: Number) -> int:
    assert isinstance(number, int)
    return number


def _through(form: Binary, number: Number) -> Number:
    return form.nearest(number) if isinstance(number, int) else number


def _special(number: Number) -> float:
    """Return an infinity or NaN, and zero for what is finite beside it."""
    return 0.0 if isinstance(number, int) else number


MACHINES = (
    Machine("float32", "own", SINGLE, SINGLE, SINGLE),
    Machine("float64", "own", DOUBLE, DOUBLE, DOUBLE),
    Machine("float16", "wide", SINGLE, SINGLE, HALF),
    Machine("float16", "stepwise", SINGLE, HALF, HALF),
    Machine("float16", "narrow", HALF, HALF, HALF),
    Machine("bfloat16", "wide", SINGLE, SINGLE, BRAIN),
    Machine("bfloat16", "stepwise", SINGLE, BRAIN, BRAIN),
    Machine("bfloat16", "narrow", BRAIN, BRAIN, BRAIN),
)
WIDER = (
    Machine("float32", "own", DOUBLE, SINGLE, SINGLE),
    Machine("float32", "own", DOUBLE, DOUBLE, SINGLE),
    Machine("float16", "wide", DOUBLE, DOUBLE, HALF),
    Machine("float16", "stepwise", DOUBLE, HALF, HALF),
    Machine("bfloat16", "wide", DOUBLE, DOUBLE, BRAIN),
)


# Trees of additions


def in_order(values: Sequence[Number], add: Add) -> Number:
    """Add from the first to the last."""
    total = values[0]
    for number in values[1:]:
        total = add(total, number)
    return total


def drawn(seed: int) -> Tree:
    """Return a tree drawn at random: two of what is left are added, until one is left."""

    def tree(values: Sequence[Number], add: Add) -> Number:
        left, draw = list(values), random.Random(seed)
        while len(left) > 1:
            draw.shuffle(left)
            left.append(add(left.pop(), left.pop()))
        return left[0]

    return tree


def greedy(sign: int) -> Tree:
    """Return the tree that at each step adds the two whose sum errs most to one side."""

    def tree(values: Sequence[Number], add: Add) -> Number:
        left = list(values)
        while len(left) > 1:
            pairs = itertools.combinations(range(len(left)), 2)
            i, j = max(pairs, key=lambda pair: _error(left[pair[0]], left[pair[1]], add) * sign)
            b, a = left.pop(j), left.pop(i)
            left.append(add(a, b))
        return left[0]

    return tree


def _error(a: Number, b: Number, add: Add) -> Number:
    total = add(a, b)
    return total - (a + b) if isinstance(total, int) and isinstance(a, int) and isinstance(b, int) else 0


def sorted_by(key: Callable[[Number], Number], *, reverse: bool) -> Tree:
    """Return the tree that adds one after the other, sorted."""
    return lambda values, add: in_order(sorted(values, key=key, reverse=reverse), add)


ADVERSE: tuple[Tree, ...] = (
    in_order,
    greedy(1),
    greedy(-1),
    sorted_by(abs, reverse=True),
    sorted_by(abs, reverse=False),
    sorted_by(lambda v: v, reverse=True),
)


# An adversary: data and orders that comply and yet err as much as a search can make them err


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

"""Machines that compute a mean as an implementation may: any tree of additions, any place of the division."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .formats import BRAIN, DOUBLE, HALF, SINGLE, UNIT, Binary, Number

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

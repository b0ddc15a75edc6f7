"""Shards: the selected cases shared out over machines that know nothing of each other, even by cost."""

from __future__ import annotations

import functools
import heapq
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from .errors import OpconformError
from .ids import parse_id
from .selection import Shard

_DRAWN = re.compile(r"(draw|seed)=\d+;?")
_PLAIN = re.compile(r"ramp|negative-zero|ones|maximum|halves|underflow|subnormal-among|zeros|(beside|upon)-2\^\d+")
"""The fills whose numbers are not drawn: their sums are short."""

# What a case costs, in tenths of a microsecond, as it was measured on one core: see docs/shards-and-resume.md.
_PROGRAM = 15_000
_CASE = 1_000
_ELEMENT = 2
_ELEMENT_OF_DOUBLES = 40  # whose exact sums take numbers of 160 bits
_LARGEST_PART = 1_000_000


def of_shard(ids: Iterable[str], shard: Shard | None) -> Iterator[str]:
    """Yield those of the ids that are in a shard, all of them without one, in their order; memory stays flat."""
    if shard is None:
        yield from ids
        return
    for index, part in shared_out(ids, shard.count):
        if index == shard.index:
            yield from part


def share(ids: Iterable[str], shard: Shard) -> int:
    """Return how many of the ids are in a shard. Raises OpconformError if there are fewer parts than shards."""
    parts: Counter[int] = Counter()
    cases = 0
    for index, part in shared_out(ids, shard.count):
        parts[index] += 1
        cases += len(part) if index == shard.index else 0
    if len(parts) < shard.count:
        raise OpconformError(
            f"--shard {shard}: the cases come in {parts.total()} parts, one a program: choose at most so many shards"
        )
    return cases


def shared_out(ids: Iterable[str], count: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the parts that ids come in, each with the index of its shard: the one that has least to do so far.

    A part has the cases of one program that follow each other, so that their shard prepares it once. What part is
    whose follows from the ids and `count` alone.
    """
    loads = [(0, index) for index in range(1, count + 1)]
    for part, cost in _parts(ids):
        load, index = loads[0]
        heapq.heapreplace(loads, (load + cost, index))
        yield index, part


def _parts(ids: Iterable[str]) -> Iterator[tuple[list[str], int]]:
    """Yield parts and their costs; the many draws of one program are cut where the part would cost too much."""
    for _, group in itertools.groupby(ids, _program_of):
        part: list[str] = []
        cost = _PROGRAM
        for text in group:
            part.append(text)
            cost += cost_of(text)
            if cost >= _LARGEST_PART:
                yield part, cost
                part, cost = [], _PROGRAM
        if part:
            yield part, cost


def cost_of(case_id: str) -> int:
    """Return about what a case costs, in tenths of a microsecond, its program apart."""
    operator, types, shapes, _, fill, *_ = (*case_id.split("/", 1)[1].split("/"), "", "", "")
    return _cost(operator, types, shapes, fill)


@functools.lru_cache(maxsize=4096)
def _cost(operator: str, types: str, shapes: str, fill: str) -> int:
    of_any = parse_id(f"any/{operator}/{types}/{shapes}/-/{fill}")
    elements = of_any.size
    slow = of_any.types[:1] == ("float64",) and not _PLAIN.fullmatch(fill)
    return _CASE + elements * (_ELEMENT_OF_DOUBLES if slow else _ELEMENT)


def _program_of(case_id: str) -> str:
    """Return what the cases of one program have in common; those of symbolic dimensions share one for all shapes."""
    operator, types, shapes, settings = case_id.split("/", 1)[1].split("/")[:4]
    own = _DRAWN.sub("", settings).rstrip(";") or "-"
    if "dims=symbolic" in own:
        shapes = ",".join(str(shape.count("x")) for shape in shapes.split(","))
    return f"{case_id.partition('/')[0]}/{operator}/{types}/{shapes}/{own}"

"""What a user selects: cases by globs, drawn how, and which shard of them."""

from __future__ import annotations

import functools
import heapq
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .errors import OpconformError
from .ids import CaseId, operator_version_of, parse_id

_FORM = re.compile(r"(\d{1,9})/(\d{1,9})")
_WILD = frozenset("*?[")
_WHOLE_NUMBER = re.compile(r"(?:^|=)[0-9]+(?:\Z|[;/])")


@dataclass(frozen=True)
class Glob:
    """A glob as it was written."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def is_case(self) -> bool:
        """Whether it is the id of one case."""
        return self._literal == self.text != operator_version_of(self.text)

    @functools.cached_property
    def _literal(self) -> str:
        return self.text[: next((i for i, c in enumerate(self.text) if c in _WILD), None)]

    @property
    def operator_version(self) -> str | None:
        """The one operator version that it is about, None where that part has a wildcard."""
        found = operator_version_of(self.text)
        return found if "/" in found and len(found) <= len(self._literal) else None

    def matches(self, case_id: str) -> bool:
        """Whether it names this case."""
        if not case_id.startswith(self._literal):  # most do not, and are told so cheaply
            return False
        return fnmatchcase(case_id, self.text) or fnmatchcase(operator_version_of(case_id), self.text)

    def concerns(self, operator_version: str) -> bool:
        """Whether it is about cases of this operator version; read part by part, so that `*` stops at a slash."""
        parts = self.text.split("/")
        if len(parts) > 2:
            return fnmatchcase(operator_version, "/".join(parts[:2]))
        return fnmatchcase(operator_version, self.text) or (
            self.text.endswith("*") and operator_version.startswith(self._literal)
        )


@dataclass(frozen=True)
class Selection:
    """What to generate.

    `globs` are matched, as fnmatchcase does, against case ids and operator versions; none selects all. `strength` of
    the covering array, None for every combination. `draws` of each drawn fill; `seed` varies all of them. `standards`
    are those that a backend implements; none: all. `suite` is a list of cases by its name, in place of the plan.
    """

    globs: tuple[str, ...] = ()
    strength: int | None = 2
    draws: int = 1
    seed: int = 0
    standards: tuple[str, ...] = ()
    suite: str | None = None

    def admits(self, case: CaseId, text: str) -> bool:
        """Return whether a glob selects this case."""
        return self.admits_text(case.operator, text)

    def admits_text(self, operator_version: str, text: str) -> bool:
        """Return whether a glob selects a case, given as its operator version and its id."""
        return not self.globs or any(fnmatchcase(text, g) or fnmatchcase(operator_version, g) for g in self.globs)

    def may_admit(self, operator_version: str) -> bool:
        """Return whether a glob may select a case of this operator version; cheap, and true when in doubt."""
        if self.standards and operator_version.partition("/")[0] not in self.standards:
            return False
        return not self.globs or any(may_match(glob, operator_version) for glob in self.globs)


def strength_of(text: str) -> int | None:
    """Return a strength as a user writes it: a whole number from 1, or `full`, which is None. Raises OpconformError."""
    if text != "full" and not (text.isascii() and text.isdigit() and int(text)):
        raise OpconformError(f"strength {text}: expected a whole number from 1, or full")
    return None if text == "full" else int(text)


def may_match(glob: str, operator_version: str) -> bool:
    """Return whether a glob may select a case of an operator version; true when in doubt."""
    wild = min((i for i, c in enumerate(glob) if c in "*?["), default=len(glob))
    literal = glob[:wild]
    return literal.startswith(f"{operator_version}/") or (
        f"{operator_version}/".startswith(literal) and (wild < len(glob) or literal == operator_version)
    )


def matches_numbered(glob: str, before: str, after: str) -> bool | None:
    """Return whether a glob matches `before`, a whole number and `after`; None if that may hang on the number.

    `before` ends with `=`, and `after` begins with `;` or `/`, as in `…/axes=0;draw=` and `/uniform`.
    """
    if "?" in glob or "[" in glob:
        return None
    head, *pieces = glob.split("*")
    if not pieces or not before.startswith(head):
        return None if head.startswith(before) else False
    # a piece that reaches into the number has digits with nothing, `=`, `;` or `/` beside them
    if any(_WHOLE_NUMBER.search(piece) for piece in pieces):
        return None
    return fnmatchcase(f"{before}1{after}", glob)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` shards, the first is 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def shard_of(text: str) -> Shard:
    """Return the shard that a user writes as `I/N`. Raises OpconformError."""
    match = _FORM.fullmatch(text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise OpconformError(f"shard {text}: expected I/N with I from 1 to N, as in 2/8")
    return Shard(int(match[1]), int(match[2]))


_DRAWN = re.compile(r"(draw|seed)=\d+;?")
_PLAIN = re.compile(
    r"ramp|negative-zero|ones|maximum|halves|underflow|subnormal-among|nan-among|zeros|(beside|upon)-2\^\d+"
)
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

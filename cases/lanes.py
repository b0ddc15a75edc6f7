"""Cases that differ in their data alone, side by side: one program, and arrays whose leading axis counts the cases."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .elements import Array, lane_contents
from .expectation import Bounds, Expectation, Labels, Option, Residue, Spread, decisive, head
from .model import Case, Program


@dataclass(frozen=True, slots=True)
class LanedOption:
    """An option for all lanes at once, its bounds with a leading lane axis; `applies`: in which lanes, bool."""

    option: Option
    applies: Array


@dataclass(frozen=True)
class LanedExpectation:
    """The expectations of all lanes: in each, the options that apply there. None at all: the input is invalid."""

    options: tuple[LanedOption, ...]
    types: tuple[str, ...]
    lanes: int

    @functools.cached_property
    def patterns(self) -> Array:
        """Which options apply, bool of shape (lanes, options); lanes mostly agree."""
        empty = np.zeros((self.lanes, 0), bool)
        return np.stack([one.applies for one in self.options], axis=1) if self.options else empty

    def labels(self, pattern: bytes) -> list[Labels]:
        """Return the labels of the options that apply in a pattern, by its bytes; settled silences are left out."""
        found = self._labels.get(pattern)
        if found is None:
            chosen = np.frombuffer(pattern, bool).nonzero()[0].tolist()
            found = self._labels[pattern] = open_labels([self.options[i].option.labels for i in chosen])
        return found

    @functools.cached_property
    def _labels(self) -> dict[bytes, list[Labels]]:
        return {}

    def part(self, start: int, stop: int) -> LanedExpectation:
        """Return the expectations of the lanes from `start` on and before `stop`."""
        if (start, stop) == (0, self.lanes):
            return self
        found = self.of_lanes(slice(start, stop), stop - start)
        if "digests" in self.__dict__:
            found.remember_digests(self.digests[start:stop])
        return found

    def remember_digests(self, digests: list[str]) -> None:
        """Take the lanes' digests where they are known, which saves making them again."""
        self.__dict__["digests"] = digests

    def of_lanes(self, which: slice | Array, lanes: int) -> LanedExpectation:
        """Return the expectations of some lanes, by a slice or by their numbers, and how many these are."""
        cut = _Cut(which)
        return LanedExpectation(tuple(cut.option(one) for one in self.options), self.types, lanes)

    def by_pattern(self) -> Iterator[tuple[Array, tuple[Option, ...]]]:
        """Yield the lanes in which the same options apply, by number, and these options with bounds of those lanes."""
        shared: dict[bytes, list[int]] = {}
        for lane, pattern in enumerate(rows_of_bytes(self.patterns)):
            shared.setdefault(pattern, []).append(lane)
        for pattern, lanes in shared.items():
            which = np.array(lanes)
            here = self if len(shared) == 1 else self.of_lanes(which, len(lanes))
            chosen = (here.options[i].option for i in np.frombuffer(pattern, bool).nonzero()[0].tolist())
            yield which, tuple(replace(o, labels=told) for o, told in zip(chosen, self.labels(pattern), strict=True))

    @functools.cached_property
    def digests(self) -> list[str]:
        """The digest of each lane's expectation."""
        found = [""] * self.lanes
        for lanes, pattern, arrays in self._alike():
            chosen = [self.options[i].option for i in np.frombuffer(pattern, bool).nonzero()[0].tolist()]
            told = [replace(one, labels=labels) for one, labels in zip(chosen, self.labels(pattern), strict=True)]
            begun = hashlib.sha256(head(self.types, [(o, [b.shape[1:] for b in o.outputs]) for o in told]))
            whole = [_rows(array if len(lanes) == self.lanes else array[lanes]) for array in arrays]
            width, content = sum(rows.shape[1] for rows in whole), b""
            if whole:
                content = np.concatenate(whole, axis=1).tobytes()
            for place, lane in enumerate(lanes):
                digest = begun.copy()
                digest.update(content[place * width : (place + 1) * width])
                found[lane] = digest.hexdigest()
        return found

    def _alike(self) -> Iterator[tuple[list[int], bytes, list[Array]]]:
        """Yield the lanes in which the same options apply and have flags: their pattern, and what decides there."""
        every = [bounds for one in self.options for bounds in one.option.outputs]
        flagged = {id(b.flags): _any_lane(b.flags) for b in every if b.flags is not None}
        columns = [self.patterns, *(found[:, np.newaxis] for found in flagged.values())]
        keys = np.concatenate(columns, axis=1)
        shared: dict[bytes, list[int]] = {}
        for lane, key in enumerate(rows_of_bytes(keys)):
            shared.setdefault(key, []).append(lane)
        for key, lanes in shared.items():
            pattern, flags = key[: len(self.options)], dict(zip(flagged, key[len(self.options) :], strict=True))
            chosen = [self.options[i].option for i in np.frombuffer(pattern, bool).nonzero()[0].tolist()]
            bounds = [b if flags.get(id(b.flags)) else replace(b, flags=None) for o in chosen for b in o.outputs]
            yield lanes, pattern, [array for b in bounds for array in decisive(b)]

    def of(self, lane: int) -> Expectation:
        """Return one lane's expectation."""
        here = self.patterns[lane]
        chosen, kept = here.nonzero()[0].tolist(), self.labels(here.tobytes())
        options = [
            Option(
                labels,
                tuple(one_lane(bounds, lane) for bounds in option.outputs),
                option.kind,
                option.exceptional,
                option.level,
            )
            for labels, option in zip(kept, (self.options[i].option for i in chosen), strict=True)
        ]
        return Expectation(tuple(options), self.types)


@dataclass(frozen=True)
class CaseGroup:
    """Cases of one program, side by side. `inputs` are those of `program.feeds`, each with a leading lane axis."""

    ids: Sequence[str]
    program: Program
    inputs: tuple[Array, ...]
    expectation: LanedExpectation
    clauses: tuple[str, ...]
    mended: str | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, stop: int) -> CaseGroup:
        """Return the cases from `start` on and before `stop`."""
        if (start, stop) == (0, len(self)):
            return self
        found = replace(
            self,
            ids=self.ids[start:stop],
            inputs=tuple(array[start:stop] for array in self.inputs),
            expectation=self.expectation.part(start, stop),
        )
        if "digests" in self.__dict__:
            found.remember_digests(self.digests[start:stop])
        return found

    @functools.cached_property
    def digests(self) -> list[str]:
        """The digest of each case."""
        begun = hashlib.sha256(self.program.key.encode())
        begun.update(repr([array.shape[1:] for array in self.inputs]).encode())
        contents = [lane_contents(array) for array in self.inputs]
        found = []
        for lane in range(len(self)):
            digest = begun.copy()
            for held in contents:
                digest.update(held[lane])
            found.append(digest.hexdigest())
        return found

    def remember_digests(self, digests: list[str]) -> None:
        """Take the cases' digests where they are known, which saves making them again."""
        self.__dict__["digests"] = digests

    def case(self, lane: int) -> Case:
        """Return one of the cases."""
        return self.lane(lane).case

    def lane(self, lane: int) -> Lane:
        """Return one of the cases, as far as it takes nothing to make it."""
        return Lane(self, lane, tuple(array[lane, ...] for array in self.inputs))


@dataclass(frozen=True)
class Lane:
    """One case of a group, with what a case has; its expectation, which costs most, is made where it is asked for."""

    group: CaseGroup
    place: int
    inputs: tuple[Array, ...]

    @property
    def id(self) -> str:
        """The case's id."""
        return self.group.ids[self.place]

    @property
    def program(self) -> Program:
        """The program that all cases of the group share."""
        return self.group.program

    @property
    def clauses(self) -> tuple[str, ...]:
        """The clauses that the case tests."""
        return self.group.clauses

    @property
    def mended(self) -> str | None:
        """The id of the valid case that an invalid one is a damaged copy of."""
        return self.group.mended

    @property
    def digest(self) -> str:
        """The digest of the case."""
        return self.group.digests[self.place]

    @property
    def expectation_digest(self) -> str:
        """The digest of its expectation."""
        return self.group.expectation.digests[self.place]

    @functools.cached_property
    def expectation(self) -> Expectation:
        """What is expected of the case."""
        return self.group.expectation.of(self.place)

    @functools.cached_property
    def case(self) -> Case:
        """The case itself."""
        return Case(self.id, self.program, self.inputs, self.expectation, self.clauses, self.mended)


def laned(options: Sequence[Option]) -> tuple[Option, ...]:
    """Return one case's options as those of a single lane."""
    cut = _Cut(np.newaxis)
    return tuple(cut.option(LanedOption(option, np.ones((), bool))).option for option in options)


def of_lanes(bounds: Bounds, which: slice | Array | None) -> Bounds:
    """Return the bounds in some lanes, by a slice or by their numbers; None: those of one case, as of a single lane."""
    return _Cut(which).bounds(bounds)


def open_labels(every: Sequence[Labels]) -> list[Labels]:
    """Return each option's labels without those of silences that have a single answer left: these do not apply."""
    answers: dict[str, set[str]] = {}
    for labels in every:
        for silence, answer in labels:
            answers.setdefault(silence, set()).add(answer)
    return [tuple(label for label in labels if len(answers[label[0]]) > 1) for labels in every]


def one_lane(bounds: Bounds, lane: int) -> Bounds:
    """Return the bounds in one lane."""
    flags = None if bounds.flags is None else bounds.flags[lane, ...]
    spread, residue = bounds.spread, bounds.residue
    return Bounds(
        bounds.type,
        bounds.value[lane, ...],
        bounds.lower[lane, ...],
        bounds.upper[lane, ...],
        flags if flags is not None and flags.any() else None,
        None if spread is None else Spread(spread.sigma[lane, ...], spread.limit),
        None if residue is None else Residue(residue.rest[lane, ...], residue.doubt[lane, ...]),
    )


def _any_lane(flags: Array) -> Array:
    return np.asarray(flags.reshape(len(flags), -1).any(axis=1))


def _rows(array: Array) -> Array:
    """Return the bytes of each lane, in C order: uint8 of shape (lanes, bytes)."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(len(array), -1)


def rows_of_bytes(array: Array) -> list[bytes]:
    """Return the bytes of each row."""
    content, width = array.tobytes(), array.shape[1] * array.itemsize
    return [content[place * width : (place + 1) * width] for place in range(len(array))]


class _Cut:
    """Cuts the same lanes out of options; arrays that these share stay shared."""

    def __init__(self, lanes: slice | Array | None) -> None:
        self._lanes = lanes
        self._made: dict[int, tuple[Array, Array]] = {}

    def option(self, one: LanedOption) -> LanedOption:
        outputs = tuple(self.bounds(bounds) for bounds in one.option.outputs)
        return LanedOption(replace(one.option, outputs=outputs), one.applies[self._lanes])

    def bounds(self, bounds: Bounds) -> Bounds:
        spread, residue = bounds.spread, bounds.residue
        return Bounds(
            bounds.type,
            self._array(bounds.value),
            self._array(bounds.lower),
            self._array(bounds.upper),
            None if bounds.flags is None else self._array(bounds.flags),
            None if spread is None else Spread(self._array(spread.sigma), spread.limit),
            None if residue is None else Residue(self._array(residue.rest), self._array(residue.doubt)),
        )

    def _array(self, array: Array) -> Array:
        known = self._made.get(id(array))
        if known is None:
            known = self._made[id(array)] = array, array[self._lanes]
        return known[1]

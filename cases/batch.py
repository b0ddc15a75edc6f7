"""Batches of cases, and the answers that the standard admits for them: labelled options with a bound for every element.

A batch is one program and arrays whose leading axis counts the cases. A single case is a batch of one.
"""

from __future__ import annotations

import enum
import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from .elements import Array, lane_contents
from .program import Program, Structure
from .results import Level

Labels: TypeAlias = tuple[tuple[str, str], ...]


class Flag(enum.IntFlag):
    """Values that an element admits in addition to those between its bounds."""

    POSITIVE_INFINITY = 1
    NEGATIVE_INFINITY = 2
    NAN = 4
    FREE = 8
    ZERO = 16
    NEGATIVE_ZERO = 32  # the zero between the bounds must carry a minus sign
    POSITIVE_ZERO = 64  # … a plus sign


EXCEPTIONAL = Flag.POSITIVE_INFINITY | Flag.NEGATIVE_INFINITY | Flag.NAN


@dataclass(frozen=True, slots=True)
class Spread:
    """A bound on the second moment of the errors of a whole tensor: mean of (error/sigma)² <= limit, in each lane.

    `sigma` has the shape of the bounds. It is the standard deviation that rounding errors reach in the worst usual
    order of summation, as TOSA's compliance mode DOT_PRODUCT bounds it.
    """

    sigma: Array
    limit: float = 4.0


@dataclass(frozen=True, slots=True)
class Residue:
    """The difference between the exact result and `Bounds.value`: `rest`, give or take `doubt` (float64, one shape).

    A rest that is too small for float64 is zero.
    """

    rest: Array
    doubt: Array


@dataclass(frozen=True, slots=True)
class Bounds:
    """The admissible values of each element of one output; the first axis counts the lanes.

    All arrays have the shape (lanes, *output). Floating-point outputs of any width: `value` is the exact result rounded
    to float64, `lower` and `upper` are float64; NaN in `lower` admits no number. Other outputs: all three have the
    output's own dtype. They are equal if the values have no order (complex numbers, text). `flags` holds bits of Flag,
    or is None if no bit is set. `residue` never decides a verdict. It is None if the exact result is known only to
    round to `value`.
    """

    type: str
    value: Array
    lower: Array
    upper: Array
    flags: Array | None = None
    spread: Spread | None = None
    residue: Residue | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape that the output must have, without the lanes."""
        return self.value.shape[1:]

    def mapped(self, change: Callable[[Array], Array]) -> Bounds:
        """Return the bounds with `change` applied to each array."""
        spread, residue = self.spread, self.residue
        return Bounds(
            self.type,
            change(self.value),
            change(self.lower),
            change(self.upper),
            None if self.flags is None else change(self.flags),
            None if spread is None else Spread(change(spread.sigma), spread.limit),
            None if residue is None else Residue(change(residue.rest), change(residue.doubt)),
        )

    @property
    def decisive(self) -> list[Array]:
        """Return the arrays that decide a verdict, in the order in which a digest covers them."""
        arrays = [self.lower, self.upper]
        if self.flags is not None:
            arrays.append(self.flags)
        if self.spread is not None:
            arrays += [self.value, self.spread.sigma]
        return arrays


CheckName: TypeAlias = Literal[
    "order",
    "follows",
    "moments",
    "frequencies",
    "mask-agrees",
    "one-of",
    "reads-as",
    "same-bits",
    "same-seed",
    "infers",
]


@dataclass(frozen=True, slots=True)
class Check:
    """A test of whole outputs that an option makes besides its bounds; `runners/judging/answers.py` explains each one.

    `outputs` are the indices of the outputs that it tests. `settings` are numbers and words by name. `arrays` are the
    values that the outputs are compared with, lanes first.
    """

    name: CheckName
    outputs: tuple[int, ...]
    settings: tuple[tuple[str, int | float | str], ...] = ()
    arrays: tuple[Array, ...] = ()


@dataclass(frozen=True, slots=True)
class Option:
    """One admissible answer of a batch of cases, with the silences and options that it belongs to.

    `kind`: `values` (within the bounds), `rejected` (a refusal), `anything` (any shape and value). `exceptional`:
    admits a tensor only if it contains an infinity or NaN that the flags allow; this separates it from the option
    without. `level` is `declared` if only a declared arithmetic admits the answer. `applies`: the lanes in which the
    option applies, bool of shape (lanes,). `structure` has the structure of each answer, without dimensions, if some
    answers are not tensors; `outputs` then lists the tensors of all answers.
    """

    labels: Labels
    outputs: tuple[Bounds, ...] = ()
    kind: Literal["values", "rejected", "anything"] = "values"
    exceptional: bool = False
    level: Level = "strict"
    applies: Array = field(default_factory=functools.partial(np.ones, 1, bool))
    structure: tuple[Structure, ...] = ()
    checks: tuple[Check, ...] = ()

    def mapped(self, change: Callable[[Array], Array]) -> Option:
        """Return the option with `change` applied to each array."""
        return replace(
            self,
            outputs=tuple(bounds.mapped(change) for bounds in self.outputs),
            applies=change(self.applies),
            checks=tuple(replace(check, arrays=tuple(map(change, check.arrays))) for check in self.checks),
        )


@dataclass(frozen=True)
class Expectation:
    """The options that the standard admits, in order of preference, for all lanes.

    A lane in which no option applies has an invalid input. `types` are the element types of the outputs.
    """

    options: tuple[Option, ...]
    types: tuple[str, ...]
    lanes: int = 1

    @property
    def invalid(self) -> bool:
        """Return whether the input of some lane is invalid: no answer is right, and a refusal is welcome."""
        return not all(map(any, self.patterns))

    @property
    def silences(self) -> dict[str, tuple[str, ...]]:
        """Return the silences that are open in some lane, each with its options in order."""
        answers_of: dict[str, dict[str, None]] = {}
        for pattern in dict.fromkeys(self.patterns):
            for labels in self.labels(pattern):
                for silence, answer in labels:
                    answers_of.setdefault(silence, {})[answer] = None
        return {silence: tuple(answers) for silence, answers in answers_of.items()}

    @functools.cached_property
    def patterns(self) -> list[bytes]:
        """Return which options apply in each lane, one byte per option; most lanes agree."""
        if not self.options:
            return [b""] * self.lanes
        return lane_contents(np.stack([option.applies for option in self.options], axis=1))

    def labels(self, pattern: bytes) -> list[Labels]:
        """Return the labels of the options that apply in a pattern.

        Silences with a single answer left are omitted, because they don't apply.
        """
        open_labels = self._labels.get(pattern)
        if open_labels is None:
            every = [option.labels for option, applies in zip(self.options, pattern, strict=True) if applies]
            answers: dict[str, set[str]] = {}
            for labels in every:
                for silence, answer in labels:
                    answers.setdefault(silence, set()).add(answer)
            open_labels = [tuple(label for label in labels if len(answers[label[0]]) > 1) for labels in every]
            self._labels[pattern] = open_labels
        return open_labels

    @functools.cached_property
    def _labels(self) -> dict[bytes, list[Labels]]:
        return {}

    def part(self, start: int, stop: int) -> Expectation:
        """Return the expectations of the lanes from `start` up to `stop`: the options that apply in any of them."""
        if (start, stop) == (0, self.lanes):
            return self
        applying = tuple(option for option in self.options if option.applies[start:stop].any())
        shared = Expectation(applying, self.types, self.lanes).of_lanes(slice(start, stop), stop - start)
        shared.__dict__["_whole"] = self, start, stop
        return shared

    def of_lanes(self, which: slice | Array, lanes: int) -> Expectation:
        """Return the expectations of some lanes, given by a slice or by their numbers, and the number of lanes.

        Arrays that several options share stay shared.
        """
        made: dict[int, tuple[Array, Array]] = {}

        def cut(array: Array) -> Array:
            known = made.get(id(array))
            if known is None:
                known = made[id(array)] = array, array[which]
            return known[1]

        return Expectation(tuple(option.mapped(cut) for option in self.options), self.types, lanes)

    def case(self, lane: int) -> Expectation:
        """Return the expectation of one lane: its options, labelled only by the silences that are open there."""
        return next(self.of_lanes(slice(lane, lane + 1), 1).by_pattern())[1].without_flags()

    def without_flags(self) -> Expectation:
        """Return the expectation, with None in place of flags of which no bit is set."""

        def without(bounds: Bounds) -> Bounds:
            return bounds if bounds.flags is None or bounds.flags.any() else replace(bounds, flags=None)

        options = (replace(option, outputs=tuple(map(without, option.outputs))) for option in self.options)
        return Expectation(tuple(options), self.types, self.lanes)

    def by_pattern(self) -> Iterator[tuple[Array, Expectation]]:
        """Yield the lanes in which the same options apply, as numbers, and the expectation with only these options."""
        shared: dict[bytes, list[int]] = {}
        for lane, pattern in enumerate(self.patterns):
            shared.setdefault(pattern, []).append(lane)
        for pattern, lanes in shared.items():
            which = np.array(lanes)
            here = self if len(shared) == 1 else self.of_lanes(which, len(lanes))
            chosen = [option for option, applies in zip(here.options, pattern, strict=True) if applies]
            relabelled = (replace(o, labels=labels) for o, labels in zip(chosen, self.labels(pattern), strict=True))
            yield which, Expectation(tuple(relabelled), self.types, len(lanes))

    @property
    def digest(self) -> str:
        """Return the digest of a single case's expectation; ValueError if there are several lanes."""
        (digest,) = self.digests
        return digest

    @functools.cached_property
    def digests(self) -> list[str]:
        """Return for each lane the sha256 of everything that decides a verdict, to the bit."""
        if "_whole" in self.__dict__:  # together with its neighbours', at little extra cost
            origin, start, stop = self.__dict__["_whole"]
            return list(origin.digests[start:stop])
        digests = [""] * self.lanes
        for lanes, alike in self.by_pattern():
            every = [bounds for option in alike.options for bounds in option.outputs]
            flagged = {id(b.flags): any_of_lane(b.flags) for b in every if b.flags is not None}
            contents = {id(a): lane_contents(a) for a in _decisive(alike.options)}
            heads: dict[bytes, Any] = {}
            columns = np.stack(list(flagged.values()), axis=1) if flagged else np.zeros((len(lanes), 0), bool)
            for row, (lane, key) in enumerate(zip(lanes.tolist(), lane_contents(columns), strict=True)):
                if key not in heads:
                    flags = dict(zip(flagged, key, strict=True))
                    heads[key] = self._begun(alike.options, {i for i, there in flags.items() if not there})
                begun, arrays = heads[key]
                digest = begun.copy()
                digest.update(b"".join([contents[a][row] for a in arrays]))
                digests[lane] = digest.hexdigest()
        return digests

    def _begun(self, options: Sequence[Option], unset: set[int]) -> tuple[Any, list[int]]:
        """Return a digest of everything except arrays, and the ids of the arrays, without `unset` flags."""
        heads = [
            (
                *(o.labels, o.kind, o.exceptional, o.level, [(b.type, b.shape) for b in o.outputs]),
                *(
                    (o.structure, [(c.name, c.outputs, c.settings) for c in o.checks])
                    if o.structure or o.checks
                    else ()
                ),
            )
            for o in options
        ]
        arrays = [id(array) for array in _decisive(options) if id(array) not in unset]
        return hashlib.sha256(repr((self.types, heads)).encode()), arrays


def _decisive(options: Sequence[Option]) -> list[Array]:
    """Return the arrays that decide a verdict."""
    arrays = []
    for option in options:
        arrays += [array for bounds in option.outputs for array in bounds.decisive]
        arrays += [array for check in option.checks for array in check.arrays]
    return arrays


def any_of_lane(elements: Array) -> Array:
    """Return the lanes in which some element is true."""
    return np.asarray(elements.reshape(len(elements), -1).any(axis=1))


@dataclass(frozen=True)
class Batch:
    """Cases of one program that differ only in their data, and their expectations.

    `inputs` are the arrays of `program.leaves`, each of shape (lanes, *input). `clauses` are the ids of the clauses
    that the cases test, such as `onnx/ReduceMean#mean`. `valid_variant` is the id of the valid case that an invalid
    case was made from.
    """

    ids: Sequence[str]
    program: Program
    inputs: tuple[Array, ...]
    expectation: Expectation
    clauses: tuple[str, ...] = ()
    valid_variant: str | None = None

    @classmethod
    def of_case(
        cls,
        text: str,
        program: Program,
        inputs: Sequence[Array],
        expectation: Expectation,
        *,
        clauses: tuple[str, ...] = (),
        valid_variant: str | None = None,
    ) -> Batch:
        """Return a batch of one case; its `inputs` have no lanes."""
        return cls((text,), program, tuple(i[np.newaxis] for i in inputs), expectation, clauses, valid_variant)

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, stop: int) -> Batch:
        """Return the cases from `start` up to `stop`."""
        if (start, stop) == (0, len(self)):
            return self
        inputs = tuple(array[start:stop] for array in self.inputs)
        batch = replace(self, ids=self.ids[start:stop], inputs=inputs, expectation=self.expectation.part(start, stop))
        if "digests" in self.__dict__:
            batch.__dict__["digests"] = self.digests[start:stop]
        return batch

    def case(self, lane: int) -> Batch:
        """Return one of the cases, with the part of the expectation that applies to it."""
        inputs = tuple(array[lane : lane + 1] for array in self.inputs)
        batch = replace(self, ids=(self.ids[lane],), inputs=inputs, expectation=self.expectation.case(lane))
        if "digests" in self.__dict__:
            batch.__dict__["digests"] = [self.digests[lane]]
        return batch

    def cases(self) -> Iterator[Batch]:
        """Yield the cases one at a time."""
        return map(self.case, range(len(self)))

    def tensors(self, lane: int = 0) -> tuple[Array, ...]:
        """Return the inputs of one of the cases, without lanes."""
        return tuple(array[lane, ...] for array in self.inputs)

    @property
    def id(self) -> str:
        """Return the id of a single case; ValueError if there are several."""
        (id_,) = self.ids
        return id_

    @property
    def digest(self) -> str:
        """Return the digest of a single case; ValueError if there are several."""
        (digest,) = self.digests
        return digest

    @functools.cached_property
    def digests(self) -> list[str]:
        """Return the digest of each case: sha256 of the program and the bytes of the inputs."""
        begun = hashlib.sha256(self.program.key.encode())
        begun.update(repr([array.shape[1:] for array in self.inputs]).encode())  # the program already covers the types
        contents = [lane_contents(array) for array in self.inputs]
        digests = []
        for lane in range(len(self)):
            digest = begun.copy()
            for rows in contents:
                digest.update(rows[lane])
            digests.append(digest.hexdigest())
        return digests

    @property
    def expectation_digests(self) -> list[str]:
        """Return the digest of each case's expectation."""
        return self.expectation.digests


class CaseSource(Protocol):
    """Provides cases by id. Must be picklable, because every worker process has its own."""

    def case(self, text: str, /) -> Batch:
        """Return one case as a batch of one. Raises CaseIdError."""
        return next(self.batches([text]))

    def batches(self, texts: Sequence[str], /) -> Iterator[Batch]:
        """Yield the cases with these ids, in this order; neighbours that differ only in their data form one batch."""


def cases_of(source: CaseSource, texts: Sequence[str]) -> Iterator[Batch]:
    """Yield the cases with these ids, in this order, one at a time. Raises CaseIdError."""
    return (case for batch in source.batches(texts) for case in batch.cases())

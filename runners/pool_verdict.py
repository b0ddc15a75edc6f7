"""What a worker's death means for the keys it held: which one is charged, and which are run again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from .pool_wire import Phase, Place

LossKind: TypeAlias = Literal["crash", "timeout", "memory", "flood", "corrupt", "raised"]

_FAULTS: Final = 2  # a batch that was next in line when this many workers died is suspected itself
TAIL_BYTES: Final = 3000
"""How much of what a process wrote last is worth keeping."""
_TAIL_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Loss:
    """A key that has no record, and why.

    `kind` is `raised` where the task raised a Python exception; its traceback is then in `tail`. `phase` is None where
    the key was in neither. `exit` says how the process ended (`signal SIGSEGV`, `exit code 3`) or why it was killed
    (`killed after 10 s`). `tail` is the last that the process wrote to stdout and stderr while it had this
    key; a line of the key just before may come first. `seconds` is the time in the phase.
    """

    key: str
    kind: LossKind
    phase: Phase | None
    exit: str
    tail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a worker ended: where it was and whether that names the culprit.

    `fresh` says that the worker had finished no key before.
    """

    kind: LossKind
    exit: str
    place: Place
    fresh: bool
    seconds: float


@dataclass(slots=True)
class Batch:
    """Keys that go to a worker together; `received` counts the first ones whose records have arrived."""

    keys: Sequence[str]
    alone: bool = False
    faults: int = 0
    number: int = 0
    received: int = 0

    @property
    def left(self) -> Sequence[str]:
        """The keys without a record."""
        return self.keys[self.received :]

    @property
    def finished(self) -> bool:
        """Whether every key has its record."""
        return self.received == len(self.keys)

    def without(self, index: int) -> Batch:
        """Return a batch of the keys that are left without key `index`."""
        return Batch([*self.keys[self.received : index], *self.keys[index + 1 :]])


@dataclass(slots=True)
class Settlement:
    """What becomes of a dead worker's keys; those of `one_by_one` are for a worker started after it."""

    losses: list[Loss] = field(default_factory=list)
    one_by_one: list[Batch] = field(default_factory=list)
    again: list[Batch] = field(default_factory=list)


def settle(sent: Iterable[Batch], verdict: Verdict, tail: str) -> Settlement:
    """Decide about the batches that a dead worker held, in the order it got them; all its messages have been read."""
    settled = Settlement()
    for position, batch in enumerate(sent):
        if batch.number == verdict.place.batch:
            _settle_opened(settled, batch, verdict, tail)
        elif position == 0:
            _blame(settled, batch, verdict, tail)
        else:
            settled.again.append(Batch(batch.left, batch.alone, batch.faults))
    return settled


def _settle_opened(settled: Settlement, batch: Batch, verdict: Verdict, tail: str) -> None:
    index, phase = verdict.place.position, verdict.place.phase
    leak = verdict.kind == "memory" and not verdict.fresh  # it may be what earlier keys left behind
    under_way = phase is not None and batch.received <= index < len(batch.keys) and verdict.kind != "corrupt"
    if under_way and not leak:
        settled.losses.append(_loss(batch.keys[index], verdict, tail))
        settled.again.append(batch.without(index))
    elif under_way:
        settled.one_by_one.append(Batch([batch.keys[index]], alone=True))
        settled.again.append(batch.without(index))
    elif batch.alone and not leak:
        settled.losses.append(_loss(batch.keys[0], verdict, tail))
    elif leak or (phase is not None and index < batch.received):
        _blame(settled, batch, verdict, tail)
    else:
        settled.one_by_one += one_by_one(batch.left)
    settled.again = [b for b in settled.again if b.keys]


def _blame(settled: Settlement, batch: Batch, verdict: Verdict, tail: str) -> None:
    """Count the death of a worker that was to take this batch next, and suspect the batch at the second."""
    faults = batch.faults + 1
    if faults < _FAULTS:
        settled.again.append(Batch(batch.left, batch.alone, faults))
    elif batch.alone:
        settled.losses.append(_loss(batch.keys[0], verdict, tail))
    else:
        settled.one_by_one += one_by_one(batch.left)


def one_by_one(keys: Iterable[str]) -> list[Batch]:
    """Return a batch for each key, which a worker gets while it has no other."""
    return [Batch([key], alone=True) for key in keys]


def _loss(key: str, verdict: Verdict, tail: str) -> Loss:
    return Loss(key, verdict.kind, verdict.place.phase, verdict.exit, tail, verdict.seconds)


def readable(raw: bytes) -> str:
    """Return the last lines of what a process wrote, with control characters escaped."""
    lines = raw[-TAIL_BYTES:].decode(errors="replace").rstrip("\n").split("\n")[-_TAIL_LINES:]
    return "\n".join("".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in line) for line in lines)

"""What a worker's death means for the keys it held: which one is charged, and which are run again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from .wire import Key, Phase, Place

LossKind: TypeAlias = Literal["crash", "timeout", "memory", "flood", "corrupt", "raised"]

_FAULTS: Final = 2  # a batch that was next in line when this many workers died is suspected itself
KEYS_BEFORE: Final = 8
"""How many of the keys that a worker ran before its death are told."""
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

    key: Key
    kind: LossKind
    phase: Phase | None
    exit: str
    tail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Stray:
    """A worker's death that no key is charged with: what was under way passes alone, in a worker of its own.

    `key` is what was under way, None if that is not known. `before` has the last keys that the worker ran until then.
    The others are as in Loss.
    """

    key: Key | None
    kind: LossKind
    phase: Phase | None
    exit: str
    tail: str
    before: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """Why a worker ended: where it was and whether that names the culprit.

    `fresh` says that the worker had finished no key before, and `before` has the last of those that it had. `orphaned`
    says that it went down with the process that started it, and perhaps with its neighbours.
    """

    kind: LossKind
    exit: str
    place: Place
    fresh: bool
    seconds: float
    before: tuple[Key, ...] = ()
    orphaned: bool = False


@dataclass(slots=True)
class Suspicion:
    """A death that nothing is charged with yet, and how many batches of suspects are still to end."""

    stray: Stray
    batches: int = 0
    charged: bool = False


@dataclass(slots=True)
class KeyBatch:
    """Keys that go to a worker together; `received` counts the first ones whose records have arrived.

    One that is `alone` goes to a worker that has no other. `apart` asks for a worker that shares nothing with others.
    """

    keys: Sequence[Key]
    alone: bool = False
    faults: int = 0
    apart: bool = False
    suspicion: Suspicion | None = None
    number: int = 0
    received: int = 0

    @property
    def left(self) -> Sequence[Key]:
        """The keys without a record."""
        return self.keys[self.received :]

    @property
    def finished(self) -> bool:
        """Whether every key has its record."""
        return self.received == len(self.keys)

    def without(self, index: int) -> KeyBatch:
        """Return a batch of the keys that are left without key `index`."""
        return KeyBatch([*self.keys[self.received : index], *self.keys[index + 1 :]])

    def cleared(self) -> Stray | None:
        """Say that the batch has ended; returns the death that nobody is charged with if it was the last suspect."""
        suspicion, self.suspicion = self.suspicion, None
        if suspicion is None:
            return None
        suspicion.batches -= 1
        return None if suspicion.batches or suspicion.charged else suspicion.stray


@dataclass(slots=True)
class Settlement:
    """What becomes of a dead worker's keys; those of `first` are for the next workers in its place, in this order."""

    losses: list[Loss] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)
    first: list[KeyBatch] = field(default_factory=list)
    again: list[KeyBatch] = field(default_factory=list)


def settle(sent: Sequence[KeyBatch], verdict: WorkerEnd, tail: str) -> Settlement:
    """Decide about the batches that a dead worker held, in the order it got them; all its messages have been read.

    A key is charged at once where its worker had run no other, and for a timeout. Anything else may be what another
    key left behind: the suspects run again, each alone in a worker, until one dies as the first there.
    """
    case = _Inquest(verdict, tail, next((batch.suspicion for batch in sent if batch.suspicion), None))
    if not sent and verdict.place.batch:
        case.settled.strays.append(case.stray(None))
    for position, batch in enumerate(sent):
        if batch.number == verdict.place.batch:
            case.opened(batch)
        elif position == 0:
            case.blame(batch)
        else:
            case.settled.again.append(replace(batch, keys=batch.left, number=0, received=0))
    case.settled.again = [batch for batch in case.settled.again if batch.keys]
    return case.settled


class _Inquest:
    """One death, being settled; `known` is an earlier one that has the same suspects, and so the same cause."""

    def __init__(self, verdict: WorkerEnd, tail: str, known: Suspicion | None) -> None:
        self._verdict = verdict
        self._tail = tail
        self._own = known or Suspicion(self.stray(None))
        self.settled = Settlement()

    def opened(self, batch: KeyBatch) -> None:
        """Settle the batch that the worker was in."""
        verdict, index, phase = self._verdict, self._verdict.place.position, self._verdict.place.phase
        under_way = phase is not None and batch.received <= index < len(batch.keys) and verdict.kind != "corrupt"
        certain = (verdict.fresh or verdict.kind == "timeout") and (batch.apart or not verdict.orphaned)
        leak = verdict.kind == "memory" and not verdict.fresh  # it may be what earlier keys left behind
        if under_way or batch.alone:
            index = index if under_way else 0
            if certain:
                self._charge(batch, index)
            else:
                self._suspect([batch.keys[index]], batch, index)
            self.settled.again.append(batch.without(index))
        elif leak or (phase is not None and index < batch.received):
            self.blame(batch)
        else:
            self._suspect(batch.left, batch)

    def blame(self, batch: KeyBatch) -> None:
        """Count the death of a worker that was to take this batch next, and suspect the batch at the second."""
        faults = batch.faults + 1
        orphaned = self._verdict.orphaned and not batch.apart
        if batch.alone and (faults < _FAULTS or orphaned):
            self._suspect(batch.keys, batch, faults=faults)
        elif batch.alone:
            self._charge(batch, 0)
        elif faults < _FAULTS:
            again = KeyBatch(batch.left, faults=faults, suspicion=self._suspicion(batch))
            self.settled.again.append(_counted(again))
        else:
            self._suspect(batch.left, batch)

    def stray(self, key: Key | None, ran: Iterable[Key] = ()) -> Stray:
        """Return this death as one that nobody is charged with."""
        verdict = self._verdict
        before = (*verdict.before, *ran)[-KEYS_BEFORE:]
        return Stray(key, verdict.kind, verdict.place.phase, verdict.exit, self._tail, before)

    def _charge(self, batch: KeyBatch, index: int) -> None:
        verdict = self._verdict
        self._own.charged = True
        if batch.suspicion is not None:
            batch.suspicion.charged = True
        self.settled.losses.append(
            Loss(batch.keys[index], verdict.kind, verdict.place.phase, verdict.exit, self._tail, verdict.seconds)
        )

    def _suspect(self, keys: Iterable[Key], batch: KeyBatch, index: int | None = None, faults: int = 0) -> None:
        suspicion = self._suspicion(batch, index)
        apart = batch.apart or self._verdict.orphaned
        self.settled.first += [_counted(KeyBatch([key], True, faults, apart, suspicion)) for key in keys]

    def _suspicion(self, batch: KeyBatch, index: int | None = None) -> Suspicion:
        """Return the suspicion that the batch is under, or else the one because of this death."""
        if batch.suspicion is not None:
            batch.suspicion.batches -= 1
            return batch.suspicion
        if index is not None and not self._own.batches:
            self._own.stray = self.stray(batch.keys[index], batch.keys[batch.received : index])
        return self._own


def _counted(batch: KeyBatch) -> KeyBatch:
    if batch.suspicion is not None:
        batch.suspicion.batches += 1
    return batch


def readable(raw: bytes) -> str:
    """Return the last lines of what a process wrote, with control characters escaped."""
    lines = raw[-TAIL_BYTES:].decode(errors="replace").rstrip("\n").split("\n")[-_TAIL_LINES:]
    return "\n".join("".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in line) for line in lines)

"""What the two sides of the worker pool share, and what a worker's death means for the keys that it held."""

from __future__ import annotations

import mmap
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

Phase: TypeAlias = Literal["prepare", "run", "sibling"]
Begin: TypeAlias = Callable[[int, Phase], None]
Key: TypeAlias = Any
"""What a record is about: a case id, or a request with its arrays; the pool only pickles it and hands it back."""

# Parent to worker: FACTORY, BATCH. Worker to parent: the others.
FACTORY, BATCH, READY, FAILED, RECORDS, RAISED = range(1, 7)
CHANNEL_LOST: Final = 86
"""The exit code of a worker that can no longer write to its message channel."""

_MAGIC: Final = b"OPC\x01"
_HEADER: Final = struct.Struct("<4sIIIIIII")  # magic, kind, sequence, batch, first, count, length, payload's checksum
_CHECK: Final = struct.Struct("<I")
_LARGEST: Final = 128 << 20  # bytes of a message: beyond the largest answer that a case can have
_PLACE: Final = struct.Struct("<QqQQ")  # batch, index, phase, nanoseconds on the monotonic clock
RAISED_HEAD: Final = struct.Struct("<d")
"""What a RAISED message opens with: seconds since the phase began. The traceback's text follows."""
PHASES: Final[tuple[Phase | None, ...]] = (None, "prepare", "run", "sibling")
_PHASE_NUMBERS: Final[Mapping[Phase | None, int]] = MappingProxyType({phase: i for i, phase in enumerate(PHASES)})


class Task(Protocol):
    """What a worker does with keys; made once in each worker process."""

    def run(self, keys: Sequence[Key], begin: Begin, /) -> Iterator[bytes]:
        """Yield one record for each key, in order.

        Calls `begin(i, "prepare")` when key i starts being prepared, `begin(i, "run")` when its run starts and
        `begin(i, "sibling")` when another one is tried for its sake, so that what happens from then on is charged to
        that key. An exception raised here costs the key that was under way.
        """


def phase_of(number: int) -> Phase | None:
    """Return the phase that a message or a board gives as a number; None where it gives no phase."""
    return PHASES[number] if number < len(PHASES) else None


class Corrupt(Exception):  # noqa: N818 - a state of the channel, not a mistake of ours
    """The channel carried bytes that are no message; the text is a noun, such as `stray bytes`."""


class Frame(NamedTuple):
    """One message; `first` is the index of the first key it speaks of, `amount` how many (RAISED: the phase)."""

    kind: int
    batch: int = 0
    first: int = 0
    amount: int = 0
    payload: bytes = b""


class FrameWriter:
    """Numbers and checksums the messages of one direction."""

    def __init__(self) -> None:
        self._sequence = 0

    def pack(self, frame: Frame) -> bytes:
        """Return the bytes to send."""
        self._sequence += 1
        header = _HEADER.pack(_MAGIC, frame.kind, self._sequence, *frame[1:4], len(frame[4]), zlib.crc32(frame[4]))
        return b"".join((header, _CHECK.pack(zlib.crc32(header)), frame.payload))


class FrameReader:
    """Cuts what a channel carries into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._sequence = 0

    def feed(self, received: bytes) -> Iterator[Frame]:
        """Yield the messages that are whole now; raises Corrupt at the first byte out of place."""
        self._buffer += received
        size = _HEADER.size + _CHECK.size
        while self._buffer:
            if not _MAGIC.startswith(self._buffer[: len(_MAGIC)]):
                raise Corrupt(f"stray bytes {bytes(self._buffer[:16])!r}")
            if len(self._buffer) < size:
                return
            header = bytes(self._buffer[: _HEADER.size])
            _, kind, sequence, batch, first, count, length, check = _HEADER.unpack(header)
            if self._buffer[_HEADER.size : size] != _CHECK.pack(zlib.crc32(header)):
                raise Corrupt("a damaged message")
            if length > _LARGEST:
                raise Corrupt(f"a message of {length} bytes")
            if len(self._buffer) < size + length:
                return
            payload = bytes(self._buffer[size : size + length])
            if zlib.crc32(payload) != check:
                raise Corrupt("a damaged message")
            if sequence != self._sequence + 1:
                raise Corrupt("a gap between messages")
            del self._buffer[: size + length]
            self._sequence = sequence
            yield Frame(kind, batch, first, count, payload)


def pack_records(records: Sequence[bytes]) -> bytes:
    """Return records as the payload of a RECORDS message: their lengths, then their bytes."""
    return b"".join([struct.pack(f"<{len(records)}I", *map(len, records)), *records])


def unpack_records(payload: bytes, amount: int) -> list[bytes]:
    """Return the records of a RECORDS message. Raises Corrupt where it does not hold just so many."""
    start = 4 * amount
    if len(payload) < start:
        raise Corrupt("a message with a wrong count")
    found = []
    for length in struct.unpack_from(f"<{amount}I", payload):
        found.append(payload[start : start + length])
        start += length
    if start != len(payload):
        raise Corrupt("a message with a wrong count")
    return found


class Place(NamedTuple):
    """Where a worker is: at key `position` of `batch`, in `phase` (None: between keys) `since` that monotonic time."""

    batch: int
    position: int
    phase: Phase | None
    since: float

    @property
    def key(self) -> tuple[int, int]:
        """The key alone, whatever its phase."""
        return self.batch, self.position


class Board:
    """Shared memory where a worker notes where it is, so that the parent knows it whatever becomes of the worker."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, mmap.PAGESIZE)

    def note(self, batch: int, index: int, phase: Phase | None) -> None:
        """Note where this worker is, and the time."""
        _PLACE.pack_into(self._memory, 0, batch, index, _PHASE_NUMBERS[phase], time.monotonic_ns())

    def notes(self, batch: int) -> Begin:
        """Return what notes that a phase of a key of a batch begins, at the least cost: it is told of every run."""
        pack, memory, clock, numbers = _PLACE.pack_into, self._memory, time.monotonic_ns, dict(_PHASE_NUMBERS)

        def begin(index: int, phase: Phase) -> None:
            pack(memory, 0, batch, index, numbers[phase], clock())

        return begin

    def read(self) -> Place:
        """Return what was noted last; native code may have scribbled over it, so any numbers may come."""
        batch, index, phase, since = _PLACE.unpack_from(self._memory)
        return Place(batch, index, phase_of(phase), since / 1e9)

    def close(self) -> None:
        """Unmap the memory."""
        self._memory.close()


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

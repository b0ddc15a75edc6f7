"""The messages between the two sides of the worker pool, and the consequences of a worker's death for its keys."""

from __future__ import annotations

import mmap
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

Phase: TypeAlias = Literal["prepare", "run", "sibling"]
Begin: TypeAlias = Callable[[int, Phase], None]
Key: TypeAlias = Any
"""The subject of a record: a case id, or a request with its arrays; the pool only pickles it and returns it."""

# Parent to worker: FACTORY, BATCH. Worker to parent: the others.
FACTORY, BATCH, READY, FAILED, RECORDS, RAISED, LOST = range(1, 8)
CHANNEL_LOST: Final = 86
"""The exit code of a worker that can no longer write to its message channel."""

_MAGIC: Final = b"OPC\x01"
_HEADER: Final = struct.Struct("<4sIIIIIII")  # magic, kind, sequence, batch, first, count, length, payload's checksum
_CHECK: Final = struct.Struct("<I")
_LARGEST: Final = 128 << 20  # bytes of a message: more than the largest answer of a case
_NOTE: Final = struct.Struct("<QqQQ")  # batch, index, phase, nanoseconds on the monotonic clock
RAISED_HEAD: Final = struct.Struct("<d")
"""The start of a RAISED message: seconds since the phase began. The traceback's text follows."""
PHASES: Final[tuple[Phase | None, ...]] = (None, "prepare", "run", "sibling")


class Task(Protocol):
    """The work that a worker does with keys; made once in each worker process."""

    def run(self, keys: Sequence[Key], begin: Begin, /) -> Iterator[bytes]:
        """Yield one record for each key, in order.

        Calls `begin(i, "prepare")` when it starts preparing key i, `begin(i, "run")` when its run starts, and `begin(i,
        "sibling")` when another case runs on its behalf; whatever happens from then on is charged to that key. An
        exception raised here costs the current key.
        """


def phase_of(number: int) -> Phase | None:
    """Return the phase of a message's or a board's number; None for any other number."""
    return PHASES[number] if number < len(PHASES) else None


class ProcessLost(SystemExit):
    """A task's process must end, and the key in progress is to blame even if it passes in another process.

    `code` is the exit code, or the negated number of the signal that ends the process.
    """

    code: int


class Corrupt(Exception):  # noqa: N818 - a state of the channel, not a mistake of ours
    """The channel carried invalid bytes; the text is a noun, such as `stray bytes`."""


class Frame(NamedTuple):
    """One message; `first` is the index of its first key, `amount` the number of keys (RAISED: the phase)."""

    kind: int
    batch: int = 0
    first: int = 0
    amount: int = 0
    payload: bytes = b""


class FrameWriter:
    """Adds numbers and checksums to the messages of one direction."""

    def __init__(self) -> None:
        self._sequence = 0

    def pack(self, frame: Frame) -> bytes:
        """Return the bytes to send."""
        self._sequence += 1
        header = _HEADER.pack(_MAGIC, frame.kind, self._sequence, *frame[1:4], len(frame[4]), zlib.crc32(frame[4]))
        return b"".join((header, _CHECK.pack(zlib.crc32(header)), frame.payload))


class FrameReader:
    """Splits the bytes of a channel into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._sequence = 0

    def feed(self, received: bytes) -> Iterator[Frame]:
        """Yield the messages that are complete; raises Corrupt at the first wrong byte."""
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
    """Return the payload of a RECORDS message: the records' lengths, then their bytes."""
    return b"".join([struct.pack(f"<{len(records)}I", *map(len, records)), *records])


def unpack_records(payload: bytes, amount: int) -> list[bytes]:
    """Return the records of a RECORDS message. Raises Corrupt if their number is wrong."""
    start = 4 * amount
    if len(payload) < start:
        raise Corrupt("a message with a wrong count")
    records = []
    for length in struct.unpack_from(f"<{amount}I", payload):
        records.append(payload[start : start + length])
        start += length
    if start != len(payload):
        raise Corrupt("a message with a wrong count")
    return records


class Note(NamedTuple):
    """The position of a worker: key `position` of `batch`, in `phase` (None: between keys) `since` a monotonic time."""

    batch: int
    position: int
    phase: Phase | None
    since: float

    @property
    def key(self) -> tuple[int, int]:
        """Return the key without its phase."""
        return self.batch, self.position


class Board:
    """Shared memory where a worker notes its position, which the parent can read whatever happens to the worker."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, mmap.PAGESIZE)

    def note(self, batch: int, index: int, phase: Phase | None) -> None:
        """Note this worker's position, and the time."""
        _NOTE.pack_into(self._memory, 0, batch, index, PHASES.index(phase), time.monotonic_ns())

    def notes(self, batch: int) -> Begin:
        """Return a fast function that notes the start of a phase of a key of a batch; it is called for every run."""
        pack, memory, clock = _NOTE.pack_into, self._memory, time.monotonic_ns
        numbers = {phase: number for number, phase in enumerate(PHASES)}

        def begin(index: int, phase: Phase) -> None:
            pack(memory, 0, batch, index, numbers[phase], clock())

        return begin

    def read(self) -> Note:
        """Return the last note. Native code may have overwritten it, so any numbers are possible."""
        batch, index, phase, since = _NOTE.unpack_from(self._memory)
        return Note(batch, index, phase_of(phase), since / 1e9)

    def close(self) -> None:
        """Unmap the memory."""
        self._memory.close()


LossKind: TypeAlias = Literal["crash", "timeout", "memory", "flood", "corrupt", "raised", "stopped"]

_FAULTS: Final = 2  # if so many workers die, the batch that was next in line becomes a suspect
KEYS_BEFORE: Final = 8
"""Number of keys that a report lists of those that a worker ran before its death."""
TAIL_BYTES: Final = 3000
"""Number of bytes that are kept of a process's last output."""
_TAIL_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class Loss:
    """A key without a record, and why.

    `kind` is `raised` if the task raised a Python exception, with the traceback in `tail`. `phase` is None if the key
    was in neither phase. `exit` says how the process ended (`signal SIGSEGV`, `exit code 3`) or why it was killed
    (`killed after 10 s`). `tail` is the last output of the process while it had this key; it may begin with a line of
    the previous key. `seconds` is the time in the phase.
    """

    key: Key
    kind: LossKind
    phase: Phase | None
    exit: str
    tail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Stray:
    """A worker's death that no key is charged with: the key in progress passes when it runs alone in a worker.

    `key` is the key in progress, None if it is unknown. `before` has the last keys that the worker ran before it.
    `blamed`: the worker said that the key is to blame all the same. The other fields are as in Loss.
    """

    key: Key | None
    kind: LossKind
    phase: Phase | None
    exit: str
    tail: str
    before: tuple[Key, ...] = ()
    blamed: bool = False


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """Why a worker ended: its position, and whether that identifies the culprit.

    `fresh`: the worker had finished no key before. `before` has the last keys that it had finished. `orphaned`: it
    ended together with the process that started it, and perhaps with other workers; or something has stopped it.
    `blamed`: the worker said that the key in progress is to blame.
    """

    kind: LossKind
    exit: str
    note: Note
    fresh: bool
    seconds: float
    before: tuple[Key, ...] = ()
    orphaned: bool = False
    blamed: bool = False


class InNewWorker(list[Key]):
    """A batch of keys that a new worker runs, one after the other, before it gets any others."""


@dataclass(slots=True)
class Suspicion:
    """A death that nothing is charged with yet, and the number of suspect batches that are still to end."""

    stray: Stray
    batches: int = 0
    charged: bool = False


@dataclass(slots=True)
class KeyBatch:
    """Keys that go to a worker together; the records of the first `received` keys have arrived.

    A batch that is `alone` goes to a worker that has no other, `new` to one that never had any. `apart` requests a
    worker that shares nothing with others.
    """

    keys: Sequence[Key]
    alone: bool = False
    faults: int = 0
    apart: bool = False
    suspicion: Suspicion | None = None
    number: int = 0
    received: int = 0
    new: bool = False

    @property
    def left(self) -> Sequence[Key]:
        """Return the keys without a record."""
        return self.keys[self.received :]

    @property
    def finished(self) -> bool:
        """Return whether every key has its record."""
        return self.received == len(self.keys)

    def without(self, index: int) -> KeyBatch:
        """Return a batch of the remaining keys without key `index`."""
        return KeyBatch([*self.keys[self.received : index], *self.keys[index + 1 :]])

    def cleared(self) -> Stray | None:
        """Note that the batch has ended; if it was the last suspect, return the death that no key is charged with."""
        suspicion, self.suspicion = self.suspicion, None
        if suspicion is None:
            return None
        suspicion.batches -= 1
        return None if suspicion.batches or suspicion.charged else suspicion.stray


@dataclass(slots=True)
class Settlement:
    """What happens to a dead worker's keys; the batches in `first` go to the next workers in its place, in order."""

    losses: list[Loss] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)
    first: list[KeyBatch] = field(default_factory=list)
    again: list[KeyBatch] = field(default_factory=list)


def settle(sent: Sequence[KeyBatch], verdict: WorkerEnd, tail: str) -> Settlement:
    """Decide about the batches of a dead worker, in the order it got them; all its messages have been read.

    A key is charged at once if its worker had run no other key, and for a timeout. Any other death may be due to an
    earlier key: the suspects run again, each alone in a worker, until one of them dies as the first key there. If the
    worker had begun no key of its batch, which keys may do together, the halves of the batch run again first.
    """
    case = _Inquest(verdict, tail, next((batch.suspicion for batch in sent if batch.suspicion), None))
    if not sent and verdict.note.batch:
        case.settled.strays.append(case.stray(None))
    for position, batch in enumerate(sent):
        if batch.number == verdict.note.batch:
            case.opened(batch)
        elif position == 0:
            case.blame(batch)
        else:
            case.settled.again.append(replace(batch, keys=batch.left, number=0, received=0))
    case.settled.again = [batch for batch in case.settled.again if batch.keys]
    return case.settled


class _Inquest:
    """One death that is being settled; `known` is an earlier death with the same suspects, and so the same cause."""

    def __init__(self, verdict: WorkerEnd, tail: str, known: Suspicion | None) -> None:
        self._verdict = verdict
        self._tail = tail
        self._own = known or Suspicion(self.stray(None))
        self.settled = Settlement()

    def opened(self, batch: KeyBatch) -> None:
        """Settle the batch that the worker was in."""
        verdict, index, phase = self._verdict, self._verdict.note.position, self._verdict.note.phase
        under_way = phase is not None and batch.received <= index < len(batch.keys) and verdict.kind != "corrupt"
        certain = (verdict.fresh or verdict.kind == "timeout") and (batch.apart or not verdict.orphaned)
        leak = verdict.kind == "memory" and not verdict.fresh  # earlier keys may have caused it
        if under_way or batch.alone:
            index = index if under_way else 0
            if certain:
                self._charge(batch, index)
            else:
                self._suspect([batch.keys[index]], batch, index)
            self.settled.again.append(batch.without(index))
        elif leak or (phase is not None and index < batch.received):
            self.blame(batch)
        elif len(batch.left) > 1 and verdict.kind == "crash" and not verdict.orphaned:
            self._halve(batch)
        else:
            self._suspect(batch.left, batch)

    def _halve(self, batch: KeyBatch) -> None:
        """Run the halves of a batch that a worker died with before it began any key of it."""
        keys, suspicion = list(batch.left), self._suspicion(batch)
        for half in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
            self.settled.first.append(_counted(KeyBatch(half, suspicion=suspicion)))

    def blame(self, batch: KeyBatch) -> None:
        """Count the death of a worker whose next batch this was; at the second death the batch becomes a suspect."""
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
        """Return this death as one that no key is charged with."""
        verdict = self._verdict
        before = (*verdict.before, *ran)[-KEYS_BEFORE:]
        return Stray(key, verdict.kind, verdict.note.phase, verdict.exit, self._tail, before, verdict.blamed)

    def _charge(self, batch: KeyBatch, index: int) -> None:
        verdict = self._verdict
        self._own.charged = True
        if batch.suspicion is not None:
            batch.suspicion.charged = True
        self.settled.losses.append(
            Loss(batch.keys[index], verdict.kind, verdict.note.phase, verdict.exit, self._tail, verdict.seconds)
        )

    def _suspect(self, keys: Iterable[Key], batch: KeyBatch, index: int | None = None, faults: int = 0) -> None:
        suspicion = self._suspicion(batch, index)
        apart = batch.apart or self._verdict.orphaned
        self.settled.first += [_counted(KeyBatch([key], True, faults, apart, suspicion)) for key in keys]

    def _suspicion(self, batch: KeyBatch, index: int | None = None) -> Suspicion:
        """Return the existing suspicion on the batch, or a new one because of this death."""
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
    """Return the last lines of a process's output, with control characters escaped."""
    lines = raw[-TAIL_BYTES:].decode(errors="replace").rstrip("\n").split("\n")[-_TAIL_LINES:]
    return "\n".join("".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in line) for line in lines)

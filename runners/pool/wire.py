"""What the two sides of the worker pool share: the task's protocol, framed messages, and a board in shared memory."""

from __future__ import annotations

import mmap
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
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
_LARGEST: Final = 256 << 20  # bytes of a message: beyond the largest answer that a case can have
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

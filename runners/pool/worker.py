"""The worker's side of the pool: what runs in the process that a backend may take down."""

from __future__ import annotations

import ctypes
import fcntl
import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from .wire import (
    BATCH,
    CHANNEL_LOST,
    FACTORY,
    FAILED,
    PHASES,
    RAISED,
    RAISED_HEAD,
    READY,
    RECORDS,
    Board,
    Corrupt,
    Frame,
    FrameReader,
    FrameWriter,
    Key,
    Task,
    pack_records,
)

Factory: TypeAlias = Callable[[], Task]

_FLUSH_BYTES: Final = 1 << 16
_FLUSH_SECONDS: Final = 0.05
_OUT_OF_THE_WAY: Final = 200  # code that closes or writes to "the next few" descriptors misses this one
_PR_SET_PDEATHSIG: Final = 1
_LINE_BUFFERED: Final = 1  # glibc's _IOLBF


def main() -> None:
    """Work in a process of its own, started by the template in template."""
    parent, channel, board = (int(a) for a in sys.argv[1:4])
    del sys.argv[1:]
    work(parent, channel, board)


def work(parent: int, channel_fd: int, board_fd: int, factory: Callable[[], Factory] | None = None) -> None:
    """Work until the pool closes the channel or the process `parent` dies.

    `factory` returns the factory of the task; without it, the first message has it pickled.
    """
    _isolate(parent)
    board = Board(board_fd)
    os.close(board_fd)
    channel = _Channel(channel_fd)
    frames = channel.frames()
    task = _make_task(channel, next(frames), factory)
    channel.send(Frame(READY))
    for frame in frames:
        if frame.kind != BATCH:
            os._exit(CHANNEL_LOST)
        _run_batch(task, channel, board, frame.batch, pickle.loads(frame.payload))  # noqa: S301 - the parent wrote it


def _isolate(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    # No core dumps: one byte is too small for a file, and unlike zero also keeps core handlers behind a pipe quiet.
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0 if hard == 0 else 1, hard))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # also inside native code that holds the interpreter
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _LINE_BUFFERED, 0)  # a crash loses no whole line
    if os.getppid() != parent:  # it died before the request above
        os._exit(0)


class _Channel:
    """The descriptor that carries messages, moved to where native code has no business."""

    def __init__(self, fd: int) -> None:
        self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
        os.close(fd)
        self._writer = FrameWriter()

    def frames(self) -> Iterator[Frame]:
        """Yield what the parent sends; the process ends where there is no parent any more."""
        reader = FrameReader()
        while True:
            try:
                received = os.read(self._fd, 1 << 16)
                if not received:
                    os._exit(0)
                yield from reader.feed(received)
            except (OSError, Corrupt):
                os._exit(CHANNEL_LOST)

    def send(self, frame: Frame) -> None:
        """Send a message whole; the process ends where that is impossible."""
        unsent = memoryview(self._writer.pack(frame))
        try:
            while unsent:
                unsent = unsent[os.write(self._fd, unsent) :]
        except OSError:
            os._exit(CHANNEL_LOST)


def _make_task(channel: _Channel, frame: Frame, factory: Callable[[], Factory] | None) -> Task:
    """Make the task; where that fails, tell the pool why and end."""
    try:
        if frame.kind != FACTORY:
            raise Corrupt("the first message is none that starts a worker")
        make: Factory = factory() if factory else pickle.loads(frame.payload)  # noqa: S301 - the pool wrote it
        return make()
    except BaseException as error:
        import traceback  # noqa: PLC0415 - only where something failed

        traceback.print_exc()
        kind = getattr(error, "kind", type(error).__name__)
        channel.send(Frame(FAILED, payload=f"{kind}\n{error}".encode(errors="replace")))
        os._exit(1)


class _Outbox:
    """The records of a batch that are finished and not yet sent."""

    def __init__(self, channel: _Channel, batch: int) -> None:
        self._channel = channel
        self._batch = batch
        self._records: list[bytes] = []
        self._size = 0
        self._flushed = time.monotonic()
        self.sent = 0

    @property
    def finished(self) -> int:
        """How many keys of the batch have their record."""
        return self.sent + len(self._records)

    def add(self, record: bytes) -> None:
        self._records.append(record)
        self._size += len(record)

    @property
    def due(self) -> bool:
        return self._size > _FLUSH_BYTES or time.monotonic() - self._flushed > _FLUSH_SECONDS

    def drop_last(self) -> None:
        del self._records[-1:]

    def flush(self) -> None:
        if self._records:
            payload = pack_records(self._records)
            self._channel.send(Frame(RECORDS, self._batch, self.sent, len(self._records), payload))
        self.sent = self.finished
        self._records.clear()
        self._size = 0
        self._flushed = time.monotonic()


def _run_batch(task: Task, channel: _Channel, board: Board, batch: int, keys: Sequence[Key]) -> None:
    outbox = _Outbox(channel, batch)
    board.note(batch, -1, None)
    try:
        for record in task.run(keys, board.notes(batch)):
            outbox.add(record)
            last = outbox.finished - 1
            board.note(batch, last, None)
            if last >= len(keys):
                outbox.drop_last()
                raise RuntimeError(f"the task yields more than {len(keys)} records for {len(keys)} keys")
            # The last record waits for the task's end, which may still raise.
            if last + 1 < len(keys) and outbox.due:
                outbox.flush()
                board.note(batch, last, None)  # the parent may have kept us waiting
        if outbox.finished < len(keys):
            raise RuntimeError(f"the task yields {outbox.finished} records for {len(keys)} keys")
        outbox.flush()
    except Exception:
        _report_exception(channel, board, outbox, batch, len(keys))


def _report_exception(channel: _Channel, board: Board, outbox: _Outbox, batch: int, count: int) -> None:
    import traceback  # noqa: PLC0415 - only where something failed

    if outbox.finished == count:
        outbox.drop_last()
    outbox.flush()
    place = board.read()
    under_way = place.phase is not None and outbox.sent <= place.position < count
    index = place.position if under_way else outbox.sent
    phase = PHASES.index(place.phase) if under_way else 0
    text = traceback.format_exc().encode(errors="replace")[-_FLUSH_BYTES:]
    seconds = RAISED_HEAD.pack(time.monotonic() - place.since)
    channel.send(Frame(RAISED, batch, index, phase, seconds + text))

"""The pool's processes: the template that starts and reaps workers, and the worker, which a backend may crash.

A backend that attacks its parent process hits the template, which runs nothing of a backend; at most it has imported
what the factory declares fork-safe.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import gc
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from .wire import (
    BATCH,
    CHANNEL_LOST,
    FACTORY,
    FAILED,
    LOST,
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
    ProcessLost,
    Task,
    pack_records,
)

Factory: TypeAlias = Callable[[], Task]

REQUEST: Final = struct.Struct("<cq")
"""Requests of the pool: START, REAP or POLL, and a process; the descriptors of `Ends` come with START."""
START, REAP, POLL = b"S", b"R", b"P"
REPLY: Final = struct.Struct("<q")
"""Replies: a process id or a negative error number; an exit code or a negative signal number, or RUNNING."""
RUNNING: Final = 1 << 32
SIZE: Final = struct.Struct("<Q")
"""The very first bytes: the length of the pickled factory that follows, 0 if workers are not forked."""

FLAGS: Final = ("-u", "-P", "-c")
"""-u: output of Python code is not lost in a crash.

-P: nothing is imported from the current folder, unless the pool's process does so too.
"""
_BOOT: Final = f"import sys; sys.path[:] = sys.argv[4:]; from {__package__}.worker import main; main()"

_FLUSH_BYTES: Final = 1 << 16
_FLUSH_SECONDS: Final = 0.05
_OUT_OF_THE_WAY: Final = 200  # out of reach of code that closes or writes to "the next few" descriptors
_PR_SET_PDEATHSIG: Final = 1
_LINE_BUFFERED: Final = 1  # glibc's _IOLBF


def main() -> None:
    """Run a worker in a process of its own, started by the template."""
    parent, channel, board = (int(a) for a in sys.argv[1:4])
    del sys.argv[1:]
    work(parent, channel, board)


def work(parent: int, channel_fd: int, board_fd: int, factory: Callable[[], Factory] | None = None) -> None:
    """Work until the pool closes the channel or the process `parent` dies.

    `factory` returns the factory of the task; without it, the first message has the pickled factory.
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    # No core dumps: one byte is too small for a file and, unlike zero, also silences core handlers behind a pipe.
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0 if hard == 0 else 1, hard))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # works even inside native code that holds the interpreter
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _LINE_BUFFERED, 0)  # a crash loses no complete line
    if os.getppid() != parent:  # the parent died before the request above
        os._exit(0)


class _Channel:
    """The descriptor that carries messages, moved out of native code's usual range."""

    def __init__(self, fd: int) -> None:
        self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _OUT_OF_THE_WAY)
        os.close(fd)
        self._writer = FrameWriter()

    def frames(self) -> Iterator[Frame]:
        """Yield the parent's messages; the process ends if the parent is gone."""
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
        """Send a whole message; the process ends if that is impossible."""
        unsent = memoryview(self._writer.pack(frame))
        try:
            while unsent:
                unsent = unsent[os.write(self._fd, unsent) :]
        except OSError:
            os._exit(CHANNEL_LOST)


def _make_task(channel: _Channel, frame: Frame, factory: Callable[[], Factory] | None) -> Task:
    """Make the task; if that fails, report the reason to the pool and end."""
    try:
        if frame.kind != FACTORY:
            raise Corrupt("the first message does not start a worker")
        make: Factory = factory() if factory else pickle.loads(frame.payload)  # noqa: S301 - the pool wrote it
        return make()
    except BaseException as error:
        traceback.print_exc()
        kind, message = getattr(error, "kind", type(error).__name__), getattr(error, "message", error)
        channel.send(Frame(FAILED, payload=f"{kind}\n{message}".encode(errors="replace")))
        os._exit(1)


class _Outbox:
    """The finished records of a batch that are not sent yet."""

    def __init__(self, channel: _Channel, batch: int) -> None:
        self._channel = channel
        self._batch = batch
        self._records: list[bytes] = []
        self._size = 0
        self._flushed = time.monotonic()
        self.sent = 0

    @property
    def finished(self) -> int:
        """Return the number of keys of the batch that have a record."""
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
        _run_keys(task, board, outbox, batch, keys)
    except ProcessLost as lost:
        outbox.flush()
        channel.send(Frame(LOST, batch, outbox.sent))
        _die(lost.code)
    except Exception:
        _report_exception(channel, board, outbox, batch, len(keys))


def _run_keys(task: Task, board: Board, outbox: _Outbox, batch: int, keys: Sequence[Key]) -> None:
    begin = board.notes(batch)
    for record in task.run(keys, begin):
        outbox.add(record)
        last = outbox.finished - 1
        board.note(batch, last, None)
        if last >= len(keys):
            outbox.drop_last()
            raise RuntimeError(f"the task yields more than {len(keys)} records for {len(keys)} keys")
        # The last record waits for the task's end, which may still raise.
        if last + 1 < len(keys) and outbox.due:
            outbox.flush()
            board.note(batch, last, None)  # the parent may have made us wait
    if outbox.finished < len(keys):
        raise RuntimeError(f"the task yields {outbox.finished} records for {len(keys)} keys")
    outbox.flush()


def _die(code: int) -> NoReturn:
    """End this process with an exit code or, if it is negative, by that signal."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a task may have closed or replaced them
            stream.flush()
    if code < 0:
        with contextlib.suppress(OSError, ValueError):
            if -code not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)


def _report_exception(channel: _Channel, board: Board, outbox: _Outbox, batch: int, count: int) -> None:
    if outbox.finished == count:
        outbox.drop_last()
    outbox.flush()
    note = board.read()
    under_way = note.phase is not None and outbox.sent <= note.position < count
    index = note.position if under_way else outbox.sent
    phase = PHASES.index(note.phase) if under_way else 0
    text = traceback.format_exc().encode(errors="replace")[-_FLUSH_BYTES:]
    seconds = RAISED_HEAD.pack(time.monotonic() - note.since)
    channel.send(Frame(RAISED, batch, index, phase, seconds + text))


class Ends(NamedTuple):
    """A worker's ends of the connections to the pool: descriptors."""

    channel: int
    output: int
    board: int


def start_workers() -> None:
    """Run the template until the pool closes the control socket; started by process.Template."""
    parent, control_fd = (int(a) for a in sys.argv[1:3])
    path = sys.argv[3:]
    del sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the pool
    _end_with(parent)
    control = socket.socket(fileno=control_fd)
    (size,) = SIZE.unpack(_received(control, SIZE.size))
    factory = _Factory(_received(control, size)) if size else None
    server = _Server(control, None if factory else path, parent)
    ends = server.serve()
    if ends is None or factory is None:
        os._exit(0)  # no library needs cleaning up
    work(server.process, ends.channel, ends.board, factory.factory)


def _end_with(parent: int) -> None:
    """End when the pool's process dies, in case the end of the control socket does not show it.

    The signal is SIGCONT, because a stopped process reacts to no other signal except SIGKILL.
    """
    signal.signal(signal.SIGCONT, lambda *_: None if os.getppid() == parent else os._exit(0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)
    if os.getppid() != parent:  # the pool died before the request above
        sys.exit(0)


def _received(control: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        part = control.recv(size - len(received))
        if not part:
            sys.exit(0)
        received += part
    return bytes(received)


class _Factory:
    """The factory of tasks, unpickled and warm, so that a forked worker need not repeat it."""

    def __init__(self, pickled: bytes) -> None:
        self._pickled = pickled
        self._warm: Callable[[], Any] | None = None
        try:
            self._warm = self._warmed()
        except BaseException:  # a worker fails in the same way, and can report it
            traceback.print_exc()

    def _warmed(self) -> Callable[[], Any]:
        gc.disable()  # imported objects are not garbage, and checking takes longer than unpickling
        try:
            factory: Callable[[], Any] = self.factory()
            if hasattr(factory, "warm"):
                factory.warm()
        finally:
            gc.enable()
        gc.collect()
        gc.freeze()  # the garbage collector of workers ignores shared objects, so their memory stays shared
        return factory

    def factory(self) -> Callable[[], Any]:
        """Return the factory; raises whatever unpickling it raises."""
        return self._warm or pickle.loads(self._pickled)  # noqa: S301 - the pool wrote it


class _Server:
    """Answers the pool's requests; `path` is the module path of workers in new interpreters, None: they are forks."""

    def __init__(self, control: socket.socket, path: list[str] | None, parent: int) -> None:
        self._control = control
        self._path = path
        self._parent = parent
        self._workers: set[int] = set()
        self.process = os.getpid()

    def serve(self) -> Ends | None:
        """Answer until the pool is gone, then end the workers; in a forked worker, return its connections."""
        signal.signal(signal.SIGTERM, self._leave)
        signal.signal(signal.SIGCONT, lambda *_: None if os.getppid() == self._parent else self._leave())
        try:
            while True:
                request, descriptors = self._request()
                kind, process = REQUEST.unpack(request)
                if kind == START:
                    ends = Ends(*descriptors)
                    if self._started(ends):
                        return ends
                else:
                    self._reply(self._code(process, os.WNOHANG if kind == POLL else 0))
        except OSError:  # the pool is gone
            return None
        finally:
            if os.getpid() == self.process:
                self._end_workers()

    def _end_workers(self) -> None:
        for worker in self._workers:
            with contextlib.suppress(OSError):
                os.killpg(worker, signal.SIGKILL)
        for worker in self._workers:  # without a process 1 that reaps them, they would stay as zombies
            with contextlib.suppress(OSError):
                os.waitpid(worker, 0)

    def _leave(self, *_: object) -> None:
        """Make the next request the last; an exception could interrupt the ending of the workers."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)

    def _request(self) -> tuple[bytes, list[int]]:
        request, descriptors, _, _ = socket.recv_fds(self._control, REQUEST.size, len(Ends._fields))
        if not request:
            raise ConnectionResetError
        return request + _received(self._control, REQUEST.size - len(request)), descriptors

    def _reply(self, number: int) -> None:
        self._control.sendall(REPLY.pack(number))

    def _code(self, worker: int, options: int) -> int:
        if worker not in self._workers:
            raise ProcessLookupError(worker)
        ended, status = os.waitpid(worker, options)
        if not ended:
            return RUNNING
        self._workers.discard(worker)
        return os.waitstatus_to_exitcode(status)

    def _started(self, ends: Ends) -> bool:
        """Start a worker; return True in the worker itself."""
        ours, theirs = os.pipe()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about threads: the factory promises that they do no harm
                worker = os.fork()
        except OSError as error:
            worker = -(error.errno or errno.EAGAIN)
        if not worker:
            os.close(ours)
            self._become_worker(ends, theirs)
            return True
        for fd in (theirs, *ends):
            os.close(fd)
        if worker > 0:
            self._workers.add(worker)
            os.read(ours, 1)  # it is in a session of its own now, or dead
        os.close(ours)
        self._reply(worker)
        return False

    def _become_worker(self, ends: Ends, ready_pipe: int) -> None:
        try:
            os.setsid()
            os.close(ready_pipe)
            for number in (signal.SIGTERM, signal.SIGCONT):
                signal.signal(number, signal.SIG_DFL)
            self._control.close()
            os.dup2(ends.output, 1)
            os.dup2(ends.output, 2)
            os.close(ends.output)
            if self._path is not None:
                _run_alone(self.process, ends, self._path)
        except BaseException as error:
            os.write(2, f"{error}\n".encode(errors="replace"))
            os._exit(1)


def _run_alone(parent: int, ends: Ends, path: list[str]) -> NoReturn:
    """Replace this process by the worker."""
    for fd in (ends.channel, ends.board):
        os.set_inheritable(fd, True)
    arguments = map(str, (parent, ends.channel, ends.board))
    os.execv(sys.executable, [sys.executable, *FLAGS, _BOOT, *arguments, *path])  # noqa: S606 - our own interpreter

"""The pool's side of its processes: the template that starts workers, a worker, and the starter for a run."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Final

from ...cases.errors import NeedsArgumentError, OpconformError
from .wire import FACTORY, TAIL_BYTES, Board, Frame, FrameReader, FrameWriter, readable
from .worker import FLAGS, POLL, REAP, REPLY, REQUEST, RUNNING, SIZE, START, Ends

_BOOT: Final = (
    f"import sys; sys.path[:] = sys.argv[3:]; from {__package__}.worker import start_workers; start_workers()"
)
_PATIENCE: Final = 10.0  # seconds for an answer that only needs a system call
_LEAVE: Final = 5.0  # seconds to end the workers and exit
_LEAVE_SOON: Final = 0.5  # the same without workers


class TemplateLost(Exception):  # noqa: N818 - a state of that process, not a mistake of ours
    """The template process is gone or does not answer; the workers that it started are dead or will be soon."""


class Template:
    """A process that starts workers: forks of itself or, without a pickled factory, new interpreters.

    All use this process's interpreter and module path. `patience` is the time in seconds in which it must become ready.
    Raises OSError if it cannot be started.
    """

    def __init__(self, factory: bytes | None, patience: float) -> None:
        self._control, theirs = socket.socketpair()
        self._log = new_memory()
        self._lost = False
        self._end: tuple[int, str] | None = None
        self.forks = factory is not None
        self.proven = False
        """Whether it has started a worker."""
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                _command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except BaseException:
            self._control.close()
            os.close(self._log)
            raise
        finally:
            theirs.close()
        self._control.settimeout(patience)
        with contextlib.suppress(OSError):  # the first request shows what is wrong
            self._control.sendall(SIZE.pack(len(factory or b"")) + (factory or b""))

    def start(self, ends: Sequence[int]) -> int:
        """Start a worker with its ends of the connections; return its process id. Raises TemplateLost, OSError."""
        started = self._ask(START, 0, ends)
        if started < 0:
            raise OSError(-started, os.strerror(-started))
        self.proven = True
        self._control.settimeout(_PATIENCE)
        return started

    def wait(self, worker: int) -> int | None:
        """Wait for a dying worker; return its exit code, a negative signal number, or None if it is unknown by now."""
        try:
            return self._ask(REAP, worker)
        except TemplateLost:
            return None

    def poll(self, worker: int) -> tuple[bool, int | None]:
        """Return whether a worker still runs and, if not, how it ended, as `wait` does."""
        try:
            code = self._ask(POLL, worker)
        except TemplateLost:
            return False, None
        return (True, None) if code == RUNNING else (False, code)

    def _ask(self, kind: bytes, worker: int, descriptors: Sequence[int] = ()) -> int:
        if self._lost:
            raise TemplateLost
        self._lost = True  # until the answer has arrived, even if a signal handler raises meanwhile
        try:
            socket.send_fds(self._control, [REQUEST.pack(kind, worker)], descriptors)
            reply = self._control.recv(REPLY.size)
        except OSError:
            raise TemplateLost from None
        if len(reply) != REPLY.size:
            raise TemplateLost
        self._lost = False
        return int(REPLY.unpack(reply)[0])

    def close(self) -> tuple[int, str]:
        """End it and its workers; return its exit code and its last output."""
        if self._end is None:
            self._lost = True
            self._control.close()
            try:
                code = self._process.wait(_LEAVE if self.proven else _LEAVE_SOON)
            except subprocess.TimeoutExpired:
                self._process.kill()
                code = self._process.wait()
            size = os.fstat(self._log).st_size
            written = os.pread(self._log, TAIL_BYTES, max(0, size - TAIL_BYTES))
            os.close(self._log)
            self._end = code, readable(written)
        return self._end


def _command(control: int) -> list[str]:
    path = [entry for entry in sys.path if isinstance(entry, str)]
    return [sys.executable, *FLAGS, _BOOT, str(os.getpid()), str(control), *path]


def new_memory(size: int = 0) -> int:
    """Return a descriptor of new memory without a name on disk."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("opconform")
    else:
        with tempfile.TemporaryFile() as unlinked:
            fd = os.dup(unlinked.fileno())
    os.ftruncate(fd, size)
    return fd


def exit_words(code: int) -> str:
    """Return how a process ended, from its return code: `signal SIGSEGV` or `exit code 3`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


_CHUNK: Final = 1 << 18
_LAST_CHUNKS: Final = 64
_NO_SIGPIPE: Final[int] = getattr(socket, "MSG_NOSIGNAL", 0)


class WorkerProcess:
    """A worker in a session of its own, with a message channel, a board and drained output.

    `template` starts it. `start` is the pickled factory, empty if the template has it already. `owned`: the template
    belongs to this worker alone. Raises TemplateLost, and OSError if it cannot be started.
    """

    def __init__(self, template: Template, start: bytes, *, owned: bool = False) -> None:
        self._template, self._owned = template, owned
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        self.channel = self._socket.fileno()
        self.output, output_end = os.pipe()
        os.set_blocking(self.output, False)
        board_fd = new_memory(mmap.PAGESIZE)
        self.board = Board(board_fd)
        self._reader, self._writer, self._unsent = FrameReader(), FrameWriter(), b""
        self._tail, self._tail_key, self.flood = b"", (0, -1), 0
        self.pidfd: int | None = None
        self._ended = False
        self._code: int | None = None
        self.started = time.monotonic()
        try:
            self._process = template.start(Ends(theirs.fileno(), output_end, board_fd))
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()
            os.close(output_end)
            os.close(board_fd)
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # old kernels, strict containers
                self.pidfd = os.pidfd_open(self._process)
        self.send(Frame(FACTORY, payload=start))

    def send(self, frame: Frame) -> None:
        """Send a message, or as much of it as the channel takes; `flush` sends the rest."""
        self._unsent += self._writer.pack(frame)
        self.flush()

    def flush(self) -> None:
        """Send what is unsent.

        Nothing can be sent if the worker has closed the channel; its end is noticed elsewhere.
        """
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent, _NO_SIGPIPE) :]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent = b""

    @property
    def unsent(self) -> bool:
        """Return whether part of a message is still unsent."""
        return bool(self._unsent)

    def receive(self) -> Iterator[Frame]:
        """Yield the messages that have arrived; raises Corrupt, and EOFError if the channel is closed."""
        received = self._take()
        if received == b"":
            raise EOFError
        yield from self._reader.feed(received or b"")

    def rest(self) -> Iterator[Frame]:
        """Yield the messages that a dead worker left behind; raises Corrupt."""
        while received := self._take():
            yield from self._reader.feed(received)

    def _take(self) -> bytes | None:
        try:
            return self._socket.recv(_CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def drain(self) -> bool:
        """Read some of the worker's stdout and stderr; return False if there is no more.

        Afterwards `flood` is the number of bytes since its key began.
        """
        try:
            written = os.read(self.output, _CHUNK)
        except BlockingIOError:
            return False
        key = self.board.read().key
        if key != self._tail_key:
            self._tail_key, self._tail, self.flood = key, b"", 0
        self.flood += len(written)
        self._tail = (self._tail + written)[-TAIL_BYTES:]
        return bool(written)

    def tail(self, key: tuple[int, int]) -> str:
        """Return the last lines that the worker wrote while it had that key (the number of a batch, an index)."""
        return readable(self._tail) if key == self._tail_key else ""

    def last_words(self) -> str:
        """Return the last lines that a dying worker wrote, whenever that was."""
        for _ in range(_LAST_CHUNKS):  # a process that left its group may write forever
            if not self.drain():
                break
        return readable(self._tail)

    @property
    def alive(self) -> bool:
        """Return whether the process still runs, on systems without `pidfd`."""
        if not self._ended:
            runs, self._code = self._template.poll(self._process)
            self._ended = not runs
        return not self._ended

    @property
    def stopped(self) -> bool:
        """Return whether a signal or a debugger has stopped the process; never on systems without `/proc`."""
        return _state(self._process) in _STOPPED

    def resident(self, limit: int) -> int:
        """Return the resident memory of the worker and all its descendants in bytes; 0 if it is just ending.

        Memory that several of them share may count more than once up to the `limit`, beyond it only once.
        """
        family = _descendants(self._process)
        total = sum(map(_resident, family))
        return total if total <= limit or len(family) == 1 else sum(map(_proportional, family))

    def kill(self) -> None:
        """Kill the worker and every process that it started and that is still in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process, signal.SIGKILL)

    def reap(self) -> int | None:
        """Kill the group, wait for the worker, close everything; return the exit code, or a negative signal number.

        None if the template, which is the worker's parent, is lost too.
        """
        self.kill()
        code = self._code if self._ended else self._template.wait(self._process)
        self._close()
        return code

    def _close(self) -> None:
        self._socket.close()
        os.close(self.output)
        self.board.close()
        if self.pidfd is not None:
            os.close(self.pidfd)
        if self._owned:
            self._template.close()


_STOPPED: Final = frozenset("Tt")


def _read(process: int, name: str) -> bytes:
    """Return what a file in a process's folder of `/proc` says; nothing if the process is gone."""
    try:
        with open(f"/proc/{process}/{name}", "rb") as file:  # noqa: PTH123 - fifty times a second
            return file.read()
    except OSError:
        return b""


def _state(process: int) -> str:
    """Return the letter of a process's state; empty if it is gone."""
    return _read(process, "stat").rpartition(b") ")[2][:1].decode()


def _descendants(process: int) -> list[int]:
    """Return a process and all processes that it and its descendants started, unless their parents are gone."""
    processes = [process]
    for descendant in processes:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{descendant}/task"):  # noqa: PTH208 - often
                processes += map(int, _read(descendant, f"task/{thread}/children").split())
    return processes


def _resident(process: int) -> int:
    pages = _read(process, "statm").split()[1:2]
    return sum(map(int, pages)) * os.sysconf("SC_PAGESIZE")


def _proportional(process: int) -> int:
    """Return a process's resident memory, with its part of what it shares with others."""
    rollup = _read(process, "smaps_rollup")
    if not rollup:
        return _resident(process)
    return sum(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith(b"Pss:"))


# NotInstalled by its name: its module imports NumPy, which a worker's template does without
_SHOWN_AS_THEY_ARE: Final = frozenset({OpconformError.__name__, NeedsArgumentError.__name__, "NotInstalled"})
_ATTEMPTS: Final = 4  # templates lost in a row; the first two may be due to a fork after `warm`


class WorkerStartError(OpconformError):
    """No worker can be started.

    `kind` is the class name of the exception that the factory raised, and `message` its text; or `kind` is `died` or
    `timeout`, and `message` says how. `tail` is the process's last output. The text of an OpconformError or a
    NotInstalled is shown as it is.
    """

    def __init__(self, kind: str, message: str, tail: str = "") -> None:
        own = kind in _SHOWN_AS_THEY_ARE
        super().__init__(message if own else f"a worker process could not be started: {kind}: {message}")
        self.kind = kind
        self.message = message
        self.tail = tail


class Starter:
    """Starts workers with a pickled `factory`: forks of a process that has warmed it if `fork`, else new interpreters.

    `patience` is as for Template. If a template is lost before its first worker, the starter forks no more: the fault
    then occurs in a worker, which can report it.
    """

    def __init__(self, factory: bytes, patience: float, *, fork: bool) -> None:
        self._factory = factory
        self._patience = patience
        self._fork = fork
        self._template: Template | None = None

    def worker(self, *, apart: bool = False) -> WorkerProcess:
        """Start a worker, if `apart` with a template of its own. Raises WorkerStartError."""
        try:
            return self._apart() if apart else self._together()
        except OSError as error:
            raise WorkerStartError(type(error).__name__, str(error)) from error

    def close(self) -> None:
        """End the template and its remaining workers."""
        if self._template is not None:
            self._template.close()
            self._template = None

    def _together(self) -> WorkerProcess:
        lost = WorkerStartError("died", "no process that starts workers")
        for _ in range(_ATTEMPTS):
            if self._template is None:
                self._template = Template(self._factory if self._fork else None, self._patience)
            try:
                return self._with(self._template)
            except TemplateLost:
                lost = _end_of(self._template)
                self._fork = self._fork and self._template.proven
                self._template = None
        raise lost

    def _apart(self) -> WorkerProcess:
        template = Template(None, self._patience)
        try:
            return self._with(template, owned=True)
        except TemplateLost:
            raise _end_of(template) from None

    def _with(self, template: Template, *, owned: bool = False) -> WorkerProcess:
        return WorkerProcess(template, b"" if template.forks else self._factory, owned=owned)


def _end_of(template: Template) -> WorkerStartError:
    code, tail = template.close()
    return WorkerStartError("died", f"the process that starts workers ended with {exit_words(code)}", tail)

"""The parent's side of one worker process: starting it, its messages, its output, its death."""

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
from collections.abc import Iterator
from typing import Final

from .pool_verdict import TAIL_BYTES, readable
from .pool_wire import START, Board, Frame, FrameReader, FrameWriter

_BOOT: Final = f"import sys; sys.path[:] = sys.argv[4:] or sys.path; from {__package__}.pool_child import main; main()"
_CHUNK: Final = 1 << 18
_LAST_CHUNKS: Final = 64
_NO_SIGPIPE: Final[int] = getattr(socket, "MSG_NOSIGNAL", 0)


class WorkerProcess:
    """A worker in a session of its own, with a message channel, a board and a drained output.

    `python` is another interpreter to run it with, which then has its own module path; otherwise the worker has this
    process's. `start` is the pickled factory. Raises OSError where it cannot be started.
    """

    def __init__(self, start: bytes, python: str | None) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        self.channel = self._socket.fileno()
        self.output, output_end = os.pipe()
        os.set_blocking(self.output, False)
        board_fd = _new_board_fd()
        self.board = Board(board_fd)
        self._reader, self._writer, self._unsent = FrameReader(), FrameWriter(), b""
        self._tail, self._tail_key, self.flood = b"", (0, -1), 0
        self.pidfd: int | None = None
        self.started = time.monotonic()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                _command(python, theirs.fileno(), board_fd),
                stdin=subprocess.DEVNULL,
                stdout=output_end,
                stderr=output_end,
                pass_fds=(theirs.fileno(), board_fd),
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            theirs.close()
            os.close(output_end)
            os.close(board_fd)
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # old kernels, strict containers
                self.pidfd = os.pidfd_open(self._process.pid)
        self.send(Frame(START, payload=start))

    def send(self, frame: Frame) -> None:
        """Send a message, or as much of it as the channel takes; `flush` sends the rest."""
        self._unsent += self._writer.pack(frame)
        self.flush()

    def flush(self) -> None:
        """Send what is unsent. A channel that the worker has closed takes nothing; its end is noticed elsewhere."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent, _NO_SIGPIPE) :]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent = b""

    @property
    def unsent(self) -> bool:
        """Whether the channel could not take everything yet."""
        return bool(self._unsent)

    def receive(self) -> Iterator[Frame]:
        """Yield the messages that have arrived; raises Corrupt, and EOFError where the channel is closed."""
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
        """Read some of what the worker wrote to stdout and stderr; False where there is no more.

        `flood` then counts the bytes since its key began.
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
        """Return the last lines the worker wrote while it had that key (a batch's number, an index)."""
        return readable(self._tail) if key == self._tail_key else ""

    def last_words(self) -> str:
        """Return the last lines that a dying worker wrote, whenever that was."""
        for _ in range(_LAST_CHUNKS):  # a process that left its group may write for ever
            if not self.drain():
                break
        return readable(self._tail)

    @property
    def alive(self) -> bool:
        """Whether the process still runs, where no `pidfd` tells."""
        return self._process.poll() is None

    def resident(self) -> int:
        """Return the bytes of memory that are resident; 0 where it is just ending."""
        try:
            with open(f"/proc/{self._process.pid}/statm", "rb") as statm:  # noqa: PTH123 - fifty times a second
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        except (OSError, IndexError):
            return 0

    def kill(self) -> None:
        """Kill the worker and every process it started that is still in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def reap(self) -> int:
        """Kill the group, wait for the worker, close everything; returns the exit code, or a signal negated."""
        self.kill()
        code = self._process.wait()
        self._close()
        return code

    def _close(self) -> None:
        self._socket.close()
        os.close(self.output)
        self.board.close()
        if self.pidfd is not None:
            os.close(self.pidfd)


def _command(python: str | None, channel: int, board: int) -> list[str]:
    path = [] if python else [entry for entry in sys.path if isinstance(entry, str)]
    # -u: what Python code prints is not lost in a crash. -P: the current folder is no place to import from, unless it
    # is one here.
    return [python or sys.executable, "-u", "-P", "-c", _BOOT, *map(str, (os.getpid(), channel, board)), *path]


def _new_board_fd() -> int:
    """Return a descriptor of fresh memory for a board, which no name on disk leads to."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("opconform-board")
    else:
        with tempfile.TemporaryFile() as unlinked:
            fd = os.dup(unlinked.fileno())
    os.ftruncate(fd, mmap.PAGESIZE)
    return fd


def exit_words(code: int) -> str:
    """Return how a process ended, from its return code: `signal SIGSEGV` or `exit code 3`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"

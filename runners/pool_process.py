"""The parent's side of one worker process: starting it, its messages, its output, its death."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import socket
import time
from collections.abc import Iterator
from typing import Final

from .pool_control import Template, new_memory
from .pool_template import Ends
from .pool_verdict import TAIL_BYTES, readable
from .pool_wire import START, Board, Frame, FrameReader, FrameWriter

_CHUNK: Final = 1 << 18
_LAST_CHUNKS: Final = 64
_NO_SIGPIPE: Final[int] = getattr(socket, "MSG_NOSIGNAL", 0)


class WorkerProcess:
    """A worker in a session of its own, with a message channel, a board and a drained output.

    `template` starts it. `start` is the pickled factory, empty where the template has that. `owned` says that this
    worker alone has the template. Raises TemplateLost, and OSError where it cannot be started.
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
        if not self._ended:
            runs, self._code = self._template.poll(self._process)
            self._ended = not runs
        return not self._ended

    def resident(self) -> int:
        """Return the bytes of memory that are resident; 0 where it is just ending."""
        try:
            with open(f"/proc/{self._process}/statm", "rb") as statm:  # noqa: PTH123 - fifty times a second
                return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        except (OSError, IndexError):
            return 0

    def kill(self) -> None:
        """Kill the worker and every process it started that is still in its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process, signal.SIGKILL)

    def reap(self) -> int | None:
        """Kill the group, wait for the worker, close everything; returns the exit code, or a signal negated.

        None where the template that had to see it is lost too.
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

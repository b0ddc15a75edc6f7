"""The pool's side of the template process, through which it starts workers and learns how they ended."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Final

from .pool_template import FLAGS, POLL, REAP, REPLY, REQUEST, RUNNING, SIZE, START
from .pool_verdict import TAIL_BYTES, readable

_BOOT: Final = (
    f"import sys; sys.path[:] = sys.argv[3:] or sys.path; from {__package__}.pool_template import main; main()"
)
_PATIENCE: Final = 60.0  # seconds for an answer that needs no more than a system call
_LEAVE: Final = 5.0  # seconds to end the workers and go
_LEAVE_SOON: Final = 0.5  # the same without workers


class TemplateLost(Exception):  # noqa: N818 - a state of that process, not a mistake of ours
    """The template process is gone or does not answer; workers that it started are dead or soon will be."""


class Template:
    """A process that starts workers: forks of itself, or, without a pickled factory, interpreters of their own.

    `python` is another interpreter to run all of them with, which then has its own module path; otherwise they have
    this process's. `patience` is how many seconds it may take to become ready. Raises OSError where it cannot be
    started.
    """

    def __init__(self, python: str | None, factory: bytes | None, patience: float) -> None:
        self._control, theirs = socket.socketpair()
        self._log = new_memory()
        self._lost = False
        self._end: tuple[int, str] | None = None
        self.forks = factory is not None
        self.proven = False
        """Whether it has started a worker."""
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
                _command(python, theirs.fileno()),
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
        with contextlib.suppress(OSError):  # what is wrong shows at the first request
            self._control.sendall(SIZE.pack(len(factory or b"")) + (factory or b""))

    def start(self, ends: Sequence[int]) -> int:
        """Start a worker with its ends of what connects it; returns its process id. Raises TemplateLost, OSError."""
        started = self._ask(START, 0, ends)
        if started < 0:
            raise OSError(-started, os.strerror(-started))
        self.proven = True
        self._control.settimeout(_PATIENCE)
        return started

    def wait(self, worker: int) -> int | None:
        """Wait for a dying worker; returns its exit code, or a signal negated, or None where nobody knows any more."""
        try:
            return self._ask(REAP, worker)
        except TemplateLost:
            return None

    def poll(self, worker: int) -> tuple[bool, int | None]:
        """Return whether a worker still runs and, if it does not, how it ended, as `wait` does."""
        try:
            code = self._ask(POLL, worker)
        except TemplateLost:
            return False, None
        return (True, None) if code == RUNNING else (False, code)

    def _ask(self, kind: bytes, worker: int, descriptors: Sequence[int] = ()) -> int:
        if self._lost:
            raise TemplateLost
        self._lost = True  # until the answer is here, also where a signal handler raises meanwhile
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
        """End it and, through it, its workers; returns its exit code and the last that it wrote."""
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


def _command(python: str | None, control: int) -> list[str]:
    path = [] if python else [entry for entry in sys.path if isinstance(entry, str)]
    return [python or sys.executable, *FLAGS, _BOOT, str(os.getpid()), str(control), *path]


def new_memory(size: int = 0) -> int:
    """Return a descriptor of fresh memory, which no name on disk leads to."""
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

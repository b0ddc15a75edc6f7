"""The process between the pool and its workers: it starts and reaps them, and takes them along when it ends.

A backend that goes for its parent finds this process. It runs nothing of a backend's: at most it has imported what the
factory says is safe to fork after.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

REQUEST: Final = struct.Struct("<cq")
"""What the pool asks: one of START, REAP and POLL, and a process; START comes with the descriptors of `Ends`."""
START, REAP, POLL = b"S", b"R", b"P"
REPLY: Final = struct.Struct("<q")
"""What it is answered: a process or an error number negated; an exit code or a signal negated, or RUNNING."""
RUNNING: Final = 1 << 32
SIZE: Final = struct.Struct("<Q")
"""What comes first of all: the length of the pickled factory that follows, 0 where workers are not to be forked."""

FLAGS: Final = ("-u", "-P", "-c")
"""-u: what Python code prints is not lost in a crash. -P: the current folder is no place to import from, unless it is
one in the pool's process."""
_BOOT: Final = f"import sys; sys.path[:] = sys.argv[4:]; from {__package__}.worker import main; main()"
_PR_SET_PDEATHSIG: Final = 1


class Ends(NamedTuple):
    """A worker's ends of what connects it to the pool: descriptors."""

    channel: int
    output: int
    board: int


def main() -> None:
    """Serve until the pool closes the control socket; started by process.Template."""
    parent, control_fd = (int(a) for a in sys.argv[1:3])
    path = sys.argv[3:]
    del sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pool's
    _end_with(parent)
    control = socket.socket(fileno=control_fd)
    (size,) = SIZE.unpack(_received(control, SIZE.size))
    factory = _Factory(_received(control, size)) if size else None
    server = _Server(control, None if factory else path)
    ends = server.serve()
    if ends is None or factory is None:
        os._exit(0)  # nothing of a library's has to be undone
    from .worker import work  # noqa: PLC0415 - imported above, by _Factory

    work(server.process, ends.channel, ends.board, factory.factory)


def _end_with(parent: int) -> None:
    """Be told to leave when the pool's process dies, if the end of the control socket does not tell already."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - only here

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it died before the request above
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
    """The factory of tasks, unpickled and warm, so that a forked worker need not do it again."""

    def __init__(self, pickled: bytes) -> None:
        from . import worker  # noqa: F401, PLC0415 - for the workers

        self._pickled = pickled
        self._warm: Callable[[], Any] | None = None
        try:
            self._warm = self._warmed()
        except BaseException:  # a worker fails in the same way, and can tell
            import traceback  # noqa: PLC0415 - only where something failed

            traceback.print_exc()

    def _warmed(self) -> Callable[[], Any]:
        import gc  # noqa: PLC0415 - only where workers are forked

        factory: Callable[[], Any] = self.factory()
        if hasattr(factory, "warm"):
            factory.warm()
        gc.collect()
        gc.freeze()  # what workers share is left alone by their collections, and so stays shared
        return factory

    def factory(self) -> Callable[[], Any]:
        """Return the factory; raises whatever unpickling it raises."""
        import pickle  # noqa: PLC0415 - only where workers are forked

        return self._warm or pickle.loads(self._pickled)  # noqa: S301 - the pool wrote it


class _Server:
    """Answers the pool's requests; `path` is the module path of workers that run on their own, None: they are forks."""

    def __init__(self, control: socket.socket, path: list[str] | None) -> None:
        self._control = control
        self._path = path
        self._workers: set[int] = set()
        self.process = os.getpid()

    def serve(self) -> Ends | None:
        """Answer until the pool is gone, then end the workers; in a forked worker, return what it has to work with."""
        signal.signal(signal.SIGTERM, self._leave)
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
        for worker in self._workers:  # or they stay behind as zombies where no process 1 looks after them
            with contextlib.suppress(OSError):
                os.waitpid(worker, 0)

    def _leave(self, *_: object) -> None:
        """Let the next request be the end; an exception could come just while the workers are being ended."""
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
        found, status = os.waitpid(worker, options)
        if not found:
            return RUNNING
        self._workers.discard(worker)
        return os.waitstatus_to_exitcode(status)

    def _started(self, ends: Ends) -> bool:
        """Start a worker; True in the worker itself."""
        ours, theirs = os.pipe()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of threads: the factory's word is that they do no harm
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

    def _become_worker(self, ends: Ends, told: int) -> None:
        try:
            os.setsid()
            os.close(told)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
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
    """Run the worker in place of this process."""
    for fd in (ends.channel, ends.board):
        os.set_inheritable(fd, True)
    arguments = map(str, (parent, ends.channel, ends.board))
    os.execv(sys.executable, [sys.executable, *FLAGS, _BOOT, *arguments, *path])  # noqa: S606 - our own interpreter

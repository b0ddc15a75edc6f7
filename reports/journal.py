"""The journal of a run: lines of several files, kept whole and in order, a write a batch; what was written survives."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from ..cases.errors import OpconformError

_LARGEST_BATCH = 1 << 16  # bytes: a write of so much costs little a line
_TICK = 0.1  # seconds between two writes, if lines come slower


class Journal:
    """Appends lines to the files of a folder; a context manager.

    Lines wait for a moment (at most about a fifth of a second) and are written together. What stands beside a line of
    the main file is written before it, so that a process that is killed leaves no line whose companions are missing.
    """

    def __init__(self, folder: Path, main: str) -> None:
        """Open `main`, a file in the folder, to be appended to. Raises OpconformError if another process has it."""
        self._folder = folder
        self._main = main
        self._files: dict[str, BinaryIO] = {main: (folder / main).open("ab", buffering=0)}
        _lock(self._files[main], folder)
        self._lines: list[bytes] = []
        self._beside: defaultdict[str, list[bytes]] = defaultdict(list)
        self._waiting = 0
        self._broken: OpconformError | None = None
        self._turn = threading.Lock()
        self._closing = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True, name="opconform-journal")
        self._ticker.start()

    def add(self, line: bytes, beside: Iterable[tuple[str, bytes]] = ()) -> None:
        """Append a line, given without its end, and lines of other files that belong to it.

        Raises OpconformError if the disk did not take what came before; what was written is kept.
        """
        with self._turn:
            size = len(line)
            for name, companion in beside:
                self._beside[name].append(companion)
                size += len(companion)
            self._lines.append(line)
            self._waiting += size
            if self._waiting >= _LARGEST_BATCH or self._broken is not None:
                self._write()

    def flush(self) -> None:
        """Write what waits. Raises OpconformError if the disk does not take it."""
        with self._turn:
            self._write()

    def close(self) -> None:
        """Write what waits and close the files. Raises OpconformError if the disk does not take it."""
        self._closing.set()
        self._ticker.join()
        try:
            if self._broken is None:
                self.flush()
        finally:
            for file in self._files.values():
                file.close()

    def _tick(self) -> None:
        while not self._closing.wait(_TICK):
            try:
                self.flush()
            except OpconformError:
                return  # the next line that is added meets it

    def _write(self) -> None:
        if self._broken is not None:  # after half a line, another one would be lost too
            raise self._broken
        lines, beside = self._lines, self._beside
        self._lines, self._beside, self._waiting = [], defaultdict(list), 0
        for name, companions in beside.items():
            self._append(name, companions)
        if lines:
            self._append(self._main, lines)

    def _append(self, name: str, lines: list[bytes]) -> None:
        try:
            file = self._files.get(name) or self._files.setdefault(name, (self._folder / name).open("ab", buffering=0))
            left = memoryview(b"\n".join([*lines, b""]))
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            self._broken = OpconformError(
                f"{self._folder / name}: cannot be written: {error.strerror}; what was judged is kept"
            )
            raise self._broken from None


def _lock(file: BinaryIO, folder: Path) -> None:
    """Keep other processes out until the file is closed, or this process has ended in whatever way."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise OpconformError(f"{folder}: another process is writing results there; wait until it has ended") from None
    except OSError:  # a file system without locks
        return

"""Writes the results folder of a run as results arrive: see docs/results-folder.md."""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import stat
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from ..cases.errors import OpconformError
from ..runners.execution.running import Judged
from .runs import ACCURACY, CERTIFICATES, OUTPUTS, RESULTS, RUN, StoredResults, case_head_of, head_of, read_run

INTERRUPTED = 130
_PART = f".{RUN}.part"
_FILES = (RUN, RESULTS, OUTPUTS, CERTIFICATES, ACCURACY, "junit.xml")


class ResultsFolder:
    """A results folder that is being written; a context manager, which always leaves whole lines behind.

    Lines that accompany a result are written before its own line, so a killed process never leaves a result without
    them.
    """

    def __init__(self, path: Path) -> None:
        """Open a folder to append to it; use `create` or `resume`.

        Raises OSError, or OpconformError if it is in use.
        """
        self.path = path
        self.run_json: dict[str, Any] = {}
        self._files: dict[str, BinaryIO] = {RESULTS: (path / RESULTS).open("ab", buffering=0)}
        self._broken: OpconformError | None = None
        self._running = False
        _lock(self._files[RESULTS], path)

    @classmethod
    def create(cls, path: Path | str) -> ResultsFolder:
        """Create the folder, or take an empty one.

        Raises OpconformError, before anything is touched, if it is not empty, not a folder, or not writable.
        """
        path = Path(path)
        check_new(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            return cls(path)
        except (OSError, ValueError) as error:  # ValueError: a null character in the path
            raise _unwritable(path, error) from None

    @classmethod
    def resume(cls, path: Path) -> ResultsFolder:
        """Open the folder of a run that has begun.

        Raises OpconformError if it is not one, if a process writes to it, or if one of its files is a link or not a
        file.
        """
        read_run(path)
        for name in (*_FILES, _PART):
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISREG((path / name).lstat().st_mode):  # we would write to the link's target
                    raise OpconformError(f"{path / name}: not a regular file; a run cannot be resumed in such a folder")
        try:
            folder = cls(path)
        except OSError as error:
            raise OpconformError(f"{path}: cannot write results there: {error.strerror}") from None
        folder.run_json = read_run(path)  # again, now that no other process writes to it
        return folder

    def mend(self, kept: StoredResults) -> None:
        """Remove what a killed run left unfinished: torn lines, and lines without their result.

        Call it after the walk.
        """
        for name, end in kept.ends.items():
            file = self.path / name
            try:
                if file.stat().st_size > end:
                    os.truncate(file, end)
            except OSError as error:
                raise self._failed(name, error) from None

    def start(self, description: Mapping[str, Any]) -> None:
        """Write `run.json` with status `running`; `description` is JSON. Call it again when more is known."""
        self.run_json = {**description, "status": "running"}
        self._running = True
        self._write_run()

    def add(self, line: bytes, beside: Iterable[tuple[str, bytes]] = ()) -> None:
        """Append a result's line, and the lines of other files that belong to it, all without line ends.

        Raises OpconformError if the disk does not accept it, or did not accept earlier lines.
        """
        if self._broken is not None:  # a line after half a line would be lost too
            raise self._broken
        for name, companion in beside:
            self._append(name, companion)
        self._append(RESULTS, line)

    def _append(self, name: str, line: bytes) -> None:
        try:
            file = self._files.get(name) or self._files.setdefault(name, (self.path / name).open("ab", buffering=0))
            left = memoryview(line + b"\n")
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            self._broken = self._failed(name, error)
            raise self._broken from None

    def finish(self, status: str, exit_code: int, more: Mapping[str, Any] | None = None) -> None:
        """Rewrite `run.json` for a finished run, with `more` JSON such as its figures."""
        self.run_json = {**self.run_json, **(more or {}), "status": status, "exit_code": exit_code}
        self._running = False
        self._write_run()

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()

    def __enter__(self) -> ResultsFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OpconformError):  # the original error matters more
            if self._running and kind is not None and issubclass(kind, KeyboardInterrupt):
                self.finish("interrupted", INTERRUPTED)
            elif self._running and kind is not None:
                self.run_json["status"] = "failed"
                self._write_run()
        self.close()

    def _write_run(self) -> None:
        """Write to another file and rename it, so that a reader never sees half a file."""
        facts = (f"{json.dumps(key)}: {json.dumps(fact, allow_nan=False)}" for key, fact in self.run_json.items())
        text = "{\n" + ",\n".join(facts) + "\n}\n"  # indented, the file is twice as large
        aside = self.path / _PART
        try:
            aside.write_text(text, encoding="utf-8")
            os.replace(aside, self.path / RUN)  # noqa: PTH105 - Path.replace is the same, os says what it does
        except OSError as error:
            raise self._failed(RUN, error) from None

    def _failed(self, file: str, error: OSError) -> OpconformError:
        return OpconformError(f"{self.path / file}: cannot be written: {error.strerror}; the results so far are kept")


def companions(judged: Judged, line: bytes, certified: set[str]) -> list[tuple[str, bytes]]:
    """Return the lines that accompany a result's line; a case's certificate only once, for all backends."""
    attached = judged.attachments
    lines: list[tuple[str, bytes]] = []
    if not attached:
        return lines
    head = head_of(line)
    if "outputs" in attached:
        outputs = attached["outputs"]
        fields = {"case_digest": judged.result.case_digest}
        lines.append(
            (OUTPUTS, _joined(head, fields | (outputs if isinstance(outputs, dict) else {"outputs": outputs})))
        )
    if "accuracy" in attached:
        lines.append((ACCURACY, head + b"," + _rest(attached["accuracy"])))
    case = judged.result.case
    if "certificate" in attached and case not in certified:
        certified.add(case)
        lines.append((CERTIFICATES, _joined(case_head_of(line), attached["certificate"])))
    return lines


_LONG = 2 << 10
"""From this number of bytes on the line of a certificate is compressed: they are most of a folder with failures."""
_LEVEL = 6
"""Of zlib. Level 9 takes three times as long, and saves 2 % of the bytes."""


def deflated(certificate: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a certificate, which begins with its case, with its whole line compressed in base64 if that is long."""
    line = b"{" + _rest(certificate)
    return {"deflated": base64.b64encode(zlib.compress(line, _LEVEL)).decode()} if len(line) > _LONG else certificate


def inflated(line: bytes, longest: int) -> bytes | None:
    """Return the line of a certificate as it was before it was compressed.

    None if it is longer, damaged, or has anything else beside it.
    """
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict) or "deflated" not in fields:
            return line if len(line) <= longest else None
        if fields.keys() != {"case", "deflated"}:
            return None
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(base64.b64decode(fields["deflated"]), longest + 1)
    except (ValueError, TypeError, RecursionError, zlib.error):
        return None
    is_whole = unpacking.eof and not unpacking.unused_data and len(unpacked) <= longest
    return unpacked if is_whole and unpacked.startswith(line.partition(b',"deflated":')[0] + b",") else None


def _joined(head: bytes, fields: Mapping[str, Any]) -> bytes:
    """Return a line that begins so, and continues with an object's other keys."""
    return head + b"," + _rest({key: value for key, value in fields.items() if key not in ("case", "backend")})


def _rest(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, allow_nan=False, separators=(",", ":")).encode()[1:]


def check_new(path: Path) -> None:
    """Raise OpconformError, before a long run, if a new run cannot write there: it is used, no folder, or closed."""
    if path.suffix.lower() == ".zip" and not path.is_dir():
        raise OpconformError(f"{path}: results go to a folder; `opconform submit DIR --out {path}` packs one")
    try:
        _refuse_used(path)
        there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError | ValueError) -> OpconformError:
    reason = error.strerror if isinstance(error, OSError) else error
    return OpconformError(f"{path}: cannot write results there: {reason}; choose another folder")


def _refuse_used(path: Path) -> None:
    """Raise OpconformError unless the folder is new, empty, or of a run that was killed before it began."""
    if path.is_dir():
        left = {f.name: f.stat().st_size for f in path.iterdir()}
        if left.keys() - {RESULTS, _PART} or left.get(RESULTS):
            raise OpconformError(f"{path}: the folder is not empty; choose a new or empty one for the results")
    elif path.exists():
        raise OpconformError(f"{path}: is a file; choose a new or an empty folder for the results")


def _lock(file: BinaryIO, folder: Path) -> None:
    """Keep other processes out until the file is closed, or this process ends for any reason."""
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

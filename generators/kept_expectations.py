"""Cases kept on disk between runs, by all that they depend on: their inputs, what is expected, and their digests.

A file a group of cases: see `kept_groups`. What is damaged is made anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import gmpy2
import numpy as np

from ..cases.elements import Array
from ..cases.lanes import CaseGroup
from .kept_groups import check, packed, sealed, unpacked

T = TypeVar("T")

SWITCH: Final = "OPCONFORM_NO_CACHE"
"""The environment variable that, if it is not empty, keeps everything from disk."""
LIMIT: Final = 2 << 30
"""The bytes that all files may have together."""

_TEXT: Final = b"opconform text 1\n"
_LOOK_EVERY: Final = 64 << 20  # bytes written until the folder is looked through again
_SLACK: Final = 0.9  # of the limit is left where files have to go
_ABANDONED: Final = 3600.0  # seconds after which a partial file is nobody's


def folder() -> Path:
    """Return where expectations are kept, as the XDG base directory specification has it."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opconform" / "expectations"


class KeptExpectations:
    """The cases of earlier runs; safe under several processes. What cannot be read or written costs time."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder, self._limit = folder, limit
        self._written: int | None = None  # since the folder was looked through

    def group(self, about: Sequence[str], ids: Sequence[str]) -> CaseGroup | None:
        """Return the cases with these ids, if they are kept; `about` names all else that they depend on."""
        return self._read([*about, *ids], lambda content: unpacked(content, ids))

    def keep(self, about: Sequence[str], group: CaseGroup) -> None:
        """Keep cases for `group`."""
        self._write([*about, *group.ids], packed(group))

    def text(self, question: Sequence[str], compute: Callable[[], str]) -> str:
        """Return a text that is kept beside the cases; the question tells it from them and from other texts."""
        found = self._read(question, _unpacked_text)
        if found is None:
            found = compute()
            self._write(question, sealed(_TEXT, found.encode()))
        return found

    def _file(self, question: Sequence[str]) -> Path:
        content = "\0".join([_program_digest(), sys.byteorder, *question])
        return self._folder / hashlib.sha256(content.encode()).hexdigest()

    def _read(self, question: Sequence[str], read: Callable[[Array], T]) -> T | None:
        try:
            return read(np.fromfile(self._file(question), np.uint8))
        except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError):
            return None

    def _write(self, question: Sequence[str], content: bytes) -> None:
        if len(content) > self._limit // 16:  # one would cost many others their place
            return
        with contextlib.suppress(OSError):
            self._put(self._file(question), content)

    def _put(self, file: Path, content: bytes) -> None:
        if self._written is None or self._written > _LOOK_EVERY:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._make_room()
            self._written = 0
        with tempfile.NamedTemporaryFile("wb", dir=self._folder, prefix=".", delete=False) as partial:
            partial.write(content)
        Path(partial.name).replace(file)  # whole, or not at all
        self._written += len(content)

    def _make_room(self) -> None:
        """Remove the oldest files where all together are too large, and partial ones that nobody writes any more."""
        found = list(self._found())
        size = sum(entry[1] for entry in found)
        wanted = self._limit if size <= self._limit else int(self._limit * _SLACK)
        for _, length, path in sorted(found):
            if size <= wanted:
                return
            with contextlib.suppress(OSError):
                path.unlink()
            size -= length

    def _found(self) -> Iterator[tuple[float, int, Path]]:
        for entry in os.scandir(self._folder):
            with contextlib.suppress(OSError):  # another process may have removed it
                known = entry.stat()
                if entry.name.startswith(".") and time.time() - known.st_mtime > _ABANDONED:
                    Path(entry.path).unlink()
                else:
                    yield known.st_mtime, known.st_size, Path(entry.path)


@functools.cache
def _program_digest() -> str:
    """Return a digest of what makes expectations: this package's code, and the libraries that compute."""
    root = Path(__file__).parent.parent
    whole = hashlib.sha256(f"{importlib.metadata.version('opconform')} {np.__version__} {gmpy2.version()}".encode())
    for part in ("cases", "generators", "specs"):
        for path in sorted((root / part).rglob("*.py")):
            whole.update(f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n".encode() + path.read_bytes())
    return whole.hexdigest()


def _unpacked_text(content: Array) -> str:
    check(_TEXT, content)
    return bytes(content[len(_TEXT) + 4 :]).decode()


@dataclass(frozen=True)
class Cached:
    """Says that expectations are kept between runs: picklable, and opened where it is used."""

    folder: Path
    limit: int = LIMIT

    def open(self) -> KeptExpectations:
        """Return the store."""
        return KeptExpectations(self.folder, self.limit)


def usual_cache() -> Cached | None:
    """Return where this user's expectations are kept; None if the environment says that they are not."""
    return None if os.environ.get(SWITCH) else Cached(folder())

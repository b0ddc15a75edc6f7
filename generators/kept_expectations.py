"""Expectations kept on disk between runs, by all that they depend on: drawing inputs anew is cheap, bounding is not.

A file a group of cases, with the bytes of arrays and a head of JSON; what is damaged is made anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import gmpy2
import numpy as np

from ..cases.elements import Array
from ..cases.expectation import Bounds, Option, Residue, Spread
from ..cases.lanes import LanedExpectation, LanedOption

T = TypeVar("T")

SWITCH: Final = "OPCONFORM_NO_CACHE"
"""The environment variable that, if it is not empty, keeps everything from disk."""
LIMIT: Final = 2 << 30
"""The bytes that all files may have together."""

_FORMAT: Final = b"opconform expectations 1\n"
_TEXT: Final = b"opconform text 1\n"
_LOOK_EVERY: Final = 64 << 20  # bytes written until the folder is looked through again
_SLACK: Final = 0.9  # of the limit is left where files have to go
_ABANDONED: Final = 3600.0  # seconds after which a partial file is nobody's


def folder() -> Path:
    """Return where expectations are kept, as the XDG base directory specification has it."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opconform" / "expectations"


class KeptExpectations:
    """The expectations of earlier runs; safe under several processes. What cannot be read or written costs time."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder, self._limit = folder, limit
        self._written: int | None = None  # since the folder was looked through

    def get(self, question: Sequence[str], compute: Callable[[], LanedExpectation]) -> LanedExpectation:
        """Return what is kept as the answer to a question, which names all that it depends on beside this package."""
        return self._kept(question, compute, packed, unpacked)

    def text(self, question: Sequence[str], compute: Callable[[], str]) -> str:
        """Return a text that is kept beside the expectations; the question tells it from them and from other texts."""
        return self._kept(question, compute, _packed_text, _unpacked_text)

    def _kept(
        self,
        question: Sequence[str],
        compute: Callable[[], T],
        pack: Callable[[T], bytes],
        unpack: Callable[[bytes], T],
    ) -> T:
        content = "\0".join([_program_digest(), *question])
        file = self._folder / hashlib.sha256(content.encode()).hexdigest()
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            return unpack(file.read_bytes())
        found = compute()
        with contextlib.suppress(OSError):
            self._write(file, pack(found))
        return found

    def _write(self, file: Path, content: bytes) -> None:
        if len(content) > self._limit // 16:  # one would cost many others their place
            return
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


# The files


def packed(expectation: LanedExpectation) -> bytes:
    """Return an expectation as bytes; arrays that its options share are written once."""
    arrays = _Arrays()
    options = [_option_to_json(one, arrays) for one in expectation.options]
    told = {"types": expectation.types, "lanes": expectation.lanes, "options": options, "digests": expectation.digests}
    head = json.dumps({**told, "arrays": arrays.heads}, separators=(",", ":")).encode()
    body = b"".join([len(head).to_bytes(8, "little"), head, *arrays.contents])
    return b"".join([_FORMAT, zlib.crc32(body).to_bytes(4, "little"), body])


def unpacked(content: bytes) -> LanedExpectation:
    """Read what `packed` returned, arrays read-only; ValueError, KeyError, TypeError or IndexError if it is none."""
    start = len(_FORMAT) + 4
    if content[: len(_FORMAT)] != _FORMAT:
        raise ValueError("no expectations")
    if zlib.crc32(memoryview(content)[start:]) != int.from_bytes(content[start - 4 : start], "little"):
        raise ValueError("damaged")
    end = start + 8 + int.from_bytes(content[start : start + 8], "little")
    read: Any = json.loads(content[start + 8 : end])
    arrays = []
    for kind, shape, size in read["arrays"]:
        arrays.append(np.frombuffer(content, np.dtype(kind), size, end).reshape(shape))
        end += arrays[-1].nbytes
    options = tuple(_option_from_json(told, arrays) for told in read["options"])
    found = LanedExpectation(options, tuple(read["types"]), read["lanes"])
    found.remember_digests(read["digests"])
    return found


def _packed_text(text: str) -> bytes:
    body = text.encode()
    return b"".join([_TEXT, zlib.crc32(body).to_bytes(4, "little"), body])


def _unpacked_text(content: bytes) -> str:
    start = len(_TEXT) + 4
    body = content[start:]
    if content[: len(_TEXT)] != _TEXT or zlib.crc32(body) != int.from_bytes(content[len(_TEXT) : start], "little"):
        raise ValueError("damaged")
    return body.decode()


class _Arrays:
    """Arrays that are written, by their places; equal objects have one."""

    def __init__(self) -> None:
        self.heads: list[tuple[str, list[int], int]] = []
        self.contents: list[bytes] = []
        self._places: dict[int, tuple[Array, int]] = {}

    def place(self, array: Array | None) -> int | None:
        if array is None:
            return None
        if id(array) not in self._places:
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            self._places[id(array)] = array, len(self.heads)
            self.heads.append((little.dtype.str, list(array.shape), array.size))
            self.contents.append(little.tobytes())
        return self._places[id(array)][1]


def _option_to_json(one: LanedOption, arrays: _Arrays) -> list[Any]:
    o, place = one.option, arrays.place
    outputs = [
        (
            b.type,
            [place(array) for array in (b.value, b.lower, b.upper, b.flags)],
            b.spread and (place(b.spread.sigma), b.spread.limit),
            b.residue and (place(b.residue.rest), place(b.residue.doubt)),
        )
        for b in o.outputs
    ]
    return [o.labels, o.kind, o.exceptional, o.level, place(one.applies), outputs]


def _option_from_json(told: Sequence[Any], arrays: Sequence[Array]) -> LanedOption:
    labels, kind, exceptional, level, applies, outputs = told
    bounds = []
    for name, (value, lower, upper, flags), spread, residue in outputs:
        bounds.append(
            Bounds(
                name,
                arrays[value],
                arrays[lower],
                arrays[upper],
                None if flags is None else arrays[flags],
                None if spread is None else Spread(arrays[spread[0]], spread[1]),
                None if residue is None else Residue(arrays[residue[0]], arrays[residue[1]]),
            )
        )
    silences = tuple((silence, answer) for silence, answer in labels)
    return LanedOption(Option(silences, tuple(bounds), kind, exceptional, level), arrays[applies])


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

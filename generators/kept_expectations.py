"""Cases kept on disk between runs, by all that they depend on: their inputs, what is expected, and their digests.

A file a group of cases, with the bytes of arrays and a head of JSON; what is damaged is made anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import gmpy2
import numpy as np

from ..cases.elements import Array, element_type
from ..cases.expectation import Bounds, Option, Residue, Spread
from ..cases.lanes import LanedExpectation, LanedOption

T = TypeVar("T")

SWITCH: Final = "OPCONFORM_NO_CACHE"
"""The environment variable that, if it is not empty, keeps everything from disk."""
LIMIT: Final = 2 << 30
"""The bytes that all files may have together."""

_FORMAT: Final = b"opconform cases 2\n"
_TEXT: Final = b"opconform text 1\n"
_START: Final = len(_FORMAT) + 4 + 8  # bytes before the head: the mark, a checksum of the rest, and the head's size
_ALIGNED: Final = 64  # bytes at whose multiples arrays begin
_LOOK_EVERY: Final = 64 << 20  # bytes written until the folder is looked through again
_SLACK: Final = 0.9  # of the limit is left where files have to go
_ABANDONED: Final = 3600.0  # seconds after which a partial file is nobody's


def folder() -> Path:
    """Return where expectations are kept, as the XDG base directory specification has it."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "opconform" / "expectations"


@dataclass(frozen=True)
class Kept:
    """What is kept of a group of cases: data tensors, lanes first, what is expected, and the digests of the cases."""

    tensors: tuple[Array, ...]
    expectation: LanedExpectation
    digests: list[str]


class KeptExpectations:
    """The cases of earlier runs; safe under several processes. What cannot be read or written costs time."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder, self._limit = folder, limit
        self._written: int | None = None  # since the folder was looked through

    def get(self, question: Sequence[str], compute: Callable[[], Kept]) -> Kept:
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
        unpack: Callable[[Array], T],
    ) -> T:
        content = "\0".join([_program_digest(), sys.byteorder, *question])
        file = self._folder / hashlib.sha256(content.encode()).hexdigest()
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            return unpack(np.fromfile(file, np.uint8))
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


def packed(kept: Kept) -> bytes:
    """Return what is kept of a group as bytes; arrays that its options share are written once."""
    arrays, expectation = _Arrays(), kept.expectation
    options = [_option_to_json(one, arrays) for one in expectation.options]
    told = {"types": expectation.types, "lanes": expectation.lanes, "options": options}
    told |= {"expectation_digests": expectation.digests, "case_digests": kept.digests}
    told |= {"tensors": [arrays.add(tensor) for tensor in kept.tensors], "arrays": arrays.heads}
    head = json.dumps(told, separators=(",", ":")).encode()
    head += b" " * (-(_START + len(head)) % _ALIGNED)
    body = b"".join([len(head).to_bytes(8, "little"), head, *arrays.contents])
    return b"".join([_FORMAT, zlib.crc32(body).to_bytes(4, "little"), body])


def unpacked(content: Array) -> Kept:
    """Read what `packed` returned, as uint8; the arrays are views of it, which only the tensors may be written to.

    Raises ValueError, KeyError, TypeError or IndexError if it is none.
    """
    _check(_FORMAT, content)
    body = content.data[len(_FORMAT) + 4 :]
    end = _START + int.from_bytes(body[:8], "little")
    read: Any = json.loads(bytes(body[8 : end - len(_FORMAT) - 4]))
    arrays = []
    for name, shape, size in read["arrays"]:
        array = content[end : end + size].view(element_type(name).dtype).reshape(shape)
        array.flags.writeable = False
        arrays.append(array)
        end += size + -size % _ALIGNED
    options = tuple(_option_from_json(told, arrays) for told in read["options"])
    expectation = LanedExpectation(options, tuple(read["types"]), read["lanes"])
    expectation.remember_digests(read["expectation_digests"])
    tensors = [arrays[place] for place in read["tensors"]]
    for tensor in tensors:
        tensor.flags.writeable = True  # as drawn ones are: a backend may want so
    return Kept(tuple(tensors), expectation, read["case_digests"])


def _packed_text(text: str) -> bytes:
    body = text.encode()
    return b"".join([_TEXT, zlib.crc32(body).to_bytes(4, "little"), body])


def _unpacked_text(content: Array) -> str:
    _check(_TEXT, content)
    return bytes(content[len(_TEXT) + 4 :]).decode()


def _check(mark: bytes, content: Array) -> None:
    """Raise ValueError unless a file begins with the mark and is whole."""
    if bytes(content[: len(mark)]) != mark:
        raise ValueError("another kind of file")
    start = len(mark) + 4
    if zlib.crc32(content.data[start:]) != int.from_bytes(bytes(content[len(mark) : start]), "little"):
        raise ValueError("damaged")


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
            self._places[id(array)] = array, self.add(array)
        return self._places[id(array)][1]

    def add(self, array: Array) -> int:
        """Write an array that shares its memory with no other one."""
        self.heads.append((array.dtype.name, list(array.shape), array.nbytes))
        self.contents.append(array.tobytes() + bytes(-array.nbytes % _ALIGNED))
        return len(self.heads) - 1


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

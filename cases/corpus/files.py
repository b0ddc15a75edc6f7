"""The files of a corpus, in a folder or an archive, and their JSON: reads them without trust, and writes them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, Protocol

from ..errors import OpconformError

LARGEST_FILE = 1 << 30
"""Maximum size of a file of a corpus in bytes, unpacked."""
LARGEST_WHOLE = 64 << 30
"""Maximum size of all files of an archive together, in bytes."""
LARGEST_RATIO = 200
"""Maximum ratio of a file's unpacked size to its size in the archive, if it is larger than `SMALL`."""
SMALL = 8 << 20
LARGEST_JSON = 256 << 20
"""Maximum size of a JSON file of a corpus in bytes."""
MOST_FILES = 2_000_000
"""Maximum number of files of a corpus."""

_HEADER = 30  # bytes of a zip's local file header, without the file name
_END, _END_MARK = 22, b"PK\x05\x06"  # the record at the end of a zip, without its comment
_ENCRYPTED = 0x1
_SEAL = 64  # the characters of a sha256
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can store


class CorpusError(OpconformError):
    """A corpus or one of its files cannot be read; the message begins with the file's name."""


class Files(Protocol):
    """Files by their path from the root of the corpus, with `/`."""

    name: str

    def sizes(self) -> Mapping[str, int]:
        """Return every file with its declared size in bytes. Raises CorpusError."""

    def read(self, path: str, largest: int = LARGEST_FILE) -> bytes:
        """Return a file's content. Raises CorpusError if it is missing, damaged or larger than `largest`."""

    def flaws(self) -> Iterator[str]:
        """Yield what is wrong with the whole, apart from its files."""


class Sink(Protocol):
    """Receives the files of a new corpus."""

    def write(self, path: str, content: bytes) -> None:
        """Write one file."""


def open_files(path: Path) -> Files:
    """Open a folder or an archive. Raises CorpusError if the path is neither."""
    if path.is_dir():
        return FolderFiles(path)
    if path.is_file():
        return ArchiveFiles(path)
    raise CorpusError(f"{path}: no such folder or archive")


class FolderFiles:
    """The files below a folder; links are refused."""

    def __init__(self, root: Path) -> None:
        self.name, self.root = str(root), root

    def sizes(self) -> Mapping[str, int]:
        """Return every file with its size."""
        sizes: dict[str, int] = {}
        for path, entry in self._walk(self.root, ""):
            sizes[path] = entry.stat(follow_symlinks=False).st_size
            if len(sizes) > MOST_FILES:
                raise CorpusError(f"{self.root}: more than {MOST_FILES:,} files")
        return sizes

    def _walk(self, folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.is_dir(follow_symlinks=False):
                    yield from self._walk(Path(entry.path), f"{prefix}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    yield prefix + entry.name, entry
                else:
                    raise CorpusError(f"{self.root / prefix / entry.name}: a link or a device; expected only files")

    def read(self, path: str, largest: int = LARGEST_FILE) -> bytes:
        """Return a file's content."""
        check_path(path, self.name)
        file = self.root / path
        self._check_links(file)
        try:
            with file.open("rb") as opened:
                content = opened.read(largest + 1)
        except OSError as error:
            raise CorpusError(f"{file}: cannot be read: {error.strerror}") from None
        if len(content) > largest:
            raise CorpusError(f"{file}: larger than the declared {largest:,} bytes")
        return content

    def flaws(self) -> Iterator[str]:
        """Yield nothing: a folder has no data of its own."""
        return iter(())

    def _check_links(self, file: Path) -> None:
        """Raise CorpusError if the file, or a folder on its path, is a link."""
        for step in (file, *file.parents):
            if step == self.root:
                return
            if step.is_symlink():
                raise CorpusError(f"{step}: a link; expected only files and folders")


class ArchiveFiles:
    """The files of a zip archive; nothing is unpacked to disk. Picklable, and safe to use after a fork."""

    def __init__(self, source: Path | bytes, name: str | None = None) -> None:
        """Open an archive by its path, or by its content and a `name` for error messages."""
        self.name, self._source = name or str(source), source
        self._opened: tuple[int, zipfile.ZipFile] | None = None
        self._entries: Mapping[str, zipfile.ZipInfo] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"name": self.name, "_source": self._source, "_opened": None, "_entries": None}

    def sizes(self) -> Mapping[str, int]:
        """Return every file with its size according to the archive's directory."""
        return {path: entry.file_size for path, entry in self.entries().items()}

    def entries(self) -> Mapping[str, zipfile.ZipInfo]:
        """Return the archive's directory, checked, without folders."""
        if self._entries is None:
            self._entries = MappingProxyType(_checked(self._archive().infolist(), self.name))
        return self._entries

    def read(self, path: str, largest: int = LARGEST_FILE) -> bytes:
        """Return a file's content."""
        entry = self.entries().get(path)
        if entry is None:
            raise CorpusError(f"{self.name}: has no file {path}")
        try:
            with self._archive().open(entry) as opened:
                content = opened.read(min(largest, LARGEST_FILE) + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
            raise CorpusError(f"{self.name}: {path}: cannot be unpacked: {error}") from None
        if len(content) > largest:
            raise CorpusError(f"{self.name}: {path}: larger than the declared {largest:,} bytes")
        return content

    def flaws(self) -> Iterator[str]:
        """Yield changes in the archive's own bytes, outside its files."""
        source = self._source
        content = source if isinstance(source, bytes) else source.read_bytes()
        seal = self._archive().comment
        if content[-_END - len(seal) :][:4] != _END_MARK:
            yield "changed: the archive (it does not end with its directory)"
        elif seal and hashlib.sha256(content[: -len(seal)]).hexdigest().encode() != seal:
            yield "changed: the archive (its sha256 does not match its comment)"

    def _archive(self) -> zipfile.ZipFile:
        # a forked process shares the file position with its parent, so each opens the file itself
        if self._opened is None or self._opened[0] != os.getpid():
            try:
                source = io.BytesIO(self._source) if isinstance(self._source, bytes) else self._source
                self._opened = os.getpid(), zipfile.ZipFile(source)
            except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
                raise CorpusError(f"{self.name}: not a complete zip archive: {error}") from None
        return self._opened[1]


def _checked(entries: list[zipfile.ZipInfo], name: str) -> dict[str, zipfile.ZipInfo]:
    if len(entries) > MOST_FILES:
        raise CorpusError(f"{name}: more than {MOST_FILES:,} files")
    by_name: dict[str, zipfile.ZipInfo] = {}
    folded: set[str] = set()
    for entry in entries:
        check_path(entry.filename.removesuffix("/"), name)
        _check_entry(entry, name)
        if entry.filename.lower() in folded:
            raise CorpusError(f"{name}: {entry.filename} appears twice")
        folded.add(entry.filename.lower())
        if not entry.is_dir():
            by_name[entry.filename] = entry
    if sum(entry.file_size for entry in entries) > LARGEST_WHOLE:
        raise CorpusError(f"{name}: its files have more than {LARGEST_WHOLE:,} bytes together")
    _check_overlaps(entries, name)
    return by_name


def _check_entry(entry: zipfile.ZipInfo, name: str) -> None:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise CorpusError(f"{name}: {entry.filename} is a link or a device; expected only files")
    if entry.flag_bits & _ENCRYPTED:
        raise CorpusError(f"{name}: {entry.filename} is encrypted")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise CorpusError(f"{name}: {entry.filename} is neither stored nor deflated")
    if entry.file_size > LARGEST_FILE:
        raise CorpusError(f"{name}: {entry.filename} has more than {LARGEST_FILE:,} bytes")
    if entry.file_size > max(SMALL, entry.compress_size * LARGEST_RATIO):
        sizes = f"{entry.compress_size:,} bytes that unpack to {entry.file_size:,}"
        raise CorpusError(f"{name}: {entry.filename}: {sizes}; expected {LARGEST_RATIO} times as many at most")


def _check_overlaps(entries: list[zipfile.ZipInfo], name: str) -> None:
    """Refuse files that share bytes, a trick that makes a small archive expand to a large one."""
    end = 0
    for entry in sorted(entries, key=lambda e: e.header_offset):
        if entry.header_offset < end:
            raise CorpusError(f"{name}: {entry.filename} overlaps the file before it")
        end = entry.header_offset + _HEADER + len(entry.filename.encode()) + entry.compress_size


def check_path(path: str, name: str) -> None:
    """Raise CorpusError for a path that leaves the corpus, or that some file systems cannot hold."""
    parts = path.split("/")
    odd = any(not p or p in (".", "..") or p != p.strip() or p.endswith(".") for p in parts)
    if odd or any(c in '\\:*?"<>|' or not c.isprintable() for c in path):
        raise CorpusError(f"{name}: {path!r} is not a valid path in a corpus")


class FolderSink:
    """Writes below a folder, which it creates; the folder must be new or empty."""

    def __init__(self, root: Path) -> None:
        """Create the folder. Raises CorpusError if it already has content."""
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise CorpusError(f"{root}: already exists and is not an empty folder; choose another")
        root.mkdir(parents=True, exist_ok=True)
        self._root = root

    def write(self, path: str, content: bytes) -> None:
        """Write one file."""
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


class ArchiveSink:
    """Writes a zip archive whose bytes depend only on its files (and on the version of zlib).

    An archive with a path is deflated, and its comment is the sha256 of everything before it. An archive in memory is
    stored uncompressed.
    """

    def __init__(self, file: io.BytesIO | Path) -> None:
        self._file = file
        self._kind = zipfile.ZIP_STORED if isinstance(file, io.BytesIO) else zipfile.ZIP_DEFLATED
        self._archive = zipfile.ZipFile(file, "w", self._kind)

    def write(self, path: str, content: bytes) -> None:
        """Write one file."""
        entry = zipfile.ZipInfo(path, _EPOCH)
        entry.create_system, entry.external_attr, entry.compress_type = 3, (stat.S_IFREG | 0o644) << 16, self._kind
        if len(content) > SMALL and len(content) > len(zlib.compress(content, 9)) * LARGEST_RATIO:
            entry.compress_type = zipfile.ZIP_STORED  # a reader would treat it as a zip bomb
        self._archive.writestr(entry, content, compresslevel=9)

    def close(self) -> None:
        """Write the archive's directory and its sha256."""
        if isinstance(self._file, Path):
            self._archive.comment = b"0" * _SEAL
        self._archive.close()
        if isinstance(self._file, Path):
            content = self._file.read_bytes()[:-_SEAL]
            self._file.write_bytes(content + hashlib.sha256(content).hexdigest().encode())


def compact_json(content: Any) -> bytes:
    """Return `content` as one line of strict JSON in ASCII with a line end, keys in their given order."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def lined_json(content: Any) -> bytes:
    """Return `content` as strict JSON in ASCII on many lines, which can be compared line by line."""
    return json.dumps(content, allow_nan=False, indent=1).encode() + b"\n"


def read_json(content: bytes, file: str) -> dict[str, Any]:
    """Read a JSON object. Raises CorpusError, which names `file`."""
    if len(content) > LARGEST_JSON:
        raise CorpusError(f"{file}: more than {LARGEST_JSON:,} bytes of JSON")
    try:
        read = json.loads(content, parse_constant=_refuse, object_pairs_hook=_unique)
    except RecursionError:
        raise CorpusError(f"{file}: nested too deeply") from None
    except ValueError as error:  # also UnicodeDecodeError and numbers that are too long
        raise CorpusError(f"{file}: no JSON: {error}") from None
    if not isinstance(read, dict):
        raise CorpusError(f"{file}: expected a JSON object; read {type(read).__name__}")
    return read


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key appears twice")
    return fields

"""A submission: a results folder as one archive with its digest, optionally signed, that others judge again."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cases.corpus.files import ArchiveFiles, ArchiveSink, CorpusError, lined_json, read_json
from ..cases.errors import OpconformError, open_regular
from ..cases.runner import NotInstalled
from ..reports.runs import ACCURACY, CERTIFICATES, OUTPUTS, RESULTS, RUN, StoredResults, read_run
from ..reports.text import counted

_LARGEST_KEY = 1 << 16
_EXPECTED = "expected an Ed25519 key in PEM without a password, as `openssl genpkey -algorithm ed25519` makes it"


def signed(content: bytes, key: Path) -> bytes:
    """Return the signature of `content` by the private key in a PEM file, in base64.

    Raises OpconformError if the key is invalid, NotInstalled without the library.
    """
    keys, _ = _library()
    private_key = _loaded(key, "Ed25519Private", lambda pem: keys.load_pem_private_key(pem, None), _EXPECTED)
    return base64.b64encode(private_key.sign(content)) + b"\n"


def unsigned_reason(content: bytes, signature: bytes | None, key: Path | None) -> str | None:
    """Return why `content` is not signed by the public key in a PEM file; None if it is, or without a key."""
    if key is None:
        return None
    keys, invalid = _library()
    expected = f"{_EXPECTED}, and `openssl pkey -pubout` its public part"
    public_key = _loaded(key, "Ed25519Public", keys.load_pem_public_key, expected)
    if signature is None:
        return "none, and --key asks for one"
    try:
        public_key.verify(base64.b64decode(signature, validate=False), content)
    except (invalid, binascii.Error):
        return "made with another key, or for other content"
    return None


def _library() -> tuple[Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only who signs needs it
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    except ModuleNotFoundError:
        raise NotInstalled("signatures need cryptography, which is not installed: pip install cryptography") from None
    return serialization, InvalidSignature


def _loaded(key: Path, kind: str, load: Callable[[bytes], Any], expected: str) -> Any:
    try:
        with open_regular(key) as opened:
            loaded = load(opened.read(_LARGEST_KEY))
    except OSError as error:
        raise OpconformError(f"{key}: cannot be read: {error.strerror}") from None
    except OpconformError:
        raise
    except Exception as error:  # the library raises various exceptions
        raise OpconformError(f"{key}: {_EXPECTED}: {error}") from None
    if kind not in type(loaded).__name__:
        raise OpconformError(f"{key}: {expected}")
    return loaded


MANIFEST, SIGNATURE = "submission.json", "submission.sig"
KIND, SCHEMA = "submission", 1
_NEEDED, _MAY_BE = (RUN, RESULTS), (OUTPUTS, CERTIFICATES, ACCURACY)
_LARGEST_HEAD = 16 << 20
REPEATED = (
    "suite", "corpus", "backends", "machine", "waivers", "profile", "arithmetic", "errata", "required",
    "selection", "strength", "draws", "seed", "shard", "planned", "keep_outputs", "exit_code",
)  # fmt: skip
"""The keys of `run.json` that the manifest of a submission repeats."""


class NotWholeError(CorpusError):
    """A submission whose files do not match its manifest; the message names the first."""


def is_submission(path: Path) -> bool:
    """Return whether a file is a submission. Raises CorpusError for an archive that is not one, or not safe."""
    return path.is_file() and MANIFEST in ArchiveFiles(path).entries()


def submit(folder: Path, out: Path, key: Path | None = None, frozen: Sequence[Path] = ()) -> Iterator[str]:
    """Pack a results folder into the archive `out`, and yield messages.

    The same folder gives the same bytes. `key` is a private key to sign with, `frozen` are files of the backend that
    existed before the seed was announced. Raises OpconformError if the run is unfinished or damaged, a file cannot be
    read, or `out` exists already.
    """
    run_json = read_run(folder)
    if run_json.get("status") != "finished":
        status = run_json.get("status")
        raise OpconformError(f"{folder}: {status}; only a finished run can be submitted; `run --resume` finishes it")
    if out.exists():
        raise OpconformError(f"{out}: already exists; choose another file")
    results = sum(1 for _ in StoredResults(folder))  # raises if the folder is damaged
    content = {name: (folder / name).read_bytes() for name in (*_NEEDED, *_MAY_BE) if (folder / name).is_file()}
    manifest = _manifest(run_json, content, results, _challenge(run_json, frozen))
    if key is not None:
        content[SIGNATURE] = signed(manifest, key)
    partial = out.with_name(f"{out.name}.partial")
    try:
        archive = ArchiveSink(partial)
        for name, file in {MANIFEST: manifest, **content}.items():
            archive.write(name, file)
        archive.close()
        partial.replace(out)
    except OSError as error:
        raise OpconformError(f"{out}: cannot be written: {error.strerror}") from None
    yield f"{counted(results, 'result')} in {counted(len(content) + 1, 'file')}" + (", signed" if key else "")
    yield f"digest {json.loads(manifest)['digest']}"


def _challenge(run_json: Mapping[str, Any], frozen: Sequence[Path]) -> dict[str, Any] | None:
    """Return the announced seed, and the digests of the files that were frozen before; None without files."""
    digests: dict[str, str] = {}
    for file in frozen:
        try:
            with open_regular(file) as opened:
                digests[file.name] = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise OpconformError(f"{file}: cannot be read: {error.strerror}") from None
    if len(digests) < len(frozen):
        raise OpconformError("--frozen: two files have the same name; the manifest needs different names")
    return {"seed": run_json.get("seed"), "frozen": digests} if digests else None


def _manifest(
    run_json: Mapping[str, Any], content: Mapping[str, bytes], results: int, challenge: Mapping[str, Any] | None
) -> bytes:
    files = {name: {"size": len(c), "sha256": hashlib.sha256(c).hexdigest()} for name, c in content.items()}
    manifest = {
        "kind": KIND,
        "schema": SCHEMA,
        "results": results,
        **{name: run_json.get(name) for name in REPEATED},
        **({"challenge": challenge} if challenge else {}),
        "files": files,
    }
    return lined_json({"digest": _digest(manifest), **manifest})


def _digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(lined_json(dict(manifest))).hexdigest()


@dataclass(frozen=True)
class Opened:
    """A submission whose files match its manifest, `description`, of the bytes `manifest`; `signature` is beside it."""

    description: Mapping[str, Any]
    manifest: bytes
    content: Mapping[str, bytes]
    signature: bytes | None


def open_submission(path: Path) -> Opened:
    """Read a submission. Raises CorpusError, which names the file; NotWholeError if it was changed."""
    files = ArchiveFiles(path)
    manifest = files.read(MANIFEST, _LARGEST_HEAD)
    name = f"{files.name}: {MANIFEST}"
    description = read_json(manifest, name)
    if description.get("kind") != KIND or description.get("schema") != SCHEMA:
        read = f"kind {description.get('kind')!r}, schema {description.get('schema')!r}"
        raise CorpusError(f"{name}: has {read}; this version of opconform reads {KIND} {SCHEMA}")
    if description.get("digest") != _digest({key: value for key, value in description.items() if key != "digest"}):
        raise NotWholeError(f"{name}: changed: its digest does not match its content")
    there, listed = set(files.entries()) - {MANIFEST, SIGNATURE}, description.get("files")
    if not isinstance(listed, dict) or not set(_NEEDED) <= listed.keys() <= {*_NEEDED, *_MAY_BE}:
        raise CorpusError(f"{name}: does not have the files of a submission")
    if odd := sorted(there ^ listed.keys()):
        raise NotWholeError(f"{files.name}: {'added' if odd[0] in there else 'missing'}: {odd[0]}")
    content = {file: _checked(files, file, entry) for file, entry in listed.items()}
    signature = files.read(SIGNATURE, _LARGEST_HEAD) if SIGNATURE in files.entries() else None
    return Opened(description, manifest, content, signature)


def _checked(files: ArchiveFiles, name: str, entry: Any) -> bytes:
    if not isinstance(entry, dict) or type(entry.get("size")) is not int or entry["size"] < 0:
        raise CorpusError(f"{files.name}: {MANIFEST}: has no size for {name}")
    try:
        content = files.read(name, entry["size"])
    except CorpusError as error:
        raise NotWholeError(str(error)) from None
    if len(content) != entry["size"] or hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise NotWholeError(f"{files.name}: changed: {name}")
    return content

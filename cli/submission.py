"""A submission: a results folder as one archive with its digest, maybe signed, that others judge again."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ..cases.corpus.files import ArchiveFiles, ArchiveSink, CorpusError, lined_json, read_json
from ..cases.errors import OpconformError
from ..cases.runner import NotInstalled
from ..reports.runs import (
    ACCURACY,
    CERTIFICATES,
    OUTPUTS,
    RESULTS,
    RUN,
    StoredResults,
    read_run,
)
from ..reports.text import counted

_EXPECTED = "expected an Ed25519 key in PEM without a password, as `openssl genpkey -algorithm ed25519` makes it"


def signed(content: bytes, key: Path) -> bytes:
    """Return the signature of `content` by the private key in a PEM file, in base64.

    Raises OpconformError if that is none, NotInstalled without the library.
    """
    keys, _ = _library()
    found = _loaded(key, lambda pem: keys.load_pem_private_key(pem, None))
    if type(found).__name__.find("Ed25519Private") < 0:
        raise OpconformError(f"{key}: {_EXPECTED}")
    return base64.b64encode(found.sign(content)) + b"\n"


def unsigned_reason(content: bytes, signature: bytes | None, key: Path | None) -> str | None:
    """Return why `content` is not signed by the public key in a PEM file; None if it is, or if no key is given."""
    if key is None:
        return None
    keys, invalid = _library()
    found = _loaded(key, keys.load_pem_public_key)
    if type(found).__name__.find("Ed25519Public") < 0:
        raise OpconformError(f"{key}: {_EXPECTED}, and `openssl pkey -pubout` its public part")
    if signature is None:
        return "none"
    try:
        found.verify(base64.b64decode(signature, validate=False), content)
    except (invalid, binascii.Error):
        return "not by this key, or of other content"
    return None


def _library() -> tuple[Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only who signs needs it
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    except ModuleNotFoundError:
        raise NotInstalled("signatures need cryptography, which is not installed: pip install cryptography") from None
    return serialization, InvalidSignature


def _loaded(key: Path, load: Callable[[bytes], Any]) -> Any:
    try:
        return load(key.read_bytes())
    except OSError as error:
        raise OpconformError(f"{key}: cannot be read: {error.strerror}") from None
    except Exception as error:  # the library raises of many kinds
        raise OpconformError(f"{key}: {_EXPECTED}: {error}") from None


MANIFEST, SIGNATURE = "submission.json", "submission.sig"
KIND, SCHEMA = "submission", 1
_NEEDED, _MAY_BE = (RUN, RESULTS), (OUTPUTS, CERTIFICATES, ACCURACY)
_LARGEST_HEAD = 16 << 20
_TOLD = ("suite", "corpus", "backends", "machine", "waivers", "profile", "arithmetic", "errata", "required")
"""What of `run.json` the manifest repeats."""


class NotWholeError(CorpusError):
    """A submission whose files are not those of its manifest; the message names the first."""


def is_submission(path: Path) -> bool:
    """Return whether a file is a submission. Raises CorpusError for an archive that is none, or not safe."""
    return path.is_file() and MANIFEST in ArchiveFiles(path).entries()


def submit(folder: Path, out: Path, key: Path | None = None) -> Iterator[str]:
    """Pack a results folder into the archive `out`, and yield what is to tell.

    The same folder gives the same bytes. `key` is a private key to sign with. Raises OpconformError if the run is
    unfinished or damaged, or `out` is there already.
    """
    told = read_run(folder)
    if told.get("status") != "finished":
        status = told.get("status")
        raise OpconformError(f"{folder}: {status}; only a finished run can be submitted: `run --resume` ends it")
    if out.exists():
        raise OpconformError(f"{out}: is there already; name another file")
    results = sum(1 for _ in StoredResults(folder))  # raises for what is damaged
    content = {name: (folder / name).read_bytes() for name in (*_NEEDED, *_MAY_BE) if (folder / name).exists()}
    manifest = _manifest(told, content, results)
    if key is not None:
        content[SIGNATURE] = signed(manifest, key)
    partial = out.with_name(f"{out.name}.partial")
    try:
        archive = ArchiveSink(partial)
        for name, one in {MANIFEST: manifest, **content}.items():
            archive.write(name, one)
        archive.close()
        partial.replace(out)
    except OSError as error:
        raise OpconformError(f"{out}: cannot be written: {error.strerror}") from None
    yield f"{counted(results, 'result')} in {counted(len(content) + 1, 'file')}" + (", signed" if key else "")
    yield f"digest {json.loads(manifest)['digest']}"


def _manifest(told: Mapping[str, Any], content: Mapping[str, bytes], results: int) -> bytes:
    files = {name: {"size": len(c), "sha256": hashlib.sha256(c).hexdigest()} for name, c in content.items()}
    whole = {
        "kind": KIND,
        "schema": SCHEMA,
        "results": results,
        **{name: told.get(name) for name in _TOLD},
        "exit_code": told.get("exit_code"),
        "files": files,
    }
    return lined_json({"digest": _digest(whole), **whole})


def _digest(whole: Mapping[str, Any]) -> str:
    return hashlib.sha256(lined_json(dict(whole))).hexdigest()


@dataclass(frozen=True)
class Opened:
    """A submission whose files are those of its manifest; `manifest` is its bytes, `signature` what stands beside."""

    told: Mapping[str, Any]
    manifest: bytes
    content: Mapping[str, bytes]
    signature: bytes | None


def open_submission(path: Path) -> Opened:
    """Read a submission. Raises CorpusError that names the file: NotWholeError where it was changed."""
    files = ArchiveFiles(path)
    manifest = files.read(MANIFEST, _LARGEST_HEAD)
    name = f"{files.name}: {MANIFEST}"
    told = read_json(manifest, name)
    if told.get("kind") != KIND or told.get("schema") != SCHEMA:
        read = f"kind {told.get('kind')!r}, schema {told.get('schema')!r}"
        raise CorpusError(f"{name}: of {read}; this version of opconform reads {KIND} {SCHEMA}")
    if told.get("digest") != _digest({key: value for key, value in told.items() if key != "digest"}):
        raise NotWholeError(f"{name}: changed: its digest is not that of its content")
    there, listed = set(files.entries()) - {MANIFEST, SIGNATURE}, told.get("files")
    if not isinstance(listed, dict) or not set(_NEEDED) <= listed.keys() <= {*_NEEDED, *_MAY_BE}:
        raise CorpusError(f"{name}: its files are not those of a submission")
    if odd := sorted(there ^ listed.keys()):
        raise NotWholeError(f"{files.name}: {'added' if odd[0] in there else 'missing'}: {odd[0]}")
    content = {one: _checked(files, one, entry) for one, entry in listed.items()}
    signature = files.read(SIGNATURE, _LARGEST_HEAD) if SIGNATURE in files.entries() else None
    return Opened(told, manifest, content, signature)


def _checked(files: ArchiveFiles, name: str, entry: Any) -> bytes:
    if not isinstance(entry, dict) or type(entry.get("size")) is not int or entry["size"] < 0:
        raise CorpusError(f"{files.name}: {MANIFEST}: tells no size of {name}")
    try:
        content = files.read(name, entry["size"])
    except CorpusError as error:
        raise NotWholeError(str(error)) from None
    if len(content) != entry["size"] or hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise NotWholeError(f"{files.name}: changed: {name}")
    return content


def verify_submission(path: Path, key: Path | None = None, console: Console | None = None) -> int:
    """Check a submission and judge it again by this version's suite; return 0 if its figures hold, else 1.

    `key` is the public key that must have signed it. Raises OpconformError where a file cannot be read.
    """
    console = console or Console()
    try:
        opened = open_submission(path)
    except NotWholeError as error:
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return 1
    lines = [f"whole: {counted(len(opened.content), 'file')}, digest {opened.told['digest']}"]
    wrong = unsigned_reason(opened.manifest, opened.signature, key)
    lines += [f"signature: {wrong}" if wrong else _of_signature(opened, key)]
    with tempfile.TemporaryDirectory(prefix="opconform-") as place:
        found = _judged_again(opened, Path(place))
    lines += found
    holds = not found or found[-1].startswith("holds")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0 if holds and not wrong else 1


def _of_signature(opened: Opened, key: Path | None) -> str:
    if key is not None:
        return "signature: by this key"
    return "signature: none" if opened.signature is None else "signature: there; give --key to check it"


def _judged_again(opened: Opened, place: Path) -> list[str]:
    """Return what comes of judging again; the last line says whether the figures hold."""
    from .rejudge import RejudgeOptions, rejudge_into  # noqa: PLC0415 - it imports the generators

    folder = place / "submitted"
    folder.mkdir()
    for name, content in opened.content.items():
        (folder / name).write_bytes(content)
    told = read_run(folder)
    changes, figures = rejudge_into(RejudgeOptions(folder), place / "again")
    lines = [f"{c.old} -> {c.new}: {c.case} on {c.backend}, {c.reason}" for c in changes.changed[:20]]
    lines += [f"and {len(changes.changed) - 20:,} more"] if len(changes.changed) > 20 else []
    judged = changes.unchanged + len(changes.changed)
    others = f"{judged - changes.from_answers:,} refusals and results whose answer was not kept"
    lines.append(f"judged again: {changes.from_answers:,} from answers, {others}; {len(changes.run_again):,} cannot be")
    if not judged:
        return [*lines, "does not hold: nothing of it can be judged again by this version's suite"]
    same = json.loads(json.dumps(figures)) == told.get("figures")
    if same and not changes.changed:
        return [*lines, "holds: the figures are those of the results, and no outcome is another"]
    why = "an outcome is another" if changes.changed else "the figures of run.json are not those of the results"
    return [*lines, f"does not hold: {why}"]

"""`opconform submit` and `verify`: a run as one archive, which somebody else judges again."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.here import run_here

from opconform.cases.corpus.files import lined_json
from opconform.cli import main

V13 = "onnx/ReduceMean-13"
Files = dict[str, bytes]


def invoke(*words: object) -> Any:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "out"
    backend = "python:fakes.backends:WrongOnUint32"
    select = ("--select", f"{V13}/*int32/2x*", "--keep-outputs", "all")
    with run_here():
        invoke("run", backend, *select, "--quiet", "--jobs", 1, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def submission(run: Path) -> Path:
    file = run.parent / "submission.zip"
    done = invoke("submit", run, "--out", file)
    assert done.exit_code == 0, done.output
    return file


def content(file: Path) -> Files:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(files: Files, file: Path) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, one in files.items():
            archive.writestr(name, one)
    return file


def sealed(files: Files) -> Files:
    """Mend the manifest, as one who wants to deceive would."""
    told = json.loads(files["submission.json"])
    told.pop("digest")
    others = {name: one for name, one in files.items() if name != "submission.json"}
    told["files"] = {n: {"size": len(c), "sha256": hashlib.sha256(c).hexdigest()} for n, c in others.items()}
    digest = hashlib.sha256(lined_json(told)).hexdigest()
    return {"submission.json": lined_json({"digest": digest, **told}), **others}


def test_a_submission_holds_and_has_one_digest_on_every_packing(run: Path, submission: Path, tmp_path: Path) -> None:
    again = invoke("submit", run, "--out", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == submission.read_bytes()
    done = invoke("verify", submission)
    assert done.exit_code == 0, done.output
    digest = json.loads(content(submission)["submission.json"])["digest"]
    assert f"digest {digest}" in done.output
    assert f"digest {digest}" in again.output
    assert "holds" in done.output
    kept = len((run / "outputs.jsonl").read_text().splitlines())
    assert f"judged again: {kept} from answers" in done.output


def test_what_belongs_to_the_run_is_told_in_the_manifest(run: Path, submission: Path) -> None:
    told = json.loads(content(submission)["submission.json"])
    about = json.loads((run / "run.json").read_text())
    assert told["kind"] == "submission"
    assert {k: told[k] for k in ("suite", "backends", "machine", "exit_code")} == {
        k: about[k] for k in ("suite", "backends", "machine", "exit_code")
    }
    assert {"run.json", "results.jsonl", "outputs.jsonl", "certificates.jsonl"} <= told["files"].keys()


def wrong_made_right(files: Files) -> None:
    found = [json.loads(line) for line in files["results.jsonl"].splitlines()]
    for line in found:
        if line["outcome"] == "wrong-value":
            line |= {"outcome": "pass", "level": "strict", "detail": None}
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in found)
    files["results.jsonl"] = text.encode()


def better_figures(files: Files) -> None:
    told = json.loads(files["run.json"])
    told["figures"]["overall"]["correctness"] = 1.0
    files["run.json"] = json.dumps(told).encode()


@pytest.mark.parametrize(
    ("change", "why"),
    [(wrong_made_right, "an outcome is another"), (better_figures, "the figures of run.json are not those")],
)
def test_figures_that_do_not_follow_from_the_answers_do_not_hold(
    change: Callable[[Files], None], why: str, submission: Path, tmp_path: Path
) -> None:
    files = content(submission)
    change(files)
    done = invoke("verify", packed(sealed(files), tmp_path / "s.zip"))
    assert done.exit_code == 1
    assert f"does not hold: {why}" in done.output


@pytest.mark.parametrize("name", ["run.json", "results.jsonl", "outputs.jsonl", "submission.json"])
def test_a_changed_byte_is_noticed_and_its_file_named(name: str, submission: Path, tmp_path: Path) -> None:
    files = content(submission)
    changed = bytearray(files[name])
    changed[len(changed) // 2] ^= 1
    done = invoke("verify", packed({**files, name: bytes(changed)}, tmp_path / "s.zip"))
    assert done.exit_code == 1 or (name == "submission.json" and done.exit_code == 2)
    assert name in done.output


def test_an_added_and_a_missing_file_are_named(submission: Path, tmp_path: Path) -> None:
    files = content(submission)
    added = invoke("verify", packed({**files, "more.txt": b"x"}, tmp_path / "added.zip"))
    missing = {name: one for name, one in files.items() if name != "outputs.jsonl"}
    lost = invoke("verify", packed(missing, tmp_path / "lost.zip"))
    assert (added.exit_code, lost.exit_code) == (1, 1)
    assert "added: more.txt" in added.output
    assert "missing: outputs.jsonl" in lost.output


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "C:\\evil"])
def test_paths_that_lead_out_are_refused(name: str, submission: Path, tmp_path: Path) -> None:
    done = invoke("verify", packed({**content(submission), name: b"x"}, tmp_path / "s.zip"))
    assert done.exit_code == 2
    assert "s.zip: " in done.output
    assert "no path of a file" in done.output
    signed = invoke("verify", tmp_path / "s.zip", "--key", "public.pem")
    assert (signed.exit_code, "no path of a file" in signed.output) == (2, True)


def test_links_and_bombs_are_refused(submission: Path, tmp_path: Path) -> None:
    files = content(submission)
    linked = packed(files, tmp_path / "linked.zip")
    with zipfile.ZipFile(linked, "a") as archive:
        entry = zipfile.ZipInfo("link")
        entry.create_system, entry.external_attr = 3, 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    done = invoke("verify", linked)
    assert done.exit_code == 2
    assert "linked.zip: link is a link" in done.output
    for size, code, said in ((1 << 26, 2, "bytes that unpack to 67,108,864"), (1 << 22, 1, "larger than")):
        done = invoke("verify", packed({**files, "results.jsonl": bytes(size)}, tmp_path / "bomb.zip"))
        assert (done.exit_code, "bomb.zip: results.jsonl: " in done.output, said in done.output) == (code, True, True)


def test_a_foreign_schema_and_a_truncated_archive_are_refused(submission: Path, tmp_path: Path) -> None:
    files = content(submission)
    files["submission.json"] = files["submission.json"].replace(b'"schema": 1', b'"schema": 9')
    done = invoke("verify", packed(files, tmp_path / "s.zip"))
    assert (done.exit_code, "submission.json: of kind 'submission', schema 9" in done.output) == (2, True)
    (tmp_path / "half.zip").write_bytes(submission.read_bytes()[:2000])
    for words in ((), ("--key", "public.pem")):
        done = invoke("verify", tmp_path / "half.zip", *words)
        assert (done.exit_code, "half.zip: no whole zip archive" in done.output) == (2, True)


def test_a_run_that_is_not_over_and_a_file_that_is_there_are_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "there.zip").write_bytes(b"mine")
    done = invoke("submit", run, "--out", tmp_path / "there.zip")
    assert done.exit_code == 2
    assert (tmp_path / "there.zip").read_bytes() == b"mine"
    begun = tmp_path / "begun"
    begun.mkdir()
    for name in ("run.json", "results.jsonl"):
        (begun / name).write_bytes((run / name).read_bytes().replace(b'"finished"', b'"running"'))
    done = invoke("submit", begun, "--out", tmp_path / "s.zip")
    assert done.exit_code == 2
    assert "only a finished run" in done.output
    assert not (tmp_path / "s.zip").exists()


# Signatures


def keys(folder: Path, name: str) -> tuple[Path, Path]:
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    form, pem = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def test_a_signature_is_checked_against_the_key_that_is_given(run: Path, submission: Path, tmp_path: Path) -> None:
    (mine, public), (_, other) = keys(tmp_path, "mine"), keys(tmp_path, "other")
    signed = tmp_path / "signed.zip"
    assert invoke("submit", run, "--out", signed, "--sign", mine).exit_code == 0
    right, wrong = invoke("verify", signed, "--key", public), invoke("verify", signed, "--key", other)
    none = invoke("verify", submission, "--key", public)
    assert (right.exit_code, wrong.exit_code, none.exit_code) == (0, 1, 1)
    assert "signature: by this key" in right.output
    assert "signature: not by this key" in wrong.output
    assert "signature: none" in none.output
    assert invoke("verify", signed).exit_code == 0


def test_a_manifest_that_was_sealed_anew_is_not_what_was_signed(run: Path, tmp_path: Path) -> None:
    mine, public = keys(tmp_path, "mine")
    signed = tmp_path / "signed.zip"
    invoke("submit", run, "--out", signed, "--sign", mine)
    files = content(signed)
    signature = files.pop("submission.sig")
    better_figures(files)
    forged = packed({**sealed(files), "submission.sig": signature}, tmp_path / "forged.zip")
    assert "signature: not by this key" in invoke("verify", forged, "--key", public).output


def test_what_is_no_key_is_refused(run: Path, submission: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    none = tmp_path / "none.pem"
    none.write_text("no key\n")
    for words in (("submit", run, "--out", tmp_path / "s.zip", "--sign", none), ("verify", submission, "--key", none)):
        done = invoke(*words)
        assert done.exit_code == 2
        assert "expected an Ed25519 key in PEM" in done.output

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


def resealed(files: Files) -> Files:
    """Mend the manifest's heads too."""
    told, about = (json.loads(files[name]) for name in ("submission.json", "run.json"))
    told |= {name: about[name] for name in told.keys() & about.keys()}
    told["results"] = len(files["results.jsonl"].splitlines())
    return sealed({**files, "submission.json": lined_json(told)})


@pytest.mark.slow
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
    assert done.output.startswith(f"{kept} of {kept} verdicts judged again from answers\n")


def test_what_belongs_to_the_run_is_told_in_the_manifest(run: Path, submission: Path) -> None:
    told = json.loads(content(submission)["submission.json"])
    about = json.loads((run / "run.json").read_text())
    assert told["kind"] == "submission"
    named = ("suite", "backends", "machine", "exit_code", "selection", "strength", "draws", "seed", "planned")
    assert {k: told[k] for k in named} == {k: about[k] for k in named}
    assert {"run.json", "results.jsonl", "outputs.jsonl", "certificates.jsonl"} <= told["files"].keys()


# Forgeries: whoever makes one seals the manifest anew, and puts the figures right where that is easy


def lines(files: Files, name: str, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
    found = [change(json.loads(line)) for line in files[name].splitlines()]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in found if line is not None)
    files[name] = text.encode()


def head(files: Files, **told: object) -> None:
    files["run.json"] = json.dumps(json.loads(files["run.json"]) | told).encode()


def passing(line: dict[str, Any]) -> dict[str, Any]:
    return line | ({"outcome": "pass", "level": "strict", "detail": None} if line["outcome"] == "wrong-value" else {})


def wrong_made_right(files: Files) -> None:
    lines(files, "results.jsonl", passing)


def better_figures(files: Files) -> None:
    told = json.loads(files["run.json"])
    told["figures"]["overall"]["correctness"] = 1.0
    head(files, figures=told["figures"])


def failures_left_out(files: Files) -> None:
    failed = {json.loads(line)["case"] for line in files["results.jsonl"].splitlines() if b'"wrong-value"' in line}
    for name in ("results.jsonl", "outputs.jsonl", "accuracy.jsonl", "certificates.jsonl"):
        if name in files:
            lines(files, name, lambda line: None if line["case"] in failed else line)
    told, left = json.loads(files["run.json"]), len(files["results.jsonl"].splitlines())
    told["figures"]["overall"]["cases"] = left
    head(files, planned=dict.fromkeys(told["planned"], left), figures=told["figures"], exit_code=0)


def waivers_smuggled_in(files: Files) -> None:
    def waived(line: dict[str, Any]) -> dict[str, Any]:
        detail = f"wrong-value, waived by w.yaml:1: known\n{line['detail']}"
        return line | ({"outcome": "waived", "detail": detail} if line["outcome"] == "wrong-value" else {})

    lines(files, "results.jsonl", waived)
    waiver = {
        "backend": "*", "outcome": "wrong-value", "reason": "known", "link": "https://example.org/9", "owner": "me",
        "expires": "2999-01-01", "place": "w.yaml:1", "case": "onnx/*",
    }  # fmt: skip
    told = json.loads(files["run.json"])
    head(files, terms=told["terms"] | {"waivers": [waiver]}, exit_code=0)


def exit_code_zero(files: Files) -> None:
    head(files, exit_code=0)


def passes_without_answers(files: Files) -> None:
    wrong_made_right(files)
    failed = [line for line in files["results.jsonl"].splitlines() if b'"uint32' in line or b"/uint32/" in line]
    cases = {json.loads(line)["case"] for line in failed}
    lines(files, "outputs.jsonl", lambda line: None if line["case"] in cases else line)


def a_case_of_another_plan(files: Files) -> None:
    head(files, selection=["onnx/ReduceMean-13/int32/2x*"])


def without_failing_answers(files: Files) -> None:
    failed = {json.loads(line)["case"] for line in files["results.jsonl"].splitlines() if b"/uint32/" in line}
    lines(files, "outputs.jsonl", lambda line: None if line["case"] in failed else line)


def passes_by_an_unknown_reason(files: Files) -> None:
    lines(files, "results.jsonl", lambda line: passing(line) | ({"reason": "x"} if "/uint32/" in line["case"] else {}))
    without_failing_answers(files)


def first_line(files: Files, name: str, **changes: object) -> None:
    first, _, rest = files[name].partition(b"\n")
    files[name] = json.dumps(json.loads(first) | changes, separators=(",", ":")).encode() + b"\n" + rest


def a_better_ratio(files: Files) -> None:
    first_line(files, "results.jsonl", bound_ratio=0.125)


def words_of_ones_own(files: Files) -> None:
    lines(files, "results.jsonl", lambda line: line | ({"detail": "all is well"} if line["detail"] else {}))


def words_on_a_pass(files: Files) -> None:
    lines(files, "results.jsonl", lambda line: line | ({"detail": "certified"} if line["outcome"] == "pass" else {}))


def a_reason_on_an_answer(files: Files) -> None:
    lines(files, "results.jsonl", lambda line: line | ({"reason": "type"} if line["outcome"] != "pass" else {}))


def a_clause_more(files: Files) -> None:
    lines(files, "results.jsonl", lambda line: line | {"clauses": [*line["clauses"], "onnx/ReduceMean#noop"]})


def a_behaviour_of_a_crash(files: Files) -> None:
    def crashed(line: dict[str, Any]) -> dict[str, Any]:
        ended = {"outcome": "crash", "detail": "the process died", "behaviour": {"accumulator": ["wide"]}}
        return line | (ended if line["outcome"] == "wrong-value" else {})

    lines(files, "results.jsonl", crashed)
    without_failing_answers(files)


def a_certificate_of_ones_own(files: Files) -> None:
    first_line(files, "certificates.jsonl", options=[])


def an_accuracy_of_no_answer(files: Files) -> None:
    def refused(line: dict[str, Any]) -> dict[str, Any]:
        told = {"outcome": "unsupported", "reason": "type", "detail": "no", "behaviour": {}, "bound_ratio": None}
        return line | (told if "/uint32/" in line["case"] else {})

    lines(files, "results.jsonl", refused)
    without_failing_answers(files)
    case = next(json.loads(line) for line in files["results.jsonl"].splitlines() if b"/uint32/" in line)
    files["accuracy.jsonl"] = (
        json.dumps({"case": case["case"], "backend": case["backend"], "type": "int32"}, separators=(",", ":")).encode()
        + b"\n"
    )


def lines_of_nobody(files: Files) -> None:
    files["outputs.jsonl"] += b'{"case":"onnx/Abs-13/float32/-/ramp","backend":"nobody","outputs":[]}\n'


def half_a_line_more(files: Files) -> None:
    files["results.jsonl"] += b'{"case":'


def nothing_at_all(files: Files) -> None:
    for name in ("results.jsonl", "outputs.jsonl", "certificates.jsonl"):
        files[name] = b""
    told = json.loads(files["run.json"])
    told["figures"]["overall"]["cases"] = 0
    head(files, planned={}, backends={}, selection=["onnx/Nothing-1"], figures=told["figures"], exit_code=0)


FORGERIES = {
    passes_by_an_unknown_reason: "pass without an answer, although the run kept all",
    a_better_ratio: "bound_ratio: 0.125 -> ",
    words_of_ones_own: "detail: does not follow from the answer",
    words_on_a_pass: "detail: does not follow from the answer",
    a_reason_on_an_answer: "reason: 'type' -> None",
    a_clause_more: "clauses: (",
    a_behaviour_of_a_crash: "behaviour: {'accumulator': ['wide']} -> {}",
    a_certificate_of_ones_own: "its certificate is not the one of this case",
    an_accuracy_of_no_answer: "has an accuracy, but no answer",
    lines_of_nobody: "outputs.jsonl: has lines that belong to no result",
    half_a_line_more: "results.jsonl: has lines that belong to no result",
    nothing_at_all: "there are no results",
    wrong_made_right: "wrong-value, ",
    better_figures: "run.json: figures: does not follow from the results",
    failures_left_out: "no result of ",
    waivers_smuggled_in: "run.json: waivers: none are named, but its terms have 1",
    exit_code_zero: "run.json: exit_code: 0, but 1 follows from the results",
    passes_without_answers: "pass without an answer, although the run kept all",
    a_case_of_another_plan: "outside the plan, such as onnx/ReduceMean-13/uint32/",
}


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forgery_does_not_hold_though_its_manifest_is_whole(
    forge: Callable[[Files], None], submission: Path, tmp_path: Path
) -> None:
    files = content(submission)
    forge(files)
    done = invoke("verify", packed(resealed(files), tmp_path / "s.zip"))
    assert done.exit_code == 1, done.output
    assert FORGERIES[forge] in done.output
    assert "does not hold: " in done.output.splitlines()[-1]


def test_a_challenge_of_another_seed_than_the_run_does_not_hold(run: Path, tmp_path: Path) -> None:
    (tmp_path / "backend.so").write_bytes(b"frozen")
    invoke("submit", run, "--out", tmp_path / "s.zip", "--frozen", tmp_path / "backend.so")
    files = content(tmp_path / "s.zip")
    told = json.loads(files["submission.json"])
    files["submission.json"] = lined_json(told | {"challenge": told["challenge"] | {"seed": 7}})
    done = invoke("verify", packed(sealed(files), tmp_path / "forged.zip"))
    assert (done.exit_code, "challenge: its seed is not that of run.json, 0" in done.output) == (1, True), done.output


INVALID = f"{V13}/uint32/3x2x2/axes=3/ramp/axis-too-large"


@pytest.mark.slow
def test_a_pass_by_a_refusal_is_not_proven_whatever_its_words(tmp_path: Path) -> None:
    with run_here():
        select = ("--select", f"{V13}/int32/2x*", "--select", INVALID, "--keep-outputs", "all")
        invoke("run", "python:fakes.backends:Right", *select, "--quiet", "--jobs", 1, "--out", tmp_path / "run")
    invoke("submit", tmp_path / "run", "--out", tmp_path / "s.zip")
    done = invoke("verify", tmp_path / "s.zip")
    first, *_, last = done.output.splitlines()
    assert (done.exit_code, last.startswith("not proven: ")) == (3, True)
    assert "not checked: 1 passes by a refusal; by the backend's word: 1 refusals" in first


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"draws": 1_000_000_000}, "draws: 1,000,000,000 for "),
        ({"shard": "1/999999999"}, "more than 100,000 shards"),
    ],
)
def test_a_plan_that_would_never_end_is_refused_before_it_is_made(
    changes: dict[str, object], words: str, submission: Path, tmp_path: Path
) -> None:
    files = content(submission)
    head(files, **changes)
    done = invoke("verify", packed(resealed(files), tmp_path / "s.zip"))
    assert (done.exit_code, words in done.output) == (2, True), done.output


def test_a_plan_of_more_cases_than_there_are_results_is_not_counted_to_its_end(
    submission: Path, tmp_path: Path
) -> None:
    files = content(submission)
    head(files, draws=50_000)
    done = invoke("verify", packed(resealed(files), tmp_path / "s.zip"))
    assert (done.exit_code, "no result of more than 100,000 cases" in done.output) == (1, True), done.output


def test_what_is_repeated_from_the_archive_is_printed_as_claimed(submission: Path) -> None:
    claimed = [line for line in invoke("verify", submission).output.splitlines() if line.startswith("claimed: ")]
    assert "backends python:fakes.backends:WrongOnUint32" in claimed[0]
    assert "started 20" in claimed[0]
    assert "machine, facts, times, deaths" in claimed[1]


@pytest.mark.slow
def test_a_manifest_that_says_other_than_its_run_does_not_hold(submission: Path, tmp_path: Path) -> None:
    files = content(submission)
    exit_code_zero(files)
    done = invoke("verify", packed(sealed(files), tmp_path / "s.zip"))
    assert (done.exit_code, "exit_code: the manifest and run.json differ" in done.output) == (1, True)


def declared(folder: Path) -> Files:
    """The submission of a run that is right only by the arithmetic that it declares."""
    (folder / "tf32.yaml").write_text("float64: {compute: float32}\n")
    with run_here():
        select = ("--select", "onnx/Mean-6/float64/*/mixed", "--keep-outputs", "all")
        declaring = ("--arithmetic", folder / "tf32.yaml", "--quiet")
        invoke("run", "python:fakes.backends:DoubleAsFloat", *select, *declaring, "--jobs", 1, "--out", folder / "run")
    invoke("submit", folder / "run", "--out", folder / "s.zip")
    return content(folder / "s.zip")


@pytest.mark.slow
def test_a_declaration_cannot_be_hidden(tmp_path: Path) -> None:
    files = declared(tmp_path)
    done = invoke("verify", tmp_path / "s.zip")
    assert (done.exit_code, "declared arithmetic: float64" in done.output) == (0, True), done.output
    head(files, arithmetic=None)
    hidden = invoke("verify", packed(resealed(files), tmp_path / "hidden.zip"))
    assert (hidden.exit_code, "run.json: arithmetic: its terms declare some" in hidden.output) == (1, True)
    head(files, terms=json.loads(files["run.json"])["terms"] | {"arithmetic": None})
    gone = invoke("verify", packed(resealed(files), tmp_path / "gone.zip"))
    assert (gone.exit_code, "right only under declared arithmetic, but none is declared" in gone.output) == (1, True)


@pytest.mark.slow
def test_what_was_not_kept_is_not_proven_and_the_first_line_says_so(tmp_path: Path) -> None:
    with run_here():
        select = ("--select", f"{V13}/int32/2x*", "--select", f"{V13}/uint32/3x2x2/axes=3/ramp/axis-too-large")
        invoke("run", "python:fakes.backends:Right", *select, "--quiet", "--jobs", 1, "--out", tmp_path / "run")
    invoke("submit", tmp_path / "run", "--out", tmp_path / "s.zip")
    done = invoke("verify", tmp_path / "s.zip")
    first, *_, last = done.output.splitlines()
    results = len((tmp_path / "run" / "results.jsonl").read_text().splitlines())
    assert (done.exit_code, last.startswith("not proven: ")) == (3, True)
    assert first.startswith(f"0 of {results} verdicts judged again from answers; not checked: ")
    assert "answers that were not kept" in first
    assert "by the backend's word: 1 refusal" in first


@pytest.mark.slow
def test_a_seed_that_was_announced_after_the_files_is_demanded(run: Path, tmp_path: Path) -> None:
    binary = tmp_path / "backend.so"
    binary.write_bytes(b"frozen")
    invoke("submit", run, "--out", tmp_path / "s.zip", "--frozen", binary)
    told = json.loads(content(tmp_path / "s.zip")["submission.json"])
    assert told["challenge"] == {"seed": 0, "frozen": {"backend.so": hashlib.sha256(b"frozen").hexdigest()}}
    right, wrong = (invoke("verify", tmp_path / "s.zip", "--seed", seed) for seed in (0, 7))
    assert (right.exit_code, wrong.exit_code) == (0, 1)
    assert "challenge: seed 0, announced after these files were frozen: backend.so (sha256 " in right.output
    assert "seed: 0, but 7 was announced" in wrong.output


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
    assert "not a valid path" in done.output
    signed = invoke("verify", tmp_path / "s.zip", "--key", "public.pem")
    assert (signed.exit_code, "not a valid path" in signed.output) == (2, True)


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
    assert (done.exit_code, "submission.json: has kind 'submission', schema 9" in done.output) == (2, True)
    (tmp_path / "half.zip").write_bytes(submission.read_bytes()[:2000])
    for words in ((), ("--key", "public.pem")):
        done = invoke("verify", tmp_path / "half.zip", *words)
        assert (done.exit_code, "half.zip: not a complete zip archive" in done.output) == (2, True)


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


@pytest.mark.slow
def test_a_signature_is_checked_against_the_key_that_is_given(run: Path, submission: Path, tmp_path: Path) -> None:
    (mine, public), (_, other) = keys(tmp_path, "mine"), keys(tmp_path, "other")
    signed = tmp_path / "signed.zip"
    assert invoke("submit", run, "--out", signed, "--sign", mine).exit_code == 0
    right, wrong = invoke("verify", signed, "--key", public), invoke("verify", signed, "--key", other)
    none = invoke("verify", submission, "--key", public)
    assert (right.exit_code, wrong.exit_code, none.exit_code) == (0, 1, 1)
    assert "signature: valid for this key" in right.output
    assert "signature: made with another key" in wrong.output
    assert "signature: none" in none.output
    for failed in (wrong, none):
        assert "does not hold: 1 mistake" in failed.output
        assert "\nholds" not in failed.output
    assert invoke("verify", signed).exit_code == 0


@pytest.mark.slow
def test_a_manifest_that_was_sealed_anew_is_not_what_was_signed(run: Path, tmp_path: Path) -> None:
    mine, public = keys(tmp_path, "mine")
    signed = tmp_path / "signed.zip"
    invoke("submit", run, "--out", signed, "--sign", mine)
    files = content(signed)
    signature = files.pop("submission.sig")
    better_figures(files)
    forged = packed({**sealed(files), "submission.sig": signature}, tmp_path / "forged.zip")
    assert "signature: made with another key" in invoke("verify", forged, "--key", public).output


def test_what_is_no_key_is_refused(run: Path, submission: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    none = tmp_path / "none.pem"
    none.write_text("no key\n")
    for words in (("submit", run, "--out", tmp_path / "s.zip", "--sign", none), ("verify", submission, "--key", none)):
        done = invoke(*words)
        assert done.exit_code == 2
        assert "expected an Ed25519 key in PEM" in done.output

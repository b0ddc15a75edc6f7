"""`opconform verify`: every change shows; what is damaged or hostile is refused by its name."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.specs import some, verified

from opconform.cases.batch import cases_of
from opconform.cases.corpus.cases import CorpusCases
from opconform.cases.corpus.files import CorpusError
from opconform.cases.corpus.manifest import Sums
from opconform.cli import main

DIGESTS = ("case_digest", "expectation_digest")


def resealed(corpus: Path, change: Callable[[Path], object]) -> None:
    """Change files, and make sums that agree with them, as somebody who forges a corpus does."""
    change(corpus)
    files = {f.relative_to(corpus).as_posix(): f for f in corpus.rglob("*") if f.is_file() and f.name != "SHA256SUMS"}
    sums = {path: hashlib.sha256(file.read_bytes()).hexdigest() for path, file in files.items()}
    (corpus / "SHA256SUMS").write_bytes(Sums(sums).to_bytes())
    sizes = [file.stat().st_size for path, file in files.items() if path != "manifest.json"]
    told = json.loads((corpus / "manifest.json").read_text())
    if (told["files"], told["bytes"]) != (len(sizes), sum(sizes)):
        resealed(
            corpus, lambda _: edited(corpus / "manifest.json", lambda t: t.update(files=len(sizes), bytes=sum(sizes)))
        )


def edited(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    told = json.loads(file.read_text())
    change(told)
    file.write_text(json.dumps(told))


# What changed


def test_a_whole_corpus_is_told_with_its_digest(made: Path) -> None:
    for name in ("onnx", "onnx.zip", "npz", "npz.zip"):
        done = verified(made / name)
        assert done.exit_code == 0, done.output
        assert f"digest {CorpusCases(made / name).sums.digest}" in done.output


@pytest.mark.parametrize("form", ["onnx", "npz"])
def test_each_of_a_hundred_changed_bytes_is_found(form: str, made: Path, tmp_path: Path) -> None:
    chance = random.Random(20_25)
    folder = shutil.copytree(made / form, tmp_path / "corpus")
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    sizes = [file.stat().st_size for file in files]
    for number in range(100):
        told = [folder / name for name in ("manifest.json", "SHA256SUMS", "cases.txt")]
        file = chance.choices(files, sizes)[0] if number % 4 else told[number // 4 % 3]
        content = bytearray(file.read_bytes())
        content[chance.randrange(len(content))] ^= chance.randrange(1, 256)
        whole = file.read_bytes()
        file.write_bytes(content)
        done = verified(folder)
        assert done.exit_code in (1, 2), (file, done.output)
        # a path that is changed in the sums is missing, and there is one too many
        assert file.name in done.output or (file.name == "SHA256SUMS" and "missing: " in done.output)
        file.write_bytes(whole)
    assert verified(folder).exit_code == 0


@pytest.mark.parametrize("form", ["onnx", "npz"])
def test_each_of_a_hundred_changed_bytes_of_an_archive_is_found(form: str, made: Path, tmp_path: Path) -> None:
    chance, whole = random.Random(7), (made / f"{form}.zip").read_bytes()
    places = [chance.randrange(len(whole)) for _ in range(60)] + [len(whole) - 1 - 3 * n for n in range(40)]
    for place in places:
        content = bytearray(whole)
        content[place] ^= chance.randrange(1, 256)
        (tmp_path / "changed.zip").write_bytes(content)
        done = verified(tmp_path / "changed.zip")
        assert done.exit_code in (1, 2), place
        assert "changed.zip" in done.output


def test_a_missing_an_added_and_a_changed_file_are_told_by_name(corpus: Path) -> None:
    gone = some(corpus, "bounds.pb")
    gone.unlink()
    done = verified(corpus)
    assert (done.exit_code, gone.relative_to(corpus).as_posix() in done.output) == (1, True)
    assert "missing: " in done.output
    gone.touch()
    assert "changed: " in verified(corpus).output
    (corpus / "values" / "more.txt").touch()
    done = verified(corpus)
    assert "2 differences" in done.output
    assert "added: values/more.txt" in done.output
    assert "and 1 more" in done.output


def test_an_archive_made_by_another_program_is_read_as_well(made: Path, tmp_path: Path) -> None:
    packed = tmp_path / "other.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted((made / "npz").rglob("*")):
            archive.write(file, file.relative_to(made / "npz"))
    assert verified(packed).exit_code == 0


# What is damaged


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.98])
def test_a_truncated_archive_is_refused(share: float, made: Path, tmp_path: Path) -> None:
    content = (made / "npz.zip").read_bytes()
    (tmp_path / "half.zip").write_bytes(content[: int(len(content) * share)])
    done = verified(tmp_path / "half.zip")
    assert done.exit_code == 2
    assert "half.zip: not a complete zip archive" in done.output


def test_a_foreign_schema_is_refused_by_its_version(corpus: Path) -> None:
    edited(corpus / "manifest.json", lambda told: told.update(schema=1))
    done = verified(corpus)
    assert done.exit_code == 2
    assert "manifest.json: has schema 1; this version of opconform reads schema 2" in done.output


def test_a_folder_that_is_no_corpus_is_refused(tmp_path: Path) -> None:
    done = verified(tmp_path)
    assert done.exit_code == 2
    assert "manifest.json" in done.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "no JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"schema": NaN}', "NaN is not a JSON number"),
        (b'{"schema": 2, "schema": 2}', "twice"),
        (b'{"schema": 2}', "not a manifest of schema 2"),
        (b'{"schema": ' + b"1" * 10_000 + b"}", "no JSON"),
        (b"\xff", "no JSON"),
        (b"3", "expected a JSON object"),
    ],
)
def test_a_manifest_that_is_none_is_refused(text: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(text)
    done = verified(tmp_path)
    assert done.exit_code == 2
    assert f"{tmp_path}: manifest.json: " in done.output
    assert said in done.output


def damaged_descriptor(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    return lambda corpus: edited(some(corpus / "values", "case.json"), change)


def damaged_tensor(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda corpus: some(corpus / "values", name).write_bytes(content)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (damaged_descriptor(lambda told: told.update(schema=7)), "has schema 7"),
        (damaged_descriptor(lambda told: told.pop("options")), "not a descriptor of schema 2"),
        (
            damaged_descriptor(lambda told: told["inputs"][0].update(shape=[1, 2, 3, 4])),
            "does not match the descriptor",
        ),
        (damaged_descriptor(lambda told: told["options"][0].update(kind="perhaps")), "perhaps"),
        (damaged_descriptor(lambda told: told["options"][0]["labels"].update(more="one")), "silence that is not open"),
        (damaged_descriptor(lambda told: told["program"].update(opset=99)), "do not match the case_digest"),
        (damaged_descriptor(lambda told: told.update(id="another")), "manifest.json has"),
        (damaged_tensor("input_0.pb", b"\xff\xff"), "no TensorProto of ONNX"),
        (damaged_tensor("input_0.pb", b""), "data_type 0"),
        (damaged_tensor("bounds.pb", b""), "is missing"),
    ],
)
def test_a_case_that_contradicts_itself_is_refused_by_its_file(
    change: Callable[[Path], object], said: str, corpus: Path
) -> None:
    resealed(corpus, change)
    done = verified(corpus)
    assert done.exit_code == 1
    assert said in done.output
    read = CorpusCases(corpus)
    folder = some(corpus / "values", "case.json").parent.relative_to(corpus).as_posix()
    text = next(text for text, entry in read.manifest.cases.items() if entry.folder == folder)
    with pytest.raises(CorpusError, match=r"(?s)case\.json|\.pb") as refused:
        read.case(text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("clauses.json", lambda told: told.update(dict.fromkeys(told, "rule")), "expected text, status, source"),
        ("clauses.json", lambda told: next(iter(told.values())).pop("text"), "expected text, status, source"),
        ("clauses.json", lambda told: told.pop(next(iter(told))), "has no clause"),
        ("manifest.json", lambda told: told["selection"].update(siblings=5), "a list of cases in this manifest"),
        ("manifest.json", lambda told: told["selection"].update(siblings=["no/case"]), "expected a list of cases"),
        (
            "manifest.json",
            lambda told: told["cases"].update(one={"folder": "../up"} | dict.fromkeys(DIGESTS, "")),
            "up",
        ),
    ],
)
def test_what_a_forger_writes_beside_the_cases_is_refused_by_its_file(
    name: str, change: Callable[[dict[str, Any]], object], said: str, corpus: Path, tmp_path: Path
) -> None:
    resealed(corpus, lambda _: edited(corpus / name, change))
    done = verified(corpus)
    assert (done.exit_code in (1, 2), name in done.output, said in done.output) == (True, True, True), done.output


def test_a_descriptor_without_labels_is_refused_when_a_run_asks_for_its_silences(corpus: Path) -> None:
    for options in (5, [5], [{"labels": 5}], [{}]):
        resealed(corpus, damaged_descriptor(lambda told, new=options: told.update(options=new)))
        words = ["run", "python:fakes.backends:Right", "--corpus", str(corpus), "--require", "axes-duplicate=as-once"]
        done = CliRunner().invoke(main, words)
        assert (done.exit_code, "case.json: not a descriptor of schema 2" in done.output) == (2, True), done.output


def test_a_file_that_is_not_that_of_the_sums_is_refused_when_it_is_read(corpus: Path) -> None:
    file = some(corpus, "input_0.pb")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    read = CorpusCases(corpus)
    with pytest.raises(CorpusError, match=r"input_0\.pb: its sha256 differs from the one in SHA256SUMS"):
        list(cases_of(read, read.ids()))


def test_sums_that_are_none_are_refused_by_their_line(corpus: Path) -> None:
    whole = (corpus / "SHA256SUMS").read_text()
    first = whole.splitlines(keepends=True)[0]
    for text, said in (
        (first.upper(), "SHA256SUMS:1: expected a sha256 in lower case"),
        (first + first, "SHA256SUMS:2: "),
        (first[:64] + "  ../up\n", "not a valid path"),
        (first[:64] + "  SHA256SUMS\n", "the path of another file"),
        (whole[:-1], "each path once; read"),
    ):
        (corpus / "SHA256SUMS").write_text(text)
        done = verified(corpus)
        assert (done.exit_code, said in done.output) == (2, True), done.output
    (corpus / "SHA256SUMS").write_text(whole[len(first) :] + first)
    assert "changed: SHA256SUMS (its lines are not sorted)" in verified(corpus).output


def test_an_index_that_is_not_the_cases_is_refused(corpus: Path) -> None:
    text = (corpus / "cases.txt").read_text()
    resealed(corpus, lambda _: (corpus / "cases.txt").write_text(text.replace("option values", "option anything", 1)))
    done = verified(corpus)
    assert (done.exit_code, "changed: cases.txt (it does not match the cases)" in done.output) == (1, True)


def test_a_manifest_that_tells_other_counts_or_sizes_is_refused(corpus: Path) -> None:
    for key, said in (("counts", "its counts do not match"), ("bytes", "it says ")):
        whole = (corpus / "manifest.json").read_bytes()

        def change(told: dict[str, Any], key: str = key) -> None:
            told[key] = told[key] + 1 if key == "bytes" else dict.fromkeys(told[key], 1)

        edited(corpus / "manifest.json", change)
        sums = (corpus / "SHA256SUMS").read_text().splitlines()
        made = hashlib.sha256((corpus / "manifest.json").read_bytes()).hexdigest()
        lines = [f"{made}  manifest.json" if line.endswith("  manifest.json") else line for line in sums]
        (corpus / "SHA256SUMS").write_text("".join(f"{line}\n" for line in lines))
        done = verified(corpus)
        assert (done.exit_code, said in done.output) == (1, True), done.output
        (corpus / "manifest.json").write_bytes(whole)

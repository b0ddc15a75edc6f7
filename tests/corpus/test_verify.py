"""`opconform verify`: every change shows; what is damaged or hostile is refused by its name."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from opconform.cases.corpus import CorpusCases
from opconform.cases.corpus_files import ArchiveFiles, ArchiveSink
from opconform.cases.corpus_json import CorpusError, read_json
from opconform.cases.corpus_manifest import Sums
from opconform.cases.corpus_tensors import read_npy, read_npz, read_tensor_file, write_npy
from opconform.cli import main

SELECT = ("--select", "onnx/ReduceMean-18/bfloat16/4x4/*", "--select", "onnx/ReduceMean-18/int32/3x2x2/*/axi*")


DIGESTS = ("case_digest", "expectation_digest")


def verified(path: Path) -> Result:
    return CliRunner().invoke(main, ["verify", str(path)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus in both forms, each as a folder and as an archive."""
    folder = tmp_path_factory.mktemp("made")
    for form in ("onnx", "npz"):
        words = ["--out", str(folder / form), "--pack", str(folder / f"{form}.zip"), *SELECT]
        assert CliRunner().invoke(main, ["export", "--format", form, *words]).exit_code == 0
    return folder


@pytest.fixture
def corpus(made: Path, tmp_path: Path) -> Path:
    """A corpus to damage."""
    return shutil.copytree(made / "onnx", tmp_path / "corpus")


def some(corpus: Path, name: str) -> Path:
    return sorted(corpus.rglob(name))[0]


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
    assert "half.zip: no whole zip archive" in done.output


def test_a_foreign_schema_is_refused_by_its_version(corpus: Path) -> None:
    edited(corpus / "manifest.json", lambda told: told.update(schema=1))
    done = verified(corpus)
    assert done.exit_code == 2
    assert "manifest.json: of schema 1; this version of opconform reads schema 2" in done.output


def test_a_folder_that_is_no_corpus_is_refused(tmp_path: Path) -> None:
    done = verified(tmp_path)
    assert done.exit_code == 2
    assert "manifest.json" in done.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "no JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"schema": NaN}', "NaN is no number"),
        (b'{"schema": 2, "schema": 2}', "twice"),
        (b'{"schema": 2}', "no manifest of schema 2"),
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
        (damaged_descriptor(lambda told: told.update(schema=7)), "of schema 7"),
        (damaged_descriptor(lambda told: told.pop("options")), "no descriptor of schema 2"),
        (damaged_descriptor(lambda told: told["inputs"][0].update(shape=[1, 2, 3, 4])), "is not what the descriptor"),
        (damaged_descriptor(lambda told: told["options"][0].update(kind="perhaps")), "perhaps"),
        (damaged_descriptor(lambda told: told["options"][0]["labels"].update(more="one")), "not those of its expect"),
        (damaged_descriptor(lambda told: told["program"].update(opset=99)), "not those of its case_digest"),
        (damaged_descriptor(lambda told: told.update(id="another")), "manifest.json has"),
        (damaged_tensor("input_0.pb", b"\xff\xff"), "no message of ONNX"),
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
        ("manifest.json", lambda told: told["selection"].update(siblings=5), "expected a list of cases that are there"),
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
        assert (done.exit_code, "case.json: no descriptor of schema 2" in done.output) == (2, True), done.output


def test_a_file_that_is_not_that_of_the_sums_is_refused_when_it_is_read(corpus: Path) -> None:
    file = some(corpus, "input_0.pb")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    read = CorpusCases(corpus)
    with pytest.raises(CorpusError, match=r"input_0\.pb: not the file that SHA256SUMS tells"):
        list(read.cases(read.ids()))


def test_sums_that_are_none_are_refused_by_their_line(corpus: Path) -> None:
    whole = (corpus / "SHA256SUMS").read_text()
    first = whole.splitlines(keepends=True)[0]
    for text, said in (
        (first.upper(), "SHA256SUMS:1: expected a sha256 in lower case"),
        (first + first, "SHA256SUMS:2: "),
        (first[:64] + "  ../up\n", "no path of a file"),
        (first[:64] + "  SHA256SUMS\n", "the path of another file"),
        (whole[:-1], "each once; read"),
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
    assert (done.exit_code, "changed: cases.txt (it is not what the cases are)" in done.output) == (1, True)


def test_a_manifest_that_tells_other_counts_or_sizes_is_refused(corpus: Path) -> None:
    for key, said in (("counts", "its counts are not those"), ("bytes", "it tells ")):
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


# What is hostile


def with_entry(archive: Path, target: Path, entry: zipfile.ZipInfo, content: bytes) -> Path:
    """Copy an archive with one entry more, or another."""
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name != entry.filename:
                new.writestr(name, old.read(name))
        entry.compress_type = zipfile.ZIP_DEFLATED
        new.writestr(entry, content)
    return target


def link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("values/link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("entry", "content", "said"),
    [
        (zipfile.ZipInfo("../../up"), b"x", "'../../up' is no path of a file"),
        (link(), b"/etc/passwd", "values/link is a link"),
        (zipfile.ZipInfo("/etc/more"), b"x", "'/etc/more' is no path of a file"),
        (zipfile.ZipInfo("clauses.json"), bytes(50_000_000), "bytes that unpack to 50,000,000"),
        (zipfile.ZipInfo("clauses.json"), bytes(5_000_000), "clauses.json (larger than the"),
        (zipfile.ZipInfo("values/more"), bytes(5_000_000), "added: values/more"),
        (zipfile.ZipInfo("manifest.json"), b'{"schema": 3}', "manifest.json: of schema 3; this version"),
        (zipfile.ZipInfo("cases.txt"), b"", "changed: cases.txt"),
    ],
)
def test_verify_and_run_refuse_a_hostile_archive_by_the_name_of_the_file(
    entry: zipfile.ZipInfo, content: bytes, said: str, made: Path, tmp_path: Path
) -> None:
    hostile = with_entry(made / "npz.zip", tmp_path / "hostile.zip", entry, content)
    done = verified(hostile)
    assert done.exit_code in (1, 2)
    assert "hostile.zip" in done.output
    assert said in done.output
    words = ["run", "python:fakes.backends:Right", "--corpus", str(hostile), "--out", str(tmp_path / "out")]
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 2
    assert said in ran.output
    assert not (tmp_path / "out").exists()


def archive_with(folder: Path, *entries: zipfile.ZipInfo, method: int = zipfile.ZIP_STORED) -> Path:
    file = folder / "hostile.zip"
    with zipfile.ZipFile(file, "w", method) as archive:
        for entry in entries:
            archive.writestr(entry, b"x" * 100)
    return file


@pytest.mark.parametrize("name", ["../up", "/root", "a/../../up", "C:/x", "a\\b", "a//b", "a\nb", "./a", "a/ "])
def test_a_path_that_leaves_the_archive_is_refused(name: str, tmp_path: Path) -> None:
    file = archive_with(tmp_path, zipfile.ZipInfo(name))
    with pytest.raises(CorpusError, match=r"hostile\.zip: .* is no path of a file in a corpus"):
        ArchiveFiles(file).sizes()


def test_links_and_devices_in_an_archive_are_refused(tmp_path: Path) -> None:
    for kind in (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO):
        entry = zipfile.ZipInfo("link")
        entry.external_attr = (kind | 0o777) << 16
        with pytest.raises(CorpusError, match="is a link or a device"):
            ArchiveFiles(archive_with(tmp_path, entry)).sizes()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_are_one_on_some_file_systems_are_refused(tmp_path: Path) -> None:
    for one, other in (("a", "a"), ("a/B", "A/b")):
        with pytest.raises(CorpusError, match="stands there twice"):
            ArchiveFiles(archive_with(tmp_path, zipfile.ZipInfo(one), zipfile.ZipInfo(other))).sizes()


def test_a_link_in_a_folder_is_refused(corpus: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    file = some(corpus, "case.json")
    file.rename(outside)
    file.symlink_to(outside)
    done = verified(corpus)
    assert done.exit_code == 2
    assert "a link" in done.output
    read = CorpusCases(corpus)
    with pytest.raises(CorpusError, match="a link"):
        list(read.cases(read.ids()))


def test_a_file_that_unpacks_to_more_than_is_told_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(5_000_000))
    assert bomb.stat().st_size < 10_000
    with pytest.raises(CorpusError, match="larger than the 1,000 bytes"):
        ArchiveFiles(bomb).read("zeros", 1000)
    content = bytearray(bomb.read_bytes())
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):  # where each header tells the size
        struct.pack_into("<I", content, content.index(mark) + place, 10)
    bomb.write_bytes(content)
    with pytest.raises(CorpusError, match="cannot be unpacked"):
        ArchiveFiles(bomb).read("zeros", 1000)


def test_a_small_archive_of_a_large_file_is_refused_and_none_is_written(tmp_path: Path) -> None:
    file, zeros = tmp_path / "bomb.zip", bytes(9 << 20)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", zeros)
    with pytest.raises(
        CorpusError, match=r"bomb\.zip: zeros: [\d,]+ bytes that unpack to 9,437,184; expected 200 times"
    ):
        ArchiveFiles(file).sizes()
    sink = ArchiveSink(tmp_path / "ours.zip")
    sink.write("zeros", zeros)
    sink.close()
    assert ArchiveFiles(tmp_path / "ours.zip").read("zeros") == zeros


def test_a_size_beyond_the_limit_is_refused_before_anything_is_unpacked(tmp_path: Path) -> None:
    file = archive_with(tmp_path, zipfile.ZipInfo("zeros"))
    content = bytearray(file.read_bytes())
    struct.pack_into("<I", content, content.index(b"PK\x01\x02") + 24, (1 << 30) + 1)
    file.write_bytes(content)
    with pytest.raises(CorpusError, match="more than 1,073,741,824 bytes"):
        ArchiveFiles(file).sizes()


def test_files_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    file = archive_with(tmp_path, zipfile.ZipInfo("a"), zipfile.ZipInfo("b"))
    content = bytearray(file.read_bytes())
    second = content.rindex(b"PK\x01\x02")
    struct.pack_into("<I", content, second + 42, 0)  # where the second file begins
    file.write_bytes(content)
    with pytest.raises(CorpusError, match="overlaps"):
        ArchiveFiles(file).sizes()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x02\x00" + write_npy(np.zeros(3))[8:],
        write_npy(np.zeros(3))[:-1],
        write_npy(np.zeros(3)).replace(b"(3,)", b"(9,)"),
        write_npy(np.zeros(3)).replace(b"<f8", b"|O8"),
        write_npy(np.zeros(3)).replace(b"<f8", b"<q9"),
        write_npy(np.zeros((1, 1, 1))).replace(b"(1, 1, 1)", b"(1,,1, 1)"),
    ],
)
def test_an_array_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(CorpusError, match=r"^a\.npy: "):
        read_npy(content, "a.npy")


def test_tensors_that_are_none_are_refused() -> None:
    from onnx import TensorProto

    for tensor in (
        TensorProto(data_type=1, dims=[2], raw_data=bytes(4)),
        TensorProto(data_type=1, dims=[-1], raw_data=bytes(4)),
        TensorProto(data_type=1, dims=[1 << 62, 1 << 62], raw_data=bytes(4)),
        TensorProto(data_type=8, dims=[1], string_data=[b"x"]),
    ):
        with pytest.raises(CorpusError, match=r"^x\.pb: "):
            read_tensor_file(tensor.SerializeToString(), "x.pb")
    with pytest.raises(CorpusError, match=r"^x\.npz: no whole zip"):
        read_npz(b"PK", "x.npz")
    with pytest.raises(CorpusError, match=r"^x\.json: "):
        read_json(b"[1]", "x.json")

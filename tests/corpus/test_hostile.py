"""What is hostile in a corpus, an archive or a tensor is refused by its name."""

from __future__ import annotations

import stat
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from fakes.specs import some, verified

from opconform.cases.batch import cases_of
from opconform.cases.corpus.cases import CorpusCases
from opconform.cases.corpus.files import ArchiveFiles, ArchiveSink, CorpusError, read_json
from opconform.cases.corpus.tensors import read_npy, read_npz, read_value_file, write_npy
from opconform.cli import main


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
        (zipfile.ZipInfo("../../up"), b"x", "'../../up' is not a valid path"),
        (link(), b"/etc/passwd", "values/link is a link"),
        (zipfile.ZipInfo("/etc/more"), b"x", "'/etc/more' is not a valid path"),
        (zipfile.ZipInfo("clauses.json"), bytes(50_000_000), "bytes that unpack to 50,000,000"),
        (zipfile.ZipInfo("clauses.json"), bytes(5_000_000), "clauses.json (larger than the"),
        (zipfile.ZipInfo("values/more"), bytes(5_000_000), "added: values/more"),
        (zipfile.ZipInfo("manifest.json"), b'{"schema": 3}', "manifest.json: has schema 3; this version"),
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
    with pytest.raises(CorpusError, match=r"hostile\.zip: .* is not a valid path in a corpus"):
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
        with pytest.raises(CorpusError, match="appears twice"):
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
        list(cases_of(read, read.ids()))


def test_a_file_that_unpacks_to_more_than_is_told_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(5_000_000))
    assert bomb.stat().st_size < 10_000
    with pytest.raises(CorpusError, match="larger than the declared 1,000 bytes"):
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
        TensorProto(data_type=8, dims=[2], string_data=[b"x"]),
        TensorProto(data_type=99, dims=[1], raw_data=b"x"),
        TensorProto(data_type=22, dims=[3], raw_data=b"x"),
    ):
        with pytest.raises(CorpusError, match=r"^x\.pb: "):
            read_value_file(tensor.SerializeToString(), "float32", "x.pb")
    with pytest.raises(CorpusError, match=r"^x\.npz: not a complete zip"):
        read_npz(b"PK", "x.npz")
    with pytest.raises(CorpusError, match=r"^x\.json: "):
        read_json(b"[1]", "x.json")


def test_values_that_are_none_of_their_type_are_refused() -> None:
    from onnx import MapProto, OptionalProto, SequenceProto, TensorProto

    one = TensorProto(data_type=1, dims=[1], raw_data=bytes(4))
    other = TensorProto(data_type=7, dims=[1], raw_data=bytes(8))
    odd = [
        ("seq(float32)", SequenceProto(elem_type=1, tensor_values=[other])),
        ("seq(float32)", SequenceProto(elem_type=3, tensor_values=[one])),
        ("seq(seq(float32))", SequenceProto(elem_type=1, tensor_values=[one])),
        ("optional(int64)", OptionalProto(elem_type=1, tensor_value=one)),
        ("optional(seq(int64))", OptionalProto(elem_type=1, tensor_value=other)),
        ("map(int64,float32)", MapProto(key_type=7, keys=[1, 2])),
        ("map(int64,float32)", MapProto(key_type=7, keys=[1, 2], values=SequenceProto(tensor_values=[one]))),
        ("map(int8,float32)", MapProto(key_type=7, keys=[1], values=SequenceProto(tensor_values=[one]))),
    ]
    for type_, message in odd:
        with pytest.raises(CorpusError, match=r"^x\.pb: "):
            read_value_file(message.SerializeToString(), type_, "x.pb")
    with pytest.raises(CorpusError, match=r"^x\.pb: "):
        read_value_file(b"\xff", "seq(float32)", "x.pb")

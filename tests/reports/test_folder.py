from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from fakes.results import case, invalid, result, write_folder

from opconform.cases.errors import OpconformError
from opconform.cli import main
from opconform.reports.folder import ResultsFolder, companions, deflated, inflated
from opconform.reports.runs import read_results, read_run
from opconform.runners.execution.running import Judged

RESULTS = [
    result(clauses=("onnx/ReduceMean#mean",), behaviour={"flush": ["none", "output"]}, bound_ratio=0.25, seconds=0.001),
    result("crash", case=case(fill="nan"), detail="it said \x1b[31m\x00 ü \u2028 \n\r<&>"),
    invalid("accepted-invalid"),
]


def written(path: Path) -> Path:
    folder = path / "results"
    with ResultsFolder.create(folder) as out:
        for one in RESULTS:
            out.add(one.to_json())
    return folder


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    folder = written(tmp_path)
    assert list(read_results(folder)) == RESULTS
    assert list(read_results(folder / "results.jsonl")) == RESULTS


def test_a_result_is_on_disk_once_it_was_added_though_none_follows(tmp_path: Path) -> None:
    with ResultsFolder.create(tmp_path / "new" / "deep") as out:
        for count, one in enumerate(RESULTS, 1):
            out.add(one.to_json())
            assert (tmp_path / "new/deep/results.jsonl").read_bytes().count(b"\n") == count


def test_what_stands_beside_a_result_is_in_a_file_of_its_own(tmp_path: Path) -> None:
    with ResultsFolder.create(tmp_path) as out:
        for count in (1, 2):
            out.add(RESULTS[0].to_json(), beside=[("outputs.jsonl", b'{"number":%d}' % count)])
            assert [json.loads(line)["number"] for line in (tmp_path / "outputs.jsonl").open()] == [1, 2][:count]
    assert sorted(f.name for f in tmp_path.iterdir()) == ["outputs.jsonl", "results.jsonl"]


def test_each_line_is_strict_ascii_json_with_the_fixed_keys(tmp_path: Path) -> None:
    lines = (written(tmp_path) / "results.jsonl").read_text(encoding="ascii").splitlines()
    keys = (
        "case backend outcome behaviour reason detail bound_ratio level clauses case_digest expectation_digest seconds"
    )
    assert [list(json.loads(line)) for line in lines] == [keys.split()] * 3


def test_a_torn_last_line_is_dropped_and_any_other_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path)
    file = folder / "results.jsonl"
    whole = file.read_bytes()
    for length in (1, 10, len(RESULTS[2].to_json())):
        file.write_bytes(whole[: -length - 1])
        assert list(read_results(folder)) == RESULTS[:2]
    file.write_bytes(whole[:-1])
    assert list(read_results(folder)) == RESULTS[:2], "without its end a line may be a part of itself"
    file.write_bytes(whole.replace(b'"crash"', b'"crush"'))
    with pytest.raises(OpconformError, match=r"results\.jsonl:2: not a result: Invalid enum value 'crush'"):
        list(read_results(folder))


@pytest.mark.parametrize("at", ["between lines", "within a line"])
def test_results_of_a_finished_run_that_were_truncated_are_named_as_that(tmp_path: Path, at: str) -> None:
    figures = {"overall": {"cases": len(RESULTS)}}
    folder = write_folder(tmp_path / "results", RESULTS, figures=figures)
    assert list(read_results(folder)) == RESULTS
    lines = (folder / "results.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "results.jsonl").write_bytes(b"".join(lines[:2])[: None if at == "between lines" else -5])
    with pytest.raises(OpconformError, match=r"results\.jsonl: truncated: [12] whole lines?, but run\.json counts 3"):
        list(read_results(folder))
    done = CliRunner().invoke(main, ["report", str(folder)])
    assert (done.exit_code, "truncated" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 5000,
        RESULTS[0].to_json().replace(b'{"flush":["none","output"]}', b"[]"),
        RESULTS[0].to_json().replace(b'["none","output"]', b"1"),
        RESULTS[0].to_json().replace(b'"alpha"', b"1"),
        RESULTS[0].to_json().replace(b"0.001", b'"0.001"'),
        RESULTS[0].to_json().replace(b'["onnx/ReduceMean#mean"]', b"3"),
    ],
    ids=range(10),
)
def test_a_line_that_is_no_result_is_told_with_its_number(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(RESULTS[0].to_json() + b"\n" + line + b"\n")
    with pytest.raises(OpconformError, match=r"results\.jsonl:2: not a result"):
        list(read_results(tmp_path))


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    ResultsFolder.create(tmp_path).close()
    assert list(read_results(tmp_path)) == []


def test_a_folder_that_is_not_empty_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("dear")
    with pytest.raises(OpconformError, match="is not empty; choose a new or empty one"):
        ResultsFolder.create(tmp_path)
    assert [f.name for f in tmp_path.iterdir()] == ["mine"]


def test_a_file_in_the_way_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("dear")
    with pytest.raises(OpconformError, match="is a file"):
        ResultsFolder.create(file)
    with pytest.raises(OpconformError, match="cannot write results there: "):
        ResultsFolder.create(file / "below")
    assert file.read_text() == "dear"


@pytest.mark.parametrize("path", ["/proc/opconform-results", "a\0b", "x" * 5000])
def test_a_place_that_cannot_be_written_to_is_told(path: str) -> None:
    with pytest.raises(OpconformError, match="cannot write results there: "):
        ResultsFolder.create(path)


def test_results_that_are_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(OpconformError, match="expected a results folder"):
        list(read_results(tmp_path))
    with pytest.raises(OpconformError, match="expected a results folder"):
        read_run(tmp_path)


def test_run_json_says_running_and_then_how_it_ended(tmp_path: Path) -> None:
    with ResultsFolder.create(tmp_path) as out:
        out.start({"seed": 3})
        assert read_run(tmp_path) == {"seed": 3, "status": "running"}
        out.finish("finished", 1, {"figures": {}})
        assert read_run(tmp_path) == {"seed": 3, "status": "finished", "exit_code": 1, "figures": {}}
    assert sorted(f.name for f in tmp_path.iterdir()) == ["results.jsonl", "run.json"]


def test_an_interruption_keeps_what_was_judged_and_says_so(tmp_path: Path) -> None:
    def interrupted() -> None:
        with ResultsFolder.create(tmp_path) as out:
            out.start({})
            out.add(RESULTS[0].to_json())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(read_results(tmp_path)) == RESULTS[:1]
    assert read_run(tmp_path) == {"status": "interrupted", "exit_code": 130}


def test_a_run_that_breaks_says_so(tmp_path: Path) -> None:
    def broken() -> None:
        with ResultsFolder.create(tmp_path) as out:
            out.start({})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert read_run(tmp_path) == {"status": "failed"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    out = ResultsFolder.resume(folder_with_run(tmp_path))
    (tmp_path / "outputs.jsonl").symlink_to("/dev/full")
    with pytest.raises(OpconformError, match=r"outputs\.jsonl: cannot be written: No space left"):
        out.add(RESULTS[0].to_json(), [("outputs.jsonl", b"{}")])
    with pytest.raises(OpconformError, match="the results so far are kept"):
        out.add(RESULTS[1].to_json())
    out.close()


def folder_with_run(path: Path) -> Path:
    (path / "run.json").write_text('{"status": "running"}')
    return path


@pytest.mark.parametrize("size", [3, 5_000])
def test_a_long_certificate_is_compressed_and_read_back(size: int) -> None:
    one, certificate = RESULTS[0], {"case": RESULTS[0].case, "format": 2, "options": ["0x1.8p+1"] * size}
    [(name, line)] = companions(Judged(one, {"certificate": deflated(certificate)}), one.to_json(), set())
    assert name == "certificates.jsonl"
    assert line.startswith(b'{"case":' + json.dumps(one.case).encode())
    assert ("deflated" in json.loads(line)) == (size > 1_000)
    whole = inflated(line, 1 << 20)
    assert whole is not None
    assert json.loads(whole) == certificate
    assert inflated(line, len(whole)) == whole
    assert inflated(line, len(whole) - 1) is None
    assert len(line) < 200 + len(whole) / (1 if size == 3 else 10)


@pytest.mark.parametrize("damage", [b"{", b'{"deflated":1}', b'{"deflated":"AAAA"}', b'{"deflated":"eJw="}'])
def test_a_damaged_certificate_is_none(damage: bytes) -> None:
    assert inflated(damage, 1 << 20) is None

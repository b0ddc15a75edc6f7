"""Folders that killed runs leave behind: read at every byte at which a line may be torn, and mended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fakes.results import case, result

from opconform.cases.errors import OpconformError
from opconform.reports.folder import ResultsFolder, companions
from opconform.reports.runs import StoredResults
from opconform.runners.execution.running import Judged

ACCURACY = {"grade": "faithful", "type": "float32", "ulp": 0.75}
OUTPUTS = [{"type": "float32", "shape": [1], "sha256": "x", "base64": "AACAPw=="}]
CASES = [case(fill=fill) for fill in ("ramp", "uniform", "normal", "large")]
FILES = ("results.jsonl", "outputs.jsonl", "certificates.jsonl", "accuracy.jsonl")


def judged(number: int, backend: str = "alpha") -> Judged:
    attached = {"accuracy": ACCURACY}
    if number % 2:
        attached |= {"outputs": OUTPUTS, "certificate": {"case": CASES[number], "options": [1, 2]}}
    return Judged(result("wrong-value" if number % 2 else "pass", CASES[number], backend, detail="ü\n"), attached)


def written(folder: Path, numbers: range, *, backends: tuple[str, ...] = ("alpha",)) -> Path:
    certified: set[str] = set()
    with ResultsFolder.create(folder) as out:
        out.start({})
        for backend in backends:
            for number in numbers:
                one = judged(number, backend)
                line = one.result.to_json()
                out.add(line, companions(one, line, certified))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}


def mended(folder: Path) -> list[str]:
    kept = StoredResults(folder)
    cases = [one.result.case for one in kept]
    with ResultsFolder.resume(folder) as out:
        out.mend(kept)
    return cases


@pytest.mark.slow
@pytest.mark.parametrize("last", [1, 2])
def test_a_line_torn_at_any_byte_is_dropped_with_all_that_belongs_to_it(tmp_path: Path, last: int) -> None:
    whole = contents(written(tmp_path / "whole", range(last + 1)))
    before = contents(written(tmp_path / "before", range(last)))
    folder = written(tmp_path / "torn", range(last + 1))
    for name in FILES[: 1 if last == 2 else None]:
        for length in range(len(before.get(name, b"")), len(whole[name])):
            for file, content in whole.items():
                (folder / file).write_bytes(content)
            # what stands beside a result is written first: where it is torn, the result is not there at all
            (folder / "results.jsonl").write_bytes(before["results.jsonl"])
            (folder / name).write_bytes(whole[name][:length])
            assert mended(folder) == CASES[:last]
            found = {file: content for file, content in contents(folder).items() if content}
            assert found == before


def test_a_whole_folder_is_left_as_it_is(tmp_path: Path) -> None:
    folder = written(tmp_path / "whole", range(4), backends=("alpha", "beta"))
    before = contents(folder)
    assert mended(folder) == CASES * 2
    assert contents(folder) == before
    assert len(before["certificates.jsonl"].splitlines()) == 2, "a case has one, whatever the backends"


def test_a_certificate_that_another_backend_s_failure_called_for_is_kept(tmp_path: Path) -> None:
    certified: set[str] = set()
    passing = Judged(result("pass", CASES[1], "alpha"), {"accuracy": ACCURACY})
    with ResultsFolder.create(tmp_path / "out") as out:
        out.start({})
        for one in (passing, judged(1, "beta")):
            line = one.result.to_json()
            out.add(line, companions(one, line, certified))
    kept = StoredResults(tmp_path / "out")
    assert [one.result.backend for one in kept] == ["alpha", "beta"]
    assert kept.certified == {CASES[1]}


def test_each_result_comes_with_its_accuracy(tmp_path: Path) -> None:
    for one in StoredResults(written(tmp_path / "out", range(4))):
        assert one.accuracy is not None
        assert json.loads(one.accuracy) == {"case": one.result.case, "backend": "alpha", **ACCURACY}


def test_lines_in_another_order_are_told_and_not_cut_off(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", range(4))
    file = folder / "accuracy.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[1:], lines[0]]))
    with pytest.raises(OpconformError, match=r"accuracy\.jsonl:4: not in the order of results\.jsonl"):
        mended(folder)


def test_a_case_that_is_there_twice_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path / "out", range(3))
    file = folder / "results.jsonl"
    content = file.read_bytes()
    file.write_bytes(content + content.splitlines(keepends=True)[0])
    with pytest.raises(OpconformError, match=r"results\.jsonl:4: .*/ramp on alpha appears twice"):
        mended(folder)


def test_a_run_that_was_killed_before_it_began_leaves_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").touch()
    (tmp_path / ".run.json.part").write_text('{"half')
    written(tmp_path, range(2))
    assert mended(tmp_path) == CASES[:2]


def test_a_folder_is_written_by_one_process_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with ResultsFolder.create(folder) as out:
        out.start({})
        with pytest.raises(OpconformError, match="another process is writing results there"):
            ResultsFolder.resume(folder)
    shutil.copytree(folder, tmp_path / "copy")
    ResultsFolder.resume(folder).close()

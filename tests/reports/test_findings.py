from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fakes.results import result, write_folder

from opconform.cli import main
from opconform.reports.trackers import tracker_of

BEYOND = "onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53"
DIED = "onnx/Div-14/int32/none/A=-2147483648,7;B=-1,-1/ramp/smallest"
TOLD = "element [0]: got 1, want 2 exactly (1 of 1 wrong)\n``` <b>"


def call(*words: object) -> Result:
    return CliRunner().invoke(main, list(map(str, words)), catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    kept = [
        result("wrong-value", BEYOND, "onnxruntime", detail=TOLD, clauses=("onnx/ReduceMean#mean",)),
        result("crash", DIED, "onnxruntime", detail="signal SIGFPE", clauses=("onnx/Div#quotient",)),
        result("pass", "onnx/Abs-13/float32/scalar/-/ramp", "onnxruntime"),
        result("error", "no/such-1/case", "python:mine:Backend", detail="no"),
    ]
    machine = {"platform": "Linux-6", "python": "3.12.1"}
    return write_folder(
        tmp_path / "run", kept, versions={"onnxruntime": "1.32.0", "python:mine:Backend": "2"}, machine=machine
    )


def test_each_kind_of_failures_has_a_text_that_can_be_filed(folder: Path, tmp_path: Path) -> None:
    done = call("finding", folder, "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert done.output == f"3 findings: {tmp_path / 'out' / 'index.md'}\n"
    texts = {file.name.split("-")[-2]: file.read_text() for file in (tmp_path / "out").glob("onnxruntime-*.md")}
    wrong = next(text for text in texts.values() if "wrong values" in text)
    assert wrong.startswith("# ReduceMean: wrong values (version 18)\n")
    assert "- onnxruntime 1.32.0\n- 2026-01-01, Python 3.12.1, Linux-6\n" in wrong
    assert "- to file at <https://github.com/microsoft/onnxruntime/issues>" in wrong
    assert f"````text\n{TOLD}\n````" in wrong
    assert "Every output element is the arithmetic mean" in wrong
    assert "https://onnx.ai/onnx/operators/" in wrong
    assert "import onnxruntime as ort" in wrong
    assert f"$ opconform show --script '{BEYOND}' | python" in wrong
    crash = next(text for text in texts.values() if "the process dies" in text)
    assert "What the standard says" not in crash
    assert "signal SIGFPE" in crash


def test_the_index_lists_the_texts_worst_first_and_a_limit_takes_the_first(folder: Path, tmp_path: Path) -> None:
    call("finding", folder, "--out", tmp_path / "all")
    rows = (tmp_path / "all" / "index.md").read_text().splitlines()[4:]
    assert [row.split("](")[0].removeprefix("| [") for row in rows] == [
        "onnxruntime: Div: the process dies (version 14)",
        "onnxruntime: ReduceMean: wrong values (version 18)",
        "python:mine:Backend: such: valid input is refused (version 1)",
    ]
    assert all((tmp_path / "all" / row.split("](")[1].split(")")[0]).is_file() for row in rows)
    assert call("finding", folder, "--out", tmp_path / "one", "--limit", 1).output.startswith("1 finding: ")
    assert len(list((tmp_path / "one").iterdir())) == 2


def test_a_backend_of_a_library_is_filed_with_the_library() -> None:
    assert tracker_of("onnxruntime-noopt") == tracker_of("onnxruntime==1.20.1") == tracker_of("onnxruntime")
    assert tracker_of("onnx-reference") == "https://github.com/onnx/onnx/issues"
    assert tracker_of("python:mine:Backend") is None

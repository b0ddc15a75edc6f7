"""ONNX's own loader and runner on exported folders, with onnxruntime: they blame nothing that our bounds admit."""

from __future__ import annotations

import json
import unittest
from pathlib import Path

import pytest
from click.testing import CliRunner
from onnx.backend.test import runner
from onnx.backend.test.loader import load_model_tests

from opconform.cli import main

pytest.importorskip("onnxruntime")

SELECT = (
    *("onnx/ReduceMean-18/float16/[2-4]*", "onnx/ReduceMean-13/float32/3x2x2/*"),
    *(f"onnx/ReduceMean-18/int64/{shape}/-/large" for shape in ("2", "4", "3x2x2")),
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "corpus"
    selected = [word for glob in SELECT for word in ("--select", glob)]
    assert CliRunner().invoke(main, ["export", "--format", "onnx", "--out", str(folder), *selected]).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def ours(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The outcomes of each folder's cases with onnxruntime, judged by the bounds."""
    out = tmp_path_factory.mktemp("ours") / "out"
    CliRunner().invoke(main, ["run", "onnxruntime", "--corpus", str(corpus), "--jobs", "1", "--out", str(out)])
    folders = json.loads((corpus / "manifest.json").read_text())["cases"]
    found: dict[str, set[str]] = {}
    for line in map(json.loads, (out / "results.jsonl").read_text().splitlines()):
        found.setdefault(folders[line["case"]]["folder"].split("/")[1], set()).add(line["outcome"])
    return found


def theirs(corpus: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], set[str]]:
    """Return the folders that ONNX's runner ran, and those that it found to fail."""
    from onnxruntime import backend

    # the runner loads the kinds that ONNX itself comes with: ours take the place of one of them
    ours = load_model_tests(str(corpus), kind)
    monkeypatch.setattr(runner, "load_model_tests", lambda kind: ours if kind == "simple" else [])
    suite = runner.Runner(backend, __name__).include("_cpu$").test_suite
    names = {test.id().rpartition(".")[2].removesuffix("_cpu") for test in suite if test.id().endswith("_cpu")}
    found = suite.run(unittest.TestResult())
    wrong = {test.id().rpartition(".")[2].removesuffix("_cpu") for test, _ in [*found.failures, *found.errors]}
    return names, wrong


@pytest.mark.slow
def test_onnx_s_runner_passes_every_case_that_ours_does(
    corpus: Path, ours: dict[str, set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, wrong = theirs(corpus, "values", monkeypatch)
    assert ran == {folder.name for folder in (corpus / "values").iterdir()}
    passed = {name for name in ran & ours.keys() if ours[name] == {"pass"}}
    assert not wrong & passed
    assert len(passed) > 10
    # onnxruntime's int64 mean is some units off: for integers data.json says to compare exactly
    assert wrong <= {name for name in ran if ours.get(name, {"pass"}) != {"pass"}}
    assert wrong


def test_an_invalid_case_lies_where_onnx_s_loader_does_not_look(corpus: Path) -> None:
    assert list((corpus / "refused").iterdir())
    loaded = [Path(one.model_dir) for kind in ("values", "open") for one in load_model_tests(str(corpus), kind)]
    assert {folder.parent.name for folder in loaded} == {"values", "open"}
    told = json.loads((corpus / "manifest.json").read_text())["cases"].values()
    invalid = [json.loads((corpus / one["folder"] / "case.json").read_text())["rejected"] for one in told]
    assert [one["folder"].startswith("refused/") for one in told] == invalid

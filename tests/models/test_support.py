"""`opconform can` answers from results, or by running the cases of a model's operators."""

import json
import re
from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from onnx import parser

from opconform.cases.errors import OpconformError
from opconform.cases.results import Outcome, Result
from opconform.cli import main
from opconform.cli.locking import package_root
from opconform.models.known import known_results
from opconform.models.reading import read_model
from opconform.models.support import cases_for, supported
from opconform.reports.runs import read_results
from opconform.runners.judging.terms import is_about_invalid

LOCKS = package_root() / "cases" / "manifests"

MODEL = """<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
g (float[2,3] x) => (float[2,3] y) {
  a = Relu(x)
  b = Softmax <axis = 1> (a)
  y = com.microsoft.QuickGelu(b)
}"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model of three nodes, in the current folder."""
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(MODEL), "model.onnx")
    return read_model(Path("model.onnx"))


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["can", "model.onnx", *arguments])
    return done.exit_code, done.output


def result(case: str, outcome: Outcome, detail: str | None = None) -> Result:
    return Result(case, "some", outcome, detail=detail)


RELU = "onnx/Relu-14/float32/2x3/-/ramp"


def answers(model, *results: Result) -> list[str]:
    return [one.answer for one in supported(model, results)]


def test_cases_of_the_same_version_type_rank_and_attributes_decide(model) -> None:
    assert answers(model, result(RELU, Outcome.PASS)) == ["passes", "unknown", "unknown"]
    assert answers(model, result(RELU, Outcome.WRONG_VALUE)) == ["fails", "unknown", "unknown"]
    assert answers(model, result(RELU, Outcome.UNSUPPORTED, "no")) == ["unsupported", "unknown", "unknown"]
    for other in (
        "onnx/Relu-13/float32/2x3/-/ramp",
        "onnx/Relu-14/float16/2x3/-/ramp",
        "onnx/Relu-14/float32/5/-/ramp",
    ):
        assert answers(model, result(other, Outcome.PASS))[0] == "unknown"


def test_another_value_of_an_attribute_says_nothing(model) -> None:
    one, other = ("onnx/Softmax-13/float32/2x3/axis=1/ramp", "onnx/Softmax-13/float32/2x3/axis=0/ramp")
    assert answers(model, result(one, Outcome.PASS))[1] == "passes"
    found = supported(model, [result(other, Outcome.WRONG_VALUE)])[1]
    assert found.answer == "unknown"
    assert found.reason == "no result with this rank and these attributes; of 1 with these types 1 fail"


def test_a_failing_case_is_named(model) -> None:
    found = supported(model, [result(RELU, Outcome.PASS), result(f"{RELU.removesuffix('ramp')}ends", Outcome.CRASH)])
    assert (found[0].answer, found[0].case) == ("fails", "onnx/Relu-14/float32/2x3/-/ends")


def test_only_cases_of_the_model_s_operators_and_types_are_tried(model) -> None:
    ids = list(cases_for(model, 0))
    assert {text.split("/")[1] for text in ids} == {"Relu-14", "Softmax-13"}
    assert {text.split("/")[2] for text in ids} == {"float32"}


@pytest.mark.slow
def test_trying_runs_the_cases_now(model) -> None:
    code, output = command("--on", "onnxruntime", "--try", "--quiet", "--jobs", "1")
    assert code == 0, output
    assert "3 nodes on onnxruntime: 2 pass, 0 fail, 0 unsupported, 1 unknown" in output
    assert "unknown      com.microsoft.QuickGelu" in output


@pytest.mark.slow
def test_a_results_folder_answers_for_the_release_that_it_has(model) -> None:
    run = ["run", "onnx-reference", "--quiet", "--out", "out", "--jobs", "1", "--select", "onnx/Relu-14/float32/*"]
    assert CliRunner().invoke(main, run).exit_code in (0, 1)
    release = ".".join(onnx.__version__.split(".")[:2])
    for name in ("onnx-reference", f"onnx-reference=={release}"):
        code, output = command("--on", name, "--results", "out", "--json")
        assert code == 0
        assert json.loads(output)[0]["answer"] == "passes"
    assert command("--on", "onnx-reference", "--results", "out", "--strict")[0] == 1
    code, output = command("--on", "onnx-reference==0.9", "--results", "out")
    assert (code, f"the folders have onnx-reference {onnx.__version__}" in output) == (2, True)
    code, output = command("--on", "onnx-reference", "--results", "out", "--try")
    assert (code, "expected one of --results DIR" in output) == (2, True)


def test_results_that_ship_answer_without_a_run(model) -> None:
    code, output = command("--on", "onnxruntime")
    assert code in (0, 1), output
    assert re.search(r"3 nodes on onnxruntime \d+\.\d+\.\d+ \(known results, \S+ \S+\): 2 pass, 0 fail", output)
    release = re.search(r"onnxruntime (\d+\.\d+)\.", output)
    assert release is not None
    assert command("--on", f"onnxruntime=={release[1]}") == (code, output)
    code, output = command("--on", "onnxruntime==0.3")
    message = "no results of onnxruntime==0.3 ship with this release, which has onnxruntime=="
    assert (code, message in output) == (2, True)


@pytest.mark.slow
def test_known_results_are_those_of_the_run(model, tmp_path) -> None:
    run = ["run", "onnx-reference", "--quiet", "--out", "out", "--jobs", "1", "--select", "onnx/Relu-14/*"]
    assert CliRunner().invoke(main, run).exit_code in (0, 1)
    done = CliRunner().invoke(main, ["dev", "known-results", "out", "--out", "known"])
    assert done.exit_code == 0, done.output
    (file,) = Path("known").iterdir()
    assert file.name == f"onnx-reference-{onnx.__version__}.txt"
    known = {result.case: result.outcome for result in known_results(file, ["onnx/Relu-14"], LOCKS)}
    expected = {r.case: r.outcome for r in read_results(Path("out")) if not is_about_invalid(r)}
    assert known == expected
    assert len(known) > 20
    assert not list(known_results(file, ["onnx/Relu-13"], LOCKS))
    file.write_text(re.sub(r"onnx/Relu-14 .{16}", f"onnx/Relu-14 {16 * '0'}", file.read_text()))
    assert not list(known_results(file, ["onnx/Relu-14"], LOCKS)), "the results of other cases than the locked ones"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file.txt:1: read ''; expected '# opconform known results 1: BACKEND X.Y.Z, on MACHINE'"),
        ("# opconform known results 1: a 1.0, on x\nonnx/Relu-14 pp", "file.txt:2: expected OPERATOR, a digest"),
    ],
)
def test_a_broken_file_of_results_names_the_line(tmp_path, text: str, message: str) -> None:
    file = tmp_path / "file.txt"
    file.write_text(text)
    with pytest.raises(OpconformError, match=re.escape(message)):
        list(known_results(file, ["onnx/Relu-14"], LOCKS))

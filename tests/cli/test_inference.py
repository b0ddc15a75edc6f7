"""Backends that infer types and shapes: judged, reported, waived and judged again like others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from fakes.here import run_here
from fakes.results import Ran

import opconform
from opconform.cli import main

MEANS = "onnx/ReduceMean-13/float32/*"
RMS = "onnx/RMSNormalization-23/float32,bfloat16/2x3x5,5/scale-from=constant/uniform"
STFT = "onnx/STFT-17/float64,int32/1x8x1,5/frame_length-from=constant;frame_step=1;window-from=constant/uniform"


@pytest.fixture
def run(tmp_path: Path):
    def ran(backend: str, *more: str) -> Ran:
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        with run_here():
            done = CliRunner().invoke(main, ["run", backend, "--quiet", "--jobs", "1", "--out", str(out), *more])
        return Ran(done.exit_code, done.output, out)

    return ran


def own(name: str) -> str:
    return f"python:fakes.libraries:{name}"


def test_what_the_program_determines_is_exact_and_the_rest_is_counted_apart(run) -> None:
    ran = run(own("Knows"), "--select", MEANS)
    assert ran.code == 0, ran.output
    assert set(ran.outcomes()) == {"pass"}
    shown = {case: result["behaviour"]["inference"] for case, result in ran.results.items()}
    assert {tuple(options) for options in shown.values()} == {("exact",), ("open",)}
    assert all((options == ["open"]) == ("dims=symbolic" in case) for case, options in shown.items())
    assert f"{list(shown.values()).count(['open'])} open" in ran.output


def test_a_wrong_rank_fails_and_says_both_shapes(run) -> None:
    ran = run(own("Adds"), "--select", "onnx/ReduceMean-13/float32/3x2x2/axes=-1/*")
    assert ran.code == 1
    (result,) = ran.results.values()
    assert (result["outcome"], result["detail"]) == (
        "wrong-shape",
        "reduced: inferred float32[3,2,1,1], want float32[3,2,1]",
    )


def test_an_open_dimension_fails_only_if_the_user_requires_exactness(run, tmp_path: Path) -> None:
    ran = run(own("Forgets"), "--select", "onnx/ReduceMean-13/float32/3x2x2/axes=-1/*")
    assert (ran.code, [one["behaviour"] for one in ran.lines]) == (0, [{"inference": ["open"]}])
    ran = run(own("Forgets"), "--select", "onnx/ReduceMean-13/float32/3x2x2/axes=-1/*", "--require", "inference=exact")
    assert (ran.code, [one["outcome"] for one in ran.lines]) == (1, ["wrong-value"])


def test_a_refusal_of_a_valid_program_is_an_error(run) -> None:
    ran = run(own("Refuses"), "--select", "onnx/ReduceMean-13/float32/3x2x2/axes=-1/*")
    assert {result["outcome"] for result in ran.lines} == {"error"}


def test_a_kind_that_there_is_not_is_named(run) -> None:
    ran = run(own("Boasts"), "--select", MEANS)
    assert ran.code == 2
    assert "'kind' is 'guess', expected one of run, infer, check, convert" in ran.output


def test_onnx_infers_means_exactly_and_two_known_things_wrongly(run) -> None:
    ran = run("onnx-infer", "--select", "onnx/ReduceMean-13/float32/3x2x2/*", "--select", RMS, "--select", STFT)
    failed = {case: result for case, result in ran.results.items() if result["outcome"] != "pass"}
    assert {case: (r["outcome"], r["detail"]) for case, r in failed.items()} == {
        RMS: ("wrong-dtype", "Y: inferred float32[2,3,5], want bfloat16[2,3,5]"),
        STFT: ("wrong-shape", "output: inferred float64[1,4,5,2], want float64[1,4,3,2]"),
    }
    assert len(ran.results) > len(failed)
    assert ran.about["backends"]["onnx-infer"]["facts"]["kind"] == "infer"
    again = CliRunner().invoke(main, ["rejudge", str(ran.folder), "--out", str(ran.folder) + "-again"])
    assert "0 changed" in again.output, again.output


def test_a_script_shows_the_inference_with_onnx_alone(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["show", "--script", STFT, "--on", "onnx-infer"])
    assert shown.exit_code == 0, shown.output
    file = tmp_path / "case.py"
    file.write_text(shown.output)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "got float64[1,4,5,2]" in done.stdout


def test_a_waiver_covers_a_wrong_inference(run, tmp_path: Path) -> None:
    waivers = tmp_path / "waivers.yaml"
    told = {"case": STFT, "outcome": "wrong-shape", "reason": "r", "link": "https://e.org", "owner": "o"}
    waivers.write_text(json.dumps([{**told, "expires": "2999-01-01"}]))
    ran = run("onnx-infer", "--select", STFT, "--waivers", str(waivers))
    assert (ran.code, ran.lines[0]["outcome"]) == (0, "waived"), ran.output


WRONG_AXIS = "onnx/Concat-1/float32/2*4x4x4/axis=3/ramp/axis-large"
UNKNOWN = "onnx/ReduceMean-13/int32/3x2x2/unknown=reduction_mode/ramp/unknown-attribute"
FED = "onnx/SequenceAt-11/float32,int32/seq:3+3+3/position=-4/ramp/before-the-first"


def test_a_checker_has_to_refuse_what_the_program_alone_shows_and_nothing_else(run) -> None:
    ran = run("onnx-check-full", *(word for case in (WRONG_AXIS, UNKNOWN, FED) for word in ("--select", case)))
    told = {case: (r["outcome"], r["reason"], r["behaviour"]) for case, r in ran.results.items()}
    assert told[UNKNOWN][0] == "pass"
    assert told[WRONG_AXIS] == ("accepted-invalid", "static", {"invalid": ["answered"]})
    assert told[FED] == ("pass", None, {"invalid-program": ["accepted"]})
    assert ran.code == 1


def test_a_checker_has_to_accept_valid_programs(run) -> None:
    ran = run("onnx-check", "--select", "onnx/ReduceMean-13/float32/3x2x2/*")
    valid = [result["outcome"] for result in ran.lines if "invalid" not in result["behaviour"]]
    assert len(valid) > 10
    assert set(valid) == {"pass"}
    refusing = run("python:fakes.libraries:RefusesToCheck", "--select", "onnx/ReduceMean-13/float32/3x2x2/axes=-1/*")
    assert [r["outcome"] for r in refusing.lines] == ["error"]


def test_a_script_shows_what_a_checker_accepts(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["show", "--script", WRONG_AXIS, "--on", "onnx-check-full"])
    file = tmp_path / "case.py"
    file.write_text(shown.output)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, "accepted" in done.stderr) == (1, True), done.stderr


HARDMAX = "onnx/Hardmax-11/float32/2x1x3x1x2x2/dims=symbolic/special"
RESIZE = "onnx/Resize-10/float32/1x1x7/mode=linear;scales=1,1,0.6;scales-from=constant/ramp"
LARGE = "onnx/Hardmax-1/float32/2x1x3x1x2x2/axis=0/magnitudes"


@pytest.mark.slow
def test_a_conversion_is_judged_by_the_original_on_a_backend_that_is_right_on_it(run) -> None:
    cases = ["onnx/Hardmax-11", HARDMAX, RESIZE, "onnx/Normalizer-1/float32/7x3/norm=L2/uniform"]
    ran = run("onnx-convert", "--suite", "smoke", *(word for case in cases for word in ("--select", case)))
    results = ran.results
    assert results[HARDMAX]["outcome"] == "wrong-value"
    assert results[HARDMAX]["detail"].startswith("the conversion means something else, on onnxruntime-noopt: element")
    assert results[RESIZE]["detail"] == (
        "the conversion makes onnxruntime-noopt read the standard in another way: "
        "coordinates-early was asymmetric, is half_pixel|pytorch_half_pixel"
    )
    right = [result for case, result in results.items() if case not in (HARDMAX, RESIZE)]
    assert {result["outcome"] for result in right} == {"pass", "unsupported"}
    assert all(result["behaviour"]["judged-on"] for result in right if result["outcome"] == "pass")
    words = [result["detail"].partition(":")[0] for result in right if result["outcome"] == "unsupported"]
    assert {*words} <= {"not judged", "refused"}


@pytest.mark.slow
def test_a_converter_that_changes_nothing_passes_and_one_that_spoils_the_model_fails(run) -> None:
    kept = run("python:fakes.libraries:Keeps", "--select", "onnx/Relu-6/float32/*")
    assert {result["outcome"] for result in kept.lines} == {"pass"}, kept.output
    spoilt = run("python:fakes.libraries:Negates", "--select", "onnx/Relu-6/float32/*")
    assert "wrong-value" in {result["outcome"] for result in spoilt.lines}
    refused = run("python:fakes.libraries:RefusesToConvert", "--select", "onnx/Relu-6/float32/*")
    assert {(r["outcome"], r["detail"].partition(":")[0]) for r in refused.lines} == {("error", "refused")}
    again = CliRunner().invoke(main, ["rejudge", str(spoilt.folder), "--out", str(spoilt.folder) + "-again"])
    assert "other backends have to run the conversion" in again.output


def test_a_conversion_that_fails_only_together_with_others_is_judged_alone(run) -> None:
    ran = run(own("SpoilsTogether"), "--select", "onnx/Relu-6/float32/*")
    assert len(ran.lines) > 4
    assert {result["outcome"] for result in ran.lines} == {"pass"}, ran.output


def test_a_conversion_that_no_backend_can_judge_says_so(run) -> None:
    ran = run("python:fakes.libraries:DescribesTo25", "--select", "onnx/RMSNormalization-23/float32,bfloat16/2x3x5,5/*")
    assert {r["outcome"] for r in ran.lines} == {"unsupported"}
    assert all(r["detail"].startswith("not judged: no backend is right on the original") for r in ran.lines)


def test_a_conversion_that_only_changes_the_opset_is_judged_by_the_text_alone(run) -> None:
    kept = run("python:fakes.libraries:Keeps", "--select", "onnx/RMSNormalization-23/float32,bfloat16/2x3x5,5/*").lines
    raised = run("python:fakes.libraries:Raises", "--select", "onnx/Flatten-9/int32/3x5x33/*").lines  # version 13
    assert {r["outcome"] for r in (*kept, *raised)} == {"pass"}
    assert {(*r["behaviour"]["judged-on"],) for r in (*kept, *raised)} == {("text",)}
    softmax = run("python:fakes.libraries:Raises", "--select", "onnx/Softmax-11/float32/2x2x3x2/*").lines
    assert "wrong-value" in {r["outcome"] for r in softmax}  # version 13 no longer flattens its input
    lowered = run("python:fakes.libraries:Lowers", "--select", "onnx/MatMul-13/int32*").lines
    assert {r["detail"] for r in lowered} == {"the conversion is invalid: onnx/MatMul-1 has no int32 for T"}


HEADS = "onnx/Attention-24/float32,float32,bool/3*1x2x3x4/kv_num_heads=2;q_num_heads=2/eighths/heads-beside"


def test_a_refusal_that_the_text_admits_shows_nothing_about_a_conversion(run) -> None:
    (result,) = run(
        "python:fakes.libraries:DescribesTo25", "--select", HEADS
    ).lines  # version 25 is refused, its page says no more than 24
    assert (result["outcome"], result["detail"].partition(":")[0]) == ("unsupported", "not judged")
    assert "right on the original; on the conversion refuses, as it may (" in result["detail"]


POOLED = "onnx/AveragePool-7/float16/1x2x6x5/count_include_pad=0;kernel_shape=3,2;pads=1,0,2,1/lattice/not-counted"
FLAT = "onnx/Flatten-9/int32/3x5x33/-/extremes"
HALF = "onnx/DequantizeLinear-19/int32,float16/2x6x3,2*scalar/-/codes/int32"


def test_a_backend_that_is_wrong_by_the_text_of_the_new_version_shows_nothing_about_a_conversion(run) -> None:
    told = run("onnx-convert-down", *(word for case in (POOLED, FLAT, HALF) for word in ("--select", case))).results
    # version 1 does not count padding either, but ONNX's reference does
    assert told[POOLED]["outcome"] == "unsupported"
    assert "on the conversion wrong by the text of the conversion's own version (wrong-value" in told[POOLED]["detail"]
    assert told[FLAT]["outcome"] == "wrong-value"  # by way of float32
    assert told[HALF]["outcome"] == "error"  # version 13 has no scales of float16


SCALAR = "onnx/ReduceLogSumExp-28/float32/scalar/axes=omitted;keepdims=1;noop_with_empty_axes=1/large"


def test_a_question_that_the_new_version_leaves_open_too_may_be_answered_anew(run) -> None:
    (result,) = run(
        "python:fakes.libraries:Describes", "--select", SCALAR
    ).lines  # onnxruntime has another kernel there
    assert (result["outcome"], result["behaviour"]["exponentials"]) == ("pass", ["stable"])


SUM = "onnx/ReduceL1-13/float32/2x0x3/axes=-1/ramp"


def test_a_conversion_that_its_version_does_not_have_is_wrong_even_if_a_backend_is_lax(run) -> None:
    lines = run("python:fakes.libraries:Raises", "--select", SUM).lines  # ONNX's reference takes the attribute
    assert len(lines) > 0
    assert {result["outcome"] for result in lines} == {"error"}
    assert {result["detail"] for result in lines} == {
        "the conversion is invalid: onnx/ReduceL1-18 has no attribute axes"
    }


def test_a_conversion_may_be_any_bytes(run) -> None:
    (garbled,) = {r["detail"] for r in run("python:fakes.libraries:Garbles", "--select", SUM).lines}
    assert garbled == "the conversion is invalid: its bytes are no ONNX model"
    odd = run("python:fakes.libraries:AddsOddParts", "--select", SUM).lines
    assert {r["outcome"] for r in odd} == {"error"}
    assert all(r["detail"].startswith("the conversion no longer runs") for r in odd)
    future = run("python:fakes.libraries:ComesFromTheFuture", "--select", SUM).lines
    assert "text" not in {word for r in future for word in r["behaviour"].get("judged-on", ())}


DEPRECATED = "onnx/Scatter-11/bool,int32/*"


def test_a_conversion_that_keeps_a_deprecated_node_is_no_worse_than_the_program(run) -> None:
    lines = run("onnx-convert", "--select", DEPRECATED).lines
    assert len(lines) > 0
    assert {result["outcome"] for result in lines} == {"unsupported"}
    assert all(result["detail"].startswith("not judged") for result in lines)  # no backend runs the node in opset 26


FOR_NN = "onnx/Resize-11/*coordinate_transformation_mode=tf_half_pixel_for_nn*"


@pytest.mark.slow
def test_a_conversion_with_a_word_that_its_version_does_not_have_is_wrong_even_if_a_backend_is_lax(run) -> None:
    lines = run("onnx-convert", "--select", FOR_NN).lines  # onnx#5266; onnxruntime still knows the mode
    assert len(lines) > 0
    assert {result["outcome"] for result in lines} == {"error"}
    assert all(
        result["detail"].endswith("has no coordinate_transformation_mode tf_half_pixel_for_nn") for result in lines
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("converter", "case"),
    [("onnx-convert", LARGE), ("onnx-convert-down", FLAT), ("onnxscript-convert", LARGE)],
)
def test_a_script_shows_a_conversion(tmp_path: Path, converter: str, case: str) -> None:
    pytest.importorskip("onnxscript" if converter == "onnxscript-convert" else "onnx")
    shown = CliRunner().invoke(main, ["show", "--script", case, "--on", converter])
    file = tmp_path / "case.py"
    file.write_text(shown.output)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, "not admitted" in done.stderr) == (1, True), done.stderr


PROCESS = """
import base64, json, sys
KIND = sys.argv[1]
for line in sys.stdin:
    asked = json.loads(line)
    told = {"id": asked["id"]}
    if asked["ask"] == "hello":
        told |= {"answer": "hello", "protocol": 1, "name": "tool", "version": "1", "standards": ["onnx"], "kind": KIND}
    elif asked["ask"] == "prepare":
        program, model = asked["program"], base64.b64decode(asked["model"])
        told["answer"] = "prepared"
    else:
        texts = [o["type"] + "[" + ",".join("?" * o["rank"]) + "]" for o in program["outputs"]]
        outputs = {
            "infer": [{"type": "string", "shape": [], "content": [text]} for text in texts],
            "check": [],
            "convert": [{"type": "uint8", "shape": [len(model)], "content": base64.b64encode(model).decode()}],
        }
        told |= {"answer": "outputs", "outputs": outputs[KIND]}
    print(json.dumps(told), flush=True)
"""


@pytest.mark.parametrize("kind", ["infer", "check", "convert"])
def test_a_program_of_the_process_protocol_can_be_of_any_kind(run, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "tool.py"
    file.write_text(PROCESS)
    ran = run(f"cmd:{sys.executable} {file} {kind}", "--select", "onnx/Relu-6/float32/scalar/*")
    outcomes = {result["outcome"] for result in ran.lines}
    assert outcomes == ({"pass", "accepted-invalid"} if kind == "check" else {"pass"}), ran.output


@pytest.mark.slow
def test_results_of_tools_are_as_the_schema_says(run) -> None:
    read = json.loads((Path(opconform.__file__).parent / "reports" / "schemas" / "result.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(read)
    selected = ("--select", WRONG_AXIS, "--select", FED, "--select", HARDMAX, "--select", STFT)
    for backend in ("onnx-infer", "onnx-check-full", "onnx-convert"):
        lines = run(backend, *selected).lines
        assert len(lines) == 4
        assert [error.message for line in lines for error in validator.iter_errors(line)] == []


# As users of other backends work


SQUEEZE = "onnx/Squeeze-1/float32/1x2x1x1x3x1x2x1/axes=7,3/ramp/rank-8"


@pytest.mark.parametrize(
    ("backend", "case", "words"),
    [
        ("onnx-infer", SQUEEZE, 'WANT = [["float32[1]"]]'),
        ("onnx-check-full", WRONG_AXIS, "onnx.checker.check_model(model, full_check=True)"),
        ("onnx-convert", LARGE, "version_converter.convert_version"),
    ],
)
def test_a_failing_case_of_a_tool_is_shrunk(backend: str, case: str, words: str) -> None:
    with run_here():
        done = CliRunner().invoke(main, ["minimise", case, backend, "--quiet", "--jobs", "1", "--limit", "200"])
    assert done.exit_code == 0, done.output
    assert words in done.output


@pytest.mark.slow
def test_runs_of_tools_are_compared_and_kept_in_a_history(run, tmp_path: Path) -> None:
    chosen = ("--select", STFT, "--select", SQUEEZE)
    before, after = run("onnx-infer", *chosen), run("onnx-infer", *chosen)
    lines = (after.folder / "results.jsonl").read_text()
    assert lines.count('"wrong-shape"') == 2
    (after.folder / "results.jsonl").write_text(lines.replace('"wrong-shape"', '"wrong-dtype"', 1))
    done = CliRunner().invoke(main, ["compare", str(before.folder), str(after.folder), "--fail-on", "change"])
    assert (done.exit_code, "wrong-dtype" in done.output) == (1, True), done.output
    db = str(tmp_path / "history.duckdb")
    for one in (before, after):
        added = CliRunner().invoke(main, ["history", "add", str(one.folder), "--db", db])
        assert added.exit_code == 0, added.output
    told = CliRunner().invoke(main, ["history", "case", STFT, "--db", db])
    assert "wrong-shape" in told.output


@pytest.mark.slow
def test_onnxscripts_converter_keeps_the_node_of_hardmax(run) -> None:
    pytest.importorskip("onnxscript")
    ran = run("onnxscript-convert", "--select", LARGE, "--select", "onnx/Relu-14/float32/scalar/*")
    assert ran.results[LARGE]["outcome"] == "wrong-value"
    assert {r["outcome"] for case, r in ran.results.items() if case != LARGE} == {"pass"}

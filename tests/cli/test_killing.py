"""The kill matrix of operators of any kind, and which of it is made anew."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from fakes.sampled import slow

from opconform.cases.batch import Bounds, Expectation, Flag, Option, Spread
from opconform.cases.ids import Selection
from opconform.cli import killing, main
from opconform.cli.bounds import blindness, tightness
from opconform.generators.selection import selected
from opconform.generators.source import GeneratedCases, shipped
from opconform.reports.matrix import VersionMatrix


def matrix(name: str, *globs: str) -> VersionMatrix:
    source = GeneratedCases()
    source.__dict__["library"] = shipped()
    return killing.tested(source, name, list(selected(source, Selection(globs or (name,)))))


@pytest.mark.parametrize(
    ("name", "killed"),
    [
        slow("onnx/Loop-11", "cond-required"),
        ("onnx/If-13", "zeros"),
        ("onnx/SequenceInsert-11", "flat"),
        ("onnx/StringConcat-20", "last-lost"),
        ("onnx/RandomNormal-1", "type-other"),
        ("onnx/Optional-15", "zeros"),
        ("onnx/LabelEncoder-2", "flat"),
        ("onnx/NonZero-13", "transposed"),
    ],
)
def test_operators_of_every_kind_have_a_matrix(name: str, killed: str) -> None:
    found = matrix(name)
    assert not found.blamed
    assert found.mutants > 10
    assert found.cases >= len(found.smoke) > 0
    names = {fate.name for fate in found.killed}
    assert killed in names


@pytest.mark.parametrize("name", [slow("onnx/Clip-11"), "onnx/Gather-1"])
def test_a_variant_answers_a_silence_where_it_is_open_alone(name: str) -> None:
    found = matrix(name, f"{name}/float32/*", f"{name}/float32,int64/*")
    assert found.variants > 9, "options of silences are variants"
    assert not found.blamed


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("onnx/QuantizeLinear-28", "/float32,bfloat16,float8e4m3fn/3*40/*"),
        ("onnx/BatchNormalization-15", "/bfloat16,float32,float16/*half-trained"),
    ],
)
def test_a_variant_that_rounds_after_each_step_rounds_to_the_type_of_that_step(name: str, cases: str) -> None:
    found = matrix(name, f"{name}{cases}")
    assert found.cases
    assert not found.blamed


@pytest.mark.slow
def test_mutants_that_need_not_arise_are_none() -> None:
    found = matrix("onnx/Add-14", "onnx/Add-14/float32/*")
    names = {fate.name for fate in (*found.survivors, *found.killed)}
    assert "A-and-B-swapped" not in names, "a sum is the same"
    assert "add-1:operand-2-ignored" in names


# What bounds cannot see


def expectation(**changes: object) -> Expectation:
    value = np.array([[1.0, -1.0, 0.0, 4.0]])
    reach = np.array([[0.5, 1.5, 0.0, 0.1]])
    bounds = Bounds("float16", value, value - reach, value + reach, **changes)  # type: ignore[arg-type]
    return Expectation((Option((), (bounds,)),), ("float16",))


def test_an_element_whose_bound_exceeds_its_magnitude_is_blind() -> None:
    assert blindness([expectation()]) == {"float16": (4, 1)}
    free = np.array([[0, Flag.FREE, Flag.FREE, Flag.NAN]], np.uint8)
    assert blindness([expectation(flags=free)]) == {"float16": (4, 2)}
    assert blindness([expectation(spread=Spread(np.ones((1, 4))))]) == {"float16": (4, 0)}, "judged as a whole"
    assert blindness([expectation(), expectation()]) == {"float16": (8, 2)}


def test_a_case_that_admits_anything_is_blind() -> None:
    usual = expectation()
    anything = Option((("silence", "any"),), kind="anything")
    assert blindness([Expectation((*usual.options, anything), usual.types)]) == {"float16": (4, 4)}


# What is made anew


def make(folder: Path, *selects: str) -> Result:
    options = [part for word in ("record", "write-smoke") for part in (f"--{word}", folder / word)]
    arguments = [part for select in selects for part in ("--select", select)]
    done = CliRunner().invoke(main, [str(part) for part in ("dev", "mutants", "--jobs", 1, *arguments, *options)])
    assert done.exit_code in (0, 1), done.output
    return done


@pytest.mark.slow
def test_what_has_not_changed_is_not_made_again(tmp_path: Path) -> None:
    made = make(tmp_path, "onnx/Constant-1")
    assert "onnx/Constant-1 " in made.output
    files = {word: (tmp_path / word).read_text() for word in ("record", "write-smoke")}
    again = make(tmp_path, "onnx/Constant-1")
    assert again.exit_code == 0
    assert "onnx/Constant-1 " not in again.output
    assert files == {word: (tmp_path / word).read_text() for word in files}
    more = make(tmp_path, "onnx/Constant-1", "onnx/StringConcat-20")
    assert "onnx/StringConcat-20 " in more.output
    assert "onnx/Constant-1 " not in more.output
    only = make(tmp_path, "onnx/StringConcat-20")
    assert "onnx/Constant-1" in (tmp_path / "record").read_text(), "what is not selected stays"
    assert only.exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("word", ["digest", slow("code")])
def test_what_has_changed_is_made_again(tmp_path: Path, word: str) -> None:
    make(tmp_path, "onnx/Constant-1")
    record = tmp_path / "record"
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    lines[-1][word] = "0" * 16
    record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = make(tmp_path, "onnx/Constant-1")
    assert "onnx/Constant-1 " in again.output
    assert again.exit_code == 0, "nothing survives that did not"
    (tmp_path / "write-smoke").write_text("")
    assert "onnx/Constant-1 " in make(tmp_path, "onnx/Constant-1").output, "the smoke suite is another"


def test_a_mutant_without_an_input_that_the_formula_asks_for_refuses() -> None:
    found = matrix("onnx/Resize-13", "onnx/Resize-13/*/crop")
    assert "roi-ignored" in {fate.name for fate in found.killed}


# Mutants that are none, and why others survive


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("onnx/Sin-7", "infinity-lost"),
        ("onnx/Exp-1", "consumed_inputs-negated"),
        ("onnx/Exp-1", "sign-of-zero-lost"),
        ("onnx/IsInf-10", "negated"),
        ("onnx/CastLike-15", "trunc-1:not-applied"),
    ],
)
def test_what_is_right_for_every_input_is_no_mutant(name: str, right: str) -> None:
    found = matrix(name)
    assert right not in {fate.name for fate in (*found.survivors, *found.killed)}


@pytest.mark.slow
def test_what_other_data_would_tell_is_a_mutant_that_survives() -> None:
    found = matrix("onnx/Pad-13", "onnx/Pad-13/float32/*/ramp")
    unmet = {fate.name for fate in found.survivors if fate.status == "unmet"}
    assert unmet >= {"nan-lost", "sign-of-zero-lost"}, "a ramp has neither"


@pytest.mark.slow
def test_what_admits_a_survivor_is_told() -> None:
    why = {fate.name: fate.why for fate in matrix("onnx/HardSigmoid-6").survivors}
    assert why["nan-lost"] == "nan=zero"
    why = {fate.name: fate.why for fate in matrix("onnx/Atan-7").survivors}
    assert why["sign-of-zero-lost"] == "sign of a zero"
    softmax = matrix("onnx/Softmax-13", "onnx/Softmax-13/float32/1x65537/*")
    assert "last-term-lost (bound, over 100 times the change)" in softmax.hidden["extent=over-65536"]


def test_answers_in_one_buffer_are_those_of_the_last_run_of_their_shapes() -> None:
    assert "buffer-shared" in {fate.name for fate in matrix("onnx/Greater-1").killed}, "runs with other silences open"


@pytest.mark.slow
def test_a_trigger_under_which_a_silence_admits_any_answer_does_not_count() -> None:
    found = matrix("onnx/Unique-11")
    assert found.excluded["type=complex128"] == "complex-order=anything"
    assert "type=complex128" not in found.hidden
    assert "rank=4" not in found.excluded, "other types have an answer"


def test_a_bound_is_told_in_ulp_and_the_widest_is_one_that_can_show_a_mistake() -> None:
    median, widest = tightness([expectation()])["float16"]
    assert median == pytest.approx((512 + 0.1 * 2**8) / 2)  # of 0, 0.1 by 2^-8, 0.5 and 1.5 by 2^-10
    assert widest == 512, "1.5 exceeds the magnitude 1"
    assert tightness([Expectation((Option((), kind="rejected"),), ("float16",))]) == {}

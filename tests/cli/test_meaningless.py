"""`opconform dev meaningless`: answers that mean nothing pass nowhere, except with a reason."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from opconform.cases.batch import Batch
from opconform.cases.elements import Array
from opconform.cases.ids import Selection
from opconform.cases.lock import Lock, read_lock
from opconform.cli import meaningless
from opconform.cli.meaningless import (
    REASONS,
    SHARE,
    Admitted,
    admitted_by,
    explained,
    read_admitted,
    run_meaningless,
)
from opconform.generators.source import GeneratedCases, shipped
from opconform.reports.reasons import read_reasons
from opconform.runners.judging.answers import Answers
from opconform.runners.judging.judge import judge

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "docs" / "meaningless.jsonl"
ONE = Admitted("onnx/Tried-1", "", 3, {"onnx/Tried-1/float32/4/-/ramp/ties": ["constant", "half-more"]})
TIE = "onnx/Upsample-9/int32/1x2x5x4/mode=nearest;scales=1,1,1.5,1.5/ramp"


def case(text: str) -> Batch:
    (found,) = GeneratedCases().batches([text])
    return found


def outcome(batch: Batch, *outputs: Array) -> str:
    (verdict,) = judge(batch, Answers.of_case(*outputs))
    return str(verdict.outcome)


def right(batch: Batch) -> Array:
    bounds = batch.expectation.options[0].outputs[0]
    return bounds.value[0].astype(batch.inputs[0].dtype)


def test_what_the_record_lists_has_a_reason_and_every_reason_a_case() -> None:
    if not RECORD.exists():
        pytest.skip("the record is made with the release")
    every = read_admitted(RECORD).values()
    told = explained(every, read_reasons(REASONS).written)
    assert not told.missing
    assert not told.idle
    assert sum(len(one.backends) for one in every) <= SHARE * sum(one.cases for one in every)
    folder = ROOT / "cases" / "manifests"
    locked = {one.version: read_lock(folder / Lock(one.version, "", ()).file_name).digest for one in every}
    assert not [one.version for one in every if not locked[one.version].startswith(one.digest)]


def test_a_case_without_a_reason_is_missing_and_a_reason_without_a_case_idle() -> None:
    told = explained([ONE], {"onnx/Else-* onnx/Tried-*": {"*/ties": "the first counts", "*/none": "nothing"}})
    assert not told.missing
    assert told.idle == ["onnx/Else-* onnx/Tried-*: */none"]
    assert told.counts["onnx/Tried", "the first counts"]["half-more"] == 1
    assert explained([ONE], {"onnx/Tried-2": {"*": "another version"}}).missing == [*ONE.backends.items()]


def test_a_run_lists_cases_and_keeps_what_has_not_changed(tmp_path: Path, capsys, monkeypatch) -> None:
    record, page = tmp_path / "record.jsonl", tmp_path / "page.md"
    selection = Selection(("onnx/Trilu-14/string/3x4/upper=0/*",))
    options = {"specs": None, "jobs": 1, "record": record, "markdown": page}
    assert run_meaningless(selection, **options) == 0
    (one,) = read_admitted(record).values()
    assert [text.rpartition("/")[2] for text in one.backends] == ["text"], "text has no zero"
    assert re.search(r"^\| silence text-zero.* \| 1 \| onnx/Trilu \|$", page.read_text(), re.MULTILINE)
    assert json.loads(record.read_text().splitlines()[0]) == {"format": 1}
    monkeypatch.setattr(meaningless, "REASONS", tmp_path / "none.yaml")
    (tmp_path / "none.yaml").write_text("{}")
    assert run_meaningless(selection, **options) == 1
    assert "no reason says why" in capsys.readouterr().out


def test_reasons_are_of_operator_versions_that_there_are() -> None:
    import fnmatch

    names = [str(version.operator) for spec in shipped().specs() for version in spec.versions.values()]
    globs = [glob for some in read_reasons(REASONS).written for glob in some.split()]
    assert not [glob for glob in globs if not fnmatch.filter(names, glob)]


def test_a_power_that_does_not_fit_frees_no_other_element() -> None:
    batch = case("onnx/Pow-15/int32,int32/none/X=3,46340,-2,-7,1290;Y=19,2,31,11,3/ramp/whole-32")
    assert outcome(batch, right(batch)) == "pass"
    for place in range(5):
        wrong = right(batch)
        wrong[place] += 1
        assert outcome(batch, wrong) == "wrong-value"


def test_whole_powers_through_floats_are_wrong() -> None:
    batch = case("onnx/Pow-15/int64,int64/none/X=3,7,-3,10,-2,0,0;Y=39,22,39,18,63,0,5/ramp/whole")
    with np.errstate(all="ignore"):
        rounded = np.power(batch.inputs[0][0].astype(np.float64), batch.inputs[1][0]).astype(np.int64)
    assert outcome(batch, rounded) == "wrong-value"


def test_an_element_at_a_tie_is_one_of_its_neighbours() -> None:
    batch = case("onnx/Resize-10/float32/1x2x5x4/mode=nearest;scales=1,1,0.6,0.6/ramp")
    option = next(o for o in batch.expectation.options if any(c.name == "one-of" for c in o.checks))
    forms = next(c for c in option.checks if c.name == "one-of").arrays
    apart = np.abs(forms[0] - forms[1])[0] > 0
    assert apart.any()
    between = ((forms[0] + forms[1]) / 2)[0].astype(np.float32)
    assert outcome(batch, forms[0][0].astype(np.float32)) == "pass"
    assert outcome(batch, forms[1][0].astype(np.float32)) == "pass"
    assert outcome(batch, between) == "wrong-value"


TRAINED = "onnx/BatchNormalization-9/float32/2x3x4x2,4*3/outputs=Y,mean,var,saved_mean,saved_var/ramp/train-five"
MIXED = "onnx/ArgMax-13/float32/none/axis=1;data=3x5:2,5,nan,1,7,4,9,6,1,2,5,2,7,0,3/ramp/nan-among"


@pytest.mark.parametrize(
    "text",
    [
        "onnx/ReduceSum-11/float32/2x0x3/-/ramp/nothing",
        "onnx/ReduceMax-12/int32/2x0x3/-/ramp/nothing",
        "onnx/Conv-1/float32/2x2x17,2x1x3,2/auto_pad=SAME_LOWER;group=2;strides=2/uniform",
        "onnx/ConvTranspose-11/float32/1x4x3x3,4x4x1x1/auto_pad=SAME_UPPER;strides=3,3/ramp/same-short",
        "onnx/AveragePool-22/float32/1x1x6x7/auto_pad=SAME_UPPER;kernel_shape=1,1;strides=4,3/uniform/same-gaps",
        "onnx/BatchNormalization-6/float32/2x3x4x2,4*3/-/uniform",
        TRAINED,
        MIXED,
        "onnx/GlobalMaxPool-1/float32/2x3x9x8/-/nan-late",
        "onnx/ScatterElements-16/bool,int64/5x3,2*2x3/reduction=add/ramp/truths",
        "onnx/ScatterND-18/complex64/33x3,8x1,8x3/indices=tuples;reduction=mul/uniform/complex-fractions",
        "onnx/NegativeLogLikelihoodLoss-13/float32,int32/2x3,2/target=any;weight=0,0,0/ramp/weights-zero",
        "onnx/QuantizeLinear-19/float32,int8/2x6x3,2*scalar/y_scale=negative/ramp/scale-negative",
        "onnx/DequantizeLinear-13/int32/4,2*scalar/x_zero_point=middle/ramp/zero-point-of-int32",
        "onnx/Gemm-13/uint32/3x4,4x5/alpha=0.5/evens/alpha-of-integers",
        "onnx/HannWindow-17/int32,float32/none/periodic=0;size=1/ramp/one-symmetric",
        "onnx/AffineGrid-20/float32,int64/1x2x3/align_corners=1;size=1,3,1,5/ramp/one-row-corners",
        "onnx/NonZero-13/string/3x345/dims=symbolic/few",
        "onnx/NonMaxSuppression-11/-/1x6x4,1x1x6/boxes=without-area;iou_threshold=0.5;max_output_boxes_per_class=1000"
        "/ramp/no-area",
        "onnx/RoiAlign-16/float32,int64/1x1x8x8,2/rois=2x4:2,2,2.5,2.5,2,2,6,6;sampling_ratio=2/uniform/small",
        "onnx/LinearClassifier-1/float32,int64/1x2/classlabels_ints=30,10,20;coefficients=0.5,1,-0.75,2,0.25,-1;"
        "post_transform=PROBIT/lattice-of-products",
    ],
)
def test_a_silence_has_a_set_of_answers_and_no_other_passes(text: str) -> None:
    assert not admitted_by(GeneratedCases(), "/".join(text.split("/")[:2]), [text]).backends


@pytest.mark.parametrize(
    "text",
    [
        "onnx/Slice-13/float32,int32/3x4x5/axes=1,1;ends=3,4;starts=0,1/ramp/axis-twice",
        "onnx/Range-11/int64/none/delta=0;limit=5;start=0/ramp/delta-zero",
        "onnx/Multinomial-7/float32,int32/none/input=2x2:0,1,nan,0/ramp/not-a-number",
        "onnx/OptionalGetElement-18/optional.float32/optional:none/-/ramp/empty",
        "onnx/ArgMin-13/float32/0x3/-/ramp/none-later",
    ],
)
def test_a_program_that_asks_for_what_is_not_there_is_invalid(text: str) -> None:
    assert case(text).expectation.invalid


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("onnx/Hardmax-13/float32/2x300/-/special", np.full((2, 300), 0.5, np.float32)),
        ("onnx/ArgMax-11/float32/6x5/axis=0/ones/ties", np.full((1, 5), 6, np.int64)),
        ("onnx/Cast-13/float32,string/17/-/special", np.full(17, "77", object)),
    ],
)
def test_a_silence_leaves_open_only_what_the_text_does(text: str, wrong: Array) -> None:
    assert outcome(case(text), wrong) == "wrong-value"


@pytest.mark.parametrize(
    "text",
    [
        "onnx/ReduceSum-13/bfloat16/2x300/axes=-1/uniform",
        "onnx/ReduceMean-13/bfloat16/2x300/dims=symbolic;keepdims=0/large",
        "onnx/ReduceMean-13/float16/2x300/dims=symbolic;keepdims=0/uniform",
        "onnx/ReduceMean-13/bfloat16/8x8/axes=1/beside-2^26/accumulator-26",
        "onnx/ReduceMean-13/float32/2x300/dims=symbolic;keepdims=0/cancelling",
        "onnx/ReduceMean-13/float32/8x8/axes=1/beside-2^26/accumulator-26",
        "onnx/ReduceL2-13/float32/2x300/dims=symbolic;keepdims=0/small-squares",
        "onnx/MatMul-13/bfloat16/2x257,257x3/dims=symbolic/uniform",
        "openvino/Softmax-8/bfloat16/2x300/axis=1;dims=symbolic/large",
        "onnx/LogSoftmax-11/float32/3x5/axis=-2/large",
        "onnx/RNN-14/float32,int32/3x2x4,1x3x4,1x3x3/hidden_size=3;outputs=Y,Y_h/codes/saturated",
    ],
)
def test_half_more_than_the_right_answer_fails_though_the_type_itself_may_err(text: str) -> None:
    version = "/".join(text.split("/")[:2])
    found = meaningless.admitted_by(GeneratedCases(), version, [text])
    assert (found.cases, dict(found.backends)) == (1, {})


def test_an_accumulator_in_the_type_itself_passes_as_that_though_it_loses_small_addends() -> None:
    text = "onnx/ReduceSum-13/bfloat16/2x300/axes=-1/mixed"
    batch = case(text)
    total = np.zeros((1, 2), batch.inputs[0].dtype)
    for column in np.moveaxis(batch.inputs[0], -1, 0):
        total = (total.astype(np.float32) + column.astype(np.float32)).astype(total.dtype)
    (verdict,) = judge(batch, Answers.of_case(total[0][:, np.newaxis]))
    assert str(verdict.outcome) == "pass"

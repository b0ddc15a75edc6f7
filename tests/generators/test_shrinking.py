"""What one step makes of a case: ids of simpler cases, those that are tied shrunk together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakes.sampled import slow

from opconform.cases.elements import content
from opconform.cases.errors import OpconformError
from opconform.cases.ids import operator_version_of, parse_id
from opconform.generators.shrinking import Shrinker
from opconform.generators.source import GeneratedCases

SOURCE = GeneratedCases()
CONV = "onnx/Conv-11/float32/1x2x6x5,3x2x3x3,3/kernel_shape=3,3;pads=1,1,1,1/uniform"
LSTM = "onnx/LSTM-14/float32,int32/3x2x4,1x12x4,1x12x3,1x24/hidden_size=3/ramp"
CONCAT = "onnx/Concat-13/float32/3x2,3x4,3x1/axis=1/ramp"
TRANSPOSE = "onnx/Transpose-13/float32/2x3x4/perm=2,0,1/ramp"
LOOP = "onnx/Loop-13/float32,int64,bool/3/M=scalar:5;body=stop;cond=omitted;outputs=2/ramp/not-stopped"
SUM = "onnx/ReduceSum-13/int64/none/axes=0;data=2x2:7,0,9007199254740993,1/ramp"


def simpler(case: str) -> Iterator[str]:
    for step in Shrinker(SOURCE, operator_version_of(case)).steps:
        yield from step(case)


def is_valid(case: str) -> bool:
    try:
        SOURCE.case(case)
    except OpconformError:
        return False
    return True


@pytest.mark.parametrize("case", [CONV, LSTM, CONCAT, TRANSPOSE, slow(LOOP), SUM])
def test_every_simpler_case_is_smaller_and_of_the_same_version(case: str) -> None:
    shrinker = Shrinker(SOURCE, operator_version_of(case))
    found = list(simpler(case))
    assert sum(map(is_valid, found[:60])) > 2
    for text in found:
        assert str(parse_id(text)) == text
        assert operator_version_of(text) == operator_version_of(case)
        assert shrinker.size(text) < shrinker.size(case)


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        (LSTM, "onnx/LSTM-14/float32,int32/1x2x4,1x4x4,1x4x1,1x8/hidden_size=1/ramp"),
        (CONV, "onnx/Conv-11/float32/1x2x5,3x2x3,3/kernel_shape=3;pads=1,1/uniform"),
        (CONV, "onnx/Conv-11/float32/1x2x6x5,3x2x3x3/kernel_shape=3,3;pads=1,1,1,1/uniform"),
        (TRANSPOSE, "onnx/Transpose-13/float32/2x4/perm=1,0/ramp"),
        (CONCAT, "onnx/Concat-13/float32/3x2,3x1/axis=1/ramp"),
        (CONCAT, "onnx/Concat-13/float32/1x2,1x4,1x1/axis=1/ramp"),
        (SUM, "onnx/ReduceSum-13/int64/none/axes=0;data=1x2:9007199254740993,1/ramp"),
        (SUM, "onnx/ReduceSum-13/int64/2x2/axes=0/ramp"),
    ],
)
def test_what_is_tied_shrinks_together(case: str, wanted: str) -> None:
    assert is_valid(wanted)
    assert wanted in set(simpler(case))


def test_elements_that_are_drawn_are_written_as_they_are() -> None:
    case = "onnx/Conv-11/float32/2*1x1x2x2/-/uniform"
    (written,) = (text for text in simpler(case) if "X=" in text and "W=" in text)
    assert list(map(content, SOURCE.case(written).tensors())) == list(map(content, SOURCE.case(case).tensors()))


def test_shapes_that_a_body_declares_stay() -> None:
    assert {parse_id(text).shapes for text in simpler(LOOP)} <= {((3,),), ()}

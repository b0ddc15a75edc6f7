"""Casts by the standard's table of special values."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.judging import judge_answer

from opconform.cases.elements import element_type
from opconform.cases.results import Outcome
from opconform.generators.source import GeneratedCases

SPECIAL = "onnx/{0}-19/float32,{1}/17{2}/{3}/special"


@pytest.mark.parametrize("operator", ["Cast", "CastLike"])
@pytest.mark.parametrize("type_", ["float8e4m3fn", "float8e5m2"])
@pytest.mark.parametrize("saturate", ["-", "saturate=0"])
def test_a_zero_keeps_its_sign_in_float8_types_that_have_both(operator: str, type_: str, saturate: str) -> None:
    text = SPECIAL.format(operator, type_, ",3" if operator == "CastLike" else "", saturate)
    case = GeneratedCases().case(text)
    (x,), dtype = case.inputs[0], element_type(type_).dtype
    right = case.expectation.options[0].outputs[0].value[0].astype(np.float32)
    zeros = x == 0
    assert zeros.any()
    right[zeros] = x[zeros]
    assert judge_answer(case.expectation, [right.astype(dtype)]).outcome is Outcome.PASS
    right[zeros] = -x[zeros]
    assert judge_answer(case.expectation, [right.astype(dtype)]).outcome is Outcome.WRONG_VALUE


def test_a_number_that_rounds_to_zero_may_be_a_zero_of_either_sign() -> None:
    case = GeneratedCases().case("onnx/Cast-19/float32,float8e4m3fn/7/-/magnitudes")
    right, dtype = case.expectation.options[0].outputs[0].value[0], element_type("float8e4m3fn").dtype
    vanished = (right == 0) & (case.inputs[0][0] != 0)
    assert vanished.any()
    for sign in (1.0, -1.0):
        answer = np.where(vanished, np.copysign(right, sign), right).astype(dtype)
        assert judge_answer(case.expectation, [answer]).outcome is Outcome.PASS

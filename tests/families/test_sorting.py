"""What TopK's text says of k."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.judging import judge_answer

from opconform.generators.source import GeneratedCases


@pytest.mark.parametrize("case", ["10/float32,int64/3/K=4/ramp/k-large", "1/float32,int64/3/k=4/ramp/k-large-early"])
def test_more_elements_than_there_are_is_invalid_and_fewer_are_no_answer(case: str) -> None:
    made = GeneratedCases().case(f"onnx/TopK-{case}")
    assert made.expectation.invalid
    clamped = [np.sort(made.inputs[0][0])[::-1], np.argsort(made.inputs[0][0])[::-1]]
    assert judge_answer(made.expectation, clamped).behaviour == {"invalid": ["answered"]}

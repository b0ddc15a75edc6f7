"""Cases of any shape and axes, negative ones in any order among them, want the shape and mean that the pages say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from fakes.exact import FORMATS, kept, means_over, reduced, reduction_groups, tensor
from fakes.judging import judge_answer
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.results import Outcome
from opconform.generators.source import GeneratedCases

SOURCE = GeneratedCases()
FLOATS, WHOLE = ("float16", "float32", "float64"), ("int32", "int64", "uint32", "uint64")
TYPES = {  # of the tensors, by operator version
    "onnx/ReduceMean-11": FLOATS + WHOLE,
    "onnx/ReduceMean-13": (*FLOATS, "bfloat16", *WHOLE),
    "onnx/ReduceMean-18": (*FLOATS, "bfloat16", *WHOLE),
    "openvino/ReduceMean-1": (*FLOATS, "bfloat16", *WHOLE, "int8", "uint8", "int16", "uint16"),
    "onednn/ReduceMean": ("float16", "bfloat16", "float32"),
}
EXACTLY = {"integer-rounding": "truncate", "integer-overflow": "exact"}


@dataclass(frozen=True)
class Wanted:
    """A case id, and the shape and axes that it stands for."""

    id: str
    type: str
    axes: tuple[int, ...]
    shape: tuple[int, ...]


@st.composite
def cases(draw: Any) -> Wanted:
    operator = draw(st.sampled_from(sorted(TYPES)))
    name = draw(st.sampled_from(TYPES[operator]))
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))]
    written = [axis - len(shape) * draw(st.booleans()) for axis in axes]
    onnx = operator.startswith("onnx")
    attribute, yes, no, default = ("keepdims", "1", "0", True) if onnx else ("keep_dims", "true", "false", False)
    keep = draw(st.sampled_from((None, True, False)))
    parts = [f"axes={','.join(map(str, written))}"] + (
        [f"{attribute}={yes if keep else no}"] if keep is not None else []
    )
    types = f"{name},int64" if operator.startswith("openvino") else name
    fill = draw(st.sampled_from(("ramp", "uniform", "lattice", "large")))
    after = kept(shape, axes) if (default if keep is None else keep) else reduced(shape, axes)
    text = f"{operator}/{types}/{'x'.join(map(str, shape))}/{';'.join(parts)}/{fill}"
    return Wanted(text, name, tuple(axes), after)


@given(wanted=cases())
def test_a_case_wants_the_shape_and_the_mean_of_its_axes(wanted):
    case = SOURCE.case(wanted.id)
    (x,) = case.tensors()
    if wanted.type in FORMATS:
        answer = tensor([m.rounded(wanted.type) for m in means_over(x, wanted.axes)], wanted.type, wanted.shape)
    else:
        elements = [int(v) for v in x.reshape(-1)]
        groups = reduction_groups(x.shape, wanted.axes)
        quotients = [math.trunc(Fraction(sum(elements[i] for i in group), len(group))) for group in groups]
        answer = np.array(quotients, object).astype(wanted.type).reshape(wanted.shape)
    verdict = judge_answer(case.expectation, [answer], EXACTLY)
    assert verdict.outcome is Outcome.PASS, verdict.detail
    assert {o.outputs[0].shape for o in case.expectation.options} == {wanted.shape}

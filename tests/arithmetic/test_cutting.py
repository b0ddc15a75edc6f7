"""A cut of a formula has the bounds that the whole formula has at the same elements."""

import numpy as np
import pytest

from opconform.cases.batch import cases_of
from opconform.cases.ids import Selection
from opconform.generators.arithmetic.cutting import cut, taken
from opconform.generators.plan import planned
from opconform.generators.primitives import ROOMS
from opconform.generators.source import GeneratedCases

OPERATORS = ["Softmax-13", "Conv-11", "MatMul-13", "Transpose-13", "LayerNormalization-17", "Pad-13", "Mul-14"]
MORE = [
    "Concat-13",
    "ReduceMean-18",
    "AveragePool-19",
    "Slice-13",
    "Attention-23",
    "GroupNormalization-21",
    "CumSum-14",
]


@pytest.fixture(scope="module")
def source() -> GeneratedCases:
    return GeneratedCases()


@pytest.mark.parametrize("operator", [*OPERATORS, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_kept_elements_have_the_bounds_of_the_whole(source, operator: str) -> None:
    ids = list(planned(source.library, Selection(globs=(f"onnx/{operator}/float32*",))))
    draw, compared = np.random.default_rng(0), 0
    for case in cases_of(source, ids[:: max(1, len(ids) // 12)]):
        reasoning = source.reasoning(case)
        if reasoning is None:
            continue
        recording, arrays = reasoning.recording, list(reasoning.arrays)
        shapes = [shape for shape in recording.shapes if shape is not None]
        if len(shapes) != len(recording.types) or any(f.kind != "values" or f.checks for f in recording.forks):
            continue
        grids = [tuple(draw.choice(d, max(1, d // 2), replace=False) if d else np.arange(0) for d in s) for s in shapes]
        holds = {at: bool(mask.all()) for at, mask in recording.premises(arrays, 1).items()}
        small = cut(recording, grids, holds)
        part = small.recording.expectation([a[np.newaxis] for a in small.arrays([a[0] for a in arrays])], None, 1)
        known = {option.labels: option for option in recording.expectation(arrays, None, 1).options}
        assert {option.labels for option in part.options} <= known.keys()
        for option in part.options:
            for own, whole, grid in zip(option.outputs, known[option.labels].outputs, grids, strict=True):
                for name in ("value", "lower", "upper"):
                    kept = taken(getattr(whole, name)[0], grid)
                    np.testing.assert_allclose(getattr(own, name)[0], kept, rtol=1e-14, atol=0)
                compared += own.value.size
    assert compared > 10


def test_every_primitive_can_be_cut_or_stays_whole() -> None:
    from opconform.generators.arithmetic import cutting

    known = cutting._POINTWISE | cutting._REDUCTIONS | cutting._ALONG | set(cutting._MOVEMENTS)
    stays = {"stack", "gather", "along", "scatter", "fast_fourier"}
    assert known <= ROOMS.keys()
    assert set(ROOMS) - known <= stays

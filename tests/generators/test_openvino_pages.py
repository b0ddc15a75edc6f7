"""The examples of OpenVINO's pages about indexing: what a page prints is what the first option of the case admits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opconform.cases.batch import Batch
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases

SOURCE = GeneratedCases()
PRINTED = {
    "Gather-7/*/page-batches": [[1, 1, 5], [10, 6, 6]],
    "Gather-8/*/page-negative": [1, 4, 5],
    "Gather-8/*/page-beyond": [4, 0, 0],
    "GatherElements-6/*/page-1": [[1, 4], [1, 2]],
    "GatherElements-6/*/page-2": [[7, 7, 1], [3, 4, 3]],
    "GatherElements-6/*/page-3": [[4, 2, 6], [4, 8, 3]],
    "GatherND-8/*/page-1": [1, 3],
    "GatherND-8/*/page-2": [[3, 4], [1, 2]],
    "GatherND-8/*/page-3": [[[3, 4]], [[1, 2]]],
    "GatherND-8/*/page-4": [2, 3],
    "ScatterUpdate-3/*/page-2": [[1, 1, 1, 3, 4], [1, 6, 1, 8, 9], [1, 11, 2, 13, 14]],
    "ScatterElementsUpdate-12/*/page-1": [52, 13, 104, 76],
    "ScatterElementsUpdate-12/*/page-2": [50, 10, 100, 70],
    "ScatterElementsUpdate-12/*/page-3": [[0, 11, 12, 0], [13, 0, 0, 14], [0, 0, 0, 0]],
    "ScatterElementsUpdate-12/*/page-4": [[1, 24, 1, 1], [14, 1, 1, 15], [1, 1, 1, 1]],
    "ScatterElementsUpdate-12/*/page-5": [[2, 264, 2, 2], [26, 2, 2, 28], [2, 2, 2, 2]],
    "ScatterNDUpdate-15/*/page-1": [1, 11, 3, 10, 9, 6, 7, 12],
    "ScatterNDUpdate-15/*/page-sum": [61, 72, 23, 4],
    "ScatterNDUpdate-15/*/page-sub": [-59, -68, -17, 4],
    "OneHot-16/*/page-1": [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]],
    "OneHot-16/*/page-2": [[[1, 0, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]]],
    "OneHot-16/*/page-normalize": [[1, 2, 2], [2, 2, 2], [2, 1, 2], [2, 2, 1]],
    "NonZero-3/*/page": [[0, 1, 1], [0, 0, 1]],
    "Bucketize-3/*/page": [[1, 3], [2, 0]],
    "EmbeddingBagOffsets-15/*/page-1": [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]],
    "EmbeddingBagOffsets-15/*/page-2": [[-0.48, -0.66], [0, 0], [2.8, -3.7]],
    "EmbeddingBagPacked-15/*/page-1": [[-2.1, -2.4], [-2.0, -2.2], [-0.2, 0.8]],
    "EmbeddingBagPacked-15/*/page-3": [[-1.05, -1.2], [-1.0, -1.1], [-0.1, 0.4]],
    "EmbeddingSegmentsSum-3/*/page": [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]],
    "SegmentMax-16/*/text": [5, -4, 0, 7, 0, -8],
    "StringTensorUnpack-15/*/page-2": [0, 3, 3, 8, 9],
    "StringTensorPack-15/*/page-2": ["OMZ", "", "GenAI", " ", "2024"],
}


def cases_of_page(pattern: str) -> list[str]:
    return [str(case) for case in planned(SOURCE.library, Selection((f"openvino/{pattern}",)))]


def batch_of(case: str) -> Batch:
    return next(SOURCE.batches([case]))


@pytest.mark.parametrize("pattern", PRINTED)
def test_a_case_of_a_page_has_the_output_that_the_page_prints(pattern: str) -> None:
    cases = cases_of_page(pattern)
    assert cases
    printed: Any = PRINTED[pattern]
    for case in cases:
        value = batch_of(case).expectation.options[0].outputs[0].value[0]
        if value.dtype == object:
            assert value.tolist() == printed
        else:
            np.testing.assert_allclose(value.astype(float), np.array(printed, float), rtol=0, atol=0.01)


def test_indices_are_drawn_within_the_axis_that_a_written_input_names() -> None:
    for axis, extent in (("0", 5), ("1", 3)):
        case = f"openvino/GatherElements-6/float32,int32/2*5x3/axis={axis}/uniform"
        attribute = batch_of(case).inputs[1]
        case = f"openvino/Gather-8/float32,int32,int32/5x3,4/axis={axis}/ramp"
        drawn = batch_of(case).inputs[1]
        assert attribute.max() < extent
        assert drawn.max() < extent

"""Cases that pair what else occurs alone: constants with types, options with ranks, rare types with ends."""

from __future__ import annotations

import pytest

from opconform.cases.ids import CaseId, parse_id, part_size
from opconform.generators.edges import edges
from opconform.generators.pairings import BEYOND, pairings
from opconform.generators.plan import grid
from opconform.generators.source import GeneratedCases, shipped
from opconform.specs.model import VersionSpec


def paired(name: str) -> tuple[list[CaseId], list[CaseId], VersionSpec]:
    spec, key = shipped().operator_version(name)
    version = spec.version(key)
    planned = [*edges(spec, version), *grid(spec, version, 2)]
    return list(pairings(spec, version, planned)), planned, version


@pytest.mark.parametrize("name", ["onnx/PRelu-16", "onnx/OneHot-11", "onnx/DequantizeLinear-21", "onnx/Conv-11"])
def test_all_inputs_but_the_first_are_constants_with_many_types_and_ranks(name):
    found, _, version = paired(name)
    rest = {port.name for port in version.signature.inputs[1:]}
    fixed = [c for c in found if any(c.setting(f"{one}-from") == "constant" for one in rest)]
    assert len(fixed) >= 4
    for case in GeneratedCases().cases([str(case) for case in fixed]):
        given = [one for one in case.program.inputs[1:] if one is not None]
        assert all(one.constant is not None for one in given)
    assert len({case.types for case in fixed}) > 1
    assert len({case.shapes for case in fixed}) > 1


def test_inputs_that_are_usually_constants_are_all_fed_in_some_cases():
    found, _, _ = paired("onnx/Clip-13")
    fed = [case for case in found if case.setting("min-from") == case.setting("max-from") == "graph-input"]
    assert fed


def test_options_meet_each_rank():
    found, planned, _ = paired("onnx/Elu-22")
    ranks = {len(case.shapes[0]) for case in (*planned, *found) if case.setting("alpha") and case.types == ("float32",)}
    assert {1, 2, 3, 4, 5, 6} <= ranks


def test_a_missing_axis_meets_each_rank():
    found, planned, _ = paired("onnx/Softmax-11")
    default = [case for case in (*planned, *found) if case.setting("axis") is None and case.edge is None]
    assert {2, 3, 4, 5} <= {len(case.shapes[0]) for case in default}


def test_an_option_that_changes_the_shapes_of_inputs_is_not_set_where_they_have_others():
    found, _, _ = paired("onnx/BatchNormalization-7")
    assert found
    assert not [case for case in found if case.setting("spatial") == "0" and "-from" not in str(case)]


def test_one_tensor_is_given_twice_with_many_elements():
    found, _, _ = paired("onnx/Add-14")
    twice = [case for case in found if case.setting("B-from") == "A"]
    assert twice
    assert all(part_size(case.shapes[0]) > BEYOND for case in twice)


def test_rare_types_meet_the_last_opset_and_no_element():
    found, planned, _ = paired("onnx/ReduceMax-20")
    assert any(case.types[0] == "bool" and part_size(case.shapes[0]) == 0 for case in (*planned, *found))
    last, planned, _ = paired("onnx/Abs-13")
    assert any(case.types == ("uint8",) and case.setting("opset") for case in (*planned, *last))


@pytest.mark.parametrize("name", ["onnx/GridSample-16", "onnx/OneHotEncoder-1", "onnx/Gemm-9", "onnx/Pad-13"])
def test_pairs_are_valid_cases_as_they_are_written(name):
    found, _, _ = paired(name)
    assert found
    assert [parse_id(str(case)) for case in found] == found
    for case in GeneratedCases().cases(list(map(str, found))):
        assert not case.expectation.invalid

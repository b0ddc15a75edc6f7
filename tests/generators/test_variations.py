"""How inputs come, one tensor given twice, numbers of inputs: cases beside the grid, for every operator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from opconform.cases.elements import element_type
from opconform.cases.errors import CaseIdError
from opconform.cases.ids import parse_id
from opconform.cases.onnx_model import onnx_bytes
from opconform.cases.program import UNRANKED
from opconform.cli import main
from opconform.generators.edges import edges
from opconform.generators.parameters import kindest_opset
from opconform.generators.plan import grid
from opconform.generators.source import GeneratedCases, shipped
from opconform.generators.variations import ARITIES, variations

TWICE = "onnx/Add-14/float32/2*3x2/B-from=A/ramp"


def varied(name: str) -> list[str]:
    spec, key = shipped().operator_version(name)
    version = spec.version(key)
    return [str(case) for case in variations(spec, version, [*edges(spec, version), *grid(spec, version, 2)])]


def test_each_input_is_fixed_with_the_program_in_some_case_and_the_first_one_by_itself():
    found = [case for case in varied("onnx/Add-14") if "constant" in case]
    assert len(found) == 2
    assert "B-from=constant" in found[0]
    assert "A-from" not in found[0]
    assert "A-from=constant" in found[1]


def test_an_input_that_is_planned_both_ways_is_not_varied():
    assert not any("indices-from=graph-input" in case for case in varied("onnx/Gather-13"))


def test_numbers_of_inputs_are_those_that_are_planned_and_those_that_lack():
    spec, key = shipped().operator_version("onnx/Max-13")
    version = spec.version(key)
    planned = [*edges(spec, version), *grid(spec, version, 2)]
    numbers = {len(case.shapes) for case in (*planned, *variations(spec, version, planned))}
    assert set(ARITIES) <= numbers


def test_each_openvino_operation_has_a_case_without_a_rank_and_no_other_standard_has():
    for name in ("openvino/Softmax-8", "openvino/MaxPool-1", "openvino/GRUCell-3"):
        (case,) = [case for case in varied(name) if "dims=unranked" in case]
        program = GeneratedCases().case(case).program
        assert {i.dims for i in program.feeds} == {UNRANKED}
        assert all(o.shape is None for o in program.outputs if o is not None)
    with pytest.raises(CaseIdError, match="dims is static or symbolic; read 'unranked'"):
        GeneratedCases().case("onnx/Softmax-13/float32/2x3/dims=unranked/ramp")


def test_each_onednn_operation_has_cases_whose_tensors_lie_elsewhere_in_memory() -> None:
    source = GeneratedCases()
    for name in ("onednn/MatMul", "onednn/Convolution", "onednn/LayerNorm"):
        free, padded, turned = (source.case(one).program for one in sorted(varied(name)) if "memory=" in one)
        for given in (i for i in turned.feeds if len(i.dims) > 1):
            assert given.strides[0] == 1 < given.strides[-1], given
        for given in (i for i in padded.feeds if len(i.dims) > 1):
            assert (given.strides[-1], given.strides[-2]) == (1, given.dims[-1] + 1), given
        assert [o.free for o in free.answers] == [True] * len(free.answers)
        assert len({padded.key, turned.key, free.key}) == 3
    assert not any("memory=" in case for case in varied("onednn/Reorder")), "its edges have them"
    with pytest.raises(CaseIdError, match="memory is plain; read 'turned'"):
        source.case("onnx/Softmax-13/float32/2x3/memory=turned/ramp")


def test_one_tensor_given_twice_is_fed_once_and_named_twice():
    case = GeneratedCases().case(TWICE)
    assert len(case.inputs) == 1
    model = onnx.load_model_from_string(onnx_bytes(case.program))
    assert list(model.graph.node[0].input) == ["A", "A"]
    assert [i.name for i in model.graph.input] == ["A"]
    (bounds,) = case.expectation.options[0].outputs
    assert np.array_equal(bounds.value, case.inputs[0] * 2)


def test_a_case_with_one_tensor_given_twice_is_shown_and_runs_as_a_script(tmp_path):
    done = CliRunner().invoke(main, ["show", TWICE])
    assert done.exit_code == 0, done.output
    assert done.output.count("input        A:") == 1
    script = CliRunner().invoke(main, ["show", "--script", TWICE])
    assert script.exit_code == 0
    compile(script.output, "script", "exec")


@pytest.mark.parametrize(
    "text", ["onnx/Add-14/float32/3x2,3x1/B-from=A/ramp", "onnx/Add-14/float32/2*3x2/A-from=B/ramp"]
)
def test_what_is_no_tensor_of_that_kind_or_comes_later_cannot_be_given_again(text):
    with pytest.raises(CaseIdError):
        GeneratedCases().case(text)


def test_opsets_at_both_ends_of_a_versions_range_carry_a_case():
    assert [case.count(";opset=11;") for case in varied("onnx/If-11") if "opset=" in case] == [1]
    assert not [case for case in varied("onnx/Gemm-13") if "opset=28" in case and "/float32/" in case], "an edge has it"


@pytest.mark.parametrize(("name", "ends"), [("onnx/Add-7", {"7"}), ("onnx/Relu-14", {"28"}), ("onnx/Not-1", {"28"})])
def test_each_end_of_a_versions_opsets_carries_several_types_if_there_are_several(name, ends):
    spec, key = shipped().operator_version(name)
    version = spec.version(key)
    planned = [*edges(spec, version), *grid(spec, version, 2)]
    types: dict[str, set[str]] = {end: set() for end in ends}
    for case in (*planned, *variations(spec, version, planned)):
        if (opset := case.setting("opset")) is not None:
            types[opset].add(element_type(case.types[0]).kind)
    assert all(len(kinds) == min(2, len(version.signature.types["T"])) for kinds in types.values())


@pytest.mark.parametrize(
    ("name", "opset"),
    [
        ("onnx/Add-14", 14),
        ("onnx/Compress-11", 13),
        ("onnx/Sin-7", 13),
        ("onnx/Add-7", 12),
        ("onnx/Identity-19", 19),
        ("onnx/If-13", 15),
        ("onnx/If-16", 16),
        ("onnx/If-19", 19),
        ("onnx/TreeEnsembleClassifier-1", 2),
        ("onnx/TreeEnsembleClassifier-3", 3),
    ],
)
def test_a_version_is_run_in_the_opset_that_most_releases_know(name, opset):
    spec, key = shipped().operator_version(name)
    assert kindest_opset(spec, spec.version(key)) == opset


def test_the_bodies_of_a_version_are_valid_in_the_opset_that_it_is_run_in():
    case = "onnx/If-13/seq.float32,bool/none/cond=scalar:true;else_branch=other;then_branch=one/ramp"
    program = GeneratedCases().case(case).program  # Identity copies sequences from opset 14 on
    onnx.checker.check_model(onnx_bytes(program), full_check=True)


def test_a_program_runs_three_times_and_one_with_two_shapes():
    draws = [case for case in varied("onnx/LSTM-22") if "draw=" in case]
    assert len(draws) == 2
    one, other = [case for case in varied("onnx/Conv-11") if "dims=symbolic" in case]
    assert one.split("/")[3] != other.split("/")[3]
    assert one.split("/")[4] == other.split("/")[4]
    source = GeneratedCases()
    assert source.case(one).program == source.case(other).program
    assert not [case for case in varied("onnx/ReduceMean-18") if "draw=" in case or "symbolic" in case]


def test_variations_are_ids_as_they_are_written():
    for name in ("onnx/LSTM-22", "onnx/Mean-13", "onnx/Clip-13"):
        ids = varied(name)
        assert ids
        assert [str(parse_id(text)) for text in ids] == ids


def test_extents_are_long_in_front_and_in_the_middle_and_equal_in_some_case():
    found = [parse_id(case).shapes[0] for case in varied("onnx/MeanVarianceNormalization-13")]
    assert any(part[:2] == (65, 67) for part in found)
    assert not any(part[:2] == (65, 67) for part in map(shape_of, varied("onnx/Relu-14"))), "an edge has such extents"


def test_extents_that_have_to_be_equal_or_divided_stay():
    for name in ("onnx/Det-22", "onnx/SpaceToDepth-13", "onnx/Einsum-12"):
        assert not any(part and 65 in part for part in map(shape_of, varied(name)))


def shape_of(case: str) -> tuple[object, ...]:
    part = parse_id(case).shapes[0]
    return part if isinstance(part, tuple) else ()

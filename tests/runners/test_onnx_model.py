"""Programs as ONNX models."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from fakes.programs import LAST_OPSET, constant, feed, mean, onnx_program, reduce_mean
from onnx import AttributeProto, helper, numpy_helper

from opconform.cases.elements import content, element_type, element_types
from opconform.cases.onnx_model import feed_names, feeds, ir_version, onnx_bytes, onnx_model, opset_of, output_names
from opconform.cases.program import Input, OperatorVersion, Output, Program

AXES = constant("axes", np.array([1], np.int64))


@pytest.mark.parametrize(
    "program",
    [
        *[reduce_mean(v, (3, 2), axes=(1,), keepdims=0, rank=1) for v in (1, 11, 13)],
        *[reduce_mean(v, (3, 2), axes=()) for v in (1, 11, 13)],
        reduce_mean(13, ("N", 2), axes=(-1,)),
        reduce_mean(13, (), keepdims=1),
        reduce_mean(13, (2, 0, 3), type_="bfloat16"),
        reduce_mean(18, (3, 2), AXES),
        reduce_mean(18, (3, 2), constant("axes", np.zeros(0, np.int64)), noop=1),
        reduce_mean(18, ("N", "M"), feed("axes", "int64", "K")),
        reduce_mean(18, (3, 2), None, noop=1),
        mean(6, (3, 2), (3, 2)),
        mean(8, (3, 1), (), ("N",)),
        mean(13, *[(2,)] * 40, type_="bfloat16"),
        onnx_program("Scaler", 1, [feed("x", "float32", 2)], rank=1, domain="ai.onnx.ml",
                     attributes=[("scale", "floats", (2.0,))]),
    ],
    ids=str,
)  # fmt: skip
def test_valid_programs_pass_the_checker_of_onnx(program: Program) -> None:
    onnx.checker.check_model(onnx_bytes(program), full_check=True)


@pytest.mark.parametrize(("operator", "version"), LAST_OPSET, ids=str)
def test_the_last_opset_of_a_version_resolves_to_that_version(operator: str, version: int) -> None:
    program = mean(version, (2,)) if operator == "Mean" else reduce_mean(version, (2,))
    carried = onnx.defs.get_schema(operator, opset_of(program), "")
    assert (carried.since_version, onnx_model(program).opset_import[0].version) == (version, program.opset)


@pytest.mark.parametrize(("domain", "opsets"), [("", [1, *range(5, 26)]), ("ai.onnx.ml", range(1, 6))])
def test_the_ir_version_is_the_lowest_that_the_opset_allows(domain: str, opsets: list[int]) -> None:
    known = [n for n in opsets if (domain or "ai.onnx", n) in helper.OP_SET_ID_VERSION_MAP]
    lowest = [helper.find_min_ir_version_for([helper.make_opsetid(domain or "ai.onnx", n)]) for n in known]
    assert [ir_version(domain, n) for n in known] == lowest


@pytest.mark.parametrize(("opset", "ir"), [(1, 3), (2, 3), (8, 3), (9, 4), (10, 5), (11, 6), (13, 7), (17, 8), (18, 8)])
def test_the_ir_versions_of_released_opsets_stay_as_they_are(opset: int, ir: int) -> None:
    assert ir_version("", opset) == ir


def test_an_opset_from_the_future_gets_the_newest_ir_version() -> None:
    assert ir_version("", 999) == max(row[1] for row in helper.VERSION_TABLE)


def test_an_unknown_domain_gets_the_oldest_ir_version() -> None:
    assert ir_version("com.example", 1) == 3


@pytest.mark.parametrize(("opset", "declared"), [(8, ["x", "shape"]), (9, ["x"])])
def test_an_initializer_is_a_graph_input_too_where_the_ir_version_wants_it(opset: int, declared: list[str]) -> None:
    shape = constant("shape", np.array([3, 2], np.int64))
    program = onnx_program("Expand", 8, [feed("x", "float32", 1), shape], rank=2, opset=opset)
    graph = onnx_model(program).graph
    assert [i.name for i in graph.input] == declared
    assert [i.name for i in graph.initializer] == ["shape"]
    assert feed_names(program) == ("x",)
    onnx.checker.check_model(onnx_model(program), full_check=True)


@pytest.mark.parametrize("type_", element_types())
def test_a_constant_keeps_its_type_shape_and_bytes(type_: str) -> None:
    array = np.array([[2, 1], [1, 1]] if type_ == "float8e8m0" else [[0, 1], [1, 1]]).astype(element_type(type_).dtype)
    array = array.astype(str).astype(object) if type_ == "string" else array
    (tensor,) = onnx_model(onnx_program("Identity", 16, [constant("x", array)], type_=type_)).graph.initializer
    assert tensor.data_type == element_type(type_).onnx
    assert tensor.raw_data == (b"" if type_ == "string" else content(array))
    assert numpy_helper.to_array(tensor).tolist() == array.tolist()


def test_omitted_inputs_are_empty_names_wherever_they_stand() -> None:
    x = feed("x", "float32", 2)
    clip = onnx_program("Clip", 13, [x, None, feed("max", "float32"), None], rank=1)
    graph = onnx_model(clip).graph
    assert list(graph.node[0].input) == ["x", "", "max", ""]
    assert [i.name for i in graph.input] == ["x", "max"]


@pytest.mark.parametrize(
    ("kind", "value", "type_", "read"),
    [
        ("int", -3, AttributeProto.INT, -3),
        ("boolean", 1, AttributeProto.INT, 1),
        ("float", 0.5, AttributeProto.FLOAT, 0.5),
        ("string", "größer", AttributeProto.STRING, "größer".encode()),
        ("ints", (1, -2), AttributeProto.INTS, [1, -2]),
        ("ints", (), AttributeProto.INTS, []),
        ("floats", (0.5, -2.0), AttributeProto.FLOATS, [0.5, -2.0]),
        ("floats", (), AttributeProto.FLOATS, []),
        ("strings", ("a", "b"), AttributeProto.STRINGS, [b"a", b"b"]),
        ("strings", (), AttributeProto.STRINGS, []),
    ],
)
def test_an_attribute_has_the_type_of_its_kind_even_if_it_is_empty(kind, value, type_, read) -> None:
    program = onnx_program("Anything", 1, [], attributes=[("a", kind, value)])
    (attribute,) = onnx_model(program).graph.node[0].attribute
    assert attribute.type == type_
    assert helper.get_attribute_value(attribute) == read


def test_numbers_and_names_of_dimensions_are_told_apart() -> None:
    (data,) = onnx_model(reduce_mean(13, ("N", 2, 0))).graph.input
    dims = data.type.tensor_type.shape.dim
    assert [(d.WhichOneof("value"), d.dim_param or d.dim_value) for d in dims] == [
        ("dim_param", "N"),
        ("dim_value", 2),
        ("dim_value", 0),
    ]


@pytest.mark.parametrize("names", [("N", "M"), ("y_dim0", "y_dim1"), ("y_dim_1", "y_dim0")])
def test_an_output_has_dimension_names_that_no_input_has(names: tuple[str, str]) -> None:
    (output,) = onnx_model(reduce_mean(13, names)).graph.output
    fresh = [d.dim_param for d in output.type.tensor_type.shape.dim]
    assert len(set(fresh)) == 2
    assert not set(fresh) & {*names, ""}


def test_an_output_of_rank_0_has_a_shape_and_one_of_no_rank_has_none() -> None:
    x = feed("x", "float32", 2)
    outputs = [onnx_model(onnx_program("Identity", 16, [x], rank=rank)).graph.output[0] for rank in (0, None)]
    assert [o.type.tensor_type.HasField("shape") for o in outputs] == [True, False]


def test_equal_programs_give_equal_bytes_and_others_do_not() -> None:
    assert onnx_bytes(reduce_mean(18, ("N", 2), AXES, noop=0)) == onnx_bytes(reduce_mean(18, ("N", 2), AXES, noop=0))
    assert onnx_bytes(reduce_mean(18, ("N", 2), AXES)) != onnx_bytes(reduce_mean(18, ("M", 2), AXES))


def test_names_are_those_of_the_program() -> None:
    program = Program(
        OperatorVersion("onnx", "Split", 18),
        (),
        (feed("input", "float32", 4), constant("split", np.array([1, 3]))),
        (Output("first", "float32", 1), Output("second", "float32", 1)),
        18,
    )
    node = onnx_model(program).graph.node[0]
    assert (list(node.input), tuple(node.output)) == (["input", "split"], output_names(program))
    x = np.ones(4, np.float32)
    assert feeds(program, [x]) == {"input": x}


@pytest.mark.parametrize("how_many", [0, 2])
def test_feeds_of_another_number_than_the_program_has_are_refused(how_many: int) -> None:
    with pytest.raises(ValueError, match="argument 2"):
        feeds(mean(13, (2,)), [np.ones(2)] * how_many)


@pytest.mark.parametrize(
    "program",
    [
        mean(13),
        onnx_program("ReduceMean", 13, [feed("x", "float32", 2)], rank=1, attributes=[("no_such", "int", 1)]),
        onnx_program("Mean", 13, [feed("a", "float32", 2), feed("b", "float16", 2)], rank=1),
        mean(13, (2, 3), (3, 2)),
        reduce_mean(13, (2,), axes=(1,)),
        reduce_mean(13, (2,), type_="bool"),
    ],
    ids=["no-inputs", "unknown-attribute", "types-differ", "no-broadcast", "axis-beyond", "type-outside"],
)
def test_invalid_programs_are_represented_and_left_to_the_backend_to_refuse(program: Program) -> None:
    model = onnx.ModelProto.FromString(onnx_bytes(program))
    assert len(model.graph.node[0].input) == len(program.inputs)
    with pytest.raises((onnx.checker.ValidationError, onnx.shape_inference.InferenceError)):
        onnx.checker.check_model(model, full_check=True)


def test_a_program_without_an_opset_takes_the_version_of_its_operator() -> None:
    program = Program(OperatorVersion("onnx", "Relu", 14), (), (Input("x", "float32", (2,)),), (), None)
    assert onnx_model(program).opset_import[0].version == 14


def test_a_program_of_another_standard_has_no_onnx_model() -> None:
    program = Program(OperatorVersion("openvino", "ReduceMean", 1), (), (), ())
    with pytest.raises(ValueError, match="openvino/ReduceMean-1 has no ONNX model"):
        onnx_model(program)

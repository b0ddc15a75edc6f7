"""Programs that are converted as one model become what they become alone."""

from __future__ import annotations

import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, version_converter

from opconform.runners.backends.onnx_joining import converted_together, joined, may_join, parted


def model(op: str, opset: int, names: str = "xy", **attributes: object) -> ModelProto:
    """Return a model of one node; `names` are those of its input and output."""
    given, made = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 1, 3]) for name in names)
    graph = helper.make_graph([helper.make_node(op, [given.name], [made.name], **attributes)], op, [given], [made])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=6)


def up(one: ModelProto) -> ModelProto:
    return version_converter.convert_version(one, 26)


def said(one: ModelProto) -> list[object]:
    """Return what a model says, whatever the names of the values inside it."""
    graph = one.graph
    nodes = [(node.op_type, len(node.input), len(node.output), [*node.attribute]) for node in graph.node]
    ports = [{value.name: value.type for value in part} for part in (graph.input, graph.output)]
    constants = [(value.dims, value.raw_data, value.int64_data) for value in graph.initializer]
    return [graph.name, nodes, ports, constants, [*one.opset_import], one.ir_version]


@pytest.mark.parametrize(
    ("op", "opset", "attributes"),
    [
        ("Softmax", 11, {"axis": 1}),  # gets more nodes
        ("Squeeze", 11, {"axes": [1]}),  # gets a constant
        ("Clip", 6, {"min": 0.5}),
        ("Relu", 6, {}),
    ],
)
def test_what_is_converted_together_says_what_it_says_alone(op: str, opset: int, attributes: dict[str, object]) -> None:
    models = [
        model(op, opset, **attributes),
        model(op, opset, "yx", **attributes),
        model(op, opset, "ab", **attributes),
    ]
    together = converted_together(models, up)
    assert [one and said(one) for one in together] == [said(up(one)) for one in models]
    assert all(len({*one.graph.node[-1].output} & {"x", "y", "b"}) == 1 for one in together if one)


def calls(refused: set[str]) -> tuple[list[int], object]:
    """Return the sizes of the models that a converter gets, and a converter that refuses some names of outputs."""
    sizes: list[int] = []

    def convert(one: ModelProto) -> ModelProto:
        sizes.append(len(one.graph.node))
        if refused & {output.name.partition("/")[2] for output in one.graph.output}:
            raise ValueError("refused")
        return one

    return sizes, convert


def test_a_refused_model_is_found_by_halving_and_left_for_alone() -> None:
    models = [model("Relu", 6, f"x{name}") for name in "abcdefgh"]
    sizes, convert = calls({"c"})
    made = converted_together(models, convert)
    assert [one is None for one in made] == [name in "cd" for name in "abcdefgh"]
    assert sizes == [8, 4, 4, 2, 2]


def test_where_both_halves_are_refused_all_are_left_for_alone() -> None:
    sizes, convert = calls({"c", "g"})
    assert converted_together([model("Relu", 6, f"x{name}") for name in "abcdefgh"], convert) == [None] * 8
    assert sizes == [8, 4, 4]


def whole_with(added: str, *users: int) -> ModelProto:
    """Return two joined models with a value that a tool added, and the nodes that use it."""
    whole = joined([model("Relu", 6), model("Relu", 6)])
    for number in users:
        whole.graph.node[number].input[0] = added
    whole.graph.node.insert(0, helper.make_node("Abs", ["0/x"], [added]))
    return whole


def test_a_new_value_belongs_to_the_model_that_uses_it() -> None:
    models = [model("Relu", 6), model("Relu", 6)]
    parts = parted(whole_with("new", 0), models)
    assert [[(*n.input, *n.output) for n in part.graph.node] for part in parts] == [
        [("x", "new"), ("new", "y")],
        [("x", "y")],
    ]
    with pytest.raises(ValueError, match="y is also a value"):
        parted(whole_with("y", 0), models)
    with pytest.raises(ValueError, match="too many"):
        parted(whole_with("new", 0, 1), models)
    with pytest.raises(LookupError):
        parted(whole_with("new"), models)


def test_a_node_with_a_body_is_not_joined() -> None:
    holding = model("If", 11)
    holding.graph.node[0].attribute.add(name="then_branch", type=AttributeProto.GRAPH)
    assert (may_join(holding), may_join(model("Relu", 6))) == (False, True)

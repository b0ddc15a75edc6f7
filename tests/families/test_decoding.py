"""RotaryEmbedding, CausalConvWithState and LinearAttention against ONNX's own function bodies and against loops."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from recorded import readings, values

F = np.float32


def body(name, version, inputs, outputs, attributes):
    """Return what ONNX's function body makes of arrays, in float64."""
    types = [TensorProto.INT64 if x is not None and x.dtype == np.int64 else TensorProto.FLOAT for x in inputs.values()]
    ports = [
        helper.make_tensor_type_proto(type_, x.shape).SerializeToString() if x is not None else b""
        for x, type_ in zip(inputs.values(), types, strict=True)
    ]
    names = [port if x is not None else "" for port, x in inputs.items()]
    node = helper.make_node(name, names, outputs, **attributes)
    schema = onnx.defs.get_schema(name, version, "")
    text = schema.get_context_dependent_function(node.SerializeToString(), ports)
    function = onnx.FunctionProto.FromString(text)
    for one in function.node:  # float32 in between, which is float64 here
        _widened(one)
    given = {port: x if x.dtype == np.int64 else x.astype(float) for port, x in inputs.items() if x is not None}
    return ReferenceEvaluator(function).run(None, given, attributes=attributes)


def _widened(node):
    for a in node.attribute:
        if node.op_type == "Cast" and a.name == "to" and a.i == TensorProto.FLOAT:
            a.i = TensorProto.DOUBLE
        if a.t.data_type == TensorProto.FLOAT:
            a.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(a.t).astype(float)))
        for one in a.g.node:
            _widened(one)


def drawn(*shape, low=-1.0, high=1.0):
    return np.random.default_rng(len(shape) + sum(shape)).uniform(low, high, shape).astype(F)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("part", [0, 2, 6])
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("told", [False, True])
def test_embeddings_are_rotated_as_the_function_body_has_it(told, rank, part, interleaved) -> None:
    x = drawn(2, 3, 4, 8) if rank == 4 else drawn(2, 4, 24)
    first = (9,) if told else (2, 4)
    inputs = {
        "X": x,
        "cos_cache": drawn(*first, (part or 8) // 2),
        "sin_cache": drawn(*first, (part or 8) // 2, low=-2.0),
    }
    inputs["position_ids"] = np.array([[3, 0, 8, 8], [1, 2, 7, 5]]) if told else None
    attributes = {"num_heads": 3} if rank == 3 else {}
    attributes |= {"rotary_embedding_dim": part, "interleaved": interleaved}
    wanted = body("RotaryEmbedding", 23, inputs, ["Y"], attributes)[0]
    found = values("onnx/RotaryEmbedding-23", inputs, {"Y": "float32"}, **attributes)[0]
    assert np.allclose(found, wanted, rtol=1e-14, atol=1e-14)


def test_a_quarter_turn_makes_of_the_first_the_second() -> None:
    x = np.array([[[[1, 2, 3, 4]]]], F)
    zero, one = np.zeros((1, 1, 2), F), np.ones((1, 1, 2), F)
    inputs = {"X": x, "cos_cache": zero, "sin_cache": one}
    assert values("onnx/RotaryEmbedding-23", inputs, {"Y": "float32"})[0].tolist() == [[[[-3, -4, 1, 2]]]]
    found = values("onnx/RotaryEmbedding-23", inputs, {"Y": "float32"}, interleaved=1)[0]
    assert found.tolist() == [[[[-2, 1, -4, 3]]]]
    assert readings("onnx/RotaryEmbedding-23", inputs | {"X": x[0]}, {"Y": "float32"}) == "heads"


def test_a_short_input_leaves_the_state_before_it_in_part() -> None:
    inputs = {"input": np.array([[[1, 2]]], F), "weight": np.array([[[1000, 100, 10, 1]]], F)}
    outputs = {"output": "float32", "present_state": "float32"}
    y, state = values("onnx/CausalConvWithState-27", inputs, outputs)
    assert (y.tolist(), state.tolist()) == ([[[1, 12]]], [[[0, 1, 2]]])
    y, state = values("onnx/CausalConvWithState-27", inputs | {"past_state": np.array([[[7, 8, 9]]], F)}, outputs)
    assert (y.tolist(), state.tolist()) == ([[[7891, 8912]]], [[[9, 1, 2]]])


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize("length", [1, 3, 8])
@pytest.mark.parametrize("whole", [False, True])
def test_a_convolution_with_state_is_what_its_function_body_gives(whole, length, activation) -> None:
    inputs = {"input": drawn(2, 3, length), "weight": drawn(3, 1, 4)}
    inputs |= {"bias": drawn(3) if whole else None, "past_state": drawn(2, 3, 3) if whole else None}
    outputs = {"output": "float32", "present_state": "float32"}
    wanted = body("CausalConvWithState", 27, inputs, list(outputs), {"activation": activation})
    found = values("onnx/CausalConvWithState-27", inputs, outputs, activation=activation)
    for one, other in zip(found, wanted, strict=True):
        assert np.allclose(one, other, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("queries", [2, 6])
@pytest.mark.parametrize("shared", [False, True])
def test_attention_is_what_its_function_body_gives(shared, queries, rule) -> None:
    inputs = {"query": drawn(2, 4, queries * 4), "key": drawn(2, 4, 8), "value": drawn(2, 4, 6)}
    inputs["past_state"] = None if shared else drawn(2, 2, 4, 3)
    inputs["decay"] = drawn(2, 4, 2 if shared else 8, high=0.0) if "gated" in rule else None
    inputs["beta"] = drawn(2, 4, 1 if shared else 2, low=0.0) if "delta" in rule else None
    outputs = {"output": "float32", "present_state": "float32"}
    attributes = {"q_num_heads": queries, "kv_num_heads": 2, "update_rule": rule, "scale": 0.5 if shared else 0.0}
    begin = {"past_state": np.zeros((2, 2, 4, 3), F)} if shared else {}  # the body's own zeros are float32
    wanted = body("LinearAttention", 27, inputs | begin, list(outputs), attributes)
    found = values("onnx/LinearAttention-27", inputs, outputs, **attributes)
    for one, other in zip(found, wanted, strict=True):
        assert np.allclose(one, other, rtol=1e-13, atol=1e-13)


def test_what_a_rule_does_not_need_is_a_silence() -> None:
    inputs = {"query": drawn(1, 1, 2), "key": drawn(1, 1, 2), "value": drawn(1, 1, 2), "beta": drawn(1, 1, 1)}
    outputs = {"output": "float32", "present_state": "float32"}
    heads = {"q_num_heads": 1, "kv_num_heads": 1}
    found = readings("onnx/LinearAttention-27", inputs, outputs, update_rule="linear", **heads)
    assert [one.taken["not-needed"] for one in found] == ["ignored", "rejected"]
    assert readings("onnx/LinearAttention-27", inputs, outputs, update_rule="gated", **heads) == "decay"

"""Normalizations against ONNX's own function bodies in exact arithmetic, and against plain loops."""

import math

import gmpy2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from recorded import readings, values

F = np.float32
X = np.random.default_rng(7).uniform(-1, 2, (2, 6, 3, 2)).astype(F)
ROW = np.array([[3.0, 4.0], [0.0, 0.0], [-1.0, 0.0]], F)


def each(function, x):
    return np.vectorize(function, otypes=[object])(x)


def expanded(name, version, attributes, inputs):
    """Return what an operator's body makes of arrays, in exact arithmetic."""
    schema = onnx.defs.get_schema(name, version, "")
    if schema.has_function:
        body = schema.function_body
    else:
        ports = [helper.make_tensor_type_proto(TensorProto.FLOAT, x.shape).SerializeToString() for x in inputs.values()]
        node = helper.make_node(name, list(inputs), ["Y"], **attributes)
        text = schema.get_context_dependent_function(node.SerializeToString(), ports)
        body = onnx.FunctionProto.FromString(text)
    found = {port: each(gmpy2.mpfr, x.astype(float)) for port, x in inputs.items()}
    given = {a.name: helper.get_attribute_value(a.default_value) for a in schema.attributes.values()} | attributes
    for node in body.node:
        told = {
            a.name: given[a.ref_attr_name] if a.ref_attr_name else helper.get_attribute_value(a) for a in node.attribute
        }
        found[node.output[0]] = _node(node.op_type, [found[n] for n in node.input], told)
    return found[body.output[0]]


def _node(name, xs, told):  # noqa: PLR0911 - one for each operator
    match name:
        case "Constant":
            value = told.get("value_ints", told.get("value"))
            array = numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.array(value)
            return array if array.dtype.kind == "i" else each(gmpy2.mpfr, array.astype(float))
        case "Cast":
            return xs[0]
        case "Shape":
            return np.array(xs[0].shape[told.get("start", 0) : told.get("end")], np.int64)
        case "Concat":
            return np.concatenate(xs)
        case "Reshape":
            return xs[0].reshape([n or xs[0].shape[i] for i, n in enumerate(xs[1].tolist())])
        case "ReduceMean":
            axes = tuple(int(a) for a in (xs[1] if len(xs) > 1 else told["axes"]))
            return xs[0].sum(axis=axes, keepdims=True) / math.prod(xs[0].shape[a] for a in axes)
        case "Sqrt":
            return each(gmpy2.sqrt, xs[0])
        case "Div" if xs[0].dtype.kind == "i":
            return xs[0] // xs[1]
    a, b = xs
    return {
        "Pow": lambda: a**b,
        "Sub": lambda: a - b,
        "Add": lambda: a + b,
        "Mul": lambda: a * b,
        "Div": lambda: a / b,
    }[name]()


@pytest.mark.parametrize(
    ("operator", "attributes", "channels"),
    [
        ("MeanVarianceNormalization-9", {}, 0),
        ("MeanVarianceNormalization-13", {"axes": (1, 3)}, 0),
        ("GroupNormalization-18", {"num_groups": 3, "epsilon": 0.25}, 3),
    ],
)
def test_a_reading_is_that_of_the_function_body(operator, attributes, channels) -> None:
    name, _, version = operator.partition("-")
    inputs = {"X": X}
    if channels:
        inputs |= {"scale": np.linspace(1, 2, channels, dtype=F), "bias": np.linspace(-1, 1, channels, dtype=F)}
    with gmpy2.context(precision=400):
        wanted = expanded(name, int(version), attributes, inputs).astype(float)
    found = readings(f"onnx/{operator}", inputs, {"Y": "float32"}, **attributes)
    assert any(np.allclose(one.values[0], wanted, rtol=1e-13, atol=1e-13) for one in found)


def test_from_version_21_on_each_channel_has_its_own_scale() -> None:
    scale, bias = np.arange(1, 7, dtype=F), np.arange(6, dtype=F)
    found = values(
        "onnx/GroupNormalization-21",
        {"X": X, "scale": scale, "bias": bias},
        {"Y": "float32"},
        num_groups=2,
        epsilon=0.5,
    )[0]
    x = X.astype(float).reshape(2, 2, -1)
    y = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 0.5)
    wanted = y.reshape(X.shape) * scale[:, None, None] + bias[:, None, None]
    assert np.allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_the_region_of_an_even_size_has_one_channel_more_behind(size) -> None:
    for found in readings("onnx/LRN-13", {"X": X}, {"Y": "float32"}, size=size, alpha=0.5, beta=0.75, bias=2.0):
        for n, channel, i, j in np.ndindex(*X.shape):
            low, high = max(0, channel - math.floor((size - 1) / 2)), min(5, channel + math.ceil((size - 1) / 2))
            total = sum(float(X[n, k, i, j]) ** 2 for k in range(low, high + 1))
            wanted = float(X[n, channel, i, j]) / (2 + 0.5 / size * total) ** 0.75
            assert found.values[0][n, channel, i, j] == pytest.approx(wanted, rel=1e-14)


def test_a_norm_of_zero_gives_zero() -> None:
    outputs = {"output": "float32"}
    assert values("onnx/LpNormalization-22", {"input": ROW}, outputs)[0] == pytest.approx(
        np.array([[0.6, 0.8], [0, 0], [-1, 0]])
    )
    wanted = np.array([[3 / 7, 4 / 7], [0, 0], [-1, 0]])
    assert values("onnx/LpNormalization-1", {"input": ROW}, outputs, p=1)[0] == pytest.approx(wanted)
    assert readings("onnx/LpNormalization-1", {"input": ROW}, outputs, p=3) == "p-range"


@pytest.mark.parametrize("name", ["Softmax-1", "Softmax-11", "Softmax-13"])
@pytest.mark.parametrize("number", [0.0, 1.0, 0.3, 20.0])
def test_softmax_as_the_page_writes_it_is_admitted_for_equal_elements(name, number) -> None:
    x = np.full((2, 8), number, F)
    exponentials = np.exp(x) * (1 + np.array([3, -3, 2, 0, 1, -1, -2, 0], F) * F(2.0**-23))  # within 3 ulp
    y = exponentials / exponentials.sum(1, keepdims=True)
    found = readings(f"onnx/{name}", {"input": x}, {"output": "float32"}, axis=1)
    assert any(((one.lower[0] <= y) & (y <= one.upper[0])).all() for one in found)
    assert not any(((one.lower[0] <= y * F(1.0001)) & (y * F(1.0001) <= one.upper[0])).any() for one in found)


def batch_normalized(inputs, dtype, momentum=None):
    """Return BatchNormalization in one type throughout; with a momentum, as in training."""
    x, scale, b, mean, variance = (one.astype(dtype) for one in inputs)
    old, column = (mean, variance), (-1, 1)
    if momentum is not None:
        mean, variance = x.mean((0, 2)), x.var((0, 2))
    inverse = 1 / np.sqrt(variance + dtype(F(1e-5)))
    y = (x - mean.reshape(column)) * inverse.reshape(column) * scale.reshape(column) + b.reshape(column)
    if momentum is None:
        return [y]
    return [
        y,
        *(o * dtype(F(momentum)) + n * dtype(1 - F(momentum)) for o, n in zip(old, (mean, variance), strict=True)),
    ]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("version", [14, 15])
def test_batch_normalization_of_mixed_types_may_be_computed_in_either(version, training) -> None:
    draw = np.random.default_rng(2)
    x, (scale, b) = draw.integers(97, 103, (4, 3, 4)).astype(F), draw.normal(1, 1, (2, 3)).astype(F)
    mean, variance = draw.normal(100, 0.01, 3), draw.uniform(0.5, 2, 3)
    given = {"X": x, "scale": scale, "B": b, "input_mean": mean, "input_var": variance}
    outputs = {"Y": "float32"} | (dict.fromkeys(["running_mean", "running_var"], "float64") if training else {})
    told = {"training_mode": 1, "momentum": 0.9} if training else {}
    found = readings(f"onnx/BatchNormalization-{version}", given, outputs, **told)
    for dtype, wanted in ((np.float64, "as-given"), (F, "as-input")):
        answers = batch_normalized(given.values(), dtype, 0.9 if training else None)
        inside = {
            one.taken["wider-statistics"]
            for one in found
            if one.taken["algorithm"] == "direct"
            and all(
                ((low <= y.astype(type_)) & (y.astype(type_) <= high)).all()
                for low, high, y, type_ in zip(one.lower, one.upper, answers, outputs.values(), strict=True)
            )
        }
        assert wanted in inside
        assert dtype == np.float64 or training or inside == {"as-input"}

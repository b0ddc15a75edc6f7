"""References agree with ONNX's own function bodies, expanded in exact arithmetic, by one of their readings."""

import functools
import math

import gmpy2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from recorded import readings

from opconform.generators.fills import Blank, element_type, fill

BITS = 400
OPERATORS = {
    "Relu-14": {},
    "LeakyRelu-16": {"alpha": 0.25},
    "Elu-6": {"alpha": -1.5},
    "Elu-22": {},
    "Selu-6": {},
    "Selu-22": {"gamma": 0.3},
    "Celu-12": {"alpha": 0.7},
    "Celu-28": {"alpha": -2.0},
    "ThresholdedRelu-10": {},
    "ThresholdedRelu-22": {"alpha": -0.3},
    "HardSigmoid-6": {},
    "HardSigmoid-22": {"alpha": 0.3, "beta": 0.1},
    "HardSwish-14": {},
    "HardSwish-22": {},
    "Softplus-1": {},
    "Softplus-22": {},
    "Softsign-1": {},
    "Softsign-22": {},
    "Mish-18": {},
    "Mish-22": {},
    "Swish-24": {"alpha": 1.702},
    "Shrink-9": {"lambd": 0.3, "bias": 0.7},
    "Gelu-20": {"approximate": "tanh"},
}


def expanded(name, version, attributes, x):
    """Return what an operator's body makes of a number, in exact arithmetic; an operator without one, by its name."""
    schema = onnx.defs.get_schema(name, version, "")
    if schema.has_function:
        body = schema.function_body
    else:
        node = helper.make_node(name, ["X"], ["Y"], **attributes)
        of = helper.make_tensor_type_proto(TensorProto.FLOAT, [1])
        text = schema.get_context_dependent_function(node.SerializeToString(), [of.SerializeToString()])
        body = onnx.FunctionProto.FromString(text)
    values = {schema.inputs[0].name: x}
    given = {a.name: a.default_value.f for a in schema.attributes.values() if a.default_value.name} | attributes
    opset = max(one.version for one in body.opset_import)
    for node in body.node:
        values[node.output[0]] = _node(node, [values[n] for n in node.input], given, opset)
    return values[node.output[0]]


def _node(node, xs, given, opset):  # noqa: PLR0911 - one for each operator
    told = {}
    for a in node.attribute:
        value = given[a.ref_attr_name] if a.ref_attr_name else helper.get_attribute_value(a)
        told[a.name] = float(np.float32(value)) if isinstance(value, float) else value
    match node.op_type:
        case "Constant":
            value = told.get("value_float", told.get("value"))
            array = numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.array(value)
            return gmpy2.mpfr(float(array.reshape(-1)[0]))
        case "CastLike":
            return xs[0]
        case "Less":
            return xs[0] < xs[1]
        case "Where":
            return xs[1] if xs[0] else xs[2]
        case "Max":
            return max(xs)
        case "Min":
            return min(xs)
        case "Sum":
            return sum(xs[1:], xs[0])
        case "Elu" | "Softplus" | "HardSigmoid":
            schema = onnx.defs.get_schema(node.op_type, opset, "")
            return expanded(node.op_type, schema.since_version, told, xs[0])
    one = gmpy2.mpfr(1)
    plain = {
        "Mul": lambda a, b: a * b,
        "Add": lambda a, b: a + b,
        "Sub": lambda a, b: a - b,
        "Div": lambda a, b: a / b,
        "Pow": lambda a, b: a**b,
        "Neg": lambda a: -a,
        "Abs": abs,
        "Exp": gmpy2.exp,
        "Log": gmpy2.log,
        "Tanh": gmpy2.tanh,
        "Sqrt": gmpy2.sqrt,
        "Sigmoid": lambda a: one / (one + gmpy2.exp(-a)),
    }
    return plain[node.op_type](*xs)


@functools.cache
def numbers() -> np.ndarray:
    blank = Blank(element_type("float32"), 24, 1)
    rows = [fill(name, blank, ["0"])[0] for name in ("uniform", "mixed", "unit-ends")]
    return np.concatenate([*rows, np.array([-30.0, -6.5, -3.0, -1.0, 0.0, 2.5, 6.0, 20.0], np.float32)])


@pytest.mark.parametrize("type_", ["float32", "float64"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_reading_is_that_of_the_function_body(operator, type_) -> None:
    name, _, version = operator.partition("-")
    schema = onnx.defs.get_schema(name, int(version), "")
    if f"tensor({'double' if type_ == 'float64' else 'float'})" not in schema.inputs[0].types:
        pytest.skip("a version without the type")
    x = numbers().astype(type_)
    with gmpy2.context(precision=BITS, emin=-(1 << 30), emax=1 << 30):
        wanted = [expanded(name, int(version), OPERATORS[operator], gmpy2.mpfr(float(n))) for n in x]
        found = readings(
            f"onnx/{operator}", {schema.inputs[0].name: x}, {schema.outputs[0].name: type_}, **OPERATORS[operator]
        )
        assert any(agrees(one, wanted, type_) for one in found)


def test_swiglu_is_swish_of_one_input_times_the_other() -> None:
    body = onnx.defs.get_schema("SwiGLU", 28, "").function_body
    assert [(node.op_type, list(node.input)) for node in body.node] == [("Swish", ["A"]), ("Mul", ["SwishGate", "B"])]
    a, b = numbers().astype("float64"), numbers().astype("float64")[::-1]
    with gmpy2.context(precision=BITS, emin=-(1 << 30), emax=1 << 30):
        gates = [expanded("Swish", 24, {"alpha": -1.702}, gmpy2.mpfr(n)) for n in a]
        wanted = [gate * gmpy2.mpfr(n) for gate, n in zip(gates, b, strict=True)]
        found = readings("onnx/SwiGLU-28", {"A": a, "B": b}, {"Y": "float64"}, alpha=-1.702)
        assert {one.taken["cancellation"] for one in found} == {"avoided", "lossy"}
        assert all(agrees(one, wanted, "float64") for one in found)


def agrees(reading, wanted, type_) -> bool:
    """Return whether a reading has the values in float64, and in float32, whose constants differ, admits them."""
    value, lower, upper = (one[0].tolist() for one in (reading.values, reading.lower, reading.upper))
    if type_ == "float32":
        return all(low <= float(np.float32(w)) <= high for low, w, high in zip(lower, wanted, upper, strict=True))
    return all(abs(v - w) <= 2.0**-52 * max(abs(w), 2.0**-20) for v, w in zip(value, wanted, strict=True))


def test_a_body_truncates_what_shifts_whole_numbers() -> None:
    x = np.arange(-6, 7, dtype=np.int32)
    found = readings("onnx/Shrink-9", {"input": x}, {"output": "int32"}, lambd=2.5, bias=1.5)
    body = [n + 1 if n < -2 else n - 1 if n > 2 else 0 for n in x.tolist()]
    assert body in [one.values[0].tolist() for one in found]
    exact = [math.trunc(n + 1.5) if n < -2.5 else math.trunc(n - 1.5) if n > 2.5 else 0 for n in x.tolist()]
    assert exact in [one.values[0].tolist() for one in found]

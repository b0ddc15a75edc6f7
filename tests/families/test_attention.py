"""Attention: what its page draws and says, and its function body, expanded and computed in exact arithmetic."""

import gmpy2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from recorded import LIBRARY, readings, values

from opconform.cases.elements import element_type
from opconform.generators.operands import body_of

BITS = 200
F = np.float32
LENGTHS = {"B": 2, "H": 4, "G": 2, "S": 3, "L": 5, "P": 2}


def ports(d, e, *names):
    """Return inputs of Attention by name: Q, K and V in four dimensions, and whichever else are named."""
    draw = np.random.default_rng(7)
    b, h, g, s, n, p = LENGTHS.values()
    found = {name: draw.integers(-16, 16, shape) / 8.0 for name, shape in
             {"Q": (b, h, s, d), "K": (b, g, n, d), "V": (b, g, n, e)}.items()}  # fmt: skip
    if "past" in names:
        found |= {"past_key": draw.integers(-16, 16, (b, g, p, d)) / 8.0}
        found |= {"past_value": draw.integers(-16, 16, (b, g, p, e)) / 8.0}
    total = n + (p if "past" in names else 0)
    masks = {
        "bool": draw.integers(0, 2, (b, h, s, total)).astype(bool),
        "off": np.arange(s)[:, None] > np.zeros((s, total)),
        "bias": np.where(draw.integers(0, 3, (s, total)) == 0, -np.inf, draw.integers(-8, 8, (s, total)) / 4.0),
        "short": draw.integers(0, 2, (s, total - 1)).astype(bool),
    }
    for name in names:
        found |= {"attn_mask": masks[name]} if name in masks else {}
    return found | ({"nonpad_kv_seqlen": np.array([4, 1])} if "lengths" in names else {})


CASES = {
    "plain": (23, (), {}),
    "scaled": (23, ("bias",), {"scale": 0.5, "softcap": 0.75}),
    "causal": (23, ("off",), {"is_causal": 1, "qk_matmul_output_mode": 3}),
    "past": (23, ("past", "bool"), {"is_causal": 1, "qk_matmul_output_mode": 2}),
    "short": (24, ("short",), {"softcap": 2.0, "qk_matmul_output_mode": 1}),
    "lengths": (24, ("lengths", "bias"), {"is_causal": 1, "qk_matmul_output_mode": 3}),
    "window": (25, ("bool",), {"left_window_size": 1, "right_window_size": 0, "qk_matmul_output_mode": 3}),
    "window-past": (25, ("past",), {"left_window_size": 2, "is_causal": 1, "qk_matmul_output_mode": 2}),
    "window-lengths": (25, ("lengths",), {"left_window_size": 1, "right_window_size": 1}),
}


@pytest.mark.parametrize("flat", [False, True], ids=["four", "three"])
@pytest.mark.parametrize("case", CASES)
def test_a_reading_is_that_of_the_function_body(case, flat) -> None:
    version, names, attributes = CASES[case]
    given = ports(3, 2, *names)
    if flat:
        joined = {name: given[name].transpose(0, 2, 1, 3) for name in "QKV"}
        given |= {name: x.reshape(*x.shape[:2], -1) for name, x in joined.items()}
        attributes = attributes | {"q_num_heads": LENGTHS["H"], "kv_num_heads": LENGTHS["G"]}
    state = "past" in names
    outputs = {"Y": "float64", "present_key": "float64" if state else None}
    outputs |= {"present_value": "float64" if state else None, "qk_matmul_output": "float64"}
    schema = onnx.defs.get_schema("Attention", version, "")
    order = {port.name: given.get(port.name) for port in schema.inputs}
    found = readings(f"onnx/Attention-{version}", order, outputs, **attributes)
    with gmpy2.context(precision=BITS):
        wanted = expanded(schema, order, [name if type_ else "" for name, type_ in outputs.items()], attributes)
    assert any(all(map(agree, one.values, wanted)) for one in found)


def agree(value, wanted) -> bool:
    """Return whether an array in float64 is what exact numbers are when rounded, within some units."""
    close = [
        v == w or abs(v - w) <= 2.0**-48 * max(abs(w), 2.0**-20) for v, w in zip(value.flat, wanted.flat, strict=True)
    ]
    return value.shape == wanted.shape and all(close)


def expanded(schema, given, outputs, attributes):
    """Return what the function body of a call makes of inputs by name, with numbers of many bits in place of floats."""
    names = [name if x is not None else "" for name, x in given.items()]
    node = helper.make_node(schema.name, names, outputs, domain=schema.domain, **attributes)
    types = [
        onnx.TypeProto() if x is None else helper.make_tensor_type_proto(onnx_type(x), x.shape) for x in given.values()
    ]
    text = schema.get_context_dependent_function(node.SerializeToString(), [one.SerializeToString() for one in types])
    body = onnx.FunctionProto.FromString(text)
    known = {name: exact(x) for name, x in given.items() if x is not None}
    for one in body.node:
        told = {a.name: helper.get_attribute_value(a) for a in one.attribute}
        known[one.output[0]] = np.asarray(computed(one.op_type, told, [known[name] for name in one.input if name]))
    return [known[name] for name in outputs if name]


def onnx_type(x):
    return helper.np_dtype_to_tensor_dtype(x.dtype)


def exact(x):
    x = np.asarray(x)
    return np.array([gmpy2.mpfr(float(n)) for n in x.flat], object).reshape(x.shape) if x.dtype.kind == "f" else x


def each(function, x):
    return np.array([function(n) for n in x.flat], object).reshape(x.shape)


def softmax(x):
    e = each(gmpy2.exp, x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def computed(name, told, xs):
    """Return what a node gives; casts change nothing but the kind of number."""
    ints = [x.tolist() if getattr(x, "dtype", None) == np.int64 else x for x in xs]
    functions = {
        "Constant": lambda: exact(numpy_helper.to_array(told["value"])),
        "Shape": lambda: np.array(xs[0].shape[told.get("start", 0) : told.get("end")]),
        "Concat": lambda: np.concatenate(xs, told["axis"]),
        "Reshape": lambda: xs[0].reshape([xs[0].shape[i] if n == 0 else n for i, n in enumerate(ints[1])]),
        "Transpose": lambda: xs[0].transpose(told["perm"]),
        "Identity": lambda: xs[0],
        "Cast": lambda: (
            exact(xs[0].astype(float)) if xs[0].dtype != object and told["to"] != TensorProto.INT64 else xs[0]
        ),
        "CastLike": lambda: xs[0],
        "Sqrt": lambda: each(gmpy2.sqrt, xs[0]),
        "Tanh": lambda: each(gmpy2.tanh, xs[0]),
        "Div": lambda: xs[0] // xs[1] if xs[0].dtype != object else xs[0] / xs[1],
        "Mod": lambda: xs[0] % xs[1],
        "Mul": lambda: xs[0] * xs[1],
        "Add": lambda: xs[0] + xs[1],
        "Sub": lambda: xs[0] - xs[1],
        "Neg": lambda: -xs[0],
        "MatMul": lambda: np.matmul(xs[0], xs[1]),
        "Softmax": lambda: softmax(xs[0]),
        "ReduceMax": lambda: xs[0].max(tuple(ints[1]), keepdims=True),
        "Equal": lambda: np.equal(xs[0], xs[1]).astype(bool),
        "Less": lambda: np.less(xs[0], xs[1]),
        "LessOrEqual": lambda: np.less_equal(xs[0], xs[1]),
        "And": lambda: xs[0] & xs[1],
        "Not": lambda: ~xs[0],
        "Where": lambda: np.where(xs[0], xs[1], xs[2]),
        "Expand": lambda: xs[0] * np.ones(ints[1], int),
        "ConstantOfShape": lambda: exact(np.zeros(ints[0])),
        "Gather": lambda: np.take(xs[0], xs[1], told.get("axis", 0)),
        "Range": lambda: np.arange(*(int(n) for n in xs)),
        "Squeeze": lambda: np.squeeze(xs[0], tuple(ints[1]) if len(xs) > 1 else None),
        "Unsqueeze": lambda: np.expand_dims(xs[0], tuple(ints[1])),
        "Pad": lambda: padded(xs[0], ints[1], xs[2], ints[3]),
    }
    return functions[name]()


def padded(x, pads, value, axes):
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[len(axes) + i])
    return np.pad(x, widths, constant_values=value.reshape(-1)[0])


def attended(version, queries, keys, lengths=None, **attributes) -> list[list[list[int]]]:
    """Return which keys each query of each sample attends to, by weights that are not zero."""
    batch = 1 if lengths is None else len(lengths)
    given = {"Q": np.ones((batch, 1, queries, 4)), "K": np.ones((batch, 1, keys, 4)), "V": np.ones((batch, 1, keys, 1))}
    given = given | {"attn_mask": None, "past_key": None, "past_value": None}
    if version > 23:
        given["nonpad_kv_seqlen"] = None if lengths is None else np.array(lengths)
    outputs = {"Y": "float64", "present_key": None, "present_value": None, "qk_matmul_output": "float64"}
    _, p = values(f"onnx/Attention-{version}", given, outputs, qk_matmul_output_mode=3, **attributes)
    return [[np.flatnonzero(row).tolist() for row in one[0]] for one in p]


def test_the_frontier_is_that_of_the_drawings() -> None:
    first, second = attended(24, 4, 8, [4, 8], is_causal=1)
    assert first == [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert second == [list(range(n)) for n in (5, 6, 7, 8)]


def test_a_frontier_before_the_first_key_leaves_rows_of_zeros() -> None:
    assert attended(25, 4, 8, [2], is_causal=1) == [[[], [], [0], [0, 1]]]


def test_the_window_is_that_of_the_drawing() -> None:
    found = attended(25, 4, 6, left_window_size=2, right_window_size=1)
    assert found == [[[0, 1], [0, 1, 2], [0, 1, 2, 3], [1, 2, 3, 4]]]
    causal = attended(25, 4, 6, left_window_size=2, right_window_size=1, is_causal=1)
    assert causal == [[[0], [0, 1], [0, 1, 2], [1, 2, 3]]]


def test_without_a_cache_the_frontier_begins_at_the_first_key() -> None:
    assert attended(23, 2, 4, is_causal=1) == [[[0], [0, 1]]]


@pytest.mark.parametrize(
    ("clause", "given", "attributes"),
    [
        ("past-together", {"past_value": None}, {}),
        ("mask-shape", {"attn_mask": np.ones((3, 8), bool)}, {}),
        ("output-mode", {}, {"qk_matmul_output_mode": 4}),
        ("groups", {"Q": np.ones((2, 3, 3, 3))}, {}),
    ],
)
def test_calls_that_break_a_clause_are_found_out(clause, given, attributes) -> None:
    names = ("Q", "K", "V", "attn_mask", "past_key", "past_value")
    every = {name: (ports(3, 2, "past") | given).get(name) for name in names}
    outputs = dict.fromkeys(("Y", "present_key", "present_value"), "float64") | {"qk_matmul_output": None}
    assert readings("onnx/Attention-23", every, outputs, **attributes) == clause


@pytest.mark.parametrize("attributes", [{}, {"scale": 0.25}, {"softmax_precision": 11}])
def test_flex_attention_is_its_function_body(attributes) -> None:
    given = ports(3, 2)
    schema = onnx.defs.get_schema("FlexAttention", 1, "ai.onnx.preview")
    own, theirs = {}, {}
    for port, name in {"score_mod": "own-bent", "prob_mod": "own-squared"}.items():
        spec, number = LIBRARY.operator_version("onnx/FlexAttention-1")
        own[port] = body_of(spec.versions[number], ("float64",), name)
        text = spec.versions[number].graphs[name].replace("{T1}", "double")
        theirs[port] = onnx.parser.parse_graph(text)
    found = readings("onnx/FlexAttention-1", given, {"Y": "float64"}, **attributes, **own)
    with gmpy2.context(precision=BITS):
        wanted = expanded(schema, given, ["Y"], attributes | theirs)
    assert any(agree(one.values[0], wanted[0]) for one in found)


WIDE = [
    *((f"onnx/Attention-{n}", told) for n in (23, 24, 25) for told in ({}, {"scale": 0.3}, {"softcap": 0.7})),
    *((f"onnx/Attention-{n}", {"softmax_precision": 1}) for n in (23, 24)),  # 25 names casts, which round
    *(("onnx/FlexAttention-1", told) for told in ({}, {"scale": 0.3}, {"softmax_precision": 1})),
]


@pytest.mark.parametrize(("operator", "attributes"), WIDE, ids=str)
@pytest.mark.parametrize("type_", ["float16", "bfloat16"])
def test_the_correctly_rounded_answer_is_that_of_a_wide_accumulator(operator, attributes, type_) -> None:
    own, draw = element_type(type_), np.random.default_rng(3)
    q, k, v = (draw.normal(0, 2, (2, 3, n, 24)).astype(own.dtype) for n in (4, 7, 7))
    wide = [x.astype(float) for x in (q, k.swapaxes(-1, -2), v)]
    x = np.matmul(wide[0], wide[1]) * float(F(attributes.get("scale", 24**-0.5)))
    cap = float(F(attributes.get("softcap", 0)))
    e = np.exp(cap * np.tanh(x / cap) if cap else x)
    wanted = np.matmul(e / e.sum(-1, keepdims=True), wide[2]).astype(F).astype(own.dtype).astype(float)
    more = {} if "Flex" in operator else dict.fromkeys(["present_key", "present_value", "qk_matmul_output"])
    found = readings(operator, {"Q": q, "K": k, "V": v}, {"Y": type_} | more, **attributes)
    (low, high) = next((one.lower[0], one.upper[0]) for one in found if one.taken["accumulator"] == "wide")
    assert ((low <= wanted) & (wanted <= high)).all()
    assert (high - low <= 4 * own.float_format.roundoff * abs(wanted)).mean() > 0.8

"""Losses are what their pages compute, and what ONNX's own function bodies do, expanded in exact arithmetic."""

import itertools
from fractions import Fraction

import gmpy2
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from recorded import readings, values

F = np.float32
NLL, SCE = "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"
PAGE = {
    "input": np.array([[[1, 2], [2, 2], [3, 2]], [[0, 1], [2, 2], [1, 2]]], F),
    "target": np.array([[2, 1], [0, 2]]),
}
WEIGHT = np.array([0.2, 0.3, 0.1], F)


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 2, shape).astype(F)


@pytest.mark.parametrize("version", [12, 13, 22])
def test_the_examples_of_the_page(version) -> None:
    operator, outputs = f"onnx/{NLL}-{version}", {"loss": "float32"}
    (none,) = values(operator, PAGE, outputs, reduction="none")
    assert none.tolist() == [[-3, -2], [0, -2]]
    weighted = PAGE | {"weight": WEIGHT}
    assert float(values(operator, weighted, outputs, reduction="sum")[0]) == pytest.approx(-1.1)
    assert float(values(operator, weighted, outputs)[0]) == pytest.approx(-1.1 / 0.7)


def body_of(name, version, given, told, outputs):
    """Return the function body of a call."""
    types = {np.dtype(F): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}
    node = helper.make_node(name, list(given), outputs, **told)
    of = [helper.make_tensor_type_proto(types[a.dtype], a.shape).SerializeToString() for a in given.values()]
    schema = onnx.defs.get_schema(name, version, "")
    return onnx.FunctionProto.FromString(schema.get_context_dependent_function(node.SerializeToString(), of))


def expanded(name, version, given, told, outputs=("loss",)):
    """Return what the body makes of arrays of exact numbers; whole numbers are int64."""
    typed = {key: a if a.dtype == np.int64 else a.astype(F) for key, a in given.items()}
    body, known = (
        body_of(name, version, typed, told, list(outputs)),
        dict(zip(schema_inputs(name), given.values(), strict=False)),
    )
    for node in body.node:
        own = {a.name: told.get(a.ref_attr_name) if a.ref_attr_name else value_of(a) for a in node.attribute}
        own = {key: one for key, one in own.items() if one is not None}
        xs = [known[one] for one in node.input if one]
        if node.op_type == NLL:
            opset = next(one.version for one in body.opset_import if not one.domain)
            inner = onnx.defs.get_schema(NLL, opset, "").since_version
            inputs = dict(zip(schema_inputs(NLL), xs, strict=False))
            known[node.output[0]] = expanded(NLL, inner, inputs, own)[0]
        else:
            known[node.output[0]] = computed(node.op_type, xs, own)
    return [known[one] for one in body.output[: len(outputs)]]


def schema_inputs(name):
    return [port.name for port in onnx.defs.get_schema(name).inputs]


def value_of(attribute):
    found = helper.get_attribute_value(attribute)
    if isinstance(found, TensorProto):
        array = numpy_helper.to_array(found)
        return array.astype(np.int64) if array.dtype.kind == "i" else exactly(array)
    return found.decode() if isinstance(found, bytes) else found


def exactly(array):
    return np.vectorize(lambda n: gmpy2.mpfr(float(n)), otypes=[object])(array)


def computed(operator, xs, told):
    """One node of a body."""
    x = xs[0] if xs else None
    axes = xs[1].tolist() if len(xs) > 1 and operator in ("Squeeze", "Unsqueeze") else told.get("axes")
    plain = {
        "Constant": lambda: told["value"],
        "Identity": lambda: x,
        "Cast": lambda: x,
        "Shape": lambda: np.array(x.shape),
        "Unsqueeze": lambda: np.expand_dims(x, tuple(axes)),
        "Squeeze": lambda: np.squeeze(x, tuple(axes)),
        "Transpose": lambda: x.transpose(told["perm"]),
        "Reshape": lambda: x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(xs[1].tolist())]),
        "Slice": lambda: np.take(x, range(int(xs[1][0]), int(xs[2][0])), int(xs[3][0])),
        "Gather": lambda: np.take(x, xs[1].astype(int), 0),
        "GatherElements": lambda: np.take_along_axis(x, xs[1].astype(int), told["axis"]),
        "Equal": lambda: x == xs[1],
        "Where": lambda: np.where(x, xs[1], xs[2]),
        "Sub": lambda: x - xs[1],
        "Mul": lambda: x * xs[1],
        "Div": lambda: np.array(x / xs[1], object),
        "Neg": lambda: -x,
        "ReduceSum": lambda: np.array(x.sum(), object),
        "ReduceMean": lambda: np.array(x.sum() / x.size, object),
        "LogSoftmax": lambda: x - np.vectorize(gmpy2.log)(np.vectorize(gmpy2.exp)(x).sum(told["axis"], keepdims=True)),
    }
    return plain[operator]()


CALLS = [
    (reduction, ignore, weighted)
    for reduction, ignore, weighted in itertools.product(("none", "sum", "mean"), (None, -1, 2), (False, True))
]


def call(name, reduction, ignore, *, weighted):
    """The inputs and attributes of a call with three classes, which ignores some samples where a class is ignored."""
    x, target, weight = schema_inputs(name)
    given = {x: drawn(2, 3, 2, 2), target: np.array([[[0, 1], [2, 2]], [[1, 0], [2, 0]]])}
    if ignore is not None:
        given[target][0, 0, 0] = given[target][1, 1, 1] = ignore
    if weighted:
        given[weight] = np.abs(drawn(3, seed=1))
    return given, {"reduction": reduction} | ({} if ignore is None else {"ignore_index": ignore})


@pytest.mark.parametrize(("reduction", "ignore", "weighted"), CALLS)
@pytest.mark.parametrize(("name", "version"), [(NLL, 12), (NLL, 13), (NLL, 22), (SCE, 12), (SCE, 13)])
def test_the_first_reading_is_the_function_body(name, version, reduction, ignore, weighted) -> None:
    given, told = call(name, reduction, ignore, weighted=weighted)
    outputs = ["loss"] if name == NLL else ["output", "log_prob"]
    found = readings(f"onnx/{name}-{version}", given, dict.fromkeys(outputs, "float32"), **told)[0]
    with gmpy2.context(precision=200):
        exact = {key: a if a.dtype == np.int64 else exactly(a) for key, a in given.items()}
        wanted = expanded(name, version, exact, told, tuple(outputs))
        for place, one in enumerate(wanted):
            low, high = found.lower[place], found.upper[place]
            assert one.shape == low.shape
            slack = np.spacing(np.abs(found.values[place]).astype(F)) / 2
            assert (exactly(low) - slack <= one).all()
            assert (one <= exactly(high) + slack).all()
            assert np.allclose(one.astype(float), found.values[place], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("weighted", "divisor"), [(False, 8), (True, None)])
def test_whether_ignored_samples_count_in_the_mean_is_open(weighted, divisor) -> None:
    given, told = call(NLL, "mean", 2, weighted=weighted)
    found = {
        one.taken["mean-of-ignored"]: Fraction(float(one.values[0]))
        for one in readings(f"onnx/{NLL}-13", given, {"loss": "float32"}, **told)
    }
    target = given["target"]
    weights = given["weight"].astype(float) if weighted else np.ones(3)
    kept, every = weights[target[target != 2]].sum(), divisor or weights[target].sum()
    assert float(found["applied"] * Fraction(kept)) == pytest.approx(float(found["all"] * Fraction(every)), rel=1e-12)
    assert kept != every


def test_a_mean_of_nothing_is_a_quotient_of_zeros_or_zero_and_a_sum_is_zero() -> None:
    given = {"input": drawn(2, 3), "target": np.array([-1, -1])}
    outputs = {"loss": "float32"}
    found = readings(f"onnx/{NLL}-13", given, outputs, ignore_index=-1)
    told = {(one.taken["mean-of-ignored"], one.taken.get("nothing-applied")): one for one in found if one.values}
    assert np.isnan(told["applied", "quotient"].values[0])
    assert float(told["applied", "zero"].values[0]) == 0
    assert float(told["all", None].values[0]) == 0
    assert float(values(f"onnx/{NLL}-13", given, outputs, ignore_index=-1, reduction="sum")[0]) == 0


def test_what_is_ignored_has_no_loss_whatever_is_there() -> None:
    given = {"scores": np.array([[np.nan, 1], [0, 0]], F), "labels": np.array([1, 0])}
    outputs = {"output": "float32", "log_prob": "float32"}
    loss, log_prob = values(f"onnx/{SCE}-13", given, outputs, ignore_index=1, reduction="none")
    assert loss.tolist() == [0, pytest.approx(np.log(2))]
    assert np.isnan(log_prob[0]).all()


@pytest.mark.parametrize(("target", "told", "clause"), [
    ([0, 3], {}, "class-range"),
    ([0, -1], {}, "class-range"),
    ([0, -1], {"ignore_index": -2}, "class-range"),
    ([0, 1, 1], {}, "shapes"),
    ([0, 1], {"reduction": "average"}, "reduction"),
])  # fmt: skip
def test_invalid_calls_are_so_by_their_clause(target, told, clause) -> None:
    given = {"input": drawn(2, 3), "target": np.array(target)}
    assert readings(f"onnx/{NLL}-22", given, {"loss": "float32"}, **told) == clause

"""Reductions agree with loops over the elements in fractions, and those with a function body with that body."""

import math
from fractions import Fraction

import numpy as np
import onnx.defs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import Reading, readings, values

from opconform.cases.elements import element_type

F = np.float32
OUT = {"reduced": "float32"}
SHAPES = [(), (3,), (2, 3), (2, 1, 3), (2, 0, 3), (0,)]


def groups(data, axes, keepdims):
    """Return the shape of the result, and for each place in it the elements that are reduced there."""
    kept = [d for a, d in enumerate(data.shape) if a not in axes]
    shape = [1 if a in axes else d for a, d in enumerate(data.shape)] if keepdims else kept
    found = {place: [] for place in np.ndindex(*kept)}
    for place in np.ndindex(*data.shape):
        found[tuple(i for a, i in enumerate(place) if a not in axes)].append(Fraction(float(data[place])))
    return tuple(shape), list(found.values())


FORMULAS = {
    "Sum": lambda xs: sum(xs, Fraction(0)),
    "Prod": lambda xs: math.prod(xs, start=Fraction(1)),
    "L1": lambda xs: sum((abs(x) for x in xs), Fraction(0)),
    "SumSquare": lambda xs: sum((x * x for x in xs), Fraction(0)),
    "L2": lambda xs: math.sqrt(sum(x * x for x in xs)),
    "Max": lambda xs: max(xs, default=-math.inf),
    "Min": lambda xs: min(xs, default=math.inf),
    "LogSum": lambda xs: math.log(sum(xs)) if sum(xs) else -math.inf,
    "LogSumExp": lambda xs: math.log(sum(math.exp(x) for x in xs)) if xs else -math.inf,
}


@given(
    st.sampled_from(sorted(FORMULAS)),
    st.sampled_from(SHAPES),
    st.data(),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from(["attribute", "input"]),
)
def test_reductions_are_what_loops_over_fractions_give(name, shape, data, flags, given_as) -> None:
    keepdims, noop = flags
    low = 1 if name == "LogSum" else -16
    pieces = data.draw(st.lists(st.integers(low, 16), min_size=math.prod(shape), max_size=math.prod(shape)))
    x = (np.array(pieces, F) / 4).reshape(shape)
    axes = data.draw(
        st.lists(st.integers(-len(shape), len(shape) - 1), unique_by=lambda a: a % len(shape)) if shape else st.just([])
    )
    told, version = {"keepdims": int(keepdims)}, 13
    inputs = {"data": x}
    if given_as == "attribute" and name != "Sum":
        told |= {"axes": axes} if axes else {}
        noop = False
    else:
        version = 13 if name == "Sum" else 18
        inputs["axes"] = np.array(axes, np.int64)
        told["noop_with_empty_axes"] = int(noop)
    over = {a % len(shape) for a in axes} or (set() if noop else set(range(len(shape))))
    wanted, elements = groups(x, over, keepdims)
    (found,) = values(f"onnx/Reduce{name}-{version}", inputs, OUT, **told)
    assert found.shape == wanted
    formula = FORMULAS[name]
    for one, xs in zip(found.reshape(-1), elements, strict=True):
        assert float(one) == pytest.approx(float(formula(xs)), rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("name", ["L1", "L2", "LogSum", "LogSumExp", "SumSquare"])
@pytest.mark.parametrize("noop", [0, 1])
def test_a_reduction_is_what_its_function_body_gives(name, noop) -> None:
    schema = onnx.defs.get_schema(f"Reduce{name}", 18, "")
    x = np.array([[3.0, 4.0 if name == "LogSum" else -4.0, 1.5], [0.25, 2.0, 8.0]], F)
    steps = {
        "Abs": abs,
        "Mul": lambda a, b: a * b,
        "Sqrt": math.sqrt,
        "Log": math.log,
        "Exp": math.exp,
        "Cast": lambda a: a,
        "CastLike": lambda a, _: a,
    }
    got = {"data": [Fraction(float(v)) for v in x.reshape(-1)]}
    for node in schema.function_body.node:
        if node.op_type == "ReduceSum":
            whole = got[node.input[0]]
            got[node.output[0]] = whole if noop else [sum(whole)]
        else:
            operands = (got[i] for i in node.input)
            got[node.output[0]] = [steps[node.op_type](*parts) for parts in zip(*operands, strict=False)]
    (found,) = values(f"onnx/Reduce{name}-18", {"data": x, "axes": None}, OUT, noop_with_empty_axes=noop, keepdims=1)
    assert found.shape == (x.shape if noop else (1, 1))
    assert found.reshape(-1).tolist() == pytest.approx([float(v) for v in got["reduced"]], rel=1e-14)


@pytest.mark.parametrize("type_", ["uint8", "int8", "uint32", "int64", "float16", "bfloat16", "bool"])
@pytest.mark.parametrize(("name", "largest"), [("Max", True), ("Min", False)])
def test_the_largest_and_smallest_of_nothing_are_the_ends_of_the_type(name, largest, type_) -> None:
    own = element_type(type_)
    x = np.zeros((2, 0), own.dtype)
    (found,) = values(f"onnx/Reduce{name}-20", {"data": x, "axes": np.array([1])}, {"reduced": type_}, keepdims=0)
    if type_ == "bool":
        wanted = not largest
    elif own.format:
        wanted = -math.inf if largest else math.inf
    else:
        wanted = own.smallest if largest else own.largest
    assert found.tolist() == [wanted, wanted]


def taken(found: list[Reading], silence: str) -> dict[str, list[float]]:
    """Return the values of the readings by the option that they take of a silence."""
    return {one.taken[silence]: one.values[0].tolist() for one in reversed(found)}


def test_what_versions_say_of_nothing_differs() -> None:
    x = {"data": np.zeros((2, 0), F)}
    found = {
        one.taken["nothing-unsaid"]: one.values for one in readings("onnx/ReduceMax-12", x, OUT, axes=[1], keepdims=0)
    }
    assert found.pop("rejected") == []
    least = float(np.finfo(F).min)
    assert {option: value.tolist()[0] for option, (value,) in found.items()} == {
        "identity": -math.inf,
        "last-finite": least,
        "not-a-number": pytest.approx(math.nan, nan_ok=True),
    }
    for version in (1, 11):
        (one,) = readings(f"onnx/ReduceMax-{version}", x, OUT, axes=[1], keepdims=0)
        assert one.values[0].tolist() == [-math.inf, -math.inf]
    found = {
        one.taken["nothing-unsaid"]: one.values for one in readings("onnx/ReduceSum-11", x, OUT, axes=[1], keepdims=0)
    }
    assert found["identity"][0].tolist() == [0, 0]


@pytest.mark.parametrize(("name", "of"), [("Sum", sum), ("SumSquare", lambda xs: sum(x * x for x in xs))])
def test_whole_numbers_that_do_not_fit_wrap_or_saturate(name, of) -> None:
    x = np.array([2**31 - 1, 5, 70000], np.int32)
    found = taken(readings(f"onnx/Reduce{name}-11", {"data": x}, {"reduced": "int32"}, keepdims=0), "integer-overflow")
    assert found["wraps"] == (of([int(v) for v in x]) + 2**31) % 2**32 - 2**31
    assert found["saturates"] == 2**31 - 1


def test_roots_and_logarithms_of_whole_numbers_are_rounded_in_a_way_that_is_open() -> None:
    x = np.array([[3, 4], [2, 2], [4, 5]], np.int64)
    out = {"reduced": "int64"}
    roots = readings("onnx/ReduceL2-13", {"data": x}, out, axes=[1], keepdims=0)
    assert taken(roots, "integer-rounding") == {"truncate": [5, 2, 6], "nearest-even": [5, 3, 6]}
    (log, *_) = readings("onnx/ReduceLogSum-13", {"data": x}, out, axes=[1], keepdims=0)
    assert log.values[0].tolist() == [int(math.log(n)) for n in (7, 4, 9)]


def test_an_exponential_may_overflow_where_the_result_does_not() -> None:
    x = np.array([1000.0, 1000.0], F)
    found = taken(readings("onnx/ReduceLogSumExp-13", {"data": x}, OUT, keepdims=0), "exponentials")
    assert found == {"stable": pytest.approx(1000 + math.log(2)), "as-written": math.inf}
    ends = np.array([[math.inf, 1.0], [-math.inf, -math.inf], [math.inf, -math.inf]], F)
    (found,) = values("onnx/ReduceLogSumExp-13", {"data": ends}, OUT, axes=[1], keepdims=0)
    assert found.tolist() == [math.inf, -math.inf, math.inf]


def test_the_function_body_of_the_norm_takes_the_root_in_float32() -> None:
    x, out = np.array([1.0, 2.0]), {"reduced": "float64"}
    found = taken(readings("onnx/ReduceL2-18", {"data": x, "axes": None}, out, keepdims=0), "root-in-float32")
    assert found["float64"] == pytest.approx(math.sqrt(5), abs=1e-15)
    assert abs(found["float32"] - math.sqrt(5)) < 1e-6
    assert all("root-in-float32" not in one.taken for one in readings("onnx/ReduceL2-13", {"data": x}, out))


@given(
    st.lists(
        st.lists(st.sampled_from([-1.0, -0.0, 0.0, 2.0, math.inf]), min_size=4, max_size=4), min_size=2, max_size=3
    ),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 1, -1]),
)
def test_the_place_of_the_extreme_is_the_first_or_the_last_one(rows, largest, late, axis) -> None:
    name = "ArgMax-13" if largest else "ArgMin-13"
    told = {"axis": axis, "keepdims": 0, "select_last_index": int(late)}
    (found,) = values(f"onnx/{name}", {"data": np.array(rows, F)}, {"reduced": "int64"}, **told)
    lines = list(zip(*rows, strict=True)) if axis == 0 else rows
    best = [max(line) if largest else min(line) for line in lines]
    places = [[i for i, v in enumerate(line) if v == one] for line, one in zip(lines, best, strict=True)]
    assert found.tolist() == [place[-1] if late else place[0] for place in places]


def test_ties_and_not_a_number_are_open_where_they_occur() -> None:
    x = {"data": np.array([[1.0, 5.0, 5.0], [1.0, 2.0, 3.0]], F)}
    found = readings("onnx/ArgMax-11", x, {"reduced": "int64"}, axis=1, keepdims=0)
    assert [(one.taken["ties-early"], one.values[0].tolist(), one.open) for one in found] == [
        ("first", [1, 2], [False, False]),
        ("last", [2, 2], [False, False]),
        ("any", [1, 2], [True, False]),
    ]
    x = {"data": np.array([[1.0, math.nan, 5.0], [1.0, 2.0, 3.0]], F)}
    found = readings("onnx/ArgMin-13", x, {"reduced": "int64"}, axis=1, keepdims=0)
    assert [(one.taken["nan"], one.values[0].tolist(), one.open) for one in found] == [
        ("it-is", [1, 0], [False, False]),
        ("ignored", [0, 0], [False, False]),
        ("any", [1, 0], [False, False]),
    ]
    assert [found[2].lower[0].tolist(), found[2].upper[0].tolist()] == [[0, 0], [2, 0]], "any place of the line"


def test_not_a_number_may_reset_a_maximum_on_onednn() -> None:
    x = {"src": np.array([[math.inf, math.nan, 5.0], [1.0, 2.0, 3.0]], F)}
    found = readings("onednn/ReduceMax", x, {"dst": "float32"}, axes=(1,))
    assert {one.taken["nan"]: one.open for one in found if isinstance(one, Reading)} == {
        "propagates": [False, False],
        "ignored": [False, False],
        "resets": [True, False],
    }


def test_an_empty_input_is_ruled_out_by_one_version_alone_and_an_empty_axis_by_all() -> None:
    x = {"data": np.zeros((0, 3), F)}
    assert readings("onnx/ArgMax-11", x, {"reduced": "int64"}) == "not-empty"
    assert readings("onnx/ArgMax-13", x, {"reduced": "int64"}) == "some-place"
    assert values("onnx/ArgMax-13", x, {"reduced": "int64"}, axis=1)[0].shape == (0, 1)


@given(
    st.sampled_from(["CumSum-14", "CumProd-26"]),
    st.sampled_from([(1,), (4,), (2, 3), (3, 2, 2), (0, 2), (2, 0)]),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_what_runs_along_an_axis_is_what_a_loop_gives(name, shape, exclusive, reverse, data) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    pieces = data.draw(st.lists(st.integers(-6, 6), min_size=math.prod(shape), max_size=math.prod(shape)))
    x = (np.array(pieces, F) / 2).reshape(shape)
    given_ = {"x": x, "axis": np.array(axis)}
    (found,) = values(f"onnx/{name}", given_, {"y": "float32"}, exclusive=int(exclusive), reverse=int(reverse))
    assert found.shape == shape
    ends = -1 if reverse else 1
    for place in np.ndindex(*(d for a, d in enumerate(shape) if a != axis % len(shape))):
        line, got = (np.moveaxis(array, axis, -1)[place].tolist() for array in (x, found))
        numbers = [Fraction(v) for v in line[::ends]]
        counted = [numbers[: i if exclusive else i + 1] for i in range(len(numbers))]
        wanted = [
            sum(part, Fraction(0)) if name == "CumSum-14" else math.prod(part, start=Fraction(1)) for part in counted
        ]
        assert [Fraction(v) for v in got[::ends]] == wanted


def test_the_examples_of_the_page_on_running_sums_and_products() -> None:
    x = {"x": np.array([1, 2, 3], np.int32), "axis": np.array(0)}
    rows = {
        (0, 0): ([1, 3, 6], [1, 2, 6]),
        (1, 0): ([0, 1, 3], [1, 1, 2]),
        (0, 1): ([6, 5, 3], [6, 6, 3]),
        (1, 1): ([5, 3, 0], [6, 3, 1]),
    }
    for (exclusive, reverse), wanted in rows.items():
        told = {"exclusive": exclusive, "reverse": reverse}
        found = [values(f"onnx/{n}", x, {"y": "int32"}, **told)[0].tolist() for n in ("CumSum-11", "CumProd-26")]
        assert tuple(found) == wanted


@pytest.mark.parametrize(
    ("given_", "clause"), [({"axis": np.array([0])}, "axis-scalar"), ({"axis": np.array(2)}, "axis-range")]
)
def test_an_axis_is_a_scalar_within_the_rank(given_, clause) -> None:
    assert readings("onnx/CumSum-14", {"x": np.ones((2, 3), F)} | given_, {"y": "float32"}) == clause

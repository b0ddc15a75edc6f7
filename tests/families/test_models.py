"""Models of ai.onnx.ml against exact fractions, and by hand where the standard's pages have numbers."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

from opconform.cases.program import Tensor

F = np.float32
WHOLE = st.integers(-50, 50)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.data())
def test_a_regression_is_the_exact_sum_of_products(features, targets, examples, data) -> None:
    size = features * (targets + examples) + targets
    numbers = data.draw(st.lists(WHOLE, min_size=size, max_size=size))
    x = [numbers[i * features : (i + 1) * features] for i in range(examples)]
    rest = [Fraction(n, 8) for n in numbers[examples * features :]]
    weights, added = rest[: targets * features], rest[targets * features : targets * features + targets]
    (found,) = values(
        "onnx/LinearRegressor-1",
        {"X": np.array(x, F).reshape(examples, features)},
        {"Y": "float32"},
        coefficients=tuple(map(float, weights)),
        intercepts=tuple(map(float, added)),
        targets=targets,
    )
    expected = [
        [sum(a * w for a, w in zip(row, weights[t * features :], strict=False)) + added[t] for t in range(targets)]
        for row in x
    ]
    assert found.tolist() == expected


def scores(x, way, option=None):
    """Return what a transform makes of one example's scores, by an option of its silence."""
    found = readings(
        "onnx/LinearRegressor-1",
        {"X": np.ones((1, 1), F)},
        {"Y": "float32"},
        coefficients=tuple(x),
        targets=len(x),
        post_transform=way,
    )
    (one,) = [r for r in found if option in (None, *r.taken.values())]
    return one.values[0][0].tolist(), one.open


def test_transforms_are_what_their_names_say() -> None:
    x = [1.0, 0.0, -2.0]
    total = sum(map(math.exp, x))
    assert scores(x, "NONE")[0] == x
    assert scores(x, "SOFTMAX")[0] == pytest.approx([math.exp(v) / total for v in x])
    assert scores(x, "LOGISTIC")[0] == pytest.approx([1 / (1 + math.exp(-v)) for v in x])
    left = math.exp(1) + math.exp(-2)
    assert scores(x, "SOFTMAX_ZERO", "zeros-stay")[0] == pytest.approx([math.exp(1) / left, 0, math.exp(-2) / left])
    assert scores(x, "SOFTMAX_ZERO", "zero-class")[0] == pytest.approx([math.exp(v) / (total + 1) for v in x])


def test_probit_is_a_quantile_of_scores_between_zero_and_one_or_a_probability() -> None:
    x = [0.25, 0.9, 1e-6, 1.0, -0.5]
    found, free = scores(x, "PROBIT", "quantile")
    assert found[:3] == pytest.approx([NormalDist().inv_cdf(float(F(v))) for v in x[:3]])
    assert free == [False, False, False, True, True]
    assert scores(x, "PROBIT", "probability")[0] == pytest.approx([NormalDist().cdf(float(F(v))) for v in x])


def classified(x, names, **attributes):
    return readings(
        "onnx/LinearClassifier-1",
        {"X": np.array(x, F)},
        {"Y": "int64", "Z": "float32"},
        classlabels_ints=names,
        **attributes,
    )


def test_the_label_is_that_of_the_best_score_and_either_of_two_equal_ones() -> None:
    identity = (1.0, 0.0, 0.0, 1.0)
    found = classified([[3, 1], [-5, -4], [2, 2]], (7, -3), coefficients=identity)
    assert {tuple(one.values[0].tolist()) for one in found} == {(7, -3, 7), (7, -3, -3)}
    assert found[0].values[1].tolist() == [[3, 1], [-5, -4], [2, 2]]


def test_a_label_within_the_bound_of_another_is_open() -> None:
    (found,) = classified([[0.1, 0.2, 0.3], [1, 1, 1]], (1, 2), coefficients=(1.0, 1.0, 1.0, 1.0, 1.0, 1.0000001))
    assert found.open == [True, True]
    (found,) = classified([[0.1, 0.2, 0.3], [1, 1, 1]], (1, 2), coefficients=(1.0, 1.0, 1.0, 1.0, 1.0, 1.001))
    assert found.open == [False, False]


def test_one_set_of_weights_for_two_labels_scores_the_second() -> None:
    found = classified([[2.0], [-1.0], [0.25]], (7, -3), coefficients=(1.0,))
    one, other, refusal = sorted(found, key=lambda reading: reading.kind != "values")
    assert one.taken["one-score"] == "negated"
    assert one.values[0].tolist() == [-3, 7, -3]
    assert one.values[1].tolist() == [[-2, 2], [1, -1], [-0.25, 0.25]]
    assert other.values[1].tolist() == [[-1, 2], [2, -1], [0.75, 0.25]]
    assert other.open == [False, False, True]
    assert refusal.kind == "rejected"


def test_labels_are_one_list() -> None:
    both = {"classlabels_strings": ("a", "b"), "coefficients": (1.0, 2.0)}
    assert classified([[2.0]], (7, -3), **both) == "one-list"
    assert classified([[2.0]], (), coefficients=(1.0, 2.0)) == "one-list"


def tensor(numbers, type_):
    return Tensor.of(np.array(numbers, type_))


def test_a_single_tree_of_the_page() -> None:
    x = np.array([[1.2, 3.4], [-0.12, 1.66], [4.14, 1.77]])
    (found,) = values(
        "onnx/TreeEnsemble-5",
        {"X": x},
        {"Y": "float64"},
        n_targets=2,
        tree_roots=(0,),
        nodes_modes=tensor((0, 0, 0), "uint8"),
        nodes_featureids=(0, 0, 0),
        nodes_splits=tensor((3.14, 1.2, 4.2), "float64"),
        nodes_truenodeids=(1, 0, 1),
        nodes_trueleafs=(0, 1, 1),
        nodes_falsenodeids=(2, 2, 3),
        nodes_falseleafs=(0, 1, 1),
        leaf_targetids=(0, 1, 0, 1),
        leaf_weights=tensor((5.23, 12.12, -12.23, 7.21), "float64"),
    )
    assert found.astype(float).tolist() == [[5.23, 0], [5.23, 0], [0, 12.12]]


def test_the_sets_of_members_of_the_page() -> None:
    (found,) = values(
        "onnx/TreeEnsemble-5",
        {"X": np.array([[1.2], [3.4], [-0.12], [np.nan], [12], [7]], F)},
        {"Y": "float32"},
        n_targets=4,
        membership_values=tensor((1.2, 3.7, 8, 9, math.nan, 12, 7, math.nan), "float32"),
        tree_roots=(0,),
        nodes_modes=tensor((0, 6, 6), "uint8"),
        nodes_featureids=(0, 0, 0),
        nodes_splits=tensor((11, 232344.0, math.nan), "float32"),
        nodes_trueleafs=(0, 1, 1),
        nodes_truenodeids=(1, 0, 1),
        nodes_falseleafs=(1, 0, 1),
        nodes_falsenodeids=(2, 2, 3),
        leaf_targetids=(0, 1, 2, 3),
        leaf_weights=tensor((1, 10, 1000, 100), "float32"),
    )
    expected = [[1, 0, 0, 0], [0, 0, 0, 100], [0, 0, 0, 100], [0, 0, 1000, 0], [0, 0, 1000, 0], [0, 10, 0, 0]]
    assert found.tolist() == expected


MODES = {"LEQ": "__le__", "LT": "__lt__", "GTE": "__ge__", "GT": "__gt__", "EQ": "__eq__", "NEQ": "__ne__"}
NODES = st.tuples(st.sampled_from(sorted(MODES)), st.integers(0, 1), st.integers(-2, 2), st.booleans())
TREES = st.recursive(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-9, 9)), max_size=2),
    lambda below: st.tuples(NODES, below, below),
    max_leaves=6,
)


def walked(tree, x):
    """Return the votes of the leaf that an example reaches."""
    while isinstance(tree, tuple):
        (mode, feature, split, missing), yes, no = tree
        v = x[feature]
        tree = yes if (missing if math.isnan(v) else getattr(float(v), MODES[mode])(float(split))) else no
    return tree


def listed(trees):
    """Return the attributes of trees: nodes in the order of a walk, and the votes."""
    nodes, votes = [], []
    for number, tree in enumerate(trees):
        order = []

        def add(one, number=number, order=order):
            place = len(order)
            order.append(None)
            if isinstance(one, list):
                order[place] = (number, place, "LEAF", 0, 0.0, 0, 0, 0)
                votes.extend((number, place, target, float(weight)) for target, weight in one)
            else:
                (mode, feature, split, missing), yes, no = one
                below = add(yes), add(no)
                order[place] = (number, place, f"BRANCH_{mode}", feature, float(split), *below, int(missing))
            return place

        add(tree)
        nodes += order
    names = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    names = [f"nodes_{name}" for name in (*names, "missing_value_tracks_true")]
    found = dict(zip(names, zip(*nodes, strict=True), strict=True))
    columns = zip(*votes, strict=True) if votes else [()] * 4
    return found | dict(zip(("target_treeids", "target_nodeids", "target_ids", "target_weights"), columns, strict=True))


@given(
    st.lists(TREES, min_size=1, max_size=3),
    st.lists(st.tuples(*[st.sampled_from([-3.0, -1.0, -0.5, 0.0, 1.0, 2.0, math.nan])] * 2), min_size=1, max_size=4),
    st.sampled_from(["SUM", "AVERAGE", "MIN", "MAX"]),
)
def test_trees_are_walked_as_python_walks_them(trees, x, aggregate) -> None:
    found = readings(
        "onnx/TreeEnsembleRegressor-1",
        {"X": np.array(x, F)},
        {"Y": "float32"},
        n_targets=2,
        base_values=(0.25, -8.0),
        aggregate_function=aggregate,
        **listed(trees),
    )
    one = found[0]
    for i, example in enumerate(x):
        votes = [vote for tree in trees for vote in walked(tree, example)]
        for target, base in enumerate((0.25, -8.0)):
            mine = [weight for t, weight in votes if t == target]
            if not mine and aggregate in ("MIN", "MAX"):
                assert one.open[2 * i + target]
                continue
            told = {"SUM": sum(mine), "AVERAGE": sum(mine) / len(trees)}
            right = told[aggregate] if aggregate in told else (min if aggregate == "MIN" else max)(mine)
            assert one.lower[0][i, target] <= right + base <= one.upper[0][i, target]
            assert one.values[0][i, target] == pytest.approx(right + base)


def test_a_number_beside_a_threshold_may_be_compared_as_float32() -> None:
    tree = ((("LEQ", 0, 0, False)), [(0, 1)], [(0, 2)])
    attributes = listed([tree]) | {"nodes_values": (float(F(0.1)), 0.0, 0.0), "n_targets": 1}
    x = np.array([[float(F(0.1))], [np.nextafter(float(F(0.1)), 1)], [0.2]])
    found = readings("onnx/TreeEnsembleRegressor-1", {"X": x}, {"Y": "float32"}, **attributes)
    assert {one.taken["compared-in"]: one.values[0].ravel().tolist() for one in found} == {
        "as-it-is": [1, 2, 2],
        "float32": [1, 1, 2],
    }


def test_the_class_of_most_votes_is_the_label() -> None:
    attributes = {name.replace("target_", "class_"): v for name, v in listed([[(0, 3), (1, 5)], [(0, 1)]]).items()}
    labels = {"classlabels_strings": ("a", "b", "c")}
    outputs = {"Y": "string", "Z": "float32"}
    found = readings("onnx/TreeEnsembleClassifier-3", {"X": np.zeros((1, 1), F)}, outputs, **attributes, **labels)
    assert [one.values[0].tolist() for one in found] == [["b"]]
    assert found[0].values[1].tolist() == [[4, 5, 0]]


POINT = st.lists(st.integers(-4, 4), min_size=2, max_size=2)


def kernel(name, x, v, degree):
    """Return a kernel of two vectors as LIBSVM has it."""
    inner = 0.25 * float(np.dot(x, v)) + 0.5
    apart = sum((a - b) ** 2 for a, b in zip(x, v, strict=True))
    forms = {"LINEAR": lambda: float(np.dot(x, v)), "POLY": lambda: inner**degree}
    forms |= {"RBF": lambda: math.exp(-0.25 * apart), "SIGMOID": lambda: math.tanh(inner)}
    return forms[name]()


@given(
    st.lists(st.tuples(POINT, st.integers(-3, 3)), min_size=1, max_size=3),
    POINT,
    st.sampled_from(["LINEAR", "POLY", "RBF", "SIGMOID"]),
    st.integers(1, 4),
)
def test_a_regression_by_kernels_is_that_of_plain_python(supports, x, name, degree) -> None:
    found = readings(
        "onnx/SVMRegressor-1",
        {"X": np.array([x], F)},
        {"Y": "float32"},
        n_supports=len(supports),
        support_vectors=tuple(float(n) for vector, _ in supports for n in vector),
        coefficients=tuple(float(weight) for _, weight in supports),
        rho=(0.5,),
        kernel_type=name,
        kernel_params=(0.25, 0.5, float(degree)),
    )
    total = sum(weight * kernel(name, x, vector, degree) for vector, weight in supports)
    told = {one.taken["rho"]: one.values[0].item() for one in found}
    assert told == {"added": pytest.approx(total + 0.5), "subtracted": pytest.approx(total - 0.5)}


def test_one_class_says_on_which_side_an_example_lies() -> None:
    given = {"X": np.array([[2], [-1], [0]], F)}
    model = {"n_supports": 1, "support_vectors": (1.0,), "coefficients": (1.0,), "rho": (0.0,), "one_class": 1}
    sign, score = readings("onnx/SVMRegressor-1", given, {"Y": "float32"}, **model)
    assert sign.values[0].ravel().tolist()[:2] == [1, -1]
    assert sign.open == [False, False, True]
    assert score.values[0].ravel().tolist() == [2, -1, 0]


def decided(x, **attributes):
    """Return what three classes of one support vector each are told by: 1, -1 and 3, linearly."""
    return readings(
        "onnx/SVMClassifier-1",
        {"X": np.array(x, F)},
        {"Y": "int64", "Z": "float32"},
        classlabels_ints=(5, 6, 7),
        vectors_per_class=(1, 1, 1),
        support_vectors=(1.0, -1.0, 3.0),
        coefficients=(1.0, -2.0, 0.5, 0.25, 1.0, -1.0),
        rho=(0.0, 0.5, -0.5),
        **attributes,
    )


def test_each_two_classes_have_a_decision_and_a_vote() -> None:
    # 0-1: 1·(1x) - 2·(-1x) = 3x; 0-2: 0.25·(1x) + 0.5·(3x) + 0.5 = 1.75x + 0.5; 1-2: 1·(-1x) - 1·(3x) - 0.5 = -4x - 0.5
    pairs, classes = [one for one in decided([[1.0], [-1.0]]) if one.taken["rho"] == "added"]
    assert pairs.values[1].tolist() == [[3, 2.25, -4.5], [-3, -1.25, 3.5]]
    assert pairs.values[0].tolist() == classes.values[0].tolist() == [5, 6]
    assert classes.values[1].shape == (2, 3)


def test_probabilities_lie_between_zero_and_one() -> None:
    for one in decided([[1.0]], prob_a=(-1.0,) * 3, prob_b=(0.0,) * 3):
        assert one.lower[1].ravel().tolist() == [0, 0, 0]
        assert one.upper[1].ravel().tolist() == [1, 1, 1]

"""RNN and GRU are the loops over their equations; what their pages leave open is open."""

import itertools
import math

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
WAYS = ["forward", "reverse", "bidirectional"]
BOTH = {"Y": "float32", "Y_h": "float32"}


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(0, 1, shape).astype(F)


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def rnn_step(x, h, w, r, b, _linear):
    wb, rb = np.split(b, 2)
    return np.tanh(w @ x + r @ h + wb + rb)


def gru_step(x, h, w, r, b, linear):  # noqa: PLR0917 - the arguments of a step
    (wz, wr, wh), (rz, rr, rh), (bz, br, bh, cz, cr, ch) = np.split(w, 3), np.split(r, 3), np.split(b, 6)
    z, reset = sigmoid(wz @ x + rz @ h + bz + cz), sigmoid(wr @ x + rr @ h + br + cr)
    own = reset * (rh @ h + ch) if linear else rh @ (reset * h) + ch
    return (1 - z) * np.tanh(wh @ x + own + bh) + z * h


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("operator", "gates", "step", "told"),
    [
        ("onnx/RNN-14", 1, rnn_step, {}),
        ("onnx/GRU-14", 3, gru_step, {"linear_before_reset": 0}),
        ("onnx/GRU-14", 3, gru_step, {"linear_before_reset": 1}),
        ("onnx/GRU-14", 3, gru_step, {"linear_before_reset": -2}),
    ],
)
def test_a_layer_is_the_loop_over_its_equations(operator, gates, step, told, way) -> None:
    steps, batch, size, hidden, directions = 3, 2, 2, 4, 2 if way == "bidirectional" else 1
    parts = {"W": (gates * hidden, size), "R": (gates * hidden, hidden), "B": (2 * gates * hidden,)}
    given = {name: drawn(directions, *shape, seed=i) for i, (name, shape) in enumerate(parts.items(), 1)}
    given |= {"X": drawn(steps, batch, size), "initial_h": drawn(directions, batch, hidden, seed=9)}
    lens = given["sequence_lens"] = np.array([3, 2], np.int32)
    y, y_h = values(operator, given, BOTH, direction=way, **told)
    for d, n in itertools.product(range(directions), range(batch)):
        w, r, b = (given[name][d].astype(float) for name in ("W", "R", "B"))
        h, places = given["initial_h"][d, n].astype(float), range(lens[n])
        for t in reversed(places) if way == "reverse" or d else places:
            h = step(given["X"][t, n].astype(float), h, w, r, b, told.get("linear_before_reset"))
            assert y[t, d, n] == pytest.approx(h, abs=1e-12)
        assert y_h[d, n] == pytest.approx(h, abs=1e-12)
        assert not y[lens[n] :, d, n].any()


@pytest.mark.parametrize(("operator", "gates"), [("onnx/RNN-22", 1), ("onnx/GRU-22", 3)])
def test_with_the_batch_first_all_is_the_same_transposed(operator, gates) -> None:
    given = {"X": drawn(3, 2, 2), "W": drawn(1, 2 * gates, 2, seed=1), "R": drawn(1, 2 * gates, 2, seed=2)}
    given["initial_h"] = drawn(1, 2, 2, seed=3)
    turned = given | {name: given[name].transpose(1, 0, 2) for name in ("X", "initial_h")}
    y, y_h = values(operator, given, BOTH)
    first, first_h = values(operator, turned, BOTH, layout=1)
    assert first.tolist() == y.transpose(2, 0, 1, 3).tolist()
    assert first_h.tolist() == y_h.transpose(1, 0, 2).tolist()


FUNCTIONS = {
    "Relu": (lambda x, _a, _b: max(0, x), (), ()),
    "Tanh": (lambda x, _a, _b: math.tanh(x), (), ()),
    "Sigmoid": (lambda x, _a, _b: 1 / (1 + math.exp(-x)), (), ()),
    "Affine": (lambda x, a, b: a * x + b, (1.5,), (0.25,)),
    "LeakyRelu": (lambda x, a, _b: x if x >= 0 else a * x, (0.125,), ()),
    "ThresholdedRelu": (lambda x, a, _b: x if x >= a else 0, (0.75,), ()),
    "ScaledTanh": (lambda x, a, b: a * math.tanh(b * x), (1.5,), (0.25,)),
    "HardSigmoid": (lambda x, a, b: min(max(a * x + b, 0), 1), (0.375,), (0.25,)),
    "Elu": (lambda x, a, _b: x if x >= 0 else a * (math.exp(x) - 1), (0.625,), ()),
    "Softsign": (lambda x, _a, _b: x / (1 + abs(x)), (), ()),
    "Softplus": (lambda x, _a, _b: math.log(1 + math.exp(x)), (), ()),
}
NUMBERS = np.array([-3, -1, -0.5, 0, 0.5, 0.75, 2.5], F)


def through(names, alphas=(), betas=(), **told):
    """What the named functions, one for each direction, make of NUMBERS."""
    given = {"X": NUMBERS.reshape(1, -1, 1), "W": np.ones((len(names), 1, 1), F)}
    given["R"] = np.zeros((len(names), 1, 1), F)
    told |= {"activations": tuple(names), "direction": "bidirectional" if len(names) == 2 else "forward"}
    told |= {f"activation_{kind}": n for kind, n in (("alpha", tuple(alphas)), ("beta", tuple(betas))) if n}
    found = readings("onnx/RNN-14", given, {"Y": "float32", "Y_h": None}, hidden_size=1, **told)
    if isinstance(found, str):
        return found
    return [one.values[0].reshape(len(names), -1) if one.values else one.kind for one in found]


@pytest.mark.parametrize(("first", "second"), [*itertools.pairwise(FUNCTIONS), ("HardSigmoid", "LeakyRelu")])
def test_functions_use_up_alpha_and_beta_in_their_order(first, second) -> None:
    (one, a, b), (other, c, d) = FUNCTIONS[first], FUNCTIONS[second]
    c = tuple(n / 2 for n in c)
    ((y, z), *_) = through([first, second], (*a, *c), (*b, *d))
    assert y == pytest.approx([one(float(x), *(a or [0]), *(b or [0])) for x in NUMBERS], abs=1e-12)
    assert z == pytest.approx([other(float(x), *(c or [0]), *(d or [0])) for x in NUMBERS], abs=1e-12)


def test_missing_numbers_are_the_operators_defaults_or_open() -> None:
    ((leaky, hard), *_) = through(["LeakyRelu", "HardSigmoid"])
    assert leaky[0] == -3 * float(F(0.01))
    assert hard[1] == pytest.approx(0.5 - float(F(0.2)), abs=1e-15)
    assert len(through(["LeakyRelu"])) == 1
    assert "rejected" in [one for one in through(["Affine"]) if isinstance(one, str)]


def test_names_are_of_the_list_and_as_many_as_there_are_functions() -> None:
    assert through(["Sinh"]) == "activations-known"
    assert through(["Tanh", "Sinh"]) == "activations-known"


def test_clip_bounds_what_goes_into_a_function() -> None:
    ((y,), *_) = through(["Affine"], (2.0,), (1.0,), clip=0.5)
    assert y.tolist() == [0, 0, 0, 1, 2, 2, 2]


def test_a_sequence_without_steps_leaves_the_state_or_zeros() -> None:
    given = {"X": drawn(2, 2, 1), "W": drawn(1, 6, 1), "R": drawn(1, 6, 2), "initial_h": drawn(1, 2, 2, seed=4)}
    given["sequence_lens"] = np.array([0, 2], np.int32)
    found = {one.taken["no-steps"]: one.values[1] for one in readings("onnx/GRU-7", given, BOTH, hidden_size=2)}
    assert found["initial"][0, 0].tolist() == given["initial_h"][0, 0].tolist()
    assert found["zeros"][0, 0].tolist() == [0, 0]
    assert found["initial"][0, 1].tolist() == found["zeros"][0, 1].tolist()


def test_the_first_gru_misspells_its_default_direction() -> None:
    given = {"X": drawn(2, 1, 1), "W": drawn(1, 3, 1), "R": drawn(1, 3, 1)}
    told = {"hidden_size": 1, "output_sequence": 1}
    first, third = (readings(f"onnx/GRU-{version}", given, BOTH, **told) for version in (1, 3))
    assert {one.taken["direction-misspelt"] for one in first} == {"forward", "rejected"}
    assert all("direction-misspelt" not in one.taken for one in third)
    assert readings("onnx/GRU-3", given, BOTH, direction="foward", **told) == "direction"

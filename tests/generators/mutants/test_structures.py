"""Triggers of structure: lists with different entries, options and deliveries together, classes of equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opconform.cases.elements import type_of
from opconform.cases.program import Input, Program
from opconform.generators.mutants.effects import grid
from opconform.generators.mutants.equations import EQUATIONS, Equation
from opconform.generators.mutants.implementation import Implementation, Invocation, Met
from opconform.generators.mutants.structures import structures
from opconform.generators.source import shipped


def invocation(name: str, *arrays: np.ndarray, constant: tuple[int, ...] = (), **attributes: Any) -> Invocation:
    spec, key = shipped().operator_version(name)
    own = spec.version(key)
    types = [
        Input(f"x{n}", type_of(a), a.shape[1:], a[0].tobytes() if n in constant else None) for n, a in enumerate(arrays)
    ]
    program = Program(own.operator, (), tuple(types), (), int(own.operator.version))
    fed = frozenset(one.name for one in types if one.constant is None)
    ports: tuple[Any, ...] = (tuple(arrays),) if own.signature.inputs[0].is_variadic else arrays
    return Invocation(spec, own, program, attributes, ports, fed)


def set_off(name: str, *arrays: np.ndarray, **more: Any) -> set[str]:
    spec, key = shipped().operator_version(name)
    met = Met(invocation(name, *arrays, **more), [])
    return {t.name for t, _ in structures(spec, spec.version(key)) if t.lanes(met).any()}


def defect(name: str, trigger: str, wanted: str) -> Implementation:
    spec, key = shipped().operator_version(name)
    found = (one for t, some in grid(spec, spec.version(key)) if t.name == trigger for one in some)
    return next(one for one in found if one.name == wanted)


def tensor(*shape: int, type_: Any = np.float32) -> np.ndarray:
    return np.arange(np.prod((1, *shape)), dtype=type_).reshape(1, *shape)


X, W = tensor(1, 1, 9, 8), tensor(1, 1, 2, 2)


@pytest.mark.parametrize(
    ("dilations", "levels"),
    [
        ((2, 2), set()),
        ((1, 2), {"differ", "uneven"}),
        ((1, 2, 1), {"differ", "unordered"}),
        ((3, 1, 2), {"differ", "uneven", "unordered"}),
        ((2,), {"one"}),
    ],
)
def test_lists_are_told_apart_by_their_entries(dilations, levels):
    found = {name for name in set_off("onnx/Conv-11", X, W, dilations=dilations) if "dilations" in name}
    assert found == {f"entries=dilations-{level}" for level in levels}


def test_pads_whose_halves_differ_are_told_apart():
    assert "entries=pads-halves" in set_off("onnx/Conv-11", X, W, pads=(0, 1, 2, 0))
    assert "entries=pads-halves" not in set_off("onnx/Conv-11", X, W, pads=(1, 2, 1, 2))


def test_entries_are_misread_in_attributes_and_in_inputs():
    call = invocation("onnx/Conv-11", X, W, dilations=(2, 3), pads=(0, 1, 2, 0))
    first = defect("onnx/Conv-11", "entries=dilations-differ", "dilations-first-for-all")
    assert first.reading(call).attributes["dilations"] == (2, 2)
    swapped = defect("onnx/Conv-11", "entries=pads-halves", "pads-halves-swapped")
    assert swapped.reading(call).attributes["pads"] == (2, 0, 0, 1)
    numbers = np.array([[3, 1, 2], [5, 4, 6]])
    tile = invocation("onnx/Tile-13", np.zeros((2, 1, 1, 1), np.float32), numbers)
    turned = defect("onnx/Tile-13", "entries=repeats-uneven", "repeats-reversed").reading(tile)
    assert turned.port("repeats").tolist() == [[2, 1, 3], [6, 4, 5]]
    assert turned.port("repeats").dtype == numbers.dtype
    alike = invocation("onnx/Conv-11", X, W, dilations=(2, 2))
    assert first.reading(alike) is alike


def test_modes_that_are_all_alike_are_told_apart():
    alone = {"nodes_modes": ("BRANCH_LT", "BRANCH_LT", "LEAF", "LEAF", "LEAF")}
    assert "entries=nodes_modes-all-BRANCH_LT" in set_off("onnx/TreeEnsembleRegressor-1", tensor(1, 2), **alone)
    mixed = {"nodes_modes": ("BRANCH_LT", "BRANCH_GT", "LEAF", "LEAF", "LEAF")}
    assert not [x for x in set_off("onnx/TreeEnsembleRegressor-1", tensor(1, 2), **mixed) if "-all-" in x]


def test_inputs_set_off_by_all_of_their_deliveries():
    slope = tensor(1)
    assert "others=fed" in set_off("onnx/PRelu-16", tensor(3, 4), slope)
    fixed = set_off("onnx/PRelu-16", tensor(3, 4), slope, constant=(1,))
    assert {"others=constant", "others=constant,rank=2", "others=constant,float"} <= fixed
    assert "others=fed" not in fixed
    some = set_off("onnx/Conv-11", X, W, tensor(1), constant=(1,))
    assert not {"others=fed", "others=constant"} & some


def test_pairs_of_options_set_off_together():
    found = set_off("onnx/Gemm-13", tensor(2, 3), tensor(3, 4), alpha=0.5, beta=1.0, transA=1)
    assert "options=alpha,transA" in found
    assert not {"options=alpha,beta", "options=beta,transA"} & found, "beta has its default"
    assert "options=alpha,rank=3" in set_off("onnx/Elu-22", tensor(2, 3, 4), alpha=0.5)
    assert "options=alpha,extent=1" in set_off("onnx/Elu-22", tensor(2, 1), alpha=0.5)
    assert "options=no-axis,rank=4" in set_off("onnx/Softmax-13", tensor(1, 2, 1, 2))
    assert "options=no-axis,rank=4" not in set_off("onnx/Softmax-13", tensor(1, 2, 1, 2), axis=-1)


def test_rare_types_set_off_without_an_element():
    assert "nothing=bool" in set_off("onnx/ReduceMax-20", tensor(0, 2, type_=np.bool_))
    assert "nothing=bool" not in set_off("onnx/ReduceMax-20", tensor(1, 2, type_=np.bool_))


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("ijk->ik", {"one-summed"}),
        ("ijk->ki", {"one-summed", "one-both"}),
        ("ij->ji", {"one-permuted"}),
        ("aij,jk->ik", {"alone-of-two"}),
        ("bij,bjk->bik", {"batch"}),
        ("ijk,jkl->il", {"two-summed"}),
        ("ij,ij->ij", {"elementwise"}),
        ("i,j->ij", {"outer"}),
        ("ii->i", {"diagonal"}),
        ("iij,jk->ik", {"diagonal-of-two"}),
        (" ...ij , jk -> ...ik ", {"ellipsis-of-two"}),
        ("i...,...j->ij...", {"ellipses", "ellipsis-last"}),
        ("ba", {"implicit"}),
        (",ij->ij", {"scalar-operand"}),
        ("ij,jk,ki->", {"scalar", "three"}),
    ],
)
def test_equations_have_classes(text, classes):
    assert classes <= {name for name, (_, when) in EQUATIONS.items() if when(Equation.of(text))}


def test_a_plain_product_of_matrices_is_of_no_special_class():
    assert not {name for name, (_, when) in EQUATIONS.items() if when(Equation.of("ij,jk->ik"))}

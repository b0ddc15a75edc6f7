"""Programs of every kind of structure, with inputs, the structures of their answers, and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opconform.cases.batch import (
    Batch,
    Bounds,
    Check,
    Expectation,
    Option,
)
from opconform.cases.elements import (
    Array,
    comparable,
    element_type,
    from_json,
)
from opconform.cases.program import (
    Attribute,
    Body,
    Input,
    Node,
    OperatorVersion,
    Output,
    Program,
    SparseTensor,
    Structure,
    Tensor,
    leaves,
    optional,
    sequence,
    tensor,
)

from .programs import constant

PAIR = np.array([1, 2], np.float32)
TRIO = np.array([3, 4, 5], np.float32)
ONE = np.array([7], np.float32)
TRUE, FALSE = np.array(True), np.array(False)


def numbers(*values: float) -> Array:
    return np.array(values, np.float32)


def words(*values: str) -> Array:
    return from_json("string", (len(values),), values)


def program(operator: str, inputs: Sequence[Input | None], outputs: Sequence[str | None], **more: Any) -> Program:
    """A program whose outputs have these types and ranks (`float32/1`), None for one that is left out."""
    name, _, version = operator.rpartition("-")
    domain, _, name = name.rpartition("/")
    told = [None if one is None else one.partition("/") for one in outputs]
    made = tuple(
        None if one is None else Output(f"y{place}", one[0], int(one[2]) if one[2] else None)
        for place, one in enumerate(told)
    )
    attributes = tuple(more.pop("attributes", ()))
    opset = more.pop("opset", int(version))
    return Program(OperatorVersion("onnx", name, int(version), domain), attributes, tuple(inputs), made, opset, **more)


def held(name: str, type_: str, structure: Structure) -> Input:
    return Input(name, type_, (), structure=structure)


def add(a: str, b: str, out: str) -> Node:
    return Node(OperatorVersion("onnx", "Add", 14), (a, b), (out,))


def same(a: str, out: str) -> Node:
    return Node(OperatorVersion("onnx", "Identity", 16), (a,), (out,))


BRANCHES = [
    Attribute("then_branch", "graph", Body("then", (), (Output("sum", "float32", 1),), (add("x", "k", "sum"),))),
    Attribute(
        "else_branch",
        "graph",
        Body("else", (constant("seven", ONE),), (Output("same", "float32", 1),), (same("seven", "same"),)),
    ),
]
CAPTURED = (Input("x", "float32", (2,)), constant("k", np.array([10, 20], np.float32)))
LOOP = Body(
    "body",
    (Input("i", "int64", ()), Input("go", "bool", ()), Input("state", "float32", (2,))),
    (Output("on", "bool", 0), Output("next", "float32", 1), Output("seen", "float32", 1)),
    (same("go", "on"), add("state", "state", "next"), same("state", "seen")),
)
FLOATS = "seq(float32)"
POSITION = Input("p", "int64", ())
LISTED = held("s", FLOATS, sequence(tensor(2), tensor(3)))
LABELS = [
    Attribute("keys_strings", "strings", ("a", "b")),
    Attribute("values_int64s", "ints", (5, 6)),
    Attribute("default_int64", "int", -1),
]
SPARSE = SparseTensor(Tensor.of(PAIR), Tensor.of(np.array([1, 3])), (4,))

STRUCTURED = {
    "sequence": (
        program("SequenceInsert-11", [LISTED, Input("t", "float32", (1,)), POSITION], [FLOATS], opset=17),
        [PAIR, TRIO, ONE, np.array(1)],
        [sequence(*[Structure("tensor")] * 3)],
        [[1, 2], [7], [3, 4, 5]],
    ),
    "empty-sequence": (
        program("SequenceEmpty-11", [], ["seq(int64)"], attributes=[Attribute("dtype", "int", 7)], opset=17),
        [],
        [sequence()],
        [],
    ),
    "sequence-of-strings": (
        program("SequenceAt-11", [held("s", "seq(string)", sequence(tensor(2))), POSITION], ["string/1"]),
        [words("a", "bé"), np.array(-1)],
        [Structure("tensor")],
        [["a", "bé"]],
    ),
    "sequence-of-scalars": (
        program("SequenceLength-11", [held("s", FLOATS, sequence(tensor(), tensor()))], ["int64/0"], opset=17),
        [np.array(1, np.float32), np.array(2, np.float32)],
        [Structure("tensor")],
        [2],
    ),
    "optional": (
        program(
            "Optional-15", [Input("x", "float32", (2,))], ["optional(float32)"], opset=17
        ),
        [PAIR],
        [optional(Structure("tensor"))],
        [[1, 2]],
    ),
    "empty-optional": (
        program(
            "Optional-15", [], ["optional(seq(float32))"], opset=17,
            attributes=[Attribute("type", "type_proto", "seq(float32)")],
        ),
        [],
        [optional()],
        [],
    ),
    "optional-given": (
        program("OptionalGetElement-15", [held("o", "optional(float32)", optional(tensor(2)))], ["float32/1"]),
        [PAIR],
        [Structure("tensor")],
        [[1, 2]],
    ),
    "optional-not-given": (
        program("OptionalHasElement-15", [held("o", "optional(seq(float32))", optional())], ["bool/0"], opset=17),
        [],
        [Structure("tensor")],
        [False],
    ),
    "map": (
        program(
            "ai.onnx.ml/DictVectorizer-1", [held("x", "map(int64,float32)", Structure("map", count=2))], ["float32/2"],
            attributes=[Attribute("int64_vocabulary", "ints", (1, 2, 3))],
        ),
        [np.array([1, 3]), numbers(2, 5)],
        [Structure("tensor")],
        [[[2, 0, 5]]],
    ),
    "sequence-of-maps": (
        program(
            "ai.onnx.ml/ZipMap-1", [Input("x", "float32", (1, 2))], ["seq(map(string,float32))"],
            attributes=[Attribute("classlabels_strings", "strings", ("b", "a"))],
        ),
        [PAIR.reshape(1, 2)],
        [sequence(Structure("map", count=2))],
        [["a", "b"], [2, 1]],
    ),
    "branch": (
        program("If-16", [Input("c", "bool", ())], ["float32/1"], attributes=BRANCHES, captured=CAPTURED, opset=17),
        [TRUE, PAIR],
        [Structure("tensor")],
        [[11, 22]],
    ),
    "other-branch": (
        program("If-16", [Input("c", "bool", ())], ["float32/1"], attributes=BRANCHES, captured=CAPTURED, opset=17),
        [FALSE, PAIR],
        [Structure("tensor")],
        [[7]],
    ),
    "loop": (
        program(
            "Loop-16", [Input("m", "int64", ()), None, Input("v", "float32", (2,))], ["float32/1", "float32/2"],
            attributes=[Attribute("body", "graph", LOOP)], opset=17,
        ),
        [np.array(3), PAIR],
        [Structure("tensor")] * 2,
        [[8, 16], [[1, 2], [2, 4], [4, 8]]],
    ),
    "labels": (
        program("ai.onnx.ml/LabelEncoder-2", [Input("x", "string", (3,))], ["int64/1"], attributes=LABELS),
        [words("b", "z", "a")],
        [Structure("tensor")],
        [[6, -1, 5]],
    ),
    "tensors-as-attributes": (
        program(
            "ai.onnx.ml/LabelEncoder-4", [Input("x", "int64", (2,))], ["float64/1"],
            attributes=[
                Attribute("keys_tensor", "tensor", Tensor.of(np.array([1, 2]))),
                Attribute("values_tensor", "tensor", Tensor.of(np.array([0.5, 0.25]))),
                Attribute("default_tensor", "tensor", Tensor.of(np.array([-1.0]))),
            ],
        ),
        [np.array([2, 9])],
        [Structure("tensor")],
        [[0.25, -1]],
    ),
    "constant": (
        program("Constant-13", [], ["string/1"], attributes=[Attribute("value", "tensor", Tensor.of(words("a", "é")))]),
        [],
        [Structure("tensor")],
        [["a", "é"]],
    ),
    "constant-of-floats": (
        program("Constant-13", [], ["float32/1"], attributes=[Attribute("value_floats", "floats", (0.5, 0.25))]),
        [],
        [Structure("tensor")],
        [[0.5, 0.25]],
    ),
    "sparse-constant": (
        program("Constant-13", [], ["float32/1"], attributes=[Attribute("sparse_value", "sparse_tensor", SPARSE)]),
        [],
        [Structure("tensor")],
        [[0, 1, 0, 2]],
    ),
    "omitted-outputs": (
        program("Unique-11", [Input("x", "int64", (4,))], ["int64/1", None, None, "int64/1"]),
        [np.array([5, 2, 5, 5])],
        [Structure("tensor")] * 2,
        [[2, 5], [1, 3]],
    ),
}  # fmt: skip


def case_of(kind: str) -> tuple[Batch, tuple[Array, ...]]:
    """Return one of these as a case, and its answer's tensors; its only option has a check beside the bounds."""
    made, inputs, structures, answer = STRUCTURED[kind]
    told = zip(made.answers, structures, strict=True)
    types = [leaf.type for output, structure in told for leaf in leaves(output.type, structure)]
    arrays = [np.array(value, element_type(t).dtype) for t, value in zip(types, answer, strict=True)]
    bounds = tuple(Bounds(t, *[comparable(x)[np.newaxis]] * 3) for t, x in zip(types, arrays, strict=True))
    check = Check("same-seed", (), (("axis", 0), ("which", "largest")), (np.arange(3)[np.newaxis],))
    option = Option((), bounds, structure=() if made.is_plain else tuple(structures), checks=(check,))
    return Batch.of_case(f"onnx/{kind}", made, inputs, Expectation((option,), tuple(types))), tuple(arrays)

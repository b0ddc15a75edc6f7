"""Programs built by hand, as short as tests want them, and those of every kind of structure with their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opconform.cases.batch import Batch, Bounds, Check, Expectation, Option
from opconform.cases.elements import Array, comparable, content, element_type, from_json, type_of
from opconform.cases.program import (
    Attribute,
    AttributeKind,
    AttributeValue,
    Body,
    Dims,
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

LAST_OPSET = {
    ("ReduceMean", 1): 10,
    ("ReduceMean", 11): 12,
    ("ReduceMean", 13): 17,
    ("ReduceMean", 18): 18,
    ("Mean", 1): 5,
    ("Mean", 6): 7,
    ("Mean", 8): 12,
    ("Mean", 13): 13,
}


def feed(name: str, type_: str, *dims: int | str) -> Input:
    """An input that is given at each run."""
    return Input(name, type_, dims)


def constant(name: str, array: Array) -> Input:
    """An input with a content."""
    return Input(name, type_of(array), array.shape, content(array))


def onnx_program(
    operator: str,
    version: int,
    inputs: Sequence[Input | None],
    *,
    rank: int | None = 0,
    type_: str = "float32",
    opset: int | None = None,
    domain: str = "",
    attributes: Sequence[tuple[str, AttributeKind, AttributeValue]] = (),
) -> Program:
    """A program of one ONNX operator with the output `y`."""
    return Program(
        OperatorVersion("onnx", operator, version, domain),
        tuple(Attribute(*a) for a in attributes),
        tuple(inputs),
        (Output("y", type_, rank),),
        LAST_OPSET.get((operator, version), version) if opset is None else opset,
    )


def reduce_mean(
    version: int,
    dims: Dims,
    *more: Input | None,
    rank: int | None = None,
    type_: str = "float32",
    axes: tuple[int, ...] | None = None,
    keepdims: int | None = None,
    noop: int | None = None,
) -> Program:
    """A ReduceMean of `data`; the output's rank is that of `dims` unless given."""
    attributes: list[tuple[str, AttributeKind, AttributeValue]] = []
    attributes += [("axes", "ints", axes)] if axes is not None else []
    attributes += [("keepdims", "int", keepdims)] if keepdims is not None else []
    attributes += [("noop_with_empty_axes", "int", noop)] if noop is not None else []
    inputs = (Input("data", type_, dims), *more)
    return onnx_program(
        "ReduceMean",
        version,
        inputs,
        rank=len(dims) if rank is None else rank,
        type_=type_,
        attributes=attributes,
    )


def mean(version: int, *shapes: Dims, type_: str = "float32", rank: int | None = None) -> Program:
    """A Mean of as many inputs as there are shapes."""
    inputs = [Input(f"data_{i}", type_, dims) for i, dims in enumerate(shapes)]
    widest = max((len(dims) for dims in shapes), default=0)
    return onnx_program("Mean", version, inputs, rank=widest if rank is None else rank, type_=type_)


# oneDNN Graph programs written by hand


def onednn_program(
    operation: str,
    inputs: Sequence[Input | None],
    *,
    outputs: Sequence[str] = ("float32",),
    attributes: Sequence[tuple[str, Any, Any]] = (),
) -> Program:
    """A program of one operation, with as many outputs as there are types."""
    return Program(
        OperatorVersion("onednn", operation, "any"),
        tuple(Attribute(*a) for a in attributes),
        tuple(inputs),
        tuple(Output(f"dst_{i}", type_, None) for i, type_ in enumerate(outputs)),
    )


def reduction(
    dims: Dims,
    axes: tuple[int, ...] | None = None,
    *more: Input,
    keep_dims: bool | None = None,
    type_: str = "float32",
    operation: str = "ReduceMean",
    attributes: Sequence[tuple[str, Any, Any]] = (),
) -> Program:
    """A reduction of `src`, with the axes in the attribute, or in `more`."""
    given = [*attributes]
    given += [("axes", "s64s", axes)] if axes is not None else []
    given += [("keep_dims", "bool", keep_dims)] if keep_dims is not None else []
    return onednn_program(operation, [Input("src", type_, dims), *more], outputs=[type_], attributes=given)


# Programs of every kind of structure, with inputs, the structures of their answers, and the answers


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

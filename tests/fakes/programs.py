"""Programs built by hand, as short as tests want them."""

from __future__ import annotations

from collections.abc import Sequence

from opconform.cases.elements import Array, content, type_of
from opconform.cases.program import (
    Attribute,
    AttributeKind,
    AttributeValue,
    Dims,
    Input,
    OperatorVersion,
    Output,
    Program,
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

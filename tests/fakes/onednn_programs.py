"""oneDNN Graph programs written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opconform.cases.program import (
    Attribute,
    Dims,
    Input,
    OperatorVersion,
    Output,
    Program,
)


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

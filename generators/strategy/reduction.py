"""Reductions: axes as attribute or input, given, empty or missing, and what each standard leaves open about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, element_type
from ...cases.errors import CaseIdError
from ...cases.expectation import Labels
from ...cases.ids import CaseId
from ...cases.program import Input, Program, count
from ...specs.model import VersionSpec, Word
from ..arithmetic.tensors import Axes
from ..expect import Reading
from ..reference import reduction as reference
from .families import Build, DataTensor, Fed, data_input, node_attributes, opset, output
from .rows import Own, Row, free_letters, without_settings

Answer: TypeAlias = tuple[Labels, Any]
"""The options that a silence's answer stands for, and its meaning: a value, `rejected` or `anything`."""

_NO_ANSWER = ("rejected", "anything")

# What a standard says of axes, by the clause that says so; where it has none, a silence says what is open.
_IDENTITY = "axes-empty-identity"
_ALL = "axes-absent"
_AS_ONE = "axes-one"
_SCALAR = "rank-0-silent"


@dataclass(frozen=True)
class Reduction:
    """The family `reduction`.

    Its own parameters: `axes-from` says whether the axes are fixed with the program (an attribute, else a constant
    input), fed at each run, or both; `axes-rank` is the rank of the tensor that holds them.
    """

    own: Own = field(
        default_factory=lambda: MappingProxyType(
            {
                "dims": ("static", "symbolic"),
                "axes-from": ("constant", "graph-input", "both"),
                "axes-rank": ("1", "0", "2"),
            }
        )
    )
    references: frozenset[str] = frozenset({"mean"})
    synonyms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({"keep_dims": "keepdims"}))

    def settle(self, version: VersionSpec, case: CaseId) -> CaseId:
        """Drop where the axes come from if there are none or no input for them, and their rank if no tensor has it."""
        if case.setting("axes") in (None, "omitted") or version.signature.input("axes") is None:
            return without_settings(case, "axes-from", "axes-rank")
        if case.setting("axes-from") == "both" and version.signature.attribute("axes") is None:
            raise CaseIdError(f"{case}: axes-from=both, and {version.operator} has axes in one place")
        fixed = case.setting("axes-from") is None and version.signature.attribute("axes") is not None
        return without_settings(case, "axes-rank") if fixed else case

    def build(self, row: Row) -> Build:
        """Return the program and readings of a reduction."""
        shape, element = row.id.shapes[0], row.id.types[0]
        readings = () if row.edge and row.edge.rejected else tuple(_readings(row, shape))
        inputs: tuple[Input | None, ...] = (data_input(row, row.version.signature.inputs[0].name, element, shape),)
        feeds: tuple[Fed, ...] = (0,)
        attributes = node_attributes(row)
        if _has_axes_input(row):
            tensor = None if row.get("axes") is Word.OMITTED else _axes_tensor(row)
            inputs = (*inputs, None if tensor is None else _axes_input(row, tensor))
            if tensor is not None and row.get("axes-from") != "constant":
                feeds = (0, tensor)
            if row.get("axes-from") != "both":
                attributes = tuple(a for a in attributes if a.name != "axes")
        outputs = (output(row, element, readings),)
        program = Program(row.version.operator, attributes, inputs, outputs, opset(row))
        terms = max((reading.terms for reading in readings), default=count(shape))
        return Build(program, (DataTensor(element, shape),), feeds, readings, terms)


def _has_axes_input(row: Row) -> bool:
    """Return whether the axes are an input: where they may be an attribute too, only if they come with each run."""
    signature = row.version.signature
    if row.get("axes") is Word.ABSENT or signature.input("axes") is None:
        return False
    return signature.attribute("axes") is None or row.get("axes-from") != "constant"


def _axes_tensor(row: Row) -> Array:
    element, listed = element_type(_axes_type(row)), row.get("axes")
    if element.kind == "unsigned" and any(int(a) < 0 for a in listed):  # type: ignore[union-attr,arg-type]
        raise CaseIdError(f"{row.id}: {element.name} holds no negative axis")
    axes = np.array(listed, element.dtype)
    if row.get("axes-rank") == "0":
        if axes.size != 1:
            raise CaseIdError(f"{row.id}: axes-rank=0 holds one axis; read {axes.size}")
        return axes.reshape(())
    return axes.reshape(1, -1) if row.get("axes-rank") == "2" else axes


def _axes_type(row: Row) -> str:
    signature = row.version.signature
    letter = signature.letter("axes")
    if letter is not None:
        return row.id.types[free_letters(row.version).index(letter)]
    return next(port.type for port in signature.inputs if port.name == "axes")


def _axes_input(row: Row, tensor: Array) -> Input:
    fixed = None if row.get("axes-from") != "constant" else tensor.astype(tensor.dtype.newbyteorder("<")).tobytes()
    return Input("axes", _axes_type(row), tensor.shape, fixed)


def _readings(row: Row, shape: tuple[int, ...]) -> Iterator[Reading]:
    if not shape and _SCALAR in row.version.silences:
        yield from _of_scalar(row)
        return
    for axes_labels, axes in _axes_answers(row, len(shape)):
        for keep_labels, keepdims in _keepdims_answers(row):
            labels = (*axes_labels, *keep_labels)
            silent = next((answer for answer in (axes, keepdims) if answer in _NO_ANSWER), None)
            if silent is not None:
                yield Reading(labels, kind=silent)
            else:
                yield from _reduced(row, labels, shape, axes, keepdims)


def _of_scalar(row: Row) -> Iterator[Reading]:
    """Yield what a tensor of rank 0 may mean where the standard does not speak of it; it has no axis to name."""
    if row.get("axes") not in ((), Word.ABSENT):
        raise CaseIdError(f"{row.id}: invalid in {row.version.operator}, and no edge: a scalar has no axis")
    for labels, answer in _answered(row, _SCALAR, {"as-itself": ()}):
        if answer in _NO_ANSWER:
            yield Reading(labels, kind=answer)
        else:
            yield from _reduced(row, labels, (), answer, keepdims=False)


def _reduced(row: Row, labels: Labels, shape: tuple[int, ...], axes: Axes, keepdims: bool) -> Iterator[Reading]:
    reduced = tuple(1 if i in axes else d for i, d in enumerate(shape) if keepdims or i not in axes)
    terms = count(tuple(shape[a] for a in axes))
    if terms == 0 and count(reduced):
        for option in _options(row, "empty-set"):
            yield Reading(
                (*labels, ("empty-set", option)), kind="any" if option == "any" else "rejected", shape=reduced
            )
        return
    function = row.spec.function
    formula = _Over(getattr(reference, function), axes, keepdims)
    yield Reading(labels, "values", reduced, formula, copies=not axes, terms=terms)


@dataclass(frozen=True)
class _Over:
    """A reduction's formula; equal ones compute the same, so that what they make of the same tensors is made once."""

    function: Callable[..., Any]
    axes: Axes
    keepdims: bool

    def __call__(self, tensors: Sequence[Any]) -> Any:
        return self.function(tensors[0], self.axes, self.keepdims)


def _axes_answers(row: Row, rank: int) -> Iterator[Answer]:
    axes, version = row.get("axes"), row.version
    if row.get("axes-from") == "both":
        yield from _answered(row, "axes-both", {})
        return
    if isinstance(axes, tuple) and axes:
        yield from _listed(row, tuple(int(a) for a in axes), rank)  # type: ignore[arg-type]  # typed when read
        return
    whole: Axes = tuple(range(rank))
    meaning = {"reduce-all": whole, "identity": (), "as-one": (), "as-zero": whole}
    if version.signature.attribute("noop_with_empty_axes") is not None:
        noop = row.number("noop_with_empty_axes")
        yield from [((), () if noop else whole)] if noop in (0, 1) else _answered(row, "noop-other", meaning)
    elif axes == ():
        yield from [((), ())] if _IDENTITY in version.clauses else _answered(row, "empty-axes", meaning)
    else:
        yield from [((), whole)] if _ALL in version.clauses else _answered(row, "axes-nowhere", meaning)


def _listed(row: Row, axes: Axes, rank: int) -> Iterator[Answer]:
    """Yield what a list of axes may mean; at most one silence is open at a time, or the id says too much."""
    if row.get("axes-rank") == "2":
        yield from _answered(row, "axes-matrix", {})
        return
    if any(not -rank <= a < rank for a in axes):
        yield from _answered(row, "axes-range-early", {})
        return
    meant = tuple(sorted({a % rank for a in axes}))
    if len(meant) < len(axes):
        yield from _answered(row, "axes-duplicate", {"as-once": meant})
    elif any(a < 0 for a in axes) and "axes-negative-early" in row.version.silences:
        yield from _answered(row, "axes-negative-early", {"from-the-end": meant})
    elif row.get("axes-rank") == "0" and _AS_ONE not in row.version.clauses:
        yield from _answered(row, "axes-scalar", {"as-one-axis": meant})
    else:
        yield (), meant


def _keepdims_answers(row: Row) -> Iterator[Answer]:
    keepdims = row.number("keepdims" if row.version.signature.attribute("keepdims") else "keep_dims")
    if keepdims in (0, 1):
        yield (), bool(keepdims)
    else:
        yield from _answered(row, "keepdims-other", {"as-one": True, "as-zero": False})


def _answered(row: Row, silence: str, meaning: Mapping[str, Any]) -> Iterator[Answer]:
    for option in _options(row, silence):
        yield ((silence, option),), option if option in _NO_ANSWER else meaning[option]


def _options(row: Row, silence: str) -> tuple[str, ...]:
    """Return a silence's options; CaseIdError where the version has no such silence, so that the case is invalid."""
    if silence not in row.version.silences:
        elsewhere = [v.silences[silence].when for v in row.spec.versions.values() if silence in v.silences]
        why = elsewhere[0] if elsewhere else silence
        raise CaseIdError(f"{row.id}: invalid in {row.version.operator}, and no edge: {why}")
    return row.version.silences[silence].options

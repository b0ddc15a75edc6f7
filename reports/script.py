"""A script that reproduces one case with the library of its standard and NumPy alone."""

from __future__ import annotations

import base64
import functools
import zlib
from collections.abc import Callable, Mapping
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from ..cases.batch import Batch
from ..cases.elements import Array, element_type, type_of
from ..cases.errors import OpconformError
from ..cases.expectation import Bounds, Option
from ..cases.model import Input
from .literals import literal
from .operation import ir_opset, node_text

_READABLE = 64  # elements; more are packed


def reproduction(case: Batch) -> str:
    """Return the script. Raises OpconformError for a case of a standard that no library here belongs to."""
    standard = case.program.operator.standard
    if standard not in _PARTS:
        known = ", ".join(_PARTS)
        raise OpconformError(f"{case.id}: no script reproduces cases of {standard}; those of {known} have one")
    return Template(_text(standard)).substitute(
        title=_docstring(f"{case.id}\n\n{node_text(case.program)}"),
        judge=_text("judge").rstrip(),
        **_PARTS[standard](case),
    )


@functools.cache
def _text(name: str) -> str:
    return (resources.files(__package__) / "scripts" / f"{name}.py.txt").read_text(encoding="utf-8")


def _docstring(text: str) -> str:
    return text.replace("\\", r"\\").replace('"""', r"\"\"\"")


# The standards' parts


def _onnx(case: Batch) -> Mapping[str, str]:
    from ..cases.onnx_model import onnx_bytes  # noqa: PLC0415 - importing onnx costs a fifth of a second

    fed = [_given(i, a) for i, a in zip(case.program.feeds, case.tensors(), strict=True)]
    return {
        "model": _packed(onnx_bytes(case.program)),
        "case": _case(case, fed),
        "bfloat16": str(element_type("bfloat16").onnx),
    }


def _openvino(case: Batch) -> Mapping[str, str]:
    program = case.program
    given = [_given(i, a) | _known_before(i) for i, a in _contents(case)]
    attributes = {a.name: bool(a.value) if a.kind == "boolean" else _plain(a.value) for a in program.attributes}
    return {
        "operation": literal(program.operator.name),
        "opset": literal(ir_opset(program)),
        "attributes": literal(attributes),
        "case": _case(case, given),
    }


def _known_before(given: Input) -> dict[str, Any]:
    """Return what OpenVINO is told of an input when the model is made, beside its type."""
    if given.constant is not None:
        return {"constant": True}
    return {"partial_shape": [-1 if isinstance(d, str) else d for d in given.dims]}


def _onednn(case: Batch) -> Mapping[str, str]:
    from ..runners.onednn_enumerations import ATTRIBUTES, OPERATIONS, TYPE_NUMBERS, TYPES  # noqa: PLC0415

    program = case.program
    # a number that the header does not have is put to the library all the same: it is for it to refuse
    attributes = [
        (a.name, ATTRIBUTES.get(a.name, 0), str(a.kind).removesuffix("s"), _plain(a.value)) for a in program.attributes
    ]
    used = {i.type for i in program.inputs if i is not None} | {o.type for o in program.outputs}
    return {
        "operation": literal(program.operator.name),
        "kind": str(OPERATIONS[program.operator.name]),
        "attributes": literal(attributes),
        "outputs": literal([(o.name, o.type) for o in program.outputs]),
        "types": literal({name: TYPE_NUMBERS[TYPES[name]] for name in sorted(used) if name in TYPES}),
        "case": _case(case, [_given(i, a) for i, a in _contents(case)]),
    }


_PARTS: Mapping[str, Callable[[Batch], Mapping[str, str]]] = {
    "onnx": _onnx,
    "openvino": _openvino,
    "onednn": _onednn,
}


def _contents(case: Batch) -> list[tuple[Input, Array]]:
    """Return all inputs with their content, be they fed or constant."""
    fed = iter(case.tensors())
    return [(i, next(fed) if i.constant is None else i.array()) for i in case.program.inputs if i is not None]


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


# What every script holds


def _case(case: Batch, inputs: list[dict[str, Any]]) -> str:
    admitted = [_option(option) for option in case.expectation.options]
    return "\n".join(
        [
            f"INPUTS = {literal(inputs, used=9)}",
            "# What the standard admits: one option or another; none if the input is invalid. An element's flags admit",
            "# more than lower to upper: 1 inf, 2 -inf, 4 NaN, 8 anything, 16 zero; 32 demands a zero to be -0, 64 +0.",
            f"ADMITTED = {literal(admitted, used=11)}",
        ]
    )


def _given(given: Input, array: Array) -> dict[str, Any]:
    return {"name": given.name, "type": type_of(array), "shape": array.shape, "elements": _elements(array)}


def _option(option: Option) -> dict[str, Any]:
    return {
        "labels": dict(option.labels),
        "kind": option.kind,
        **({"exceptional": True} if option.exceptional else {}),
        "outputs": [_bounds(bounds) for bounds in option.outputs],
    }


def _bounds(bounds: Bounds) -> dict[str, Any]:
    written: dict[str, Any] = {"type": bounds.type, "shape": bounds.shape}
    written |= {"lower": _elements(bounds.lower), "upper": _elements(bounds.upper)}
    if bounds.lower.tobytes() != bounds.value.tobytes():  # else it is the lower bound
        written["value"] = _elements(bounds.value)
    if bounds.flags is not None:
        written["flags"] = _elements(bounds.flags)
    if bounds.spread is not None:
        written["spread"] = {"limit": bounds.spread.limit, "sigma": _elements(bounds.spread.sigma)}
    return written


def _elements(array: Array) -> list[Any] | str:
    """Return elements to read where they are few and say all, else their bytes in base64.

    NaN is written `nan`, so one with a payload of its own is packed.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size <= _READABLE:
        written = [float(str(x)) for x in flat.astype(_widest(flat))] if type_of(flat) in _FLOATS else flat.tolist()
        if np.array(written, _widest(flat)).astype(flat.dtype).tobytes() == flat.tobytes():
            return written
    little = flat.astype(flat.dtype.newbyteorder("<")) if flat.dtype.kind in "iuf" else flat
    return _packed(little.tobytes())


_FLOATS = ("float16", "bfloat16", "float32", "float64")


def _widest(array: Array) -> np.dtype[Any]:
    """Return the type in which a script reads an array's elements: NumPy's own, float32 for bfloat16."""
    return np.dtype(np.float32) if type_of(array) == "bfloat16" else array.dtype


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()

"""A script that reproduces one case with only the library of its standard and NumPy."""

from __future__ import annotations

import base64
import functools
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from ..cases.batch import Batch, Bounds, Check, Option
from ..cases.elements import (
    Array,
    comparable,
    content,
    element_type,
    from_json,
    to_json,
    type_of,
)
from ..cases.errors import OpconformError
from ..cases.program import Input, Structure, element_names
from .show import ir_opset, node_text

_READABLE = 64  # elements; larger arrays are packed


def reproduction(case: Batch) -> str:
    """Return the script. Raises OpconformError for a case of a standard without a library for scripts."""
    standard = case.program.operator.standard
    if standard not in _PARTS:
        known = ", ".join(_PARTS)
        raise OpconformError(f"{case.id}: there are no scripts for cases of {standard}, only for {known}")
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

    program, arrays = case.program, iter(case.tensors())
    fed = [{"name": i.name} | _value(i.layout, arrays) for i in program.feeds]
    types = [i.type for i in program.feeds] + [o.type for o in program.answers]
    used = {name for type_ in types for name in element_names(type_)}
    numbers = {n: element_type(n).onnx for n in sorted(used) if element_type(n).dtype.isbuiltin != 1 and n != "string"}
    return {
        "model": _packed(onnx_bytes(program)),
        "case": _case(case, fed),
        "numbers": literal(numbers),
        "is_plain": str(not numbers),
    }


def _openvino(case: Batch) -> Mapping[str, str]:
    program = case.program
    if any(a.kind == "graph" for a in program.attributes):
        raise OpconformError(f"{case.id}: scripts cannot make the bodies of {program.operator}")
    given = [_given(i, a) | _known_before(i) for i, a in _contents(case)]
    attributes = {a.name: bool(a.value) if a.kind == "boolean" else _plain(a.value) for a in program.attributes}
    return {
        "operation": literal(program.operator.name),
        "opset": literal(ir_opset(program)),
        "attributes": literal(attributes),
        "case": _case(case, given),
    }


def _known_before(given: Input) -> dict[str, Any]:
    """Return what OpenVINO knows of an input when the model is made, besides its type."""
    if given.constant is not None:
        return {"constant": True}
    return {"partial_shape": [-1 if isinstance(d, str) else d for d in given.dims]}


def _onednn(case: Batch) -> Mapping[str, str]:
    from ..runners.onednn_library import ATTRIBUTES, OPERATIONS, TYPE_NUMBERS, TYPES  # noqa: PLC0415

    program = case.program
    # a number that the header does not have still goes to the library, which should refuse it
    attributes = [
        (a.name, ATTRIBUTES.get(a.name, 0), str(a.kind).removesuffix("s"), _plain(a.value)) for a in program.attributes
    ]
    used = {i.type for i in program.inputs if i is not None} | {o.type for o in program.answers}
    return {
        "operation": literal(program.operator.name),
        "kind": str(OPERATIONS[program.operator.name]),
        "attributes": literal(attributes),
        "outputs": literal([(o.name, o.type) for o in program.answers]),
        "types": literal({name: TYPE_NUMBERS[TYPES[name]] for name in sorted(used) if name in TYPES}),
        "case": _case(case, [_given(i, a) for i, a in _contents(case)]),
    }


_PARTS: Mapping[str, Callable[[Batch], Mapping[str, str]]] = {
    "onnx": _onnx,
    "openvino": _openvino,
    "onednn": _onednn,
}


def _contents(case: Batch) -> list[tuple[Input, Array]]:
    """Return all inputs with their content, fed or constant."""
    fed = dict(zip([i.name for i in case.program.feeds], case.tensors(), strict=False))
    return [(i, fed[i.name] if i.constant is None else i.array()) for i in case.program.inputs if i is not None]


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
    return {"name": given.name} | _tensor(array)


def _tensor(array: Array) -> dict[str, Any]:
    return {"type": type_of(array), "shape": array.shape, "elements": _elements(array)}


def _value(structure: Structure, arrays: Iterator[Array]) -> dict[str, Any]:
    """Return the value that a script feeds: a tensor, or the parts of a sequence, an optional or a map."""
    match structure.kind:
        case "sequence":
            return {"sequence": [_value(item, arrays) for item in structure.items]}
        case "optional":
            return {"optional": _value(structure.items[0], arrays) if structure.items else None}
        case "map":
            return {"map": [_tensor(next(arrays)), _tensor(next(arrays))]}
    return _tensor(next(arrays))


def _word(structure: Structure) -> str:
    """Return a structure as a script writes it for an answer; an optional is written as its content."""
    match structure.kind:
        case "sequence":
            return f"[{','.join(map(_word, structure.items))}]"
        case "optional":
            return _word(structure.items[0]) if structure.items else "?"
        case "map":
            return f"{{{structure.count}}}"
    return "*"


def _option(option: Option) -> dict[str, Any]:
    return {
        "labels": dict(option.labels),
        "kind": option.kind,
        **({"exceptional": True} if option.exceptional else {}),
        **({"structure": [_word(one) for one in option.structure]} if option.structure else {}),
        **({"checks": [_check(check) for check in option.checks]} if option.checks else {}),
        "outputs": [_bounds(bounds) for bounds in option.outputs],
    }


def _check(check: Check) -> dict[str, Any]:
    arrays = [_tensor(comparable(array[0])) for array in check.arrays]
    return {"name": check.name, "outputs": check.outputs, **dict(check.settings), "arrays": arrays}


def _bounds(bounds: Bounds) -> dict[str, Any]:
    written: dict[str, Any] = {"type": bounds.type, "shape": bounds.shape}
    written |= {"lower": _elements(bounds.lower), "upper": _elements(bounds.upper)}
    if content(bounds.lower) != content(bounds.value):  # else it is the lower bound
        written["value"] = _elements(bounds.value)
    if bounds.flags is not None:
        written["flags"] = _elements(bounds.flags)
    if bounds.spread is not None:
        written["spread"] = {"limit": bounds.spread.limit, "sigma": _elements(bounds.spread.sigma)}
    return written


def _elements(array: Array) -> list[Any] | str:
    """Return elements as numbers if they are few and this is exact, otherwise their bytes in base64.

    NaN is written `nan`, so a NaN with an unusual payload is packed.
    """
    name, shape = type_of(array), array.shape
    if name == "string":
        return to_json(array)
    if array.size <= _READABLE and array.dtype.kind != "c":
        numbers: list[Any] = comparable(array).reshape(-1).tolist()
        written = [float(str(x)) for x in array.astype(np.float32).reshape(-1)] if name in _NARROW else numbers
        says_all = content(from_json(name, shape, written)) == content(array)
        # `nan` does not say which of its NaNs a narrow type means
        if says_all and not (element_type(name).bits <= 8 and any(map(math.isnan, written))):
            return written
    return _packed(content(array))


_NARROW = ("float16", "bfloat16", "float32")
"""Types whose numbers are short in float32."""


def _packed(held: bytes) -> str:
    return base64.b64encode(zlib.compress(held, 9)).decode()


_INDENT = "    "
_NUMBERS = frozenset({int, float, bool, type(None)})  # Python writes lists of them in this form


def literal(value: object, width: int = 120, used: int = 0) -> str:
    """Return `value` as Python source of at most `width` characters per line, if its parts allow it.

    Dicts, lists and tuples of strings, numbers, booleans and None; infinity and NaN are written `inf` and `nan`.
    `used`: the number of characters before it in its line.
    """
    return _Written().literal(value, width, used)


class _Written:
    """The parts of one value on a line each, cached, because every level above needs them."""

    def __init__(self) -> None:
        self._lines: dict[int, str] = {}  # by identity: the value lives as long as this object

    def literal(self, value: object, width: int, used: int) -> str:
        short = self._in_a_line(value)
        if len(short) + used < width or not isinstance(value, Mapping | list | tuple) or not value:
            return short
        opening, closing = ("{", "}") if isinstance(value, Mapping) else ("[", "]") if isinstance(value, list) else "()"
        if isinstance(value, Mapping):
            entries = [self._entry(f"{self._in_a_line(key)}: ", content, width) for key, content in value.items()]
        elif any(isinstance(content, Mapping | list | tuple | str) for content in value):
            entries = [self._entry("", content, width) for content in value]
        else:
            entries = _filled([f"{content!r}," for content in value], width - len(_INDENT))
        return "\n".join([opening, *(_indented(entry) for entry in entries), closing])

    def _entry(self, start: str, value: object, width: int) -> str:
        return f"{start}{self.literal(value, width - len(_INDENT), len(start))},"

    def _in_a_line(self, value: object) -> str:
        if isinstance(value, str):  # Python reads strings that JSON escapes in ASCII in the same way
            return json.dumps(value) if value.isascii() else ascii(value)
        if not isinstance(value, Mapping | list | tuple):
            return repr(value)
        found = self._lines.get(id(value))
        if found is None:
            found = self._lines[id(value)] = self._joined(value)
        return found

    def _joined(self, value: Mapping[object, object] | Sequence[object]) -> str:
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{self._in_a_line(k)}: {self._in_a_line(v)}" for k, v in value.items()) + "}"
        if _NUMBERS.issuperset(map(type, value)):
            return repr(value)
        told = ", ".join(map(self._in_a_line, value))
        if isinstance(value, tuple):
            return f"({told},)" if len(value) == 1 else f"({told})"
        return f"[{told}]"


def _filled(words: Sequence[str], width: int) -> list[str]:
    """Return lines, each filled with as many words as fit."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _indented(entry: str) -> str:
    return _INDENT + entry.replace("\n", f"\n{_INDENT}")

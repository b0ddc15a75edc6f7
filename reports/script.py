"""A script that reproduces one case with only the library of its standard and NumPy."""

from __future__ import annotations

import base64
import functools
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from ..cases.batch import Batch, Bounds, Check, Option
from ..cases.elements import Array, comparable, content, element_type, from_json, to_json, type_of
from ..cases.errors import OpconformError
from ..cases.program import NO_VERSION, UNRANKED, Attribute, Body, Input, Structure, element_names
from .show import ir_opset, node_text

_READABLE = 64  # elements; larger arrays are packed


def reproduction(case: Batch) -> str:
    """Return the script. Raises OpconformError for a case of a standard without a library for scripts."""
    standard = case.program.operator.standard
    if standard not in _PARTS:
        known = ", ".join(_PARTS)
        raise OpconformError(f"{case.id}: there are no scripts for cases of {standard}, only for {known}")
    return Template(_text(standard)).substitute(
        title=docstring(f"{case.id}\n\n{node_text(case.program)}"),
        judge=_text("judge").rstrip(),
        **_PARTS[standard](case),
    )


def script_text(case: Batch, *, full: bool = False) -> str:
    """Return the short script of a case if it has one, and `full` is not set; otherwise the long one.

    Raises OpconformError for a case of a standard without a library for scripts.
    """
    return (None if full else short_reproduction(case)) or reproduction(case)


@functools.cache
def _text(name: str) -> str:
    return (resources.files(__package__) / "scripts" / f"{name}.py.txt").read_text(encoding="utf-8")


def docstring(text: str) -> str:
    """Return a text as the content of a docstring."""
    return text.replace("\\", r"\\").replace('"""', r"\"\"\"")


_FEW = 8  # elements of a bound that a short script writes out
_PLAIN_TYPES = frozenset({"float16", "float32", "float64", "bool"}) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_ALSO = {1: "(x == inf)", 2: "(x == -inf)", 4: "np.isnan(x)", 8: "True", 16: "(x == 0)"}
_SIGNS = {32: "np.signbit(x)", 64: "~np.signbit(x)"}
"""What an element may be besides the numbers between its bounds, and the sign of a zero: by the bits of Flag."""

_UNPACK = """

def packed(kind, shape, content):
    return np.frombuffer(zlib.decompress(base64.b64decode(content)), kind).reshape(shape)

"""


def short_reproduction(case: Batch) -> str | None:
    """Return a script of 25 to 50 lines for a bug report: the model, its inputs, what is admitted, and an assertion.

    None if the case needs more: other types than NumPy's, answers that are no tensors, tests of whole outputs, options
    for which every answer is right, or another standard than ONNX.
    """
    options = case.expectation.options
    fed = [*zip(case.program.feeds, case.tensors(), strict=True)] if _feeds_tensors(case) else None
    if case.program.operator.standard != "onnx" or fed is None or not all(map(_is_plain, options)):
        return None
    from ..cases.onnx_model import onnx_bytes  # noqa: PLC0415 - importing onnx costs a fifth of a second

    every = (bounds.flags for option in options for bounds in option.outputs)
    flags = 0
    for script in every:
        flags |= 0 if script is None else int(np.bitwise_or.reduce(script, axis=None))
    inputs = "".join(
        f"    {literal(given.name)}: {_indented(_array(array, 3 * _FEW)).lstrip()},\n" for given, array in fed
    )
    written = {
        "inputs": f"{{\n{inputs}}}" if inputs else "{}",
        "admitted": _admitted_text([option for option in options if option.kind == "values"], flags),
        "run": _run_text(options, flags),
    }
    text = "".join(written.values())
    constants = ", ".join(name for name in ("inf", "nan") if re.search(rf"\b{name}\b", text))
    return Template(_text("short")).substitute(
        title=docstring(f"{case.id}\n{node_text(case.program)}"),
        model=packed_text(onnx_bytes(case.program)),
        constants=f"from math import {constants}\n" if constants else "",
        packed=_UNPACK if "packed(" in text else "",
        **written,
    )


def _feeds_tensors(case: Batch) -> bool:
    return all(given.layout.kind == "tensor" and given.type in _PLAIN_TYPES for given in case.program.feeds)


def _is_plain(option: Option) -> bool:
    if option.kind != "values":
        return option.kind == "rejected"
    special = option.exceptional or option.structure or option.checks
    return not special and all(b.type in _PLAIN_TYPES and b.spread is None for b in option.outputs)


def _array(array: Array, most: int = _FEW) -> str:
    """Return an array as Python source: its elements, or their bytes if there are more than `most`."""
    kind, shape, elements = type_of(array), array.shape, _elements(array)
    if isinstance(elements, str) or array.size > most:
        return f"packed({literal(kind)}, {shape!r}, {literal(packed_text(content(array)))})"
    if not shape:
        return f"np.array({literal(elements)[1:-1]}, {literal(kind)})"
    return f"np.array({literal(elements, used=30)}, {literal(kind)}){f'.reshape{shape!r}' if len(shape) > 1 else ''}"


def _admitted_text(options: Sequence[Option], flags: int) -> str:
    """Return the assignment of what is admitted: for each option and output its type, bounds and, if any, flags."""
    if not options:
        return ""
    several = "one of these" if len(options) > 1 else "this"
    also = ", and what it may be besides, as bits" if flags else ""
    lines = [
        f"# The standard admits {several}: of each output the type, and of each element from, to (None: equal){also}."
    ]
    lines.append("ADMITTED = [")
    for option in options:
        labels = ", ".join(f"{silence}={answer}" for silence, answer in option.labels)
        comment = f"  # {labels}" if labels else ""
        wants = [_want(bounds, flags) for bounds in option.outputs]
        line = f"    [{', '.join(wants)}],{comment}"
        own = [f"    [{comment}", *(_indented(_indented(f"{want},")) for want in wants), "    ],"]
        lines += [line] if len(line) <= _WIDTH and "\n" not in line else own
    return "\n".join([*lines, "]", ""])


def _want(bounds: Bounds, flags: int) -> str:
    """Return a tuple of an output's type, lower bounds, upper bounds and, if there are any, flags."""
    exact = content(bounds.lower) == content(bounds.upper)
    upper = "None" if exact else _array(bounds.upper[0, ...])
    parts = [literal(bounds.type), _array(bounds.lower[0, ...]), upper]
    if flags:
        parts.append("0" if bounds.flags is None else _array(bounds.flags[0, ...]))
    line = f"({', '.join(parts)})"
    if len(line) <= _WIDTH - 2 * len(_INDENT) and "\n" not in line:
        return line
    return "\n".join(["(", *(_indented(f"{part},") for part in parts), ")"])


_WIDTH = 120


def _run_text(options: Sequence[Option], flags: int) -> str:
    """Return the rest of a short script: the run, and the assertion about its answer or refusal."""
    model, run = "zlib.decompress(base64.b64decode(MODEL))", "answers = session.run(None, INPUTS)"
    lines = [f'session = ort.InferenceSession({model}, options, providers=["CPUExecutionProvider"])', run]
    judged = [option for option in options if option.kind == "values"]
    if len(judged) < len(options) or not options:
        why = "the standard lets it" if options else "the input is invalid"
        lines = ["try:", *map(_indented, lines), "except Exception as error:"]
        lines.append(f'    sys.exit(print(f"refused ({why}): {{error}}"))  # no code: 0')
    lines.append('print("got", *answers, sep="\\n")')
    if not judged:
        return "\n".join([*lines, 'assert not answers, "a refusal was expected"'])
    also = "".join(f" | (also & {bit} > 0) & {test}" for bit, test in _ALSO.items() if flags & bit)
    signs = "".join(f" & ((also & {bit} == 0) | {test})" for bit, test in _SIGNS.items() if flags & bit)
    right = f"((low <= x) & (x <= high){also})" if also else "(low <= x) & (x <= high)"
    lines += ["", "", f"def admits(got, kind, low, high{', also' if flags else ''}):"]
    lines.append("    x, high = got.astype(low.dtype), low if high is None else high")
    lines.append(f"    return got.dtype == kind and got.shape == low.shape and ({right}{signs}).all()")
    lines += ["", "", "found = [all(admits(got, *want) for got, want in zip(answers, option)) for option in ADMITTED]"]
    return "\n".join([*lines, 'assert any(found), f"not admitted; want {ADMITTED}"'])


# The standards' parts


def _onnx(case: Batch) -> Mapping[str, str]:
    from ..cases.onnx_model import onnx_bytes  # noqa: PLC0415 - importing onnx costs a fifth of a second

    program, arrays = case.program, iter(case.tensors())
    fed = [{"name": i.name} | _value(i.layout, arrays) for i in program.feeds]
    types = [i.type for i in program.feeds] + [o.type for o in program.answers]
    used = {name for type_ in types for name in element_names(type_)}
    numbers = {n: element_type(n).onnx for n in sorted(used) if element_type(n).dtype.isbuiltin != 1 and n != "string"}
    return {
        "model": packed_text(onnx_bytes(program)),
        "case": _case(case, fed),
        "numbers": literal(numbers),
        "is_plain": str(not numbers),
    }


def _openvino(case: Batch) -> Mapping[str, str]:
    program = case.program
    given = [_given(i, a) | _known_before(i) for i, a in _contents(case)]
    has_bodies = any(isinstance(a.value, Body) for a in program.attributes)
    created = "NodeFactory(OPSET).create(OPERATION, nodes, ATTRIBUTES)"
    if has_bodies:
        names = '[given["name"] for given in INPUTS]'
        created = f"created(OPERATION, OPSET, {names}, [one.output(0) for one in nodes], ATTRIBUTES)"
    return {
        "operation": literal(program.operator.name),
        "opset": literal(ir_opset(program)),
        "attributes": literal({a.name: _openvino_value(a) for a in program.attributes}),
        "bodies": _text("openvino_bodies") if has_bodies else "",
        "created": created,
        "case": _case(case, given),
    }


def _openvino_value(attribute: Attribute) -> Any:
    if isinstance(attribute.value, Body):
        return _openvino_body(attribute.value)
    return bool(attribute.value) if attribute.kind == "boolean" else _plain(attribute.value)


def _openvino_body(body: Body) -> dict[str, Any]:
    inputs = [_given(i, i.array()) if i.constant is not None else {"name": i.name, "type": i.type} for i in body.inputs]
    return {
        "name": body.name,
        "inputs": [written | _known_before(i) for written, i in zip(inputs, body.inputs, strict=True)],
        "nodes": [
            {
                "operation": node.operator.name,
                **({} if node.operator.version == NO_VERSION else {"opset": f"opset{node.operator.version}"}),
                "inputs": node.inputs,
                "outputs": node.outputs,
                "attributes": {a.name: _openvino_value(a) for a in node.attributes},
            }
            for node in body.nodes
        ],
        "outputs": [output.name for output in body.outputs],
    }


def _known_before(given: Input) -> dict[str, Any]:
    """Return what OpenVINO knows of an input when the model is made, besides its type."""
    if given.constant is not None:
        return {"constant": True}
    if given.dims == UNRANKED:
        return {"partial_shape": "..."}
    return {"partial_shape": [-1 if isinstance(d, str) else d for d in given.dims]}


def _onednn(case: Batch) -> Mapping[str, str]:
    from ..runners.backends.onednn_companions import company  # noqa: PLC0415
    from ..runners.backends.onednn_library import ATTRIBUTES, OPERATIONS, TYPES  # noqa: PLC0415

    program = case.program

    def attributes(given: Iterable[Attribute]) -> list[tuple[str, int, str, object]]:
        # a number that the header does not have still goes to the library, which should refuse it
        kinds = ("str" if a.kind == "string" else str(a.kind).removesuffix("s") for a in given)
        return [(a.name, ATTRIBUTES.get(a.name, 0), k, _plain(a.value)) for a, k in zip(given, kinds, strict=True)]

    beside = company(program)
    around = [
        [(node.name, OPERATIONS[node.name], attributes(node.attributes), node.operand is not None) for node in side]
        for side in (beside.before, beside.after)
    ]
    used = {i.type for i in program.inputs if i is not None} | {o.type for o in program.answers}
    return {
        "operation": literal(program.operator.name),
        "kind": str(OPERATIONS[program.operator.name]),
        "attributes": literal(attributes(program.attributes)),
        "around": literal([tuple(around)] if any(around) else []),
        "outputs": literal([(o.name, o.type) for o in program.answers]),
        "layout": "1 " if any(o.free for o in program.answers) else "2 ",
        "types": literal({name: TYPES[name][1] for name in sorted(used) if name in TYPES}),
        "case": _case(case, [_given(i, a) | _laid_out(i) for i, a in _contents(case)]),
    }


def _laid_out(given: Input) -> dict[str, Any]:
    """Return an input's strides in memory, in elements, if it is not in C order."""
    return {} if given.strides is None else {"strides": given.strides}


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
        **({"structure": [_word(structure) for structure in option.structure]} if option.structure else {}),
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
    return packed_text(content(array))


_NARROW = ("float16", "bfloat16", "float32")
"""Types whose numbers are short in float32."""


def packed_text(data: bytes) -> str:
    """Return bytes as a script holds them: compressed, in base64."""
    return base64.b64encode(zlib.compress(data, 9)).decode()


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
        line = self._lines.get(id(value))
        if line is None:
            line = self._lines[id(value)] = self._joined(value)
        return line

    def _joined(self, value: Mapping[object, object] | Sequence[object]) -> str:
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{self._in_a_line(k)}: {self._in_a_line(v)}" for k, v in value.items()) + "}"
        if _NUMBERS.issuperset(map(type, value)):
            return repr(value)
        entries = ", ".join(map(self._in_a_line, value))
        if isinstance(value, tuple):
            return f"({entries},)" if len(value) == 1 else f"({entries})"
        return f"[{entries}]"


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

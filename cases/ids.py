"""Case ids: a grammar that speaks, derived from a case's content alone, parsed and printed without loss.

`onnx/ReduceMean-13/float32/3x2x2/axes=-2;keepdims=0/uniform`: operator version, types, shapes, settings, fill, and the
edge's name where the case is one. Shapes are those of the inputs that a fill or a recipe makes, in the signature's
order, `_` for one that is left out; `seq:2x3+2x3` and the like are those of sequences, optionals, maps and sparse
tensors. Text in settings is percent-encoded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias
from urllib.parse import quote, unquote

from .errors import CaseIdError
from .structures import Structure, parse_type, tensor

Shape: TypeAlias = tuple[int, ...]

_FORM = "standard/Operator-version/types/shapes/settings/fill[/edge]"
_TOO_MANY_INPUTS = 100_000
_TYPE = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_WORD = re.compile(r"[A-Za-z0-9_.^+-]+")
_FILL = re.compile(r"[A-Za-z0-9_.^+-]+(?::[A-Za-z0-9_.^+,-]+)?")
_SETTING = re.compile(r"([A-Za-z_][\w.-]*)=([^=;/\s]+)")
_SHAPE = re.compile(r"scalar|\d{1,10}(?:x\d{1,10})*")
_COUNT = re.compile(r"\d{1,10}")
_RUN = re.compile(r"([1-9]\d{0,5})\*(.+)")
_EMPTY_TEXT = "%"
_SAFE = "@+:^~-._"  # and letters and digits: nothing that a shell or another part of an id reads


Part: TypeAlias = "Shape | Structure | None"
"""What an id says of one input: a tensor's shape, the structure of what is no tensor, None where it is left out."""


@dataclass(frozen=True, slots=True)
class CaseId:
    """The parts of a case id.

    `types` are those that the case varies, in the signature's order; `shapes` a part for each input that is filled or
    drawn, or could be. `settings` are sorted by name, their values as text. `edge` is None for a case that the covering
    array chose.
    """

    operator: str
    types: tuple[str, ...]
    shapes: tuple[Part, ...]
    settings: tuple[tuple[str, str], ...]
    fill: str
    edge: str | None = None

    def __str__(self) -> str:
        settings = ";".join(f"{name}={value}" for name, value in self.settings) or "-"
        types = ",".join(map(_type_word, self.types)) or "-"
        parts = [self.operator, types, print_shapes(self.shapes), settings, self.fill]
        return "/".join([*parts, self.edge] if self.edge else parts)

    @property
    def size(self) -> int:
        """How many elements the inputs have that a fill or a recipe makes."""
        return sum(map(part_size, self.shapes))

    def setting(self, name: str) -> str | None:
        """Return the text of one setting, or None if the id does not carry it."""
        return next((value for key, value in self.settings if key == name), None)


def part_size(part: Part) -> int:
    """Return how many elements an input has by what an id says of it."""
    if isinstance(part, Structure):
        dense = part.dims is not None and part.kind == "tensor"
        return part.count + sum(map(part_size, part.items)) + (math.prod(_whole(part.dims)) if dense else 0)
    return 0 if part is None else math.prod(part)


def parse_id(text: str) -> CaseId:
    """Parse a case id. Raises CaseIdError that says which part is wrong."""
    parts = text.split("/")
    if len(parts) not in (6, 7):
        raise CaseIdError(f"{text!r} is no case id: it has {len(parts)} parts, expected {_FORM}")
    words = () if parts[2] == "-" else tuple(parts[2].split(","))
    for word in (*parts[:2], *words, *parts[6:]):
        if not (_TYPE if word in words else _WORD).fullmatch(word):
            raise CaseIdError(f"{text!r} is no case id: {word!r} is no name, expected {_FORM}")
    if not _FILL.fullmatch(parts[5]):
        raise CaseIdError(f"{text!r} is no case id: {parts[5]!r} is no name, expected {_FORM}")
    settings = _parse_settings(parts[4], text)
    edge = parts[6] if len(parts) == 7 else None
    types = tuple(_type_of(word, text) for word in words)
    found = CaseId("/".join(parts[:2]), types, _parse_shapes(parts[3], text), settings, parts[5], edge)
    if str(found) != text:  # one id for one content
        raise CaseIdError(f"{text!r} is no case id: it is written {str(found)!r}")
    return found


def operator_version_of(case_id: str) -> str:
    """Return the operator version that a case id begins with, `onnx/ReduceMean-13`."""
    end = case_id.find("/", case_id.find("/") + 1)  # asked of every result, more than once
    return case_id if end < 0 or "/" not in case_id[:end] else case_id[:end]


def split_version(operator_version: str) -> tuple[str, str]:
    """Return operator and version, `onnx/ReduceMean` and `13`; the version is empty where the name carries none."""
    operator, dash, version = operator_version.rpartition("-")
    return (operator, version) if dash else (operator_version, "")


def encode_text(text: str) -> str:
    """Return a text as a setting has it: percent-encoded, and without any of `, ; = /` and blanks."""
    return quote(text, safe=_SAFE) or _EMPTY_TEXT


def decode_text(text: str) -> str:
    """Return what `encode_text` was given. Raises UnicodeDecodeError."""
    return "" if text == _EMPTY_TEXT else unquote(text, errors="strict")


def print_shapes(shapes: Iterable[Part]) -> str:
    """Return shapes as an id has them: `3x2,scalar`, repeats as `40*3x2`, `_` and `seq:3x2+4`, `none` for no input."""
    words = []
    for shape, run in groupby(shapes):
        length = len(list(run))
        word = print_shape(shape)
        words += [f"{length}*{word}"] if length > 1 and shape is not None else [word] * length
    return ",".join(words) or "none"


def print_shape(shape: Part) -> str:
    """Return one shape as an id has it."""
    if shape is None:
        return "_"
    if isinstance(shape, tuple):
        return "x".join(map(str, shape)) if shape else "scalar"
    match shape.kind:
        case "map":
            return f"map:{shape.count}"
        case "sparse":
            return f"sparse:{print_shape(_whole(shape.dims))}+{shape.count}"
        case "tensor":
            return print_shape(_whole(shape.dims))
    kind = "seq" if shape.kind == "sequence" else shape.kind
    return f"{kind}:{'+'.join(map(print_shape, shape.items)) or 'none'}"


def _whole(dims: tuple[int | str, ...] | None) -> Shape:
    return tuple(int(d) for d in dims or ())


def _parse_shapes(text: str, whole: str) -> tuple[Part, ...]:
    if text == "none":
        return ()
    shapes: list[Part] = []
    for word in text.split(","):
        run = _RUN.fullmatch(word)
        shapes += [None] if word == "_" else [_parse_shape(run[2] if run else word, whole)] * int(run[1] if run else 1)
        if len(shapes) > _TOO_MANY_INPUTS:
            raise CaseIdError(f"{whole!r} is no case id: more than {_TOO_MANY_INPUTS} inputs")
    return tuple(shapes)


def _parse_shape(word: str, whole: str) -> Shape | Structure:
    kind, _, rest = word.partition(":")
    if kind == "seq":
        return Structure("sequence", items=() if rest == "none" else tuple(_item(p, whole) for p in rest.split("+")))
    if kind == "optional" and rest:
        return Structure("optional", items=() if rest == "none" else (_item(rest, whole),))
    if kind == "map" and _COUNT.fullmatch(rest):
        return Structure("map", count=int(rest))
    dims, _, number = rest.partition("+")
    if kind == "sparse" and _COUNT.fullmatch(number):
        return Structure("sparse", _item(dims, whole).dims, count=int(number))
    if not _SHAPE.fullmatch(word):
        raise CaseIdError(f"{whole!r} is no case id: {word!r} is no shape; expected 3x2, scalar, 40*3x2, _ or none")
    return () if word == "scalar" else tuple(int(d) for d in word.split("x"))


def _item(word: str, whole: str) -> Structure:
    found = _parse_shape(word, whole)
    return tensor(*found) if isinstance(found, tuple) else found


def _type_word(name: str) -> str:
    """Return a type as an id has it: `seq.float32` for `seq(float32)`."""
    return re.sub(r"[(,]\s*", ".", name).replace(")", "")


def _type_of(word: str, whole: str) -> str:
    """Return the type that `_type_word` writes so; a plain word stays as it is."""
    head, *rest = word.split(".")
    try:
        match head, rest:
            case "map", [key, element]:
                return str(parse_type(f"map({key},{element})"))
            case (("seq" | "optional" | "sparse"), [_, *_]):
                return str(parse_type(f"{head}({_type_of('.'.join(rest), whole)})"))
            case _, []:
                return head
    except ValueError:
        pass
    raise CaseIdError(f"{whole!r} is no case id: {word!r} is no type; expected float32, seq.float32 or the like")


def _parse_settings(text: str, whole: str) -> tuple[tuple[str, str], ...]:
    if text == "-":
        return ()
    settings = []
    for part in text.split(";"):
        match = _SETTING.fullmatch(part)
        if not match:
            raise CaseIdError(f"{whole!r} is no case id: {part!r} is no setting; expected name=value, or - for none")
        settings.append((match[1], match[2]))
    if settings != sorted(dict(settings).items()):
        raise CaseIdError(f"{whole!r} is no case id: settings stand once each, sorted by name")
    return tuple(settings)

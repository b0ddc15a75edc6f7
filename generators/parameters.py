"""The parameters of an operator version: its ports, its opsets, and the text of values in case ids."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from ..cases.elements import element_type, element_types
from ..cases.errors import OpconformError
from ..cases.ids import Shape, decode_text, encode_text, print_shape
from ..cases.program import count
from ..specs.expressions import numbers
from ..specs.model import COMMON_PARAMETERS, Port, Spec, TensorValue, Value, VersionSpec, Word, held, holder

FROM, RANK, CONSTANT, FED = "-from", "-rank", "constant", "graph-input"
"""The suffixes of parameters for an input's delivery and rank, and two kinds of delivery."""
NUMBERS_OF_DRAWS = frozenset({"draw", "seed"})
_OF_SIGNATURE = "attribute-"


def has_values(version: VersionSpec, port: Port) -> bool:
    """Return whether levels write an input's elements, so that by default it is neither filled nor drawn."""
    return not port.is_variadic and port.name in version.written


def usual_delivery(version: VersionSpec, port: Port) -> str:
    """Return an input's default delivery: written inputs are constants, filled ones are fed."""
    return CONSTANT if has_values(version, port) else FED


def free_letters(version: VersionSpec) -> tuple[str, ...]:
    """Return the type letters that cases vary, in the signature's order."""
    return version.signature.free_letters


def resolve_type(version: VersionSpec, types: tuple[str, ...], port: Port, index: int = 0) -> str:
    """Return the type of an input or output, by its letter; `index` is its index among a variadic port's tensors.

    If there are more types than letters, the tensors of a variadic port take the last letter's type and the types after
    it, in turn.
    """
    letters = free_letters(version)
    if port.is_variadic and len(types) > len(letters) and (len(letters) == 1 or port.type == letters[-1]):
        own = types[len(letters) - 1 :]
        return own[index % len(own)]
    return bound_type(version, types, version.signature.ties.get(port.type, port.type))


def bound_type(version: VersionSpec, types: tuple[str, ...], text: str) -> str:
    """Return a type with its letters replaced by the case's types."""
    return _bound(text, tuple(zip(free_letters(version), types, strict=False)))


@functools.lru_cache(maxsize=4096)
def _bound(text: str, types: tuple[tuple[str, str], ...]) -> str:
    bound = dict(types)
    resolved = re.sub(r"[A-Za-z_]\w*", lambda word: bound.get(word[0], word[0]), text)
    inner = holder(resolved)
    return held(inner) if inner else resolved


def usual_rank(version: VersionSpec, port: str) -> int:
    """Return the default rank of a written tensor whose id has no dimensions: its operand's rank, else 1."""
    operand = version.operands.get(port)
    return 0 if operand is not None and operand.shape == () else 1


def usual_outputs(version: VersionSpec) -> tuple[str, ...]:
    """Return the outputs that are requested by default: the required ones, else the first."""
    single = tuple(port.name for port in version.signature.outputs if port.option == "single")
    return single or tuple(port.name for port in version.signature.outputs[:1])


def setting_name(version: VersionSpec, name: str) -> str:
    """Return a parameter's name in ids; an attribute called `draw` or `seed` has another name there."""
    taken = name in NUMBERS_OF_DRAWS and version.signature.attribute(name) is not None
    return f"{_OF_SIGNATURE}{name}" if taken else name


def attribute_name(name: str) -> str:
    """Return the attribute that an id's setting sets, if it sets one."""
    bare = name.removeprefix(_OF_SIGNATURE)
    return bare if bare in NUMBERS_OF_DRAWS else name


def is_symbol(version: VersionSpec, name: str) -> bool:
    """Return whether a level's name is a symbol that a bundle binds: neither in the signature nor a parameter."""
    signature = version.signature
    part = signature.attribute(name) or signature.input(name) or name in signature.types
    return name.isidentifier() and not part and name not in COMMON_PARAMETERS and name not in NUMBERS_OF_DRAWS


def parameter_of(version: VersionSpec, name: str) -> tuple[Port, str] | None:
    """Return the input of a `-from` or `-rank` parameter, and this suffix; None for other parameters."""
    base, _, last = name.rpartition("-")
    port = version.signature.input(base)
    return (port, f"-{last}") if port is not None and f"-{last}" in (FROM, RANK) else None


Symbols: TypeAlias = dict[str, "int | tuple[int, ...]"]

_INT64 = 1 << 63
_EXACT = 1 << 53
_LISTS = frozenset({"ints", "s64s", "floats", "f32s", "strings"})
_SCALARS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("int", "ints", "s64", "s64s"), "int"),
        **dict.fromkeys(("float", "floats", "f32", "f32s"), "float"),
        **dict.fromkeys(("boolean", "bool"), "bool"),
        **dict.fromkeys(("string", "strings", "graph", "type_proto"), "text"),
    }
)


def text_of(value: Value, kind: str, symbols: Symbols, usual_rank: int = 1) -> str | None:
    """Return a value's text in ids, None for an absent value.

    `kind` is an attribute's kind, or an element type; its tensor has `usual_rank` unless the text has its dimensions.
    """
    if isinstance(value, Word):
        return None if value is Word.ABSENT else str(value.value)
    if isinstance(value, TensorValue):
        return _tensor_text(value)
    if kind in _LISTS:
        listed = _evaluated(value if isinstance(value, tuple) else (value,), _SCALARS[kind], symbols)
        return ",".join(_scalar_text(v, _SCALARS[kind]) for v in listed) or "none"
    if kind in _SCALARS:
        (number,) = _evaluated((value,), _SCALARS[kind], symbols)
        return _scalar_text(number, _SCALARS[kind])
    dims, flat = flat_value(value, _kind_of(kind), symbols)
    text = ",".join(_scalar_text(v, _kind_of(kind)) for v in flat) or "none"
    return text if len(dims) == usual_rank < 2 else f"{print_shape(dims)}:{text}"


def plain_text(value: object) -> str:
    """Return a value of any kind as text for people."""
    if isinstance(value, tuple):
        return ",".join(map(plain_text, value)) or "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _tensor_text(value) if isinstance(value, TensorValue) else str(getattr(value, "value", value))


def value_of(text: str, kind: str, usual_rank: int) -> Value:
    """Return the value of a text of `text_of`. Raises ValueError or KeyError."""
    if kind in _LISTS:
        return tuple(_scalar_of(t, _SCALARS[kind]) for t in text.split(",")) if text != "none" else ()
    if kind in _SCALARS:
        scalar: Value = _scalar_of(text, _SCALARS[kind])
        return scalar
    if kind in ("tensor", "sparse_tensor"):
        return _tensor_of(text)
    head, colon, rest = text.rpartition(":")
    flat = [_scalar_of(t, _kind_of(kind)) for t in rest.split(",")] if rest != "none" else []
    dims = _dims_of(head) if colon else (len(flat),) if usual_rank else ()
    if count(dims) != len(flat):
        raise ValueError(f"{len(flat)} elements of shape {dims}")
    return _nested(iter(flat), dims)


def flat_value(value: Value, kind: str = "", symbols: Symbols | None = None) -> tuple[Shape, list[Any]]:
    """Return the dimensions and the elements, in C order, of a written value: nested tuples.

    If the kind is a number, expressions are evaluated.
    """
    if not isinstance(value, tuple):
        return (), _evaluated((value,), kind, symbols or {})
    if not any(isinstance(entry, tuple) for entry in value):
        flat = _evaluated(value, kind, symbols or {})
        return (len(flat),), flat
    parts = [flat_value(entry, kind, symbols) for entry in value]
    if len({dims for dims, _ in parts}) != 1:
        raise OpconformError(f"{value!r} is not a tensor: its rows differ in length")
    return (len(parts), *parts[0][0]), [v for _, row in parts for v in row]


def _nested(flat: Iterator[Any], dims: Shape) -> Value:
    if not dims:
        return next(flat)  # type: ignore[no-any-return]  # a scalar
    return tuple(_nested(flat, dims[1:]) for _ in range(dims[0]))


def _dims_of(text: str) -> Shape:
    return () if text == "scalar" else tuple(int(d) for d in text.split("x"))


def elements_of(type_: str) -> str:
    """Return the kind of an input's elements; some types share a name with an attribute's kind, such as `string`."""
    return f"tensor({type_})"


def _element(kind: str) -> str:
    return kind.removeprefix("tensor(").removesuffix(")")


def _kind_of(type_: str) -> str:
    match element_type(_element(type_)).kind:
        case "signed" | "unsigned":
            return "int"
        case "string":
            return "text"
        case kind:
            return kind


def _evaluated(parts: tuple[Value, ...], kind: str, symbols: Symbols) -> list[Any]:
    """Return scalars, with expressions evaluated if the kind is a number."""
    if kind not in ("int", "float"):
        return list(parts)
    values: list[Any] = []
    for part in parts:
        values += numbers([part], symbols) if isinstance(part, str) else [part]
    return values


def _scalar_text(value: Any, kind: str) -> str:
    if isinstance(value, bool) or kind == "bool":
        return "true" if value else "false"
    if kind == "text":
        text = encode_text(str(value))
        return f"%{ord(text[0]):02X}{text[1:]}" if text in ("absent", "omitted", "given", "none") else text
    if kind == "float":
        is_integer = float(value).is_integer() and abs(value) < _EXACT and (value or math.copysign(1, value) > 0)
        return str(int(value)) if is_integer else repr(float(value))
    return str(int(value)) if kind == "int" else str(value)


def _scalar_of(text: str, kind: str) -> Any:
    match kind:
        case "int":
            return int(text)
        case "float":
            return float(text)
        case "bool":
            if text not in ("true", "false"):
                raise ValueError(text)
            return text == "true"
        case "complex":
            return complex(text)
    return decode_text(text)


def _tensor_text(value: TensorValue) -> str:
    """Return a tensor's text in ids: `float32:2x2:1.0,2.0,3.0,4.0`, for a sparse one with `@` and its indices."""
    words = [
        _scalar_text(v, "text" if isinstance(v, str) else "float" if isinstance(v, float) else "int")
        for v in value.values
    ]
    text = ",".join(words) or "none"
    text = text if value.indices is None else f"{text}@{','.join(map(str, value.indices)) or 'none'}"
    return ":".join([*([value.type] if value.type else []), print_shape(value.dims), text])


def _tensor_of(text: str) -> TensorValue:
    *types, shape, rest = text.split(":")
    listed, at, places = rest.partition("@")
    values = tuple(map(_literal, listed.split(","))) if listed != "none" else ()
    indices = tuple(int(p) for p in places.split(",")) if places not in ("", "none") else ()
    return TensorValue(_dims_of(shape), values, types[0] if types else None, indices if at else None)


def _literal(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return decode_text(text)


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number, not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def as_symbol(value: object) -> int | tuple[int, ...] | None:
    """Return an attribute's value for expressions, a boolean as 0 or 1; None unless it consists of whole numbers."""
    if isinstance(value, tuple):
        return value if all(map(is_whole, value)) else None
    return int(value) if isinstance(value, int) else None


def check_range(value: Value, kind: str) -> None:
    """Raise ValueError if a whole number does not fit its kind."""
    element = element_types().get(_element(kind))
    least, most = (element.smallest, element.largest) if element and element.is_integer else (-_INT64, _INT64 - 1)
    if not all(least <= number <= most for number in flat_value(value)[1] if is_whole(number)):
        raise ValueError(f"{value!r} is out of range")


def kind_words(kind: str) -> str:
    """Return a kind's name for messages."""
    element = element_types().get(_element(kind))
    if kind in ("int", "s64") or (element is not None and element.is_integer):
        return "a whole number of 64 bits" if kind in ("int", "s64") else f"whole numbers of {_element(kind)}"
    return "whole numbers of 64 bits" if kind in ("ints", "s64s") else _element(kind)


NEWEST_OPSETS: Mapping[str, int] = MappingProxyType(
    {"": 28, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
)
"""The newest opset of each domain that this suite covers (ONNX 1.23)."""

WIDEST_OPSETS: Mapping[str, int] = MappingProxyType({"": 13, "ai.onnx.ml": 2})
"""The opsets of ONNX 1.8 (2020): old enough for nearly every release of a runtime, and not too old for any."""

_OPSET_OF_BODIES = 16
"""The first opset whose Identity copies every value, and whose Add and Sub take every number, as bodies need it."""


def opset_range(spec: Spec, version: VersionSpec) -> tuple[int, int] | None:
    """Return the first and the last opset in which a version is in force; None outside ONNX."""
    if spec.standard != "onnx":
        return None
    first = int(version.operator.version)
    later = [int(v) for v in spec.versions if int(v) > first]
    return first, (min(later) - 1 if later else max(NEWEST_OPSETS.get(spec.domain, first), first))


def kindest_opset(spec: Spec, version: VersionSpec) -> int | None:
    """Return the opset that the most releases of runtimes know; None outside ONNX.

    A current version is run in its first opset; a superseded one in the opset of its span that is nearest to
    WIDEST_OPSETS, or to the first in which the operators of its bodies take every type.
    """
    span = opset_range(spec, version)
    if span is None or version.operator.version == list(spec.versions)[-1]:
        return span and span[0]
    widest = _OPSET_OF_BODIES if version.graphs else WIDEST_OPSETS.get(spec.domain, span[0])
    return min(max(span[0], widest), span[1])


def opset_named(spec: Spec, version: VersionSpec, name: str) -> int:
    """Return the `first` or `last` opset of a version's range."""
    span = opset_range(spec, version)
    if span is None or name not in ("first", "last"):
        raise OpconformError(f"{version.operator}: opset is first or last, and ONNX's; read {name!r}")
    return span[0] if name == "first" else span[1]

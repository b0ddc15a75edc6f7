"""What a case is: from the levels of parameters to its id, and from an id back to settings with their types."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ..cases.elements import element_type, element_types
from ..cases.errors import CaseIdError, OpconformError, did_you_mean
from ..cases.ids import CaseId, Part, Shape, decode_text, encode_text, print_shape
from ..cases.program import count
from ..cases.structures import Structure, leaves, parse_type, tensor
from ..specs.expressions import ExpressionError, number, numbers
from ..specs.expressions import recipe as read_recipe
from ..specs.model import Edge, Operand, Port, Recipe, Spec, TensorValue, Value, VersionSpec, Word
from .envelope import kindest_opset, opset_named, opset_range
from .families import Shaping, family_of
from .fills import FIRST, UNDRAWN

Levels: TypeAlias = Mapping[str, Value]
Symbols: TypeAlias = dict[str, "int | tuple[int, ...]"]

LARGEST = 1 << 24
"""How many elements a case may have in all; more would not fit into the memory of every machine."""
TYPE_OF_PORT = re.compile(r"type\((\w+)\)")
FROM, RANK, CONSTANT, FED = "-from", "-rank", "constant", "graph-input"

_OWN_FIELDS = frozenset({"shapes", "fill", "draw", "seed"})  # have places of their own in an id, or are no parameter
_NUMBERS = frozenset({"draw", "seed", "opset"})
_RANKS = ("0", "1", "2")
_DELIVERIES = (CONSTANT, FED, "both")
_INT64 = 1 << 63
_EXACT = 1 << 53
_LISTS = frozenset({"ints", "s64s", "floats", "f32s", "strings"})
_SCALARS: Mapping[str, str] = {
    **dict.fromkeys(("int", "ints", "s64", "s64s"), "int"),
    **dict.fromkeys(("float", "floats", "f32", "f32s"), "float"),
    **dict.fromkeys(("boolean", "bool"), "bool"),
    **dict.fromkeys(("string", "strings", "graph", "type_proto"), "text"),
}


@dataclass(frozen=True)
class Row:
    """A case's content, typed: what the id says, beside the spec that it is about.

    `settings` holds what the id carries, by parameter; what it does not carry is absent, or what is usual.
    """

    spec: Spec
    version: VersionSpec
    id: CaseId
    settings: Mapping[str, Value]

    @property
    def edge(self) -> Edge | None:
        """The edge that the case is, if it is one."""
        return self.version.edge(self.id.edge) if self.id.edge else None

    @property
    def rejected(self) -> bool:
        """Whether the case is an edge whose input is invalid."""
        return self.edge is not None and self.edge.rejected

    def get(self, name: str) -> Value:
        """Return a setting, what is usual where the id leaves it out, or Word.ABSENT."""
        if name in self.settings:
            return self.settings[name]
        if name == "dims":
            return "static"
        base, dash, last = name.rpartition("-")
        if dash and f"-{last}" == RANK and self.version.signature.input(base):
            return str(_usual_rank(self.version, base))
        if dash and f"-{last}" == FROM and (port := self.version.signature.input(base)):
            return usual_delivery(self.version, port)
        return Word.ABSENT

    @property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """What the id says of each input that a fill or a recipe makes; one that it leaves out has None or nothing."""
        rest, found = list(self.id.shapes), dict[str, tuple[Part, ...]]()
        for port in self.version.signature.inputs:
            if port.is_variadic:
                found[port.name], rest = tuple(rest), []
            elif not self.is_written(port):
                found[port.name], rest = tuple(rest[:1]), rest[1:]
        if rest:
            many = f"{len(self.id.shapes) - len(rest)} inputs with a shape of their own"
            raise CaseIdError(f"{self.id}: {self.version.operator} has {many}; read {len(self.id.shapes)} shapes")
        return found

    def is_written(self, port: Port) -> bool:
        """Whether the case writes an input's elements, or leaves one out that others write."""
        if port.name in self.settings:
            return not isinstance(self.settings[port.name], Recipe)
        return has_values(self.version, port)


def has_values(version: VersionSpec, port: Port) -> bool:
    """Return whether levels write an input's elements, so that it is neither filled nor drawn where nothing is said."""
    levels = version.parameters.get(port.name, {}).values()
    return not port.is_variadic and any(not isinstance(level, (Word, Recipe)) for level in levels)


def usual_delivery(version: VersionSpec, port: Port) -> str:
    """Return how an input comes where an id does not say: written ones are constants, filled ones are fed."""
    return CONSTANT if has_values(version, port) else FED


def free_letters(version: VersionSpec) -> tuple[str, ...]:
    """Return the type letters that cases vary, in the signature's order."""
    return tuple(letter for letter in version.signature.types if letter not in version.signature.ties)


def resolve_type(version: VersionSpec, types: tuple[str, ...], port: Port, place: int = 0) -> str:
    """Return the type of an input or output, by its letter; `place` is that among a variadic port's tensors."""
    letters = free_letters(version)
    if port.is_variadic and len(letters) == 1 < len(types):
        return types[place % len(types)]
    bound = dict(zip(letters, types, strict=False))
    text = version.signature.ties.get(port.type, port.type)
    return re.sub(r"[A-Za-z_]\w*", lambda word: bound.get(word[0], word[0]), text)


def identify(spec: Spec, version: VersionSpec, levels: Levels) -> CaseId:
    """Return the id of the case that `levels` (parameter to value) describe, expressions evaluated."""
    levels = _unbundled(version, levels)
    types = _types(version, levels)
    parts, symbols = _Shapes(spec, version, levels, types).parts()
    settings: dict[str, str] = {}
    for name, value in levels.items():
        if name in _OWN_FIELDS or name in version.signature.types or TYPE_OF_PORT.fullmatch(name):
            continue
        text = _setting_text(spec, version, types, name, value, symbols)
        if text is not None:
            settings[name] = text
    fill = fill_text(levels.get("fill", FIRST))
    return settle(version, CaseId(str(version.operator), types, parts, tuple(sorted(settings.items())), fill))


def fill_text(value: Value) -> str:
    """Return a fill as an id has it: `fits:T2` for `fits(T2)`."""
    found = value if isinstance(value, Recipe) else read_recipe(str(value))
    return f"{found.name}:{','.join(found.arguments)}" if found.arguments else found.name


def fill_recipe(text: str) -> Recipe:
    """Return the fill that an id has so."""
    name, _, arguments = text.partition(":")
    return Recipe(name, tuple(arguments.split(",")) if arguments else ())


def _setting_text(
    spec: Spec, version: VersionSpec, types: tuple[str, ...], name: str, value: Value, symbols: Symbols
) -> str | None:
    if value is Word.ABSENT:
        return None
    if name == "opset":
        opset = opset_named(spec, version, value) if isinstance(value, str) else value
        return None if opset == kindest_opset(spec, version) else str(opset)
    if name == "outputs":
        text = ",".join(str(v.value if isinstance(v, Word) else v) for v in value) if isinstance(value, tuple) else ""
        return (text or "none") if isinstance(value, tuple) else str(value)
    port, attribute = version.signature.input(name), version.signature.attribute(name)
    if attribute is not None:
        return text_of(value, attribute.kind, symbols)
    if port is None:
        return None if isinstance(value, Mapping) else str(value.value if isinstance(value, Word) else value)
    if port.is_variadic:
        return None
    if isinstance(value, Recipe):
        return None if value == version.operands[name].draws[0] else fill_text(value)
    if isinstance(value, Word):
        return str(value.value) if value is not Word.GIVEN and has_values(version, port) else None
    return text_of(value, resolve_type(version, types, port), symbols, _usual_rank(version, name))


def _usual_rank(version: VersionSpec, port: str) -> int:
    operand = version.operands.get(port)
    return 0 if operand is not None and operand.shape == () else 1


def _unbundled(version: VersionSpec, levels: Levels) -> dict[str, Value]:
    """Return levels with bundles taken apart; what is said by itself goes before what a bundle says."""
    found: dict[str, Value] = {}
    members: dict[str, list[str]] = {"values": [p.name for p in version.signature.inputs if not p.is_variadic]}
    for name, value in levels.items():
        if isinstance(value, Mapping) and name not in ("shapes", "dims"):
            found.update(value)
            members[name] = [inner for inner in value if version.signature.input(inner)]
    plain = {n: v for n, v in levels.items() if not isinstance(v, Mapping) or n in ("shapes", "dims")}
    found.update(plain)
    for base, ports in members.items():
        delivery = found.get(f"{base}{FROM}")
        if delivery is not None and version.signature.input(base) is None:
            del found[f"{base}{FROM}"]
            written = [p for p in ports if not isinstance(found.get(p, Word.ABSENT), (Word, Recipe))]
            found.update({f"{port}{FROM}": delivery for port in written if f"{port}{FROM}" not in plain})
    return found


def _types(version: VersionSpec, levels: Levels) -> tuple[str, ...]:
    for name, value in levels.items():
        if TYPE_OF_PORT.fullmatch(name) and isinstance(value, tuple) and len(set(value)) > 1:
            return tuple(str(t) for t in value)
    types = []
    for letter in free_letters(version):
        value = levels.get(letter, version.signature.types[letter][0])
        for name, of_port in levels.items():
            match = TYPE_OF_PORT.fullmatch(name)
            if match and version.signature.letter(match[1]) == letter and isinstance(of_port, tuple):
                value = of_port
        types.append(str(value[0] if isinstance(value, tuple) else value))
    return tuple(types)


class _Shapes:
    """The shapes of a case's inputs, from levels: of `shapes` and `dims`, of attributes, and what operands say."""

    def __init__(self, spec: Spec, version: VersionSpec, levels: Levels, types: tuple[str, ...]) -> None:
        self._spec, self._version, self._levels, self._types = spec, version, levels, types
        level, dims = levels.get("shapes", ()), levels.get("dims")
        told = {**(level if isinstance(level, Mapping) else {}), **(dims if isinstance(dims, Mapping) else {})}
        self._plain = level if isinstance(level, tuple) else None
        self._named = {n: v for n, v in told.items() if version.signature.input(n)}
        self.symbols: Symbols = {}
        for name, value in told.items():
            if name not in self._named:
                self.symbols[name] = (
                    _dims(value, self.symbols) if isinstance(value, tuple) else _one(value, self.symbols)
                )
        for attribute in version.signature.attributes:
            value = levels.get(attribute.name, Word.ABSENT)
            value = attribute.default if value is Word.ABSENT else value  # type: ignore[assignment]  # plain values
            if is_whole(value) or (isinstance(value, tuple) and all(map(is_whole, value))):
                self.symbols.setdefault(attribute.name, value)  # type: ignore[arg-type]  # whole numbers
        self._known: dict[str, tuple[Part, ...]] = {}

    def parts(self) -> tuple[tuple[Part, ...], Symbols]:
        """Return what an id says of each input that is filled or drawn, or could be, and all symbols."""
        found: list[Part] = []
        last = 0
        for place, port in enumerate(self._version.signature.inputs):
            given = self._given(port)
            if not (port.is_variadic or isinstance(given, (Word, Recipe))):
                continue
            if given in (Word.ABSENT, Word.OMITTED):
                if has_values(self._version, port):
                    continue
                found.append(None)
                last = len(found) if given is Word.OMITTED else last
                continue
            found += self._of(port, place)
            last = len(found)
        return tuple(found[:last]), self.symbols

    def _given(self, port: Port) -> Value:
        usual = Word.GIVEN if port.option == "single" or port.name in self._named else Word.ABSENT
        return self._levels.get(port.name, Word.ABSENT if has_values(self._version, port) else usual)

    def _of(self, port: Port, place: int) -> tuple[Part, ...]:
        if port.name not in self._known:
            self._known[port.name] = ()  # of a shape that hangs on itself
            self._known[port.name] = tuple(self._made(port, place))
            if place == 0:
                self._bind(self._known[port.name], port)
        return self._known[port.name]

    def _bind(self, parts: tuple[Part, ...], port: Port) -> None:
        first = parts[0] if parts else ()
        if isinstance(first, tuple):
            self.symbols.setdefault("d", first)
            self.symbols.setdefault("r", len(first))
        if port.is_variadic:
            self.symbols.setdefault("n", len(parts))
        elif isinstance(first, Structure):
            self.symbols.setdefault("n", len(first.items) if first.kind == "sequence" else first.count)

    def _made(self, port: Port, place: int) -> Iterator[Part]:
        operand = self._version.operands.get(port.name)
        given = self._named.get(port.name, self._plain if place == 0 and self._plain is not None else None)
        if port.is_variadic:
            many = [s for s in given if isinstance(s, tuple)] if isinstance(given, tuple) else []
            number_of = self._levels.get(port.name, len(many) or port.minimum)
            if not is_whole(number_of):
                message = f"{port.name} is how many inputs there are; read {number_of!r}"
                raise OpconformError(f"{self._version.operator}: {message}")
            cycle = many or [given if given is not None else self._said(operand)]
            for i in range(int(number_of)):  # type: ignore[arg-type]  # checked above
                yield self._part(resolve_type(self._version, self._types, port, i), cycle[i % len(cycle)])
        else:
            said = given if given is not None else self._said(operand)
            yield self._part(resolve_type(self._version, self._types, port), said)

    def _said(self, operand: Operand | None) -> Value:
        """Return the shape that the spec says of an operand, `d` where it says none."""
        shape = operand.shape if operand else None
        if shape is None:
            return self.symbols.get("d", ())
        if not isinstance(shape, Recipe):
            return shape
        if shape.name == "same":
            ports = self._version.signature.inputs
            place = next(i for i, p in enumerate(ports) if p.name == shape.arguments[0])
            parts = self._of(ports[place], place)
            return parts[0] if parts and isinstance(parts[0], tuple) else ()
        function = family_of(self._spec).shapes[shape.name]
        return function(Shaping(self._version, self._levels, self.symbols), *shape.arguments)  # type: ignore[no-any-return]

    def _part(self, type_: str, said: Value) -> Part:
        if "(" not in type_:
            return _dims(said, self.symbols)
        return _structure(type_, said, self.symbols)


def _structure(type_: str, said: Value, symbols: Symbols) -> Structure:
    """Return the structure of a value that is no tensor: a list of shapes, a shape or `absent`, a number of entries."""
    expression = parse_type(type_)
    match expression.kind:
        case "sequence":
            items = said if isinstance(said, tuple) else ()
            return Structure("sequence", items=tuple(_structure(str(expression.of), one, symbols) for one in items))
        case "optional":
            held = () if said in (Word.ABSENT, Word.OMITTED) else (_structure(str(expression.of), said, symbols),)
            return Structure("optional", items=held)
        case "map":
            return Structure("map", count=int(_one(said[0] if isinstance(said, tuple) and said else said, symbols)))
        case "sparse":
            *dims, last = said if isinstance(said, tuple) else (said,)
            return Structure("sparse", _dims(tuple(dims), symbols), count=int(_one(last, symbols)))
    return tensor(*_dims(said, symbols))


def _dims(said: Value, symbols: Symbols) -> Shape:
    if not isinstance(said, tuple):
        raise OpconformError(f"a shape is a list of dimensions; read {said!r}")
    return tuple(int(n) for n in numbers([p for p in said if isinstance(p, (int, float, str))], symbols))


def _one(said: Value, symbols: Symbols) -> int:
    return int(number(said, symbols)) if isinstance(said, str) else int(said)  # type: ignore[call-overload]  # a number


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def settle(version: VersionSpec, case: CaseId) -> CaseId:
    """Return the id without what means nothing, so that equal content has one id.

    That is how an input comes that is left out, a recipe that fills nothing, symbolic dimensions where there are none,
    and an attribute that has to be given for its type.
    """
    dropped = set()
    for name, text in case.settings:
        base, _, last = name.rpartition("-")
        port, attribute = version.signature.input(base), version.signature.attribute(base)
        if f"-{last}" in (FROM, RANK) and (port is not None or attribute is not None):
            if port is None or _is_left_out(version, case, port):
                dropped.add(name)
            elif f"-{last}" == FROM and text == "both" and attribute is None:
                raise CaseIdError(f"{case}: {name}=both, and {version.operator} has {base} in one place")
            elif f"-{last}" == FROM and text == usual_delivery(version, port):
                dropped.add(name)
            elif f"-{last}" == RANK and (text == str(_usual_rank(version, base)) or _is_attribute(version, case, base)):
                dropped.add(name)
        elif name == "dims" and (text == "static" or not any(p for p in case.shapes if p is not None)):
            dropped.add(name)
        elif text == Word.GIVEN.value and _is_needed(version, case, name):
            dropped.add(name)
        elif name == "outputs" and text == ",".join(usual_outputs(version)):
            dropped.add(name)
    drawn = _drawn_elements(version, case)
    if not drawn[0]:
        case = replace(case, fill=FIRST)
    if not any(drawn):
        dropped |= {"draw", "seed"}
    return without_settings(case, *dropped) if dropped else case


def usual_outputs(version: VersionSpec) -> tuple[str, ...]:
    """Return the outputs that are asked for where nothing is said: those that are always there, else the first."""
    single = tuple(port.name for port in version.signature.outputs if port.option == "single")
    return single or tuple(port.name for port in version.signature.outputs[:1])


def _is_left_out(version: VersionSpec, case: CaseId, port: Port) -> bool:
    text = case.setting(port.name)
    if text is not None or has_values(version, port):
        return text in (None, "omitted")
    return False


def _is_attribute(version: VersionSpec, case: CaseId, name: str) -> bool:
    return version.signature.attribute(name) is not None and case.setting(f"{name}{FROM}") in (None, CONSTANT)


def _is_needed(version: VersionSpec, case: CaseId, name: str) -> bool:
    """Return whether an attribute has to be given because of the type that it is made of."""
    for letter, source in version.types_from.items():
        if source.attribute == name and letter in free_letters(version):
            attribute = version.signature.attribute(name)
            type_ = case.types[free_letters(version).index(letter)]
            return attribute is not None and (attribute.required or type_ != source.absent)
    return False


def _drawn_elements(version: VersionSpec, case: CaseId) -> tuple[int, int]:
    """Return how many elements of a case are filled and drawn."""
    filled = drawn = 0
    parts = iter(case.shapes)
    for port in version.signature.inputs:
        if port.is_variadic:
            filled += sum(_size(part) for part in parts)
        elif case.setting(port.name) is None and has_values(version, port):
            continue
        elif case.setting(port.name) is None or version.operands[port.name].draws:
            size = _size(next(parts, None))
            if version.operands.get(port.name) and version.operands[port.name].draws:
                drawn += size
            else:
                filled += size
    return filled, drawn


def _size(part: Part) -> int:
    if isinstance(part, Structure):
        return part.count + sum(_size(item) for item in part.items) + count(tuple(int(d) for d in part.dims or (0,)))
    return 0 if part is None else count(part)


def read_row(spec: Spec, version: VersionSpec, case: CaseId) -> Row:
    """Return what an id says, typed by the signature. Raises CaseIdError for what the version doesn't have."""
    if case.edge is not None and version.edge(case.edge) is None:
        hint = did_you_mean(case.edge, version.edges) or f"; it has {', '.join(version.edges)}"
        raise CaseIdError(f"{case}: {version.operator} has no edge {case.edge!r}{hint}")
    row = Row(spec, version, case, {name: _setting(version, name, text, case) for name, text in case.settings})
    if (settled := settle(version, case)) != case:
        raise CaseIdError(f"{case}: is written {settled}")
    parts = row.parts
    _check_numbers(row, [part for some in parts.values() for part in some])
    if case.edge is None:
        _check_signature(row, parts)
    return row


def mended_row(row: Row) -> Row | None:
    """Return the row of the valid case that an invalid edge is a damaged copy of."""
    edge = row.edge
    if edge is None or edge.mended is None:
        return None
    types = dict(zip(free_letters(row.version), row.id.types, strict=False))
    levels = {**edge.settings, **types, "fill": row.id.fill, **edge.mended}
    return read_row(row.spec, row.version, identify(row.spec, row.version, levels))


def _check_signature(row: Row, parts: Mapping[str, tuple[Part, ...]]) -> None:
    """Raise CaseIdError for types and inputs that only an edge may have, since they are invalid."""
    version, case = row.version, row.id
    letters = free_letters(version)
    if len(case.types) != len(letters):
        raise CaseIdError(f"{case}: {version.operator} varies {len(letters)} types; read {len(case.types)}")
    for letter, name in zip(letters, case.types, strict=True):
        if name not in version.signature.types[letter]:
            allowed = ", ".join(version.signature.types[letter])
            raise CaseIdError(f"{case}: {name} is invalid in {version.operator}, and no edge; {letter} is {allowed}")
    for port in version.signature.inputs:
        if port.option == "single" and port.name not in row.settings and parts.get(port.name, ()) in ((), (None,)):
            raise CaseIdError(f"{case}: {version.operator} needs {port.name}, and it is no edge")
    if row.get("unknown") is not Word.ABSENT:
        raise CaseIdError(f"{case}: an attribute that {version.operator} does not have is invalid, and no edge")


def _check_numbers(row: Row, parts: list[Part]) -> None:
    """Raise CaseIdError for an opset, draw or seed that the id should not carry, and for too many elements."""
    case, span = row.id, opset_range(row.spec, row.version)
    opset = row.settings.get("opset")
    if isinstance(opset, int):
        if span is None or not span[0] <= opset <= span[1]:
            there = f"{span[0]} to {span[1]}" if span else "none"
            raise CaseIdError(f"{case}: the opsets of {row.version.operator} are {there}; read {opset}")
        if opset == kindest_opset(row.spec, row.version):
            raise CaseIdError(f"{case}: opset={opset} is what carries {row.version.operator} anyway: leave it out")
    for name in ("draw", "seed"):
        given = row.settings.get(name)
        if isinstance(given, int) and given < 1:
            raise CaseIdError(f"{case}: {name} is a whole number from 1, left out where it is 0; read {given}")
        if given is not None and not draws(row.version, case):
            raise CaseIdError(f"{case}: fill {case.fill!r} draws nothing: leave {name} out")
    if sum(map(_size, parts)) > LARGEST:
        raise CaseIdError(f"{case}: more than {LARGEST:,} elements")


def draws(version: VersionSpec, case: CaseId) -> bool:
    """Return whether draws of a case differ."""
    return fill_recipe(case.fill).name not in UNDRAWN or _drawn_elements(version, case)[1] > 0


def _setting(version: VersionSpec, name: str, text: str, case: CaseId) -> Value:
    """Return a setting's value; CaseIdError unless an id has it so."""
    attribute, port = version.signature.attribute(name), version.signature.input(name)
    base, _, last = name.rpartition("-")
    kind = attribute.kind if attribute else ""
    value: Value
    if attribute is None and port is None:
        return _own_setting(version, name, text, case, base, last)
    if port is not None and attribute is None and (drawn := _drawn(version, port, text)) is not None:
        return drawn
    word = {w.value: w for w in (Word.OMITTED, Word.GIVEN)}.get(text)
    if word is not None:
        return _word(version, name, word, case)
    if port is not None and port.is_variadic:
        raise CaseIdError(f"{case}: {name} is a list of inputs, which the shapes tell")
    if attribute is None and port is not None:
        kind = resolve_type(version, case.types, port)
    rank = _usual_rank(version, name) if port is not None else 1
    try:
        value = value_of(text, kind, rank)
        _check_range(value, kind)
        written = text_of(value, kind, {}, rank)
    except (ValueError, TypeError, KeyError, ExpressionError):
        raise CaseIdError(f"{case}: {name} holds {_words(kind)}; read {text!r}") from None
    if text != written:
        raise CaseIdError(f"{case}: {name}={text} is written {name}={written}")
    return value


def _own_setting(version: VersionSpec, name: str, text: str, case: CaseId, base: str, last: str) -> Value:
    """Return the value of a setting that is neither an attribute nor an input."""
    choices: tuple[str, ...] | None = None
    if name == "dims":
        choices = ("static", "symbolic")
    elif version.signature.input(base) and f"-{last}" in (FROM, RANK):
        choices = _DELIVERIES if f"-{last}" == FROM else _RANKS
    if choices is not None:
        if text not in choices:
            raise CaseIdError(f"{case}: {name} is {' or '.join(choices)}; read {text!r}")
        return text
    if name == "unknown":
        return text
    if name == "outputs":
        known = [p.name for p in version.signature.outputs]
        asked = () if text == "none" else tuple(text.split(","))
        if text.isdigit():
            return int(text)
        if any(one not in known and one != Word.OMITTED.value for one in asked):
            raise CaseIdError(f"{case}: the outputs of {version.operator} are {', '.join(known)}; read {text!r}")
        return asked
    if name in _NUMBERS:
        try:
            value = value_of(text, "int", 1)
            _check_range(value, "int")
        except ValueError:
            raise CaseIdError(f"{case}: {name} holds a whole number of 64 bits; read {text!r}") from None
        if str(value) != text:
            raise CaseIdError(f"{case}: {name}={text} is written {name}={value}")
        return value
    known = [a.name for a in version.signature.attributes]
    known += [p.name for p in version.signature.inputs if not p.is_variadic]
    raise CaseIdError(
        f"{case}: {version.operator} has no parameter {name!r}{did_you_mean(name, [*known, 'dims', *_NUMBERS])}"
    )


def _drawn(version: VersionSpec, port: Port, text: str) -> Recipe | None:
    operand = version.operands.get(port.name)
    return next((one for one in operand.draws if fill_text(one) == text), None) if operand else None


def _word(version: VersionSpec, name: str, word: Word, case: CaseId) -> Word:
    port = version.signature.input(name)
    if word is Word.OMITTED and port is not None and port.option == "optional" and has_values(version, port):
        return word
    if word is Word.GIVEN and word in version.parameters.get(name, {}).values():
        return word
    raise CaseIdError(f"{case}: {name} cannot be {word.value} in {version.operator}")


def _check_range(value: Value, kind: str) -> None:
    """Raise ValueError where a whole number does not fit."""
    element = element_types().get(kind)
    least, most = (element.smallest, element.largest) if element and element.is_integer else (-_INT64, _INT64 - 1)
    if not all(least <= one <= most for one in flat_value(value)[1] if is_whole(one)):
        raise ValueError(f"{value!r} is out of range")


def _words(kind: str) -> str:
    if kind in ("int", "s64") or (kind in element_types() and element_type(kind).is_integer):
        return "a whole number of 64 bits" if kind in ("int", "s64") else f"whole numbers of {kind}"
    return "whole numbers of 64 bits" if kind in ("ints", "s64s") else kind


def text_of(value: Value, kind: str, symbols: Symbols, usual_rank: int = 1) -> str | None:
    """Return a value as an id has it, None for an absent one.

    `kind` is an attribute's, or an element type, whose tensor has `usual_rank` unless its dimensions are told.
    """
    if isinstance(value, Word):
        return None if value is Word.ABSENT else str(value.value)
    if isinstance(value, TensorValue):
        return _tensor_text(value)
    if kind in _LISTS:
        listed = _evaluated(value if isinstance(value, tuple) else (value,), _SCALARS[kind], symbols)
        return ",".join(_scalar_text(v, _SCALARS[kind]) for v in listed) or "none"
    if kind in _SCALARS:
        (one,) = _evaluated((value,), _SCALARS[kind], symbols)
        return _scalar_text(one, _SCALARS[kind])
    dims, flat = _flat(value, _kind_of(kind), symbols)
    text = ",".join(_scalar_text(v, _kind_of(kind)) for v in flat) or "none"
    return text if len(dims) == usual_rank < 2 else f"{print_shape(dims)}:{text}"


def value_of(text: str, kind: str, usual_rank: int) -> Value:
    """Return the value that `text_of` writes so. Raises ValueError or KeyError."""
    if kind in _LISTS:
        return tuple(_scalar_of(t, _SCALARS[kind]) for t in text.split(",")) if text != "none" else ()
    if kind in _SCALARS:
        return _scalar_of(text, _SCALARS[kind])
    if kind in ("tensor", "sparse_tensor"):
        return _tensor_of(text)
    head, colon, rest = text.rpartition(":")
    flat = [_scalar_of(t, _kind_of(kind)) for t in rest.split(",")] if rest != "none" else []
    dims = _dims_of(head) if colon else (len(flat),) if usual_rank else ()
    if count(dims) != len(flat):
        raise ValueError(f"{len(flat)} elements of shape {dims}")
    return _nested(iter(flat), dims)


def flat_value(value: Value) -> tuple[Shape, list[Any]]:
    """Return the dimensions and the elements, in C order, of a written value: nested tuples."""
    return _flat(value, "", {})


def _flat(value: Value, kind: str, symbols: Symbols) -> tuple[Shape, list[Any]]:
    if not isinstance(value, tuple):
        return (), _evaluated((value,), kind, symbols) if kind else [value]
    if not any(isinstance(one, tuple) for one in value):
        flat = _evaluated(value, kind, symbols) if kind else list(value)
        return (len(flat),), flat
    parts = [_flat(one, kind, symbols) for one in value]
    if len({dims for dims, _ in parts}) != 1:
        raise OpconformError(f"{value!r} is no tensor: its rows differ in length")
    return (len(parts), *parts[0][0]), [v for _, row in parts for v in row]


def _nested(flat: Iterator[Any], dims: Shape) -> Value:
    if not dims:
        return next(flat)  # type: ignore[no-any-return]  # a scalar
    return tuple(_nested(flat, dims[1:]) for _ in range(dims[0]))


def _dims_of(text: str) -> Shape:
    return () if text == "scalar" else tuple(int(d) for d in text.split("x"))


def _kind_of(type_: str) -> str:
    match element_type(type_).kind:
        case "signed" | "unsigned":
            return "int"
        case "string":
            return "text"
        case kind:
            return kind


def _evaluated(parts: tuple[Value, ...], kind: str, symbols: Symbols) -> list[Any]:
    """Return scalars, expressions evaluated where the kind is a number's."""
    if kind not in ("int", "float"):
        return list(parts)
    found: list[Any] = []
    for part in parts:
        found += numbers([part], symbols) if isinstance(part, str) else [part]
    return found


def _scalar_text(value: Any, kind: str) -> str:
    if isinstance(value, bool) or kind == "bool":
        return "true" if value else "false"
    if kind == "text":
        text = encode_text(str(value))
        return f"%{ord(text[0]):02X}{text[1:]}" if text in ("absent", "omitted", "given", "none") else text
    if kind == "float":
        whole = float(value).is_integer() and abs(value) < _EXACT and (value or math.copysign(1, value) > 0)
        return str(int(value)) if whole else repr(float(value))
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
    """Return a tensor as an id has it: `float32:2x2:1.0,2.0,3.0,4.0`, `@` before the places of a sparse one's."""
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


def without_settings(case: CaseId, *names: str) -> CaseId:
    """Return the id without these settings."""
    return replace(case, settings=tuple(s for s in case.settings if s[0] not in names))

"""The content of a case: parameter levels to a case id, and an id back to typed settings and clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from ..cases.errors import CaseIdError, OpconformError, did_you_mean
from ..cases.ids import CaseId, Part, Shape, part_size, print_shape
from ..cases.program import Structure, parse_type, tensor
from ..specs.expressions import number, numbers
from ..specs.expressions import recipe as read_recipe
from ..specs.model import DIMS, MEMORY, Clause, Condition, Edge, Operand, Port, Recipe, Spec, Value, VersionSpec, Word
from .families import Shaping, family_of
from .fills import FIRST, UNDRAWN
from .parameters import (
    CONSTANT,
    FED,
    FROM,
    NUMBERS_OF_DRAWS,
    RANK,
    Symbols,
    as_symbol,
    attribute_name,
    check_range,
    elements_of,
    free_letters,
    has_values,
    is_symbol,
    is_whole,
    kind_words,
    kindest_opset,
    opset_named,
    opset_range,
    parameter_of,
    resolve_type,
    setting_name,
    text_of,
    usual_delivery,
    usual_outputs,
    usual_rank,
    value_of,
)

LARGEST = 1 << 24
"""The most elements of a case in all; more would not fit into the memory of every machine."""
TYPE_OF_PORT = re.compile(r"type\((\w+)\)")

_OWN_FIELDS = frozenset({"shapes", "fill"}) | NUMBERS_OF_DRAWS  # have their own place in an id, or are not parameters
_NUMBERS = NUMBERS_OF_DRAWS | {"opset"}
_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType({FROM: (CONSTANT, FED, "both"), RANK: ("0", "1", "2")})


@dataclass(frozen=True)
class Row:
    """A case's content, typed: its id, spec and version.

    `settings` has the values in the id, by parameter; a parameter without one is absent or has its default.
    """

    spec: Spec
    version: VersionSpec
    id: CaseId
    settings: Mapping[str, Value]

    @property
    def edge(self) -> Edge | None:
        """The case's edge, if it has one."""
        return self.version.edge(self.id.edge) if self.id.edge else None

    @property
    def rejected(self) -> bool:
        """Whether the case is an edge whose input is invalid."""
        return self.edge is not None and self.edge.rejected

    def get(self, name: str) -> Value:
        """Return a setting; if the id leaves it out, its default or Word.ABSENT."""
        if (own := setting_name(self.version, name)) in self.settings:
            return self.settings[own]
        if name == "dims":
            return "static"
        if name == "memory":
            return MEMORY[0]
        about = parameter_of(self.version, name)
        if about is None:
            return Word.ABSENT
        port, which = about
        return str(usual_rank(self.version, port.name)) if which == RANK else usual_delivery(self.version, port)

    @property
    def parts(self) -> Mapping[str, tuple[Part, ...]]:
        """The shape or structure in the id of each input that a fill or a recipe makes; None or nothing if left out."""
        rest, by_port = list(self.id.shapes), dict[str, tuple[Part, ...]]()
        for port in self.version.signature.inputs:
            if port.is_variadic:  # it is the last input, and takes the shapes that remain
                by_port[port.name], rest = tuple(rest), []
            elif not self.is_written(port):
                by_port[port.name], rest = tuple(rest[:1]), rest[1:]
        if rest:
            places = len(self.id.shapes) - len(rest)
            many = "one input" if places == 1 else f"{places} inputs"
            raise CaseIdError(
                f"{self.id}: {self.version.operator} has {many} to fill or draw; read {len(self.id.shapes)} shapes"
            )
        return by_port

    def is_written(self, port: Port) -> bool:
        """Whether the case writes an input's elements, or leaves out an input that other cases write."""
        if port.name in self.settings:
            return not isinstance(self.settings[port.name], Recipe)
        return has_values(self.version, port)


def identify(spec: Spec, version: VersionSpec, levels: Levels) -> CaseId:
    """Return the id of the case that `levels` (parameter to value) describe, with expressions evaluated."""
    levels = _unbundled(version, levels)
    types = _types(version, levels)
    parts, symbols = Shapes(spec, version, levels, types).parts()
    settings: dict[str, str] = {}
    for name, value in levels.items():
        own = setting_name(version, name)
        written = own in _OWN_FIELDS or name in version.signature.types or is_symbol(version, name)
        if written or TYPE_OF_PORT.fullmatch(name):
            continue
        if name == "opset":
            value = opset_named(spec, version, value) if isinstance(value, str) else value  # noqa: PLW2901
            value = Word.ABSENT if value == kindest_opset(spec, version) else value  # noqa: PLW2901
        text = setting_text(version, types, name, value, symbols)
        if text is not None:
            settings[own] = text
    fill = fill_text(levels.get("fill", FIRST))
    return settle(version, CaseId(str(version.operator), types, parts, tuple(sorted(settings.items())), fill))


def fill_text(value: Value) -> str:
    """Return a fill's text in ids: `fits:T2` for `fits(T2)`."""
    recipe = value if isinstance(value, Recipe) else read_recipe(str(value))
    return f"{recipe.name}:{','.join(recipe.arguments)}" if recipe.arguments else recipe.name


def fill_recipe(text: str) -> Recipe:
    """Return the fill with this text in ids."""
    name, _, arguments = text.partition(":")
    return Recipe(name, tuple(arguments.split(",")) if arguments else ())


def setting_text(version: VersionSpec, types: tuple[str, ...], name: str, value: Value, symbols: Symbols) -> str | None:
    """Return a setting's text in ids, None if ids leave it out; `opset` is a number here."""
    port, attribute = version.signature.input(name), version.signature.attribute(name)
    if value is Word.ABSENT or (isinstance(value, Mapping) and attribute is None):
        return None
    if attribute is not None:
        return text_of(value, attribute.kind, symbols)
    if port is not None:
        return _input_text(version, types, port, value, symbols)
    if name == "outputs" and isinstance(value, tuple):
        return ",".join(str(v.value if isinstance(v, Word) else v) for v in value) or "none"
    return str(value.value if isinstance(value, Word) else value)


def _input_text(version: VersionSpec, types: tuple[str, ...], port: Port, value: Value, symbols: Symbols) -> str | None:
    operand = version.operands.get(port.name)
    if port.is_variadic or (operand is not None and operand.draws and value == operand.draws[0]):
        return None
    if isinstance(value, Recipe):
        return fill_text(value)
    if isinstance(value, Word):
        return str(value.value) if value is not Word.GIVEN and has_values(version, port) else None
    return text_of(value, elements_of(resolve_type(version, types, port)), symbols, usual_rank(version, port.name))


def _unbundled(version: VersionSpec, levels: Levels) -> dict[str, Value]:
    """Return levels with bundles expanded; a parameter's own level overrides a bundle's."""
    settings: dict[str, Value] = {}
    members: dict[str, list[str]] = {"values": [p.name for p in version.signature.inputs if not p.is_variadic]}
    for name, value in levels.items():
        if isinstance(value, Mapping) and name not in ("shapes", "dims"):
            settings.update(value)
            members[name] = [inner for inner in value if version.signature.input(inner)]
    plain = {n: v for n, v in levels.items() if not isinstance(v, Mapping) or n in ("shapes", "dims")}
    settings.update(plain)
    for base, ports in members.items():
        delivery = settings.get(f"{base}{FROM}")
        if delivery is not None and version.signature.input(base) is None:
            del settings[f"{base}{FROM}"]
            written = [p for p in ports if not isinstance(settings.get(p, Word.ABSENT), (Word, Recipe))]
            settings.update({f"{port}{FROM}": delivery for port in written if f"{port}{FROM}" not in plain})
    return settings


def _types(version: VersionSpec, levels: Levels) -> tuple[str, ...]:
    several: tuple[str, ...] = ()
    for name, value in levels.items():
        if TYPE_OF_PORT.fullmatch(name) and isinstance(value, tuple) and len(set(value)) > 1:
            several = tuple(str(t) for t in value)
    types = []
    for letter in free_letters(version):
        value = levels.get(letter, version.signature.types[letter][0])
        for name, of_port in levels.items():
            match = TYPE_OF_PORT.fullmatch(name)
            if match and version.signature.letter(match[1]) == letter and isinstance(of_port, tuple):
                value = of_port
        types.append(str(value[0] if isinstance(value, tuple) else value))
    return (*types[:-1], *several) if several else tuple(types)


def settle(version: VersionSpec, case: CaseId) -> CaseId:
    """Return the id without redundant settings, so that equal content has one id.

    Redundant are the delivery of an input that is left out, a recipe that fills nothing, symbolic dimensions without
    any dimension, and an attribute that its type requires anyway.
    """
    dropped = {name for name, text in case.settings if _means_nothing(version, case, name, text)}
    filled, drawn = _elements(version, case)
    if not filled:
        case = replace(case, fill=FIRST)
    if not filled and not drawn:
        dropped |= {"draw", "seed"}
    return without_settings(case, *dropped) if dropped else case


def _means_nothing(version: VersionSpec, case: CaseId, name: str, text: str) -> bool:
    if name == "dims":
        return text == "static" or not any(part for part in case.shapes if part is not None)
    if name == "memory":
        ranks = [len(part) for part in case.shapes if isinstance(part, tuple)]
        return text == MEMORY[0] or (text != "any" and max(ranks, default=0) < 2)
    if name == "outputs" and text == ",".join(usual_outputs(version)):
        return True
    if text == Word.GIVEN.value and _is_needed(version, case, name):
        return True
    about = parameter_of(version, name)
    if about is None:
        return name.endswith((FROM, RANK)) and version.signature.attribute(name.rpartition("-")[0]) is not None
    return _is_usual(version, case, *about, text)


def _is_usual(version: VersionSpec, case: CaseId, port: Port, which: str, text: str) -> bool:
    """Return whether an input's delivery or rank is the default, or the input is left out."""
    name, attribute = f"{port.name}{which}", version.signature.attribute(port.name)
    if has_values(version, port) and case.setting(port.name) in (None, Word.OMITTED.value):
        return True
    if which == RANK:
        fixed = attribute is not None and case.setting(f"{port.name}{FROM}") in (None, CONSTANT)
        return fixed or text == str(usual_rank(version, port.name))
    if text == "both" and attribute is None:
        raise CaseIdError(f"{case}: {name}=both, but {port.name} of {version.operator} is not also an attribute")
    return text == usual_delivery(version, port)


def _is_needed(version: VersionSpec, case: CaseId, name: str) -> bool:
    """Return whether an attribute is required because of the type that it states."""
    for letter, source in version.types_from.items():
        if source.attribute == name and letter in free_letters(version):
            attribute = version.signature.attribute(name)
            types = dict(zip(free_letters(version), case.types, strict=True))
            return attribute is not None and (attribute.required or types[letter] != source.usual(types))
    return False


def _elements(version: VersionSpec, case: CaseId) -> tuple[int, int]:
    """Return the numbers of elements of a case that are filled and drawn."""
    filled, drawn = len(version.graphs), 0  # bodies may use outer values, which are filled
    parts = iter(case.shapes)
    for port in version.signature.inputs:
        if port.is_variadic:
            filled += sum(part_size(part) for part in parts)
        elif case.setting(port.name) is None and has_values(version, port):
            continue
        elif case.setting(port.name) is None or version.operands[port.name].draws:
            size = part_size(next(parts, None))
            is_drawn = bool(version.operands.get(port.name) and version.operands[port.name].draws)
            drawn += size if is_drawn else 0
            if not is_drawn or resolve_type(version, case.types, port).startswith("map("):  # its values are filled
                filled += size
    return filled, drawn


def read_row(spec: Spec, version: VersionSpec, case: CaseId) -> Row:
    """Return the content of an id, typed by the signature. Raises CaseIdError if the version doesn't have it."""
    if case.edge is not None and version.edge(case.edge) is None:
        hint = did_you_mean(case.edge, version.edges) or f"; it has {', '.join(version.edges)}"
        raise CaseIdError(f"{case}: {version.operator} has no edge {case.edge!r}{hint}")
    row = Row(spec, version, case, {name: _setting(version, name, text, case) for name, text in case.settings})
    if (settled := settle(version, case)) != case:  # two ids of one content would be two cases in locks and waivers
        raise CaseIdError(f"{case}: write it as {settled}")
    parts = row.parts
    _check_numbers(row, [part for some in parts.values() for part in some])
    if case.edge is None:
        _check_signature(row)
    return row


def valid_variant_row(row: Row) -> Row | None:
    """Return the row of the valid case from which an invalid edge is derived."""
    edge = row.edge
    if edge is None or edge.mended is None:
        return None
    types = dict(zip(free_letters(row.version), row.id.types, strict=False))
    levels = {**row.version.settings_of(edge), **types, "fill": row.id.fill, **edge.mended}
    return read_row(row.spec, row.version, identify(row.spec, row.version, levels))


def _check_signature(row: Row) -> None:
    """Raise CaseIdError for types and attributes that are invalid, so that only an edge may have them."""
    version, case = row.version, row.id
    letters = free_letters(version)
    if len(case.types) != len(letters):
        raise CaseIdError(f"{case}: {version.operator} varies {len(letters)} types; read {len(case.types)}")
    for letter, name in zip(letters, case.types, strict=True):
        if name not in version.signature.types[letter]:
            allowed = ", ".join(version.signature.types[letter])
            invalid = f"{case}: {name} is invalid in {version.operator}, and the id names no edge"
            raise CaseIdError(f"{invalid}; {letter} is {allowed}")
    if row.get("unknown") is not Word.ABSENT:
        raise CaseIdError(
            f"{case}: an attribute that {version.operator} does not have is invalid, and the id names no edge"
        )


def _check_numbers(row: Row, parts: list[Part]) -> None:
    """Raise CaseIdError for an opset outside the span, an idle draw or seed, and for too many elements."""
    case, span = row.id, opset_range(row.spec, row.version)
    opset = row.settings.get("opset")
    if isinstance(opset, int) and (span is None or not span[0] <= opset <= span[1]):
        there = f"{span[0]} to {span[1]}" if span else "none"
        raise CaseIdError(f"{case}: the opsets of {row.version.operator} are {there}; read {opset}")
    for name in ("draw", "seed"):
        given = row.settings.get(name)
        if isinstance(given, int) and given < 1:
            raise CaseIdError(f"{case}: {name} is a whole number from 1, left out where it is 0; read {given}")
        if given is not None and not (draws if name == "draw" else seeds)(row.version, case):
            raise CaseIdError(f"{case}: fill {case.fill!r} draws nothing: leave {name} out")
    if sum(map(part_size, parts)) > LARGEST:
        raise CaseIdError(f"{case}: more than {LARGEST:,} elements")


def draws(version: VersionSpec, case: CaseId) -> bool:
    """Return whether draws of a case differ."""
    return fill_recipe(case.fill).name not in UNDRAWN or _elements(version, case)[1] > 0


def seeds(version: VersionSpec, case: CaseId) -> bool:
    """Return whether the seed changes a case: something is drawn, or a ramp of several elements is rotated."""
    return draws(version, case) or (case.fill == FIRST and _elements(version, case)[0] > 1)


def _setting(version: VersionSpec, name: str, text: str, case: CaseId) -> Value:
    """Return a setting's value. Raises CaseIdError unless the text is written as in ids."""
    attribute, port = version.signature.attribute(attribute_name(name)), version.signature.input(name)
    if name in NUMBERS_OF_DRAWS or (attribute is None and (port is None or port.is_variadic)):
        return _own_setting(version, name, text, case)
    if port is not None and attribute is None and (drawn := _drawn(version, port, text)) is not None:
        return drawn
    word = {w.value: w for w in (Word.OMITTED, Word.GIVEN)}.get(text)
    if word is not None:
        return _word(version, name, word, case)
    if attribute is not None:
        return _read(name, text, attribute.kind, 1, case)
    if port is None:
        raise TypeError(name)
    return _read(name, text, elements_of(resolve_type(version, case.types, port)), usual_rank(version, name), case)


def _read(name: str, text: str, kind: str, rank: int, case: CaseId) -> Value:
    """Return a value of a kind. Raises CaseIdError if it is not one, or is written in another way."""
    try:
        value = value_of(text, kind, rank)
        check_range(value, kind)
        written = text_of(value, kind, {}, rank)
    except (ValueError, TypeError, KeyError, OpconformError):
        raise CaseIdError(f"{case}: {name} holds {kind_words(kind)}; read {text!r}") from None
    if text != written:
        raise CaseIdError(f"{case}: write {name}={text} as {name}={written}")
    return value


def _own_setting(version: VersionSpec, name: str, text: str, case: CaseId) -> Value:
    """Return the value of a setting that is neither an attribute nor an input."""
    about = parameter_of(version, name)
    levels = DIMS if version.operator.standard == "openvino" else DIMS[:2]
    ways = MEMORY if version.operator.standard == "onednn" else MEMORY[:1]
    choices = {"dims": levels, "memory": ways}.get(name) or (_CHOICES[about[1]] if about else None)
    if about and about[1] == FROM and version.operator.standard == "onnx":  # the tensor of another input
        choices = (*_CHOICES[FROM], *_before(version, about[0]))
    if choices is not None and text not in choices:
        raise CaseIdError(f"{case}: {name} is {' or '.join(choices)}; read {text!r}")
    if choices is not None or name in ("unknown", "around"):
        return text
    if name == "outputs":
        return _outputs(version, text, case)
    if name not in _NUMBERS:
        known = [a.name for a in version.signature.attributes]
        known += [p.name for p in version.signature.inputs if not p.is_variadic]
        hint = did_you_mean(name, [*known, "dims", *_NUMBERS])
        raise CaseIdError(f"{case}: {version.operator} has no parameter {name!r}{hint}")
    return _read(name, text, "int", 1, case)


def _before(version: VersionSpec, port: Port) -> list[str]:
    """Return the inputs whose tensor an input may reuse: earlier ones of its type, itself if variadic."""
    inputs = version.signature.inputs
    earlier = [
        input_.name for input_ in inputs[: inputs.index(port)] if input_.type == port.type and not input_.is_variadic
    ]
    return [*earlier, port.name] if port.is_variadic else earlier


def _outputs(version: VersionSpec, text: str, case: CaseId) -> Value:
    known = [port.name for port in version.signature.outputs]
    asked = () if text == "none" else tuple(text.split(","))
    if text.isdigit():
        return int(text)
    if any(name not in known and name != Word.OMITTED.value for name in asked):
        raise CaseIdError(f"{case}: the outputs of {version.operator} are {', '.join(known)}; read {text!r}")
    return asked


def _drawn(version: VersionSpec, port: Port, text: str) -> Recipe | None:
    return next((recipe for recipe in version.recipes.get(port.name, ()) if fill_text(recipe) == text), None)


def _word(version: VersionSpec, name: str, word: Word, case: CaseId) -> Word:
    port = version.signature.input(name)
    if word is Word.OMITTED and port is not None and port.option == "optional" and has_values(version, port):
        return word
    if word is Word.GIVEN and word in version.parameters.get(name, {}).values():
        return word
    raise CaseIdError(f"{case}: {name} cannot be {word.value} in {version.operator}")


def without_settings(case: CaseId, *names: str) -> CaseId:
    """Return the id without these settings."""
    return replace(case, settings=tuple(s for s in case.settings if s[0] not in names))


Levels: TypeAlias = Mapping[str, Value]


class Shapes:
    """The shapes of a case's inputs, from the levels of `shapes`, `dims` and attributes, and from operands."""

    def __init__(self, spec: Spec, version: VersionSpec, levels: Levels, types: tuple[str, ...]) -> None:
        self._spec, self._version, self._levels, self._types = spec, version, levels, types
        level, dims = levels.get("shapes", _usual(version)), levels.get("dims")
        bound = _bound(version) | {name: value for name, value in levels.items() if is_symbol(version, name)}
        sizes = {
            **bound,
            **(level if isinstance(level, Mapping) else {}),
            **(dims if isinstance(dims, Mapping) else {}),
        }
        self._plain = level if isinstance(level, tuple) else None
        self._named = {n: v for n, v in sizes.items() if version.signature.input(n)}
        self.symbols: Symbols = {}
        for name, value in sorted(sizes.items(), key=lambda pair: _is_expression(pair[1])):  # they use the rest
            if name not in self._named:
                self.symbols[name] = (
                    _dims(value, self.symbols) if isinstance(value, tuple) else _number(value, self.symbols)
                )
        for attribute in version.signature.attributes:
            value = levels.get(attribute.name, Word.ABSENT)
            number = as_symbol(attribute.default if value is Word.ABSENT else value)
            if number is not None:
                self.symbols.setdefault(attribute.name, number)
        self._known: dict[str, tuple[Part, ...]] = {}

    def parts(self) -> tuple[tuple[Part, ...], Symbols]:
        """Return the shape or structure of each input that is or could be filled or drawn, and all symbols."""
        parts: list[Part] = []
        last = 0
        for index, port in enumerate(self._version.signature.inputs):
            given = self._given(port)
            if not (port.is_variadic or isinstance(given, (Word, Recipe))):
                continue
            if given in (Word.ABSENT, Word.OMITTED):
                if has_values(self._version, port):
                    continue
                parts.append(None)
                last = len(parts) if given is Word.OMITTED else last
                continue
            parts += self._of(port, index)
            last = len(parts)
        return tuple(parts[:last]), self.symbols

    def _given(self, port: Port) -> Value:
        needed = port.option == "single" or (port.is_variadic and port.minimum > 0)
        usual = Word.GIVEN if needed or port.name in self._named else Word.ABSENT
        return self._levels.get(port.name, Word.ABSENT if has_values(self._version, port) else usual)

    def _of(self, port: Port, index: int) -> tuple[Part, ...]:
        if port.name not in self._known:
            self._known[port.name] = ()  # for a shape that depends on itself
            self._known[port.name] = tuple(self._made(port, index))
            if index == 0:
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

    def _made(self, port: Port, index: int) -> Iterator[Part]:
        operand = self._version.operands.get(port.name)
        given = self._named.get(port.name, self._plain if index == 0 and self._plain is not None else None)
        if port.is_variadic:
            many = [s for s in given if isinstance(s, tuple)] if isinstance(given, tuple) else []
            number_of = self._levels.get(port.name, len(many) or port.minimum)
            if not is_whole(number_of):
                message = f"{port.name} is a number of inputs; read {number_of!r}"
                raise OpconformError(f"{self._version.operator}: {message}")
            cycle: list[Value] = [*many] or [given if given is not None else self._said(operand)]
            for i in range(int(number_of)):  # type: ignore[arg-type]  # checked above
                yield self._part(resolve_type(self._version, self._types, port, i), cycle[i % len(cycle)])
        else:
            said = given if given is not None else self._said(operand)
            yield self._part(resolve_type(self._version, self._types, port), said)

    def _said(self, operand: Operand | None) -> Value:
        """Return the shape of an operand in the spec, by default `d`."""
        shape = operand.shape if operand else None
        if shape is None:
            return self.symbols.get("d", ())
        if not isinstance(shape, Recipe):
            return shape
        if shape.name == "same":
            ports = self._version.signature.inputs
            index = next(i for i, p in enumerate(ports) if p.name == shape.arguments[0])
            parts = self._of(ports[index], index)
            return parts[0] if parts and isinstance(parts[0], tuple) else ()
        function = family_of(self._spec).shapes[shape.name]
        return function(Shaping(self._version, self._levels, self.symbols), *shape.arguments)  # type: ignore[no-any-return]

    def _part(self, type_: str, said: Value) -> Part:
        if "(" not in type_:
            return _dims(said, self.symbols)
        return _structure(type_, said, self.symbols)


def _bound(version: VersionSpec) -> dict[str, Value]:
    """Return the symbols of the first level of each bundle, which apply if a case does not name the bundle."""
    return {name: value for level in version.usual_bundles for name, value in level.items() if is_symbol(version, name)}


def _is_expression(value: Value) -> bool:
    return any(isinstance(part, str) for part in (value if isinstance(value, tuple) else (value,)))


def _usual(version: VersionSpec) -> Value:
    """Return the default level of `shapes`: the first that binds the symbols in shapes."""
    return next((level for level in version.parameters.get("shapes", {}).values() if isinstance(level, Mapping)), ())


def _structure(type_: str, said: Value, symbols: Symbols) -> Structure:
    """Return the structure of a non-tensor: from a list of shapes, a shape or `absent`, or a number of entries."""
    expression = parse_type(type_)
    match expression.kind:
        case "sequence":
            items = said if isinstance(said, tuple) else ()
            return Structure("sequence", items=tuple(_structure(str(expression.of), entry, symbols) for entry in items))
        case "optional":
            held = () if said in (Word.ABSENT, Word.OMITTED) else (_structure(str(expression.of), said, symbols),)
            return Structure("optional", items=held)
        case "map":
            return Structure("map", count=int(_number(said[0] if isinstance(said, tuple) and said else said, symbols)))
        case "sparse":
            *dims, last = said if isinstance(said, tuple) else (said,)
            return Structure("sparse", _dims(tuple(dims), symbols), count=int(_number(last, symbols)))
    return tensor(*_dims(said, symbols))


def _dims(said: Value, symbols: Symbols) -> Shape:
    if not isinstance(said, tuple):
        raise OpconformError(f"a shape is a list of dimensions; read {said!r}")
    return tuple(int(n) for n in numbers([p for p in said if isinstance(p, (int, float, str))], symbols))


def _number(said: Value, symbols: Symbols) -> int:
    return int(number(said, symbols)) if isinstance(said, str) else int(said)  # type: ignore[arg-type]  # a number


def clauses_of(row: Row) -> tuple[str, ...]:
    """Return the clauses that a case tests, as `onnx/ReduceMean#mean`; for an invalid case, the clauses of its edge."""
    edge = row.edge
    named = [i for i in edge.tests if i in row.version.clauses] if edge else []
    known: dict[str, Value] = {}
    held = [] if row.rejected else [c.id for c in row.version.clauses.values() if _holds(c, row, known)]
    operator = f"{row.spec.standard}/{row.spec.name}"
    return tuple(f"{operator}#{clause}" for clause in dict.fromkeys([*named, *held]))


def _holds(clause: Clause, row: Row, known: dict[str, Value]) -> bool:
    """Return whether a clause's conditions hold; `known` caches the case's values by name."""
    if clause.when is None:
        return False
    for name, condition in clause.when.items():
        if name not in known:
            known[name] = _content(row, name)
        if not _meets(condition, known[name]):
            return False
    return True


def _meets(condition: Condition, content: Value) -> bool:
    return any(_matches(content, value) for value in condition.values) != condition.negated


def _content(row: Row, name: str) -> Value:
    """Return a case's value of a parameter."""
    if name in free_letters(row.version):
        return row.id.types[free_letters(row.version).index(name)]
    if name == "shapes":
        return tuple(print_shape(shape) for shape in row.id.shapes)
    if name == "fill":
        return row.id.fill
    port = row.version.signature.input(name)
    if port is not None and port.is_variadic:
        return len(row.parts[name])
    if port is not None and not row.is_written(port) and name not in row.settings:
        parts = row.parts[name]
        return Word.ABSENT if not parts else Word.OMITTED if parts == (None,) else Word.GIVEN
    return row.get(name)


def _matches(content: Value, wanted: Value) -> bool:
    if wanted is Word.NONE:
        return content == ()
    if wanted is Word.NEGATIVE:
        values = content if isinstance(content, tuple) else (content,)
        return any(isinstance(v, int) and v < 0 for v in values)
    if isinstance(wanted, Word) and wanted is not Word.SYMBOLIC:
        return content is wanted
    if wanted is Word.SYMBOLIC:
        return bool(content == wanted.value)
    return bool(content == wanted) or (isinstance(wanted, str) and isinstance(content, tuple) and wanted in content)

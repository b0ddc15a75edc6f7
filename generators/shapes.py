"""The shapes of a case's inputs, from levels of parameters and what a spec says of its operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from ..cases.errors import OpconformError
from ..cases.ids import Part, Shape
from ..cases.structures import Structure, parse_type, tensor
from ..specs.expressions import number, numbers
from ..specs.model import Operand, Port, Recipe, Spec, Value, VersionSpec, Word
from .families import Shaping, family_of
from .literals import Symbols, is_whole
from .ports import has_values, is_symbol, resolve_type

Levels: TypeAlias = Mapping[str, Value]


class Shapes:
    """The shapes of a case's inputs, from levels: of `shapes` and `dims`, of attributes, and what operands say."""

    def __init__(self, spec: Spec, version: VersionSpec, levels: Levels, types: tuple[str, ...]) -> None:
        self._spec, self._version, self._levels, self._types = spec, version, levels, types
        level, dims = levels.get("shapes", _usual(version)), levels.get("dims")
        bound = _bound(version) | {name: value for name, value in levels.items() if is_symbol(version, name)}
        told = {**bound, **(level if isinstance(level, Mapping) else {}), **(dims if isinstance(dims, Mapping) else {})}
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
        needed = port.option == "single" or (port.is_variadic and port.minimum > 0)
        usual = Word.GIVEN if needed or port.name in self._named else Word.ABSENT
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
            cycle: list[Value] = [*many] or [given if given is not None else self._said(operand)]
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


def _bound(version: VersionSpec) -> dict[str, Value]:
    """Return what the first level of each bundle binds of symbols, which holds where a case does not name it."""
    return {name: value for level in version.usual_bundles for name, value in level.items() if is_symbol(version, name)}


def _usual(version: VersionSpec) -> Value:
    """Return the level of `shapes` where a case names none: the first that binds what shapes are written in."""
    return next((level for level in version.parameters.get("shapes", {}).values() if isinstance(level, Mapping)), ())


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
    return int(number(said, symbols)) if isinstance(said, str) else int(said)  # type: ignore[arg-type]  # a number

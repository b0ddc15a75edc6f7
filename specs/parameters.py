"""Parameters and their levels as declared in a spec file, and the meaning of names in each version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..cases.errors import OpconformError
from .expressions import is_expression, recipe
from .model import COMMON_PARAMETERS, Recipe, Signature, TensorValue, Value, Version, Word, expand, is_type_word, unwrap
from .reading import Key, Keys, Problems
from .resolve import ATTRIBUTE_KINDS, scalar_kind
from .schema import OperandText, ParameterText, Spanned

Role: TypeAlias = Literal["attribute", "input", "type", "common", "own", "delivery", "symbol", "bundle"]

_TYPE_OF = re.compile(r"type\((.+)\)")


def port_of(name: str) -> str | None:
    """Return `X` for the parameter `type(X)`, None for any other."""
    match = _TYPE_OF.fullmatch(name)
    return match[1] if match else None


def delivered(name: str) -> str:
    """Return `X` for the parameters `X-from` and `X-rank`, else an empty text."""
    port, _, word = name.rpartition("-")
    return port if word in ("from", "rank") else ""


def signature_parts(signature: Signature) -> tuple[str, ...]:
    """Return the parts of a signature, each with its section: `attributes.axes`, `inputs.X`, `types.T`."""
    sections: Mapping[str, Iterable[str]] = {
        "attributes": [a.name for a in signature.attributes],
        "inputs": [p.name for p in signature.inputs],
        "outputs": [p.name for p in signature.outputs],
        "types": signature.types,
    }
    return tuple(f"{section}.{name}" for section, names in sections.items() for name in names)


@dataclass(frozen=True, slots=True)
class Span:
    """The versions from `since` to `before`, exclusive, whose signatures have `having` and lack `lacking`."""

    since: Version | None = None
    before: Version | None = None
    having: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: Spanned) -> Span:
        """Return the span of a part of a file."""
        return cls(text.since, text.before, tuple(text.having), tuple(text.lacking))

    @property
    def is_whole(self) -> bool:
        """Whether it has no limits and so covers every version."""
        return self.since is None and self.before is None and not self.having and not self.lacking

    def covers(self, version: Version, names: Names) -> bool:
        """Whether it covers `version`."""
        if self.is_whole:
            return True
        order = names.order
        at = order[version]
        if self.since in order and at < order[self.since]:
            return False
        if self.before in order and at >= order[self.before]:
            return False
        return all(names.has(version, part) for part in self.having) and not any(
            names.has(version, part) for part in self.lacking
        )


class Names:
    """The names that a spec's settings may use.

    `own` are the family's parameters; with None, any name is accepted. `symbols` are the symbols in shapes, and
    `bundles` the parameters whose levels are mappings.
    """

    def __init__(
        self,
        signatures: Mapping[Version, Signature],
        own: frozenset[str] | None = None,
        symbols: frozenset[str] = frozenset(),
        bundles: frozenset[str] = frozenset(),
    ) -> None:
        self.signatures, self.own, self.symbols, self.bundles = signatures, own, symbols, bundles
        self.order = {version: index for index, version in enumerate(signatures)}
        self._parts = {version: frozenset(signature_parts(s)) for version, s in signatures.items()}
        self.parts = tuple(dict.fromkeys(part for s in signatures.values() for part in signature_parts(s)))
        self._bare = {v: frozenset(part.partition(".")[2] for part in parts) for v, parts in self._parts.items()}
        self.inputs = tuple(sorted({p.name for s in signatures.values() for p in s.inputs}))
        self.outputs = tuple(sorted({p.name for s in signatures.values() for p in s.outputs}))
        self.attributes = tuple(sorted({a.name for s in signatures.values() for a in s.attributes}))
        self.letters = tuple(sorted({letter for s in signatures.values() for letter in s.types}))
        self._kinds: dict[str, frozenset[str]] = {}
        self._roles: dict[str, frozenset[Role]] = {}
        self._applies: dict[tuple[str, Version], bool] = {}

    def has(self, version: Version, part: str) -> bool:
        """Whether a version's signature has an attribute, input, output or letter, `axes` or `inputs.axes`."""
        return part in self._bare[version] or part in self._parts[version]

    def has_anywhere(self, part: str) -> bool:
        """Whether any version's signature has an attribute, input, output or letter."""
        return any(self.has(version, part) for version in self.signatures)

    def roles(self, name: str) -> frozenset[Role]:
        """Return the roles of `name` in all versions; empty if it has none."""
        if name not in self._roles:
            roles = {role for s in self.signatures.values() if (role := _role(name, s))}
            self._roles[name] = frozenset(roles or self._parameter_role(name))
        return self._roles[name]

    def _parameter_role(self, name: str) -> set[Role]:
        if name in COMMON_PARAMETERS:
            return {"common"}
        if self.own is not None and name in self.own:
            return {"own"}
        port = delivered(name)
        if port in self.inputs or (port in self.bundles and name.endswith("-from")):
            return {"delivery"}
        if name in self.symbols:
            return {"symbol"}
        if name in self.bundles:
            return {"bundle"}
        return {"own"} if self.own is None and port_of(name) is None else set()

    def is_type(self, name: str) -> bool:
        """Whether `name` is a type letter or `type(port)`."""
        return "type" in self.roles(name)

    def applies(self, name: str, version: Version) -> bool:
        """Whether a version's signature has `name`; other parameters apply to every version."""
        if (name, version) not in self._applies:
            roles = self.roles(name)
            if "delivery" in roles:
                applies = delivered(name) in self.bundles or self.signatures[version].input(delivered(name)) is not None
            else:
                is_everywhere = not roles.isdisjoint(("common", "own", "symbol", "bundle"))
                applies = is_everywhere or _role(name, self.signatures[version]) is not None
            self._applies[name, version] = applies
        return self._applies[name, version]

    def canonical(self, name: str, version: Version) -> str:
        """Return the type letter for `type(port)`, else the name."""
        port = port_of(name)
        return (self.signatures[version].letter(port) if port else None) or name

    def kinds(self, name: str) -> frozenset[str]:
        """Return the attribute's kinds in all versions, and `input` if it is an input in some."""
        if name not in self._kinds:
            kinds = {a.kind for s in self.signatures.values() if (a := s.attribute(name))}
            self._kinds[name] = frozenset(kinds | ({"input"} if "input" in self.roles(name) else set()))
        return self._kinds[name]

    def holds_text(self, name: str) -> bool:
        """Whether the values of an attribute or input can be text in any version."""
        if self.kinds(name) & {"string", "strings", "graph", "graphs"}:
            return True
        return any(
            "string" in t
            for s in self.signatures.values()
            if (port := s.input(name))
            for t in s.types.get(s.letter(name) or "", (port.type,))
        )

    def known(self) -> list[str]:
        """Return all names except for `type(port)`, for messages."""
        names: dict[str, None] = {}
        for s in self.signatures.values():
            names |= dict.fromkeys([a.name for a in s.attributes] + [p.name for p in s.inputs] + list(s.types))
        return [*names, *sorted((self.own or frozenset()) | COMMON_PARAMETERS | self.symbols | self.bundles)]


def _role(name: str, signature: Signature) -> Role | None:
    if signature.attribute(name):
        return "attribute"
    if signature.input(name):
        return "input"
    port = port_of(name)
    if name in signature.types or (port and signature.letter(port)):
        return "type"
    return None


Levels: TypeAlias = Mapping[Version, Mapping[str, Mapping[str, Value]]]
"""Version to parameter to level to value."""

SETTING_WORDS: Mapping[str, Word] = {w.value: w for w in (Word.ABSENT, Word.OMITTED, Word.GIVEN)}
TENSOR_KINDS = frozenset({"tensor", "tensors", "sparse_tensor"})

_LEVEL_NAME = re.compile(r"[^\s,;=/]+")


class Misfit(OpconformError):  # noqa: N818 - it is a value's
    """A value that an attribute or input does not accept; `at` is the path to the wrong part of it."""

    def __init__(self, message: str, *at: Key) -> None:
        self.at = at
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a parameter. It applies if both its spans do."""

    name: str
    value: Value
    span: Span
    path: Keys
    within: Span = Span()

    def applies(self, version: Version, names: Names) -> bool:
        """Whether a version has this level of its parameter."""
        return self.span.covers(version, names) and self.within.covers(version, names)


@dataclass(frozen=True)
class Parameter:
    """A parameter with its levels; none if `everything` means all types of a letter."""

    name: str
    levels: tuple[Level, ...]
    everything: bool
    span: Span
    path: Keys

    @property
    def is_bundle(self) -> bool:
        """Whether every level is a mapping or sets nothing."""
        mappings = [level for level in self.levels if isinstance(level.value, dict)]
        rest = [level for level in self.levels if not isinstance(level.value, dict)]
        return bool(mappings) and all(level.value is Word.ABSENT for level in rest)

    def at(self, version: Version, names: Names) -> dict[str, Value]:
        """Return the levels that apply to a version, by name; empty if the parameter does not apply to it."""
        if not names.applies(self.name, version) or not self.span.covers(version, names):
            return {}
        levels = [level for level in self.levels if level.applies(version, names)]
        if not names.is_type(self.name):
            return {
                level.name: level.value for level in levels if level_applies(self.name, level.value, version, names)
            }
        allowed = names.signatures[version].types.get(names.canonical(self.name, version), ())
        wanted = allowed if self.everything else [t for x in levels if is_type_word(x.name) for t in expand(x.name)]
        return {t: t for t in wanted if t in allowed}


def parameters(declared: Mapping[str, ParameterText], problems: Problems) -> dict[str, Parameter]:
    """Read the section `parameters`; mistakes are added to `problems`."""
    return {name: _parameter(name, text, problems) for name, text in declared.items()}


def levels_by_version(declared: Mapping[str, Parameter], names: Names) -> Levels:
    """Return the levels of every parameter, by its declared name, in every version."""
    return {
        version: {name: parameter.at(version, names) for name, parameter in declared.items()}
        for version in names.signatures
    }


def level_applies(name: str, value: Value, version: Version, names: Names) -> bool:
    """Whether a version has all inputs, outputs and attributes that a level or setting uses."""
    signature = names.signatures[version]
    if name == "outputs":
        listed = value if isinstance(value, tuple) else ()
        asked = [o for o in listed if isinstance(o, str)]
        return all(signature.output(o) for o in asked) and (
            isinstance(value, tuple) or any(p.is_variadic for p in signature.outputs)
        )
    if not isinstance(value, dict) or names.kinds(name) & TENSOR_KINDS:
        return True
    if name == "shapes":
        return all(signature.input(port) for port in value if port in names.inputs)
    return all(
        names.applies(inner, version) and level_applies(inner, entry, version, names) for inner, entry in value.items()
    )


def text_of(value: object) -> str:
    """Return the name of the level that a plain value is."""
    if isinstance(value, Word):
        return value.value
    return str(value).lower() if isinstance(value, bool) else str(value)


def literal_of(raw: Any) -> tuple[bool, Any]:
    """Return whether `raw` is `{value: x, ...}`, and x, else `raw` itself."""
    return (True, raw["value"]) if isinstance(raw, dict) and "value" in raw else (False, raw)


def settled(raw: Any, words: bool = True, name: str = "") -> Value:
    """Return a value as read, with `absent`, `omitted` and `given` as Words and lists as tuples.

    Words are only recognised at the top, in a bundle's entries and in lists of outputs, since other lists may contain
    text. `{draw: x}` is a recipe, and `{value: x}` in a bundle is x itself.
    """
    if isinstance(raw, str):
        return SETTING_WORDS.get(raw, raw) if words else raw
    if isinstance(raw, list):
        return tuple(settled(part, words and name == "outputs") for part in raw)
    if isinstance(raw, dict):
        if raw.keys() == {"draw"} and isinstance(raw["draw"], str):
            return recipe(raw["draw"])
        return {
            str(k): settled(part["value"], False) if is_literal(part) else settled(part, words, str(k))
            for k, part in raw.items()
        }
    return raw  # type: ignore[no-any-return]


def is_literal(raw: object) -> bool:
    """Whether `raw` is exactly `{value: x}`: a literal x rather than a word."""
    return isinstance(raw, dict) and raw.keys() == {"value"}


def typed(name: str, value: Value, signature: Signature) -> Value:
    """Return a level's or setting's value with the signature's type: floats as floats, tensors as tensors.

    Raises Misfit if the attribute does not accept such a value.
    """
    attribute = signature.attribute(name)
    if type(value) is Word or (attribute is None and (type(value) is not dict or name == "shapes")):
        return value
    if attribute is None:
        bundle: Any = value
        return {n: _inside(n, lambda n=n, v=v: typed(n, v, signature)) for n, v in bundle.items()}  # type: ignore[misc]
    if isinstance(value, Recipe):
        raise Misfit(f"{name} is an attribute: only the elements of an input are drawn")
    return _attribute_value(name, attribute.kind, value, signature)


def _attribute_value(name: str, kind: str, value: Value, signature: Signature) -> Value:
    scalar = scalar_kind(kind)
    if kind in TENSOR_KINDS:
        return _tensor(name, value, sparse=kind == "sparse_tensor")
    if kind == "type_proto":
        return _type(name, value, signature)
    if scalar is None:
        return value
    if kind in ATTRIBUTE_KINDS:
        return _scalar(name, kind, scalar, value, is_list=False)
    if not isinstance(value, tuple):
        raise Misfit(f"{name} is {kind}, a list; read {value!r}")
    return tuple(
        _inside(index, lambda v=entry: _scalar(name, kind, scalar, v, is_list=True))  # type: ignore[misc]
        for index, entry in enumerate(value)
    )


def _inside(key: Key, attempt: Callable[[], Value]) -> Value:
    """Return the result of `attempt`; the path of a Misfit in it gets `key` in front."""
    try:
        return attempt()
    except Misfit as error:
        raise Misfit(str(error), key, *error.at) from None


def _scalar(name: str, kind: str, scalar: type | None, value: Value, is_list: bool) -> Value:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if scalar is float and is_number:
        return float(value)  # type: ignore[arg-type]
    is_numeric = scalar is int or (scalar is float and is_list)
    if is_numeric and isinstance(value, str):
        if is_expression(value):
            return value
    elif isinstance(value, scalar or object) and (scalar is not int or not isinstance(value, bool)):
        return value
    raise Misfit(f"{name} is {kind}; read {value!r}")


def _type(name: str, value: Value, signature: Signature) -> Value:
    inner = value
    while isinstance(inner, str) and (wrapped := unwrap(inner)):
        inner = wrapped[1]
    if isinstance(value, str) and (inner in signature.types or is_type_word(value)):
        return value
    raise Misfit(f"{name} is a type: an element type or a letter, seq(T) or optional(T); read {value!r}")


def _tensor(name: str, value: Value, *, sparse: bool) -> TensorValue:
    """Return a tensor written as nested lists, or as a mapping of `values`, `dims`, `type` and `indices`."""
    if not isinstance(value, dict):
        if sparse:
            raise Misfit(f"{name} is a sparse tensor: write {{dims: [3, 4], values: [1], indices: [5]}}")
        return TensorValue(*_flattened(name, value))
    if unknown := value.keys() - {"values", "dims", "type", "indices"}:
        raise Misfit(f"{name} is a tensor of values, dims, type and indices; read {', '.join(sorted(unknown))}")
    dims, values = _flattened(name, value.get("values", ()))
    type_, indices = value.get("type"), value.get("indices")
    if "dims" in value:
        dims = _wholes(name, "dims", value["dims"])
    if type_ is not None and not isinstance(type_, str):
        raise Misfit(f"{name}: type is an element type or a letter; read {type_!r}")
    if sparse != (indices is not None):
        raise Misfit(f"{name}: a sparse tensor has indices, and no other has")
    return TensorValue(dims, values, type_, None if indices is None else _wholes(name, "indices", indices))


def _wholes(name: str, what: str, value: Value) -> tuple[int, ...]:
    if isinstance(value, tuple) and all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in value):
        return value  # type: ignore[return-value]
    raise Misfit(f"{name}: {what} are whole numbers from 0; read {value!r}")


def _flattened(name: str, value: Value) -> tuple[tuple[int, ...], tuple[bool | int | float | str, ...]]:
    """Return the dimensions and elements of nested tuples."""
    if isinstance(value, (bool, int, float, str)):
        return (), (value,)
    if not isinstance(value, tuple):
        raise Misfit(f"{name} is a tensor: a number, a text, or lists of them; read {value!r}")
    parts = [_flattened(name, part) for part in value]
    if len({dims for dims, _ in parts}) > 1:
        raise Misfit(f"{name}: the rows of a tensor have one length")
    return (len(parts), *(parts[0][0] if parts else ())), tuple(v for _, values in parts for v in values)


def drawn(port: str, alternatives: Iterable[tuple[Keys, OperandText]], problems: Problems) -> Parameter:
    """Return the parameter for an operand's draws, from their alternatives with paths."""
    levels: list[Level] = []
    for path, operand in alternatives:
        for index, ((text, spanned),) in enumerate(draw.items() for draw in operand.draw or ()):
            at = (*path, "draw", index)
            if text in SETTING_WORDS:
                levels.append(Level(text, SETTING_WORDS[text], Span.of(spanned), at, Span.of(operand)))
            elif problems.check(at, lambda text=text: recipe(text)):  # type: ignore[misc]
                levels.append(Level(text, recipe(text), Span.of(spanned), at, Span.of(operand)))
    return Parameter(port, tuple(levels), False, Span(), ("operands", port))


def _parameter(name: str, text: ParameterText, problems: Problems) -> Parameter:
    path: Keys = ("parameters", name)
    if text.levels == "all":
        return Parameter(name, (), True, Span.of(text), path)
    inner = (*path, "levels") if problems.document.has((*path, "levels")) else path
    entries = text.levels.items() if isinstance(text.levels, dict) else ((None, level) for level in text.levels)
    levels = []
    for index, (key, level) in enumerate(entries):
        at = (*inner, index if key is None else key)
        literal = is_literal(level.value)
        value = level.value["value"] if literal else level.value
        where = (*at, "value") if problems.document.has((*at, "value")) else at
        try:
            setting = settled(value, not (literal and isinstance(value, str)), name)
        except OpconformError as error:  # not a recipe
            problems.add(where, str(error))
            continue
        levels.append(Level(text_of(value if key is None else key), setting, Span.of(level), where))
    _check_names(levels, problems)
    return Parameter(name, tuple(levels), False, Span.of(text), path)


def _check_names(levels: Iterable[Level], problems: Problems) -> None:
    seen: set[str] = set()
    for level in levels:
        if level.name in seen:
            problems.add(level.path, f"level {level.name!r} appears twice")
        seen.add(level.name)
        plain = isinstance(level.value, (str, int, float, Word, Recipe)) or is_type_word(level.name)
        if not plain and not _LEVEL_NAME.fullmatch(level.name):
            problems.add(level.path, f"{level.name!r}: a level's name has no spaces and none of , ; = /", key=True)

"""The resolved content of a spec: signatures, clauses, parameters and edges of each version of an operator."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from ..cases.errors import OpconformError, did_you_mean
from ..cases.program import AttributeValue, OperatorVersion
from .reading import Document, Key, Position, SpecError

Version: TypeAlias = int | str
"""A number, dotted text such as "3.10", or `any` if the standard's page has no version."""

PortOption: TypeAlias = Literal["single", "optional", "variadic", "each"]
ShapeWord: TypeAlias = Literal["static", "bounded", "dynamic"]
Status: TypeAlias = Literal["required", "inferred", "disputed", "withdrawn"]


DIMS = ("static", "symbolic", "unranked")
MEMORY = ("plain", "turned", "padded", "any")
"""The levels of `dims`; only OpenVINO's models declare inputs without a rank."""


class Word(enum.Enum):
    """A setting that is a word rather than a value.

    `absent`: not given. `omitted`: left out with an empty name. `given`: given, with a value that the family derives.
    `none`, `negative` and `symbolic` occur only in a clause's `when`: an empty list, a list with a negative number,
    symbolic dimensions.
    """

    ABSENT = "absent"
    OMITTED = "omitted"
    GIVEN = "given"
    NONE = "none"
    NEGATIVE = "negative"
    SYMBOLIC = "symbolic"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The name of a generator function, with its arguments as written: `fits(T2)`, `overlap(0.5)`."""

    name: str
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arguments)})" if self.arguments else self.name


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor that a spec writes as an attribute's value: its dimensions, and its elements row by row.

    `type` is an element type, a type letter of the signature, or None if `types-from` gives the letter. For a sparse
    tensor, `indices` are the positions of the elements in the flattened tensor.
    """

    dims: tuple[int, ...]
    values: tuple[bool | int | float | str, ...]
    type: str | None = None
    indices: tuple[int, ...] | None = None


Value: TypeAlias = "bool | int | float | str | Word | Recipe | TensorValue | tuple[Value, ...] | Mapping[str, Value]"
"""A level's or a setting's value.

Expressions stay text; `expressions.number` and `expressions.numbers` evaluate them. A `Recipe` draws an input's
elements. A mapping is a bundle, which sets the names in its keys; for `shapes`, it has a shape for each input or
symbol.
"""

COMMON_PARAMETERS = frozenset(
    {"shapes", "dims", "memory", "fill", "outputs", "opset", "unknown", "values-from", "around"}
)
"""The parameters of every family, besides an operator's attributes, inputs and type letters."""

STANDARDS = ("onnx", "openvino", "onednn")

DELIVERIES = ("constant", "graph-input", "both")
"""The delivery of an input: a constant of the program, fed with each run, or, if it is also an attribute, both."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words that a family's Python code defines for specs.

    `parameters`: the family's own. `fills`: its fill recipes, by the name before the bracket. `references`: the
    functions that may follow the dot in `family`. `shapes`, `draws`, `domains`: functions by name; `arguments`: the
    arguments that an operand may pass to its draw; `precision`: the primitives that have a budget. None means not
    known, and so not checked.
    """

    parameters: frozenset[str] = frozenset()
    fills: frozenset[str] = frozenset()
    references: frozenset[str] = frozenset()
    shapes: frozenset[str] | None = None
    draws: frozenset[str] | None = None
    domains: frozenset[str] | None = None
    arguments: frozenset[str] | None = None
    precision: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class AttributeSignature:
    """An attribute: its kind, by the standard's name (`ints`), and its default, None if it has none."""

    name: str
    kind: str
    required: bool
    default: AttributeValue | bool | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output. `type` is a letter of the signature, a type, or a letter wrapped as in `seq(T)`.

    `variadic`: any number of tensors of one type, at least `minimum`; `each`: the same, but each with its own type.
    """

    name: str
    type: str
    option: PortOption = "single"
    minimum: int = 1

    @property
    def is_variadic(self) -> bool:
        """Whether it accepts any number of tensors."""
        return self.option in ("variadic", "each")


@dataclass(frozen=True)
class Signature:
    """Attributes, inputs and outputs of an operator version, and the types of its letters.

    `ties` has the letters that depend on another one: `S` to `seq(T)`, `V` to `held(O)`; `types` lists their types too.
    """

    attributes: tuple[AttributeSignature, ...] = ()
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ties: Mapping[str, str] = field(default_factory=dict)
    deprecated: bool = False

    @functools.cached_property
    def free_letters(self) -> tuple[str, ...]:
        """The type letters that cases vary, in order."""
        return tuple(letter for letter in self.types if letter not in self.ties)

    @functools.cached_property
    def defaults(self) -> Mapping[str, AttributeValue]:
        """The default values of attributes, by name."""
        return {a.name: a.default for a in self.attributes if a.default is not None}

    @functools.cached_property
    def _attributes(self) -> Mapping[str, AttributeSignature]:
        return {attribute.name: attribute for attribute in self.attributes}

    @functools.cached_property
    def _inputs(self) -> Mapping[str, Port]:
        return {port.name: port for port in self.inputs}

    def attribute(self, name: str) -> AttributeSignature | None:
        """Return the attribute called `name`."""
        return self._attributes.get(name)

    def kind(self, name: str) -> str:
        """Return the kind of the attribute called `name`; empty if there is none."""
        attribute = self.attribute(name)
        return "" if attribute is None else attribute.kind

    def input(self, name: str) -> Port | None:
        """Return the input called `name`."""
        return self._inputs.get(name)

    def output(self, name: str) -> Port | None:
        """Return the output called `name`."""
        return next((p for p in self.outputs if p.name == name), None)

    def letter(self, port: str) -> str | None:
        """Return the type letter of an input, else of an output, unwrapped; None if it has none."""
        port_found = self.input(port) or self.output(port)
        if port_found is None:
            return None
        letter = port_found.type.removesuffix(")").rpartition("(")[2].rstrip(")")
        return letter if letter in self.types else None

    def types_of(self, port: Port) -> tuple[str, ...]:
        """Return the types that an input or output may have."""
        return self.types.get(port.type, (port.type,))

    @property
    def input_counts(self) -> tuple[int, int | None]:
        """The smallest and the largest number of inputs; None if there is no largest."""
        return _counts(self.inputs)

    @property
    def output_counts(self) -> tuple[int, int | None]:
        """The smallest and the largest number of outputs; None if there is no largest."""
        return _counts(self.outputs)


def _counts(ports: Iterable[Port]) -> tuple[int, int | None]:
    least, most = 0, 0
    for port in ports:
        if port.is_variadic:  # the optional ones before it keep their positions, given or not
            return most + port.minimum, None
        most += 1
        least = most if port.option == "single" else least
    return least, most


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one setting of a case: its value is one of `values`, or, if `negated`, none of them."""

    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule of the standard.

    `when`: the settings of cases that test it; empty: every valid case; None: only the edges that name it. `disputes`:
    the parts of the signature, such as `inputs.axes`, in which a disputed clause and a library differ. `excludes`:
    globs for the triggers of `opconform dev mutants` that it makes impossible for valid calls: `rank=[01]`.
    """

    id: str
    text: str
    source: str
    status: Status = "required"
    when: Mapping[str, Condition] | None = field(default_factory=dict)
    upstream: str | None = None
    disputes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Silence:
    """A question that the standard leaves open: when it arises (prose), and the admissible answers."""

    id: str
    when: str
    options: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Edge:
    """A case that always runs, or one for each named type.

    `settings` and `mended` map a name to a value; a type letter, or `type(port)` for a variadic port, to a tuple of
    types. Letters that are not named take every type. `mended` overrides `settings` to make the program valid; an edge
    has it if and only if `rejected` is true.
    """

    id: str
    settings: Mapping[str, Value]
    tests: tuple[str, ...]
    rejected: bool = False
    mended: Mapping[str, Value] | None = None


@dataclass(frozen=True, slots=True)
class Operand:
    """A spec's description of one input: its shape, and the source of its elements.

    `shape`: dimensions (numbers and expressions, `S...` for all of a list), a function of the family, `same(x)`, or
    None if the level of `shapes` has it. `draws`: the recipes that may draw it, as levels of the parameter named like
    the input; an input without any is filled, or written if that parameter has values. `domain`: the range of its
    elements. `fill`: its own recipe in place of the parameter `fill`. `arguments`: the draw's arguments, such as
    `below: "d[axis]"`, with expressions as text.
    """

    name: str
    shape: tuple[int | str, ...] | Recipe | None = None
    draws: tuple[Recipe, ...] = ()
    domain: Recipe | None = None
    fill: Recipe | None = None
    arguments: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TypeSource:
    """The source of a type letter: an attribute whose value states the letter's type.

    `absent`: the type that a missing attribute implies, or the letter with this type; None if the standard defines
    none. `names`: the attribute's own names of types, if they are not the usual ones.
    """

    attribute: str
    absent: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def usual(self, types: Mapping[str, str]) -> str | None:
        """Return the type that a missing attribute implies, if letters have these types."""
        return types.get(self.absent, self.absent) if self.absent else None

    def stated(self, attributes: Mapping[str, Any], types: Mapping[str, str]) -> str | None:
        """Return the type that attributes state or, if it is missing, imply."""
        if self.attribute not in attributes:
            return self.usual(types)
        text = str(attributes[self.attribute])
        return next((type_ for type_, own in self.names.items() if own == text), text)


@dataclass(frozen=True, slots=True)
class BoundAttribute:
    """The value of another operator's attribute: one of ours, by name, in its words; or a constant.

    `source`: our attribute, None for a constant. `constant`: the value without a source, or if our attribute is absent.
    `words`: its values for ours, if they differ.
    """

    source: str | None = None
    constant: Any = None
    words: Mapping[str, Any] = field(default_factory=dict)

    def value(self, given: Any) -> Any:
        """Return the value for what our attribute is, None if it is absent. Raises KeyError for an unknown word."""
        if self.source is None or given is None:
            return self.constant
        return self.words[str(given)] if self.words else given


@dataclass(frozen=True, eq=False)
class Binding:
    """How the formula of another operator version computes this one: its names, and what they mean here.

    `operator` and `version` have the formula. `inputs` and `outputs`: its ports in its order, with our names, None for
    one that is left out. `attributes`: all of its attributes. `clauses`: its clauses, with ours, None for one that
    holds by construction. `silences`: its silences, with an option that this standard settles, or `=` and ours.
    `unbound`: its other clauses, which the formula must not ask for. `by`: the function that calls the formula, by
    module and name, if names are not enough.
    """

    operator: str
    version: Version
    inputs: Mapping[str, str | None]
    outputs: Mapping[str, str | None]
    attributes: Mapping[str, BoundAttribute]
    clauses: Mapping[str, str | None]
    silences: Mapping[str, str]
    unbound: frozenset[str]
    by: str | None = None


@dataclass(frozen=True)
class VersionSpec:
    """A spec's content for one operator version.

    `parameters` maps a name to levels by name; types are under their letter in this version. `exclude` maps a parameter
    to levels: a combination is left out if each parameter of a row has one of the levels. `operands` has every input of
    the signature, in its order. The keys of `types_from` are letters. `same`: letters that vary together. `precision`:
    the budget of a primitive in ulp, by element type, with "" for all others. `strength`: groups of interacting names,
    by the number of names that interact. `graphs` are bodies in ONNX's text with `{V}` for the type of letter V.
    `aliases` are edges under their old names; ids may use them, but they are not planned. `amended` is the first
    release of the standard's library with this signature, if an older release has another signature under the same
    version. `unused` has the attributes and inputs that the formula need not read, with the reasons. With a `binding`
    the formula is another operator's.
    """

    operator: OperatorVersion
    signature: Signature
    change: str | None
    clauses: Mapping[str, Clause]
    silences: Mapping[str, Silence]
    parameters: Mapping[str, Mapping[str, Value]]
    exclude: tuple[Mapping[str, tuple[str, ...]], ...]
    edges: Mapping[str, Edge]
    operands: Mapping[str, Operand] = field(default_factory=dict)
    types_from: Mapping[str, TypeSource] = field(default_factory=dict)
    same: tuple[tuple[str, ...], ...] = ()
    precision: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    strength: Mapping[int, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    graphs: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, Edge] = field(default_factory=dict)
    amended: str | None = None
    unused: Mapping[str, str] = field(default_factory=dict)
    binding: Binding | None = None

    @functools.cached_property
    def options(self) -> Mapping[str, tuple[str, ...]]:
        """The options of each silence."""
        return {silence.id: silence.options for silence in self.silences.values()}

    @functools.cached_property
    def clause_ids(self) -> frozenset[str]:
        """The ids of the clauses."""
        return frozenset(self.clauses)

    @functools.cached_property
    def type_attributes(self) -> frozenset[str]:
        """The attributes whose values state types."""
        return frozenset(source.attribute for source in self.types_from.values())

    @functools.cached_property
    def bundles(self) -> tuple[Mapping[str, Value], ...]:
        """The levels of parameters that are bundles."""
        levels = (level for some in self.parameters.values() for level in some.values())
        return tuple(level for level in levels if isinstance(level, Mapping))

    @functools.cached_property
    def usual_bundles(self) -> tuple[Mapping[str, Value], ...]:
        """The first level of each bundle except `shapes` and `dims`; it applies if a case does not name the bundle."""
        first = (
            next(iter(some.values()), ()) for name, some in self.parameters.items() if name not in ("shapes", "dims")
        )
        return tuple(level for level in first if isinstance(level, Mapping))

    @functools.cached_property
    def written(self) -> frozenset[str]:
        """The parameters with a level that is neither a word nor a recipe."""
        return frozenset(
            name
            for name, levels in self.parameters.items()
            if any(not isinstance(level, (Word, Recipe)) for level in levels.values())
        )

    @functools.cached_property
    def recipes(self) -> Mapping[str, tuple[Recipe, ...]]:
        """The recipes that operands, levels, bundles and edges have for each input or parameter."""
        by_name: dict[str, list[Recipe]] = {name: list(operand.draws) for name, operand in self.operands.items()}
        edges = [settings for edge in self.edges.values() for settings in (edge.settings, edge.mended or {})]
        of_name = [(name, level) for name, levels in self.parameters.items() for level in levels.values()]
        bundles = [entry for levels in (*self.parameters.values(), *edges) for entry in levels.values()]
        sets = (*edges, *(entry for entry in bundles if isinstance(entry, Mapping)))
        for name, entry in (*of_name, *(pair for entries in sets for pair in entries.items())):
            if isinstance(entry, Recipe):
                by_name.setdefault(name, []).append(entry)
        return {name: tuple(dict.fromkeys(recipes)) for name, recipes in by_name.items()}

    @functools.cached_property
    def _needed(self) -> Mapping[str, Value]:
        needed = (a.name for a in self.signature.attributes if a.required and a.name in self.parameters)
        return {name: next(iter(self.parameters[name].values())) for name in needed}

    def settings_of(self, edge: Edge) -> dict[str, Value]:
        """Return the settings of an edge; a required attribute that it does not name has its first level."""
        return {**self._needed, **edge.settings}

    def budgets(self, types: Sequence[str]) -> dict[str, float]:
        """Return the budget of each primitive, in ulp, for inputs of these types; the first type decides."""
        first = types[0] if types else ""
        own = {name: budget.get(first, budget.get("")) for name, budget in self.precision.items()}
        return {name: ulp for name, ulp in own.items() if ulp is not None}

    def edge(self, id_: str) -> Edge | None:
        """Return the edge with the current or an old name `id_`."""
        return self.edges.get(id_) or self.aliases.get(id_)


@dataclass(frozen=True)
class Spec:
    """One spec file. `family` and `function` are the parts of `family: module.function`; `digest` is of the file."""

    standard: str
    name: str
    domain: str
    family: str
    function: str
    versions: Mapping[Version, VersionSpec]
    graphs: Mapping[str, str]
    document: Document = field(repr=False)

    @property
    def operator(self) -> str:
        """Standard and name, `onnx/ReduceMean`."""
        return f"{self.standard}/{self.name}"

    @property
    def file(self) -> str:
        """The path of the file, as given."""
        return self.document.file

    @property
    def digest(self) -> str:
        """The sha256 of the file's bytes."""
        return self.document.digest

    def version(self, version: Version) -> VersionSpec:
        """Return the spec's content for one version. Raises OpconformError if there is no such version."""
        if version in self.versions:
            return self.versions[version]
        raise OpconformError(f"{self.operator} has no version {version}; it has {', '.join(map(str, self.versions))}")

    def position(self, path: Iterable[Key], key: bool = False) -> Position:
        """Return the position of `path` in the file, or of its nearest existing parent."""
        return self.document.position(path, key)

    def error(self, path: Iterable[Key], message: str, key: bool = False) -> SpecError:
        """Return an error that points at the value at `path` in the file, or at its key."""
        return self.document.error(path, message, key)

    def written_at(self, version: Version, *part: Key) -> tuple[Key, ...]:
        """Return the path of a part of a version's signature, in that version or in the one that it inherits it from.

        `part` is a section and a name, such as "attributes", "axes". If there is no such part, the path is that of its
        nearest existing parent.
        """
        order = list(self.versions)
        section = part[0]
        for earlier in reversed(order[: order.index(version) + 1]):
            path: tuple[Key, ...] = ("versions", earlier, *part)
            if self.document.has(path):
                return path
            section_path = ("versions", earlier, section)
            if self.document.has(section_path) and not self.document.has((*section_path, "...")):
                return section_path
        return ("versions", version)


_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_SIGNED = ("int8", "int16", "int32", "int64")
_IEEE = ("float16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
_FLOAT8 = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
_BITS4 = ("uint4", "int4")
_TENSORS_5 = (*_UNSIGNED, *_SIGNED, *_IEEE, "string", "bool", *_COMPLEX)
_TENSORS_13 = (*_TENSORS_5, "bfloat16")
_TENSORS_19 = (*_TENSORS_13, *_FLOAT8)
_TENSORS_21 = (*_TENSORS_19, *_BITS4)

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "unsigned": _UNSIGNED,
        "signed": _SIGNED,
        "integers": (*_UNSIGNED, *_SIGNED),
        "wide-integers": ("uint32", "uint64", "int32", "int64"),
        "ieee": _IEEE,
        "floats": ("bfloat16", *_IEEE),
        "complex": _COMPLEX,
        "float8": _FLOAT8,
        "bits4": _BITS4,
        "bits2": ("uint2", "int2"),
        "tensors-5": _TENSORS_5,
        "tensors-13": _TENSORS_13,
        "tensors-19": _TENSORS_19,
        "tensors-21": _TENSORS_21,
        "tensors-23": (*_TENSORS_21, "float4e2m1"),
    }
)
"""Group to element types. `tensors-N` are all types that ONNX has since opset N."""

ELEMENT_TYPES: frozenset[str] = frozenset(
    (*GROUPS["tensors-23"], *GROUPS["bits2"], "float8e8m0", "float6e2m3", "float6e3m2")
)

WRAPPERS = ("seq", "optional", "sparse")
_WRAPPED = re.compile(rf"({'|'.join(WRAPPERS)})\((.+)\)")
_HELD = re.compile(r"held\((.+)\)")
_MAP = re.compile(r"map\((\w+), ?(\w+)\)")


def unwrap(word: str) -> tuple[str, str] | None:
    """Return `seq` and `T` for `seq(T)`, or None for a plain type."""
    match = _WRAPPED.fullmatch(word)
    return (match[1], match[2]) if match else None


def holder(word: str) -> str | None:
    """Return `T` for `held(T)`, None for anything else."""
    match = _HELD.fullmatch(word)
    return match[1] if match else None


def held(type_: str) -> str:
    """Return the type in an optional, or of a map's values; any other type is returned unchanged."""
    if match := _MAP.fullmatch(type_):
        return match[2]
    wrap, inner = unwrap(type_) or ("", type_)
    return inner if wrap == "optional" else type_


def expand(word: str) -> tuple[str, ...]:
    """Return the types of a type or group: `ieee`, `seq(ieee)`, `float32`, `map(string,float32)`.

    Raises OpconformError if it is neither.
    """
    group = _types(word)
    if group:
        return group
    if "map(" in word:
        raise OpconformError(f'{word!r} is no map: write "map(string,float32)", quoted since it holds a comma')
    inner = word
    while wrapped := unwrap(inner):
        inner = wrapped[1]
    hint = did_you_mean(inner, sorted({*ELEMENT_TYPES, *GROUPS}))
    raise OpconformError(f"{inner!r} is no element type and no group of them{hint}")


@functools.lru_cache(maxsize=4096)
def _types(word: str) -> tuple[str, ...]:
    """Return the types of a type or group, empty if the word is neither."""
    if wrapped := unwrap(word):
        return tuple(f"{wrapped[0]}({inner})" for inner in _types(wrapped[1]))
    if word in GROUPS:
        return GROUPS[word]
    entries = _MAP.fullmatch(word)
    if entries and {entries[1], entries[2]} <= ELEMENT_TYPES:
        return (f"map({entries[1]},{entries[2]})",)
    return (word,) if word in ELEMENT_TYPES else ()


def is_type_word(word: str) -> bool:
    """Whether `expand` accepts the word."""
    return bool(_types(word))


def compress(types: Iterable[str]) -> tuple[str, ...]:
    """Return the shortest list of groups and types for exactly these types: groups first, largest first."""
    left = dict.fromkeys(types)
    words: list[str] = []
    for wrap in ("{}", "seq({})", "optional({})", "optional(seq({}))"):
        for group in sorted(GROUPS, key=lambda name: -len(GROUPS[name])):
            members = [wrap.format(member) for member in GROUPS[group]]
            if len(members) > 1 and left.keys() >= set(members):
                words.append(wrap.format(group))
                left = {kept: None for kept in left if kept not in members}
    return (*words, *left)

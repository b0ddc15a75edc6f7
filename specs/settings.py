"""Checks the settings of a spec file, in levels, conditions and edges: known names, and values that they accept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ..cases.errors import OpconformError
from . import expressions
from .expressions import is_expression, recipe
from .model import DELIVERIES, DIMS, MEMORY, Edge, Port, Recipe, Signature, Value, Version, Vocabulary, Word, expand
from .parameters import (
    SETTING_WORDS,
    TENSOR_KINDS,
    Level,
    Levels,
    Misfit,
    Names,
    Parameter,
    Span,
    is_literal,
    level_applies,
    port_of,
    settled,
    text_of,
    typed,
)
from .reading import Key, Keys, Problems
from .resolve import scalar_kind
from .schema import EdgeText, SpecText

SAME = "same"
"""The shape function that every family has."""


@dataclass(frozen=True)
class Context:
    """The context of a file's checks; `vocabulary` is None if the family's words are not known.

    `parameters` are as declared, `levels` are by version; `bound` are the symbols that levels of `shapes` bind.
    """

    text: SpecText
    names: Names
    parameters: Mapping[str, Parameter]
    levels: Levels
    bound: frozenset[str]
    vocabulary: Vocabulary | None
    problems: Problems

    def is_shared(self, *path: Key) -> bool:
        """Whether an entry comes from a family."""
        return self.problems.document.origin(path)[0] is not self.problems.document

    @functools.cached_property
    def symbols(self) -> frozenset[str]:
        """The symbols that expressions may use: dimensions, and attributes, inputs and parameters with numbers."""
        names = self.names
        attributes = {a.name for s in names.signatures.values() for a in s.attributes if scalar_kind(a.kind) is int}
        of_inputs = {f"{name}.{part}" for name in names.inputs for part in "dr"}
        return names.symbols.union(attributes, names.inputs, of_inputs, {"d", "r", "n"})

    @property
    def derived(self) -> frozenset[str]:
        """The attributes whose values state types."""
        return frozenset(source.attribute for sources in self.text.types_from.values() for source in sources)


def check_name(context: Context, name: str, path: Keys) -> bool:
    """Report an unknown name; return whether it is known."""
    if context.names.roles(name):
        return True
    if port := port_of(name):
        what = f"{name!r}: {port!r} is no input or output with a type letter"
        ports = sorted({*context.names.inputs, *context.names.outputs})
        context.problems.unknown(path, what, port, ports, key=True)
    else:
        what = f"{name!r} is no attribute, input, type letter or parameter of the family"
        context.problems.unknown(path, what, name, context.names.known(), key=True)
    return False


def check_types(context: Context, words: object, path: Keys) -> bool:
    """Report words that are not types; return whether all are."""
    if not isinstance(words, list):
        return check_type(context, words, path)
    right = [check_type(context, word, (*path, index)) for index, word in enumerate(words)]
    return all(right)


def check_type(context: Context, word: object, path: Keys) -> bool:
    """Report a word that is neither a type nor a group of types; return whether it is one."""
    if isinstance(word, str):
        return context.problems.check(path, lambda: expand(word))
    context.problems.add(path, f"expected an element type or a group of them; read {word!r}")
    return False


def check_value(context: Context, name: str, raw: Any, path: Keys) -> None:
    """Report a level or setting that `name`, which is not a type letter, does not accept."""
    wrapped = is_literal(raw)
    value, path = (raw["value"], (*path, "value")) if wrapped else (raw, path)
    if value is None:
        context.problems.add(path, "null is not a value; write absent if nothing is given")
        return
    try:
        setting = settled(value, words=not (wrapped and isinstance(value, str)), name=name)
    except OpconformError as error:  # not a recipe
        context.problems.add(path, str(error))
        return
    roles = context.names.roles(name)
    if isinstance(setting, Word):
        _check_word(context, name, setting, path)
    elif isinstance(setting, Recipe):
        check_draw(context, name, setting, path)
    elif check := _COMMON.get(name) if "common" in roles else None:
        check(context, value, path)
    elif isinstance(value, dict) and not context.names.kinds(name) & TENSOR_KINDS:
        _check_bundle(context, name, value, path)
    elif "delivery" in roles:
        check = _one_of("how an input comes", _deliveries(context, name)) if name.endswith("-from") else _check_rank
        check(context, value, path)
    elif not roles.isdisjoint(("attribute", "input")):
        _check_kind(context, name, setting, path, wrapped=wrapped)
    elif "symbol" in roles and not _are_numbers(value):
        context.problems.add(path, f"{name} is a symbol of shapes: a whole number, or a list of them; read {value!r}")


def check_draw(context: Context, name: str, drawn: Recipe, path: Keys) -> None:
    """Report a recipe that is unknown, or is used where nothing is drawn."""
    if "input" not in context.names.roles(name):
        context.problems.add(path, f"{name} is no input: only the elements of an input are drawn")
    check_word_of(context, "recipe", drawn.name, path)


def conditions(raw: object) -> tuple[bool, list[Any]]:
    """Return whether a condition is negated, and its alternatives, for `x`, `[x, y]`, `{not: x}` or `{not: [x, y]}`."""
    negated = isinstance(raw, dict) and raw.keys() == {"not"}
    inner = raw["not"] if negated and isinstance(raw, dict) else raw
    return negated, inner if isinstance(inner, list) else [inner]


def named_level(context: Context, name: str, value: object) -> Level | None:
    """Return the level of a parameter that a value in a condition names."""
    parameter = context.parameters.get(name)
    if parameter is None or isinstance(value, (list, dict)) or name == "shapes":
        return None
    return next((level for level in parameter.levels if level.name == text_of(value)), None)


def check_recipe(context: Context, what: str, text: str, path: Keys) -> Recipe | None:
    """Return a function with its arguments; report one that is malformed or unknown."""
    if not context.problems.check(path, lambda: recipe(text)):
        return None
    parsed = recipe(text)
    if (what, parsed.name) != ("shape", SAME):
        check_word_of(context, what, parsed.name, path)
    return parsed


_KNOWN_BY: Mapping[str, str] = MappingProxyType(
    {
        "argument": "arguments",
        "domain": "domains",
        "primitive": "precision",
        "recipe": "draws",
        "shape": "shapes",
    }
)


def check_word_of(context: Context, what: str, word: str, path: Keys, key: bool = False) -> None:
    """Report a word that the family's code does not know, if it lists known words."""
    known = getattr(context.vocabulary, _KNOWN_BY[what]) if context.vocabulary is not None else None
    if known is not None and word not in known:
        context.problems.unknown(path, f"no {what} is called {word!r}", word, sorted(known), key)


def _check_word(context: Context, name: str, word: Word, path: Keys) -> None:
    roles = context.names.roles(name)
    if word is Word.OMITTED and roles == {"attribute"}:
        context.problems.add(path, f"{name} is an attribute: it is absent, only an input can be omitted")
    if word is Word.GIVEN and roles == {"attribute"} and name not in context.derived:
        message = f"given: the value of {name} is unknown: write a value or an expression, or add types-from"
        context.problems.add(path, message)


def _check_bundle(context: Context, name: str, bundle: dict[Any, Any], path: Keys) -> None:
    if not context.names.roles(name).isdisjoint(("attribute", "input", "symbol")):
        message = f"{name} is an attribute, an input or a symbol: a bundle has a name of its own; read a mapping"
        context.problems.add(path, message)
        return
    for inner, value in bundle.items():
        at = (*path, inner)
        if context.names.is_type(str(inner)):
            context.problems.add(at, f"{inner!r} is a type: a bundle sets attributes, inputs and parameters", key=True)
        elif check_name(context, str(inner), at):
            check_value(context, str(inner), value, at)


def _check_shapes(context: Context, value: object, path: Keys) -> None:
    """Check a level of `shapes`: a list of dimensions, or of shapes, or a mapping of inputs and symbols to them."""
    if isinstance(value, dict):
        known = {*context.names.inputs, *context.names.symbols}
        for name, shape in value.items():
            if name not in known:
                what = f"{name!r} is no input of any version, and no symbol of a shape"
                context.problems.unknown((*path, name), what, name, sorted(known), key=True)
            if shape != "absent" or not _is_optional(context, name):
                _check_shapes(context, shape, (*path, name))
    elif isinstance(value, list):
        if any(isinstance(part, list) for part in value) and not _takes_shapes(context):
            message = "a list of shapes is for a variadic input, or a sequence: name the inputs, {A: [3], B: [2]}"
            context.problems.add(path, message)
        check_numbers(context, value, path)
    elif type(value) is not int or value < 0:
        context.problems.add(path, f"a shape is a list of dimensions; read {value!r}")


def _takes_shapes(context: Context) -> bool:
    return any(port.is_variadic or "(" in types for port, types in _typed_inputs(context))


def _is_optional(context: Context, name: str) -> bool:
    """Return whether an input is of an optional type in some version, which `absent` leaves empty."""
    return any(port.name == name and "optional(" in types for port, types in _typed_inputs(context))


def _typed_inputs(context: Context) -> Iterator[tuple[Port, str]]:
    """Yield the inputs of all versions, each with the words of its type and of the types that it may have."""
    for signature in context.names.signatures.values():
        for port in signature.inputs:
            yield port, " ".join((port.type, *signature.types_of(port)))


def check_numbers(context: Context, value: object, path: Keys) -> None:
    """Check the expressions in nested lists; other values pass."""
    for index, part in enumerate(value if isinstance(value, (list, tuple)) else ()):
        if isinstance(part, str):
            check_expression(context, part, (*path, index))
        else:
            check_numbers(context, part, (*path, index))


def check_expression(context: Context, text: str, path: Keys) -> None:
    """Check the syntax of an expression, and that its symbols are bound."""
    if context.problems.check(path, lambda: expressions.names(text)):
        for name in sorted(expressions.names(text) - context.symbols):
            context.problems.unknown(path, f"{text!r}: nothing binds {name!r}", name, sorted(context.symbols))


def _are_numbers(value: object) -> bool:
    parts = value if isinstance(value, list) else [value]
    return all(type(part) is int or (isinstance(part, str) and expressions.is_expression(part)) for part in parts)


def _check_kind(context: Context, name: str, setting: Any, path: Keys, *, wrapped: bool) -> None:
    """Check the value of an attribute or input against the versions that have it as an attribute or as an input."""
    if "input" in context.names.kinds(name):
        if not (context.names.holds_text(name) or wrapped):
            _check_written(context, setting, path)
        return
    wrong: list[Misfit] = []
    signatures = [s for s in context.names.signatures.values() if s.attribute(name)]
    for signature in signatures:
        try:
            typed(name, setting, signature)
        except Misfit as error:
            wrong.append(error)
    if len(wrong) == len(signatures):
        context.problems.add((*path, *wrong[0].at), str(wrong[0]))
    elif isinstance(setting, str) and context.names.kinds(name) & {"int", "s64"}:
        check_expression(context, setting, path)
    elif not context.names.holds_text(name):
        check_numbers(context, setting, path)
    if context.names.kinds(name) == {"graph"} and context.text.graphs:
        _check_around(context, setting, path)


def _check_written(context: Context, setting: object, path: Keys) -> None:
    """Check the written elements of an input that has no text: numbers and expressions."""
    if isinstance(setting, str) and not expressions.is_expression(setting):
        message = f"{setting!r} is no number and no expression; write {{draw: {setting}}} for a recipe"
        context.problems.add(path, message)
    elif isinstance(setting, str):
        check_expression(context, setting, path)
    check_numbers(context, setting, path)


def check_fill(context: Context, value: object, path: Keys) -> None:
    """Report a fill recipe that the family does not know."""
    if not isinstance(value, str) or context.vocabulary is None:
        return
    fill = value.partition("(")[0]
    if fill not in context.vocabulary.fills:
        known = sorted(context.vocabulary.fills)
        context.problems.unknown(path, f"no fill recipe is called {fill!r}", fill, known)


def _check_outputs(context: Context, value: object, path: Keys) -> None:
    outputs = context.names.outputs
    if type(value) is int and value >= 0:
        if not any(p.is_variadic for s in context.names.signatures.values() for p in s.outputs):
            context.problems.add(path, f"{value} outputs: no output is variadic, so they are a list of names")
        return
    if not isinstance(value, list):
        context.problems.add(path, f"outputs are a list of names, or the number of a variadic output; read {value!r}")
        return
    for index, name in enumerate(value):
        if name not in outputs and name != Word.OMITTED.value:
            context.problems.unknown((*path, index), f"{name!r} is no output of any version", name, outputs)


def _check_unknown(context: Context, value: object, path: Keys) -> None:
    if not isinstance(value, str):
        context.problems.add(path, f"unknown is the name of an attribute that the version lacks; read {value!r}")


def _deliveries(context: Context, name: str) -> tuple[str, ...]:
    """Return the possible deliveries of an input, including names of earlier inputs, or its own if variadic."""
    deliveries: dict[str, None] = dict.fromkeys(DELIVERIES)
    for signature in context.names.signatures.values():
        if (port := signature.input(name.removesuffix("-from"))) is not None:
            earlier = signature.inputs[: signature.inputs.index(port) + port.is_variadic]
            deliveries |= dict.fromkeys(input_.name for input_ in earlier)
    return tuple(deliveries)


def _one_of(what: str, known: tuple[str | int, ...]) -> Callable[[Context, Any, Keys], None]:
    def check(context: Context, value: object, path: Keys) -> None:
        if str(value) not in map(str, known) or isinstance(value, bool):
            context.problems.add(path, f"{what}: {' or '.join(map(str, known))}; read {value!r}")

    return check


_check_rank = _one_of("the rank of what is written", (0, 1, 2))


def _check_around(context: Context, value: object, path: Keys) -> None:
    graphs = context.text.graphs
    if value not in graphs:
        context.problems.unknown(path, f"no graph is called {value!r}", str(value), sorted(graphs))


def _check_dims(context: Context, value: object, path: Keys) -> None:
    levels = DIMS if context.text.operator.startswith("openvino/") else DIMS[:2]
    _one_of("dims are", levels)(context, value, path)


def _check_memory(context: Context, value: object, path: Keys) -> None:
    levels = MEMORY if context.text.operator.startswith("onednn/") else MEMORY[:1]
    _one_of("memory is", levels)(context, value, path)


_COMMON: Mapping[str, Callable[[Context, Any, Keys], None]] = MappingProxyType(
    {
        "fill": check_fill,
        "opset": _one_of("opset is", ("first", "last")),
        "outputs": _check_outputs,
        "unknown": _check_unknown,
        "around": _check_around,
        "shapes": _check_shapes,
        "dims": _check_dims,
        "memory": _check_memory,
        "values-from": _one_of("how an input comes", DELIVERIES),
    }
)


def resolve_edge(id_: str, context: Context, version: Version, known: frozenset[str]) -> Edge | None:
    """Return the edge in one version; None if it does not apply.

    An edge applies if its span covers the version and the version has every name, level and type that it sets. Its
    `tests` are limited to the clauses and silences that are `known` in the version.
    """
    text, signature = context.text.edges[id_], context.names.signatures[version]
    if not Span.of(text).covers(version, context.names):
        return None
    mended = None if text.mended is None else _settings(text.mended, context, version, ("edges", id_, "mended"))
    settings = _settings(text.settings, context, version, ("edges", id_, "with"))
    if settings is None or (text.mended is not None and mended is None):
        return None
    unknown = settings.get("unknown")
    if not _choose_types(settings, mended, signature, context.text.same) or (
        isinstance(unknown, str) and signature.attribute(unknown)
    ):
        return None
    tests = tuple(t for t in text.tests if t in known)
    return Edge(id_, settings, tests, text.expect == "rejected", mended)


def aliases(text: SpecText, edges: Mapping[str, Edge], signature: Signature) -> dict[str, Edge]:
    """Return the edges of a version under their old names, for the types to which these names applied."""
    former = {}
    for id_, edge in edges.items():
        for name, words in text.edges[id_].formerly.items():
            types = {t for word in words for t in expand(word)}
            named: Mapping[str, Any] = {x: listed for x, listed in edge.settings.items() if x in signature.types}
            kept = {x: tuple(t for t in listed if t in types or not types) for x, listed in named.items()}
            if all(kept.values()):
                former[name] = replace(edge, id=name, settings={**edge.settings, **kept})
    return former


def check_edges(context: Context) -> None:
    """Check the settings and tests of edges; mistakes are added to the context's problems."""
    text = context.text
    for id_, edge in text.edges.items():
        path: Keys = ("edges", id_)
        _check_settings(context, edge.settings, (*path, "with"))
        for name, words in edge.formerly.items():
            check_types(context, list(words), (*path, "also-known-as", name))
        if edge.mended is not None:
            _check_settings(context, edge.mended, (*path, "mended"))
            _check_mended_types(context, edge.mended, (*path, "mended"))
        _check_rejection(context.problems, edge, path)
        _check_tests(context.problems, text, edge, path)


def check_reach(context: Context, edges_by_version: Mapping[Version, Mapping[str, Edge]]) -> None:
    """Report edges that run in no version, or in versions without their clauses; a family's edges may do so."""
    problems = context.problems
    for id_, edge in context.text.edges.items():
        if context.is_shared("edges", id_):
            continue
        runs = {version: edges[id_] for version, edges in edges_by_version.items() if id_ in edges}
        if not runs:
            message = "this edge runs in no version: none has all names, levels and types that it sets"
            problems.add(("edges", id_), message, key=True)
        lost = [str(version) for version, run in runs.items() if not run.tests]
        if lost:
            message = (
                f"{' and '.join(edge.tests)} does not apply to version {', '.join(lost)}, where this edge runs: "
                "give the edge the same since and before"
            )
            problems.add(("edges", id_, "tests"), message)


def _settings(raw: Mapping[str, Any], context: Context, version: Version, path: Keys) -> dict[str, Value] | None:
    names, settings = context.names, dict[str, Value]()
    for name, value in raw.items():
        if not names.applies(name, version):
            return None
        if names.is_type(name):
            words = value if isinstance(value, list) else [value]
            settings[_type_key(name, names, version)] = tuple(t for word in words for t in expand(word))
            continue
        setting = _setting(name, value, context, version)
        if setting is None:
            return None
        try:
            settings[name] = typed(name, setting, names.signatures[version])
        except Misfit as error:
            context.problems.add((*path, name, *error.at), str(error))
            return None
    return settings


def _setting(name: str, raw: Any, context: Context, version: Version) -> Value | None:
    literal = is_literal(raw)
    value = raw["value"] if literal else raw
    parameter = context.parameters.get(name)
    if not literal and isinstance(value, str) and parameter is not None:
        levels = context.levels[version][name]
        if value in levels or _names_level(parameter, value):
            return levels.get(value)
        if _is_drawn(parameter) and value not in SETTING_WORDS:
            return recipe(value)
    setting = settled(value, words=not (literal and isinstance(value, str)), name=name)
    return setting if level_applies(name, setting, version, context.names) else None


def _is_drawn(parameter: Parameter | None) -> bool:
    return parameter is not None and any(isinstance(level.value, Recipe) for level in parameter.levels)


def _type_key(name: str, names: Names, version: Version) -> str:
    """Return the letter, or `type(port)` if the types are for the elements of a variadic port."""
    port = port_of(name)
    input_ = names.signatures[version].input(port) if port else None
    return name if input_ and input_.is_variadic else names.canonical(name, version)


def _choose_types(
    settings: dict[str, Value],
    mended: Mapping[str, Value] | None,
    signature: Signature,
    same: Sequence[Sequence[str]],
) -> bool:
    """Keep the types that make sense in the version; return whether each letter has one left.

    These are the types of its constraint. If the mended program has another type, the type is the mistake, and the
    types outside the constraint are kept; unless a dependent letter, or one that varies together with it, is set too,
    since then the pair of types is the mistake.
    """
    types = signature.types
    pair = not signature.ties.keys().isdisjoint(settings)
    known = {
        letter
        for letter, own in types.items()
        if isinstance(value := settings.get(letter), tuple) and set(value) <= set(own)
    }
    pair = pair or any(set(group) <= known for group in same)
    for letter in settings.keys() & types.keys():
        wanted = settings[letter]
        if not isinstance(wanted, tuple):
            continue
        is_wrong = mended is not None and letter in mended and not pair
        settings[letter] = tuple(t for t in wanted if (t in types[letter]) != is_wrong)
        if not settings[letter]:
            return False
    return all(
        not isinstance(value, tuple) or set(value) <= set(types[letter])
        for letter, value in (mended or {}).items()
        if letter in types
    )


def _check_settings(context: Context, raw: Mapping[str, Any], path: Keys) -> None:
    for name, value in raw.items():
        at, parameter = (*path, name), context.parameters.get(name)
        if not check_name(context, name, at):
            continue
        if context.names.is_type(name):
            check_types(context, value, at)
        elif isinstance(value, str) and parameter is not None and name != "fill" and value not in SETTING_WORDS:
            _check_level(context, parameter, value, at)
        elif not _names_level(parameter, value):
            check_value(context, name, value, at)


def _names_level(parameter: Parameter | None, value: object) -> bool:
    return parameter is not None and any(level.name == value for level in parameter.levels)


def _check_level(context: Context, parameter: Parameter, value: str, path: Keys) -> None:
    fills = context.vocabulary.fills if context.vocabulary else frozenset()
    if _names_level(parameter, value) or value.partition("(")[0] in fills:
        return
    if _is_drawn(parameter) and context.problems.check(path, lambda: recipe(value)):
        check_draw(context, parameter.name, recipe(value), path)
        return
    name = parameter.name
    has_numbers = context.names.roles(name) & {"attribute", "input"} and not context.names.holds_text(name)
    if has_numbers and is_expression(value) and not value.isidentifier():
        return
    what = f"{value!r} is no level of {parameter.name}; for the text itself write {{value: {value}}}"
    context.problems.unknown(path, what, value, [level.name for level in parameter.levels])


def _check_mended_types(context: Context, mended: Mapping[str, Any], path: Keys) -> None:
    for name, value in mended.items():
        if not context.names.is_type(name) or not check_types(context, value, (*path, name)):
            continue
        words = value if isinstance(value, list) else [value]
        if len({t for word in words for t in expand(word)}) != 1:
            context.problems.add((*path, name), f"a mended program has one type; read {value!r}")


def _check_rejection(problems: Problems, edge: EdgeText, path: Keys) -> None:
    if edge.expect == "rejected" and edge.mended is None:
        message = (
            "an edge that expects rejection needs `mended`: the settings that make it valid, as in {axes: [r - 1]}"
        )
        problems.add((*path, "expect"), message, key=True)
    if edge.expect is None and edge.mended is not None:
        problems.add((*path, "mended"), "mended is for edges with `expect: rejected`", key=True)
    if edge.mended is not None and all(edge.settings.get(n) == value for n, value in edge.mended.items()):
        problems.add((*path, "mended"), "mended changes nothing: the program stays invalid")


def _check_tests(problems: Problems, text: SpecText, edge: EdgeText, path: Keys) -> None:
    known = (*text.clauses, *text.silences)
    for index, id_ in enumerate(edge.tests):
        at = (*path, "tests", index)
        if id_ not in known:
            problems.unknown(at, f"no clause or silence is called {id_!r}", id_, known)
        elif edge.expect == "rejected" and id_ in text.silences:
            problems.add(at, f"{id_!r} is a silence, which cannot demand rejection: name a clause")

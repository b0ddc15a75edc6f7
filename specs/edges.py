"""Edges: single cases that a spec file writes out; their checks, and what they are in each version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .expressions import is_expression, recipe
from .groups import expand
from .model import Edge, Recipe, Signature, Value, Version
from .names import Names, Span, port_of
from .parameters import SETTING_WORDS, Misfit, Parameter, is_literal, level_applies, settled, typed
from .reading import Keys, Problems
from .schema import EdgeText, SpecText
from .settings import Context, check_draw, check_name, check_types, check_value


def resolve_edge(id_: str, context: Context, version: Version, known: frozenset[str]) -> Edge | None:
    """Return the edge in one version; None where it does not apply.

    An edge applies where its span holds and the version has every name, level and type that it sets. Of what it tests
    the clauses and silences that are `known` in the version are kept.
    """
    text, signature = context.text.edges[id_], context.names.signatures[version]
    if not Span.of(text).covers(version, context.names):
        return None
    mended = None if text.mended is None else _settings(text.mended, context, version, ("edges", id_, "mended"))
    settings = _settings(text.settings, context, version, ("edges", id_, "with"))
    if settings is None or (text.mended is not None and mended is None):
        return None
    unknown = settings.get("unknown")
    if not _choose_types(settings, mended, signature) or (isinstance(unknown, str) and signature.attribute(unknown)):
        return None
    tests = tuple(t for t in text.tests if t in known)
    return Edge(id_, settings, tests, text.expect == "rejected", mended)


def aliases(text: SpecText, found: Mapping[str, Edge], signature: Signature) -> dict[str, Edge]:
    """Return the edges of a version under the names that they had, for the types for which they had them."""
    former = {}
    for id_, edge in found.items():
        for name, words in text.edges[id_].formerly.items():
            types = {t for word in words for t in expand(word)}
            named: Mapping[str, Any] = {x: listed for x, listed in edge.settings.items() if x in signature.types}
            kept = {x: tuple(t for t in listed if t in types or not types) for x, listed in named.items()}
            if all(kept.values()):
                former[name] = replace(edge, id=name, settings={**edge.settings, **kept})
    return former


def check_edges(context: Context) -> None:
    """Check what edges set and what they test; mistakes go to the context's problems."""
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


def check_reach(context: Context, found: Mapping[Version, Mapping[str, Edge]]) -> None:
    """Note edges that run in no version, and those whose clauses do not apply where they run; a family's may."""
    problems = context.problems
    for id_, edge in context.text.edges.items():
        if context.is_shared("edges", id_):
            continue
        runs = {version: edges[id_] for version, edges in found.items() if id_ in edges}
        if not runs:
            message = "this edge runs in no version: none has all names, levels and types that it sets"
            problems.add(("edges", id_), message, key=True)
        lost = [str(version) for version, one in runs.items() if not one.tests]
        if lost:
            message = (
                f"{' and '.join(edge.tests)} does not apply to version {', '.join(lost)}, where this edge runs: "
                "give the edge the same since and before"
            )
            problems.add(("edges", id_, "tests"), message)


def _settings(raw: Mapping[str, Any], context: Context, version: Version, path: Keys) -> dict[str, Value] | None:
    names, found = context.names, dict[str, Value]()
    for name, value in raw.items():
        if not names.applies(name, version):
            return None
        if names.is_type(name):
            words = value if isinstance(value, list) else [value]
            found[_type_key(name, names, version)] = tuple(t for word in words for t in expand(word))
            continue
        setting = _setting(name, value, context, version)
        if setting is None:
            return None
        try:
            found[name] = typed(name, setting, names.signatures[version])
        except Misfit as error:
            context.problems.add((*path, name, *error.at), str(error))
            return None
    return found


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
    found = settled(value, words=not (literal and isinstance(value, str)), name=name)
    return found if level_applies(name, found, version, context.names) else None


def _is_drawn(parameter: Parameter | None) -> bool:
    return parameter is not None and any(isinstance(level.value, Recipe) for level in parameter.levels)


def _type_key(name: str, names: Names, version: Version) -> str:
    """Return the letter, or `type(port)` where the types go to the elements of a variadic port."""
    port = port_of(name)
    found = names.signatures[version].input(port) if port else None
    return name if found and found.is_variadic else names.canonical(name, version)


def _choose_types(settings: dict[str, Value], mended: Mapping[str, Value] | None, signature: Signature) -> bool:
    """Keep the types that make sense in the version; return whether each letter has one left.

    That is: those of its constraint. Where the mended program has another type, the type is what is wrong: those
    outside the constraint; unless a letter that follows another one is set beside it, as their pair is wrong then.
    """
    types, pair = signature.types, not signature.ties.keys().isdisjoint(settings)
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
    scalar = context.names.roles(parameter.name) & {"attribute", "input"} and not context.names.holds_text(
        parameter.name
    )
    if scalar and is_expression(value) and not value.isidentifier():
        return  # an expression
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

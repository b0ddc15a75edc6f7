"""Edges: single cases that a spec file writes out; their checks, and what they are in each version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .groups import expand
from .model import Edge, Value, Version
from .names import Names, port_of
from .parameters import SETTING_WORDS, Parameter, bundle_applies, literal_of, settled, span_of
from .problems import Problems
from .reading import Keys
from .settings import Context, check_name, check_types, check_value
from .structure import EdgeText, SpecText


@dataclass(frozen=True, slots=True)
class Place:
    """A version for which edges are resolved, with what they may name.

    `levels` are those of the version, by the parameter's name as declared; `known` are its clauses and silences.
    """

    version: Version
    names: Names
    parameters: Mapping[str, Parameter]
    levels: Mapping[str, Mapping[str, Value]]
    known: frozenset[str]


def resolve_edge(id_: str, text: EdgeText, place: Place) -> Edge | None:
    """Return the edge in one version; None where it does not apply.

    An edge applies where its span holds and the version has every name, level and type that it sets. Of what it tests
    the version's clauses and silences are kept.
    """
    if not span_of(text).covers(place.version, place.names.signatures):
        return None
    mended = None if text.mended is None else _settings(text.mended, place)
    settings = _settings(text.settings, place)
    if settings is None or (text.mended is not None and mended is None):
        return None
    if not _choose_types(settings, mended, place) or _has_attribute(settings.get("unknown"), place):
        return None
    tests = tuple(t for t in text.tests if t in place.known)
    return Edge(id_, settings, tests, text.expect == "rejected", mended, text.runs)


def check_edges(context: Context, text: SpecText, parameters: Mapping[str, Parameter]) -> None:
    """Check what edges set and what they test; mistakes go to the context's problems."""
    for id_, edge in text.edges.items():
        path: Keys = ("edges", id_)
        _check_settings(context, edge.settings, (*path, "with"), parameters)
        if edge.mended is not None:
            _check_settings(context, edge.mended, (*path, "mended"), parameters)
            _check_mended_types(context, edge.mended, (*path, "mended"))
        _check_rejection(context.problems, edge, path)
        _check_tests(context.problems, text, edge, path)


def check_reach(problems: Problems, text: SpecText, found: Mapping[Version, Mapping[str, Edge]]) -> None:
    """Note edges that run in no version, and those whose clauses do not apply where they run."""
    for id_, edge in text.edges.items():
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


def _settings(raw: Mapping[str, Any], place: Place) -> dict[str, Value] | None:
    found: dict[str, Value] = {}
    for name, value in raw.items():
        if not place.names.applies(name, place.version):
            return None
        if place.names.is_type(name):
            words = value if isinstance(value, list) else [value]
            found[_type_key(name, place)] = tuple(t for word in words for t in expand(word))
            continue
        setting = _setting(name, value, place)
        if setting is None:
            return None
        found[name] = setting
    return found


def _setting(name: str, raw: Any, place: Place) -> Value | None:
    wrapped, value = literal_of(raw)
    if not wrapped and isinstance(value, str) and name in place.parameters:
        levels = place.levels[name]
        if value in levels or _names_level(place.parameters[name], value):
            return levels.get(value)
    found = settled(value, words=not (wrapped and isinstance(value, str)), name=name)
    return found if bundle_applies(name, found, place.version, place.names) else None


def _type_key(name: str, place: Place) -> str:
    """Return the letter, or `type(port)` where the types go to the elements of a variadic port."""
    port = port_of(name)
    found = place.names.signatures[place.version].input(port) if port else None
    return name if found and found.is_variadic else place.names.canonical(name, place.version)


def _choose_types(settings: dict[str, Value], mended: Mapping[str, Value] | None, place: Place) -> bool:
    """Keep the types that make sense in the version; return whether each letter has one left.

    That is: those of its constraint. Where the mended program has another type, the type is what is wrong: those
    outside the constraint.
    """
    types = place.names.signatures[place.version].types
    for letter in settings.keys() & types.keys():
        wanted = settings[letter]
        if not isinstance(wanted, tuple):
            continue
        is_wrong = mended is not None and letter in mended
        settings[letter] = tuple(t for t in wanted if (t in types[letter]) != is_wrong)
        if not settings[letter]:
            return False
    return all(
        not isinstance(value, tuple) or set(value) <= set(types[letter])
        for letter, value in (mended or {}).items()
        if letter in types
    )


def _has_attribute(name: Value | None, place: Place) -> bool:
    return isinstance(name, str) and place.names.signatures[place.version].attribute(name) is not None


def _check_settings(context: Context, raw: Mapping[str, Any], path: Keys, parameters: Mapping[str, Parameter]) -> None:
    for name, value in raw.items():
        at = (*path, name)
        if not check_name(context, name, at):
            continue
        if context.names.is_type(name):
            check_types(context, value, at)
        elif isinstance(value, str) and name in parameters and name != "fill" and value not in SETTING_WORDS:
            _check_level(context, parameters[name], value, at)
        elif not _names_level(parameters.get(name), value):
            check_value(context, name, value, at)


def _names_level(parameter: Parameter | None, value: object) -> bool:
    return parameter is not None and any(level.name == value for level in parameter.levels)


def _check_level(context: Context, parameter: Parameter, value: str, path: Keys) -> None:
    fills = context.vocabulary.fills if context.vocabulary else frozenset()
    if _names_level(parameter, value) or value.partition("(")[0] in fills:
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
    listed = isinstance(problems.document.value["edges"][path[1]]["tests"], list)
    for index, id_ in enumerate(edge.tests):
        at = (*path, "tests", index) if listed else (*path, "tests")
        if id_ not in known:
            problems.unknown(at, f"no clause or silence is called {id_!r}", id_, known)
        elif edge.expect == "rejected" and id_ in text.silences:
            problems.add(at, f"{id_!r} is a silence, which cannot demand rejection: name a clause")

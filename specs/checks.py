"""Cross-references of a spec file: every name, version, level and id that it uses exists, and says something."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import expressions
from .edges import check_edges
from .groups import GROUPS, expand
from .model import Version, Vocabulary, Word
from .names import Names, signature_parts
from .parameters import Level, Levels, Parameter, literal_of, text_of
from .problems import Problems
from .reading import Keys
from .settings import Context, check_name, check_type, check_value, condition_path, conditions
from .structure import ID, ClauseText, SpecText

_FUNCTION = re.compile(r"[a-z][\w-]*(\(.*\))?")
_WHEN_WORDS = frozenset(word.value for word in Word)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a file's text was read to: parameters as declared, their levels in each version, and what names mean."""

    text: SpecText
    parameters: Mapping[str, Parameter]
    levels: Levels
    names: Names


def check(parts: Parts, vocabulary: Mapping[str, Vocabulary] | None, problems: Problems) -> None:
    """Check a file whose signatures are resolved; mistakes go to `problems`.

    Raises SpecErrors early where parameters are wrong, since what names their levels would seem wrong too.
    """
    text, parameters = parts.text, parts.parameters
    own = vocabulary_of(text, vocabulary)
    context = Context(parts.names, own, frozenset(text.graphs), problems)
    _check_family(text, vocabulary, problems)
    _check_source(text, problems)
    _check_ids(text, problems)
    _check_spans(text, parameters, problems)
    _check_silences(text, problems)
    _check_shapes(text, context)
    _check_graphs(text, problems)
    for parameter in parameters.values():
        _check_parameter(context, parameter, parts.levels)
    problems.raise_any()
    _check_clauses(text, context)
    for index, row in enumerate(text.exclude):
        _check_row(context, row, ("exclude", index), parts)
    _check_expect(parts, context)
    check_edges(context, text, parameters)


def vocabulary_of(text: SpecText, vocabulary: Mapping[str, Vocabulary] | None) -> Vocabulary | None:
    """Return the words of a file's family, None where they are not known."""
    return vocabulary.get(text.family.partition(".")[0]) if vocabulary is not None else None


def _check_family(text: SpecText, vocabulary: Mapping[str, Vocabulary] | None, problems: Problems) -> None:
    module, _, function = text.family.partition(".")
    own = vocabulary_of(text, vocabulary)
    if own is not None and function not in own.references:
        what = f"family {module} has no reference called {function!r}"
        problems.unknown(("family",), what, function, sorted(own.references))
    if own is None and vocabulary is not None:
        problems.unknown(("family",), f"no family is called {module!r}", module, sorted(vocabulary))


def _check_source(text: SpecText, problems: Problems) -> None:
    sources: list[tuple[Keys, str | None]] = [(("source",), text.source)]
    sources += [(("clauses", id_, "source"), clause.source) for id_, clause in text.clauses.items()]
    sources += [(("silences", id_, "source"), silence.source) for id_, silence in text.silences.items()]
    for path, source in sources:
        if source is None:
            continue
        if not re.fullmatch(r"https?://[^\s/]+/\S*", source):
            problems.add(path, f"expected a web address, https://...; read {source!r}")
        elif wrong := [field for field in re.findall(r"\{(.*?)\}", source) if field != "version"]:
            problems.add(path, f"only {{version}} is replaced in an address; read {{{wrong[0]}}}")


def _check_ids(text: SpecText, problems: Problems) -> None:
    for section in ("clauses", "silences", "edges"):
        for id_ in getattr(text, section):
            if not re.fullmatch(ID, id_):
                message = f"{id_!r}: an id is of small letters, digits and - _ . ^ +, and begins with a letter or digit"
                problems.add((section, id_), message, key=True)
    for id_ in text.clauses.keys() & text.silences.keys():
        problems.add(("silences", id_), f"{id_!r} is a clause already: `tests` could not tell them apart", key=True)


def _check_spans(text: SpecText, parameters: Mapping[str, Parameter], problems: Problems) -> None:
    versions = list(text.versions)
    spanned: list[tuple[Keys, Any]] = []
    for section in ("clauses", "silences", "edges"):
        spanned += [((section, id_), one) for id_, one in getattr(text, section).items()]
    spanned += [(parameter.path, parameter.span) for parameter in parameters.values()]
    for parameter in parameters.values():
        spanned += [(_holder(level.path), level.span) for level in parameter.levels]
    for path, one in spanned:
        for key in ("since", "before"):
            _check_bound((*path, key), getattr(one, key), versions, problems)
        if one.since in versions and one.before in versions and versions.index(one.since) >= versions.index(one.before):
            problems.add((*path, "before"), f"before: {one.before} leaves nothing after since: {one.since}")


def _holder(path: Keys) -> Keys:
    return path[:-1] if path[-1] == "value" else path


def _check_bound(path: Keys, bound: Any, versions: list[Version], problems: Problems) -> None:
    if bound is None:
        return
    if bound not in versions:
        listed = ", ".join(map(str, versions))
        problems.add(path, f"{path[-1]}: {bound} is no version of this operator; it has {listed}")
    elif bound == versions[0]:
        why = "always true: leave it out" if path[-1] == "since" else "never true"
        problems.add(path, f"{path[-1]}: {bound} is the first version, so it is {why}")


def _check_clauses(text: SpecText, context: Context) -> None:
    tested = {id_ for edge in text.edges.values() for id_ in edge.tests}
    for id_, clause in text.clauses.items():
        path: Keys = ("clauses", id_)
        if clause.status == "disputed" and not clause.upstream:
            message = "a disputed clause needs `upstream`: the address of the issue that disputes it"
            context.problems.add((*path, "status"), message)
        _check_disputes(clause, (*path, "disputes"), context)
        if clause.when == "edges" and id_ not in tested:
            context.problems.add((*path, "when"), f"no edge tests {id_!r}")
        if isinstance(clause.when, dict):
            for name, raw in clause.when.items():
                _check_when(context, name, raw, (*path, "when", name))


def _check_disputes(clause: ClauseText, path: Keys, context: Context) -> None:
    if clause.disputes and clause.status != "disputed":
        context.problems.add(path, "only a clause of status: disputed disputes a part of the signature", key=True)
    known = sorted({part for s in context.names.signatures.values() for part in signature_parts(s)})
    for index, part in enumerate(clause.disputes):
        if part not in known:
            at = (*path, index) if context.problems.document.has((*path, index)) else path
            context.problems.unknown(at, f"{part!r} is no part of the signature", part, known)


def _check_when(context: Context, name: str, raw: object, path: Keys) -> None:
    if not check_name(context, name, path):
        return
    _, values = conditions(raw)
    for index, value in enumerate(values):
        at = condition_path(path, raw, index)
        if context.names.is_type(name):
            check_type(context, value, at)
        elif not (isinstance(value, str) and value in _WHEN_WORDS):
            check_value(context, name, value, at)


def _check_silences(text: SpecText, problems: Problems) -> None:
    for id_, silence in text.silences.items():
        twice = {option for option in silence.options if silence.options.count(option) > 1}
        for option in sorted(twice):
            problems.add(("silences", id_, "options"), f"option {option!r} appears twice")
        for index, option in enumerate(silence.options):
            if not re.fullmatch(ID, option):
                message = f"{option!r}: an option is of small letters, digits and - _ . ^ +"
                problems.add(("silences", id_, "options", index), message)


def _check_shapes(text: SpecText, context: Context) -> None:
    inputs = sorted({p.name for s in context.names.signatures.values() for p in s.inputs})
    for name, shape in text.shapes.items():
        path: Keys = ("shapes", name)
        if name not in inputs:
            context.problems.unknown(path, f"{name!r} is no input of any version", name, inputs, key=True)
        if isinstance(shape, str):
            if not _FUNCTION.fullmatch(shape):
                message = f"expected a list of dimensions, or a function as in same(x); read {shape!r}"
                context.problems.add(path, message)
            continue
        for index, dim in enumerate(shape):
            if isinstance(dim, str):
                context.problems.check((*path, index), lambda dim=dim: expressions.names(dim))  # type: ignore[misc]
            elif not isinstance(dim, int) or isinstance(dim, bool) or dim < 0:
                context.problems.add((*path, index), f"a dimension is a number or an expression; read {dim!r}")


def _check_graphs(text: SpecText, problems: Problems) -> None:
    if not text.graphs:
        return
    import onnx.parser  # noqa: PLC0415 - takes longer than all else, and few operators have graphs

    for id_, graph in text.graphs.items():
        try:
            onnx.parser.parse_graph(graph.replace("{V}", "float"))
        except onnx.parser.ParseError as error:
            words = b" ".join(a for a in error.args if isinstance(a, bytes)).decode(errors="replace") or str(error)
            problems.add(("graphs", id_), f"not ONNX's text for a graph: {' '.join(words.split())[:150]}")


def _check_parameter(context: Context, parameter: Parameter, levels: Levels) -> None:
    name, problems = parameter.name, context.problems
    if not check_name(context, name, parameter.path):
        return
    is_type = context.names.is_type(name)
    if parameter.everything and not is_type:
        problems.add(parameter.path, f"`all` is for type letters; {name} needs a list or a mapping of levels")
        return
    whole = True
    for level in parameter.levels:
        if is_type:
            whole &= _check_type_level(context, level)
        else:
            check_value(context, name, _raw(problems, level), level.path)
    if whole and not problems.found:
        _check_levels_reached(context, parameter, levels)


def _check_type_level(context: Context, level: Level) -> bool:
    if level.value != level.name:
        context.problems.add(level.path, f"the levels of a type are types, in a list; read {level.name}: {level.value}")
        return False
    return check_type(context, level.name, level.path)


def _raw(problems: Problems, level: Level) -> Any:
    """Return a level as the file has it; the path leads there."""
    value = problems.document.value
    for key in level.path:
        value = value[key]
    return {"value": value} if isinstance(value, str) and level.path[-1] == "value" else value


def _check_levels_reached(context: Context, parameter: Parameter, levels: Levels) -> None:
    names = context.names
    reached = {level for by_name in levels.values() for level in by_name[parameter.name]}
    for level in parameter.levels:
        wanted = expand(level.name) if names.is_type(parameter.name) else (level.name,)
        if reached.isdisjoint(wanted):
            message = f"level {level.name!r} of {parameter.name} applies to no version"
            context.problems.add(level.path, message)


def _check_row(context: Context, row: Mapping[str, Any], path: Keys, parts: Parts) -> None:
    if not row:
        context.problems.add(path, "an empty row: name the levels that do not go together")
    for name, raw in row.items():
        at = (*path, name)
        if name not in parts.parameters:
            context.problems.unknown(at, f"{name!r} is no parameter", name, parts.parameters, key=True)
            continue
        _, values = conditions(raw)
        for index, value in enumerate(values):
            _check_level(context, parts, name, value, condition_path(at, raw, index))


def _check_level(context: Context, parts: Parts, name: str, value: Any, path: Keys) -> None:
    levels = [level.name for level in parts.parameters[name].levels]
    if context.names.is_type(name):
        if check_type(context, value, path) and value not in GROUPS:
            found = {level for by_name in parts.levels.values() for level in by_name[name]}
            if found.isdisjoint(expand(value)):
                context.problems.add(path, f"{value} is a type of {name} in no version")
        return
    _, plain = literal_of(value)
    if isinstance(plain, (list, dict)) or text_of(plain) not in levels:
        context.problems.unknown(path, f"{plain!r} is no level of {name}", plain, levels)


def _check_expect(parts: Parts, context: Context) -> None:
    text = parts.text
    for index, expect in enumerate(text.expect):
        path: Keys = ("expect", index)
        if expect.when:
            _check_row(context, expect.when, (*path, "when"), parts)
        if expect.values not in (None, "exact"):
            context.problems.add((*path, "values"), f"values is `exact` or left out; read {expect.values!r}")
        _check_functions(expect.check, (*path, "check"), context.problems)
        for what, silence in expect.order.items():
            if silence not in text.silences:
                at = (*path, "order", what)
                context.problems.unknown(at, f"no silence is called {silence!r}", silence, text.silences)


def _check_functions(calls: Iterable[str], path: Keys, problems: Problems) -> None:
    for index, call in enumerate(calls):
        if not _FUNCTION.fullmatch(call):
            message = f"expected a check's name, quoted if it holds a comma: 'moments(mean, scale)'; read {call!r}"
            problems.add((*path, index), message)

"""Checks of a spec file: every name, version, level and id that it uses exists and has an effect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from . import expressions
from .model import GROUPS, Recipe, Version, Vocabulary, Word, expand
from .native_bodies import SET, version_in
from .parameters import Level, Names, Parameter, Span, literal_of, text_of
from .reading import Keys, Problems
from .schema import ID, ClauseText, OperandText, ParameterText, SpecText
from .settings import (
    SAME,
    Context,
    check_draw,
    check_expression,
    check_fill,
    check_name,
    check_recipe,
    check_type,
    check_value,
    check_word_of,
    conditions,
    named_level,
)

_SHAPE = re.compile(r"scalar|[0-9]+(x[0-9]+)*")


_WHEN_WORDS = frozenset(word.value for word in Word)


def check(context: Context, vocabulary: Mapping[str, Vocabulary] | None) -> None:
    """Check a file with resolved signatures, except for edges; mistakes are added to the context's problems.

    Raises SpecErrors early if parameters are wrong, since everything that names their levels would seem wrong too.
    """
    text, problems = context.text, context.problems
    _check_family(text, vocabulary, problems)
    _check_ids(text, problems)
    _check_spans(context)
    _check_operands(context)
    _check_types_from(context)
    _check_graphs(context)
    for parameter in context.parameters.values():
        _check_parameter(context, parameter)
    problems.raise_any()
    _check_clauses(text, context)
    for index, row in enumerate(text.exclude):
        _check_row(context, row, ("exclude", index))
    _check_same(context)
    _check_precision(context)
    _check_strength(context)
    _check_unused(context)


def vocabulary_of(text: SpecText, vocabulary: Mapping[str, Vocabulary] | None) -> Vocabulary | None:
    """Return the vocabulary of a file's family, with the recipes and shapes of functions that prepare its inputs.

    None if the family is not known.
    """
    words = vocabulary.get(text.family.partition(".")[0]) if vocabulary is not None else None
    for name in sorted({binding.by.partition(".")[0] for binding in text.bindings if binding.by}):
        other = vocabulary.get(name) if vocabulary is not None else None
        if words is not None and other is not None:
            words = replace(
                words,
                fills=words.fills | other.fills,
                shapes=(words.shapes or frozenset()) | (other.shapes or frozenset()),
                draws=(words.draws or frozenset()) | (other.draws or frozenset()),
            )
    return words


def shape_symbols(text: SpecText, inputs: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the symbols that levels of `shapes` bind, and the symbols that expressions of shapes use."""
    bound: set[str] = set()
    for raw in _shapes_written(text):
        _, value = literal_of(raw)
        if isinstance(value, dict):
            bound |= {str(key) for key in value}
    used: set[str] = set()
    operands = (operand.shape for alternatives in text.operands.values() for operand in alternatives)
    for shape in (*text.shapes.values(), *operands):
        for dim in shape if isinstance(shape, list) else ():
            if isinstance(dim, str) and expressions.is_expression(dim):
                used |= expressions.names(dim)
    known = {"d", "r", "n"}
    return frozenset(bound - set(inputs)), frozenset(name for name in used if "." not in name and name not in known)


def _shapes_written(text: SpecText) -> Iterable[Any]:
    """Yield every value of `shapes`: in levels, bundles and edges."""
    for name, parameter in text.parameters.items():
        for level in parameter.levels.values() if isinstance(parameter.levels, dict) else ():
            _, value = literal_of(level.value)
            if name == "shapes":
                yield value
            elif isinstance(value, dict) and "shapes" in value:
                yield value["shapes"]
    for edge in text.edges.values():
        for settings in (edge.settings, edge.mended or {}):
            if "shapes" in settings:
                yield settings["shapes"]
            for value in settings.values():
                if isinstance(value, dict) and "shapes" in value:
                    yield value["shapes"]


def levels_written(parameter: ParameterText) -> frozenset[str] | None:
    """Return the names of a parameter's levels as written; None for `all`."""
    levels = parameter.levels
    if isinstance(levels, dict):
        return frozenset(map(str, levels))
    return None if levels == "all" else frozenset(text_of(literal_of(level.value)[1]) for level in levels)


def _check_family(text: SpecText, vocabulary: Mapping[str, Vocabulary] | None, problems: Problems) -> None:
    module, _, function = text.family.partition(".")
    own = vocabulary_of(text, vocabulary)
    if own is not None and function not in own.references:
        what = f"family {module} has no reference called {function!r}"
        problems.unknown(("family",), what, function, sorted(own.references))
    if own is None and vocabulary is not None:
        problems.unknown(("family",), f"no family is called {module!r}", module, sorted(vocabulary))


def _check_ids(text: SpecText, problems: Problems) -> None:
    former = [(id_, name) for id_, edge in text.edges.items() for name in edge.formerly]
    for id_ in text.clauses.keys() & text.silences.keys():
        problems.add(("silences", id_), f"{id_!r} is already a clause: `tests` could not distinguish them", key=True)
    for index, (id_, name) in enumerate(former):
        if name in text.edges or name in [other for _, other in former[:index]]:
            problems.add(("edges", id_, "also-known-as", name), f"{name!r} is already an edge", key=True)


def _check_spans(context: Context) -> None:
    text = context.text
    spanned: list[tuple[Keys, Span]] = []
    for section in ("unused", "clauses", "silences", "edges"):
        spanned += [((section, id_), Span.of(entry)) for id_, entry in getattr(text, section).items()]
    spanned += [(("as", *at), Span.of(entry)) for at, entry in alternative(text.bindings)]
    for section, entries in (("operands", text.operands), ("types-from", text.types_from)):
        for name, alternatives in entries.items():
            spanned += [((section, name, *at), Span.of(entry)) for at, entry in alternative(alternatives)]
    for parameter in context.parameters.values():
        spanned.append((parameter.path, parameter.span))
        spanned += [(_holder(level), level.span) for level in parameter.levels]
    for path, span in spanned:
        if not span.is_whole:
            _check_span(context, path, span)


def alternative(alternatives: Iterable[Any]) -> Iterable[tuple[Keys, Any]]:
    """Yield the entries of a list, or a single entry written without one, each with the rest of its path."""
    listed = list(alternatives)
    for index, entry in enumerate(listed):
        yield (index,) if len(listed) > 1 else (), entry


def _check_span(context: Context, path: Keys, span: Span) -> None:
    """Report unknown versions and parts of signatures, and, except in a family, conditions without effect."""
    versions, problems = list(context.names.signatures), context.problems
    shared = context.is_shared(*path[:2])
    for key, bound in (("since", span.since), ("before", span.before)):
        _check_bound((*path, key), bound, versions if shared else versions[1:], context)
    if shared:
        return
    if span.since in versions and span.before in versions and versions.index(span.since) >= versions.index(span.before):
        problems.add((*path, "before"), f"before: {span.before} leaves nothing after since: {span.since}")
    for key, parts in (("having", span.having), ("lacking", span.lacking)):
        for part in parts:
            if not context.names.has_anywhere(part):
                why = f"{part!r} is no attribute, input, output or type letter of any version"
                known = sorted({bare.partition(".")[2] for bare in context.names.parts})
                problems.unknown((*path, key), why, part, known)


def _holder(level: Level) -> Keys:
    drawn = isinstance(level.value, Recipe) and level.path[0] == "operands"
    return (*level.path, level.name) if drawn else level.path[:-1] if level.path[-1] == "value" else level.path


def _check_bound(path: Keys, bound: Any, versions: list[Version], context: Context) -> None:
    order = list(context.names.signatures)
    if bound is None or bound in versions:
        return
    if bound not in order:
        listed = ", ".join(map(str, order))
        context.problems.add(path, f"{path[-1]}: {bound} is no version of this operator; it has {listed}")
    else:
        why = "always true: leave it out" if path[-1] == "since" else "never true"
        context.problems.add(path, f"{path[-1]}: {bound} is the first version, so it is {why}")


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
        context.problems.add(path, "only a clause with status: disputed may dispute a part of the signature", key=True)
    for index, part in enumerate(clause.disputes):
        if part not in context.names.parts:
            context.problems.unknown(
                (*path, index), f"{part!r} is no part of the signature", part, sorted(context.names.parts)
            )


def _check_when(context: Context, name: str, raw: object, path: Keys) -> None:
    if not check_name(context, name, path):
        return
    negated, values = conditions(raw)
    for index, value in enumerate(values):
        at = _condition_path(path, raw, index)
        level = named_level(context, name, value)
        if context.names.is_type(name):
            check_type(context, value, at)
        elif level is not None and isinstance(level.value, dict) and (negated or len(values) > 1):
            message = f"{value!r} is a bundle, which a condition can only name alone: name the settings in it"
            context.problems.add(at, message)
        elif name == "shapes":
            if not (isinstance(value, str) and _SHAPE.fullmatch(value)):
                context.problems.add(at, f"a shape as an id has it, 3x2 or scalar; read {value!r}")
        elif not (isinstance(value, str) and (value in _WHEN_WORDS or level is not None)):
            check_value(context, name, value, at)


def _condition_path(path: Keys, raw: object, index: int) -> Keys:
    """Return the path of alternative `index` of the condition at `path`."""
    if isinstance(raw, dict) and raw.keys() == {"not"}:
        path, raw = (*path, "not"), raw["not"]
    return (*path, index) if isinstance(raw, list) else path


def _check_operands(context: Context) -> None:
    text, inputs = context.text, context.names.inputs
    for section, entries in (("shapes", text.shapes), ("domains", text.domains), ("operands", text.operands)):
        for name in entries:
            if name not in inputs:
                what = f"{name!r} is no input of any version"
                context.problems.unknown((section, name), what, name, inputs, key=True)
    for name, shape in text.shapes.items():
        _check_shape(context, shape, ("shapes", name))
    for name, domain in text.domains.items():
        check_recipe(context, "domain", domain, ("domains", name))
    for name, alternatives in text.operands.items():
        for at, operand in alternative(alternatives):
            _check_operand(context, name, operand, ("operands", name, *at))
        if any(entry.draw for entry in alternatives) and name in text.parameters:
            message = f"the levels of {name} are its draws: write {{draw: recipe}} among the levels of the parameter"
            context.problems.add(("parameters", name), message, key=True)


def _check_operand(context: Context, name: str, operand: OperandText, path: Keys) -> None:
    for key, section in (("shape", context.text.shapes), ("domain", context.text.domains)):
        if getattr(operand, key) is not None and name in section:
            message = f"the {key} of {name} is already in `{key}s`"
            context.problems.add((*path, key), message, key=True)
    if operand.shape is not None:
        _check_shape(context, operand.shape, (*path, "shape"))
    if operand.domain is not None:
        check_recipe(context, "domain", operand.domain, (*path, "domain"))
    if operand.fill is not None:
        check_fill(context, operand.fill, (*path, "fill"))
    for key, value in (operand.model_extra or {}).items():
        _check_argument(context, key, value, (*path, key))


def _check_argument(context: Context, key: str, value: object, path: Keys) -> None:
    check_word_of(context, "argument", key, path, key=True)
    for index, part in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(part, str) and not re.fullmatch(ID, part):
            check_expression(context, part, (*path, index) if isinstance(value, list) else path)


def _check_shape(context: Context, shape: Sequence[int | str] | str, path: Keys) -> None:
    if isinstance(shape, str):
        if shape == "d" or shape in context.bound:
            return
        checked = check_recipe(context, "shape", shape, path)
        if checked is not None and checked.name == SAME:
            inputs = context.names.inputs
            if len(checked.arguments) != 1 or checked.arguments[0] not in inputs:
                context.problems.unknown(path, f"{shape!r}: read same(x), x an input", checked.arguments, inputs)
        return
    for index, dim in enumerate(shape):
        if isinstance(dim, str):
            check_expression(context, dim, (*path, index))


def _check_types_from(context: Context) -> None:
    for name, alternatives in context.text.types_from.items():
        for at, source in alternative(alternatives):
            path: Keys = ("types-from", name, *at)
            if source.attribute not in context.names.attributes:
                what = f"{source.attribute!r} is no attribute of any version"
                context.problems.unknown((*path, "attribute"), what, source.attribute, context.names.attributes)
            if source.absent is not None and source.absent not in context.names.letters:
                check_type(context, source.absent, (*path, "absent"))
            for type_ in source.names:
                check_type(context, type_, (*path, "names", type_))
            letters = [letter_of(context.names, name, version) for version in context.names.signatures]
            if not any(letters):
                what = f"{name!r} is no type letter, and no output or input with one"
                known = (*context.names.outputs, *context.names.letters)
                context.problems.unknown(path[:2], what, name, known, key=True)


def letter_of(names: Names, name: str, version: Version) -> str | None:
    """Return the type letter of an output or input in a version, or the letter itself."""
    signature = names.signatures[version]
    return name if name in signature.types else signature.letter(name)


def _check_graphs(context: Context) -> None:
    """Check that bodies are ONNX's text, and that their letters, operators and outputs exist."""
    graphs, problems = context.text.graphs, context.problems
    if not graphs:
        return
    import onnx.parser  # noqa: PLC0415 - takes longer than all else, and few operators have graphs

    letters = context.names.letters
    used = set(re.findall(r"[\w-]+", repr((context.text.parameters, context.text.edges))))
    for id_, text in graphs.items():
        for letter in dict.fromkeys(re.findall(r"\{(\w+)(?:\.item)?\}", text)):
            if id_ in used and letter not in letters:
                problems.unknown(("graphs", id_), f"{letter!r} is no type letter of any version", letter, letters)
        try:
            graph = onnx.parser.parse_graph(re.sub(r"\{\w+(\.item)?\}", "float", text))
        except onnx.parser.ParseError as error:
            words = b" ".join(a for a in error.args if isinstance(a, bytes)).decode(errors="replace") or str(error)
            problems.add(("graphs", id_), f"not ONNX's text for a graph: {' '.join(words.split())[:150]}")
        else:
            for mistake in _graph_mistakes(graph, context.text.operator.partition("/")[0]):
                problems.add(("graphs", id_), mistake)


def _graph_mistakes(graph: Any, standard: str) -> Iterator[str]:
    """Yield which operators of a body, an onnx.GraphProto, do not exist, and which of its outputs nothing makes.

    Of another standard, an operator only needs a version: the formula knows which there are.
    """
    import onnx.defs  # noqa: PLC0415 - see above

    made = {value.name for value in (*graph.input, *graph.initializer)}
    for node in graph.node:
        made |= set(node.output)
        if standard != "onnx":
            if version_in(node.domain) is None:
                yield f"{node.domain!r} is no operation set: write {SET}1.{node.op_type} and the like"
        elif not onnx.defs.has(node.op_type, node.domain):
            yield f"ONNX has no operator {node.op_type!r}" + (f" in the domain {node.domain!r}" if node.domain else "")
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graph_mistakes(attribute.g, standard)
    for output in graph.output:
        if output.name not in made:
            yield f"nothing in the body makes its output {output.name!r}"


def _check_parameter(context: Context, parameter: Parameter) -> None:
    name, problems = parameter.name, context.problems
    if not check_name(context, name, parameter.path):
        return
    is_type = context.names.is_type(name)
    if parameter.everything and not is_type:
        problems.add(parameter.path, f"`all` is for type letters; {name} needs a list or a mapping of levels")
        return
    valid = True
    for level in parameter.levels:
        if name in context.names.bundles and isinstance(level.value, dict):
            _check_members(context, level.value, level.path)
        if is_type:
            valid &= _check_type_level(context, level)
        elif isinstance(level.value, Recipe):
            check_draw(context, name, level.value, level.path)
        else:
            check_value(context, name, _raw(problems, level), level.path)
    if valid and not problems.errors and not context.is_shared(*parameter.path[:2]):
        _check_levels_reached(context, parameter)


def _check_members(context: Context, bundle: Mapping[str, Any], path: Keys) -> None:
    """Report names that a bundle sets though they have their own levels: one of the two values would be lost."""
    for name in bundle:
        if name in context.parameters:
            context.problems.add(
                (*path, name), f"{name!r} has levels of its own: a bundle sets what has none", key=True
            )


def _check_type_level(context: Context, level: Level) -> bool:
    if level.value != level.name:
        context.problems.add(level.path, f"the levels of a type are types, in a list; read {level.name}: {level.value}")
        return False
    return check_type(context, level.name, level.path)


def _raw(problems: Problems, level: Level) -> Any:
    """Return a level as the file writes it; the path leads there."""
    value = problems.document.value
    for key in level.path:
        value = value[key]
    is_text = isinstance(value, str) and value in _WHEN_WORDS and not isinstance(level.value, Word)
    return {"value": value} if is_text else value


def _check_levels_reached(context: Context, parameter: Parameter) -> None:
    names = context.names
    reached = {level for by_name in context.levels.values() for level in by_name[parameter.name]}
    for level in parameter.levels:
        wanted = expand(level.name) if names.is_type(parameter.name) else (level.name,)
        if reached.isdisjoint(wanted):
            message = f"level {level.name!r} of {parameter.name} applies to no version"
            context.problems.add(level.path, message)


def _check_row(context: Context, row: Mapping[str, Any], path: Keys) -> None:
    if not row:
        context.problems.add(path, "an empty row: name the levels that do not go together")
    for name, raw in row.items():
        at = (*path, name)
        if name not in context.parameters:
            context.problems.unknown(at, f"{name!r} is no parameter", name, context.parameters, key=True)
            continue
        _, values = conditions(raw)
        for index, value in enumerate(values):
            _check_row_level(context, name, value, _condition_path(at, raw, index))


def _check_row_level(context: Context, name: str, value: Any, path: Keys) -> None:
    levels = [level.name for level in context.parameters[name].levels]
    if context.names.is_type(name):
        if check_type(context, value, path) and value not in GROUPS:
            types = {level for by_name in context.levels.values() for level in by_name[name]}
            if types.isdisjoint(expand(value)):
                context.problems.add(path, f"{value} is a type of {name} in no version")
        return
    _, plain = literal_of(value)
    if isinstance(plain, (list, dict)) or text_of(plain) not in levels:
        context.problems.unknown(path, f"{plain!r} is no level of {name}", plain, levels)


def _check_same(context: Context) -> None:
    letters = context.names.letters
    for index, group in enumerate(context.text.same):
        path: Keys = ("same", index) if isinstance(context.problems.document.value["same"][0], list) else ("same",)
        for at, letter in enumerate(group):
            if letter not in letters:
                context.problems.unknown((*path, at), f"{letter!r} is no type letter", letter, letters)
        if len(set(group)) < 2:
            context.problems.add(path, f"{group!r}: letters are varied together, so there are two at least")
        varied = [letter for letter in group if letter in context.parameters]
        for version, levels in context.levels.items():
            if len({frozenset(levels[letter]) for letter in varied if levels[letter]}) > 1:
                message = f"{' and '.join(varied)} are varied together, and list different types in version {version}"
                context.problems.add(path, message)
                break


def _check_precision(context: Context) -> None:
    for primitive, budget in context.text.precision.items():
        path: Keys = ("precision", primitive)
        check_word_of(context, "primitive", primitive, path, key=True)
        for word in budget if isinstance(budget, dict) else ():
            check_type(context, word, (*path, word))


def _check_unused(context: Context) -> None:
    signatures = context.names.signatures.values()
    names = dict.fromkeys(
        [a.name for s in signatures for a in s.attributes] + [p.name for s in signatures for p in s.inputs]
    )
    for name in context.text.unused:
        if name not in names:
            context.problems.unknown(("unused", name), f"{name!r} is no attribute or input", name, names, key=True)


def _check_strength(context: Context) -> None:
    for number, groups in context.text.strength.items():
        path: Keys = ("strength", number)
        for index, group in enumerate(groups):
            nested = isinstance(context.problems.document.value["strength"][number][0], list)
            at = (*path, index) if nested else path
            for inner, name in enumerate(group):
                if name not in context.parameters:
                    context.problems.unknown((*at, inner), f"{name!r} is no parameter", name, context.parameters)
            if not 2 <= number <= len(set(group)):
                message = f"{number} of {len(set(group))} names interact: a strength is from 2 to the number of names"
                context.problems.add(at, message)

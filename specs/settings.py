"""Checks of settings: that a name is known, and that a value is what the attribute, input or parameter takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from . import expressions
from .groups import expand
from .model import Vocabulary, Word
from .names import Names, port_of
from .parameters import literal_of, settled
from .problems import Problems
from .reading import Keys
from .resolve import ATTRIBUTE_KINDS

OPSETS = ("first", "last")


@dataclass(frozen=True, slots=True)
class Context:
    """What settings are checked against; `vocabulary` is None where the family's words are not known."""

    names: Names
    vocabulary: Vocabulary | None
    graphs: frozenset[str]
    problems: Problems


def check_name(context: Context, name: str, path: Keys) -> bool:
    """Note an unknown name; return whether it is known."""
    if context.names.roles(name):
        return True
    if port := port_of(name):
        ports = {p.name for s in context.names.signatures.values() for p in (*s.inputs, *s.outputs)}
        what = f"{name!r}: {port!r} is no input or output with a type letter"
        context.problems.unknown(path, what, port, sorted(ports), key=True)
    else:
        what = f"{name!r} is no attribute, input, type letter or parameter of the family"
        context.problems.unknown(path, what, name, context.names.known(), key=True)
    return False


def check_types(context: Context, words: object, path: Keys) -> bool:
    """Note what is no type or list of types; return whether all is."""
    if not isinstance(words, list):
        return check_type(context, words, path)
    right = [check_type(context, word, (*path, index)) for index, word in enumerate(words)]
    return all(right)


def check_type(context: Context, word: object, path: Keys) -> bool:
    """Note what is no type and no group of them; return whether it is."""
    if isinstance(word, str):
        return context.problems.check(path, lambda: expand(word))
    context.problems.add(path, f"expected an element type or a group of them; read {word!r}")
    return False


def check_value(context: Context, name: str, raw: Any, path: Keys) -> None:
    """Note where a level or setting of `name`, a type letter aside, is not what `name` takes."""
    wrapped, value = literal_of(raw)
    path = (*path, "value") if wrapped else path
    if value is None:
        context.problems.add(path, "null is no value; write absent where nothing is given")
        return
    word = settled(value, words=not wrapped)
    if isinstance(word, Word):
        if word is Word.OMITTED and context.names.roles(name) == {"attribute"}:
            context.problems.add(path, f"{name} is an attribute: it is absent, only an input can be omitted")
        return
    if isinstance(value, dict):
        _check_bundle(context, name, value, path)
    elif check := _COMMON.get(name) if "common" in context.names.roles(name) else None:
        check(context, value, path)
    elif not wrapped:
        _check_kind(context, name, value, path)


def conditions(raw: object) -> tuple[bool, list[Any]]:
    """Return whether a condition is negated, and its alternatives: of `x`, `[x, y]`, `{not: x}`, `{not: [x, y]}`."""
    negated = isinstance(raw, dict) and raw.keys() == {"not"}
    inner = raw["not"] if negated and isinstance(raw, dict) else raw
    return negated, inner if isinstance(inner, list) else [inner]


def condition_path(path: Keys, raw: object, index: int) -> Keys:
    """Return the path of the alternative at `index` of a condition at `path`."""
    if isinstance(raw, dict) and raw.keys() == {"not"}:
        path, raw = (*path, "not"), raw["not"]
    return (*path, index) if isinstance(raw, list) else path


def _check_bundle(context: Context, name: str, bundle: dict[Any, Any], path: Keys) -> None:
    if name == "dims":
        for symbol, value in bundle.items():
            _check_numbers(context, value, (*path, symbol))
        return
    for inner, value in bundle.items():
        at = (*path, inner)
        if name == "shapes":
            _check_shape_name(context, inner, at)
            _check_numbers(context, value, at)
        elif context.names.is_type(str(inner)):
            context.problems.add(at, f"{inner!r} is a type: a bundle sets attributes, inputs and parameters", key=True)
        elif check_name(context, str(inner), at):
            check_value(context, str(inner), value, at)


def _check_shape_name(context: Context, name: object, path: Keys) -> None:
    inputs = {p.name for s in context.names.signatures.values() for p in s.inputs}
    if name not in inputs:
        context.problems.unknown(path, f"{name!r} is no input of any version", name, sorted(inputs), key=True)


def _check_numbers(context: Context, value: object, path: Keys) -> None:
    """Check the syntax of the expressions in nested lists; other values pass."""
    if not isinstance(value, list):
        return
    for index, part in enumerate(value):
        if isinstance(part, str):
            context.problems.check((*path, index), lambda part=part: expressions.names(part))  # type: ignore[misc]
        else:
            _check_numbers(context, part, (*path, index))


def _check_kind(context: Context, name: str, value: Any, path: Keys) -> None:
    kinds = context.names.kinds(name)
    if isinstance(value, list) and kinds and not context.names.holds_text(name):
        _check_numbers(context, value, path)
    if len(kinds) != 1:
        return
    kind = next(iter(kinds))
    if kind == "graph" and context.graphs and value not in context.graphs:
        context.problems.unknown(path, f"no graph is called {value!r}", value, sorted(context.graphs))
    elif kind in ATTRIBUTE_KINDS and not _is(ATTRIBUTE_KINDS[kind], value):
        context.problems.add(path, f"{name} is {kind}; read {value!r}")
    elif kind.endswith("s") and kind[:-1] in ATTRIBUTE_KINDS:
        _check_list(context, f"{name} is {kind}", ATTRIBUTE_KINDS[kind[:-1]], value, path)


def _check_list(context: Context, what: str, kind: type, value: Any, path: Keys) -> None:
    if not isinstance(value, list):
        context.problems.add(path, f"{what}, a list; read {value!r}")
        return
    for index, part in enumerate(value):
        if not _is(kind, part) and not (isinstance(part, str) and kind is not str):
            context.problems.add((*path, index), f"{what}; read {part!r}")


def _is(kind: type, value: object) -> bool:
    """Whether a value can be an attribute of a scalar kind; text can be an expression for an integer."""
    if kind is int:
        return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind)


def _check_fill(context: Context, value: object, path: Keys) -> None:
    if not isinstance(value, str) or context.vocabulary is None:
        return
    recipe = value.partition("(")[0]
    if recipe not in context.vocabulary.fills:
        known = sorted(context.vocabulary.fills)
        context.problems.unknown(path, f"no fill recipe is called {recipe!r}", recipe, known)


def _check_opset(context: Context, value: object, path: Keys) -> None:
    if value not in OPSETS:
        context.problems.unknown(path, f"opset is first or last of the version's range; read {value!r}", value, OPSETS)


def _check_outputs(context: Context, value: object, path: Keys) -> None:
    outputs = sorted({p.name for s in context.names.signatures.values() for p in s.outputs})
    if not isinstance(value, list):
        context.problems.add(path, f"outputs are a list of names; read {value!r}")
        return
    for index, name in enumerate(value):
        if name not in outputs and name != Word.OMITTED.value:
            context.problems.unknown((*path, index), f"{name!r} is no output of any version", name, outputs)


def _check_unknown(context: Context, value: object, path: Keys) -> None:
    if not isinstance(value, str):
        context.problems.add(path, f"unknown is the name of an attribute that the version lacks; read {value!r}")


_COMMON: Mapping[str, Callable[[Context, Any, Keys], None]] = MappingProxyType(
    {
        "fill": _check_fill,
        "opset": _check_opset,
        "outputs": _check_outputs,
        "unknown": _check_unknown,
        "shapes": _check_numbers,
    }
)

"""Joins the models of several programs into one for a tool whose calls take long, and parts what it makes of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from onnx import AttributeProto, GraphProto, ModelProto

_WITH_BODIES = frozenset({AttributeProto.GRAPH, AttributeProto.GRAPHS})
_FEWEST = 4
"""Number of models from which on a refused part is halved; fewer are soon converted alone."""


def converted_together(
    models: Sequence[ModelProto], convert: Callable[[ModelProto], ModelProto]
) -> list[ModelProto | None]:
    """Return the conversions of `models`, which have the same opsets; None for those to convert alone.

    If `convert` refuses the joined model, it gets each half. If it refuses both, most of the models are refused, and
    to look for the others would take longer than to convert all of them alone.
    """
    converted = _attempt(models, convert)
    return list(converted) if converted is not None else _halved(models, convert)


def may_join(model: ModelProto) -> bool:
    """Return whether a model can be joined with others: no node has a body, which may use names from around it."""
    return not any(attribute.type in _WITH_BODIES for node in model.graph.node for attribute in node.attribute)


def joined(models: Sequence[ModelProto]) -> ModelProto:
    """Return a model with the nodes of all `models`; each name of a value begins with the number of its model."""
    union = ModelProto()
    union.CopyFrom(models[0])
    union.graph.Clear()
    union.graph.name = "joined"
    for number, model in enumerate(models):
        part = GraphProto()
        part.CopyFrom(model.graph)
        part.ClearField("name")
        for node in part.node:
            node.input[:] = [name and f"{number}/{name}" for name in node.input]
            node.output[:] = [name and f"{number}/{name}" for name in node.output]
        for value in itertools.chain(part.input, part.output, part.initializer):
            value.name = f"{number}/{value.name}"
        union.graph.MergeFrom(part)
    return union


def parted(union: ModelProto, models: Sequence[ModelProto]) -> list[ModelProto]:
    """Return what a tool made of each of `models` when they were joined, with their own names again.

    A value that the tool added belongs to the model that uses it. Raises LookupError or ValueError if one belongs to no
    model, or to two, or has a name that its model uses otherwise.
    """
    bare = ModelProto()
    bare.CopyFrom(union)
    bare.ClearField("graph")
    parts = [ModelProto() for _ in models]
    for part, model in zip(parts, models, strict=True):
        part.CopyFrom(bare)
        part.graph.name = model.graph.name
    owners = _owners(union.graph)
    names = {"": "", **_own_names(owners, models)}
    for node in union.graph.node:
        used = [*filter(None, (*node.output, *node.input))]
        (number,) = {owners[name] for name in used}
        copy = parts[number].graph.node.add()
        copy.CopyFrom(node)
        copy.input[:] = [names[name] for name in node.input]
        copy.output[:] = [names[name] for name in node.output]
    for kind in ("input", "output", "initializer"):
        for value in getattr(union.graph, kind):
            copied = getattr(parts[owners[value.name]].graph, kind).add()
            copied.CopyFrom(value)
            copied.name = names[value.name]
    return parts


def _own_names(owners: Mapping[str, int], models: Sequence[ModelProto]) -> dict[str, str]:
    """Return the name in its own model of each value of the joined model. Raises ValueError if a new name is taken."""
    known = [_names(model.graph) for model in models]
    own = {}
    for name, number in owners.items():
        _, slash, before = name.partition("/")
        if not slash and name in known[number]:
            raise ValueError(f"{name} is also a value of the model")
        own[name] = before if slash else name
    return own


def _attempt(models: Sequence[ModelProto], convert: Callable[[ModelProto], ModelProto]) -> list[ModelProto] | None:
    if len(models) < 2:
        return None
    try:
        return parted(convert(joined(models)), models)
    except Exception:  # each error is seen where its model is converted alone
        return None


def _halved(models: Sequence[ModelProto], convert: Callable[[ModelProto], ModelProto]) -> list[ModelProto | None]:
    """Return the conversions of models that were refused together."""
    if len(models) < _FEWEST:
        return [None] * len(models)
    middle = len(models) // 2
    halves = models[:middle], models[middle:]
    made = [_attempt(half, convert) for half in halves]
    if not any(made):
        return [None] * len(models)
    return [model for half, done in zip(halves, made, strict=True) for model in done or _halved(half, convert)]


def _owners(graph: GraphProto) -> dict[str, int]:
    """Return the number of each value's model; values that the tool added belong to the model that uses them."""
    names = {name for node in graph.node for name in (*node.input, *node.output) if name}
    names |= {value.name for value in itertools.chain(graph.input, graph.output, graph.initializer)}
    owners = {name: int(number) for name in names for number, slash, _ in [name.partition("/")] if slash}
    for node in reversed(graph.node):  # from a value's users to the nodes that make it
        number = next((owners[name] for name in node.output if name in owners), None)
        if number is not None:
            for name in filter(None, node.input):
                owners.setdefault(name, number)
    return owners


def _names(graph: GraphProto) -> set[str]:
    given = {value.name for value in itertools.chain(graph.input, graph.output, graph.initializer)}
    return given | {name for node in graph.node for name in (*node.input, *node.output)}

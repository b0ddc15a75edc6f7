"""Mutants that misread their call: its attributes, defaults, ports or version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array, element_types
from ...cases.program import Tensor
from ...specs.model import AttributeSignature, Port, Recipe, Spec, VersionSpec, Word
from ..parameters import opset_range
from .implementation import Implementation, Invocation, Refused, comes

Misread: TypeAlias = Callable[[Any], Any]
"""Returns the misread value; unchanged if the mistake makes no difference."""


def call_mutants(spec: Spec, version: VersionSpec) -> Iterator[Implementation]:
    """Yield the mutants of a version's signature, and of its differences from neighbouring versions."""
    for attribute in version.signature.attributes:
        yield from (replace(mutant, about=attribute.name) for mutant in _of_attribute(attribute, version))
    ports = version.signature.inputs
    for port in ports:
        yield from _of_port(port, version)
    for first, second in pairwise(ports):
        if not first.is_variadic and not second.is_variadic:
            name, text = f"{first.name}-and-{second.name}-swapped", f"swaps {first.name} and {second.name}"
            yield _call(name, text, partial(_swapped, a=first.name, b=second.name), incidental=True)
    for port in ports[1:]:
        if not port.is_variadic:
            text = f"reads {ports[0].name} in place of {port.name} if it fits"
            reading = partial(_instead, a=ports[0].name, b=port.name)
            yield _call(f"{ports[0].name}-for-{port.name}", text, reading, incidental=True)
    if len(ports) > 1 or any(port.is_variadic for port in ports):
        for what, refusing in (("shapes", _no_broadcasting), ("ranks", _one_rank)):
            yield _call(f"{what}-differ-refused", f"refuses inputs of different {what}", refusing, incidental=True)
    yield from _neighbours(spec, version)
    span = opset_range(spec, version)
    if span is not None and span[0] < span[1]:
        text = "supports the version only in its first opset"
        yield _call("first-opset-alone", text, lambda i: _refusing(i, i.program.opset != span[0], "another opset"))
        text = "supports the version in every opset but its first"
        yield _call("first-opset-refused", text, lambda i: _refusing(i, i.program.opset == span[0], "that opset"))


_OF_SOME = frozenset({"negative-plus-one", "last-plus-one", "reversed", "sorted", "first-alone"})
"""Misreadings of negative numbers and of lists, which not every operator has."""


def _call(name: str, text: str, reading: Callable[..., Invocation], *, incidental: bool = False) -> Implementation:
    return Implementation(name, "call", text, reading=reading, incidental=incidental)


def _refusing(i: Invocation, when: bool, words: str) -> Invocation:
    if when:
        raise Refused(words)
    return i


def misreadings(words: Sequence[str] = ()) -> Mapping[str, tuple[str, Misread]]:
    """Return the misreadings of a value, by the name of the mistake; `words` are the possible texts."""
    mistakes: dict[str, tuple[str, Misread]] = {
        "plus-one": ("plus 1", _numbers(lambda v: v + 1)),
        "minus-one": ("minus 1", _numbers(lambda v: v - 1)),
        "negated": ("negated", _numbers(lambda v: -v)),
        "negative-plus-one": ("plus 1 if negative", _numbers(lambda v: v + 1 if v < 0 else v)),
        "last-plus-one": ("with its last number plus 1", _listed(lambda v: [*v[:-1], v[-1] + 1])),
        "reversed": ("in reverse order", _listed(lambda v: v[::-1])),
        "sorted": ("in ascending order", _listed(sorted)),
        "first-alone": ("with only its first number", _listed(lambda v: v[:1])),
        "off-by-2^-8": ("1/256 larger", _real(lambda v: v * (1 + 2.0**-8))),
        "zero": ("as zero", _real(lambda v: np.nan_to_num(v, posinf=0.0, neginf=0.0) * 0)),
    }
    for word in words:
        mistakes[f"as-{word}"] = (f"as {word}", _said(word))
    return mistakes


def _said(word: str) -> Misread:
    return lambda value: word if isinstance(value, str) else value


def _numbers(change: Callable[[int], int]) -> Misread:
    def changed(value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return change(value)
        if isinstance(value, tuple) and all(isinstance(v, int) for v in value):
            return tuple(map(change, value))
        return value

    return changed


def _listed(change: Callable[[Sequence[Any]], Sequence[Any]]) -> Misread:
    def changed(value: Any) -> Any:
        numbers = isinstance(value, tuple) and value and all(isinstance(v, int | float) for v in value)
        return tuple(change(value)) if numbers else value

    return changed


def _real(change: Callable[[Any], Any]) -> Misread:
    def changed(value: Any) -> Any:
        if isinstance(value, float):
            return change(value)
        if isinstance(value, tuple) and any(isinstance(v, float) for v in value):
            return tuple(change(v) if isinstance(v, float) else v for v in value)
        if isinstance(value, Tensor) and "float" in value.type:
            array = value.array()
            return Tensor.of(np.asarray(change(array.astype(np.float64)), array.dtype).reshape(array.shape))
        return value

    return changed


def _of_attribute(attribute: AttributeSignature, version: VersionSpec) -> Iterator[Implementation]:
    name, default = attribute.name, attribute.default
    if not attribute.required:
        yield _call(f"{name}-ignored", f"ignores the attribute {name}", partial(_without, name=name))
        text = f"refuses a call without the attribute {name}"
        missing = f"{name} is missing"
        yield _call(f"{name}-required", text, lambda i: _refusing(i, name not in i.attributes, missing))
    for mistake, (words, misread) in _mistakes(attribute, version).items():
        text, reading = f"reads the attribute {name} {words}", partial(_misread, name=name, misread=misread)
        yield _call(f"{name}-{mistake}", text, reading, incidental=mistake in _OF_SOME)
        if default is not None and (wrong := misread(default)) != default:
            text, reading = f"reads a missing {name} as {wrong}, not {default}", partial(_usual, name=name, value=wrong)
            yield _call(f"{name}-default-{mistake}", text, reading)
            text = f"reads {name} as {wrong} if its default is given"
            reading = partial(_explicit, name=name, default=default, wrong=wrong)
            yield _call(f"{name}-explicit-{mistake}", text, reading)


def _mistakes(attribute: AttributeSignature, version: VersionSpec) -> Mapping[str, tuple[str, Misread]]:
    """Return the mistakes that make a difference for an attribute: switches are inverted, text becomes another word."""
    levels = version.parameters.get(attribute.name, {}).values()
    numbers = [v for v in (*levels, attribute.default) if isinstance(v, bool | int)]
    if isinstance(attribute.default, bool | int) and all(v in (0, 1) for v in numbers):
        return {"inverted": ("inverted", _numbers(lambda v: 1 - v if v in (0, 1) else v))}
    words = tuple(dict.fromkeys(v for v in levels if isinstance(v, str)))
    samples = _SAMPLES.get(attribute.kind, ())
    return {
        mistake: misreading
        for mistake, misreading in misreadings(words if attribute.kind == "string" else ()).items()
        if any(misreading[1](value) != value for value in samples)
    }


_SAMPLES: Mapping[str, Sequence[Any]] = {
    **dict.fromkeys(("int", "s64"), (2, -2)),
    **dict.fromkeys(("bool", "boolean"), (True,)),
    **dict.fromkeys(("ints", "s64s"), ((2, -1),)),
    **dict.fromkeys(("floats", "f32s"), ((2.5, 1.5),)),
    **dict.fromkeys(("float", "f32"), (1.5,)),
    "string": ("",),
    "tensor": (Tensor.of(np.array([1.5, 2.5], np.float32)),),
}


def _without(i: Invocation, name: str) -> Invocation:
    return i.with_attribute(name, None) if name in i.attributes else i


def _usual(i: Invocation, name: str, value: Any) -> Invocation:
    return i if name in i.attributes else i.with_attribute(name, value)


def _misread(i: Invocation, name: str, misread: Misread) -> Invocation:
    value = i.attributes.get(name)
    wrong = misread(value)
    return i if value is None or wrong == value else i.with_attribute(name, wrong)


def _explicit(i: Invocation, name: str, default: Any, wrong: Any) -> Invocation:
    return i.with_attribute(name, wrong) if i.attributes.get(name) == default else i


def _of_port(port: Port, version: VersionSpec) -> Iterator[Implementation]:
    name = port.name
    if port.option == "optional":
        yield _call(f"{name}-ignored", f"ignores the input {name}", partial(_dropped, name=name))
        text = f"refuses a call without the input {name}"
        yield _call(f"{name}-required", text, lambda i: _refusing(i, i.port(name) is None, f"{name} is missing"))
    yield from _of_delivery(name, version)
    if port.is_variadic:
        for mistake, (words, change) in _OF_MANY.items():
            reading = partial(_of_many, name=name, change=change)
            yield _call(f"{name}-{mistake}", f"reads {name} {words}", reading, incidental=mistake == "reversed")
    letter = version.signature.letter(name)
    types = version.signature.types[letter] if letter else (port.type,)
    if not port.is_variadic and all(t in element_types() and element_types()[t].is_integer for t in types):
        for mistake, (words, misread) in misreadings().items():
            if mistake not in ("off-by-2^-8", "zero"):
                text, reading = (
                    f"reads the numbers of {name} {words}",
                    partial(_list_misread, name=name, misread=misread),
                )
                yield _call(f"{name}-{mistake}", text, reading, incidental=mistake in _OF_SOME)


def _of_delivery(name: str, version: VersionSpec) -> Iterator[Implementation]:
    """Yield mutants that accept an input only if fed, or only as a constant, if cases have both."""
    written = any(not isinstance(level, Word | Recipe) for level in version.parameters.get(name, {}).values())
    both = f"{name}-from" in version.parameters
    if both or not written:
        text, why = f"refuses the input {name} if it is fed", f"{name} must be constant"
        yield _call(f"{name}-fed-refused", text, lambda i: _refusing(i, comes(i, name, fed=True), why))
    if (both or written) and version.signature.attribute(name) is None:
        text, reason = f"refuses the input {name} if it is a constant", f"{name} is constant"
        yield _call(f"{name}-constant-refused", text, lambda i: _refusing(i, comes(i, name, fed=False), reason))


_OF_MANY: Mapping[str, tuple[str, Callable[[tuple[Array, ...]], tuple[Array, ...]]]] = {
    "last-ignored": ("without its last tensor", lambda given: given[:-1] or given),
    "first-alone": ("with only its first two tensors", lambda given: given[:2]),
    "reversed": ("in reverse order", lambda given: given[::-1]),
    "last-for-first": ("with its last tensor in place of the first", lambda given: (given[-1], *given[1:])),
}


def _of_many(i: Invocation, name: str, change: Callable[[tuple[Array, ...]], tuple[Array, ...]]) -> Invocation:
    given = i.port(name)
    if not isinstance(given, tuple) or not given:
        return i
    wrong = change(given)
    same = len(wrong) == len(given) and all(a is b for a, b in zip(wrong, given, strict=True))
    return i if same else i.with_port(name, wrong)


def _list_misread(i: Invocation, name: str, misread: Misread) -> Invocation:
    """Change the numbers of a port that has at most one list per lane."""
    given = i.port(name)
    if not isinstance(given, np.ndarray) or given.ndim > 2 or not given.size:
        return i
    rows = [misread(tuple(map(int, row))) if given.ndim == 2 else misread(int(row)) for row in given]
    low, high = np.iinfo(given.dtype).min, np.iinfo(given.dtype).max
    wrong = np.clip(np.array(rows, object), low, high).astype(given.dtype)
    return i if wrong.shape == given.shape and (wrong == given).all() else i.with_port(name, wrong)


def _dropped(i: Invocation, name: str) -> Invocation:
    return i if i.port(name) is None else i.with_port(name, None)


def _swapped(i: Invocation, a: str, b: str) -> Invocation:
    first, second = i.port(a), i.port(b)
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray) or first.dtype != second.dtype:
        return i
    return i.with_port(a, second).with_port(b, first)


def _instead(i: Invocation, a: str, b: str) -> Invocation:
    first, second = i.port(a), i.port(b)
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return i
    return i.with_port(b, first) if first.dtype == second.dtype and first.shape == second.shape else i


def _no_broadcasting(i: Invocation) -> Invocation:
    return _refusing(i, len({a.shape for a in i.arrays}) > 1, "shapes differ")


def _one_rank(i: Invocation) -> Invocation:
    return _refusing(i, len({a.ndim for a in i.arrays}) > 1, "ranks differ")


def _neighbours(spec: Spec, version: VersionSpec) -> Iterator[Implementation]:
    """Yield mutants that behave like the previous version, or like the next one."""
    for other in neighbours(spec, version):
        name, text = f"as-{other.operator.name}-{other.operator.version}", f"behaves like {other.operator}"
        yield _call(name, text, partial(as_version, version=other), incidental=True)


def neighbours(spec: Spec, version: VersionSpec) -> list[VersionSpec]:
    """Return the version before and the one after."""
    versions = list(spec.versions.values())
    index = versions.index(version)
    return [*versions[max(0, index - 1) : index], *versions[index + 1 : index + 2]]


def as_version(i: Invocation, version: VersionSpec) -> Invocation:
    """Return an invocation as another version reads it; values move between attributes and inputs as needed.

    Raises Refused if the other version lacks a given attribute or input.
    """
    signature, own = version.signature, i.version.signature
    attributes: dict[str, Any] = {}
    ports: list[Any] = [None] * len(signature.inputs)
    names = [port.name for port in signature.inputs]
    for name, value in i.attributes.items():
        if signature.attribute(name) is not None:
            attributes[name] = value
        elif name in names:
            numbers = np.asarray(value)
            ports[names.index(name)] = np.broadcast_to(numbers, (len(i.arrays[0]), *numbers.shape))
    for index, (port, given) in enumerate(zip(own.inputs, i.ports, strict=False)):
        if given is None:
            continue
        if signature.attribute(port.name) is not None and isinstance(given, np.ndarray):
            value = given[0].tolist()
            attributes[port.name] = tuple(value) if isinstance(value, list) else value
        elif port.name in names or index < len(names):
            ports[names.index(port.name) if port.name in names else index] = given
        else:
            raise Refused(f"{version.operator} has no input {port.name}")
    return replace(i, version=version, attributes=attributes, ports=tuple(ports))

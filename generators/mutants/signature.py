"""Mutants that the signature gives: defaults, attributes, optional inputs and types, each handled wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from ...cases.elements import Array, element_type, element_types
from ...specs.model import AttributeSignature, Port, Spec, Value, VersionSpec, Word
from ..envelope import kindest_opset
from ..strategy.rows import data_port, text_of
from .call import Call
from .implementation import Implementation, finishing, refusing, rewriting
from .native import Working

# What a type may by mistake be computed in: narrower, of the other signedness, or one that lacks some of its numbers.
_THROUGH: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "float64": ("float32",),
        "float32": ("float16", "bfloat16"),
        "float16": ("bfloat16",),
        "bfloat16": ("float16",),
        "int64": ("int32", "uint64", "float64", "float32"),
        "uint64": ("uint32", "int64", "float64", "float32"),
        "int32": ("int16", "uint32", "float32"),
        "uint32": ("uint16", "int32", "float32"),
        "int16": ("int8", "uint16", "bfloat16"),
        "uint16": ("uint8", "int16", "bfloat16"),
        "int8": ("uint8",),
        "uint8": ("int8",),
    }
)
_ANSWERED = ("float32", "float64", "int64")


def signature_mutants(spec: Spec, version: VersionSpec) -> Iterator[Implementation]:
    """Yield the mutants of a version's signature."""
    for attribute in version.signature.attributes:
        yield from _of_attribute(attribute)
    for port in version.signature.inputs[1:]:
        yield from _of_input(port, version)
    letter = version.signature.letter(data_port(version).name)
    types = version.signature.types[letter] if letter else (data_port(version).type,)
    for name in types:
        yield from _of_type(name)
    yield from _of_output(types)
    if spec.standard == "onnx":
        usual = kindest_opset(spec, version)
        yield Implementation(
            "one-opset-alone",
            "signature",
            "knows the version in one opset alone, not in all from its own to the next version's",
            "ONNX's opsets",
            around=refusing(lambda call: call.program.opset != usual, "another opset"),
        )


def _of_attribute(attribute: AttributeSignature) -> Iterator[Implementation]:
    name, default = attribute.name, attribute.default
    if default is not None:
        other = _other(default)
        shown = text_of(other)
        yield Implementation(
            f"default-{name}-{shown}",
            "signature",
            f"takes {shown} where {name} is missing, whose default is {text_of(default)}",
            f"an attribute {name} with the default {text_of(default)}",
            around=rewriting(_defaulted(name, other)),
        )
        yield Implementation(
            f"explicit-{name}-misread",
            "signature",
            f"takes {shown} where {name} is set to {text_of(default)}, its default",
            f"an attribute {name} with the default {text_of(default)}",
            around=rewriting(_misread(name, default, other)),
        )
    if isinstance(default, int):
        yield Implementation(
            f"inverted-{name}",
            "signature",
            f"takes 0 for 1 and 1 for 0 where {name} is given",
            f"an attribute {name} that is a switch",
            around=rewriting(lambda call: _inverted(call, name)),
        )
    if not attribute.required:
        yield Implementation(
            f"ignored-{name}",
            "signature",
            f"ignores the attribute {name}",
            f"an optional attribute {name}",
            around=rewriting(lambda call: call.with_attribute(name, Word.ABSENT) if name in call.attributes else call),
        )


def _other(default: Value) -> Value:
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return {0: 1, 1: 0}.get(default, default + 1)
    if isinstance(default, float):
        return default + 1.0
    return (0,) if default == () else ()


def _defaulted(name: str, value: Value) -> Callable[[Call], Call]:
    def defaulted(call: Call) -> Call:
        known = call.version.signature.attribute(name) is not None
        return call.with_attribute(name, value) if known and name not in call.attributes else call

    return defaulted


def _misread(name: str, default: Value, value: Value) -> Callable[[Call], Call]:
    return lambda call: call.with_attribute(name, value) if call.attributes.get(name) == default else call


def _inverted(call: Call, name: str) -> Call:
    value = call.attributes.get(name)
    if value not in (0, 1):
        return call
    return call.with_attribute(name, (not value) if isinstance(value, bool) else 1 - int(value))


def _of_input(port: Port, version: VersionSpec) -> Iterator[Implementation]:
    name = port.name
    if port.option == "optional":
        yield Implementation(
            f"dropped-{name}",
            "signature",
            f"ignores the input {name}",
            f"an optional input {name}",
            around=rewriting(lambda call: call.without_input(name) if name in call.others else call),
        )
    if port.option == "optional" and version.operator.standard == "onnx":
        yield Implementation(
            f"omitted-{name}-refused",
            "signature",
            f"refuses the input {name} with an empty name",
            f"an optional input {name} that an empty name leaves out",
            around=refusing(lambda call: call.others.get(name, ()) is None, f"no input is called '' ({name})"),
        )
    yield Implementation(
        f"fed-{name}-refused",
        "signature",
        f"refuses the input {name} where it comes with the run",
        f"an input {name}",
        around=refusing(lambda call: name in call.fed, f"{name} must be constant"),
    )
    if version.signature.attribute(name) is None:
        yield Implementation(
            f"constant-{name}-refused",
            "signature",
            f"refuses the input {name} where it is a constant",
            f"an input {name} that may be a constant",
            around=refusing(
                lambda call: call.others.get(name) is not None and name not in call.fed, f"{name} must not be constant"
            ),
        )
    yield from _of_input_types(port, version)


def _of_input_types(port: Port, version: VersionSpec) -> Iterator[Implementation]:
    """Yield refusals of the types that an input beside the data may have."""
    letter = version.signature.letter(port.name)
    types = version.signature.types[letter] if letter else ()
    for name in types if len(types) > 1 else ():
        yield Implementation(
            f"{name}-{port.name}-refused",
            "signature",
            f"refuses the input {port.name} of type {name}",
            f"an input {port.name} of type {name}",
            around=refusing(_of_that_type(port.name, name), f"{port.name} must not be of type {name}"),
        )


def _of_that_type(port: str, name: str) -> Callable[[Call], bool]:
    dtype = element_type(name).dtype

    def is_of_it(call: Call) -> bool:
        array = call.others.get(port)
        return array is not None and array.dtype == dtype

    return is_of_it


def _of_type(name: str) -> Iterator[Implementation]:
    for other in _THROUGH.get(name, ()):
        yield Implementation(
            f"{name}-through-{other}",
            "signature",
            f"computes {name} in {other}",
            f"data of type {name}",
            Working(through=MappingProxyType({name: other})),
        )
    dtype = element_type(name).dtype
    yield Implementation(
        f"{name}-refused",
        "signature",
        f"refuses data of type {name}",
        f"data of type {name}",
        around=refusing(lambda call: bool(call.data) and call.data[0].dtype == dtype, f"no kernel for {name}"),
    )


def _of_output(types: tuple[str, ...]) -> Iterator[Implementation]:
    for name in _ANSWERED:
        if set(types) - {name}:
            yield Implementation(
                f"answers-{name}",
                "signature",
                f"answers in {name}, whatever the type of the input",
                f"data of another type than {name}",
                around=finishing(_cast(name)),
            )
    integers = [t for t in types if element_types()[t].is_integer]
    if integers:
        yield Implementation(
            "integers-answer-float64",
            "signature",
            "answers integers in float64, as true division does",
            "data of an integer type",
            around=finishing(lambda _call, out: out.astype(np.float64) if out.dtype.kind in "iu" else out),
        )
    if {"float16", "bfloat16"} & set(types):
        yield Implementation(
            "16-bits-answer-float32",
            "signature",
            "answers 16-bit floating point in float32",
            "data of a 16-bit floating-point type",
            around=finishing(
                lambda _call, out: out.astype(np.float32) if out.dtype.kind not in "iu" and out.itemsize == 2 else out
            ),
        )


def _cast(name: str) -> Callable[[Call, Array], Array]:
    dtype = element_type(name).dtype

    def cast(_call: Call, out: Array) -> Array:
        with np.errstate(all="ignore"):
            return out.astype(dtype)

    return cast

"""ONNX specs against the schemas of the installed onnx package, which are the standard."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ...cases.program import AttributeValue
from ..model import AttributeSignature, Port, Signature, Spec, Version
from .findings import Authority, Differences, Exercise, Findings, attribute_text, port_text, versions_held

if TYPE_CHECKING:
    from onnx.defs import OpSchema

DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training")
"""The domains of the standard's operators; those called preview are drafts."""

_RENAMED: Mapping[str, str] = {"float": "float32", "double": "float64"}
_TENSOR = re.compile(r"(?<!\w)tensor\((\w+)\)")


@functools.cache
def onnx_signatures(domain: str = "") -> Mapping[str, Mapping[int, Signature]]:
    """Return the signatures of all versions of all operators of a domain, by name and ascending version."""
    import onnx.defs  # noqa: PLC0415 - costs 190 ms

    found: dict[str, dict[int, Signature]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == domain:
            found.setdefault(schema.name, {})[schema.since_version] = _signature(schema)
    return {name: dict(sorted(found[name].items())) for name in sorted(found)}


def onnx_version() -> str:
    """Return the version of the installed onnx package."""
    import onnx  # noqa: PLC0415

    return str(onnx.__version__)


@functools.cache
def newest_opset(domain: str = "") -> int:
    """Return the newest version of a domain's operator set that the installed onnx package knows."""
    import onnx.defs  # noqa: PLC0415

    if not domain:
        return int(onnx.defs.onnx_opset_version())
    return max((version for versions in onnx_signatures(domain).values() for version in versions), default=0)


def as_float32(value: float) -> float:
    """Return the shortest decimal number that is `value` in a float32, which is what ONNX stores."""
    import numpy as np  # noqa: PLC0415

    with np.errstate(over="ignore"):
        return float(str(np.float32(value)))


def _signature(schema: OpSchema) -> Signature:
    attributes = [_attribute(name, attribute) for name, attribute in sorted(schema.attributes.items())]
    return Signature(
        tuple(sorted(attributes, key=lambda a: (not a.required, a.name))),
        tuple(map(_port, schema.inputs)),
        tuple(map(_port, schema.outputs)),
        {t.type_param_str: tuple(map(_type, t.allowed_type_strs)) for t in schema.type_constraints},
        deprecated=schema.deprecated,
    )


def _attribute(name: str, attribute: OpSchema.Attribute) -> AttributeSignature:
    kind = str(attribute.type).rpartition(".")[2].lower()
    return AttributeSignature(name, kind, attribute.required, _default(attribute))


def _default(attribute: OpSchema.Attribute) -> AttributeValue | None:
    import onnx.helper  # noqa: PLC0415

    if not attribute.default_value.name:
        return None
    value = onnx.helper.get_attribute_value(attribute.default_value)
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return as_float32(value) if isinstance(value, float) else value


def _port(port: OpSchema.FormalParameter) -> Port:
    option = str(port.option).rpartition(".")[2]
    if option == "Variadic":
        return Port(port.name, _type(port.type_str), "variadic" if port.is_homogeneous else "each", port.min_arity)
    if option == "Optional":
        return Port(port.name, _type(port.type_str), "optional", 0)
    return Port(port.name, _type(port.type_str))


def _type(text: str) -> str:
    """Return ONNX's `seq(tensor(float))` as `seq(float32)`; a type letter as it is."""
    found = _TENSOR.sub(
        lambda m: _RENAMED.get(m[1], m[1]), text.replace("sparse_tensor(", "sparse(").replace(", ", ",")
    )
    return re.sub(r"\b(float|double)\b", lambda m: _RENAMED[m[1]], found)


_Schemas: TypeAlias = Mapping[str, Mapping[int, Signature]]


def onnx_authority() -> Authority:
    """Return what ONNX specs are held against."""
    schemas = {domain: onnx_signatures(domain) for domain in DOMAINS}
    return Authority(
        "onnx",
        "the schemas of onnx",
        onnx_version(),
        {domain or "ai.onnx": _extents(schemas[domain]) for domain in DOMAINS},
        lambda spec: _findings(spec, schemas),
        lambda spec: spec.domain or "ai.onnx",
    )


def _extents(schemas: _Schemas) -> dict[str, Exercise]:
    return {
        f"onnx/{name}-{version}": Exercise(
            frozenset((letter, t) for letter, allowed in schema.types.items() for t in allowed),
            frozenset(a.name for a in schema.attributes),
        )
        for name, by_version in schemas.items()
        for version, schema in by_version.items()
    }


def _findings(spec: Spec, schemas: Mapping[str, _Schemas]) -> Findings:
    """Return the differences of a spec, and what is newer than the schemas."""
    if spec.domain not in schemas:
        known = ", ".join(domain or "ai.onnx (leave it out)" for domain in schemas)
        return Findings((spec.error(("domain",), f"no domain {spec.domain!r}; there is {known}"),))
    newest = newest_opset(spec.domain)
    newer = [v for v in spec.versions if isinstance(v, int) and v > newest]
    found, both = versions_held(spec, f"onnx {onnx_version()}", schemas[spec.domain], newer)
    compared = _Comparison(spec)
    for version in both:
        compared.compare(version, spec.versions[version].signature, schemas[spec.domain][spec.name][int(version)])
    return found + Findings(tuple(compared.differences.errors()))


class _Comparison:
    """Holds the signatures of a spec against those of the schemas."""

    def __init__(self, spec: Spec) -> None:
        self.differences = Differences(spec)

    def compare(self, version: Version, here: Signature, schema: Signature) -> None:
        if here.deprecated != schema.deprecated:
            words = "the schema says that it is deprecated" if schema.deprecated else "the schema has it not deprecated"
            self.differences.add_to_version(version, words)
        self.attributes(version, here, schema)
        self.ports(version, "inputs", here.inputs, schema.inputs)
        self.ports(version, "outputs", here.outputs, schema.outputs)
        self.types(version, here.types, schema.types)

    def attributes(self, version: Version, here: Signature, schema: Signature) -> None:
        for name in dict.fromkeys(a.name for a in (*here.attributes, *schema.attributes)):
            a, b = here.attribute(name), schema.attribute(name)
            if _rounded(a) != _rounded(b):
                words = f"attribute {name}: here {attribute_text(a)}, the schema has {attribute_text(b)}"
                self.differences.add(version, words, "attributes", name)

    def ports(self, version: Version, section: str, here: tuple[Port, ...], schema: tuple[Port, ...]) -> None:
        for index in range(max(len(here), len(schema))):
            a = here[index] if index < len(here) else None
            b = schema[index] if index < len(schema) else None
            if a != b:
                words = f"{section[:-1]} {index + 1}: here {port_text(a)}, the schema has {port_text(b)}"
                self.differences.add(version, words, section, a.name if a else "")
                return  # the others are shifted

    def types(
        self, version: Version, here: Mapping[str, tuple[str, ...]], schema: Mapping[str, tuple[str, ...]]
    ) -> None:
        for letter in dict.fromkeys((*here, *schema)):
            a, b = here.get(letter), schema.get(letter)
            if a is None or b is None:
                words = "is missing here" if a is None else "is not in the schema"
                self.differences.add(version, f"type letter {letter} {words}", "types", letter)
            elif set(a) != set(b):
                parts = [("only here", set(a) - set(b)), ("only in the schema", set(b) - set(a))]
                told = "; ".join(f"{what}: {', '.join(sorted(types))}" for what, types in parts if types)
                self.differences.add(version, f"types of {letter}: {told}", "types", letter)


def _rounded(attribute: AttributeSignature | None) -> object:
    """Return what must be equal: defaults of floats as the float32 that ONNX stores."""
    if attribute is None:
        return None
    default = attribute.default
    values = default if isinstance(default, tuple) else (default,)
    same = tuple(as_float32(v) if isinstance(v, float) else v for v in values)
    return (attribute.kind, attribute.required, default is None, isinstance(default, tuple), same)

"""Signatures of ONNX's operators as the installed onnx package defines them, in the same form as those of specs."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..cases.model import AttributeValue
from .model import AttributeSignature, Port, Signature

if TYPE_CHECKING:
    from onnx.defs import OpSchema

DOMAINS = ("", "ai.onnx.ml")
"""The domains that belong to the standard as operators; the preview domains are training drafts."""

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
    found = _TENSOR.sub(lambda m: _RENAMED.get(m[1], m[1]), text.replace("sparse_tensor(", "sparse("))
    return re.sub(r"\b(float|double)\b", lambda m: _RENAMED[m[1]], found)

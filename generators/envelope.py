"""The ONNX model around a node: which opset carries an operator version."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..cases.errors import OpconformError
from ..specs.model import Spec, VersionSpec

NEWEST_OPSETS: Mapping[str, int] = MappingProxyType(
    {"": 28, "ai.onnx.ml": 5, "ai.onnx.preview": 1, "ai.onnx.preview.training": 1}
)
"""The newest opset of each domain that this suite covers (ONNX 1.23)."""

RELEASED_OPSET = 26
"""The newest opset of ai.onnx that released backends know; those of other domains they know all."""


def opset_range(spec: Spec, version: VersionSpec) -> tuple[int, int] | None:
    """Return the first and the last opset in which a version is in force; None outside ONNX."""
    if spec.standard != "onnx":
        return None
    first = int(version.operator.version)
    later = [int(v) for v in spec.versions if int(v) > first]
    return first, (min(later) - 1 if later else max(NEWEST_OPSETS.get(spec.domain, first), first))


def kindest_opset(spec: Spec, version: VersionSpec) -> int | None:
    """Return the opset that turns the fewest away.

    That is the first of the current version, and of a superseded one the last that released backends know.
    """
    span = opset_range(spec, version)
    if span is None:
        return None
    superseded = version.operator.version != list(spec.versions)[-1]
    if not superseded:
        return span[0]
    return span[1] if spec.domain else max(span[0], min(span[1], RELEASED_OPSET))


def opset_named(spec: Spec, version: VersionSpec, name: str) -> int:
    """Return the `first` or `last` opset of a version's range."""
    span = opset_range(spec, version)
    if span is None or name not in ("first", "last"):
        raise OpconformError(f"{version.operator}: opset is first or last, and ONNX's; read {name!r}")
    return span[0] if name == "first" else span[1]

"""What OpenVINO infers of a model's outputs without compiling it, for its own operations and for imported ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...cases.inferred import UNKNOWN, inferred
from ...cases.program import UNRANKED, Program
from ...cases.runner import BackendKind, Executable
from ..clients.python_client import OPENVINO_TYPES
from .base import Texts
from .openvino import OpenVino, OpenVinoOnnx

_NAMES = {theirs: ours for ours, theirs in OPENVINO_TYPES.items()}


class OpenVinoInfer(OpenVino):
    """OpenVINO operations: the types and shapes with which a node is validated."""

    name = "openvino-infer"
    kind: BackendKind = "infer"
    without_device = "validation of nodes"

    def prepare(self, program: Program, /) -> Executable:
        """Make the model of `program`. Raises Unsupported, or OpenVINO's own error."""
        with self.refusing():
            model = self._model(program)
            symbols = _name_dimensions(self.library, model, program)
            texts = [_text(port, symbols) for port in model.outputs]
        return Texts(texts)


class OpenVinoOnnxInfer(OpenVinoInfer, OpenVinoOnnx):
    """ONNX programs through OpenVINO's ONNX front end."""

    name = "openvino-onnx-infer"
    standards: tuple[str, ...] = ("onnx",)
    without_device = "the ONNX front end"


def _name_dimensions(library: Any, model: Any, program: Program) -> list[tuple[str, Any]]:
    """Give each symbolic dimension of a model's parameters a symbol, infer again, and return names with symbols."""
    symbols: list[tuple[str, Any]] = []
    by_name = {given.name: given for given in program.feeds}
    for parameter in model.get_parameters():
        given = by_name.get(parameter.get_friendly_name())
        if given is None or given.dims == UNRANKED or not any(isinstance(size, str) for size in given.dims):
            continue
        dims = []
        for size in given.dims:
            dim = library.Dimension() if isinstance(size, str) else library.Dimension(size)
            if isinstance(size, str):
                symbol = library.Symbol()
                dim.set_symbol(symbol)
                symbols.append((size, symbol))
            dims.append(dim)
        parameter.set_partial_shape(library.PartialShape(dims))
    if symbols:
        model.validate_nodes_and_infer_types()
    return symbols


def _text(port: Any, symbols: Sequence[tuple[str, Any]]) -> str:
    """Return the type and shape of an output as text."""
    type_, shape = port.get_element_type().get_type_name(), port.get_partial_shape()
    if shape.rank.is_dynamic:
        return inferred(_NAMES.get(type_), None)
    return inferred(_NAMES.get(type_), [_dimension(dim, symbols) for dim in shape])


def _dimension(dim: Any, symbols: Sequence[tuple[str, Any]]) -> int | str:
    if dim.is_static:
        return int(dim.get_length())
    if dim.has_symbol():
        own = dim.get_symbol()
        name = next((name for name, symbol in symbols if symbol == own), None)
        if name is not None:
            return name
    low, high = dim.get_min_length(), dim.get_max_length()
    return UNKNOWN if (low, high) == (0, -1) else f"{low}..{high if high >= 0 else ''}"

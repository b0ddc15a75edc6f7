"""ONNX programs on MNN, which converts them to its own format. It prints why it fails, and some programs crash it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ...cases.elements import Array, type_of
from ...cases.onnx_model import feed_names, onnx_bytes, output_names
from ...cases.program import Program
from ...cases.runner import Words
from .base import imported
from .onnx_library import Call, OnnxLibrary, nameless_file, printed

WORDS = (
    Words(r"These Op Not Support|Don't support type", "operator-version", plain=True),
    Words(r"code=2 in onForward", "type", plain=True),  # NOT_SUPPORT of its ErrorCode
    # Refusals of valid or invalid programs.
    Words(r"code=1 in onForward", "memory"),
    Words(r"Compute Shape Error|code=3 in onForward", "shape"),
)
"""The messages of MNN 3.6, which it prints."""

_TENSORS = MappingProxyType({"float32": "float", "int32": "int", "uint8": "uint8"})
"""The types that MNN exchanges through NumPy, by its names; other types in a model are read as one of these."""

_DTYPES = MappingProxyType({f"dtype.{theirs}": ours for ours, theirs in _TENSORS.items()})
_PROGRESS = re.compile(r"^(Start to .*\n|.*ONNX Model .* version: .*\n|\[[\d:]+\] )", re.MULTILINE)


class Mnn(OnnxLibrary):
    """MNN on the CPU: one thread, full float32 precision."""

    name = "mnn"
    module = package = "MNN"
    words = WORDS
    types = frozenset(_TENSORS)

    def __init__(self) -> None:
        # The converter itself: the module around it, MNN.tools.mnnconvert, runs pip and reports to a server.
        self._convert = imported("_tools", self.package).mnnconvert
        super().__init__()

    def describe(self) -> dict[str, str]:
        """Return how modules are made."""
        return {"device": "CPU", "threads": "1", "precision": "high"}

    def compiled(self, program: Program) -> Call:
        """Convert and load the model of `program`. Raises RuntimeError with the printed text if that fails."""
        expr = self.library.expr
        with nameless_file(onnx_bytes(program)) as model, nameless_file() as converted:
            self._converted(model, converted)
            names = list(feed_names(program)), list(output_names(program))
            precision = expr.PrecisionMode.High
            module = self.library.nn.load_module_from_file(converted, *names, precision_mode=precision, thread_num=1)

        def run(inputs: Sequence[Array]) -> list[Any]:
            given = [expr.const(x, list(x.shape), expr.NCHW, getattr(expr.dtype, _TENSORS[type_of(x)])) for x in inputs]
            outputs = module.forward(given)
            if not outputs:
                raise RuntimeError(_heard(lambda: module.forward(given)))
            return [_array(output) for output in outputs]

        return run

    def _converted(self, model: str, converted: str) -> None:
        arguments = {"-f": "ONNX", "--modelFile": model, "--MNNModel": converted, "--bizCode": "opconform"}

        def convert() -> None:
            self._convert(["mnnconvert", *(word for pair in arguments.items() for word in pair)])

        convert()  # returns True even if it fails
        if Path(converted).stat().st_size == 0:
            raise RuntimeError(_heard(convert))


def _array(output: Any) -> Array:
    if not output.size:  # read() fails there
        return np.empty(output.shape, _DTYPES[str(output.dtype)])
    array: Array = output.read().copy()  # shows memory that is freed with the variable
    return array


def _heard(call: Any) -> str:
    return _PROGRESS.sub("", printed(call)).strip()

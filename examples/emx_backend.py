"""emx-onnx-cgen, which generates C: each program is compiled, with the C compiler that is there, and run.

From this folder, after `pip install emx-onnx-cgen`: `opconform run python:emx_backend:Emx --select 'onnx/Mean-13'`.
"""

from __future__ import annotations

import importlib.metadata
from typing import Any

from opconform.cases.onnx_model import onnx_model
from opconform.cases.program import Program
from opconform.cases.runner import NotInstalled, Unsupported


class Emx:
    """The code generator behind its own backend for ONNX's tests."""

    name, standards = "emx-onnx-cgen", ("onnx",)

    def __init__(self) -> None:
        try:
            from emx_onnx_cgen.onnx_backend import backend  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise NotInstalled("emx-onnx-cgen is not installed: pip install emx-onnx-cgen") from error
        self._backend: Any = backend

    def version(self) -> str:
        """Return the package's version."""
        return importlib.metadata.version("emx-onnx-cgen")

    def prepare(self, program: Program) -> Any:
        """Generate and compile C. Raises Unsupported for dynamic shapes, which that backend takes for others."""
        if any(isinstance(size, str) for one in program.feeds for size in one.dims):
            raise Unsupported("sizes are fixed when C is generated", "dynamic")
        try:
            return self._backend.prepare(onnx_model(program))
        except Exception as error:
            if type(error).__name__ == "UnsupportedOpError":
                raise Unsupported(str(error)) from error
            raise

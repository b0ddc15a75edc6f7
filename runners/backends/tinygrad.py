"""ONNX programs on tinygrad, through its ONNX front end: Python that generates and compiles kernels."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Any

from ...cases.elements import Array
from ...cases.onnx_model import feeds, onnx_bytes, output_names
from ...cases.program import Program
from ...cases.runner import Words
from .base import imported
from .onnx_library import Call, OnnxLibrary, to_numpy

WORDS = (
    Words(r"^NotImplementedError: op=.* is not supported", "operator-version", plain=True),
    Words(r"^NotImplementedError", "attribute", plain=True),
    Words(r"Pillow must be installed", "other", plain=True),
    # Refusals of valid or invalid programs.
    Words(r"got an unexpected keyword argument|is not a valid (AttributeType|Domain)", "attribute"),
    Words(r"has mismatch on dim|cannot be broadcast|size mismatch", "shape"),
    Words(r"out of range", "invalid"),
)
"""The messages of tinygrad 0.14."""


class Tinygrad(OnnxLibrary):
    """tinygrad on the device in `DEV`; by default the CPU, or Python itself if clang is missing."""

    name = package = "tinygrad"
    module = "tinygrad"
    words = WORDS

    def __init__(self) -> None:
        super().__init__()
        self._runner = imported("tinygrad.nn.onnx", self.package).OnnxRunner
        if "DEV" not in os.environ:
            self.library.Device.DEFAULT = "CPU" if shutil.which("clang") else "PYTHON"

    def describe(self) -> dict[str, str]:
        """Return the device."""
        return {"device": str(self.library.Device.DEFAULT)}

    def compiled(self, program: Program) -> Call:
        """Read the model of `program`; kernels are compiled when it runs."""
        graph = self._runner(self.library.Tensor(onnx_bytes(program)))
        names = output_names(program)

        def run(inputs: Sequence[Array]) -> list[Any]:
            given = {name: self.library.Tensor(array) for name, array in feeds(program, inputs).items()}
            outputs = graph(given)
            return [to_numpy(outputs[name]) for name in names]

        return run

"""ONNX programs on OpenCV's DNN module: the graph engine of OpenCV 5, and the older layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...cases.elements import Array
from ...cases.onnx_model import feeds, onnx_bytes, output_names
from ...cases.program import Program
from ...cases.runner import Unsupported, Words
from .onnx_library import Call, OnnxLibrary

WORDS = (
    Words(r"Can't create layer", "operator-version", plain=True),
    Words(r"Unsupported input depth|\w(\(\))? == CV_", "type", plain=True),
    Words(r"not found in const blobs|constBlobs\.count", "dynamic", plain=True),
    Words(r"<= \w+_MAX_DIMS", "rank", plain=True),
    Words(r"The function/feature is not implemented|not supported yet|supports only", "attribute", plain=True),
    # Refusals of valid or invalid programs.
    Words(r"\(CV_\w+\)", "type"),
    Words(r"broadcasted|not compatible|[Ss]hape", "shape"),
    Words(r"dims [<=>]", "rank"),
    Words(r"Bad argument|Required argument", "invalid"),
)
"""The messages of OpenCV 5.0."""


class OpenCv(OnnxLibrary):
    """OpenCV 5's graph engine, one thread."""

    name = "opencv"
    module, package = "cv2", "opencv-python-headless"
    words = WORDS
    engine = "ENGINE_AUTO"

    def __init__(self) -> None:
        super().__init__()
        self.library.setNumThreads(1)

    def version(self) -> str:
        """Return the version of OpenCV, which several packages can install."""
        return str(self.library.__version__)

    def describe(self) -> dict[str, str]:
        """Return the engine."""
        return {"engine": self.engine, "threads": "1"}

    def compiled(self, program: Program) -> Call:
        """Read the model of `program`."""
        dnn, names = self.library.dnn, list(output_names(program))
        net = dnn.readNetFromONNX(np.frombuffer(onnx_bytes(program), np.uint8), getattr(dnn, self.engine))

        def run(inputs: Sequence[Array]) -> Sequence[Any]:
            for name, array in feeds(program, inputs).items():
                net.setInput(array, name)
            outputs: Sequence[Any] = net.forward(names)
            if any(output is None for output in outputs):
                raise Unsupported("OpenCV's Python returns None for an array without elements", "shape")
            return outputs

        return run

"""ONNX programs through emx-onnx-cgen, which writes C: each is compiled with the C compiler that is there, and run."""

from __future__ import annotations

from ..cases.onnx_model import onnx_model
from ..cases.program import Program
from ..cases.runner import Unsupported, Words
from .onnx_library import NUMPY_TYPES, Call, OnnxLibrary

WORDS = (
    Words(r"^UnsupportedOpError: Unsupported op ", "operator-version", plain=True),
    Words(r"^UnsupportedOpError: Unsupported elem_type", "type", plain=True),
    Words(r"^UnsupportedOpError: .*([Uu]nsupported|not support|\bsupports )", "attribute", plain=True),
    # Refusals of a valid or an invalid program.
    Words(r"^UnsupportedOpError: .*(must be|expects|requires) .*(u?int|float|bool|dtype)", "type"),
    Words(r"^ShapeInferenceError|^UnsupportedOpError: .*shape", "shape"),
    Words(r"^UnsupportedOpError", "invalid"),
)
"""The words of emx-onnx-cgen 1.4."""


class Emx(OnnxLibrary):
    """The code generator behind its own backend for ONNX's tests, which runs programs that read and write files."""

    name = package = extra = "emx-onnx-cgen"
    module = "emx_onnx_cgen.onnx_backend"
    words = WORDS
    types = NUMPY_TYPES | {"string"}

    def compiled(self, program: Program) -> Call:
        """Write and compile C. Raises Unsupported for symbolic sizes, which it would fix."""
        if any(isinstance(size, str) for one in program.feeds for size in one.dims):
            raise Unsupported("sizes are fixed when C is generated", "dynamic")
        prepared = self.library.prepare(onnx_model(program))
        return lambda inputs: prepared.run(list(inputs))

"""ONNX programs on nxrt, a runtime in Rust with the Python interface of onnxruntime."""

from __future__ import annotations

from ...cases.onnx_model import feeds, onnx_bytes, output_names
from ...cases.program import Program
from ...cases.runner import Words
from .onnx_library import Call, OnnxLibrary

WORDS = (
    Words(r"unsupported operator \S+: no available execution provider has a kernel", "operator-version", plain=True),
    Words(r"unsupported ONNX model: operator", "operator-version", plain=True),
    Words(r"unsupported (element type|dtype)|quantized tensors are supported, got", "type", plain=True),
    Words(r"is not implemented by the native CPU kernel|is unsupported by the inference-only", "attribute", plain=True),
    Words(r"stash_type \d+ unsupported|training dropout is unsupported", "attribute", plain=True),
    # Refusals of valid or invalid programs.
    Words(r"must be Int64|must share one dtype", "type"),
    Words(r"invalid rank|equal rank|rank at least", "rank"),
    Words(r"not broadcast-compatible|shape mismatch|element count|must have shape", "shape"),
    Words(r"attribute .* (is missing|has the wrong type)", "attribute"),
    Words(r"no inferred shape", "shape"),
    Words(r"no `\w+` input or attribute|no supported value attribute", "attribute"),
    Words(r"shape inference failed", "invalid"),
)
"""The messages of nxrt 0.1.0.dev6."""


class Nxrt(OnnxLibrary):
    """nxrt's CPU provider."""

    name = module = package = "nxrt"
    words = WORDS

    def compiled(self, program: Program) -> Call:
        """Make a session for `program`."""
        session = self.library.InferenceSession(onnx_bytes(program), providers=["CPUExecutionProvider"])
        outputs = list(output_names(program))
        return lambda inputs: session.run(outputs, feeds(program, inputs))

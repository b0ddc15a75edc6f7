"""ONNX programs on TVM: its Relax front end for ONNX, and CPU code from LLVM."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ...cases.elements import Array
from ...cases.onnx_model import onnx_model
from ...cases.program import Program
from ...cases.runner import Words
from .base import imported
from .onnx_library import Call, OnnxLibrary, to_numpy

WORDS = (
    Words(r"^OpNotImplemented", "operator-version", plain=True),
    Words(r"Cannot broadcast symbolic dimensions|CodeGenVM cannot emit this Relax operator", "dynamic", plain=True),
    Words(r"Dynamic .*(not supported|not yet supported)|Only constant|is currently unsupported", "dynamic", plain=True),
    Words(r"mixed input dtypes is currently supported only|unknown intrinsic", "type", plain=True),
    Words(r"^NotImplementedError: Ndim > ", "rank", plain=True),
    Words(r"attribute is not supported yet|quantization is not supported yet", "attribute", plain=True),
    Words(r"currently only supports", "attribute", plain=True),
    # Refusals of valid or invalid programs.
    Words(r"Cannot parse attribute|no value in Constant", "attribute"),
    Words(r"[Mm]ismatched type|have float dtype", "type"),
)
"""The messages of TVM 0.27."""

_TARGET = "llvm"


class Tvm(OnnxLibrary):
    """TVM's Relax, for the CPU."""

    name = module = "tvm"
    package = "apache-tvm"
    words = WORDS

    def __init__(self) -> None:
        super().__init__()
        self._from_onnx = imported("tvm.relax.frontend.onnx", self.package).from_onnx

    def describe(self) -> dict[str, str]:
        """Return the target of the generated code."""
        return {"target": _TARGET}

    def compiled(self, program: Program) -> Call:
        """Import and compile the model of `program`."""
        tvm = self.library
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what onnx's checker says, who is not under test
            module = self._from_onnx(onnx_model(program), keep_params_in_input=False)
        machine = tvm.relax.VirtualMachine(tvm.compile(module, _TARGET), tvm.cpu())

        def run(inputs: Sequence[Array]) -> list[Any]:
            outputs = machine["main"](*(tvm.runtime.tensor(array) for array in inputs))
            return [to_numpy(output) for output in (outputs if len(program.answers) > 1 else [outputs])]

        return run

"""An awkward backend: MNN, which converts ONNX files to its own format, prints why it failed, and may die of it.

From this folder, after `pip install MNN`: `opconform run python:mnn_backend:Mnn`. Linux only, for the names of files.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from opconform.cases.elements import Array
from opconform.cases.onnx_model import feed_names, onnx_bytes, output_names
from opconform.cases.program import Program
from opconform.cases.runner import NotInstalled, Unsupported

TENSORS = {"float32": "float", "int32": "int", "uint8": "uint8"}
"""The types that MNN takes and gives through NumPy, by its names for them; it reads all others of a model as these."""

NOT_CONVERTED = "These Op Not Support"
PROGRESS = re.compile(r"^(Start to .*\n|.*ONNX Model .* version: .*\n|\[[\d:]+\] )", re.MULTILINE)


class Mnn:
    """MNN on the CPU: one thread, all of float32's precision."""

    name = "mnn"
    standards = ("onnx",)

    def __init__(self) -> None:
        try:
            # The converter itself: MNN.tools.mnnconvert, the module around it, runs pip and reports to a server.
            self._convert = import_module("_tools").mnnconvert
            self.mnn: Any = import_module("MNN")
        except ModuleNotFoundError as error:
            raise NotInstalled("MNN is not installed: pip install MNN") from error

    def version(self) -> str:
        """Return MNN's version."""
        return str(self.mnn.version())

    def describe(self) -> dict[str, str]:
        """Return how modules are made."""
        return {"device": "CPU", "threads": "1", "precision": "high"}

    def prepare(self, program: Program) -> Module:
        """Convert and load a program. Raises Unsupported for what MNN lacks, RuntimeError where it fails otherwise."""
        for type_ in [i.type for i in program.feeds] + [o.type for o in program.outputs]:
            if type_ not in TENSORS:
                raise Unsupported(f"numpy type does not match: MNN has no tensors of {type_}", "type")
        # Files without a name: nothing stays behind, whatever becomes of this process.
        with tempfile.TemporaryFile() as model, tempfile.TemporaryFile() as converted:
            model.write(onnx_bytes(program))
            model.flush()
            self._converted(path_of(model), path_of(converted))
            return Module(self.mnn, path_of(converted), program)

    def _converted(self, model: str, converted: str) -> None:
        def convert() -> None:
            arguments = {"-f": "ONNX", "--modelFile": model, "--MNNModel": converted, "--bizCode": "opconform"}
            self._convert(["mnnconvert", *(word for pair in arguments.items() for word in pair)])

        convert()  # returns True in any case
        if Path(converted).stat().st_size == 0:
            words = printed(convert)
            if NOT_CONVERTED in words:
                raise Unsupported(words, "operator-version")
            raise RuntimeError(words)


class Module:
    """A program that MNN has loaded."""

    def __init__(self, mnn: Any, path: str, program: Program) -> None:
        self._expr = mnn.expr
        self._module = mnn.nn.load_module_from_file(
            path,
            list(feed_names(program)),
            list(output_names(program)),
            precision_mode=self._expr.PrecisionMode.High,
            thread_num=1,
        )

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs as MNN gives them. Raises RuntimeError with what it printed where it gives none."""
        variables = [self._variable(x) for x in inputs]
        outputs = self._module.forward(variables)
        if not outputs:
            raise RuntimeError(printed(lambda: self._module.forward(variables)))
        return [output.read().copy() for output in outputs]  # read() shows memory that goes with its variable

    def _variable(self, array: Array) -> Any:
        kind = getattr(self._expr.dtype, TENSORS[array.dtype.name])
        return self._expr.const(array, list(array.shape), self._expr.NCHW, kind)


def path_of(file: Any) -> str:
    """Return a path by which this process can open `file`, which has no name."""
    return f"/proc/self/fd/{file.fileno()}"


def printed(call: Callable[[], object]) -> str:
    """Return what `call` prints: where MNN fails, it is called again for its words.

    The first call is left alone, so that the last lines before a crash reach the pool.
    """
    libc, stdout = ctypes.CDLL(None), os.dup(1)
    with tempfile.TemporaryFile() as heard:
        libc.fflush(None)
        os.dup2(heard.fileno(), 1)
        try:
            call()
            libc.fflush(None)
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)
        heard.seek(0)
        return PROGRESS.sub("", heard.read().decode(errors="replace")).strip()

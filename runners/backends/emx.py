"""ONNX programs through emx-onnx-cgen, which writes C; the installed C compiler compiles it, and it is called."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ...cases.elements import Array
from ...cases.onnx_model import onnx_model
from ...cases.program import Program
from ...cases.runner import NotInstalled, Unsupported, Words
from .onnx_library import Call, OnnxLibrary

WORDS = (
    Words(r"^UnsupportedOpError: Unsupported op ", "operator-version", plain=True),
    Words(r"^UnsupportedOpError: Unsupported elem_type", "type", plain=True),
    Words(r"^UnsupportedOpError: .*([Uu]nsupported|not support|\bsupports |is supported)", "attribute", plain=True),
    # Refusals of valid or invalid programs.
    Words(r"^UnsupportedOpError: .*(must be|expects|requires) .*(u?int|float|bool|dtype)", "type"),
    Words(r"^ShapeInferenceError|^UnsupportedOpError: .*shape", "shape"),
    Words(r"^UnsupportedOpError", "invalid"),
)
"""The messages of emx-onnx-cgen 1.4."""

_PROTOTYPE = re.compile(r"^void model\((.*)\) \{$", re.MULTILINE)
_PARAMETER = re.compile(r"(?:const )?(\w+) \w+\[restrict (\d+)\]((?:\[\d+\])*)")
_C_TYPES = MappingProxyType({
    "float": np.float32,
    "double": np.float64,
    "_Float16": np.float16,
    "bool": np.bool_,
    **{f"{np.dtype(kind).name}_t": kind for kind in (np.int8, np.int16, np.int32, np.int64)},
    **{f"{np.dtype(kind).name}_t": kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64)},
})  # fmt: skip


class Emx(OnnxLibrary):
    """The code generator, in one process with the code that it generates: a shared library for each program."""

    name = package = "emx-onnx-cgen"
    module = "emx_onnx_cgen.compiler"
    words = WORDS

    def __init__(self) -> None:
        super().__init__()
        # One for all programs: loading its templates again costs 400 times as much as a program.
        self._generator = self.library.Compiler(self.library.CompilerOptions(large_weight_threshold=0))
        self._compiler = shlex.split(os.environ.get("CC", "cc"))
        if shutil.which(self._compiler[0]) is None:
            raise NotInstalled(
                f"{self.name} needs a C compiler, and {self._compiler[0]!r} does not exist; set CC to another"
            )

    def describe(self) -> dict[str, str]:
        """Return the C compiler."""
        done = subprocess.run([*self._compiler, "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - CC
        return {"compiler": done.stdout.partition("\n")[0]}

    def compiled(self, program: Program) -> Call:
        """Write C, compile and load it.

        Raises Unsupported if a size is only known at run time, because C has them fixed.
        """
        open_ = any(isinstance(size, str) for feed in program.feeds for size in feed.dims)
        if open_ or any(answer.shape is None and answer.rank != 0 for answer in program.answers):
            raise Unsupported("sizes are fixed when C is generated", "dynamic")
        source = self._generator.compile(onnx_model(program))
        prototype = _PROTOTYPE.search(source)
        parameters = _PARAMETER.findall(prototype[1]) if prototype else []
        if len(parameters) != len(program.feeds) + len(program.answers):
            raise RuntimeError(f"a function with parameters other than tensors: {prototype and prototype[0]}")
        library = self._loaded(source)
        given, made = parameters[: len(program.feeds)], parameters[len(program.feeds) :]

        def run(inputs: Sequence[Array]) -> list[Array]:
            # If the model has an extent of 0, the function has 1.
            fed = [_memory(parameter) for parameter in given]
            for memory, array in zip(fed, inputs, strict=True):
                memory.reshape(-1)[: array.size] = array.reshape(-1)
            outputs = [_memory(parameter) for parameter in made]
            library.model(*(ctypes.c_void_p(memory.ctypes.data) for memory in fed + outputs))
            # C has no rank 0.
            return [
                y.reshape(()) if answer.rank == 0 and y.shape == (1,) else y
                for y, answer in zip(outputs, program.answers, strict=True)
            ]

        return run

    def _loaded(self, source: str) -> ctypes.CDLL:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "model.so"))
            command = [*self._compiler, "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", path, "-lm"]
            done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)  # noqa: S603 - CC
            if done.returncode:
                raise RuntimeError(f"C compilation failed: {done.stderr}")
            library = ctypes.CDLL(path)
        weakref.finalize(library, _ctypes.dlclose, library._handle)
        return library


def _memory(parameter: tuple[str, str, str]) -> Array:
    kind, first, others = parameter
    return np.zeros([int(first), *map(int, re.findall(r"\d+", others))], _C_TYPES[kind])

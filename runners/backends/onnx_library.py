"""The shared part of runners for Python libraries that read ONNX models; each adds a message table and two calls."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import os
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

from ...cases.elements import Array
from ...cases.program import Program, element_names
from ...cases.runner import Executable, Unsupported
from .base import Refusing, Runs, imported

Call: TypeAlias = Callable[[Sequence[Array]], Sequence[Any]]
"""Takes the arrays of `program.feeds` in order, and returns the outputs in the order of `program.answers`."""

NUMPY_TYPES = frozenset({
    "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
})  # fmt: skip
"""The element types that NumPy has itself, without text and complex numbers."""


class OnnxLibrary(Refusing):
    """A backend that compiles ONNX models; a subclass defines how, and the library's messages for refusals.

    `module` is the module to import, `package` the package that installs it and has its version. `types` are the
    element types that the library exchanges with Python, in tensors.
    """

    name: str
    standards: tuple[str, ...] = ("onnx",)
    module: ClassVar[str]
    package: ClassVar[str]
    types: ClassVar[frozenset[str]] = NUMPY_TYPES

    def __init__(self) -> None:
        self.library = imported(self.module, self.package)

    def version(self) -> str:
        """Return the version of the library's package."""
        return importlib.metadata.version(self.package)

    def prepare(self, program: Program, /) -> Executable:
        """Compile `program`. Raises Unsupported, or the library's own error."""
        self._refuse_types(program)
        with self.refusing():
            call = self.compiled(program)

        def run(inputs: Sequence[Array]) -> Sequence[Any]:
            with self.refusing():
                return call(inputs)

        return Runs(run)

    @abstractmethod
    def compiled(self, program: Program) -> Call:
        """Return a function that runs `program`. Raises Unsupported, or the library's own error."""

    def words_of(self, error: BaseException) -> str:
        """Return the class of an error and its message, in the form that tables of messages match."""
        return f"{type(error).__name__}: {error}"

    def _refuse_types(self, program: Program) -> None:
        for type_ in [port.type for port in program.feeds] + [port.type for port in program.answers]:
            odd = [name for name in element_names(type_) if name not in self.types]
            if odd:
                raise Unsupported(f"{self.name} cannot exchange {odd[0]} with Python", "type")
        if not program.is_plain:
            raise Unsupported(f"{self.name} can only exchange tensors with Python", "type")


def to_numpy(tensor: Any) -> Any:
    """Return the array of a library's tensor; TypeError if it returned something else."""
    if not hasattr(tensor, "numpy"):
        raise TypeError(f"the library gives a {type(tensor).__name__} where the model has a tensor")
    return tensor.numpy()


@contextmanager
def nameless_file(content: bytes = b"") -> Iterator[str]:
    """Yield a path to a file with `content` that has no name, so that nothing stays behind if this process dies.

    For libraries that only read and write files. Linux.
    """
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def printed(call: Callable[[], object]) -> str:
    """Return what `call` prints on stdout, for libraries that only print why they fail.

    If the library fails, call this to run it a second time: the first run keeps its stdout, so that the last lines
    before a crash reach the pool.
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
        return heard.read().decode(errors="replace")

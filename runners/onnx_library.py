"""Libraries that read ONNX models, in Python: what their runners share, so that each is its words and two calls."""

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

from ..cases.elements import Array
from ..cases.program import Program, element_names
from ..cases.runner import (
    Executable,
    NotInstalled,
    Reason,
    Unsupported,
    Words,
    meaning,
)

Call: TypeAlias = Callable[[Sequence[Array]], Sequence[Any]]
"""Takes the arrays of `program.feeds` in that order, and returns the outputs in the order of `program.answers`."""

NUMPY_TYPES = frozenset({
    "bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
})  # fmt: skip
"""The element types that NumPy has by itself, text and complex numbers left out."""


class OnnxLibrary:
    """A backend that compiles ONNX models; a subclass says how, and by which words the library refuses.

    `module` is what is imported, `package` what installs it and has its version. `types` are the
    element types that its Python takes and gives; without `nests`, it has tensors alone.
    """

    name: str
    standards: tuple[str, ...] = ("onnx",)
    module: ClassVar[str]
    package: ClassVar[str]
    words: ClassVar[tuple[Words, ...]]
    types: ClassVar[frozenset[str]] = NUMPY_TYPES
    nests: ClassVar[bool] = False

    def __init__(self) -> None:
        self.library = self.imported(self.module)

    def version(self) -> str:
        """Return the version of the library's package."""
        return importlib.metadata.version(self.package)

    def prepare(self, program: Program, /) -> Executable:
        """Compile `program`. Raises Unsupported, or the library's own error."""
        self._refuse_types(program)
        with self._refusing():
            return _Compiled(self, self.compiled(program))

    @abstractmethod
    def compiled(self, program: Program) -> Call:
        """Return what runs `program`. Raises Unsupported, or the library's own error."""

    def reason(self, error: BaseException, /) -> Reason:
        """Return why the library refused, as far as its words tell."""
        if isinstance(error, MemoryError):
            return "memory"
        found = meaning(self.words, words_of(error))
        return found.reason if found else "other"

    def run(self, call: Call, inputs: Sequence[Array]) -> Sequence[Any]:
        """Return what `call` makes of `inputs`. Raises Unsupported, or the library's own error."""
        with self._refusing():
            return call(inputs)

    @classmethod
    def imported(cls, module: str) -> Any:
        """Return a module of the library; NotInstalled if it is not here."""
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            raise NotInstalled(f"{cls.package} is not installed: pip install {cls.package}") from error

    def _refuse_types(self, program: Program) -> None:
        for type_ in [one.type for one in program.feeds] + [one.type for one in program.answers]:
            odd = [name for name in element_names(type_) if name not in self.types]
            if odd:
                raise Unsupported(f"{self.name} takes and gives no {odd[0]} in Python", "type")
        if not (self.nests or program.is_plain):
            raise Unsupported(f"{self.name} takes and gives tensors alone in Python", "type")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn an error that says no more than "not implemented" into Unsupported."""
        try:
            yield
        except Exception as error:
            words = words_of(error)
            found = meaning(self.words, words)
            if found is not None and found.plain:
                raise Unsupported(words, found.reason) from error
            raise


class _Compiled:
    """A program that a library has compiled."""

    def __init__(self, library: OnnxLibrary, call: Call) -> None:
        self._library = library
        self._call = call

    def run(self, inputs: Sequence[Array], /) -> Sequence[Any]:
        """Return the outputs as the library gives them. Raises Unsupported, or the library's own error."""
        return self._library.run(self._call, inputs)


def words_of(error: BaseException) -> str:
    """Return the class of an error and its message, as tables of words have them."""
    return f"{type(error).__name__}: {error}"


def to_numpy(tensor: Any) -> Any:
    """Return the array of a library's tensor; TypeError where it gives something else for a tensor of the model."""
    if not hasattr(tensor, "numpy"):
        raise TypeError(f"the library gives a {type(tensor).__name__} where the model has a tensor")
    return tensor.numpy()


@contextmanager
def nameless_file(content: bytes = b"") -> Iterator[str]:
    """Yield a path to a file with `content` that has no name: nothing stays behind, whatever becomes of this process.

    For libraries that read and write files alone. Linux.
    """
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def printed(call: Callable[[], object]) -> str:
    """Return what `call` prints on stdout, for libraries that say there alone why they fail.

    Where one does, the same is called a second time: the first is left alone, so that the last lines before a crash
    reach the pool.
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

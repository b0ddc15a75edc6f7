"""Mutants and variants as backends: `mutant:NAME`, an entry point of the group `opconform.runners` with an argument."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

import numpy as np

from ...cases.elements import Array
from ...cases.errors import OpconformError
from ...cases.program import Program
from ...specs.loader import Library
from ..source import GeneratedCases
from .catalogue import implementation
from .formula import Answering, SameFormula, invocations
from .implementation import Implementation, Memory


def mutant(name: str = "") -> Interpreter:
    """Return the runner of the mutant or the compliant variant called `name`. Raises OpconformError."""
    if not name:
        raise OpconformError("mutant: expected mutant:NAME, as in mutant:nan-lost; `opconform mutants --html` has all")
    library = GeneratedCases().library
    return Interpreter(f"mutant:{name}", implementation(library, name), library)


class Interpreter:
    """A runner over one implementation; see cases/runner.py."""

    standards = ("onnx", "openvino", "onednn")

    def __init__(self, name: str, implementation: Implementation, library: Library) -> None:
        self.name, self.implementation, self._library = name, implementation, library

    def version(self) -> str:
        """Return that of this package."""
        return importlib.metadata.version("opconform")

    def describe(self) -> dict[str, str]:
        """Return what the implementation does."""
        return {"kind": self.implementation.kind, "does": self.implementation.text}

    def prepare(self, program: Program) -> Interpreted:
        """Return the program with a memory of its own."""
        return Interpreted(self.implementation, self._library, program)


class Interpreted:
    """A program that an implementation has prepared."""

    def __init__(self, implementation: Implementation, library: Library, program: Program) -> None:
        self._implementation, self._library, self._program = implementation, library, program
        self._memory: Memory = {}

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for the arrays of `program.leaves`. Raises Refused, and what a defect raises."""
        lanes = [np.asarray(array)[np.newaxis] for array in inputs]
        ((_, invocation),) = invocations(self._library, self._program, lanes)
        answering = Answering(invocation)
        try:
            answer = answering.answer(self._implementation, self._memory)
        except SameFormula:
            answer = answering.right
        return [out[0, ...] for out in answer]

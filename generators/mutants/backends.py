"""All mutants and variants by name, and as backends: `mutant:NAME`, an entry point of the group `opconform.runners`."""

from __future__ import annotations

import importlib.metadata
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...cases.elements import Array
from ...cases.errors import NeedsArgumentError, OpconformError, did_you_mean
from ...cases.program import Program
from ...specs.loader import Library
from ...specs.model import Spec, VersionSpec
from ..primitives import ROOMS
from ..source import GeneratedCases
from .calls import call_mutants
from .effects import answer_mutants, grid, state_mutants, triggered
from .formula import Answering, SameFormula, formula_mutant, invocations
from .implementation import Answer, Implementation, Invocation, Memory, Met, variants_of

_NODE = re.compile(r"(?P<primitive>[a-z_]+)-(?:\d+|all):[a-z0-9-]+")
_CHUNK = 16 << 20
_SLEEP = 3600.0
_LINE = b"still computing\n" * 4096


def mutants_of(spec: Spec, version: VersionSpec) -> Iterator[Implementation]:
    """Yield the mutants of an operator version's signature.

    Mutants of formulas depend on the cases, and mutants that are wrong only under a trigger are in `grid`.
    """
    yield from call_mutants(spec, version)
    yield from answer_mutants(version)
    if version.signature.inputs:
        yield from state_mutants()


def implementation(library: Library, name: str) -> Implementation:
    """Return a mutant or a variant of any operator version by its name. Raises OpconformError."""
    node = _NODE.fullmatch(name)
    if node and (node["primitive"] in ROOMS or node["primitive"] == "literal"):
        return formula_mutant(name)
    known: dict[str, Implementation] = {process.name: process for process in process_mutants()}
    level, _, effect = name.rpartition(":")
    for operator in library.operators():
        spec = library.spec(operator)
        for version in spec.versions.values():
            for candidate in (*mutants_of(spec, version), *variants_of(version)):
                if candidate.name == name:
                    return candidate
                known.setdefault(candidate.name, candidate)
            for trigger, effects in grid(spec, version) if level else ():
                for defect in effects:
                    if (trigger.name, defect.name) == (level, effect):
                        return triggered(trigger, defect)
    if name not in known:
        hint = did_you_mean(name, known) or "; `opconform dev mutants --html FILE` has all"
        raise OpconformError(f"no mutant or variant is called {name!r}{hint}")
    return known[name]


# Backends


def mutant(name: str = "") -> Interpreter:
    """Return the runner of the mutant or the compliant variant called `name`. Raises OpconformError."""
    if not name:
        words = "expected mutant:NAME, as in mutant:nan-lost; `opconform dev mutants --html` has all"
        raise NeedsArgumentError(f"mutant: {words}")
    library = GeneratedCases().library
    return Interpreter(f"mutant:{name}", implementation(library, name), library)


class Interpreter:
    """A runner over one implementation; see cases/runner.py."""

    standards = ("onnx", "openvino", "onednn")

    def __init__(self, name: str, implementation: Implementation, library: Library) -> None:
        self.name, self.implementation, self._library = name, implementation, library

    def version(self) -> str:
        """Return the version of this package."""
        return importlib.metadata.version("opconform")

    def describe(self) -> dict[str, str]:
        """Return the description of the implementation."""
        return {"kind": self.implementation.kind, "does": self.implementation.text}

    def prepare(self, program: Program) -> Interpreted:
        """Return the program with its own memory."""
        return Interpreted(self.implementation, self._library, program)


class Interpreted:
    """A program that an implementation has prepared."""

    def __init__(self, implementation: Implementation, library: Library, program: Program) -> None:
        self._implementation, self._library, self._program = implementation, library, program
        self._memory: Memory = {}
        self._shapes: list[tuple[tuple[int, ...], ...]] = []

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for the arrays of `program.leaves`. Raises Refused, or a defect's own exception."""
        lanes = [np.asarray(array)[np.newaxis] for array in inputs]
        ((_, invocation),) = invocations(self._library, self._program, lanes)
        answering = Answering(invocation)
        shapes = tuple(array.shape for array in lanes)
        met = Met(
            invocation, answering.right, (len(self._shapes),), (bool(self._shapes) and self._shapes[-1] != shapes,)
        )
        self._shapes.append(shapes)
        try:
            answer = answering.answer(self._implementation, self._memory, met)
        except SameFormula:
            answer = answering.right
        outputs = [out[0, ...] for out in answer]
        for array in inputs if self._implementation.overwrites else ():
            if isinstance(array, np.ndarray) and array.flags.writeable:
                array[...] = np.zeros((), array.dtype)
        return outputs


# Mutants that end or stall their process: the pool must survive them; never run them in this process


def process_mutants() -> Iterator[Implementation]:
    """Yield the mutants that run in their own process."""
    for name, text, misbehave in (
        ("process-aborts", "aborts its process (SIGABRT)", os.abort),
        ("process-exits", "ends its process with code 0, as a library's own exit does", lambda: os._exit(0)),
        ("process-hangs", "never returns", lambda: time.sleep(_SLEEP)),
        ("memory-grows", "allocates memory until none is left", _grow),
        ("output-floods", "writes to stdout without end", _flood),
    ):
        yield Implementation(name, "process", text, finish=_before(misbehave))


def _before(misbehave: Callable[[], None]) -> Callable[[Invocation, Answer], Answer]:
    def finish(_invocation: Invocation, answer: Answer) -> Answer:
        misbehave()
        return answer

    return finish


def _grow() -> None:
    held = []
    while True:
        held.append(bytearray(os.urandom(1) * _CHUNK))  # written to, so that it becomes resident
        time.sleep(0.001)


def _flood() -> None:
    while True:
        os.write(1, _LINE)

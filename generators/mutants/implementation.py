"""An implementation that is made of the references, right or wrong in one way: what mutants and variants are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np

from ...cases.elements import Array, element_type, type_of
from ...cases.program import Program
from ...specs.loader import Library
from ..expect import Reading
from .call import Call, Refused, call_of
from .native import Working

Kind: TypeAlias = Literal["signature", "axes", "arithmetic", "shape", "state", "process", "variant"]
Memory: TypeAlias = dict[str, Any]
"""What a prepared program keeps from run to run."""
Known: TypeAlias = dict[Hashable, Array]
Compute: TypeAlias = Callable[[Call], Array]
Around: TypeAlias = Callable[[Memory, Call, Compute], Array]

RIGHT = Working()
_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Implementation:
    """One way to implement every operator that has a spec.

    `text` says what it does, `needs` what an operator version must have for it to differ from a right one. `around` is
    given what the program keeps, the call, and how to compute it; `choices` answers silences, which else have the first
    option; `required` are the demands under which a wrong one is to be found out.
    """

    name: str
    kind: Kind
    text: str
    needs: str = ""
    working: Working = RIGHT
    around: Around | None = None
    choices: Mapping[str, str] = field(default_factory=lambda: _NONE)
    required: Mapping[str, str] = field(default_factory=lambda: _NONE)


def compute(call: Call, working: Working = RIGHT, choices: Mapping[str, str] = _NONE) -> Array:
    """Return the output of a call. Raises Refused where it is invalid, or where the choice is to refuse."""
    reading = _chosen(call.readings, choices)
    output = element_type(call.program.outputs[0].type)
    if reading.kind == "rejected":
        raise Refused("refused, as the standard leaves open")
    if reading.formula is None:
        return np.zeros(reading.shape, output.dtype)
    with np.errstate(all="ignore"):
        result = reading.formula([working.lift(a) for a in call.data])
        return working.lower(result, output)


def answer(implementation: Implementation, call: Call, memory: Memory, known: Known | None = None) -> Array:
    """Return an implementation's output. `known` keeps what others that compute alike have answered to this call.

    Raises Refused, and what a defect raises.
    """

    def own(changed: Call) -> Array:
        if changed is not call or known is None or implementation.choices or not call.data:
            return compute(changed, implementation.working, implementation.choices)
        key = implementation.working.on(type_of(call.data[0]))
        if key not in known:
            known[key] = compute(call, implementation.working)
        return known[key]

    return implementation.around(memory, call, own) if implementation.around else own(call)


def rewriting(change: Callable[[Call], Call]) -> Around:
    """Return what computes another call than the one that is given."""
    return lambda _memory, call, own: own(change(call))


def finishing(change: Callable[[Call, Array], Array]) -> Around:
    """Return what changes the output."""
    return lambda _memory, call, own: change(call, own(call))


def refusing(when: Callable[[Call], bool], words: str) -> Around:
    """Return what refuses some calls."""

    def around(_memory: Memory, call: Call, own: Compute) -> Array:
        if when(call):
            raise Refused(words)
        return own(call)

    return around


def _chosen(found: Sequence[Reading], choices: Mapping[str, str]) -> Reading:
    fitting = (r for r in found if all(choices.get(silence, option) == option for silence, option in r.labels))
    return next(fitting, found[0])


class Interpreter:
    """A runner over one implementation; see cases/runner.py."""

    standards = ("onnx", "openvino", "onednn")

    def __init__(self, name: str, implementation: Implementation, library: Library) -> None:
        self.name, self.implementation, self._library = name, implementation, library

    def version(self) -> str:
        """Return that of this package."""
        import importlib.metadata  # noqa: PLC0415 - asked once a run

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
        """Return the outputs for the arrays of `program.feeds`."""
        return [answer(self._implementation, call_of(self._library, self._program, inputs), self._memory)]

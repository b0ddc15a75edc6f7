"""Implementations made of the references, right ones and ones that are wrong in one way: what variants and mutants are.

An implementation is told a program and its inputs, runs the reference over them as the tape recorded it, in a machine's
own arithmetic, and answers. What it does differently is one of four things: it reads its call wrongly, it does
something else at a node of the formula, it spoils the answer, or it remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from ...cases.elements import Array
from ..arithmetic.native import Machine
from .invocation import Invocation

Kind: TypeAlias = Literal["call", "formula", "answer", "trigger", "state", "process", "variant"]
Answer: TypeAlias = list[Array]
"""The outputs that were asked for, lanes first."""
Memory: TypeAlias = dict[str, Answer]
"""What a prepared program keeps from run to run."""

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Implementation:
    """One way to implement an operator version.

    `text` says what it does. `reading` is what it takes its call for, and may raise Refused; `finish` what it makes of
    the answer; `recall` of the answers to the runs of one program. What a mutant of a formula does at nodes goes by its
    name. `machine` is its arithmetic, None for the usual one; `choices` its answers to silences, which else have the
    first option. An `incidental` mutant is none where no case tells it: operators need not have what sets it off.
    """

    name: str
    kind: Kind
    text: str
    reading: Callable[[Invocation], Invocation] | None = None
    finish: Callable[[Invocation, Answer], Answer] | None = None
    recall: Callable[[Memory, Answer], Answer] | None = None
    machine: Callable[[Invocation], Machine] | None = None
    choices: Mapping[str, str] = field(default_factory=lambda: _NONE)
    incidental: bool = False

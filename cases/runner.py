"""The protocols of a runner and its executables, and how a runner reports what its backend does not implement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast, get_args, runtime_checkable

import msgspec

from .elements import Array
from .program import Program

Reason: TypeAlias = Literal[
    "operator-version", "type", "shape", "rank", "dynamic", "attribute", "memory", "invalid", "other"
]


BackendKind: TypeAlias = Literal["run", "infer", "check", "convert"]
"""What a backend does with a program: runs it, infers the types and shapes of its outputs, checks its validity, or
converts it to another version.
"""


def kind_of(runner: object) -> BackendKind:
    """Return a runner's attribute `kind`; without one it runs programs. Raises ValueError for an unknown kind."""
    kind = getattr(runner, "kind", "run")
    if kind not in get_args(BackendKind):
        raise ValueError(f"'kind' is {kind!r}, expected one of {', '.join(get_args(BackendKind))}")
    return cast(BackendKind, kind)


class Unsupported(Exception):  # noqa: N818 - not an error: a backend may leave things out
    """The backend says that it does not implement this program; the message is the backend's own."""

    def __init__(self, words: str, reason: Reason = "other") -> None:
        super().__init__(words)
        self.reason: Reason = reason


class NotInstalled(Exception):  # noqa: N818 - says what to install
    """The backend's library is not installed; the message says what to install."""


class Executable(Protocol):
    """A prepared program."""

    def run(self, inputs: Sequence[Array], /) -> Sequence[Any]:
        """Return the outputs for `inputs`, the arrays of `program.leaves` in their order.

        Arrays of types that NumPy lacks have the dtypes of ml_dtypes, one element each; strings are object arrays of
        `str`. Inputs must not be changed, nor must outputs when the program runs again. `program.nested(...)` makes
        sequences, optionals and maps of inputs; such outputs are lists, None and dicts. Raises Unsupported, or whatever
        the backend raises.

        A runner of kind `infer` returns a text for each output, in the form of `cases/inferred.py`, and one of kind
        `check` nothing. One of kind `convert` returns the bytes of the new model, as an array of uint8. All of them may
        do their work in `prepare`.
        """


class Runner(Protocol):
    """An adapter to one backend; each worker process makes one, without arguments.

    A runner that does not run programs also has an attribute `kind`.
    """

    name: str
    standards: tuple[str, ...]

    def version(self) -> str:
        """Return the version of the backend's library."""

    def prepare(self, program: Program, /) -> Executable:
        """Compile `program`. Raises Unsupported, or whatever the backend raises."""


@runtime_checkable
class Classifies(Protocol):
    """A runner that can classify its library's messages."""

    def reason(self, error: BaseException, /) -> Reason:
        """Return why the backend refused, as far as its message shows."""


@runtime_checkable
class RunsTogether(Protocol):
    """A runner that runs several programs at once where that is faster; each answer is the same as alone."""

    def run_together(self, runs: Sequence[tuple[Program, Sequence[Array]]], /) -> Sequence[Sequence[Any] | None]:
        """Return the outputs of each program for its inputs; None for a program that must run alone.

        A program that runs more than once comes once for each run. It need not be prepared again.

        Outputs are as in `Executable.run`, and nothing may hold on to them. A program that is refused or raises must
        run alone, where its error is seen.
        """


@runtime_checkable
class Describes(Protocol):
    """A runner that adds facts about its backend to `run.json`."""

    def describe(self) -> dict[str, str]:
        """Return facts such as the device, the instruction set or build options."""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The support that a backend claims for an operator: versions and element types; `all` if it names none."""

    versions: tuple[int | str, ...] | Literal["all"] = "all"
    types: tuple[str, ...] | Literal["all"] = "all"


class ClaimLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits on all claims of a backend, like the same keys of a profile; None means no limit."""

    opset: int | None = None
    rank: int | None = None
    elements: int | None = None
    shapes: tuple[Literal["static", "bounded", "dynamic"], ...] | None = None


class Claims(msgspec.Struct, frozen=True):
    """The operators that a backend promises to support, by name such as `onnx/ReduceMean`."""

    operators: Mapping[str, Claim]
    limits: ClaimLimits = ClaimLimits()


@runtime_checkable
class Promises(Protocol):
    """A runner that says what its backend promises to support."""

    def claims(self) -> Claims | None:
        """Return the claims; None if there are none to check."""


class Words(NamedTuple):
    """A pattern in a library's messages, and its meaning.

    `plain`: the message says only "not implemented"; anything else is an error of the backend.
    """

    pattern: str
    reason: Reason
    plain: bool = False


def meaning(table: Sequence[Words], message: str) -> Words | None:
    """Return the first entry of `table` whose pattern occurs in `message`."""
    return next((words for words in table if re.search(words.pattern, message)), None)

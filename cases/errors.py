"""Errors whose message is all that a user needs; the command line prints them without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class OpconformError(Exception):
    """An error that the user can fix: a wrong name, file, value or option. The command line exits 2."""


class NeedsArgumentError(OpconformError):
    """A plug-in was named without the argument that it takes: `NAME:ARGUMENT`."""


class CaseIdError(OpconformError):
    """A case id cannot be parsed, or there is no such case."""


class ProgramError(ValueError):
    """A program that opconform cannot write in the form that a backend takes: our own fault, never the backend's."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the closest of `known`, or an empty string."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""

"""Errors whose message is all that a user needs; the command line prints them without a traceback."""

from __future__ import annotations

import difflib
import io
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import cast


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


def open_regular(file: Path | str, buffering: int = -1) -> io.BufferedReader:
    """Open a file for reading, but not a pipe, which could block, nor a device, which may have no end.

    Raises OSError; OpconformError if it is not a regular file.
    """
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    opened = cast(io.BufferedReader, open(descriptor, "rb", buffering=buffering))  # noqa: PTH123, SIM115 - flags
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise OpconformError(f"{file}: not a regular file")
    return opened

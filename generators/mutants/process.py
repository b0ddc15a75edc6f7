"""Mutants that end or stall their process: for the pool, which must outlive them, and never for this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from .implementation import Answer, Implementation
from .invocation import Invocation

_CHUNK = 16 << 20
_SLEEP = 3600.0
_LINE = b"still computing\n" * 4096


def process_mutants() -> Iterator[Implementation]:
    """Yield the mutants that are run in a process of their own."""
    for name, text, misbehave in (
        ("process-aborts", "aborts its process (SIGABRT)", os.abort),
        ("process-exits", "ends its process with code 0, as a library's own exit does", lambda: os._exit(0)),
        ("process-hangs", "does not come back", _hang),
        ("memory-grows", "takes memory until it has none left", _grow),
        ("output-floods", "writes to stdout without end", _flood),
    ):
        yield Implementation(name, "process", text, finish=_before(misbehave))


def _before(misbehave: Callable[[], None]) -> Callable[[Invocation, Answer], Answer]:
    def finish(_invocation: Invocation, answer: Answer) -> Answer:
        misbehave()
        return answer

    return finish


def _hang() -> None:
    time.sleep(_SLEEP)


def _grow() -> None:
    held = []
    while True:
        held.append(bytearray(os.urandom(1) * _CHUNK))  # written to, so that it is resident
        time.sleep(0.001)


def _flood() -> None:
    while True:
        os.write(1, _LINE)

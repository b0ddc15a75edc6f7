"""A task whose keys name the fault to cause; a separate module, because a spawned worker imports it each time."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence

from opconform.runners.pool import Begin

_CHUNK = b"x" * (1 << 20)


class Faulty:
    """Causes the fault that a key names, or answers with the key."""

    def run(self, keys: Sequence[str], begin: Begin, /) -> Iterator[bytes]:
        """Yield the keys that do not end the process."""
        for index, key in enumerate(keys):
            begin(index, "run")
            FAULTS.get(key.partition("-")[0], int)()
            yield key.encode()


def _segv() -> None:
    ctypes.string_at(0)


def _hang() -> None:
    ctypes.PyDLL(None).sleep(3600)  # holding the interpreter


def _flood() -> None:
    for _ in range(100):
        os.write(1, _CHUNK)


def _garbage() -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - pathlib would have to be imported
        try:
            os.write(int(name), b"garbage\n")
        except OSError:
            continue


FAULTS: dict[str, Callable[[], object]] = {"segv": _segv, "hang": _hang, "flood": _flood, "garbage": _garbage}

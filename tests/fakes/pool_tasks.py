"""Tasks for the worker pool whose keys say what goes wrong: `segv-3` crashes, `ok-3` does not."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opconform.runners.pool import Begin, Limits, Loss, Pool, Stray


def kill_self(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def segv() -> None:
    print("about to fall", flush=True)
    ctypes.string_at(0)


def native_hang() -> None:
    """Sleep in native code without letting go of the interpreter."""
    ctypes.PyDLL(None).sleep(3600)


def flood() -> None:
    while True:
        os.write(1, b"x" * 65536)


def leak() -> None:
    kept = []
    while True:
        kept.append(b"x" * (8 << 20))
        time.sleep(0.001)


def leak_some() -> None:
    """Leave 40 MiB behind and carry on."""
    LEAKED.append(b"x" * (40 << 20))
    time.sleep(0.03)


LEAKED: list[bytes] = []


def open_descriptors() -> list[int]:
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]


def garbage() -> None:
    """Write to every descriptor there is."""
    for fd in open_descriptors():
        with contextlib.suppress(OSError):
            os.write(fd, b"garbage\n" * 3)


def look_like_a_message() -> None:
    for fd in open_descriptors():
        with contextlib.suppress(OSError):
            os.write(fd, b"OPC\x01" + bytes(40))


def close_all() -> None:
    os.closerange(0, 4096)


def close_all_and_hang() -> None:
    os.closerange(0, 4096)
    native_hang()


def raise_error() -> None:
    raise LookupError("this is the task's own mistake")


def child() -> int:
    """Start a process that stays; returns its id."""
    started = os.fork()
    if started == 0:
        time.sleep(3600)
    return started


def die_with_child() -> None:
    child()
    os.kill(os.getpid(), signal.SIGKILL)


FAULTS: dict[str, Callable[[], object]] = {
    "ok": lambda: None,
    "slow": lambda: time.sleep(0.05),
    "chat": lambda: print(1000 * "x"),
    "segv": segv,
    "abort": os.abort,
    "kill": kill_self(signal.SIGKILL),
    "exit0": lambda: os._exit(0),
    "exit3": lambda: os._exit(3),
    "sysexit": lambda: sys.exit(5),
    "sleep": lambda: time.sleep(3600),
    "hang": native_hang,
    "flood": flood,
    "leak": leak,
    "leaksome": leak_some,
    "garbage": garbage,
    "fakemessage": look_like_a_message,
    "closeall": close_all,
    "closehang": close_all_and_hang,
    "closeoutput": lambda: (os.close(1), os.close(2)),
    "raise": raise_error,
    "orphan": die_with_child,
    "killparent": lambda: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(3600)),
    "control": lambda: (os.write(2, b"\x1b[31mred\x07\xff\n"), os.abort()),
}


@dataclass
class Faulty:
    """Runs each key's fault, in the phase `run` or, for keys that begin with `p:`, in `prepare`."""

    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        for index, key in enumerate(keys):
            name = key.removeprefix("p:").split("-")[0]
            begin(index, "prepare")
            if key.startswith("p:"):
                FAULTS[name]()
            begin(index, "run")
            if not key.startswith("p:") and name in FAULTS:
                FAULTS[name]()
            yield self.record(key)

    def record(self, key: str) -> bytes:
        return key.encode()


class Witness(Faulty):
    """Its records are facts about the worker process, by the key's name where it names one."""

    def record(self, key: str) -> bytes:
        import resource

        facts: dict[str, Callable[[], object]] = {
            "pid": os.getpid,
            "parent": os.getppid,
            "warm": lambda: list(WARMED),
            "cwd": os.getcwd,
            "path": lambda: sys.path,
            "main": lambda: getattr(sys.modules["__main__"], "__file__", None),
            "session": lambda: os.getsid(0),
            "core": lambda: resource.getrlimit(resource.RLIMIT_CORE)[0],
            "stdin": lambda: os.read(0, 10),
            "sigint": lambda: signal.getsignal(signal.SIGINT).name,  # type: ignore[union-attr]
            "modules": lambda: sorted(sys.modules),
            "child": child,
        }
        fact = facts.get(key.split("-", maxsplit=1)[0])
        return repr(fact()).encode() if fact else super().record(key)


WARMED: list[int] = []
"""The processes in which this module was made warm."""


@dataclass(frozen=True)
class WarmFactory:
    """A factory of witnesses that notes where it is made warm, and misbehaves there if its word says so."""

    misbehaves: str = ""

    def __call__(self) -> Witness:
        return Witness()

    def warm(self) -> None:
        WARMED.append(os.getpid())
        if self.misbehaves:
            FAULTS[self.misbehaves]()


@dataclass
class Poisonous(Faulty):
    """After a key called `poison` the next one falls, whatever it is, as after a write to memory of others."""

    poisoned: bool = False

    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        for index, key in enumerate(keys):
            begin(index, "run")
            if self.poisoned:
                segv()
            self.poisoned = key.startswith("poison")
            yield key.encode()


class TooMany(Faulty):
    """Tells of more keys than there are."""

    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        yield from [b""] * (len(keys) + 1)


@dataclass(frozen=True)
class Counting:
    """A factory of tasks that write down in a folder which key they run, before they run it."""

    folder: Path

    def __call__(self) -> CountingTask:
        return CountingTask(self.folder)


@dataclass
class CountingTask(Faulty):
    folder: Path = Path()

    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        for index, key in enumerate(keys):
            with (self.folder / "ran").open("a") as ran:
                ran.write(f"{key}\n")
            begin(index, "run")
            FAULTS[key.split("-")[0]]()
            yield key.encode()


@dataclass
class BetweenKeys:
    """Dies at a key, before it says that it begins with it, where the key's name says so."""

    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        for index, key in enumerate(keys):
            if key.startswith(("die", "stick")):
                os.abort() if key.startswith("die") else time.sleep(3600)
            begin(index, "run")
            yield key.encode()


@dataclass
class Miscounts:
    """Yields as many records as the first key says, whatever there are of keys."""

    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        for index in range(int(keys[0].split("-")[1])):
            begin(index, "run")
            yield b"record"


@dataclass
class Newlines:
    def run(self, keys: Sequence[str], begin: Begin) -> Iterator[bytes]:
        for index, key in enumerate(keys):
            begin(index, "run")
            yield key.encode()


@dataclass(frozen=True)
class DiesAtStart:
    """A factory whose process is gone before there is a task; counts itself in a folder."""

    folder: Path

    def __call__(self) -> Faulty:
        (self.folder / str(os.getpid())).touch()
        os.write(2, b"no such device\n")
        os._exit(7)


@dataclass(frozen=True)
class HangsAtStart:
    def __call__(self) -> Faulty:
        native_hang()
        return Faulty()


@dataclass(frozen=True)
class RaisesAtStart:
    message: str = "no library called 'nonesuch'\nand a second line"
    notes: list[str] = field(default_factory=list)

    def __call__(self) -> Faulty:
        raise ModuleNotFoundError(self.message)


@dataclass(frozen=True)
class DiesAtFirstStart:
    """The first worker dies at start, the others are well."""

    marker: Path

    def __call__(self) -> Faulty:
        if not self.marker.exists():
            self.marker.touch()
            os.abort()
        return Faulty()


# Runs of the pool over keys, in which each key must come back once


SOON = Limits(run_seconds=0.5, prepare_seconds=0.5)


def run(
    keys: Sequence[str],
    *,
    batch: int = 10,
    jobs: int = 1,
    limits: Limits = SOON,
    factory: Callable[[], Faulty] = Faulty,
    fork: bool = False,
    strays: bool = False,
) -> tuple[dict[str, bytes], dict[str, Loss]]:
    """Return records and losses by key, having seen to it that each key came back exactly once."""
    found = list(Pool(factory, jobs=jobs, limits=limits, fork=fork).run(split(keys, batch)))
    records = {f[0]: f[1] for f in found if type(f) is tuple}
    losses = {f.key: f for f in found if isinstance(f, Loss)}
    assert strays or not [f for f in found if isinstance(f, Stray)]
    assert sum(not isinstance(f, Stray) for f in found) == len(keys)
    assert sorted([*records, *losses]) == sorted(keys)
    return records, losses


def split(keys: Sequence[str], batch: int) -> Iterator[Sequence[str]]:
    return (keys[start : start + batch] for start in range(0, len(keys), batch))

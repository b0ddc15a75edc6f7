"""The options of a run: as given, as kept in `run.json`, and as a resumed run takes them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..cases.errors import OpconformError
from ..cases.ids import Selection, Shard, shard_of
from ..reports.runs import RUN, UNKNOWN, RunRecord, compared
from ..reports.terminal import Section
from ..runners.execution.execute import Isolation
from ..runners.judging.kept import Keep
from ..runners.pool import Limits

_FILES = frozenset({"specs", "waivers", "errata", "profile", "arithmetic", "corpus", "python"})
"""Options whose files may have moved when a run resumes; digests, and versions of backends, must be the same."""
_FREE = frozenset({"jobs", "junit", "quiet", "sections", "executor", "resources"})
"""Options that affect no outcome, and may change when a run resumes."""
_NOT_KEPT = frozenset({"out", "resume", "given", "quiet", "sections", "executor", "resources"})
"""Options that `run.json` does not keep."""
_CODE = ("python:", "onnx-backend:", "cmd:")
"""Prefixes of backend names that run the user's code."""
_NAMES = {"globs": "select", "requires": "require", "keep_outputs": "keep-outputs"}


@dataclass(frozen=True)
class RunOptions:
    """The options of `opconform run`; see its help.

    `given` has the names of the options that the user gave; with `resume` the others come from the resumed run.
    """

    backends: Sequence[str] = ()
    selection: Selection = field(default_factory=Selection)
    specs: Path | None = None
    jobs: int | None = None
    timeout: float = 10.0
    memory: int | None = None
    python: Path | None = None
    waivers: Path | None = None
    errata: Path | None = None
    profile: Path | None = None
    arithmetic: Path | None = None
    requires: Sequence[str] = ()
    out: Path | None = None
    junit: Path | None = None
    keep_outputs: Keep = "failures"
    quiet: bool = False
    sections: frozenset[Section] = frozenset()
    name: str | None = None
    executor: str = "local"
    resources: Sequence[str] = ()
    shard: Shard | None = None
    isolation: Isolation = "program"
    corpus: Path | None = None
    resume: Path | None = None
    given: frozenset[str] = frozenset()

    @property
    def limits(self) -> Limits:
        """Return the limits of a case."""
        return limits_of(self.timeout, self.memory)

    @property
    def workers(self) -> int:
        """Return the number of worker processes."""
        return self.jobs or usable_cores()

    @property
    def partial(self) -> bool:
        """Return whether cases of the suite's operator versions are left out."""
        return bool(self.selection.globs or self.selection.suite or self.shard or self.corpus)

    def to_dict(self) -> dict[str, Any]:
        """Return the options that a resumed run needs, for JSON; files as they were named."""
        kept: dict[str, Any] = {"selection": asdict(self.selection)}
        for name in (f.name for f in fields(self) if f.name not in _NOT_KEPT and f.name != "selection"):
            value = getattr(self, name)
            kept[name] = str(value) if isinstance(value, Path | Shard) else value
        return kept


def options_of(begun: RunRecord, options: RunOptions) -> RunOptions:
    """Return the options of a resumed run: those that it began with, and the others that the user gave now.

    No file is taken from the folder: see `refuse_unnamed`. Raises OpconformError if the two disagree.
    """
    kept = begun.run_json.get("options")
    if not isinstance(kept, dict):
        raise OpconformError(f"{begun.folder / RUN}: names no options: it was written by an older version")
    try:
        old_options = _read(kept)
    except (KeyError, TypeError, ValueError, OpconformError) as error:
        raise OpconformError(f"{begun.folder}: options: not in the form that a run writes: {error!r}") from None
    if "out" in options.given:
        raise OpconformError("--out: leave it out with --resume; the run keeps its folder")
    selecting = {f.name for f in fields(Selection)}
    differences = []
    for name in sorted(options.given - _FREE - _FILES - {"resume"}):
        owners = (o.selection if name in selecting else o for o in (old_options, options))
        old, new = (_plain(getattr(owner, name), name) for owner in owners)
        if old != new:
            differences.append(difference(_NAMES.get(name, name), old, new))
    refuse(begun.folder, differences)
    taken = {name: getattr(options, name) for name in options.given & (_FREE | _FILES)}
    own = {name: getattr(options, name) for name in ("resume", "quiet", "sections", "given")}
    return replace(old_options, **{"junit": None, **taken, **own})


def refuse_unnamed(options: RunOptions, folder: object) -> None:
    """Raise OpconformError if a resumed run would run code, or read a file, that only its folder names."""
    unnamed = [
        f"--{name} {getattr(options, name)}" for name in sorted(_FILES - options.given) if getattr(options, name)
    ]
    if "backends" not in options.given:
        unnamed = [*(shlex.quote(name) for name in options.backends if name.startswith(_CODE)), *unnamed]
    if unnamed:
        words = " ".join(unnamed)
        raise OpconformError(f"{folder}: a folder may come from anywhere, so name what this run needs again: {words}")


def difference(name: str, old: object, new: object) -> str:
    """Return the line that shows a difference between a run when it began and now."""
    return f"{name}: {_words(old)} when it began, {_words(new)} now"


def refuse(folder: object, differences: Sequence[str]) -> None:
    """Raise OpconformError if there are differences."""
    if differences:
        lines = "".join(f"\n  {line}" for line in differences)
        raise OpconformError(f"{folder}: this run cannot be resumed, it would differ; start a new one{lines}")


def _words(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _plain(value: object, name: str) -> object:
    if value is None and name == "strength":
        return "full"
    return list(value) if isinstance(value, tuple | list) else str(value) if isinstance(value, Shard) else value


def _read(kept: Mapping[str, Any]) -> RunOptions:
    selection = kept["selection"]
    tuples = {name: tuple(selection[name]) for name in ("globs", "standards")}
    known = {f.name for f in fields(RunOptions)} - _NOT_KEPT - {"junit"}
    values = {name: value for name, value in kept.items() if name in known}
    values |= {name: Path(values[name]) for name in _FILES & values.keys() if values[name] is not None}
    values["selection"] = Selection(**{**selection, **tuples})
    values["shard"] = shard_of(kept["shard"]) if kept["shard"] else None
    return RunOptions(**values)


def check_same(begun: RunRecord, now: Mapping[str, Any]) -> None:
    """Raise OpconformError, which lists the differences from `now`, the description of the resumed run."""
    backends = {name: about["version"] for name, about in now["backends"].items()}
    known = {name: begun.about(name).version for name in backends}
    refuse(
        begun.folder,
        [
            *(difference(name, a, b) for name, (a, b) in compared(begun.run_json, now).items()),
            *(
                difference(f"version of {name}", known[name], version)
                for name, version in backends.items()
                if known[name] not in (UNKNOWN, version)
            ),
        ],
    )


def limits_of(timeout: float, memory: int | None) -> Limits:
    """Return the limits of a case; `memory` is in MiB."""
    return Limits.of_runs(timeout, None if memory is None else memory << 20)


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # only Linux reports it
    return len(affinity(0)) if affinity else os.cpu_count() or 1

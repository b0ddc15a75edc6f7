"""What a run was: suite, backends, options and machine, as `run.json` keeps them; no host, user or path."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..cases.declared import Declaration
from ..cases.selection import Shard
from ..runners.kept import Keep
from ..runners.profile import Profile
from ..specs.errata import Suspensions

_LIBRARIES = ("numpy", "onnx", "ml_dtypes")


@dataclass(frozen=True)
class BackendDescription:
    """A backend as it described itself."""

    name: str
    version: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunDescription:
    """What decides a run's results beside the machine.

    `command` is the command line as it was typed. `suite_digest` covers the spec files. `selection` has the globs.
    `strength` None is every combination. `waivers_digest` is the sha256 of the file of waivers. `keep_outputs` says
    of which answers `outputs.jsonl` has what, `executor` where the cases ran. `suite_name` is a list of cases in place
    of the plan, `shard` the part that this run has of it, `planned` the number of cases by backend. `options` are those
    with which the run can go on, `terms` what decided its verdicts, both in full; `deaths`
    the ends of workers that no case explains; `corpus` the files that the cases come from, None if they are generated.
    """

    command: Sequence[str]
    suite_version: str
    suite_digest: str
    backends: Sequence[BackendDescription]
    started: dt.datetime
    selection: Sequence[str] = ()
    strength: int | None = 2
    draws: int = 1
    seed: int = 0
    required: Mapping[str, str] = field(default_factory=dict)
    profile: Profile | None = None
    declaration: Declaration | None = None
    waivers_digest: str | None = None
    suspensions: Suspensions = field(default_factory=Suspensions)
    keep_outputs: Keep = "failures"
    executor: Mapping[str, object] = field(default_factory=dict)
    suite_name: str | None = None
    shard: Shard | None = None
    planned: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    terms: Mapping[str, Any] = field(default_factory=dict)
    deaths: Sequence[Mapping[str, Any]] = ()
    more_deaths: int = 0
    corpus: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON, with the facts of this machine."""
        profile, errata = self.profile, self.suspensions.errata
        suite = {"version": self.suite_version, "digest": self.suite_digest}
        return {
            "command": list(self.command),
            "started": _moment(self.started),
            "suite": suite | ({"name": self.suite_name} if self.suite_name else {}),
            "backends": {b.name: {"version": b.version, "facts": dict(b.facts)} for b in self.backends},
            "corpus": self.corpus and dict(self.corpus),
            "selection": list(self.selection),
            "strength": "full" if self.strength is None else self.strength,
            "draws": self.draws,
            "seed": self.seed,
            "shard": self.shard and str(self.shard),
            "planned": dict(self.planned),
            "required": dict(self.required),
            "profile": profile and {"name": profile.name, "version": profile.version, "digest": profile.digest},
            "arithmetic": self.declaration and {"digest": self.declaration.digest},
            "waivers": self.waivers_digest and {"digest": self.waivers_digest},
            "errata": {"digest": errata.digest, "ids": [e.id for e in errata.entries]},
            "keep_outputs": self.keep_outputs,
            "executor": dict(self.executor),
            "disputed": {clause: upstream or None for clause, upstream in self.suspensions.disputed.items()},
            "machine": machine(),
            "options": dict(self.options),
            "terms": dict(self.terms),
            "deaths": [dict(told) for told in self.deaths],
            "more_deaths": self.more_deaths,
        }


def machine() -> dict[str, Any]:
    """Return what of this machine may matter to results; no host, user or path."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processor": platform.processor() or None,
        "cores": os.cpu_count(),
        "libraries": {name: version for name in _LIBRARIES if (version := _version(name))},
    }


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _moment(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).isoformat(timespec="seconds")

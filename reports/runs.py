"""Reads results folders, also of killed runs; decides which belong to one run, and what determined its verdicts."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from ..cases.elements import Declaration, element_types
from ..cases.errors import OpconformError, open_regular
from ..cases.ids import Shard, shard_of
from ..cases.results import Result, result_from_json
from ..runners.execution.host import About, Isolation
from ..runners.judging.kept import Keep
from ..runners.judging.terms import Demands, Errata, Erratum, Profile, Suspensions, Waiver, Waivers
from .text import counted

RESULTS = "results.jsonl"
RUN = "run.json"
OUTPUTS = "outputs.jsonl"
CERTIFICATES = "certificates.jsonl"
ACCURACY = "accuracy.jsonl"

_BUFFER = 1 << 18
_SHARDS_SHOWN = 10
_LONGEST = 2000
"""Maximum number of characters of a message about a stranger's file."""
_END = ord("\n")

_BACKEND, _OUTCOME = b',"backend":', b',"outcome":'  # a quote inside a string is escaped: these appear only once


LARGEST_RUN = 256 << 20
"""Maximum size of `run.json` in bytes."""
LONGEST_LINE = 256 << 20
"""Maximum size of a line of a results folder in bytes."""

_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
_AtLeastOne: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
_Strength: TypeAlias = _AtLeastOne | Literal["full"]
_Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]


class _Backend(msgspec.Struct, frozen=True):
    version: str = ""
    name: str = ""
    standards: tuple[str, ...] = ()
    facts: Mapping[str, str | float | bool | None] = {}


class _SuiteRecord(msgspec.Struct, frozen=True):
    version: str | None = None
    digest: str | None = None
    name: str | None = None


class _Selected(msgspec.Struct, frozen=True):
    globs: tuple[str, ...] = ()
    strength: _AtLeastOne | None = 2
    draws: _AtLeastOne = 1
    seed: _Count = 0
    standards: tuple[str, ...] = ()
    suite: str | None = None


class _Options(msgspec.Struct, frozen=True):
    selection: _Selected = _Selected()
    shard: str | None = None
    backends: tuple[str, ...] = ()
    specs: str | None = None
    jobs: _AtLeastOne | None = None
    timeout: _Seconds = 10.0
    memory: _AtLeastOne | None = None
    waivers: str | None = None
    errata: str | None = None
    profile: str | None = None
    arithmetic: str | None = None
    requires: tuple[str, ...] = ()
    junit: str | None = None
    keep_outputs: Keep = "failures"
    isolation: Isolation = "program"
    corpus: str | None = None
    name: str | None = None


class _Run(msgspec.Struct, frozen=True):
    """The form of `run.json`: any key may be missing, but each value must have its type."""

    status: Literal["running", "finished", "interrupted", "failed"]
    command: tuple[str, ...] = ()
    started: str = ""
    suite: _SuiteRecord = _SuiteRecord()
    backends: Mapping[str, _Backend] = {}
    corpus: Mapping[str, Any] | None = None
    selection: tuple[str, ...] = ()
    strength: _Strength = 2
    draws: _AtLeastOne = 1
    seed: _Count = 0
    shard: str | None = None
    planned: Mapping[str, _Count] = {}
    required: Mapping[str, str] = {}
    profile: Mapping[str, str | None] | None = None
    arithmetic: Mapping[str, str | None] | None = None
    waivers: Mapping[str, str | None] | None = None
    errata: Mapping[str, Any] = {}
    keep_outputs: Keep = "failures"
    disputed: Mapping[str, str | None] = {}
    machine: Mapping[str, Any] = {}
    options: _Options | None = None
    terms: Mapping[str, Any] = {}
    deaths: tuple[Mapping[str, Any], ...] = ()
    more_deaths: _Count = 0
    exit_code: int | None = None
    figures: Mapping[str, Any] = {}


def read_run(path: Path | str) -> dict[str, Any]:
    """Return the content of a results folder's `run.json`.

    Raises OpconformError if it is missing or incomplete, or a value does not have the type that a run writes.
    """
    file = Path(path) / RUN
    try:
        with open_regular(file, _BUFFER) as opened:
            content = opened.read(LARGEST_RUN + 1)
        if len(content) > LARGEST_RUN:
            raise OpconformError(f"{file}: larger than {LARGEST_RUN:,} bytes")
        read = msgspec.json.decode(content)
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}; expected a results folder") from None
    except (ValueError, RecursionError) as error:
        raise OpconformError(f"{file}: no JSON: {error}") from None
    if not isinstance(read, dict):
        raise OpconformError(f"{file}: expected an object")
    try:
        msgspec.convert(read, _Run)
    except (ValueError, RecursionError) as error:
        raise OpconformError(f"{file}: not in the form that a run writes: {error}") from None
    return read


def read_results(path: Path | str) -> Iterator[Result]:
    """Yield the results in a folder or a file; a torn last line, which a killed run leaves, is dropped.

    Raises OpconformError if there is no such file, a line is not a result, or the file of a finished run is truncated.
    """
    path = Path(path)
    file = path if path.is_file() else path / RESULTS
    count = 0
    for number, _, line in _whole_lines(file):
        yield _result(line, file, number)
        count += 1
    if file is not path:
        _refuse_truncated(path, count)


def _refuse_truncated(folder: Path, count: int) -> None:
    """Raise OpconformError if a finished run counted more results than its file has."""
    if not (folder / RUN).is_file():
        return
    run_record = read_run(folder)
    counted_then = _at(run_record, ("figures", "overall", "cases"))
    if run_record.get("status") == "finished" and isinstance(counted_then, int) and counted_then > count:
        raise OpconformError(
            f"{folder / RESULTS}: truncated: {counted(count, 'whole line')}, but {RUN} counts "
            f"{counted(counted_then, 'result')}; restore the file, or run the cases again"
        )


def _whole_lines(file: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield each complete line: its number, its offset, and the line with its end."""
    offset = 0
    try:
        with open_regular(file, _BUFFER) as lines:
            for number in itertools.count(1):
                line = lines.readline(LONGEST_LINE + 1)
                if not line:
                    return
                if len(line) > LONGEST_LINE:
                    raise OpconformError(f"{file}:{number}: a line of more than {LONGEST_LINE:,} bytes")
                if line[-1] == _END:
                    yield number, offset, line
                offset += len(line)
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}; expected a results folder") from None


def _result(line: bytes, file: Path, number: int) -> Result:
    try:
        return result_from_json(line)
    except (ValueError, RecursionError) as error:
        raise OpconformError(f"{file}:{number}: not a result: {error}") from None


def head_of(line: bytes) -> bytes:
    """Return the beginning of a result's line, with case and backend; lines that accompany it begin the same way."""
    return line[: line.index(_OUTCOME)]


def case_head_of(line: bytes) -> bytes:
    """Return the beginning of a result's line, with the case."""
    return line[: line.index(_BACKEND)]


@dataclass(slots=True)
class StoredResult:
    """A result in a folder, and the lines that belong to it, if any.

    `line` is the result's line, and `offset` its position in bytes. Only the first result of a case has the
    `certificate`.
    """

    line: bytes
    offset: int
    result: Result
    accuracy: bytes | None
    outputs: bytes | None
    certificate: bytes | None


@dataclass
class StoredResults:
    """A walk over the results of a folder and the lines that belong to them.

    Lines that accompany a result were written before it, in the same order. So after a kill, lines without a result are
    at the end of their file. After the walk, `ends` says where each file must end for everything to belong together,
    `done` which cases are present, by backend, and `certified` which have a certificate.
    """

    folder: Path
    done: dict[str, set[str]] = field(default_factory=dict)
    certified: set[str] = field(default_factory=set)
    ends: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[StoredResult]:
        """Walk, once. Raises OpconformError for an invalid line, or a case that appears twice."""
        file = self.folder / RESULTS
        beside = {name: _Companions(self.folder / name) for name in (OUTPUTS, CERTIFICATES, ACCURACY)}
        self.ends[RESULTS] = 0
        for number, offset, line in _whole_lines(file):
            result = _result(line, file, number)
            done = self.done.setdefault(result.backend, set())
            if result.case in done:
                raise OpconformError(f"{file}:{number}: {result.case} on {result.backend} appears twice")
            done.add(result.case)
            head = _head(line, file, number)
            outputs, accuracy = beside[OUTPUTS].take(head), beside[ACCURACY].take(head)
            certificate = beside[CERTIFICATES].take(case_head_of(line))
            if certificate:
                self.certified.add(result.case)
            self.ends[RESULTS] = offset + len(line)
            yield StoredResult(line, offset, result, accuracy, outputs, certificate)
        for name, companions in beside.items():
            companions.check_rest(self.done)
            if companions.exists:
                self.ends[name] = companions.end
        _refuse_truncated(self.folder, sum(map(len, self.done.values())))


def _head(line: bytes, file: Path, number: int) -> bytes:
    if not line.startswith(b'{"case":') or _OUTCOME not in line:
        raise OpconformError(f"{file}:{number}: not a result: expected its keys in the order that a run writes")
    return head_of(line)


class _Companions:
    """A file of lines that belong to results, read in step with them."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.exists = file.exists()
        self._lines = _whole_lines(file) if self.exists else iter(())
        self._head = next(self._lines, None)
        self.end = 0

    def take(self, head: bytes) -> bytes | None:
        """Return the next line if it begins so, and move on to the one after it."""
        if self._head is None or not self._head[2].startswith(head + b","):
            return None
        _, offset, line = self._head
        self.end = offset + len(line)
        self._head = next(self._lines, None)
        return line

    def check_rest(self, done: Mapping[str, Collection[str]]) -> None:
        """Raise OpconformError unless the remaining lines belong to cases without a result."""
        while self._head is not None:
            number, _, line = self._head
            position = f"{self._file}:{number}"
            try:
                fields = json.loads(line)
                case, backend = str(fields["case"]), str(fields.get("backend"))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise OpconformError(f"{position}: not a line of a case: {error}") from None
            if case in done.get(backend, ()):
                raise OpconformError(f"{position}: not in the order of {RESULTS}: {case} on {backend}")
            self._head = next(self._lines, None)


@dataclass(frozen=True)
class Terms:
    """Everything except the cases that decides verdicts: what fails, what is suspended, waived, and declared."""

    demands: Demands = field(default_factory=Demands)
    suspensions: Suspensions = field(default_factory=Suspensions)
    waivers: Waivers = field(default_factory=Waivers)
    declaration: Declaration | None = None


def terms_to_dict(terms: Terms) -> dict[str, Any]:
    """Return them for JSON."""
    return {
        "required": dict(terms.demands.required),
        "profile": _term_json(terms.demands.profile),
        "claims": {name: _term_json(claim) for name, claim in terms.demands.claims.items()},
        "errata": [_term_json(erratum) for erratum in terms.suspensions.errata.entries],
        "disputed": dict(terms.suspensions.disputed),
        "waivers": [{**(_term_json(waiver) or {}), "case": str(waiver.case)} for waiver in terms.waivers.entries],
        "arithmetic": _term_json(terms.declaration),
    }


def _term_json(term: Profile | Erratum | Waiver | Declaration | None) -> dict[str, Any] | None:
    """Return one of them for JSON; the digest of its file has its own key in `run.json`."""
    if term is None:
        return None
    fields: dict[str, Any] = msgspec.to_builtins(term, order="deterministic")
    fields.pop("digest", None)
    return fields


def terms_from(fields: Mapping[str, Any], source: object) -> Terms:
    """Return the terms that `terms_to_dict` wrote to the `run.json` at `source`.

    Raises OpconformError if they are invalid.
    """
    try:
        waivers = [{**waiver, "case": {"text": waiver["case"]}} for waiver in fields["waivers"]]
        declaration = msgspec.convert(fields["arithmetic"], Declaration | None)
        _refuse_unknown_types(declaration or Declaration())
        return Terms(
            Demands(
                dict(fields["required"]),
                msgspec.convert(fields["profile"], Profile | None),
                msgspec.convert(fields.get("claims", {}), dict[str, Profile]),
            ),
            Suspensions(Errata(msgspec.convert(fields["errata"], tuple[Erratum, ...])), dict(fields["disputed"])),
            Waivers(msgspec.convert(waivers, tuple[Waiver, ...])),
            declaration,
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise OpconformError(f"{source}: terms: not in the form that a run writes: {error!r}"[:_LONGEST]) from None


def _refuse_unknown_types(declaration: Declaration) -> None:
    """Raise ValueError if a declaration names a type that is not one of numbers, or computes in one of another kind."""
    for name, declared in declaration.types.items():
        own = _numbers(name)
        if not own:
            raise ValueError(f"arithmetic: {name!r} is no floating-point or integer type")
        for type_ in (declared.compute or name, declared.accumulator or name):
            if _numbers(type_) != own:
                raise ValueError(f"arithmetic: {type_!r} is no {own} type")


def _numbers(type_: object) -> str:
    """Return what numbers a type has, in words; or nothing for other types and names of none."""
    known = element_types().get(type_) if isinstance(type_, str) else None
    return {"float": "floating-point", "signed": "integer", "unsigned": "integer"}.get(known.kind, "") if known else ""


UNKNOWN = "unknown"
"""The version of a backend that has not reported it yet."""

_DECIDING: Mapping[str, tuple[str, ...]] = {
    "suite version": ("suite", "version"),
    "suite digest": ("suite", "digest"),
    "suite": ("suite", "name"),
    "selection": ("selection",),
    "strength": ("strength",),
    "draws": ("draws",),
    "seed": ("seed",),
    "shard": ("shard",),
    "required": ("required",),
    "profile digest": ("profile", "digest"),
    "arithmetic digest": ("arithmetic", "digest"),
    "waivers digest": ("waivers", "digest"),
    "errata digest": ("errata", "digest"),
    "disputed": ("disputed",),
    "corpus digest": ("corpus", "digest"),
    "keep_outputs": ("keep_outputs",),
}
"""The keys of `run.json` that identify a run, apart from its backends."""


@dataclass(frozen=True)
class RunRecord:
    """A run that has begun, or a shard of one, by its folder and its `run.json`, as `read_run` returns it."""

    folder: Path
    run_json: Mapping[str, Any]

    @property
    def finished(self) -> bool:
        """Return whether nothing is left to do."""
        return self.run_json.get("status") == "finished"

    @property
    def command(self) -> list[str]:
        """Return the command line that began it."""
        return list(self.run_json.get("command", ()))

    @property
    def started(self) -> dt.datetime:
        """Return when it began. Raises OpconformError if `run.json` lacks it."""
        try:
            started = dt.datetime.fromisoformat(self.run_json["started"])
            started.astimezone(dt.UTC)  # beyond the years that there are
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise OpconformError(f"{self.folder / RUN}: started: expected a moment: {error!r}") from None
        return started

    @property
    def planned(self) -> int | None:
        """Return the number of results of the finished run, None if planning had not ended when it was written."""
        planned, backends = self.run_json.get("planned", {}), self.run_json.get("backends", {})
        return sum(planned.values()) or None if planned.keys() == backends.keys() else None

    @property
    def deaths(self) -> list[dict[str, Any]]:
        """Return the deaths of workers that no case explains, as far as known."""
        return list(self.run_json.get("deaths", ()))

    @property
    def more_deaths(self) -> int:
        """Return how many there were in addition."""
        return int(self.run_json.get("more_deaths", 0))

    @property
    def shard(self) -> Shard | None:
        """Return which part of the run it is, None for a whole one. Raises OpconformError if there is none such."""
        text = self.run_json.get("shard")
        return None if text is None else shard_of(text)

    @property
    def versions(self) -> dict[str, str]:
        """Return its backends, each with its version."""
        return {name: self.about(name).version for name in self.run_json["backends"]}

    @property
    def terms(self) -> Terms:
        """Return what decided its verdicts. Raises OpconformError if `run.json` lacks it."""
        return terms_from(self.run_json.get("terms", {}), self.folder / RUN)

    def about(self, backend: str) -> About:
        """Return what `run.json` has on a backend."""
        fields = self.run_json.get("backends", {}).get(backend, {})
        standards, facts = tuple(fields.get("standards", ())), fields.get("facts", {})
        return About(fields.get("version", UNKNOWN), standards, facts, name=fields.get("name", ""))


def compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[object, object]]:
    """Return the values that make two runs different, apart from their backends: by name, both values."""
    new = json.loads(json.dumps(new))  # in the form in which it would be read back
    values = {name: (_at(old, path), _at(new, path)) for name, path in _DECIDING.items()}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def _at(fields: Mapping[str, Any], path: tuple[str, ...]) -> object:
    value: Any = fields
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


@dataclass(frozen=True)
class MergedRun:
    """The parts of one run, in the order of their shards; `missing` are the absent ones."""

    parts: tuple[RunRecord, ...]
    missing: tuple[Shard, ...] = ()

    @property
    def unfinished(self) -> list[RunRecord]:
        """Return the parts that were interrupted or killed, or still run."""
        return [part for part in self.parts if not part.finished]

    @property
    def versions(self) -> dict[str, str]:
        """Return the backends, each with its version."""
        return self.parts[0].versions

    @property
    def names(self) -> dict[str, str]:
        """Return what reports call each backend: its own name if `run.json` has one."""
        backends = self.parts[0].run_json["backends"]
        return {backend: str(backends[backend].get("name") or backend) for backend in backends}

    @property
    def partial(self) -> bool:
        """Return whether cases of the suite are left out."""
        selected = self.parts[0].run_json.get("selection") or self.parts[0].run_json.get("suite", {}).get("name")
        return bool(selected or self.missing or self.unfinished)


def distinct(names: Mapping[str, str]) -> dict[str, str]:
    """Return the names of backends; those that several backends have are replaced by what the command line said."""
    counts = Counter(names.values())
    return {backend: name if counts[name] == 1 else backend for backend, name in names.items()}


def names_of(wholes: Iterable[MergedRun]) -> dict[str, str]:
    """Return what reports call the backends of these runs, each by another name."""
    return distinct({backend: name for merged in wholes for backend, name in merged.names.items()})


def put_together(folders: Sequence[Path], *, partial: bool = False) -> list[MergedRun]:
    """Return the runs in these folders, one for each set of backends.

    Raises OpconformError for folders of several suites or selections, for shards of different runs, for a shard that
    appears twice and, unless `partial`, for one that is missing or unfinished.
    """
    _refuse_twice(folders)
    groups: dict[tuple[str, ...], list[RunRecord]] = {}
    for part in map(_part, folders):
        groups.setdefault(tuple(sorted(part.versions)), []).append(part)
    wholes = [_merged_run(parts, partial=partial) for parts in groups.values()]
    for number, merged in enumerate(wholes):
        for other in wholes[:number]:
            _side_by_side(other, merged)
    return wholes


def _part(folder: Path) -> RunRecord:
    run_record = read_run(folder)
    if not run_record.keys() >= {"backends", "terms"}:
        raise OpconformError(f"{folder / RUN}: names no backends and no terms: it was written by an older version")
    return RunRecord(folder, run_record)


def _refuse_twice(folders: Sequence[Path]) -> None:
    seen: dict[Path, Path] = {}
    for folder in folders:
        if folder.resolve() in seen:
            raise OpconformError(f"{folder}: named twice")
        seen[folder.resolve()] = folder


def _merged_run(parts: Sequence[RunRecord], *, partial: bool) -> MergedRun:
    first = parts[0]
    for part in parts[1:]:
        old, new = first.versions, part.versions
        versions = {f"version of {name}": (old[name], new[name]) for name in old if old[name] != new[name]}
        apart = _apart(first, part, but={"shard"})
        counts = [record.shard and record.shard.count for record in (first, part)]
        if counts[0] != counts[1]:
            apart["number of shards"] = (counts[0], counts[1])
        elif first.shard is None and not apart:
            both = f"{first.folder} and {part.folder} are both complete runs of {' and '.join(first.versions)}"
            raise OpconformError(f"{both}: report one of them; to show an earlier run in a site, use --before")
        _refuse_other(first, part, {**apart, **versions})
    if first.shard is None:
        return MergedRun((first,))
    by_index: dict[int, RunRecord] = {}
    for part in parts:
        index = part.shard.index if part.shard else 0
        if index in by_index:
            raise OpconformError(f"shard {part.shard} appears twice: {by_index[index].folder} and {part.folder}")
        by_index[index] = part
    count = first.shard.count
    missing = tuple(Shard(i, count) for i in range(1, count + 1) if i not in by_index)
    merged = MergedRun(tuple(by_index[i] for i in sorted(by_index)), missing)
    if not partial:
        _refuse_incomplete(merged)
    return merged


def _apart(part: RunRecord, other: RunRecord, but: Collection[str]) -> dict[str, tuple[object, object]]:
    return {name: pair for name, pair in compared(part.run_json, other.run_json).items() if name not in but}


def _refuse_other(part: RunRecord, other: RunRecord, apart: Mapping[str, tuple[object, object]]) -> None:
    if apart:
        lines = "".join(
            f"\n  {name}: {_value(a)} in {part.folder}, {_value(b)} in {other.folder}" for name, (a, b) in apart.items()
        )
        raise OpconformError(f"{part.folder} and {other.folder} are not parts of one run:{lines}")


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def shards_told(shards: Sequence[Shard]) -> str:
    """Return the names of shards, only the first ones if there are many."""
    more = f" and {len(shards) - _SHARDS_SHOWN:,} more" if len(shards) > _SHARDS_SHOWN else ""
    return ", ".join(map(str, shards[:_SHARDS_SHOWN])) + more


def _refuse_incomplete(merged: MergedRun) -> None:
    names = " and ".join(merged.versions)
    if merged.missing:
        problem = f"{counted(len(merged.missing), 'shard')} of {names} missing: {shards_told(merged.missing)}"
        raise OpconformError(f"{problem}; name their folders too, or leave them out with --partial")
    if merged.unfinished:
        folder = merged.unfinished[0].folder
        raise OpconformError(
            f"{folder}: unfinished; `opconform run --resume {folder}` finishes it, --partial reports without the rest"
        )


def _side_by_side(merged: MergedRun, other_run: MergedRun) -> None:
    """Raise OpconformError unless two runs of different backends can be shown together."""
    a, b = merged.parts[0], other_run.parts[0]
    for name in a.versions.keys() & b.versions.keys():
        raise OpconformError(f"{a.folder} and {b.folder} are both runs of {name}; report one of them")
    _refuse_other(a, b, _apart(a, b, but={"shard", "waivers digest"}))


def runs_of(folders: Sequence[Path], *, partial: bool) -> list[MergedRun]:
    """Return the runs in these folders, one for each set of backends.

    Raises OpconformError for folders that do not belong together and, unless `partial`, for unfinished runs.
    """
    wholes = put_together(folders, partial=partial)
    for part in (part for merged in wholes for part in merged.unfinished):
        if not partial:
            folder = part.folder
            advice = f"`opconform run --resume {folder}` finishes it, --partial uses it as it is"
            raise OpconformError(f"{folder}: unfinished; {advice}")
    return wholes


def started(merged: MergedRun) -> str:
    """Return when a run began, in UTC. Raises OpconformError if `run.json` lacks it."""
    return min(part.started.astimezone(dt.UTC) for part in merged.parts).isoformat(timespec="seconds")


def folders_in(path: Path) -> list[Path]:
    """Return a results folder itself, or the results folders in a folder. Raises OpconformError if there is none."""
    if (path / RUN).is_file():
        return [path]
    inside = sorted(file.parent for file in path.glob(f"*/{RUN}")) if path.is_dir() else []
    if not inside:
        advice = "expected a results folder, a folder of results folders, or HISTORY.duckdb:RUN"
        raise OpconformError(f"{path}: {advice}")
    return inside

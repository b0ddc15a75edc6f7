"""`opconform mutants`: the cases are run against wrong and compliant implementations, an operator version a process."""

from __future__ import annotations

import functools
import hashlib
import json
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console

from ..cases.batch import (
    Batch,
    Bounds,
    Expectation,
    Flag,
)
from ..cases.elements import Array
from ..cases.errors import OpconformError
from ..cases.ids import parse_id
from ..cases.lock import SHORT, CaseDigests, lock_of, read_locks
from ..cases.results import Outcome
from ..generators.mutants.catalogue import mutants_of
from ..generators.mutants.formula import (
    Answering,
    SameFormula,
    formula_mutant,
    invocations,
)
from ..generators.mutants.implementation import Answer, Implementation, Memory
from ..generators.mutants.invocation import Refused
from ..generators.mutants.variants import variants_of
from ..generators.plan import Selection, selected, suite_cases, suite_file, suite_text
from ..generators.source import GeneratedCases
from ..reports.matrix import (
    Fate,
    Matrix,
    Status,
    VersionMatrix,
    matrix_html,
    matrix_markdown,
    print_matrix,
    read_record,
)
from ..reports.text import write_text
from ..runners.answers import Answers, Stack
from ..runners.judge import judge
from ..specs.model import Spec, VersionSpec
from .locking import package_root
from .options import usable_cores

KILLS = frozenset({Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.ERROR})
"""What tells a mutant from a right implementation; an answer to an invalid input does not."""

_TRIED = 12  # programs with a long formula that a mutant of it is tried on
_SMOKE = 12  # cases of the smoke suite, unless mutants alone take more
_CANDIDATES = 10  # groups of cases that the smoke suite is chosen from, beside the smallest that kills each mutant
_CHOICES = 4  # how many of these that kill a mutant are looked for
_ORDER: tuple[Status, ...] = ("unmet", "same", "unseen", "admitted", "killed")


@dataclass(frozen=True, slots=True)
class Kill:
    """A case that an implementation does not pass, and the outcome."""

    id: str
    outcome: Outcome


@dataclass(eq=False)
class Bench:
    """Valid cases of one program that share what decides shapes, side by side, before many implementations."""

    batch: Batch
    answering: Answering
    _verdicts: dict[bytes, tuple[Kill, ...]] = field(default_factory=dict)

    @property
    def size(self) -> tuple[int, int, str]:
        """What makes the cases small: few elements, then short ids."""
        elements = sum(array[0, ...].size for array in self.batch.inputs)
        return elements, len(self.batch.ids[0]), self.batch.ids[0]

    def put(self, implementation: Implementation, memory: Memory | None = None) -> tuple[Status, tuple[Kill, ...]]:
        """Return what becomes of an implementation here, and the cases that it does not pass."""
        try:
            answer = self.answering.answer(implementation, memory)
        except SameFormula:
            return "same", ()
        except Exception:  # a refusal, or a defect that raises, which looks like one
            return "admitted", self._refused
        right = self.answering.right
        if len(answer) == len(right) and all(map(operator.is_, answer, right)):
            return "unmet", ()
        content = _content(answer)
        if content == self._right:  # an effect on the answer that leaves it as it is does nothing
            return "unmet" if implementation.kind in ("answer", "trigger") else "unseen", ()
        if content not in self._verdicts:
            self._verdicts[content] = tuple(self._judged(answer))
        return "admitted", self._verdicts[content]

    @functools.cached_property
    def _right(self) -> bytes:
        return _content(self.answering.right)

    def _judged(self, answer: Answer) -> Iterator[Kill]:
        lanes = range(len(self.batch))
        if any(len(out) != len(lanes) for out in answer):
            raise ValueError("an answer has not as many lanes as there are cases")
        values = (option for option in self.batch.expectation.options if option.kind == "values")
        structure = next((option.structure for option in values), ())
        answers = Answers(len(lanes), (Stack(lanes, tuple(answer), structure),))
        for id_, verdict in zip(self.batch.ids, judge(self.batch, answers), strict=True):
            if verdict.outcome in KILLS:
                yield Kill(id_, verdict.outcome)

    @functools.cached_property
    def _refused(self) -> tuple[Kill, ...]:
        admitted = [o.applies for o in self.batch.expectation.options if o.kind in ("rejected", "anything")]
        free = np.any(admitted, axis=0) if admitted else np.zeros(len(self.batch.ids), bool)
        return tuple(Kill(id_, Outcome.ERROR) for id_, ok in zip(self.batch.ids, free, strict=True) if not ok)


def _content(answer: Answer) -> bytes:
    parts = (a.tobytes() if a.dtype != object else repr(a.tolist()).encode() for a in answer)
    return repr([(a.dtype.name, a.shape) for a in answer]).encode() + b"".join(parts)


def benches(source: GeneratedCases, ids: Sequence[str]) -> tuple[list[Bench], str]:
    """Return the valid cases with these ids of one operator version, small ones first, and the digest of all cases."""
    found: list[Bench] = []
    digests: list[CaseDigests] = []
    for batch in source.batches(ids):
        digests += map(CaseDigests, batch.ids, batch.digests, batch.expectation_digests)
        if not batch.expectation.invalid:
            found += (Bench(part, answering) for part, answering in _parts(source, batch))
    found.sort(key=lambda bench: bench.size)
    return found, lock_of("", "", digests).digest[:SHORT]


def _parts(source: GeneratedCases, batch: Batch) -> Iterator[tuple[Batch, Answering]]:
    """Yield a batch in parts that share what decides shapes."""
    for lanes, invocation in invocations(source.library, batch.program, batch.inputs):
        try:
            answering = Answering(invocation)
        except Refused:
            continue  # no option has values: whatever is answered is refused or admitted alike
        yield (batch if len(lanes) == len(batch) else _some(batch, lanes)), answering


def _some(batch: Batch, lanes: Sequence[int]) -> Batch:
    which = np.array(lanes)
    return replace(
        batch,
        ids=[batch.ids[lane] for lane in lanes],
        inputs=tuple(array[which] for array in batch.inputs),
        expectation=batch.expectation.of_lanes(which, len(lanes)),
    )


def tested(source: GeneratedCases, name: str, ids: Sequence[str]) -> VersionMatrix:
    """Return the kill matrix of the cases with these ids, all of one operator version."""
    spec, key = source.library.operator_version(name)
    version = spec.version(key)
    every, digest = benches(source, ids)
    trial = _Trial(every, {mutant.name: mutant for mutant in mutants_of(spec, version)})
    trial.run()
    variants = list(variants_of(version))
    fates = trial.fates()
    tried: dict[str, tuple[int, int]] = {}
    for fate in fates:
        total, killed = tried.get(fate.kind, (0, 0))
        tried[fate.kind] = total + 1, killed + (fate.status == "killed")
    levels, smoke = _levels(fates), trial.smoke()
    return VersionMatrix(
        name,
        digest,
        len(ids),
        tried,
        tuple(f for f in fates if f.status != "killed" and f.kind != "trigger"),
        len(variants),
        tuple(fate for variant in variants for fate in _blamed(variant, every)),
        len(levels),
        {level: why for level, why in levels.items() if why},
        tuple(case for case in ids if case in smoke),
        blindness(bench.batch.expectation for bench in every),
        tuple(f for f in fates if f.status == "killed"),
    )


@dataclass
class _Trial:
    """The mutants of a version and its cases, small ones first: each mutant is tried until some case kills it."""

    benches: Sequence[Bench]
    mutants: dict[str, Implementation]
    killed: dict[str, tuple[Kill, ...]] = field(default_factory=dict)
    _best: dict[str, Status] = field(default_factory=dict)
    _before: dict[str, str] = field(default_factory=dict)
    _memories: dict[tuple[str, str], Memory] = field(default_factory=dict)
    _tried: Counter[str] = field(default_factory=Counter)

    def run(self) -> None:
        for bench in self.benches:
            for name in bench.answering.deviations:
                if name not in self.mutants:
                    self.mutants[name] = formula_mutant(name)
            for mutant in self.mutants.values():
                if mutant.name not in self.killed and not self._is_done(mutant, bench):
                    self._put(mutant, bench)

    def _is_done(self, mutant: Implementation, bench: Bench) -> bool:
        """Whether enough programs with a long formula have shown that they do not tell this mutant."""
        return mutant.kind == "formula" and bench.answering.is_long and self._tried[mutant.name] >= _TRIED

    def _put(self, mutant: Implementation, bench: Bench) -> None:
        key = bench.batch.program.key
        memory = self._memories.setdefault((mutant.name, key), {}) if mutant.kind == "state" else None
        status, kills = bench.put(mutant, memory)
        self._tried[mutant.name] += status != "unmet"
        if _ORDER.index(status) > _ORDER.index(self._best.get(mutant.name, "unmet")):
            self._best[mutant.name] = status
        if kills:
            self.killed[mutant.name] = kills
            if mutant.kind == "state":  # it takes a run before
                self._before[mutant.name] = self._first_of(key)

    def _first_of(self, key: str) -> str:
        return next(bench.batch.ids[0] for bench in self.benches if bench.batch.program.key == key)

    def fates(self) -> list[Fate]:
        """Return what became of the mutants, without those that are none: what they misread says the same."""
        every = map(self._fate, self.mutants.values())
        none = {True: ("same", "unseen", "unmet"), False: ("same",)}
        return [fate for fate in every if fate.status not in none[self.mutants[fate.name].incidental]]

    def _fate(self, mutant: Implementation) -> Fate:
        if mutant.name in self.killed:
            kill = self.killed[mutant.name][0]
            return Fate(mutant.name, mutant.kind, mutant.text, "killed", kill.id, str(kill.outcome))
        return Fate(mutant.name, mutant.kind, mutant.text, self._best.get(mutant.name, "unmet"))

    def smoke(self) -> set[str]:
        """Return few cases that kill every mutant that is killed, and expose as many triggers as there is room for."""
        firsts = Counter(kills[0].id for kills in self.killed.values())
        weights = {id(bench): sum(firsts[id_] for id_ in bench.batch.ids) for bench in self.benches}
        candidates = sorted(self.benches, key=lambda bench: -weights[id(bench)])[:_CANDIDATES]
        mutants: dict[str, set[str]] = {}
        triggers: dict[str, set[str]] = {}
        for name, kills in self.killed.items():
            ids = {kill.id for kill in kills}
            if self.mutants[name].kind != "state":
                found = filter(None, (self._kills(name, bench) for bench in candidates))
                ids.update(kill.id for kills in islice(found, _CHOICES) for kill in kills)
            if self.mutants[name].kind == "trigger":
                triggers.setdefault(_level(name), set()).update(ids)
            else:
                mutants[name] = ids
        chosen = _covering(mutants.values(), set(self._before.values()))
        chosen = _covering(triggers.values(), chosen, most=_SMOKE)
        return chosen or {bench.batch.ids[0] for bench in self.benches[:1]}

    def _kills(self, name: str, bench: Bench) -> tuple[Kill, ...]:
        if self.killed[name][0].id in bench.batch.ids:
            return self.killed[name]
        return bench.put(self.mutants[name])[1]


def _covering(wanted: Iterable[set[str]], chosen: set[str], most: int | None = None) -> set[str]:
    """Return `chosen` and few more cases, at most `most` in all, so that each set has one of them."""
    left, found = [ids for ids in wanted if not ids & chosen], set(chosen)
    while left and (most is None or len(found) < most):
        counted = Counter(id_ for ids in left for id_ in ids)
        case = min(counted.items(), key=_most_then_small)[0]
        found.add(case)
        left = [ids for ids in left if case not in ids]
    return found


def _most_then_small(counted: tuple[str, int]) -> tuple[int, int, str]:
    case, kills = counted
    return -kills, len(case), case


def _blamed(variant: Implementation, every: Iterable[Bench]) -> Iterator[Fate]:
    for bench in every:
        for kill in bench.put(variant)[1]:
            yield Fate(variant.name, variant.kind, variant.text, "blamed", kill.id, str(kill.outcome))
            return


def _level(name: str) -> str:
    """Return the trigger, `rank=4`, of the name of a mutant under it."""
    return name.partition(":")[0]


def _levels(fates: Iterable[Fate]) -> Mapping[str, str]:
    """Return of each trigger why it is hidden: nothing shows under it, or effects that do are not exposed."""
    found: dict[str, list[Fate]] = {}
    for fate in fates:
        if fate.kind == "trigger":
            found.setdefault(_level(fate.name), []).append(fate)
    return {level: _hidden(each) for level, each in found.items()}


def _hidden(effects: Sequence[Fate]) -> str:
    shown = [fate for fate in effects if fate.status in ("killed", "admitted")]
    if not shown:
        return "no case"
    return ", ".join(fate.name.partition(":")[2] for fate in shown if fate.status == "admitted")


# What bounds cannot see


def blindness(expectations: Iterable[Expectation]) -> dict[str, tuple[int, int]]:
    """Return how many elements of outputs there are by type, and in how many of them no mistake would show.

    That is so where an option admits any value, or has a bound that exceeds the magnitude and no second moment beside.
    """
    found: dict[str, tuple[int, int]] = {}
    for expectation in expectations:
        for type_, blind in _blind(expectation):
            count, seen = found.get(type_, (0, 0))
            found[type_] = count + blind.size, seen + int(np.count_nonzero(blind))
    return found


def _blind(expectation: Expectation) -> Iterator[tuple[str, Array]]:
    """Yield the type of each output, and which of its elements some option leaves open."""
    usual = next((o for o in expectation.options if o.kind == "values"), None)
    strict = [o for o in expectation.options if o.level == "strict"]
    for place, bounds in enumerate(() if usual is None else usual.outputs):
        blind = np.zeros(bounds.value.shape, bool)
        for option in strict:
            applies = option.applies.reshape(-1, *(1,) * len(bounds.shape))
            if option.kind == "anything":
                blind |= applies
            elif len(option.outputs) > place and option.outputs[place].shape == bounds.shape:
                blind |= applies & _vacuous(option.outputs[place])
        yield bounds.type, blind


def _vacuous(bounds: Bounds) -> Array:
    free = np.zeros(bounds.value.shape, bool) if bounds.flags is None else (bounds.flags & Flag.FREE) > 0
    if bounds.value.dtype != np.float64 or bounds.spread is not None:
        return np.asarray(free)
    with np.errstate(all="ignore"):
        reach = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
        return np.asarray(free | (np.isfinite(bounds.value) & (reach > np.abs(bounds.value))))


_REMARK = (
    "The suite `smoke`: few cases of each operator version that kill every mutant that the whole suite kills.\n"
    "Made by `opconform mutants --write-smoke FILE`."
)


@dataclass(frozen=True)
class MutationOptions:
    """The options of `opconform mutants`; see its help."""

    selection: Selection = field(default_factory=Selection)
    specs: Path | None = None
    jobs: int | None = None
    record: Path | None = None
    json: Path | None = None
    html: Path | None = None
    markdown: Path | None = None
    write_smoke: Path | None = None


def run_mutants(options: MutationOptions, console: Console | None = None) -> int:
    """Make the kill matrix, show and write it.

    Returns 1 if a compliant variant is blamed, or if a mutant survives that did not in the record, where there is one.
    Raises OpconformError for a wrong option or file.
    """
    source = GeneratedCases(options.specs)
    for target in (options.record, options.json, options.html, options.markdown, options.write_smoke):
        if target is not None and not target.absolute().parent.is_dir():
            raise OpconformError(f"{target}: {target.parent} is no folder; make it first")
    known = Matrix({})
    if options.record is not None and options.record.exists():
        known = read_record(options.record, _smoke(options.write_smoke))
    specs = {str(v.operator): spec for spec in source.library.specs() for v in sorted(spec.versions.values(), key=_age)}
    codes = _codes(specs)
    unchanged = _unchanged(specs, codes, known, options.selection)
    ids = _by_version(source, _without(options.selection, unchanged, specs))
    ids = {name: cases for name, cases in ids.items() if name not in unchanged}
    if not ids and not unchanged:
        raise OpconformError(f"{', '.join(options.selection.globs) or 'the suite'} selects no case")
    made = kill_matrix(source, ids, options.jobs or usable_cores())
    made = Matrix({name: replace(one, code=codes[name]) for name, one in made.tested.items()})
    every = {**known.tested, **made.tested}
    matrix = Matrix({name: every[name] for name in specs if name in every})
    for target, page in (
        (options.record, matrix.to_record()),
        (options.json, json.dumps(matrix.to_dict(), indent=1, allow_nan=False) + "\n"),
        (options.html, matrix_html(matrix)),
        (options.markdown, matrix_markdown(matrix)),
        (options.write_smoke, suite_text(matrix.smoke, _REMARK)),
    ):
        if target is not None:
            write_text(target, page)
    new = made.beyond(known)
    print_matrix(console or Console(), new if options.record is not None else matrix)
    return 1 if matrix.blamed or new.survivors else 0


def _age(version: VersionSpec) -> int:
    number = version.operator.version
    return number if isinstance(number, int) else 0


def _smoke(file: Path | None) -> Mapping[str, Sequence[str]]:
    """Return the cases of the smoke suite by operator version: of a file that is to be written, else of the package."""
    cases = suite_cases("smoke") if file is None else suite_file(file) if file.exists() else ()
    found: dict[str, list[str]] = {}
    for text in cases:
        found.setdefault(parse_id(text).operator, []).append(text)
    return found


def _unchanged(
    specs: Mapping[str, Spec], codes: Mapping[str, str], known: Matrix, selection: Selection
) -> frozenset[str]:
    """Return the operator versions that are selected as a whole, with cases as locked, and recorded with these."""
    if replace(selection, globs=()) != Selection():
        return frozenset()
    locks = read_locks(package_root() / "cases" / "manifests")
    return frozenset(
        name
        for name in specs
        if name in known.tested
        and name in locks
        and (known.tested[name].digest, known.tested[name].code) == (locks[name].digest[:SHORT], codes[name])
        and _is_whole(name, selection)
    )


def _is_whole(name: str, selection: Selection) -> bool:
    return not selection.globs or any(fnmatchcase(name, glob) for glob in selection.globs)


def _without(selection: Selection, unchanged: frozenset[str], names: Iterable[str]) -> Selection:
    """Return the selection without whole operator versions, where it selects nothing but whole ones."""
    admitted = [name for name in names if selection.may_admit(name)]
    if not unchanged or not all(_is_whole(name, selection) for name in admitted):
        return selection
    return replace(selection, globs=tuple(n for n in admitted if n not in unchanged) or ("nothing",))


def _codes(specs: Mapping[str, Spec]) -> dict[str, str]:
    """Return of each operator version a digest of the code that its mutants are made by.

    Code of primitives is not among that: a change there that matters changes expectations, and so the lock.
    """
    generators = package_root() / "generators"
    shared = [*sorted((generators / "mutants").glob("*.py")), generators / "arithmetic" / "native.py"]
    shared.append(package_root() / "cli" / "mutation.py")
    common = "".join(map(_code, shared))
    families = {spec.family: _code(generators / "families" / f"{spec.family}.py") for spec in specs.values()}
    digests = {name: hashlib.sha256((common + code).encode()).hexdigest()[:SHORT] for name, code in families.items()}
    return {name: digests[spec.family] for name, spec in specs.items()}


def _code(file: Path) -> str:
    """Return the lines of a module without comments and empty ones."""
    lines = (line.rstrip() for line in file.read_text("utf-8").splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.lstrip().startswith("#"))


def kill_matrix(source: GeneratedCases, ids: Mapping[str, Sequence[str]], jobs: int) -> Matrix:
    """Return the matrix of cases, by operator version."""
    largest = sorted(ids, key=lambda name: -len(ids[name]))
    if min(jobs, len(ids)) < 2:
        return Matrix({name: tested(source, name, ids[name]) for name in ids})
    with ProcessPoolExecutor(min(jobs, len(ids)), get_context("forkserver")) as pool:
        asked = {name: pool.submit(_tested, source, name, ids[name]) for name in largest}
        return Matrix({name: asked[name].result() for name in ids})


def _tested(source: GeneratedCases, name: str, ids: Sequence[str]) -> VersionMatrix:
    return tested(source, name, ids)


def _by_version(source: GeneratedCases, selection: Selection) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = {}
    for text in selected(source, selection):
        ids.setdefault(parse_id(text).operator, []).append(text)
    return ids

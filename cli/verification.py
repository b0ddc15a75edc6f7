"""The verification of a submission: what was checked, what could not be checked, and what is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..cases.errors import OpconformError
from ..cases.ids import Selection, Shard, shard_of, strength_of
from ..cases.results import Outcome
from ..reports.runs import RUN, Terms
from ..reports.tables import Tables
from ..reports.tally import OUR_SIDE_FAILED
from ..reports.text import counted, printable
from ..runners.registry import known_backends
from ..runners.terms import before_waiving
from .generated_suite import GeneratedSuite, suite_digest
from .rejudge import OutcomeChanges, Rejudged, Rejudgement, RejudgeOptions, opened
from .submission import REPEATED

_SHOWN = 20
_ENDED = frozenset({Outcome.CRASH, Outcome.TIMEOUT})


@dataclass
class Verification:
    """The findings. `unproven` counts what cannot be checked, by name; `trusted` what no answer can show."""

    results: int = 0
    from_answers: int = 0
    wrong: list[str] = field(default_factory=list)
    unproven: Counter[str] = field(default_factory=Counter)
    trusted: Counter[str] = field(default_factory=Counter)
    decided: list[str] = field(default_factory=list)

    @property
    def first_line(self) -> str:
        """Return the line on what was judged again, and what was not."""
        told = f"{self.from_answers:,} of {counted(self.results, 'verdict')} judged again from answers"
        if self.unproven:
            told += "; not checked: " + ", ".join(f"{count:,} {what}" for what, count in self.unproven.items())
        if self.trusted:
            told += "; by the backend's word: " + ", ".join(f"{count:,} {what}" for what, count in self.trusted.items())
        return told

    @property
    def last_lines(self) -> list[str]:
        """Return what is wrong, and the verdict."""
        if self.wrong:
            more = [f"and {len(self.wrong) - _SHOWN:,} more"] if len(self.wrong) > _SHOWN else []
            return [*self.wrong[:_SHOWN], *more, f"does not hold: {counted(len(self.wrong), 'mistake')}"]
        if self.unproven:
            return ["not proven: nothing is wrong, but the first line says what could not be checked"]
        return ["holds: every answer was judged again; outcomes, figures and exit code follow from them"]


def verified(folder: Path, manifest: Mapping[str, Any], seed: int | None = None) -> Verification:
    """Judge a submission's results again. `seed` is the announced one. Raises OpconformError."""
    rejudged = opened(RejudgeOptions(folder))
    check = _Check(rejudged, rejudged.begun.told, Verification())
    for one in rejudged.judged():
        check.take(one)
    found = check.found
    found.wrong += [
        *_of_manifest(manifest, check.told, check.found.results),
        *_of_terms(check.told, rejudged.old),
        *check.of_plan(),
        *check.of_totals(),
    ]
    if seed is not None and check.told.get("seed") != seed:
        found.wrong.append(f"seed: {check.told.get('seed')}, but {seed} was announced")
    found.decided += _decided(check.told, rejudged.old, check.tables)
    return found


class _Check:
    """A submission that is being judged again."""

    def __init__(self, rejudged: Rejudged, told: Mapping[str, Any], found: Verification) -> None:
        self.rejudged, self.told, self.found = rejudged, told, found
        self.tables = Tables.of(rejudged.new, list(told.get("backends", {})), rejudged.day)
        self.same_suite = told.get("suite", {}).get("digest") == suite_digest(rejudged.source.library)
        self._done: dict[str, set[str]] = {}

    def take(self, one: Rejudgement) -> None:
        """Compare a result with the one from judging it again."""
        found, old = self.found, one.kept.result
        place = f"{old.case} on {old.backend}"
        self._done.setdefault(old.backend, set()).add(old.case)
        reported, changes = self.tables.take(one.judged.result, one.judged.attachments), OutcomeChanges()
        self.rejudged.compare(one, reported, changes)
        found.results += 1
        found.wrong += [f"{place}: {change.old} -> {change.new}, {change.reason}" for change in changes.changed]
        if old.level == "declared" and self.rejudged.old.declaration is None:
            found.wrong.append(f"{place}: right only under declared arithmetic, but none is declared")
        if one.answer is not None:
            found.from_answers += 1
            if json.loads(json.dumps(one.accuracy())) != (
                None if one.kept.accuracy is None else _accuracy(one.kept.accuracy)
            ):
                found.wrong.append(f"{place}: its accuracy does not match the answer")
        elif one.why is not None:
            self._not_judged(f"{place}: {one.why}", "results of another suite, which this version cannot judge")
        else:
            self._without_answer(one, place)

    def _without_answer(self, one: Rejudgement, place: str) -> None:
        result = before_waiving(one.kept.result)
        if result.outcome in _ENDED:
            self.found.trusted["crashes and timeouts"] += 1
        elif result.outcome is Outcome.RUNNER_ERROR:
            self.found.trusted["failures of the tool"] += 1
        elif result.outcome is Outcome.UNSUPPORTED or result.reason is not None:
            self.found.trusted["refusals"] += 1
        elif self.told.get("keep_outputs") != "all" or b'"left_out":' in (one.kept.outputs or b""):
            self.found.unproven["answers that were not kept"] += 1
        else:
            self.found.wrong.append(f"{place}: {result.outcome} without an answer, although the run kept all")

    def _not_judged(self, why: str, what: str) -> None:
        """Count a result that cannot be judged; it is a mistake if the results claim to be from this suite."""
        if self.same_suite:
            self.found.wrong.append(why)
        else:
            self.found.unproven[what] += 1

    def of_plan(self) -> Iterator[str]:
        """Yield what is wrong with the cases: each case of the plan has one result, and there is no other."""
        if self.told.get("corpus") is not None:
            self.found.unproven["cases of a corpus, which may have had more"] += self.found.results
            return
        suite = GeneratedSuite(self.rejudged.source)
        standards = {backend.name: backend.standards for backend in known_backends()}
        told_shard = self.told.get("shard")
        shard: Shard | None = None if told_shard is None else shard_of(str(told_shard))
        for backend in sorted({*self.told.get("backends", {}), *self._done}):
            done = self._done.get(backend, set())
            missing = planned = 0
            for text in suite.selected(self._selection(backend), shard):
                planned += 1
                if text in done:
                    done.discard(text)
                else:
                    missing += 1
                    example = text
            if missing:
                yield f"{backend}: no result of {counted(missing, 'case')} of the plan, such as {example}"
            if done:
                yield f"{backend}: {counted(len(done), 'result')} outside the plan, such as {min(done)}"
            if self.told.get("planned", {}).get(backend) != planned:
                yield f"{RUN}: planned: {self.told.get('planned', {}).get(backend)} for {backend}, and {planned} are"
            own, known = self._standards(backend), standards.get(backend)
            if known and own != known:
                yield f"{RUN}: {backend}: ran on {', '.join(own) or 'all standards'}, but implements {', '.join(known)}"

    def _standards(self, backend: str) -> tuple[str, ...]:
        return tuple(self.told.get("backends", {}).get(backend, {}).get("standards", ()))

    def _selection(self, backend: str) -> Selection:
        told = self.told
        return Selection(
            tuple(told.get("selection", ())),
            strength_of(str(told.get("strength", 2))),
            told.get("draws", 1),
            told.get("seed", 0),
            self._standards(backend),
            told.get("suite", {}).get("name"),
        )

    def of_totals(self) -> Iterator[str]:
        """Yield what is wrong with a run's statements about all its results."""
        told, tally = self.told, self.tables.tally
        partial = bool(told.get("selection") or told.get("suite", {}).get("name") or told.get("shard"))
        problems = self.tables.waivers.problems(partial=partial or told.get("corpus") is not None)
        for name, value in json.loads(json.dumps(self.tables.to_dict(problems))).items():
            if told.get(name) != value:
                yield f"{RUN}: {name}: does not follow from the results"
        lost = self.found.results != sum(told.get("planned", {}).values())
        code = max(tally.exit_code(len(problems)), OUR_SIDE_FAILED if lost else 0)
        if told.get("exit_code") != code:
            yield f"{RUN}: exit_code: {told.get('exit_code')}, but {code} follows from the results"
        if told.get("status") != "finished":
            yield f"{RUN}: status: {told.get('status')}, expected finished"


def _accuracy(line: bytes) -> dict[str, Any]:
    try:
        told = dict(json.loads(line))
    except (ValueError, TypeError, RecursionError) as error:
        raise OpconformError(f"accuracy: not in the form that a run writes: {error}") from None
    return {name: value for name, value in told.items() if name not in ("case", "backend")}


def _of_manifest(manifest: Mapping[str, Any], told: Mapping[str, Any], results: int) -> Iterator[str]:
    for name in REPEATED:
        if manifest.get(name) != told.get(name):
            yield f"{name}: the manifest and {RUN} differ"
    if manifest.get("results") != results:
        yield f"results: {manifest.get('results')} in the manifest, {results} are there"


def _of_terms(told: Mapping[str, Any], terms: Terms) -> Iterator[str]:
    """Yield where the head of `run.json` contradicts the terms that decided the verdicts."""
    demands, errata = terms.demands, terms.suspensions.errata.entries
    profile = demands.profile and (demands.profile.name, demands.profile.version)
    named = told.get("profile") or {}
    if told.get("required", {}) != dict(demands.required):
        yield f"{RUN}: required: does not match its terms"
    if profile != ((named.get("name"), named.get("version")) if named else None):
        yield f"{RUN}: profile: does not match its terms"
    if (told.get("arithmetic") is None) != (terms.declaration is None):
        yield f"{RUN}: arithmetic: its terms declare {'some' if terms.declaration else 'none'}"
    if terms.waivers.entries and not (told.get("waivers") or {}).get("digest"):
        yield f"{RUN}: waivers: none are named, but its terms have {len(terms.waivers.entries)}"
    if told.get("errata", {}).get("ids", []) != [erratum.id for erratum in errata]:
        yield f"{RUN}: errata: does not match its terms"


def _decided(told: Mapping[str, Any], terms: Terms, tables: Tables) -> Iterator[str]:
    """Yield what else decided the verdicts, and which cases were selected."""
    globs = ", ".join(map(str, told.get("selection", ())))
    name = told.get("suite", {}).get("name")
    what = globs or (f"the suite {name}" if name else "the whole plan")
    shard = f", shard {told['shard']}" if told.get("shard") else ""
    drawn = ", ".join(f"{key} {told.get(key)}" for key in ("strength", "draws", "seed"))
    yield printable(f"cases: {what}{shard}; {drawn}")
    waived = tables.tally.figures().outcomes.get(Outcome.WAIVED, 0)
    if terms.waivers.entries:
        yield f"waivers: {counted(waived, 'failure')} waived by {counted(len(terms.waivers.entries), 'waiver')}"
    if terms.declaration is not None:
        types = ", ".join(sorted(terms.declaration.types))
        yield printable(f"declared arithmetic: {types or 'threads and determinism alone'}")
    if terms.demands.required:
        yield printable("required: " + ", ".join(f"{a}={b}" for a, b in sorted(terms.demands.required.items())))
    if terms.demands.profile is not None:
        yield printable(f"profile: {terms.demands.profile.name} {terms.demands.profile.version}")

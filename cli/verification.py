"""The verification of a submission: what was checked, what could not be checked, and what is wrong."""

from __future__ import annotations

import functools
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from ..cases.errors import OpconformError
from ..cases.ids import Selection, Shard, shard_of, strength_of
from ..cases.results import SIDE_EFFECTS, Outcome, Result
from ..reports.certificates import certificate_json
from ..reports.folder import inflated
from ..reports.runs import RUN, StoredResults, Terms
from ..reports.tables import Tables
from ..reports.tally import OUR_SIDE_FAILED
from ..reports.text import counted, printable
from ..runners.judging.judge import asks_again
from ..runners.judging.kept import REASONS
from ..runners.judging.terms import before_waiving
from ..runners.registry import known_backends
from .generated_suite import GeneratedSuite, suite_digest
from .rejudge import OutcomeChanges, Rejudged, Rejudgement, RejudgeOptions, opened
from .submission import REPEATED, NotWholeError, Opened, open_submission, unsigned_reason

_SHOWN = 20
_LONGEST = 200
"""Maximum number of characters of a line about a field."""
_MOST_DRAWS = 10_000
"""Number of draws of a plan for each result that there is, up to which the plan is made again."""
_MOST_MISSING = 100_000
"""Number of missing results at which counting them ends."""
_ENDED = frozenset({Outcome.CRASH, Outcome.TIMEOUT})
_OBSERVED = "words on what an answer does not show: side effects, a state that leaks"
_FOLLOWING = ("outcome", "behaviour", "level", "reason", "bound_ratio", "clauses")
"""The fields of a result that follow from its case and its answer, or its refusal; so does `detail`, with additions."""


NOT_PROVEN = 3
"""The exit code of `verify` if nothing is wrong, but not everything could be checked."""


def verify_submission(path: Path, key: Path | None, seed: int | None) -> int:
    """Check a submission and judge it again by this version's suite; return 0 if it holds, 1 if not, or NOT_PROVEN.

    `key` is the public key that must have signed it, `seed` the announced seed. Raises OpconformError if a file cannot
    be read.
    """
    console = Console()
    try:
        opened = open_submission(path)
    except NotWholeError as error:
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return 1
    wrong = unsigned_reason(opened.manifest, opened.signature, key)
    with tempfile.TemporaryDirectory(prefix="opconform-") as unpacked:
        for name, content in opened.content.items():
            Path(unpacked, name).write_bytes(content)
        verification = verified(Path(unpacked), opened.description, seed)
    if wrong:
        verification.wrong.insert(0, f"signature: {wrong}")
    lines = [
        verification.first_line,
        f"whole: {counted(len(opened.content), 'file')}, digest {opened.description['digest']}",
        *([] if wrong else [_of_signature(opened, key)]),
        *_of_challenge(opened.description),
        *verification.decided,
        *verification.last_lines,
    ]
    for line in lines:
        console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    return 1 if verification.wrong else NOT_PROVEN if verification.unproven else 0


def _of_challenge(manifest: Mapping[str, Any]) -> Iterator[str]:
    challenge = manifest.get("challenge")
    frozen = challenge.get("frozen") if isinstance(challenge, dict) else None
    if isinstance(challenge, dict) and isinstance(frozen, dict):
        files = ", ".join(f"{name} (sha256 {digest})" for name, digest in frozen.items())
        yield f"challenge: seed {challenge.get('seed')}, announced after these files were frozen: {files} (claimed)"


def _of_signature(opened: Opened, key: Path | None) -> str:
    if key is not None:
        return "signature: valid for this key"
    return "signature: none" if opened.signature is None else "signature: present; use --key to check it"


def verified(folder: Path, manifest: Mapping[str, Any], seed: int | None = None) -> Verification:
    """Judge a submission's results again. `seed` is the announced one. Raises OpconformError."""
    rejudged, walk = opened(RejudgeOptions(folder)), StoredResults(folder)
    verification, run_json = Verification(rejudged), rejudged.begun.run_json
    for rejudgement in rejudged.judged(walk):
        verification.take(rejudgement)
    verification.wrong += [
        *_of_manifest(manifest, run_json, verification.results),
        *_of_terms(run_json, rejudged.old),
        *_of_files(walk),
        *verification.of_plan(),
        *verification.of_totals(),
    ]
    if seed is not None and run_json.get("seed") != seed:
        verification.wrong.append(f"seed: {run_json.get('seed')}, but {seed} was announced")
    if not verification.results:
        verification.wrong.append("there are no results")
    elif not verification.from_answers and not verification.unproven:
        verification.unproven["results, none of which is a pass"] += verification.results
    verification.decided += [
        *_decided(run_json, rejudged.old, verification.tables),
        *_claimed(run_json, verification.same_suite),
    ]
    return verification


@dataclass
class Verification:
    """A submission that is being judged again, and the findings.

    `unproven` counts what cannot be checked, by name; `claimed` what no answer can show.
    """

    rejudged: Rejudged
    results: int = 0
    from_answers: int = 0
    wrong: list[str] = field(default_factory=list)
    unproven: Counter[str] = field(default_factory=Counter)
    claimed: Counter[str] = field(default_factory=Counter)
    decided: list[str] = field(default_factory=list)
    _done: dict[str, set[str]] = field(default_factory=dict)

    @property
    def run_json(self) -> Mapping[str, Any]:
        """Return `run.json`."""
        return self.rejudged.begun.run_json

    @functools.cached_property
    def tables(self) -> Tables:
        """Return the results so far, counted."""
        return Tables.of(self.rejudged.new, list(self.run_json.get("backends", {})), self.rejudged.day)

    @functools.cached_property
    def same_suite(self) -> bool:
        """Return whether the run was of the suite of this version."""
        return bool(self.run_json.get("suite", {}).get("digest") == suite_digest(self.rejudged.source.library))

    @property
    def first_line(self) -> str:
        """Return the line on what was judged again, and what was not."""
        line = f"{self.from_answers:,} of {counted(self.results, 'verdict')} judged again from answers"
        if self.unproven:
            line += "; not checked: " + ", ".join(f"{count:,} {what}" for what, count in self.unproven.items())
        if self.claimed:
            line += "; by the backend's word: " + ", ".join(f"{count:,} {what}" for what, count in self.claimed.items())
        return line

    @property
    def last_lines(self) -> list[str]:
        """Return what is wrong, and the verdict."""
        if self.wrong:
            more = [f"and {len(self.wrong) - _SHOWN:,} more"] if len(self.wrong) > _SHOWN else []
            return [*self.wrong[:_SHOWN], *more, f"does not hold: {counted(len(self.wrong), 'mistake')}"]
        if self.unproven:
            return ["not proven: nothing is wrong, but the first line says what could not be checked"]
        return ["holds: every pass was judged again from its answer; figures and exit code follow from the results"]

    def take(self, rejudgement: Rejudgement) -> None:
        """Compare a result with the one from judging it again."""
        old = rejudgement.kept.result
        where = f"{old.case} on {old.backend}"
        self._done.setdefault(old.backend, set()).add(old.case)
        reported = self.tables.take(rejudgement.judged.result, rejudgement.judged.attachments)
        changes = OutcomeChanges()
        self.rejudged.compare(rejudgement, reported, changes)
        self.results += 1
        self.wrong += [f"{where}: {change.old} -> {change.new}, {change.reason}" for change in changes.changed]
        if not changes.changed and rejudgement.why is None:
            self._compare_fields(rejudgement, reported, where)
        if old.level == "declared" and self.rejudged.old.declaration is None:
            self.wrong.append(f"{where}: right only under declared arithmetic, but none is declared")
        if rejudgement.why is not None:
            if self.same_suite:
                self.wrong.append(f"{where}: {rejudgement.why}")
            else:
                self.unproven["results of another suite, which this version cannot judge"] += 1
            return
        self._check_accuracy(rejudgement, where)
        self._check_certificate(rejudgement, where)
        if rejudgement.answer is None:
            self._without_answer(rejudgement, where)
            return
        self.from_answers += 1
        if (
            rejudgement.anew.outcome is Outcome.PASS
            and rejudgement.case is not None
            and asks_again(rejudgement.case.expectation)
        ):
            self.unproven["passes that need the answer of a second run, which is not kept"] += 1

    def _compare_fields(self, rejudgement: Rejudgement, reported: Result, where: str) -> None:
        """Compare every field that follows from the answer, and the words as far as they do."""
        anew, was = rejudgement.anew, before_waiving(rejudgement.kept.result)
        for name in _FOLLOWING:
            if getattr(was, name) != getattr(anew, name):
                change = f"{getattr(was, name)!r} -> {getattr(anew, name)!r}"
                self.wrong.append(f"{where}: {name}: {change[:_LONGEST]}")
        if reported.outcome is Outcome.WAIVED and reported.detail != rejudgement.kept.result.detail:
            self.wrong.append(f"{where}: detail: its waiver is another one")
        if was.outcome is not Outcome.PASS and anew.reason in SIDE_EFFECTS:
            self.claimed[_OBSERVED] += 1
        elif was.detail == anew.detail:
            pass
        elif was.outcome is not Outcome.PASS and anew.detail and was.detail and anew.detail in was.detail:
            self.claimed[_OBSERVED] += 1
        elif self.same_suite:
            self.wrong.append(f"{where}: detail: does not follow from the answer")
        else:
            self.claimed["words of another version"] += 1

    def _check_accuracy(self, rejudgement: Rejudgement, where: str) -> None:
        """Compare the accuracy with that of the answer; nothing else may have one."""
        kept = None if rejudgement.kept.accuracy is None else _accuracy(rejudgement.kept.accuracy)
        if rejudgement.answer is not None:
            if json.loads(json.dumps(rejudgement.accuracy())) != kept:
                self.wrong.append(f"{where}: its accuracy does not match the answer")
        elif kept is not None and _needs_answer(rejudgement.kept.result):
            self.unproven["accuracies of answers that were not kept"] += 1
        elif kept is not None:
            self.wrong.append(f"{where}: has an accuracy, but no answer")

    def _check_certificate(self, rejudgement: Rejudgement, where: str) -> None:
        """Compare a certificate with the one that this version derives."""
        if rejudgement.kept.certificate is None:
            return
        if rejudgement.case is None or not self.same_suite:
            self.unproven["certificates of another suite"] += 1
            return
        derived = json.dumps(certificate_json(self.rejudged.source, rejudgement.case))
        written = inflated(rejudgement.kept.certificate, longest=2 * len(derived))  # other spacing is no mistake
        try:
            same = written is not None and json.loads(written) == json.loads(derived)
        except (ValueError, RecursionError):
            same = False
        if not same:
            self.wrong.append(f"{where}: its certificate is not the one of this case")

    def _without_answer(self, rejudgement: Rejudgement, where: str) -> None:
        result = before_waiving(rejudgement.kept.result)
        if result.outcome in _ENDED:
            self.claimed["crashes and timeouts"] += 1
        elif result.outcome is Outcome.RUNNER_ERROR:
            self.claimed["failures of the tool"] += 1
        elif not _needs_answer(result):
            self.claimed["refusals"] += 1
            if result.outcome is Outcome.PASS:
                self.unproven["passes by a refusal"] += 1
        elif self.run_json.get("keep_outputs") != "all" or b'"left_out":' in (rejudgement.kept.outputs or b""):
            self.unproven["answers that were not kept"] += 1
        else:
            self.wrong.append(f"{where}: {result.outcome} without an answer, although the run kept all")

    def of_plan(self) -> Iterator[str]:
        """Yield what is wrong with the cases: each case of the plan has one result, and there is no other."""
        if self.run_json.get("corpus") is not None:
            self.unproven["cases of a corpus, which may have had more"] += self.results
            return
        draws = self.run_json.get("draws", 1)
        if draws > _MOST_DRAWS * max(self.results, 1):
            problem = f"draws: {draws:,} for {counted(self.results, 'result')}"
            raise OpconformError(f"{RUN}: {problem}: the plan would take too long to make again")
        suite = GeneratedSuite(self.rejudged.source)
        standards = {backend.name: backend.standards for backend in known_backends()}
        shard_text = self.run_json.get("shard")
        shard: Shard | None = None if shard_text is None else shard_of(str(shard_text))
        for backend in sorted({*self.run_json.get("backends", {}), *self._done}):
            yield from self._of_planned(backend, suite.selected(self._selection(backend), shard))
            own, known = self._standards(backend), standards.get(backend)
            if known and own != known:
                yield f"{RUN}: {backend}: ran on {', '.join(own) or 'all standards'}, but implements {', '.join(known)}"

    def _of_planned(self, backend: str, ids: Iterator[str]) -> Iterator[str]:
        """Yield what is wrong with the results of a backend whose planned cases are `ids`."""
        done, missing, planned, example = self._done.get(backend, set()), 0, 0, ""
        for text in ids:
            planned += 1
            if text in done:
                done.discard(text)
            else:
                missing += 1
                example = text
            if missing > _MOST_MISSING:  # a plan may have any number of draws
                yield f"{backend}: no result of more than {_MOST_MISSING:,} cases of the plan, such as {example}"
                return
        if missing:
            yield f"{backend}: no result of {counted(missing, 'case')} of the plan, such as {example}"
        if done:
            yield f"{backend}: {counted(len(done), 'result')} outside the plan, such as {min(done)}"
        if self.run_json.get("planned", {}).get(backend) != planned:
            yield f"{RUN}: planned: {self.run_json.get('planned', {}).get(backend)} for {backend}, and {planned} are"

    def _standards(self, backend: str) -> tuple[str, ...]:
        return tuple(self.run_json.get("backends", {}).get(backend, {}).get("standards", ()))

    def _selection(self, backend: str) -> Selection:
        run_json = self.run_json
        return Selection(
            tuple(run_json.get("selection", ())),
            strength_of(str(run_json.get("strength", 2))),
            run_json.get("draws", 1),
            run_json.get("seed", 0),
            self._standards(backend),
            run_json.get("suite", {}).get("name"),
        )

    def of_totals(self) -> Iterator[str]:
        """Yield what is wrong with a run's statements about all its results."""
        run_json, tally = self.run_json, self.tables.tally
        partial = bool(run_json.get("selection") or run_json.get("suite", {}).get("name") or run_json.get("shard"))
        problems = self.tables.waivers.problems(partial=partial or run_json.get("corpus") is not None)
        for name, value in json.loads(json.dumps(self.tables.to_dict(problems))).items():
            if run_json.get(name) != value:
                yield f"{RUN}: {name}: does not follow from the results"
        lost = self.results != sum(run_json.get("planned", {}).values())
        code = max(tally.exit_code(len(problems)), OUR_SIDE_FAILED if lost else 0)
        if run_json.get("exit_code") != code:
            yield f"{RUN}: exit_code: {run_json.get('exit_code')}, but {code} follows from the results"
        if run_json.get("status") != "finished":
            yield f"{RUN}: status: {run_json.get('status')}, expected finished"


def _needs_answer(result: Result) -> bool:
    """Return whether a result, before waiving, claims an answer: it is neither an end nor one of the refusals."""
    ended = result.outcome in _ENDED or result.outcome in (Outcome.RUNNER_ERROR, Outcome.UNSUPPORTED)
    return not ended and result.reason not in REASONS


def _accuracy(line: bytes) -> dict[str, Any]:
    try:
        accuracy = dict(json.loads(line))
    except (ValueError, TypeError, RecursionError) as error:
        raise OpconformError(f"accuracy: not in the form that a run writes: {error}") from None
    return {name: value for name, value in accuracy.items() if name not in ("case", "backend")}


def _of_manifest(manifest: Mapping[str, Any], run_json: Mapping[str, Any], results: int) -> Iterator[str]:
    for name in REPEATED:
        if manifest.get(name) != run_json.get(name):
            yield f"{name}: the manifest and {RUN} differ"
    challenge = manifest.get("challenge")
    if challenge is not None and (not isinstance(challenge, dict) or challenge.get("seed") != run_json.get("seed")):
        yield f"challenge: its seed is not that of {RUN}, {run_json.get('seed')}"
    if manifest.get("results") != results:
        yield f"results: {manifest.get('results')} in the manifest, {results} are there"


def _of_files(walk: StoredResults) -> Iterator[str]:
    """Yield which files have more than the lines of the results."""
    for name, end in walk.ends.items():
        if (walk.folder / name).stat().st_size != end:
            yield f"{name}: has lines that belong to no result"


def _of_terms(run_json: Mapping[str, Any], terms: Terms) -> Iterator[str]:
    """Yield where the head of `run.json` contradicts the terms that decided the verdicts."""
    demands, errata = terms.demands, terms.suspensions.errata.entries
    profile = demands.profile and (demands.profile.name, demands.profile.version)
    named = run_json.get("profile") or {}
    if run_json.get("required", {}) != dict(demands.required):
        yield f"{RUN}: required: does not match its terms"
    if profile != ((named.get("name"), named.get("version")) if named else None):
        yield f"{RUN}: profile: does not match its terms"
    if (run_json.get("arithmetic") is None) != (terms.declaration is None):
        yield f"{RUN}: arithmetic: its terms declare {'some' if terms.declaration else 'none'}"
    if terms.waivers.entries and not (run_json.get("waivers") or {}).get("digest"):
        yield f"{RUN}: waivers: none are named, but its terms have {len(terms.waivers.entries)}"
    if run_json.get("errata", {}).get("ids", []) != [erratum.id for erratum in errata]:
        yield f"{RUN}: errata: does not match its terms"


def _decided(run_json: Mapping[str, Any], terms: Terms, tables: Tables) -> Iterator[str]:
    """Yield what else decided the verdicts, and which cases were selected."""
    globs = ", ".join(map(str, run_json.get("selection", ())))
    name = run_json.get("suite", {}).get("name")
    what = globs or (f"the suite {name}" if name else "the whole plan")
    shard = f", shard {run_json['shard']}" if run_json.get("shard") else ""
    drawn = ", ".join(f"{key} {run_json.get(key)}" for key in ("strength", "draws", "seed"))
    standards = sorted(
        {str(standard) for about in run_json.get("backends", {}).values() for standard in about.get("standards", ())}
    )
    yield printable(f"cases: {what} of {', '.join(standards) or 'all standards'}{shard}; {drawn}")
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


def _claimed(run_json: Mapping[str, Any], same_suite: bool) -> Iterator[str]:
    """Yield what is repeated from the archive unchecked."""
    versions = {name: about.get("version", "") for name, about in run_json.get("backends", {}).items()}
    backends = ", ".join(f"{name} {version}".rstrip() for name, version in versions.items())
    claims = run_json.get("terms", {}).get("claims") or {}
    promised = f"; claims of {', '.join(map(str, claims))}" if claims else ""
    yield printable(f"claimed: backends {backends or 'none'}; started {run_json.get('started')}{promised}")
    yield "claimed: machine, facts, times, deaths, and the words of refusals, crashes and side effects"
    if not same_suite:
        version = run_json.get("suite", {}).get("version")
        yield printable(f"claimed: suite {version}, whose digest is not that of this version, by which all was judged")

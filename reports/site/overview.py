"""The site's overview: each backend in a sentence, worst first, and the most important failures."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...cases.ids import operator_version_of, split_version
from ...cases.results import Outcome
from ..badge import Badge, badges_of, coverage, file_part
from ..tables import clause_text_of
from ..tally import FailureGroup, Figures, kind_of
from ..text import NOTHING, STANDARD_NAMES, counted, percent
from ..trackers import tracker_of
from .case_lists import NONE, outcome_codes
from .gather import Column, Gathered, Knowledge
from .releases import Past, Since
from .writer import FAILED, Level, SiteWriter, cases_link

WORST_SHOWN = 5
OPERATORS_SHOWN = 10
SAMPLE = 50
"""The number of judged cases from which on a percentage is shown."""
TWIN = Fraction(1, 1000)
"""Backends whose outcomes differ in at most this share of their cases are reported together."""

VERDICTS: Sequence[tuple[Level, str]] = (
    ("full", "conformant: no case fails"),
    ("some", "non-conformant: some case fails"),
    ("all", "no verdict: our own side failed"),
    ("none", "nothing judged"),
)

_TEXTS: Mapping[str, tuple[str, str]] = {
    "onnx": ("ONNX operators", "https://onnx.ai/onnx/operators/"),
    "openvino": (
        "OpenVINO operation sets",
        "https://docs.openvino.ai/latest/documentation/openvino-ir-format/operation-sets/available-opsets.html",
    ),
    "onednn": ("oneDNN Graph operations", "https://uxlfoundation.github.io/oneDNN/graph_supported_operations.html"),
}
_SEVERITY: tuple[tuple[tuple[Outcome, ...], str, str], ...] = (
    ((Outcome.CRASH,), "crash", "crashes"),
    ((Outcome.TIMEOUT,), "hang", "hangs"),
    ((Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE), "wrong answer", "wrong answers"),
    ((Outcome.ERROR,), "error", "errors"),
    ((Outcome.ACCEPTED_INVALID,), "invalid input accepted", "invalid inputs accepted"),
    ((Outcome.UNSUPPORTED,), "required case unsupported", "required cases unsupported"),
)
"""Failures that are counted together, worst first: a wrong answer is silent, an error is not."""

_WORST = (Outcome.RUNNER_ERROR, *(outcome for outcomes, _, _ in _SEVERITY for outcome in outcomes))


@dataclass(frozen=True)
class Covered:
    """The number of operator versions of a standard with judged cases, and the number in the suite."""

    standard: str
    covered: int
    in_suite: int

    @property
    def words(self) -> str:
        """Return the text, such as `412 of 659 ONNX operator versions`."""
        share = percent(Fraction(self.covered, self.in_suite)) if self.in_suite else NOTHING
        return f"{self.covered:,} of {counted(self.in_suite, f'{self.standard} operator version')} ({share})"


@dataclass(frozen=True)
class Twin:
    """A backend that behaves like another one: the number of cases in which it differs, and the link to them."""

    name: str
    version: str
    page: str
    differing: int
    cases: int


@dataclass(frozen=True)
class Ranked:
    """A backend as the overview and the head of its page show it.

    `right` and `failures`, which may be empty, are the two halves of a sentence about it. `ran` says when and where.
    """

    name: str
    version: str
    page: str
    level: Level
    verdict: str
    right: str
    failures: str
    covered: Sequence[Covered]
    figures: Figures
    failing: Mapping[Outcome, int]
    badges: Sequence[Badge]
    since: Since | None
    twins: Sequence[Twin]
    ran: str


@dataclass(frozen=True)
class Worst:
    """A kind of failures: the first of its cases, their number, and the clause that it violates."""

    backend: str
    outcome: str
    case: str
    detail: str
    clause: str
    clause_text: str | None
    count: int
    where: str
    operator_version: str
    like: str


def backend_page_name(backend: str) -> str:
    """Return the path of a backend's page."""
    return f"backends/{file_part(backend)}.html"


def ranking(gathered: Gathered, knowledge: Knowledge, past: Past) -> list[Ranked]:
    """Return the backends, the one with the worst failures first: crashes, then wrong answers, then errors.

    Each kind counts by its share of the cases that were run. A twin follows the backend that it resembles.
    """
    tally = gathered.tables.tally
    badges = badges_of(
        tally, {column.name: column.version for column in gathered.columns}, knowledge.in_suite, gathered.names
    )
    twins = _twins(gathered.columns)
    rows = []
    for column in gathered.columns:
        figures = tally.figures(column.name)
        failing = Counter(location.outcome for location in column.places if location is not None and location.failing)
        rows.append(
            Ranked(
                column.name,
                column.version,
                backend_page_name(column.name),
                *_verdict(figures, failing),
                _covered(tally.operator_versions(column.name), knowledge.in_suite),
                figures,
                failing,
                [badge for badge in badges if badge.backend == column.name],
                past.since.get(column.name),
                twins.get(column.name, ()),
                _ran(column),
            )
        )
    return sorted(rows, key=_severity)


def _ran(column: Column) -> str:
    """Return the day of a backend's run, and the machine, from its `run.json`."""
    run_record = column.parts[0].run_json
    machine = run_record.get("machine") or {}
    python = f"Python {machine['python']}" if machine.get("python") else ""
    cores = counted(machine["cores"], "core") if isinstance(machine.get("cores"), int) else ""
    return ", ".join(
        filter(None, (str(run_record.get("started"))[:10], str(machine.get("platform") or ""), cores, python))
    )


def _severity(row: Ranked) -> tuple[object, ...]:
    shares = [Fraction(_count(row.failing, outcomes), max(row.figures.cases, 1)) for outcomes, _, _ in _SEVERITY]
    return (-row.failing.get(Outcome.RUNNER_ERROR, 0), row.level == "none", *(-share for share in shares))


def _count(failing: Mapping[Outcome, int], outcomes: Sequence[Outcome]) -> int:
    return sum(failing.get(outcome, 0) for outcome in outcomes)


def _verdict(figures: Figures, failing: Mapping[Outcome, int]) -> tuple[Level, str, str, str]:
    """Return a backend's verdict: its level, a word, and the two halves of its sentence."""
    if figures.outcomes.get(Outcome.RUNNER_ERROR):
        broken = counted(figures.outcomes[Outcome.RUNNER_ERROR], "case")
        return "all", "No verdict", f"opconform itself failed on {broken}; please report this", ""
    if not figures.judged and not figures.put:
        return "none", "Nothing judged", "No case could be judged, so this is not a success", ""
    right = "No valid case was judged"
    if figures.judged:
        right = f"Right in {figures.strict:,} of {counted(figures.judged, 'judged case')}"
        right += f" ({percent(figures.correctness)})" if figures.judged >= SAMPLE else ""
    counts = [counted(n, noun, many) for of, noun, many in _SEVERITY if (n := _count(failing, of))]
    if not figures.failed:
        waived = figures.outcomes.get(Outcome.WAIVED, 0)
        words = f"{right}; no failure in {counted(figures.judged + figures.put, 'case')}"
        return "full", "Conformant", f"{words}, {waived:,} of them waived" if waived else words, ""
    return "some", "Non-conformant", right, ", ".join([*counts, *_without(failing)])


def _without(failing: Mapping[Outcome, int]) -> list[str]:
    """Return the reassuring facts about a backend that fails: that it does not crash, and gives no wrong answer."""
    return [f"no {noun}" for of, noun, _ in (_SEVERITY[2], _SEVERITY[0]) if not _count(failing, of)]


def _covered(operator_versions: Mapping[str, Figures], in_suite: Mapping[str, int]) -> list[Covered]:
    by_standard: dict[str, list[Figures]] = {}
    for name, figures in operator_versions.items():
        by_standard.setdefault(name.partition("/")[0], []).append(figures)
    return [
        Covered(STANDARD_NAMES.get(standard, standard), *coverage(figures, in_suite.get(standard, 0)))
        for standard, figures in by_standard.items()
    ]


def _twins(columns: Sequence[Column]) -> dict[str, list[Twin]]:
    """Return the twins of each backend that has some: the same cases, with nearly all outcomes equal."""
    codes = {column.name: outcome_codes(column) for column in columns}
    twins: dict[str, list[Twin]] = {}
    taken: set[str] = set()
    for column in sorted(columns, key=lambda column: len(column.name)):
        for other in columns:
            if column.name in taken or other.name in (column.name, *taken, *twins):
                continue
            first, second = codes[column.name], codes[other.name]
            ran = first != NONE
            cases, differing = int(ran.sum()), int((first != second).sum())
            if cases and bool(((second != NONE) == ran).all()) and differing <= cases * TWIN:
                taken.add(other.name)
                page = backend_page_name(other.name)
                twins.setdefault(column.name, []).append(Twin(other.name, other.version, page, differing, cases))
    return twins


def write_overview(
    site: SiteWriter, gathered: Gathered, knowledge: Knowledge, ranked: Sequence[Ranked], past: Past
) -> None:
    """Write `index.html` and the badges."""
    for badge in (badge for row in ranked for badge in row.badges):
        site.write(f"badges/{badge.name}.svg", badge.svg())
        site.write(f"badges/{badge.name}.json", badge.endpoint())
    twins = {twin.name for row in ranked for twin in row.twins}
    rows = [row for row in ranked if row.name not in twins]
    failures, kinds = gathered.tables.failures, worst_of(gathered)
    site.page(
        "index.html",
        "overview.html.j2",
        rows=rows,
        ranked=ranked,
        verdicts=[(level, words) for level, words in VERDICTS if any(row.level == level for row in rows)],
        outcomes=[o for o in Outcome if any(row.figures.outcomes.get(o) for row in ranked)],
        worst=list(told_worst(knowledge, _spread([kinds[row.name] for row in rows]))),
        kinds=failures.kinds,
        failing=[
            (failing, cases_link(q=f"{failing.operator}-", outcome=FAILED))
            for failing in failures.operators()[:OPERATORS_SHOWN]
        ],
        failing_count=len(failures.operators()),
        links=links_of(gathered),
        failures=failures.count,
        problems=gathered.problems,
        suspended=gathered.tables.tally.suspensions,
        cases=len(gathered.cases),
        operator_versions=len(gathered.by_operator_version()),
        suite_told=_suite_told(gathered),
        required=gathered.terms.demands.required,
        profile=gathered.terms.demands.profile,
        declared=gathered.terms.declaration is not None,
        releases=past.releases,
        since=past.since,
    )


def links_of(gathered: Gathered) -> list[tuple[str, str]]:
    """Return links with their labels: the texts of the standards, trackers of the backends, and this project's own."""
    standards = dict.fromkeys(name.partition("/")[0] for name in gathered.by_operator_version())
    links = [_TEXTS[standard] for standard in standards if standard in _TEXTS]
    trackers = ((gathered.names[column.name], tracker_of(column.name)) for column in gathered.columns)
    links += [(f"Issues of {name}", address) for name, address in trackers if address]
    own = importlib.metadata.metadata("opconform").get_all("Project-URL") or []
    links += [(f"opconform: {label}", address.strip()) for label, _, address in (entry.partition(",") for entry in own)]
    return list(dict.fromkeys(links))


def _suite_told(gathered: Gathered) -> tuple[str, str]:
    """Return the suite's version and name, and the day of the first run."""
    run_record = gathered.wholes[0].parts[0].run_json
    suite = " ".join(filter(None, (str(run_record["suite"].get("version")), run_record["suite"].get("name"))))
    return suite, min(str(part.run_json.get("started")) for merged in gathered.wholes for part in merged.parts)[:10]


def worst_of(gathered: Gathered) -> dict[str, list[FailureGroup]]:
    """Return the kinds of failures of each backend, crashes first, then the most frequent."""
    groups: dict[str, list[FailureGroup]] = {column.name: [] for column in gathered.columns}
    for alike in sorted(gathered.tables.failures.groups(), key=_badness):
        groups[alike.first.backend].append(alike)
    return groups


def _badness(alike: FailureGroup) -> tuple[int, int]:
    return _WORST.index(alike.first.outcome), -alike.count


def _spread(groups: Sequence[Sequence[FailureGroup]]) -> list[FailureGroup]:
    """Return a few kinds: from each backend in turn, the worst one whose operator and outcome are new."""
    chosen: dict[tuple[str, ...], FailureGroup] = {}
    queues = [iter(kinds) for kinds in groups]
    while queues and len(chosen) < WORST_SHOWN:
        for queue in queues[:]:
            fresh = next((alike for alike in queue if kind_of(alike.first)[1:3] not in chosen), None)
            if fresh is None:
                queues.remove(queue)
            else:
                chosen[kind_of(fresh.first)[1:3]] = fresh
    return sorted(list(chosen.values())[:WORST_SHOWN], key=_badness)


def told_worst(knowledge: Knowledge, kinds: Sequence[FailureGroup]) -> Iterator[Worst]:
    """Yield kinds of failures as a page shows them."""
    text = clause_text_of(knowledge.library)
    for alike in kinds:
        result = alike.first
        operator_version = operator_version_of(result.case)
        died = result.outcome in (Outcome.CRASH, Outcome.TIMEOUT)  # breaks no clause
        clause = result.clauses[0] if result.clauses and not died else ""
        yield Worst(
            result.backend,
            str(result.outcome),
            result.case,
            " ".join((result.detail or "")[:600].split()),
            clause.rpartition("#")[2],
            text(operator_version, clause) if clause else None,
            alike.count,
            alike.where,
            operator_version,
            _like(alike),
        )


def _like(alike: FailureGroup) -> str:
    """Return the URL of the cases that fail in the same way, and of others of the operator with the same outcome."""
    operator_version = operator_version_of(alike.first.case)
    operators = {split_version(o)[0] for o in alike.operator_versions}
    if len(alike.operator_versions) == 1:
        where = {"operator": operator_version}
    else:
        where = {"q": f"{split_version(operator_version)[0]}-"} if len(operators) == 1 else {}
    return cases_link(**where, backend=alike.first.backend, outcome=alike.first.outcome)

"""The kill matrix: which cases tell which wrong implementation from a right one, and who is blamed without reason.

As JSON, a terminal's tables, a page of the docs, and one HTML page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cases.ids import parse_id
from ..generators.mutants.implementation import Implementation
from .site.writer import templates
from .text import NOTHING, counted, printable

Status: TypeAlias = Literal["killed", "survived", "not-applicable"]


@dataclass(frozen=True, slots=True)
class Tried:
    """A case as the matrix knows it.

    Its size in input elements, its clauses, whether its input is invalid, and the key of its program.
    """

    id: str
    elements: int
    clauses: tuple[str, ...]
    invalid: bool
    program: str

    @property
    def size(self) -> tuple[int, int, str]:
        """What makes a case small: few elements, then a short id."""
        return self.elements, len(self.id), self.id


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one operator version's cases say of implementations: by name, the cases that do not pass, with the outcome.

    `mutants` and `variants` name those that were put to it; `excused` those mutants that are right there, and why.
    """

    cases: Mapping[str, Tried]
    mutants: tuple[str, ...]
    variants: tuple[str, ...]
    failed: Mapping[str, Mapping[str, str]]
    excused: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """One implementation on one operator version.

    `cases` is how many do not pass it, `smallest` the smallest of them, `outcome` what it gets there; `reason` says why
    a mutant does not apply.
    """

    status: Status
    cases: int = 0
    smallest: str | None = None
    outcome: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ClauseKills:
    """How many mutants the cases of one clause kill, and which of them no case of another clause alone kills."""

    clause: str
    cases: int
    killed: int
    only: tuple[str, ...]
    invalid_alone: bool


class Matrix:
    """All evidence, by operator version."""

    def __init__(
        self,
        evidence: Mapping[str, Evidence],
        mutants: Mapping[str, Implementation],
        variants: Mapping[str, Implementation],
        strength: int | None,
    ) -> None:
        self.evidence, self.mutants, self.variants, self.strength = evidence, mutants, variants, strength

    @property
    def versions(self) -> tuple[str, ...]:
        """The operator versions, in order."""
        return tuple(self.evidence)

    @property
    def kinds(self) -> dict[str, list[str]]:
        """The mutants by their kind, both in the order in which they are listed."""
        found: dict[str, list[str]] = {}
        for name, mutant in self.mutants.items():
            found.setdefault(mutant.kind, []).append(name)
        return found

    def cell(self, mutant: str, version: str) -> Cell:
        """Return what became of a mutant on an operator version."""
        evidence = self.evidence[version]
        if mutant not in evidence.mutants:
            return Cell("not-applicable", reason=f"needs {self.mutants[mutant].needs}")
        failed = evidence.failed.get(mutant, {})
        if not failed:
            excuse = evidence.excused.get(mutant)
            return Cell("not-applicable", reason=excuse) if excuse else Cell("survived")
        return _judged("killed", evidence, failed)

    def blamed(self, variant: str, version: str) -> Cell | None:
        """Return what a compliant variant is blamed for; None if for nothing, or where it was not tried."""
        failed = self.evidence[version].failed.get(variant, {})
        if variant not in self.evidence[version].variants or not failed:
            return None
        return _judged("survived", self.evidence[version], failed)

    def by_status(self, version: str, status: Status) -> list[str]:
        """Return the mutants with this status on an operator version."""
        return [m for m in self.mutants if self.cell(m, version).status == status]

    def survivors(self) -> list[tuple[str, str]]:
        """Return version and mutant of what no case kills."""
        return [(v, m) for v in self.versions for m in self.by_status(v, "survived")]

    def false_alarms(self) -> list[tuple[str, str, Cell]]:
        """Return version and variant of what is blamed though it is right, and where."""
        found = ((v, name, self.blamed(name, v)) for v in self.versions for name in self.variants)
        return [(v, name, cell) for v, name, cell in found if cell is not None]

    def clauses(self) -> list[ClauseKills]:
        """Return what each operator's clauses kill."""
        found: dict[str, list[tuple[str, Evidence]]] = {}
        for version, evidence in self.evidence.items():
            for clause in dict.fromkeys(c for case in evidence.cases.values() for c in case.clauses):
                found.setdefault(clause, []).append((version, evidence))
        return [_clause(clause, found[clause], self.mutants) for clause in sorted(found)]

    def to_dict(self, smoke: Sequence[str] = ()) -> dict[str, Any]:
        """Return all of it for JSON; `smoke` is the smallest set of cases that kills as many."""
        return {
            "format": 1,
            "strength": self.strength,
            "operator_versions": {v: self._version(v) for v in self.versions},
            "mutants": {name: _described(mutant) for name, mutant in self.mutants.items()},
            "variants": {name: variant.text for name, variant in self.variants.items()},
            "survivors": [{"operator_version": v, "mutant": m} for v, m in self.survivors()],
            "false_alarms": [
                {"operator_version": v, "variant": name, "cases": c.cases, "smallest": c.smallest, "outcome": c.outcome}
                for v, name, c in self.false_alarms()
            ],
            "clauses": {
                c.clause: {"cases": c.cases, "killed": c.killed, "only": list(c.only), "invalid_alone": c.invalid_alone}
                for c in self.clauses()
            },
            "smoke": list(smoke),
        }

    def _version(self, version: str) -> dict[str, Any]:
        evidence = self.evidence[version]
        cells = {name: self.cell(name, version) for name in self.mutants}
        kept = {name: {k: getattr(c, k) for k in Cell.__slots__} for name, c in cells.items()}
        return {"cases": len(evidence.cases), "mutants": kept, "variants": list(evidence.variants)}


def _judged(status: Status, evidence: Evidence, failed: Mapping[str, str]) -> Cell:
    smallest = min(failed, key=lambda case: evidence.cases[case].size)
    return Cell(status, len(failed), smallest, failed[smallest])


def _clause(clause: str, places: Iterable[tuple[str, Evidence]], mutants: Mapping[str, Implementation]) -> ClauseKills:
    cases, killed, only, invalid_alone = 0, 0, [], True
    for version, evidence in places:
        own = {case.id for case in evidence.cases.values() if clause in case.clauses}
        cases += len(own)
        invalid_alone &= all(evidence.cases[case].invalid for case in own)
        for name in mutants:
            failed = evidence.failed.get(name, {}).keys()
            killed += bool(failed & own)
            if failed and failed <= own:
                only.append(f"{version} {name}")
    return ClauseKills(clause, cases, killed, tuple(only), invalid_alone)


def _described(mutant: Implementation) -> dict[str, Any]:
    return {"kind": mutant.kind, "text": mutant.text, "needs": mutant.needs, "required": dict(mutant.required)}


_WIDEST = len(ascii_uppercase)  # operator versions that a terminal has room for
_HEADINGS = ("cases", "killed", "alive", "not applicable", "variants", "blamed", "smoke suite")
_FEW = 2  # operator versions up to which the smallest cases are shown beside the counts

_ABOUT = (
    "A mutant is an implementation of our own that is wrong in one way. It is killed if a case of the suite does not "
    "pass it. A compliant variant differs in what the standards leave open, and no case may blame it. "
    "Where a mutant claims what a standard does not demand, it is judged under `--require`."
)


def print_matrix(console: Console, matrix: Matrix, smoke: Sequence[str]) -> None:
    """Print the matrix, then what matters most: clauses, figures, survivors and false alarms."""
    if len(matrix.versions) <= _WIDEST:
        console.print(_counts(matrix))
    console.print()
    for line in _clause_lines(matrix):
        console.print(Text(line))
    console.print(_figures_table(matrix, smoke))
    for version, mutant in matrix.survivors():
        console.print(Text(f"survives  {version}  {mutant}: {matrix.mutants[mutant].text}", style="red"))
    for version, variant, cell in matrix.false_alarms():
        told = f"blamed    {version}  {variant}: {cell.outcome} on {printable(cell.smallest or '')}"
        console.print(Text(f"{told}, and {cell.cases - 1} more" if cell.cases > 1 else told, style="red"))
    survivors, alarms = len(matrix.survivors()), len(matrix.false_alarms())
    ending = f"{counted(survivors, 'survivor')}, {counted(alarms, 'false alarm')}"
    console.print(Text(ending, style="red" if survivors or alarms else "green"))


def _counts(matrix: Matrix) -> Table:
    """Return mutants by operator versions, the latter by a letter: how many cases kill."""
    table = Table(box=None, pad_edge=False)
    table.add_column("mutant")
    for letter, _ in zip(ascii_uppercase, matrix.versions, strict=False):
        table.add_column(letter, justify="right")
    few = len(matrix.versions) <= _FEW
    for _ in matrix.versions if few else ():
        table.add_column("smallest case", overflow="fold")
    for kind, names in matrix.kinds.items():
        table.add_row(Text(kind, style="bold"))
        for name in names:
            cells = [matrix.cell(name, version) for version in matrix.versions]
            smallest = [Text(printable(c.smallest or "")) for c in cells] if few else []
            table.add_row(Text(f"  {name}"), *map(_shown, cells), *smallest)
    return table


def _shown(cell: Cell) -> Text:
    if cell.status == "killed":
        return Text(str(cell.cases))
    return Text("alive", style="red") if cell.status == "survived" else Text(NOTHING, style="dim")


def _figures_table(matrix: Matrix, smoke: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("operator version")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    letters = ascii_uppercase if len(matrix.versions) <= _WIDEST else [""] * len(matrix.versions)
    for letter, row in zip(letters, _figures(matrix, smoke), strict=False):
        table.add_row(letter, *row)
    return table


def _figures(matrix: Matrix, smoke: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield for each operator version: its name, cases, mutants killed, alive and not applicable, variants, blamed."""
    alarms = [version for version, _, _ in matrix.false_alarms()]
    for version in matrix.versions:
        evidence = matrix.evidence[version]
        statuses = [len(matrix.by_status(version, s)) for s in ("killed", "survived", "not-applicable")]
        few = sum(parse_id(case).operator == version for case in smoke)
        numbers = [len(evidence.cases), *statuses, len(evidence.variants), alarms.count(version), few]
        yield version, *(f"{n:,}" for n in numbers)


def _clause_lines(matrix: Matrix) -> Iterator[str]:
    """Yield what clauses kill alone, and which clauses kill nothing that no other does."""
    found = matrix.clauses()
    only = [c for c in found if c.only]
    if only:
        yield "clauses without whose cases a mutant lives:"
        yield from (f"  {c.clause}: {counted(len(c.only), 'mutant')}" for c in only)
    needless = [c.clause for c in found if not c.only and not c.invalid_alone]
    if needless:
        yield "clauses that are the only killer of no mutant:"
        yield from (f"  {clause}" for clause in needless)


def matrix_markdown(matrix: Matrix, smoke: Sequence[str]) -> str:
    """Return the matrix as a page of the docs."""
    return "\n".join([*_opening(matrix, smoke), *_mutants(matrix), *_variants(matrix), *_clauses(matrix), ""])


def _opening(matrix: Matrix, smoke: Sequence[str]) -> Iterator[str]:
    yield "<!-- Made by `opconform mutants --markdown docs/kill-matrix.md`; do not edit. -->"
    yield "# Kill matrix"
    yield ""
    yield _ABOUT.replace(". ", ".\n")
    strength = "full" if matrix.strength is None else matrix.strength
    yield f"Made by `opconform mutants --strength {strength}`, which exits 1 if one survives or a variant is blamed."
    yield "One mutant by itself: `opconform run mutant:count-plus-one`."
    yield ""
    yield from _table(
        ("operator version", *_HEADINGS),
        _figures(matrix, smoke),
    )


def _table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _mutants(matrix: Matrix) -> Iterator[str]:
    yield ""
    yield "## Mutants"
    yield ""
    yield f"How many cases kill each; {NOTHING} where it does not apply: the operator version lacks what it needs."
    yield "The smallest case is that of any operator version."
    for kind, names in matrix.kinds.items():
        yield ""
        yield f"### {kind.capitalize()}"
        yield ""
        yield from _table(("mutant", *map(_short, matrix.versions), "smallest case"), [_row(matrix, n) for n in names])
    yield ""
    yield "What they do, and what they need:"
    yield ""
    for name, mutant in matrix.mutants.items():
        required = "".join(f"; judged under `--require {s}={o}`" for s, o in mutant.required.items())
        yield f"- `{name}` {mutant.text} (needs {mutant.needs}){required}"
    excused = [(v, m, why) for v in matrix.versions for m, why in matrix.evidence[v].excused.items()]
    if excused:
        yield ""
        yield "Right after all:"
        yield ""
        yield from (f"- `{mutant}` on {version}: {why}" for version, mutant, why in excused)


def _short(version: str) -> str:
    """Return an operator version so that a table stays narrow."""
    return version.replace("/", " ").replace("-", " ")


def _row(matrix: Matrix, name: str) -> list[str]:
    cells = [matrix.cell(name, version) for version in matrix.versions]
    sizes = [
        matrix.evidence[version].cases[cell.smallest].size
        for version, cell in zip(matrix.versions, cells, strict=True)
        if cell.smallest is not None
    ]
    return [f"`{name}`", *map(_plain, cells), f"`{min(sizes)[2]}`" if sizes else NOTHING]


def _plain(cell: Cell) -> str:
    return {"killed": str(cell.cases), "survived": "**alive**"}.get(cell.status, NOTHING)


def _variants(matrix: Matrix) -> Iterator[str]:
    yield ""
    yield "## Compliant variants"
    yield ""
    for name, variant in matrix.variants.items():
        tried = [v for v in matrix.versions if name in matrix.evidence[v].variants]
        if tried:
            blamed = [v for v in tried if matrix.blamed(name, v)]
            yield f"- `{name}` {variant.text}" + (f" (**blamed** on {', '.join(blamed)})" if blamed else "")


def _clauses(matrix: Matrix) -> Iterator[str]:
    yield ""
    yield "## Clauses"
    yield ""
    yield "How many mutants the cases of a clause kill, and how many only they kill: without them, these would live."
    yield "A clause whose cases are all invalid inputs kills none, since no standard obliges a refusal."
    yield ""
    yield from _table(("clause", "cases", "kills", "only they kill"), [_clause_row(c) for c in matrix.clauses()])


def _clause_row(clause: ClauseKills) -> tuple[str, ...]:
    if clause.invalid_alone:
        return clause.clause, f"{clause.cases:,}", "invalid inputs alone", NOTHING
    return clause.clause, f"{clause.cases:,}", f"{clause.killed:,}", f"{len(clause.only):,}" if clause.only else "none"


def matrix_html(matrix: Matrix, smoke: Sequence[str]) -> str:
    """Return the matrix as one static page that needs nothing else: no script, no network."""
    tried = {name for evidence in matrix.evidence.values() for name in evidence.variants}
    return (
        templates()
        .get_template("kill-matrix.html.j2")
        .render(
            matrix=matrix,
            smoke=smoke,
            about=_ABOUT,
            nothing=NOTHING,
            heads=_HEADINGS,
            rows=_figures(matrix, smoke),
            survivors=matrix.survivors(),
            alarms=matrix.false_alarms(),
            variants=[variant for name, variant in matrix.variants.items() if name in tried],
            clauses=map(_clause_row, matrix.clauses()),
        )
    )

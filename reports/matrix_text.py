"""The kill matrix as text: a terminal's tables, and a page of the docs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cases.ids import parse_id
from .matrix import Cell, ClauseKills, Matrix
from .text import NOTHING, counted, printable

KINDS = ("signature", "axes", "arithmetic", "shape", "state", "process")
_WIDEST = len(ascii_uppercase)  # operator versions that a terminal has room for
_FEW = 2  # operator versions up to which the smallest cases are shown beside the counts

ABOUT = (
    "A mutant is an implementation of our own that is wrong in one way. It is killed if a case of the suite does not "
    "pass it. A compliant variant differs in what the standards leave open, and no case may blame it. "
    "Where a mutant claims what a standard does not demand, it is judged under `--require`."
)


def print_matrix(console: Console, matrix: Matrix, smoke: Sequence[str]) -> None:
    """Print the matrix, then what matters most: clauses, figures, survivors and false alarms."""
    if len(matrix.versions) <= _WIDEST:
        console.print(_counts(matrix))
    console.print()
    for line in clause_lines(matrix):
        console.print(Text(line))
    console.print(_figures(matrix, smoke))
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
    for kind in KINDS:
        names = [name for name, mutant in matrix.mutants.items() if mutant.kind == kind]
        if names:
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


def _figures(matrix: Matrix, smoke: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("operator version")
    for heading in ("cases", "killed", "alive", "not applicable", "variants", "blamed", "smoke"):
        table.add_column(heading, justify="right")
    letters = ascii_uppercase if len(matrix.versions) <= _WIDEST else [""] * len(matrix.versions)
    for letter, row in zip(letters, figures(matrix, smoke), strict=False):
        table.add_row(letter, *row)
    return table


def figures(matrix: Matrix, smoke: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield for each operator version: its name, cases, mutants killed, alive and not applicable, variants, blamed."""
    alarms = [version for version, _, _ in matrix.false_alarms()]
    for version in matrix.versions:
        evidence = matrix.evidence[version]
        statuses = [len(matrix.by_status(version, s)) for s in ("killed", "survived", "not-applicable")]
        few = sum(parse_id(case).operator == version for case in smoke)
        numbers = [len(evidence.cases), *statuses, len(evidence.variants), alarms.count(version), few]
        yield version, *(f"{n:,}" for n in numbers)


def clause_lines(matrix: Matrix) -> Iterator[str]:
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
    yield ABOUT.replace(". ", ".\n")
    strength = "full" if matrix.strength is None else matrix.strength
    yield f"Made by `opconform mutants --strength {strength}`, which exits 1 if one survives or a variant is blamed."
    yield "One mutant by itself: `opconform run mutant:count-plus-one`."
    yield ""
    yield from _table(
        ("operator version", "cases", "killed", "alive", "not applicable", "variants", "blamed", "smoke suite"),
        figures(matrix, smoke),
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
    for kind in KINDS:
        names = [name for name, mutant in matrix.mutants.items() if mutant.kind == kind]
        if not names:
            continue
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
    yield from _table(("clause", "cases", "kills", "only they kill"), [_clause(c) for c in matrix.clauses()])


def _clause(clause: ClauseKills) -> tuple[str, ...]:
    if clause.invalid_alone:
        return clause.clause, f"{clause.cases:,}", "invalid inputs alone", NOTHING
    return clause.clause, f"{clause.cases:,}", f"{clause.killed:,}", f"{len(clause.only):,}" if clause.only else "none"

"""The kill matrix: which wrong implementations the suite exposes, which it does not, and who is blamed without reason.

As a record to be kept, a terminal's tables, a page of the docs, and one HTML page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cases.errors import OpconformError
from .site.writer import templates
from .text import NOTHING, counted, printable

Status: TypeAlias = Literal["killed", "admitted", "unseen", "unmet", "same", "blamed"]
STATUSES: tuple[Status, ...] = ("admitted", "unseen", "unmet")
FORMAT = 2


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one implementation before the cases of an operator version.

    A mutant is `killed`, with the smallest case that does not pass and its outcome; `admitted`: it answers otherwise
    than a right implementation, and within what the standard admits; `unseen`: it computes otherwise, and answers alike
    on all data of the suite; `unmet`: in no case does it do anything else; `same`: where it does, the formula is the
    same, so that it is no mutant. `blamed` is a compliant variant.
    """

    name: str
    kind: str
    text: str
    status: Status
    case: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class VersionMatrix:
    """How an operator version's cases were put to the test.

    `digest` is that of the cases. `tried` has for each kind of mutant how many there are and how many are killed;
    `survivors` and `blamed` what is wrong with the suite; `hidden` the triggers under which not all effects show, and
    `triggers` how many there are. `smoke` are the cases that are enough to kill all that is killed.
    """

    version: str
    digest: str
    cases: int
    tried: Mapping[str, tuple[int, int]]
    survivors: tuple[Fate, ...]
    variants: int
    blamed: tuple[Fate, ...]
    triggers: int
    hidden: tuple[str, ...]
    smoke: tuple[str, ...]
    killed: tuple[Fate, ...] = ()

    @property
    def mutants(self) -> int:
        """How many mutants there are, those of triggers apart."""
        return sum(every for kind, (every, _) in self.tried.items() if kind != "trigger")

    def surviving(self, status: Status) -> list[str]:
        """Return the names of the mutants that are not killed, for the reason `status`."""
        return [fate.name for fate in self.survivors if fate.status == status]


@dataclass(frozen=True)
class Matrix:
    """All operator versions that were put to the test."""

    tested: Mapping[str, VersionMatrix]

    def beyond(self, known: Matrix) -> Matrix:
        """Return the matrix without survivors and hidden triggers that another one has as well."""
        return Matrix({v: _beyond(one, known.tested.get(v)) for v, one in self.tested.items()})

    @property
    def survivors(self) -> list[tuple[str, Fate]]:
        """The mutants that are not killed, with their operator versions."""
        return [(version, fate) for version, one in self.tested.items() for fate in one.survivors]

    @property
    def blamed(self) -> list[tuple[str, Fate]]:
        """The compliant variants that are blamed, with their operator versions."""
        return [(version, fate) for version, one in self.tested.items() for fate in one.blamed]

    @property
    def smoke(self) -> list[str]:
        """The cases of the suite `smoke`."""
        return [case for one in self.tested.values() for case in one.smoke]

    def to_record(self) -> str:
        """Return what is kept between changes: one line an operator version, so that a change shows as one."""
        texts = {f.name: (f.kind, f.text) for _, f in (*self.survivors, *self.blamed)}
        lines = [json.dumps({"format": FORMAT, "texts": dict(sorted(texts.items()))})]
        lines += [json.dumps(_kept(one)) for one in self.tested.values()]
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {"format": FORMAT, "operator_versions": {v: asdict(one) for v, one in self.tested.items()}}


def _beyond(one: VersionMatrix, known: VersionMatrix | None) -> VersionMatrix:
    if known is None:
        return one
    names = {fate.name for fate in known.survivors}
    survivors = tuple(fate for fate in one.survivors if fate.name not in names)
    return replace(one, survivors=survivors, hidden=tuple(h for h in one.hidden if h not in known.hidden))


def _kept(one: VersionMatrix) -> dict[str, Any]:
    return {
        "version": one.version,
        "digest": one.digest,
        "cases": one.cases,
        "tried": one.tried,
        "admitted": one.surviving("admitted"),
        "unseen": one.surviving("unseen"),
        "unmet": one.surviving("unmet"),
        "variants": one.variants,
        "blamed": [[f.name, f.case, f.outcome] for f in one.blamed],
        "triggers": one.triggers,
        "hidden": one.hidden,
        "smoke": one.smoke,
    }


def read_record(file: Path) -> Matrix:
    """Return the matrix of a record, without what killed each mutant. Raises OpconformError."""
    try:
        head, *lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        if head["format"] != FORMAT:
            raise OpconformError(f"{file}: format {head['format']}, expected {FORMAT}; make it anew")
        return Matrix({line["version"]: _tested(line, head["texts"]) for line in lines})
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise OpconformError(f"{file}: is no record of a kill matrix: {error}") from None


def _tested(line: Mapping[str, Any], texts: Mapping[str, Sequence[str]]) -> VersionMatrix:
    def fate(name: str, status: Status, case: str = "", outcome: str = "") -> Fate:
        return Fate(name, texts[name][0], texts[name][1], status, case, outcome)

    survivors = [fate(name, status) for status in STATUSES for name in line[status]]
    return VersionMatrix(
        line["version"],
        line["digest"],
        line["cases"],
        {kind: (every, killed) for kind, (every, killed) in line["tried"].items()},
        tuple(survivors),
        line["variants"],
        tuple(fate(name, "blamed", case, outcome) for name, case, outcome in line["blamed"]),
        line["triggers"],
        tuple(line["hidden"]),
        tuple(line["smoke"]),
    )


HEADINGS = (
    "cases",
    "mutants",
    "killed",
    "admitted",
    "unseen",
    "unmet",
    "triggers exposed",
    "variants",
    "blamed",
    "smoke suite",
)
_ABOUT = (
    "A mutant is an implementation of our own that is wrong in one way. It is killed if a case of the suite does not "
    "pass it. One that is not answers otherwise than a right one, within what the standard admits (`admitted`); or "
    "computes otherwise, and answers alike on the data of the suite (`unseen`); or no case has what sets it off "
    "(`unmet`). For the last two a case is missing, or the mutant is right for every input. "
    "A trigger, such as a rank or an extent, is exposed if what goes wrong under it alone is killed. "
    "A compliant variant differs in what the standards leave open, and no case may blame it."
)


def _figures(matrix: Matrix) -> Iterator[tuple[str, ...]]:
    """Yield for each operator version its name and what stands below the headings."""
    for version, one in matrix.tested.items():
        killed = sum(killed for kind, (_, killed) in one.tried.items() if kind != "trigger")
        surviving = [len(one.surviving(status)) for status in STATUSES]
        exposed = f"{one.triggers - len(one.hidden)} of {one.triggers}"
        numbers = [one.cases, one.mutants, killed, *surviving]
        after = [one.variants, len(one.blamed), len(one.smoke)]
        yield version, *(f"{n:,}" for n in numbers), exposed, *(f"{n:,}" for n in after)


def print_matrix(console: Console, matrix: Matrix) -> None:
    """Print the figures of each operator version, then survivors and false alarms."""
    table = Table(box=None, pad_edge=False)
    table.add_column("operator version", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for row in _figures(matrix):
        table.add_row(*row)
    console.print(table)
    for version, fate in matrix.survivors:
        console.print(Text(f"{fate.status:<9} {version}  {fate.name}: {fate.text}", style="yellow"))
    for version, one in matrix.tested.items():
        if one.hidden:
            console.print(Text(f"hidden    {version}  {', '.join(one.hidden)}", style="yellow"))
    for version, fate in matrix.blamed:
        told = f"blamed    {version}  {fate.name}: {fate.outcome} on {printable(fate.case)}"
        console.print(Text(told, style="red"))
    survivors, alarms = len(matrix.survivors), len(matrix.blamed)
    ending = f"{counted(survivors, 'survivor')}, {counted(alarms, 'false alarm')}"
    console.print(Text(ending, style="red" if alarms else "yellow" if survivors else "green"))


def _survivors(matrix: Matrix) -> Iterator[tuple[str, ...]]:
    """Yield each mutant that survives somewhere: its name, what it does, and where, by the reason."""
    texts: dict[str, str] = {}
    where: dict[tuple[str, Status], list[str]] = {}
    for version, fate in matrix.survivors:
        texts[fate.name] = fate.text
        where.setdefault((fate.name, fate.status), []).append(version)
    for name in sorted(texts):
        yield name, texts[name], *(", ".join(where.get((name, s), ())) or NOTHING for s in STATUSES)


def matrix_markdown(matrix: Matrix) -> str:
    """Return the matrix as a page of the docs."""
    return "\n".join(_page(matrix)) + "\n"


def _page(matrix: Matrix) -> Iterator[str]:
    yield "<!-- Made by `opconform mutants --record docs/kill-matrix.jsonl --markdown docs/kill-matrix.md`. -->"
    yield "# Kill matrix"
    yield ""
    yield _ABOUT.replace(". ", ".\n")
    yield "One mutant by itself: `opconform run mutant:nan-lost`. See [testing-the-suite.md](testing-the-suite.md)."
    yield ""
    yield from _table(("operator version", *HEADINGS), _figures(matrix))
    yield ""
    yield "## Blamed without reason"
    yield ""
    if matrix.blamed:
        yield from (f"- `{f.name}` on {v}: {f.outcome} on `{f.case}`; it {f.text}" for v, f in matrix.blamed)
    else:
        yield "Nobody."
    yield ""
    yield "## What survives"
    yield ""
    yield from _table(("mutant", "does", "admitted on", "unseen on", "unmet on"), _coded(_survivors(matrix)))
    yield ""
    yield "## Triggers under which not all shows"
    yield ""
    yield from _table(("operator version", "triggers"), ((v, ", ".join(o.hidden)) for v, o in _hiding(matrix)))


def _hiding(matrix: Matrix) -> Iterable[tuple[str, VersionMatrix]]:
    return ((version, one) for version, one in matrix.tested.items() if one.hidden)


def _coded(rows: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    return ((f"`{name}`", *rest) for name, *rest in rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def matrix_html(matrix: Matrix) -> str:
    """Return the matrix as one static page that needs nothing else: no script, no network."""
    page = templates().get_template("kill-matrix.html.j2")
    return page.render(
        matrix=matrix, about=_ABOUT, heads=HEADINGS, rows=_figures(matrix), survivors=list(_survivors(matrix))
    )

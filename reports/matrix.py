"""The kill matrix: which wrong implementations the suite exposes, which it misses, and which right ones it blames.

Written as a record, a terminal's tables, a page of the docs, and one HTML page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cases.errors import OpconformError
from .site.writer import templates
from .text import counted, markdown_table, printable

Status: TypeAlias = Literal["killed", "admitted", "unseen", "unmet", "same", "blamed"]
STATUSES: tuple[Status, ...] = ("admitted", "unseen", "unmet")
FORMAT = 5
NO_CASE = "no case"


@dataclass(frozen=True, slots=True)
class Fate:
    """The fate of one implementation against the cases of an operator version.

    A mutant is `killed`, with the smallest case that it fails and its outcome; `admitted`: its answers differ from the
    right ones, but only within what the standard admits; `unseen`: it computes something else, but gives the same
    answers on all data of the suite; `unmet`: no case triggers it; `same`: its formula is the same wherever it is
    triggered, so that it is not a mutant. `blamed` is a compliant variant that fails. `why` says what admits it, or why
    no case exposes it.
    """

    name: str
    kind: str
    text: str
    status: Status
    case: str = ""
    outcome: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class VersionMatrix:
    """The results of testing the cases of an operator version.

    `digest` covers the cases, `code` the code that makes the mutants. `tried` has for each kind of mutant the number
    made and killed; `survivors` and `blamed` are the suite's faults; `hidden` are the triggers under which not every
    effect shows, with the reason, and `triggers` the number of triggers of each group, such as `rank`, without those
    that a clause excludes, which `excluded` lists with the clause. `smoke` is a small set of cases that kills
    everything that is killed. `blind`: by type, the number of output elements, and of those that the bounds leave open.
    `tight`: by floating-point type, the median and the widest bound, in ulp.
    """

    version: str
    digest: str
    cases: int
    tried: Mapping[str, tuple[int, int]]
    survivors: tuple[Fate, ...]
    variants: int
    blamed: tuple[Fate, ...]
    triggers: Mapping[str, int]
    hidden: Mapping[str, str]
    smoke: tuple[str, ...]
    blind: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    killed: tuple[Fate, ...] = ()
    code: str = ""
    excluded: Mapping[str, str] = field(default_factory=dict)
    tight: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def mutants(self) -> int:
        """Return the number of mutants, without triggers."""
        return sum(every for kind, (every, _) in self.tried.items() if kind != "trigger")

    @property
    def kills(self) -> int:
        """Return the number of mutants that are killed, without triggers."""
        return sum(killed for kind, (_, killed) in self.tried.items() if kind != "trigger")

    @property
    def operator(self) -> str:
        """Return the operator, without the version: `onnx/Add`. Some standards have no version numbers."""
        name, _, number = self.version.rpartition("-")
        return name if number.isdigit() else self.version

    def surviving(self, status: Status) -> int:
        """Return the number of mutants that survive for the reason `status`."""
        return sum(fate.status == status for fate in self.survivors)


@dataclass(frozen=True)
class Matrix:
    """All operator versions that were tested."""

    tested: Mapping[str, VersionMatrix]

    def beyond(self, known: Matrix) -> Matrix:
        """Return the matrix without survivors and hidden triggers that another matrix also has."""
        return Matrix({v: _beyond(tested, known.tested.get(v)) for v, tested in self.tested.items()})

    @property
    def survivors(self) -> list[tuple[str, Fate]]:
        """Return the mutants that survive, with their operator versions."""
        return [(version, fate) for version, tested in self.tested.items() for fate in tested.survivors]

    @property
    def blamed(self) -> list[tuple[str, Fate]]:
        """Return the compliant variants that are blamed, with their operator versions."""
        return [(version, fate) for version, tested in self.tested.items() for fate in tested.blamed]

    @property
    def smoke(self) -> list[str]:
        """Return the cases of the suite `smoke`."""
        return [case for tested in self.tested.values() for case in tested.smoke]

    def to_record(self) -> str:
        """Return what is kept between changes: a line per surviving mutant, then a line per operator version."""
        by_name = {
            f.name: {"mutant": f.name, "kind": f.kind, "does": f.text} for _, f in (*self.survivors, *self.blamed)
        }
        lines: list[Mapping[str, Any]] = [{"format": FORMAT}, *(by_name[name] for name in sorted(by_name))]
        lines += [_kept(tested) for tested in self.tested.values()]
        return "".join(f"{json.dumps(line)}\n" for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {"format": FORMAT, "operator_versions": {v: asdict(tested) for v, tested in self.tested.items()}}


def _beyond(tested: VersionMatrix, known: VersionMatrix | None) -> VersionMatrix:
    if known is None:
        return tested
    names = {fate.name for fate in known.survivors}
    survivors = tuple(fate for fate in tested.survivors if fate.name not in names)
    hidden = {level: why for level, why in tested.hidden.items() if level not in known.hidden}
    return replace(tested, survivors=survivors, hidden=hidden)


def _kept(tested: VersionMatrix) -> dict[str, Any]:
    hidden: dict[str, list[str]] = {}
    for level, why in tested.hidden.items():
        hidden.setdefault(why, []).append(level)
    return {
        "version": tested.version,
        "digest": tested.digest,
        "code": tested.code,
        "cases": tested.cases,
        "tried": tested.tried,
        **{status: {f.name: f.why for f in tested.survivors if f.status == status} for status in STATUSES},
        "variants": tested.variants,
        "blamed": [[f.name, f.case, f.outcome] for f in tested.blamed],
        "triggers": tested.triggers,
        "hidden": hidden,
        "excluded": tested.excluded,
        "smoke": len(tested.smoke),
        "blind": tested.blind,
        "tight": {type_: [_rounded(median), _rounded(worst)] for type_, (median, worst) in tested.tight.items()},
    }


def read_record(file: Path, smoke: Mapping[str, Sequence[str]]) -> Matrix:
    """Return the matrix of a record, without what killed each mutant, for versions that the smoke suite also has.

    `smoke` has the suite's cases by operator version. A record in an older format is ignored. Raises OpconformError.
    """
    try:
        head, *lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        if head["format"] > FORMAT:
            raise OpconformError(f"{file}: format {head['format']}, expected {FORMAT}; remove it and make a new one")
        if head["format"] < FORMAT:
            return Matrix({})
        texts = {line["mutant"]: (line["kind"], line["does"]) for line in lines if "mutant" in line}
        every = [_tested(line, texts, smoke.get(line["version"], ())) for line in lines if "mutant" not in line]
        return Matrix({tested.version: tested for tested in every if tested is not None})
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise OpconformError(f"{file}: is not a record of a kill matrix: {error}") from None


def _tested(line: Mapping[str, Any], texts: Mapping[str, Sequence[str]], smoke: Sequence[str]) -> VersionMatrix | None:
    def fate(name: str, status: Status, case: str = "", outcome: str = "", why: str = "") -> Fate:
        return Fate(name, texts[name][0], texts[name][1], status, case, outcome, why)

    if line["smoke"] != len(smoke):
        return None
    return VersionMatrix(
        line["version"],
        line["digest"],
        line["cases"],
        {kind: (every, killed) for kind, (every, killed) in line["tried"].items()},
        tuple(fate(name, status, why=why) for status in STATUSES for name, why in line[status].items()),
        line["variants"],
        tuple(fate(name, "blamed", case, outcome) for name, case, outcome in line["blamed"]),
        line["triggers"],
        {level: why for why, levels in line["hidden"].items() for level in levels},
        tuple(smoke),
        {type_: (count, blind) for type_, (count, blind) in line["blind"].items()},
        code=line["code"],
        excluded=line.get("excluded", {}),
        tight={type_: (median, worst) for type_, (median, worst) in line.get("tight", {}).items()},
    )


_COUNTS = ("cases", "mutants", "killed", *STATUSES, "triggers exposed", "variants", "blamed")
_HEADINGS = (*_COUNTS, "smoke suite")
_ABOUT = (
    "A mutant is an implementation that is wrong in one way, on purpose. It is killed if it fails a case of the suite. "
    "A survivor is `admitted` if its answers differ from the right ones only within what the standard admits, `unseen` "
    "if it computes something else but gives the same answers on the suite's data, and `unmet` if no case triggers it. "
    "A trigger, such as a rank or an extent, is exposed if every effect that makes a difference under it is killed. "
    "A compliant variant differs only in what the standards leave open, and no case may blame it."
)

_TIGHT = (
    "How far an answer may be from the exact value, in units in the last place (ulp): the median over cases of each "
    "case's median element, and the maximum over elements that the bounds do not leave open. At 0.5 or less, only the "
    "correctly rounded answer is admitted. Types with exact answers are left out."
)


def _figures(matrix: Matrix) -> Iterator[tuple[str, ...]]:
    """Yield for each operator version its name and the cells of its row."""
    for version, tested in matrix.tested.items():
        surviving = map(tested.surviving, STATUSES)
        every = sum(tested.triggers.values())
        exposed = f"{every - len(tested.hidden)} of {every}"
        numbers = [tested.cases, tested.mutants, tested.kills, *surviving]
        after = [tested.variants, len(tested.blamed), len(tested.smoke)]
        yield version, *(f"{n:,}" for n in numbers), exposed, *(f"{n:,}" for n in after)


def print_matrix(console: Console, matrix: Matrix) -> None:
    """Print the figures of each operator version, then survivors and false alarms."""
    table = Table(box=None, pad_edge=False)
    table.add_column("operator version", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for row in _figures(matrix):
        table.add_row(*row)
    console.print(table)
    for operator, reason, names in (*_survivors(matrix), *_hidden(matrix)):
        console.print(Text(f"{reason}  {operator}  {names}", style="yellow"))
    for version, fate in matrix.blamed:
        line = f"blamed  {version}  {fate.name}: {fate.outcome} on {printable(fate.case)}"
        console.print(Text(line, style="red"))
    survivors, alarms = len(matrix.survivors), len(matrix.blamed)
    ending = f"{counted(survivors, 'survivor')}, {counted(alarms, 'false alarm')}"
    console.print(Text(ending, style="red" if alarms else "yellow" if survivors else "green"))


def _by_operator(matrix: Matrix) -> Mapping[str, list[VersionMatrix]]:
    groups: dict[str, list[VersionMatrix]] = {}
    for tested in matrix.tested.values():
        groups.setdefault(tested.operator, []).append(tested)
    return groups


def _named(versions: Sequence[VersionMatrix], names: Mapping[str, Sequence[VersionMatrix]]) -> str:
    """Return names, each with the versions of an operator that it applies to, if not all."""
    return ", ".join(f"`{name}`{_numbers(versions, where)}" for name, where in names.items())


def _numbers(versions: Sequence[VersionMatrix], where: Sequence[VersionMatrix]) -> str:
    if len(where) == len(versions):
        return ""
    numbers = [tested.version.rpartition("-")[2] for tested in where]
    first = versions.index(where[0])
    if len(where) > 2 and list(where) == list(versions[first : first + len(where)]):
        return f" ({numbers[0]} to {numbers[-1]})"
    return f" ({', '.join(numbers)})"


_Reasons: TypeAlias = Iterator[tuple[str, str, str]]
"""Operators, each with a reason and the names that it applies to."""


def _by_reason(
    matrix: Matrix,
    reasons_of: Callable[[VersionMatrix], Iterable[tuple[str, str]]],
    order: Callable[[str], Any] | None = None,
) -> _Reasons:
    """Yield operators with reasons and names; `reasons_of` has pairs of them, `order` sorts an operator's reasons."""
    for operator, versions in _by_operator(matrix).items():
        reasons: dict[str, dict[str, list[VersionMatrix]]] = {}
        for tested in versions:
            for reason, name in reasons_of(tested):
                reasons.setdefault(reason, {}).setdefault(name, []).append(tested)
        for reason in sorted(reasons, key=order) if order else reasons:
            yield operator, reason, _named(versions, reasons[reason])


def _survivors(matrix: Matrix) -> _Reasons:
    """Yield why mutants survive, by status."""

    def reasons_of(tested: VersionMatrix) -> Iterable[tuple[str, str]]:
        return ((f"{fate.status}: {fate.why}" if fate.why else fate.status, fate.name) for fate in tested.survivors)

    return _by_reason(matrix, reasons_of, lambda reason: STATUSES.index(reason.partition(":")[0]))


def _hidden(matrix: Matrix) -> _Reasons:
    """Yield why triggers are hidden: `no case`, or effects that the bounds admit."""
    # sorted, because a record's triggers are in another order than a new matrix's
    return _by_reason(matrix, lambda tested: ((why, level) for level, why in tested.hidden.items()), str)


def _excluded(matrix: Matrix) -> _Reasons:
    """Yield the clauses because of which no valid call can set triggers off."""
    return _by_reason(matrix, lambda tested: ((clause, level) for level, clause in tested.excluded.items()))


def blind_of(matrix: Matrix) -> Iterator[tuple[str, str]]:
    """Yield an operator, and by type the share of elements that its bounds leave open, if it is not zero."""
    for operator, versions in _by_operator(matrix).items():
        counts: dict[str, tuple[int, int]] = {}
        for tested in versions:
            for type_, (count, blind) in tested.blind.items():
                before = counts.get(type_, (0, 0))
                counts[type_] = before[0] + count, before[1] + blind
        shares = {type_: blind / count for type_, (count, blind) in counts.items() if blind}
        if shares:
            yield operator, ", ".join(f"{type_} {_percent(share)}" for type_, share in shares.items())


def tight_of(matrix: Matrix) -> Iterator[tuple[str, str, str, str]]:
    """Yield the newest version of an operator, a floating-point type, and its median and widest bound in ulp."""
    for versions in _by_operator(matrix).values():
        for type_, figures in versions[-1].tight.items():
            if figures[1]:
                median, widest = (f"{_rounded(ulps):,}" for ulps in figures)
                yield versions[-1].version, type_, median, widest


def _rounded(ulps: float) -> float:
    """Return a number with two digits, as a page shows and a record keeps it."""
    short = float(f"{ulps:.2g}")
    return int(short) if short.is_integer() else short


def _percent(share: float) -> str:
    return "< 1 %" if share < 0.005 else f"{100 * share:.0f} %"


def matrix_markdown(matrix: Matrix) -> str:
    """Return the matrix as a page of the docs: a line an operator, and sums over all; `matrix_html` has the rest."""
    return "\n".join(_page(matrix)) + "\n"


def _page(matrix: Matrix) -> Iterator[str]:
    made = "opconform dev mutants --record docs/kill-matrix.jsonl --markdown docs/generated/kill-matrix.md"
    yield f"<!-- Made by `{made}`. -->"
    yield "# Kill matrix"
    yield ""
    yield _ABOUT.replace(". ", ".\n")
    yield "To run a single mutant: `opconform run mutant:nan-lost`. See [Test the suite](../testing-the-suite.md)."
    yield ""
    yield "This page has sums. Its record, `docs/kill-matrix.jsonl`, has each survivor and each hidden trigger with the"
    yield "reason, and `opconform dev mutants --record docs/kill-matrix.jsonl --html matrix.html` makes one page of it."
    yield ""
    operators = _by_operator(matrix)
    yield from _table(("", *_SUMMED), [("all", *_sums(list(matrix.tested.values())))])
    yield ""
    yield "## False alarms"
    yield ""
    if matrix.blamed:
        yield from (f"- `{f.name}` on {v}: {f.outcome} on `{f.case}`; it {f.text}" for v, f in matrix.blamed)
    else:
        yield "None."
    yield ""
    yield "## Survivors"
    yield ""
    yield "What admits them; a mutant may have several reasons."
    yield "[`specs/survivors.yaml`](../../specs/survivors.yaml) says for each other one why no case exposes it."
    yield ""
    yield from _table(("admitted by", "mutants", "operators"), _admitting(operators))
    yield ""
    yield "## Width of bounds"
    yield ""
    yield _TIGHT.replace(". ", ".\n")
    yield "Half of the operators, in their newest versions, have a median within the third column, nine in ten within"
    yield "the last."
    yield ""
    yield from _table(("type", "operators", "half within", "nine in ten within"), _widths(matrix))
    yield ""
    yield "## Operators"
    yield ""
    yield "The last column is the share of elements for which an option admits any value, or has a bound beyond the"
    yield "magnitude. If a second moment is judged too, elements are not counted."
    yield ""
    head = ("operator", *(_SUMMED[column] for column in _OF_OPERATORS))
    rows = ((name, list(_sums(of))) for name, of in operators.items())
    yield from _table(head, ((name, *(cells[column] for column in _OF_OPERATORS)) for name, cells in rows))
    yield from _triggers(matrix, operators)


_SUMMED = ("versions", *_COUNTS, "open")

_OF_OPERATORS = (1, 2, 3, 4, 7, 10)  # the columns of the table of operators: the others are mostly 0


def _sums(versions: Sequence[VersionMatrix]) -> Iterator[str]:
    """Yield the cells of a row that sums operator versions up."""
    numbers = [len(versions), sum(tested.cases for tested in versions)]
    numbers += [sum(tested.mutants for tested in versions), sum(tested.kills for tested in versions)]
    numbers += [sum(tested.surviving(status) for tested in versions) for status in STATUSES]
    yield from (f"{number:,}" for number in numbers)
    yield _exposed(versions, lambda _: True)
    yield f"{sum(tested.variants for tested in versions):,}"
    yield f"{sum(len(tested.blamed) for tested in versions):,}"
    blind_counts = [elements for tested in versions for elements in tested.blind.values()]
    count, blind = (sum(numbers) for numbers in zip(*blind_counts, strict=True)) if blind_counts else (0, 0)
    yield _percent(blind / count).replace(" ", "") if blind else "0"


TRIGGER_CLASSES = {
    "extents": ("rank", "extent", "elements", "batch", "channels", "middle", "last", "equal"),
    "axes": ("axes", "reduced", "outer", "inner"),
    "broadcasts": ("broadcast", "scalar"),
    "types": ("type", "nothing", "last-opset"),
    "delivery": ("from", "others", "inputs", "twice"),
    "options": ("options", "triple"),
    "lists": ("entries", "equation"),
    "numbers": ("number", "whole"),
    "positions": ("place", "input-place"),
    "runs": ("run", "opset"),
}
"""The groups of triggers in each column of the page's table."""


def _exposed(versions: Sequence[VersionMatrix], wanted: Callable[[str], bool]) -> str:
    """Return `exposed/all` of the triggers whose group is wanted; empty if there are none."""
    every = sum(count for tested in versions for group, count in tested.triggers.items() if wanted(group))
    hidden = sum(wanted(level.partition("=")[0]) for tested in versions for level in tested.hidden)
    return f"{every - hidden:,}/{every:,}" if every else ""


def _triggers(matrix: Matrix, operators: Mapping[str, Sequence[VersionMatrix]]) -> Iterator[str]:
    """Yield the section with how many triggers of each class are exposed, for each operator."""
    yield ""
    yield "## Triggers"
    yield ""
    yield "How many triggers of each class are exposed, of how many. The classes hold these groups, which"
    yield "[Test the suite](../testing-the-suite.md#triggers) describes:"
    yield ""
    yield from (f"- {name}: {', '.join(f'`{group}`' for group in groups)}" for name, groups in TRIGGER_CLASSES.items())
    yield ""
    every = [("all", list(matrix.tested.values())), *operators.items()]
    yield from _table(("operator", *TRIGGER_CLASSES), (_by_class(name, of) for name, of in every))


def _by_class(name: str, versions: Sequence[VersionMatrix]) -> tuple[str, ...]:
    return name, *(_exposed(versions, groups.__contains__) for groups in TRIGGER_CLASSES.values())


def _admitting(operators: Mapping[str, Sequence[VersionMatrix]]) -> Iterator[tuple[str, str, str]]:
    """Yield what admits survivors (a silence, the bound, …), the number of mutants and of operators; the most first."""
    by_reason: dict[str, list[str]] = {}
    for operator, versions in operators.items():
        for fate in (fate for tested in versions for fate in tested.survivors if fate.status == "admitted"):
            words = {word.split(",")[0] for word in fate.why.split("; ")}
            silences = {name for word in words for name in re.findall(r"([\w-]+)=", word)}
            others = {word for word in words if word and "=" not in word}
            for reason in (*(f"silence `{name}`" for name in silences), *others):
                by_reason.setdefault(reason, []).append(operator)
    for reason, where in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        yield reason, f"{len(where):,}", f"{len(set(where)):,}"


def _widths(matrix: Matrix) -> Iterator[tuple[str, ...]]:
    """Yield by type how many operators have bounds that round, and how wide their medians are, in ulp."""
    by_type: dict[str, list[float]] = {}
    for versions in _by_operator(matrix).values():
        for type_, (median, widest) in versions[-1].tight.items():
            if widest:
                by_type.setdefault(type_, []).append(median)
    for type_, medians in by_type.items():
        medians.sort()
        yield type_, str(len(medians)), *(f"{_rounded(medians[len(medians) * tenths // 10]):,}" for tenths in (5, 9))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    return markdown_table(head, ([cell.replace("|", "\\|") for cell in row] for row in rows))


def matrix_html(matrix: Matrix) -> str:
    """Return the matrix as one static page without scripts or external files."""
    page = templates().get_template("kill-matrix.html.j2")
    return page.render(
        matrix=matrix,
        about=f"{_ABOUT} The page says what admits a survivor, with the width of the bound compared to the change, or "
        "why no case exposes it.",
        heads=_HEADINGS,
        rows=_figures(matrix),
        survivors=[_html(row) for row in _survivors(matrix)],
        hidden=[_html(row) for row in _hidden(matrix)],
        excluded=[_html(row) for row in _excluded(matrix)],
        blind=list(blind_of(matrix)),
        about_tight=_TIGHT,
        tight=list(tight_of(matrix)),
    )


def _html(row: tuple[str, str, str]) -> tuple[str, str, list[str]]:
    return row[0], row[1], row[2].split("`")

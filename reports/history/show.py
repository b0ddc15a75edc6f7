"""`opconform history show`, `case` and `prune`: what a history tells, in a terminal or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..text import NOTHING, counted, percent, printable
from .asking import Stay, Turn, stays, turns
from .compared_text import WIDE
from .database import DEFAULT, reading
from .kinds import Kind
from .plan import plan_words

_LEFT = frozenset({"date", "version", "label"})


def show(
    db: Path = DEFAULT,
    *,
    backend: str = "*",
    globs: Sequence[str] = (),
    last: int | None = None,
    as_json: bool = False,
    console: Console | None = None,
) -> None:
    """Print the runs of a history, by backend and in the order of time. Raises OpconformError if there is none."""
    with reading(db) as history:
        found = turns(history, backend=backend, globs=globs, last=last)
    console = console or Console()
    if as_json:
        console.print(Text(json.dumps([turn_json(turn) for turn in found], indent=2)), soft_wrap=True)
        return
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    for number, series in enumerate(_by_series(found)):
        if number:
            console.print()
        title = f"{_series_words(series[-1])}, suite {printable(series[-1].suite)}"
        console.print(Text(title, "bold"), soft_wrap=True)
        console.print(_runs(series))


def show_case(
    case: str, db: Path = DEFAULT, *, backend: str = "*", as_json: bool = False, console: Console | None = None
) -> None:
    """Print how a case was judged over time. Raises OpconformError if the history does not have it."""
    with reading(db) as history:
        found = stays(history, case, backend=backend)
    console = console or Console()
    if as_json:
        console.print(Text(json.dumps([_stay_json(stay) for stay in found], indent=2)), soft_wrap=True)
        return
    console.print(Text(printable(case), "bold"), soft_wrap=True)
    before: Stay | None = None
    for stay in found:
        if before is None or before.first.series != stay.first.series:
            console.print(Text(f"  {_series_words(stay.first)}"), soft_wrap=True)
            before = None
        for line in _stay_lines(stay, before):
            console.print(Text(f"    {line}"), soft_wrap=True)
        before = stay


def turn_json(turn: Turn) -> dict[str, Any]:
    """Return a turn for JSON."""
    figures = {name: value for name, value in turn.figures.to_dict().items() if name not in ("cases", "outcomes")}
    return {
        "run": turn.run,
        "label": turn.label,
        "started": turn.started,
        "backend": turn.backend,
        "version": turn.version,
        "suite": turn.suite,
        "partial": turn.partial,
        "plan": dict(turn.plan),
        "cases": turn.cases,
        **figures,
        "changes": None if turn.before is None else {str(kind): turn.changes.get(kind, 0) for kind in Kind},
    }


def changes_words(turn: Turn) -> str:
    """Return what changed since the run before, in a few words."""
    if turn.before is None:
        return "first run"
    suite = [f"suite {printable(turn.suite)}"] if turn.before.suite != turn.suite else []
    found = [counted(turn.changes[kind], *words) for kind, words in _CHANGES.items() if turn.changes.get(kind)]
    return ", ".join([*suite, *found]) or NOTHING


_CHANGES: Mapping[Kind, tuple[str, str]] = {
    Kind.REGRESSION: ("regression", "regressions"),
    Kind.FIX: ("fix", "fixes"),
    Kind.OTHER_FAILURE: ("other failure", "other failures"),
    Kind.SUPPORT_LOST: ("support lost", "support lost"),
    Kind.SUPPORT_GAINED: ("support gained", "support gained"),
    Kind.SILENCE: ("silence", "silences"),
    Kind.EXPECTATION: ("expectation changed", "expectations changed"),
    Kind.NEW: ("new", "new"),
    Kind.GONE: ("gone", "gone"),
    Kind.OTHER: ("other", "other"),
}


def _by_series(found: Sequence[Turn]) -> list[list[Turn]]:
    by_series: dict[int, list[Turn]] = {}
    for turn in found:
        by_series.setdefault(turn.series, []).append(turn)
    return list(by_series.values())


def _series_words(turn: Turn) -> str:
    words = plan_words(turn.plan)
    return printable(turn.backend if words == "everything" else f"{turn.backend}, {words}")


def _runs(series: Sequence[Turn]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    labels = ["label"] if any(turn.label for turn in series) else []
    for column in ("run", "date", "version", *labels, "cases", "correct", "support", "refusal", "failures"):
        left = column in _LEFT
        table.add_column(column, justify="left" if left else "right", no_wrap=not left, overflow="fold")
    table.add_column("since the run before", overflow="fold")
    for turn in series:
        table.add_row(*map(Text, _cells(turn, bool(labels))))
    return table


def _cells(turn: Turn, labels: bool) -> list[str]:
    figures = turn.figures
    shares = [percent(share) for share in (figures.correctness, figures.support, figures.refusal)]
    version = printable(turn.version) + (" *" if turn.other_version else "")
    cases = f"{turn.cases:,}" + (" (part)" if turn.partial else "")
    told = [str(turn.run), _moment(turn.started), version]
    told += [printable(turn.label or "")] if labels else []
    return [*told, cases, *shares, f"{figures.failed:,}", changes_words(turn)]


def _moment(started: str) -> str:
    return started[:16].replace("T", " ")


def _stay_lines(stay: Stay, before: Stay | None) -> Iterator[str]:
    until = "until now" if stay.lasts else f"to run {stay.last.run} ({_moment(stay.last.started)})"
    level = " as declared" if stay.state.level == "declared" else ""
    asked = ", another expectation" if before is not None and before.question != stay.question else ""
    yield (
        f"{stay.state.outcome}{level} from run {stay.first.run} ({_moment(stay.first.started)}, "
        f"version {printable(stay.first.version)}) {until}{asked}"
    )
    taken = [f"{name}: {' or '.join(options)}" for name, options in stay.state.silences.items() if options]
    if taken:
        yield f"  {printable('; '.join(taken))}"
    if stay.detail:
        yield f"  {printable(stay.detail.splitlines()[0])}"


def _stay_json(stay: Stay) -> dict[str, Any]:
    state = stay.state
    told = {"outcome": str(state.outcome), "behaviour": state.silences, "reason": state.reason, "level": state.level}
    return {
        "backend": stay.backend,
        "plan": dict(stay.plan),
        **told,
        "detail": stay.detail,
        "first": _place(stay.first),
        "last": _place(stay.last),
        "lasts": stay.lasts,
    }


def _place(turn: Turn) -> dict[str, Any]:
    return {"run": turn.run, "started": turn.started, "version": turn.version}

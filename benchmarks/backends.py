"""`python -m benchmarks.backends RESULTS... > docs/generated/backends.md`: results of whole runs, by operator.

RESULTS are folders of `opconform run`, of one backend or of several; a folder of such folders has the shards of a run.
`--table` only prints the first table, from the shards that exist, for docs/third-parties.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opconform.cases.results import Outcome
from opconform.reports.runs import put_together
from opconform.reports.tables import count
from opconform.reports.tally import Figures
from opconform.reports.text import percent

_HEAD = (
    "<!-- Made by `python -m benchmarks.backends`. -->",
    "# Every backend on every case",
    "",
    "[Findings](../findings.md) lists the defects behind the failures, and [third parties](../third-parties.md) the",
    "defects of nxrt, tract and OpenCV.",
    "Correctness is the share of right answers among the judged cases, support the share of valid inputs that were",
    "judged, and refusal the share of invalid inputs that were refused.",
    "",
)
_OPERATORS = (
    "",
    "## By operator",
    "",
    "Correctness in percent, of all versions of an operator; after the slash support, if below 100. Empty: nothing was",
    "judged. Backends of one operator and [older releases](../releases.md) have no column. A cell of",
    "[the site](../site.md) of a run leads to the cases.",
    "",
)
_OUTCOMES = tuple(outcome for outcome in Outcome if outcome not in (Outcome.RUNNER_ERROR, Outcome.WAIVED))


@dataclass(frozen=True)
class _Run:
    """A run of one backend: its title, its start, its figures, and the figures of each operator."""

    title: str
    started: str
    whole: Figures
    operators: dict[str, Figures]


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backends", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    runs = [run for folder in arguments.folders for run in _read(folder, partial=arguments.table)]
    print("\n".join(_outcomes_of(runs) if arguments.table else _page(runs)))


def _read(folder: Path, *, partial: bool) -> Iterator[_Run]:
    shards = sorted(part.parent for part in folder.glob("*/run.json"))
    for whole in put_together(shards or [folder], partial=partial):
        tally = count([whole]).tables.tally
        for backend in tally.backends:
            operators: dict[str, Figures] = {}
            for version, figures in tally.operator_versions(backend).items():
                name = version.rpartition("-")[0] or version
                operators[name] = operators.get(name, Figures()) + figures
            told = whole.parts[0].run_json
            name = told["backends"][backend]["facts"].get("program", backend).partition("==")[0]
            title = f"{name} {whole.versions[backend]}"
            yield _Run(title, str(told["started"]), tally.figures(backend), operators)


def _page(runs: Sequence[_Run]) -> Iterator[str]:
    yield from _HEAD
    days = sorted({run.started[:10] for run in runs})
    largest = max(run.whole.cases for run in runs)
    yield (
        f"Runs of the whole default suite as it was on {' to '.join(dict.fromkeys((days[0], days[-1])))}, "
        f"with up to {largest:,} cases for a backend."
    )
    yield ""
    yield from _outcomes_of(runs)
    yield from _OPERATORS
    newest: dict[str, _Run] = {}
    for run in runs:
        newest.setdefault(run.title.partition(" ")[0], run)
    shown = [run for run in newest.values() if len(run.operators) > 1]
    names = sorted(
        {name for run in shown for name in run.operators}, key=lambda name: (name.partition("/")[0] != "onnx", name)
    )
    rows = ((name.removeprefix("onnx/"), *(_cell(run.operators.get(name)) for run in shown)) for name in names)
    yield from _table(("operator", *(run.title for run in shown)), rows)


def _outcomes_of(runs: Sequence[_Run]) -> Iterator[str]:
    return _table(("backend", *_OUTCOMES, "correctness", "support", "refusal"), map(_outcomes, runs))


def _outcomes(run: _Run) -> tuple[str, ...]:
    counts = (f"{run.whole.outcomes.get(outcome, 0):,}" for outcome in _OUTCOMES)
    shares = (percent(share) for share in (run.whole.correctness, run.whole.support, run.whole.refusal))
    return run.title, *counts, *shares


def _cell(figures: Figures | None) -> str:
    if figures is None or not figures.judged:
        return ""
    shares = (percent(share).removesuffix("%") for share in (figures.correctness, figures.support))
    return "/".join(shares).removesuffix("/100")


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| --- |{' ---: |' * (len(head) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()

"""`python -m benchmarks.history` from a checkout: an invented year of nightly runs, its size on disk, and its speed.

Each night some cases flip. Every thirtieth night the backends have new versions, and one expectation in a hundred
changes. These nights, the first and the last are added from results folders; the flips of the others are written to the
database as `add` would write them, unless `--from-files` is given.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from opconform.reports.history.compare import compared, opened
from opconform.reports.history.database import (
    COUNTS,
    OPEN,
    History,
    add,
    reading,
    writing,
)
from opconform.reports.history.show import changes_of, results, stays, turns
from opconform.reports.runs import Terms, terms_to_dict

_TYPES = ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8", "bool")
_SHAPES = ("3x2x2", "scalar", "1", "2x0x3", "8x8", "64x3", "5x4x3x2")
_SETTINGS = ("-", "axes=-2;keepdims=0", "axes=0,1", "axes=none", "alpha=0.5;beta=2", "mode=linear")
_FILLS = ("uniform", "ramp", "normal", "large", "inexact", "subnormal")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--runs", type=int, default=365, help="number of nights (default 365)")
    parser.add_argument("--cases", type=int, default=100_000, help="cases of each backend (default 100,000)")
    parser.add_argument("--backends", type=int, default=10, help="number of backends (default 10)")
    parser.add_argument("--flips", type=int, default=50, help="cases of each backend that change a night (default 50)")
    parser.add_argument("--from-files", action="store_true", help="add every night from a results folder")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opconform-history-") as place:
        for line in measured(Path(place), chosen):
            print(line, flush=True)


def measured(place: Path, chosen: argparse.Namespace) -> Iterator[str]:
    """Yield the lines that are printed."""
    db, made = place / "history.duckdb", Made(chosen.cases, chosen.backends, chosen.flips)
    folder = place / "results"
    spent: list[float] = []
    for night in range(chosen.runs):
        if night:
            made.change(night)
        if chosen.from_files or night % 30 == 0 or night + 1 == chosen.runs:
            shutil.rmtree(folder, ignore_errors=True)
            made.write(folder, night)
            busy = time.process_time()
            spent.append(_seconds(lambda: add(db, [folder])))
            busy = time.process_time() - busy
            size = db.stat().st_size / (1 << 20)
            took = f"{spent[-1]:.2f} s, {busy:.2f} s of processor time"
            yield f"after {night + 1:3} runs: {size:7.1f} MiB; the last add took {took}"
        else:
            with writing(db) as history:
                made.flip(history, night)
    yield f"adding {chosen.cases * chosen.backends:,} results: median {statistics.median(spent):.2f} s"
    for name, query in _queries(db, made.cases[7], chosen.runs):
        busy = time.process_time()
        yield f"{name}: {_seconds(query):.2f} s, {time.process_time() - busy:.2f} s of processor time"
    for old, new in ((f"{db}:1", f"{db}:last"), (f"{db}:1", str(folder)), (str(folder), str(folder))):
        names = ["a run of the history" if name.startswith(f"{db}:") else "a folder" for name in (old, new)]
        started = time.perf_counter()
        _compare(old, new)
        yield f"compare {' with '.join(names)}: {time.perf_counter() - started:.1f} s"


def _queries(db: Path, case: str, runs: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield queries by name; each opens the database."""

    def asked(query: Callable[..., object]) -> Callable[[], object]:
        def ask() -> None:
            with reading(db) as history:
                query(history)

        return ask

    yield "all runs with figures and changes", asked(turns)
    yield "the same of one operator", asked(lambda history: turns(history, globs=["onnx/Operator1-*"]))
    yield "the same of one type", asked(lambda history: turns(history, globs=["*/float32/*"]))
    yield "one case over time", asked(lambda history: stays(history, case))
    yield "what changed last", asked(lambda history: changes_of(history, turns(history)[-1]))
    middle = (runs + 1) // 2
    one = asked(lambda history: sum(1 for _ in results(history, middle, ["backend0"])))
    yield "all results of one backend in the run in the middle", one


def _compare(old: str, new: str) -> None:
    with opened(old) as one, opened(new) as other:
        compared(one, other)


def _seconds(query: Callable[[], object]) -> float:
    started = time.perf_counter()
    query()
    return time.perf_counter() - started


@dataclass(frozen=True)
class _Kept:
    """An invented case: the part of its line after the backend's name if it passes, fails and is not supported."""

    head: str
    tails: tuple[str, str, str]


class Made:
    """An invented suite and backends: 92 % of the cases pass, 5 % are not supported, 3 % fail."""

    def __init__(self, cases: int, backends: int, flips: int) -> None:
        self._random = random.Random(7)
        self._flips = flips
        self.cases = [_case(number) for number in range(cases)]
        self._flipped: list[tuple[str, str, str]] = []
        self._lines = [_kept(case, 0) for case in self.cases]
        self._backends = [f"backend{number}" for number in range(backends)]
        self._answers = [self._random.choices((0, 1, 2), (92, 3, 5), k=cases) for _ in self._backends]

    def write(self, folder: Path, night: int) -> None:
        """Write the results folder of a night."""
        folder.mkdir()
        told = {
            "status": "finished",
            "started": _moment(night),
            "suite": {"version": f"0.{night // 30}.0", "digest": str(night // 30)},
            "backends": {name: {"version": f"1.{night // 30}", "facts": {}} for name in self._backends},
            "planned": dict.fromkeys(self._backends, len(self.cases)),
            "terms": terms_to_dict(Terms()),
        }
        (folder / "run.json").write_text(json.dumps(told))
        with (folder / "results.jsonl").open("w") as lines:
            for name, answers in zip(self._backends, self._answers, strict=True):
                middle = f',"backend":"{name}",'
                lines.writelines(
                    kept.head + middle + kept.tails[answer] for kept, answer in zip(self._lines, answers, strict=True)
                )

    def change(self, night: int) -> None:
        """Change some answers for a night, and occasionally some cases."""
        self._flipped = []
        for name, answers in zip(self._backends, self._answers, strict=True):
            for number in set(self._random.choices(range(len(answers)), k=self._flips)):
                answers[number] = self._random.choice((0, 1, 2))
                self._flipped.append((name, self.cases[number], _OUTCOMES[answers[number]]))
        if night % 30 == 0:
            for number in self._random.choices(range(len(self.cases)), k=len(self.cases) // 100):
                self._lines[number] = _kept(self.cases[number], night)

    def flip(self, history: History, night: int) -> None:
        """Write a night's flips to the database."""
        backends, cases, outcomes = zip(*self._flipped, strict=True) if self._flipped else ((), (), ())
        history.table("flipped", backend=backends, name=cases, outcome=outcomes)
        history.run(_OLD, [OPEN])
        history.run("UPDATE span SET until = ? WHERE rowid IN (SELECT place FROM old)", [night])
        history.run(_NEW, [night, OPEN])
        history.run(_RUN, [night])
        history.run(_TURN, [night, night + 1, _moment(night), OPEN, night - 1])


_OUTCOMES = ("pass", "wrong-value", "unsupported")
_OLD = """
CREATE OR REPLACE TEMP TABLE old AS
SELECT span.rowid AS place, span.*, behaviour, flipped.outcome AS flipped
FROM flipped JOIN series USING (backend) JOIN cases USING (name)
JOIN span ON span.series = series.series AND span."case" = cases."case" AND until = ?
JOIN state USING (state) WHERE state.outcome <> flipped.outcome
"""
_NEW = """
INSERT INTO span SELECT series, "case", question, s.state, ?, ?, CASE WHEN flipped <> 'pass' THEN 'flipped' END
FROM old JOIN state s ON s.outcome = old.flipped AND s.behaviour = old.behaviour ORDER BY series, "case"
"""
_RUN = "INSERT INTO run SELECT run + 1, label, suite, suite_digest, partial FROM run WHERE run = ?"
_TURN = f"""
INSERT INTO turn SELECT series, ?, ?, ?, version, told, {", ".join(COUNTS)}
FROM (SELECT series, {", ".join(f"sum({name}) AS {name}" for name in COUNTS)}
  FROM span JOIN state USING (state) WHERE until = ? GROUP BY series)
JOIN (SELECT series, version, told FROM turn WHERE turn = ?) USING (series)
"""


def _moment(night: int) -> str:
    return (dt.datetime(2026, 1, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=night)).isoformat(timespec="seconds")


def _case(number: int) -> str:
    """Return an id that is long enough."""
    place, fill = divmod(number, len(_FILLS))
    place, setting = divmod(place, len(_SETTINGS))
    place, kind = divmod(place, len(_TYPES))
    operator, rest = place % 203, place // 203
    shape = _SHAPES[rest % len(_SHAPES)]
    draw = f";draw={rest}" if rest else ""
    return (
        f"onnx/Operator{operator}-{1 + operator % 22}/{_TYPES[kind]}/{shape}/{_SETTINGS[setting]}{draw}/{_FILLS[fill]}"
    )


def _kept(case: str, night: int) -> _Kept:
    asked, expected = (hashlib.sha256(f"{what}{case}".encode()).hexdigest() for what in ("case", night))
    tails = []
    for outcome, reason, detail, level in (
        ("pass", None, None, "strict"),
        ("wrong-value", None, f"element [{len(case)}]: got {asked[:6]}, want {expected[:6]}", None),
        ("unsupported", "type", "NOT_IMPLEMENTED: could not find an implementation", None),
    ):
        told = {
            "outcome": outcome,
            "behaviour": {"accumulator": ["wide", "stepwise"]} if len(case) % 3 == 0 else {},
            "reason": reason,
            "detail": detail,
            "bound_ratio": 0.25,
            "level": level,
            "clauses": ["onnx/Operator#mean", "onnx/Operator#axes-given"],
            "case_digest": asked,
            "expectation_digest": expected,
            "seconds": 0.000123,
        }
        tails.append(json.dumps(told, separators=(",", ":"))[1:] + "\n")
    return _Kept(json.dumps({"case": case})[:-1].replace(": ", ":"), (tails[0], tails[1], tails[2]))


if __name__ == "__main__":
    main()

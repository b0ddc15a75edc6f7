"""Failures in a program that ran before are confirmed: each is proven, and what only used programs do is told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from fakes.backends import Right
from fakes.here import HostsHere

from opconform.cases.batch import Batch, Bounds, Check, Expectation, Flag, Option
from opconform.cases.elements import Array
from opconform.cases.program import OperatorVersion, Output, Program
from opconform.generators.source import GeneratedCases
from opconform.runners.execution.execute import Worker

CASES = ["onnx/ReduceMean-13/int32/7/-/uniform"]
CASES += [f"onnx/ReduceMean-13/int32/7/draw={draw}/uniform" for draw in range(1, 12)]


@dataclass
class Mean:
    """A mean that is off by `errors[n]` at a program's n-th run, and by the last of these from then on."""

    errors: Sequence[int]
    prepared: list[Once] = field(default_factory=list)
    name: str = "mean"
    standards: tuple[str, ...] = ("onnx",)

    def version(self) -> str:
        return "1"

    def prepare(self, _program: Program, /) -> Once:
        self.prepared.append(Once(self.errors))
        return self.prepared[-1]


class Together(Right):
    """Answers programs that run together `wrong` by so much, and refuses to run those of `alone`."""

    def __init__(self, wrong: int, alone: str = "") -> None:
        self.wrong, self.alone, self.sizes = wrong, alone, list[int]()

    def run_together(self, runs: Sequence[tuple[Program, Sequence[Array]]]) -> Sequence[Sequence[Array] | None]:
        self.sizes.append(len(runs))
        return [
            None if program.inputs[0].type == self.alone else [y + y.dtype.type(self.wrong) for y in found]  # type: ignore[union-attr]
            for program, inputs in runs
            for found in [self.prepare(program).run(inputs)]
        ]


@dataclass
class Once:
    errors: Sequence[int]
    runs: int = 0

    def run(self, inputs: Sequence[Array], /) -> Sequence[Array]:
        error = self.errors[min(self.runs, len(self.errors) - 1)]
        self.runs += 1
        mean = np.trunc(inputs[0].sum(dtype=np.float64) / inputs[0].size).astype(np.int32)
        return [np.reshape(mean + error, (1,)).astype(np.int32)]


def results(runner: Mean) -> list[dict[str, Any]]:
    return results_of(runner, CASES)


def results_of(runner: Any, cases: Sequence[str]) -> list[dict[str, Any]]:
    worker = Worker(HostsHere(runner), runner.name, GeneratedCases(), {})
    return [json.loads(line) for line in worker.run(cases, lambda _place, _phase: None)]


def test_the_first_failures_of_a_program_are_run_on_fresh_ones_and_all_others_on_one_more() -> None:
    runner = Mean([50])
    found = results(runner)
    assert {one["outcome"] for one in found} == {"wrong-value"}
    assert not any("state leaks" in one["detail"] for one in found)
    # the cases stand in one batch and share the first program, which was fresh for the first of them
    assert [program.runs for program in runner.prepared] == [12, 1, 1, 1, 8]


def test_what_only_used_programs_do_is_told_of_every_case() -> None:
    found = results(Mean([0, 50]))
    assert found[0]["outcome"] == "pass"
    assert all("state leaks between runs" in one["detail"] for one in found[1:])


def test_what_a_program_does_to_later_failures_alone_is_not_taken_for_proof() -> None:
    runner = Mean([50, 50, 50, 50, 50, 90])  # from the sixth run on off by more: on a fresh one by one
    details = [one["detail"] for one in results(runner)]
    fresh = [one["detail"] for one in results(Mean([50]))]
    assert details == fresh


ALONE = [f"onnx/ReduceMean-13/{type_}/2x2/axes=1/ramp" for type_ in ("float32", "float64")]
"""Cases of programs that have no other."""


@pytest.mark.parametrize(("wrong", "alone"), [(0, ""), (1, ""), (1, "float64")])
def test_only_what_a_program_answers_alone_fails_a_case(wrong: int, alone: str) -> None:
    runner = Together(wrong, alone)
    found = results_of(runner, ALONE)
    assert runner.sizes == [2]
    assert [(one["outcome"], one["detail"]) for one in found] == [("pass", None)] * 2


class LeakyTogether(Together):
    """Answers wrong together, and alone with `errors`, run by run."""

    def __init__(self, errors: Sequence[int]) -> None:
        super().__init__(1)
        self.errors, self.prepared = errors, list[Once]()

    def prepare(self, program: Program, /) -> Any:
        self.prepared.append(Once(self.errors))
        return self.prepared[-1] if program.given[0].type == "int32" else super().prepare(program)


def test_a_program_that_fails_together_runs_all_its_cases_alone_so_that_a_leak_between_them_shows() -> None:
    clean, leaky = (results_of(LeakyTogether(errors), [*CASES, *ALONE]) for errors in ([0], [0, 50]))
    assert {one["outcome"] for one in clean} == {"pass"}
    assert [one["case"] for one in leaky if "state leaks between runs" in (one["detail"] or "")] == CASES[1:]


def test_a_program_that_runs_more_than_once_runs_with_others_and_an_invalid_one_alone() -> None:
    runner = Together(0)
    invalid = "onnx/ReduceMean-13/int32/3x2x2/axes=3/ramp/axis-too-large"
    worker = Worker(HostsHere(runner), "together", GeneratedCases(), {})
    assert len(list(worker.run([*CASES, invalid, *ALONE], lambda _place, _phase: None))) == len(CASES) + 3
    assert runner.sizes == [len(CASES) + 1 + len(ALONE)]  # with the valid sibling of the invalid one


class Seeded:
    """A generator whose state goes on from run to run; with a `drift`, each program begins elsewhere."""

    def __init__(self, drift: int) -> None:
        self.name, self.standards, self.drift, self.programs = "seeded", ("onnx",), drift, 0

    def version(self) -> str:
        return "1"

    def prepare(self, _program: Program, /) -> Drawn:
        self.programs += 1
        return Drawn(self.drift * self.programs)


@dataclass
class Drawn:
    state: int

    def run(self, _inputs: Sequence[Array], /) -> Sequence[Array]:
        self.state += 1
        return [np.float32([self.state])]


class OneSeed:
    """Three cases of a program that must draw the same whenever it is new."""

    def case(self, text: str, /) -> Batch:
        return next(self.batches([text])).case(0)

    def batches(self, texts: Sequence[str], /) -> Iterator[Batch]:
        lanes = len(texts)
        free = Bounds("float32", *[np.zeros((lanes, 1))] * 3, np.full((lanes, 1), Flag.FREE, np.uint8))
        option = Option((), (free,), applies=np.ones(lanes, bool), checks=(Check("same-seed", ()),))
        program = Program(OperatorVersion("onnx", "RandomUniform", 1), (), (), (Output("Y", "float32", 1),), 13)
        yield Batch(tuple(texts), program, (), Expectation((option,), ("float32",), lanes))


@pytest.mark.parametrize(("drift", "outcome"), [(0, "pass"), (1, "wrong-value")])
def test_what_a_seed_gives_is_drawn_again_by_a_fresh_program(drift: int, outcome: str) -> None:
    worker = Worker(HostsHere(Seeded(drift)), "seeded", OneSeed(), {})
    found = [json.loads(line) for line in worker.run(["a", "b", "c"], lambda _place, _phase: None)]
    assert [one["outcome"] for one in found] == [outcome] * 3

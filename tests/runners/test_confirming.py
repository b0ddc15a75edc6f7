"""Failures in a program that ran before are confirmed: each is proven, and what only used programs do is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fakes.here import HostsHere

from opconform.cases.elements import Array
from opconform.cases.program import Program
from opconform.generators.source import GeneratedCases
from opconform.runners.execute import Worker

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
    worker = Worker(HostsHere(runner), "mean", GeneratedCases(), {})
    return [json.loads(line) for line in worker.run(CASES, lambda _place, _phase: None)]


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

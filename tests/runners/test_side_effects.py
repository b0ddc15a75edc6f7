"""What a run does beside answering fails it: its inputs stay what they were, and so does the answer before."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from fakes.backends import Right
from fakes.fragile_backends import ChangesLater, HandsOutItsInput, OneBuffer, OverwritesInputs
from fakes.here import HostsHere, run_here

from opconform.cases.results import Outcome, Result, result_from_json
from opconform.cli import main
from opconform.generators.source import GeneratedCases
from opconform.reports.folder import inflated
from opconform.reports.site.case_lists import unpacked
from opconform.runners.execution.execute import Worker
from opconform.runners.execution.host import Hosts, Request
from opconform.runners.judging.answers import Answer
from opconform.runners.judging.kept import judged_anew, same_verdict
from opconform.runners.pool import Limits
from opconform.runners.registry import backend_spec

CASES = ["onnx/ReduceMean-13/float32/3x4/axes=1/uniform"]
CASES += [f"onnx/ReduceMean-13/float32/3x4/axes=1;draw={draw}/uniform" for draw in range(1, 4)]
SOURCE = GeneratedCases()


def results(runner: Right, cases: list[str] = CASES) -> list[Result]:
    worker = Worker(HostsHere(runner), runner.name, SOURCE, {})
    return [result_from_json(line) for line in worker.run(cases, lambda _place, _phase: None)]


def test_a_run_that_writes_to_its_inputs_fails_and_says_which_element() -> None:
    for result in results(OverwritesInputs()):
        assert (result.outcome, result.reason) == (Outcome.WRONG_VALUE, "input-overwritten")
        (data,) = SOURCE.case(result.case).tensors()
        told = f"element [2, 3] was {data[2, 3]!s}, then {data[2, 3] + np.float32(1)!s} (1 of 12 changed)"
        assert result.detail == f"this run wrote to its input data: {told}"


@pytest.mark.parametrize("runner", [OneBuffer(), ChangesLater()])
def test_a_run_that_changes_the_answer_before_fails_and_says_which(runner: Right) -> None:
    first, *others = results(runner)
    assert first.outcome is Outcome.PASS
    for before, result in zip(CASES, others, strict=False):
        assert (result.outcome, result.reason) == (Outcome.WRONG_VALUE, "answer-changed")
        assert result.detail is not None
        assert "changed the previous answer: output 0, element [0, 0] was " in result.detail
        assert result.detail.endswith(f"(3 of 3 changed); it is that to {before}")


def test_a_wrong_answer_is_told_before_what_its_run_did_beside_it() -> None:
    class Both(OverwritesInputs):
        def reduce(self, *given: Any) -> np.ndarray[Any, Any]:
            return np.asarray(super().reduce(*given) + 9)

    for result in results(Both()):
        first, *_, last = (result.detail or "").splitlines()
        assert (result.outcome, result.reason) == (Outcome.WRONG_VALUE, None)
        assert first.startswith("element [0, 0]: got")
        assert last.startswith("this run wrote to its input")


@pytest.mark.parametrize("runner", [Right(), HandsOutItsInput()])
def test_honest_backends_are_not_blamed(runner: Right) -> None:
    same = [f"onnx/ReduceMean-18/float32/3x4/axes=none;draw={draw};noop_with_empty_axes=1/uniform" for draw in (1, 2)]
    assert {result.outcome for result in results(runner, [*CASES, *same, CASES[0], CASES[0]])} == {Outcome.PASS}


def test_what_runs_between_two_cases_is_no_next_run() -> None:
    (case,) = SOURCE.batches(CASES[:1])
    hosts = HostsHere(OneBuffer())
    asked = [Request(0, case.program, case.tensors(), fresh) for fresh in ("shared", "own", "shared")]
    assert [hosts.reply(place).effects for place in hosts.ask(asked)] == [(), (), ()]


def test_a_backend_in_its_own_process_is_looked_at_as_well() -> None:
    (case, other, *_) = SOURCE.batches(CASES[:1]), SOURCE.batches(CASES[1:2])
    (one,), (two,) = case, other
    with Hosts(backend_spec("python:fakes.fragile_backends:OneBuffer"), Limits()) as hosts:
        places = hosts.ask([Request(0, batch.program, batch.tensors()) for batch in (one, two)])
        effects = [hosts.reply(place).effects for place in places]
    assert [[(effect.reason, effect.before) for effect in found] for found in effects] == [
        [],
        [("answer-changed", places[0])],
    ]


def test_judged_again_it_stays_a_failure() -> None:
    (result,) = results(OverwritesInputs(), CASES[:1])
    (case,) = SOURCE.batches(CASES[:1])
    (data,) = case.tensors()
    answer = data.astype(np.float64).mean(axis=1, keepdims=True).astype(np.float32)
    assert same_verdict(judged_anew(result, case, Answer((answer,)), required={}, before={}), result)
    assert (result.outcome, result.reason) == (Outcome.WRONG_VALUE, "input-overwritten")


@pytest.mark.slow
def test_a_run_shows_it_everywhere(tmp_path: Path) -> None:
    backend, out, site = "python:fakes.fragile_backends:OneBuffer", tmp_path / "out", tmp_path / "site"
    with run_here():
        words = [word for case in CASES[:2] for word in ("--select", case)]
        done = CliRunner().invoke(main, ["run", backend, *words, "--out", str(out)])
        made = CliRunner().invoke(main, ["report", str(out), "--html", str(site)])
    assert (done.exit_code, made.exit_code) == (1, 1)
    said = " ".join(done.output.split())
    assert f"wrong-value {CASES[1]} on" in said
    assert f"it is that to {CASES[0]}" in said
    assert f"reproduce: opconform run {backend} --select '{CASES[0]}' --select '{CASES[1]}'" in said
    told = json.loads(inflated((out / "certificates.jsonl").read_bytes().splitlines()[-1], 1 << 20) or b"")
    assert set(told["also_fails"]) == {"input-overwritten", "answer-changed"}
    chunks = [re.search(r',"(.*)"\);', file.read_text()) for file in (site / "data" / "cases").glob("chunk-*.js")]
    assert any(b"answer-changed" in unpacked(chunk[1]) for chunk in chunks if chunk)

from __future__ import annotations

from typing import Any

import pytest
from fakes.here import run_here
from fakes.results import no_json, of_failures, raises, told

from opconform.generators.source import GeneratedCases
from opconform.runners.execution.execute import Assignment
from opconform.runners.execution.host import About
from opconform.runners.execution.running import Judged, run_cases
from opconform.runners.pool import Limits
from opconform.runners.registry import backend_spec

FRACTION = "onnx/ReduceMean-13/int32/2x2/axes=1/halves/fraction"
UNSORTED = "onnx/ReduceMean-13/uint32/3x2x2/axes=2,0/ramp/axes-unsorted"
INVALID = "onnx/ReduceMean-13/int32/3x2x2/axes=3/ramp/axis-too-large"
LIMITS = Limits(run_seconds=20)


def judged(backend: str, cases: list[str], **attach: Any) -> dict[str, Judged]:
    assignment = Assignment(backend_spec(f"python:fakes.backends:{backend}"), GeneratedCases(), attach=attach)
    found = list(run_cases(assignment, [cases], jobs=1, limits=LIMITS))
    assert isinstance(found[0], About)
    return {one.result.case: one for one in found[1:] if isinstance(one, Judged)}


@pytest.mark.slow
def test_an_attachment_is_made_of_case_verdict_and_outputs() -> None:
    found = judged("WrongOnUint32", [FRACTION, UNSORTED], told=told)
    assert found[FRACTION].attachments == {"told": {"case": FRACTION, "outcome": "pass", "outputs": [[[3], [-3]]]}}
    assert found[UNSORTED].result.outcome == "wrong-value"
    assert found[UNSORTED].attachments["told"]["outcome"] == "wrong-value"


@pytest.mark.slow
def test_nothing_travels_where_nothing_is_attached() -> None:
    found = judged("WrongOnUint32", [FRACTION, UNSORTED], only=of_failures)
    assert found[FRACTION].attachments == {}
    assert found[UNSORTED].attachments == {"only": "a text with a \t and a \n"}
    with run_here():
        assert judged("Right", [FRACTION])[FRACTION].attachments == {}


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "outcome"), [("Crashes", "crash"), ("Raises", "error")])
def test_where_no_answer_came_there_is_nothing_to_attach(backend: str, outcome: str) -> None:
    found = judged(backend, [FRACTION, INVALID], told=told)
    assert found[FRACTION].result.outcome == outcome
    assert found[FRACTION].attachments == {}
    assert found[INVALID].attachments == {}


def test_an_attachment_that_fails_is_told_and_costs_nothing_else() -> None:
    made = {"broken": raises, "loose": no_json, "told": told}
    with run_here():
        found = judged("Right", [FRACTION], **made)[FRACTION]
    assert found.result.outcome == "pass"
    assert "nothing comes of it" in found.attachments["broken"]["failed"]
    assert "not JSON compliant" in found.attachments["loose"]["failed"]
    assert found.attachments["told"]["case"] == FRACTION


@pytest.mark.slow
def test_an_answer_is_attached_as_it_was_judged_though_its_memory_is_used_again() -> None:
    first, again = (f"onnx/ReduceMean-13/int32/7/{draw}/uniform" for draw in ("-", "draw=1"))
    found = judged("LeaksIntoOneBuffer", [first, again], told=told)
    with run_here():
        right = judged("Right", [again], told=told)[again].attachments["told"]["outputs"][0]
    assert "state leaks between runs" in (found[again].result.detail or "")
    assert found[again].attachments["told"]["outputs"] == [[right[0] + 1]]

"""What cases that share a process do to each other, and what a process of its own changes."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.sampled import slow

from opconform.cli import main
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.runners.execution import running
from opconform.runners.execution.execute import ABOUT, Assignment, Death, Isolation
from opconform.runners.execution.host import About, HostFactory
from opconform.runners.execution.running import Judged, events_of, run_cases
from opconform.runners.judging.accuracy import attach_accuracy
from opconform.runners.judging.kept import KeepOutputs
from opconform.runners.pool import Limits, WorkerStartError
from opconform.runners.registry import BackendSpec, backend_spec

SOURCE = GeneratedCases()
LIMITS = Limits(run_seconds=30)


HALF, SINGLE, DOUBLE = (f"onnx/Mean-13/{type_}/scalar/-/uniform" for type_ in ("float16", "float32", "float64"))


def found(
    backend: str, cases: list[str], isolation: Isolation = "program", limits: Limits = LIMITS
) -> tuple[dict[str, Any], list[Death]]:
    """Return outcomes by case and unexplained deaths of a run of one case after the other."""
    kept = {"outputs": KeepOutputs(), "accuracy": attach_accuracy}  # as a run has them
    fragile = backend_spec(f"python:fakes.fragile_backends:{backend}")
    assignment = Assignment(fragile, SOURCE, attach=kept, isolation=isolation)
    told = list(run_cases(assignment, [[case] for case in cases], jobs=1, limits=limits))
    outcomes = {one.result.case: one.result.outcome for one in told if isinstance(one, Judged)}
    assert sorted(outcomes) == sorted(cases)
    return outcomes, [one for one in told if isinstance(one, Death)]


@pytest.mark.slow
def test_a_case_is_not_charged_with_what_an_earlier_one_broke_and_the_death_is_told() -> None:
    outcomes, deaths = found("BreaksTheNext", [SINGLE, HALF, DOUBLE])
    assert Counter(outcomes.values()) == {"pass": 3}
    (death,) = deaths
    assert death.backend == "python:fakes.fragile_backends:BreaksTheNext"
    assert (death.case, death.kind, death.exit) == (DOUBLE, "crash", "signal SIGSEGV")
    assert death.before == (SINGLE, HALF)
    assert death.tail == "something is broken here"


@pytest.mark.slow
def test_a_backend_that_searches_its_process_finds_nothing_that_is_expected() -> None:
    outcomes, deaths = found("Searches", [SINGLE, HALF, DOUBLE])
    assert Counter(outcomes.values()) == {"pass": 3}
    assert not deaths


@pytest.mark.slow
def test_with_a_process_a_case_none_suffers_from_another() -> None:
    outcomes, deaths = found("BreaksTheNext", [HALF, SINGLE, DOUBLE], "case")
    assert Counter(outcomes.values()) == {"pass": 3}
    assert not deaths


@pytest.mark.slow
def test_what_a_process_keeps_shows_only_where_cases_share_it() -> None:
    cases = [SINGLE, *(f"onnx/Mean-13/float32/scalar/draw={draw}/uniform" for draw in range(1, 6))]
    shared, _ = found("Counts", cases)
    apart, _ = found("Counts", cases, "case")
    assert set(shared.values()) != {"pass"}
    assert set(apart.values()) == {"pass"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["onnxruntime", "onnx-reference", "openvino", "onednn"])
def test_a_backend_of_this_package_answers_from_workers_that_are_forked_and_dismissed(name: str) -> None:
    library = {"onnx-reference": "onnx", "onednn": "opconform"}.get(name, name)
    pytest.importorskip(library)
    try:
        backend = backend_spec(name)
    except Exception as error:  # its library is no module
        pytest.skip(str(error))
    operator = {"openvino": "openvino/ReduceMean-1", "onednn": "onednn/ReduceMean-any"}.get(name, "onnx/ReduceMean-13")
    cases = list(planned(SOURCE.library, Selection((f"{operator}/float32*",))))[:4]
    for isolation in ("program", "case"):
        told = list(run_cases(Assignment(backend, SOURCE, isolation=isolation), [cases], jobs=2, limits=LIMITS))
        results = [one.result for one in told if isinstance(one, Judged)]
        assert sorted(result.case for result in results) == sorted(cases)
        assert not {result.outcome for result in results} & {"timeout", "runner-error"}


def test_only_libraries_that_bear_it_are_imported_before_forking() -> None:
    assert backend_spec("onnx-reference").preload
    assert backend_spec("python:fakes.fragile_backends:Counts").preload == ()
    assert backend_spec("onnx-backend:fakes.fragile_backends").preload == ()


def test_warming_imports_what_the_backend_names_and_passes_over_what_is_not_there() -> None:
    backend = BackendSpec("mine", "plug-in", "mine:Mine", preload=("fakes.no_such_module", "fakes.fragile_backends"))
    sys.modules.pop("fakes.fragile_backends", None)
    HostFactory(backend).warm()
    assert "fakes.fragile_backends" in sys.modules


SEVEN = ["onnx/ReduceMean-13/int32/7/-/uniform", "onnx/ReduceMean-13/int32/7/draw=1/uniform"]
INVALID = "onnx/ReduceMean-13/int32/3x2x2/axes=3/ramp/axis-too-large"
PHASES = {"describing": 0, "preparing": 2, "running": 2, "confirming": 1, "sibling": 0}
"""How many cases each phase costs where it fails whenever it comes: each of those that need it, and no other."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["segv", "hang", "flood", "garbage", "exit0", "closeall"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_host_that_fails_in_any_phase_costs_the_cases_of_that_phase(
    phase: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PHASE", phase)
    monkeypatch.setenv("FAKE_FAULT", fault)
    assignment = Assignment(backend_spec("python:fakes.fragile_backends:FailsInAPhase"), SOURCE)
    limits = Limits(run_seconds=0.7, prepare_seconds=0.7, output_bytes=1 << 20)
    cases = [SINGLE, *SEVEN, INVALID, DOUBLE]
    told = list(run_cases(assignment, [cases], jobs=1, limits=limits))
    outcomes = {one.result.case: str(one.result.outcome) for one in told if isinstance(one, Judged)}
    assert sorted(outcomes) == sorted(cases)
    assert (outcomes[SINGLE], outcomes[DOUBLE]) == ("pass", "pass")
    lost = [case for case, outcome in outcomes.items() if outcome in ("crash", "timeout")]
    again = phase == "confirming" and fault != "hang"  # run again in a fresh host, where nothing is to be confirmed
    assert len(lost) == (0 if again else PHASES[phase])
    assert any(isinstance(one, Death) for one in told) is again
    assert set(lost) <= set(SEVEN)
    assert {outcomes[case] for case in lost} <= {"timeout" if fault == "hang" else "crash"}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["garbage", slow("segv"), slow("exit0")])
def test_a_host_that_fails_in_opening_ends_the_run(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PHASE", "opening")
    monkeypatch.setenv("FAKE_FAULT", fault)
    with pytest.raises(WorkerStartError):
        found("FailsInAPhase", [SINGLE])


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["hang"])
def test_a_host_that_never_opens_ends_the_run_within_its_limit(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PHASE", "opening")
    monkeypatch.setenv("FAKE_FAULT", fault)
    started = time.monotonic()
    with pytest.raises(WorkerStartError, match="it was not ready after 1 s"):
        found("FailsInAPhase", [SINGLE], limits=Limits(start_seconds=1))
    assert time.monotonic() - started < 20


@pytest.mark.slow
def test_a_claim_of_half_a_terabyte_costs_its_case_and_no_memory() -> None:
    outcomes, deaths = found("ClaimsMuch", [SINGLE, HALF, DOUBLE])
    assert outcomes == {SINGLE: "pass", HALF: "crash", DOUBLE: "pass"}
    assert not deaths
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2 << 20  # KiB


@pytest.mark.slow
def test_an_answer_larger_than_a_message_costs_its_case() -> None:
    outcomes, deaths = found("AnswersTooMuch", [SINGLE, HALF, DOUBLE])
    assert outcomes == {SINGLE: "pass", HALF: "crash", DOUBLE: "pass"}
    assert not deaths


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["ReportsProgress", "WritesMessages", "OpensOnce"])
def test_no_host_ends_a_run_or_costs_more_than_its_case(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FRAME", "raised-short")
    monkeypatch.setenv("FAKE_OPENED", str(tmp_path / "opened"))
    limits = Limits(run_seconds=0.5, prepare_seconds=0.5)
    outcomes, _ = found(fault, [SINGLE, HALF, DOUBLE], limits=limits)
    lost = "timeout" if fault == "ReportsProgress" else "crash"
    gone = "crash" if fault == "OpensOnce" else "pass"  # a device that went away stays away
    assert outcomes == {SINGLE: "pass", HALF: lost, DOUBLE: gone}


@pytest.mark.slow
@pytest.mark.parametrize(
    "frame", ["raised-short", "no-records", "empty-record", "no-json", "deep", "too-many", "ready", "failed", "unknown"]
)
def test_a_message_that_nobody_asked_for_is_a_crash(frame: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FRAME", frame)
    outcomes, _ = found("WritesMessages", [SINGLE, HALF, DOUBLE])
    assert outcomes == {SINGLE: "pass", HALF: "crash", DOUBLE: "pass"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("no-words", "error"),
        ("long-words", "error"),
        ("2^40-elements", "error"),
        ("2^40-objects", "error"),
        ("long-dtype", "wrong-dtype"),
        ("many-outputs", "wrong-shape"),
        ("a-text", "wrong-dtype"),
        ("itself", "error"),
        ("64-dimensions", "crash"),
        ("61-dimensions", "crash"),
        ("60-dimensions", "wrong-shape"),
        ("subclass", "wrong-value"),
    ],
)
def test_an_odd_answer_is_the_backend_s_and_its_detail_is_short(
    answer: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_ANSWER", answer)
    assignment = Assignment(backend_spec("python:fakes.fragile_backends:AnswersOddly"), SOURCE)
    told = run_cases(assignment, [[SINGLE, HALF, DOUBLE]], jobs=1, limits=LIMITS)
    results = {one.result.case: one.result for one in told if isinstance(one, Judged)}
    assert {case: result.outcome for case, result in results.items()} == {SINGLE: "pass", HALF: outcome, DOUBLE: "pass"}
    assert len(results[HALF].detail or "") <= 2000


DRAWS = [f"onnx/Mean-13/float32/scalar/draw={draw}/uniform" for draw in range(1, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("period", ["2", "3", slow("5"), "prepare"])
def test_a_backend_that_dies_whenever_it_is_used_again_fails(period: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PERIOD", period)
    spec = backend_spec("python:fakes.fragile_backends:DiesWhenUsedAgain")
    cases = [SINGLE, HALF, DOUBLE] if period == "prepare" else DRAWS
    ran = list(run_cases(Assignment(spec, SOURCE), [cases], jobs=1, limits=LIMITS))
    results = [one.result for one in ran if isinstance(one, Judged)]
    failed = [one for one in results if one.outcome == "crash"]
    assert len(results) == len(cases)
    assert failed
    for one in failed:
        assert (one.detail or "").startswith("state: dies when used again: the process ended (signal SIGSEGV)")


@pytest.mark.slow
def test_a_program_that_dies_when_it_runs_again_alone_fails() -> None:
    spec = backend_spec("python:fakes.fragile_backends:WrongTogether")
    ran = run_cases(Assignment(spec, SOURCE), [[*DRAWS, DOUBLE]], jobs=1, limits=LIMITS)
    results = {one.result.case: one.result for one in ran if isinstance(one, Judged)}
    assert {result.outcome for result in results.values()} == {"pass", "crash"}
    failed = {case: result.detail or "" for case, result in results.items() if result.outcome == "crash"}
    assert failed.keys() <= {*DRAWS}
    assert all(detail.startswith("state: dies when used again") for detail in failed.values())


@pytest.mark.slow
def test_a_death_that_does_not_come_again_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_OPENED", str(tmp_path / "opened"))
    outcomes, deaths = found("DiesOnce", DRAWS)
    assert set(outcomes.values()) == {"pass"}
    assert [(death.kind, death.exit) for death in deaths] == [("crash", "signal SIGSEGV")]


CHARGED = {
    **dict.fromkeys(("odd-reason", "raising-reason", "unknown-reason"), "unsupported"),
    **dict.fromkeys(("KeyboardInterrupt", "SystemExit", "GeneratorExit", "BaseException", "ProcessLost"), "crash"),
    "CancelledError": "crash",
}
RAISED = (
    *("OpconformError", "CaseIdError", "ProgramError", "NotInstalled", "WorkerStartError", "Unreadable", "Corrupt"),
    *("StopIteration", "RecursionError", "odd-words", "no-name"),
    *CHARGED,
)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "phase"), [(True, "preparing"), slow(False, "running")])
@pytest.mark.parametrize(
    "raised", [one if one in ("NotInstalled", "odd-reason", "GeneratorExit") else slow(one) for one in RAISED]
)
def test_whatever_a_backend_raises_is_its_own_and_never_our_failure(
    raised: str, first: bool, phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RAISED", raised)
    monkeypatch.setenv("FAKE_PHASE", phase)
    outcomes, _ = found("Raises", [HALF, SINGLE, DOUBLE] if first else [SINGLE, HALF, DOUBLE])
    assert outcomes == {SINGLE: "pass", HALF: CHARGED.get(raised, "error"), DOUBLE: "pass"}


@pytest.mark.slow
def test_a_judge_that_its_backend_stops_is_replaced_and_its_cases_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPENED", str(tmp_path / "opened"))
    monkeypatch.setattr(running, "_STOPPED", 0.5)
    started = time.monotonic()
    outcomes, deaths = found("StopsItsJudge", [SINGLE, HALF, DOUBLE])
    assert outcomes == {SINGLE: "pass", HALF: "pass", DOUBLE: "pass"}
    assert [death.exit for death in deaths] == ["killed after 0.5 s in which it was stopped"]
    assert time.monotonic() - started < 20


@pytest.mark.slow
def test_the_memory_of_a_backend_s_children_counts() -> None:
    limits = Limits(run_seconds=30, memory_bytes=250 << 20)
    outcomes, _ = found("HasChildren", [HALF, SINGLE], limits=limits)
    assert outcomes == {HALF: "crash", SINGLE: "pass"}


# What a worker says: it judges in a process of its own, and is believed in nothing that it was not asked

RIGHT = BackendSpec("mine", "python", "mine:Mine")
RECORD = {
    "case": SINGLE, "backend": "mine", "outcome": "pass", "behaviour": {}, "reason": None, "detail": None,
    "bound_ratio": None, "level": "strict", "clauses": [], "case_digest": "0" * 64, "expectation_digest": "1" * 64,
    "seconds": 0.1,
}  # fmt: skip


def record(**changes: object) -> bytes:
    return json.dumps(RECORD | changes).encode()


@pytest.mark.parametrize(
    "forged",
    [
        record(case=HALF),
        record(backend="another"),
        record(case_digest=None),
        record(expectation_digest="0" * 63 + "g"),
        record(outcome="waived"),
        record(bound_ratio=float("nan")),
        record(outcome="passed"),
        record()[:-1],
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        record() + b"\t[1]",
        record() + b"\t{}\t[{}]",
        record() + b'\t{}\t[{"case":3}]',
        record() + b"\t{}\t[]\tmore",
    ],
)
def test_a_record_is_accepted_only_for_what_was_asked(forged: bytes) -> None:
    (one,) = events_of((SINGLE, forged), RIGHT)
    assert isinstance(one, Judged)
    assert (one.result.case, one.result.backend, one.result.outcome) == (SINGLE, "mine", "runner-error")
    assert "its record does not match the request" in (one.result.detail or "")
    (right,) = events_of((SINGLE, record()), RIGHT)
    assert isinstance(right, Judged)
    assert right.result.outcome == "pass"


@pytest.mark.parametrize("forged", [b"", b"{", b'{"type": "about"}', record(), b"\xff"])
def test_what_is_no_description_is_told_as_unknown(forged: bytes) -> None:
    (about,) = events_of((ABOUT, forged), RIGHT)
    assert isinstance(about, About)
    assert about.version.startswith("unknown (its record does not match the request")


# From the command line


@pytest.mark.slow
def test_an_unexplained_death_stands_in_run_json_and_in_the_terminal_and_fails_nothing(tmp_path: Path) -> None:
    output, told = run("BreaksTheNext", tmp_path)
    assert told["deaths"]
    for death in told["deaths"]:  # the case before may have to run again, and break the next once more
        assert (death["kind"], death["exit"], death["tail"]) == ("crash", "signal SIGSEGV", "something is broken here")
        assert death["case"] in (SINGLE, DOUBLE)
        assert death["before"][-1] == HALF
    assert "a worker process ended (signal SIGSEGV)" in output
    assert told["exit_code"] == 0


@pytest.mark.slow
def test_isolation_by_case_is_an_option_of_the_run_and_stands_in_run_json(tmp_path: Path) -> None:
    _, told = run("BreaksTheNext", tmp_path, "--isolation", "case")
    assert told["deaths"] == []
    assert told["options"]["isolation"] == "case"


def run(backend: str, folder: Path, *more: str) -> tuple[str, Any]:
    """Return what a run of three cases prints, in one line, and its run.json."""
    words = ["run", f"python:fakes.fragile_backends:{backend}", "--jobs", "1", "--out", str(folder / "out"), *more]
    for case in (HALF, SINGLE, DOUBLE):
        words += ["--select", case]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    return " ".join(done.output.split()), json.loads((folder / "out" / "run.json").read_text())

"""`opconform run` from the command line to the results folder, with backends that go wrong in every way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.results import FRACTION, INT32, V13, Ran, written
from fakes.sampled import slow

from opconform.cases.results import Result

TESTS = Path(__file__).parents[1]
KEYS = (
    *("case", "backend", "outcome", "behaviour", "reason", "detail", "bound_ratio", "level", "clauses"),
    *("case_digest", "expectation_digest", "seconds"),
)


# A run that conforms


@pytest.mark.slow
def test_a_right_backend_conforms_and_leaves_a_whole_results_folder(run: Any) -> None:
    ran = run("@Right", *INT32, "--seed", 3, "--require", "invalid=rejected", "--jobs", 2)
    assert ran.code == 0, ran.output
    assert sorted(p.name for p in ran.folder.iterdir()) == ["junit.xml", "results.jsonl", "run.json"]
    assert set(ran.outcomes()) == {"pass"}
    assert Result.__struct_fields__ == KEYS
    for line in ran.lines:
        assert tuple(line) == KEYS
        assert line["backend"] == "python:fakes.backends:Right"
        assert (line["outcome"], line["level"]) == ("pass", "strict")
        assert line["clauses"]
        assert re.fullmatch("[0-9a-f]{64}", line["case_digest"])
        assert re.fullmatch("[0-9a-f]{64}", line["expectation_digest"])
        assert line["seconds"] >= 0
    assert ran.results[FRACTION]["behaviour"] == {"integer-rounding": ["truncate"]}
    assert all(r["behaviour"] == {"invalid": ["rejected"]} for c, r in ran.results.items() if "/axis-too-" in c)


def test_run_json_says_all_that_decides_the_results(judge: Any) -> None:
    ran = judge("@Right", *INT32, "--seed", 3, "--draws", 2, "--strength", 1, "--require", "invalid=rejected")
    about = ran.about
    assert (about["seed"], about["draws"], about["strength"]) == (3, 2, 1)
    assert about["selection"] == list(INT32[1::2])
    assert about["required"] == {"invalid": "rejected"}
    assert about["command"][0] == "opconform"
    assert about["backends"]["python:fakes.backends:Right"]["version"] == "1.0"
    assert re.fullmatch("[0-9a-f]{64}", about["suite"]["digest"])
    assert about["suite"]["version"]
    assert about["machine"]["python"]
    assert about["machine"]["libraries"]["numpy"]
    assert (about["status"], about["exit_code"]) == ("finished", 0)
    assert (about["profile"], about["arithmetic"], about["waivers"]) == (None, None, None)
    figures = ran.figures
    assert figures["cases"] == len(ran.lines)
    assert figures["judged"] + figures["put"] == figures["cases"]
    assert (figures["correctness"], figures["support"], figures["refusal"]) == (1, 1, 1)


def test_junit_has_every_case_and_is_also_written_where_asked(judge: Any, tmp_path: Path) -> None:
    ran = judge("@WrongOnUint32", "--select", f"{V13}/*int32/2x300/*", "--junit", tmp_path / "j.xml")
    assert (tmp_path / "j.xml").read_bytes() == (ran.folder / "junit.xml").read_bytes()
    cases = {c.get("name"): c for c in ran.junit().iter("testcase")}
    assert set(cases) == set(ran.results)
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    assert failed == {c for c in cases if c and "/uint32/" in c} != set(cases)


@pytest.mark.slow
def test_jobs_change_nothing_but_the_order(run: Any) -> None:
    def told(ran: Ran) -> list[str]:
        return sorted(json.dumps({**r, "seconds": None}) for r in ran.lines)

    select = ("--select", "onnx/Mean-8/float32/*", "--seed", 1)
    assert told(run("@Right", *select, "--jobs", 1, out="one")) == told(run("@Right", *select, "--jobs", 2, out="two"))


def test_several_backends_are_run_one_after_the_other(judge: Any) -> None:
    ran = judge("@Right", "@WrongOnUint32", "@Right", "--select", f"{V13}/uint32/2x300/*")
    counts = {name: ran.about["figures"]["backends"][name]["outcomes"] for name in ran.about["figures"]["backends"]}
    number = len(ran.lines) // 2
    assert counts == {
        "python:fakes.backends:Right": {"pass": number},
        "python:fakes.backends:WrongOnUint32": {"wrong-value": number},
    }
    assert ran.code == 1


# What a backend does wrong


@pytest.mark.slow
def test_a_crash_and_a_hang_cost_one_case_each(run: Any) -> None:
    crashed = run("@Crashes", *INT32, out="crashes")
    assert crashed.outcomes()["crash"] == {FRACTION}
    assert set(crashed.outcomes()) == {"crash", "pass"}
    assert crashed.code == 1
    detail = crashed.results[FRACTION]["detail"]
    assert "signal SIGSEGV" in detail
    assert "while running" in detail
    assert "about to fall" in detail
    assert crashed.results[FRACTION]["clauses"]
    assert crashed.results[FRACTION]["case_digest"]

    hung = run("@Hangs", *INT32, "--timeout", "0.7", out="hangs")
    assert hung.outcomes()["timeout"] == {FRACTION}
    assert set(hung.outcomes()) == {"timeout", "pass"}
    assert hung.code == 1
    assert len(hung.results) == len(crashed.results)


@pytest.mark.slow
def test_a_crash_while_preparing_is_told_as_such(run: Any) -> None:
    ran = run("@CrashesInPrepare", "--select", FRACTION, "--select", f"{V13}/int32/2x300/*")
    assert ran.outcomes()["crash"] == {FRACTION}
    assert "signal SIGABRT" in ran.results[FRACTION]["detail"]
    assert "while preparing" in ran.results[FRACTION]["detail"]


@pytest.mark.slow
def test_wrong_answers_are_told_apart(run: Any) -> None:
    select = ("--select", f"{V13}/float32/*/axes-*", "--select", f"{V13}/uint32/2x300/*")
    ran = run("@WrongShape", "@WrongType", "@WrongOnUint32", "@ReturnsNothing", *select)
    found: dict[str, set[str]] = {}
    for line in ran.lines:
        name = line["backend"].rpartition(":")[2]
        found.setdefault(f"{name} {line['case'].split('/')[2]}", set()).add(line["outcome"])
    assert found == {
        "WrongShape float32": {"wrong-shape"},
        "WrongShape uint32": {"wrong-shape"},
        "WrongType float32": {"wrong-dtype"},
        "WrongType uint32": {"wrong-dtype"},
        "WrongOnUint32 float32": {"pass"},
        "WrongOnUint32 uint32": {"wrong-value"},
        "ReturnsNothing float32": {"error"},
        "ReturnsNothing uint32": {"error"},
    }
    assert ran.code == 1
    wrong = min((r for r in ran.lines if r["outcome"] == "wrong-value"), key=lambda r: len(r["case"]))
    assert re.search(r"element \[[\d, ]*\]: got \d+, want \d+ exactly", wrong["detail"])
    assert f"reproduce: opconform run {wrong['backend']} --select '{wrong['case']}'" in ran.output
    assert all(line in ran.output for line in wrong["detail"].splitlines())


def test_errors_of_valid_programs_fail_and_memory_is_told(judge: Any) -> None:
    ran = judge("@Raises", *INT32)
    assert ran.results[FRACTION]["outcome"] == "error"
    assert ran.results[FRACTION]["detail"] == "RuntimeError: kernel launch failed"
    out_of_memory = [r for c, r in ran.results.items() if c.split("/")[3] == "4"]
    assert {(r["outcome"], r["reason"]) for r in out_of_memory} == {("error", "memory")}
    assert ran.code == 1


def test_answers_to_invalid_inputs_fail_only_on_demand(judge: Any) -> None:
    free = judge("@AnswersInvalid", *INT32, out="free")
    assert free.code == 0
    accepted = free.outcomes()["accepted-invalid"]
    assert {case.split("/")[-1] for case in accepted} == {
        "unknown-attribute",
        "axis-too-large",
        "axis-too-small",
        "rank-0-axis",
    }
    demanded = judge("@AnswersInvalid", *INT32, "--require", "invalid=rejected", out="demanded")
    assert demanded.code == 1
    assert demanded.outcomes()["accepted-invalid"] == accepted
    assert demanded.figures["correctness"] == 1, "it stays outside correctness"


def test_what_only_a_used_program_does_wrong_is_told_as_leaking_state(judge: Any) -> None:
    ran = judge(
        "@LeaksState",
        "--select",
        "onnx/Mean-13/float32/*/sevenths",
        "--select",
        "onnx/Mean-13/float32/*/uniform",
        "--draws",
        3,
    )
    assert ran.code == 1
    wrong = ran.outcomes()["wrong-value"]
    assert wrong
    assert all("state leaks between runs" in ran.results[case]["detail"] for case in wrong)
    assert all("draw=" in case or "dims=symbolic" in case for case in wrong), "the first run of each program is right"


@pytest.mark.slow
def test_control_characters_of_a_backend_reach_no_terminal_and_no_file(run: Any) -> None:
    ran = run("@PrintsControlCharacters", *INT32)
    assert ran.outcomes()["error"] == {FRACTION}
    assert not set(ran.output) & {"\x1b", "\x00", "\x07", "\u2028"}
    assert "red" in ran.output
    (case,) = [c for c in ran.junit().iter("testcase") if c.get("name") == FRACTION]
    assert case.find("failure") is not None
    assert len((ran.folder / "results.jsonl").read_bytes().split(b"\n")) == len(ran.lines) + 1


# What a backend does not implement


def test_unsupported_is_outside_correctness(judge: Any) -> None:
    ran = judge("@RefusesTypes", "--select", "onnx/Mean-6/float*/*")
    assert ran.code == 0
    assert all("/float16/" in case for case in ran.outcomes()["unsupported"])
    valid = [r for r in ran.lines if r["outcome"] == "unsupported" and "invalid" not in r["behaviour"]]
    assert {(r["reason"], r["detail"]) for r in valid} == {("type", "no kernel for float16")}
    assert ran.figures["correctness"] == 1
    assert 0.2 < ran.figures["support"] < 0.9


def test_a_run_that_judged_nothing_is_no_success(judge: Any) -> None:
    ran = judge("@RefusesEverything", *INT32)
    assert ran.code == 2
    assert set(ran.outcomes()) == {"unsupported"}
    assert all("not implemented" in r["detail"] for r in ran.lines)
    assert "nothing" in ran.output
    told = "supports none of its cases; its message for the first one: "
    assert f"{told}{ran.lines[0]['detail']}" in " ".join(ran.output.split())


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["@OtherStandard", "openvino"])
def test_a_backend_is_put_to_the_cases_of_its_own_standards_alone(judge: Any, backend: str) -> None:
    ran = judge(backend, "--select", "onnx/Mean-13/*")
    assert ran.code == 2
    assert "selects no case" in ran.output
    told = "runs openvino/* only; leave it out, or add --select 'openvino/*'"
    assert told in " ".join(ran.output.split())
    assert not ran.folder.exists()
    fed = "openvino/ReduceMean-1/float32,int64/scalar/*"
    both = judge(backend, "onnx-reference", "--select", fed, "--select", "onnx/Mean-13/float32/scalar/*")
    cases = {(r["backend"] == "onnx-reference", r["case"].split("/")[0]) for r in both.lines}
    assert cases == {(True, "onnx"), (False, "openvino")}


@pytest.mark.slow
def test_a_crash_on_the_valid_sibling_is_not_charged_to_the_invalid_case(run: Any) -> None:
    case = f"{V13}/float32/3x2x2/axes=3/ramp/axis-too-large"
    ran = run("@CrashesOnValidSibling", "--select", case, "--select", f"{V13}/int32/*/fraction*")
    assert ran.results[case]["outcome"] == "unsupported"
    assert "on the valid case that this one was made from" in ran.results[case]["detail"]


@pytest.mark.slow
def test_a_failure_of_our_side_exits_3_whatever_else_fails(run: Any) -> None:
    ran = run(
        "@LosesItsLibrary",
        "@WrongOnUint32",
        "--select",
        f"{V13}/*int32/*/fraction*",
        "--select",
        f"{V13}/*int32/*/axes-*",
    )
    assert ran.code == 3
    ours = [r for r in ran.lines if r["outcome"] == "runner-error"]
    assert {r["backend"] for r in ours} == {"python:fakes.backends:LosesItsLibrary"}
    assert {"/fraction" in r["case"] for r in ours} == {True}


NO_RUNNERS = {
    "FailsToStart": r"calling fakes.backends:FailsToStart\(\) failed: .*backends.py:\d+: OSError: no device found",
    "NoVersion": "NoVersion is not a runner: no method 'version'",
    "Rigth": "fakes.backends has no 'Rigth'; did you mean 'Right'",
    "ONE": "expected a class or a function",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["FailsToStart", "Rigth", slow("NoVersion"), slow("ONE")])
def test_a_class_that_is_no_runner_is_refused_with_the_reason(run: Any, name: str) -> None:
    ran = run(f"@{name}", *INT32)
    assert ran.code == 2
    assert re.search(NO_RUNNERS[name], ran.output.replace("\n", " "))


@pytest.mark.slow
def test_a_module_that_fails_to_import_is_named_with_the_line(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "broken_backend.py", "import math\n\nraise RuntimeError('no licence')\n")
    for name, words in (
        ("broken_backend", r"broken_backend\.py:3: RuntimeError: no licence"),
        ("nowhere_at_all", "no module is called 'nowhere_at_all'"),
    ):
        ran = run(f"python:{name}:Backend", *INT32, out=f"out-{name}")
        assert ran.code == 2
        assert re.search(words, ran.output.replace("\n", " "))


# Interruption


@pytest.mark.slow
def test_an_interrupt_keeps_and_reports_what_was_judged(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["run", "python:fakes.backends:Slow", "--select", f"{V13}/int32/*", "--out", str(out), "--jobs", "2"]
    arguments += ["--draws", "50"]  # minutes of work, on however busy a machine
    with subprocess.Popen(
        [sys.executable, "-m", "opconform", *arguments],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=listen,  # noqa: PLW1509 - it starts no thread
    ) as process:
        wait_until(lambda: lines_of(out / "results.jsonl") >= 2)
        workers = children(process.pid)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == ""
    assert workers
    wait_until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() and alive(pid) for pid in workers))
    ran = Ran(130, output, out)
    assert (ran.about["status"], ran.about["exit_code"]) == ("interrupted", 130)
    assert 2 <= len(ran.lines) < 200
    assert ran.figures["cases"] == len(ran.lines) == len(list(ran.junit().iter("testcase")))
    assert f"{len(ran.lines)} results" in output
    assert "interrupted" in output


def listen() -> None:
    """Take Ctrl-C, as a shell in the background lets nobody do."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def lines_of(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


def wait_until(holds: Any) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def children(parent: int) -> set[int]:
    """Return the processes that a process started, and those that they did."""
    found = {int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}
    return found.union(*map(children, found))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False

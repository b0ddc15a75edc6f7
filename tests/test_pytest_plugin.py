"""The pytest plugin: cases as items, alone and beside ordinary tests, selected, repeated, reported and in parallel."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest
from fakes.here import run_here
from fakes.sampled import slow

# Loaded before pytester takes note of what is: it forgets the rest after each run, and NumPy cannot be loaded twice.
import opconform.cli.session
import opconform.specs.build  # noqa: F401

Run = Callable[..., pytest.RunResult]

V13 = "onnx/ReduceMean-13"
CASES = tuple(
    f"{V13}/{type_}/3x2x2/axes={axes}"
    for type_ in ("int32", "uint32")
    for axes in ("2,0/ramp/axes-unsorted", "-1,0/ramp/axes-mixed")
)
UNSORTED = CASES[2]
FRACTION = f"{V13}/int32/2x2/axes=1/halves/fraction"
PLAIN = ("-p", "no:hypothesispytest")
"""Without a plugin that would be loaded anew for each run and takes longer than all the rest."""
HARMLESS = ("@Right", "@WrongOnUint32", "@RefusesTypes", "@AnswersInvalid")
MINE = """\
import pytest
from fakes.backends import Right, WrongOnUint32

class Mine(Right):
    name = "mine"

def made():
    return WrongOnUint32()

@pytest.fixture
def fitted():
    return WrongOnUint32()
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Run:
    """Run pytest in a folder of its own, against one of the fakes."""

    def run(backend: str, *arguments: str, select: tuple[str, ...] = CASES) -> pytest.RunResult:
        name = f"python:fakes.backends:{backend[1:]}" if backend.startswith("@") else backend
        globs = [f"--opconform-select={glob}" for glob in select]
        # a worker takes longer to start than to run these cases; where a fake does no harm, they run in this process
        with run_here() if backend in HARMLESS and "-n" not in arguments else contextlib.nullcontext():
            return pytester.runpytest(*PLAIN, f"--opconform-backend={name}", "--opconform-jobs=1", *globs, *arguments)

    return run


def names(done: pytest.RunResult, outcome: str) -> set[str]:
    """Return the ids of the items that a verbose run reports with an outcome."""
    lines = [line.split() for line in done.outlines if "opconform::" in line]
    return {
        word.partition("opconform::")[2] for line in lines if outcome in line for word in line if "opconform::" in word
    }


def test_each_case_is_an_item_with_its_id_in_its_name(suite: Run) -> None:
    done = suite("@Right", "-v")
    done.assert_outcomes(passed=4)
    assert names(done, "PASSED") == set(CASES)
    assert done.ret == pytest.ExitCode.OK


def test_failures_say_what_is_wrong_and_how_to_reproduce_it(suite: Run) -> None:
    done = suite("@WrongOnUint32")
    done.assert_outcomes(passed=2, failed=2)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(
        [
            f"wrong-value  {UNSORTED}  on python:fakes.backends:WrongOnUint32",
            "  element [[]0, 0, 0[]]: got *, want * (2 of 2 wrong)",
            "  clause onnx/ReduceMean#axes-order",
            f"  reproduce: opconform run python:fakes.backends:WrongOnUint32 --select '{UNSORTED}'",
        ]
    )
    assert "Traceback" not in str(done.stdout)
    assert "pytest_plugin.py" not in str(done.stdout)


@pytest.mark.slow
def test_unsupported_is_a_skip_and_an_answer_to_an_invalid_input_no_failure(suite: Run) -> None:
    done = suite("@RefusesTypes", "-rs", select=("onnx/Mean-6/float16/*", "onnx/Mean-6/float32/*/sevenths"))
    outcomes = done.parseoutcomes()
    assert outcomes["passed"] == 1
    assert set(outcomes) - {"warnings"} == {"passed", "skipped"}
    done.stdout.fnmatch_lines(["SKIPPED *unsupported (type): no kernel for float16*"])
    free = suite("@AnswersInvalid", select=(f"{V13}/float32/*/unknown-attribute",))
    free.assert_outcomes(passed=1)
    demanded = suite(
        "@AnswersInvalid", "--opconform-require=invalid=rejected", select=(f"{V13}/float32/*/unknown-attribute",)
    )
    demanded.assert_outcomes(failed=1)
    demanded.stdout.fnmatch_lines(["accepted-invalid  *", "  answered an invalid input*"])


@pytest.mark.slow
def test_a_crash_and_a_hang_fail_their_items_only(suite: Run) -> None:
    select = (FRACTION, *CASES[:2])
    crashed = suite("@Crashes", select=select)
    crashed.assert_outcomes(passed=2, failed=1)
    crashed.stdout.fnmatch_lines(["crash  *", "*signal SIGSEGV*"])
    hung = suite("@Hangs", "--opconform-timeout=0.5", select=select)
    hung.assert_outcomes(passed=2, failed=1)
    hung.stdout.fnmatch_lines(["timeout  *", "*no answer after*"])


@pytest.mark.slow
def test_a_failure_of_our_side_is_a_failure(suite: Run) -> None:
    done = suite("@LosesItsLibrary", select=(FRACTION,))
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["runner-error  *"])


# Selecting, repeating, reporting


def test_items_are_selected_by_expression(suite: Run) -> None:
    done = suite("@WrongOnUint32", "-v", "-k", "unsorted and not uint32")
    done.assert_outcomes(passed=1, deselected=3)
    assert names(done, "PASSED") == {UNSORTED.replace("uint32", "int32")}


@pytest.mark.slow
def test_what_failed_is_run_again_alone(suite: Run) -> None:
    suite("@WrongOnUint32").assert_outcomes(passed=2, failed=2)
    again = suite("@WrongOnUint32", "--lf")
    again.assert_outcomes(failed=2)
    suite("@Right", "--lf").assert_outcomes(passed=2)


def test_junit_names_the_cases(suite: Run, pytester: pytest.Pytester) -> None:
    suite("@WrongOnUint32", "--junitxml=report.xml")
    cases = list(ET.parse(pytester.path / "report.xml").iter("testcase"))
    assert {case.get("classname") for case in cases} == {"opconform"}
    failed = {case.get("name") for case in cases if case.find("failure") is not None}
    assert failed == {case.get("name") for case in cases if "/uint32/" in str(case.get("name"))}
    assert UNSORTED in failed


@pytest.mark.slow
def test_collecting_alone_starts_no_worker(suite: Run) -> None:
    done = suite("@FailsToStart", "--collect-only", "-q")
    assert f"opconform::{UNSORTED}" in done.outlines
    assert done.ret == pytest.ExitCode.OK


@pytest.mark.slow
def test_strength_and_seed_are_options(suite: Run) -> None:
    mean = ("onnx/Mean-6/float16/3*3x2x2/*",)
    more = suite("@Right", "--collect-only", "-q", "--opconform-strength=full", select=mean)
    few = suite("@Right", "--collect-only", "-q", "--opconform-seed=5", select=mean)
    assert len(more.outlines) > len(few.outlines)
    assert any("seed=5" in line for line in few.outlines)


# In parallel


@pytest.mark.slow
def test_xdist_gives_the_same_outcomes_with_a_backend_of_a_conftest_too(suite: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(MINE)
    done = suite("conftest:made", "-n", "2", "-v")
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines([f"wrong-value  {UNSORTED}  on conftest:made", f"  reproduce: *{UNSORTED}*"])


@pytest.mark.slow
def test_xdist_goes_on_after_a_crash(suite: Run) -> None:
    select = (FRACTION, f"{V13}/float32/*/ax*")
    done = suite("@Crashes", "-n", "2", "--dist", "worksteal", select=select)
    outcomes = done.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes["passed"] >= 6


# Waivers


def waivers(pytester: pytest.Pytester, *cases: str, expires: str = "2999-01-01") -> str:
    entry = (
        "- {{case: '{}', outcome: wrong-value, reason: known, link: 'https://example.org/1', owner: me, expires: {}}}\n"
    )
    pytester.makefile(".yaml", waivers="".join(entry.format(case, expires) for case in cases))
    return "--opconform-waivers=waivers.yaml"


def test_a_waived_failure_is_an_xfail(suite: Run, pytester: pytest.Pytester) -> None:
    done = suite("@WrongOnUint32", waivers(pytester, f"{V13}/uint32/*"), "-rx")
    done.assert_outcomes(passed=2, xfailed=2)
    assert done.ret == pytest.ExitCode.OK
    done.stdout.fnmatch_lines(["XFAIL *wrong-value, waived by waivers.yaml:1 until 2999-01-01*"])


@pytest.mark.slow
@pytest.mark.parametrize("parallel", [(), ("-n", "2")])
def test_a_stale_waiver_fails_the_session(suite: Run, pytester: pytest.Pytester, parallel: tuple[str, ...]) -> None:
    stale = UNSORTED.replace("uint32", "int32")
    done = suite("@WrongOnUint32", waivers(pytester, f"{V13}/uint32/*", stale), *parallel)
    done.assert_outcomes(passed=2, xfailed=2)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["opconform: waivers.yaml:2: stale: nothing that it matches failed*"])


def test_an_expired_waiver_waives_nothing(suite: Run, pytester: pytest.Pytester) -> None:
    done = suite("@WrongOnUint32", waivers(pytester, f"{V13}/uint32/*", expires="2020-01-01"))
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.fnmatch_lines(["opconform: waivers.yaml:1: expired on 2020-01-01*"])


def test_a_waiver_of_what_did_not_run_is_not_called_stale(suite: Run, pytester: pytest.Pytester) -> None:
    done = suite("@WrongOnUint32", waivers(pytester, f"{V13}/uint32/*", f"{V13}/float32/*"), "-k", "unsorted")
    done.assert_outcomes(passed=1, xfailed=1, deselected=2)
    assert done.ret == pytest.ExitCode.OK


# Backends of one's own


@pytest.mark.slow
@pytest.mark.parametrize(("name", "failed"), [("Mine", 0), ("made", 2), ("fitted", 2)])
def test_a_conftest_s_class_function_or_fixture_is_a_backend(
    suite: Run, pytester: pytest.Pytester, name: str, failed: int
) -> None:
    pytester.makeconftest(MINE)
    done = suite(f"conftest:{name}")
    done.assert_outcomes(passed=4 - failed, failed=failed)


@pytest.mark.slow
def test_the_conftest_of_a_folder_below_is_found(suite: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest("")
    below = pytester.mkdir("below")
    (below / "conftest.py").write_text(MINE)
    (below / "test_below.py").write_text("def test_it(): pass\n")
    suite("conftest:Mine").assert_outcomes(passed=5)


# Beside ordinary tests


def test_ordinary_tests_run_too(suite: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_fine(): pass\ndef test_broken(): assert 0\n")
    done = suite("@WrongOnUint32")
    done.assert_outcomes(passed=3, failed=3)
    done.stdout.fnmatch_lines(["*assert 0*"])


def test_without_the_option_nothing_is_collected_and_nothing_imported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_is_loaded():
            loaded = [m for m in sys.modules if m.startswith("opconform.")]
            assert loaded == ["opconform.pytest_plugin"]
            assert not {"numpy", "onnx", "yaml", "pydantic", "rich"} & set(sys.modules)
        """
    )
    done = pytester.runpytest_subprocess(*PLAIN, "-v")
    done.assert_outcomes(passed=1)
    assert "opconform::" not in str(done.stdout)


# What a user can get wrong

WRONG = {
    "--opconform-backend=onnxruntim": "no backend is called 'onnxruntim'; did you mean 'onnxruntime'?",
    "--opconform-backend=conftest:Nonesuch": "no conftest.py that pytest has loaded has a class, * called 'Nonesuch'",
    "--opconform-select=nonesuch": "opconform: nonesuch selects no case",
    "--opconform-strength=0": "strength 0: expected a whole number from 1, or full",
    "--opconform-require=flush": "--require flush: expected SILENCE=OPTION",
    "--opconform-waivers=nowhere.yaml": "nowhere.yaml: cannot be read",
    "--opconform-timeout=nan": "expected a positive timeout",
    "--opconform-jobs=0": "at least one job",
}


@pytest.mark.parametrize(("option", "parallel"), [*((o, ()) for o in WRONG), (next(iter(WRONG)), ("-n", "2"))])
def test_a_wrong_option_is_a_usage_error(pytester: pytest.Pytester, option: str, parallel: tuple[str, ...]) -> None:
    done = pytester.runpytest(*PLAIN, "--opconform-backend=python:fakes.backends:Right", option, *parallel)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"ERROR: *{WRONG[option]}*"])
    assert "INTERNALERROR" not in str(done.stdout) + str(done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["@FailsToStart", slow("@Nonesuch"), slow("python:nonesuch:Backend")])
def test_a_backend_that_cannot_be_opened_is_one_failure_with_the_reason(suite: Run, backend: str) -> None:
    done = suite(backend)
    done.assert_outcomes(failed=1, skipped=3)
    reason = "OSError: no device found" if backend == "@FailsToStart" else "onesuch"
    done.stdout.fnmatch_lines([f"*{reason}*"])
    assert "Traceback" not in str(done.stdout)

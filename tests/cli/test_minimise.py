"""`opconform minimise`: the smallest case that fails alike, for backends of which it is known."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result
from fakes.sampled import slow

from opconform.cli import main

LARGE = "onnx/ReduceMean-18/float32/2x1x3x1x2x2/axes=-6,-5,-4,-3,-2,-1;axes-from=graph-input;dims=symbolic/subnormal"
LONG = "onnx/ReduceMean-18/uint32/2x300/dims=symbolic;keepdims=0;noop_with_empty_axes=0/uniform"
SPECIAL = "onnx/ReduceMean-18/float32/3x2x2/axes=1;dims=symbolic;keepdims=0/special"


def minimise(case: str, backend: str, *more: object) -> Result:
    words = ["minimise", case, f"python:fakes.fragile_backends:{backend}", "--quiet", "--jobs", "1", *map(str, more)]
    return CliRunner().invoke(main, words, catch_exceptions=False)


def smallest(case: str, backend: str, *more: object) -> str:
    done = minimise(case, backend, *more)
    assert done.exit_code == 0, done.output
    found = re.search("^# case +(.*)$", done.stdout, re.MULTILINE)
    assert found
    return found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "backend", "wanted"),
    [
        slow(LARGE, "RankFour", "onnx/ReduceMean-18/float32/1x1x1x1/-/ramp"),
        (LONG, "Beyond64", "onnx/ReduceMean-18/uint32/65/-/ramp"),
        slow(LONG, "NoKeepdims", "onnx/ReduceMean-18/uint32/scalar/keepdims=0/ramp"),
        ("onnx/Mean-13/float32/9*33/-/lattice/inputs-9", "ThirdInput", "onnx/Mean-13/float32/3*scalar/-/ramp"),
        (LARGE, "TwoFaults", "onnx/ReduceMean-18/float32/1x1x1/-/ramp"),
    ],
)
def test_the_smallest_case_is_the_trigger_alone(case: str, backend: str, wanted: str) -> None:
    assert smallest(case, backend) == wanted


@pytest.mark.slow
def test_elements_that_matter_stay_and_a_crash_costs_its_candidate() -> None:
    found = smallest(SPECIAL, "DiesOfNan")
    assert found in {f"onnx/ReduceMean-18/float32/none/data={both}/ramp" for both in ("inf,nan", "nan,inf")}


@pytest.mark.slow
def test_a_case_that_hangs_costs_its_limit_and_no_more() -> None:
    found = smallest(LARGE, "HangsOfNegativeAxes", "--timeout", 0.5, "--seconds", 60)
    assert found == "onnx/ReduceMean-18/float32/1/axes=-1/ramp"


@pytest.mark.slow
def test_it_says_what_is_given_wanted_and_got_before_a_script_that_runs() -> None:
    done = minimise(LARGE, "RankFour")
    comments = [line for line in done.stdout.splitlines() if line.startswith("# ")]
    assert comments[0] == "# wrong-value on python:fakes.fragile_backends:RankFour 1.0"
    assert any("got 1.0, want 0.0 exactly" in line for line in comments)
    assert any(line.startswith("# tensor       data: float32 1x1x1x1: [0.0]") for line in comments)
    assert f"# minimised from {LARGE}" in comments
    run = subprocess.run([sys.executable, "-"], input=done.stdout, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr  # it drives onnxruntime, which is right here
    assert "admitted as the one answer" in run.stdout


@pytest.mark.slow
def test_the_same_search_finds_the_same_case() -> None:
    assert minimise(SPECIAL, "DiesOfNan", "--jobs", 1).stdout == minimise(SPECIAL, "DiesOfNan", "--jobs", 3).stdout


@pytest.mark.slow
def test_a_bound_ends_the_search_with_the_smallest_case_so_far() -> None:
    done = minimise(SPECIAL, "DiesOfNan", "--limit", 3)
    assert done.exit_code == 0
    assert "a limit of the search was reached" in done.stdout


@pytest.mark.slow
def test_an_invalid_case_stays_as_it_is_written() -> None:
    case = "onnx/Mean-8/float32/2*3x2/unknown=weights/ramp/unknown-attribute"
    done = minimise(case, "Accepting")
    assert done.exit_code == 0
    assert f"# case         {case}" in done.stdout
    assert "# 0 steps, 0 candidates judged: an invalid case has one mistake and is left as it is" in done.stdout


def test_a_case_that_passes_is_nothing_to_minimise() -> None:
    done = minimise("onnx/ReduceMean-18/float32/2x3/axes=0/ramp", "RankFour")
    assert done.exit_code == 2
    assert "it passes, so there is nothing to minimise" in done.stderr
    assert done.stdout == ""


@pytest.mark.slow
def test_what_is_wrong_in_the_call_is_said_in_a_line() -> None:
    for words in (("onnx/ReduceMean-18/float32/2x3", "RankFour"), (LARGE, "NoSuch")):
        done = minimise(*words)
        assert done.exit_code == 2
        assert done.stderr.startswith("opconform: ")
        assert "Traceback" not in done.stderr
    other = minimise("openvino/ReduceMean-1/float32,int64/2/axes=0/ramp", "RankFour")
    assert other.exit_code == 2
    assert "only runs cases of onnx" in other.stderr

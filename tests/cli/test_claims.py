"""Claims: what a program promises is checked both ways, and `opconform claims` writes what a run has shown."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from fakes.here import run_here

from opconform.cases.results import Outcome, Result
from opconform.cli import main
from opconform.cli.claims import Support, largest, limited, supported
from opconform.reports.runs import read_results, read_run
from opconform.runners.judging.terms import Demands, load_profile

PROGRAM = """
import base64, json, sys
import numpy as np
hello = json.loads(sys.argv[1])
for line in sys.stdin:
    question = json.loads(line)
    answer = {"answer": "prepared"}
    if question["ask"] == "hello":
        answer = {"answer": "hello", "protocol": 1, "name": "abs", "version": "1", "standards": ["onnx"], **hello}
    elif question["ask"] == "prepare":
        program = question["program"]
        if program["name"] != "Abs" or program["inputs"][0]["type"] not in ("float32", "int32"):
            answer = {"answer": "unsupported", "words": "Abs of float32 and int32 alone"}
    else:
        x = question["inputs"][0]
        y = abs(np.frombuffer(base64.b64decode(x["content"]), x["type"]))
        answer = {"answer": "outputs", "outputs": [{**x, "content": base64.b64encode(y.tobytes()).decode()}]}
    print(json.dumps({"id": question["id"], **answer}), flush=True)
"""
CASES = [
    f"onnx/{name}/scalar/-/ramp" for name in ("Abs-13/float32", "Abs-13/int32", "Abs-13/float64", "Neg-13/float32")
]


def ran(folder: Path, hello: dict[str, Any], *more: str) -> tuple[int, str]:
    (folder / "program.py").write_text(PROGRAM)
    backend = f"cmd:{shlex.join([sys.executable, str(folder / 'program.py'), json.dumps(hello)])}"
    words = ["run", backend, "--quiet", "--jobs", "1", "--out", str(folder / "out"), *more]
    with run_here():  # and the program in a process of its own
        done = CliRunner().invoke(main, words + [word for case in CASES for word in ("--select", case)])
    return done.exit_code, done.output


def claim(versions: list[int], *types: str) -> dict[str, Any]:
    return {"operators": {"onnx/Abs": {"versions": versions, "types": list(types)}}}


@pytest.mark.parametrize(
    ("hello", "fails", "unclaimed"),
    [
        ({}, False, []),
        (claim([13], "float32", "int32"), False, []),
        (claim([13], "float32", "int32", "float64"), True, []),
        (claim([13], "float32"), False, ["onnx/Abs-13 int32"]),
        (claim([6], "float32", "int32"), False, ["onnx/Abs-13 float32", "onnx/Abs-13 int32"]),
        ({"operators": {}}, False, ["onnx/Abs-13 float32", "onnx/Abs-13 int32"]),
        ({**claim([13], "float32", "int32"), "limits": {"shapes": ["static"], "rank": 9}}, False, None),
    ],
)
def test_claims_are_checked_both_ways(hello: dict[str, Any], fails: bool, unclaimed: Any, tmp_path: Path) -> None:
    code, output = ran(tmp_path, hello)
    assert code == fails, output
    told = read_run(tmp_path / "out")["unclaimed"]
    found = sorted(name for names in told.values() for name in names)
    assert unclaimed in (None, found)
    assert ("that it does not claim: onnx/Abs-13" in " ".join(output.split())) == bool(found)
    report = CliRunner().invoke(main, ["report", str(tmp_path / "out"), "--json", str(tmp_path / "told.json")])
    assert report.exit_code == code
    assert json.loads((tmp_path / "told.json").read_text())["unclaimed"] == told


@pytest.mark.slow
def test_what_is_written_from_a_run_holds_in_that_run_and_can_be_claimed(tmp_path: Path) -> None:
    ran(tmp_path, {})
    done = CliRunner().invoke(main, ["claims", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    (tmp_path / "profile.yaml").write_text(done.output)
    assert yaml.safe_load(done.output)["operators"] == claim([13], "float32", "int32")["operators"]
    demands = Demands(profile=load_profile(tmp_path / "profile.yaml"))
    results = list(read_results(tmp_path / "out"))
    assert {str(one.outcome) for one in results} == {"pass", "unsupported"}
    assert not [one.case for one in results if demands.fails(one)]
    told = json.loads(CliRunner().invoke(main, ["claims", str(tmp_path / "out"), "--json"]).output)
    (tmp_path / "again").mkdir()
    assert ran(tmp_path / "again", told)[0] == 0
    assert read_run(tmp_path / "again" / "out")["unclaimed"] == {}


@pytest.mark.slow
def test_a_backend_is_run_where_no_folder_is_named(tmp_path: Path) -> None:
    words = ["claims", "onnx-reference", "--select", "onnx/Abs-13/int8/scalar/-/ramp", "--jobs", "1", "--quiet"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    assert "  onnx/Abs: {" in done.stdout
    assert '"types": ["int8"]' in done.stdout
    assert "conformant" in done.stderr
    assert "results:" not in done.stderr, "its folder is gone"
    assert "opconform report" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["claims", "OUT", "--jobs", "2"], "options of a run need a BACKEND"),
        (["claims", "OUT", "--backend", "other"], "has no backend 'other'"),
        (["claims", "onnx-reference", "--backend", "other"], "--backend needs a results folder"),
    ],
)
def test_wrong_usage_exits_2(words: list[str], message: str, tmp_path: Path) -> None:
    ran(tmp_path, {})
    done = CliRunner().invoke(main, [str(tmp_path / "out") if word == "OUT" else word for word in words])
    assert done.exit_code == 2
    assert message in done.output


def result(case: str, outcome: Outcome) -> Result:
    return Result(case, "b", outcome)


def test_an_opset_that_a_library_does_not_know_limits_the_claim_and_costs_no_operator(tmp_path: Path) -> None:
    shapes = "onnx/Abs-13/float32/4"
    results = [result(f"{shapes}/-/ramp", Outcome.PASS), result(f"{shapes}/opset=28/ramp", Outcome.UNSUPPORTED)]
    limits, claims = limited(list(supported(results)))
    assert limits == {"opset": 27}
    assert (claims["onnx/Abs"].versions, claims["onnx/Abs"].types) == (("13",), ("float32",))


def support(version: str, types: tuple[str, ...], yes: int, no: int) -> Support:
    return Support("onnx/Abs", version, types, False, 0, yes, no, None)


@pytest.mark.parametrize(
    ("supports", "versions", "types", "left_out"),
    [
        ([support("1", ("a",), 5, 0)], ("1",), ("a",), 0),
        ([support("1", ("a",), 5, 1)], (), (), 5),
        ([support("1", ("a",), 5, 0), support("1", ("b",), 0, 9), support("2", ("b",), 3, 0)], ("1",), ("a",), 3),
        ([support("1", ("a",), 0, 5), support("2", ("a",), 9, 0), support("10", ("a",), 9, 0)], ("2", "10"), ("a",), 0),
        ([support("1", (), 5, 0), support("2", (), 0, 1)], ("1",), (), 0),
        ([], (), (), 0),
    ],
)
def test_versions_and_types_are_left_out_that_cost_least(supports, versions, types, left_out) -> None:
    found = largest(supports)
    assert (found.versions, found.types, found.left_out) == (versions, types, left_out)

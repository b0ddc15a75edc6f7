"""The published schemas: what runs and reports write is as they say, and they leave out no key."""

import importlib.resources
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from fakes.here import run_here
from fakes.results import case, invalid, result

from opconform.cases.results import Outcome, Result
from opconform.cli import main

V13 = "onnx/ReduceMean-13"
SELECTED = ("--select", f"{V13}/uint32/*ax*", "--select", f"{V13}/float16/*axes=1/inexact*", "--jobs", "1")
WAIVERS = (
    f"- case: '{V13}/uint32/*/axes-unsorted'\n  outcome: wrong-value\n  reason: known\n"
    "  link: https://example.org/9\n  owner: me\n  expires: 2999-01-01\n"
)
PROFILE = 'name: edge\nversion: "1.0"\noperators:\n  onnx/ReduceMean:\n    versions: [13]\n    types: [float16]\n'
ARITHMETIC = "float16:\n  flush: [input, output]\nthreads: 1\n"
ERRATA = (
    f"- id: E1\n  affects: {V13}/uint32/*/axes-mixed\n  decision: left open\n  link: https://example.org/1\n"
    '  since: "0.1.0"\n'
)
DIGEST = "0" * 64


def schema(name: str) -> dict[str, Any]:
    folder = importlib.resources.files("opconform.reports") / "schemas"
    found: dict[str, Any] = json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
    return found


def closed(told: Any, *, here: bool = True) -> Any:
    """A schema that admits no key which it does not name; a definition is closed where it is referred to."""
    if isinstance(told, list):
        return [closed(part) for part in told]
    if not isinstance(told, dict):
        return told
    found = {
        key: {name: closed(part, here=key != "$defs") for name, part in value.items()}
        if key in ("properties", "$defs")
        else closed(value, here=key != "if")
        for key, value in told.items()
    }
    if here and ("$ref" in told or "properties" in told):
        found["unevaluatedProperties"] = False
    return found


def problems(name: str, told: object, *, strictly: bool = True) -> list[str]:
    read = schema(name)
    if strictly and name != "result":
        read = closed(read)
    validator = jsonschema.Draft202012Validator(read, format_checker=jsonschema.FormatChecker())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(told)]


def call(*words: object) -> None:
    with run_here():
        done = CliRunner().invoke(main, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code in (0, 1), done.output


@pytest.mark.parametrize("name", ["result", "run", "report"])
def test_a_schema_is_one_and_every_property_of_its_surface_is_described(name) -> None:
    read = schema(name)
    jsonschema.Draft202012Validator.check_schema(read)
    assert read["$id"] == f"urn:opconform:{name}:1"
    assert set(read["required"]) <= set(read["properties"])


def test_definitions_that_two_schemas_share_are_the_same() -> None:
    run, report = (schema(name)["$defs"] for name in ("run", "report"))
    shared = run.keys() & report.keys()
    assert "figures" in shared
    assert {name: run[name] for name in shared} == {name: report[name] for name in shared}


# Results


def results() -> Iterator[Result]:
    known = {"case_digest": DIGEST, "expectation_digest": DIGEST, "clauses": ("onnx/ReduceMean#mean",), "seconds": 0.1}
    reasons = {"unsupported": "type", "error": "other"}
    for outcome in Outcome:
        told = "what\nfollows" if outcome is not Outcome.PASS else None
        yield result(str(outcome), detail=told, reason=reasons.get(outcome), bound_ratio=1.5, **known)
    yield result(level="declared", bound_ratio=0.0, behaviour={"accumulator": ["wide", "stepwise"], "flush": []})
    yield invalid("pass", reason="invalid", detail="no such axis")
    yield invalid("accepted-invalid")
    yield result("crash", case(), backend="\x00\ud800<é>", detail="\x1b[31m")


@pytest.mark.parametrize("one", list(results()), ids=lambda one: str(one.outcome))
def test_a_result_is_as_the_schema_says(one) -> None:
    assert not problems("result", json.loads(one.to_json()))


@pytest.mark.parametrize(
    "damage",
    [
        {"outcome": "failed"},
        {"outcome": "pass", "level": None},
        {"outcome": "wrong-value", "level": "strict"},
        {"outcome": "error", "reason": None},
        {"reason": "weather"},
        {"case": ""},
        {"case_digest": "0" * 63},
        {"behaviour": {"flush": "none"}},
        {"seconds": -1},
        {"seconds": "0.1"},
        {"clauses": None},
        {"more": None},
    ],
    ids=str,
)
def test_what_is_no_result_is_refused(damage) -> None:
    assert problems("result", {**json.loads(result().to_json()), **damage})


def test_a_result_without_one_of_its_keys_is_refused() -> None:
    whole = json.loads(result().to_json())
    for name in whole:
        assert problems("result", {key: told for key, told in whole.items() if key != name})


# Runs and reports


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Runs that have something in every part of their `run.json`, and one that judged them again."""
    place = tmp_path_factory.mktemp("runs")
    terms = []
    for name, text in {"waivers": WAIVERS, "profile": PROFILE, "arithmetic": ARITHMETIC, "errata": ERRATA}.items():
        (place / name).write_text(text)
        terms += [f"--{name}", place / name]
    common = (*SELECTED, *terms, "--require", "invalid=rejected", "--keep-outputs", "all")
    backends = [f"python:fakes.backends:{name}" for name in ("WrongOnUint32", "RefusesTypes", "AnswersInvalid")]
    call("run", *backends, *common, "--out", place / "several")
    for index in (1, 2):
        call(
            "run", "python:fakes.backends:Flushes", *common, "--shard", f"{index}/2", "--out", place / f"shard-{index}"
        )
    call("rejudge", place / "several", "--out", place / "rejudged")
    return place


@pytest.mark.parametrize("name", ["several", "shard-1", "rejudged"])
def test_the_files_of_a_run_are_as_the_schemas_say(folders, name) -> None:
    told = json.loads((folders / name / "run.json").read_text())
    assert not problems("run", told)
    lines = (folders / name / "results.jsonl").read_text().splitlines()
    assert lines
    assert not [found for line in lines for found in problems("result", json.loads(line))]


def test_a_run_under_way_and_one_that_failed_have_no_figures(folders) -> None:
    told = json.loads((folders / "several" / "run.json").read_text())
    late = ("figures", "waiver_problems", "accuracy", "behaves_like", "declared_arithmetic", "exit_code")
    begun = {key: value for key, value in told.items() if key not in late}
    assert not problems("run", {**begun, "status": "running"})
    assert not problems("run", {**begun, "status": "failed"})
    assert problems("run", begun)


def test_a_report_of_several_runs_is_as_the_schema_says(folders, tmp_path) -> None:
    parts = [folders / name for name in ("several", "shard-1")]
    call("report", *parts, "--partial", "--json", tmp_path / "report.json")
    told = json.loads((tmp_path / "report.json").read_text())
    assert not problems("report", told)
    assert told["failures"]
    assert told["behaviours"]
    assert told["declared_arithmetic"]
    assert told["runs"][1]["missing"] == ["2/2"]


@pytest.mark.parametrize("name", ["run", "report"])
def test_a_key_that_a_later_version_adds_is_admitted(folders, tmp_path, name) -> None:
    told = json.loads((folders / "several" / "run.json").read_text())
    if name == "report":
        call("report", folders / "several", "--json", tmp_path / "report.json")
        told = json.loads((tmp_path / "report.json").read_text())
    assert not problems(name, {**told, "later": 1}, strictly=False)
    assert problems(name, {**told, "later": 1})
    assert problems(name, {**told, "exit_code": 7}, strictly=False)

"""The cases of a site, as its files hold them: a case in full, whatever its results say."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from fakes.here import run_here
from fakes.results import HOSTILE, IDS, LARGE, MESSAGE, RIGHT, SUM, WHOLE, result, write_folder, write_site_results

from opconform.cases.results import Outcome
from opconform.cli import main
from opconform.generators.source import GeneratedCases
from opconform.reports.runs import put_together
from opconform.reports.script import short_reproduction
from opconform.reports.show import case_text
from opconform.reports.site import case_pages
from opconform.reports.site.build import write_site
from opconform.reports.site.case_lists import unpacked, words_of
from opconform.reports.site.gather import gather


def content_of(site: Path, name: str) -> bytes:
    """What a page unpacks of a script."""
    text = (site / "data" / "cases" / f"{name}.js").read_text()
    found = re.fullmatch(r'opconformData\("([\w-]+)","([A-Za-z0-9+/=]*)"\);\n', text)
    assert found is not None
    assert found[1] == name
    return unpacked(found[2])


def details_of(site: Path) -> dict[str, dict[str, Any]]:
    """All details, by case, each with its script."""
    found = {}
    for file in (site / "data" / "cases").glob("chunk-*.js"):
        chunk = json.loads(content_of(site, file.stem))
        for told, script in zip(chunk["details"], chunk["scripts"], strict=True):
            found[told["id"]] = {**told, "script": script}
    return found


def index_of(site: Path) -> dict[str, Any]:
    content = content_of(site, "index")
    return json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site-of-cases")
    write_site(put_together([write_site_results(folder / "results")]), folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def details(site: Path) -> dict[str, dict[str, Any]]:
    return details_of(site)


@pytest.mark.slow
def test_every_case_of_a_small_run_is_told_in_full(details: dict[str, dict[str, Any]]) -> None:
    assert details.keys() == set(IDS)
    assert all(told["why"] is None and told["options"] for told in details.values())


@pytest.mark.slow
@pytest.mark.parametrize("case", [SUM, WHOLE])
def test_a_case_is_told_as_show_tells_it(details: dict[str, dict[str, Any]], case: str) -> None:
    source = GeneratedCases()
    told, shown = details[case], case_text(source, source.case(case)).splitlines()
    assert [line for line in shown if line in told["operation"]] == told["operation"]
    assert [line for line in shown if line in told["derivation"]] == told["derivation"]
    status = {"required": ""}
    clauses = [
        f"clause       {c['id'].split('#')[1]}: {c['text']}{status.get(c['status'], ' (inferred)')}"
        for c in told["clauses"]
    ]
    assert [line for line in shown if line in clauses] == clauses
    assert len(clauses) > 1


@pytest.mark.slow
def test_a_case_that_fails_has_the_script_that_show_prints_and_others_have_none(tmp_path: Path) -> None:
    cases = {name: GeneratedCases().case(name) for name in (SUM, WHOLE)}
    told = [
        result(outcome, name, case_digest=cases[name].digest, expectation_digest=cases[name].expectation.digest)
        for outcome, name in (("wrong-value", SUM), ("pass", WHOLE))
    ]
    write_site(put_together([write_folder(tmp_path / "results", told)]), tmp_path / "site")
    scripts = {name: one["script"] for name, one in details_of(tmp_path / "site").items()}
    assert scripts == {SUM: short_reproduction(cases[SUM]), WHOLE: None}


def test_inputs_and_bounds_are_those_of_the_case_to_the_bit(details: dict[str, dict[str, Any]]) -> None:
    case = GeneratedCases().case(SUM)
    told = details[SUM]
    assert base64.b64decode(told["inputs"][0]["bits"]) == case.tensors()[0].tobytes()
    for option, shown in zip(case.expectation.options, told["options"], strict=True):
        assert shown["labels"] == dict(option.labels)
        for bounds, output in zip(option.outputs, shown["outputs"], strict=True):
            assert np.array_equal(np.frombuffer(base64.b64decode(output["lower"])), bounds.lower.reshape(-1))
            assert np.array_equal(np.frombuffer(base64.b64decode(output["upper"])), bounds.upper.reshape(-1))


def test_a_failure_is_told_with_its_answer_its_difference_and_its_certificate(
    details: dict[str, dict[str, Any]],
) -> None:
    failed = [r for r in details[SUM]["results"] if r["outcome"] == "wrong-value"]
    assert len(failed) == 1
    difference = failed[0]["difference"]["outputs"][0]
    assert f"({difference['wrong']} of {difference['size']} wrong)" in failed[0]["detail"]
    assert difference["mismatches"]["places"] == [0]
    assert failed[0]["answer"][0]["shape"] == [3, 1, 2]
    assert json.loads(details[SUM]["certificate"])["case"] == SUM


def test_hostile_names_and_messages_are_cut_and_can_end_no_script(
    site: Path, details: dict[str, dict[str, Any]]
) -> None:
    refused = next(r for r in details[LARGE]["results"] if r["outcome"] == "error")
    assert refused["detail"].startswith("<img src=x onerror=alert(1)></script>\\u202e\\x1b[31mlong")
    assert refused["detail"].endswith(f"(cut: {len(MESSAGE):,} characters in all)")
    names = [backend["name"] for backend in index_of(site)["backends"]]
    assert any(name.startswith("</script><script>alert(1)</script>\\u202eevil\\x00") for name in names)
    for page in ("cases.html", "case.html"):
        assert HOSTILE not in (site / page).read_text()


@pytest.mark.slow
def test_a_case_that_the_suite_makes_otherwise_today_says_so(tmp_path: Path) -> None:
    case = GeneratedCases().case(SUM)
    told = result("error", SUM, clauses=case.clauses, case_digest=case.digest)
    other = [
        msgspec.structs.replace(told, expectation_digest="0" * 64),
        result("error", WHOLE, case_digest="0" * 64),
        result("error", "onnx/Gone-1/float32/2/-/ramp"),
    ]
    write_site(put_together([write_folder(tmp_path / "results", other)]), tmp_path / "site")
    why = {name: told["why"] for name, told in details_of(tmp_path / "site").items()}
    assert "expects another answer" in why[SUM]
    assert "other inputs" in why[WHOLE]
    assert "no longer has this case" in why["onnx/Gone-1/float32/2/-/ramp"]


def test_of_many_cases_those_that_fail_are_told_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_pages, "FEW", 2)
    gathered = gather(put_together([write_site_results(tmp_path / "results")]))
    assert [gathered.cases[number] for number in case_pages.detailed(gathered)] == sorted(IDS, key=gathered.cases.index)
    monkeypatch.setattr(case_pages, "MOST", 1)
    assert len(case_pages.detailed(gathered)) == 1


def test_of_failures_alike_one_comes_before_the_second_of_another_kind(tmp_path: Path) -> None:
    alike = [f"onnx/ReduceMean-18/float32/{n}x2/axes=0/uniform" for n in range(2, 6)]
    lone = "onnx/ReduceMean-18/float32/3x2/axes=0/special"
    kept = [*(result("error", case) for case in [*alike, lone]), result("pass", "onnx/ReduceMean-18/float32/2/-/ramp")]
    gathered = gather(put_together([write_folder(tmp_path / "results", kept)]))
    first = [gathered.cases[number] for number in case_pages.failing_cases(gathered)]
    assert set(first) == {*alike, lone}
    assert lone in first[:2]


def test_what_backends_said_of_failures_is_there_to_be_searched(tmp_path: Path) -> None:
    gathered = gather(put_together([write_site_results(tmp_path / "results")]))
    words = words_of(gathered)
    place = [column.name for column in gathered.columns].index(HOSTILE)
    said = words["backends"][place]
    cases = [gathered.cases[number] for number in np.cumsum(said["cases"])]
    assert set(cases) == set(IDS)
    assert len(set(said["kinds"])) == 3
    texts = dict(zip(cases, (words["texts"][number] for number in said["texts"]), strict=True))
    assert "(1 of 1 wrong)" in texts[WHOLE]
    assert len(texts[LARGE]) < 400
    right = words["backends"][[column.name for column in gathered.columns].index(RIGHT)]
    assert right == {"cases": [], "texts": (), "kinds": ()}
    place = gathered.column(RIGHT).places[0]
    assert place is not None
    assert place.outcome is Outcome.PASS


STFT = "onnx/STFT-17/float64,int32/1x8x1,5/frame_length-from=constant;frame_step=1;window-from=constant/uniform"
WRONG_AXIS = "onnx/Concat-1/float32/2*4x4x4/axis=3/ramp/axis-large"


def test_a_case_of_tools_is_told_with_what_they_have_to_say(tmp_path: Path) -> None:
    chosen = ["--select", STFT, "--select", WRONG_AXIS, "--quiet", "--jobs", "1", "--out", str(tmp_path / "out")]
    with run_here():
        CliRunner().invoke(main, ["run", "onnx-infer", "onnx-check-full", *chosen])
    write_site(put_together([tmp_path / "out"]), tmp_path / "site")
    told = details_of(tmp_path / "site")
    assert {case: one["why"] for case, one in told.items()} == {STFT: None, WRONG_AXIS: None}
    lines = {case: {part["kind"]: part["lines"] for part in one["tools"]} for case, one in told.items()}
    assert lines[STFT] == {"infer": ["output: float64[1,4,3,2]"], "check": ["valid: a checker has to accept it"]}
    assert lines[WRONG_AXIS]["check"] == ["invalid, as the program alone shows: a checker has to refuse it"]
    assert lines[WRONG_AXIS]["infer"] == ["a refusal", "any answer"]
    for one in told.values():
        assert one["runs"] is False
        assert all(result.get("answer") is None for result in one["results"])

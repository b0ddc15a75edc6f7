from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from fakes.results import MEAN, case, invalid, result, write_folder

from opconform.cases.errors import OpconformError
from opconform.cases.results import Outcome, Result
from opconform.reports.folder import ResultsFolder
from opconform.reports.junit import check_target, write_junit
from opconform.runners.judging.terms import Demands, Profile, Promise, Suspensions

HOSTILE = "]]> <b>&amp; \x00\x1b[31m \ud800 \ufffe \U0001f600 ü \"'\ttab\r\nnext"
SHOWN = "]]> <b>&amp; \\x00\\x1b[31m \\ud800 \\ufffe \U0001f600 ü \"'\ttab\r\nnext"


def junit(path: Path, *results: Result, demands: Demands | None = None, disputed: str = "") -> ET.Element:
    path.mkdir(parents=True, exist_ok=True)
    with ResultsFolder.create(path / "results") as out:
        for one in results:
            out.add(one.to_json())
    suspensions = Suspensions(disputed={disputed: "https://tracker.example/1"})
    versions = {"alpha": "1.2"}
    target = path / "junit.xml"
    write_junit(path / "results", target, demands=demands, suspensions=suspensions, versions=versions)
    return ET.parse(target).getroot()


def cases(root: ET.Element) -> dict[str, ET.Element]:
    return {str(found.get("name")): found for found in root.iter("testcase")}


def verdicts(root: ET.Element) -> dict[str, list[str]]:
    return {name.rpartition("/")[2]: [child.tag for child in found] for name, found in cases(root).items()}


def test_a_suite_is_a_backend_and_an_operator_version_even_if_results_are_interleaved(tmp_path: Path) -> None:
    root = junit(
        tmp_path,
        result(seconds=0.25),
        result(case=case("onnx/Mean-13")),
        result("error", case=case(fill="nan"), seconds=0.5),
        result("crash", backend="beta"),
    )
    assert [(s.get("name"), s.get("tests"), s.get("failures"), s.get("errors")) for s in root] == [
        ("alpha onnx/ReduceMean-13", "2", "1", "0"),
        ("alpha onnx/Mean-13", "1", "0", "0"),
        ("beta onnx/ReduceMean-13", "1", "0", "1"),
    ]
    assert [found.get("name") for found in root[0].iter("testcase")] == [MEAN, case(fill="nan")]
    assert root[0].get("time") == "0.750000"
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root[0].get("skipped")) == ("4", "1", "1", "0")
    assert {p.get("name"): p.get("value") for p in root[0].iter("property")} == {"backend-version": "1.2"}
    first = cases(root)[case(fill="nan")]
    assert (first.get("classname"), first.get("time")) == ("alpha.onnx/ReduceMean-13", "0.500000")


def test_outcomes_have_their_junit_names(tmp_path: Path) -> None:
    outcomes = [
        *["pass", "wrong-value", "wrong-shape", "wrong-dtype", "error", "unsupported", "crash", "timeout"],
        *["waived", "runner-error"],
    ]
    root = junit(tmp_path, *(result(o, case=case(fill=o)) for o in outcomes), invalid("accepted-invalid"))
    assert verdicts(root) == {
        "pass": [],
        "wrong-value": ["failure"],
        "wrong-shape": ["failure"],
        "wrong-dtype": ["failure"],
        "error": ["failure"],
        "unsupported": ["skipped"],
        "crash": ["error"],
        "timeout": ["error"],
        "waived": ["skipped"],
        "runner-error": ["error"],
        "axis-too-large": ["skipped"],
    }
    assert (root[0].get("failures"), root[0].get("errors"), root[0].get("skipped")) == ("4", "3", "3")


def test_what_the_user_demands_is_a_failure(tmp_path: Path) -> None:
    demands = Demands({"invalid": "rejected"}, Profile("p", "1", {"onnx/ReduceMean": Promise()}))
    root = junit(tmp_path, invalid("accepted-invalid"), result("unsupported"), demands=demands)
    assert verdicts(root) == {"axis-too-large": ["failure"], "uniform": ["failure"]}


def test_a_suspended_case_is_skipped_with_its_reason_but_a_crash_is_not(tmp_path: Path) -> None:
    clause = "onnx/ReduceMean#noop"
    wrong = result("wrong-value", clauses=("onnx/ReduceMean#mean", clause), detail="got 1")
    crash = result("crash", case=case(fill="nan"), clauses=(clause,))
    root = junit(tmp_path, wrong, crash, disputed=clause)
    assert verdicts(root) == {"uniform": ["skipped"], "nan": ["error"]}
    message = root.find(".//skipped").get("message")  # type: ignore[union-attr]
    assert message == f"suspended (clause {clause} is disputed: https://tracker.example/1): wrong-value"


def test_a_message_has_the_first_line_and_the_body_all_of_the_detail(tmp_path: Path) -> None:
    root = junit(
        tmp_path, result("waived", detail="error, waived by w.yaml:2\nelement [0]"), result("error", detail="boom")
    )
    skipped, failure = root.find(".//skipped"), root.find(".//failure")
    assert skipped is not None
    assert failure is not None
    assert skipped.get("message") == "waived: error, waived by w.yaml:2"
    assert skipped.text == "error, waived by w.yaml:2\nelement [0]"
    assert (failure.get("message"), failure.get("type")) == ("error: boom", "error")
    assert failure.text == f"boom\nreproduce: opconform run alpha --select '{MEAN}'"


def test_a_skipped_case_s_detail_of_a_line_is_its_message_alone(tmp_path: Path) -> None:
    (skipped,) = junit(tmp_path, result("unsupported", detail="no such op")).iter("skipped")
    assert (skipped.get("message"), skipped.text) == ("unsupported: no such op", None)


def test_text_that_xml_cannot_hold_is_escaped_visibly(tmp_path: Path) -> None:
    root = junit(tmp_path, result("unsupported", case=f"x/{HOSTILE}", backend=HOSTILE, detail=HOSTILE))
    assert root[0].get("name") == f"{SHOWN} x/{SHOWN.partition('/')[0]}"
    assert list(cases(root)) == [f"x/{SHOWN}"]
    skipped = root.find(".//skipped")
    assert skipped is not None
    assert skipped.text == SHOWN.replace("\r\n", "\n")  # as every reader of XML does


def test_no_result_makes_an_empty_but_whole_file(tmp_path: Path) -> None:
    root = junit(tmp_path)
    assert (root.tag, root.get("tests"), len(root)) == ("testsuites", "0", 0)


def test_a_place_that_cannot_be_written_to_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    ResultsFolder.create(tmp_path / "results").close()
    for target in (tmp_path / "missing" / "junit.xml", Path("/"), tmp_path / "results"):
        with pytest.raises(OpconformError, match="cannot be written: "):
            write_junit(tmp_path / "results", target)
        with pytest.raises(OpconformError, match="cannot be written: "):
            check_target(target)
    assert [f.name for f in tmp_path.iterdir()] == ["results"]


# What viewers read: Jenkins' schema junit-10, which its xUnit plugin insists on, and the limits of others
ADMITTED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "time", "tests", "failures", "errors", "skipped", "timestamp"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "time", "classname"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
}
WITHIN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"failure", "error", "skipped"},
}


def test_elements_and_attributes_are_those_that_jenkins_schema_admits(tmp_path: Path) -> None:
    root = junit(tmp_path, *(result(str(o), case=case(fill=str(o)), detail=str(o), seconds=12345.5) for o in Outcome))
    for element in root.iter():
        assert set(element.attrib) <= ADMITTED[element.tag]
        assert {child.tag for child in element} <= WITHIN.get(element.tag, set())
        assert len(element.findall("properties")) <= 1
        if "time" in element.attrib:
            assert re.fullmatch(r"\d+\.\d{6}", element.attrib["time"])
    assert [child.tag for child in root[0]][:2] == ["properties", "testcase"]
    assert all(len(found) <= 1 for found in root.iter("testcase"))  # of several, Jenkins keeps one


def test_the_same_case_of_two_backends_is_two_tests(tmp_path: Path) -> None:
    """GitLab drops a test whose class and name were there before."""
    digest = {"case_digest": "0" * 64, "expectation_digest": "0" * 64, "seconds": 0.1, "clauses": ("a#b",)}
    hostile = result("error", backend="<\"&'>")  # and one whose line is not that of a usual pass
    root = junit(tmp_path, result(**digest), result(backend="python:my.module:Backend", **digest), hostile)
    found = [(str(one.get("classname")), one.get("name")) for one in root.iter("testcase")]
    assert len(set(found)) == 3
    packages = [name.rpartition(".")[0] for name, _ in found]  # as Jenkins groups them
    assert packages == ["alpha", "python:my.module:Backend", "<\"&'>"]


def test_a_suite_has_the_time_at_which_its_run_began(tmp_path: Path) -> None:
    write_folder(tmp_path / "run", [result()], night=3)
    write_junit(tmp_path / "run", tmp_path / "j.xml")
    assert ET.parse(tmp_path / "j.xml").getroot()[0].get("timestamp") == "2026-01-03T01:00:00"


def test_a_file_stays_small_whatever_backends_say(tmp_path: Path) -> None:
    """GitLab takes 30 MB a file: a hundred thousand cases that pass, and then some."""
    many = [result(case=f"{MEAN}-{index}", seconds=0.1) for index in range(1000)]
    junit(tmp_path / "pass", *many)
    assert (tmp_path / "pass" / "junit.xml").stat().st_size < 1000 * 200
    root = junit(tmp_path / "loud", *(result("error", detail="x" * 1_000_000) for _ in range(3)))
    assert (tmp_path / "loud" / "junit.xml").stat().st_size < 40_000
    assert root.find(".//failure").text.endswith(f"--select '{MEAN}'")  # type: ignore[union-attr]

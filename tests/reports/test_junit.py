from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from fakes.results import MEAN, case, invalid, result

from opconform.cases.errors import OpconformError
from opconform.cases.results import Result
from opconform.reports.folder import ResultsFolder
from opconform.reports.junit import check_target, write_junit
from opconform.runners.demands import Demands
from opconform.runners.profile import Profile, Promise
from opconform.specs.errata import Suspensions

HOSTILE = "]]> <b>&amp; \x00\x1b[31m \ud800 \ufffe \U0001f600 ü \"'\ttab\r\nnext"
SHOWN = "]]> <b>&amp; \\x00\\x1b[31m \\ud800 \\ufffe \U0001f600 ü \"'\ttab\r\nnext"


def junit(path: Path, *results: Result, demands: Demands | None = None, disputed: str = "") -> ET.Element:
    with ResultsFolder.create(path / "results") as out:
        for one in results:
            out.add(one)
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
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == ("4", "1", "1", "0")
    assert {p.get("name"): p.get("value") for p in root[0].iter("property")} == {"backend-version": "1.2"}
    first = cases(root)[case(fill="nan")]
    assert (first.get("classname"), first.get("time")) == ("onnx/ReduceMean-13", "0.500000")


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
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("4", "3", "3")


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
    assert (failure.get("message"), failure.get("type"), failure.text) == ("error", "error", "boom")


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

"""`opconform run`: what users require, declare, dispute and waive, and what that makes of the same answers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from fakes.results import FRACTION, V13, Ran, written

from opconform.specs.loader import default_root

# Silences, declarations, profiles


def test_a_narrow_accumulator_is_shown_and_fails_only_where_a_wide_one_is_required(judge: Any) -> None:
    select = ("--select", f"{V13}/float16/*/stagnation")
    shown = judge("@Narrow", *select, out="shown")
    assert shown.code == 0
    (result,) = shown.lines
    assert "wide" not in result["behaviour"]["accumulator"]
    required = judge("@Narrow", *select, "--require", "accumulator=wide", out="required")
    assert required.code == 1
    (result,) = required.lines
    assert result["outcome"] == "wrong-value"
    assert "required: accumulator=wide" in result["detail"]
    assert judge("@Right", *select, "--require", "accumulator=wide", out="right").code == 0


def test_a_flush_to_zero_declaration_makes_a_second_column(judge: Any, tmp_path: Path) -> None:
    file = written(tmp_path, "ftz.yaml", "float16: {flush: [input, output]}\n")
    select = ("--select", "onnx/Mean-6/float16/*/mixed", "--select", "onnx/Mean-6/float16/*/underflow*")
    select = (*select, "--require", "flush=none")
    strict = judge("@Flushes", *select, out="strict")
    assert strict.code == 1
    failing = strict.outcomes()["wrong-value"]
    declared = judge("@Flushes", *select, "--arithmetic", file, out="declared")
    assert declared.code == 0, declared.output
    assert {c for c, r in declared.results.items() if r["level"] == "declared"} == failing
    assert declared.figures["correctness"] == strict.figures["correctness"] < 1
    assert declared.figures["declared_correctness"] == 1
    assert re.fullmatch("[0-9a-f]{64}", declared.about["arithmetic"]["digest"])
    right = judge("@Right", *select, "--arithmetic", file, out="right")
    assert {r["level"] for r in right.lines} == {"strict"}


def test_a_case_without_subnormal_numbers_says_nothing_about_a_declared_flush(judge: Any, tmp_path: Path) -> None:
    file = written(tmp_path, "ftz.yaml", "float32: {flush: [input]}\n")
    ran = judge("@Right", "--arithmetic", file, "--select", "onnx/Mean-13/float32/2x*/ramp*", out="plain")
    assert not any("flush" in result["behaviour"] for result in ran.lines)
    (told,) = ran.about["declared_arithmetic"].values()
    assert [one["evidence"] for one in told] == ["not shown"]
    probed = judge("@Right", "--arithmetic", file, "--select", "onnx/ReduceMean-13/*/subnormal-among/*", out="probed")
    (told,) = probed.about["declared_arithmetic"].values()
    assert [one["evidence"] for one in told] == ["contradicted"]


def test_float64_computed_in_float32_passes_only_as_declared(judge: Any, tmp_path: Path) -> None:
    file = written(tmp_path, "narrow.yaml", "float64: {compute: float32}\n")
    select = ("--select", "onnx/Mean-6/float64/*/mixed", "--select", "onnx/Mean-6/float64/*/ramp")
    assert judge("@DoubleAsFloat", *select, out="strict").code == 1
    ran = judge("@DoubleAsFloat", *select, "--arithmetic", file, out="declared")
    assert ran.code == 0
    assert {r["level"] for r in ran.lines} == {"strict", "declared"}


@pytest.mark.slow
def test_a_profile_makes_missing_support_a_failure_inside_it(judge: Any, tmp_path: Path) -> None:
    def with_types(types: str) -> Ran:
        text = f"name: edge\nversion: '2'\noperators:\n  onnx/Mean: {{versions: [6], types: [{types}]}}\n"
        file = written(tmp_path, f"{len(types)}.yaml", text)
        return judge("@RefusesTypes", "--select", "onnx/Mean-6/float*/*", "--profile", file, out=f"out{len(types)}")

    inside = with_types("float16, float32")
    assert inside.code == 1
    assert inside.about["profile"]["name"] == "edge"
    assert re.fullmatch("[0-9a-f]{64}", inside.about["profile"]["digest"])
    assert inside.figures["correctness"] == 1, "what is missing is not incorrect"
    outside = with_types("float32")
    assert outside.code == 0
    assert outside.outcomes() == inside.outcomes()


# Disputes


def specs_with(folder: Path, old: str, new: str) -> Path:
    """Return a copy of the spec files in which ReduceMean's has one text for another."""
    root = folder / "specs"
    shutil.copytree(default_root() / "onnx", root / "onnx")
    file = root / "onnx" / "ReduceMean.yaml"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    return root


WRONG = f"{V13}/uint32/3x2x2/axes=2,0/ramp/axes-unsorted"
UNSORTED = ("--select", WRONG, "--select", FRACTION)


def test_a_disputed_clause_is_suspended_from_correctness_and_shown(judge: Any, tmp_path: Path) -> None:
    assert judge("@WrongOnUint32", *UNSORTED, out="settled").code == 1
    specs = specs_with(
        tmp_path,
        "status: inferred                  # the text speaks of the axes along which to reduce, as a set",
        "status: disputed\n    upstream: https://example.org/issues/7",
    )
    ran = judge("@WrongOnUint32", *UNSORTED, "--specs", specs, out="disputed")
    assert ran.code == 0, ran.output
    assert ran.about["disputed"] == {"onnx/ReduceMean#axes-order": "https://example.org/issues/7"}
    assert (ran.figures["suspended"], ran.figures["judged"], ran.figures["correctness"]) == (1, 1, 1)
    assert "https://example.org/issues/7" in ran.output
    assert set(ran.outcomes()) == {"wrong-value", "pass"}, "the outcome itself is kept"
    assert ran.about["suite"]["digest"] != judge("@Right", *UNSORTED, out="right").about["suite"]["digest"]


def test_an_erratum_suspends_what_it_affects(judge: Any, tmp_path: Path) -> None:
    text = (
        "- id: E1\n  affects: onnx/ReduceMean-13/uint32/*\n  decision: two readings\n"
        "  link: https://example.org/issues/8\n  since: '0.1.0'\n"
    )
    ran = judge("@WrongOnUint32", *UNSORTED, "--errata", written(tmp_path, "errata.yaml", text))
    assert ran.code == 0, ran.output
    assert ran.about["errata"]["ids"] == ["E1"]
    assert ran.about["figures"]["suspended"] == {"erratum E1": 1}
    skipped = [c for c in ran.junit().iter("testcase") if c.find("skipped") is not None]
    assert [c.get("name") for c in skipped] == [c for c in ran.results if "/uint32/" in c]


# Waivers


def waiver(case: str, outcome: str = "wrong-value", expires: str = "2999-01-01", **more: str) -> str:
    lines = {"case": f"'{case}'", "outcome": outcome, "reason": "known", "link": "https://example.org/9"}
    return (
        "- " + "\n  ".join(f"{k}: {v}" for k, v in {**lines, "owner": "me", "expires": expires, **more}.items()) + "\n"
    )


def test_a_true_waiver_makes_a_run_pass_and_keeps_what_failed(judge: Any, tmp_path: Path) -> None:
    file = written(tmp_path, "waivers.yaml", waiver(f"{V13}/uint32/*"))
    ran = judge("@WrongOnUint32", *UNSORTED, "--waivers", file)
    assert ran.code == 0, ran.output
    assert ran.about["waiver_problems"] == []
    assert re.fullmatch("[0-9a-f]{64}", ran.about["waivers"]["digest"])
    assert ran.outcomes()["waived"] == {WRONG}
    assert ran.results[WRONG]["detail"].startswith("wrong-value, waived by")
    assert ran.figures["correctness"] == 0.5, "a waived case is judged, and has not passed"


MIXED = f"{V13}/uint32/3x2x2/axes=-1,0/ramp/axes-mixed"
TWICE = f"{V13}/uint32/3x2x2/axes=0,0/ramp/axis-twice"
UNTRUE = {
    "expired on 2020-01-01": waiver(f"{V13}/uint32/*/axes-unsorted", expires="2020-01-01"),
    "stale: nothing that it matches failed": waiver(FRACTION),
    "waives crash, but .* failed with wrong-value": waiver(f"{V13}/uint32/*/axes-mixed", "crash"),
    "waives wrong-value with 'got -1' in its detail": waiver(f"{V13}/uint32/*/axis-twice", detail="got -1"),
}


def test_waivers_that_no_longer_tell_the_truth_fail_a_run_each_with_its_reason(judge: Any, tmp_path: Path) -> None:
    file = written(tmp_path, "waivers.yaml", "".join(UNTRUE.values()))
    more = [word for case in (MIXED, TWICE) for word in ("--select", case)]
    ran = judge("@WrongOnUint32", *UNSORTED, *more, "--waivers", file)
    assert ran.code == 1
    assert "waived" not in ran.outcomes()
    problems = ran.about["waiver_problems"]
    assert len(problems) == len(UNTRUE)
    for words, problem, line in zip(UNTRUE, problems, (1, 7, 13, 19), strict=True):
        assert re.search(rf"waivers.yaml:{line}: {words}", problem)
    assert ran.output.count("waivers.yaml:") == len(UNTRUE)


def test_a_stale_waiver_fails_a_run_in_which_all_is_right(judge: Any, tmp_path: Path) -> None:
    ran = judge("@Right", "--select", FRACTION, "--waivers", written(tmp_path, "waivers.yaml", waiver(FRACTION)))
    assert ran.code == 1
    assert set(ran.outcomes()) == {"pass"}

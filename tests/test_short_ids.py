from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from fakes.results import result, write_folder

from opconform.cases import short
from opconform.cases.errors import CaseIdError
from opconform.cases.lock import read_locks
from opconform.cases.short import is_short, known_short_id, long_id, short_id
from opconform.cli import main
from opconform.runners.judging.terms import load_waivers

CASE = "onnx/Relu-14/float32/scalar/-/ramp"
SHORT = "onnx/Relu-14#btl7ig"
FOREIGN = "onnx/Relu-14/float32/scalar/draw=77/uniform"
LOCKS = Path(short.__file__).parent / "manifests"


def test_a_short_id_stands_for_one_case_of_the_default_suite() -> None:
    assert (short_id(CASE), known_short_id(CASE)) == (SHORT, SHORT)
    assert long_id(SHORT) == CASE
    assert long_id(CASE) == CASE
    assert long_id("onnx/Relu-*") == "onnx/Relu-*"


@pytest.mark.slow
def test_no_two_cases_of_the_default_suite_have_the_same_short_id() -> None:
    ids = [short_id(one.id) for lock in read_locks(LOCKS).values() for one in lock.cases]
    assert len(ids) > 50_000
    assert len(set(ids)) == len(ids)
    assert all(map(is_short, ids))


def test_a_short_id_of_no_case_and_one_of_several_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaseIdError, match="no case has this short id; looked in the default suite"):
        long_id("onnx/Relu-14#zzzzzz")
    monkeypatch.setattr(short, "_letters", lambda text: "aaaa" + text[-4:])
    with pytest.raises(
        CaseIdError, match=r"#aaaa: \d+ cases begin so; use more letters, or the long id:\n  onnx/Relu-14"
    ):
        long_id("onnx/Relu-14#aaaa")


def test_a_case_outside_of_the_default_suite_is_found_in_a_results_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "elsewhere", [result(case=FOREIGN)])
    assert known_short_id(FOREIGN) == FOREIGN
    with pytest.raises(CaseIdError):
        long_id(short_id(FOREIGN))
    assert long_id(short_id(FOREIGN), [tmp_path / "elsewhere"]) == FOREIGN
    told = CliRunner().invoke(main, ["show", short_id(FOREIGN), "--results", "elsewhere"], catch_exceptions=False)
    assert FOREIGN in told.output
    write_folder(tmp_path / "opconform-results" / "one", [result(case=FOREIGN)])
    assert long_id(short_id(FOREIGN)) == FOREIGN


def test_a_short_id_is_accepted_wherever_a_case_id_is(tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["show", SHORT])
    assert shown.output.splitlines()[0].split() == ["case", CASE]
    listed = CliRunner().invoke(main, ["list", "cases", "--select", SHORT])
    assert listed.output.splitlines() == [CASE]
    wrong = CliRunner().invoke(main, ["show", "onnx/Relu-14#zzzzzz"])
    assert wrong.exit_code == 2
    assert "no case has this short id" in wrong.output


def test_a_waiver_may_name_a_short_id(tmp_path: Path) -> None:
    (tmp_path / "waivers.yaml").write_text(
        json.dumps(
            [
                {
                    "case": SHORT,
                    "backend": "alpha",
                    "outcome": "wrong-value",
                    "reason": "known",
                    "link": "https://example.com/1",
                    "owner": "me",
                    "expires": "2030-01-01",
                }
            ]
        )
    )
    assert str(load_waivers(tmp_path / "waivers.yaml").entries[0].case) == CASE

"""Passes counted together tell what they tell one by one."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from fakes.results import result

from opconform.cases.results import Result
from opconform.reports.junit import write_junit
from opconform.reports.lines import UsualLines
from opconform.reports.tables import Tables, Terms
from opconform.specs.errata import Errata, Erratum, Suspensions

DIGEST = "0123456789abcdef" * 4
TODAY = dt.date(2026, 1, 1)


def passing(draw: int, *, fill: str = "uniform", flush: list[str] | None = None) -> Result:
    case = f"onnx/ReduceMean-13/float32/3x2x2/axes=0;draw={draw};keepdims=0/{fill}"
    more: dict[str, Any] = {"case_digest": DIGEST, "expectation_digest": DIGEST, "seconds": 0.25 / 2**draw}
    behaviour = {"flush": flush or ["none", "output"]}
    return result("pass", case, behaviour=behaviour, bound_ratio=draw / 8, clauses=("onnx/ReduceMean#mean",), **more)


def attached(draw: int) -> bytes:
    grade = "faithful" if draw % 3 else "correctly-rounded"
    told = {"grade": grade, "type": "float32", "graded": 32, "apart": 0, "ulp": 0.1 * (draw % 4)}
    told |= {"at": [0, draw], "share": None if draw == 5 else draw / 10, "tightest": 0.5}
    return json.dumps({"accuracy": told}, separators=(",", ":")).encode()


def results() -> list[Result]:
    one_way = [passing(draw, fill="inexact", flush=["none"]) for draw in range(10, 14)]
    digests = {"case_digest": DIGEST, "expectation_digest": DIGEST}
    other = result("wrong-value", passing(9).case, detail="no", seconds=1.5, **digests)
    refused = result("unsupported", passing(15).case, reason="type", detail="no kernel", seconds=0.0, **digests)
    return [*(passing(draw) for draw in range(1, 9)), other, refused, *one_way, result("pass", seconds=0.5)]


def tables(*, together: bool, terms: Terms | None = None) -> Tables:
    found, lines = Tables.of(terms or Terms(), ["alpha"], TODAY), UsualLines()
    for number, one in enumerate(results()):
        line, beside = one.to_json().encode(), attached(number) if one.outcome == "pass" else b""
        usual = lines.read(line)
        if not (together and usual and found.take_pass(usual, beside)):
            found.take(one, json.loads(beside) if beside else {})
    found.settle()
    return found


def test_passes_counted_together_give_the_same_figures_behaviours_and_grades() -> None:
    alone, together = tables(together=False), tables(together=True)
    assert together.passing.gathered == []
    assert together.to_dict([]) == alone.to_dict([])
    assert together.behaviours.to_dict() == alone.behaviours.to_dict()
    assert together.failures.count == alone.failures.count == 1


def test_only_passes_among_draws_are_counted_together() -> None:
    found = Tables.of(Terms(), ["alpha"], TODAY)
    read = [UsualLines().read(one.to_json().encode()) for one in results()]
    taken = [usual[0].result.outcome if usual and found.take_pass(usual, b"") else None for usual in read]
    assert taken == ["pass"] * 8 + [None] + ["unsupported"] + ["pass"] * 4 + [None]


def test_a_pass_with_more_beside_it_than_its_accuracy_is_counted_by_itself() -> None:
    found = Tables.of(Terms(), ["alpha"], TODAY)
    usual = UsualLines().read(passing(1).to_json().encode())
    assert usual is not None
    assert not found.take_pass(usual, b'{"accuracy":{"failed":"x"}}')
    assert not found.take_pass(usual, attached(1)[:-1] + b',"outputs":[]}')
    assert found.take_pass(usual, attached(1))


def test_where_an_erratum_may_suspend_single_cases_each_is_looked_at() -> None:
    erratum = Erratum("E1", "*draw=3*", "so", "https://example.com", "0.1.0")
    terms = Terms(suspensions=Suspensions(Errata((erratum,))))
    found = tables(together=True, terms=terms)
    assert found.tally.figures().suspended == 1


@pytest.mark.parametrize("damage", [b"", b"x", b'"'])
def test_a_pass_is_read_in_part_only_from_a_line_of_the_usual_form(damage: bytes) -> None:
    line = passing(3).to_json().encode()
    found = UsualLines().read(line + damage + b"\n")
    if damage:
        assert found is None
    else:
        assert found is not None
        kind, case, seconds = found
        assert (kind.result.backend, case.decode(), seconds) == ("alpha", passing(3).case, 0.03125)


SOUND = passing(3).to_json().encode()


@pytest.mark.parametrize(
    "line",
    [
        SOUND.replace(b'"bound_ratio":0.375', b'"bound_ratio":0.3_75'),
        SOUND.replace(b'"bound_ratio":0.375', b'"bound_ratio":NaN'),
        SOUND.replace(b'"seconds":0.03125', b'"seconds":"0.03125"'),
        SOUND.replace(b'"case_digest":"0', b'"case_digest":"\\'),
        SOUND.replace(b"draw=3", b"draw=<3>"),
        SOUND.replace(b"draw=3", b"draw=\\u0033"),
        SOUND.replace(b'{"case"', b'{"Case"'),
        SOUND.replace(b'"level":"strict",', b""),
        SOUND.replace(b'"outcome":"pass"', b'"outcome":"wrong-value"'),
    ],
)
def test_a_line_that_is_damaged_or_has_marks_is_not_taken_for_one_like_those_before(line: bytes) -> None:
    lines = UsualLines()
    assert lines.read(SOUND) is not None
    assert line != SOUND
    assert lines.read(line) is None
    assert lines.read(passing(5).to_json().encode()) is not None


def test_junit_has_usual_results_as_it_has_others(tmp_path: Path) -> None:
    digests = {"case_digest": DIGEST, "expectation_digest": DIGEST, "seconds": 0.5}
    words = "]]> <b>&amp; \x00 \ud800 \"'\ttab\r\nnext, '{case}' " + "x" * 11_000
    refused = [result("error", passing(draw).case, detail=words, **digests) for draw in (20, 21)]
    quiet = result("error", passing(22).case, "scripted", **digests)
    other = result("pass", "onnx/Mean-13/float32/3x2x2/draw=1/uniform", **digests)
    every = [*results(), *refused, quiet, other, *results()[:2]]
    (tmp_path / "results.jsonl").write_text("".join(one.to_json() + "\n" for one in every))
    (tmp_path / "run.json").write_text('{"started": "2026-01-01T00:00:00+00:00"}')
    write_junit(tmp_path, tmp_path / "usual.xml")
    # an erratum about another operator makes each line be read in full
    elsewhere = Suspensions(Errata((Erratum("E1", "onnx/Other-1/*", "so", "https://example.com", "0.1.0"),)))
    write_junit(tmp_path, tmp_path / "full.xml", suspensions=elsewhere)
    assert (tmp_path / "usual.xml").read_text() == (tmp_path / "full.xml").read_text()
    text = (tmp_path / "usual.xml").read_text()
    assert 'draw=1;keepdims=0/uniform" time="0.125000"/>' in text
    assert f"--select '{passing(21).case}'</failure>" in text

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from fakes.results import MEAN, case, invalid, result

from opconform.cases.errors import OpconformError
from opconform.cases.results import Outcome, Result
from opconform.runners.judging.terms import Demands, Profile, Promise, WaiverRun, load_waivers

TODAY = dt.date(2026, 6, 15)
ENTRY = {
    "case": MEAN,
    "outcome": "wrong-value",
    "reason": "rounds twice",
    "link": "https://tracker.example/1",
    "owner": "kernels",
    "expires": "2026-06-15",
}


def written(path: Path, *entries: dict[str, str], without: str = "") -> Path:
    file = path / "waivers.yaml"
    lines = ["# known failures"]
    for entry in entries:
        whole = {**ENTRY, **entry}
        pairs = [f"{key}: '{value}'" for key, value in whole.items() if key != without]
        lines += [f"- {pairs[0]}", *(f"  {pair}" for pair in pairs[1:])]
    file.write_text("\n".join(lines) + "\n")
    return file


def run_with(path: Path, *entries: dict[str, str], demands: Demands | None = None, today: dt.date = TODAY) -> WaiverRun:
    return load_waivers(written(path, *entries)).for_run(today, demands)


def after(run: WaiverRun, *results: Result, partial: bool = False) -> list[str]:
    for one in results:
        run.apply(one)
    return [problem.rpartition("waivers.yaml:")[2] for problem in run.problems(partial=partial)]


def test_a_failure_that_a_waiver_describes_is_waived_and_says_what_it_was(tmp_path: Path) -> None:
    run = run_with(tmp_path, {})
    waived = run.apply(result("wrong-value", detail="element [0]: got 1", clauses=("onnx/ReduceMean#mean",)))
    assert waived.outcome is Outcome.WAIVED
    assert waived.detail is not None
    assert waived.detail.startswith("wrong-value, waived by ")
    assert "waivers.yaml:2 until 2026-06-15 (https://tracker.example/1): rounds twice" in waived.detail
    assert waived.detail.endswith("\nelement [0]: got 1")
    assert waived.clauses == ("onnx/ReduceMean#mean",)
    assert run.problems() == []


@pytest.mark.parametrize(
    "other",
    [
        result("wrong-value", case=case("onnx/Mean-13")),
        result("error"),
        result("wrong-value", backend="beta"),
        result("runner-error"),
        result("pass"),
    ],
    ids=lambda r: f"{r.backend}-{r.case}-{r.outcome}",
)
def test_what_a_waiver_does_not_describe_stays_as_it_is(tmp_path: Path, other: Result) -> None:
    assert run_with(tmp_path, {"backend": "alpha"}).apply(other) == other


def test_a_glob_names_cases_and_operator_versions_alone(tmp_path: Path) -> None:
    for glob in ("onnx/ReduceMean-*", "onnx/ReduceMean-13", "onnx/*/float32/*/uniform"):
        assert run_with(tmp_path, {"case": glob}).apply(result("wrong-value")).outcome is Outcome.WAIVED
    for glob in ("onnx/ReduceMean", "onnx/ReduceMean-1", "onnx/*/float16/*"):
        assert run_with(tmp_path, {"case": glob}).apply(result("wrong-value")).outcome is Outcome.WRONG_VALUE


def test_a_waiver_holds_on_the_day_it_expires_and_not_after(tmp_path: Path) -> None:
    failure = result("wrong-value")
    assert run_with(tmp_path, {}).apply(failure).outcome is Outcome.WAIVED
    late = run_with(tmp_path, {}, today=dt.date(2026, 6, 16))
    assert late.apply(failure) == failure
    assert after(late) == [
        "2: expired on 2026-06-15 (its cases here: 1 wrong-value): kernels renews it with a reason, or removes it"
    ]


def test_an_expired_waiver_is_a_problem_even_where_nothing_fails_any_more(tmp_path: Path) -> None:
    late = run_with(tmp_path, {}, today=dt.date(2027, 1, 1))
    assert after(late, result())[0].startswith("2: expired on 2026-06-15 (its cases here: 1 pass)")


def test_a_waiver_whose_cases_pass_is_stale(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"case": "onnx/ReduceMean-13/*"})
    problems = after(run, result(), result("unsupported", case=case(fill="nan")))
    assert problems == ["2: stale: nothing that it matches failed (its cases here: 1 pass, 1 unsupported): remove it"]


def test_the_age_of_a_waiver_is_told_where_it_has_to_go(tmp_path: Path) -> None:
    old = {"since": "2026-05-16"}
    assert after(run_with(tmp_path, old), result())[0].startswith("2: stale, 30 days old: nothing that it matches")
    late = run_with(tmp_path, old, today=dt.date(2026, 7, 1))
    assert after(late, result())[0].startswith("2: expired on 2026-06-15, 46 days old (its cases")
    (waiver,) = load_waivers(written(tmp_path, old)).entries
    assert [waiver.age(day) for day in (TODAY, dt.date(2026, 1, 1))] == [30, 0]


def test_a_waiver_that_names_no_case_of_an_operator_version_that_was_run_is_stale(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"case": case(fill="nan")})
    assert after(run, result()) == [f"2: stale: {case(fill='nan')} matches no case of this run: remove it"]


def test_a_waiver_for_an_operator_version_or_backend_that_was_not_run_is_not_stale(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"case": "onnx/Mean-13/*"}, {"backend": "beta*"}, {"case": "*/float16/*"})
    assert after(run, result()) == []


def test_a_partial_run_calls_no_glob_stale_but_a_case_that_passed(tmp_path: Path) -> None:
    run = run_with(
        tmp_path, {"case": "onnx/ReduceMean-13/*"}, {"case": case(fill="nan")}, {"case": "onnx/ReduceMean-13"}
    )
    assert after(run, result(), partial=True) == []
    assert "stale" in after(run_with(tmp_path, {}), result(), partial=True)[0]


def test_a_waiver_is_not_stale_where_our_side_failed(tmp_path: Path) -> None:
    assert after(run_with(tmp_path, {}), result("runner-error")) == []


def test_a_case_that_fails_differently_than_its_waiver_says_stays_a_failure_and_is_a_problem(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"detail": "element [0]"})
    assert run.apply(result("crash")).outcome is Outcome.CRASH
    assert after(run) == [f"2: waives wrong-value, but {MEAN} on alpha failed with crash"]
    run = run_with(tmp_path, {"detail": "element [0]"})
    assert run.apply(result("wrong-value", detail="element [1]: got 1")).outcome is Outcome.WRONG_VALUE
    assert after(run) == [
        f"2: waives wrong-value with 'element [0]' in its detail, but {MEAN} on alpha has 'element [1]: got 1'"
    ]


def test_detail_is_plain_text_that_the_results_detail_contains(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"detail": "element [0]: got 1"})
    assert run.apply(result("wrong-value", detail="an element [0]: got 1, want 2")).outcome is Outcome.WAIVED
    assert after(run) == []


def test_two_waivers_share_the_cases_that_fail_in_two_ways(tmp_path: Path) -> None:
    run = run_with(tmp_path, {"case": "onnx/*"}, {"case": "onnx/*", "outcome": "error"})
    failures = [result("wrong-value"), result("error", case=case(fill="nan"))]
    assert [run.apply(f).outcome for f in failures] == [Outcome.WAIVED] * 2
    assert run.problems() == []


def test_an_outcome_that_fails_on_demand_is_waived_only_where_it_fails_and_never_stale_for_that(tmp_path: Path) -> None:
    promised = Demands(profile=Profile("p", "1", {"onnx/ReduceMean": Promise()}))
    missing = result("unsupported")
    assert run_with(tmp_path, {"outcome": "unsupported"}, demands=promised).apply(missing).outcome is Outcome.WAIVED
    lenient = run_with(tmp_path, {"outcome": "unsupported"})
    assert lenient.apply(missing) == missing
    assert lenient.problems() == []
    answered = invalid("accepted-invalid", MEAN)
    strict = Demands({"invalid": "rejected"})
    entry = {"outcome": "accepted-invalid"}
    assert run_with(tmp_path, entry, demands=strict).apply(answered).outcome is Outcome.WAIVED
    assert run_with(tmp_path, entry).apply(answered) == answered


def test_a_suspended_failure_needs_no_waiver_but_a_crash_does(tmp_path: Path) -> None:
    run = run_with(tmp_path, {}, {"outcome": "crash"})
    wrong = result("wrong-value")
    assert run.apply(wrong, suspended=True) == wrong
    assert run.apply(result("crash"), suspended=True).outcome is Outcome.WAIVED
    assert run.problems() == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"outcome": "pass"}, ":3:12: expected wrong-value, wrong-shape, "),
        ({"outcome": "wrong-valeu"}, "read 'wrong-valeu'; did you mean 'wrong-value'?"),
        ({"outcome": "runner-error"}, ":3:12: expected wrong-value, "),
        ({"expires": "2026-02-30"}, ":7:12: day "),
        ({"expires": "30.6.2026"}, ":7:12: expected a date, YYYY-MM-DD; read '30.6.2026'"),
        ({"since": "yesterday"}, ":8:10: expected a date, YYYY-MM-DD; read 'yesterday'"),
        ({"since": "2026-06-16"}, ":8:10: 2026-06-16 is after it expires, on 2026-06-15"),
        ({"owner": " "}, ":6:10: expected some text"),
        ({"ownr": "me"}, ":8:3: unknown key 'ownr'; did you mean 'owner'?"),
        ({"case": "onnx/ReduceMaen-13/*"}, ":2:9: no operator version is called 'onnx/ReduceMaen-13'; did you"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_is_told_at_its_place(tmp_path: Path, entry: dict[str, str], message: str) -> None:
    with pytest.raises(OpconformError) as raised:
        load_waivers(written(tmp_path, entry), ["onnx/ReduceMean-13"])
    assert message in str(raised.value)
    assert str(tmp_path / "waivers.yaml") in str(raised.value)


@pytest.mark.parametrize("key", ["case", "outcome", "reason", "link", "owner", "expires"])
def test_every_key_but_backend_detail_and_since_is_required(tmp_path: Path, key: str) -> None:
    with pytest.raises(OpconformError, match=f":2:3: key '{key}' is missing"):
        load_waivers(written(tmp_path, {}, without=key))


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(OpconformError) as raised:
        load_waivers(written(tmp_path, {"outcome": "no"}, {"expires": "no"}))
    assert len(str(raised.value).splitlines()) == 2


def test_a_file_that_is_no_list_or_not_there_is_told(tmp_path: Path) -> None:
    file = tmp_path / "waivers.yaml"
    with pytest.raises(OpconformError, match="cannot be read"):
        load_waivers(file)
    file.write_text("case: x\n")
    with pytest.raises(OpconformError, match=":1:1: expected a list; read a mapping"):
        load_waivers(file)
    file.write_text("- just text\n")
    with pytest.raises(OpconformError, match=":1:3: expected a mapping of case, outcome,"):
        load_waivers(file)
    file.write_text("[]\n")
    assert load_waivers(file).entries == ()

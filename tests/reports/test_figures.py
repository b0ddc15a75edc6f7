from __future__ import annotations

import json
from fractions import Fraction

import pytest
from fakes.results import case, invalid, result
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.results import Outcome, Result
from opconform.reports.tally import Figures, Tally, group_of
from opconform.runners.judging.terms import Demands, Profile, Promise

REJECTED = Demands({"invalid": "rejected"})
PROMISED = Demands(profile=Profile("p", "1", {"onnx/ReduceMean": Promise()}))


def tally(*results: Result, demands: Demands | None = None) -> Tally:
    found = Tally(demands)
    for one in results:
        found.add(one)
    return found


def mixed() -> Tally:
    """Ten valid cases and five invalid ones; counted by hand below."""
    found = tally(
        result(),
        result(case=case(types="float16")),
        result(case=case(fill="nan"), level="declared"),
        result("wrong-value", case=case(fill="ramp")),
        result("waived", case=case(fill="lattice")),
        result("crash", case=case("onnx/Mean-13")),
        result("unsupported", case=case(types="bfloat16")),
        result("unsupported", case=case("onnx/Mean-13", "bfloat16")),
        result("runner-error", case=case("onnx/Mean-13", "int64")),
        invalid("pass"),
        invalid("accepted-invalid"),
        invalid("accepted-invalid", case("onnx/Mean-13", edge="none")),
        invalid("timeout"),
        invalid("unsupported"),
    )
    found.add(result("wrong-value", case=case(fill="special")), "erratum E1")
    return found


def test_the_three_figures_agree_with_a_count_by_hand() -> None:
    figures = mixed().figures()
    # judged: 2 strict passes, 1 declared, 1 wrong, 1 waived, 1 crash
    assert (figures.judged, figures.strict, figures.passed) == (6, 2, 3)
    assert figures.correctness == Fraction(2, 6)
    assert figures.declared_correctness == Fraction(3, 6)
    # asked: those 6, and 2 without support; our own failure, the suspended case and invalid inputs are in neither
    assert figures.support == Fraction(6, 8)
    # put: refused, answered twice, timed out; the one whose valid sibling did not run was not put
    assert figures.refusal == Fraction(1, 4)
    # wrong value, crash, timeout; the suspended wrong value does not fail
    assert figures.failed == 3
    assert (figures.cases, figures.suspended) == (15, 1)


def test_figures_are_kept_by_operator_version_and_types() -> None:
    found = mixed()
    versions = found.operator_versions("alpha")
    assert {name: (f.strict, f.judged) for name, f in versions.items()} == {
        "onnx/ReduceMean-13": (2, 5),
        "onnx/Mean-13": (0, 1),
    }
    by_types = {(g.operator_version, g.types): f.support for g, f in found.groups("alpha")}
    assert by_types[("onnx/ReduceMean-13", "float16")] == 1
    assert by_types[("onnx/ReduceMean-13", "bfloat16")] == 0
    assert by_types[("onnx/Mean-13", "int64")] is None


def test_a_backend_has_figures_of_its_own() -> None:
    found = tally(result(), result("wrong-value", backend="beta"))
    assert found.backends == ["alpha", "beta"]
    assert (found.figures("alpha").correctness, found.figures("beta").correctness) == (1, 0)
    assert found.figures().correctness == Fraction(1, 2)


def test_a_figure_of_nothing_is_none() -> None:
    empty = Figures()
    assert (empty.correctness, empty.declared_correctness, empty.support, empty.refusal) == (None,) * 4


@pytest.mark.parametrize(
    ("results", "demands", "code"),
    [
        ([result()], None, 0),
        ([result(level="declared")], None, 0),
        ([result("waived")], None, 0),
        ([result(), result("unsupported")], None, 0),
        ([result(), invalid("accepted-invalid")], None, 0),
        ([invalid("pass")], None, 0),
        *[([result(), result(o)], None, 1) for o in ("wrong-value", "wrong-shape", "wrong-dtype", "error")],
        *[([result(), result(o)], None, 1) for o in ("crash", "timeout")],
        ([result(), invalid("accepted-invalid")], REJECTED, 1),
        ([result(), result("unsupported")], PROMISED, 1),
        ([result(), result("unsupported", case=case("onnx/Mean-13"))], PROMISED, 0),
        ([result(), invalid("unsupported")], PROMISED, 0),
        ([], None, 2),
        ([result("unsupported")], None, 2),
        ([invalid("unsupported")], None, 2),
        ([result("unsupported")], PROMISED, 2),
        ([result(), result("unsupported", backend="beta")], None, 2),
        ([result(), result("runner-error")], None, 3),
        ([result("wrong-value"), result("runner-error")], None, 3),
        ([result("runner-error")], None, 3),
    ],
    ids=lambda value: "+".join(str(r.outcome) for r in value) if isinstance(value, list) else None,
)
def test_the_exit_code_is_the_highest_that_applies(results: list[Result], demands: Demands | None, code: int) -> None:
    assert tally(*results, demands=demands).exit_code() == code


def test_a_backend_that_gave_no_result_at_all_has_not_conformed() -> None:
    found = Tally(backends=["alpha", "beta"])
    found.add(result())
    assert found.exit_code() == 2


def test_waiver_problems_fail_a_run_that_conforms_otherwise() -> None:
    assert tally(result()).exit_code(waiver_problems=1) == 1
    assert tally(result("runner-error")).exit_code(waiver_problems=1) == 3


def test_a_suspended_case_fails_a_run_by_a_crash_alone() -> None:
    for outcome, code in (("wrong-value", 0), ("error", 0), ("timeout", 0), ("crash", 1)):
        found = tally(result())
        found.add(result(outcome, case=case(fill="nan")), "erratum E1")
        assert found.exit_code() == code
        assert found.suspensions == {"erratum E1": 1}


def test_a_backend_that_supports_nothing_is_quoted_on_a_valid_case() -> None:
    refused = [result("unsupported", detail=words) for words in ("no device", "no driver")]
    assert tally(invalid("unsupported", detail="and so was"), *refused).refusals == {"alpha": "no device"}
    assert tally(invalid("unsupported", detail="and so was")).refusals == {"alpha": "and so was"}


def test_all_figures_are_strict_json() -> None:
    told = json.loads(json.dumps(mixed().to_dict(), allow_nan=False))
    assert told["overall"]["correctness"] == round(2 / 6, 6)
    assert told["backends"]["alpha"]["operator_versions"]["onnx/Mean-13"]["types"]["int64"]["correctness"] is None
    assert told["overall"]["outcomes"]["accepted-invalid"] == 2
    assert told["suspended"] == {"erratum E1": 1}


def test_a_case_id_that_is_none_makes_a_group_of_its_own() -> None:
    assert group_of(result(case="strange")) == ("alpha", "strange", "-")
    assert group_of(result(case="")) == ("alpha", "", "-")


@given(st.lists(st.tuples(st.sampled_from(list(Outcome)), st.booleans(), st.booleans(), st.sampled_from("ab"))))
def test_figures_stay_within_one_and_add_up(picks: list[tuple[Outcome, bool, bool, str]]) -> None:
    found = Tally()
    for outcome, is_invalid, suspended, backend in picks:
        made = (invalid if is_invalid else result)(str(outcome), case(), backend=backend)
        found.add(made, "erratum" if suspended else None)
    whole = found.figures()
    assert whole.strict <= whole.passed <= whole.judged <= whole.cases == len(picks)
    assert whole.refused <= whole.put
    assert whole == found.figures("a") + found.figures("b")
    assert whole.judged == sum(figures.judged for _, figures in found.groups())

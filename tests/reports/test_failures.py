from __future__ import annotations

from fakes.results import case, invalid, result

from opconform.cases.results import Result
from opconform.reports.failures import Failures
from opconform.runners.demands import Demands


def collected(*results: Result, demands: Demands | None = None) -> Failures:
    found = Failures(demands)
    for one in results:
        found.add(one)
    return found


def test_failures_that_are_alike_are_one_and_the_first_stands_for_them() -> None:
    many = [
        result("wrong-value", case=f"onnx/ReduceMean-{v}/int64/{n}/-/ramp") for v in (13, 18) for n in range(1, 101)
    ]
    other = result("wrong-value", case=case(types="int64", fill="nan"))
    first, second = collected(*many, other).first(10)
    assert (first.first, first.count) == (many[0], 200)
    assert first.operator_versions == ("onnx/ReduceMean-13", "onnx/ReduceMean-18")
    assert (second.first, second.count) == (other, 1)


def test_many_kinds_of_one_operator_do_not_hide_another_operator_backend_or_outcome() -> None:
    flood = [result("wrong-value", case=case(types=t, fill=f)) for t in ("int32", "int64") for f in "abcdefgh"]
    late = [
        result("error", case=case("onnx/Mean-13")),
        result("crash", case=case(fill="z")),
        result("wrong-value", backend="beta"),
    ]
    found = collected(*flood, *late)
    assert [a.first for a in found.first(4)] == [flood[0], *late]
    assert [a.first for a in found.first(6)] == [*flood[:3], *late]
    assert (found.count, found.kinds) == (19, 19)


def test_edges_are_kinds_of_their_own() -> None:
    found = collected(*(result("error", case=case(edge=edge)) for edge in ("axis-twice", "axes-unsorted")))
    assert found.kinds == 2


def test_only_failures_and_our_own_are_collected() -> None:
    fine = [result(), result("unsupported"), result("waived"), invalid("accepted-invalid")]
    assert collected(*fine).count == 0
    assert collected(*fine, demands=Demands({"invalid": "rejected"})).count == 1
    assert collected(result("runner-error")).count == 1


def test_a_suspended_case_is_collected_only_if_it_crashes() -> None:
    found = Failures()
    for outcome in ("wrong-value", "crash"):
        found.add(result(outcome), "erratum E1")
    assert [a.first.outcome for a in found.first(10)] == ["crash"]

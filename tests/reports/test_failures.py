from __future__ import annotations

import itertools

import pytest
from fakes.results import case, invalid, result

from opconform.cases.results import Result
from opconform.reports.tally import Failures
from opconform.runners.judging.terms import Demands


def collected(*results: Result, demands: Demands | None = None) -> Failures:
    found = Failures(demands)
    for one in results:
        found.add(one)
    return found


def test_failures_that_are_alike_are_one_and_the_first_stands_for_them() -> None:
    many = [
        result("wrong-value", case=f"onnx/ReduceMean-{v}/int64/{n}/-/ramp") for v in (13, 18) for n in range(1, 101)
    ]
    other = result("wrong-value", case=case(types="int32"))
    first, second = collected(*many, other).groups()
    assert (first.first, first.count) == (many[0], 200)
    assert first.operator_versions == ("onnx/ReduceMean-13", "onnx/ReduceMean-18")
    assert (second.first, second.count) == (other, 1)


def test_many_kinds_of_one_operator_do_not_hide_another_operator_backend_or_outcome() -> None:
    flood = [
        result("wrong-value", case=case(types=t, fill=c), clauses=(c,)) for t in ("int8", "int64") for c in "abcdefgh"
    ]
    late = [
        result("error", case=case("onnx/Mean-13")),
        result("crash", case=case(fill="z")),
        result("wrong-value", backend="beta"),
    ]
    found = collected(*flood, *late)
    error, crash, other = late
    assert [a.first for a in found.worst()[:6]] == [crash, flood[0], other, error, *flood[1:3]]
    assert (found.count, found.kinds) == (19, 19)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Error: shape (2,3) at 0x7f01", "Error: shape (4,) at 0x8e02"),
        ("Error: shape (2,3) at 0x7f01", "Error: shape () at 0x8e02"),
        ("takes [float, float] and no more", "takes [float, float, float, float] and no more"),
        ("line 1\n  line 2", "line 1 line 3"),
    ],
)
def test_messages_that_differ_in_numbers_and_lengths_alone_are_of_one_kind(one: str, other: str) -> None:
    assert collected(result("error", detail=one), result("error", detail=other)).kinds == 1


def test_errors_in_the_same_words_are_one_kind_whatever_the_operator_and_its_names() -> None:
    words = (
        'InvalidGraph: In Node, ("Cast_{0}", Cast, "", -1) : ("{0}": tensor(float16),) -> ("Cast_{0}": tensor(float),)'
        " , Error Mismatched attribute type in 'Cast_{0} : to'"
    )
    names = [case(f"onnx/{name}-1") for name in ("Abs", "Add", "Max")]
    inputs = ("X", "A", "data_0")
    found = collected(*(result("error", case=c, detail=words.format(x)) for c, x in zip(names, inputs, strict=True)))
    (group,) = found.worst()
    assert (group.count, group.where) == (3, "in 3 operators: Abs, Add, Max")
    dead = [result("crash", case=name, detail="the process died (signal SIGFPE)") for name in names]
    assert collected(*dead).kinds == 3  # a signal is no cause


def test_the_worst_kinds_are_of_other_outcomes_first_and_the_most_frequent_of_each() -> None:
    crashes = [result("crash", case=case(fill=f"f{n}"), detail=word) for n, word in enumerate(["a", "b", "b"])]
    found = collected(result("error", detail="x"), result("wrong-value"), *crashes)
    assert [(one.first.outcome, one.count) for one in found.worst()] == [
        ("crash", 2),
        ("wrong-value", 1),
        ("error", 1),
        ("crash", 1),
    ]


def test_the_shortest_id_stands_for_a_kind() -> None:
    long, short = (result("crash", case=case(fill=fill)) for fill in ("a-long-fill", "b"))
    assert [collected(*order).worst()[0].first for order in ((long, short), (short, long))] == [short, short]


def test_other_messages_are_kinds_of_their_own() -> None:
    told = ("axis out of range", "no such axis", None)
    assert collected(*(result("error", detail=detail) for detail in told)).kinds == 3


def test_wrong_values_are_told_apart_by_what_stands_in_place_of_what() -> None:
    shown = [
        "got 1.5, want 2.5",
        "got 1e-05, want -3.0",
        "got nan, want 2.5",
        "got 0.0, want -0.0",
        "got 1.5, want inf",
    ]
    details = [f"element [0]: {mismatch} exactly (1 of 1 wrong)" for mismatch in shown]
    assert [a.count for a in collected(*(result("wrong-value", detail=d) for d in details)).groups()] == [2, 1, 1, 1]


def test_clauses_that_are_broken_are_kinds_of_their_own() -> None:
    for outcome in ("wrong-value", "wrong-shape", "wrong-dtype"):
        assert collected(*(result(outcome, clauses=(clause,)) for clause in ("onnx/M#a", "onnx/M#b"))).kinds == 2


def test_a_backend_whose_messages_never_repeat_does_not_fill_the_memory() -> None:
    words = ("".join(letters) for letters in itertools.product("abcdefgh", repeat=4))
    found = collected(*(result("error", detail=word) for word in words), result("crash"))
    assert found.count == 8**4 + 1
    assert found.kinds < 300
    assert sum(alike.count for alike in found.groups()) == found.count


def test_only_failures_and_our_own_are_collected() -> None:
    fine = [result(), result("unsupported"), result("waived"), invalid("accepted-invalid")]
    assert collected(*fine).count == 0
    assert collected(*fine, demands=Demands({"invalid": "rejected"})).count == 1
    assert collected(result("runner-error")).count == 1


def test_a_suspended_case_is_collected_only_if_it_crashes() -> None:
    found = Failures()
    for outcome in ("wrong-value", "crash"):
        found.add(result(outcome), "erratum E1")
    assert [a.first.outcome for a in found.groups()] == ["crash"]

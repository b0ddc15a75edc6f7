from __future__ import annotations

import itertools
import json

from fakes.results import case, result

from opconform.reports.arithmetic import Grades, Peak, attached_accuracy
from opconform.runners.judging.accuracy import Accuracy, Grade


def accuracy(grade: Grade, ulp: float | None = 0.25, share: float | None = 0.125, type_: str = "float32") -> Accuracy:
    return Accuracy(grade, type_, 4, 0, ulp, (0,), share, share)


CASES = [
    ("f0", accuracy(Grade.ROUNDED)),
    ("f1", accuracy(Grade.BOUND, 7.0, 0.5)),
    ("f2", accuracy(Grade.BOUND, 7.0, 0.25)),
    ("f3", accuracy(Grade.FAITHFUL, 0.75, 0.5)),
    ("f4", accuracy(Grade.ROUNDED, None, None)),
]


def joined(*cases: tuple[str, Accuracy | None]) -> Grades:
    found = Grades()
    for fill, one in cases:
        found.add(result(case=case(fill=fill)), one)
    return found


def test_grades_are_counted_and_the_worst_errors_named() -> None:
    (graded,) = joined(*CASES).graded()
    assert (graded.backend, graded.operator_version, graded.type) == ("alpha", "onnx/ReduceMean-13", "float32")
    assert graded.cases == {Grade.ROUNDED: 2, Grade.BOUND: 2, Grade.FAITHFUL: 1}
    assert (graded.grade, graded.worst) == (Grade.BOUND, case(fill="f1"))
    assert (graded.ulp, graded.share) == (Peak(7.0, case(fill="f1")), Peak(0.5, case(fill="f1")))


def test_grades_do_not_depend_on_the_order_of_results() -> None:
    told = [joined(*order).to_dict() for order in itertools.permutations(CASES)]
    assert all(one == told[0] for one in told)


def test_a_result_without_an_accuracy_says_nothing() -> None:
    assert not list(joined(("f0", None)).graded())


def test_backends_versions_and_types_stand_apart() -> None:
    found = Grades()
    found.add(result(), accuracy(Grade.ROUNDED))
    found.add(result(), accuracy(Grade.WIDE, type_="float16"))
    found.add(result(backend="beta"), accuracy(Grade.OUTSIDE))
    found.add(result(case=case("onnx/Mean-13")), accuracy(Grade.FAITHFUL))
    assert [(g.backend, g.operator_version, g.type, g.grade) for g in found.graded()] == [
        ("alpha", "onnx/Mean-13", "float32", Grade.FAITHFUL),
        ("alpha", "onnx/ReduceMean-13", "float16", Grade.WIDE),
        ("alpha", "onnx/ReduceMean-13", "float32", Grade.ROUNDED),
        ("beta", "onnx/ReduceMean-13", "float32", Grade.OUTSIDE),
    ]
    assert [g.operator_version for g in found.graded("beta")] == ["onnx/ReduceMean-13"]


def test_an_attachment_is_read_and_one_that_failed_is_none() -> None:
    one = accuracy(Grade.WIDE)
    assert attached_accuracy({"accuracy": one.to_dict()}) == one
    assert attached_accuracy({"accuracy": {"failed": "Traceback"}}) is None
    assert attached_accuracy({}) is None


def test_what_is_written_does_not_depend_on_the_order_in_which_types_and_versions_came() -> None:
    told = set()
    for order in itertools.permutations(("float32", "float16", "float64")):
        found = Grades()
        for type_ in order:
            found.add(result(), accuracy(Grade.FAITHFUL, type_=type_))
        told.add(json.dumps(found.to_dict()))
    assert len(told) == 1

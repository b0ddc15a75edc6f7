from __future__ import annotations

import functools
import itertools

import pytest
from fakes.backends import (
    Bfloat16Steps,
    Computes,
    Float16Steps,
    Float32Pairwise,
    Float32Stored,
    Float32Wide,
    Float64Wide,
    Flushing,
    TensorFloat,
)
from fakes.judging import accuracy_of, judge_answer
from fakes.results import case, result

from opconform.cases.batch import cases_of
from opconform.cases.elements import Declaration, DeclaredType
from opconform.cases.results import Result
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.reports.arithmetic import DIFFERS, Fingerprints, ProbeSite, Widths, evidence_on, format_told, rolled_up
from opconform.runners.judging.accuracy import Accuracy, Grade

PROBES = ("/beside-2^", "/upon-2^", "/inexact/", "/underflow/", "/subnormal")
ONCE, STEPWISE = "once, at the end", "after each step"


@functools.cache
def suite(operator: str, type_: str) -> tuple[tuple[str, ...], GeneratedCases]:
    source = GeneratedCases()
    ids = planned(source.library, Selection((f"{operator}/{type_}/*",)))
    return tuple(i for i in ids if any(probe in i for probe in PROBES)), source


def answered(runner: Computes, operator: str, type_: str) -> list[tuple[Result, Accuracy | None]]:
    """What the real suite makes of a backend."""
    ids, source = suite(operator, type_)
    found = []
    for one in cases_of(source, ids):
        outputs = runner.prepare(one.program).run(one.tensors())
        verdict = judge_answer(one.expectation, outputs)
        judged = Result(one.id, "alpha", verdict.outcome, verdict.behaviour)
        found.append((judged, accuracy_of(one.expectation, outputs)))
    return found


def printed_by(runner: Computes, operator: str, type_: str) -> Fingerprints:
    found = Fingerprints()
    for judged, accuracy in answered(runner, operator, type_):
        found.add(judged, accuracy)
    return found


def told(runner: Computes, operator: str, type_: str) -> dict[str, str]:
    traits = printed_by(runner, operator, type_).traits("alpha")
    return {t.subject.removeprefix("probe-"): t.behaviour for t in traits if t.subject.startswith("probe-")}


OPERATORS = ["onnx/ReduceMean-13", "onnx/Mean-13"]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(
    ("runner", "type_", "accumulator", "rounding"),
    [
        (Float16Steps, "float16", "float16", STEPWISE),
        (Bfloat16Steps, "bfloat16", "bfloat16", STEPWISE),
        (Float32Wide, "float16", "float32", ONCE),
        (Float32Wide, "bfloat16", "float32", ONCE),
        (Float32Pairwise, "float16", "float32", ONCE),
        (Float32Stored, "float16", "float32", STEPWISE),
        (Float32Stored, "bfloat16", "float32", STEPWISE),
        (Computes, "float32", "float32", STEPWISE),
        (Float32Pairwise, "float32", "float32", STEPWISE),
        (Float64Wide, "float16", "float64 or wider", ONCE),
        (Float64Wide, "bfloat16", "float64 or wider", ONCE),
        (Float64Wide, "float32", "float64 or wider", ONCE),
        (Computes, "float64", "float64", STEPWISE),
    ],
)
def test_a_backend_whose_accumulator_is_known_is_told_right(
    runner: type[Computes], operator: str, type_: str, accumulator: str, rounding: str
) -> None:
    found = told(runner(), operator, type_)
    assert (found["accumulator"], found["rounding"]) == (accumulator, rounding)


@pytest.mark.parametrize("operator", OPERATORS)
def test_double_as_float_is_told_though_it_fails(operator: str) -> None:
    class DoubleAsFloat(Computes):
        inputs, accumulator, storage = "float32", "float32", "float32"

    found = told(DoubleAsFloat(), operator, "float64")
    assert (found["accumulator"], found["inputs"]) == ("float32", "float32")


@pytest.mark.parametrize("operator", OPERATORS)
def test_inputs_read_in_fewer_bits_are_told(operator: str) -> None:
    assert told(TensorFloat(), operator, "float32")["inputs"] == "tf32"
    assert told(Float32Wide(), operator, "float32")["inputs"] == "in full"


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("type_", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("pairwise", [False, True])
def test_flushing_of_partial_sums_is_told(operator: str, type_: str, pairwise: bool) -> None:
    runner = Flushing()
    runner.pairwise = pairwise
    assert told(runner, operator, type_)["partial-sums"] == "flushed to zero where subnormal"
    assert told(Computes(), operator, type_)["partial-sums"] == "kept where subnormal"


def test_the_case_that_shows_it_is_named() -> None:
    traits = printed_by(Float32Wide(), OPERATORS[0], "float16").traits("alpha")
    (trait,) = (trait for trait in traits if trait.subject == "probe-accumulator")
    assert trait.cases == (
        "onnx/ReduceMean-13/float16/8x8/axes=0/beside-2^16/accumulator-16-outer",
        "onnx/ReduceMean-13/float16/8x8/axes=1/beside-2^26/accumulator-26",
    )


def test_a_backend_that_sums_differently_along_another_axis_is_no_one_format() -> None:
    class ByAxis(Float32Wide):
        def reduce(self, data, axes, keepdims):  # type: ignore[no-untyped-def]
            one = Float16Steps() if axes == (0,) else super()
            return one.reduce(data, axes, keepdims)

    assert told(ByAxis(), OPERATORS[0], "float16")["accumulator"] == DIFFERS


# Widths


KEPT, LOST = "a/kept", "a/lost"


@pytest.mark.parametrize(
    ("kept", "lost", "type_", "expected"),
    [
        ([], [10], "float32", "bfloat16"),
        ([10], [16], "float32", "tf32"),
        ([10], [16], "float16", "float16"),
        ([10, 16], [26], "float32", "float32"),
        ([26], [60], "float64", "float64"),
        ([26, 60], [], "float64", "wider than float64"),
        ([16], [], "float32", "float32 or wider"),
        ([26], [16], "float32", DIFFERS),
        ([16], [16], "float32", DIFFERS),
    ],
)
def test_widths_are_told_as_the_formats_between_them(
    kept: list[int], lost: list[int], type_: str, expected: str
) -> None:
    assert format_told(Widths(dict.fromkeys(kept, KEPT), dict.fromkeys(lost, LOST)), type_) == expected


# Joining


def test_fingerprints_do_not_depend_on_the_order_of_results() -> None:
    results = [r for r in answered(Float32Stored(), OPERATORS[1], "float16") if r[1] is not None][:6]
    told_of = []
    for order in itertools.islice(itertools.permutations(results), 0, 720, 60):
        found = Fingerprints()
        for judged, accuracy in order:
            found.add(judged, accuracy)
        told_of.append(found.to_dict())
    assert all(one == told_of[0] for one in told_of)
    assert told_of[0]["alpha"]["probe-accumulator"][0]["behaves_like"] == "float32"


def test_what_is_the_same_everywhere_is_told_once_and_what_differs_with_where() -> None:
    found = Fingerprints()
    for version, option in ((13, "truncate"), (18, "floor")):
        for type_ in ("int32", "int64"):
            name = case(f"onnx/ReduceMean-{version}", type_, "halves")
            found.add(result(case=name, behaviour={"integer-rounding": [option], "empty-set": ["any"]}), None)
    alike = {(a.subject, a.behaviour): a for a in rolled_up(found.traits("alpha"))}
    assert alike["empty-set", "any"].operator_versions == ("onnx/ReduceMean-13", "onnx/ReduceMean-18")
    assert alike["empty-set", "any"].types == ("int32", "int64")
    floor = alike["integer-rounding", "floor"]
    assert (floor.operator_versions, floor.cases) == (
        ("onnx/ReduceMean-18",),
        (case("onnx/ReduceMean-18", "int32", "halves"),),
    )


def test_a_case_that_leaves_out_the_option_of_the_others_is_told() -> None:
    found = Fingerprints()
    for name, options in (("f0", ["truncate"]), ("f1", ["nearest-even", "nearest-away"])):
        found.add(result(case=case(types="int64", fill=name), behaviour={"integer-rounding": options}), None)
    (trait,) = found.traits("alpha")
    assert (trait.behaviour, trait.cases[0]) == (
        "nearest-even|nearest-away or truncate",
        case(types="int64", fill="f1"),
    )


def test_refusals_of_invalid_inputs_are_no_trait() -> None:
    found = Fingerprints()
    found.add(result(behaviour={"invalid": ["rejected"]}), None)
    assert not list(found.traits("alpha"))


def test_a_few_elements_do_not_tell_how_results_are_rounded() -> None:
    found = Fingerprints()
    one = Accuracy(Grade.ROUNDED, "float32", 8, 0, 0.5, (0,), 0.1, 0.1)
    found.add(result(case=case(fill="inexact")), one)
    assert not list(found.traits("alpha"))


# Declarations


def bearing(runner: Computes, type_: str, declared: DeclaredType) -> list[tuple[str, str, str]]:
    found = printed_by(runner, OPERATORS[0], type_)
    told_of = evidence_on(Declaration({type_: declared}), found, "alpha")
    assert all((e.case is None) == (e.bearing == "not shown") for e in told_of)
    return [(e.field, e.declared, e.bearing) for e in told_of]


@pytest.mark.parametrize(
    ("runner", "type_", "accumulator", "expected"),
    [
        (Float32Wide, "float16", "float32", "supported"),
        (Float32Wide, "float16", "float16", "contradicted"),
        (Float32Wide, "float16", "float64", "contradicted"),
        (Float16Steps, "float16", "float16", "supported"),
        (Float16Steps, "float16", "float32", "contradicted"),
        (Bfloat16Steps, "bfloat16", "bfloat16", "supported"),
        (Float64Wide, "float32", "float64", "supported"),
        (Float64Wide, "float32", "float32", "contradicted"),
        (Computes, "float64", "float32", "contradicted"),
    ],
)
def test_a_declared_accumulator_is_held_against_the_probes(
    runner: type[Computes], type_: str, accumulator: str, expected: str
) -> None:
    assert bearing(runner(), type_, DeclaredType(accumulator=accumulator)) == [("accumulator", accumulator, expected)]


@pytest.mark.parametrize(
    ("runner", "type_", "compute", "expected"),
    [
        (TensorFloat, "float32", "tf32", "supported"),
        (TensorFloat, "float32", "float32", "contradicted"),
        (TensorFloat, "float32", "bfloat16", "contradicted"),
        (Float32Wide, "float32", "tf32", "contradicted"),
        (Float32Wide, "float32", "float32", "supported"),
        (Float32Wide, "float16", "float32", "supported"),
        (Float32Stored, "float16", "float32", "contradicted"),
        (Float32Stored, "float16", "float16", "supported"),
    ],
)
def test_declared_computing_is_held_against_the_probes(
    runner: type[Computes], type_: str, compute: str, expected: str
) -> None:
    assert bearing(runner(), type_, DeclaredType(compute=compute)) == [("compute", compute, expected)]


def test_declared_flushing_is_held_against_what_shows() -> None:
    both = DeclaredType(flush=frozenset({"input", "output"}))
    assert [b for *_, b in bearing(Flushing(), "float32", both)] == ["supported", "supported"]
    assert [b for *_, b in bearing(Computes(), "float32", both)] == ["contradicted", "contradicted"]


def test_a_declaration_without_evidence_is_not_shown() -> None:
    found = Fingerprints()
    found.add(result(case=case(types="float32")), None)
    declared = Declaration({"float32": DeclaredType("tf32", "float32", frozenset({"input"}))})
    assert [e.bearing for e in evidence_on(declared, found, "alpha")] == ["not shown"] * 3
    assert evidence_on(declared, Fingerprints(), "beta")[0].bearing == "not shown"


def test_places_are_those_of_one_backend() -> None:
    found = Fingerprints()
    for backend in ("alpha", "beta"):
        found.add(result(backend=backend, behaviour={"flush": ["none"]}), None)
    assert [site for site, _ in found.sites("beta")] == [ProbeSite("beta", "onnx/ReduceMean-13", "float32")]

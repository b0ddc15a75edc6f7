"""Two operator versions on the same inputs: the differences that the standards' texts have are found, and no others."""

import os

import pytest
from fakes.sampled import slow

from opconform.cases.errors import OpconformError
from opconform.generators.comparing import differences as differences_module
from opconform.generators.comparing.differences import NUMERIC, Difference, differences, said
from opconform.generators.comparing.situations import Situation, side
from opconform.generators.families import control
from opconform.generators.source import GeneratedCases

LIBRARY = GeneratedCases().library
SEVERAL_VERSIONS = [str(name) for name in LIBRARY.operators() if len(LIBRARY.spec(name).versions) > 1]


@pytest.fixture(scope="module")
def source() -> GeneratedCases:
    return GeneratedCases()


def found(source: GeneratedCases, one: str, other: str) -> dict[str, Difference]:
    rows = differences(side(source, one), side(source, other))
    return {" ".join(f"{role}={kind}" for role, kind in row.cause): row for row in rows}


def shapes(row: Difference) -> list[list[tuple[int, ...] | None]]:
    return [[answer.outputs[0].shape if answer.outputs else None for answer in told.answers] for told in row.said]


@pytest.mark.slow
def test_onnx_and_openvino_differ_in_the_default_of_keepdims_in_empty_axes_and_in_what_is_valid(
    source: GeneratedCases,
) -> None:
    rows = found(source, "onnx/ReduceMean-18", "openvino/ReduceMean-1")
    assert {"keepdims=absent", "axes=empty", "axes=absent", "axes=twice", "type=any", "axes=given axes-rank=0"} == set(
        rows
    )
    assert shapes(rows["keepdims=absent"]) == [[(1, 1)], [()]]
    reduced, copied = (told.answers for told in rows["axes=empty"].said)
    assert (reduced[0].outputs[0].values, copied[0].outputs[0].values) == ((-0.5,), (-2.0, -1.0, 0.0, 1.0))
    assert set(rows["type=any"].types) == {"int8", "int16", "uint8", "uint16"}
    invalid = rows["axes=absent"].said[1]
    assert not invalid.answers
    assert [rule.id for rule in rows["axes=absent"].rules[1]] == ["axes-required"]


@pytest.mark.slow
def test_the_same_operator_in_two_standards_that_agree_on_empty_axes_and_keep_dims_shows_neither(
    source: GeneratedCases,
) -> None:
    rows = found(source, "openvino/ReduceMean-1", "onednn/ReduceMean")
    assert not {"keepdims=absent", "axes=empty"} & set(rows)
    assert {"axes=absent", "axes=twice", "shapes=scalar", "type=any"} <= set(rows)


@pytest.mark.slow
def test_between_13_and_18_the_meaning_of_empty_axes_is_settled(source: GeneratedCases) -> None:
    rows = found(source, "onnx/ReduceMean-13", "onnx/ReduceMean-18")
    assert set(rows) == {"axes=empty"}
    early, settled = rows["axes=empty"].said
    assert {label for answer in early.answers for label in answer.labels} == {
        ("empty-axes", "reduce-all"),
        ("empty-axes", "identity"),
        ("empty-axes", "rejected"),
    }
    assert len(settled.answers) == 1


@pytest.mark.slow
def test_between_1_and_11_negative_axes_are_settled(source: GeneratedCases) -> None:
    assert set(found(source, "onnx/ReduceMean-1", "onnx/ReduceMean-11")) == {"axes=negative"}


def test_between_mean_6_and_8_broadcasting_becomes_valid(source: GeneratedCases) -> None:
    rows = found(source, "onnx/Mean-6", "onnx/Mean-8")
    assert set(rows) == {"shapes=different shapes"}
    (row,) = rows.values()
    assert [[rule.id for rule in rules] for rules in row.rules] == [["same-shape"], ["broadcast"]]
    assert not row.said[0].answers
    assert row.said[1].answers


@pytest.mark.slow
def test_versions_that_differ_in_types_alone_show_these_types_alone(source: GeneratedCases) -> None:
    rows = found(source, "onnx/Mean-8", "onnx/Mean-13")
    assert set(rows) == {"type=any"}
    assert rows["type=any"].types == ("bfloat16",)


@pytest.mark.parametrize("fill", NUMERIC)
def test_two_versions_are_asked_about_the_same_numbers_nan_among_them(source: GeneratedCases, fill: str) -> None:
    sides = [side(source, name) for name in ("onnx/ReduceMean-13", "onnx/ReduceMean-18")]
    type_ = "int32" if fill in ("maximum", "halves") else "float32"
    answers = [told.answers[0].outputs[0].values for told in said(sides, Situation(type_, ((2, 2),), (), fill))]
    assert repr(answers[0]) == repr(answers[1])
    assert ("nan" in repr(answers)) is (fill == "nan-among")


@pytest.mark.slow
def test_a_version_does_not_differ_from_itself(source: GeneratedCases) -> None:
    assert found(source, "onnx/Mean-13", "onnx/Mean-13") == {}


def test_operators_of_different_arithmetic_cannot_be_compared(source: GeneratedCases) -> None:
    with pytest.raises(OpconformError, match=r"elementwise\.mean and .* reduction\.mean"):
        found(source, "onnx/Mean-13", "onnx/ReduceMean-18")


@pytest.mark.slow
def test_every_case_that_a_difference_names_is_a_case(source: GeneratedCases) -> None:
    for row in found(source, "onnx/ReduceMean-13", "openvino/ReduceMean-1").values():
        for told in row.said:
            if told.answers:
                assert source.case(told.case).id == told.case


@pytest.mark.parametrize(
    ("one", "other", "cause"),
    [
        slow("onnx/If-1", "onnx/If-11", "else_branch"),  # the branches' outputs may differ in shape
        slow("onnx/Clip-6", "onnx/Clip-11", "min"),  # an attribute becomes an input
        ("onnx/Dropout-7", "onnx/Dropout-12", ""),  # training becomes an input
    ],
)
def test_what_changed_between_versions_is_found(source: GeneratedCases, one: str, other: str, cause: str) -> None:
    assert any(cause in text for text in found(source, one, other))


@pytest.mark.slow
def test_inputs_that_the_formula_has_no_answer_for_are_left_out(source: GeneratedCases) -> None:
    # a region to crop that is left out, an axis without elements that is to grow
    assert found(source, "onnx/Resize-18", "onnx/Resize-19") == {}


@pytest.mark.slow
@pytest.mark.parametrize("operator", SEVERAL_VERSIONS)
def test_the_first_and_the_last_version_of_an_operator_can_be_held_together(
    source: GeneratedCases, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "LONGEST", 100)  # of 10,000: loops that never end would take most of the time
    if os.environ.get("HYPOTHESIS_PROFILE") != "random":  # each week all combinations of settings are tried
        monkeypatch.setattr(differences_module, "CROSSED", 15)
    spec = source.library.spec(operator)
    sides = [side(source, str(version.operator)) for version in spec.versions.values()]
    try:
        rows = differences(sides[0], sides[-1])
    except OpconformError as error:
        assert "cannot be compared on the same inputs" in str(error)  # noqa: PT017 - other references, no other reason
        return
    assert all(row.said[0].content != row.said[1].content for row in rows)

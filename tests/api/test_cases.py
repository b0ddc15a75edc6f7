"""`inputs`, the pytest fixture and the Hypothesis strategy give a function the suite's own calls."""

import itertools

import numpy as np
import pytest
from hypothesis import find, given, settings
from hypothesis.errors import NoSuchExample

from opconform import NotConforming, check, inputs, operator_inputs

CASES = list(inputs("onnx/Relu-14", types={"T": "float32"}))


def relu(given, attributes):
    if attributes:
        raise ValueError(f"Relu has no attribute {[*attributes]}")
    return np.maximum(given["X"], 0)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_function_is_checked_on_the_suite_s_cases(case, opconform_check) -> None:
    opconform_check(case, relu)


def test_cases_have_names_and_are_valid_or_not() -> None:
    cases = list(inputs("onnx/Conv-11", types={"T": "float32"}))
    assert len({case.name for case in cases}) == len(cases) > 20
    assert {case.valid for case in cases} == {True, False}
    assert all(case.inputs["X"].dtype == np.float32 for case in cases)


def test_a_case_s_values_are_those_that_check_takes() -> None:
    for case in itertools.islice(inputs("onnx/Gemm-13", types={"T": "float32"}), 60):
        answer = np.zeros((1, 1, 1), np.float32)
        if case.valid:
            with pytest.raises(AssertionError, match="wrong-"):
                check(case.operator, case.inputs, case.attributes, answer)
        else:
            with pytest.raises(ValueError, match="onnx/Gemm-13: "):
                check(case.operator, case.inputs, case.attributes, answer)


def test_any_answer_to_an_invalid_case_is_wrong() -> None:
    case = next(case for case in inputs("onnx/Gemm-13") if not case.valid)
    with pytest.raises(NotConforming, match="accepted-invalid"):
        case.check(np.zeros((2, 2), np.float32))


def test_a_seed_varies_drawn_values_and_nothing_else() -> None:
    first, second, again = (
        {case.name.rpartition("seed=")[0]: case for case in inputs("onnx/Abs-13", types={"T": "float32"}, seed=seed)}
        for seed in (7, 8, 7)
    )
    assert [*first] == [*second] == [*again]
    name = next(name for name, case in first.items() if case.filled and case.inputs["X"].size > 3)
    assert np.array_equal(first[name].inputs["X"], again[name].inputs["X"], equal_nan=True)
    assert not np.array_equal(first[name].inputs["X"], second[name].inputs["X"])


def test_unknown_letters_and_types_are_misuse() -> None:
    with pytest.raises(ValueError, match="no type letter is called 'U'; there is T"):
        next(inputs("onnx/Relu-14", types={"U": "float32"}))
    with pytest.raises(ValueError, match="T cannot be 'string'; it can be "):
        next(inputs("onnx/Relu-14", types={"T": "string"}))
    with pytest.raises(ValueError, match="no valid case"):
        operator_inputs("onnx/Relu-14", most=0)


@settings(max_examples=60)
@given(operator_inputs("onnx/Relu-14", types={"T": "float32"}))
def test_a_right_function_passes_every_drawn_call(case) -> None:
    case.check(relu(case.inputs, case.attributes))


def fails(case, function) -> bool:
    try:
        case.check(function(case.inputs, case.attributes))
    except NotConforming:
        return True
    return False


def test_a_drawn_call_shrinks_to_the_simplest_that_fails() -> None:
    strategy = operator_inputs("onnx/Relu-14", types={"T": "float32"})
    smallest = find(strategy, lambda case: fails(case, lambda given, _: given["X"]))
    assert smallest.inputs["X"].size <= 6
    assert np.array_equal(smallest.inputs["X"], np.round(smallest.inputs["X"]))
    with pytest.raises(NoSuchExample):
        find(strategy, lambda case: fails(case, relu), settings=settings(max_examples=50))


@settings(max_examples=20)
@given(operator_inputs("onnx/Gather-13", types={"T": "float32"}))
def test_only_free_elements_are_changed(case) -> None:
    data, indices, axis = case.inputs["data"], case.inputs["indices"], case.attributes.get("axis", 0)
    case.check(np.take(data, indices, axis))


def test_the_fixture_serves_any_test_suite(pytester) -> None:
    pytester.makepyfile(
        """
        import numpy as np
        import pytest
        from opconform import inputs

        @pytest.mark.parametrize("case", list(inputs("onnx/Relu-14", types={"T": "float32"}, most=4)), ids=str)
        def test_relu(case, opconform_check):
            opconform_check(case, lambda given, attributes: given["X"])
        """
    )
    outcome = pytester.runpytest("-p", "no:cacheprovider")
    assert outcome.parseoutcomes()["failed"] >= 1
    outcome.stdout.fnmatch_lines(["*NotConforming: onnx/Relu-14/float32/*: wrong-value*"])

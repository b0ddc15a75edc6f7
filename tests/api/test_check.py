"""`check` admits what a standard admits, and nothing that a lazy function returns."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import opconform
from opconform import NotConforming, bound, check, inputs

FAMILIES = [
    "onnx/Softmax-13",
    "onnx/ReduceSum-13",
    "onnx/Add-14",
    "onnx/LayerNormalization-17",
    "onnx/Gemm-13",
    "openvino/Softmax-8",
    "onednn/MatMul",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            "onnx/Conv-11",
            "onnx/ReduceMean-18",
            "onnx/Mul-14",
            "onnx/Gelu-20",
            "onnx/MatMul-13",
            "onnx/AveragePool-19",
            "onnx/Resize-19",
            "onnx/Exp-13",
            "onnx/InstanceNormalization-6",
            "openvino/Convolution-1",
            "onednn/LayerNorm",
        )
    ),
]


def telling(operator: str) -> opconform.OperatorCase:
    """Return a case with random numbers of float32, of more than a few elements."""
    cases = [case for case in inputs(operator) if case.valid and "/uniform" in case.name]
    cases = [case for case in cases if "float32" in case.name.split("/")[2] and size(case) < 3000]
    return max(cases, key=size)


def size(case: opconform.OperatorCase) -> int:
    return sum(np.size(value) for value in case.inputs.values() if value is not None)


@pytest.fixture(scope="module", params=FAMILIES)
def case(request) -> opconform.OperatorCase:
    return telling(request.param)


def right(case: opconform.OperatorCase) -> np.ndarray:
    found = bound(case.operator, case.inputs, case.attributes, types=case.types, outputs=case.outputs)
    (interval,) = list(found.outputs.values())[:1]
    return interval.expected.astype(interval.type)


def rejects(case: opconform.OperatorCase, got: np.ndarray) -> bool:
    try:
        check(case.operator, case.inputs, case.attributes, got, types=case.types)
    except NotConforming:
        return True
    return False


def test_the_right_answer_passes(case) -> None:
    result = check(case.operator, case.inputs, case.attributes, right(case), types=case.types)
    assert result.passes
    assert result.judged == result.elements


def test_what_a_lazy_function_returns_does_not_pass(case) -> None:
    answer = right(case)
    assert rejects(case, np.zeros_like(answer))
    assert rejects(case, np.ones_like(answer))
    assert answer.size == 1 or rejects(case, np.full_like(answer, answer.reshape(-1)[0]))
    assert rejects(case, answer * np.float32(1.01))
    for given in case.inputs.values():
        if isinstance(given, np.ndarray) and given.shape == answer.shape and given.dtype == answer.dtype:
            assert rejects(case, given)


def test_a_failure_names_elements_the_error_the_clause_and_a_link() -> None:
    x = np.array([[1.0, 2.0, 3.0]], np.float32)
    got = np.exp(x) / np.exp(x).sum() * np.float32(1.01)
    with pytest.raises(AssertionError) as failed:
        check("onnx/Softmax-13", {"input": x}, {"axis": -1}, got)
    text = str(failed.value)
    assert text.startswith("onnx/Softmax-13: wrong-value\n")
    assert "element [0, 0]: got 0.09" in text
    assert "(3 of 3 wrong)" in text
    assert "times its bound" in text
    assert "clause along-axis" in text
    assert "https://onnx.ai/onnx/operators/onnx__Softmax.html#softmax-13" in text
    assert failed.value.result.share > 100


def test_a_wrong_shape_and_a_wrong_type_fail() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(AssertionError, match=r"wrong-shape\n.*got shape \[3, 2\], want \[2, 3\]"):
        check("onnx/Relu-14", {"X": x}, {}, np.ones((3, 2), np.float32))
    with pytest.raises(AssertionError, match=r"wrong-dtype\n.*got float64, want float32"):
        check("onnx/Relu-14", {"X": x}, {}, np.ones((2, 3)))


X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("operator", "given", "attributes", "words"),
    [
        ("onnx/Sofmax-13", {"input": X}, {}, "no operator is called 'onnx/Sofmax-13'; did you mean 'onnx/Softmax'"),
        ("onnx/Softmax-12", {"input": X}, {}, "there is onnx/Softmax-1, onnx/Softmax-11, onnx/Softmax-13"),
        ("onnx/Softmax-13", {"inptu": X}, {}, "no input is called 'inptu'; did you mean 'input'"),
        ("onnx/Softmax-13", {}, {}, "expected the input input (float16, float32"),
        ("onnx/Softmax-13", {"input": X}, {"axes": 1}, "no attribute is called 'axes'; did you mean 'axis'"),
        ("onnx/Softmax-13", {"input": X}, {"axis": 1.5}, "attribute axis: expected a whole number; read 1.5"),
        ("onnx/Softmax-13", {"input": X.astype(int)}, {}, "expected float16, float32, float64, bfloat16; read int64"),
        ("onnx/Softmax-13", {"input": X}, {"axis": 5}, "the inputs are invalid: axis lies in [-r, r-1]"),
        (
            "onnx/Add-14",
            {"A": X, "B": X.astype(np.float64)},
            {},
            "expected float32, the type of T; read float64 [2, 3]",
        ),
        ("onnx/Add-14", {"A": X, "B": np.ones((2, 4), np.float32)}, {}, "the inputs are invalid"),
        ("onnx/Concat-13", {"inputs": X}, {"axis": 0}, "expected a list of tensors; read ndarray"),
        ("onnx/Concat-13", {"inputs": [X]}, {}, "expected the attribute axis; it is left out"),
        ("onnx/Transpose-13", {"data": X}, {"perm": 1}, "expected a list, each entry a whole number; read 1"),
        ("onnx/Relu-14", {"X": object()}, {}, "expected"),
    ],
)
def test_misuse_is_a_value_error_that_says_what_was_expected(operator, given, attributes, words) -> None:
    with pytest.raises(ValueError, match="onnx/") as failed:
        check(operator, given, attributes, X)
    assert words in str(failed.value)


def test_a_value_that_breaks_a_clause_is_misuse() -> None:
    with pytest.raises(ValueError, match="the inputs are invalid: "):
        check("onnx/Gather-13", {"data": X, "indices": np.array([7])}, {"axis": 0}, X[:1])


class Lends:
    """A tensor of another library, which lends its memory in one way only."""

    def __init__(self, array: np.ndarray, way: str) -> None:
        self._array = array
        if way == "array":
            self.__class__ = type("Array", (Lends,), {"__array__": lambda self, dtype=None, copy=None: self._array})
        else:
            methods = {
                "__dlpack__": lambda self, **options: self._array.__dlpack__(),
                "__dlpack_device__": lambda self: self._array.__dlpack_device__(),
            }
            self.__class__ = type("Dlpack", (Lends,), methods)


@pytest.mark.parametrize("way", ["array", "dlpack"])
def test_tensors_of_other_libraries_are_read(way: str) -> None:
    x = np.array([-1.0, 2.0], np.float32)
    assert check("onnx/Relu-14", {"X": Lends(x, way)}, {}, Lends(np.maximum(x, 0), way)).passes
    with pytest.raises(AssertionError):
        check("onnx/Relu-14", {"X": Lends(x, way)}, {}, Lends(x, way))


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "float8_e4m3fn", "float8_e5m2"])
def test_tensors_of_torch_are_read_in_their_own_types(name: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[-1.5, 2.0]], requires_grad=True).to(getattr(torch, name))
    assert check("onnx/Identity-19", {"input": x}, {}, x).passes
    with pytest.raises(AssertionError, match="wrong-value"):
        check("onnx/Identity-19", {"input": x}, {}, torch.flip(x.detach().float(), [1]).to(x.dtype))


@pytest.mark.parametrize("type_", [ml_dtypes.bfloat16, np.float16])
def test_small_floats_are_judged(type_) -> None:
    x = np.array([0.1, 0.7, -3.0], type_)
    got = (x.astype(np.float32) + x.astype(np.float32)).astype(type_)
    assert check("onnx/Add-14", {"A": x, "B": x}, {}, got).passes
    with pytest.raises(AssertionError):
        check("onnx/Add-14", {"A": x, "B": x}, {}, x)


def test_small_whole_numbers_text_and_sequences_are_judged() -> None:
    nibbles = np.array([-8, 7, 3], ml_dtypes.int4)
    assert check("onnx/Transpose-25", {"data": nibbles.reshape(1, 3)}, {}, nibbles.reshape(3, 1)).passes
    words = np.array(["a", "é"], object)
    assert check("onnx/StringConcat-20", {"X": words, "Y": ["b", "c"]}, {}, np.array(["ab", "éc"])).passes
    with pytest.raises(AssertionError, match=r"element \[1\]: got 'ec', want 'éc' exactly"):
        check("onnx/StringConcat-20", {"X": words, "Y": ["b", "c"]}, {}, np.array(["ab", "ec"]))
    first, second = np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)
    joined = np.concatenate([first, second])
    given = {"input_sequence": [first, second]}
    assert check("onnx/ConcatFromSequence-11", given, {"axis": 0}, joined).passes
    made = {"inputs": [first, second]}
    assert check("onnx/SequenceConstruct-11", made, {}, [first, second]).passes
    with pytest.raises(AssertionError):
        check("onnx/SequenceConstruct-11", made, {}, [second, first])


def test_several_outputs_are_a_list_or_have_names() -> None:
    x = np.array([3.0, 1.0, 2.0], np.float32)
    given = {"X": x, "K": np.array([2])}
    values, indices = np.array([3.0, 2.0], np.float32), np.array([0, 2])
    assert check("onnx/TopK-11", given, {}, [values, indices]).passes
    assert check("onnx/TopK-11", given, {}, {"Indices": indices, "Values": values}).passes
    with pytest.raises(AssertionError, match="of output Indices"):
        check("onnx/TopK-11", given, {}, [values, indices[::-1]])
    with pytest.raises(ValueError, match="no output is called 'Value'"):
        check("onnx/TopK-11", given, {}, {"Value": values})
    parts = [x[:1], x[1:]]
    assert check("onnx/Split-18", {"input": x, "split": np.array([1, 2])}, {}, parts).passes


def test_optional_inputs_may_be_none() -> None:
    x = np.array([-1.0, 5.0], np.float32)
    given = {"input": x, "min": None, "max": np.array(2.0, np.float32)}
    assert check("onnx/Clip-13", given, {}, np.array([-1.0, 2.0], np.float32)).passes
    with pytest.raises(AssertionError):
        check("onnx/Clip-13", given, {}, np.array([0.0, 2.0], np.float32))


def test_an_attribute_that_states_a_type_takes_its_name_or_number() -> None:
    x = np.array([1.5], np.float32)
    for stated in ("float16", 10):
        assert check("onnx/Cast-13", {"input": x}, {"to": stated}, x.astype(np.float16)).passes
    with pytest.raises(AssertionError, match="got float32, want float16"):
        check("onnx/Cast-13", {"input": x}, {"to": "float16"}, x)


def test_a_required_option_alone_passes() -> None:
    ones = np.ones(4096, np.float16)
    narrow = np.array(2048.0, np.float16)
    given = {"data": ones, "axes": np.array([0])}
    shown = check("onnx/ReduceSum-13", given, {"keepdims": 0}, narrow)
    assert shown.behaviour == {"accumulator": ["narrow"]}
    with pytest.raises(AssertionError, match="required: accumulator=wide"):
        check("onnx/ReduceSum-13", given, {"keepdims": 0}, narrow, require={"accumulator": "wide"})
    with pytest.raises(ValueError, match="no silence is called 'acumulator'"):
        check("onnx/ReduceSum-13", given, {"keepdims": 0}, narrow, require=["acumulator=wide"])


def test_a_declared_arithmetic_widens_the_bound_and_says_so(tmp_path) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.uniform(-1, 1, (8, 8)).astype(np.float32) for _ in range(2))
    cut = [(x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b)]
    got = cut[0] @ cut[1]
    with pytest.raises(AssertionError):
        check("onnx/MatMul-13", {"A": a, "B": b}, {}, got)
    assert check("onnx/MatMul-13", {"A": a, "B": b}, {}, got, declared="tf32").level == "declared"
    file = tmp_path / "arithmetic.yaml"
    file.write_text("float32: {compute: tf32, accumulator: float32}\n")
    assert check("onnx/MatMul-13", {"A": a, "B": b}, {}, got, declared=file).level == "declared"
    with pytest.raises(ValueError, match="expected tf32, bfloat16-accumulation, or a file"):
        check("onnx/MatMul-13", {"A": a, "B": b}, {}, got, declared="tf23")


def test_a_large_answer_is_judged_on_a_sample_that_the_result_names() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((300, 400)).astype(np.float32)
    e = np.exp(x - x.max(-1, keepdims=True))
    got = e / e.sum(-1, keepdims=True)
    whole = check("onnx/Softmax-13", {"input": x}, {"axis": -1}, got)
    assert (whole.sample, whole.judged) == ("", 120_000)
    part = check("onnx/Softmax-13", {"input": x}, {"axis": -1}, got, most_work=50_000, seed=3)
    assert 1_000 < part.judged < 50_000
    assert part.sample.startswith(f"judged on {part.judged:,} of 120,000 elements: the ends")
    assert part.share <= whole.share


@pytest.mark.parametrize("place", [(0, 0), (299, 399), (0, 399), (150, 200), (64, 127)])
def test_a_sample_finds_a_wrong_element_at_the_structure_s_places_by_its_own_index(place) -> None:
    x = np.random.default_rng(2).standard_normal((300, 400)).astype(np.float32)
    got = np.maximum(x, 0)
    got[place] += 1
    with pytest.raises(AssertionError) as failed:
        check("onnx/Relu-14", {"X": x}, {}, got, most_work=20_000)
    assert f"element [{place[0]}, {place[1]}]: " in str(failed.value)
    assert "judged on" in str(failed.value)


def test_a_sample_finds_a_wild_element_anywhere() -> None:
    x = np.random.default_rng(2).standard_normal((300, 400)).astype(np.float32)
    for wild in (1e9, -1e9, np.nan):
        got = np.maximum(x, 0)
        got[201, 333] = wild
        with pytest.raises(AssertionError, match=r"element \[201, 333\]"):
            check("onnx/Relu-14", {"X": x}, {}, got, most_work=20_000)


def test_the_wrong_shape_of_a_large_answer_is_seen() -> None:
    x = np.zeros((300, 400), np.float32)
    with pytest.raises(AssertionError, match=r"got shape \[400, 300\], want \[300, 400\]"):
        check("onnx/Relu-14", {"X": x}, {}, x.T, most_work=20_000)


def test_a_bound_has_the_values_their_ends_and_what_is_open() -> None:
    x = np.array([0.1, 0.2, 0.7], np.float32)
    found = bound("onnx/Softmax-13", {"input": x})
    exact = np.exp(x.astype(float)) / np.exp(x.astype(float)).sum()
    assert np.allclose(found.expected, exact, rtol=1e-12)
    assert (found.lower < found.expected).all()
    assert (found.expected < found.upper).all()
    assert not found.outputs["output"].free.any()
    assert bound("onnx/ReduceSum-13", {"data": np.ones(4096, np.float16)}).open["accumulator"][-1] == "narrow"
    infinite = bound("onnx/Softmax-13", {"input": np.array([np.inf, 1.0], np.float32)})
    assert infinite.open or np.isnan(infinite.expected).any()


def test_a_bound_of_several_outputs_has_them_by_name() -> None:
    found = bound("onnx/Split-18", {"input": np.arange(4.0, dtype=np.float32)}, {"num_outputs": 2}, outputs=2)
    assert list(found.outputs) == ["outputs_0", "outputs_1"]
    with pytest.raises(ValueError, match=r"use \.outputs"):
        _ = found.expected


def test_the_package_alone_imports_neither_numpy_nor_the_formulas() -> None:
    code = "import sys, opconform; print(sorted(m for m in sys.modules if m in ('numpy', 'onnx', 'opconform.api')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert set(opconform.__all__) <= set(dir(opconform))
    with pytest.raises(AttributeError, match="has no attribute 'chekc'"):
        _ = opconform.chekc

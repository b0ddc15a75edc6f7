"""onnxruntime as a backend, against the library that is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fakes.programs import constant, feed, mean, onnx_program, reduce_mean

from opconform.cases.elements import Array, canonical, comparable, content, element_type, element_types, type_of
from opconform.cases.program import Program
from opconform.cases.runner import Classifies, Describes, NotInstalled, Unsupported
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.runners.backends.onnxruntime import WORDS, OnnxRuntime, OnnxRuntimeNoOpt
from opconform.runners.execution.execute import Assignment
from opconform.runners.execution.running import Judged, run_cases
from opconform.runners.pool import Limits
from opconform.runners.registry import backend_spec

ort = pytest.importorskip("onnxruntime")

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
AXIS_1 = np.array([1], np.int64)
NO_AXES = np.zeros(0, np.int64)
takes_bfloat16 = pytest.mark.skipif(
    not hasattr(ort.OrtValue, "ortvalue_from_numpy_with_onnx_type"), reason="this onnxruntime takes no bfloat16"
)


@pytest.fixture(params=[OnnxRuntime, OnnxRuntimeNoOpt])
def runner(request: pytest.FixtureRequest) -> OnnxRuntime:
    return request.param()


def answer(runner: OnnxRuntime, program: Program, *inputs: Array) -> Array:
    (output,) = runner.prepare(program).run(inputs)
    return output


PACKED = ["int4", "uint4", "int2", "uint2", "float4e2m1", "float6e2m3", "float6e3m2"]
REFUSED = [*PACKED, "float8e8m0", "complex64", "complex128"]


@pytest.mark.parametrize("type_", [t for t in element_types() if t not in REFUSED])
@pytest.mark.parametrize("shape", [(2, 2), (), (0, 2)], ids=str)
def test_every_element_type_goes_in_and_comes_out_unchanged(runner, type_: str, shape: tuple[int, ...]) -> None:
    if not hasattr(ort.OrtValue, "ortvalue_from_numpy_with_onnx_type") and element_type(type_).dtype.isbuiltin != 1:
        pytest.skip("this onnxruntime takes no such type")
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    x = canonical(x.astype(str)) if type_ == "string" else x.astype(element_type(type_).dtype)
    x.flags.writeable = False
    opset = 16 if "float8" not in type_ else 19
    program = onnx_program(
        "Identity", opset, [feed("x", type_, *["A", "B"][: x.ndim])], rank=x.ndim, type_=type_, opset=opset
    )
    y = answer(runner, program, x)
    assert (type_of(y), y.shape, content(y)) == (type_, shape, content(x))


@pytest.mark.parametrize("type_", [t for t in REFUSED if "float6" not in t])  # those no operator lists
def test_element_types_without_a_kernel_are_unsupported(runner, type_: str) -> None:
    with pytest.raises(Unsupported) as refusal:
        runner.prepare(onnx_program("Identity", 25, [feed("x", type_, 2)], rank=1, type_=type_, opset=25))
    assert refusal.value.reason == "type"


@takes_bfloat16
@pytest.mark.parametrize("type_", ["int4", "uint4", "float8e4m3fn", "float8e5m2"])
def test_packed_and_narrow_types_are_quantized_and_back(runner, type_: str) -> None:
    numbers = np.array([1, 2, 7, 0, 5], np.float32)
    scale, to = feed("s", "float32"), ("output_dtype", "int", element_type(type_).onnx)
    one = np.ones((), np.float32)
    quantize = onnx_program(
        "QuantizeLinear", 21, [feed("x", "float32", 5), scale], rank=1, type_=type_, attributes=[to]
    )
    back = onnx_program("DequantizeLinear", 21, [feed("x", type_, 5), scale], rank=1)
    small = answer(runner, quantize, numbers, one)
    assert (type_of(small), small.shape) == (type_, (5,))
    assert comparable(small).tolist() == numbers.tolist()
    assert answer(runner, back, small, one).tolist() == numbers.tolist()


@takes_bfloat16
def test_text_beside_what_numpy_lacks_is_unsupported(runner) -> None:
    cast = onnx_program(
        "Cast", 21, [feed("x", "string", 1)], rank=1, type_="bfloat16", attributes=[("to", "int", 16)], opset=21
    )
    with pytest.raises(Unsupported, match="takes no string from Python") as refusal:
        runner.prepare(cast).run([np.array(["1"], object)])
    assert refusal.value.reason == "type"


@takes_bfloat16
def test_bfloat16_beside_other_types_and_out_of_order_in_memory(runner) -> None:
    bfloat16 = element_type("bfloat16").dtype
    x = np.arange(6).reshape(2, 3).astype(bfloat16).T
    reshape = [feed("x", "bfloat16", "A", "B"), feed("shape", "int64", "K")]
    y = answer(runner, onnx_program("Reshape", 13, reshape, rank=1, type_="bfloat16"), x, np.array([6]))
    assert y.dtype == bfloat16
    assert y.tolist() == x.ravel().tolist()


@takes_bfloat16
@pytest.mark.parametrize(("source", "target"), [("bfloat16", "float32"), ("float32", "bfloat16")])
def test_bfloat16_on_one_side_only(runner, source: str, target: str) -> None:
    to = ("to", "int", element_type(target).onnx)
    cast = onnx_program("Cast", 13, [feed("x", source, 2)], rank=1, type_=target, attributes=[to])
    y = answer(runner, cast, np.array([0.5, -3]).astype(element_type(source).dtype))
    assert (y.dtype, y.tolist()) == (element_type(target).dtype, [0.5, -3])


@pytest.mark.parametrize("type_", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("version", [1, 11, 13, 18])
def test_reduce_mean_of_every_version_and_implemented_type(runner, version: int, type_: str) -> None:
    x = X.astype(type_)
    axes = () if version < 18 else (constant("axes", AXIS_1),)
    program = reduce_mean(version, (3, 2), *axes, type_=type_, axes=(1,) if version < 18 else None)
    assert answer(runner, program, x).tolist() == x.mean(1, keepdims=True).astype(type_).tolist()


@pytest.mark.parametrize("type_", ["float16", "float32"])
@pytest.mark.parametrize("version", [6, 8, 13])
def test_mean_of_every_implemented_version_and_type(runner, version: int, type_: str) -> None:
    x = X.astype(type_)
    assert answer(runner, mean(version, (3, 2), (3, 2), type_=type_), x, x + 2).tolist() == (x + 1).tolist()


@pytest.mark.parametrize(
    ("program", "inputs", "want"),
    [
        (reduce_mean(13, ()), [np.float32(3)], 3.0),
        (reduce_mean(18, (3, 2), feed("axes", "int64", 1)), [X, AXIS_1], [[1.5], [3.5], [5.5]]),
        (reduce_mean(18, ("N", "M"), feed("axes", "int64", "K"), rank=1, keepdims=0), [X, AXIS_1], [1.5, 3.5, 5.5]),
        (reduce_mean(18, (3, 2), None), [X], [[3.5]]),
        (reduce_mean(18, (3, 2), None, noop=1), [X], X.tolist()),
        (reduce_mean(18, (3, 2), constant("axes", NO_AXES), noop=1), [X], X.tolist()),
        (reduce_mean(13, (2, 0), axes=(0,)), [np.zeros((2, 0), np.float32)], [[]]),
        (mean(13, (), (3, 2)), [np.float32(1), X], (X / 2 + 0.5).tolist()),
        (mean(13, *[("N",)] * 40), [np.float32([2, 4])] * 40, [2.0, 4.0]),
    ],
    ids=["rank-0", "axes-fed", "symbolic", "axes-omitted", "omitted-noop", "empty-noop", "no-size", "scalar", "many"],
)
def test_shapes_and_ways_to_give_axes(runner, program: Program, inputs: list[Array], want: object) -> None:
    assert answer(runner, program, *map(np.asarray, inputs)).tolist() == want


def test_one_program_with_symbolic_dimensions_runs_on_many_shapes(runner) -> None:
    executable = runner.prepare(reduce_mean(13, ("N", "M"), axes=(0,)))
    for shape in ((1, 1), (5, 2), (2, 7)):
        (y,) = executable.run([np.ones(shape, np.float32)])
        assert y.tolist() == [[1.0] * shape[1]]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (mean(1, (2,)), "operator-version"),
        (mean(13, (2,), type_="float64"), "type"),
        (reduce_mean(1, (2,), type_="uint64"), "type"),
        (reduce_mean(18, (2,), type_="bfloat16"), "type"),
        (onnx_program("Relu", 14, [feed("x", "float32", 2)], rank=1, opset=999), "operator-version"),
        (onnx_program("NoSuchOperator", 1, [feed("x", "float32", 2)], opset=18), "operator-version"),
        (onnx_program("Adam", 1, [feed("x", "float32", 2)], domain="ai.onnx.preview.training"), "operator-version"),
    ],
    ids=lambda p: str(p.operator) if isinstance(p, Program) else p,
)
def test_what_the_library_does_not_implement_is_unsupported_in_its_own_words(runner, program, reason) -> None:
    with pytest.raises(Unsupported, match="ONNXRuntimeError") as refusal:
        runner.prepare(program)
    assert refusal.value.reason == reason


X64 = X.astype(np.float64)
FED_AXES = feed("axes", "int64", "K")
EXPAND = onnx_program("Expand", 13, [feed("x", "float32", 1), feed("shape", "int64", 2)], rank=2)
RESHAPE = onnx_program("Reshape", 13, [feed("x", "float32", 3, 2), feed("shape", "int64", 2)], rank=2)
GATHER = onnx_program("Gather", 13, [feed("x", "float32", 3, 2), feed("at", "int64", 1)], rank=2)
DIFFERENT = onnx_program("Mean", 13, [feed("a", "float32", 2), feed("b", "float16", 2)], rank=1)
KEEPDIMS_FLOAT = onnx_program(
    "ReduceMean", 13, [feed("x", "float32", 2)], rank=1, attributes=[("keepdims", "float", 1.0)]
)
UNKNOWN = onnx_program("ReduceMean", 13, [feed("x", "float32", 2)], rank=1, attributes=[("no_such", "int", 1)])
NO_TO = onnx_program("Cast", 13, [feed("x", "float32", 2)], rank=1)


@pytest.mark.parametrize(
    ("program", "inputs", "reason"),
    [
        (reduce_mean(13, (2,), type_="bool"), [], "type"),
        (DIFFERENT, [], "type"),
        (reduce_mean(13, (3, 2)), [X64], "type"),
        (UNKNOWN, [], "attribute"),
        (KEEPDIMS_FLOAT, [], "attribute"),
        (NO_TO, [], "attribute"),
        (reduce_mean(13, (3, 2)), [X[0]], "rank"),
        (reduce_mean(18, (3, 2), feed("axes", "int64")), [X, np.array(1)], "rank"),
        (reduce_mean(13, (3, 3)), [X], "shape"),
        (mean(6, ("A", "B"), ("C", "D")), [X, X[:1]], "shape"),
        (mean(13, (3, 2), (2, 3)), [], "shape"),
        (mean(13, ("A", "B"), ("C", "D")), [X, X.reshape(2, 3)], "shape"),
        (RESHAPE, [X, np.array([4, 4])], "shape"),
        (reduce_mean(13, (3, 2), axes=(2,)), [], "invalid"),
        (reduce_mean(18, ("N", "M"), FED_AXES), [X, np.array([2])], "invalid"),
        (mean(13), [], "invalid"),
        (GATHER, [X, np.array([9])], "invalid"),
        (EXPAND, [np.ones(1, np.float32), np.array([1 << 24, 1 << 24])], "memory"),
    ],
)
def test_other_refusals_keep_their_own_error_and_are_told_apart(runner, program, inputs, reason) -> None:
    with pytest.raises(Exception, match="ONNXRuntimeError") as refusal:
        runner.prepare(program).run(inputs)
    assert not isinstance(refusal.value, Unsupported)
    assert runner.reason(refusal.value) == reason


STORED = {
    "Unexpected value type  <class 'str'>, it cannot be linked to C type int64_t for input 'X'.": "type",
    "INVALID_ARGUMENT : Unexpected input data type. Actual: ((map(string,tensor(float)))) , expected: "
    "((map(string,tensor(int64))))": "type",
    "Size of dictionary is empty, unable to run the prediction.": "type",
    "Unsupported model IR version: 14, max supported IR version: 13": "operator-version",
    "ONNX Runtime only *guarantees* support for models stamped with official released onnx opset versions. Opset 27 is "
    "under development and support for this is limited. Current official support for domain ai.onnx is till opset 26."
    "": "operator-version",
    "INVALID_GRAPH : This is an invalid model. In Node, (...) , Error No Op registered for Gelu with domain_version of "
    "18": "operator-version",
    "FAIL : Fatal error: ai.onnx.preview.training:Adam(-1) is not a registered function/op": "operator-version",
    "bfc_arena.cc:360 Failed to allocate memory for requested buffer of size 1125899906842624": "memory",
    "std::bad_alloc": "memory",
    "INVALID_GRAPH : This is an invalid model. Type Error: Type 'tensor(bool)' of input parameter (x) of operator "
    "(ReduceMean) in node () is invalid.": "type",
    "FAIL : Type Error: Type parameter (T) of Optype (Mean) bound to different types (tensor(float) and "
    "tensor(float16) in node (Mean).": "type",
    "INVALID_ARGUMENT : Unexpected input data type. Actual: (tensor(double)) , expected: (tensor(float))": "type",
    "INVALID_GRAPH : (...) , Error Unrecognized attribute: consumed_inputs for operator Mean": "attribute",
    "INVALID_GRAPH : (...) , Error Mismatched attribute type in 'ReduceMean : keepdims'": "attribute",
    "INVALID_GRAPH : (...) , Error Required attribute 'to' is missing.": "attribute",
    "INVALID_ARGUMENT : Invalid rank for input: x Got: 1 Expected: 2 Please fix either the inputs/outputs or the model."
    "": "rank",
    "reduction_ops.cc:962 axes_tensor->Shape().NumDimensions() == 1 was false. An axes tensor must be a vector tensor."
    "": "rank",
    "INVALID_ARGUMENT : Got invalid dimensions for input: x for the following indices\n index: 1 Got: 3": "shape",
    "FAIL : Node (Mean) Op (Mean) [ShapeInferenceError] Incompatible dimensions": "shape",
    "data_1.Shape() == shape was false. All inputs must have the same shape": "shape",
    "axis == 1 || axis == largest was false. Attempting to broadcast an axis by a dimension other than 1. 2 by 3"
    "": "shape",
    "The input tensor cannot be reshaped to the requested shape. Input shape:{3,2}, requested shape:{4,4}": "shape",
    "[ShapeInferenceError] axis must be in [-rank, rank-1]. Input rank was 2": "invalid",
    "IsAxisInRange(axis, tensor_rank) was false. axis 2 is not in valid range [-2,1]": "invalid",
    "axis >= -tensor_rank && axis <= tensor_rank - 1 was false. axis 2 is not in valid range [-2,1]": "invalid",
    "Error Node(Mean) with schema(::Mean:13) has input size 0 not in range [min=1, max=2147483647].": "invalid",
    "INVALID_ARGUMENT : indices element out of data bounds, idx=9 must be within the inclusive range [-3,2]": "invalid",
    "Exception during loading: MLDataType for: tensor(complex64) is not currently registered or supported": "type",
    "INVALID_ARGUMENT : Failed to load model with error: Invalid tensor data type 27.": "type",
    "CPU execution provider: MLFloat16 data type is not supported with ScatterElements opset 16 when reduction is "
    "'add'.": "type",
    "layout_ == 0 was false. Batchwise recurrent operations (layout == 1) are not supported. If you need support "
    "create a github issue with justification.": "attribute",
    "NOT_IMPLEMENTED : Op with name () and type Cast has types tensor(int2),tensor(float8e8m0),), but the node in the "
    "model has the following type (tensor(float4e2m1))": "type",
    "constant_of_shape_base.h:233 Unsupported value attribute datatype: 17": "type",
    "while running MaxPool node. Name:'MaxPool' Status Message: Unsupported pooling size.": "rank",
    "while running LpPool node. Name:'LpPool' Status Message: Unsupported kernel dimension : 4": "rank",
    "RUNTIME_EXCEPTION : (...) Status Message: LSTM operator does not support double yet": "type",
    "FAIL : (...) upsamplebase.h:579 ScalesValidation 'Cubic' mode only supports:\n  * 2-D inputs": "shape",
    "INVALID_ARGUMENT : (...) Status Message: Dilation not supported for AutoPadType::SAME_UPPER or "
    "AutoPadType::SAME_LOWER.": "attribute",
    "FAIL : This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU EP has been "
    "explicitly disabled by the user.": "operator-version",
    "Numpy_type 256 can't be converted to MLDataType.": "type",
    "something that nobody has seen": "other",
}


@pytest.mark.parametrize("message", STORED)
def test_messages_that_were_seen_keep_their_meaning(message: str) -> None:
    assert OnnxRuntime().reason(RuntimeError(message)) == STORED[message]


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words.pattern[:30])
def test_every_alternative_of_the_table_is_there_for_a_message_that_was_seen(words) -> None:
    import re

    for alternative in words.pattern.split("|"):
        assert any(re.search(alternative, message) for message in STORED), alternative


@pytest.mark.slow
def test_a_plain_class_around_the_library_fails_where_the_built_in_one_does() -> None:
    source = GeneratedCases()
    globs = [f"onnx/{name}-*" for name in ("Mean", "ReduceMean", "Shape", "Sqrt", "And", "Add", "TopK")]
    cases = list(planned(source.library, Selection(tuple(globs), suite="smoke")))
    own = "python:fakes.libraries:PlainOnnxRuntime"
    failing = []
    for backend in ("onnxruntime", own):
        told = run_cases(Assignment(backend_spec(backend), source), [cases], jobs=1, limits=Limits(run_seconds=60))
        results = [one.result for one in told if isinstance(one, Judged)]
        assert len(results) == len(cases) > 100
        failing.append({(one.case, one.outcome) for one in results if str(one.outcome) not in ("pass", "unsupported")})
    assert failing[1] <= failing[0]
    assert {str(outcome) for _, outcome in failing[1]} >= {"error", "wrong-value"}


def test_running_out_of_memory_in_python_is_memory() -> None:
    assert OnnxRuntime().reason(MemoryError()) == "memory"


def test_refusals_and_runs_leave_the_console_alone(runner, capfd) -> None:
    for program in (mean(1, (2,)), mean(13), reduce_mean(13, (2,), axes=(5,))):
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            runner.prepare(program)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        runner.prepare(reduce_mean(18, ("N",), FED_AXES)).run([X[0], np.array([5])])
    # A declared rank that the library's own inference contradicts is worth a warning to it.
    answer(runner, reduce_mean(13, (3, 2), rank=1), X)
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads through /proc")
def test_a_session_starts_no_threads(runner) -> None:
    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    before = threads()
    answer(runner, reduce_mean(13, ("N", "M")), np.ones((512, 512), np.float32))
    assert threads() == before


def test_both_backends_say_what_they_are(runner) -> None:
    assert runner.version() == ort.__version__
    assert isinstance(runner, Classifies)
    assert isinstance(runner, Describes)
    levels = {"onnxruntime": "ORT_ENABLE_ALL", "onnxruntime-noopt": "ORT_DISABLE_ALL"}
    assert runner.describe()["graph_optimisations"] == levels[runner.name]
    assert all(isinstance(fact, str) for fact in runner.describe().values())


def test_a_missing_library_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(NotInstalled, match=r"pip install onnxruntime$"):
        OnnxRuntime()


def test_an_onnxruntime_that_takes_no_bfloat16_says_so(monkeypatch) -> None:
    monkeypatch.delattr(ort.OrtValue, "ortvalue_from_numpy_with_onnx_type", raising=False)
    executable = OnnxRuntime().prepare(
        onnx_program("Identity", 16, [feed("x", "bfloat16", 2)], rank=1, type_="bfloat16")
    )
    with pytest.raises(Unsupported, match="takes no bfloat16") as refusal:
        executable.run([np.ones(2, element_type("bfloat16").dtype)])
    assert refusal.value.reason == "type"

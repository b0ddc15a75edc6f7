"""oneDNN Graph as a backend, against the library that is installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes.programs import onednn_program, reduction

from opconform.cases.elements import Array, element_type, element_types
from opconform.cases.program import Input, Program, sequence, tensor
from opconform.cases.runner import Classifies, Describes, Unsupported
from opconform.runners.backends.onednn import REASONS, OneDnnGraph
from opconform.runners.backends.onednn_library import OPERATIONS, TYPES, OneDnnError, is_installed

if not is_installed():
    pytest.skip("oneDNN is not installed", allow_module_level=True)

X = np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]], np.float32)
FED = Input("axes", "int32", (1,))


@pytest.fixture(scope="module")
def runner() -> OneDnnGraph:
    return OneDnnGraph()


def answer(runner: OneDnnGraph, program: Program, *inputs: Array) -> Array:
    (output,) = runner.prepare(program).run(inputs)
    return output


def feed(*dims: int, type_: str = "float32", name: str = "src") -> Input:
    return Input(name, type_, dims)


@pytest.mark.parametrize("keep_dims", [None, False, True])
@pytest.mark.parametrize("axes", [(0,), (1,), (-1,), (0, 2), (-1, 0)], ids=str)
def test_a_mean_has_the_values_and_the_shape_of_numpy(runner, axes, keep_dims) -> None:
    y = answer(runner, reduction(X.shape, axes, keep_dims=keep_dims), X)
    want = X.mean(tuple(axes), keepdims=bool(keep_dims))
    assert (y.dtype, y.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(y, want, rtol=1e-6)


REDUCTIONS: dict[str, Callable[..., Array]] = {
    "ReduceL1": lambda x, axis: abs(x).sum(axis),
    "ReduceL2": lambda x, axis: np.sqrt((x * x).sum(axis)),
    "ReduceMax": np.max,
    "ReduceMean": np.mean,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceSum": np.sum,
}


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_the_number_of_every_reduction_names_that_reduction(runner, operation: str) -> None:
    y = answer(runner, reduction(X.shape, (1,), operation=operation), X)
    np.testing.assert_allclose(y, REDUCTIONS[operation](X, 1), rtol=1e-6)


UNARY: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Exp": np.exp,
    "Log": np.log,
    "ReLU": lambda x: np.maximum(x, 0),
    "Round": np.rint,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Tanh": np.tanh,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Divide": np.divide,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Multiply": np.multiply,
    "Subtract": np.subtract,
}


@pytest.mark.parametrize("operation", UNARY)
def test_the_number_of_a_unary_operation_names_it(runner, operation: str) -> None:
    x = np.float32([0.25, 0.75, 2.125, 3])
    np.testing.assert_allclose(answer(runner, onednn_program(operation, [feed(4)]), x), UNARY[operation](x), rtol=1e-4)


@pytest.mark.parametrize("operation", BINARY)
def test_the_number_of_a_binary_operation_names_it(runner, operation: str) -> None:
    a, b = np.float32([[1, -2, 3]]), np.float32([[4, 5, -6]])
    y = answer(runner, onednn_program(operation, [feed(1, 3), feed(1, 3, name="other")]), a, b)
    np.testing.assert_allclose(y, BINARY[operation](a, b), rtol=1e-6)


UNUSUAL = np.float32([[[1.5, -0.0, np.inf], [np.nan, 2**-140, -3]]])


def test_an_operation_that_is_not_supported_alone_runs_beside_others_that_change_nothing(runner) -> None:
    with np.errstate(divide="ignore", over="ignore"):
        y = answer(runner, onednn_program("Reciprocal", [feed(1, 2, 3)]), UNUSUAL)
        np.testing.assert_array_equal(y, 1 / UNUSUAL)
    turned = onednn_program("StaticTranspose", [feed(1, 2, 3)], attributes=[("order", "s64s", (2, -2, 0))])
    assert answer(runner, turned, UNUSUAL).tobytes() == UNUSUAL.transpose(2, 1, 0).tobytes()


def test_a_transpose_that_moves_nothing_runs_alone_or_not_at_all(runner) -> None:
    program = onednn_program("StaticTranspose", [feed(1, 2, 1)], attributes=[("order", "s64s", (1, 2, 0))])
    try:
        y = answer(runner, program, np.float32([[[1], [2]]]))
    except Unsupported:
        return
    assert y.tolist() == [[[1]], [[2]]]


def test_every_operation_of_the_oldest_supported_library_is_known_to_this_one(runner) -> None:
    oldest = list(OPERATIONS)[: OPERATIONS["Select"] + 1]
    refusals = {name: refusal_of(runner, onednn_program(name, [])) for name in oldest}
    # All take more inputs than none, but for the wildcard, which looks like none that the library knows.
    assert {str(refusal) for name, refusal in refusals.items() if name != "Wildcard"} == {
        "dnnl_graph_add_op: invalid_graph_op"
    }


@pytest.mark.parametrize("type_", ["bfloat16", "float16"])
def test_narrow_floats_go_in_and_come_out(runner, type_: str) -> None:
    x = np.array([[0.5, -3], [np.inf, 2**-14]]).astype(element_type(type_).dtype)
    widen = onednn_program("TypeCast", [feed(2, 2, type_=type_)])
    narrow = onednn_program("TypeCast", [feed(2, 2)], outputs=[type_])
    wide = answer(runner, widen, x)
    back = answer(runner, narrow, wide)
    assert (wide.dtype, wide.tolist()) == (np.float32, x.astype(np.float32).tolist())
    assert (back.dtype, back.tobytes()) == (x.dtype, x.tobytes())


def test_an_input_may_lie_in_memory_as_it_likes(runner) -> None:
    for x in (X.transpose(0, 2, 1), X[:, ::-1], np.broadcast_to(np.float32(3), X.shape)):
        assert answer(runner, reduction(X.shape, (1,)), x).tolist() == x.mean(1).tolist()
    frozen = X.copy()
    frozen.flags.writeable = False
    assert answer(runner, reduction(X.shape, (1,)), frozen).tolist() == X.mean(1).tolist()


@pytest.mark.parametrize("strides", [(1, 3, 6), (6, 3, 1), (40, 10, 2)], ids=["turned", "padded", "spaced"])
def test_an_input_lies_in_memory_as_its_program_says(runner, strides: tuple[int, ...]) -> None:
    program = onednn_program("Square", [replace(feed(3, 2, 2), strides=strides)])
    for run in (runner.prepare(program).run, runner.prepare(program).run):
        assert run([X])[0].tolist() == (X * X).tolist()
    product = onednn_program("MatMul", [replace(feed(3, 2, 2), strides=strides), feed(3, 2, 2, name="weights")])
    assert answer(runner, product, X, X).tolist() == (X @ X).tolist()


def test_an_output_may_lie_in_memory_as_the_library_likes(runner) -> None:
    images = np.arange(48, dtype=np.float32).reshape(1, 3, 4, 4)
    weights = np.float32([[[[1]], [[2]], [[-1]]], [[[0]], [[1]], [[3]]]])
    words = {"data_format": "NCX", "weights_format": "OIX"}
    numbers = {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0}
    attributes = [*((n, "string", w) for n, w in words.items()), *((n, "s64s", (w, w)) for n, w in numbers.items())]
    inputs = [feed(*images.shape), feed(*weights.shape, name="weights")]
    program = onednn_program("Convolution", inputs, attributes=attributes)
    free = replace(program, outputs=tuple(replace(o, free=True) for o in program.answers))
    want = np.einsum("nchw,oc->nohw", images, weights[:, :, 0, 0])
    assert answer(runner, program, images, weights).tolist() == want.tolist()
    assert answer(runner, free, images, weights).tolist() == want.tolist()


def test_an_output_is_read_with_the_strides_that_the_library_gives_it(runner) -> None:
    program = onednn_program("StaticTranspose", [feed(3, 2, 2)], attributes=[("order", "s64s", (2, 0, 1))])
    try:
        y = answer(runner, program, X)
    except Unsupported as refusal:
        pytest.skip(str(refusal))
    assert y.tolist() == X.transpose(2, 0, 1).tolist()


def test_several_outputs_and_scalar_attributes(runner) -> None:
    normal = onednn_program(
        "LayerNorm",
        [feed(2, 3)],
        outputs=["float32"] * 3,
        attributes=[("keep_stats", "bool", True), ("use_affine", "bool", False), ("epsilon", "f32", 0.5)],
    )
    x = np.float32([[1, 2, 3], [-1, 0, 4]])
    y, mean, variance = runner.prepare(normal).run([x])
    np.testing.assert_allclose([mean, variance], [x.mean(1), x.var(1)], rtol=1e-5)
    np.testing.assert_allclose(y, (x - x.mean(1)[:, None]) / np.sqrt(x.var(1) + 0.5)[:, None], rtol=1e-5)
    clamp = onednn_program("Clamp", [feed(3)], attributes=[("min", "f32", -0.5), ("max", "f32", 2.0)])
    assert answer(runner, clamp, x[1]).tolist() == [-0.5, 0.0, 2.0]


def test_a_constant_takes_part_and_is_not_fed(runner) -> None:
    constant = Input("other", "float32", (2,), np.float32([10, 20]).tobytes())
    y = answer(runner, onednn_program("Add", [feed(2), constant]), np.float32([1, 2]))
    assert y.tolist() == [11.0, 22.0]


def test_one_compiled_program_runs_on_many_inputs_and_leaves_earlier_answers_alone(runner) -> None:
    executable = runner.prepare(reduction((2, 2), (1,)))
    inputs = [np.full((2, 2), i, np.float32) for i in range(5)]
    outputs = [executable.run([x])[0] for x in inputs]
    assert [y.tolist() for y in outputs] == [[float(i)] * 2 for i in range(5)]


@pytest.mark.parametrize(("dims", "axes"), [((2, 0, 3), (0,)), ((2, 0, 3), (1,)), ((0, 3), (0,))], ids=str)
def test_a_tensor_without_elements_has_a_mean_with_a_shape(runner, dims, axes) -> None:
    y = answer(runner, reduction(dims, axes, keep_dims=True), np.zeros(dims, np.float32))
    assert y.shape == np.zeros(dims).sum(axes, keepdims=True).shape


def test_an_array_of_another_shape_or_type_than_the_program_says_never_reaches_the_library(runner) -> None:
    executable = runner.prepare(reduction((2, 2), (1,)))
    for wrong in (np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float64)):
        with pytest.raises(ValueError, match=r"src was compiled for float32 \(2, 2\)"):
            executable.run([wrong])


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (reduction((2, 2), (0,), operation="NoSuchOperation"), "operator-version"),
        (reduction((2, 2), (0,), type_="uint32"), "type"),
        (reduction((2, 2), (0,), type_="uint64"), "type"),
        (reduction((2, 2), (0,), attributes=[("no_such", "s64", 1)]), "attribute"),
        (reduction((2, 2), (0,), attributes=[("axis", "ints", 1)]), "attribute"),
        (reduction((1,) * 13, (0,)), "rank"),
        (reduction(("N", 2), (1,)), "dynamic"),
        (onednn_program("Add", [None, feed(2)]), "other"),
    ],
    ids=lambda p: str(p.operator) if isinstance(p, Program) else p,
)
def test_what_has_no_place_in_the_c_interface_is_unsupported(runner, program, reason) -> None:
    with pytest.raises(Unsupported) as refusal:
        runner.prepare(program)
    assert refusal.value.reason == reason


def test_a_number_that_this_library_does_not_know_is_never_handed_to_it(runner, monkeypatch) -> None:
    monkeypatch.setattr("opconform.runners.backends.onednn.OPERATIONS", {"Future": 5000})
    with pytest.raises(Unsupported, match=r"has no operation Future") as refusal:
        runner.prepare(onednn_program("Future", [feed(2)]))
    assert refusal.value.reason == "operator-version"


def test_an_empty_list_of_axes_is_refused_for_the_attribute_where_it_is_not_supported(runner) -> None:
    empty = reduction(X.shape, ())
    refusal = refusal_of(runner, empty)
    if refusal is None:
        assert answer(runner, empty, X).tolist() == X.tolist()
    else:
        assert isinstance(refusal, Unsupported)
        assert (refusal.reason, str(refusal)[:37]) == ("attribute", "dnnl_graph_partition_is_supported: no")


def test_a_type_that_an_operation_is_not_supported_for_is_told_from_the_operation(runner) -> None:
    order = ("order", "s64s", (2, 0, 1))
    types = ("float32", "bfloat16")
    programs = [
        onednn_program("StaticTranspose", [feed(3, 2, 2, type_=t)], outputs=[t], attributes=[order]) for t in types
    ]
    reasons = [getattr(refusal_of(runner, p), "reason", None) for p in programs]
    assert reasons in ([None, None], [None, "type"], ["other", "other"])


def refusal_of(runner: OneDnnGraph, program: Program) -> Unsupported | OneDnnError | None:
    try:
        runner.prepare(program)
    except (Unsupported, OneDnnError) as refusal:
        return refusal
    return None


@pytest.mark.parametrize(
    ("program", "words", "reason"),
    [
        (reduction((2, 2), (2,)), "dnnl_graph_partition_compile: invalid_shape", "shape"),
        (reduction((), (0,)), "dnnl_graph_partition_compile: invalid_shape", "shape"),
        (reduction((2, 2), (0,), FED), "dnnl_graph_add_op: invalid_graph_op", "invalid"),
        (reduction((2, 2), (0,), type_="int32"), "dnnl_graph_add_op: invalid_graph_op", "invalid"),
        (reduction((2, 2), (0,), attributes=[("axis", "s64", 1)]), "dnnl_graph_add_op: invalid_graph_op", "invalid"),
        (onednn_program("ReduceMean", []), "dnnl_graph_add_op: invalid_graph_op", "invalid"),
    ],
    ids=["axis", "rank-0", "both", "type", "attribute", "no-input"],
)
def test_a_refusal_names_the_function_and_its_status(runner, program, words, reason) -> None:
    with pytest.raises(OneDnnError) as refusal:
        runner.prepare(program)
    assert (str(refusal.value), runner.reason(refusal.value)) == (words, reason)


def test_axes_as_a_second_input_are_put_to_the_library(runner) -> None:
    program = reduction(X.shape, None, FED)
    refusal = refusal_of(runner, program)
    if refusal is None:
        assert answer(runner, program, X, np.int32([1])).tolist() == X.mean(1).tolist()
    else:  # it takes the default of the attribute for an attribute beside the input
        assert str(refusal) == "dnnl_graph_add_op: invalid_graph_op"


def test_every_status_has_its_reason_and_other_errors_none(runner) -> None:
    assert isinstance(runner, Classifies)
    assert {status: runner.reason(OneDnnError("f", status)) for status in REASONS} == dict(REASONS)
    assert runner.reason(OneDnnError("f", "runtime_error")) == "other"
    assert (runner.reason(MemoryError()), runner.reason(ValueError())) == ("memory", "other")


def test_unimplemented_is_no_error_wherever_it_is_returned(runner, monkeypatch) -> None:
    executable = runner.prepare(reduction((2, 2), (1,)))
    library, before = runner._library, runner._library.call  # no installed library returns it here

    def call(function: str, *arguments: Any) -> None:
        if function in ("graph_partition_compile", "graph_compiled_partition_execute"):
            raise OneDnnError(f"dnnl_{function}", "unimplemented")
        before(function, *arguments)

    monkeypatch.setattr(library, "call", call)
    with pytest.raises(Unsupported, match="dnnl_graph_compiled_partition_execute: unimplemented"):
        executable.run([np.zeros((2, 2), np.float32)])
    with pytest.raises(Unsupported, match="dnnl_graph_partition_compile: unimplemented"):
        runner.prepare(reduction((2, 2), (1,)))


def test_the_description_names_the_build_and_what_it_runs_on(runner) -> None:
    assert isinstance(runner, Describes)
    facts = runner.describe()
    assert facts.keys() == {"package", "library", "hash", "cpu_runtime", "gpu_runtime", "cpu_isa", "threads"}
    assert (facts["threads"], "libdnnl" in facts["library"], "/" in "".join(facts.values())) == ("1", True, False)
    assert runner.version().startswith("3.")


def test_every_type_that_cases_are_made_of_has_a_name_or_none(runner) -> None:
    library = runner._library
    assert library.type_number("float32") == 3
    assert all(library.type_number(t) for t in ("float16", "bfloat16", "float32", "int8", "uint8", "int32"))
    assert library.type_number("no such type") is None


def test_inputs_with_structure_are_unsupported_in_words(runner) -> None:
    program = replace(reduction((2,), (0,)), inputs=(Input("s", "seq(float32)", (), structure=sequence(tensor(2))),))
    with pytest.raises(Unsupported, match=r"no data type for seq\(float32\)"):
        runner.prepare(program)


@pytest.mark.parametrize("type_", [t for t in element_types() if t not in TYPES])
def test_types_that_it_never_had_are_unsupported(runner, type_: str) -> None:
    with pytest.raises(Unsupported, match=f"no data type for {type_}") as refusal:
        runner.prepare(reduction((2,), (0,), type_=type_))
    assert refusal.value.reason == "type"


def test_an_attribute_that_came_in_a_later_release_is_unsupported_before(runner) -> None:
    program = onednn_program("GELU", [feed(4)], attributes=[("mode", "string", "gelu_tanh")])
    if tuple(map(int, runner.version().split(".")[:2])) >= (3, 9):
        assert answer(runner, program, np.zeros(4, np.float32)).tolist() == [0.0] * 4
        return
    with pytest.raises(Unsupported, match=r"GELU has mode since oneDNN 3\.9; this is 3\.\d"):
        runner.prepare(program)

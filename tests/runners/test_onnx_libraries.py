"""Libraries that read ONNX models as backends, each against the one that is installed; and their words for refusals."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fakes.judging import judge_answer
from fakes.programs import constant, feed, mean, onnx_program, reduce_mean

from opconform.cases.program import Program
from opconform.cases.results import Outcome
from opconform.cases.runner import NotInstalled, Unsupported, Words, meaning
from opconform.generators.source import GeneratedCases
from opconform.runners.backends.onnx_library import OnnxLibrary, nameless_file, to_numpy
from opconform.runners.registry import known_backends, open_runner

MODULES = {
    "emx-onnx-cgen": "emx",
    "mnn": "mnn",
    "nxrt": "nxrt",
    "opencv": "opencv",
    "tinygrad": "tinygrad",
    "tract": "tract",
    "tvm": "tvm",
}
CASES = (
    "onnx/ReduceMean-13/float32/2x3/axes=1;keepdims=0/ramp",
    "onnx/Add-14/float32/2*2x1x3x1x2x2/B-from=A/uniform",
    "onnx/Exp-13/float32/7/-/uniform",
)
X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def opened(name: str) -> OnnxLibrary:
    if name == "emx-onnx-cgen" and shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    try:
        return open_runner(name)
    except NotInstalled as absent:
        pytest.skip(str(absent))


def words_in(name: str) -> tuple[Words, ...]:
    return importlib.import_module(f"opconform.runners.backends.{MODULES[name]}").WORDS


@pytest.fixture(params=sorted(MODULES))
def runner(request: pytest.FixtureRequest) -> OnnxLibrary:
    return opened(request.param)


@pytest.mark.slow
def test_it_opens_by_its_name_and_says_its_version(runner: OnnxLibrary) -> None:
    assert runner.standards == ("onnx",)
    assert runner.version()[0].isdigit()
    (listed,) = (known for known in known_backends() if known.name == runner.name)
    assert listed.install == f"pip install {runner.package}"


@pytest.mark.slow
def test_what_it_answers_is_what_is_expected(runner: OnnxLibrary) -> None:
    found = {}
    for case in GeneratedCases().cases(CASES):
        answer = runner.prepare(case.program).run([array[0, ...] for array in case.inputs])
        found[case.id] = judge_answer(case.expectation, answer).outcome
    assert found == dict.fromkeys(CASES, Outcome.PASS)


@pytest.mark.slow
def test_a_program_runs_again_and_leaves_its_inputs_and_its_answers_as_they_are(runner: OnnxLibrary) -> None:
    (case,) = GeneratedCases().cases(CASES[:1])
    executable = runner.prepare(case.program)
    x = np.ascontiguousarray(case.inputs[0][0])
    x.flags.writeable = False
    (first,) = executable.run([x])
    kept = first.tolist()
    (second,) = executable.run([np.zeros_like(x)])
    assert (first.tolist(), second.tolist()) == (kept, [0, 0])


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (onnx_program("SwiGLU", 28, [feed("a", "float32", 2, 2), feed("b", "float32", 2, 2)]), "operator-version"),
        (reduce_mean(13, (3, 2), type_="bfloat16"), "type"),
        (onnx_program("Identity", 14, [feed("x", "seq(float32)")], type_="seq(float32)"), "type"),
    ],
    ids=["operator", "type", "sequence"],
)
def test_what_it_does_not_implement_is_unsupported(runner: OnnxLibrary, program: Program, reason: str) -> None:
    with pytest.raises(Unsupported) as refusal:
        runner.prepare(program).run([np.ones((2, 2), np.float32)] * 2)
    assert refusal.value.reason == reason


def test_a_program_that_is_wrong_is_an_error_of_the_librarys_own_and_no_lack_of_it() -> None:
    runner = opened("tract")
    with pytest.raises(Exception, match="Can not broadcast") as refusal:
        runner.prepare(mean(13, (3, 2), (2, 3))).run([X, X.T])
    assert not isinstance(refusal.value, Unsupported)
    assert runner.reason(refusal.value) == "shape"


def test_a_code_generator_refuses_sizes_that_it_would_have_to_fix() -> None:
    with pytest.raises(Unsupported) as refusal:
        opened("emx-onnx-cgen").prepare(reduce_mean(13, ("N", 2)))
    assert refusal.value.reason == "dynamic"


def test_a_library_that_wants_constants_gets_them() -> None:
    program = reduce_mean(18, (3, 2), constant("axes", np.array([1], np.int64)))
    (y,) = opened("tract").prepare(program).run([X])
    assert y.tolist() == [[1.5], [3.5], [5.5]]


STORED = {
    "emx-onnx-cgen": [
        ("UnsupportedOpError: Unsupported op ai.onnx.SwiGLU", "operator-version", True),
        ("UnsupportedOpError: Unsupported elem_type 17 (FLOAT8E4M3FN) for tensor 'x'.", "type", True),
        ("UnsupportedOpError: Scan sequence_lens input is not supported", "attribute", True),
        ("UnsupportedOpError: Scan only supports scan_input_axes=0", "attribute", True),
        ("UnsupportedOpError: OneHot depth must be int64 or int32", "type", False),
        ("UnsupportedOpError: Mean output shape must be (3, 2), got (-1, -1)", "shape", False),
        ("ShapeInferenceError: Broadcasting mismatch for shapes: (3, 2), (2, 3)", "shape", False),
        ("UnsupportedOpError: Scan input count is invalid", "invalid", False),
    ],
    "mnn": [
        ("RuntimeError: :220: These Op Not Support: ONNX::DFT \nConverted Failed!", "operator-version", True),
        ("RuntimeError: Don't support type [Dropout]\nCreate execution error : 128", "operator-version", True),
        ("RuntimeError: Create execution error : 7\ncode=2 in onForward, 666", "type", True),
        ("RuntimeError: Alloc buffer error for cpu backend\ncode=1 in onForward, 666", "memory", False),
        ("RuntimeError: Broad cast error, dim1 = 3, dim2 = 5\nCompute Shape Error for C", "shape", False),
    ],
    "nxrt": [
        (
            "ValueError: unsupported operator ai.onnx::GRU: no available execution provider has a kernel; opset 2",
            "operator-version",
            True,
        ),
        (
            "RuntimeError: kernel execution failed: BitShift: unsupported element type Int32 (WHAT: this CPU kernel "
            "was asked to run BitShift on a Int32 tensor).",
            "type",
            True,
        ),
        (
            "RuntimeError: Resize: WHAT: antialias=1 is not implemented by the native CPU kernel.",
            "attribute",
            True,
        ),
        (
            "RuntimeError: BatchNormalization: training_mode=1 is unsupported by the inference-only CPU EP",
            "attribute",
            True,
        ),
        ("RuntimeError: kernel execution failed: Range: unsupported dtype Float64", "type", True),
        (
            "ValueError: unsupported ONNX model: operator ai.onnx.preview::FlexAttention at node 0 carries a subgraph",
            "operator-version",
            True,
        ),
        ("RuntimeError: RMSNormalization: stash_type 11 unsupported (only 1 = float)", "attribute", True),
        ("RuntimeError: kernel execution failed: ScatterElements: indices must be Int64", "type", False),
        ("ValueError: ConvTranspose: X and W must have equal rank between 3 and 5", "rank", False),
        ("RuntimeError: Loop: loop-carried output 0 shape mismatch: expected [3], got [6]", "shape", False),
        (
            "ValueError: shape inference failed: op `Cast`: attribute `to` is missing or has the wrong type",
            "attribute",
            False,
        ),
        ("RuntimeError: no inferred shape for value Y produced by op Unique", "shape", False),
        ("RuntimeError: kernel execution failed: Constant: no supported value attribute", "attribute", False),
        ("ValueError: shape inference failed: op `Split`: the sizes do not add up", "invalid", False),
    ],
    "opencv": [
        (
            'error: (-2:Unspecified error) Can\'t create layer "onnx_node!RNN" of type "RNN" in function '
            "'getLayerInstance'",
            "operator-version",
            True,
        ),
        ("error: (-215:Assertion failed) src.type() == CV_32F in function 'sigmoid'", "type", True),
        (
            "error: (-2:Unspecified error) in function 'getTypes'\n> :\n>     'input == CV_32F || input == CV_64F'\n"
            "> where\n>     'input' is 9 (CV_BoolC1)",
            "type",
            True,
        ),
        (
            "error: (-213:The function/feature is not implemented) Unsupported input depth for GridSample",
            "type",
            True,
        ),
        ("error: (-5:Bad argument) Blob slope not found in const blobs in function 'getBlob'", "dynamic", True),
        ("error: (-215:Assertion failed) ndims <= PAD_MAX_DIMS in function 'getPads'", "rank", True),
        (
            'error: (-213:The function/feature is not implemented) DNN/ONNX/Attribute[activations]: "Tanh" (2) are not '
            "supported in function 'getLayerParams'",
            "attribute",
            True,
        ),
        ("error: (-2:Unspecified error)\n> where\n>     'type' is 3 (CV_16SC1)", "type", False),
        ("error: (-215:Assertion failed) outSize_a == inpShape[axis] in function 'split'", "shape", False),
        ("error: (-215:Assertion failed) repeats_.dims == 1 in function 'getRepeats'", "rank", False),
        ('error: (-204:Requested object was not found) Required argument "scale" not found', "invalid", False),
    ],
    "tinygrad": [
        ("NotImplementedError: op='DFT' is not supported", "operator-version", True),
        (
            "NotImplementedError: op='Dropout' is not supported for domain Domain.ONNX and version 1",
            "operator-version",
            True,
        ),
        ("NotImplementedError: antialias is not implemented", "attribute", True),
        ("ImportError: Pillow must be installed for the ImageDecoder operator", "other", True),
        ("TypeError: ElementwiseMixin.abs() got an unexpected keyword argument 'consumed_inputs'", "attribute", False),
        ("ValueError: size mismatch, can't reshape ((0, 3, 2)) -> ((3, 2))", "shape", False),
        ("IndexError: dim=4 out of range [-2, 1]", "invalid", False),
    ],
    "tract": [
        (
            'TractError: Translating node #1 "Det" Unimplemented(Det) ToTypedTranslator\n\nCaused by:\n    Operator '
            "can not be made a TypedOp.",
            "operator-version",
            True,
        ),
        (
            "TractError: Building node Pad (Pad)\n\nCaused by:\n    Unsupported operator set for Pad operator",
            "operator-version",
            True,
        ),
        ("TractError: Unsupported DatumType in the public API TDim", "type", True),
        ("TractError: Caused by:\n    Sigmoid does not support F64", "type", True),
        (
            'TractError: Translating node #6 "RNN" RNN ToTypedTranslator\n\nCaused by:\n    Non uniform seq_len is not '
            "supported",
            "dynamic",
            True,
        ),
        ("TractError: Caused by:\n    Axes must be a constant", "dynamic", True),
        ("TractError: Caused by:\n    Expect all inputs to be constants", "dynamic", True),
        ("TractError: Caused by:\n    shape input is variable", "dynamic", True),
        ("TractError: Caused by:\n    STFT expects a constant window", "dynamic", True),
        (
            "TractError: BatchNormalization: attribute 'spatial' is not supported (deprecated by ONNX operator set 9)",
            "attribute",
            True,
        ),
        ('TractError: Caused by:\n    Node #2 "Compress" Compress can not be typed', "dynamic", True),
        ("TractError: Caused by:\n    Undetermined symbol in expression: input_1", "dynamic", True),
        ("TractError: Caused by:\n    2: Impossible to unify Sym(a_0) with Val(3).", "dynamic", True),
        ("TractError: Caused by:\n    Attention: softcap is not supported", "attribute", True),
        ('TractError: Evaluating #1 "ReduceMin" Reduce<Min>\n\nCaused by:\n    U32 is not a number', "type", False),
        ('TractError: Evaluating #4 "Div" Mul\n\nCaused by:\n    Can not broadcast 5 against 4', "shape", False),
        ("TractError: Caused by:\n    Node Squeeze (Squeeze): expected attribute 'axes'", "attribute", False),
        ("TractError: Caused by:\n    Wrong number of outputs. Op says 3, node says 4.", "invalid", False),
    ],
    "tvm": [
        (
            "OpNotImplemented: The following operators are not supported for frontend ONNX: GRU",
            "operator-version",
            True,
        ),
        ("ValueError: Cannot broadcast symbolic dimensions a_0 and b_0 - both are symbolic", "dynamic", True),
        ("InternalError: CodeGenVM cannot emit this Relax operator directly.", "dynamic", True),
        ("ValueError: Dynamic pads are not supported yet.", "dynamic", True),
        ("AssertionError: Only constant axes currently supported", "dynamic", True),
        ('InternalError: unknown intrinsic ir.Op(span=None, ty=ir.Type(span=None), name="tirx.acos")', "type", True),
        (
            "ValueError: QuantizeLinear with a non-default precision attribute is not supported yet.",
            "attribute",
            True,
        ),
        ("ValueError: GroupNormalization currently only supports stash_type=1 (FLOAT)", "attribute", True),
        ("ValueError: Dynamic Split not yet supported", "dynamic", True),
        ("NotImplementedError: Ndim > 5 not supported for convolution.", "rank", True),
        ("ValueError: no value in Constant", "attribute", False),
        (
            "TypeError: requires the input tensor to have float dtype. However, the given input dtype is T.int32",
            "type",
            False,
        ),
    ],
}


@pytest.mark.parametrize(("name", "message", "reason", "plain"), [
    (name, *seen) for name, stored in STORED.items() for seen in stored
])  # fmt: skip
def test_words_that_were_seen_are_told_apart(name: str, message: str, reason: str, plain: bool) -> None:
    found = meaning(words_in(name), message)
    assert found is not None
    assert (found.reason, found.plain) == (reason, plain)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_entry_of_a_table_of_words_was_seen(name: str) -> None:
    told = {meaning(words_in(name), message) for message, _, _ in STORED[name]}
    assert [words.pattern for words in words_in(name) if words not in told] == []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_an_error_that_no_word_explains_is_no_refusal(name: str) -> None:
    assert meaning(words_in(name), "RuntimeError: 42") is None


def test_a_library_that_is_not_there_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent(OnnxLibrary):
        name = module = package = "no_such_library"

    with pytest.raises(NotInstalled, match=r"^no_such_library is not installed: pip install no_such_library$"):
        Absent()


def test_a_library_that_misses_a_part_of_its_own_shows_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_library.py").write_text("import part_that_is_not_there\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    class Broken(OnnxLibrary):
        name = module = package = "broken_library"

    with pytest.raises(ModuleNotFoundError, match="part_that_is_not_there"):
        Broken()


def test_a_file_without_a_name_is_read_by_its_path_and_is_gone_afterwards() -> None:
    with nameless_file(b"model") as path:
        assert Path(path).read_bytes() == b"model"
    assert not Path(path).exists()


def test_what_a_call_prints_is_heard_below_python_too() -> None:
    call = "import os; from opconform.runners.backends.onnx_library import printed; "
    call += "heard = printed(lambda: os.system('echo inner')); os.system('echo outer'); print(repr(heard))"
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, check=True, text=True)
    assert done.stdout == "outer\n'inner\\n'\n"


def test_what_is_no_tensor_is_an_error_that_names_it() -> None:
    with pytest.raises(TypeError, match="gives a int where the model has a tensor"):
        to_numpy(3)

"""The scripts of `opconform show --script`: run as a reader would, with the libraries that they drive."""

from __future__ import annotations

import ast
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from fakes.judging import judge_answer, judging_script, read_option, single
from fakes.programs import case_of, program
from fakes.results import result
from fakes.sampled import slow
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.batch import Batch, Bounds, Flag, Option
from opconform.cases.elements import Array, bits_of, comparable, element_type, from_json
from opconform.cases.errors import OpconformError
from opconform.cases.program import Attribute, OperatorVersion, Tensor
from opconform.cases.results import Result, result_from_json
from opconform.cli import main
from opconform.generators.source import GeneratedCases
from opconform.reports.script import reproduction, script_text, short_reproduction
from opconform.reports.text import reproduce_line
from opconform.runners.registry import known_backends

BEYOND = "onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53"
SIXTEEN = "onnx/ReduceMean-13/bfloat16/3x2x2/axes=2,0/ramp/axes-unsorted"
SPREAD = "onnx/ReduceMean-13/float16/2048x32/axes=0/uniform/variance"

ONNX = [
    "onnx/ReduceMean-13/float32/3x2x2/axes=2,0/ramp/axes-unsorted",
    BEYOND,  # onnxruntime computes it in float64
    "onnx/ReduceMean-13/int32/3x2x2/axes=3/ramp/axis-too-large",  # invalid
    "onnx/ReduceMean-18/float16/3x2x2/noop_with_empty_axes=1/negative-zero/noop-zeros",
    "onnx/ReduceMean-18/bfloat16/3x2x2/axes=none;noop_with_empty_axes=1/ramp/noop-empty",  # no such kernel
    "onnx/ReduceMean-18/float32/3x2x2/axes=1;axes-from=graph-input;axes-rank=0/ramp/axes-scalar-fed",
    "onnx/ReduceMean-18/float64/3x2x2/axes=omitted;keepdims=0/special",
    "onnx/Mean-13/float16/40*scalar/-/ramp/many-scalars",
]
LOOP = (
    "openvino/Loop-5/float32,int64,bool/1x3/back_edges=next;body=three-times;execution_condition=scalar:true;outputs=2;"
    "port_map=state-and-number;trip_count=scalar:5/ramp/stopped"
)
OPENVINO = [
    "openvino/ReduceMean-1/float32,int64/3x2x2/axes=2,0/ramp/axes-unsorted",
    "openvino/ReduceMean-1/int64,int64/1/axes=0/beyond-2^53/beyond-2^53",  # the CPU plugin computes in int32
    "openvino/ReduceMean-1/float32,int64/3x2x2/axes=3/ramp/axis-too-large",  # invalid
    "openvino/ReduceMean-1/float32,int64/3x2x2/-/ramp/axes-missing",
    "openvino/ReduceMean-1/bool,int64/3x2x2/axes=1/ramp/type-bool",
    "openvino/ReduceMean-1/bfloat16,int64/2048x32/axes=0/uniform/variance",
    "openvino/ReduceMean-1/float32,int64/3x2x2/axes=none;axes-from=graph-input;dims=symbolic/ramp/axes-empty-fed",
    "openvino/ReduceMean-1/float32,int64/scalar/axes=none;axes-from=graph-input/ramp/rank-0-axes-fed",
    "openvino/ReduceMean-1/float16,int64/2x0x3/axes=0,1,2/ramp/empty-set",
    "openvino/ReduceMean-1/float16,int64/3x2x2/axes=none/negative-zero/identity-zeros",
    "openvino/ReduceMean-1/float16,int64/2x4/axes=1/overflow/sum-overflow-float",  # one option is infinite
    "openvino/ReduceMean-1/float64,int64/3x2x2/axes=none;keep_dims=false/ramp/axes-empty-dropped",
    "openvino/If-8/float32,bool/2*3/cond=scalar:true;else_body=first;outputs=1;then_body=within/ramp/nested",
    "openvino/TensorIterator-1/float32/5x2/body=same;outputs=1;port_map=from-second/ramp/from-second",  # it begins at 0
    LOOP,
]
ONEDNN = [
    "onednn/PReLU/float32/2x3x4,3/data_format=NCX/ramp",  # an attribute of text
    "onednn/ReduceMean/float32/3x2x2/axes=2,0/ramp/axes-unsorted",
    "onednn/ReduceMean/bfloat16/3x2x2/axes=2,0/ramp/axes-unsorted",  # oneDNN 3.2 aborts
    "onednn/Reciprocal/float32/8x63/-/special",  # before Multiply
    "onednn/Reciprocal/float32/3x2x2/memory=padded/uniform",
    "onednn/TypeCast/float32,bfloat16/3x2x2/memory=turned/uniform/turned",
    "onednn/StaticTranspose/float32/4x4/order=1,0/ramp",  # between two of StaticReshape in oneDNN 3.2
    "onednn/ReduceMean/float32/scalar/axes=none/ramp/rank-0",
    "onednn/ReduceMean/float32/2x0x3/axes=0,1,2/ramp/empty-set",
    "onednn/ReduceMean/float32/3x2x2/axes=none/special/identity-special",
    "onednn/ReduceMean/float32/3x2x2/axes=0,0/ramp/axis-twice",
    "onednn/ReduceMean/float32/3x2x2/axes=3;axes-from=graph-input/ramp/axis-too-large-fed",  # invalid
    "onednn/ReduceMean/float32/2x4/axes=1/overflow/sum-overflow",
    "onednn/ReduceMean/float64/3x2x2/axes=1/ramp/type-float64",
]
BY_BACKEND = {
    "onnxruntime": ONNX,
    "onnxruntime-noopt": ONNX[:2],
    "openvino": OPENVINO,
    "openvino-evaluate": [*OPENVINO[1:12:3], LOOP],
    "onednn": ONEDNN,
}
USUAL = {"onnxruntime": 4, "onnxruntime-noopt": 1, "openvino": 2, "openvino-evaluate": 1, "onednn": 2}
"""How many of them run by default."""
LIBRARY = {"onnx": {"onnxruntime"}, "openvino": {"openvino"}, "onednn": set()}


def needs(backend: str) -> None:
    """Skip where the library of a backend is not installed."""
    if backend not in {known.name for known in known_backends() if known.installed}:
        pytest.skip(f"{backend} is not installed")


@pytest.fixture(scope="module")
def source() -> GeneratedCases:
    """The cases; what was read of the specs is kept."""
    return GeneratedCases()


@pytest.fixture(scope="module")
def verdicts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, Result]]:
    """What a run of a backend says of the cases that are tried on it, by case."""
    cases: dict[str, list[str]] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and request.fixturename in item.fixturenames:
            cases.setdefault(item.callspec.params["backend"], []).append(item.callspec.params["case"])

    @cache
    def run(backend: str) -> dict[str, Result]:
        folder = tmp_path_factory.mktemp("run") / "out"
        chosen = [word for case in cases[backend] for word in ("--select", case)]
        done = CliRunner().invoke(main, ["run", backend, *chosen, "--quiet", "--jobs", "1", "--out", str(folder)])
        assert done.exit_code in (0, 1), done.output
        found = map(result_from_json, (folder / "results.jsonl").read_text().splitlines())
        return {judged.case: judged for judged in found}

    return run


def python(script: str, *flags: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Run a script that comes by the standard input."""
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-", *flags], input=script, capture_output=True, text=True, check=False, **more
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "case"),
    [
        (backend, case) if place < USUAL[backend] else slow(backend, case)
        for backend, cases in BY_BACKEND.items()
        for place, case in enumerate(cases)
    ],
)
def test_a_script_reproduces_the_verdict_of_a_run(
    backend: str, case: str, verdicts: Callable[[str], dict[str, Result]], source: GeneratedCases, tmp_path: Path
) -> None:
    needs(backend)
    judged, put = verdicts(backend)[case], source.case(case)
    flags = shlex.split(reproduce_line(judged).partition("| python")[2])[1:]
    done = python(reproduction(put), *flags, cwd=tmp_path)
    if judged.outcome == "crash":
        assert done.returncode < 0
        return
    options = put.expectation.options
    may_refuse = not options or any(option.kind != "values" for option in options)
    # a run tells "not implemented" from a refusal, and asks of a refusal that the case without the mistake ran
    admitted = judged.outcome == "pass" or (judged.outcome in ("unsupported", "error") and may_refuse)
    assert (done.returncode, done.stderr) == (0 if admitted else 1, ""), (judged, done.stdout)
    if judged.outcome != "pass":
        assert done.stdout.startswith("refused: " if judged.outcome in ("unsupported", "error") else "got ")
    if judged.outcome == "wrong-value":
        assert all(f"    {line}\n" in done.stdout for line in (judged.detail or "").splitlines()), done.stdout


SHORT = [
    BEYOND,
    "onnx/ReduceMean-13/float32/3x2x2/axes=2,0/ramp/axes-unsorted",  # two options
    "onnx/ReduceMean-18/float64/3x2x2/axes=omitted;keepdims=0/special",  # NaN
    "onnx/ReduceMean-13/int32/3x2x2/axes=3/ramp/axis-too-large",  # invalid
    "onnx/Div-14/int32/none/A=-2147483648,7;B=-1,-1/ramp/smallest",  # onnxruntime dies
    "onnx/ReduceMean-18/int64/7/axes=0/large",
    "onnx/TopK-11/float32,int64/3x5/K=2;largest=0;sorted=1/few",  # two outputs
    "onnx/ReduceMean-18/float32/17x16x15/axes=1,2/lattice/end-two",  # inputs in base64
]


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "case"), [("onnxruntime", case) for case in SHORT])
def test_a_short_script_reproduces_the_verdict_of_a_run(
    backend: str, case: str, verdicts: Callable[[str], dict[str, Result]], source: GeneratedCases, tmp_path: Path
) -> None:
    needs(backend)
    script = short_reproduction(source.case(case))
    assert script is not None
    done = python(script, cwd=tmp_path)
    outcome = verdicts(backend)[case].outcome
    assert len(script.splitlines()) <= 60
    assert done.returncode < 0 if outcome == "crash" else done.returncode == (outcome != "pass"), done.stderr
    assert ("AssertionError: not admitted" in done.stderr) == (outcome == "wrong-value")


def test_a_case_that_needs_the_whole_judge_has_only_the_long_script(source: GeneratedCases) -> None:
    for case in (SIXTEEN, SPREAD, OPENVINO[0]):
        assert short_reproduction(source.case(case)) is None
        assert script_text(source.case(case)) == reproduction(source.case(case))
    assert script_text(source.case(BEYOND), full=True) == reproduction(source.case(BEYOND))
    assert script_text(source.case(BEYOND)) == short_reproduction(source.case(BEYOND))


@pytest.mark.parametrize("case", [*ONNX, *OPENVINO, *ONEDNN])
def test_a_script_imports_its_standard_s_library_and_numpy_alone(case: str, source: GeneratedCases) -> None:
    script = reproduction(source.case(case))
    imported = {
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(ast.parse(script))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    libraries = {str(name).partition(".")[0] for name in imported} - sys.stdlib_module_names
    assert libraries == LIBRARY[case.partition("/")[0]] | {"numpy"}
    assert script.startswith(f'"""{case}\n')


def test_a_case_of_files_in_onnx_layout_is_reproduced_from_its_folder() -> None:
    case = "onnx/Relu-6/float32/3x4x5/from=node.test_relu/test_data_set_0"
    line = reproduce_line(result("wrong-value", case, "onnxruntime"))
    assert line == f"opconform run onnxruntime --corpus DIR --select '{case}'"
    fed_twice = "onnx/Add-14/float32/3/B-from=A/ramp"
    assert "--corpus" not in reproduce_line(result("wrong-value", fed_twice, "onnxruntime"))


@pytest.mark.slow
def test_a_line_that_reproduces_does_so_in_a_shell() -> None:
    needs("onnxruntime")
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for backend in ("onnxruntime", "onnxruntime-noopt"):
        line = reproduce_line(result("wrong-value", BEYOND, backend))
        done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, env={"PATH": tools})
        assert done.returncode == 1
        assert done.stdout.startswith("got")
        assert "not admitted" in done.stdout + done.stderr


def test_a_backend_without_a_script_of_its_own_is_run_again() -> None:
    for backend in ("openvino-onnx", "onnx-reference", "python:mine:Backend"):
        assert reproduce_line(result("wrong-value", BEYOND, backend)) == f"opconform run {backend} --select '{BEYOND}'"


def test_oneDNN_can_be_another_library_than_the_installed_one(source: GeneratedCases, tmp_path: Path) -> None:  # noqa: N802 - its name
    script = reproduction(source.case(ONEDNN[0]))
    absent = str(tmp_path / "libdnnl.so.3")
    named = python(script, absent)
    assert (named.returncode, named.stdout) == (2, "")
    assert named.stderr.startswith(f"{absent}: no oneDNN there")
    assert python(script, env={**os.environ, "OPCONFORM_ONEDNN_LIBRARY": absent}).stderr == named.stderr


def test_a_case_of_a_standard_without_a_library_has_no_script(source: GeneratedCases) -> None:
    case = source.case(BEYOND)
    program = replace(case.program, operator=OperatorVersion("stablehlo", "reduce", 1))
    with pytest.raises(OpconformError, match="no scripts for cases of stablehlo, only for onnx, openvino, onedn"):
        reproduction(replace(case, program=program))


@pytest.mark.parametrize(
    ("case", "answer", "admitted"),
    [
        (SIXTEEN, "np.array([-1.5, 0.5], 'f4').reshape(1, 2, 1)", True),
        (SIXTEEN, "np.array([-1.5, 0.75], 'f4').reshape(1, 2, 1)", False),
        (SIXTEEN, "np.array([-1.5, 0.5], 'f4')", False),
        (SPREAD, "np.zeros((1, 32), 'f2')", False),
        (BEYOND, "np.array([0], 'i4')", False),
    ],
)
def test_a_script_tells_a_wrong_answer_of_any_kind(
    case: str, answer: str, admitted: bool, source: GeneratedCases, tmp_path: Path
) -> None:
    """What the script says of an answer is what the judge says: tried by a library that answers what it is told to."""
    (tmp_path / "onnxruntime.py").write_text(FAKE_LIBRARY)
    told = {"PYTHONPATH": str(tmp_path), "ANSWER": answer, "KIND": "bfloat16" if case == SIXTEEN else ""}
    done = python(reproduction(source.case(case)), env={**os.environ, **told})
    assert done.stderr == ""
    assert done.returncode == (0 if admitted else 1), done.stdout


@pytest.mark.parametrize(
    "kind",
    [
        *("sequence-of-strings", "empty-optional", "map", "branch"),
        *map(slow, ("sequence", "sequence-of-maps", "omitted-outputs")),
    ],
)
def test_a_script_reproduces_a_case_of_any_structure(kind: str, tmp_path: Path) -> None:
    needs("onnxruntime")
    done = python(reproduction(case_of(kind)[0]), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.parametrize(
    ("type_", "wrong"),
    [
        *(("float8e5m2", True), ("int4", False), ("float4e2m1", True), ("bfloat16", False), ("string", True)),
        *(slow(type_, False) for type_ in ("float8e5m2", "float4e2m1", "string", "uint2")),
        *(slow(type_, True) for type_ in ("int4", "bfloat16", "uint2")),
    ],
)
def test_a_script_reproduces_a_case_of_any_type(type_: str, wrong: bool, tmp_path: Path) -> None:
    needs("onnxruntime")
    text = type_ == "string"
    value, other = (from_json(type_, (3,), list(one)) for one in (("aba", "aab") if text else ((1, 0, 1), (0, 1, 1))))
    made = program("Constant-25", [], [f"{type_}/1"], attributes=[Attribute("value", "tensor", Tensor.of(value))])
    admitted = other if wrong else value
    bounds = comparable(admitted) if "float" in type_ else admitted
    expectation = single(Option((), (Bounds(type_, bounds, bounds, bounds),)), types=(type_,))
    case = Batch.of_case("onnx/Constant", made, (), expectation)
    done = python(reproduction(case), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (int(wrong), ""), done.stdout


NEW = ("bfloat16", "float8e4m3fn", "float8e5m2", "float8e5m2fnuz", "float4e2m1", "int4", "uint4", "uint2")
TYPES = ("float16", "float32", "float64", "int8", "int64", "uint64", "bool", *NEW)
NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 1.5, -3.0, 1e-7, 1e-40, 5e-324, 60000.0, 1e300, np.inf, -np.inf, np.nan])


@given(st.data(), st.sampled_from(TYPES), st.sampled_from([(), (3,), (2, 2, 2), (0, 2)]))
def test_a_script_tells_what_is_wrong_in_the_words_of_a_run(drawn: st.DataObject, name: str, shape: tuple[int]) -> None:
    def array(*also: object) -> Array:
        numbers = NUMBERS if "float" in name else st.sampled_from([0, 1, 1, *also])
        drawn_elements = drawn.draw(st.lists(numbers, min_size=size, max_size=size))
        return np.array(drawn_elements, np.float64 if "float" in name else element_type(name).dtype).reshape(shape)

    size = math.prod(shape)
    limits = (element_type(name).smallest, element_type(name).largest) if "int" in name else ()
    value = array(*limits)
    flags = drawn.draw(st.sampled_from([None, 0, int(Flag.NAN), int(Flag.NEGATIVE_ZERO), int(Flag.POSITIVE_INFINITY)]))
    margin = drawn.draw(st.sampled_from([0, 0.25])) if "float" in name else 0
    marks = None if flags is None or "float" not in name else np.full(shape, flags, np.uint8)
    with np.errstate(all="ignore"):
        bounds = Bounds(name, value, value - margin if margin else value, value + margin if margin else value, marks)
        answer = array(*limits).astype(element_type(name).dtype)
    expectation = single(Option((), (bounds,)), types=(name,))
    verdict = judge_answer(expectation, [answer])
    script, read = judging_script(), read_option(expectation.options[0])
    outputs: list[Any] = []
    with np.errstate(all="ignore"):
        words = [script["flat"]((name, bits_of(answer) if name in NEW else answer), outputs)]
        assert script["admits"](read, words, outputs) == (verdict.outcome == "pass")
        assert "\n".join(script["mismatches"](read, outputs)) == (verdict.detail or "")


FAKE_LIBRARY = """\
import ctypes, os
import numpy as np


class Value:
    def __init__(self, array, kind):
        self.array, self.kind = array, kind
        self.bits = (np.ascontiguousarray(array).view("u4") >> 16).astype("u2") if kind == "bfloat16" else None

    def data_type(self):
        return f"tensor({self.kind or self.array.dtype})"

    def numpy(self):
        return self.array

    def shape(self):
        return list(self.array.shape)

    def data_ptr(self):
        return self.bits.ctypes.data


class OrtValue:
    ortvalue_from_numpy = staticmethod(lambda array: None)
    ortvalue_from_shape_and_type = staticmethod(lambda shape, kind: Room())


class Room:
    def __init__(self):
        self.room = np.zeros(1 << 20, "u1")

    def data_ptr(self):
        return self.room.ctypes.data


class SessionOptions:
    pass


def set_default_logger_severity(level):
    pass


class InferenceSession:
    def __init__(self, *arguments, **more):
        pass

    def run(self, names, feeds):
        return [eval(os.environ["ANSWER"])]

    def run_with_ort_values(self, names, feeds):
        return [Value(eval(os.environ["ANSWER"]), os.environ["KIND"])]
"""

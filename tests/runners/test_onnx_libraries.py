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
from opconform.runners.onnx_library import OnnxLibrary, nameless_file, to_numpy
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
    return importlib.import_module(f"opconform.runners.{MODULES[name]}").WORDS


@pytest.fixture(params=sorted(MODULES))
def runner(request: pytest.FixtureRequest) -> OnnxLibrary:
    return opened(request.param)


def test_it_opens_by_its_name_and_says_its_version(runner: OnnxLibrary) -> None:
    assert runner.standards == ("onnx",)
    assert runner.version()[0].isdigit()
    (listed,) = (known for known in known_backends() if known.name == runner.name)
    assert listed.install == f"pip install 'opconform[{runner.extra}]'"


def test_what_it_answers_is_what_is_expected(runner: OnnxLibrary) -> None:
    found = {}
    for case in GeneratedCases().cases(CASES):
        answer = runner.prepare(case.program).run([array[0, ...] for array in case.inputs])
        found[case.id] = judge_answer(case.expectation, answer).outcome
    assert found == dict.fromkeys(CASES, Outcome.PASS)


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


STORED = {}


@pytest.mark.parametrize(("name", "message", "reason", "plain"), [
    (name, *told) for name, stored in STORED.items() for told in stored
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
        name = module = package = extra = "no_such_library"

    with pytest.raises(NotInstalled, match=r"^no_such_library is not installed: pip install 'opconform\[no_such_lib"):
        Absent()


def test_a_library_that_misses_a_part_of_its_own_shows_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_library.py").write_text("import part_that_is_not_there\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="part_that_is_not_there"):
        OnnxLibrary.imported("broken_library")


def test_a_file_without_a_name_is_read_by_its_path_and_is_gone_afterwards() -> None:
    with nameless_file(b"model") as path:
        assert Path(path).read_bytes() == b"model"
    assert not Path(path).exists()


def test_what_a_call_prints_is_heard_below_python_too() -> None:
    call = "import os; from opconform.runners.onnx_library import printed; "
    call += "heard = printed(lambda: os.system('echo inner')); os.system('echo outer'); print(repr(heard))"
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, check=True, text=True)
    assert done.stdout == "outer\n'inner\\n'\n"


def test_what_is_no_tensor_is_an_error_that_names_it() -> None:
    with pytest.raises(TypeError, match="gives a int where the model has a tensor"):
        to_numpy(3)

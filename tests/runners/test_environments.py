"""Built-in runners under other interpreters, and environments of one release."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from click.testing import Result as Invoked
from fakes.programs import STRUCTURED, feed, onnx_program

from opconform.cases.elements import Array, content, element_type, type_of
from opconform.cases.errors import OpconformError
from opconform.cases.program import OperatorVersion, Program, flat
from opconform.cases.runner import NotInstalled, Runner, Unsupported, kind_of
from opconform.cli import main
from opconform.generators.source import GeneratedCases
from opconform.runners.programs.environments import (
    environment,
    interpreters,
    kept_environments,
    release_of,
    releases,
    requirements,
)
from opconform.runners.registry import PORTABLE, backend_spec, known_backends, open_runner, standards_of_name

PYTHON = Path(sys.executable)
CLIENT = Path(__file__).parents[2] / "runners" / "clients" / "python_client.py"


def elsewhere(name: str) -> Runner:
    return open_runner(backend_spec(name, PYTHON))


@pytest.fixture(scope="module")
def ours() -> Runner:
    pytest.importorskip("onnxruntime")
    return elsewhere("onnxruntime")


# The client


def test_the_client_is_python_3_9_and_imports_no_more_than_numpy_and_one_library() -> None:
    tree = ast.parse(CLIENT.read_text(encoding="utf-8"), feature_version=(3, 9))
    found = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    found |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    outer = {name.partition(".")[0] for name in found} - sys.stdlib_module_names
    assert outer == {"numpy", "ml_dtypes", "onnx", "onnxruntime", "openvino"}
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


@pytest.mark.parametrize("name", PORTABLE)
def test_every_portable_runner_answers_under_another_interpreter(name: str) -> None:
    pytest.importorskip(PORTABLE[name].package)
    runner = elsewhere(name)
    program = onnx_program("Abs", 13, [feed("x", "float32", "N")], rank=1)
    if "openvino" in PORTABLE[name].standards:
        program = replace(program, operator=OperatorVersion("openvino", "Abs", 1), opset=None)
    answers = runner.prepare(program).run([np.float32([-1, 2])])
    match kind_of(open_runner(name)):
        case "run":
            assert (answers[0].tolist(), answers[0].dtype) == ([1, 2], np.float32)
        case "infer":
            assert [text.item() for text in answers] == ["float32[N]"]
        case "check":
            assert list(answers) == []
        case "convert":
            assert onnx.load_from_string(answers[0].tobytes()).opset_import[0].version == (
                13 if program.operator.name == "Relu" else 26
            )
    assert kind_of(runner) == kind_of(open_runner(name))
    assert runner.version() == open_runner(name).version()
    assert runner.describe()["numpy"] == np.__version__  # type: ignore[attr-defined]


@pytest.mark.parametrize(("dims", "wanted"), [((), "float64[]"), (("N", "M"), "float64[N,M]")])
def test_onnxruntime_infers_ranks_under_another_interpreter(dims: tuple[str, ...], wanted: str) -> None:
    pytest.importorskip("onnxruntime")
    program = onnx_program("Abs", 13, [feed("x", "float64", *dims)], rank=len(dims))
    for runner in (elsewhere("onnxruntime-infer"), open_runner("onnxruntime-infer")):
        assert [str(np.asarray(text).item()) for text in runner.prepare(program).run([np.zeros(())])] == [wanted]


def test_a_type_that_onnxruntime_cannot_infer_is_no_refusal_of_the_model() -> None:
    pytest.importorskip("onnxruntime")
    to = ("to", "string", "INT32")
    program = onnx_program("Cast", 1, [feed("x", "float32", 2)], rank=1, type_="int32", attributes=[to])
    for runner in (elsewhere("onnxruntime-infer"), open_runner("onnxruntime-infer")):
        with pytest.raises(Unsupported, match=r"Could not find an implementation for Cast\(1\)"):
            runner.prepare(program)


def answer_of(runner: Runner, program: Program, inputs: Sequence[Array]) -> object:
    """Return a runner's outputs and their structures, or how and why it refused."""
    try:
        arrays, structures = flat(program, list(runner.prepare(program).run(inputs)))
    except Exception as error:
        if isinstance(error, Unsupported):
            return str(error), error.reason
        return "error", runner.reason(error)  # type: ignore[attr-defined]
    return [(type_of(one), one.shape, content(one)) for one in arrays], structures


@pytest.mark.parametrize("name", ["onnxruntime", "onnx-reference"])
def test_values_of_every_structure_are_answered_as_in_this_process(name: str) -> None:
    pytest.importorskip(PORTABLE[name].package)
    here, there = open_runner(name), elsewhere(name)
    for kind, (program, inputs, *_) in STRUCTURED.items():
        assert answer_of(there, program, inputs) == answer_of(here, program, inputs), kind


@pytest.mark.parametrize(
    "case",
    [
        "openvino/GRUCell-3/float32/2*1x1,2*3x1,4/activations=sigmoid,tanh;clip=0.5;hidden_size=1;linear_before_reset=true/quarters",
        "openvino/TopK-11/float32,int32,int32/3x4x33/axis=0;index_element_type=given;k=2;mode=min;sort=index/uniform",
        "openvino/Convert-1/float16,bfloat16/3x11/-/ramp",
        "openvino/Softmax-8/float32/2x300/axis=1;dims=symbolic/ramp",
        "openvino/Softmax-8/float32/2x300/axis=1;dims=unranked/ramp",
        "openvino/TopK-1/float32,int32,int32/3/axis=1;k=1;mode=max;sort=value/ramp/axis-large",
        "openvino/MaxPool-1/float32/1x2x6x5/dims=unranked;kernel=2,2;pads_begin=0,0;pads_end=0,0;strides=1,1/few",
    ],
)
def test_openvino_operations_are_answered_as_in_this_process(case: str) -> None:
    pytest.importorskip("openvino")
    batch = GeneratedCases().case(case)
    here, there = open_runner("openvino"), elsewhere("openvino")
    assert answer_of(there, batch.program, batch.tensors()) == answer_of(here, batch.program, batch.tensors())


def test_an_error_has_the_reason_of_what_it_was_raised_from() -> None:
    here, there = open_runner("onnx-reference"), elsewhere("onnx-reference")
    x = np.zeros((2, 3, 4), np.float32)
    y = np.zeros((2, 3), np.float32)
    for attributes, reason in (([("axis", "int", 0), ("broadcast", "int", 1)], "attribute"), ([], "shape")):
        feeds = [feed("x", "float32", 2, 3, 4), feed("y", "float32", 2, 3)]
        program = onnx_program("Pow", 1, feeds, rank=3, attributes=attributes)  # type: ignore[arg-type]
        assert answer_of(there, program, [x, y]) == answer_of(here, program, [x, y]) == ("error", reason)


@pytest.mark.parametrize("type_", ["bfloat16", "float8e4m3fn", "float8e5m2fnuz", "string", "bool", "float16"])
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)], ids=str)
def test_types_that_numpy_lacks_go_and_come_as_bytes(type_: str, shape: tuple[int, ...], ours: Runner) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    x = x.astype(str).astype(object) if type_ == "string" else x.astype(element_type(type_).dtype)
    program = onnx_program("Identity", 19, [feed("x", type_, *shape)], rank=x.ndim, type_=type_, opset=19)
    (y,) = ours.prepare(program).run([x])
    assert (type_of(y), y.shape, content(y)) == (type_, shape, content(x))


def test_packed_types_stay_packed(ours: Runner) -> None:
    x = np.float32([-8, 7, 3, 0, 5])
    program = onnx_program(
        "QuantizeLinear",
        21,
        [feed("x", "float32", 5), feed("s", "float32")],
        type_="int4",
        rank=1,
        opset=21,
        attributes=[("output_dtype", "int", element_type("int4").onnx)],
    )
    (y,) = ours.prepare(program).run([x, np.float32(1)])
    assert (type_of(y), y.astype(int).tolist()) == ("int4", [-8, 7, 3, 0, 5])


@pytest.mark.parametrize(
    ("operator", "type_", "reason"), [("NoSuchOperator", "float32", "operator-version"), ("Abs", "bfloat16", "type")]
)
@pytest.mark.parametrize("name", ["onnxruntime", "openvino-onnx"])
def test_refusals_mean_what_they_mean_in_this_process(name: str, operator: str, type_: str, reason: str) -> None:
    pytest.importorskip(PORTABLE[name].package)
    program = onnx_program(operator, 13, [feed("x", type_, 2)], rank=1, type_=type_)
    x = np.zeros(2, element_type(type_).dtype)
    told = answer_of(elsewhere(name), program, [x])
    assert told == answer_of(open_runner(name), program, [x])
    if name == "onnxruntime" or type_ == "float32":  # OpenVINO has bfloat16
        assert told[1] == reason  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["onnxruntime", "openvino-onnx"])
def test_what_goes_wrong_in_a_run_is_an_error_here_and_there(name: str) -> None:
    pytest.importorskip(PORTABLE[name].package)
    program = onnx_program("Gather", 13, [feed("x", "float32", 3), feed("i", "int64", "N")], rank=1)
    given = [np.float32([1, 2, 3]), np.int64([7])]
    assert answer_of(elsewhere(name), program, given) == answer_of(open_runner(name), program, given)
    program = onnx_program("Add", 14, [feed("x", "float32", "N"), feed("y", "float32", "M")], rank=1)
    given = [np.zeros(3, np.float32), np.zeros(4, np.float32)]
    told = answer_of(elsewhere(name), program, given)
    assert told == answer_of(open_runner(name), program, given)
    assert told[0] == "error"  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["onnxruntime", "onnx-reference", "openvino-onnx"])
def test_a_part_of_the_smoke_suite_is_judged_alike_here_and_there(name: str, tmp_path: Path) -> None:
    pytest.importorskip(PORTABLE[name].package)
    found = []
    for place, more in enumerate(((), ("--python", PYTHON))):
        out = tmp_path / str(place)
        done = opconform("run", name, *more, "--suite", "smoke", "--shard", "7/60", "--quiet", "--out", out)
        assert done.exit_code in (0, 1), done.output
        results = map(json.loads, (out / "results.jsonl").read_text().splitlines())
        found.append({one["case"]: (one["outcome"], one["reason"]) for one in results})
    assert len(found[0]) > 50
    assert found[0].keys() == found[1].keys()
    differing = [case for case in found[0] if found[0][case] != found[1][case]]
    if name == "openvino-onnx":  # its LpPool ends the process in some runs and not in others, in one environment too
        differing = [case for case in differing if "/LpPool-" not in case]
    assert differing == []


# Interpreters


def test_an_interpreter_that_lacks_the_library_is_told_what_to_install(tmp_path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    with pytest.raises(NotInstalled, match=r"it lacks numpy, onnxruntime: .* -m pip install onnxruntime numpy"):
        backend_spec("onnxruntime", tmp_path / "bare" / "bin" / "python")


@pytest.mark.parametrize(
    ("name", "python", "words"),
    [
        ("onnxruntime", "no/such/python", "not an executable program"),
        ("onnxruntime", "/bin/true", "cannot be run as Python 3.9 or newer"),
        ("onednn", sys.executable, "these can: onnxruntime,.* install opconform beside it$"),
        ("openvino-evaluate", sys.executable, "For another release of openvino-evaluate, install opconform beside it$"),
        ("python:my_backend:Mine", sys.executable, "can't use another interpreter"),
    ],
)
def test_what_cannot_run_elsewhere_is_refused_by_name(name: str, python: str, words: str) -> None:
    with pytest.raises(OpconformError, match=words):
        backend_spec(name, Path(python))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("onnxruntim==1.2", "did you mean 'onnxruntime'"),
        ("onednn==3.1", "^onednn==3.1: onednn can't use another interpreter; .* install opconform beside it$"),
        ("nobody==3.1", "no known releases of 'nobody'; expected one of onnxruntime,"),
        ("onnxruntime==", "'' is not a version; expected one such as 1.20.1"),
        ("onnxruntime==1.2 --index-url x", "is not a version"),
        ("onnxruntime==../x", "is not a version"),
    ],
)
def test_a_release_that_is_none_is_refused(name: str, words: str) -> None:
    with pytest.raises(OpconformError, match=words):
        backend_spec(name)


@pytest.mark.parametrize(
    ("package", "version", "wanted"),
    [
        ("onnxruntime", "1.15.0", ["onnxruntime==1.15.0", "numpy<2"]),
        ("onnxruntime", "1.18.1", ["onnxruntime==1.18.1", "numpy<2"]),
        ("onnxruntime", "1.19.0", ["onnxruntime==1.19.0"]),
        ("onnxruntime", "1.100.0", ["onnxruntime==1.100.0"]),
        ("onnx", "1.16.2", ["onnx==1.16.2"]),
        ("openvino", "2024.0.0", ["openvino==2024.0.0"]),
    ],
)
def test_old_releases_get_what_they_do_not_ask_for(package: str, version: str, wanted: list[str]) -> None:
    assert requirements(package, version) == wanted


def test_releases_are_ordered_by_their_numbers() -> None:
    assert sorted(["1.9", "1.20.1", "1.20", "1.3.0rc1"], key=release_of) == ["1.3.0rc1", "1.9", "1.20", "1.20.1"]


# Environments, from wheels in a folder


FAKE_LIBRARY = """
import numpy as np
from .capi import onnxruntime_pybind11_state
__version__ = "{version}"
{more}
class SessionOptions:
    def add_session_config_entry(self, name, value): pass
class RunOptions: pass
class OrtValue: pass
class GraphOptimizationLevel:
    ORT_ENABLE_ALL = 99
def set_default_logger_severity(level): print("nobody's answer")
class InferenceSession:
    def __init__(self, model, options, providers, enable_fallback):
        if b"Abs" not in model:
            raise RuntimeError("Unsupported model IR version: 99, max supported IR version: 9")
    def run(self, names, feeds, options):
        (x,) = feeds.values()
        return [{formula}]
"""


def wheel(folder: Path, version: str, *, formula: str = "np.abs(x)", more: str = "") -> Path:
    """Write a release of a package called onnxruntime that is none: it knows Abs alone.

    It finds NumPy where the running interpreter has it, and pip needs no index for it.
    """
    info = f"onnxruntime-{version}.dist-info"
    files = {
        "onnxruntime/__init__.py": FAKE_LIBRARY.format(version=version, formula=formula, more=more),
        "onnxruntime/capi/__init__.py": "",
        "onnxruntime/capi/onnxruntime_pybind11_state.py": "class NotImplemented(Exception): pass\n",
        "numpy_of_the_tests.pth": str(Path(np.__file__).parents[1]),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    path = folder / f"onnxruntime-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@pytest.fixture
def index(tmp_path, monkeypatch) -> Path:
    """A folder that pip takes wheels from; caches are empty, and no other interpreter and no uv is found."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return folder


def opconform(*words: object) -> Invoked:
    return CliRunner().invoke(main, list(map(str, words)), catch_exceptions=False)


@pytest.mark.slow
def test_one_run_has_a_column_a_release_and_a_release_is_installed_once(index, tmp_path, capfd) -> None:
    wheel(index, "90.1")
    wheel(index, "90.2", formula="-np.abs(x)")
    selected = ["--select", "onnx/Abs-13/float32/64/-/magnitudes", "--select", "onnx/Neg-13/float32/scalar/-/ramp"]
    words = ["onnxruntime==90.1", "onnxruntime==90.2", *selected]
    done = opconform("run", *words, "--quiet", "--jobs", 1, "--out", tmp_path / "out")
    assert done.exit_code == 1, done.output
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    about = {name: (one["version"], one["facts"]["program"]) for name, one in told["backends"].items()}
    assert about == {f"onnxruntime=={v}": (v, "onnxruntime") for v in ("90.1", "90.2")}
    found: dict[str, set[tuple[str, str | None]]] = {}
    for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines():
        result = json.loads(line)
        name = f"{result['backend']} {result['case'].split('/')[1]}"
        found.setdefault(name, set()).add((result["outcome"], result.get("reason")))
    assert found["onnxruntime==90.1 Abs-13"] == {("pass", None)}
    assert "wrong-value" in {outcome for outcome, _ in found["onnxruntime==90.2 Abs-13"]}
    assert found["onnxruntime==90.1 Neg-13"] == {("unsupported", "operator-version")}
    assert done.stderr.count("making an environment") == 2
    backend_spec("onnxruntime==90.1")
    assert "making" not in capfd.readouterr().err
    assert kept_environments() == [("onnxruntime", "90.1"), ("onnxruntime", "90.2")]
    listed = {one.name: one for one in known_backends() if one.origin == "environment"}
    assert list(listed) == ["onnxruntime==90.1", "onnxruntime==90.2"]
    assert releases("onnxruntime") == ["90.1", "90.2"]


@pytest.mark.slow
def test_an_environment_that_was_not_finished_is_made_again(index) -> None:
    wheel(index, "90.1")
    made = environment("onnxruntime", "90.1")
    assert kept_environments() == [("onnxruntime", "90.1")]
    for stale in ('{"requirements": ["onnxruntime==90.1", "numpy<2"]}', '{"requirements"'):
        (made.parents[1] / "opconform.json").write_text(stale)
        assert kept_environments() == []
    (made.parents[1] / "left-behind").touch()
    assert environment("onnxruntime", "90.1") == made
    assert not (made.parents[1] / "left-behind").exists()


@pytest.mark.slow
def test_an_environment_of_another_interpreter_is_used_without_trying_this_one_again(index, capfd) -> None:
    wheel(index, "90.1")
    ours = environment("onnxruntime", "90.1").parents[1]
    other = ours.rename(ours.with_name("onnxruntime-90.1-py3.9"))
    assert environment("onnxruntime", "90.1") == other / "bin" / "python"
    assert capfd.readouterr().err.count("making an environment") == 1


@pytest.mark.slow
def test_without_a_wheel_each_interpreter_that_was_tried_is_named(index) -> None:
    wheel(index, "90.1")
    done = opconform("run", "onnxruntime==90.0")
    assert done.exit_code == 2
    assert "onnxruntime==90.0: no environment can be made" in done.stderr
    assert f"Python 3.{sys.version_info.minor} ({sys.executable}): ERROR: " in done.stderr
    assert "90.0" in done.stderr.rpartition("ERROR")[2]
    assert kept_environments() == []


@pytest.mark.slow
def test_a_release_beyond_the_newest_one_is_refused_at_once(index) -> None:
    wheel(index, "90.9")
    wheel(index, "90.10")
    done = opconform("run", "onnxruntime==90.11")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == "opconform: onnxruntime==90.11: no such release; the newest is 90.10"
    assert done.stderr.count("making an environment") == 1


UV = """#!/bin/sh
case "$1 $2" in
"venv "*) for folder; do :; done; exec {python} -m venv --without-pip "$folder" ;;
"pip install") for last; do :; done
    echo "error: No solution found when resolving dependencies" >&2
    echo "  cause: Because there is no version of $last" >&2; exit 1 ;;
"tool run") echo "Available versions: 90.10, 90.9" ;;
esac
"""


@pytest.mark.slow
def test_uv_says_why_and_lists_releases_where_there_is_no_pip(index, tmp_path, monkeypatch) -> None:
    uv = tmp_path / "uv"
    uv.write_text(UV.format(python=sys.executable))
    uv.chmod(0o755)
    with pytest.raises(OpconformError, match=r"No solution found .* cause: Because there is no version of onnx==90\.7"):
        environment("onnx", "90.7", PYTHON)
    with monkeypatch.context() as patched:
        patched.setattr("opconform.runners.programs.environments.releases", lambda _: ["90.9", "90.10"])
        with pytest.raises(OpconformError, match=r"onnx==90\.77: no such release; the newest is 90\.10"):
            environment("onnx", "90.77", PYTHON)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert releases("onnxruntime") == ["90.9", "90.10"]


def test_a_dry_run_makes_no_environment(index) -> None:
    assert standards_of_name("onnxruntime==90.1") == ("onnx",)
    done = opconform("run", "onnxruntime==90.1", "--dry-run", "--select", "onnx/Abs-13")
    assert (done.exit_code, done.stdout.startswith("onnx: ")) == (0, True)
    assert kept_environments() == []


def test_this_interpreter_is_tried_first() -> None:
    assert next(interpreters()) == (sys.version_info.minor, PYTHON)


@pytest.mark.slow
def test_bisect_finds_the_release_and_passes_over_one_that_does_not_open(index) -> None:
    for version, more in (("90.1", {}), ("90.2", {}), ("90.3", {"more": "raise ImportError('libfoo.so')"})):
        wheel(index, version, **more)
    for version in ("90.4", "90.10"):
        wheel(index, version, formula="-np.abs(x)")
    case = "onnx/Abs-13/float32/64/-/magnitudes"
    done = opconform("bisect", "onnxruntime", case, "--quiet")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[-1] == f"{case} on onnxruntime: pass up to 90.2, wrong-value from 90.4 on"
    assert {line.split()[0]: line.split()[1].rstrip(":") for line in lines[:-1]} == {
        "90.1": "pass",
        "90.2": "pass",
        "90.3": "skipped",
        "90.4": "wrong-value",
        "90.10": "wrong-value",
    }
    assert any("libfoo.so" in line for line in lines)
    done = opconform("bisect", "onnxruntime", case, "--quiet", "--good", "90.4")
    assert (done.exit_code, "--good 90.4: the outcome of the case is wrong-value there" in done.stderr) == (2, True)
    done = opconform("bisect", "onnxruntime", case, "--quiet", "--bad", "90.1", "--good", "90.2")
    assert (done.exit_code, "--bad 90.1: the outcome of the case is pass there" in done.stderr) == (2, True)
    done = opconform("bisect", "onnxruntime", "onnx/Neg-13/float32/scalar/-/ramp", "--quiet")
    assert (done.exit_code, "unsupported on 90.1 and on 90.10" in done.stdout) == (1, True)


@pytest.mark.slow
def test_a_real_old_release_beside_its_numpy(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    try:
        spec = backend_spec("onnxruntime==1.17.3")
    except OpconformError as error:
        pytest.skip(str(error))
    runner = open_runner(spec)
    assert runner.version() == "1.17.3"
    (y,) = runner.prepare(onnx_program("Abs", 13, [feed("x", "float32", 2)], rank=1)).run([np.float32([-1, 2])])
    assert y.tolist() == [1, 2]
    with pytest.raises(Unsupported) as refusal:
        runner.prepare(onnx_program("Identity", 25, [feed("x", "float32", 2)], rank=1, opset=25))
    assert refusal.value.reason == "operator-version"

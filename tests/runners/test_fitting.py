"""A built-in runner that does not fit its library's release ends the run: no case fails for what is our mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fakes.here import run_here

from opconform.cli import main

CASES = ("onnx/Relu-14/float32/3x2x2/-/ramp", "onnx/Exp-13/float32/7/-/uniform")
SESSION = """
class InferenceSession:
    def __init__(self, model, providers): pass
    def run(self, names, inputs):
        {run}
"""


def install(folder: Path, package: str, version: str, **modules: str) -> None:
    for name, text in modules.items():
        path = folder / package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    def on(backend: str, package: str, **modules: str) -> Result:
        monkeypatch.setitem(sys.modules, package, None)  # so that what is imported now is gone afterwards
        del sys.modules[package]
        install(tmp_path, package, "9.9", **modules)
        with run_here():
            return CliRunner().invoke(main, ["run", backend, *(w for c in CASES for w in ("--select", c))])

    return on


@pytest.mark.parametrize(
    ("library", "why"),
    [
        ("class InferenceSession:\n    def __init__(self, path): pass", "unexpected keyword argument 'providers'"),
        ("class InferenceSession:\n    def __init__(self): pass", "unexpected keyword argument 'providers'"),
        ("class Session: pass", "module 'nxrt' has no attribute 'InferenceSession'"),
        (SESSION.replace("run(", "forward(").format(run="pass"), "'InferenceSession' object has no attribute 'run'"),
        (SESSION.replace(", inputs", "").format(run="pass"), "positional argument"),
    ],
)
def test_a_runner_that_does_not_fit_its_library_ends_the_run(run, library: str, why: str) -> None:  # type: ignore[no-untyped-def]
    done = run("nxrt", "nxrt", __init__=library)
    assert done.exit_code == 2, done.output
    words = " ".join(done.output.split())
    assert "nxrt: opconform's runner does not fit nxrt 9.9: " in words
    assert why in words
    assert "(runners/backends/nxrt.py:" in words
    assert "it supports nxrt>=0.1.0.dev6" in words


def test_a_runner_that_cannot_be_made_says_which_release_it_does_not_fit(run) -> None:  # type: ignore[no-untyped-def]
    done = run("tinygrad", "tinygrad", __init__="class Device: DEFAULT = 'CPU'")
    assert done.exit_code == 2, done.output
    words = " ".join(done.output.split())
    assert "tinygrad: opconform's runner does not fit tinygrad 9.9: ModuleNotFoundError" in words
    assert "not installed" not in words


@pytest.mark.parametrize(
    "fault",
    [
        "raise AttributeError('no attribute')",
        "return names.nonesuch",
        "import nonesuch",
        "return int(1, 2, 3)",
        "raise TypeError('wrong elements')",
        "return None",
    ],
)
def test_an_error_inside_the_library_is_the_backends(run, fault: str) -> None:  # type: ignore[no-untyped-def]
    done = run("nxrt", "nxrt", __init__=SESSION.format(run=fault))
    assert done.exit_code == 1, done.output
    results = [json.loads(line) for path in Path().glob("opconform-results/*/results.jsonl") for line in path.open()]
    assert [one["outcome"] for one in results] == ["error", "error"]


def test_an_answer_that_is_nothing_is_the_backends_error(run) -> None:  # type: ignore[no-untyped-def]
    """The runner asks what the library returned for an attribute that None lacks, in a line of its own."""
    library = "class Net:\n    def setInput(self, *_): pass\n    def __getattr__(self, name): return lambda *_: None\n"
    library += "class dnn:\n    ENGINE_AUTO = 0\n    readNetFromONNX = staticmethod(lambda *_: None)\n"
    done = run("opencv", "cv2", __init__=library + "def setNumThreads(n): pass\n__version__ = '9.9'")
    assert done.exit_code == 1, done.output
    assert "'NoneType' object has no attribute 'setInput'" in " ".join(done.output.split())


def test_a_backend_of_the_users_own_is_judged_whatever_it_raises(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    own = "from opconform.runners.backends.nxrt import Nxrt\nclass Own(Nxrt):\n    name = 'own'\n"
    (tmp_path / "own.py").write_text(own)
    done = run("python:own.py:Own", "nxrt", __init__="class Session: pass")
    assert done.exit_code == 1, done.output


@pytest.mark.slow
def test_a_misfit_in_a_process_of_its_own_ends_the_run_too(tmp_path: Path) -> None:
    install(tmp_path, "nxrt", "9.9", __init__="class Session: pass")
    select = [w for c in CASES for w in ("--select", c)]
    command = [sys.executable, "-m", "opconform", "run", "nxrt", *select, "--out", str(tmp_path / "out")]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "does not fit nxrt 9.9" in " ".join((done.stdout + done.stderr).split())
    assert (tmp_path / "out" / "results.jsonl").read_text() == ""

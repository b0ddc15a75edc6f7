"""Backends by name."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from fakes.programs import mean

from opconform.cases.errors import OpconformError
from opconform.cases.runner import NotInstalled
from opconform.runners.registry import BackendSpec, backend_spec, known_backends, open_runner

_numbers = itertools.count()

RUNNER = """
class Executable:
    def run(self, inputs):
        return [inputs[0]]

class Echo:
    name = "echo"
    standards = ("onnx", "openvino")
    def version(self): return "1"
    def prepare(self, program): return Executable()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty current folder; what opening a backend adds to sys.path goes again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    importlib.invalidate_caches()
    return tmp_path


@pytest.fixture
def module(folder):
    """Return a function that writes a module into the current folder and returns its name."""

    def write(source: str) -> str:
        name = f"fake_backend_{next(_numbers)}"
        (folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        importlib.invalidate_caches()
        return name

    return write


@pytest.fixture
def plug_in(folder):
    """Return a function that installs a distribution with entry points of our group."""

    def install(distribution: str, **entries: str) -> None:
        metadata = folder / f"{distribution}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        listed = "".join(f"{name.replace('_', '-')} = {value}\n" for name, value in entries.items())
        (metadata / "entry_points.txt").write_text(f"[opconform.runners]\n{listed}")
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
        importlib.invalidate_caches()

    return install


@pytest.mark.parametrize("place", ["", "elsewhere/", "../"])
def test_a_class_is_named_by_its_file(place: str, module, folder, monkeypatch) -> None:
    name = module(RUNNER)
    (folder / "elsewhere").mkdir()
    if place == "../":
        monkeypatch.chdir(folder / "elsewhere")
    elif place:
        (folder / f"{name}.py").rename(folder / "elsewhere" / f"{name}.py")
    backend = f"python:{place}{name}.py:Echo"
    assert backend_spec(backend).name == backend
    assert open_runner(backend).name == "echo"
    with pytest.raises(OpconformError, match=r"expected python:package\.module:Class"):
        backend_spec(f"python:{place}{name}.py")


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime-noopt", "onnx-reference"])
def test_a_built_in_backend_opens_by_its_name(name: str) -> None:
    if name.startswith("onnxruntime"):
        pytest.importorskip("onnxruntime")
    runner = open_runner(name)
    assert (runner.name, runner.standards) == (name, ("onnx",))
    (y,) = runner.prepare(mean(13, (2,))).run([np.float32([1, 2])])
    assert y.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("name", "standard"), [("openvino", "openvino"), ("openvino-evaluate", "openvino"), ("openvino-onnx", "onnx")]
)
def test_openvino_opens_by_its_names(name: str, standard: str) -> None:
    if importlib.util.find_spec("openvino") is None:  # importing it here would start its telemetry
        pytest.skip("openvino is not installed")
    runner = open_runner(name)
    assert (runner.name, runner.standards) == (name, (standard,))
    (listed,) = (k.standards for k in known_backends() if k.name == name)
    assert listed == runner.standards


def test_a_class_in_the_current_folder_opens_by_its_name(module) -> None:
    runner = open_runner(f"python:{module(RUNNER)}:Echo")
    assert (runner.name, runner.version(), runner.standards) == ("echo", "1", ("onnx", "openvino"))


def test_a_module_with_the_interface_of_onnx_opens_by_its_name(module) -> None:
    name = f"onnx-backend:{module('def prepare(model, device): ...')}"
    runner = open_runner(name)
    assert (runner.name, runner.standards) == (name, ("onnx",))


def test_a_backend_travels_to_a_worker_and_opens_there_in_the_folder_it_was_named_in(module, folder) -> None:
    spec = backend_spec(f"python:{module(RUNNER)}:Echo")
    opened = "import pickle, sys; from opconform.runners.registry import open_runner; "
    opened += "print(open_runner(pickle.load(sys.stdin.buffer)).name)"
    worker = subprocess.run(
        [sys.executable, "-P", "-c", opened], input=pickle.dumps(spec), capture_output=True, cwd="/", check=True
    )
    assert (spec.path, worker.stdout) == ((str(folder),), b"echo\n")


def test_naming_and_listing_backends_imports_none_of_them(folder) -> None:
    listed = "import json, sys; from opconform.runners.registry import backend_spec, known_backends; known_backends(); "
    listed += "[backend_spec(n) for n in ('onnx-reference', 'python:no.such:Thing', 'onnx-backend:none')]; "
    listed += "print(json.dumps([m for m in ('onnx', 'onnxruntime', 'openvino') if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, check=True, cwd=folder)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("onxruntime", r"^no backend is called 'onxruntime'; did you mean 'onnxruntime'\? `opconform list backends`"),
        ("zzzzz", r"^no backend is called 'zzzzz'; `opconform list backends` shows all$"),
        ("my_backend:Class", r"'my_backend:Class'; your own are named python:package.module:Class, onnx-backend:"),
        ("cmd:./program --flag", "^cmd:./program --flag: './program' is not an executable program; looked in /"),
        ("python:numpy_backend", r"^python:numpy_backend: expected python:package.module:Class"),
        ("python:numpy_backend.py:Class", "there is no file numpy_backend.py; looked in "),
        ("python:./folder/numpy_backend:Class", "expected python:package.module:Class, or python:folder/file.py:Class"),
        ("python::Class", "expected python:"),
        ("python:", "expected python:"),
        ("onnx-backend:", r"expected onnx-backend:package.module\[:Class\]"),
        ("onnx-backend:a b", "expected onnx-backend:"),
        ("", "no backend is called ''"),
    ],
)  # fmt: skip
def test_a_wrong_name_is_refused_with_what_was_expected(name: str, words: str) -> None:
    with pytest.raises(OpconformError, match=words):
        backend_spec(name)


def test_a_backend_whose_library_is_not_installed_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(NotInstalled, match=r"^onnxruntime-noopt needs onnxruntime.*pip install onnxruntime$"):
        backend_spec("onnxruntime-noopt")
    found = {known.name: known.installed for known in known_backends()}
    assert (found["onnxruntime"], found["onnx-reference"]) == (False, True)


def test_a_library_that_breaks_on_import_shows_its_own_words(module, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    Path("onnxruntime.py").write_text("raise ImportError('libfoo.so.1: cannot open shared object file')\n")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    with pytest.raises(OpconformError, match=r"^onnxruntime: .*onnxruntime.py:1: ImportError: libfoo.so.1"):
        open_runner(BackendSpec("onnxruntime", "built-in", "onnxruntime:OnnxRuntime"))


@pytest.mark.parametrize(
    ("source", "place", "words"),
    [
        ("\nimport no_such_library_anywhere\n", 2, "ModuleNotFoundError: No module named 'no_such_library_anywhere'"),
        ("\n\nraise RuntimeError('no device found')\n", 3, "RuntimeError: no device found"),
        ("class Echo\n    pass\n", 1, "SyntaxError: "),
        ("import sys\nsys.exit('usage: fake')\n", 2, "SystemExit: usage: fake"),
        ("class Echo:\n    def __init__(self):\n        raise OSError('busy')\n", 3, "OSError: busy"),
    ],
)
def test_an_error_in_the_users_module_is_shown_with_its_own_words_and_place(module, source, place, words) -> None:
    name = module(source)
    with pytest.raises(OpconformError, match=rf"^python:{name}:Echo: .*{name}\.py:{place}: {words}"):
        open_runner(f"python:{name}:Echo")


def test_a_module_that_is_not_there_says_where_it_was_looked_for(folder) -> None:
    with pytest.raises(OpconformError, match=rf"^python:no_such_module:Echo: no module .*'no_such_module'.*{folder}"):
        open_runner("python:no_such_module:Echo")


def test_a_class_that_is_not_there_suggests_the_nearest(module) -> None:
    name = module(RUNNER)
    with pytest.raises(OpconformError, match=r"has no 'Ecko'; did you mean 'Echo'\?"):
        open_runner(f"python:{name}:Ecko")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("def version", "def release"), "no method 'version'"),
        (("def prepare", "def compile"), "no method 'prepare'"),
        (('name = "echo"', ""), "'name' is None, expected a string"),
        (('name = "echo"', "name = 3"), "'name' is 3"),
        (('standards = ("onnx", "openvino")', ""), "'standards' is None, expected a tuple such as"),
        (('("onnx", "openvino")', '"onnx"'), "'standards' is 'onnx', expected a tuple such as"),
        (('"openvino"', '"opnvino"'), "'opnvino' in 'standards' is not one of .* did you mean 'openvino'"),
        (("def version(self): return", "version ="), "no method 'version'"),
        (("class Echo:", "Echo = 3\nclass Other:"), "expected a class or a function"),
    ],
)
def test_a_class_that_is_no_runner_says_what_is_missing(module, change: tuple[str, str], words: str) -> None:
    with pytest.raises(OpconformError, match=words):
        open_runner(f"python:{module(RUNNER.replace(*change))}:Echo")


def test_a_class_that_misses_its_library_says_so_itself(module) -> None:
    name = module("""
        from opconform.cases.runner import NotInstalled
        def make(): raise NotInstalled("pip install fake-device")
    """)
    with pytest.raises(NotInstalled, match="pip install fake-device"):
        open_runner(f"python:{name}:make")


def test_an_installed_plug_in_is_listed_and_opens_by_its_name(module, plug_in) -> None:
    plug_in("fake-device", fake_device=f"{module(RUNNER)}:Echo")
    (known,) = (k for k in known_backends() if k.name == "fake-device")
    assert (known.standards, known.installed) == ((), True)
    assert known.summary.startswith("fake-device 1.0 ")
    spec = pickle.loads(pickle.dumps(backend_spec("fake-device")))
    assert (spec.name, open_runner(spec).name) == ("fake-device", "echo")
    with pytest.raises(OpconformError, match="did you mean 'fake-device'"):
        backend_spec("fake-devise")


@pytest.mark.parametrize("taken", ["onnxruntime", "other"])
def test_a_plug_in_overrides_nothing(module, plug_in, taken: str) -> None:
    plug_in("first", other=f"{module(RUNNER)}:Echo")
    plug_in("second", **{taken: f"{module(RUNNER)}:Echo"})
    for ask in (known_backends, lambda: backend_spec("onnx-reference")):
        with pytest.raises(OpconformError, match=rf"two backends are called '{taken}'.*second 1.0"):
            ask()


def test_the_same_plug_in_seen_twice_is_one(module, plug_in) -> None:
    target = f"{module(RUNNER)}:Echo"
    plug_in("first", other=target)
    plug_in("again", other=target)
    assert [k.name for k in known_backends()].count("other") == 1


def test_every_built_in_backend_is_listed_with_its_standards_and_how_to_install_it() -> None:
    built_in = [k for k in known_backends() if k.install]
    assert {"onednn", "onnx-reference", "onnxruntime", "onnxruntime-noopt"} <= {k.name for k in built_in}
    assert all(k.standards and k.summary and "pip install" in (k.install or "") for k in built_in)

"""`opconform list backends`: what is there, and what a case on each says."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Sequence

import pytest
from click.testing import CliRunner

from opconform.cli import backends, main
from opconform.runners.backends.cuda import NoDevice
from opconform.runners.registry import KnownBackend, known_backends, open_runner


def listed(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["list", "backends", *words], catch_exceptions=False)
    return done.exit_code, done.stdout


def only(monkeypatch: pytest.MonkeyPatch, names: Sequence[str], *, installed: bool = True) -> None:
    known = [KnownBackend(name, (), "one of the tests'", installed) for name in names]
    monkeypatch.setattr(backends, "known_backends", lambda: known)


def test_each_backend_has_its_version_its_standards_and_how_it_was_found() -> None:
    code, text = listed("--json")
    found = {told["name"]: told for told in map(json.loads, text.splitlines())}
    assert code == 0
    reference = found["onnx-reference"]
    assert (reference["standards"], reference["found"], reference["installed"]) == (["onnx"], "built-in", True)
    assert reference["version"] == open_runner("onnx-reference").version()
    assert (found["onnxruntime"]["found"], found["onnxruntime"]["standards"]) == ("extra", ["onnx"])
    assert (found["mutant"]["found"], found["mutant"]["version"]) == (
        "entry point",
        importlib.metadata.version("opconform"),
    )
    assert "check" not in reference


def test_the_lines_say_the_same_in_words(monkeypatch) -> None:
    _, text = listed()
    (line,) = (line for line in text.splitlines() if line.startswith("onnx-reference "))
    assert line.split()[1:3] == [open_runner("onnx-reference").version(), "onnx"]
    assert line.endswith("(built-in)")
    only(monkeypatch, ["absent"], installed=False)
    assert listed() == (0, "absent -            -         one of the tests' (not installed: see its documentation)\n")


WRONG = """
class Wrong:
    name, standards = "wrong", ("onnx",)
    def version(self): return "1"
    def prepare(self, program): return self
    def run(self, inputs): return [inputs[0] + 1]
"""


@pytest.mark.slow
def test_check_runs_a_case_on_each_and_says_which_fail(tmp_path, monkeypatch) -> None:
    (tmp_path / "wrong_backend.py").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    wrong, absent = "python:wrong_backend:Wrong", "python:wrong_backend:Nothing"
    only(monkeypatch, ["onnx-reference", wrong, absent, "mutant"])
    code, text = listed("--check", "--json")
    told = [json.loads(line) for line in text.splitlines()]
    assert code == 1
    assert [one["check"] for one in told] == ["pass", "wrong-value", "not-opened", "skipped"]
    for one, words in zip(told, ("", "element []: got", "has no 'Nothing'", "expected mutant:"), strict=True):
        assert words in one["words"]
    assert told[3]["words"].startswith("mutant: "), "an error of ours is shown as it is"


def test_a_backend_for_a_device_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: {"onnxruntime": ["onnxruntime"]})
    monkeypatch.setattr("importlib.metadata.version", lambda _: "1.0")
    lines = {one.name: one for one in known_backends()}
    assert lines["onnxruntime"].lacks is None
    told = "onnxruntime has no CUDA provider: pip install onnxruntime-gpu in its place, on a machine with a device"
    assert lines["onnxruntime-cuda"].lacks == told
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: {"onnxruntime": ["onnxruntime-gpu"]})
    monkeypatch.setattr(
        "opconform.runners.backends.cuda.first_device", lambda: (_ for _ in ()).throw(NoDevice("no NVIDIA driver"))
    )
    assert {one.name: one.lacks for one in known_backends()}["onnxruntime-cuda"] == "no NVIDIA driver"


@pytest.mark.slow
def test_what_is_not_installed_and_what_needs_an_argument_is_no_failure(monkeypatch) -> None:
    only(monkeypatch, ["onnx-reference", "mutant"])
    assert listed("--check")[0] == 0
    only(monkeypatch, ["onnxruntime"], installed=False)
    code, text = listed("--check")
    assert (code, text.split()[0]) == (0, "skipped")
    assert text.count("not installed") == 1


@pytest.mark.parametrize("standard", backends.CASES)
def test_the_case_of_each_standard_is_one_of_it(standard: str) -> None:
    assert CliRunner().invoke(main, ["show", backends.CASES[standard]]).exit_code == 0


def test_check_is_about_backends() -> None:
    done = CliRunner().invoke(main, ["list", "operators", "--check"])
    assert (done.exit_code, "list backends --check" in done.stderr) == (2, True)

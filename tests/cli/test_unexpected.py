"""Exit codes when something fails that no command expects: 1 means non-conformant, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.here import run_here
from fakes.sampled import slow

from opconform import cli
from opconform.cli import main, report

V13 = "onnx/ReduceMean-13"


def call(*words: object, **environment: str) -> Any:
    done = CliRunner().invoke(main, [str(word) for word in words], env=environment)
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "out"
    with run_here():
        select = ("--select", f"{V13}/int32/2x*", "--keep-outputs", "all")
        assert call("run", "python:fakes.backends:Right", *select, "--quiet", "--out", folder).exit_code == 0
    return folder


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("what\nis this"), "failed unexpectedly: ValueError: what is this (test_unexpected.py:"),
        (RecursionError("too deep"), "failed unexpectedly: RecursionError: too deep"),
        (MemoryError(), "this machine, or a limit such as `ulimit`, allows no more: MemoryError"),
        (OSError(24, "Too many open files"), "allows no more: [Errno 24] Too many open files"),
        (FileNotFoundError(2, "No such file", "gone.txt"), "No such file: 'gone.txt'"),
    ],
)
def test_what_no_command_expects_exits_3_with_a_message(
    error: Exception, words: str, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(report, "run_report", fails)
    done = call("report", results)
    assert done.exit_code == 3
    assert words in done.output
    assert "Traceback" not in done.output


def test_the_traceback_is_shown_on_request(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "run_report", lambda *_: {}["missing"])
    done = call("report", results, OPCONFORM_TRACEBACK="1")
    assert (done.exit_code, "Traceback (most recent call last)" in done.output) == (3, True)


def declared(name: str) -> dict[str, Any]:
    return {
        "types": {"float32": {"compute": None, "accumulator": name, "flush": []}},
        "threads": None,
        "deterministic": None,
    }


TERMS = {
    "an unknown accumulator": (declared("float17"), "'float17' is no floating-point type"),
    "an accumulator of whole numbers": (declared("int32"), "'int32' is no floating-point type"),
    "an accumulator that is no text": (declared(3), "terms: not in the form that a run writes"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("command", ["report", "rejudge"])
@pytest.mark.parametrize("name", TERMS)
def test_a_declaration_of_a_stranger_is_checked(name: str, command: str, results: Path, tmp_path: Path) -> None:
    arithmetic, words = TERMS[name]
    terms = json.loads((results / "run.json").read_text())["terms"] | {"arithmetic": arithmetic}
    folder = changed(results, tmp_path, terms=terms)
    done = call(command, folder, *(["--out", tmp_path / "again"] if command == "rejudge" else []))
    assert (done.exit_code, words in done.output) == (2, True), done.output


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "10000-01-01", "soon"])
def test_a_moment_beyond_the_years_is_refused(moment: str, results: Path, tmp_path: Path) -> None:
    folder = changed(results, tmp_path, started=moment)
    for words in (("rejudge", folder, "--out", tmp_path / "again"), ("compare", folder, folder), ("report", folder)):
        done = call(*words)
        assert (done.exit_code, "started: expected a moment" in done.output) == (2, True), done.output


@pytest.mark.parametrize("file", ["run.json", "results.jsonl", "outputs.jsonl", "certificates.jsonl"])
@pytest.mark.parametrize("command", ["report", slow("rejudge")])
def test_nesting_of_any_depth_is_no_traceback(command: str, file: str, results: Path, tmp_path: Path) -> None:
    folder = changed(results, tmp_path)
    first, _, rest = (folder / file).read_bytes().partition(b"\n")
    deep = b"[" * 50_000 + b"]" * 50_000
    (folder / file).write_bytes(deep if file == "run.json" else first[:-1] + b',"more":' + deep + b"}\n" + rest)
    done = call(command, folder, *(["--out", tmp_path / "again"] if command == "rejudge" else []))
    assert done.exit_code in (0, 2, 3), done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("mebibytes", [50, slow(100), slow(150), slow(300)])
def test_a_limit_of_address_space_is_told_and_never_non_conformance(mebibytes: int, results: Path) -> None:
    script = "import resource, sys; limit = int(sys.argv.pop(1)) << 20; from opconform.cli import main; "
    script += "resource.setrlimit(resource.RLIMIT_AS, (limit, limit)); main()"
    words = [sys.executable, "-c", script, str(mebibytes), "report", str(results)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("opconform: ")
    assert "Traceback" not in done.stderr


FILES = {
    "waivers": ("run", "onnxruntime", "--select", f"{V13}/int32/*", "--waivers"),
    "errata": ("run", "onnxruntime", "--select", f"{V13}/int32/*", "--errata"),
    "profile": ("run", "onnxruntime", "--select", f"{V13}/int32/*", "--profile"),
    "arithmetic": ("run", "onnxruntime", "--select", f"{V13}/int32/*", "--arithmetic"),
    "the arithmetic of show": ("show", f"{V13}/int32/1/-/ramp", "--arithmetic"),
    "a corpus": ("run", "onnxruntime", "--corpus"),
    "a corpus to verify": ("verify",),
}


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero"])
@pytest.mark.parametrize("name", FILES)
def test_a_pipe_or_a_device_in_place_of_a_file_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    file = Path(kind)
    if kind == "fifo":
        file = tmp_path / "fifo"
        os.mkfifo(file)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call(*FILES[name], file)), daemon=True)
    thread.start()
    thread.join(20)
    assert found, "it hangs"
    assert found[0].exit_code == 2, found[0].output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--waivers", "no.yaml"), "no.yaml: cannot be read"),
        (("--arithmetic", "no.yaml"), "no.yaml: cannot be read"),
        (("--profile", "no.yaml"), "no.yaml: cannot be read"),
        (("--errata", "no.yaml"), "no.yaml: cannot be read"),
        (("--require", "nothing=at-all"), "nothing"),
        (("--shard", "3/2"), "shard 3/2: expected I/N"),
        (("--executor", "cloud"), "--executor cloud: expected"),
        (("--junit", "nowhere/junit.xml"), "there is no folder nowhere"),
        (("--python", "nowhere/python"), "--python nowhere/python: not an executable program"),
        (("--out", __file__), "is a file; choose a new or an empty folder"),
        (("--out", f"{__file__}/out"), "cannot write results there: Not a directory"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_wrong_options_are_refused_before_anything_is_planned(
    words: tuple[str, str], message: str, more: tuple[str, ...]
) -> None:
    done = call("run", "onnxruntime", "--select", "onnx/Nonesuch-*", *more, *words)
    assert (done.exit_code, message in done.output) == (2, True), done.output


def changed(results: Path, folder: Path, **told: object) -> Path:
    """Return a copy of a results folder with other values in `run.json`."""
    made = folder / "changed"
    made.mkdir()
    for file in results.iterdir():
        (made / file.name).write_bytes(file.read_bytes())
    about = json.loads((made / "run.json").read_text())
    (made / "run.json").write_text(json.dumps(about | told))
    return made


def test_the_guard_is_part_of_the_command_line() -> None:
    assert cli.failed_unexpectedly(ValueError("x")) == 3

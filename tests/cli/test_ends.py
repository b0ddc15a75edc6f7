"""How commands end where the process's surroundings are against them: a message and the right exit code."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

OPCONFORM = (sys.executable, "-m", "opconform")
HERE = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}


def call(*words: object, stdout: int = subprocess.PIPE, **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [*OPCONFORM, *map(str, words)]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=HERE | env, timeout=120, check=False)


@pytest.mark.parametrize("words", [("--help",), ("list", "backends")])
def test_a_full_standard_output_is_told_and_is_no_verdict(words: tuple[str, ...]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    done = call(*words, stdout=full)
    os.close(full)
    assert done.returncode == 2
    assert done.stderr == b"opconform: standard output cannot be written: No space left on device\n"


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = call("list", "backends", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_what_an_encoding_lacks_is_escaped() -> None:
    done = call("show", "onnx/ReduceMean-18/float32/3x2x2/axes=1/uniform", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u03a3|x|" in done.stdout


@pytest.mark.slow
def test_a_home_is_not_needed(tmp_path: Path) -> None:
    command = [*OPCONFORM, "list", "backends"]
    done = subprocess.run(command, capture_output=True, env={"PATH": os.defpath}, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_request_to_end_is_an_interruption_which_keeps_what_was_judged(
    ending: signal.Signals, tmp_path: Path
) -> None:
    words = ("run", "python:fakes.backends:Slow", "--select", "onnx/ReduceMean-13/float32/*", "--jobs", "1")
    command = [*OPCONFORM, *words, "--quiet", "--out", str(tmp_path / "out")]
    results, until = tmp_path / "out" / "results.jsonl", time.monotonic() + 100
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=HERE,
        preexec_fn=lambda: signal.signal(ending, signal.SIG_DFL),  # noqa: PLW1509 - no threads; it is ignored in the background
    ) as process:
        while not (results.exists() and results.stat().st_size) and time.monotonic() < until:
            time.sleep(0.1)
        process.send_signal(ending)
        assert process.wait(60) == 130
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (told["status"], told["exit_code"]) == ("interrupted", 130)
    assert results.read_bytes().endswith(b"}\n")


@pytest.mark.slow
@pytest.mark.parametrize("most", [12, 24, 40])
def test_too_few_descriptors_are_told(most: int, tmp_path: Path) -> None:
    words = ("run", "python:fakes.backends:Right", "--select", "onnx/ReduceMean-13/float32/2x*", "--quiet")
    done = subprocess.run(
        [*OPCONFORM, *words, "--out", str(tmp_path / "out")],
        capture_output=True,
        env=HERE,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)),
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"opconform: a worker process could not be started: ")

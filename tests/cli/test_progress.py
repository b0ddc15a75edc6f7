"""Commands that take long show how far they are: on stderr, in a terminal, and nothing of it stays."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

MEAN = "onnx/Mean-13/float32/*/ramp"
SCRIPT = "from opconform.cli import main; main()"


def on_a_terminal(*words: object) -> tuple[str, str]:
    """Run a command whose stderr alone is a terminal, and return what stdout and stderr got."""
    terminal, its_end = pty.openpty()
    command = [sys.executable, "-c", SCRIPT, *map(str, words)]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=its_end, text=True, env=environment) as process:
        os.close(its_end)
        shown = b""
        while True:
            try:
                portion = os.read(terminal, 1 << 16)
            except OSError:  # Linux's word for the end
                break
            if not portion:
                break
            shown += portion
        out = process.stdout.read() if process.stdout else ""
    os.close(terminal)
    assert process.returncode in (0, 1), shown
    return out, shown.decode(errors="replace")


def words_of(shown: str) -> set[str]:
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") > 0  # the cursor comes back
    return set(re.findall(r"planning|writing pages|writing|verifying|reading results|judging|operator versions", shown))


@pytest.mark.slow
def test_what_takes_long_says_how_far_it_is_on_stderr_alone(tmp_path: Path) -> None:
    corpus, run, site = tmp_path / "corpus", tmp_path / "run", tmp_path / "site"
    command = [sys.executable, "-c", SCRIPT, "run", "onnx-reference", "--quiet", "--select", MEAN, "--out", run]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    expected = {
        ("export", "--format", "npz", "--out", corpus, "--select", MEAN): {"planning", "writing"},
        ("verify", corpus): {"verifying"},
        ("report", run, "--html", site): {"reading results", "writing pages"},
        ("history", "add", run, "--db", tmp_path / "history.duckdb"): {"reading results"},
        ("compare", run, run): {"reading results"},
        ("rejudge", run, "--out", tmp_path / "again"): {"judging"},
        ("list", "operators", "--select", MEAN): {"planning"},
        ("run", "onnx-reference", "--dry-run", "--select", MEAN): {"planning"},
        ("dev", "mutants", "--select", MEAN): {"planning", "operator versions"},
    }
    for words, told in expected.items():
        out, shown = on_a_terminal(*words)
        assert words_of(shown) == told, words
        assert "\x1b" not in out

"""The examples of the page on kernels and models run as printed; those of libraries that are missing are skipped."""

import importlib.util
import re
import subprocess
import sys

import pytest
from test_docs import ROOT, Shown, follow, in_process, steps

PAGE = (ROOT / "docs" / "start-kernel-or-model.md").read_text(encoding="utf-8")
NEEDS = {"check_numba.py": ["numba"], "check_torch.py": ["torch"], "check_triton.py": ["torch", "triton"]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.mark.slow
def test_the_commands_of_the_page_print_what_it_shows(folder) -> None:
    assert follow(PAGE, folder, in_process) == PAGE.count("\n$ ")


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_the_examples_of_other_libraries_pass(folder, name: str) -> None:
    for library in NEEDS[name]:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    for step in steps(PAGE):
        if not isinstance(step, Shown):
            step(folder)
    done = subprocess.run([sys.executable, name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_every_example_of_the_page_is_run() -> None:
    written = set(re.findall(r"^# (\w+\.py)$", PAGE, re.MULTILINE))
    run = set(re.findall(r"^\$ python (?:-m pytest -q )?(\w+\.py)$", PAGE, re.MULTILINE))
    assert written == run | set(NEEDS)

"""Code in the README and the docs runs as printed; every command that they print has the options that it is given."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from test_docs import PAGES, ROOT, Shown, in_process, prints, steps

from opconform.cli import main

README = (ROOT / "README.md").read_text(encoding="utf-8")
SELECT = "onnx/ReduceMean-18/float32/1/*"


def commands() -> Iterator[tuple[str, str]]:
    """Yield each command `opconform …` in a block of a page, without what a shell makes of it."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            for line in block.replace("\\\n", " ").splitlines() if language in ("", "console", "sh") else ():
                if found := re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*opconform (\S+(?: \S.*)?)$", line):
                    yield page.name, re.split(r" +(?:\||>|&&|#|2>)(?: |$)", found[1])[0]


PRINTED = [pair for pair in dict.fromkeys(commands()) if "…" not in pair[1]]


def parsed(words: list[str]) -> None:
    """Parse a command line as the program would, without running it. Raises click.UsageError."""
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group):
        _, found, words = command.resolve_command(context, words)
        command = found
        context = click.Context(command, parent=context)
    command.make_parser(context).parse_args(words)


def test_the_docs_print_many_commands() -> None:
    assert len(PRINTED) > 50
    assert {page for page, _ in PRINTED} >= {"README.md", "CONTRIBUTING.md"}


@pytest.mark.parametrize(("page", "command"), PRINTED)
def test_a_command_that_is_printed_has_the_options_that_it_is_given(page: str, command: str) -> None:
    parsed(shlex.split(command))


def test_an_option_that_there_is_not_would_be_found() -> None:
    with pytest.raises(click.UsageError):
        parsed(["run", "onnxruntime", "--no-such-option"])


def python_blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, from which modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def ran(code: str) -> str:
    """Run a script in a process of its own, in the current folder, and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_readme_s_class_is_a_backend_with_its_imports(folder: Path) -> None:
    (block,) = python_blocks("README.md")
    assert block.startswith("# my_module.py\n")
    (folder / "my_module.py").write_text(block, encoding="utf-8")
    select = ["--select", SELECT, "--select", "onnx/Identity-1/float32/*/ramp"]
    code, output = in_process(shlex.join(["opconform", "run", "python:my_module:Backend", "--quiet", *select]))
    assert code in (0, 1), output
    assert re.search(r"outcomes +\d+ pass", output), output
    assert "unsupported" in output
    assert " error" not in output


@pytest.mark.slow
def test_the_scripts_that_read_a_results_folder_run_as_printed(folder: Path) -> None:
    done = CliRunner().invoke(
        main, ["run", "onnx-reference", "--quiet", "--keep-outputs", "all", "--out", "DIR", "--select", SELECT]
    )
    assert done.exit_code in (0, 1), done.output
    answers, schemas = python_blocks("docs/results-folder.md")
    assert "(" in ran(answers)
    pytest.importorskip("jsonschema")
    ran(schemas)


@pytest.mark.slow
def test_the_script_about_openvino_s_lost_errors_runs_as_printed(folder: Path) -> None:
    pytest.importorskip("openvino")
    (block,) = python_blocks("docs/openvino.md")
    assert len(ran(block).splitlines()) == 2


def adapted(text: str, version: str) -> str:
    """Return a page's text for another release, moment and duration than those that it was written with."""
    text = re.sub(r"onnxruntime \d+\.\d+\.\d+", f"onnxruntime {version}", text)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d|(?<= in )[\d.]+(?= s\b)", "…", text)


@pytest.mark.slow
def test_the_readme_s_first_commands_print_what_it_shows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("COLUMNS", "80")
    section = README.split("\n## Thirty seconds\n")[1].split("\n## ")[0]
    section = adapted(section, importlib.metadata.version("onnxruntime"))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    shown = [step for step in steps(section) if isinstance(step, Shown)]
    assert len(shown) == 3
    script = f'{shlex.quote(sys.executable)} -c "from opconform.cli import main; main()"'
    for command, output in shown:
        line = command.replace("opconform run", "opconform run --quiet").replace("opconform", script, 1)
        done = subprocess.run(line, shell=True, env=environment, capture_output=True, text=True, check=False)
        printed = done.stdout + done.stderr  # a terminal shows both
        assert prints(output, printed), f"{command} printed\n{printed}\nand the page shows\n{output}"

"""The page on every backend, `python -m benchmarks.backends`, is what folders of results hold."""

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from opconform.cli import main

ROOT = Path(__file__).parents[2]


def test_the_page_has_a_row_for_each_backend_and_each_operator(tmp_path: Path) -> None:
    select = ["--select", "onnx/Mean-13/float32/*/ramp", "--select", "onnx/Abs-13/*int8/*"]
    folders = [tmp_path / "onnxruntime", tmp_path / "onnx-reference"]
    for folder in folders:
        run = CliRunner().invoke(main, ["run", folder.name, *select, "--quiet", "--out", str(folder)])
        assert run.exit_code in (0, 1)
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.backends", *map(str, folders)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    heads = [line.split(" | ") for line in made.splitlines() if line.startswith(("| backend", "| operator"))]
    assert [len(head) for head in heads] == [13, 3]
    rows = {line.split(" | ")[0].strip("| "): line for line in made.splitlines() if line.startswith("| ")}
    assert {"Abs", "Mean"} <= rows.keys()
    assert sum(int(cell.replace(",", "")) for cell in rows[heads[1][1]].split(" | ")[1:10]) > 0
    assert rows["Mean"].split(" | ")[1] == "100", "each case of Mean is supported, and right"

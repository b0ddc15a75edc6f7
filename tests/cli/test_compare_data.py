"""`opconform dev compare-data`: what stored test data exercises and exposes, beside the suite."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from onnx import helper

import opconform
from opconform.cli import main

from .test_judge_data import write


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("compared")
    numbers = np.array([[1.5, -2, 3], [0, 5, -6]], np.float32)
    last = helper.make_node("Hardmax", ["a"], ["y"], axis=0)
    write(folder / "data" / "last", [last], [numbers], np.array([[1, 0, 1], [0, 1, 0]], np.float32), 13)
    usual = helper.make_node("Hardmax", ["a"], ["y"], axis=-1)
    write(folder / "data" / "usual", [usual], [numbers], np.array([[0, 0, 1], [0, 1, 0]], np.float32), 13)
    both = [helper.make_node("Neg", ["a"], ["b"]), helper.make_node("Neg", ["b"], ["y"])]
    write(folder / "data" / "several", both, [numbers], numbers, 13)
    root = Path(opconform.__file__).parent / "specs"
    shutil.copytree(root / "families", folder / "specs" / "families")
    (folder / "specs" / "onnx").mkdir()
    shutil.copy(root / "onnx" / "Hardmax.yaml", folder / "specs" / "onnx")
    options = ["--specs", str(folder / "specs"), "--markdown", str(folder / "page.md")]
    found = CliRunner().invoke(main, ["dev", "compare-data", str(folder / "data"), *options])
    assert found.exit_code == 0, found.output
    return (folder / "page.md").read_text()


def row(page: str, name: str) -> list[str]:
    line = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.mark.slow
def test_models_of_one_node_count_with_their_types_and_attributes(page: str) -> None:
    assert row(page, "operator versions")[0].startswith("1 of ")
    assert row(page, "cases")[0] == "2"
    assert row(page, "type triples")[0].startswith("1 of ")
    assert row(page, "attributes")[0].startswith("1 of "), "axis=-1 is the default"


@pytest.mark.slow
def test_mutants_are_put_to_both_and_judged_by_the_tolerances_of_each(page: str) -> None:
    every, theirs, ours, levels, exposed, of_ours = map(int, row(page, "Hardmax-13"))
    assert every >= ours > theirs > 0
    assert levels >= of_ours > exposed


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["dev", "compare-data", str(tmp_path)])
    assert found.exit_code == 2
    assert "has no model with a single node" in found.stderr

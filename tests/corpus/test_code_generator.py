"""emx-onnx-cgen's verify command on exported folders: a code generator for C reads models, inputs and answers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from opconform.cases.corpus_tensors import tensor_file
from opconform.cli import main

COMMAND = shutil.which("emx-onnx-cgen")
SELECT = ("onnx/ReduceMean-13/float32/3x2x2/axes=2,0/*", "onnx/Mean-13/float16/4*4/*", "onnx/ReduceMean-18/float32/1/*")

pytestmark = [
    pytest.mark.skipif(COMMAND is None, reason="emx-onnx-cgen is not installed"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed"),
]


def verified(data_set: Path) -> subprocess.CompletedProcess[str]:
    words = [str(COMMAND), "verify", str(data_set.parent / "model.onnx"), "--test-data-dir", str(data_set)]
    return subprocess.run([*words, "--max-ulp", "0"], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("generated") / "corpus"
    words = [word for glob in SELECT for word in ("--select", glob)]
    assert CliRunner().invoke(main, ["export", "--format", "onnx", "--out", str(folder), *words]).exit_code == 0
    found = {path.parent.name.split("_")[2]: path for path in sorted((folder / "values").glob("*/test_data_set_0"))}
    assert found.keys() == {"Mean-13", "ReduceMean-13", "ReduceMean-18"}
    return list(found.values())


def test_it_compiles_the_models_and_finds_our_answers(data_sets: list[Path]) -> None:
    for data_set in data_sets:
        done = verified(data_set)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Verifying using test data set: test_data_set_0" in done.stdout


def test_it_finds_an_answer_that_is_not_the_right_one(data_sets: list[Path]) -> None:
    file = data_sets[1] / "output_0.pb"
    whole = file.read_bytes()
    file.write_bytes(tensor_file("reduced", np.full((1, 2, 1), 99, np.float32)))
    done = verified(data_sets[1])
    file.write_bytes(whole)
    assert done.returncode != 0
    assert "Comparing outputs" in done.stdout

"""emx-onnx-cgen's verify command on exported folders: a code generator for C reads models, inputs and answers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from onnx import TensorProto

from opconform.cases.elements import from_tensor_proto, tensor_proto
from opconform.cli import main

COMMAND = shutil.which("emx-onnx-cgen")
SELECT = ("onnx/ReduceMean-18/float32/1/*", "onnx/Mean-13/float16/4*4/*")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(COMMAND is None, reason="emx-onnx-cgen is not installed"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed"),
]


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """A case of each operator, and the first of them with an answer that is not the right one."""
    folder = tmp_path_factory.mktemp("generated") / "corpus"
    words = [word for glob in SELECT for word in ("--select", glob)]
    assert CliRunner().invoke(main, ["export", "--format", "onnx", "--out", str(folder), *words]).exit_code == 0
    found = {path.parent.name.split("_")[2]: path for path in sorted((folder / "values").glob("*/test_data_set_0"))}
    assert found.keys() == {"Mean-13", "ReduceMean-18"}
    reduced = found["ReduceMean-18"]
    wrong = shutil.copytree(reduced.parent, folder.parent / "wrong") / reduced.name
    right = from_tensor_proto(TensorProto.FromString((wrong / "output_0.pb").read_bytes()))
    (wrong / "output_0.pb").write_bytes(tensor_proto(np.full_like(right, 99), "reduced").SerializeToString())
    return found["Mean-13"], reduced, wrong


def test_it_compiles_the_models_finds_our_answers_and_blames_a_wrong_one(data_sets: tuple[Path, ...]) -> None:
    running = [started(data_set) for data_set in data_sets]  # at once: each takes seconds
    done = [(process.communicate()[0], process.returncode) for process in running]
    for said, code in done[:2]:
        assert code == 0, said
        assert "Verifying using test data set: test_data_set_0" in said
    said, code = done[2]
    assert code != 0
    assert "Comparing outputs" in said


def started(data_set: Path) -> subprocess.Popen[str]:
    words = [str(COMMAND), "verify", str(data_set.parent / "model.onnx"), "--test-data-dir", str(data_set)]
    return subprocess.Popen(
        [*words, "--max-ulp", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=data_set.parent
    )

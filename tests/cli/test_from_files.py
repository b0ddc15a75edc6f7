"""`opconform run --corpus`: judged from files alone, a corpus or anybody's directories in ONNX's layout."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from fakes.here import run_here
from fakes.sampled import slow
from onnx import TensorProto, helper, numpy_helper

from opconform.cases.foreign import ForeignCases
from opconform.cli import main

SELECT = (
    "--select",
    "onnx/ReduceMean-13/int32/*",
    "--select",
    "onnx/ReduceMean-13/float32/*/axis-*",
    "--select",
    "onnx/Mean-13/float16/*",
)
RIGHT = "python:fakes.backends:Right"
TESTS = Path(__file__).parents[1]


def invoke(*words: object) -> Any:
    return CliRunner().invoke(main, [str(word) for word in words])


def ran(folder: Path, *words: object) -> Path:
    with run_here():
        done = invoke("run", *words, "--quiet", "--jobs", 1, "--out", folder)
    assert (folder / "run.json").exists(), done.output
    return folder


def results(folder: Path) -> dict[str, Any]:
    found = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    return {line["case"]: {k: v for k, v in line.items() if k != "seconds"} for line in found}


def about(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for form in ("onnx", "npz"):
        done = invoke("export", "--format", form, "--out", folder / form, "--pack", folder / f"{form}.zip", *SELECT)
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(tmp_path_factory.mktemp("generated") / "out", RIGHT, *SELECT)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["npz.zip", slow("onnx"), slow("onnx.zip"), slow("npz")])
def test_every_result_from_a_corpus_is_the_generated_one(
    form: str, corpus: Path, generated: Path, tmp_path: Path
) -> None:
    folder = ran(tmp_path / "out", RIGHT, "--corpus", corpus / form)
    assert results(folder) == results(generated)
    assert any("/axis-" in case and line["outcome"] == "pass" for case, line in results(folder).items())
    sums = (corpus / form.partition(".")[0] / "SHA256SUMS").read_bytes()
    assert about(folder)["corpus"]["digest"] == hashlib.sha256(sums).hexdigest()
    assert about(folder)["exit_code"] == about(generated)["exit_code"] == 0


NO_GENERATORS = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opconform" and "generators" in name:
            raise ImportError(f"refused: {name}")
sys.meta_path.insert(0, Refuse())
"""


@pytest.mark.slow
def test_the_generators_are_imported_neither_here_nor_in_a_worker(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "watching.py").write_text(
        "import sys\nfrom fakes.backends import Right\n"
        "class Watching(Right):\n"
        "    def version(self):\n"
        "        return 'seen: ' + ','.join(m for m in sys.modules if m.startswith('opconform.generators'))\n"
    )
    (tmp_path / "without.py").write_text(NO_GENERATORS + "from opconform.cli import main\nmain()\n")
    words = ["run", "python:watching:Watching", "--corpus", str(corpus / "onnx.zip"), "--quiet", "--out", "out"]
    paths = f"import sys; sys.path[:0] = [{str(TESTS)!r}, {str(tmp_path)!r}]; sys.argv[1:] = {words!r}; import without"
    done = subprocess.run([sys.executable, "-c", paths], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert about(tmp_path / "out")["backends"]["python:watching:Watching"]["version"] == "seen: "


@pytest.mark.slow
def test_a_selection_applies_and_what_is_not_there_is_said(corpus: Path, tmp_path: Path) -> None:
    folder = ran(tmp_path / "out", RIGHT, "--corpus", corpus / "onnx", "--select", "onnx/Mean-13/float16/*")
    found = results(folder)
    assert found
    assert all(case.startswith("onnx/Mean-13/float16/") for case in found)
    done = invoke("run", RIGHT, "--corpus", corpus / "onnx", "--select", "onnx/Mean-6", "--out", tmp_path / "no")
    assert done.exit_code == 2
    assert "selects no case" in done.output


@pytest.mark.parametrize("option", [("--strength", 1), ("--draws", 2), ("--seed", 3)])
def test_what_decides_about_generating_is_refused(option: tuple[str, object], corpus: Path, tmp_path: Path) -> None:
    done = invoke("run", RIGHT, "--corpus", corpus / "onnx", *option, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert f"{option[0]} with --corpus" in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_shards_of_a_corpus_have_every_case_once_and_are_put_together(
    corpus: Path, generated: Path, tmp_path: Path
) -> None:
    shards = [ran(tmp_path / f"shard-{n}", RIGHT, "--corpus", corpus / "npz.zip", "--shard", f"{n}/2") for n in (1, 2)]
    one, other = map(results, shards)
    assert one
    assert other
    assert not one.keys() & other.keys()
    assert one | other == results(generated)
    whole = invoke("report", *shards)
    assert whole.exit_code == 0, whole.output
    done = invoke("run", RIGHT, "--corpus", corpus / "npz", "--shard", "1/9999", "--out", tmp_path / "no")
    assert (done.exit_code, "choose at most that many shards" in done.output) == (2, True)


def test_a_corpus_that_is_not_whole_is_refused_with_the_files_name(corpus: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.zip"
    with zipfile.ZipFile(corpus / "npz.zip") as old, zipfile.ZipFile(broken, "w") as new:
        names = old.namelist()
        gone = next(name for name in names if name.endswith("case.npz"))
        for name in names:
            if name != gone:
                new.writestr(name, old.read(name))
    done = invoke("run", RIGHT, "--corpus", broken, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert f"missing: {gone}" in done.output


# Anybody's directories


def write(folder: Path, model: Any, inputs: list[Any], outputs: list[Any], number: int = 0) -> Path:
    place = folder / f"test_data_set_{number}"
    place.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for index, array in enumerate(arrays):
            (place / f"{kind}_{index}.pb").write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())
    return place


def model_of(*nodes: Any, type_: int = TensorProto.FLOAT, initializers: tuple[Any, ...] = ()) -> Any:
    x, y = (helper.make_tensor_value_info(name, type_, [None, 2]) for name in ("x", "y"))
    graph = helper.make_graph(list(nodes), "g", [x], [y], initializer=list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


ONES = np.array([[1, 2], [3, 4]], np.float32)
RELU = helper.make_node("Relu", ["x"], ["y"])


@pytest.mark.slow
def test_directories_without_descriptors_are_judged_by_onnx_own_tolerances(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    write(tmp_path / "d" / "node" / "right", model_of(RELU), [ONES], [ONES * np.float32(1.0005)])
    write(tmp_path / "d" / "node" / "wrong", model_of(RELU), [ONES], [ONES * np.float32(1.01)])
    two = model_of(helper.make_node("Neg", ["x"], ["z"]), helper.make_node("Neg", ["z"], ["y"]))
    write(tmp_path / "d" / "two", two, [ONES], [ONES])
    write(tmp_path / "d" / "two", two, [ONES], [ONES], 1)
    out = tmp_path / "out"
    done = invoke("run", "onnxruntime", "onnx-reference", "--corpus", tmp_path / "d", "--quiet", "--out", out)
    assert done.exit_code == 1, done.output
    assert {case: line["outcome"] for case, line in results(out).items()} == {
        "onnx/Relu-13/float32/2x2/from=node.right/test_data_set_0": "pass",
        "onnx/Relu-13/float32/2x2/from=node.wrong/test_data_set_0": "wrong-value",
        "onnx/model-13/float32/2x2/from=two/test_data_set_0": "pass",
        "onnx/model-13/float32/2x2/from=two/test_data_set_1": "pass",
    }
    assert "ONNX's own tolerances (rtol 0.001, atol 1e-07)" in done.output
    assert about(out)["corpus"]["tolerances"] == {"rtol": 1e-3, "atol": 1e-7}
    only = ran(tmp_path / "only", "onnxruntime", "--corpus", tmp_path / "d", "--select", "onnx/Relu-13")
    assert len(results(only)) == 2


def test_the_tolerance_is_met_as_onnx_meets_it(tmp_path: Path) -> None:
    """What numpy.testing says of answers beside the ends of an interval, ours says too."""
    values = np.array([0.0, 1e-8, -5e-8, 1.0, -3.5, 1e30, np.inf, -np.inf, np.nan])
    for value in values:
        write(tmp_path / "d" / "one", model_of(RELU), [np.full((1, 2), 1, np.float32)], [np.full((1, 2), value)], 0)
        (case,) = (ForeignCases(tmp_path / "d").case(i) for i in ForeignCases(tmp_path / "d").ids())
        (bounds,) = case.expectation.options[0].outputs
        for end in (bounds.lower[0, 0, 0], bounds.upper[0, 0, 0]):
            for answer in (end * (1 - 1e-9), end * (1 + 1e-9)):
                within = bounds.lower[0, 0, 0] <= answer <= bounds.upper[0, 0, 0]
                close = abs(value - answer) <= 1e-7 + 1e-3 * abs(answer)
                assert not np.isfinite(value) or within == close or end == 0
        shutil.rmtree(tmp_path / "d")


def test_a_folder_s_own_tolerances_are_read_as_onnx_s_loader_reads_them(tmp_path: Path) -> None:
    for name, told in {
        "exact": {"rtol": 0, "atol": 0},
        "wide": {"atol": 0.5},
        "usual": {"url": "none"},
        "odd": {"rtol": "1"},
        "endless": {"rtol": 1.0},
    }.items():
        write(tmp_path / "d" / name, model_of(RELU), [ONES], [ONES])
        (tmp_path / "d" / name / "data.json").write_text(json.dumps(told))
    source = ForeignCases(tmp_path / "d")
    admitted = {text.split("from=")[1].split("/")[0]: source.case(text).expectation.options[0].outputs[0].upper[0, 0, 0]
                for text in source.ids()}  # fmt: skip
    assert admitted == {"exact": 1, "wide": 1.5 / (1 - 1e-3), "usual": (1 + 1e-7) / (1 - 1e-3)}
    assert "odd/test_data_set_0" in source.left_out
    assert "expected 0 <= rtol < 1" in source.left_out["endless/test_data_set_0"]
    before = source.digest
    (tmp_path / "d" / "wide" / "data.json").write_text("{}")
    assert ForeignCases(tmp_path / "d").digest != before


def test_models_whose_weights_lie_elsewhere_and_types_without_cases_are_left_out(tmp_path: Path) -> None:
    away = numpy_helper.from_array(ONES, "w")
    away.data_location = TensorProto.EXTERNAL
    away.ClearField("raw_data")
    entry = away.external_data.add()
    entry.key, entry.value = "location", "/etc/passwd"
    inner = helper.make_node("Constant", [], ["w"], value=away)
    add = helper.make_node("Add", ["x", "w"], ["y"])
    write(tmp_path / "d" / "node", model_of(inner, add), [ONES], [ONES])
    write(tmp_path / "d" / "weights", model_of(add, initializers=(away,)), [ONES], [ONES])
    odd = write(tmp_path / "d" / "odd", model_of(RELU), [ONES], [ONES])
    (odd / "input_0.pb").write_bytes(TensorProto(data_type=99, dims=[0]).SerializeToString())
    write(tmp_path / "d" / "whole", model_of(RELU), [ONES], [ONES])
    write(tmp_path / "d" / "named", model_of(RELU), [ONES], [ONES])
    named = tmp_path / "d" / "named" / "model.onnx"
    named.write_bytes(named.read_bytes().replace(b"Relu", b"R\xff\xffu"))
    source = ForeignCases(tmp_path / "d")
    assert len(source.ids()) == 1
    assert source.left_out["named/test_data_set_0"] == "a name in its model is not text"
    assert source.left_out["node/test_data_set_0"] == "its weights are in another file"
    assert source.left_out["weights/test_data_set_0"] == "its weights are in another file"
    assert "is not a type that cases can have" in source.left_out["odd/test_data_set_0"]


def test_a_folder_without_cases_and_a_link_out_of_it_are_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    done = invoke("run", RIGHT, "--corpus", tmp_path / "d", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "has no case" in done.output
    place = write(tmp_path / "d" / "one", model_of(RELU), [ONES], [ONES])
    (place / "input_0.pb").rename(tmp_path / "elsewhere.pb")
    (place / "input_0.pb").symlink_to(tmp_path / "elsewhere.pb")
    done = invoke("run", RIGHT, "--corpus", tmp_path / "d", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "a link" in done.output

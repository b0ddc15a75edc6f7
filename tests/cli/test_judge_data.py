"""`opconform dev judge-data`: stored test data is judged by the references."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt
from onnx import helper, numpy_helper

from opconform.cli import main


def write(folder: Path, nodes: list[onnx.NodeProto], inputs: list[np.ndarray], output: np.ndarray, opset: int) -> None:
    def port(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    named = dict(zip("abcd", inputs, strict=False))
    graph = helper.make_graph(nodes, "g", [port(*one) for one in named.items()], [port("y", output)])
    place = folder / "test_data_set_0"
    place.mkdir(parents=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), folder / "model.onnx")
    for number, array in enumerate(inputs):
        (place / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    (place / "output_0.pb").write_bytes(numpy_helper.from_array(output).SerializeToString())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder, one, two = tmp_path / "data", np.ones((2, 3), np.float32), np.full((2, 3), 2, np.float32)
    add = helper.make_node("Add", ["a", "b"], ["y"])
    legacy = helper.make_node("Add", ["a", "b"], ["y"], broadcast=1, axis=0)
    write(folder / "right", [add], [one, one], two, 14)
    write(folder / "wrong", [add], [one, one], one, 14)
    write(folder / "invalid", [legacy], [one, one[:, :1]], two, 6)
    both = [helper.make_node("Neg", ["a"], ["b"]), helper.make_node("Neg", ["b"], ["y"])]
    write(folder / "several", both, [one], one, 14)
    known = np.array([5], np.int64)
    write(folder / "known", [helper.make_node("NonZero", ["a"], ["y"])], [known], np.zeros((1, 1), np.int64), 13)
    return folder


def judged(*arguments: object) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, ["dev", "judge-data", *map(str, arguments)])
    return found.exit_code, found.stdout, found.stderr


def test_stored_answers_are_judged_as_a_backend_s_are(data: Path) -> None:
    code, out, _ = judged(data, "--json")
    told = {one["path"].split("/")[0]: one for one in map(json.loads, out.splitlines())}
    assert code == 1
    assert {name: one["outcome"] for name, one in told.items()} == {
        "right": "agrees",
        "known": "agrees",
        "wrong": "differs",
        "invalid": "differs",
        "several": "not-covered",
    }
    assert "got 1.0, want 2.0 exactly" in told["wrong"]["detail"]
    assert told["invalid"]["detail"] == "its inputs are invalid by the clause legacy-part"


def test_what_a_folder_is_called_is_text_on_the_page_and_in_the_terminal(tmp_path: Path) -> None:
    one = np.ones((2, 3), np.float32)
    add = helper.make_node("Add", ["a", "b"], ["y"])
    unknown = helper.make_node("A|<b>``x", ["a"], ["y"], domain="d\x1b[31m")
    write(tmp_path / "data" / "a`` <img src=x> ``| [b](c) \x1b[31m", [add], [one, one], one, 14)
    write(tmp_path / "data" / "unknown", [unknown], [one], one, 14)
    page = tmp_path / "page.md"
    _, out, _ = judged(tmp_path / "data", "--markdown", page)
    assert "\x1b" not in out + page.read_text()
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(page.read_text())
    assert "<img" not in shown
    assert "<b>" not in shown
    assert "<a " not in shown


def test_what_is_explained_is_no_failure_and_what_explains_nothing_is_one(data: Path, tmp_path: Path) -> None:
    why, page = tmp_path / "why.yaml", tmp_path / "page.md"
    told = "- {test: wrong, detail: got 1.0, verdict: theirs, reason: 1 + 1 = 2}\n"
    told += "- {test: inv*, detail: legacy-part, verdict: theirs, reason: no part}\n"
    why.write_text(told)
    code, out, _ = judged(data, "--explained", why, "--markdown", page, "--title", "Theirs")
    assert code == 0
    assert "(theirs: 1 + 1 = 2)" in out
    assert "| `wrong/test_data_set_0` | onnx/Add-14 |" in page.read_text()
    why.write_text(told + "- {test: wrong, detail: got 3.0, verdict: theirs, reason: none}\n")
    code, _, error = judged(data, "--explained", why)
    assert code == 1
    assert "there is no such difference: wrong" in error


LOOP = """<ir_version: 6, opset_import: ["": 11]>
loop (int64 trips, bool go, float[1] y) => (float[1] last, float[3, 1] all) {
  last, all = Loop (trips, go, y) <body: graph =
  turn (int64 i, bool on, float[1] v) => (bool more, float[1] w, float[1] s) {
    more = Identity (on)
    x = Constant <value = float[3] {1, 2, 4}> ()
    one = Constant <value = int64 {1}> ()
    end = Add (i, one)
    first = Unsqueeze <axes: ints = [0]> (i)
    behind = Unsqueeze <axes: ints = [0]> (end)
    part = Slice (x, first, behind)
    w = Add (v, part)
    s = If (on) <then_branch: graph = yes () => (float[1] a) { a = Identity (w) },
                 else_branch: graph = no () => (float[1] b) { b = Identity (v) }>
  }>
}"""


@pytest.mark.parametrize(("last", "outcome"), [(5.0, "agrees"), (6.0, "differs")])
def test_bodies_are_run_with_what_they_know_and_what_is_fed(tmp_path: Path, last: float, outcome: str) -> None:
    place = tmp_path / "test_data_set_0"
    place.mkdir()
    onnx.save(onnx.parser.parse_model(LOOP), tmp_path / "model.onnx")
    inputs = [np.array(3, np.int64), np.array(True), np.array([-2], np.float32)]
    outputs = [np.array([last], np.float32), np.array([[-1], [1], [5]], np.float32)]
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for number, array in enumerate(arrays):
            (place / f"{kind}_{number}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    _, out, _ = judged(tmp_path, "--json")
    assert json.loads(out)["outcome"] == outcome

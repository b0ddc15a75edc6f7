"""`opconform audit-model` names the first wrong node of a model, and blames a right backend for nothing."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import networks
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper, parser

from opconform.api.call import library
from opconform.cli import main
from opconform.models.reading import chunks, read_model

DEFECT = """
from dataclasses import replace

import numpy as np
import onnx
from onnx import helper, numpy_helper

from opconform.cases.program import ModelProgram
from opconform.runners.backends.onnxruntime import OnnxRuntime


class Wrong(OnnxRuntime):
    name = "wrong"

    def prepare(self, program):
        if isinstance(program, ModelProgram):
            model = onnx.load_from_string(program.model)
            for at, node in enumerate(model.graph.node):
                if node.name == "NAME":
                    out, node.output[0] = node.output[0], "raw"
                    model.graph.initializer.append(numpy_helper.from_array(np.array(FACTOR, np.float32), "factor"))
                    model.graph.node.insert(at + 1, helper.make_node("Mul", ["raw", "factor"], [out]))
                    break
            program = replace(program, model=model.SerializeToString())
        return super().prepare(program)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty current folder, from which modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def audited(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["audit-model", "--quiet", *arguments])
    return done.exit_code, done.output


def saved(text: str, name: str = "model.onnx") -> onnx.ModelProto:
    model = parser.parse_model(text)
    onnx.save(model, name)
    return model


@pytest.mark.slow
def test_a_network_of_real_layers_is_right_node_by_node(folder) -> None:
    model = networks.residual()
    assert len(model.graph.node) >= 90
    onnx.save(model, "net.onnx")
    code, output = audited("net.onnx", "--on", "onnxruntime", "--dim", "batch=2")
    assert code == 0, output
    assert f"{len(model.graph.node)} nodes on onnxruntime" in output
    assert " 0 wrong, 0 not judged, 0 without a spec file" in output


def injected(folder: Path, place: int, factor: float = 1.0001) -> tuple[str, int, str]:
    model = networks.residual(blocks=4)
    name = model.graph.node[place % len(model.graph.node)].name
    onnx.save(model, "net.onnx")
    module = f"wrong_{place}"
    (folder / f"{module}.py").write_text(DEFECT.replace("NAME", name).replace("FACTOR", str(factor)))
    return name, *audited("net.onnx", "--on", f"python:{module}:Wrong", "--out", f"out{place}")


@pytest.mark.parametrize("place", [3, 40, *(pytest.param(n, marks=pytest.mark.slow) for n in range(5, 59, 3))])
def test_a_defect_at_any_node_is_named_first(folder, place: int) -> None:
    name, code, output = injected(folder, place)
    assert code == 1, output
    assert f"first wrong node: {name} (" in output
    assert " 1 wrong, " in output


@pytest.mark.slow
def test_a_script_of_the_wrong_node_and_a_page_are_written(folder) -> None:
    name, _, output = injected(folder, 20)
    (script,) = Path("out20").glob("node-20-*.py")
    assert f"script: {script}" in output
    done = subprocess.run([sys.executable, script.name], cwd="out20", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr  # onnxruntime itself is right about this node
    page = Path("out20/index.html").read_text(encoding="utf-8")
    assert page.count("<rect ") == page.count("<tr id=") > 50
    assert page.count('fill="#c62828"') == 1
    assert name in page


@pytest.mark.slow
def test_an_audit_goes_on_where_it_stopped(folder) -> None:
    onnx.save(networks.residual(blocks=1), "net.onnx")
    code, output = audited("net.onnx", "--on", "onnxruntime", "--out", "out", "--seconds", "1e-9")
    assert (code, "the time is over" in output) == (2, True)
    assert audited("net.onnx", "--on", "onnxruntime", "--out", "out")[0] == 2
    code, output = audited("net.onnx", "--on", "onnxruntime", "--out", "out", "--resume")
    assert code == 0, output
    assert " 0 not judged" in output
    lines = Path("out/nodes.jsonl").read_text().count("\n")
    assert audited("net.onnx", "--on", "onnxruntime", "--out", "out", "--resume")[0] == 0
    assert Path("out/nodes.jsonl").read_text().count("\n") == lines
    code, output = audited("net.onnx", "--on", "onnxruntime", "--out", "out", "--resume", "--seed", "1")
    assert (code, "has the audit of another model" in output) == (2, True)


@pytest.mark.slow
def test_small_runs_return_the_values_in_parts(folder) -> None:
    onnx.save(networks.residual(blocks=2), "net.onnx")
    code, output = audited("net.onnx", "--on", "onnxruntime", "--values", "1", "--dim", "batch=16", "--json")
    assert code == 0
    nodes = json.loads(output)["nodes"]
    assert {node["status"] for node in nodes} == {"right"}
    model = read_model(Path("net.onnx"))
    groups = list(chunks(model.nodes(library()), model.sizes(model.made_up(0, {"batch": 16})), 1 << 20))
    assert len(groups) > 1
    assert [node.index for group in groups for node in group] == list(range(len(nodes)))


@pytest.mark.slow
def test_large_nodes_are_judged_on_samples(folder) -> None:
    onnx.save(networks.residual(blocks=1), "net.onnx")
    code, output = audited("net.onnx", "--on", "onnxruntime", "--work", "20000", "--dim", "batch=4")
    assert code == 0, output
    assert "judged on a sample of elements: " in output


def test_given_inputs_are_used_and_checked(folder) -> None:
    saved('<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Log(x) }')
    np.savez("data.npz", x=np.array([1.0, 2.0], np.float32))
    code, output = audited("model.onnx", "--on", "onnxruntime", "--inputs", "data.npz")
    assert (code, "1 node on" in output) == (0, True)
    np.savez("data.npz", z=np.array([1.0, 2.0], np.float32))
    code, output = audited("model.onnx", "--on", "onnxruntime", "--inputs", "data.npz")
    assert (code, "the model has no input 'z'; it has x" in output) == (2, True)


CONTROL = """<ir_version: 8, opset_import: ["" : 18]>
g (bool c, float[3] x) => (float[3] y, float[3] z) {
  w = Exp(x)
  y = If (c) <
    then_branch = t () => (float[3] a) { s = Mul(w, x)  a = Relu(s) },
    else_branch = e () => (float[3] b) { b = Neg(x) }
  >
  n = Constant <value = int64 {3}> ()
  z = Loop (n, , x) <
    body = l (int64 i, bool k, float[3] v) => (bool k2, float[3] v2) { v2 = Add(v, w)  k2 = Identity(k) }
  >
}"""


def test_bodies_of_if_and_loop_are_audited_too(folder) -> None:
    saved(CONTROL)
    code, output = audited("model.onnx", "--on", "onnxruntime", "--json")
    audit = json.loads(output)
    paths = {node["path"].split("/", 1)[-1] for node in audit["nodes"] if "/" in node["path"]}
    assert code == 0, audit
    assert {path.rpartition("_")[0] for path in paths} >= {"body/Add", "body/Identity"}
    assert any(path.startswith(("then/", "else/")) for path in paths)
    assert not [node for node in audit["nodes"] if node["status"] == "wrong"]


def test_local_functions_and_external_data_are_read(folder) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
    g (float[2] x) => (float[2] y) { y = own.twice(x) }
    <domain: "own", opset_import: ["" : 18]> twice (a) => (b) { b = Add(a, a) }"""
    saved(text)
    code, output = audited("model.onnx", "--on", "onnxruntime")
    assert (code, "1 node on" in output) == (0, True), output
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    weight = numpy_helper.from_array(np.array([3.0, 4.0], np.float32), "w")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", [given], [made], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(model, "far.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    assert Path("weights.bin").exists()
    assert audited("far.onnx", "--on", "onnxruntime")[0] == 0


def test_operators_without_a_spec_are_named(folder) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
    g (float[2] x) => (float[2] y) { h = com.microsoft.QuickGelu(x)  y = Relu(h) }"""
    saved(text)
    code, output = audited("model.onnx", "--on", "onnxruntime")
    assert code == 0
    assert "1 without a spec file" in output
    assert "no spec file for com.microsoft.QuickGelu" in output


def test_a_model_that_the_backend_refuses_is_reported_in_its_words(folder) -> None:
    saved('<ir_version: 8, opset_import: ["" : 18, "own" : 1]> g (float[2] x) => (float[2] y) { y = own.Nothing(x) }')
    code, output = audited("model.onnx", "--on", "onnxruntime")
    assert code == 2
    assert "onnxruntime does not run the model: " in output
    Path("no.onnx").write_text("no model")
    assert "cannot be read as an ONNX model" in audited("no.onnx", "--on", "onnxruntime")[1]


def test_a_quantized_model_is_audited(folder) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[1,4] x) => (float[1,4] y)
    <float s = {0.05}, uint8 z = {128}> {
      q = QuantizeLinear(x, s, z)
      d = DequantizeLinear(q, s, z)
      r = Relu(d)
      y = Softmax <axis = 1> (r)
    }"""
    saved(text)
    code, output = audited("model.onnx", "--on", "onnxruntime")
    assert (code, "4 right, 0 wrong" in output) == (0, True), output


@pytest.mark.slow
def test_a_real_model_is_right_on_onnxruntime(folder) -> None:
    found = importlib.util.find_spec("magika")
    if found is None or found.origin is None:
        pytest.skip("magika, a package with a model of 95 nodes, is not installed")
    (path,) = Path(found.origin).parent.glob("models/standard_v3_3/model.onnx")
    code, output = audited(str(path), "--on", "onnxruntime")
    assert (code, " 0 wrong, 0 not judged, 0 without a spec file" in output) == (0, True), output

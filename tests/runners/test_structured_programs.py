"""Programs with structure as ONNX models: the checker accepts them, onnxruntime and onnx.reference run them."""

from __future__ import annotations

from dataclasses import replace

import onnx
import pytest
from fakes.programs import BRANCHES, STRUCTURED, program

from opconform.cases.elements import comparable, element_type, from_json, to_json, type_of
from opconform.cases.onnx_model import onnx_bytes
from opconform.cases.program import NO_VERSION, Attribute, Body, Input, Node, OperatorVersion, Output, Tensor, flat
from opconform.cases.runner import Runner
from opconform.runners.backends.onnx_reference import OnnxReference
from opconform.runners.backends.onnxruntime import OnnxRuntime

pytest.importorskip("onnxruntime")

NOT_RUN = {
    OnnxRuntime: {"sparse-constant"},
    OnnxReference: {"sparse-constant", "sequence-of-maps", "map", "loop"},
}
"""What these backends lack or get wrong, in the versions that were seen."""


@pytest.mark.parametrize("kind", STRUCTURED)
def test_the_checker_of_onnx_accepts_the_model(kind: str) -> None:
    onnx.checker.check_model(onnx_bytes(STRUCTURED[kind][0]), full_check=True)


@pytest.mark.parametrize(("backend", "kind"), [(b, k) for b in NOT_RUN for k in STRUCTURED if k not in NOT_RUN[b]])
def test_backends_run_the_program(backend: type[Runner], kind: str) -> None:
    made, inputs, structures, values = STRUCTURED[kind]
    answer = backend().prepare(made).run(inputs)
    arrays, found = flat(made, answer)
    assert list(found) == structures
    assert [x.tolist() for x in arrays] == values


@pytest.mark.parametrize("type_", ["float8e5m2", "bfloat16", "int4", "string", "complex64", "bool", "float6e3m2"])
def test_a_constant_of_any_type_is_an_attribute(type_: str) -> None:
    value = from_json(type_, (3,), {"string": ["a", "", "b"], "complex64": [[1, 0]] * 3}.get(type_, [1, 0, 1]))
    made = program("Constant-25", [], [type_], attributes=[Attribute("value", "tensor", Tensor.of(value))])
    back = onnx.load_from_string(onnx_bytes(made)).graph.node[0].attribute[0].t
    assert back.data_type == element_type(type_).onnx
    if type_ not in ("complex64", "float6e3m2"):
        (answer,) = OnnxRuntime().prepare(made).run([])
        assert type_of(answer) == type_
        assert to_json(answer) == to_json(value)
        assert comparable(answer).shape == (3,)


def test_equal_models_come_from_equal_programs_and_other_opsets_are_imported_for_bodies() -> None:
    scaler = Node(OperatorVersion("onnx", "Scaler", 1, "ai.onnx.ml"), ("x",), ("sum",))
    then = Attribute("then_branch", "graph", Body("then", (), (Output("sum", "float32", 1),), (scaler,)))
    made = replace(STRUCTURED["branch"][0], attributes=(then, BRANCHES[1]))
    model = onnx.load_from_string(onnx_bytes(made))
    assert {one.domain: one.version for one in model.opset_import} == {"": 17, "ai.onnx.ml": 1}
    assert onnx_bytes(made) == onnx_bytes(replace(made))


def test_a_body_without_versions_has_the_first_opset_of_the_ir_version_of_another_domain() -> None:
    negated = Node(OperatorVersion("onnx", "Neg", NO_VERSION), ("x",), ("y",))
    body = Body("mod", (Input("x", "float32", ()),), (Output("y", "float32", 4),), (negated,))
    flex = OperatorVersion("onnx", "FlexAttention", 1, "ai.onnx.preview")
    attributes = (Attribute("score_mod", "graph", body),)
    model = onnx.load_from_string(
        onnx_bytes(replace(STRUCTURED["branch"][0], operator=flex, attributes=attributes, opset=None))
    )
    assert {one.domain: one.version for one in model.opset_import} == {"ai.onnx.preview": 1, "": 25}

"""Directories in ONNX's layout whose tensors have any type, and whose values are sequences, optionals or maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from opconform.cases.elements import type_of
from opconform.cases.foreign import ForeignCases
from opconform.cases.program import Structure, optional, sequence, tensor

PAIR, ONE = np.ones(2, np.float32), np.zeros((1,), np.float32)
FLOATS = helper.make_tensor_type_proto(1, None)


def message(value: Any, told: onnx.TypeProto) -> Any:
    match told.WhichOneof("value"):
        case "sequence_type":
            return numpy_helper.from_list(value)
        case "optional_type":
            return numpy_helper.from_optional(value)
        case "map_type":
            return numpy_helper.from_dict(value)
    return value if hasattr(value, "SerializeToString") else numpy_helper.from_array(np.asarray(value))


def write(folder: Path, model: onnx.ModelProto, inputs: list[Any], outputs: list[Any]) -> None:
    place = folder / "test_data_set_0"
    place.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for kind, values, ports in (("input", inputs, model.graph.input), ("output", outputs, model.graph.output)):
        for number, (value, port) in enumerate(zip(values, ports, strict=False)):
            (place / f"{kind}_{number}.pb").write_bytes(message(value, port.type).SerializeToString())


def identity(told: onnx.TypeProto, answer: onnx.TypeProto | None = None) -> onnx.ModelProto:
    node = helper.make_node("Identity", ["x"], ["y"])
    ports = [helper.make_value_info("x", told)], [helper.make_value_info("y", answer or told)]
    return helper.make_model(helper.make_graph([node], "g", *ports))


SEQUENCE = helper.make_sequence_type_proto(FLOATS)


@pytest.mark.parametrize(
    ("told", "value", "type_", "structure"),
    [
        (SEQUENCE, [PAIR, ONE], "seq(float32)", sequence(tensor(2), tensor(1))),
        (helper.make_optional_type_proto(FLOATS), None, "optional(float32)", optional()),
        (helper.make_optional_type_proto(SEQUENCE), [PAIR], "optional(seq(float32))", optional(sequence(tensor(2)))),
    ],
)
def test_values_with_structure_are_cases(
    tmp_path: Path, told: onnx.TypeProto, value: Any, type_: str, structure: Structure
) -> None:
    write(tmp_path / "d", identity(told), [value], [value])
    source = ForeignCases(tmp_path)
    case = source.case(source.ids()[0])
    assert [(i.type, i.structure) for i in case.program.feeds] == [(type_, structure)]
    assert [o.type for o in case.program.answers] == [type_]
    assert case.expectation.options[0].structure == (structure.outline,)
    assert source.left_out == {}


@pytest.mark.parametrize("number", [8, 16, 17, 22, 23])
def test_types_that_numpy_lacks_are_cases(tmp_path: Path, number: int) -> None:
    values = [b"a", "é".encode(), b""] if number == 8 else [1, 0, 1]
    held = helper.make_tensor("x", number, (3,), values)
    write(tmp_path / "d", identity(helper.make_tensor_type_proto(number, (3,))), [held], [held])
    source = ForeignCases(tmp_path)
    case = source.case(source.ids()[0])
    (bounds,) = case.expectation.options[0].outputs
    assert bounds.type == case.program.feeds[0].type
    assert bounds.shape == (3,)


def test_a_message_that_is_no_value_of_the_model_s_type_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "d" / "good", identity(FLOATS), [PAIR], [PAIR])
    write(tmp_path / "d" / "odd", identity(SEQUENCE), [[np.ones(1)]], [[PAIR]])
    (opaque := onnx.TypeProto()).sparse_tensor_type.elem_type = 1
    write(tmp_path / "d" / "opaque", identity(opaque), [PAIR], [PAIR])
    write(tmp_path / "d" / "complex", identity(FLOATS), [PAIR], [PAIR.astype(np.complex64)])
    source = ForeignCases(tmp_path / "d")
    assert len(source.ids()) == 1
    assert "a tensor of float64" in source.left_out["odd/test_data_set_0"]
    assert "of a type that cases cannot have" in source.left_out["opaque/test_data_set_0"]
    assert "tolerances of complex64" in source.left_out["complex/test_data_set_0"]


@pytest.mark.slow
def test_every_backend_test_of_the_installed_onnx_is_a_case(tmp_path: Path) -> None:
    from onnx.backend.test.case.node import collect_testcases

    every = [one for one in collect_testcases(None) if one.model is not None and one.data_sets]
    for one in every:
        write(tmp_path / "node" / one.name, one.model, *map(list, one.data_sets[0]))
    source = ForeignCases(tmp_path)
    assert source.left_out == {}
    assert len(source.ids()) == len(every)


def test_types_are_told_by_the_file_where_the_model_says_a_tensor(tmp_path: Path) -> None:
    write(tmp_path / "d", identity(FLOATS), [np.ones(2, np.float16)], [PAIR])
    source = ForeignCases(tmp_path)
    assert [type_of(x) for x in source.case(source.ids()[0]).inputs] == ["float16"]

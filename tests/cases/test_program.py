"""Programs: their keys, and values with structure."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes.sampled import values
from hypothesis import given

from opconform.cases.elements import Array, content, type_of
from opconform.cases.errors import ProgramError
from opconform.cases.onnx_model import onnx_bytes
from opconform.cases.program import (
    Attribute,
    Body,
    Input,
    ModelProgram,
    Node,
    OperatorVersion,
    Output,
    Program,
    Structure,
    Tensor,
    flat,
    flatten,
    leaves,
    nest,
    nested,
    optional,
    parse_type,
    sequence,
    tensor,
)
from opconform.runners.execution.host import Host, OurFailure, Request, read_answer

_OPERATOR = OperatorVersion("onnx", "Identity", 16)
_PLAIN = Program(_OPERATOR, (), (Input("x", "float32", (2, "n")),), (Output("y", "float32", 2),), 16)


def test_the_key_of_a_plain_program_is_that_of_its_first_fields() -> None:
    attributes = (Attribute("axes", "ints", (1,)), Attribute("eps", "float", 0.5), Attribute("none", "ints", ()))
    made = replace(_PLAIN, attributes=attributes, inputs=(Input("x", "int8", (1,), b"\1"), None))
    told = (
        "Program(operator=OperatorVersion(standard='onnx', name='Identity', version=16, domain=''), "
        "attributes=(Attribute(name='axes', kind='ints', value=(1,)), Attribute(name='eps', kind='float', value=0.5), "
        "Attribute(name='none', kind='ints', value=())), "
        "inputs=(Input(name='x', type='int8', dims=(1,), constant=b'\\x01'), None), "
        "outputs=(Output(name='y', type='float32', rank=2),), opset=16)"
    )
    assert made.key == hashlib.sha256(told.encode()).hexdigest()


def test_the_shape_of_an_output_follows_and_is_no_part_of_the_key() -> None:
    made = replace(_PLAIN, outputs=(Output("y", "float32", 2, (2, 3)),))
    assert (made.key, made) == (_PLAIN.key, _PLAIN)
    assert onnx_bytes(made) == onnx_bytes(_PLAIN, ((2, 3),)) != onnx_bytes(_PLAIN)


def test_programs_that_differ_in_a_new_field_have_other_keys() -> None:
    body = Body("b", (), (), (Node(_OPERATOR, ("x",), ("y",)),))
    made = [
        _PLAIN,
        replace(_PLAIN, captured=(Input("z", "float32", ()),)),
        replace(_PLAIN, outputs=(None, *_PLAIN.outputs)),
        replace(_PLAIN, inputs=(Input("x", "seq(float32)", (), structure=sequence(tensor(2))),)),
        replace(_PLAIN, inputs=(Input("x", "seq(float32)", (), structure=sequence(tensor(3))),)),
        replace(_PLAIN, attributes=(Attribute("v", "tensor", Tensor.of(np.ones(2, np.float32))),)),
        replace(_PLAIN, attributes=(Attribute("v", "tensor", Tensor.of(np.zeros(2, np.float32))),)),
        replace(_PLAIN, attributes=(Attribute("v", "graph", body),)),
        replace(_PLAIN, attributes=(Attribute("v", "graph", replace(body, name="c")),)),
        replace(_PLAIN, attributes=(Attribute("v", "floats", (0.5, 0.25)),)),
        replace(_PLAIN, attributes=(Attribute("v", "floats", (0.5, 0.5)),)),
        ModelProgram(_OPERATOR, (), _PLAIN.inputs, _PLAIN.outputs, 16, model=b"m"),
    ]
    assert len({one.key for one in made}) == len(made)


def test_an_output_left_out_is_no_answer() -> None:
    made = replace(_PLAIN, outputs=(None, *_PLAIN.outputs, None))
    assert [one.name for one in made.answers] == ["y"]


@pytest.mark.parametrize(
    "text", ["float32", "seq(string)", "optional(seq(float8e5m2))", "map(int64,float32)", "sparse(int4)"]
)
def test_a_type_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize(
    "text", ["float", "seq(float)", "seq()", "map(float32)", "map(float32,int64)", "seq(float32", "sparse(seq(int8))"]
)
def test_a_type_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a type"):
        parse_type(text)


@given(values())
def test_what_is_nested_is_flattened_again(one: tuple[str, Structure, list[Array]]) -> None:
    type_, structure, arrays = one
    found, outline = flatten(type_, nest(structure, iter(arrays)))
    assert outline == structure.outline
    assert [type_of(x) for x in found] == [leaf.type for leaf in leaves(type_, structure)]
    assert [content(x) for x in found] == [content(x) for x in arrays]


def test_values_of_a_program_take_exactly_its_leaves() -> None:
    pair = Input("s", "seq(float32)", (), structure=sequence(tensor(2), tensor()))
    made = replace(_PLAIN, inputs=(pair, None, Input("n", "optional(int64)", (), structure=optional())))
    arrays = [np.ones(2, np.float32), np.float32(3).reshape(())]
    assert [leaf.dims for leaf in made.leaves] == [(2,), ()]
    first, second = nested(made, arrays)
    assert [x.shape for x in first] == [(2,), ()]
    assert second is None
    for wrong in (arrays[:1], [*arrays, arrays[0]]):
        with pytest.raises(ValueError, match="tensors than the program takes"):
            nested(made, wrong)


@pytest.mark.parametrize(
    ("type_", "answer", "structure"),
    [
        ("seq(float32)", [], sequence()),
        ("optional(seq(float32))", [], optional(sequence())),
        ("optional(float32)", None, optional()),
        ("float32", None, optional()),
        ("seq(float32)", np.ones(1, np.float32), Structure("tensor")),
        ("map(string,int64)", {"b": 1, "a": 2}, Structure("map", count=2)),
        ("seq(map(string,float32))", [{"b": 1.0}, {}], sequence(Structure("map", count=1), Structure("map"))),
    ],
)
def test_an_answer_is_told_by_its_structure(type_: str, answer: Any, structure: Structure) -> None:
    made = replace(_PLAIN, outputs=(Output("y", type_, None),))
    arrays, structures = flat(made, [answer])
    assert structures == (structure,)
    if type_ == "map(string,int64)":
        assert [x.tolist() for x in arrays] == [["a", "b"], [2, 1]]
        assert [type_of(x) for x in arrays] == ["string", "int64"]


def test_structures_are_told_in_words() -> None:
    assert str(sequence(tensor(2, 3), tensor())) == "a sequence of 2 (2x3, scalar)"
    assert str(optional()) == "an empty optional"
    assert str(optional(sequence().outline)) == "an optional with a sequence of 0"


def test_an_error_while_a_model_is_made_is_ours() -> None:
    odd = replace(_PLAIN, attributes=(Attribute("axes", "ints", (0.5, 0.25)),))
    with pytest.raises(ProgramError, match="Identity-16 cannot be written as a model: attribute axes of kind ints"):
        onnx_bytes(odd)

    class Backend:
        name, standards = "backend", ("onnx",)

        def version(self) -> str:
            return "1"

        def prepare(self, program: Program, /) -> Any:
            return onnx_bytes(program)

    record = next(Host(Backend(), "backend").run([Request(0, odd, ())], lambda _index, _phase: None))
    assert isinstance(read_answer(record).answer, OurFailure)

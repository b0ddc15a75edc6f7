"""Tensors and values in files: what is written is read again, whatever their types."""

from __future__ import annotations

import numpy as np
import pytest
from fakes.sampled import arrays, values
from hypothesis import given

from opconform.cases.corpus.tensors import read_npz, read_value_file, restored, value_file, write_npz
from opconform.cases.elements import Array, content, type_of
from opconform.cases.program import Structure


@given(arrays())
def test_an_npz_gives_an_array_of_every_type_back(x: Array) -> None:
    found = restored(read_npz(write_npz({"x": x}), "x.npz")["x"], type_of(x), x.shape)
    assert (type_of(found), found.shape, content(found)) == (type_of(x), x.shape, content(x))


@given(arrays())
def test_numpy_itself_reads_our_npz_without_pickle(x: Array) -> None:
    import io

    plain = np.load(io.BytesIO(write_npz({"x": x})), allow_pickle=False)["x"]
    assert plain.dtype.kind in "biufc"


@given(arrays())
def test_a_tensor_file_gives_an_array_of_every_type_back(x: Array) -> None:
    written = value_file("x", type_of(x), Structure("tensor"), iter([x]))
    (found,), _ = read_value_file(written, type_of(x), "x.pb")
    assert (type_of(found), found.shape, content(found)) == (type_of(x), x.shape, content(x))


@given(values())
def test_a_value_file_gives_a_value_of_every_structure_back(one: tuple[str, Structure, list[Array]]) -> None:
    type_, structure, given_ = one
    found, read = read_value_file(value_file("x", type_, structure, iter(given_)), type_, "x.pb")
    assert read == structure
    assert [(type_of(x), x.shape, content(x)) for x in found] == [(type_of(x), x.shape, content(x)) for x in given_]


def test_onnx_reads_our_sequences_and_optionals() -> None:
    from onnx import OptionalProto, SequenceProto, numpy_helper

    pair = [np.ones(2, np.float32), np.zeros((), np.float32)]
    structure = Structure("sequence", items=(Structure("tensor", (2,)), Structure("tensor", ())))
    read = SequenceProto.FromString(value_file("s", "seq(float32)", structure, iter(pair)))
    assert [x.tolist() for x in numpy_helper.to_list(read)] == [[1, 1], 0]
    held = Structure("optional", items=(structure,))
    again = OptionalProto.FromString(value_file("o", "optional(seq(float32))", held, iter(pair)))
    assert [x.tolist() for x in numpy_helper.to_optional(again)] == [[1, 1], 0]
    empty = OptionalProto.FromString(value_file("o", "optional(float32)", Structure("optional"), iter(())))
    assert numpy_helper.to_optional(empty) is None


@pytest.mark.parametrize(
    ("array", "name", "shape"),
    [
        (np.zeros(2, np.uint8), "float32", (2,)),
        (np.zeros(2, np.float32), "float32", (3,)),
        (np.zeros(2, np.uint16), "float8e5m2", (2,)),
        (np.full(2, 16, np.uint8), "int4", (2,)),
        (np.zeros(3, np.uint8), "string", (1,)),
        (np.zeros(2, np.int16), "bfloat16", (2,)),
    ],
)
def test_an_array_that_holds_another_type_or_shape_is_refused(array: Array, name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"read|bits|bytes"):
        restored(array, name, shape)

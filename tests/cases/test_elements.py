"""Element types: every form in which a tensor is written gives it back."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import onnx
import pytest
from fakes.sampled import arrays
from hypothesis import given

from opconform.cases.elements import (
    Array,
    bits_of,
    canonical,
    comparable,
    content,
    element_type,
    element_types,
    equal,
    from_bits,
    from_content,
    from_json,
    from_tensor_proto,
    lane_contents,
    tensor_proto,
    to_json,
    type_of,
)

FLOATS = sorted(name for name, one in element_types().items() if one.kind == "float")
INTEGERS = sorted(name for name, one in element_types().items() if one.is_integer)


def same(a: Array, b: Array) -> bool:
    return type_of(a) == type_of(b) and a.shape == b.shape and content(a) == content(b)


@pytest.mark.slow
@given(arrays())
def test_content_gives_the_array_back(x: Array) -> None:
    assert same(from_content(type_of(x), x.shape, content(x)), x)
    element = element_type(type_of(x))
    assert element.kind == "string" or len(content(x)) == math.ceil(Fraction(x.size * element.bits, 8))


@given(arrays())
def test_a_tensor_proto_gives_the_array_back(x: Array) -> None:
    read = onnx.TensorProto()
    read.ParseFromString(tensor_proto(x, "x").SerializeToString())
    assert same(from_tensor_proto(read), x)


@given(arrays())
def test_onnx_reads_our_tensors(x: Array) -> None:
    if type_of(x) == "string" and any("\udc80" in word for word in x.reshape(-1)):
        return  # onnx reads no text that is no UTF-8
    read = onnx.numpy_helper.to_array(tensor_proto(x))
    if type_of(x) == "string":  # onnx reads NumPy text of a fixed width: NULs at its end are lost
        x = np.array([word.rstrip("\0") for word in x.reshape(-1)], object).reshape(x.shape)
    assert same(canonical(read), x)


def test_a_null_at_the_end_of_a_text_is_kept() -> None:
    text = np.array(["\0", "a\0", "\0a"], object)
    assert tensor_proto(text).string_data == [b"\0", b"a\0", b"\0a"]
    assert from_tensor_proto(tensor_proto(text)).tolist() == text.tolist()


@given(arrays().filter(lambda x: type_of(x) != "string"))
def test_we_read_the_tensors_of_onnx_in_every_field(x: Array) -> None:
    element = element_type(type_of(x))
    # onnx's make_tensor rounds what it is given: NaNs lose their bits, infinities saturate, 2^-127 becomes 2^-126
    changed = element.kind in ("float", "complex") and (not np.isfinite(x).all() or element.name == "float8e8m0")
    x = np.ones(x.shape, x.dtype) if changed else x
    made = onnx.helper.make_tensor("x", element.onnx, x.shape, x.reshape(-1))
    assert not made.HasField("raw_data")
    assert same(from_tensor_proto(made), x)


@given(arrays())
def test_json_gives_the_values_back(x: Array) -> None:
    back = from_json(type_of(x), x.shape, json.loads(json.dumps(to_json(x), allow_nan=False)))
    assert type_of(back) == type_of(x)
    assert back.shape == x.shape
    assert equal(back, x).all()
    if element_type(type_of(x)).kind == "float" and not np.isnan(x).any():
        assert same(back, x)


@given(arrays())
def test_every_array_equals_itself_and_lanes_have_their_own_content(x: Array) -> None:
    assert equal(x, x).all()
    if x.ndim:
        assert lane_contents(x) == [content(np.asarray(x[lane, ...])) for lane in range(len(x))]


@pytest.mark.parametrize("name", FLOATS)
def test_a_format_says_what_the_type_holds(name: str) -> None:
    form, dtype = element_type(name).float_format, element_type(name).dtype
    if element_type(name).bits <= 16:
        every = from_bits(name, np.arange(1 << element_type(name).bits, dtype=f"u{dtype.itemsize}"))
    else:
        info = np.finfo(dtype)
        special = [info.max, -info.max, info.tiny, info.smallest_subnormal, np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0]
        every = np.array(special, dtype)
    wide = comparable(every)
    finite = wide[np.isfinite(wide)]
    assert finite.max() == form.largest
    assert finite[finite > 0].min() == form.eta
    assert np.isinf(wide).any() == form.infinities
    assert np.isnan(wide).any() == form.nans
    assert (finite < 0).any() == form.signed
    assert (finite == 0).any() == form.subnormals
    assert (np.signbit(wide) & (wide == 0)).any() == form.negative_zero
    assert ml_dtypes.finfo(dtype).eps == 2 * form.roundoff


@pytest.mark.parametrize("name", FLOATS)
def test_overflow_is_where_rounding_leaves_the_finite_numbers(name: str) -> None:
    form, dtype = element_type(name).float_format, element_type(name).dtype
    if name in ("float64", "float32"):
        return
    step = (form.overflow - form.largest) / 2  # ml_dtypes rounds float64 through float32: no closer
    with np.errstate(over="ignore"):
        below, above = (np.array([form.overflow + d]).astype(dtype).astype(np.float64) for d in (-step, step))
    assert below[0] == form.largest
    assert not above[0] <= form.largest or not (form.infinities or form.nans)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_have_their_limits(name: str) -> None:
    element = element_type(name)
    info = ml_dtypes.iinfo(element.dtype)
    assert (element.smallest, element.largest) == (info.min, info.max)


def test_packed_elements_fill_bytes_from_the_lowest_bit() -> None:
    assert content(np.array([1, 2, -1]).astype(ml_dtypes.int4)) == bytes([0x21, 0x0F])
    assert content(np.array([1, 2, 3, 0, 1]).astype(ml_dtypes.uint2)) == bytes([0b00111001, 1])
    six = from_bits("float6e2m3", np.array([1, 2, 3, 4], np.uint8))
    assert int.from_bytes(content(six), "little") == 1 | 2 << 6 | 3 << 12 | 4 << 18
    assert bits_of(six).tolist() == [1, 2, 3, 4]


def test_bits_above_a_packed_element_decide_nothing() -> None:
    odd, plain = (np.array([bits], np.uint8).view(ml_dtypes.int4) for bits in (0x17, 0x07))
    assert content(odd) == content(plain)


def test_strings_with_different_texts_have_different_contents() -> None:
    def words(*texts: str) -> Array:
        return canonical(np.array(texts))

    assert content(words("ab", "c")) != content(words("a", "bc"))
    assert content(words("ab", "c")) == content(words(*("".join(["a", "b"]), "c")))


@pytest.mark.parametrize("given_", ["text", np.array(["a", "bc"]), np.array([b"a", b"bc"], object), np.str_("a")])
def test_text_of_any_form_becomes_an_array_of_strings(given_: object) -> None:
    assert type_of(canonical(given_)) == "string"
    assert all(type(one) is str for one in canonical(given_).reshape(-1))


def test_objects_that_are_no_text_are_refused() -> None:
    with pytest.raises(TypeError, match="expected text, got dict"):
        canonical(np.array([{}], object))
    with pytest.raises(TypeError, match="only hold text"):
        content(np.array([1], object))


@pytest.mark.parametrize(
    ("name", "shape", "held"),
    [
        ("float32", (2,), b"1234"),
        ("int4", (3,), b"1"),
        ("string", (2,), b"\1\0\0\0a"),
        ("string", (1,), b"\xff\0\0\0a"),
    ],
)
def test_content_of_another_size_is_refused(name: str, shape: tuple[int, ...], held: bytes) -> None:
    with pytest.raises(ValueError, match="bytes"):
        from_content(name, shape, held)


def test_tensors_that_lie_elsewhere_are_refused() -> None:
    far = onnx.TensorProto(data_type=1, dims=[1], data_location=onnx.TensorProto.EXTERNAL)
    with pytest.raises(ValueError, match="another file"):
        from_tensor_proto(far)
    with pytest.raises(ValueError, match="data_type 99"):
        from_tensor_proto(onnx.TensorProto(data_type=99))
    with pytest.raises(ValueError, match="numbers in float_data"):
        from_tensor_proto(onnx.TensorProto(data_type=1, dims=[2], float_data=[1.0]))

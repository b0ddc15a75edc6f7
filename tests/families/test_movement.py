"""Operators that move and choose elements, against plain loops, NumPy's functions and the examples of their pages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

from opconform.cases.elements import element_type

OUT = {"output": "int64"}
extents = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)


def counted(shape):
    return np.arange(int(np.prod(shape))).reshape(shape) + 1


@given(extents, st.lists(st.integers(0, 3), min_size=1, max_size=5), st.data())
def test_parts_are_joined_as_numpy_joins_them_and_split_at_their_ends(shape, lengths, data) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    parts = [counted([n if i == axis % len(shape) else d for i, d in enumerate(shape)]) * 7**k
             for k, n in enumerate(lengths)]  # fmt: skip
    (whole,) = values("onnx/Concat-13", {"inputs": parts}, {"concat_result": "int64"}, axis=axis)
    assert np.array_equal(whole, np.concatenate(parts, axis))
    outputs = {f"outputs_{k}": "int64" for k in range(len(parts))}
    for version, told in ((11, {"split": tuple(lengths)}), (18, {})):
        inputs = {"input": whole} if told else {"input": whole, "split": np.array(lengths)}
        found = values(f"onnx/Split-{version}", inputs, outputs, axis=axis, **told)
        assert all(map(np.array_equal, found, parts))


@pytest.mark.parametrize(
    ("extent", "parts", "lengths"), [(7, 3, [3, 3, 1]), (6, 4, [2, 2, 2, 0]), (6, 3, [2, 2, 2]), (0, 2, [0, 0])]
)
def test_the_last_part_is_smaller_where_parts_cannot_be_equal(extent, parts, lengths) -> None:
    outputs = {f"outputs_{k}": "int64" for k in range(parts)}
    found = values("onnx/Split-18", {"input": counted([extent])}, outputs, num_outputs=parts)
    assert [len(one) for one in found] == lengths
    assert np.concatenate(found).tolist() == list(range(1, extent + 1))


def test_parts_that_would_leave_less_than_nothing_are_a_silence() -> None:
    found = readings("onnx/Split-18", {"input": counted([5])}, {f"o{k}": "int64" for k in range(4)}, num_outputs=4)
    lengths = {one.taken["too-short"]: [len(part) for part in one.values] for one in found}
    assert lengths == {"empty-at-end": [2, 2, 1, 0], "spread": [2, 1, 1, 1], "rejected": []}


@given(st.data())
def test_elements_are_gathered_along_an_axis_as_three_loops_do_it(data) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    wanted = [data.draw(st.integers(0, 6 if i == axis % len(shape) else d)) for i, d in enumerate(shape)]
    s = shape[axis]
    indices = np.array(data.draw(st.lists(st.integers(-s, s - 1), min_size=(n := int(np.prod(wanted))), max_size=n)))
    indices, x = indices.reshape(wanted).astype(np.int64), counted(shape)
    (found,) = values("onnx/GatherElements-13", {"data": x, "indices": indices}, OUT, axis=axis)
    assert found.shape == tuple(wanted)
    for place in np.ndindex(*wanted):
        source = list(place)
        source[axis] = indices[place]
        assert found[place] == x[tuple(source)]


@given(st.data())
def test_tuples_choose_slices_within_each_batch(data) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple))
    batch = data.draw(st.integers(0, len(shape) - 1))
    depth = data.draw(st.integers(1, len(shape) - batch))
    lead = shape[:batch] + tuple(data.draw(st.lists(st.integers(0, 3), max_size=2)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    chosen = shape[batch : batch + depth]
    indices = rng.integers([-d for d in chosen], chosen, (*lead, depth))
    (found,) = values("onnx/GatherND-13", {"data": counted(shape), "indices": indices}, OUT, batch_dims=batch)
    assert found.shape == lead + shape[batch + depth :]
    for place in np.ndindex(*lead):
        assert np.array_equal(found[place], counted(shape)[place[:batch] + tuple(indices[place])])


@given(extents, st.data())
def test_slices_are_chosen_as_numpy_compresses(shape, data) -> None:
    axis = data.draw(st.none() | st.integers(-len(shape), len(shape) - 1))
    length = int(np.prod(shape)) if axis is None else shape[axis]
    condition = np.array(data.draw(st.lists(st.booleans(), max_size=length)), bool)
    given = {} if axis is None else {"axis": axis}
    (found,) = values("onnx/Compress-11", {"input": counted(shape), "condition": condition}, OUT, **given)
    assert np.array_equal(found, np.compress(condition, counted(shape), axis))


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "clause"),
    [
        ("Concat-13", {"inputs": [counted([2, 3]), counted([2, 1])]}, {"axis": 0}, "same-shape"),
        ("GatherElements-13", {"data": counted([5, 1]), "indices": np.zeros((5, 2), int)}, {}, "within"),
        ("GatherND-13", {"data": counted([2, 3]), "indices": np.array([[0, 3]])}, {}, "index-range"),
        ("Compress-9", {"input": counted([2]), "condition": np.array([True, False, True])}, {"axis": 0}, "beyond"),
    ],
)
def test_what_cannot_be_chosen_is_invalid(operator, inputs, attributes, clause) -> None:
    assert readings(f"onnx/{operator}", inputs, OUT, **attributes) == clause


@given(st.tuples(*(st.integers(0, 3) for _ in range(4))), st.integers(1, 3), st.sampled_from(["DCR", "CRD"]))
def test_a_block_holds_the_channels_in_rows(extents, size, mode) -> None:
    n, depth, height, width = extents
    x = counted((n, depth * size * size, height, width))
    (found,) = values("onnx/DepthToSpace-13", {"input": x}, OUT, blocksize=size, mode=mode)
    assert found.shape == (n, depth, height * size, width * size)
    for b, d, row, column in np.ndindex(*found.shape):
        place = row % size * size + column % size
        channel = place * depth + d if mode == "DCR" else d * size * size + place
        assert found[b, d, row, column] == x[b, channel, row // size, column // size]
    (back,) = values("onnx/SpaceToDepth-28", {"input": found}, OUT, blocksize=size, mode=mode)
    assert np.array_equal(back, x)


def test_the_first_pages_leave_the_order_of_channels_open() -> None:
    x = counted((1, 8, 1, 1))
    early = readings("onnx/DepthToSpace-1", {"input": x}, OUT, blocksize=2)
    assert {one.taken["order"]: one.values[0].reshape(2, 4).tolist() for one in early} == {
        "depth-column-row": [[1, 3, 5, 7], [2, 4, 6, 8]],
        "column-row-depth": [[1, 2, 3, 4], [5, 6, 7, 8]],
    }


@pytest.mark.parametrize("k", [None, -9, -2, -1, 0, 1, 3, 9, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5), (5, 2), (0, 3)])
def test_triangles_are_those_of_numpy(shape, k) -> None:
    x = counted(shape)
    given = {"input": x, "k": None if k is None else np.array(k)}
    near = max(-20, min(k or 0, 20))  # NumPy's k overflows
    assert np.array_equal(values("onnx/Trilu-14", given, OUT)[0], np.triu(x, near))
    assert np.array_equal(values("onnx/Trilu-14", given, OUT, upper=0)[0], np.tril(x, near))


def test_what_text_is_set_to_is_open_and_the_rest_of_it_not() -> None:
    found = readings("onnx/Trilu-14", {"input": np.array([["a", "b"], ["c", "d"]], object)}, {"output": "string"})
    assert [(one.taken["text-zero"], one.open if one.values else None) for one in found] == [
        ("empty", [False] * 4),
        ("other-text", [False, False, True, False]),
        ("rejected", None),
    ]


def test_sequences_are_reversed_as_the_page_prints_them() -> None:
    x = np.arange(16).reshape(4, 4)
    (found,) = values(
        "onnx/ReverseSequence-10", {"input": x.T, "sequence_lens": np.array([4, 3, 2, 1])}, {"Y": "int64"}
    )
    assert found.tolist() == [[3, 6, 9, 12], [2, 5, 8, 13], [1, 4, 10, 14], [0, 7, 11, 15]]
    given = {"input": x, "sequence_lens": np.array([1, 2, 3, 4])}
    (found,) = values("onnx/ReverseSequence-10", given, {"Y": "int64"}, time_axis=1, batch_axis=0)
    assert found.tolist() == [[0, 1, 2, 3], [5, 4, 6, 7], [10, 9, 8, 11], [15, 14, 13, 12]]


@pytest.mark.parametrize(
    ("extent", "size", "expected"),
    [
        (6, 3, [2, 3, 4]),
        (7, 4, [2, 3, 4, 5]),
        (3, 6, [0, 1, 2, 3, 0, 0]),
        (4, 7, [0, 1, 2, 3, 4, 0, 0]),
        (2, 0, []),
        (0, 2, [0, 0]),
    ],
)
def test_the_window_begins_before_the_middle_and_more_zeros_lie_behind(extent, size, expected) -> None:
    given = {"input_data": counted((extent,)), "shape": np.array([size])}
    assert values("onnx/CenterCropPad-18", given, OUT)[0].tolist() == expected


def test_one_axis_is_cropped_and_another_one_padded() -> None:
    given = {"input_data": counted((2, 3)), "shape": np.array([4, 1])}
    assert values("onnx/CenterCropPad-18", given, OUT, axes=(0, -1))[0].tolist() == [[0], [2], [5], [0]]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4), st.sampled_from(
    ["int8 float8e4m3fn", "uint16 float16", "bfloat16 int16", "float32 uint32", "float64 complex64", "int64 float64"]
))  # fmt: skip
def test_a_bit_cast_is_a_view_of_the_same_bytes(words, names) -> None:
    source, to = map(element_type, names.split())
    x = np.array(words, np.uint64).astype(f"u{source.dtype.itemsize}").view(source.dtype)
    (one,) = readings("onnx/BitCast-26", {"input": x}, {"output": to.name}, to=to.onnx)
    found = one.values[0].astype(to.dtype)
    assert np.array_equal(found, x.view(to.dtype), equal_nan=to.kind != "signed")
    assert not any(one.open)


@pytest.mark.parametrize(
    ("source", "to", "codes"), [("int4", "uint4", [15, 8, 7, 0]), ("uint2", "int2", [-1, -2, 1, 0])]
)
def test_packed_numbers_are_cast_by_their_own_bits(source, to, codes) -> None:
    x = np.array([-1, -8, 7, 0] if source == "int4" else [3, 2, 1, 0]).astype(element_type(source).dtype)
    (found,) = values("onnx/BitCast-26", {"input": x}, {"output": to}, to=element_type(to).onnx)
    assert found.astype(int).tolist() == codes
    other = readings("onnx/BitCast-26", {"input": x}, {"output": "int8"}, to=element_type("int8").onnx)
    assert other == "width"


def test_the_first_upsample_repeats_elements_as_its_page_prints_them() -> None:
    x = counted((1, 1, 2, 2))
    (one,) = readings("onnx/Upsample-1", {"X": x}, {"Y": "int64"}, height_scale=2.0, width_scale=2.0)
    assert one.values[0][0, 0].tolist() == [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]


def test_a_scale_is_one_or_more_and_an_extent_rounded_down() -> None:
    x, outputs = np.arange(5, dtype=np.float32), {"Y": "float32"}
    found = readings("onnx/Upsample-7", {"X": x}, outputs, scales=(1.5,), mode="nearest")
    assert {one.values[0].shape for one in found} == {(7,)}
    assert [0, 0, 1, 2, 2, 3, 4] in [one.values[0].tolist() for one in found]
    assert readings("onnx/Upsample-7", {"X": x}, outputs, scales=(0.5,)) == "scale-range"

"""Operators of ai.onnx.ml on features, labels and maps, held against plain Python."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

F = np.float32
LARGE = 2**53 + 1


def text(*words):
    return np.array([*words, None], object)[:-1]


def taken(found):
    return {tuple(one.taken.values()): one for one in found}


@pytest.mark.parametrize("threshold", [0.0, -0.5, 0.5, 3.0, -3.0, 1e20, -1e20, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, F])
def test_an_element_above_the_threshold_is_1(threshold, dtype) -> None:
    x = np.array([-4, -3, -1, 0, 1, 3, 4, 2**30], dtype)
    (y,) = values("onnx/Binarizer-1", {"X": x}, {"Y": x.dtype.name}, threshold=threshold)
    assert y.tolist() == [int(float(one) > threshold) for one in x]


def test_an_integer_is_compared_exactly() -> None:
    (y,) = values("onnx/Binarizer-1", {"X": np.array([LARGE - 1, LARGE])}, {"Y": "int64"}, threshold=float(2**53))
    assert y.tolist() == [0, 1]


def test_the_offset_is_taken_off_before_the_scale_is_applied() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], F)
    (y,) = values("onnx/Scaler-1", {"X": x}, {"Y": "float32"}, offset=(1.0, 0.0, 2.0), scale=(2.0, 0.5, 4.0))
    assert y.tolist() == [[0, 1, 4], [6, 2.5, 16]]


def test_numbers_of_features_are_as_many_as_columns() -> None:
    x = {"X": np.ones((2, 3), F)}
    assert readings("onnx/Scaler-1", x, {"Y": "float32"}, offset=(1.0, 2.0), scale=(1.0, 2.0)) == "length"
    assert readings("onnx/Scaler-1", x, {"Y": "float32"}, offset=(1.0,), scale=(1.0, 2.0, 3.0)) == "lengths"


def test_places_along_the_last_dimension() -> None:
    x, y = np.arange(12).reshape(3, 4), np.array([[3, 1], [1, 0]])
    (z,) = values("onnx/ArrayFeatureExtractor-1", {"X": x, "Y": y}, {"Z": "int64"})
    assert z.tolist() == x[:, [3, 1, 1, 0]].tolist()
    beyond = {"X": x, "Y": np.array([4])}
    assert readings("onnx/ArrayFeatureExtractor-1", beyond, {"Z": "int64"}) == "range"
    vector = readings("onnx/ArrayFeatureExtractor-1", {"X": x[0], "Y": np.array([2])}, {"Z": "int64"})
    assert [one.values[0].shape for one in vector] == [(1, 1), (1,)]


def test_rows_are_joined_and_vectors_are_rows() -> None:
    given = {"X": [np.array([1, 2]), np.array([[LARGE, 4, 5]])]}
    (y,) = values("onnx/FeatureVectorizer-1", given, {"Y": "float32"}, inputdimensions=(2, 3))
    assert y.tolist() == [[1, 2, float(F(LARGE)), 4, 5]]
    found = readings("onnx/FeatureVectorizer-1", given, {"Y": "float32"}, inputdimensions=(1, 4))
    assert {one.taken["sizes-differ"] for one in found} == {"cut-or-padded", "rejected"}
    assert next(one.values[0].tolist() for one in found if one.values) == [[1, float(F(LARGE)), 4, 5, 0]]


def test_what_equals_the_replaced_value_is_imputed() -> None:
    x = np.array([[1, math.nan, -0.0], [math.nan, 0, 2]], F)
    (y,) = values("onnx/Imputer-1", {"X": x}, {"Y": "float32"}, imputed_value_floats=(7.0,))
    assert np.array_equal(y, np.array([[1, math.nan, 7], [math.nan, 7, 2]]), equal_nan=True)
    each = {"imputed_value_floats": (7.0, 8.0, 9.0), "replaced_value_float": math.nan}
    (y,) = values("onnx/Imputer-1", {"X": x}, {"Y": "float32"}, **each)
    assert y.tolist() == [[1, 8, 0], [7, 0, 2]]


def test_an_integer_of_the_attribute_is_not_cut_to_the_type() -> None:
    x = np.array([3, 0], np.int32)
    (y,) = values("onnx/Imputer-1", {"X": x}, {"Y": "int32"}, imputed_value_int64s=(5,), replaced_value_int64=2**32 + 3)
    assert y.tolist() == [3, 0]
    assert readings("onnx/Imputer-1", {"X": x}, {"Y": "int32"}, imputed_value_int64s=(2**31,)) == "fits"


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=6), st.sampled_from(["MAX", "L1", "L2"]))
def test_a_row_is_over_its_norm(row, norm) -> None:
    found = taken(readings("onnx/Normalizer-1", {"X": np.array(row, F)}, {"Y": "float32"}, norm=norm))
    by_norm = found.get(("norm",), next(iter(found.values())))
    total = sum(one * one for one in row)
    divisor = {"MAX": max(row), "L1": sum(map(abs, row)), "L2": math.sqrt(total)}[norm]
    for one, low, high in zip(row, by_norm.lower[0], by_norm.upper[0], strict=True):
        exact = one / divisor if divisor else one
        assert low <= exact + 1e-9
        assert exact - 1e-9 <= high
        assert high - low <= 1e-5 * abs(exact) + 1e-12
    if ("formula",) in found and norm == "L1":
        plain = sum(row)
        wanted = [float(Fraction(one, plain)) if plain else one for one in row]
        assert found["formula",].values[0].tolist() == pytest.approx(wanted)


def test_the_example_of_a_one_hot_encoder() -> None:
    (y,) = values("onnx/OneHotEncoder-1", {"X": np.array([4])}, {"Y": "float32"}, cats_int64s=tuple(range(8)))
    assert y.tolist() == [[0, 0, 0, 0, 1, 0, 0, 0]]


def test_numbers_are_cast_and_strangers_are_zeros_or_fail() -> None:
    x, lists = {"X": np.array([2.75, -0.5, 9], F)}, {"cats_int64s": (0, 2)}
    (y,) = values("onnx/OneHotEncoder-1", x, {"Y": "float32"}, **lists)
    assert y.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert readings("onnx/OneHotEncoder-1", x, {"Y": "float32"}, zeros=0, **lists) == "fails"


def test_categories_are_mapped_in_both_directions() -> None:
    lists = {"cats_strings": ("a", "", "\u00fc"), "cats_int64s": (3, -1, LARGE)}
    (y,) = values("onnx/CategoryMapper-1", {"X": text("\u00fc", "b", "")}, {"Y": "int64"}, default_int64=9, **lists)
    assert y.tolist() == [LARGE, 9, -1]
    (y,) = values(
        "onnx/CategoryMapper-1", {"X": np.array([LARGE, LARGE - 1, 3])}, {"Y": "string"}, default_string="?", **lists
    )
    assert y.tolist() == ["\u00fc", "?", "a"]


def test_a_map_is_cast_in_the_order_of_its_keys() -> None:
    x = [np.array([7, -3, 0]), np.array([1.5, 2.0, -3.75], F)]
    (y,) = values("onnx/CastMap-1", {"X": x}, {"Y": "float32"})
    assert y.tolist() == [2.0, -3.75, 1.5]
    (y,) = values("onnx/CastMap-1", {"X": x}, {"Y": "int64"}, cast_to="TO_INT64")
    assert y.tolist() == [2, -3, 1]
    assert readings("onnx/CastMap-1", {"X": x}, {"Y": "float32"}, map_form="SPARSE", max_map=9) == "range"


def test_a_sparse_map_has_zeros_where_it_has_no_key() -> None:
    x = [np.array([2, 0]), text("-7", "4")]
    (y,) = values("onnx/CastMap-1", {"X": x}, {"Y": "int64"}, cast_to="TO_INT64", map_form="SPARSE", max_map=4)
    assert y.tolist() == [4, 0, -7, 0]
    found = readings("onnx/CastMap-1", {"X": x}, {"Y": "string"}, cast_to="TO_STRING", map_form="SPARSE", max_map=4)
    assert [one.open for one in found] == [[False] * 4, [False, True, False, True]]


def test_the_example_of_a_dictionary() -> None:
    x, vocabulary = [text("a", "c"), np.array([4, 8])], ("a", "c", "b", "z")
    found = readings("onnx/DictVectorizer-1", {"X": x}, {"Y": "int64"}, string_vocabulary=vocabulary)
    assert [one.values[0].tolist() for one in found] == [[4, 8, 0, 0], [[4, 8, 0, 0]]]
    assert readings("onnx/DictVectorizer-1", {"X": x}, {"Y": "int64"}, string_vocabulary=("a", "b")) == "known"
    assert readings("onnx/DictVectorizer-1", {"X": x}, {"Y": "int64"}, int64_vocabulary=(1, 2)) == "types"


def test_each_row_is_zipped_to_a_map() -> None:
    x, labels = np.array([[1, 2, 3], [4, 5, 6]], F), ("b", "", "a")
    (found,) = readings("onnx/ZipMap-1", {"X": x}, {"Z": "seq(map(string,float32))"}, classlabels_strings=labels)
    assert [one.tolist() for one in found.values] == [["", "a", "b"], [2, 3, 1], ["", "a", "b"], [5, 6, 4]]
    assert readings("onnx/ZipMap-1", {"X": x}, {"Z": "seq(map(int64,float32))"}, classlabels_int64s=(1,)) == "columns"

"""Groups of element types."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.elements import element_types
from opconform.cases.errors import OpconformError
from opconform.specs.model import ELEMENT_TYPES, GROUPS, compress, expand


def test_groups_are_frozen() -> None:
    # A new type gets a new group: specs that name an old one must not change what they mean.
    whole = hashlib.sha256(repr(sorted((name, sorted(types)) for name, types in GROUPS.items())).encode())
    assert whole.hexdigest() == "a3b1310410499901d7a3556eb34f78193cd3b21faa5f75d7169c298f479e07ab"


def test_a_word_expands_to_types() -> None:
    assert expand("ieee") == ("float16", "float32", "float64")
    assert expand("float32") == ("float32",)
    assert expand("seq(ieee)") == ("seq(float16)", "seq(float32)", "seq(float64)")
    assert expand("optional(seq(bool))") == ("optional(seq(bool))",)
    assert expand("seq(map(string,float32))") == ("seq(map(string,float32))",)
    assert len(expand("tensors-5")) == 15


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("flaot32", "did you mean 'float32'?"),
        ("seq(iee)", "did you mean 'ieee'?"),
        ("map(string, flat)", 'write "map(string,float32)"'),
        ("list(float32)", "no element type"),
        ("", "no element type"),
    ],
)
def test_another_word_is_refused(word: str, expected: str) -> None:
    with pytest.raises(OpconformError) as caught:
        expand(word)
    assert expected in str(caught.value)


def test_all_types_that_cases_are_made_of_are_known() -> None:
    assert element_types().keys() <= ELEMENT_TYPES


WRAPPED = st.sampled_from(["{}", "seq({})", "optional({})", "optional(seq({}))"])
TYPES = st.builds(str.format, WRAPPED, st.sampled_from(sorted(ELEMENT_TYPES)))


@given(st.lists(TYPES, max_size=60), st.lists(st.sampled_from(sorted(GROUPS)), max_size=4))
def test_a_compressed_list_means_the_same_and_is_no_longer(types: list[str], groups: list[str]) -> None:
    whole = [*types, *(t for group in groups for t in GROUPS[group])]
    short = compress(whole)
    meant = [t for word in short for t in expand(word)]
    assert set(meant) == set(whole)
    assert len(meant) == len(set(meant))
    assert len(short) <= len(set(whole))

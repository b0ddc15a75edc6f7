from __future__ import annotations

from math import inf, nan
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from opconform.reports.script import literal

WORDS = st.text(max_size=8)
PLAIN = st.one_of(st.integers(), st.booleans(), st.none(), WORDS, st.floats(allow_nan=False))
NESTED = st.recursive(
    PLAIN,
    lambda part: st.one_of(st.lists(part), st.lists(part).map(tuple), st.dictionaries(WORDS, part)),
    max_leaves=12,
)


def read(text: str) -> Any:
    return eval(text, {"inf": inf, "nan": nan})


@given(NESTED, st.integers(20, 120))
def test_a_literal_reads_back_whatever_its_width(value: Any, width: int) -> None:
    assert repr(read(literal(value, width))) == repr(value)


@given(st.lists(st.floats(), max_size=40))
def test_infinities_and_nan_are_names_that_a_script_defines(value: list[float]) -> None:
    assert repr(read(literal({"elements": value}))) == repr({"elements": value})


def test_what_is_short_stays_in_a_line_and_what_is_long_has_an_entry_a_line() -> None:
    assert literal([{"name": "data", "shape": (3,)}]) == '[{"name": "data", "shape": (3,)}]'
    long = literal({"name": "x", "elements": list(range(12))}, 40)
    assert (
        long
        == '{\n    "name": "x",\n    "elements": [\n        0, 1, 2, 3, 4, 5, 6, 7, 8, 9,\n        10, 11,\n    ],\n}'
    )
    assert all(len(line) <= 40 for line in long.splitlines())

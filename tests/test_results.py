"""Results as lines of JSON: what is written is read again, and nothing else is taken for a result."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from fakes.results import result
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.results import Outcome, Result, result_from_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
RESULTS = st.builds(
    Result,
    TEXTS,
    TEXTS,
    st.sampled_from(Outcome),
    st.dictionaries(TEXTS, st.lists(TEXTS, max_size=2), max_size=3),
    st.none() | TEXTS,
    st.none() | TEXTS,
    NUMBERS,
    st.sampled_from([None, "strict", "declared"]),
    st.lists(TEXTS, max_size=2).map(tuple),
    st.none() | TEXTS,
    st.none() | TEXTS,
    NUMBERS,
)


@given(RESULTS)
def test_what_is_written_is_read_again_and_is_one_line(written: Result) -> None:
    line = written.to_json()
    assert result_from_json(line) == result_from_json(line.decode() + "\n") == written
    assert line.isascii()
    assert not {b"\n", b"\t"} & {line[i : i + 1] for i in range(len(line))}, "a record has its attachments after a TAB"
    assert list(json.loads(line)) == list(Result.__struct_fields__)


@given(st.sampled_from(Result.__struct_fields__), st.sampled_from([None, "another"]))
def test_a_line_with_a_key_too_few_or_too_many_is_no_result(key: str, other: str | None) -> None:
    told = json.loads(result().to_json())
    value = told.pop(key)
    if other:
        told |= {key: value, other: value}
    with pytest.raises(ValueError, match="field"):
        result_from_json(json.dumps(told))


@pytest.mark.parametrize(
    "damage",
    [
        {"case": 1},
        {"outcome": "Pass"},
        {"level": "lax"},
        {"clauses": "one"},
        {"behaviour": {"a": "b"}},
        {"seconds": "1"},
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(damage))):
        result_from_json(json.dumps(json.loads(result().to_json()) | damage))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["bound_ratio", "seconds"])
def test_numbers_that_json_lacks_are_neither_written_nor_read(name: str, number: float) -> None:
    with pytest.raises(ValueError, match="for a number"):
        msgspec.structs.replace(result(), **{name: number}).to_json()
    with pytest.raises(ValueError, match="JSON"):
        result_from_json(json.dumps(json.loads(result().to_json()) | {name: number}))


def test_words_that_are_no_text_are_written_all_the_same() -> None:
    line = msgspec.structs.replace(result(), detail="a\udcffb").to_json()
    assert result_from_json(line).detail == "a\\udcffb"

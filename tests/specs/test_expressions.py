"""Expressions in lists of numbers."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opconform.specs.expressions import ExpressionError, names, number, numbers

SYMBOLS = {"r": 3, "k": 2, "S": [4, 5], "C": 3, "g": 2, "zero": 0}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([1, 0.5], [1, 0.5]),
        (["r - 1"], [2]),
        (["0 .. r-1"], [0, 1, 2]),
        (["-r .. -1"], [-3, -2, -1]),
        (["-r..-1"], [-3, -2, -1]),
        (["1 .. 0"], []),
        (["2 x k"], [2, 2]),
        (["0 x 2*k"], [0, 0, 0, 0]),
        ([1, "2 x k-1"], [1, 2]),
        (["0.6 x r - 2"], [0.6]),
        (["-1 x zero"], []),
        (["C*g", "S..."], [6, 4, 5]),
        (["(r + 1) // 2"], [2]),
        (["-(r - 5)"], [2]),
    ],
)
def test_a_list_is_evaluated(parts, expected) -> None:
    found = numbers(parts, SYMBOLS)
    assert found == expected
    assert [type(n) for n in found] == [type(n) for n in expected]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "r -",
            "1e5",
            "1_0",
            "0x1",
            "010",
            "2**3",
            "r / 2",
            "r % 2",
            "f(1)",
            "r.x",
            "r[",
            "r[0:1:2]",
            "(r)[0]",
            "a if b else c",
        ),
        *("True", "not r", "1 == 1", "'r'", "lambda: 1", "1j", "0..", "..1", "1 .. 2 .. 3", "1 x", "r x k x 2", "é"),
        *("r;k", "(r", "~r", "@r", "r := 1", "__import__('os')", "r.__class__", "[r]", "{r}", "r, k", "*r", "r\n=1"),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        numbers([text], SYMBOLS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q", "no symbol 'q'"),
        ("ze", "did you mean 'zero'"),
        ("S", "S is a list; write S... to splice it"),
        ("r...", "r is a number, no list to splice"),
        ("r // zero", "divides by zero"),
        ("1 x -1", "repeated 0 to"),
        ("1 x 0.5", "where a whole number is needed"),
        ("0 .. 999999999", "longer than"),
        ("1 x 999999999", "repeated 0 to"),
        ("9" * 60, "larger than 2^64"),
        ("1 + " * 100 + "1", "longer than"),
    ],
)
def test_a_failure_says_why(text: str, expected: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        numbers([text], SYMBOLS)
    assert expected in str(caught.value)


def test_a_list_of_many_parts_is_bounded_as_a_whole() -> None:
    with pytest.raises(ExpressionError, match="a list of more than"):
        numbers(["0 x 60000", "0 x 60000"], {})


def test_the_symbols_of_a_part_are_told_without_values() -> None:
    assert names("2 x k-1") == {"k"}
    assert names("-r .. d0") == {"r", "d"}
    assert names("S...") == {"S"}
    with pytest.raises(ExpressionError):
        names("r -")


def terms(depth: int = 3):
    leaf = st.integers(0, 50).map(lambda n: (str(n), n)) | st.sampled_from([("r", 3), ("k", 2), ("d0", 7)])
    if not depth:
        return leaf
    inner = terms(depth - 1)

    def joined(left, sign, right):
        a, b = left[1], right[1]
        if sign == "//":
            return (f"({left[0]} // {right[0]})", a // b) if b else left
        return (f"({left[0]} {sign} {right[0]})", {"+": a + b, "-": a - b, "*": a * b}[sign])

    return leaf | st.builds(joined, inner, st.sampled_from(["+", "-", "*", "//"]), inner)


@given(terms())
def test_arithmetic_is_that_of_integers(term) -> None:
    text, value = term
    assert number(text, {"r": 3, "k": 2, "d0": 7}) == value


@given(terms(1), terms(1))
def test_a_range_has_both_ends_and_every_number_between(low, high) -> None:
    found = numbers([f"{low[0]} .. {high[0]}"], {"r": 3, "k": 2, "d0": 7})
    assert found == list(range(low[1], high[1] + 1))


@given(st.text(max_size=40))
def test_any_text_is_evaluated_or_refused(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        assert all(isinstance(n, (int, float)) for n in numbers([text], SYMBOLS))


@pytest.mark.parametrize("text", [53 * "a" + "!", 100 * "1" + "!", 50 * "a " + "!", 40 * "a.d" + "!", 53 * "(" + "!"])
def test_text_that_is_wrong_at_its_end_is_refused_at_once(text: str) -> None:
    started = time.monotonic()
    with pytest.raises(ExpressionError):
        names(text)
    assert time.monotonic() - started < 1

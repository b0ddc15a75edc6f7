"""References of text: patterns, stop words and n-grams, against ONNX's examples and loops that say the same slowly."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import readings, values

from opconform.cases.errors import OpconformError


def matches(pattern: str, texts: Sequence[str]) -> list[bool]:
    (found,) = values("onnx/RegexFullMatch-20", {"X": np.array(texts, object)}, {"Y": "bool"}, pattern=pattern)
    return [bool(one) for one in found]


@pytest.mark.parametrize(
    ("pattern", "texts", "wanted"),
    [
        (r"www\.[\w.-]+\.\bcom\b", ["www.google.com", "www.facebook.com", "www.bbc.co.uk"], [1, 1, 0]),
        (
            r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)",
            ["account@gmail.com", "account@hotmail.com", "not email", "account2@yahoo.com"],
            [1, 0, 0, 1],
        ),
        ("a|ab", ["ab", "a", "b"], [1, 1, 0]),
        (r"\d\w\s", ["1a ", "\u0661a ", "1\u00e9 ", "1a\v", "1a\u00a0"], [1, 0, 0, 0, 0]),
        (r"[\d\s]+", ["1 ", "\u0661", "\v"], [1, 0, 0]),
        (r"\D\W\S", ["\u0661\u00e9\v", "1\u00e9\v", "xx\v"], [1, 0, 0]),
        (r"x\b.", ["x\u00e9", "xy"], [1, 0]),
        (r"[[:upper:]_]+[^[:digit:]]", ["A_a", "A_1", "aa"], [1, 0, 0]),
        (r"a\z", ["a", "a\n"], [1, 0]),
        ("a$", ["a", "a\n"], [1, 0]),
        ("[[a]+", ["[a", "b"], [1, 0]),
        ("[]a]+", ["]a", "["], [1, 0]),
        (r"\x{e9}\++", ["\u00e9++", "e+"], [1, 0]),
        (".", ["\n", "\U0001f600", ""], [0, 1, 0]),
    ],
)
def test_a_pattern_means_what_re2_s_page_says(pattern: str, texts: list[str], wanted: list[int]) -> None:
    assert matches(pattern, texts) == [bool(one) for one in wanted]


@given(st.data())
def test_a_pattern_matches_the_texts_that_it_makes_and_no_others(data: st.DataObject) -> None:
    """Alternatives, repetitions and sequences of two letters, against the sets of texts up to four letters long."""

    def made(depth: int) -> tuple[str, frozenset[str]]:
        kind = data.draw(st.sampled_from("x|+?" if depth else "x"))
        if kind == "x":
            letters = data.draw(st.text("ab", max_size=2))
            return letters, frozenset({letters})
        left, ours = made(depth - 1)
        if kind == "|":
            right, theirs = made(depth - 1)
            return f"(?:{left}|{right})", ours | theirs
        if kind == "?":
            right, theirs = made(depth - 1)
            joined = {a + b for a, b in itertools.product(ours | {""}, theirs)}
            return f"(?:(?:{left})??{right})", frozenset(one for one in joined if len(one) <= 4)
        repeated = {""}
        for _ in range(4):
            repeated |= {a + b for a, b in itertools.product(repeated, ours) if len(a + b) <= 4}
        return f"(?:{left})*", frozenset(repeated)

    pattern, texts = made(2)
    every = ["".join(one) for size in range(5) for one in itertools.product("ab", repeat=size)]
    assert matches(pattern, every) == [text in texts for text in every]


@pytest.mark.parametrize(
    "pattern",
    [
        *("a(?=b)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1", "(?P<x>a)(?P=x)", "(?>a)", "a++"),
        *("a(", "*a", "a**", "[b-a]", "[a", "a{2,1}", "a{1001}", r"\u0041"),
    ],
)
def test_what_is_not_in_re2_s_syntax_is_no_pattern(pattern: str) -> None:
    assert (
        readings("onnx/RegexFullMatch-20", {"X": np.array(["a"], object)}, {"Y": "bool"}, pattern=pattern) == "syntax"
    )


@pytest.mark.parametrize("pattern", [r"\pN", r"\Qa\E", "(?U)a*"])
def test_what_python_lacks_is_refused_and_not_guessed(pattern: str) -> None:
    with pytest.raises(OpconformError, match=re.escape("does not support")):
        matches(pattern, ["a"])


def normalized(texts: Any, **attributes: Any) -> list[Any]:
    found = readings("onnx/StringNormalizer-10", {"X": np.array(texts, object)}, {"Y": "string"}, **attributes)
    assert not isinstance(found, str), found
    return [one.values[0].tolist() for one in found]


def test_stop_words_go_and_then_the_case_changes() -> None:
    days = ["monday", "tuesday", "wednesday", "thursday"]
    upper = {"case_change_action": "UPPER", "is_case_sensitive": 1}
    assert normalized(days, stopwords=("monday",), **upper) == [["TUESDAY", "WEDNESDAY", "THURSDAY"]]
    assert normalized(["monday", "monday"], stopwords=("monday",), **upper) == [[""]]
    assert normalized([["Monday", "a"]], stopwords=("MONDAY", "A")) == [[[""]]]
    assert normalized([["Monday", "a"]], stopwords=("MONDAY",), case_change_action="UPPER") == [[["A"]]]
    assert normalized(["Monday"], stopwords=("MONDAY",), **upper) == [["MONDAY"]]
    assert normalized(["", "b"]) == [["", "b"]]
    assert normalized(["\u00c9"], stopwords=("\u00e9",), is_case_sensitive=1) == [["\u00c9"]]


def test_letters_beyond_ascii_are_the_locale_s() -> None:
    assert normalized(["\u00e9a"], case_change_action="UPPER") == [["\u00c9A"]] * 2 + [["\u00e9A"]]
    assert normalized(["\u00df"], case_change_action="UPPER") == [["SS"], ["\u00df"], ["\u00df"]]
    assert normalized(["\u0130"], case_change_action="LOWER") == [["i\u0307"], ["i"], ["\u0130"]]


BIGRAMS = {
    "ngram_counts": (0, 4),
    "ngram_indexes": (0, 1, 2, 3, 4, 5, 6),
    "pool_int64s": (2, 3, 5, 4, 5, 6, 7, 8, 6, 7),
}
LINE = [1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8]
ROWS = [[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]]


def vectorized(x: Any, lengths: tuple[int, int], skips: int, mode: str = "TF", **attributes: Any) -> list[Any]:
    named = {"min_gram_length": lengths[0], "max_gram_length": lengths[1], "max_skip_count": skips, "mode": mode}
    given_x = {"X": np.asarray(x, object if "pool_strings" in attributes else np.int64)}
    (found,) = values("onnx/TfIdfVectorizer-9", given_x, {"Y": "float32"}, **named, **attributes)
    return found.tolist()


@pytest.mark.parametrize(
    ("x", "lengths", "skips", "wanted"),
    [
        (LINE, (2, 2), 0, [0, 0, 0, 0, 1, 1, 1]),
        (LINE, (1, 2), 0, [0, 3, 1, 0, 1, 1, 1]),
        (LINE, (2, 2), 5, [0, 0, 0, 0, 1, 3, 1]),
        (LINE, (1, 2), 5, [0, 3, 1, 0, 1, 3, 1]),
        (ROWS, (2, 2), 0, [[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 1]]),
        (ROWS, (2, 2), 5, [[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1]]),
    ],
)
def test_n_grams_are_those_of_onnx_s_examples(x: Any, lengths: tuple[int, int], skips: int, wanted: Any) -> None:
    assert vectorized(x, lengths, skips, **BIGRAMS) == wanted


def test_weights_belong_to_n_grams_and_not_to_places_of_the_output() -> None:
    pool = {"pool_strings": ("a", "c", "b"), "ngram_counts": (0,), "ngram_indexes": (2, 0, 1)}
    for mode, wanted in (("TF", [0, 1, 2]), ("IDF", [0, 4, 0.5]), ("TFIDF", [0, 4, 1])):
        assert vectorized(["a", "b", "a"], (1, 1), 0, mode, weights=(0.5, 2.0, 4.0), **pool) == wanted


@given(st.lists(st.integers(0, 2), max_size=9), st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_n_grams_are_counted_as_places_with_equal_distances_are(
    row: list[int], length: int, skips: int, rows: bool
) -> None:
    grams = list(itertools.product(range(3), repeat=length))
    starts = tuple(0 for _ in range(length))
    attributes = {"ngram_counts": starts, "pool_int64s": tuple(itertools.chain(*grams))}
    x = [row, row[::-1]] if rows else row
    found = vectorized(x, (length, length), skips, ngram_indexes=tuple(range(len(grams))), **attributes)
    for line, answer in zip(x if rows else [row], found if rows else [found], strict=True):
        for gram, count in zip(grams, answer, strict=True):
            places = itertools.combinations(range(len(line)), length)
            apart = [p for p in places if len({b - a for a, b in itertools.pairwise(p)}) <= 1]
            near = [p for p in apart if length == 1 or p[1] - p[0] <= skips + 1]
            assert count == sum(tuple(line[i] for i in p) == gram for p in near)

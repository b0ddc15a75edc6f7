"""Operators on text: StringConcat, StringSplit."""

from __future__ import annotations

import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw
from .pointwise import meet


def concat(c: Call, x: Value, y: Value) -> Value:
    """The element of x, followed by that of y. Shapes broadcast by NumPy's rule.

    Source: ONNX StringConcat-20.
    """
    c.require("broadcast", meet(x.shape, y.shape))
    return x.join(y)


def split(c: Call, x: Value) -> tuple[Value, Value]:
    """The pieces of each element between delimiters, filled up with empty text on one more axis; and how many.

    x: text, shape D; results: text, D and the largest number of pieces; int64, D. Without a delimiter the pieces lie
    between runs of whitespace, none at either end. Source: ONNX StringSplit-20.
    """
    texts, delimiter, most = c.known("X"), c.attr("delimiter") or None, c.attr("maxsplit")
    if most is not None and most < 0:
        c.open("maxsplit-negative")
    blank = " \t\n\r\v\f"
    others = "".join(sorted({letter for text in texts.flat for letter in text if letter.isspace()} - set(blank)))
    if delimiter is None and others and c.open("unicode-space") == "splits":
        blank += others
    keep_one = delimiter is not None and "" in texts.flat and c.open("empty-text") == "one-empty-piece"
    most = -1 if most is None else most
    ends = delimiter is not None
    if not ends and most >= 0 and any(text != text.rstrip() and text.split() for text in texts.flat):
        ends = c.open("last-piece-blank") == "kept"
    pieces = [_pieces(text, delimiter, most, blank, ends) for text in texts.flat]
    if delimiter is not None and not keep_one:
        pieces = [found if text else [] for found, text in zip(pieces, texts.flat, strict=True)]
    width = max(map(len, pieces), default=0)
    filled = np.array([found + [""] * (width - len(found)) for found in pieces], object).reshape(*x.shape, width)
    return (
        c.constant(filled, "string"),
        c.constant(np.array([len(found) for found in pieces], np.int64).reshape(x.shape), "int64"),
    )


def _pieces(text: str, delimiter: str | None, most: int, blank: str, ends: bool) -> list[str]:
    """The pieces of one text. `blank`: what is whitespace; `ends`: whether a rest keeps the blanks at its end."""
    if delimiter is not None:
        return text.split(delimiter, most)
    found: list[str] = []
    rest = text.lstrip(blank)
    rest = rest if ends else rest.rstrip(blank)
    while rest:
        if 0 <= most <= len(found):
            return [*found, rest]
        end = next((place for place, letter in enumerate(rest) if letter in blank), len(rest))
        found.append(rest[:end])
        rest = rest[end:].lstrip(blank)
    return found


_WORDS = ("a", "", "hello world", "\u00e9", "e\u0301", "\u65e5\u672c", "x" * 40, " ", "0", "\U0001f600", "tab\there")
_LISTS = ("a,b,,c", ",", "a, b, c", "", "one two  three", " ends ", "\u00e9t\u00e9", "x", "a,b c,d", "\u65e5,\u672c")


def words(blank: Blank, draw: Draw) -> Array:
    """Short and long texts of several scripts, one of them empty."""
    return np.array(_WORDS, object)[draw.below(len(_WORDS), blank.size)]


def lists(blank: Blank, draw: Draw) -> Array:
    """Texts with commas, blanks and an accented letter in them, one of them empty."""
    return np.array(_LISTS, object)[draw.below(len(_LISTS), blank.size)]

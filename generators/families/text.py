"""Operators on text: StringConcat, StringSplit, RegexFullMatch, StringNormalizer, TfIdfVectorizer."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from types import MappingProxyType

import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw, Drawing
from .pointwise import meet


def concat(c: Call, x: Value, y: Value) -> Value:
    """The concatenation of the elements of x and y. Shapes broadcast by NumPy's rule.

    Source: ONNX StringConcat-20.
    """
    c.require("broadcast", meet(x.shape, y.shape))
    return x.join(y)


def split(c: Call, x: Value) -> tuple[Value, Value]:
    """The pieces of each element between delimiters, padded with empty text along a new axis; and their number.

    x: text, shape D; results: text, D and the largest number of pieces; int64, D. Without a delimiter, runs of
    whitespace separate the pieces, and whitespace at the ends is ignored. Source: ONNX StringSplit-20.
    """
    texts, delimiter, most = c.known("X"), c.attr("delimiter") or None, c.attr("maxsplit")
    if most is not None and most < 0:
        most = -1 if c.open("maxsplit-negative") == "all" else 0
    blank = " \t\n\r\v\f"
    others = "".join(sorted(filter(str.isspace, set("".join(texts.flat)) - set(blank))))
    if delimiter is None and others and c.open("unicode-space") == "splits":
        blank += others
    keep_one = delimiter is not None and "" in texts.flat and c.open("empty-text") == "one-empty-piece"
    most = -1 if most is None else most
    ends = delimiter is not None
    if not ends and most >= 0 and any(text != text.rstrip() and text.split() for text in texts.flat):
        ends = c.open("last-piece-blank") == "kept"
    pieces = [_pieces(text, delimiter, most, blank, ends) for text in texts.flat]
    if delimiter is not None and not keep_one:
        pieces = [parts if text else [] for parts, text in zip(pieces, texts.flat, strict=True)]
    width = max(map(len, pieces), default=0)
    filled = np.array([parts + [""] * (width - len(parts)) for parts in pieces], object).reshape(*x.shape, width)
    return (
        c.constant(filled, "string"),
        c.constant(np.array([len(parts) for parts in pieces], np.int64).reshape(x.shape), "int64"),
    )


def _pieces(text: str, delimiter: str | None, most: int, blank: str, ends: bool) -> list[str]:
    """The pieces of one text. `blank`: the whitespace characters; `ends`: whether a rest keeps trailing blanks."""
    if delimiter is not None:
        return text.split(delimiter, most)
    parts: list[str] = []
    rest = text.lstrip(blank)
    rest = rest if ends else rest.rstrip(blank)
    while rest:
        if 0 <= most <= len(parts):
            return [*parts, rest]
        end = next((position for position, letter in enumerate(rest) if letter in blank), len(rest))
        parts.append(rest[:end])
        rest = rest[end:].lstrip(blank)
    return parts


def regex_full_match(c: Call, x: Value) -> Value:
    """Whether a pattern in RE2's syntax matches the whole of each element.

    x: text, any shape; result: bool, the same. Source: ONNX RegexFullMatch-20.
    """
    if c.attr("pattern") is None:
        c.open("no-pattern")
    pattern = _python_pattern(str(c.attr("pattern")))
    c.require("syntax", pattern is not None)
    assert pattern is not None
    matches = [pattern.fullmatch(text) is not None for text in c.known("X").flat]
    return c.constant(np.array(matches, bool).reshape(x.shape), "bool")


_BEYOND_RE2 = re.compile(r"\(\?(<?[=!]|>|\(|P=|#)|\\[1-9ZN]|\\[uU]|[*+?}][+]")
"""Features of Python that RE2 lacks: lookaround, backreferences, conditions, comments, possessive repetition."""
_BEYOND_PYTHON = re.compile(r"\\[pPCQEX]|\[\[\.|\(\?[a-zA-Z]*U|(?<!^)\(\?[ims]+\)")
"""Features of RE2 that the reference lacks: Unicode classes, bytes, quotations, other flags."""
_CLASSES = MappingProxyType({"d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\f\\r "})
_NAMED = MappingProxyType(
    {"alpha": "A-Za-z", "digit": "0-9", "alnum": "0-9A-Za-z", "upper": "A-Z", "lower": "a-z", "xdigit": "0-9A-Fa-f"}
)
_TOKEN = re.compile(r"\\x\{[0-9A-Fa-f]+\}|\\.|\[\^?\]?|\[:\w+:\]|\]|\{\d*(?:,\d*)?\}|.", re.DOTALL)
_MOST_REPEATED = 1000


@functools.cache
def _python_pattern(pattern: str) -> re.Pattern[str] | None:
    """An RE2 pattern converted to Python's, whose classes and blanks include more characters; None if it is invalid.

    Raises ValueError for features of RE2 that the reference lacks.
    """
    plain = re.sub(r"\\[^\w\s]", "x", pattern)  # an escaped character starts nothing
    if _BEYOND_RE2.search(plain):
        return None
    if _BEYOND_PYTHON.search(plain):
        raise ValueError(f"the reference does not support all of {pattern!r}")
    translated, inside, position = "", False, 0
    while position < len(pattern):
        named = re.compile(r"\[:(\w+):\]").match(pattern, position) if inside else None
        token = named[0] if named else _TOKEN.match(pattern, position)[0]  # type: ignore[index]  # any character does
        position += len(token)
        if named:
            token = _NAMED[named[1]]
        elif token[0] == "\\":
            token = _escaped(token, inside=inside)
        elif token[0] == "[":
            token, inside = (f"\\{token}" if inside else token), True
        elif token[0] == "]":
            inside = False
        elif token[0] == "{" and any(int(n) > _MOST_REPEATED for n in re.findall(r"\d+", token)):
            return None
        translated += token
    try:
        return re.compile(translated)
    except re.error:
        return None


def _escaped(token: str, *, inside: bool) -> str:
    """An escape of RE2, converted to Python's."""
    letter = token[1:2]
    if letter in _CLASSES:
        return _CLASSES[letter] if inside else f"[{_CLASSES[letter]}]"
    if letter.lower() in _CLASSES and not inside:
        return f"[^{_CLASSES[letter.lower()]}]"
    if token.startswith("\\x{"):
        return re.escape(chr(int(token[3:-1], 16)))
    return {"z": "\\Z", "b": "\\b" if inside else "(?a:\\b)", "B": "(?a:\\B)"}.get(letter, token)


def string_normalizer(c: Call, x: Value) -> Value:
    """The elements without stop words, in lower or upper case; one empty text if none is left.

    x: text, (C,) or (1, C); result: of the same rank. Source: ONNX StringNormalizer-10.
    """
    c.require("ranks", x.rank == 1 or (x.rank == 2 and x.shape[0] == 1))
    action, stops = str(c.attr("case_change_action")), list(c.attr("stopwords") or ())
    c.require("actions", action in ("NONE", "LOWER", "UPPER"))
    if c.given("locale"):
        c.open("locale")
    texts = [str(text) for text in c.known("X").flat]
    sensitive = bool(c.attr("is_case_sensitive"))
    variants = {way: _normalized(texts, stops, action, way, sensitive=sensitive) for way in ("full", "simple", "ascii")}
    kept = variants["full"]
    if any(other != kept for other in variants.values()):
        kept = variants[c.open("letters")]
    if not texts and c.open("no-element") == "none":
        return c.constant(np.zeros(x.shape, object), "string")
    kept = kept or [""]
    return c.constant(np.array(kept, object).reshape(*x.shape[:-1], len(kept)), "string")


def _normalized(texts: list[str], stops: list[str], action: str, letters: str, *, sensitive: bool) -> list[str]:
    """The normalized texts. `letters`: which letters have a case, and whether one letter may become several."""

    def compared(text: str) -> str:
        return text if sensitive else _cased(text, "LOWER", letters)

    stopped = {compared(stop) for stop in stops}
    return [_cased(text, action, letters) for text in texts if compared(text) not in stopped]


def _cased(text: str, action: str, letters: str) -> str:
    if action == "NONE":
        return text
    if letters == "full":
        return text.lower() if action == "LOWER" else text.upper()
    return "".join(_one_cased(letter, action, letters) for letter in text)


def _one_cased(letter: str, action: str, letters: str) -> str:
    """A letter mapped to one letter: if Unicode's full mapping has several, the first, provided it is a plain one."""
    if letters == "ascii" and not letter.isascii():
        return letter
    mapped = letter.lower() if action == "LOWER" else letter.upper()
    return mapped if len(mapped) == 1 else mapped[0] if action == "LOWER" else letter


def tf_idf_vectorizer(c: Call, x: Value) -> Value:
    """The count of each n-gram of a pool in each row, limited to 1, times its weight, or both, by the mode.

    x: text or whole numbers, (C,) or (N, C); result: float32, (K,) or (N, K), K one more than the largest index. The
    elements of an n-gram are evenly spaced, with 0 to `max_skip_count` others between them. Source: ONNX
    TfIdfVectorizer-9.
    """
    c.require("ranks", x.rank in (1, 2))
    mode, indexes, starts = str(c.attr("mode")), c.ints("ngram_indexes") or (), c.ints("ngram_counts") or ()
    c.require("modes", mode in ("TF", "IDF", "TFIDF"))
    c.require("one-pool", c.given("pool_strings") != c.given("pool_int64s"))
    c.require("types", c.given("pool_strings") == (x.type == "string"))
    pool = list(c.attr("pool_strings") if c.given("pool_strings") else c.attr("pool_int64s"))
    grams = _grams(pool, starts)
    c.require("parallel", len(grams) == len(indexes))
    weights = c.attr("weights")
    c.require("weights-length", weights is None or len(weights) == len(indexes))
    if len(set(indexes)) < len(indexes):
        c.open("index-repeated")
    if len(set(grams)) < len(grams):
        c.open("gram-repeated")
    lengths = range(int(c.attr("min_gram_length")), int(c.attr("max_gram_length")) + 1)
    width = max(indexes, default=-1) + 1
    rows = c.known("X").reshape(math.prod(x.shape[:-1]), x.shape[-1]).tolist()
    counts, factors = np.zeros((len(rows), width)), np.ones(width)
    if weights is not None and mode != "TF":
        factors[list(indexes)] = np.float32(weights)
    for number, row in enumerate(rows):
        seen = _seen(row, lengths, int(c.attr("max_skip_count")))
        for gram, index in zip(grams, indexes, strict=True):
            counts[number, index] += min(seen[gram], 1) if mode == "IDF" else seen[gram]
    numbers = c.constant(counts.reshape(*x.shape[:-1], width), "float32")
    return numbers * c.constant(factors, "float32")


def _grams(pool: list[object], starts: tuple[int, ...]) -> list[tuple[object, ...]]:
    """The n-grams of a pool, which starts with single elements and has pairs from starts[1] on."""
    grams = []
    for length, (start, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), start=1):
        grams += [tuple(pool[at : at + length]) for at in range(start, end, length)]
    return grams


def _seen(row: list[object], lengths: range, skips: int) -> Counter[tuple[object, ...]]:
    """The count of each n-gram in a row; single elements have nothing to skip, and count once."""
    grams: Counter[tuple[object, ...]] = Counter()
    for length in lengths:
        for step in range(1, skips + 2 if length > 1 else 2):
            reach = (length - 1) * step + 1
            grams.update(tuple(row[at : at + reach : step]) for at in range(len(row) - reach + 1))
    return grams


_WORDS = ("a", "", "hello world", "\u00e9", "e\u0301", "\u65e5\u672c", "x" * 40, " ", "0", "\U0001f600", "tab\there")
_LISTS = ("a,b,,c", ",", "a, b, c", "", "one two  three", " ends ", "\u00e9t\u00e9", "x", "a,b c,d", "\u65e5,\u672c")


def words(blank: Blank, draw: Draw) -> Array:
    """Short and long texts in several scripts, one of them empty."""
    return np.array(_WORDS, object)[draw.below(len(_WORDS), blank.size)]


def lists(blank: Blank, draw: Draw) -> Array:
    """Texts with commas, blanks and an accented letter in them, one of them empty."""
    return np.array(_LISTS, object)[draw.below(len(_LISTS), blank.size)]


_MATCHED = (
    "",
    "abc",
    "ABC",
    "a",
    "ab",
    "aXb",
    "a\nb",
    "abab",
    "12",
    "\u0663",
    "\u00e9",
    "\u00c9",
    "x y",
    "\u65e5",
    "a@b.org",
)


def matched(blank: Blank, draw: Draw) -> Array:
    """Texts that the patterns of the cases match, and similar ones that they don't."""
    return np.array(_MATCHED, object)[draw.below(len(_MATCHED), blank.size)]


_STOPS = ("The", "the", "THE", "quick", "", "Brown", "a b", "a", "A", "fox1")


def stopped(blank: Blank, draw: Draw) -> Array:
    """ASCII words in lower and upper case, some of them stop words."""
    return np.array(_STOPS, object)[draw.below(len(_STOPS), blank.size)]


def tokens(drawing: Drawing) -> Array:
    """Uniform elements of the n-gram pool, and one that is not in it."""
    pool = drawing.attributes.get("pool_strings") or drawing.attributes.get("pool_int64s") or ()
    other: tuple[object, ...] = ("other",) if drawing.type.kind == "string" else (-1,)
    known = np.array([*dict.fromkeys(pool), *other], object)
    return known[drawing.draw.below(len(known), drawing.size)]

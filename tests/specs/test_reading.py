"""The YAML reader."""

import contextlib
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.errors import OpconformError
from opconform.specs.reading import LARGEST_FILE, Position, SpecError, SpecErrors, read, read_file


def test_values_are_those_of_yaml_1_2() -> None:
    text = """
words: [yes-and-no, y, n, 12:30:45, 2024-01-01, "on", 'a: b', ..]
numbers: [0, -7, +3, 1.5, .5, 1e-3, -.inf, 1E5]
others: [true, false, null, ~]
3: a number as a key
block: |
  two
  lines
empty: {list: [], mapping: {}, text: ""}
delta: {..., a: 1}
"""
    value = read(text).value
    assert value["words"] == ["yes-and-no", "y", "n", "12:30:45", "2024-01-01", "on", "a: b", ".."]
    assert value["numbers"] == [0, -7, 3, 1.5, 0.5, 0.001, float("-inf"), 1e5]
    assert [type(n) for n in value["numbers"]] == [int, int, int, float, float, float, float, float]
    assert value["others"] == [True, False, None, None]
    assert value[3] == "a number as a key"
    assert value["block"] == "two\nlines\n"
    assert value["empty"] == {"list": [], "mapping": {}, "text": ""}
    assert list(value["delta"].items()) == [("...", None), ("a", 1)]


def test_every_key_and_value_has_a_position() -> None:
    document = read("a:\n  - {b: x,  c: [1,  é, 2]}\n")
    assert document.position(("a",), key=True) == Position(1, 1)
    assert document.position(("a", 0, "c"), key=True) == Position(2, 13)
    assert document.position(("a", 0, "c", 2)) == Position(2, 24)
    assert document.position(("a", 0, "nothing", "below")) == document.position(("a", 0)) == Position(2, 5)
    assert document.has(("a", 0, "b"))
    assert not document.has(("a", 1))


REFUSED = {
    "a duplicate key": ("a: 1\nb: 2\n«a: 3", "'a' appears twice, first at line 1"),
    "a number and its text as keys": ("1: a\n«'1': b", "appears twice"),
    "a duplicate key in braces": ("{a: 1, «a: 2}", "appears twice"),
    "an anchor": ("a: «&x 1", "&x is an anchor: write the value out"),
    "an alias": ("a: «*x", "*x is an alias: write the value out"),
    "an anchor on a list": ("a: «&x [1]", "anchor"),
    "a tag": ("a: «!!str 1", "tags are not used here"),
    "a merge key": ("«<<: {a: 1}", "merge key"),
    "a boolean of YAML 1.1": ("a: «on", "on is a boolean to some YAML readers: write true or false"),
    "another boolean of YAML 1.1": ("a: [x, «No]", "No is a boolean to some YAML readers"),
    "a boolean of YAML 1.1 as a key": ("«yes: 1", "yes is a boolean"),
    "a capital boolean": ("a: «True", "True is spelled true or false here"),
    "a capital null": ("a: «NULL", "NULL is spelled null here"),
    "a leading zero": ("a: «010", "without leading zeros"),
    "a leading zero in a fraction": ("a: «01.5", "without leading zeros"),
    "an underscore in a number": ("a: «1_000", "underscores"),
    "a hexadecimal number": ("a: «0x1F", "numbers are decimal"),
    "an octal number": ("a: «0o17", "numbers are decimal"),
    "a float as a key": ("«3.10: a", "key 3.10 is the number 3.1: quote it"),
    "a boolean as a key": ("«true: a", "key true is no word"),
    "null as a key": ("«~: a", "key ~ is no word"),
    "a list as a key": ("? «[a]\n: b", "a key is a word or a whole number"),
    "a key without a value": ("«a:\nb: 1", "'a' has no value"),
    "an unquoted comma": ("{a: x, «y}", "'y' has no value; text that holds a comma is quoted inside {}"),
    "a second document": ("a: 1\n«---\nb: 2", "a second document"),
    "a directive": ("«%YAML 1.1\n---\na: 1", "directives"),
    "a tab": ("a:\n«\tb: 1", "a tab: indent with spaces"),
    "a tab between words": ("a:«\t1", "a tab"),
    "a colon in text": ("a: x«: y", "a colon and a space in unquoted text"),
    "an unclosed bracket": ("a: [1, 2\nb«: 3", "not YAML"),
    "an at sign": ("a: «@x", "quoted"),
    "wrong indentation": ("a:\n  b: 1\n «c: 2", "wrong indentation"),
    "a control character": ("a: «\x01", "control character"),
    "a number beyond float64": ("a: «1e999", "too large for a float64"),
    "a number of a thousand digits": ("a: «" + "9" * 1000, "a number of 1000 digits"),
    "no content": ("«", "the file is empty"),
    "only a comment": ("# words\n«", "the file is empty"),
    "only a document's start": ("---\n«", "the file is empty"),
}


def without_marker(text: str) -> tuple[str, Position]:
    """Return the text without «, and where that stood."""
    before, _, after = text.partition("«")
    return before + after, Position(before.count("\n") + 1, len(before) - before.rfind("\n"))


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_misread_is_refused_at_its_place(name: str) -> None:
    marked, expected = REFUSED[name]
    text, position = without_marker(marked)
    with pytest.raises(SpecError) as caught:
        read(text, "x.yaml")
    assert caught.value.position == position
    assert expected in caught.value.message
    assert str(caught.value) == f"x.yaml:{position.line}:{position.column}: {caught.value.message}"


def test_nesting_is_bounded() -> None:
    assert read("[" * 20 + "]" * 20).value
    with pytest.raises(SpecError, match="nested more than"):
        read("[" * 5000 + "]" * 5000)


def test_a_file_larger_than_a_mebibyte_is_refused(tmp_path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("a: " + "x" * LARGEST_FILE)
    with pytest.raises(SpecError, match="larger than 1 MiB"):
        read_file(path)
    with pytest.raises(SpecError, match="larger than 1 MiB"):
        read("a: " + "x" * LARGEST_FILE)


def test_a_file_that_is_not_utf_8_says_where(tmp_path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(SpecError, match=r"latin.yaml:2:7: not UTF-8"):
        read_file(path)


def test_a_file_that_is_not_there_is_the_users_error(tmp_path) -> None:
    with pytest.raises(OpconformError, match="cannot be read"):
        read_file(tmp_path / "none.yaml")


def test_the_digest_is_that_of_the_bytes(tmp_path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: 1\r\n")
    assert read_file(path).digest == hashlib.sha256(b"a: 1\r\n").hexdigest()
    assert read("a: é").digest == hashlib.sha256("a: é".encode()).hexdigest()


def test_several_errors_print_in_the_order_of_their_places() -> None:
    first, second = SpecError("f", Position(2, 1), "one"), SpecError("f", Position(10, 1), "two")
    assert str(SpecErrors([second, first])) == "f:2:1: one\nf:10:1: two"


@given(st.text(alphabet="abc:[]{}'\"#&*!|>%@- \n\t019.,?~", max_size=60))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    lines = text.count("\n") + 2
    with contextlib.suppress(SpecError):
        document = read(text)
        assert all(1 <= place.line <= lines and place.column >= 1 for both in document.marks.values() for place in both)

from __future__ import annotations

import shlex
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opconform.reports.text import percent, printable, shell_quoted


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (Fraction(1), "100%"),
        (Fraction(0), "0%"),
        (Fraction(999_999, 1_000_000), "99.9%"),
        (Fraction(1, 1_000_000), "<0.1%"),
        (Fraction(1, 2), "50%"),
        (Fraction(2, 3), "66.6%"),
        (None, "\N{EN DASH}"),
    ],
)
def test_a_percentage_is_rounded_down_so_that_all_means_all(share: Fraction | None, shown: str) -> None:
    assert percent(share) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_printable_text_has_no_control_character_but_the_lines_end(text: str) -> None:
    shown = printable(text)
    assert all(c.isprintable() or c == "\n" for c in shown)
    assert shown.count("\n") == text.count("\n")


@given(st.text().filter(lambda text: "\0" not in text))
def test_a_quoted_word_is_one_word_of_the_shell(text: str) -> None:
    assert shlex.split(shell_quoted(text)) == [text]

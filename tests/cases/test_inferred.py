"""The texts of inferred types and shapes, and how they compare."""

from __future__ import annotations

import pytest

from opconform.cases.inferred import Agreement, agreement, inferred

NAMES = ("N", "M")


def test_types_and_dimensions_are_written_as_text() -> None:
    assert inferred("float32", (2, "N", None)) == "float32[2,N,?]"
    assert inferred("float32", ()) == "float32[]"
    assert inferred("float32", None) == "float32"
    assert inferred("seq(float32)", (2,)) == "seq(float32)"
    assert inferred(None, None) == "?"


@pytest.mark.parametrize(
    ("wanted", "got", "how"),
    [
        ("float32[2,3]", "float32[2,3]", "exact"),
        ("float32[2,3]", "float32[2,?]", "open"),
        ("float32[2,3]", "float32[2,unk__0]", "open"),
        ("float32[2,3]", "float32", "open"),
        ("float32[2,3]", "?", "open"),
        ("float32[2,3]", "float32[2,4]", "wrong-shape"),
        ("float32[2,3]", "float32[2,N]", "wrong-shape"),
        ("float32[2,3]", "float32[2]", "wrong-shape"),
        ("float32[]", "float32[1]", "wrong-shape"),
        ("float32[2,3]", "float64[2,3]", "wrong-type"),
        ("float32[2,3]", "float32[2,0..3]", "open"),
        ("float32[2,3]", "float32[2,4..]", "wrong-shape"),
        ("float32[N,3]", "float32[N,3]", "exact"),
        ("float32[N,3]", "float32[M,3]", "wrong-shape"),
        ("float32[N,3]", "float32[2,3]", "wrong-shape"),
        ("float32[N|M]", "float32[M]", "exact"),
        ("float32[N|M]", "float32[?]", "open"),
        ("float32[*]", "float32[?]", "exact"),
        ("float32[*]", "float32[N]", "wrong-shape"),
        ("float32[*]", "float32[6]", "wrong-shape"),
        ("float32[4?]", "float32[?]", "exact"),
        ("float32[4?]", "float32[4]", "exact"),
        ("float32[4?]", "float32[N]", "exact"),
        ("float32[4?]", "float32[5]", "wrong-shape"),
        ("float32[4?]", "float32", "exact"),
        ("float32[4?,3]", "float32", "open"),
        ("float32", "float32[7]", "exact"),
        ("seq(float32)", "seq(float32)", "exact"),
        ("seq(float32)", "seq(float64)", "wrong-type"),
    ],
)
def test_an_answer_is_exact_or_open_or_wrong(wanted: str, got: str, how: str) -> None:
    assert agreement(wanted, got, NAMES) == Agreement(how)

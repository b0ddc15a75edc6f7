"""What an operation takes is found out by making some, whatever else they need."""

from __future__ import annotations

from collections.abc import Sequence

from opconform.runners.backends.library_reading import COUNTED, Layout, TypeOrAny, layout_of, taken
from opconform.specs.model import Port, Signature

TYPES = ("float32", "float64", "int32", "int64")
REDUCE = Signature(
    (),
    (Port("x", "T"), Port("axes", "I", "optional", 0)),
    (Port("y", "T"),),
    {"T": ("float32",), "I": ("int64",)},
)


def layout(signature: Signature = REDUCE, usual: Sequence[TypeOrAny] = TYPES) -> Layout:
    return layout_of(signature, TYPES, usual)


def reduces(inputs: Sequence[TypeOrAny], outputs: Sequence[TypeOrAny]) -> int | None:
    """Take a float and optional axes of its width, and give the float's type."""
    widths = {"float32": "int32", "float64": "int64"}
    if len(inputs) not in (1, 2) or len(outputs) != 1 or inputs[0] not in widths or outputs[0] != inputs[0]:
        return None
    return 1 if len(inputs) == 1 or inputs[1] == widths[inputs[0]] else None


def test_counts_and_types_are_those_that_some_operation_has() -> None:
    found = taken(layout(), reduces)
    assert found is not None
    assert found.inputs == {1, 2}
    assert found.outputs == {1}
    assert found.types == {"T": {"float32", "float64"}, "I": {"int32", "int64"}}
    assert found.least.inputs == ("float32",)


def test_types_of_optional_letters_may_be_left_alone() -> None:
    found = taken(layout(), reduces, optional=False)
    assert found is not None
    assert found.types.keys() == {"T"}


def test_a_signature_that_asks_too_little_is_still_found_out() -> None:
    signature = Signature((), (Port("x", "T"),), (Port("y", "T"),), {"T": ("float32",)})

    def adds(inputs: Sequence[TypeOrAny], outputs: Sequence[TypeOrAny]) -> int | None:
        return 1 if len(inputs) == 2 and len(outputs) == 1 else None

    found = taken(layout(signature), adds)
    assert found is not None
    assert found.inputs == {2}
    assert found.types == {"T": frozenset(TYPES)}


def test_an_input_of_a_fixed_type_has_no_other() -> None:
    signature = Signature((), (Port("x", "int64"),), (), {})
    asked = []

    def make(inputs: Sequence[TypeOrAny], outputs: Sequence[TypeOrAny]) -> int | None:
        asked.extend(inputs[:1])
        return 0 if len(inputs) == 1 and not outputs else None

    found = taken(layout(signature), make)
    assert found is not None
    assert (found.types, set(asked)) == ({}, {"int64"})


def test_a_variadic_input_is_tried_again_and_again() -> None:
    signature = Signature((), (Port("x", "T", "variadic"),), (Port("y", "T"),), {"T": ("float32",)})
    found = taken(layout(signature), lambda inputs, outputs: 1 if len(set(inputs)) == 1 and len(outputs) == 1 else None)
    assert found is not None
    assert found.inputs == set(range(1, COUNTED + 1))
    assert found.types == {"T": frozenset(TYPES)}


def test_outputs_are_those_that_the_library_gives() -> None:
    found = taken(layout(usual=(None,)), lambda inputs, outputs: 3)
    assert found is not None
    assert found.outputs == {3}


def test_nothing_is_told_of_an_operation_that_is_always_refused() -> None:
    assert taken(layout(), lambda inputs, outputs: None) is None

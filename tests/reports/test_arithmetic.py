from __future__ import annotations

import io

import pytest
from fakes.results import case, result
from rich.console import Console

from opconform.cases.elements import Declaration, DeclaredType
from opconform.reports.arithmetic import ArithmeticTables, print_arithmetic
from opconform.runners.judging.accuracy import Accuracy, Grade


def accuracy(type_: str, grade: Grade, ulp: float = 0.0, share: float | None = 0.25) -> Accuracy:
    return Accuracy(grade, type_, 64, 0, ulp, (0,), share, share)


def printed(tables: ArithmeticTables, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_arithmetic(console, tables, "alpha", "alpha 1.0")
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def filled() -> ArithmeticTables:
    tables = ArithmeticTables(Declaration({"float16": DeclaredType(accumulator="float16")}))
    for version in (11, 13):
        for type_, grade in (("float16", Grade.WIDE), ("float32", Grade.ROUNDED)):
            name = case(f"onnx/ReduceMean-{version}", type_)
            tables.add(result(case=name, behaviour={"flush": ["none"]}), accuracy(type_, grade))
        for fill, ulp in (("beside-2^16", 0.0), ("beside-2^26", 1024.0)):
            name = case(f"onnx/ReduceMean-{version}", "float16", fill)
            tables.add(result(case=name), accuracy("float16", Grade.WIDE, ulp))
    return tables


def test_versions_with_the_same_grades_share_a_row() -> None:
    lines = printed(filled()).splitlines()
    assert lines[0] == "alpha 1.0, accuracy"
    assert "onnx/ReduceMean 11, 13  wide 25%  rounded 25%" in lines


def test_a_fingerprint_names_the_cases_that_show_it() -> None:
    assert (
        "alpha 1.0, behaves like\n"
        "  adds up like float32: float16\n"
        "    shown by onnx/ReduceMean-11/float16/3x2x2/-/beside-2^16\n"
        "    shown by onnx/ReduceMean-11/float16/3x2x2/-/beside-2^26\n"
        "  in all types and versions: flush none\n"
        "  declared float16 accumulator float16: contradicted by onnx/ReduceMean-11/float16/3x2x2/-/beside-2^16"
    ) in printed(filled(), 60)


def test_what_differs_between_types_and_versions_is_told_with_a_case_for_each() -> None:
    tables = ArithmeticTables()
    for version, option in ((13, "truncate"), (18, "floor")):
        name = case(f"onnx/ReduceMean-{version}", "int32", "halves")
        tables.add(result(case=name, behaviour={"integer-rounding": [option]}), None)
    assert (
        "  integer-rounding differs:\n"
        "    truncate: int32 in onnx/ReduceMean 13\n"
        "      shown by onnx/ReduceMean-13/int32/3x2x2/-/halves\n"
        "    floor: int32 in onnx/ReduceMean 18\n"
        "      shown by onnx/ReduceMean-18/int32/3x2x2/-/halves"
    ) in printed(tables)


def test_an_accumulator_that_differs_between_versions_says_where() -> None:
    tables = filled()
    name = case("onnx/ReduceMean-18", "float16", "beside-2^10")
    tables.add(result(case=name), accuracy("float16", Grade.NARROW, 1024.0))
    text = printed(tables, 200)
    assert "  adds up like float32: float16 in onnx/ReduceMean 11, 13\n" in text
    assert "  adds up like bfloat16: float16 in onnx/ReduceMean 18\n" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_printed_where_nothing_is_known(width: int) -> None:
    assert printed(ArithmeticTables(), width) == ""


def test_hostile_names_show_as_text() -> None:
    tables = ArithmeticTables()
    name = case("onnx/Reduce\x1b[31m-13", "int32", "halves")
    tables.add(result(case=name, behaviour={"[bold]": ["a\x1bb"]}), None)
    text = printed(tables)
    assert "\x1b" not in text
    assert "[bold]" in text


def test_all_of_it_is_json_by_backend() -> None:
    told = filled().to_dict()
    assert told["accuracy"]["alpha"]["onnx/ReduceMean-11"]["float32"]["grade"] == "correctly-rounded"
    (shown,) = told["behaves_like"]["alpha"]["probe-accumulator"]
    assert shown["where"] == {"onnx/ReduceMean-11": ["float16"], "onnx/ReduceMean-13": ["float16"]}
    assert told["declared_arithmetic"]["alpha"][0]["evidence"] == "contradicted"
    assert "declared_arithmetic" not in ArithmeticTables().to_dict()

"""Several backends in a terminal: one table, readable in 80 columns, with ten backends, and without colours."""

from __future__ import annotations

import io
import re

import pytest
from fakes.results import case, invalid, result
from rich.console import Console

from opconform.cases.results import Result
from opconform.reports.tally import Behaviours, Failures, Tally
from opconform.reports.terminal import SECTIONS, Summary, print_summary

OPERATORS = [f"onnx/ReduceMean-{version}" for version in (1, 11, 13, 18)]
TEN = ["onnxruntime", "onnxruntime-noopt", "onnx-reference", "openvino-onnx", "python:my_module:Backend"]
TEN += [f"onnx-backend:package.module{index}:Backend" for index in range(5)]


def printed(*results: Result, width: int = 80, declared: bool = False, color: bool = False, versions: str = "") -> str:
    tally, behaviours, failures = Tally(), Behaviours(), Failures()
    for one in results:
        tally.add(one)
        failures.add(one)
    told = Summary(tally, behaviours, failures, tally.exit_code(), dict.fromkeys(tally.backends, versions))
    told.declared = declared
    out = io.StringIO()
    system = "standard" if color else None
    print_summary(Console(file=out, width=width, force_terminal=color, color_system=system), told, SECTIONS)
    return out.getvalue().partition("backends: ")[2]


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def of(backend: str, wrong: str = "") -> list[Result]:
    names = [case(operator, types) for operator in OPERATORS for types in ("float16", "float32", "int64")]
    return [result("wrong-value" if wrong and wrong in name else "pass", name, backend) for name in names]


def ten(wrong: str = "") -> list[Result]:
    """Return results of ten backends, of which no two have the same figures."""
    found = [one for name in TEN for one in of(name, wrong)]
    names = [case(types="int8", fill=f"f{n}") for n in range(len(TEN))]
    return found + [result("unsupported", case, name) for n, name in enumerate(TEN) for case in names[:n]]


def test_operator_versions_are_rows_and_backends_columns() -> None:
    rows = table(printed(*of("alpha"), *of("beta", "ReduceMean-13"), versions="2.0"))
    assert ["alpha", "2.0:", "12", "pass"] in rows
    assert ["beta", "2.0:", "9", "pass,", "3", "wrong-value"] in rows
    assert ["alpha", "beta"] in rows
    assert ["correctness", "100%", "75%"] in rows
    start = rows.index(["onnx/ReduceMean-11", "100%", "100%"])
    assert rows[start + 1 : start + 3] == [["onnx/ReduceMean-13", "100%", "0%"], ["onnx/ReduceMean-18", "100%", "100%"]]


def test_types_are_told_where_a_backend_is_wrong_and_share_a_row_where_they_are_alike() -> None:
    results = [*of("alpha", "float16"), *of("beta", "int64")]
    rows = table(printed(*results))
    start = rows.index(["onnx/ReduceMean-18", "66.6%", "66.6%"])
    assert rows[start + 1 : start + 3] == [["float16", "0%", "100%"], ["int64", "100%", "0%"]]
    assert not any(row[:1] == ["float32"] for row in rows)
    shared = [one for name in ("float16", "float32", "int64") for one in of("beta", name) if name in one.case]
    shared = [result(case=one.case, backend="beta") if "float32" in one.case else one for one in shared]
    assert ["float16", "int64", "100%", "0%"] in table(printed(*of("alpha"), *shared))
    together = table(printed(*of("alpha"), *of("beta", "onnx/ReduceMean-18")))
    assert not any(row[:1] == ["float16"] for row in together)


def test_a_backend_of_another_standard_leaves_its_cells_empty_and_one_without_support_has_a_dash() -> None:
    other = result(case=case("openvino/ReduceMean-1"), backend="beta")
    text = printed(*of("alpha"), other, result("unsupported", case("onnx/Mean-13"), "alpha"))
    rows = table(text)
    assert ["onnx/Mean-13", "\N{EN DASH}"] in rows
    assert ["openvino/ReduceMean-1", "100%"] in rows
    line = next(line for line in text.splitlines() if line.startswith("openvino/ReduceMean-1"))
    assert line.index("100%") > next(line for line in text.splitlines() if "alpha  beta" in line).index("beta") - 4


def test_ten_backends_fit_eighty_columns_by_their_numbers() -> None:
    text = printed(*ten("float16"))
    assert "   5  python:my_module:Backend: 8 pass, 4 wrong-value, 4 unsupported\n" in text
    assert "  10  onnx-backend:package.module4:Backend" in text
    assert ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"] in table(text)
    assert ["onnx/ReduceMean-18", *["66.6%"] * 10] in table(text)
    assert all(len(line) <= 80 for line in text.splitlines() if line.startswith(("onnx/", "  float", "correct")))


def test_what_does_not_fit_goes_on_below_and_no_column_is_lost() -> None:
    text = printed(*ten(), width=40)
    numbers = [row for row in table(text) if row and all(cell.isdigit() for cell in row)]
    assert len(numbers) > 1
    assert [cell for row in numbers for cell in row] == [str(number) for number in range(1, 11)]


@pytest.mark.parametrize("width", [1, 10])
def test_a_terminal_too_narrow_for_anything_still_has_every_backend(width) -> None:
    text = printed(*of("alpha"), *of("beta", "int64"), width=width)
    assert "alpha: 12 pass" in text
    assert "beta: 8 pass, 4 wrong-value" in text


def test_declared_arithmetic_adds_its_row() -> None:
    results = [result(level="declared", backend="alpha"), result(backend="beta")]
    assert ["as", "declared", "100%", "100%"] in table(printed(*results, declared=True))
    assert "declared" not in printed(*results)


def test_refusal_is_a_row_of_its_own() -> None:
    results = [result(), invalid("pass"), result(backend="beta"), invalid("accepted-invalid", backend="beta")]
    assert ["refusal", "100%", "0%"] in table(printed(*results))


def test_colours_are_for_terminals_alone_and_say_nothing_that_the_figures_do_not() -> None:
    results = [*of("alpha"), *of("beta", "int64")]
    plain, colored = printed(*results), printed(*results, color=True)
    assert "\x1b[" not in plain
    assert "\x1b[" in colored
    assert table(re.sub(r"\x1b\[[0-9;]*m", "", colored)) == table(plain)


def test_a_hostile_name_is_text() -> None:
    text = printed(*of("[bold]x\x1b[2J\n"), *of("beta"))
    assert "[bold]x\\x1b[2J" in text
    assert "\x1b" not in text

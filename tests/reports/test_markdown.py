"""The page for a job's summary: short, the worst first, and whatever is said in it is text."""

from __future__ import annotations

import re

import pytest
from fakes.results import case, invalid, result
from markdown_it import MarkdownIt

from opconform.cases.results import Result
from opconform.reports.markdown import markdown_summary
from opconform.reports.tally import Behaviours, Failures, Tally
from opconform.reports.terminal import Summary
from opconform.reports.text import markdown_code

LIMIT = 1 << 20  # bytes that GitHub takes for a step's summary
HOSTILE = "<script>alert(1)</script> | `x` [a](b) **c** \x1b[31m\n# head\n![i](https://example.org/i.png) @all"


def page(*results: Result, problems: tuple[str, ...] = ()) -> str:
    tally, failures = Tally(), Failures()
    for one in results:
        tally.add(one)
        failures.add(one)
    told = Summary(tally, Behaviours(), failures, tally.exit_code(len(problems)), dict.fromkeys(tally.backends, "1"))
    told.problems = problems
    return markdown_summary(told)


def test_the_worst_stand_first() -> None:
    text = page(
        result("wrong-value", case("onnx/Mean-13"), "beta"),
        result("error", case(types="int8"), "beta"),
        result("crash", case("onnx/Mean-1"), "beta"),
        result(backend="alpha"),
    )
    assert text.startswith("## opconform: non-conformant\n")
    assert text.index("| beta 1 |") < text.index("| alpha 1 |")
    assert text.index("| crash on beta") < text.index("| wrong-value on beta") < text.index("| error on beta")


def test_a_conformant_run_says_so_and_little_else() -> None:
    text = page(result(), invalid("pass"))
    assert text.startswith("## opconform: conformant\n")
    assert len(text.splitlines()) < 10


def test_hostile_text_is_text() -> None:
    text = page(result("error", case(fill=HOSTILE), HOSTILE, detail=HOSTILE), problems=(HOSTILE,))
    shown = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "alert(1)" in shown
    assert not re.search(r"<(script|a|img|strong|em|h1)\b", shown)
    assert "\x1b" not in shown
    assert shown.count("<h2>") == 1
    assert shown.count("<table>") == 3


@pytest.mark.parametrize("kinds", [1, 400])
def test_a_page_is_far_below_the_limit_of_a_job_s_summary(kinds) -> None:
    long = "x" * 1_000_000
    results = [
        result("error", case(f"onnx/Op{i}-1"), f"{long}{i}", detail=long) for i in range(kinds if kinds < 9 else 0)
    ]
    results += [result("error", case(f"onnx/Op{i}-1"), f"backend-{i}", detail="x" * 1000) for i in range(kinds)]
    assert len(page(*results).encode()) < LIMIT


@pytest.mark.parametrize("text", ["a`b", "a``b <script>", "```", "a | b", "plain"])
def test_code_in_a_table_ends_where_it_is_meant_to(text: str) -> None:
    told = markdown_code(text)
    fence = re.match("`+", told)[0]  # type: ignore[index]
    assert told.endswith(fence)
    assert fence not in re.findall("`+", told[len(fence) : -len(fence)])
    assert "|" not in told.replace("\\|", "")

"""The list of cases and the page of one in a real browser: filters are the address, a failure leads to its script."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.results import HOSTILE, LARGE, MESSAGE, RIGHT, SUM, WHOLE, write_site_results

from opconform.reports.runs import put_together
from opconform.reports.site.build import write_site

pytestmark = pytest.mark.slow

ROWS = "#list .tabulator-row"
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def cases_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of three cases and two backends, one of which has a hostile name and fails them all."""
    folder = tmp_path_factory.mktemp("cases-site")
    write_site(put_together([write_site_results(folder / "results")]), folder / "site")
    return folder / "site"


@pytest.fixture
def opened(page: Any, cases_site: Path) -> Open:
    """Opens a page of that site, and waits for what it loads."""

    def go(path: str, ready: str = "body[data-ready]", width: int = 1440) -> Any:
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{cases_site.as_uri()}/{path}")
        page.wait_for_selector(ready, state="attached")
        return page

    return go


def told(page: Any) -> str:
    return str(page.locator("#count").inner_text())


def query(page: Any) -> dict[str, str]:
    return dict(page.evaluate("Object.fromEntries(new URLSearchParams(location.search))"))


def test_a_filter_changes_the_table_the_count_and_the_address(opened: Open) -> None:
    page = opened("cases.html")
    assert (told(page), page.locator(ROWS).count()) == ("3 cases", 3)
    page.locator("select[name=type]").select_option("int64")
    page.wait_for_function("document.getElementById('count').textContent.startsWith('1 of')")
    page.wait_for_function("document.querySelectorAll('#list .tabulator-row').length === 1")
    assert query(page) == {"type": "int64"}
    page.get_by_role("button", name="Clear filters").click()
    page.wait_for_function("document.querySelectorAll('#list .tabulator-row').length === 3")
    assert query(page) == {}


def test_the_search_reads_ids_and_what_backends_said(opened: Open) -> None:
    page = opened("cases.html")
    for text, case in (("BEYOND-2^53", WHOLE), ("long long", LARGE)):
        page.get_by_label("Search", exact=True).fill(text)
        page.locator(f'{ROWS} a[aria-label="{case}"]').wait_for()
        page.wait_for_function("document.querySelectorAll('#list .tabulator-row').length === 1")
        assert (query(page), told(page)) == ({"q": text}, "1 of 3 cases")
    page.get_by_label("Search", exact=True).fill("nowhere")
    page.get_by_text("No case matches.").wait_for()
    assert told(page) == "0 of 3 cases"


ADDRESSES = {
    "outcome=failed": 3,
    f"outcome=failed&backend={RIGHT}": 0,
    "operator=onnx/Reduce*&type=float32": 1,
    "operator=onnx/ReduceMean-13": 0,
    "operator=mean-18": 3,
    "standard=openvino": 0,
    "clause=onnx/ReduceMean%23mean&outcome=wrong-value": 2,
    "clause=mean": 3,
    "outcome=error&differ=1": 1,
    "outcome=not-run": 0,
}


def test_an_address_selects_the_cases_that_it_names(opened: Open) -> None:
    page = opened("cases.html")
    count = "async (address) => { const cases = await opconformCases.load(); return cases.select("
    count += "opconformCases.viewOf(new URLSearchParams(address)), null).length; }"
    assert {address: page.evaluate(count, address) for address in ADDRESSES} == ADDRESSES


def test_a_shared_address_gives_the_same_view(opened: Open) -> None:
    page = opened("cases.html?clause=onnx/ReduceMean%23mean&outcome=wrong-value&operator=onnx/*&differ=1&type=int64")
    assert told(page) == "1 of 3 cases"
    fields = page.evaluate("Object.fromEntries(new FormData(document.getElementById('filters')))")
    assert {name: value for name, value in fields.items() if value} == query(page)


def test_a_column_sorts_and_the_address_keeps_it(opened: Open) -> None:
    page = opened("cases.html")
    page.locator(".tabulator-col", has_text="Types").click()
    page.wait_for_function("location.search === '?sort=types'")
    types = page.locator(f'{ROWS} [tabulator-field="types"]').all_inner_texts()
    assert types == ["float16", "float32", "int64"]
    again = opened("cases.html?sort=-types")
    assert again.locator(f'{ROWS} [tabulator-field="types"]').all_inner_texts() == types[::-1]


def test_from_a_failing_row_to_a_script_that_can_be_copied(opened: Open, context: Any) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = opened("cases.html?outcome=failed&type=int64")
    page.locator(f"{ROWS} a").first.focus()
    page.keyboard.press("Enter")
    pane = page.locator("#pane")
    pane.get_by_role("button", name="Copy script").wait_for()
    assert query(page)["case"] == WHOLE
    script = pane.locator(".script pre").first.text_content()
    assert "INPUTS = " in script
    pane.get_by_role("button", name="Copy script").click()
    pane.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == script
    page.keyboard.press("Escape")
    assert pane.is_hidden()
    assert page.evaluate("document.activeElement.dataset.number") is not None


def test_a_case_shows_what_was_wrong_in_numbers_and_as_a_heat_map(opened: Open) -> None:
    page = opened(f"case.html?id={SUM}", ".chart svg")
    assert page.locator(".verdict-line").inner_text().startswith("1 of 6 elements wrong")
    assert page.locator(".chart").first.get_attribute("aria-label") == "Differences: 1 of 6 elements wrong"
    mismatch = page.locator(".answer .box tbody tr").first.inner_text()
    assert mismatch.startswith("[0, 0, 0]")
    page.get_by_label("numbers").select_option("hex")
    assert "0x1." in page.locator(".answer .box tbody tr").first.inner_text()


def test_the_columns_of_a_case_s_outcomes_stand_below_their_heads(opened: Open) -> None:
    page = opened(f"case.html?id={SUM}", "#case .outcomes")
    rows = page.locator(".outcomes tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => [cell, row].map((one) => "
        "one.getBoundingClientRect()).flatMap((box) => [box.left, box.right, box.bottom])))"
    )
    heads, *others = rows
    assert len(heads) == 3
    assert others
    for row in others:
        assert [(round(left), round(right)) for left, right, *_ in row] == [
            (round(left), round(right)) for left, right, *_ in heads
        ]
        assert row[0][2] > heads[0][2]  # below, not beside


def test_on_a_phone_a_message_has_the_width_of_the_page(opened: Open) -> None:
    page = opened(f"case.html?id={SUM}", "#case .outcomes", 390)
    widths = page.locator(".outcomes tbody tr").evaluate_all(
        "rows => rows.map((row) => [row, row.cells[2]].map((one) => one.getBoundingClientRect().width))"
    )
    assert len(widths) > 1
    assert all(message == row > 300 for row, message in widths)
    assert page.locator(".box:has(.outcomes)").evaluate("box => box.scrollWidth <= box.clientWidth")


def test_the_names_below_many_bars_of_errors_do_not_overlap(opened: Open) -> None:
    page = opened(f"case.html?id={SUM}", ".chart svg")
    page.evaluate("""() => {
        const steps = [...Array(30).keys()].map((step) => step - 40);
        const told = { histogram: { steps, counts: steps.map(() => 1), apart: 0 } };
        document.querySelector("main").append(window.opconformParts.histogram(told));
    }""")
    names = page.locator("[aria-label^='Errors in ulp: 1 at'] g[aria-label^='x-axis tick label'] text")
    names.first.wait_for(state="attached")
    spans = names.evaluate_all(
        "all => all.map((name) => name.getBoundingClientRect()).filter((box) => box.width)"
        ".map((box) => [box.left, box.right])"
    )
    assert len(spans) >= 8, spans
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans)), spans


def test_a_case_leads_to_its_neighbours_in_the_list_that_it_was_opened_from(opened: Open) -> None:
    page = opened(f"case.html?id={SUM}&outcome=wrong-value", ".neighbours")
    assert page.locator(".neighbours .soft").inner_text() == "1 of 2"
    page.get_by_role("link", name="Next").click()
    page.wait_for_selector(".neighbours")
    assert query(page) == {"id": WHOLE, "outcome": "wrong-value"}


def test_a_hostile_name_and_message_show_as_text(opened: Open) -> None:
    page = opened(f"case.html?id={LARGE}", ".outcomes")
    said = page.locator(".said").inner_text()
    assert said.startswith("<img src=x onerror=alert(1)></script>\\u202e\\x1b[31mlong")
    assert said.endswith(f"{len(MESSAGE):,} characters in all)")
    assert "</script><script>alert(1)</script>" in page.locator(".outcomes").inner_text()
    assert page.locator("img").count() == 0
    page = opened("cases.html?view=kinds")
    assert page.locator("#kinds-list tbody tr").count() == 3
    assert page.locator("img").count() == 0
    page = opened("cases.html")
    assert "\\u202eevil" in page.locator(".tabulator-header").inner_text()
    page.locator("select[name=backend]").select_option(index=2)
    page.wait_for_function("location.search.startsWith('?backend=')")
    assert query(page)["backend"] == HOSTILE


def test_an_id_that_is_not_there_is_told_as_text(opened: Open) -> None:
    page = opened("case.html?id=%3Cimg%20src=x%20onerror=alert(1)%3E", "#case .note")
    assert "<img src=x onerror=alert(1)>" in page.locator("#case .note").inner_text()


def test_the_list_can_be_taken_away_as_ids_and_as_csv(opened: Open, context: Any) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = opened("cases.html?outcome=wrong-value")
    page.get_by_role("button", name="Copy ids").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").split("\n") == [SUM, WHOLE]
    assert page.locator("#select-line").inner_text() == f"--select '{SUM}' --select '{WHOLE}'"
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert len(lines) == 3
    assert lines[1].split(",")[0] == SUM.split(",", maxsplit=1)[0]


def test_on_a_phone_a_row_opens_the_page_of_its_case(opened: Open) -> None:
    page = opened("cases.html?type=int64", width=390)
    page.locator(f"{ROWS} a").first.click()
    page.wait_for_selector(".outcomes")
    assert query(page)["id"] == WHOLE
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


NUMBERS = [
    ("float32", 0.10000000149011612, "0.1", "0.100000001490116119384765625", "0x1.99999ap-4"),
    ("float16", 0.0999755859375, "0.1", "0.0999755859375", "0x1.998p-4"),
    ("float64", 5e-324, "5e-324", None, "0x0.0000000000001p-1022"),
    ("bfloat16", -3.140625, "-3.14", "-3.140625", "-0x1.92p+1"),
    ("float32", 0.0, "0", "0", "0x0.0p+0"),
]


def test_numbers_are_written_shortest_exactly_and_in_hexadecimal(opened: Open) -> None:
    page = opened("cases.html")
    for kind, value, shortest, exact, bits in NUMBERS:
        written = page.evaluate(
            "([kind, value]) => ['', 'exact', 'hex'].map((n) => opconformNumbers.text(kind, value, n))", [kind, value]
        )
        assert written[0] == shortest
        assert exact is None or written[1] == exact
        assert float.fromhex(written[2]) == float.fromhex(bits) == value
    assert json.loads(page.evaluate("JSON.stringify(opconformNumbers.text('int64', -(2n ** 63n), 'exact'))")) == str(
        -(2**63)
    )

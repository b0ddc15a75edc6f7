"""The site in a real browser, from files: every page opens, filters and theme work, and it can be used by all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.results import case, result, write_folder

from opconform.reports.runs import put_together
from opconform.reports.site.build import write_site

pytestmark = pytest.mark.slow

PAGES = [
    "index.html",
    "matrix.html",
    "cases.html",
    "silences.html",
    "waivers.html",
    "backends/onnxruntime.html",
    "operators/onnx-ReduceMean-18.html",
    "operators/openvino-ReduceMean-1.html",
]
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
AXE_CONTEXT = "{exclude: ['.tabulator']}"  # a library's table, whose roles are its own
AXE_OPTIONS = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice'], preload: false}"


@pytest.fixture
def opened(page: Any, site: Path) -> Callable[[str], Any]:
    """Opens a page of the site."""

    def go(path: str) -> Any:
        page.goto(f"{site.as_uri()}/{path}")
        return page

    return go


def shown(page: Any, selector: str) -> int:
    return page.locator(selector).locator("visible=true").count()


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_from_a_file_and_does_not_scroll_sideways(opened: Any, path: str) -> None:
    page = opened(path)
    assert page.locator("h1").inner_text()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_fault_that_keeps_people_out(opened: Any, path: str) -> None:
    page = opened(path)
    page.add_script_tag(path=str(AXE))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found = page.evaluate(f"axe.run({AXE_CONTEXT}, {AXE_OPTIONS})")
        told = [(v["id"], [n["html"][:300] for n in v["nodes"][:3]]) for v in found["violations"]]
        assert (theme, told) == (theme, [])


def test_every_link_leads_to_a_file_of_the_site(opened: Any, site: Path) -> None:
    for path in PAGES:
        page = opened(path)
        targets = page.evaluate("[...document.links].map((link) => link.href).filter((h) => h.startsWith('file:'))")
        assert targets
        files = {target.split("#")[0].split("?")[0].removeprefix(site.as_uri() + "/") for target in targets}
        assert [name for name in files if not (site / name).is_file()] == []


def test_filters_of_the_matrix_narrow_it_and_are_in_the_address(opened: Any) -> None:
    page = opened("matrix.html")
    rows = "#matrix tr[data-operator]"
    whole = shown(page, rows)
    page.locator("input[name=operator]").fill("reducemean-18")
    assert 0 < shown(page, rows) < whole
    assert page.url.endswith("?operator=reducemean-18")
    page.locator("#columns").click()
    for box in page.locator(".choose input").all()[1:]:
        box.uncheck()
    assert page.locator("#columns").inner_text() == "onnxruntime"
    page.locator("select[name=type]").select_option("int64")
    page.wait_for_function("document.querySelector('#matrix tr:not([hidden]) a.mark').href.includes('type=int64')")
    address = page.url
    cells = page.locator(f"{rows} td").locator("visible=true").all_inner_texts()
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_function("document.querySelector('#matrix tr:not([hidden]) a.mark').href.includes('type=int64')")
    assert page.locator(f"{rows} td").locator("visible=true").all_inner_texts() == cells
    assert len(cells) == 1
    page.get_by_role("button", name="Clear").click()
    page.wait_for_function("!location.search")
    assert shown(page, rows) == whole


def test_columns_can_be_left_out_and_rows_alike_in_all_hidden(opened: Any) -> None:
    page = opened("matrix.html?backend=onnxruntime&backend=onnx-reference")
    assert page.locator("#columns").inner_text() == "2 of 3 backends"
    heads = page.locator("#matrix thead th").locator("visible=true").all_inner_texts()
    assert [head.split()[0] for head in heads] == ["operator", "onnxruntime", "onnx-reference"]
    rows = page.locator("#matrix tr[data-operator]").locator("visible=true")
    assert rows.count() == 2  # openvino's has no cell in these columns
    page.locator("#columns").click()
    page.locator(".choose input").last.check()
    assert rows.count() == 3
    page.locator("input[name=differ]").check()
    assert page.url.endswith("?differ=1")
    shares = [row.locator("td:visible b").all_inner_texts() for row in rows.all()]
    assert 0 < len(shares) < 3  # Mean is the same in some releases of onnxruntime
    assert all(len(set(row)) > 1 for row in shares)


def test_a_family_folds_and_unfolds(opened: Any) -> None:
    page = opened("matrix.html")
    rows = "#matrix tr[data-operator]"
    whole = shown(page, rows)
    button = page.get_by_role("button", name="reduction").first
    button.click()
    assert (button.get_attribute("aria-expanded"), shown(page, rows)) == ("false", whole - 2)
    page.get_by_role("button", name="Unfold all").click()
    assert (button.get_attribute("aria-expanded"), shown(page, rows)) == ("true", whole)


@pytest.mark.parametrize("path", ["index.html", "operators/onnx-ReduceMean-18.html", "cases.html"])
def test_the_search_of_every_page_leads_to_operators_and_cases(opened: Any, path: str) -> None:
    page = opened(path)
    page.locator("h1").click()
    page.keyboard.press("/")
    page.keyboard.type("reducemean 18")
    page.wait_for_selector("#found a >> text=onnx/ReduceMean-18")
    found = page.locator("#found a").all_inner_texts()
    assert found == ["onnx/ReduceMean-18", 'Cases with "reducemean 18"']
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/operators/onnx-ReduceMean-18.html")
    page.locator("#find").fill("onnx-ref")
    page.wait_for_selector("#found a >> text=onnx-reference")
    page.keyboard.press("Enter")
    page.wait_for_url("**/backends/onnx-reference.html")


@pytest.mark.parametrize("path", ["index.html", "backends/onnxruntime.html"])
def test_no_text_is_cut_off(opened: Any, path: str) -> None:
    page = opened(path)
    cut = """[...document.querySelectorAll("main *:not(.unseen):not(.share)")]
      .filter((one) => one.checkVisibility() && getComputedStyle(one).display !== "inline"
        && one.scrollWidth > one.clientWidth + 1).map((one) => one.outerHTML)"""
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(cut) == []


def test_the_overview_is_read_at_a_glance(opened: Any) -> None:
    page = opened("index.html")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate("document.documentElement.scrollHeight") <= 1200


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a timeline: of two operators in two releases, one of which changes."""
    place = tmp_path_factory.mktemp("releases")
    names = [case("onnx/Cast-13"), case("onnx/ReduceMean-18")]
    old, new = [
        write_folder(
            place / version,
            [result(outcome, names[0]), result(case=names[1])],
            versions={"alpha": version},
            selection=[],
            machine={},
            command=[],
            options={},
        )
        for version, outcome in (("1.0", "wrong-value"), ("2.0", "pass"))
    ]
    write_site(put_together([new]), place / "site", before=[old])
    return f"{(place / 'site').as_uri()}/timeline.html"


def test_the_timeline_shows_what_changed_and_by_choice_all(page: Any, releases: str) -> None:
    page.goto(releases)
    rows = page.locator("#timeline tr[data-operator]").locator("visible=true")
    assert rows.all_inner_texts()[0].split() == [
        "onnx/Cast-13",
        "0%",
        "0/1",
        "100%",
        "1/1",
        "\N{UPWARDS ARROW}",
        "better",
    ]
    assert rows.count() == 1
    page.locator("input[name=changed]").uncheck()
    assert (rows.count(), page.url.endswith("?all=1")) == (2, True)
    page.locator("input[name=operator]").fill("mean")
    assert rows.count() == 1
    page.add_script_tag(path=str(AXE))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found = page.evaluate(f"axe.run({AXE_CONTEXT}, {AXE_OPTIONS})")
        assert (theme, [v["id"] for v in found["violations"]]) == (theme, [])
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a matrix with more rows than are shown at once, half of which have a type of their own."""
    place = tmp_path_factory.mktemp("large")
    names = [case(f"onnx/Operator{n}-1", "int64" if n % 2 else "float32") for n in range(300)]
    folder = write_folder(place / "results", [result(case=name) for name in names])
    write_site(put_together([folder]), place / "site")
    return f"{(place / 'site').as_uri()}/matrix.html"


def test_a_filter_shows_the_first_rows_at_once_and_then_all(page: Any, large: str) -> None:
    page.goto(large)
    rows = "document.querySelectorAll('#matrix tr[data-operator]:not([hidden])')"
    assert page.evaluate(f"{rows}.length") == 300
    page.locator("select[name=type]").select_option("int64")
    page.wait_for_function(f"{rows}.length === 150")
    assert page.locator("#count").inner_text() == "150 of 300 operator versions"
    assert page.evaluate(f"[...{rows}].every((row) => row.querySelector('a.mark').href.includes('type=int64'))")
    page.get_by_role("button", name="Clear").click()
    page.wait_for_function(f"{rows}.length === 300")


def test_what_is_printed_are_all_rows(page: Any, large: str) -> None:
    page.add_init_script("window.requestIdleCallback = () => 0;")
    page.goto(f"{large}?type=int64")
    rows = "document.querySelectorAll('#matrix tr[data-operator]:not([hidden])')"
    page.wait_for_function(f"{rows}.length === 60")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(f"{rows}.length") == 150


def test_a_row_of_the_matrix_opens_by_key_into_its_types(opened: Any) -> None:
    page = opened("matrix.html")
    button = page.get_by_role("button", name="Types of onnx/ReduceMean-18")
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("tr.of-type")
    assert button.get_attribute("aria-expanded") == "true"
    assert {"float32", "int64"} <= set(page.locator("tr.of-type th").all_inner_texts())
    page.keyboard.press("Enter")
    assert page.locator("tr.of-type").count() == 0


def test_a_standard_shows_only_the_columns_of_backends_that_ran_it(opened: Any) -> None:
    page = opened("matrix.html?standard=openvino")
    heads = page.locator("#matrix thead th[data-backend]").locator("visible=true")
    assert [one.get_attribute("data-backend") for one in heads.all()] == ["openvino"]
    page.locator("select[name=standard]").select_option("onnx")
    page.wait_for_function("document.querySelector('#matrix thead th[data-backend=openvino]').hidden")
    assert heads.count() == 2
    page.locator("select[name=standard]").select_option("")
    page.wait_for_function("!document.querySelector('#matrix thead th[data-backend=openvino]').hidden")
    assert heads.count() == 3


def test_an_outcome_that_a_backend_does_not_have_leaves_no_row(opened: Any) -> None:
    page = opened("matrix.html?outcome=failed&backend=onnxruntime")
    kept = page.locator("#matrix tr[data-operator]").locator("visible=true")
    links = kept.locator("td:visible a").evaluate_all("links => links.map((link) => link.href)")
    assert links
    assert all("outcome=failed" in link and "backend=onnxruntime" in link for link in links)


def test_a_red_cell_leads_to_its_cases_and_one_of_them_to_its_script(opened: Any) -> None:
    page = opened("matrix.html")
    page.locator("#matrix a.mark[href*='outcome=failed']").first.click()
    page.wait_for_selector("a[href*='case.html?id=']")
    page.locator("a[href*='case.html?id=']").first.click()
    page.wait_for_selector("text=/reproduce/i")


def test_marks_of_an_operator_page_link_to_their_cases(opened: Any) -> None:
    page = opened("operators/onnx-ReduceMean-18.html")
    links = page.locator("table[data-cases] a.mark").evaluate_all("links => links.map((link) => link.search)")
    assert all(link.startswith("?operator=onnx/ReduceMean-18&") for link in links)
    assert any("&backend=onnxruntime&" in link and link.endswith("outcome=failed") for link in links)
    page.locator("[id^=clause-] a.mark").first.click()
    page.wait_for_selector("a[href*='case.html?id=']")


def test_the_worst_failures_lead_to_their_cases(opened: Any) -> None:
    page = opened("index.html")
    id_ = page.locator(".failure .first a").first.inner_text()
    page.locator(".failure .first a").first.click()
    page.wait_for_function("(id) => document.body?.innerText.includes(id)", arg=id_)


def test_the_theme_is_switched_and_kept(opened: Any) -> None:
    page = opened("index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    button = page.get_by_role("button", name="theme")
    assert button.inner_text() == "Dark theme"
    button.click()
    assert button.inner_text() == "Light theme"
    dark = page.evaluate(background)
    assert dark != light
    opened("matrix.html")
    assert page.evaluate(background) == dark
    button.click()
    assert page.evaluate(background) == light
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.getElementById('theme').textContent === 'Light theme'")
    assert page.evaluate(background) == dark


def test_what_the_system_prefers_is_the_theme_until_it_is_switched(opened: Any) -> None:
    page = opened("index.html")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) != light


def test_a_search_of_silences_is_in_the_address(opened: Any) -> None:
    page = opened("silences.html")
    whole = shown(page, "#silences tr[data-text]")
    page.locator("input[data-rows]").fill("integer")
    found = shown(page, "#silences tr[data-text]")
    assert 0 < found < whole
    assert page.url.endswith("?q=integer")
    page.reload()
    assert shown(page, "#silences tr[data-text]") == found


def test_the_first_key_leads_past_the_navigation(opened: Any) -> None:
    page = opened("index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def test_marks_keep_their_symbols_in_print(opened: Any) -> None:
    page = opened("matrix.html")
    page.emulate_media(media="print")
    mark = "document.querySelector('#matrix a.mark')"
    assert page.evaluate(f"getComputedStyle({mark}, '::before').content") not in ("none", "")
    assert not page.locator("header.bar").is_visible()

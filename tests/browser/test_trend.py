"""The page of trends in a real browser: charts in both themes, figures as a table, nothing that keeps people out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes.results import case, result, write_folder

from opconform.reports.history.database import add
from opconform.reports.runs import put_together
from opconform.reports.site.build import write_site

pytestmark = pytest.mark.slow

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
TOLD = {"selection": [], "strength": 2, "draws": 1, "seed": 0, "machine": {}, "command": [], "options": {}}


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of two backends and three nights."""
    place = folder = tmp_path_factory.mktemp("trend")
    for night in (1, 2, 3):
        kept = [result(case=case(fill=fill), backend=name) for fill in ("ramp", "large") for name in ("alpha", "beta")]
        kept += [result("wrong-value" if night > 1 else "pass", case(), "alpha", detail="element [0]")]
        folder = write_folder(
            place / f"night-{night}", kept, night=night, versions={"alpha": f"{night}.0", "beta": "1"}, **TOLD
        )
        add(place / "h.duckdb", [folder])
    write_site(put_together([folder]), place / "site", place / "h.duckdb")
    return f"{(place / 'site').as_uri()}/trend.html"


def test_the_charts_are_drawn_and_follow_the_theme(page: Any, address: str) -> None:
    page.goto(address)
    line = page.locator("figure[data-chart=shares] svg g[aria-label=line] path").last
    assert page.locator("figure svg").count() == 4
    light = line.evaluate("e => getComputedStyle(e.closest('g')).stroke + getComputedStyle(e).stroke")
    page.locator("#theme").click()
    page.wait_for_function(
        "old => { const e = [...document.querySelectorAll('figure[data-chart=shares] svg g[aria-label=line] path')]"
        ".pop(); return e && getComputedStyle(e.closest('g')).stroke + getComputedStyle(e).stroke !== old; }",
        arg=light,
    )


def test_the_figures_are_there_as_a_table(page: Any, address: str) -> None:
    page.goto(address)
    page.locator("details.figures summary").first.click()
    rows = page.locator("details.figures").first.locator("tbody tr")
    assert rows.count() == 3
    assert rows.first.inner_text().split()[:3] == ["3", "2026-01-03", "3.0"]


def test_it_fits_a_phone_and_keeps_nobody_out(page: Any, address: str) -> None:
    page.goto(address)
    page.add_script_tag(path=str(AXE))
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice'], preload: false})")
        told = [(v["id"], [n["html"][:300] for n in v["nodes"][:3]]) for v in found["violations"]]
        assert (theme, told) == (theme, [])
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

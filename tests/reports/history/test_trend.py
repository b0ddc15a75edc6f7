"""The site's page of trends: figures of every run, and what changed last, with links to the site's cases."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from fakes.results import case, result, write_folder

from opconform.reports.history.database import add
from opconform.reports.runs import put_together
from opconform.reports.site.build import write_site

UNIFORM, RAMP, LARGE = (case(fill=fill) for fill in ("uniform", "ramp", "large"))
EVIL = "<script>alert(1)</script>'\"&"
TOLD = {"selection": [], "strength": 2, "draws": 1, "seed": 0, "machine": {}, "command": [], "options": {}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the last of three nights, in which a case began to fail and another was gone."""
    place = tmp_path_factory.mktemp("trend")
    folder = place
    for night in (1, 2, 3):
        kept = [result(case=RAMP, backend=backend) for backend in ("alpha", EVIL)]
        kept += [result("wrong-value" if night == 3 else "pass", UNIFORM, "alpha", detail=EVIL)]
        kept += [result(case=LARGE)] if night < 3 else []
        versions = {"alpha": "1.0" if night < 3 else "2.0", EVIL: EVIL}
        folder = write_folder(place / f"night-{night}", kept, night=night, versions=versions, **TOLD)
        add(place / "h.duckdb", [folder])
    write_site(put_together([folder]), place / "site", place / "h.duckdb")
    return place / "site"


@pytest.mark.slow
def test_the_page_has_every_run_and_what_changed_last(site: Path) -> None:
    page = (site / "trend.html").read_text()
    text = " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())
    assert "alpha 2.0 Run 3 of 2026-01-03: 50% correct, 100% supported, 1 failure." in text
    assert "Since run 2 (version 1.0): 1 regression, 1 gone." in text
    assert re.findall(r'<th scope="row" class="num">(\d)</th>', page) == ["3", "2", "1"] * 2
    assert f'href="case.html?id={UNIFORM}&amp;backend=alpha"' in page
    assert LARGE in page
    assert f'href="case.html?id={LARGE}' not in page, "the site has no page of a case that is gone"
    assert '<a href="trend.html" aria-current="page">Trend</a>' in page


@pytest.mark.slow
def test_the_charts_have_the_figures_of_the_table(site: Path) -> None:
    told = (site / "data" / "trend.js").read_text()
    assert told.startswith("opconform.takeTrend(")
    series = {points[-1]["version"]: points for points in json.loads(told[len("opconform.takeTrend(") : -3])}
    alpha = series["2.0"]
    assert [point["correctness"] for point in alpha] == [100, 100, 50]
    assert [point["failures"] for point in alpha] == [0, 0, 1]
    assert [point["other"] for point in alpha] == [False, False, True]


def test_names_from_elsewhere_are_text(site: Path) -> None:
    for file in ("trend.html", "data/trend.js"):
        assert "<script>alert" not in (site / file).read_text()
    assert "&lt;script&gt;alert(1)" in (site / "trend.html").read_text()

"""The site as a whole: what is gathered of the runs, put into pages."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..runs import Whole
from .case_pages import source_of, write_cases
from .gather import Gathered, gather
from .knowledge import Knowledge
from .matrix import write_matrix
from .operator_pages import write_operator_pages
from .overview import write_overview
from .silences import write_silences
from .waivers import write_waivers
from .words import case_link, cases_link, operator_page_name, shown
from .writer import SiteWriter, check_folder, written

ASSETS = ("site.css", "site.js")


def write_site(wholes: Sequence[Whole], out: Path, history: Path | None = None) -> Gathered:
    """Write the site of these runs to a folder, and return what it is made of.

    Raises OpconformError where the folder is neither new nor empty nor a site, or what is read is damaged.
    """
    check_folder(out)  # before the results are read, which may take a minute
    gathered = gather(wholes)
    with written(out, _given(gathered, history)) as site:
        site.asset(*ASSETS)
        _pages(site, gathered)
        if history is not None:
            from .trend import write_trend  # noqa: PLC0415 - needs an extra

            write_trend(site, gathered, history)
    return gathered


def _pages(site: SiteWriter, gathered: Gathered) -> None:
    known = Knowledge(source_of(gathered))
    write_overview(site, gathered, known)
    write_matrix(site, gathered)
    write_operator_pages(site, gathered, known)
    write_silences(site, gathered, known)
    write_waivers(site, gathered)
    write_cases(site, gathered)


def _given(gathered: Gathered, history: Path | None) -> dict[str, Any]:
    """Return what every template sees: links, navigation, and what the site is of."""
    return {
        "navigation": _navigation(history),
        "backends": [{"name": c.name, "version": c.version} for c in gathered.columns],
        "made_by": f"opconform {importlib.metadata.version('opconform')}",
        "shown": shown,
        "case_link": case_link,
        "cases_link": cases_link,
        "operator_page_name": operator_page_name,
    }


def _navigation(history: Path | None) -> list[tuple[str, str]]:
    found = [("index.html", "Overview"), ("matrix.html", "Matrix"), ("cases.html", "Cases")]
    found += [("silences.html", "Silences"), ("waivers.html", "Waivers")]
    return [*found, ("trend.html", "Trend")] if history is not None else found

"""The first page: what each backend amounts to, side by side, and where it fails worst."""

from __future__ import annotations

from .gather import Gathered
from .writer import SiteWriter


def write_overview(site: SiteWriter, gathered: Gathered) -> None:
    """Write `index.html`."""
    site.page("index.html", "overview.html.j2", exit_code=gathered.exit_code)

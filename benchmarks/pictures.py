"""`python -m benchmarks.pictures SITE` from a checkout: takes the pictures of docs/pictures from a site, in Chromium.

The site should be of a real run of all installed backends, with a history and an earlier release: `opconform report DIR
--html SITE --history DB --before DIR-OF-RELEASE`.
"""

from __future__ import annotations

import argparse
import io
import shutil
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

WIDTH, HEIGHT, PHONE = 1280, 820, 390
COLOURS = 128  # of the palette: text and flat colours lose nothing visible
OUT = Path(__file__).parent.parent / "docs" / "pictures"


def main() -> None:
    """Take all pictures, or the named ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("names", nargs="*", metavar="name", help=f"pictures to take: {', '.join(PICTURES)}")
    parser.add_argument("--case", help="the case of case.png; default: the first wrong value")
    chosen = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in chosen.names or PICTURES:
            path, settle = PICTURES[name]
            scheme = "dark" if name.endswith("-dark") else "light"
            size = ViewportSize(width=PHONE if name.endswith("-phone") else WIDTH, height=HEIGHT)
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(f"{chosen.site.resolve().as_uri()}/{path}")
            settle(page, chosen.case)
            page.wait_for_timeout(500)
            print(f"{name}.png: {_write(page.screenshot(), OUT / f'{name}.png') / 1e3:.0f} kB")
        browser.close()


def _write(picture: bytes, file: Path) -> int:
    """Write a picture with a palette, and return its bytes."""
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
    return file.stat().st_size


def _as_it_is(_page: Page, _case: str | None) -> None:
    """Leave the page as it opens."""


def _case(page: Page, case: str | None) -> None:
    """Open a case with a wrong answer, from its id on."""
    page.wait_for_selector(".tabulator-row a")
    first = "document.querySelector('.tabulator-row a').ariaLabel"
    target = page.evaluate(f"id => 'case.html?' + new URLSearchParams({{id: id || {first}}})", case)
    page.goto(f"{page.url.rpartition('/')[0]}/{target}")
    page.wait_for_selector(".chart svg")
    page.evaluate("document.querySelector('.case-id').scrollIntoView({block: 'start'}); scrollBy(0, -16)")


def _clauses(page: Page, _case: str | None) -> None:
    """Scroll to the clauses, each with the results next to it."""
    page.evaluate("document.getElementById('clauses').scrollIntoView(); scrollBy(0, -20)")


def _charts(page: Page, _case: str | None) -> None:
    """Wait for the charts."""
    page.wait_for_selector("[data-chart] svg")


PICTURES: dict[str, tuple[str, Callable[[Page, str | None], None]]] = {
    "overview": ("index.html", _as_it_is),
    "overview-dark": ("index.html", _as_it_is),
    "overview-phone": ("index.html", _as_it_is),
    "timeline": ("timeline.html?operator=cast&all=1", _as_it_is),
    "matrix": ("matrix.html", _as_it_is),
    "matrix-dark": ("matrix.html", _as_it_is),
    "case": ("cases.html?outcome=wrong-value", _case),
    "operator": ("operators/onnx-ReduceMean-18.html", _clauses),
    "trend": ("trend.html", _charts),
}


if __name__ == "__main__":
    main()

"""The time to write and to open a site: `python -m benchmarks.site --cases 100000 --backends 10`, in a checkout.

Prints seconds, peak memory, bytes on disk, the bytes that the first view of the list of cases loads and, if Playwright
and a Chromium are installed, how long the browser takes to show rows, and to filter them.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opconform.cases.ids import operator_version_of, split_version
from opconform.cases.results import Outcome, Result
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.reports.runs import Terms, put_together, terms_to_dict
from opconform.reports.site.build import write_site

FIRST_VIEW = (
    "cases.html",
    "assets/site.css",
    "assets/site.js",
    "assets/cases.css",
    "assets/vendor/tabulator.min.css",
    "assets/vendor/tabulator.min.js",
    "assets/case-store.js",
    "assets/case-numbers.js",
    "assets/case-parts.js",
    "assets/case.js",
    "assets/cases.js",
    "data/cases/index.js",
)
_FAILURES = (Outcome.WRONG_VALUE, Outcome.ERROR, Outcome.WRONG_SHAPE, Outcome.CRASH)


def main() -> None:
    """Write results folders and a site of them, and print the cost."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.site", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--backends", type=int, default=4)
    parser.add_argument("--failing", type=float, default=0.002, help="share of results that fail (default 0.002)")
    parser.add_argument("--out", type=Path, help="keep folders and site there")
    chosen = parser.parse_args()
    out = chosen.out or Path(tempfile.mkdtemp(prefix="opconform-site-"))
    try:
        _measure(chosen, out)
    finally:
        if chosen.out is None:
            shutil.rmtree(out, ignore_errors=True)


def _measure(chosen: argparse.Namespace, out: Path) -> None:
    folders = [out / f"run-{number}" for number in range(chosen.backends)]
    names = list(_ids(chosen.cases))
    for number, folder in enumerate(folders):
        write_folder(folder, f"backend-{number}", names, random.Random(number), chosen.failing)
    site = out / "site"
    begun, used = time.perf_counter(), _cpu()
    write_site(put_together(folders), site)
    print(f"cases, backends     {len(names):,}, {chosen.backends}")
    print(f"site made in        {time.perf_counter() - begun:.1f} s, {_cpu() - used:.1f} s of processor time")
    print(f"peak memory         {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    files = [file for file in site.rglob("*") if file.is_file()]
    print(f"on disk             {sum(f.stat().st_size for f in files) / 1e6:.1f} MB in {len(files):,} files")
    details = [f.stat().st_size for f in files if f.name.startswith("chunk-")]
    print(f"details             {sum(details) / 1e6:.1f} MB in {len(details):,} files")
    first = [(site / name).read_bytes() for name in FIRST_VIEW]
    print(f"first view loads    {sum(map(len, first)) / 1e6:.2f} MB, index {len(first[-1]) / 1e6:.2f} MB;", end=" ")
    print(f"{sum(len(gzip.compress(content)) for content in first) / 1e6:.2f} MB where a server compresses")
    _browse(site)


def _cpu() -> float:
    return sum(os.times()[:4])


def _ids(wanted: int) -> Iterator[str]:
    """Yield so many ids of the suite, with as many draws as necessary."""
    library = GeneratedCases().library
    one, two = (sum(1 for _ in planned(library, Selection(draws=draws))) for draws in (1, 2))
    draws = max(1, 1 + -(-(wanted - one) // (two - one)))
    yield from itertools.islice(planned(library, Selection(draws=draws)), wanted)


def write_folder(folder: Path, backend: str, names: list[str], chance: random.Random, failing: float) -> None:
    """Write a results folder with random failures: a few kinds, some answers kept."""
    folder.mkdir(parents=True)
    with (folder / "results.jsonl").open("wb") as results:
        results.writelines(b"%b\n" % _result(backend, name, chance, failing).to_json() for name in names)
    told: dict[str, Any] = {
        "status": "finished",
        "started": "2026-01-01T01:00:00+00:00",
        "suite": {"version": "0", "digest": "0"},
        "backends": {backend: {"version": "1.0", "facts": {}}},
        "planned": {backend: len(names)},
        "terms": terms_to_dict(Terms()),
    }
    (folder / "run.json").write_text(json.dumps(told))


def _result(backend: str, name: str, chance: random.Random, failing: float) -> Result:
    operator = split_version(operator_version_of(name))[0]
    clauses = (f"{operator}#mean", f"{operator}#output-type")
    seed = chance.random()
    if seed < failing:
        outcome = chance.choice(_FAILURES)
        detail = f"element [0, 1]: got {seed!r}, want {seed + 1!r} (3 of 12 wrong)"
        return Result(name, backend, outcome, detail=detail, clauses=clauses)
    if seed < 0.1:
        return Result(name, backend, Outcome.UNSUPPORTED, detail="not implemented", reason="type", clauses=clauses)
    return Result(name, backend, Outcome.PASS, level="strict", bound_ratio=seed, clauses=clauses)


def _browse(site: Path) -> None:
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ImportError:
        print("browser             not measured: needs playwright", file=sys.stderr)
        return
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto((site / "cases.html").as_uri())
        page.wait_for_selector(".tabulator-row")
        rows = page.evaluate("performance.getEntriesByName('opconform-rows')[0].startTime")
        print(f"first rows after    {rows:.0f} ms")
        for text in ("float16", "got 0.00"):
            print(f"search {text!r:<13}{page.evaluate(_SEARCH, text):.0f} ms")
        browser.close()


_SEARCH = """async (text) => {
  const [cases, words] = [await opconformCases.load(), await opconformCases.words()];
  const begun = performance.now();
  cases.select({...opconformCases.viewOf(new URLSearchParams()), q: text}, words);
  return performance.now() - begun;
}"""


if __name__ == "__main__":
    main()

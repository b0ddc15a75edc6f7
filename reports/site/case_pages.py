"""The cases of a site: the list of them all, the page of one, and what both load as it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...cases.declared import Declaration
from ...generators.source import GeneratedCases
from .case_details import Details, kept_of
from .case_lists import (
    chunks,
    failing_cases,
    index_of,
    reproduce_lines,
    strict_json,
    table_bytes,
    words_of,
    write_packed,
)
from .gather import Gathered
from .writer import SiteWriter

FEW = 5_000
"""Up to so many cases, details of all of them are written; of more, those of cases that a backend fails."""

MOST = 10_000
"""Cases whose details are written at most, whatever fails; the rest is shown without."""

ASSETS = ("case-store.js", "case-numbers.js", "case-parts.js", "case.js", "case-page.js", "cases.css")
LIBRARIES = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "vendor/tabulator.min.js", "vendor/tabulator.min.css")
LICENCES = ("vendor/VENDORED.md", "vendor/d3.LICENSE", "vendor/plot.LICENSE", "vendor/tabulator.LICENSE")


def write_cases(site: SiteWriter, gathered: Gathered) -> None:
    """Write the pages, their scripts, and the data of all cases. Raises OpconformError if a folder was changed."""
    numbers = detailed(gathered)
    chunk_of = [0] * len(gathered.cases)
    for place, chunk in enumerate(chunks(_details(gathered, numbers)), 1):
        write_packed(site, f"chunk-{place}", chunk.content)
        for number in chunk.cases:
            chunk_of[number] = place
    head, columns = index_of(gathered, chunk_of)
    head |= {"reproduce": reproduce_lines(gathered), "corpus": _from_files(gathered), "most": MOST, "few": FEW}
    write_packed(site, "index", table_bytes(head, columns))
    write_packed(site, "words", strict_json(words_of(gathered)))
    site.asset(*ASSETS, "cases.js", *LIBRARIES, *LICENCES)
    site.page("cases.html", "cases.html.j2", count=len(gathered.cases))
    site.page("case.html", "case.html.j2")


def detailed(gathered: Gathered) -> list[int]:
    """Return the cases whose details are written: where there are few all, otherwise those that a backend fails."""
    failing = failing_cases(gathered)
    if len(gathered.cases) > FEW:
        return sorted(failing[:MOST])
    return list(range(len(gathered.cases)))


def _details(gathered: Gathered, numbers: Sequence[int]) -> Any:
    return Details(gathered, source_of(gathered), kept_of(gathered, numbers)).of(numbers)


def source_of(gathered: Gathered) -> GeneratedCases:
    """Return where the cases of the runs come from, as far as they are generated."""
    told = [told for column in gathered.columns for told in column.told]
    specs = next(
        (t["options"]["specs"] for t in told if isinstance(t.get("options"), dict) and t["options"].get("specs")), None
    )
    return GeneratedCases(
        None if specs is None or not Path(specs).is_dir() else Path(specs),
        gathered.terms.declaration or Declaration(),
    )


def _from_files(gathered: Gathered) -> bool:
    return any(told.get("corpus") for column in gathered.columns for told in column.told)

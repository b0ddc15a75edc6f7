"""Results folders made by hand: of these results, and a `run.json` that says as little as a report needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from opconform.cases.results import Result
from opconform.reports.runs import Terms, terms_to_dict


def write_folder(
    path: Path,
    results: Iterable[Result],
    *,
    night: int = 1,
    versions: Mapping[str, str] | None = None,
    terms: Terms | None = None,
    **more: Any,
) -> Path:
    """Write a finished run that began on that day of January 2026 (32 is the first of February)."""
    path.mkdir(parents=True)
    kept = list(results)
    named = versions or dict.fromkeys((result.backend for result in kept), "1.0")
    told = {
        "status": "finished",
        "started": f"2026-{1 + (night - 1) // 31:02}-{1 + (night - 1) % 31:02}T01:00:00+00:00",
        "suite": {"version": "0.1.0", "digest": "d"},
        "backends": {name: {"version": version, "facts": {}} for name, version in named.items()},
        "planned": {name: sum(result.backend == name for result in kept) for name in named},
        "terms": terms_to_dict(terms or Terms()),
        **more,
    }
    (path / "run.json").write_text(json.dumps(told))
    (path / "results.jsonl").write_bytes(b"".join(b"%b\n" % result.to_json() for result in kept))
    return path

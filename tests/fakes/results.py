"""Results and their folders: made by hand, as short as tests want them, and what a run of the command line left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from opconform.cases.results import Outcome, Result
from opconform.reports.runs import Terms, terms_to_dict

MEAN = "onnx/ReduceMean-13/float32/3x2x2/-/uniform"


def result(outcome: str = "pass", case: str = MEAN, backend: str = "alpha", **more: Any) -> Result:
    """A result; a pass is strict unless `level` says otherwise."""
    if outcome == "pass":
        more.setdefault("level", "strict")
    return Result(case, backend, Outcome(outcome), **more)


def case(operator: str = "onnx/ReduceMean-13", types: str = "float32", fill: str = "uniform", edge: str = "") -> str:
    """A case id."""
    return f"{operator}/{types}/3x2x2/-/{fill}" + (f"/{edge}" if edge else "")


def invalid(outcome: str, name: str = "", **more: Any) -> Result:
    """A result about an invalid input."""
    options = {"pass": ["rejected"], "accepted-invalid": ["answered"]}.get(outcome, [])
    return result(outcome, name or case(edge="axis-too-large"), behaviour={"invalid": options}, **more)


# Results folders made by hand: of these results, and a `run.json` that says as little as a report needs


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


# What a run of the command line left behind


V13 = "onnx/ReduceMean-13"
INVALID = (
    "scalar/axes=0/ramp/rank-0-axis",
    "3x2x2/axes=-4/ramp/axis-too-small",
    "3x2x2/axes=3/ramp/axis-too-large",
    "3x2x2/unknown=reduction_mode/ramp/unknown-attribute",
)
INT32 = ("--select", f"{V13}/int32/*", *(word for case in INVALID for word in ("--select", f"{V13}/int32/{case}")))
FRACTION = f"{V13}/int32/2x2/axes=1/halves/fraction"
"""What the fakes stumble over."""


@dataclass(frozen=True)
class Ran:
    """What a run left behind."""

    code: int
    output: str
    folder: Path

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        return {r["case"]: r for r in self.lines}

    @property
    def lines(self) -> list[dict[str, Any]]:
        text = (self.folder / "results.jsonl").read_text()
        return [json.loads(line, parse_constant=_no_constant) for line in text.splitlines()]

    @property
    def about(self) -> Any:
        return json.loads((self.folder / "run.json").read_text(), parse_constant=_no_constant)

    @property
    def figures(self) -> Any:
        return self.about["figures"]["overall"]

    def outcomes(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for case, result in self.results.items():
            found.setdefault(result["outcome"], set()).add(case)
        return found

    def junit(self) -> ET.Element:
        return ET.parse(self.folder / "junit.xml").getroot()


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file

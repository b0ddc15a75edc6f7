"""What a run of the command line left behind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

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

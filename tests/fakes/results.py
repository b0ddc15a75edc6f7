"""Results made by hand, as short as tests want them."""

from __future__ import annotations

from typing import Any

from opconform.cases.results import Outcome, Result

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

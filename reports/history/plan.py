"""What a run was asked, as far as runs that were asked the same are compared with each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TOLD = (
    *("suite", "selection", "strength", "draws", "seed", "required", "profile", "arithmetic", "waivers", "errata"),
    *("disputed", "corpus"),
)


def told_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a run's `run.json` decides verdicts, the backends apart."""
    return {name: told.get(name) for name in _TOLD}


def plan_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes runs ones of the same kind: selection, drawing, requirements; not versions, not files."""
    suite = told.get("suite")
    found = {
        "suite": suite.get("name") if isinstance(suite, dict) else None,
        "selection": sorted(map(str, told.get("selection") or [])),
        "strength": told.get("strength"),
        "draws": told.get("draws"),
        "seed": told.get("seed"),
        "required": told.get("required") or {},
        "corpus": bool(told.get("corpus")),
    }
    return dict(sorted(found.items()))


def plan_words(plan: Mapping[str, Any]) -> str:
    """Return a plan in words, `everything` for that of a run without options."""
    found = [f"suite {plan['suite']}"] if plan.get("suite") else []
    found += [str(glob) for glob in plan.get("selection") or ()]
    found += [f"{name} {plan[name]}" for name, usual in _USUAL.items() if plan.get(name) not in (None, usual)]
    required = plan.get("required")
    if isinstance(required, dict):
        found += [f"{silence}={option}" for silence, option in sorted(required.items())]
    return ", ".join([*found, "from a corpus"] if plan.get("corpus") else found) or "everything"


_USUAL = {"strength": 2, "draws": 1, "seed": 0}

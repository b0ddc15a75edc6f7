"""The terms of a run as `run.json` keeps them, in full, so that a report needs no file beside the results folder."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..cases.declared import Declaration, DeclaredType
from ..cases.errors import OpconformError
from ..cases.results import Outcome
from ..runners.demands import Demands
from ..runners.profile import Profile, Promise
from ..runners.waivers import Waiver, Waivers
from ..specs.errata import Errata, Erratum, Suspensions
from ..specs.globs import Glob
from .tables import Terms


def terms_to_dict(terms: Terms) -> dict[str, Any]:
    """Return them for JSON."""
    profile, declaration = terms.demands.profile, terms.declaration
    return {
        "required": dict(terms.demands.required),
        "profile": None if profile is None else _profile(profile),
        "errata": [asdict(erratum) for erratum in terms.suspensions.errata.entries],
        "disputed": dict(terms.suspensions.disputed),
        "waivers": [_waiver(waiver) for waiver in terms.waivers.entries],
        "arithmetic": None if declaration is None else _declaration(declaration),
    }


def terms_from(told: Mapping[str, Any], place: object) -> Terms:
    """Read back what `terms_to_dict` returned, of the `run.json` at `place`. Raises OpconformError if it is none."""
    try:
        profile, declared = told["profile"], told["arithmetic"]
        return Terms(
            Demands(dict(told["required"]), None if profile is None else _read_profile(profile)),
            Suspensions(Errata(tuple(Erratum(**e) for e in told["errata"])), dict(told["disputed"])),
            Waivers(tuple(_read_waiver(w) for w in told["waivers"])),
            None if declared is None else _read_declaration(declared),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OpconformError(f"{place}: terms: not as a run writes them: {error!r}") from None


def _profile(profile: Profile) -> dict[str, Any]:
    operators = {
        operator: {"versions": _sorted(promise.versions), "types": _sorted(promise.types)}
        for operator, promise in profile.operators.items()
    }
    return {
        "name": profile.name,
        "version": profile.version,
        "operators": operators,
        "rank": profile.rank,
        "elements": profile.elements,
        "shapes": _sorted(profile.shapes),
    }


def _read_profile(told: Mapping[str, Any]) -> Profile:
    operators = {
        operator: Promise(_frozen(promise["versions"]), _frozen(promise["types"]))
        for operator, promise in told["operators"].items()
    }
    return Profile(told["name"], told["version"], operators, told["rank"], told["elements"], frozenset(told["shapes"]))


def _sorted(words: frozenset[Any] | None) -> list[str] | None:
    return None if words is None else sorted(words)


def _frozen(words: list[str] | None) -> frozenset[str] | None:
    return None if words is None else frozenset(words)


def _waiver(waiver: Waiver) -> dict[str, Any]:
    since = None if waiver.since is None else waiver.since.isoformat()
    return {**asdict(waiver), "case": str(waiver.case), "expires": waiver.expires.isoformat(), "since": since}


def _read_waiver(told: Mapping[str, Any]) -> Waiver:
    made = {
        "case": Glob(told["case"]),
        "outcome": Outcome(told["outcome"]),
        "expires": dt.date.fromisoformat(told["expires"]),
        "since": dt.date.fromisoformat(told["since"]) if told.get("since") else None,
    }
    return Waiver(**{**told, **made})


def _declaration(declaration: Declaration) -> dict[str, Any]:
    types = {
        name: {**asdict(declared), "flush": sorted(declared.flush)} for name, declared in declaration.types.items()
    }
    return {"types": types, "threads": declaration.threads, "deterministic": declaration.deterministic}


def _read_declaration(told: Mapping[str, Any]) -> Declaration:
    types = {
        name: DeclaredType(declared["compute"], declared["accumulator"], frozenset(declared["flush"]))
        for name, declared in told["types"].items()
    }
    return Declaration(types, told["threads"], told["deterministic"])

"""Judges the texts of shape inference: which outputs an option admits, and which are weaker than the program allows.

A check `infers(names, exact)` belongs to an option whose outputs are expected texts. With `exact` it admits texts that
say all that the program determines; without, texts that leave something open, and are right in what they say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...cases.batch import Bounds, Check
from ...cases.elements import Array
from ...cases.inferred import Agreement, agreement
from ...cases.results import Outcome

_RIGHT = frozenset({Agreement.EXACT, Agreement.OPEN})


def admitted_texts(check: Check, bounds: Bounds, output: Array) -> Array:
    """Return the lanes whose text the option's check admits; shape (lanes,)."""
    admitted = {Agreement.EXACT} if _settings(check)[1] else _RIGHT
    return np.array([agreed in admitted for agreed in _agreements(check, bounds, output)], bool)


def is_weaker(check: Check, bounds: Sequence[Bounds], outputs: Sequence[Array]) -> Array:
    """Return the lanes that an option without `exact` applies to: some text leaves something open."""
    lanes = len(outputs[0]) if outputs else 1
    if _settings(check)[1]:
        return np.ones(lanes, bool)
    rows = [_agreements(check, bound, output) for bound, output in zip(bounds, outputs, strict=True)]
    return np.array([any(row[lane] is not Agreement.EXACT for row in rows) for lane in range(lanes)], bool)


def outcome_of(check: Check, bounds: Sequence[Bounds], outputs: Sequence[Array], lane: int) -> Outcome:
    """Return the outcome of a lane with a wrong text: a wrong type, or else a wrong shape."""
    agreements = {_agreements(check, bound, output)[lane] for bound, output in zip(bounds, outputs, strict=True)}
    return Outcome.WRONG_DTYPE if Agreement.WRONG_TYPE in agreements else Outcome.WRONG_SHAPE


def _settings(check: Check) -> tuple[frozenset[str], bool]:
    settings = dict(check.settings)
    names = str(settings["names"])
    return frozenset(names.split(",")) if names else frozenset(), bool(settings["exact"])


def _agreements(check: Check, bounds: Bounds, output: Array) -> list[Agreement]:
    names = _settings(check)[0]
    wanted = np.broadcast_to(bounds.lower, output.shape)
    pairs = zip(wanted.tolist(), output.tolist(), strict=True)
    return [agreement(read_text(want), read_text(got), names) for want, got in pairs]


def read_text(element: object) -> str:
    """Return an element as text; answers are compared as bytes of UTF-8."""
    return element.decode(errors="replace") if isinstance(element, bytes) else str(element)

"""What the tests attach to results."""

from __future__ import annotations

from collections.abc import Sequence

from opconform.cases.elements import Array
from opconform.cases.model import Case
from opconform.runners.judge import Verdict


def told(case: Case, verdict: Verdict, outputs: Sequence[Array]) -> object:
    """All that an attachment may be made of."""
    return {"case": case.id, "outcome": str(verdict.outcome), "outputs": [output.tolist() for output in outputs]}


def of_failures(case: Case, verdict: Verdict, outputs: Sequence[Array]) -> object:
    """Nothing for a pass."""
    return None if verdict.outcome == "pass" else "a text with a \t and a \n"


def no_json(case: Case, verdict: Verdict, outputs: Sequence[Array]) -> object:
    """What strict JSON has no word for."""
    return float("nan")


def raises(case: Case, verdict: Verdict, outputs: Sequence[Array]) -> object:
    raise ValueError("nothing comes of it")

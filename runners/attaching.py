"""What travels beside a result: attachments, made in the worker, each strict JSON."""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from ..cases.elements import Array
from ..cases.lanes import CaseGroup
from ..cases.model import Case
from .judge import Verdict
from .lanes import LaneVerdicts

NOTHING = "null"
"""The JSON text of an attachment that is none."""
WORDS_KEPT = 2000
"""The characters of a message that a result holds."""


class Tellable(Protocol):
    """An attachment that is not written as JSON yet."""

    def to_json(self) -> str:
        """Return it as strict JSON."""


Attached: TypeAlias = str | Tellable
"""An attachment as JSON text, or what has one."""


class Attach(Protocol):
    """Makes what travels beside a result, in the worker; picklable. Asked only where the backend answered."""

    def __call__(self, case: Case, verdict: Verdict, outputs: Sequence[Array], /) -> object:
        """Return the attachment, which is strict JSON, or None for none. What it raises becomes the attachment."""


@runtime_checkable
class AttachLanes(Protocol):
    """An Attach that also makes the attachments of cases side by side, which costs less.

    Any Attach may say by an attribute `of_passes` that is False that it attaches nothing where a case passes.
    """

    def lanes(self, group: CaseGroup, verdicts: LaneVerdicts, /) -> Sequence[Attached | None]:
        """Return each lane's attachment, or None for none; also where the verdict is another than pass."""


def text_of(attached: Attached) -> str:
    """Return an attachment as JSON text."""
    return attached if isinstance(attached, str) else attached.to_json()


def lanes_attached(make: Attach, group: CaseGroup, verdicts: LaneVerdicts) -> Sequence[Attached | None]:
    """Return the attachments of the lanes, of those that pass at least; empty where there is none."""
    if isinstance(make, AttachLanes):
        try:
            return make.lanes(group, verdicts)
        except Exception:
            return [_failure() if _of_passes(make) or not passes else None for passes in verdicts.passing]
    if not _of_passes(make):
        return ()
    outputs = verdicts.answers.outputs
    return [
        attachment(make, group.case(lane), verdicts.verdict(lane), [o[lane, ...] for o in outputs]) if taken else None
        for lane, taken in enumerate(verdicts.passing)
    ]


def _of_passes(make: Attach) -> bool:
    return bool(getattr(make, "of_passes", True))


def attachment(make: Attach, case: Case, verdict: Verdict, outputs: Sequence[Array]) -> str:
    """Return one attachment as JSON text."""
    try:
        return json.dumps(make(case, verdict, outputs), allow_nan=False, separators=(",", ":"))
    except Exception:
        return _failure()


def _failure() -> str:
    """Return what is attached where making an attachment failed: the result stands, and what is missing is told."""
    return json.dumps({"failed": last_lines(traceback.format_exc())})


def last_lines(text: str) -> str:
    """Return the end of a traceback."""
    return "\n".join(text.strip().splitlines()[-6:])[:WORDS_KEPT]

"""Going on with a run that was killed or interrupted: its options, and whether it is still the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..cases.errors import OpconformError
from ..reports.reading import RUN
from ..reports.runs import UNKNOWN, RunRecord, compared
from .options import RunOptions, continued, difference, refuse


def options_of(begun: RunRecord, given: RunOptions) -> RunOptions:
    """Return the options of a run that has begun, with those given now. Raises OpconformError where they disagree."""
    if not isinstance(begun.told.get("options"), dict):
        raise OpconformError(f"{begun.folder / RUN}: names no options: it was written by an older version")
    return continued(given, begun.told["options"], begun.folder)


def check_same(begun: RunRecord, now: Mapping[str, Any]) -> None:
    """Raise OpconformError that names what differs from `now`, the description of the run that would go on."""
    backends = {name: told["version"] for name, told in now["backends"].items()}
    known = {name: begun.about(name).version for name in backends}
    refuse(
        begun.folder,
        [
            *(difference(name, a, b) for name, (a, b) in compared(begun.told, now).items()),
            *(
                difference(f"version of {name}", known[name], version)
                for name, version in backends.items()
                if known[name] not in (UNKNOWN, version)
            ),
        ],
    )

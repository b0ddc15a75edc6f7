"""Results folders named on the command line, as one run: shards put together, what is not whole refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from ...cases.errors import OpconformError
from ..merge import Whole, put_together
from ..reading import RUN


def runs_of(folders: Sequence[Path], *, partial: bool) -> list[Whole]:
    """Return the runs that lie in these folders, one for each set of backends.

    Raises OpconformError for folders that do not belong together and, unless `partial`, for what is not finished.
    """
    wholes = put_together(folders, partial=partial)
    for part in (part for whole in wholes for part in whole.unfinished):
        if not partial:
            folder = part.folder
            told = f"`opconform run --resume {folder}` ends it, and --partial takes what is there"
            raise OpconformError(f"{folder}: unfinished; {told}")
    return wholes


def started(whole: Whole) -> str:
    """Return when a run began, in UTC. Raises OpconformError if `run.json` does not tell."""
    return min(part.begun.started.astimezone(dt.UTC) for part in whole.parts).isoformat(timespec="seconds")


def folders_in(path: Path) -> list[Path]:
    """Return a results folder itself, or those that lie in a folder. Raises OpconformError for neither."""
    if (path / RUN).is_file():
        return [path]
    inside = sorted(file.parent for file in path.glob(f"*/{RUN}")) if path.is_dir() else []
    if not inside:
        told = "expected a results folder, a folder of results folders, or HISTORY.duckdb:RUN"
        raise OpconformError(f"{path}: {told}")
    return inside

"""The results of whole runs counted, as their folders hold them: tables, and what the waivers of each run met."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..cases.errors import OpconformError
from ..runners.waivers import WaiverRun
from .begun import take_kept
from .figures import OUR_SIDE_FAILED
from .folder import INTERRUPTED
from .merge import Part, Whole
from .reading import Done, Kept
from .tables import Tables, Terms
from .text import counted, deaths_told

Seen: TypeAlias = Callable[[Part, Kept], None]


@dataclass(frozen=True)
class Counted:
    """All results counted.

    `waivers` has what the waivers of each run met, in the order of the runs. `problems` are lines that tell what is
    wrong beside the cases; `exit_code` is the one that the runs would have had.
    """

    tables: Tables
    waivers: Sequence[WaiverRun]
    problems: Sequence[str]
    exit_code: int


def count(wholes: Sequence[Whole], seen: Seen | None = None) -> Counted:
    """Count the results of these runs; `seen` is told each of them. Raises OpconformError for what cannot be read."""
    terms = wholes[0].parts[0].terms
    tables = Tables.of(terms, [name for whole in wholes for name in whole.versions], dt.date.min)
    waivers, problems = [], []
    for whole in wholes:
        part = whole.parts[0]
        own = Terms(terms.demands, terms.suspensions, part.terms.waivers, terms.declaration)
        tables.waivers = own.waivers.for_run(part.begun.started.date(), terms.demands)
        _count(whole, tables, seen)
        waivers.append(tables.waivers)
        problems += tables.waivers.problems(partial=whole.partial)
    lost = [line for whole in wholes for line in _lost(whole, tables)]
    unfinished = any(whole.unfinished for whole in wholes)
    code = max(tables.tally.exit_code(len(problems)), OUR_SIDE_FAILED if lost else 0, INTERRUPTED if unfinished else 0)
    return Counted(tables, waivers, [*problems, *lost, *_deaths(wholes), *_left_out(wholes)], code)


def _count(whole: Whole, tables: Tables, seen: Seen | None) -> None:
    done = Done()
    for part in whole.parts:
        done.update(take_kept(part.folder, tables, _of_part(part, seen)).done)
    if not done.settle():
        folders = ", ".join(str(part.folder) for part in whole.parts)
        raise OpconformError(f"{folders}: have results of the same cases, so they are not shards of one run")


def _of_part(part: Part, seen: Seen | None) -> Callable[[Kept], None] | None:
    return None if seen is None else lambda kept: seen(part, kept)


def _lost(whole: Whole, tables: Tables) -> list[str]:
    """Return what tells of cases that have no result though every shard is finished: our side has lost them."""
    planned = sum(part.planned for part in whole.parts)
    missing = planned - sum(tables.tally.figures(name).cases for name in whole.versions)
    if whole.unfinished or not missing:
        return []
    return [f"{' and '.join(whole.versions)}: {counted(missing, 'case')} without a result"]


def _deaths(wholes: Sequence[Whole]) -> list[str]:
    begun = [part.begun for whole in wholes for part in whole.parts]
    return deaths_told([told for one in begun for told in one.deaths], sum(one.more_deaths for one in begun))


def _left_out(wholes: Sequence[Whole]) -> list[str]:
    return [
        *(f"unfinished: {part.folder} ({part.told.get('status')})" for whole in wholes for part in whole.unfinished),
        *(f"missing: {', '.join(f'shard {shard}' for shard in w.missing)}" for w in wholes if w.missing),
    ]

"""Plans the cases of a run while the first of them run already: planning the whole suite takes ten seconds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, TypeVar

from ..reports.progress import tracked

if TYPE_CHECKING:
    from ..cases.ids import Selection
    from ..generators.source import GeneratedCases

_PORTION = 256
_Made = TypeVar("_Made")


def planned_ids(source: GeneratedCases, selection: Selection) -> list[str]:
    """Return the selected ids, with progress in a terminal. Raises OpconformError."""
    from ..generators.selection import selected  # noqa: PLC0415 - a run of a corpus imports this module, and no generators

    with tracked(selected(source, selection), "planning") as ids:
        return list(ids)


def made_of_each(
    source: GeneratedCases,
    ids: Mapping[str, Sequence[str]],
    jobs: int,
    make: Callable[[GeneratedCases, str, Sequence[str]], _Made],
) -> dict[str, _Made]:
    """Return what `make` makes of the cases of each operator version, in as many processes, the largest first."""
    if min(jobs, len(ids)) < 2:
        with tracked(ids, "operator versions", len(ids)) as names:
            return {name: make(source, name, ids[name]) for name in names}
    largest = sorted(ids, key=lambda name: -len(ids[name]))
    with ProcessPoolExecutor(min(jobs, len(ids)), get_context("forkserver"), _end_with_parent) as pool:
        asked = {name: pool.submit(make, source.unread, name, ids[name]) for name in largest}
        with tracked(as_completed(asked.values()), "operator versions", len(asked)) as done:
            for future in done:
                future.result()  # raises immediately
        return {name: asked[name].result() for name in ids}


def _end_with_parent() -> None:
    """Let this worker end when the process that gives it work does, even if that was killed."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


class GrowingPlan:
    """Ids that a thread plans; they can be iterated, more than once, before all of them are known."""

    def __init__(self, ids: Iterator[str]) -> None:
        """Begin to plan; if `ids` raises, waiting for more ids raises the same."""
        self._ids: list[str] = []
        self._is_whole = False
        self._error: BaseException | None = None
        self._grown = threading.Condition()
        threading.Thread(target=self._plan, args=(ids,), daemon=True).start()

    def _plan(self, ids: Iterator[str]) -> None:
        error = None
        try:
            while portion := list(islice(ids, _PORTION)):
                with self._grown:
                    self._ids += portion
                    self._grown.notify_all()
        except BaseException as raised:
            error = raised
        with self._grown:
            self._is_whole, self._error = True, error
            self._grown.notify_all()

    def __iter__(self) -> Iterator[str]:
        start = 0
        while self.at_least(start + 1) > start:
            portion = self._ids[start : start + _PORTION]
            yield from portion
            start += len(portion)

    @property
    def total(self) -> int | None:
        """Return the number of ids; None while it is unknown."""
        return len(self._ids) if self._is_whole else None

    def at_least(self, number: int | None) -> int:
        """Wait until so many ids are known, or with None all of them, and return their number.

        Raises the planner's error.
        """
        with self._grown:
            self._grown.wait_for(lambda: self._is_whole or (number is not None and len(self._ids) >= number))
            if self._error is not None:
                raise self._error
            return len(self._ids)

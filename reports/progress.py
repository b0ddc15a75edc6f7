"""Progress: a line per result during a run, and a bar for everything else that takes time."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.console import Group as Lines
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..cases.results import Outcome

T = TypeVar("T")


@contextmanager
def tracked(
    items: Iterable[T], what: str, total: int | None = None, console: Console | None = None
) -> Iterator[Iterable[T]]:
    """Give the items to a `with` block, and show on a terminal how many were taken; elsewhere show nothing.

    `what` says what is done, as in `planning`; `total` is the number of items, None if unknown. The bar is on stderr,
    or on `console`, and disappears when the block ends for any reason.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield items
        return
    columns = TextColumn("{task.description}"), BarColumn(_BAR_WIDTH), TextColumn("{task.completed:,.0f}"), _Left()
    with Progress(*columns, console=console, transient=True) as shown:
        yield shown.track(items, total, description=what)


class _Left(ProgressColumn):
    """The number of items and the estimated time; the elapsed time if the number is unknown."""

    def render(self, task: Task) -> Text:
        """Return the text."""
        seconds = task.elapsed if task.total is None else task.time_remaining
        remaining = "" if seconds is None else f"{dt.timedelta(seconds=int(seconds))}"
        return Text(remaining if task.total is None else f"of {task.total:,.0f}  {remaining}", "dim")


_PLAIN_EVERY = 30.0  # seconds
_PLAIN_LINES = 4  # in addition, so many if the number of cases is known
_BAR_WIDTH = 30
_EARLIEST, _SHORTEST = 5.0, 10.0  # seconds: from when on a remaining time is told, and how long it has to be
_NEUTRAL = frozenset({Outcome.UNSUPPORTED, Outcome.WAIVED, Outcome.ACCEPTED_INVALID})


class RunProgress:
    """Shows results as they are counted; a context manager."""

    def __init__(
        self,
        console: Console,
        total: int | None,
        clock: Callable[[], float] = time.monotonic,
        known: Mapping[Outcome, int] | None = None,
    ) -> None:
        """Expect `total` results, None if unknown, of which `known` exist already; `clock` returns seconds."""
        self.console = console
        self.total = total
        self.outcomes: Counter[Outcome] = Counter(known or {})
        self.done = self._before = self.outcomes.total()
        self._plain = not console.is_terminal
        self._clock = clock
        self._started = self._reported = clock()
        self._line_at = self._next_line()
        self._live = Live(get_renderable=self._shown, console=console, refresh_per_second=8, transient=True)

    def count(self, outcome: Outcome) -> None:
        """Count a result; the terminal is redrawn from time to time, not here."""
        self.outcomes[outcome] += 1
        self.done += 1
        if self._plain and (self.done >= self._line_at or self._clock() - self._reported >= _PLAIN_EVERY):
            self._reported, self._line_at = self._clock(), self._next_line()
            self.console.print(Text(f"{self._count()}: {self._outcomes().plain}"), soft_wrap=True)

    def expect(self, total: int) -> None:
        """Set the number of results, once it is known."""
        self.total = total
        self._line_at = self._next_line()

    def __enter__(self) -> RunProgress:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _next_line(self) -> float:
        """Return the number of results at which the next progress line is printed."""
        if not self.total:
            return math.inf
        part = self.done * _PLAIN_LINES // self.total + 1
        return -(-part * self.total // _PLAIN_LINES)  # rounded up

    def _count(self) -> str:
        seconds = self._clock() - self._started
        of = f" of {self.total:,}" if self.total else ""
        rate = f", {(self.done - self._before) / seconds:,.0f}/s" if seconds > 0 else ""
        return f"{self.done:,}{of} cases{rate}{self._left(seconds)}"

    def _left(self, seconds: float) -> str:
        """Return an estimate of the remaining time, once it can be told and is worth telling."""
        done = self.done - self._before
        if not self.total or not done or seconds < _EARLIEST:
            return ""
        left = seconds * (self.total - self.done) / done
        if left < _SHORTEST:
            return ""
        minutes = math.ceil(left / 60)
        remaining = f"{left:.0f} s" if left < 90 else f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
        return f", about {remaining} left"

    def _outcomes(self) -> Text:
        text = Text()
        for outcome in Outcome:
            if self.outcomes[outcome]:
                style = "green" if outcome is Outcome.PASS else "" if outcome in _NEUTRAL else "red"
                text.append(", " if text else "").append(f"{self.outcomes[outcome]:,} {outcome}", style)
        return text

    def _shown(self) -> RenderableType:
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(self.total, self.done, width=_BAR_WIDTH, pulse=not self.total, animation_time=self._clock()),
            Text(self._count(), no_wrap=True, overflow="ellipsis"),
        )
        return Lines(bar, self._outcomes())

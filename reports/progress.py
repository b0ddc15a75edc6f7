"""Live progress of a run: a bar with counts by outcome, or a few plain lines where there is no terminal."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..cases.results import Outcome, Result

_PLAIN_EVERY = 30.0  # seconds
_PLAIN_LINES = 4  # beside those: so many if the number of cases is known
_BAR_WIDTH = 30
_GOOD = frozenset({Outcome.PASS})
_NEUTRAL = frozenset({Outcome.UNSUPPORTED, Outcome.WAIVED, Outcome.ACCEPTED_INVALID})


class RunProgress:
    """Shows results as they are added; a context manager."""

    def __init__(
        self,
        console: Console,
        total: int | None,
        clock: Callable[[], float] = time.monotonic,
        known: Mapping[Outcome, int] | None = None,
    ) -> None:
        """Expect `total` results, None if it is not known, of which some are `known`; `clock` tells seconds."""
        self.console = console
        self.total = total
        self.outcomes: Counter[Outcome] = Counter(known or {})
        self.done = self._before = self.outcomes.total()
        self._plain = not console.is_terminal
        self._clock = clock
        self._started = self._told = clock()
        self._line_at = self._next_line()
        self._live = Live(get_renderable=self._shown, console=console, refresh_per_second=8, transient=True)

    def add(self, result: Result) -> None:
        """Count a result; the terminal is drawn from time to time, not here."""
        self.count(result.outcome)

    def count(self, outcome: Outcome) -> None:
        """Count a result."""
        self.outcomes[outcome] += 1
        self.done += 1
        if self._plain and (self.done >= self._line_at or self._clock() - self._told >= _PLAIN_EVERY):
            self._told, self._line_at = self._clock(), self._next_line()
            self.console.print(Text(f"{self._count()}: {self._outcomes().plain}"), soft_wrap=True)

    def __enter__(self) -> RunProgress:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _next_line(self) -> float:
        """Return how many results there are at the next of the lines that tell a part of them."""
        if not self.total:
            return math.inf
        part = self.done * _PLAIN_LINES // self.total + 1
        return -(-part * self.total // _PLAIN_LINES)  # rounded up

    def _count(self) -> str:
        seconds = self._clock() - self._started
        of = f" of {self.total:,}" if self.total else ""
        rate = f", {(self.done - self._before) / seconds:,.0f}/s" if seconds > 0 else ""
        return f"{self.done:,}{of} cases{rate}"

    def _outcomes(self) -> Text:
        found = Text()
        for outcome in Outcome:
            if self.outcomes[outcome]:
                style = "green" if outcome in _GOOD else "" if outcome in _NEUTRAL else "red"
                found.append(", " if found else "").append(f"{self.outcomes[outcome]:,} {outcome}", style)
        return found

    def _shown(self) -> RenderableType:
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(self.total, self.done, width=_BAR_WIDTH, pulse=not self.total, animation_time=self._clock()),
            Text(self._count(), no_wrap=True, overflow="ellipsis"),
        )
        return Group(bar, self._outcomes())

"""What the tests of runners share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def no_waiting_for_ever() -> Iterator[None]:
    """End a test whose pool does not come back."""

    def stop(*_: object) -> None:
        raise TimeoutError("the pool does not come back")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)

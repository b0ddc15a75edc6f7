"""Random bits that are the same on every machine: those of an extendable-output function of what they are for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..cases.elements import Array


@dataclass
class Draw:
    """Streams of bits, one a lane, each keyed by a text such as a case id (SHAKE128, FIPS 202).

    A hash, and not a random number generator: its output is a standard, it needs no state beyond a counter, and
    starting a stream costs a microsecond.
    """

    keys: Sequence[str]
    _used: int = field(default=0, init=False)

    def bits(self, size: int) -> Array:
        """Return words of 64 random bits, uint64 of shape (lanes, size)."""
        self._used += 1
        suffix = f"#{self._used}"
        streams = [hashlib.shake_128((key + suffix).encode()).digest(8 * size) for key in self.keys]
        words = np.frombuffer(b"".join(streams), "<u8").reshape(len(self.keys), size)
        return words.astype(np.uint64, copy=False)

    def below(self, limit: int, size: int) -> Array:
        """Return whole numbers in [0, limit), int64 of shape (lanes, size); limit at most 2**63.

        By remainder: the bias, at most limit/2**64, does not matter to inputs of tests.
        """
        return (self.bits(size) % np.uint64(limit)).astype(np.int64)

    def between(self, low: int, high: int, size: int) -> Array:
        """Return whole numbers in [low, high], int64 of shape (lanes, size)."""
        return low + self.below(high - low + 1, size)

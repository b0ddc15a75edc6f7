"""Random bits that are the same on every machine: a counter-based generator keyed by what they are for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np

from ..cases.elements import Array


@dataclass(frozen=True)
class Draw:
    """A stream of bits keyed by a text, such as a case id (Philox 4x64-10: Salmon et al., SC 2011)."""

    key: str
    _stream: np.random.Philox = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digest = hashlib.blake2b(self.key.encode(), digest_size=16).digest()
        object.__setattr__(self, "_stream", np.random.Philox(key=int.from_bytes(digest, "little")))

    def bits(self, size: int) -> Array:
        """Return `size` words of 64 random bits, uint64."""
        return np.asarray(self._stream.random_raw(size), np.uint64)

    def below(self, limit: int, size: int) -> Array:
        """Return `size` whole numbers in [0, limit), int64; limit at most 2**63.

        By remainder: the bias, at most limit/2**64, does not matter to inputs of tests.
        """
        return (self.bits(size) % np.uint64(limit)).astype(np.int64)

    def between(self, low: int, high: int, size: int) -> Array:
        """Return `size` whole numbers in [low, high], int64."""
        return low + self.below(high - low + 1, size)

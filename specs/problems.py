"""A collector of mistakes, so that one run tells all of a file's."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..cases.errors import OpconformError, did_you_mean
from .reading import Document, Key, SpecError, SpecErrors


class Problems:
    """The mistakes found in one file so far."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.found: list[SpecError] = []

    def add(self, path: Iterable[Key], message: str, key: bool = False) -> None:
        """Note a mistake in the value at `path`, or in its key; the same one at the same place is noted once."""
        error = self.document.error(path, message, key)
        if not any((e.position, e.message) == (error.position, message) for e in self.found):
            self.found.append(error)

    def check(self, path: Iterable[Key], attempt: Callable[[], object]) -> bool:
        """Note what `attempt` raises, an OpconformError, as a mistake at `path`; return whether it raised nothing."""
        try:
            attempt()
        except OpconformError as error:
            self.add(path, str(error))
            return False
        return True

    def unknown(self, path: Iterable[Key], what: str, word: object, known: Iterable[object], key: bool = False) -> None:
        """Note that `word` names nothing, with the nearest known word, or all of them."""
        words = [str(k) for k in known]
        near = did_you_mean(str(word), words)
        listed = f"; known: {', '.join(words[:16])}{', ...' if len(words) > 16 else ''}" if words else "; there is none"
        self.add(path, f"{what}{near or listed}", key)

    def raise_any(self) -> None:
        """Raise SpecErrors if there is any mistake."""
        if self.found:
            raise SpecErrors(self.found)

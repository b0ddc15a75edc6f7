"""Built-in runners under other interpreters that have the library and NumPy: `--python`, `onnxruntime==1.15.0`.

The other interpreter runs `runners/clients/python_client.py`, a program behind the process protocol. The built-in
runners' tables decide here what the library's messages mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ...cases.runner import Unsupported, Words, meaning
from ..clients.python_client import CAUSE
from .command import Command, Refused

_T = TypeVar("_T")


class OtherInterpreter(Command):
    """A library under another interpreter."""

    def __init__(self, backend: str, command: str, words: Sequence[Words]) -> None:
        """Start the client; `words` is the built-in runner's table.

        Raises OpconformError if it cannot be started, or lacks the library.
        """
        super().__init__(backend, command)
        self._words = words

    def _answered(self, ask: Callable[[], _T]) -> _T:
        """Return the answer; a refusal is classified by the built-in runner."""
        try:
            return super()._answered(ask)
        except (Refused, Unsupported) as error:
            own, *causes = str(error).split(CAUSE)
            own_entry = meaning(self._words, own)
            tables = [
                entry for entry in (*(meaning(self._words, cause) for cause in causes), own_entry) if entry is not None
            ]
            reason = tables[0].reason if tables and error.reason == "other" else error.reason
            if isinstance(error, Unsupported):
                raise Unsupported(own, reason) from error
            if own_entry is not None and own_entry.plain:
                raise Unsupported(own.partition(": ")[2], reason) from error  # without the exception's class
            raise Refused(str(error), reason) from error

"""What runners of libraries share: the meaning of refusals, by a table of messages, and answers without a run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...cases.elements import Array
from ...cases.runner import NotInstalled, Reason, Unsupported, Words, meaning


def imported(module: str, package: str) -> Any:
    """Return a module of a library; NotInstalled if the library is missing, and not only this module."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise NotInstalled(f"{package} is not installed: pip install {package}") from error


class Refusing:
    """A runner that knows its library's messages; `words` is the table of them.

    `unimplemented` are classes of errors that say "not implemented" whatever their message.
    """

    words: Sequence[Words] = ()
    unimplemented: tuple[type[BaseException], ...] = ()

    def reason(self, error: BaseException, /) -> Reason:
        """Return why the library refused, as far as its message shows."""
        if isinstance(error, MemoryError):
            return "memory"
        entry = meaning(self.words, self.words_of(error))
        return entry.reason if entry else "other"

    def words_of(self, error: BaseException) -> str:
        """Return an error in the form that the table matches."""
        return str(error)

    def refuse_if_plain(self, error: Exception) -> None:
        """Raise Unsupported if `error` only says "not implemented"."""
        words = self.words_of(error)
        entry = meaning(self.words, words)
        if isinstance(error, self.unimplemented) or (entry is not None and entry.plain):
            raise Unsupported(words, self.reason(error)) from error

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Convert an error that only says "not implemented" to Unsupported."""
        try:
            yield
        except Exception as error:
            self.refuse_if_plain(error)
            raise


class Runs:
    """A prepared program that a function runs."""

    def __init__(self, run: Callable[[Sequence[Array]], Sequence[Any]]) -> None:
        self._run = run

    def run(self, inputs: Sequence[Array], /) -> Sequence[Any]:
        """Return the outputs. Raises Unsupported, or the library's own error."""
        return self._run(inputs)


class Texts:
    """The same answer whatever the inputs."""

    def __init__(self, texts: Sequence[Any]) -> None:
        self._texts = list(texts)

    def run(self, _inputs: Sequence[Array], /) -> Sequence[Any]:
        """Return the texts."""
        return self._texts

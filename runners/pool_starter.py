"""Starts the workers of a run, all from one template process, and from a new one where that is lost."""

from __future__ import annotations

from typing import Final

from ..cases.errors import OpconformError
from .pool_control import Template, TemplateLost, exit_words
from .pool_process import WorkerProcess

_ATTEMPTS: Final = 4  # templates lost in a row, the first two perhaps by what warms a fork


class WorkerStartError(OpconformError):
    """No worker can be started.

    `kind` is the class name of the exception that the factory raised and `message` its text; or `died` or `timeout` and
    how. `tail` is the last that the process wrote.
    """

    def __init__(self, kind: str, message: str, tail: str = "") -> None:
        super().__init__(f"a worker process could not be started: {kind}: {message}")
        self.kind = kind
        self.message = message
        self.tail = tail


class Starter:
    """Starts workers with a pickled `factory`: forks of a process where it is warm if `fork`, else new interpreters.

    `python` and `patience` are as for Template. A template that is lost before its first worker forks no more: what is
    wrong with it then shows in a worker, where it can be told.
    """

    def __init__(self, factory: bytes, python: str | None, patience: float, *, fork: bool) -> None:
        self._factory = factory
        self._python = python
        self._patience = patience
        self._fork = fork
        self._template: Template | None = None

    def worker(self, *, apart: bool = False) -> WorkerProcess:
        """Start a worker, `apart` with a template of its own. Raises WorkerStartError."""
        try:
            return self._apart() if apart else self._together()
        except OSError as error:
            raise WorkerStartError(type(error).__name__, str(error)) from error

    def close(self) -> None:
        """End the template and with it what is left of workers."""
        if self._template is not None:
            self._template.close()
            self._template = None

    def _together(self) -> WorkerProcess:
        lost = WorkerStartError("died", "no process that starts workers")
        for _ in range(_ATTEMPTS):
            if self._template is None:
                self._template = Template(self._python, self._factory if self._fork else None, self._patience)
            try:
                return self._with(self._template)
            except TemplateLost:
                lost = self._lost(self._template)
        raise lost

    def _lost(self, template: Template) -> WorkerStartError:
        self._template = None
        self._fork = self._fork and template.proven
        code, tail = template.close()
        return WorkerStartError("died", f"the process that starts workers ended by {exit_words(code)}", tail)

    def _apart(self) -> WorkerProcess:
        template = Template(self._python, None, self._patience)
        try:
            return self._with(template, owned=True)
        except TemplateLost:
            code, tail = template.close()
            words = f"the process that starts workers ended by {exit_words(code)}"
            raise WorkerStartError("died", words, tail) from None

    def _with(self, template: Template, *, owned: bool = False) -> WorkerProcess:
        return WorkerProcess(template, b"" if template.forks else self._factory, owned=owned)

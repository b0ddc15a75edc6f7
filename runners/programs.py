"""The programs of a worker: prepared once, shared by the cases that follow each other, and run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..cases.elements import Array
from ..cases.errors import ProgramError
from ..cases.program import Program
from ..cases.runner import Classifies, Executable, NotInstalled, Runner, Unsupported
from .answers import Answered, Refusal, answer_of
from .attaching import WORDS_KEPT

_KEPT = 16


@dataclass
class Prepared:
    """A program that the backend has prepared or refused, and how often it ran."""

    program: Program
    executable: Executable | None
    refusal: Refusal | None = None
    runs: int = 0


@dataclass
class Programs:
    """What a backend has made of programs, the last few. `name` is the backend's."""

    runner: Runner
    name: str
    _kept: OrderedDict[str, Prepared] = field(default_factory=OrderedDict)

    def prepared(self, program: Program) -> Prepared:
        """Return the program prepared, or as it was refused. Raises NotInstalled."""
        found = self._kept.get(program.key)
        if found is None:
            found = self._prepare(program)
            self._kept[program.key] = found
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(program.key)
        return found

    def taken_out(self, key: str) -> Prepared | None:
        """Return a program, and keep it no longer: the next time it is prepared anew."""
        return self._kept.pop(key, None)

    def put_back(self, key: str, prepared: Prepared) -> None:
        """Keep a program that was taken out, in place of one that was prepared since."""
        self._kept[key] = prepared

    def _prepare(self, program: Program) -> Prepared:
        if program.operator.standard not in self.runner.standards:
            words = f"{self.name} implements {', '.join(self.runner.standards)}, not {program.operator.standard}"
            return Prepared(program, None, Refusal(words, unsupported=True, reason="other"))
        try:
            return Prepared(program, self.runner.prepare(program))
        except Exception as error:
            return Prepared(program, None, self.refused(error))

    def answer(self, prepared: Prepared, inputs: Sequence[Array]) -> Answered:
        """Run a program; what it raises is a refusal. Raises NotInstalled."""
        if prepared.executable is None:
            if prepared.refusal is None:
                raise TypeError("a program is neither prepared nor refused")
            return prepared.refusal
        prepared.runs += 1
        try:
            return answer_of(prepared.program, prepared.executable.run(inputs))
        except Exception as error:
            return self.refused(error)

    def refused(self, error: Exception) -> Refusal:
        """Return the refusal that an exception of the backend is. Raises what is none: NotInstalled, ProgramError."""
        if isinstance(error, NotInstalled | ProgramError):
            raise error
        words = f"{type(error).__name__}: {error}" if not isinstance(error, Unsupported) else str(error)
        if isinstance(error, Unsupported):
            return Refusal(words[:WORDS_KEPT], unsupported=True, reason=error.reason)
        if isinstance(error, MemoryError):
            return Refusal(words[:WORDS_KEPT], unsupported=False, reason="memory")
        reason = self.runner.reason(error) if isinstance(self.runner, Classifies) else "other"
        return Refusal(words[:WORDS_KEPT], unsupported=False, reason=reason)

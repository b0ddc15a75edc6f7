"""`opconform check-runner`: checks that a program follows the process protocol."""

from __future__ import annotations

from collections.abc import Iterator

from ..cases.errors import OpconformError
from ..runners.programs.command_check import CommandCheck
from ..runners.registry import backend_spec


def checked_lines(backend: str, seconds: float) -> Iterator[tuple[str, bool]]:
    """Yield the lines to print, each with whether it reports a mistake. OpconformError if the program can't start."""
    spec = backend_spec(backend)
    if spec.scheme != "cmd":
        raise OpconformError(f"{backend}: check-runner is for programs over the process protocol: cmd:./program args")
    check = CommandCheck(backend, spec.target, seconds)
    try:
        if check.hello is not None:
            yield f"{check.hello.name} {check.hello.version}: {', '.join(check.hello.standards)}", False
        for checked in check.steps():
            if checked.problem is not None:
                yield f"wrong    {checked.step}: {checked.problem}\n         {checked.hint}", True
            elif checked.skipped is not None:
                yield f"skipped  {checked.step}: {checked.skipped}", False
            else:
                yield f"ok       {checked.step}", False
    finally:
        check.close()

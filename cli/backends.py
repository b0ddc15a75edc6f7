"""`opconform list backends`: lists backends, their versions and how they were found; `--check` runs a case on each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..cases.errors import NeedsArgumentError, OpconformError
from ..cases.results import Outcome
from ..cases.runner import NotInstalled
from ..generators.meanings import CasesOfEveryKind
from ..reports.text import printable
from ..runners.execution.execute import Assignment
from ..runners.execution.running import Judged, run_cases, standards_of
from ..runners.pool import Limits, WorkerStartError
from ..runners.registry import KnownBackend, backend_spec, known_backends

CASES = {
    "onnx": "onnx/Abs-13/float32/scalar/-/ramp",
    "openvino": "openvino/ReduceMean-1/float32,int32/1/axes=0/ramp",
    "onednn": "onednn/ReduceMean/float32/2x4/axes=1/ramp",
}
"""The case for checking a backend, by standard."""
SKIPPED, NOT_OPENED = "skipped", "not-opened"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a backend's case: an outcome or that it was not run, and its message, if any."""

    outcome: str
    words: str = ""

    @property
    def is_failure(self) -> bool:
        """Return whether the backend cannot be opened, or failed its case; unsupported is not a failure."""
        return self.outcome not in (Outcome.PASS, Outcome.UNSUPPORTED, SKIPPED)


def backend_lines(*, as_json: bool, check: bool) -> Iterator[tuple[str, bool]]:
    """Yield a line for each backend, and whether it reports a failure; with `check`, a case runs on each backend."""
    known = known_backends()
    names = max(len(backend.name) for backend in known)
    for backend in known:
        checked = check_backend(backend) if check else None
        line = json.dumps(_facts(backend, checked)) if as_json else _line(backend, checked, names)
        yield line, checked is not None and checked.is_failure


def check_backend(backend: KnownBackend) -> Checked:
    """Run a case of the first standard that a backend implements; a backend that is not installed is skipped."""
    limits, source = Limits(), CasesOfEveryKind()
    if not backend.installed:
        return Checked(SKIPPED)  # its line says what to install
    try:
        assignment = Assignment(backend_spec(backend.name), source)
        standards = standards_of(assignment, limits)
        case = next((CASES[standard] for standard in standards if standard in CASES), None)
        results = run_cases(assignment, [[case]] if case else [], jobs=1, limits=limits)
        result = next((judged.result for judged in results if isinstance(judged, Judged)), None)
    except (OpconformError, NotInstalled) as error:
        needs = isinstance(error, WorkerStartError) and error.kind == NeedsArgumentError.__name__
        return Checked(SKIPPED if needs else NOT_OPENED, str(error))
    if result is None:
        return Checked(NOT_OPENED, "it implements no standard")
    return Checked(str(result.outcome), (result.detail or "").partition("\n")[0])


def _facts(backend: KnownBackend, checked: Checked | None) -> dict[str, Any]:
    facts = {
        "name": backend.name,
        "version": backend.version,
        "standards": list(backend.standards),
        "summary": backend.summary,
        "installed": backend.installed,
        "found": backend.origin,
        "install": backend.install,
        "lacks": backend.lacks,
    }
    return facts if checked is None else {**facts, "check": checked.outcome, "words": checked.words}


def _line(backend: KnownBackend, checked: Checked | None, width: int) -> str:
    state = f"{backend.origin}" if backend.installed else f"not installed: {backend.install or 'see its documentation'}"
    state = f"not usable here: {backend.lacks}" if backend.lacks else state
    version, standards = backend.version or "-", ", ".join(backend.standards) or "-"
    line = f"{backend.name:<{width}} {version:<12} {standards:<9} {backend.summary} ({state})"
    if checked is None:
        return line
    return f"{checked.outcome:<11} {line}" + (f"\n    {printable(checked.words)}" if checked.words else "")

"""Runners written by others: `python:package.module:Class` and installed entry points, checked against the protocol."""

from __future__ import annotations

from typing import Any

from ..cases.errors import OpconformError, did_you_mean
from ..cases.runner import Runner
from .loading import make

STANDARDS = ("onnx", "openvino", "onednn")
_METHODS = ("version", "prepare")


def python_runner(backend: str, target: str, *arguments: str) -> Runner:
    """Make the runner of class `target`, with the arguments of its name, mostly none.

    OpconformError, beginning with `backend`, if it cannot be loaded or does not fulfil the protocol; what the class
    raises as NotInstalled passes.
    """
    runner: Runner = checked(backend, make(backend, target, *arguments))
    return runner


def checked(backend: str, made: Any) -> Any:
    """Return `made` if it has all that a runner has; OpconformError that names what is missing or wrong."""
    faults = [fault for fault in (_name_fault(made), _standards_fault(made)) if fault]
    faults += [f"no method {name!r}" for name in _METHODS if not callable(getattr(made, name, None))]
    if faults:
        raise OpconformError(
            f"{backend}: {type(made).__name__} is no runner: {', '.join(faults)}; docs/writing-a-runner.md shows one"
        )
    return made


def _name_fault(made: Any) -> str | None:
    name = getattr(made, "name", None)
    return None if isinstance(name, str) and name else f"'name' is {name!r}, expected a string"


def _standards_fault(made: Any) -> str | None:
    standards = getattr(made, "standards", None)
    if not isinstance(standards, tuple | list) or not standards:
        return f"'standards' is {standards!r}, expected a tuple such as ('onnx',)"
    unknown = [s for s in standards if s not in STANDARDS]
    if not unknown:
        return None
    near = did_you_mean(str(unknown[0]), STANDARDS)
    return f"{unknown[0]!r} in 'standards' is none of {', '.join(STANDARDS)}{near}"

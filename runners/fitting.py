"""Whether a built-in runner fits its library's release: an error that the runner itself makes is not the library's."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path
from types import ModuleType

from ..cases.runner import Runner

_OTHER_SIGNATURE = re.compile(
    r"unexpected keyword argument|invalid keyword argument|takes no keyword arguments"
    r"|takes .*positional arguments?|missing \d+ required|takes (exactly|at most|at least) "
    r"|(?<!'NoneType' )object is not callable"
)
"""Python's words for a call that the signature does not allow, whatever the arguments' values."""


def misfit(name: str, package: str, error: BaseException, runner: Runner | None = None) -> str | None:
    """Return what to tell the user if `error` shows that a built-in runner does not fit its library; else None.

    That is a missing attribute, a missing module, or a call with another signature, in a line of the runner itself.
    `runner` is None if it could not even be made.
    """
    raised_at = _line_of(error)
    if raised_at is None or not _is_ours(error):
        return None
    fits = f"; it supports {supported}" if (supported := _supported(package)) else ""
    why = f"{type(error).__name__}: {error} ({raised_at})"
    return (
        f"{name}: opconform's runner does not fit {package} {_release(package, runner)}: {why}{fits}. "
        "Use another release of the library or of opconform; no case failed because of this"
    )


def _release(package: str, runner: Runner | None) -> str:
    try:
        return runner.version() if runner is not None else importlib.metadata.version(package)
    except Exception:  # it may be what the release lacks
        return "of an unknown release"


def _line_of(error: BaseException) -> str | None:
    """Return `runners/backends/mnn.py:66` if a runner's own line raised the error; Python's own frames import it."""
    frame, last = error.__traceback__, None
    while frame is not None:
        file = Path(frame.tb_frame.f_code.co_filename)
        if not (file.name.startswith("<frozen importlib") or file.parent.name == "importlib"):
            last = file, frame.tb_lineno
        frame = frame.tb_next
    if last is None or last[0].parent != Path(__file__).with_name("backends"):
        return None
    return f"runners/backends/{last[0].name}:{last[1]}"


def _is_ours(error: BaseException) -> bool:
    if isinstance(error, AttributeError):  # of a plain value it would be an odd answer, such as None
        plain = type(error.obj).__module__ in ("builtins", "numpy")
        return error.name is not None and (isinstance(error.obj, ModuleType | type) or not plain)
    return isinstance(error, ImportError) or (
        isinstance(error, TypeError) and _OTHER_SIGNATURE.search(str(error)) is not None
    )


def _supported(package: str) -> str | None:
    """Return the requirement on a package that opconform's own metadata states: `MNN>=3.6`."""
    try:
        requirements = importlib.metadata.requires("opconform") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    stated = (requirement.partition(";")[0].strip() for requirement in requirements)
    return next(
        (requirement for requirement in stated if re.fullmatch(rf"{re.escape(package)}\s*[<>=!~].*", requirement)), None
    )

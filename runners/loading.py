"""Loads the users' own classes and functions, by `package.module:Class`."""

from __future__ import annotations

import importlib
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..cases.errors import OpconformError, did_you_mean
from ..cases.runner import NotInstalled

_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*(\.[^\W\d]\w*)*)?")


def is_target(text: str, *, with_class: bool) -> bool:
    """Return whether `text` has the form `package.module:Class`, or without `with_class` also `package.module`."""
    module, colon, _ = text.partition(":")
    well_formed = _TARGET.fullmatch(text) is not None and not module.endswith(".py")
    return well_formed and (bool(colon) or not with_class)


def load(backend: str, target: str) -> Any:
    """Return the module, or the attribute of a module, that `target` names.

    Raises OpconformError, beginning with `backend`, if there is none or if importing it fails.
    """
    module_name, _, path = target.partition(":")
    loaded = guarded(backend, f"importing {module_name}", lambda: _module(backend, module_name))
    for name in path.split(".") if path else ():
        if not hasattr(loaded, name):
            near = did_you_mean(name, [n for n in dir(loaded) if not n.startswith("_")])
            raise OpconformError(f"{backend}: {module_name} has no {path!r}{near}")
        loaded = getattr(loaded, name)
    return loaded


def make(backend: str, target: str, *arguments: str) -> Any:
    """Return the result of calling the class or function that `target` names; OpconformError if the call fails."""
    factory = load(backend, target)
    if not callable(factory):
        raise OpconformError(f"{backend}: {target} is {type(factory).__name__}, expected a class or a function")
    return guarded(backend, f"calling {target}()", lambda: factory(*arguments))


def guarded(backend: str, doing: str, call: Callable[[], Any]) -> Any:
    """Return the result of `call`, the user's code; OpconformError says where it failed.

    NotInstalled passes through.
    """
    try:
        return call()
    except (OpconformError, NotInstalled):
        raise
    # A module that runs its main part on import may well exit.
    except (Exception, SystemExit) as error:
        raise OpconformError(f"{backend}: {doing} failed: {_line_of(error)}{type(error).__name__}: {error}") from error


def _module(backend: str, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # A name is missing inside the user's module: that error is more specific than ours.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise OpconformError(
            f"{backend}: no module is called {error.name!r}; looked in {Path.cwd()} and on Python's path"
        ) from error


def _line_of(error: BaseException) -> str:
    """Return `file:line: ` of the innermost frame of the user's code, or of the syntax error."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: "
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    own = [f for f in frames if not f.filename.startswith("<frozen ") and Path(f.filename) != Path(importlib.__file__)]
    return f"{own[-1].filename}:{own[-1].lineno}: " if own else ""

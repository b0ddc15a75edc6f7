"""Any module or class with ONNX's backend interface: `onnx-backend:package.module[:Class]`."""

from __future__ import annotations

import importlib.metadata
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...cases.elements import Array, canonical
from ...cases.errors import OpconformError
from ...cases.onnx_model import onnx_model, output_names
from ...cases.program import Program, nested
from ...cases.runner import Executable, Unsupported
from ..loading import guarded, load, make
from .base import Runs

DEVICE = "CPU"

# Compared by name: ONNX's own class is in its test runner, and a backend may well define its own.
_PLAIN = frozenset({"BackendIsNotSupposedToImplementIt", "SkipTest", "NotImplementedError", "NotImplemented"})


class OnnxBackend:
    """A backend behind `prepare(model, device)` and `run(inputs)`, or behind `run_model(model, inputs, device)`."""

    standards: tuple[str, ...] = ("onnx",)

    def __init__(self, backend: str, target: str) -> None:
        """Load `target`.

        Raises OpconformError if that fails, or if it lacks the interface or does not support the CPU.
        """
        self.name = backend
        self._target = target
        self._backend = _interface(backend, target)
        supports = getattr(self._backend, "supports_device", _always)
        if not guarded(backend, f"calling supports_device({DEVICE!r})", lambda: supports(DEVICE)):
            raise OpconformError(f"{backend}: its supports_device says that it does not support {DEVICE!r}")

    def version(self) -> str:
        """Return the version of the backend's package, or `unknown`."""
        top = self._target.partition(":")[0].partition(".")[0]
        stated = getattr(sys.modules[top], "__version__", None)
        if stated is not None:
            return str(stated)
        try:
            return importlib.metadata.version(importlib.metadata.packages_distributions()[top][0])
        except (KeyError, importlib.metadata.PackageNotFoundError):
            return "unknown"

    def describe(self) -> dict[str, str]:
        """Return the device that models are prepared for."""
        return {"device": DEVICE}

    def prepare(self, program: Program, /) -> Executable:
        """Prepare the model of `program`. Raises Unsupported, or the backend's own error."""
        model = onnx_model(program)
        with _refusing():
            if getattr(self._backend, "is_compatible", _always)(model, DEVICE) is False:
                raise Unsupported("is_compatible says that the model is not compatible with the backend")
            prepare = getattr(self._backend, "prepare", None)
            rep = prepare(model, DEVICE) if prepare is not None else None

        def run(inputs: Sequence[Array]) -> Sequence[Any]:
            given = list(inputs) if program.is_plain else nested(program, inputs)
            with _refusing():
                # prepare may return None; such a backend runs whole models, and prepares again for each run
                outputs = self._backend.run_model(model, given, DEVICE) if rep is None else rep.run(given)
            if isinstance(outputs, Mapping):
                outputs = [outputs[name] for name in output_names(program)]
            elif not isinstance(outputs, tuple | list):
                outputs = [outputs]
            return [canonical(output) for output in outputs] if program.is_plain else list(outputs)

        return Runs(run)


def _interface(backend: str, target: str) -> Any:
    interface = load(backend, target)
    doors = [name for name in ("prepare", "run_model") if callable(getattr(interface, name, None))]
    if not doors:
        raise OpconformError(f"{backend}: {target} has neither 'prepare' nor 'run_model' of ONNX's backend interface")
    # The methods are class methods in the interface; if a class defines them as instance methods, make an instance.
    if isinstance(interface, type) and inspect.isfunction(inspect.getattr_static(interface, doors[0])):
        return make(backend, target)
    return interface


@contextmanager
def _refusing() -> Iterator[None]:
    """Convert an error whose class says "not implemented" to Unsupported."""
    try:
        yield
    except Exception as error:
        if any(cls.__name__ in _PLAIN for cls in type(error).__mro__):
            raise Unsupported(str(error) or type(error).__name__) from error
        raise


def _always(*_: object) -> bool:
    return True

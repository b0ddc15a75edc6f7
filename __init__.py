"""Conformance test suites for tensor operators, generated from YAML specs.

`check`, `bound` and `inputs` are the public Python API; docs/start-kernel-or-model.md shows their use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Bound, Checked, Interval, NotConforming, OperatorCase, bound, check, inputs, operator_inputs

__version__ = "0.1.0"

__all__ = [
    "Bound",
    "Checked",
    "Interval",
    "NotConforming",
    "OperatorCase",
    "bound",
    "check",
    "inputs",
    "operator_inputs",
]


def __getattr__(name: str) -> Any:
    """Import the API on first use: importing the package alone takes no time."""
    if name in __all__:
        from . import api  # noqa: PLC0415 - as above

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

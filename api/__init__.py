"""The public Python API: checks any function against an operator's standard. See docs/start-kernel-or-model.md."""

from __future__ import annotations

from .cases import OperatorCase, inputs
from .checking import Bound, Checked, Interval, NotConforming, bound, check
from .strategies import operator_inputs

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

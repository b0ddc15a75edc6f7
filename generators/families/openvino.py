"""What OpenVINO's operations do before the formula of ONNX's operator: rules of broadcasting."""

from __future__ import annotations

from ..arithmetic.binding import Formula
from ..arithmetic.tape import Call, Value


def broadcast(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """Two operands, broadcast by the rule that auto_broadcast names, and then the formula, element by element.

    a: shape D, b: shape E. With none, E equals D; with numpy, both stretch; with pdpd, only b does, to D. Source:
    OpenVINO's page "Broadcast Rules For Elementwise Operations", and Add-1 and similar operations.
    """
    rule = c.attr("auto_broadcast")
    c.require("rule-known", rule in ("none", "numpy", "pdpd"))
    c.require("no-broadcast", rule != "none" or a.shape == b.shape)
    fits = b.rank <= a.rank and all(e in (1, d) for d, e in zip(reversed(a.shape), reversed(b.shape), strict=False))
    c.require("pdpd", rule != "pdpd" or fits)
    found: Value = formula(a, b)
    return found

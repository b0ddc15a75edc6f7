"""What OpenVINO's operations do before the formula of ONNX's operator: rules of broadcasting."""

from __future__ import annotations

from ...cases.elements import element_type
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


def convert(c: Call, formula: Formula, x: Value) -> Value:
    """Each element converted to destination_type; where the page is silent, a range may saturate.

    x: any type; result: the same shape. Source: OpenVINO Convert-1.
    """
    own, to = element_type(x.type), element_type(str(c.output_types["output"]))
    if x.kind == "real" and to.name == "bool":
        small = ~x.equal(x.trunc()) & (x.abs() < 1.0)
        if c.open("small-to-bool", small) == "false":
            x = x.where(~small, 0.0)
        if c.open("nan-to-bool", x.isnan()) == "false":
            x = x.where(~x.isnan(), 0.0)
    elif x.kind == "int" and to.is_integer:
        high = min(own.largest, to.largest)
        low = max(own.smallest, to.smallest) if to.smallest else own.smallest
        if c.open("integer-range", (x > high) | (x < low)) == "saturates":
            x = x.clip(low, high)
    elif own.name != to.name and to.format and to.name not in ("float4e2m1", "float8e8m0"):
        largest = to.format.largest
        if (own.format.largest if own.format else own.largest) > largest:
            beyond = x.cast("float64").abs() > largest
            special = c.open("float-range", beyond) == "special"
            found: Value = formula(x if special else x.clip(-largest, largest), saturate=int(not special))
            return found
    found = formula(x)
    if to.name == "float8e8m0" != own.name:  # the page does not say how numbers other than powers of two round
        wide = x.cast("float64")
        found = found.undefined(~found.cast("float64").equal(wide) & ~wide.isnan())
    return found


def matmul(c: Call, formula: Formula, a: Value, b: Value) -> Value:
    """The product of two matrices, each transposed first if transpose_a or transpose_b says so; vectors never are.

    a: [batch..., M, K] or transposed; b: [batch..., K, N] or transposed. Source: OpenVINO MatMul-1.
    """
    a, b = (v.mT if c.attr(name) and v.rank > 1 else v for name, v in (("transpose_a", a), ("transpose_b", b)))
    found: Value = formula(a, b)
    return found

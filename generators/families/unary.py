"""Operators with one input and one output, element by element: signs, rounding, elementary functions, predicates."""

from __future__ import annotations

from ..arithmetic.tape import Call, Reference, Value


def _each(function: str) -> Reference:
    """Return the reference that applies a function to every element.

    Outside a real function's domain the result is NaN. Source: ONNX Abs-1 to Tanh-13.
    """

    def reference(_: Call, x: Value) -> Value:
        result: Value = getattr(x, function)()
        return result

    return reference


abs_, acos, acosh, asin, asinh, atan = map(_each, ("abs", "acos", "acosh", "asin", "asinh", "atan"))
atanh, cos, cosh, exp, log, reciprocal = map(_each, ("atanh", "cos", "cosh", "exp", "log", "reciprocal"))
sin, sinh, sqrt, tan, tanh = map(_each, ("sin", "sinh", "sqrt", "tan", "tanh"))


def negative(c: Call, x: Value) -> Value:
    """The element with the opposite sign. For a zero it is the other zero, or, as 0 - x, plus zero.

    Source: ONNX Neg-1 to 13.
    """
    if x.kind == "int" or c.open("zero", x.equal(0.0)) == "flipped":
        return -x
    return c.constant(0.0, x.type).where(x.equal(0.0), -x)


def _whole_number(function: str) -> Reference:
    """Return the reference that rounds every element to a whole number; `rint` rounds ties to even.

    If the version says so, whole numbers stay unchanged, including a zero's sign; otherwise a zero has either sign.
    Source: ONNX Ceil-1 to 13, Floor-1 to 13, Round-11 and 22.
    """

    def reference(c: Call, x: Value) -> Value:
        y: Value = getattr(x, function)()
        return x.where(x.equal(y), y.any_zero()) if "itself" in c.clauses else y

    return reference


ceil, floor, round_ = map(_whole_number, ("ceil", "floor", "rint"))


def sign(c: Call, x: Value) -> Value:
    """1, -1 or 0. Source: ONNX Sign-9 and 13."""
    return x.sign() if x.kind == "int" else or_number(c, x, x.sign())


def or_number(c: Call, x: Value, y: Value) -> Value:
    """Return y, which is NaN where x is; there, an option's number is admissible too."""
    taken = c.open("nan", x.isnan())
    return y if taken == "propagates" else c.constant({"zero": 0.0, "one": 1.0}[taken], x.type).where(x.isnan(), y)


def erf(c: Call, x: Value) -> Value:
    """The error function; version 9 also accepts integers, and does not define their rounding.

    Source: ONNX Erf-9 and 13.
    """
    if x.kind != "int":
        return x.erf()
    y = x.cast("float32").erf()
    return (y if c.open("integer-rounding") == "truncate" else y.rint()).cast(x.type)


def inverted(_: Call, x: Value) -> Value:
    """The negation of a truth value, or of every bit. Source: ONNX Not-1, BitwiseNot-18."""
    return ~x


def is_nan(_: Call, x: Value) -> Value:
    """Whether an element is NaN. Source: ONNX IsNaN-9 to 20."""
    return x.isnan()


def is_inf(c: Call, x: Value) -> Value:
    """Whether an element is an infinity of a wanted sign. Source: ONNX IsInf-10 and 20."""
    return x.isinf(positive=c.attr("detect_positive") != 0, negative=c.attr("detect_negative") != 0)


def identity(_: Call, x: Value | list[Value] | None) -> Value | list[Value] | None:
    """The input itself: a tensor, a sequence, or an optional. Source: ONNX Identity-1 to 25."""
    return x


def relu(c: Call, x: Value) -> Value:
    """The larger of 0 and the element. Source: ONNX Relu-1 to 14."""
    return x.maximum(0) if x.kind == "int" else or_number(c, x, x.maximum(0.0))

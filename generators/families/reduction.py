"""Reductions: axes as attribute or input, given, empty or missing, and what each standard leaves open about them."""

from __future__ import annotations

from ..arithmetic.tape import Call, Value


def mean(c: Call, data: Value, axes: Value | None = None) -> Value:
    """Return the arithmetic mean over axes.

    data: any shape and numeric type; axes: a list, or one axis, of int32 or int64 (OpenVINO: of any integer type).
    Result: the type of data, and its shape without the axes, or with 1 there. A mean of nothing is undefined.
    Source: ONNX ReduceMean-1 to 18, OpenVINO ReduceMean-1, oneDNN Graph ReduceMean.
    """
    over, keep = reduced_axes(c, data, axes)
    y = data.mean(over, keep=keep)
    if y.size and not all(data.shape[a] for a in over):
        c.open("empty-set")
    return y


def reduced_axes(c: Call, data: Value, axes: Value | None) -> tuple[tuple[int, ...], bool]:
    """Return the axes that are reduced, sorted and counted from the front, and whether they stay with extent 1."""
    c.require("axes-once", axes is None or not c.sets("axes"))
    listed = c.ints("axes")
    if data.rank == 0 and c.silent("rank-0-silent"):
        c.require("axes-range", not listed)
        c.open("rank-0-silent")
        return (), False
    over = _listed(c, data.rank, listed, axes) if listed else _unlisted(c, data.rank, listed)
    return over, _keeps(c)


def _listed(c: Call, rank: int, listed: tuple[int, ...], axes: Value | None) -> tuple[int, ...]:
    """Return the axes that a list means; at most one of its silences is open."""
    c.require("axes-rank", axes is None or axes.rank < 2)
    if not all(-rank <= a < rank for a in listed):
        _settle(c, "axes-range", "axes-range-early")
    over = tuple(sorted({a % rank for a in listed}))
    scalar = axes is not None and axes.rank == 0
    if len(over) < len(listed):
        fed_twice = axes is not None and "axes-input-unique" in c.clauses
        _settle(c, "axes-input-unique" if fed_twice else "axes-unique", "" if fed_twice else "axes-duplicate")
    elif min(listed) < 0:
        c.answer("axes-negative-early", "from-the-end")
    elif scalar and "axes-one" not in c.clauses:
        _settle(c, "axes-input-rank", "axes-scalar")
    return over


def _unlisted(c: Call, rank: int, listed: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the axes that an empty list means, or none at all."""
    whole = tuple(range(rank))
    noop = c.attr("noop_with_empty_axes")
    if noop is not None:
        meant = c.open("noop-other") if noop not in (0, 1) else "as-one" if noop else "as-zero"
        return () if meant == "as-one" else whole
    if listed is not None:
        identity = "axes-empty-identity" in c.clauses or c.open("empty-axes") == "identity"
        return () if identity else whole
    c.require("axes-required", "axes-required" not in c.clauses)
    return whole if "axes-absent" in c.clauses or c.open("axes-nowhere") == "reduce-all" else ()


def _settle(c: Call, clause: str, silence: str) -> None:
    """Go on if a version is silent about this, for the option taken; else it is invalid, by a clause."""
    c.require(clause, c.answer(silence, "invalid") != "invalid")


def _keeps(c: Call) -> bool:
    keep = c.attr("keepdims", c.attr("keep_dims"))
    return bool(keep) if keep in (0, 1) else c.open("keepdims-other") == "as-one"

"""Operators that read between the elements of an image: AffineGrid, GridSample, DeformConv."""

from __future__ import annotations

import numpy as np

from ..arithmetic.tape import Call, Value


def affine_grid(c: Call, theta: Value, _size: Value) -> Value:
    """Evenly spaced positions from -1 to 1, each put through an affine map.

    theta: [N, 2, 3], whose rows make x and y, or [N, 3, 4], x, y and z; size: N, C, H, W or N, C, D, H, W; result:
    [N, H, W, 2] or [N, D, H, W, 3]. The last axis of the image is x. -1 and 1 are the outer edges of the corner pixels,
    or, with align_corners, their centers. Source: ONNX AffineGrid-20.
    """
    sizes = c.ints("size") or ()
    extents = sizes[2:]
    r = len(extents)
    c.require("shapes", r in (2, 3) and theta.shape == (sizes[0], r, r + 1))
    lines = [_evenly(c, n, theta.type).reshape(-1, *(1,) * (r - 1 - axis)) for axis, n in enumerate(extents)]
    x, *others = (v.broadcast(*extents) for v in (*lines[::-1], c.constant(1.0, theta.type)))
    places = x.stack(*others).reshape(r + 1, -1)
    return theta.matmul(places).transpose(0, 2, 1).reshape(sizes[0], *extents, r)


def _evenly(c: Call, n: int, type_: str) -> Value:
    """The positions along an axis: counted by steps from the start, or as pixels' centers drawn in from the edges."""
    places, two = c.constant(np.arange(n), type_), c.constant(2.0, type_)
    spread = places * (two / max(n - 1, 1)) - 1.0
    if c.attr("align_corners") == 1:
        if n == 1 and c.open("one-corner") == "center":
            return places
        return spread
    step = two / max(n, 1)
    inward = spread * (c.constant(n - 1, type_) / max(n, 1)) if n > 1 else places
    return (places * step + (step / 2.0 - 1.0)).either(inward)

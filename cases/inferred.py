"""What a program says of its outputs' types and shapes, as text; the answers of shape inference have the same form.

`float32[2,N,?]` is a tensor of three dimensions, the last of them unknown; `float32` has an unknown rank, and `?` an
unknown type. Other types stand as they are, such as `seq(float32)`. An answer may also give a range, `0..5` or `1..`.

In an expected text a dimension may list several right words, as `N|M`, if the program lets them differ in name only.
A `?` after them says that the program does not determine the dimension: the words are right for this case, and an
unknown dimension says as much. `*` is a dimension that is computed from names, for which no number and no name is
right.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Sequence

INFERENCE = "inference"
"""What a result's behaviour has for an inference that is right: `exact`, or `open` if it says less than the program."""
UNKNOWN = "?"
COMPUTED = "*"

_TENSOR = re.compile(r"([^\[\]]+)(?:\[([^\[\]]*)\])?")
_RANGE = re.compile(r"(\d*)\.\.(\d*)")


class Agreement(enum.StrEnum):
    """How an inferred type and shape compare with the program's, from best to worst."""

    EXACT = "exact"
    OPEN = "open"
    WRONG_SHAPE = "wrong-shape"
    WRONG_TYPE = "wrong-type"


def inferred(type_: str | None, dims: Sequence[int | str | None] | None) -> str:
    """Return a type and dimensions as text; None is an unknown type, rank or dimension."""
    if type_ is None:
        return UNKNOWN
    if dims is None or "(" in type_:
        return type_
    return f"{type_}[{','.join(UNKNOWN if dim is None else str(dim) for dim in dims)}]"


def agreement(wanted: str, got: str, names: Collection[str]) -> Agreement:
    """Return how an answer compares with an expected text; `names` are the symbolic dimensions of the program's inputs.

    Any other name in an answer stands for an unknown dimension.
    """
    type_, dims = parsed(wanted)
    own_type, own_dims = parsed(got)
    if own_type == UNKNOWN:
        return Agreement.OPEN
    if own_type != type_:
        return Agreement.WRONG_TYPE
    if dims is None:
        return Agreement.EXACT
    if own_dims is None:  # if the data decide all dimensions, they may decide the rank, too
        free = bool(dims) and all(dim.endswith(UNKNOWN) for dim in dims)
        return Agreement.EXACT if free else Agreement.OPEN
    if len(own_dims) != len(dims):
        return Agreement.WRONG_SHAPE
    order = list(Agreement)
    each = (_of_dimension(dim, own, names) for dim, own in zip(dims, own_dims, strict=True))
    return max(each, key=order.index, default=Agreement.EXACT)


def parsed(text: str) -> tuple[str, tuple[str, ...] | None]:
    """Return the type and the dimensions of a text, None for an unknown rank; a type that is no tensor stands alone."""
    match = _TENSOR.fullmatch(text)
    if match is None:
        return text, None
    dims = match[2]
    return match[1], None if dims is None else tuple(dims.split(",")) if dims else ()


def _of_dimension(wanted: str, got: str, names: Collection[str]) -> Agreement:
    free = wanted.endswith(UNKNOWN)
    right = wanted.removesuffix(UNKNOWN).split("|")
    if got in right and got != COMPUTED:
        return Agreement.EXACT
    unknown = Agreement.EXACT if free or wanted == COMPUTED else Agreement.OPEN
    if match := _RANGE.fullmatch(got):
        numbers = [int(word) for word in right if word.isdecimal()]
        low, high = int(match[1] or 0), int(match[2]) if match[2] else None
        fits = all(low <= number and (high is None or number <= high) for number in numbers)
        return unknown if fits else Agreement.WRONG_SHAPE
    return Agreement.WRONG_SHAPE if got.lstrip("-").isdecimal() or (got in names and not free) else unknown

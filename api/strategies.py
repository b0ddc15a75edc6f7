"""`operator_inputs`: a Hypothesis strategy of calls of an operator version, which shrinks to the simplest one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cases.elements import Array, element_type, type_of
from .call import NO_TYPES
from .cases import OperatorCase, call_of, inputs

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

_MOST_CHANGES = 8
_SIMPLE = (0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 4.0, 0.25)


def operator_inputs(
    operator: str, *, types: Mapping[str, str] = NO_TYPES, seed: int = 0, most: int | None = None
) -> SearchStrategy[OperatorCase]:
    """Return a strategy of valid calls of `onnx/Conv-11`: one of the suite's cases, with some elements changed.

    Only elements that the suite fills freely are changed; a call that becomes invalid is not used. It shrinks to the
    smallest tensors, without changes. The arguments are those of `inputs`. Raises ValueError if there is no valid case
    with these types. Needs Hypothesis.
    """
    from hypothesis import reject  # noqa: PLC0415 - only for those who have it
    from hypothesis import strategies as st  # noqa: PLC0415 - as above

    cases = sorted((case for case in inputs(operator, types=types, seed=seed, most=most) if case.valid), key=_size)
    if not cases:
        raise ValueError(f"{operator}: no valid case has these types: {dict(types)}")

    @st.composite
    def drawn(draw: DrawFn) -> OperatorCase:
        case = draw(st.sampled_from(cases))
        changed = dict(case.inputs)
        for name in sorted(case.filled):
            array = changed.get(name)
            if isinstance(array, np.ndarray) and array.size:
                places = st.integers(0, array.size - 1)
                changed[name] = _changed(array, draw(st.dictionaries(places, _elements(array), max_size=_MOST_CHANGES)))
        made = replace(case, inputs=changed, batch=None)
        try:
            call = call_of(made)
            call.check_values(call.recording, [array[np.newaxis] for array in call.arrays])
        except ValueError:
            reject()
        return made

    return drawn()


def _size(case: OperatorCase) -> tuple[int, int]:
    return sum(np.size(value) for value in case.inputs.values() if value is not None), len(case.attributes)


def _elements(array: Array) -> Any:
    from hypothesis import strategies as st  # noqa: PLC0415 - as above

    element = element_type(type_of(array))
    if element.name in ("float16", "float32", "float64"):
        width: Any = element.bits
        return st.floats(width=width)
    if element.is_integer:
        return st.integers(element.smallest, element.largest)
    if element.kind == "string":
        return st.text(max_size=5)
    return st.booleans() if element.kind == "bool" else st.sampled_from(_SIMPLE)


def _changed(array: Array, changes: Mapping[int, Any]) -> Array:
    copy = np.array(array)
    flat = copy.reshape(-1)
    for position, value in changes.items():
        flat[position] = value
    return copy

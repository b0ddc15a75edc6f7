"""Mutants of shapes and memory: rank 0, empty tensors, broadcasting, numbers of inputs, order in memory, and state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...cases.elements import Array
from ...specs.model import VersionSpec
from .call import Call, Refused
from .implementation import Around, Compute, Implementation, Memory, finishing, refusing, rewriting

_FIRST_INPUTS = (1, 2, 3, 8, 16, 32)
Change = Callable[[Call, Array], Array]


def shape_mutants(version: VersionSpec) -> Iterator[Implementation]:
    """Yield the mutants of shapes and of memory."""
    yield from _ranks(version)
    yield from _memory_order()
    if version.signature.inputs[0].is_variadic:
        yield from _many_inputs()
        if "broadcast" in version.clauses:
            yield from _broadcasting()
    yield from _state(version)


def _mutant(name: str, text: str, around: Around, needs: str = "tensors") -> Implementation:
    return Implementation(name, "shape", text, needs, around=around)


def _ranks(version: VersionSpec) -> Iterator[Implementation]:
    if "rank-0-silent" not in version.silences:
        yield _mutant(
            "rank-0-refused",
            "refuses tensors of rank 0",
            refusing(lambda call: any(a.ndim == 0 for a in call.data), "a tensor of rank 0"),
            "tensors of rank 0 that are valid",
        )
    yield _mutant(
        "rank-0-as-vector",
        "answers a vector of one element for a tensor of rank 0",
        finishing(lambda _call, out: out.reshape(1) if out.ndim == 0 else out),
    )
    yield _mutant(
        "empty-refused",
        "refuses tensors without elements",
        refusing(lambda call: any(a.size == 0 for a in call.data), "a tensor without elements"),
    )
    yield _mutant(
        "empty-as-vector",
        "answers a vector without elements for any tensor without",
        finishing(lambda _call, out: out.reshape(0) if out.size == 0 else out),
    )
    yield _mutant(
        "empty-extents-as-one",
        "answers one element for an extent of 0",
        finishing(lambda _call, out: np.zeros([max(1, d) for d in out.shape], out.dtype) if out.size == 0 else out),
    )
    yield _mutant("vector-answered", "answers all elements as a vector", finishing(lambda _call, out: out.reshape(-1)))
    yield _mutant(
        "extent-added", "answers with an extent of 1 before all", finishing(lambda _call, out: out[np.newaxis])
    )
    yield _mutant(
        "rank-at-most-5",
        "refuses tensors of rank 6 and more",
        refusing(lambda call: any(a.ndim > 5 for a in call.data), "a tensor of rank 6"),
        "tensors of rank 6",
    )


def _memory_order() -> Iterator[Implementation]:
    yield _mutant(
        "output-transposed",
        "writes the output in the order of columns",
        finishing(lambda _call, out: out.T.reshape(out.shape)),
    )
    yield _mutant(
        "input-transposed",
        "reads inputs in the order of columns",
        rewriting(lambda call: call.with_data([_by_columns(a) for a in call.data]) if _several(call) else call),
    )
    yield _mutant(
        "output-reversed",
        "writes the output from its end",
        finishing(lambda _call, out: out.reshape(-1)[::-1].reshape(out.shape)),
    )
    yield _mutant("output-shape-reversed", "answers the extents in reverse order", finishing(_reversed_shape))
    yield _mutant("last-element-unwritten", "leaves the last element of the output at 0", finishing(_unwritten))


def _several(call: Call) -> bool:
    return any(a.ndim > 1 for a in call.data)


def _by_columns(array: Array) -> Array:
    return array.reshape(-1).reshape(array.shape, order="F") if array.ndim > 1 else array


def _reversed_shape(_call: Call, out: Array) -> Array:
    return out.reshape(out.shape[::-1])


def _unwritten(_call: Call, out: Array) -> Array:
    written = out.copy()
    if written.size > 1:
        written.reshape(-1)[-1] = 0
    return written


def _many_inputs() -> Iterator[Implementation]:
    needs = "any number of inputs"
    for k in _FIRST_INPUTS:
        yield _mutant(
            f"first-{k}-inputs",
            f"uses the first {k} inputs alone" if k > 1 else "uses the first input alone",
            rewriting(_of_first(k)),
            needs,
        )
    yield _mutant(
        "last-input-alone", "uses the last input alone", rewriting(lambda call: call.with_data(call.data[-1:])), needs
    )
    yield _mutant(
        "one-input-refused", "refuses a single input", refusing(lambda call: len(call.data) == 1, "one input"), needs
    )
    yield _mutant(
        "more-than-32-inputs-refused",
        "refuses more than 32 inputs",
        refusing(lambda call: len(call.data) > 32, "too many inputs"),
        needs,
    )


def _of_first(k: int) -> Callable[[Call], Call]:
    return lambda call: call.with_data(call.data[:k]) if len(call.data) > k else call


def _broadcasting() -> Iterator[Implementation]:
    needs = "inputs that broadcast"
    yield _mutant("broadcast-left", "aligns shapes at the first dimension", rewriting(_aligned_left), needs)
    yield _mutant(
        "broadcast-refused",
        "refuses inputs of different shapes",
        refusing(lambda call: len({a.shape for a in call.data}) > 1, "inputs of different shapes"),
        needs,
    )
    yield _mutant("broadcast-to-first", "stretches the later inputs to the first, and nothing else", _to_first, needs)
    yield _mutant(
        "broadcast-one-way",
        "refuses inputs that have to be stretched both",
        refusing(lambda call: _shape(call.data) not in {a.shape for a in call.data}, "no input has the shape"),
        needs,
    )
    yield _mutant(
        "broadcast-of-equal-ranks",
        "refuses inputs of different ranks",
        refusing(lambda call: len({a.ndim for a in call.data}) > 1, "inputs of different ranks"),
        needs,
    )
    yield _mutant("shape-of-first", "answers in the shape of the first input", finishing(_like(0)), needs)
    yield _mutant("shape-of-last", "answers in the shape of the last input", finishing(_like(-1)), needs)
    yield _mutant("stretched-by-repeating", "stretches by repeating the data in memory", rewriting(_tiled), needs)


def _shape(data: Sequence[Array]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*{a.shape for a in data})
    except ValueError:
        return ()


def _aligned_left(call: Call) -> Call:
    ranks = {a.ndim for a in call.data}
    if len(ranks) < 2:
        return call
    return call.with_data([a.reshape(a.shape + (1,) * (max(ranks) - a.ndim)) for a in call.data])


def _to_first(_memory: Memory, call: Call, own: Compute) -> Array:
    out = own(call)
    if call.data and out.shape != call.data[0].shape:
        raise Refused("the output has the shape of the first input")
    return out


def _like(index: int) -> Change:
    return lambda call, out: np.resize(out, call.data[index].shape)


def _tiled(call: Call) -> Call:
    shape = _shape(call.data)
    if all(a.shape == shape for a in call.data):
        return call
    return call.with_data([np.resize(a, shape) if a.size else np.zeros(shape, a.dtype) for a in call.data])


def _state(version: VersionSpec) -> Iterator[Implementation]:
    """Yield what a program keeps from one run to the next, though it should not."""
    for name, text, around in (
        ("first-answer-kept", "gives the answer of the program's first run again where the shape is the same", _kept),
        ("added-to-last-answer", "adds to the answer of the run before where the shape is the same", _accumulated),
    ):
        yield Implementation(name, "state", text, "programs that run more than once", around=around)
    if "dims" in version.parameters:
        text = "reads later inputs with the strides of the first, where ranks are the same"
        needs = "programs that run with several shapes"
        yield Implementation("first-strides-kept", "state", text, needs, around=_strides)
    for port in version.signature.inputs[1:]:
        yield Implementation(
            f"first-{port.name}-kept",
            "state",
            f"keeps the {port.name} of the program's first run",
            f"an input {port.name} that comes with the run",
            around=_keeping(port.name),
        )


def _kept(memory: Memory, call: Call, own: Compute) -> Array:
    out = own(call)
    first: Array = memory.setdefault("answer", out)
    return first if first.shape == out.shape else out


def _accumulated(memory: Memory, call: Call, own: Compute) -> Array:
    out = own(call)
    before = memory.get("answer")
    with np.errstate(all="ignore"):
        whole = out if before is None or before.shape != out.shape else (out + before).astype(out.dtype)
    memory["answer"] = whole
    return np.asarray(whole)


def _strides(memory: Memory, call: Call, own: Compute) -> Array:
    shapes = memory.setdefault("shapes", [a.shape for a in call.data])
    return own(call.with_data([_strided(a, shape) for a, shape in zip(call.data, shapes, strict=False)]))


def _strided(array: Array, shape: tuple[int, ...]) -> Array:
    """Return the array as it is read with the strides of another shape, wrapped around at its end."""
    if array.shape == shape or array.ndim != len(shape) or not array.size:
        return array
    strides = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
    places = sum(index * stride for index, stride in zip(np.indices(array.shape), strides, strict=True))
    return np.asarray(array.reshape(-1)[np.asarray(places) % array.size])


def _keeping(name: str) -> Around:
    def around(memory: Memory, call: Call, own: Compute) -> Array:
        array = call.others.get(name)
        if array is None or name not in call.fed:
            return own(call)
        first = memory.setdefault(name, array)
        return own(call if np.array_equal(first, array) else call.with_input(name, first))

    return around

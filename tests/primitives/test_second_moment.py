"""Tier T2: the second moment of narrow implementations' errors, where bounds on single elements say nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fakes.recorded import layer_normalization, recorded, recurrent, softmax

from opconform.cases.elements import Array, element_type
from opconform.generators.arithmetic.formula import Rules
from opconform.generators.arithmetic.recording import Recording
from opconform.generators.primitives.machine import Machine

LIMIT = 2.0  # the root of Spread.limit


def uniform(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(5)
    return [rng.uniform(-1, 1, (8, *shape)) for shape in shapes]


def product(c: Any, x: Any, y: Any) -> Any:
    return x.matmul(y)


LONG: dict[str, tuple[Callable[..., Any], list[Array], int]] = {
    "softmax": (softmax, [uniform((2, 300))[0] * 4], 1),
    "layer-normalization": (layer_normalization, [*uniform((4, 300), (300,), (300,))], 3),
    "product of matrices": (product, uniform((4, 512), (512, 4)), 1),
    "mean": (lambda c, x: x.mean(0), uniform((2048, 32)), 1),
    "recurrent": (recurrent, uniform((5, 2, 3), (3, 4), (4, 4)), 2),
}


def sigma(recording: Recording, arrays: list[Array]) -> tuple[Array, Array]:
    """The exact values of the first output, and the standard deviation that the model gives a narrow implementation."""
    from opconform.generators.arithmetic.graph import bounded

    narrow = recording.contexts[-1].using("spread", norm=2)
    known = recording.exact(arrays)
    at = recording.forks[0].outputs[0]
    errors = bounded(recording.graph, recording.live, known, narrow, [at])
    eta = narrow.at(recording.types[0]).storage.eta
    return known[at].f, np.sqrt(errors[at].e + eta**2)


@pytest.mark.parametrize("type_", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", LONG)
def test_narrow_implementations_stay_within_the_model(name: str, type_: str) -> None:
    reference, numbers, outputs = LONG[name]
    dtype = element_type(type_).dtype
    arrays = [a.astype(dtype) for a in numbers]
    recording = recorded(reference, arrays, [type_] * outputs)
    value, deviation = sigma(recording, arrays)
    for order in ("forward", "reverse", "pairwise"):
        answers, _ = recording.native(arrays, Machine(dtype, dtype, order))  # type: ignore[arg-type]  # one of three
        assert rms(answers[0], value, deviation) < LIMIT, order


@pytest.mark.parametrize("name", ["softmax", "product of matrices", "mean"])
def test_sums_that_are_scaled_do_not(name: str) -> None:
    reference, numbers, outputs = LONG[name]
    dtype = np.dtype(np.float16)
    arrays = [a.astype(dtype) for a in numbers]
    recording = recorded(reference, arrays, ["float16"] * outputs)
    value, deviation = sigma(recording, arrays)
    at = next(i for i, n in enumerate(recording.graph.nodes) if n.name in ("sum", "matmul", "mean"))
    scaled = {at: lambda m, room, xs, p: (room.native(m, *xs, **p).astype(float) * 1.5).astype(dtype)}
    answers, _ = recording.native(arrays, Machine(dtype, dtype, "forward", scaled))
    assert rms(answers[0], value, deviation) > LIMIT


def rms(answer: Array, value: Array, deviation: Array) -> float:
    return float(np.sqrt(np.mean(((answer.astype(np.float64) - value) / deviation) ** 2)))


@pytest.mark.slow
def test_random_data_alone_are_judged_by_their_second_moment_and_vacuous_bounds_alone() -> None:
    arrays = [a.astype(np.float16) for a in uniform((4096, 32))]
    recording = recorded(lambda c, x: x.mean(0), arrays, ["float16"])
    for random, short in ((True, False), (False, False)):
        options = recording.expectation(arrays, Rules(random=random)).options
        spreads = {dict(o.labels)["accumulator"]: o.outputs[0].spread is not None for o in options}
        assert spreads == {"wide": False, "stepwise": False, "narrow": random and not short}

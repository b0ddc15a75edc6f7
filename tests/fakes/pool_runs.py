"""Runs of the pool over keys, in which each key must come back once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fakes.pool_tasks import Faulty

from opconform.runners.pool import Limits, Loss, Pool, Stray

SOON = Limits(run_seconds=0.5, prepare_seconds=0.5)


def run(
    keys: Sequence[str],
    *,
    batch: int = 10,
    jobs: int = 1,
    limits: Limits = SOON,
    factory: Callable[[], Faulty] = Faulty,
    fork: bool = False,
    strays: bool = False,
) -> tuple[dict[str, bytes], dict[str, Loss]]:
    """Return records and losses by key, having seen to it that each key came back exactly once."""
    found = list(Pool(factory, jobs=jobs, limits=limits, fork=fork).run(split(keys, batch)))
    records = {f[0]: f[1] for f in found if type(f) is tuple}
    losses = {f.key: f for f in found if isinstance(f, Loss)}
    assert strays or not [f for f in found if isinstance(f, Stray)]
    assert sum(not isinstance(f, Stray) for f in found) == len(keys)
    assert sorted([*records, *losses]) == sorted(keys)
    return records, losses


def split(keys: Sequence[str], batch: int) -> Iterator[Sequence[str]]:
    return (keys[start : start + batch] for start in range(0, len(keys), batch))

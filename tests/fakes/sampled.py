"""What tests look at by default of many cases alike; `pytest -m slow` looks at the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from opconform.specs.model import Spec


def newest_of_each_family(specs: Iterable[Spec]) -> list[str]:
    """The newest version of the first operator of each family."""
    first: dict[str, Spec] = {}
    for spec in specs:
        first.setdefault(spec.family, spec)
    return [str(list(spec.versions.values())[-1].operator) for spec in first.values()]


def slow(*values: Any, **more: Any) -> Any:
    """Parameters with which a test is slow: others by default show the same rule."""
    return pytest.param(*values, marks=pytest.mark.slow, **more)


def each(names: Sequence[str], usual: Iterable[str]) -> pytest.MarkDecorator:
    """Parametrize `name`: all but the `usual` ones are slow."""
    chosen = set(usual)
    params = [name if name in chosen else slow(name) for name in names]
    return pytest.mark.parametrize("name", params)

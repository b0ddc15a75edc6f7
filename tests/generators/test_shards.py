from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.errors import OpconformError
from opconform.cases.ids import Selection, Shard, cost_of, of_shard, shard_of, shared_out
from opconform.generators.fills import RECIPES, UNDRAWN
from opconform.generators.selection import selected
from opconform.generators.source import GeneratedCases


@pytest.fixture(scope="module")
def ids() -> list[str]:
    return list(selected(GeneratedCases(), Selection(("*/ReduceMean*", "*/Mean-*"), draws=3)))


@pytest.mark.parametrize("count", [1, 2, 3, 8, 40])
def test_shards_are_complete_and_disjoint_and_keep_the_order(ids: list[str], count: int) -> None:
    shards = [list(of_shard(ids, Shard(index, count))) for index in range(1, count + 1)]
    assert Counter(text for shard in shards for text in shard) == Counter(ids)
    place = {text: number for number, text in enumerate(ids)}
    assert all([place[t] for t in shard] == sorted(place[t] for t in shard) for shard in shards)
    assert all(shards)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_shards_cost_about_the_same(ids: list[str], count: int) -> None:
    costs: Counter[int] = Counter()
    for index, part in shared_out(ids, count):
        costs[index] += 15_000 + sum(map(cost_of, part))  # its program, and its cases
    assert max(costs.values()) < 1.2 * costs.total() / count
    assert min(costs.values()) > 0.8 * costs.total() / count


@given(st.lists(st.integers(0, 3000), unique=True, min_size=1, max_size=60), st.integers(1, 9))
def test_any_selection_is_shared_out_whole(ids: list[str], places: list[int], count: int) -> None:
    some = [ids[place] for place in sorted(places)]
    found = list(shared_out(some, count))
    assert [text for _, part in found for text in part] == some
    assert {index for index, _ in found} == set(range(1, min(count, len(found)) + 1)), "none idles while others work"


def test_the_draws_of_a_case_stay_together() -> None:
    base = "onnx/ReduceMean-13/float32/3x2x2"
    ids = [f"{base}/axes=1{f';draw={n}' if n else ''}/{fill}" for fill in ("normal", "uniform") for n in range(50)]
    ids += [f"{base}/axes=2{f';draw={n}' if n else ''}/uniform" for n in range(50)]
    assert [len(part) for _, part in shared_out(ids, 2)] == [100, 50]


def test_symbolic_programs_are_shared_by_shapes_of_a_rank() -> None:
    ids = [f"onnx/ReduceMean-13/float32/{shape}/dims=symbolic/uniform" for shape in ("2x3", "4x5", "2x3x4")]
    assert [len(part) for _, part in shared_out(ids, 2)] == [2, 1]
    still = [text.replace("dims=symbolic", "keepdims=0") for text in ids]
    assert [len(part) for _, part in shared_out(still, 2)] == [1, 1, 1]


def test_very_many_draws_of_one_case_are_shared_out_too() -> None:
    ids = [f"onnx/ReduceMean-13/float64/5x5x4x6/{f'draw={n}' if n else '-'}/uniform" for n in range(1000)]
    costs = Counter(index for index, part in shared_out(ids, 4) for _ in part)
    assert max(costs.values()) < 1.2 * len(ids) / 4


def test_what_costs_more_counts_more() -> None:
    small, large = (f"onnx/ReduceMean-13/{{}}/{shape}/-/uniform" for shape in ("2", "30x40"))
    assert cost_of(small.format("float32")) < cost_of(large.format("float32")) < cost_of(large.format("float64"))
    assert cost_of("onnx/Mean-13/float32/none/-/ones/no-input") > 0


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "-1/3", "a/b", "1/3/5", "", "1/ 3", "²/3"])
def test_what_is_no_shard_is_told(text: str) -> None:
    with pytest.raises(OpconformError, match="expected I/N with I from 1 to N, as in 2/8"):
        shard_of(text)


def test_a_shard_is_read_as_it_is_written() -> None:
    assert shard_of("2/8") == Shard(2, 8)
    assert str(Shard(2, 8)) == "2/8"


def test_what_is_quick_to_sum_is_told_by_the_name_of_the_fill() -> None:
    plain = {
        name for name in RECIPES if cost_of(f"onnx/A-1/float64/3/-/{name}") == cost_of("onnx/A-1/float32/3/-/ramp")
    }
    assert plain == UNDRAWN

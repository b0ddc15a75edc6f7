"""Ensembles of decision trees of ai.onnx.ml: TreeEnsemble, TreeEnsembleRegressor, TreeEnsembleClassifier."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ...cases.elements import Array
from ...cases.program import Tensor
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from .scores import classified, labels, transformed

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_MODES: Mapping[str, Callable[[Value, Value], Value]] = MappingProxyType(
    {
        "BRANCH_LEQ": lambda v, split: v <= split,
        "BRANCH_LT": lambda v, split: v < split,
        "BRANCH_GTE": lambda v, split: v >= split,
        "BRANCH_GT": lambda v, split: v > split,
        "BRANCH_EQ": lambda v, split: v.equal(split),
        "BRANCH_NEQ": lambda v, split: ~v.equal(split),
    }
)


@dataclass(frozen=True)
class Leaf:
    """The votes of a leaf: targets, and the indices of their weights."""

    votes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Branch:
    """A comparison of a feature with a split, or with a set of members. `missing`: a NaN goes to `yes`."""

    mode: str
    feature: int
    splits: tuple[float, ...]
    missing: bool
    yes: Branch | Leaf
    no: Branch | Leaf


Tree: TypeAlias = Branch | Leaf


def tree_ensemble(c: Call, x: Value) -> Value:
    """The aggregated weights of the leaves that an example reaches, for each target.

    x: [N, F]; result: [N, n_targets] of its type, as are splits, members and weights. Leaves and branches of a tree are
    in separate lists. Source: ONNX ai.onnx.ml TreeEnsemble-5.
    """
    c.require("rank", x.rank == 2)
    splits, weights, modes = (np.asarray(c.attr(n).array()) for n in ("nodes_splits", "leaf_weights", "nodes_modes"))
    c.require("split-type", splits.dtype.name == weights.dtype.name == x.type)
    targets = c.attr("leaf_targetids")
    c.require("leaf-lengths", len(targets) == len(weights))
    lists = [c.attr(f"nodes_{name}") for name in ("featureids", "truenodeids", "falsenodeids")]
    lists += [c.attr(f"nodes_{name}") for name in ("trueleafs", "falseleafs", "missing_value_tracks_true")]
    lists[-1] = (0,) * len(splits) if lists[-1] is None else lists[-1]
    c.require("lengths", all(len(numbers) == len(splits) == len(modes) for numbers in lists))
    c.require("modes", all(mode < 7 for mode in modes.tolist()))
    members = _members(c, modes, splits.tolist())
    rows = list(zip(*lists, strict=True))

    def grown(index: int, *, leaf: bool) -> Tree:
        if leaf:
            return Leaf(((targets[index], index),))
        feature, yes, no, yes_leaf, no_leaf, missing = rows[index]
        name = "BRANCH_MEMBER" if modes[index] == 6 else list(_MODES)[modes[index]]
        branches = grown(yes, leaf=bool(yes_leaf)), grown(no, leaf=bool(no_leaf))
        return Branch(name, feature, members[index], bool(missing), *branches)

    trees = [grown(root, leaf=False) for root in c.attr("tree_roots")]
    count = _targets(c, targets)
    c.require("target-range", all(0 <= target < count for target in targets))
    aggregate = c.attr("aggregate_function")
    c.require("aggregate-known", 0 <= aggregate < len(_AGGREGATES))
    forest = _Forest(trees, x.shape[0], count, _conditions(c, x, trees))
    return transformed(c, forest.total(c, x.type, weights, _AGGREGATES[aggregate]))


def tree_ensemble_regressor(c: Call, x: Value) -> Value:
    """The aggregated weights of the leaves that an example reaches, plus a base value, for each target.

    x: [N, F]; result: float32 [N, n_targets]. Source: ONNX ai.onnx.ml TreeEnsembleRegressor-1 to 5.
    """
    trees, weights, ids = _read(c, x, "target")
    count = _targets(c, ids)
    aggregate = c.attr("aggregate_function")
    c.require("aggregate-known", aggregate in _AGGREGATES)
    forest = _Forest(trees, x.shape[0], count, _conditions(c, x, trees))
    return transformed(c, _scores(c, forest, weights, aggregate))


def tree_ensemble_classifier(c: Call, x: Value) -> tuple[Value, Value]:
    """The label of the class with the largest aggregated weight, and these weights for each class.

    x: [N, F]; results: [N] text or int64, float32 [N, E]. Source: ONNX ai.onnx.ml TreeEnsembleClassifier-1 to 5.
    """
    names = labels(c, "classlabels_int64s")
    trees, weights, ids = _read(c, x, "class")
    forest = _Forest(trees, x.shape[0], len(names), _conditions(c, x, trees))
    scores = _scores(c, forest, weights, "SUM")
    if len(names) == 2 and len(set(ids)) == 1 and c.open("one-voted") == "score-of-second":
        scores = scores[:, ids[0] : ids[0] + 1]
        return classified(c, scores, names)
    return classified(c, scores, names, forest.count(c) > 0)


def _scores(c: Call, forest: _Forest, weights: Array, aggregate: str) -> Value:
    """The aggregate in float32, or in float64 and rounded if some weight is not a float32 number."""
    base = _numbers(c, "base_values")
    c.require("base-length", base is None or len(base) == forest.targets)
    base = np.zeros(0) if base is None else base
    y = forest.total(c, "float32", weights.astype(np.float32), aggregate, base.astype(np.float32))
    if all(np.array_equal(values, values.astype(np.float32)) for values in (weights, base)):
        return y
    return y.either(forest.total(c, "float64", weights, aggregate, base).cast("float32"))


def _targets(c: Call, ids: Sequence[int]) -> int:
    if c.attr("n_targets") is None:
        c.open("targets-missing")
        return max(ids) + 1
    return int(c.attr("n_targets"))


def _numbers(c: Call, name: str) -> Array | None:
    """A list of float32 numbers, or the tensor that may replace it."""
    listed, tensor = c.attr(name), c.attr(f"{name}_as_tensor")
    c.require_if_stated("one-form", listed is None or tensor is None)
    if isinstance(tensor, Tensor):
        if "float64" not in c.types.values():
            c.open("doubles-beside")
        return np.asarray(tensor.array(), np.float64)
    return None if listed is None else np.array(listed, np.float32).astype(np.float64)


def _read(c: Call, x: Value, votes: str) -> tuple[list[Tree], Array, Sequence[int]]:
    """The trees, in the order of their ids, the weights and their targets."""
    c.answer("deprecated", "as-before")
    c.require("rank", x.rank == 2)
    names = ("treeids", "nodeids", "modes", "featureids", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    lists: list[Any] = [c.attr(f"nodes_{name}") for name in names]
    splits = _numbers(c, "nodes_values")
    lists[-1] = (0,) * len(lists[0]) if lists[-1] is None else lists[-1]
    c.require("lengths", splits is not None and all(len(numbers) == len(splits) for numbers in lists))
    assert splits is not None
    nodes = {
        (tree, node): (*rest, split)
        for (tree, node, *rest), split in zip(zip(*lists, strict=True), splits, strict=True)
    }
    c.require_if_stated("nodes-once", len(nodes) == len(splits))
    c.require("modes", all(mode in (*_MODES, "LEAF") for mode in lists[2]))
    columns = [c.attr(f"{votes}_{name}") for name in ("treeids", "nodeids", "ids")]
    weights = _numbers(c, f"{votes}_weights")
    c.require("vote-lengths", weights is not None and all(len(column) == len(weights) for column in columns))
    assert weights is not None
    rows = list(zip(*columns, strict=True))

    def grown(tree: int, node: int) -> Tree:
        mode, feature, yes, no, missing, split = nodes[tree, node]
        if mode == "LEAF":
            mine = [(target, vote) for vote, (t, n, target) in enumerate(rows) if (t, n) == (tree, node)]
            return Leaf(tuple(mine))
        return Branch(mode, feature, (float(split),), bool(missing), grown(tree, yes), grown(tree, no))

    roots = []
    for tree in dict.fromkeys(lists[0]):
        branches = [node for (t, _), node in nodes.items() if t == tree and node[0] != "LEAF"]
        below = {child for node in branches for child in node[2:4]}
        roots += [(tree, node) for t, node in nodes if t == tree and node not in below]
    return [grown(*root) for root in roots], weights, columns[2]


def _members(c: Call, modes: Array, splits: list[float]) -> list[tuple[float, ...]]:
    """The splits of each node: its own, or the set of consecutive members up to a NaN."""
    listed = c.attr("membership_values")
    values = [] if listed is None else listed.array().tolist()
    sets: list[list[float]] = [[]]
    for value in values:
        if value != value:  # noqa: PLR0124 - NaN
            sets.append([])
        else:
            sets[-1].append(value)
    wanted = int((modes == 6).sum())
    c.require("members", len(sets) - 1 == wanted and not sets[-1])
    if not all(sets[:-1]):
        c.open("empty-set")
    ordered = iter(sets)
    return [tuple(next(ordered)) if mode == 6 else (split,) for mode, split in zip(modes, splits, strict=True)]


def _branches(tree: Tree) -> Iterator[Branch]:
    if isinstance(tree, Branch):
        yield tree
        yield from _branches(tree.yes)
        yield from _branches(tree.no)


def _conditions(c: Call, x: Value, trees: Sequence[Tree]) -> dict[Branch, Value]:
    """A mask of the examples that go to `yes` at each branch, [N, 1].

    Numbers that float32 cannot represent may be compared as they are or as float32.
    """
    branches = list(dict.fromkeys(branch for tree in trees for branch in _branches(tree)))
    c.require("features", all(0 <= branch.feature < x.shape[1] for branch in branches))
    splits = np.array([split for branch in branches for split in branch.splits], np.float64)
    rounded = splits.astype(np.float32).astype(np.float64)
    if c.attr("nodes_splits") is not None or (x.type == "float32" and np.array_equal(splits, rounded)):
        return {branch: _taken(c, x, branch, branch.splits) for branch in branches}
    wide = {branch: _taken(c, x.cast("float64"), branch, branch.splits) for branch in branches}
    single = x.cast("float32")
    narrow = {branch: _taken(c, single, branch, np.array(branch.splits, np.float32).tolist()) for branch in branches}
    differs = [wide[branch] ^ narrow[branch] for branch in branches]
    if differs and c.open("compared-in", reduce(lambda a, b: a | b, differs)) == "float32":
        return narrow
    return wide


def _taken(c: Call, x: Value, branch: Branch, splits: Sequence[float]) -> Value:
    v = x[:, branch.feature : branch.feature + 1]
    compared = _MODES.get(branch.mode, _MODES["BRANCH_EQ"])
    none = c.constant(False, "bool").broadcast(*v.shape)
    matches = reduce(lambda a, b: a | b, [compared(v, v.of(split)) for split in splits], none)
    return matches | v.isnan() if branch.missing else matches & ~v.isnan()


class _Forest:
    """Evaluated trees: the content of the leaf that each example reaches."""

    def __init__(self, trees: Sequence[Tree], examples: int, targets: int, conditions: Mapping[Branch, Value]) -> None:
        self.trees, self.examples, self.targets, self.conditions = trees, examples, targets, conditions
        self.slots = max((self._most(tree) for tree in trees), default=1)

    def _most(self, tree: Tree) -> int:
        """The most votes of a leaf for one target."""
        if isinstance(tree, Branch):
            return max(self._most(tree.yes), self._most(tree.no))
        targets = [target for target, _ in tree.votes]
        return max((targets.count(target) for target in targets), default=1)

    def total(self, c: Call, to: str, weights: Array, aggregate: str, base: Array | None = None) -> Value:
        """The weights of the reached leaves, aggregated in a type, plus the base values: [N, targets]."""
        least = {"MIN": math.inf, "MAX": -math.inf}.get(aggregate, 0.0)
        parts = self._reached(c, to, weights, least)
        added = [] if base is None or not len(base) else [c.constant(base, to)]
        if aggregate == "SUM":
            return self._sum(parts, added)
        if aggregate == "AVERAGE":
            n = c.constant(len(self.trees), to)
            count = self.count(c)
            if c.open("averaged", ~count.equal(len(self.trees))) == "of-votes":
                n = count.maximum(1).cast(to).undefined(count.equal(0))
            y = (self._sum(parts, []) / n).either((parts / n.reshape(*n.shape[:1], 1, *n.shape[1:])).sum(1, keep=False))
        else:
            y = parts.min(1, keep=False) if aggregate == "MIN" else parts.max(1, keep=False)
            none = self.count(c).equal(0)
            y = y.of(0.0).where(none, y).undefined(none)
        return y + added[0] if added else y

    def _sum(self, parts: Value, added: Sequence[Value]) -> Value:
        n = parts.shape[0]
        rows = [addend.broadcast(n, self.targets).reshape(n, 1, self.targets) for addend in added]
        return parts.concat(rows, 1).sum(1, keep=False) if rows else parts.sum(1, keep=False)

    def count(self, c: Call) -> Value:
        """The number of votes for each target, [N, targets]."""
        return self._reached(c, "int64", None, 0).sum(1, keep=False)

    def _reached(self, c: Call, to: str, weights: Array | None, least: float) -> Value:
        """The weights at the reached leaves, or ones if None: [N, trees * slots, targets]; `least` without a vote."""

        def walked(tree: Tree) -> Value:
            if isinstance(tree, Branch):
                return walked(tree.yes).where(self.conditions[tree], walked(tree.no))
            table = np.full((1, self.slots, self.targets), least)
            taken = [0] * self.targets
            for target, vote in tree.votes:
                table[0, taken[target], target] = 1 if weights is None else weights[vote]
                taken[target] += 1
            return c.constant(table.reshape(1, -1).astype(np.int64 if weights is None else np.float64), to)

        rows = [walked(tree).broadcast(self.examples, self.slots * self.targets) for tree in self.trees]
        parts = [row.reshape(self.examples, self.slots, self.targets) for row in rows]
        return parts[0].concat(parts[1:], 1) if parts[1:] else parts[0]


def around(drawing: Drawing) -> Array:
    """Splits of the feature, their neighbours in the type and in float32, and numbers between."""
    return _drawn(drawing, [])


def missing(drawing: Drawing) -> Array:
    """The same, with NaN and infinities."""
    return _drawn(drawing, [math.nan, math.nan, math.nan, math.inf, -math.inf] if drawing.type.format else [])


def _drawn(drawing: Drawing, others: list[float]) -> Array:
    attributes = drawing.attributes
    names = ("nodes_values", "nodes_values_as_tensor", "nodes_splits", "membership_values")
    given = [attributes[name] for name in names if attributes.get(name) is not None]
    splits = np.concatenate(
        [numbers.array() if isinstance(numbers, Tensor) else np.array(numbers, np.float32) for numbers in given]
    )
    splits = np.unique(splits[np.isfinite(splits)].astype(np.float64))
    dtype = drawing.type.dtype
    if drawing.type.format:
        sides = [side for end in (-np.inf, np.inf) for side in _next(splits, dtype, end)]
        pool = np.array([*splits, *splits, *sides, *((splits[1:] + splits[:-1]) / 2), -100.0, 100.0, *others])
    else:
        floors = np.floor(splits)
        pool = np.array([*floors, *(floors + 1), *(floors - 1), -100.0, 100.0])
    return np.asarray(pool[drawing.draw.below(len(pool), drawing.size)])


def _next(splits: Array, dtype: Any, end: float) -> list[float]:
    """The neighbours of the splits on one side, in a type and in float32."""
    return [
        float(np.nextafter(np.asarray(s, t), np.asarray(end, t)))
        for t in dict.fromkeys((np.dtype(dtype), np.dtype(np.float32)))
        for s in splits
    ]

"""Certificates: the derivation of a case's bounds, in numbers that anybody can check without this package."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from ..cases.batch import Batch, Labels, Option
from ..cases.elements import Array
from ..cases.results import Level
from .arithmetic import graph as graphs
from .arithmetic import options
from .arithmetic.formula import Fork
from .arithmetic.graph import Node
from .arithmetic.recording import Recording
from .primitives.errors import Charge, Context, Error, Known, declared
from .source import GeneratedCases, Reasoning

Number: TypeAlias = Fraction | float | int | bool | str
"""An exact value; a float is NaN or an infinity."""

LARGEST = 1 << 20
"""The most elements that all nodes of a formula may have together for exact results to be computed as fractions."""


@dataclass(frozen=True)
class Step:
    """The largest error of one rounding, or one sum, at a node: one lane's part of a Charge.

    `unit` is the unit roundoff u. `error` has the shape of the node's result. For a sum, `terms` is n and `magnitude`
    is M = Σ|x|/n.
    """

    node: int
    rule: str
    unit: float
    error: Array
    terms: int | None
    magnitude: Array | None


@dataclass(frozen=True)
class Result:
    """The result of a node: its exact elements as float64 or whole numbers, and its largest error.

    `error` bounds an implementation's error; for bool it is positive where both results are admissible. `fractions` are
    the exact elements, with zero for NaN and infinities; None if fractions cannot express them, or there are too many.
    """

    values: Array
    error: Array
    fractions: Array | None

    @functools.cached_property
    def exact(self) -> tuple[Number, ...] | None:
        """The exact elements in C order, as fractions; NaN and infinities as floats."""
        if self.fractions is None:
            return None
        fractions = self.fractions.reshape(-1).tolist()
        if self.values.dtype.kind != "f":
            return tuple(fractions)
        floats = self.values.reshape(-1).tolist()
        return tuple(exact if math.isfinite(f) else f for exact, f in zip(fractions, floats, strict=True))


@dataclass(frozen=True)
class Derivation:
    """One reading of a case under one arithmetic.

    `labels` name the reading and `context` the arithmetic; `level` is the authority that admits it. `flushed`:
    subnormal inputs are read as zeros. `formula` has the nodes in order, by their index in the recording; `outputs` are
    the indices of the results. `ports` has the index of each port's tensor among the case's inputs; None if it is a
    constant of the program. `compute` returns `results` and `steps`, which not every reader needs.
    """

    labels: Labels
    context: Context
    level: Level
    flushed: bool
    formula: Mapping[int, Node]
    ports: tuple[int | None, ...]
    outputs: tuple[int, ...]
    text: tuple[str, ...]
    compute: Callable[[], tuple[Mapping[int, Result], tuple[Step, ...]]] = field(repr=False, compare=False)

    @property
    def results(self) -> Mapping[int, Result]:
        """The result of each node of the formula."""
        return self._computed[0]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The largest error of each rounding and each sum."""
        return self._computed[1]

    @functools.cached_property
    def _computed(self) -> tuple[Mapping[int, Result], tuple[Step, ...]]:
        return self.compute()


@dataclass(frozen=True)
class Certificate:
    """A case with the derivations of its expectation.

    `of_option` has the index of the derivation of each option of the expectation; None if nothing is computed.
    """

    case: Batch
    derivations: tuple[Derivation, ...]
    of_option: tuple[int | None, ...]


def certificate(source: GeneratedCases, case: Batch) -> Certificate:
    """Return the certificate of a single case."""
    case = case.case(0)  # with the labels of what is open in it
    reasoning = None if case.expectation.invalid else source.reasoning(case)
    if reasoning is None:
        return Certificate(case, (), (None,) * len(case.expectation.options))
    recording = reasoning.recording
    expectation = recording.expectation(list(reasoning.arrays), reasoning.rules, 1)
    chosen = [option for option in expectation.options if option.applies.all()]
    if len(chosen) != len(case.expectation.options):
        raise ValueError(f"{case.id}: its expectation differs from the source's")
    deriving = _Deriving(reasoning)
    derivations: dict[_Key, Derivation] = {}
    of_option: list[int | None] = []
    for option in chosen:
        branch = deriving.branch(option)
        if branch is not None and branch.key not in derivations:
            derivations[branch.key] = deriving.derivation(branch)
        of_option.append(None if branch is None else [*derivations].index(branch.key))
    return Certificate(case, tuple(derivations.values()), tuple(of_option))


_Key: TypeAlias = tuple[Labels, str, str, bool]


@dataclass(frozen=True)
class _Branch:
    """A reading under an arithmetic, with the labels of the expectation's option."""

    fork: Fork
    context: Context
    level: Level
    flushed: bool

    @property
    def key(self) -> _Key:
        return self.fork.labels, self.context.name, self.context.variant, self.flushed


class _Deriving:
    """One case's formula and tensors, with a lane axis of one."""

    def __init__(self, reasoning: Reasoning) -> None:
        self.recording: Recording = reasoning.recording
        self.rules, self.ports = reasoning.rules, reasoning.places
        self._maker = options.Maker(self.recording, list(reasoning.arrays), reasoning.rules, 1)
        self._exact: dict[bool, tuple[dict[int, Known], Mapping[int, Array | None]]] = {}

    def branch(self, option: Option) -> _Branch | None:
        """Return the reading and arithmetic of an option; None if nothing is computed."""
        if option.kind != "values":
            return None
        fork = max(
            (f for f in self.recording.forks if f.labels == option.labels[: len(f.labels)]),
            key=lambda f: len(f.labels),
        )
        if fork.kind != "values":
            return None
        own = dict(option.labels[len(fork.labels) :])
        context = self._context(own.get("accumulator"), option.level)
        if own.get("summation") == "running-means":
            context = context.using("running-means", summation="running-means")
        work = self.recording.works[self.recording.forks.index(fork)]
        flushed = own.get("flush") == "input-and-output"
        if own.get("flush", "none") != "none":
            context = options.Branch(self._maker, fork, work, context, flushed).flushing()
        return _Branch(fork, context, option.level, flushed)

    def _context(self, name: str | None, level: Level) -> Context:
        """Return the arithmetic of options by their label; None if nothing rounds."""
        if level == "declared":
            return declared(self.recording.real_types, self.rules.declared)
        contexts = self.recording.contexts
        return next((context for context in contexts if context.name == name), contexts[0])

    def derivation(self, branch: _Branch) -> Derivation:
        graph, outputs = self.recording.graph, branch.fork.outputs
        formula = {at: graph.nodes[at] for at in graph.live(outputs)}
        return Derivation(
            branch.fork.labels,
            branch.context,
            branch.level,
            branch.flushed,
            formula,
            tuple(self.ports),
            outputs,
            tuple(self.recording.derivation(self.recording.forks.index(branch.fork))),
            functools.partial(self._numbers, branch, formula),
        )

    def _numbers(self, branch: _Branch, formula: Mapping[int, Node]) -> tuple[Mapping[int, Result], tuple[Step, ...]]:
        if branch.flushed not in self._exact:
            self._exact[branch.flushed] = self._values(branch.flushed)
        known, fractions = self._exact[branch.flushed]
        charged = graphs.charges(self.recording.graph, tuple(formula), known, branch.context)
        results = {at: _result(node, known[at], charged[at][0], fractions[at]) for at, node in formula.items()}
        steps = tuple(_step(at, charge) for at in formula for charge in charged[at][1])
        return results, tuple(step for step in steps if step.error.any() or step.terms is not None)

    def _values(self, flushed: bool) -> tuple[dict[int, Known], Mapping[int, Array | None]]:
        arrays, known = self._maker.flushed if flushed else (self._maker.arrays, self._maker.values)
        with np.errstate(all="ignore"):  # signalling NaNs
            return known, _fractions(self.recording, arrays, known)


def _result(node: Node, known: Known, error: Error, fractions: Array | None) -> Result:
    values = known.f if node.kind == "real" else known.v
    e = np.broadcast_to(np.asarray(error.e, np.float64), known.v.shape)[0, ...]
    return Result(values[0, ...], e, None if fractions is None else np.broadcast_to(fractions, known.v.shape)[0, ...])


def _step(at: int, charge: Charge) -> Step:
    magnitude = None if charge.magnitude is None else charge.magnitude[0, ...]
    return Step(at, charge.rule, charge.unit, np.asarray(charge.error[0, ...]), charge.terms, magnitude)


def _fractions(recording: Recording, arrays: Sequence[Array], known: Mapping[int, Known]) -> Mapping[int, Array | None]:
    """Return the exact elements of each node, lanes first; None if fractions cannot express them.

    NaN and infinities are replaced by zero. If that changes a finite element of a node, the node has None.
    """
    nodes = recording.graph.nodes
    if sum(known[at].v[0, ...].size for at in recording.live) > LARGEST:
        return dict.fromkeys(recording.live)
    fractions: dict[int, Array | None] = {}
    for at in recording.live:
        node = nodes[at]
        operands = [fractions[a] for a in node.args]
        if node.kind != "real":  # exact as it is
            fractions[at] = None if node.kind == "complex" else known[at].v
        elif node.name == "port":
            fractions[at] = _lifted(arrays[node.parameters["port"]])
        elif node.name == "literal":
            fractions[at] = _lifted(graphs.literal(node))
        elif any(x is None for x in operands) or not (node.room.rational or node.room.work == "moves"):
            fractions[at] = None
        else:
            made = _computed(node, [x for x in operands if x is not None])
            odd = any(nodes[a].kind == "real" and not np.isfinite(known[a].f).all() for a in node.args)
            fractions[at] = None if made is not None and odd and not _are(made, known[at].f) else made
    return fractions


def _are(fractions: Array, values: Array) -> bool:
    """Return whether fractions equal the finite elements of float64 values, up to rounding."""
    finite = np.isfinite(values)
    try:
        numbers = np.broadcast_to(fractions, values.shape)[finite].astype(np.float64)
    except OverflowError:
        return False
    return bool(np.allclose(numbers, values[finite], rtol=2.0**-40, atol=0.0))


def _computed(node: Node, operands: Sequence[Array]) -> Array | None:
    try:
        return np.asarray(node.room.fractions(*operands, **node.parameters))
    except (ZeroDivisionError, TypeError, AttributeError):  # not a number, or no rule for fractions
        return None


def _lifted(array: Array) -> Array:
    lifted = np.empty(array.shape, object)
    floats = array.astype(np.float64).reshape(-1).tolist()
    lifted.reshape(-1)[:] = [Fraction(x) if math.isfinite(x) else Fraction(0) for x in floats]
    return lifted

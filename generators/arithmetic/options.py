"""Turns a recorded formula into an expectation: every reading under every admissible arithmetic, as options."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

import numpy as np

from ...cases.batch import (
    Bounds,
    Check,
    Expectation,
    Labels,
    Option,
    Residue,
    Spread,
)
from ...cases.elements import Array, element_type
from ..primitives.errors import (
    EXCEPTIONAL,
    FREE,
    NAN,
    NEGATIVE,
    NEGATIVE_ZERO,
    POSITIVE,
    POSITIVE_ZERO,
    PRECISION,
    ZERO,
    Context,
    Error,
    Known,
    carrier,
    declared,
    exceeds,
    format_of,
    kind_of,
    limits,
    nearest,
    precise,
    rounded,
    two_sum,
    widened,
)
from .formula import Fork, Formula, Rules, Work
from .graph import Graph, bounded

_VAGUE_FROM = 32  # outputs: a second moment over fewer means too little

_TWICE_AS_LONG = 2.0**-900
"""From here on, a sum of two float64 numbers has 107 significant bits."""

Outputs: TypeAlias = tuple[Bounds, ...]
MaybeFlags: TypeAlias = Array | None
_NONE: Final = Error()


@dataclass
class Maker:
    """Makes the expectation of a program's lanes."""

    recording: Formula
    arrays: list[Array]
    rules: Rules
    lanes: int
    _errors: dict[object, Mapping[int, Error]] = field(default_factory=dict)
    _small: dict[object, Array] = field(default_factory=dict)

    @functools.cached_property
    def values(self) -> dict[int, Known]:
        """The exact values of all nodes."""
        return self.recording.exact(self.arrays)

    @functools.cached_property
    def flushed(self) -> tuple[list[Array], dict[int, Known]]:
        """The inputs with subnormal numbers read as zeros, and all nodes' exact values for these inputs."""
        arrays = list(self.arrays)
        for index, type_ in self.recording.real_ports:
            arrays[index] = flushed_input(arrays[index], format_of(type_).tiny)
        return arrays, self.recording.exact(arrays)

    @functools.cached_property
    def small(self) -> Array:
        """A mask of the lanes with subnormal numbers in any input."""
        small = np.zeros(self.lanes, bool)
        for index, type_ in self.recording.real_ports:
            small = small | self.any_lane(_subnormal(self.arrays[index], format_of(type_).tiny))
        return small

    @functools.cached_property
    def wrapped(self) -> dict[int, Known] | None:
        """All nodes' exact values for inputs wrapped around in the integer types that are declared; None without any.

        A formula with floating-point numbers has none: what becomes of these is declared for their own types.
        """
        ports = {
            index: declared
            for index, type_ in self.recording.whole_ports
            if (declared := self.declared_integers.get(type_))
        }
        if not ports or self.recording.real_types:
            return None
        arrays = [wrapped(array, ports[n]) if n in ports else array for n, array in enumerate(self.arrays)]
        return self.recording.exact(arrays)

    @functools.cached_property
    def declared_integers(self) -> dict[str, str]:
        """The integer types in which declared integer types compute."""
        declared = self.rules.declared.items()
        return {t: d.compute for t, d in declared if d.compute and kind_of(t) == "int"}

    def errors(self, context: Context, *, flushed: bool) -> Mapping[int, Error]:
        """Return the errors of all forks' outputs and means in a context, computed once per context."""
        key = context.name, context.variant, flushed
        if key not in self._errors:
            recording, values = self.recording, self.flushed[1] if flushed else self.values
            outputs = tuple(dict.fromkeys(at for fork in recording.forks for at in fork.outputs))
            self._errors[key] = bounded(recording.graph, recording.live_of(outputs), values, context, outputs)
        return self._errors[key]

    def small_inside(self, at: int, context: Context, values: Mapping[int, Known], *, last: bool) -> Array:
        """Return a mask of the lanes in which a node has results below the normal range, computed once per context.

        `last`: the node's own results are outputs, and do not count.
        """
        key = at, context.name, context.variant, values is self.values, last
        if key not in self._small:
            node, value, lanes = self.recording.graph.nodes[at], values[at], np.zeros(self.lanes, bool)
            c = context.at(node.computes)
            if not last:
                lanes = lanes | self.any_lane((value.size > 0) & (value.size < 2 * c.storage.tiny))
            inside = node.room.underflows(c, value, [values[a] for a in node.args], **node.parameters)
            self._small[key] = lanes if inside is None else lanes | self.any_lane(inside)
        return self._small[key]

    def expectation(self) -> Expectation:
        """Return the options of all forks, each in the lanes in which its silences are open."""
        if self.recording.invalid_clause:
            return Expectation((), self.recording.types, self.lanes)
        with np.errstate(all="ignore"), precise():
            options = list(self._all_options())
        return Expectation(tuple(options), self.recording.types, self.lanes)

    def _all_options(self) -> Iterator[Option]:
        forks, valid = self.recording.forks, self._valid
        anywhere = np.logical_or.reduce(valid)
        for index, (fork, where) in enumerate(zip(forks, self._applies(), strict=True)):
            own = valid[index]
            here = where & own
            if here.any():
                checks = self._checks(fork, self.values)
                for option in self._options(fork, self.recording.works[index]):
                    both = option.applies & here
                    if both.any():
                        labels = (*fork.labels, *option.labels)
                        own_checks = option.checks or checks
                        yield replace(option, labels=labels, applies=both, structure=fork.structure, checks=own_checks)
            if own is not self._everywhere:
                refused = where & anywhere & ~own  # this reading expects a refusal
                if refused.any():
                    yield Option(fork.labels, kind="rejected", applies=refused)

    def _checks(self, fork: Fork, values: Mapping[int, Known]) -> tuple[Check, ...]:
        made = []
        for check in fork.checks:
            arrays = tuple(self._laned_value(at, values) for at in check.arrays)
            made.append(Check(check.name, check.outputs, check.settings, arrays))
        return tuple(made)

    def _laned_value(self, at: int, values: Mapping[int, Known]) -> Array:
        node, known = self.recording.graph.nodes[at], values[at]
        value = known.f if node.kind == "real" else exact_bounds(known, _NONE, node.type).value
        return np.broadcast_to(value, (self.lanes, *node.shape))

    @functools.cached_property
    def _valid(self) -> list[Array]:
        """Masks of the lanes in which each fork's requirements hold; no lane if the program breaks one of them."""
        masks = []
        for fork in self.recording.forks:
            valid = ~self._everywhere if fork.kind == "invalid" else self._everywhere
            if fork.requirements:
                valid = valid & ~np.logical_or.reduce(list(self.broken([fork]).values()), axis=0)
            masks.append(valid)
        return masks

    @functools.cached_property
    def _everywhere(self) -> Array:
        return np.ones(self.lanes, bool)

    def broken(self, forks: Sequence[Fork]) -> dict[str, Array]:
        """Return masks of the lanes in which each requirement of some forks does not hold."""
        masks: dict[str, Array] = {}
        for fork in forks:
            for clause, at in fork.requirements:
                broken = self.any_lane(~self.values[at].v.astype(bool))
                masks[clause] = masks.get(clause, np.zeros(self.lanes, bool)) | broken
        return masks

    def any_lane(self, mask: Array) -> Array:
        """Return a mask of the lanes that have a true element."""
        lanes = mask.reshape(len(mask), -1).any(axis=1)
        return np.broadcast_to(lanes, (self.lanes,)) if len(mask) != self.lanes else np.asarray(lanes)

    def _applies(self) -> list[Array]:
        """Return masks of the lanes in which each fork's options apply, because its different answers matter there."""
        forks = self.recording.forks
        if len(forks) == 1:
            return [self._everywhere]
        differs: dict[Labels, Array] = {}
        self._compare(list(range(len(forks))), 0, differs)
        for fork in forks:
            conditions = dict(fork.conditions)
            for depth, (silence, _) in enumerate(fork.labels):
                if silence in conditions:
                    differs[_silence_at(fork.labels, depth)] = self.any_lane(
                        self.values[conditions[silence]].v.astype(bool)
                    )
        first: dict[str, str] = {}
        for fork in forks:
            for silence, option in fork.labels:
                first.setdefault(silence, option)
        masks = []
        for fork in forks:
            here = self._everywhere
            for depth, (silence, option) in enumerate(fork.labels):
                # the first option applies everywhere; another one only where it changes the answer, or every backend
                # would be reported to choose both
                if option != first[silence]:
                    here = here & differs[_silence_at(fork.labels, depth)]
            masks.append(here)
        return masks

    def _compare(self, group: list[int], depth: int, differs: dict[Labels, Array]) -> None:
        """Record the lanes in which the silence at this depth makes a difference; a group shares earlier answers."""
        forks = self.recording.forks
        if not group or len(forks[group[0]].labels) <= depth:
            return
        silence = _silence_at(forks[group[0]].labels, depth)
        differs.setdefault(silence, np.zeros(self.lanes, bool))
        branches: dict[str, list[int]] = {}
        for index in group:
            branches.setdefault(forks[index].labels[depth][1], []).append(index)
        first, *others = branches.values()
        for other in others:
            for index in other:
                rest = forks[index].labels[depth + 1 :]
                # an option may meet other silences later; then no fork answers them alike, and any of them shows it
                same = next((i for i in first if forks[i].labels[depth + 1 :] == rest), first[0])
                if not differs[silence].all():
                    differs[silence] = differs[silence] | self._differ(same, index)
        for branch in branches.values():
            self._compare(branch, depth + 1, differs)

    def _differ(self, a_index: int, b_index: int) -> Array:
        """Return a mask of the lanes in which two forks differ, by their values and errors in the first context."""
        forks, works, nodes = self.recording.forks, self.recording.works, self.recording.graph.nodes
        a, b, p, q = forks[a_index], forks[b_index], works[a_index], works[b_index]
        unlike: Array = ~self._everywhere
        if self._valid[a_index] is not self._valid[b_index]:  # forks without requirements share one mask
            unlike = self._valid[a_index] ^ self._valid[b_index]
        same = [nodes[at].shape for at in a.outputs] == [nodes[at].shape for at in b.outputs]
        kinds = [(fork.kind, fork.structure, fork.checks) for fork in (a, b)]
        if not same or kinds[0] != kinds[1] or (p.level, p.copies, p.alone) != (q.level, q.copies, q.alone):
            return self._everywhere
        if a.kind != "values":
            return unlike
        errors = self.errors(self.recording.contexts[0], flushed=False)
        for x, y in zip(a.outputs, b.outputs, strict=True):
            if self.values[x] is not self.values[y] or errors[x] is not errors[y]:
                differing = _unlike(self.values[x].v, self.values[y].v)
                if not (errors[x].none and errors[y].none):
                    for e, f in ((errors[x].e, errors[y].e), (errors[x].flags, errors[y].flags)):
                        differing = differing | np.not_equal(e, f)
                    free = np.bitwise_and(np.bitwise_and(errors[x].flags, errors[y].flags), FREE) > 0
                    differing = np.asarray(differing & ~free)
                unlike = unlike | self.any_lane(differing)
        return np.asarray(unlike)

    def _options(self, fork: Fork, work: Work) -> Iterator[Option]:
        everywhere = self._everywhere
        if fork.kind in ("rejected", "anything"):
            yield Option((), kind=fork.kind, applies=everywhere)  # type: ignore[arg-type]  # one of these two
        elif fork.kind == "any":
            outputs = tuple(
                self._free(self.recording.graph.nodes[at].shape, self.recording.graph.nodes[at].type)
                for at in fork.outputs
            )
            yield Option((), outputs, applies=everywhere)
        elif fork.kind == "values":
            yield from self._of_values(fork, work)

    def _free(self, shape: tuple[int, ...], type_: str) -> Bounds:
        dtype = np.dtype(np.float64) if kind_of(type_) == "real" else element_type(type_).dtype
        zeros = np.full((self.lanes, *shape), "" if kind_of(type_) == "text" else 0, dtype)
        return Bounds(type_, zeros, zeros, zeros, np.full(zeros.shape, FREE, np.uint8))

    def _of_wrapped(self, fork: Fork, values: Mapping[int, Known]) -> Option:
        """Return the answer with declared integer types: every input and output is wrapped around in its own."""
        nodes, recording = self.recording.graph.nodes, self.recording
        errors = bounded(recording.graph, recording.live, values, recording.contexts[0], fork.outputs)
        held = dict(values)
        for at in (*fork.outputs, *(at for check in fork.checks for at in check.arrays)):
            if (type_ := nodes[at].type) in self.declared_integers:
                held[at] = Known(wrapped(values[at].v, self.declared_integers[type_]).astype(element_type(type_).dtype))
        bounds = tuple(_laned(exact_bounds(held[at], errors[at], nodes[at].type), self.lanes) for at in fork.outputs)
        return Option((), bounds, level="declared", applies=self._everywhere, checks=self._checks(fork, held))

    def _of_values(self, fork: Fork, work: Work) -> Iterator[Option]:
        everywhere, contexts, types = self._everywhere, self.recording.contexts, self.recording.real_types
        if work.level == "moves" or not self.recording.real_types:
            branch = Branch(self, fork, work, contexts[0])
            outputs, _ = branch.evaluated(contexts[0])
            flags = branch.flags_of(outputs)
            bounds = tuple(replace(b, flags=_flagged(f, _unknown(b), NAN)) for b, f in zip(outputs, flags, strict=True))
            yield Option((), bounds, applies=everywhere)
            if self.wrapped is not None:
                yield self._of_wrapped(fork, self.wrapped)
        else:
            yield from self._of_reals(fork, work)
        if any(t in self.rules.declared for t in types):
            context = declared(types, self.rules.declared)
            yield from Branch(self, fork, work, context).options(everywhere)
            if any("input" in d.flush for t, d in self.rules.declared.items() if t in types):
                yield from Branch(self, fork, work, context, flush_input=True).options(everywhere)

    def _of_reals(self, fork: Fork, work: Work) -> Iterator[Option]:
        everywhere, contexts, small = self._everywhere, self.recording.contexts, self.small
        for index, context in enumerate(contexts if work.level == "rounds" else contexts[:1]):
            yield from Branch(self, fork, work, context).options(everywhere, first=index == 0)
            if small.any():
                yield from Branch(self, fork, work, context, flush_input=True).options(small)


def _silence_at(labels: Labels, depth: int) -> Labels:
    """Return the silence at a depth, and the answers before it; overflows are crossed with roundings."""
    return (*(label for label in labels[:depth] if label[0] != "integer-overflow"), (labels[depth][0], ""))


def _unlike(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iub" and b.dtype.kind in "iub":
        return np.asarray(a != b)
    return np.asarray((a != b) & ~((a != a) & (b != b)), bool)  # noqa: PLR0124 - NaN


def _subnormal(array: Array, tiny: float) -> Array:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        magnitude = np.abs(array.astype(np.float64))
    return (magnitude > 0) & (magnitude < tiny)


def wrapped(array: Array, type_: str) -> Array:
    """Return whole numbers wrapped around in an integer type, as int64."""
    low, high = limits(type_)
    numbers = array.astype(object)
    return np.asarray((numbers - low) % (high - low + 1) + low).astype(np.int64)


def flushed_input(array: Array, tiny: float) -> Array:
    """Return an array with its subnormal numbers replaced by zeros of the same sign."""
    return np.where(_subnormal(array, tiny), np.copysign(array.dtype.type(0), array), array)


@dataclass(frozen=True)
class Branch:
    """One reading under one arithmetic: its bounds, split by the silences about them."""

    maker: Maker
    fork: Fork
    work: Work
    context: Context
    flush_input: bool = False

    @property
    def graph(self) -> Graph:
        """The formula."""
        return self.maker.recording.graph

    @property
    def values(self) -> Mapping[int, Known]:
        """The exact values of all nodes."""
        return self.maker.flushed[1] if self.flush_input else self.maker.values

    def options(self, applies: Array, *, first: bool = False) -> Iterator[Option]:
        """Yield the options of this branch, with running means too if a mean may be one."""
        outputs, errors = self.evaluated(self.context)
        spreads = self._spreads(outputs)
        residues = self._residues(outputs, errors) if first else [None] * len(outputs)
        outputs = tuple(replace(b, spread=s, residue=r) for b, s, r in zip(outputs, spreads, residues, strict=True))
        yield from self._by_flush("sums", outputs, errors, applies)
        differs = self._updates_means(errors) & applies
        if differs.any():
            updating, errors = self.evaluated(self.context.using("running-means", summation="running-means"))
            yield from self._by_flush("running-means", updating, errors, differs)

    def evaluated(self, context: Context) -> tuple[Outputs, Mapping[int, Error]]:
        """Return the bounds of each output, and the errors of outputs and means."""
        errors = self.maker.errors(context, flushed=self.flush_input)
        return tuple(self._bounds(at, errors[at], context) for at in self.fork.outputs), errors

    def _bounds(self, at: int, error: Error, context: Context) -> Bounds:
        node, known = self.graph.nodes[at], self.values[at]
        if node.kind == "real":
            bounds = bounds_of(known, error, node.type, context)
        else:
            bounds = exact_bounds(known, error, node.type)
        return _laned(bounds, self.maker.lanes)

    def _updates_means(self, errors: Mapping[int, Error]) -> Array:
        """Return a mask of the lanes with a mean of an exact sum that an implementation may compute as a running mean.

        Running means are used for their accuracy, so not in 16 bits.
        """
        lanes = np.zeros(self.maker.lanes, bool)
        for at in self.work.means:
            error = errors.get(at, _NONE)
            c = self.context.at(self.graph.nodes[at].computes)
            if error.exact_mean is not None and c.storage == c.accumulator and c.accumulator.precision >= 24:
                lanes = lanes | self.maker.any_lane(error.exact_mean)
        return lanes

    def _spreads(self, outputs: Outputs) -> list[Spread | None]:
        """Return a bound on the second moment of each output whose bounds on elements are vacuous (tier T2)."""
        none: list[Spread | None] = [None] * len(outputs)
        if self.context.level == "declared" or not self.maker.rules.random or self.maker.recording.wide:
            return none  # the model does not cover flushing and narrower formats
        kinds = [self.graph.nodes[at] for at in self.fork.outputs]
        vague = [
            node.kind == "real"
            and self.work.terms * self.context.at(node.type).accumulator.roundoff >= 1
            and b.value[:1].size >= _VAGUE_FROM
            for node, b in zip(kinds, outputs, strict=True)
        ]
        if not any(vague):
            return none
        errors = self.maker.errors(self.context.using("spread", norm=2), flushed=self.flush_input)
        for i, (at, b) in enumerate(zip(self.fork.outputs, outputs, strict=True)):
            if vague[i]:
                eta = self.context.at(kinds[i].type).accumulator.eta
                none[i] = Spread(np.broadcast_to(np.sqrt(errors[at].e + eta**2), b.value.shape))
        return none

    def _residues(self, outputs: Outputs, errors: Mapping[int, Error]) -> list[Residue | None]:
        """Return the difference of the exact values from the float64 ones: itself, or a bound on the carrier's error.

        The carrier evaluates the formula in float64, as written.
        """
        residues: list[Residue | None] = []
        for at, bounds in zip(self.fork.outputs, outputs, strict=True):
            shape = bounds.value.shape
            if self.graph.nodes[at].kind != "real":
                residues.append(None)
            elif self.maker.recording.wide:
                residues.append(Residue(np.broadcast_to(self.values[at].rest, shape), np.zeros(shape)))
            elif errors[at].quiet:  # what is exact in a narrower format is exact in the carrier
                residues.append(Residue(np.zeros(shape), np.zeros(shape)))
            else:
                own = self.maker.errors(carrier(self.maker.recording.real_types), flushed=False)[at]
                residues.append(Residue(np.zeros(shape), np.broadcast_to(np.asarray(own.e), shape)))
        return residues

    def flags_of(self, outputs: Outputs) -> list[MaybeFlags]:
        """Return each output's flags, with the signs of zeros that copying and flushing imply."""
        every = []
        for bounds, copies in zip(outputs, self.work.copies, strict=True):
            flags = bounds.flags
            if self.flush_input:  # a flushed zero has either sign
                flags = None if flags is None else flags & ~NEGATIVE_ZERO
            elif copies and kind_of(bounds.type) == "real":
                plus = bounds.value == 0
                plus = plus if flags is None else plus & ((flags & (NEGATIVE_ZERO | FREE | ZERO)) == 0)
                flags = _flagged(flags, plus, POSITIVE_ZERO)
            every.append(flags)
        return every

    def _by_flush(
        self, summation: str, outputs: Outputs, errors: Mapping[int, Error], applies: Array
    ) -> Iterator[Option]:
        flushing, inside, flushed = self._zeros(outputs, errors), self._inner_small, outputs
        if inside.any():
            changes = {} if summation == "sums" else {"summation": summation}
            variant = replace(self, context=self.context.using(summation, **changes)).flushing()
            flushed, _ = self.evaluated(variant)
            flushed = tuple(_where(inside, b, o) for b, o in zip(flushed, outputs, strict=True))
        flushes = np.logical_or.reduce([inside, *map(self.maker.any_lane, flushing)])
        if not self.flush_input:
            labels: Labels = (("summation", summation), ("flush", "none"))
            yield from self._by_overflow(outputs, self.flags_of(outputs), applies, labels)
            applies = applies & flushes
        if applies.any():
            zeroed = [_flagged(f, z, ZERO) for f, z in zip(self.flags_of(flushed), flushing, strict=True)]
            choices = [("output", applies), ("input-and-output", inside & ~self.maker.small & applies)]
            for option, where in [("input-and-output", applies)] if self.flush_input else choices:
                yield from self._by_overflow(flushed, zeroed, where, (("summation", summation), ("flush", option)))

    def flushing(self) -> Context:
        """Return the arithmetic with flushed results inside the formula, if any may be flushed; else its own."""
        if not self._inner_small.any():
            return self.context
        inner = self.context.level == "declared"
        return self.context.using(f"flush {self.context.variant}", flush=True, shares=inner)

    def _zeros(self, outputs: Outputs, errors: Mapping[int, Error]) -> list[Array]:
        """Return masks of each output's elements that may be below the normal range, with bounds that exclude zero."""
        masks = []
        for at, bounds in zip(self.fork.outputs, outputs, strict=True):
            if kind_of(bounds.type) != "real":
                masks.append(np.zeros(bounds.value.shape, bool))
                continue
            # if the least magnitude is below zero, zero is within the bounds anyway
            least = np.abs(bounds.value) - np.asarray(errors[at].e, np.float64)
            masks.append((least > 0) & (least < format_of(bounds.type).tiny))
        return masks

    @functools.cached_property
    def _inner_small(self) -> Array:
        """A mask of the lanes with results inside the formula below the normal range, including partial sums."""
        lanes = np.zeros(self.maker.lanes, bool)
        for at in self.work.rounding:
            lanes = lanes | self.maker.small_inside(at, self.context, self.values, last=at not in self.work.inner)
        return lanes

    def _by_overflow(
        self, outputs: Outputs, flags: Sequence[MaybeFlags], applies: Array, labels: Labels
    ) -> Iterator[Option]:
        """Yield separate options for a sum that stays finite and one that overflows on the way, if that is possible."""
        possible, quiet = np.zeros(self.maker.lanes, bool), list[MaybeFlags]()
        for bounds, flag in zip(outputs, flags, strict=True):
            unknown = _unknown(bounds)
            if flag is not None:
                possible = possible | self.maker.any_lane(((flag & EXCEPTIONAL) > 0) & ~unknown)
            quiet.append(_flagged(None if flag is None else flag & ~EXCEPTIONAL, unknown, NAN))
        possible = possible & applies
        yield from self._by_zero(outputs, quiet, applies, (*labels, ("overflow", "avoided")), exceptional=False)
        if possible.any():
            combined = [q if f is None else f if q is None else f | q for f, q in zip(flags, quiet, strict=True)]
            yield from self._by_zero(outputs, combined, possible, (*labels, ("overflow", "infinite")), exceptional=True)

    def _by_zero(
        self, outputs: Outputs, flags: Sequence[MaybeFlags], applies: Array, labels: Labels, *, exceptional: bool
    ) -> Iterator[Option]:
        """Yield separate options for a mean of minus zeros that keeps the sign and one that starts from plus zero."""
        signs = [("kept", list(flags), applies)]
        lost, losing = list[MaybeFlags](), np.zeros(self.maker.lanes, bool)
        for flag, copies in zip(flags, self.work.copies, strict=True):
            if (copies and not self.work.alone) or flag is None:
                lost.append(flag)
                continue
            negative = (flag & NEGATIVE_ZERO) > 0
            lost.append(np.where(negative, flag ^ (NEGATIVE_ZERO | POSITIVE_ZERO), flag))
            losing = losing | self.maker.any_lane(negative)
        signs.append(("lost", lost, applies & losing))
        level: Literal["strict", "declared"] = self.context.level
        named = level == "strict" and self.work.level == "rounds"
        accumulator = (("accumulator", self.context.name),) if named else ()
        for sign, admitted, where in signs:
            if where.any():
                bounds = tuple(replace(b, flags=f) for b, f in zip(outputs, admitted, strict=True))
                option_labels = (*accumulator, *labels, ("zero-sign", sign))
                yield Option(option_labels, bounds, exceptional=exceptional, level=level, applies=where)


def _flagged(flags: MaybeFlags, where: Array, bit: np.uint8) -> MaybeFlags:
    """Return flags with one more bit under the mask `where`."""
    if not where.any():
        return flags
    return where.astype(np.uint8) * bit if flags is None else flags | where.astype(np.uint8) * bit


def _unknown(bounds: Bounds) -> Array:
    return np.isnan(bounds.value) if bounds.value.dtype.kind == "f" else np.zeros(bounds.value.shape, bool)


def bounds_of(known: Known, error: Error, type_: str, context: Context) -> Bounds:
    """Return the bounds of a result: from fl(v-e) to fl(v+e), where fl rounds to the output type.

    If the storage format is the output's, e already includes the implementation's last rounding: |y-v| <= e. Ends that
    float64 cannot represent are rounded inward.
    """
    form, storage = format_of(type_), context.at(type_).storage
    value, e = known.f, error.e
    with np.errstate(all="ignore"):
        if known.v.dtype == object:
            if isinstance(e, float) or e.dtype != object:
                e = np.where(np.isfinite(e), e, np.inf) * np.ones(value.shape)
            lower, upper = _end(known, e, 1), _end(known, e, -1)
            e = e.astype(np.float64)
        else:
            lower, upper = value - e, value + e
        if storage != form:
            lower, upper = nearest(form, lower), nearest(form, upper)
        flags = None if isinstance(error.flags, int) else np.asarray(error.flags, np.uint8)
        if storage == form and exceeds(form, known.top):  # certainly infinite, not a number
            for sign, bit in ((1.0, POSITIVE), (-1.0, NEGATIVE)):
                surely = exceeds(form, sign * value - e) & known.finite
                value, lower, upper = (np.where(surely, sign * np.inf, a) for a in (value, lower, upper))
                flags = None if flags is None else np.where(surely, flags & ~bit, flags)
        if known.beyond is not None and flags is not None:  # likewise
            flags = np.where(lower == np.inf, flags & ~POSITIVE, np.where(upper == -np.inf, flags & ~NEGATIVE, flags))
        unknown = np.isnan(value)
        if unknown.any():  # the same NaN for all payloads: digests depend on the bytes
            value, lower, upper = (np.where(unknown, np.nan, a) for a in (value, lower, upper))
        if error.instead is not None:
            number, ends = ~np.isnan(error.instead), (error.instead - e, error.instead + e)
            ends = ends if storage == form else (nearest(form, ends[0]), nearest(form, ends[1]))
            lower, upper = (np.where(number, end, a) for end, a in zip(ends, (lower, upper), strict=True))
            own = np.where(unknown, NAN, np.where(value > 0, POSITIVE, NEGATIVE))
            open_ = np.asarray(error.flags, np.uint8)
            flags = np.where(number, open_ & ~FREE | own, open_).astype(np.uint8)
    return Bounds(type_, value, lower, upper, flags)


def _end(known: Known, e: Array, side: int) -> Array:
    """Return an end of [v-e, v+e], rounded inward to the nearest float64 number; `side` 1: it is the lower end."""
    size = known.size[known.size > 0]
    if e.dtype == object or known.beyond is not None or size.min(initial=1.0) < _TWICE_AS_LONG:
        end = widened(known.v) - side * e.astype(object)
        nearby = rounded(end)
        left = end - nearby.astype(object)
    else:  # ten times as fast, with the same result: v is the sum of two float64 numbers to 107 bits
        first, left = two_sum(known.f, -side * e)
        nearby, left = two_sum(first, left + known.rest)
        nearby = np.where(nearby == 0, first, nearby)  # with the first one's sign
        left = np.where(np.abs(left) > np.abs(nearby) * 2.0**-PRECISION, left, 0.0)
    outside = np.isfinite(nearby) & np.asarray(side * left > 0, bool)
    return np.where(outside, np.nextafter(nearby, side * np.inf), nearby)


def exact_bounds(known: Known, error: Error, type_: str) -> Bounds:
    """Return the bounds of whole numbers, bool, text or complex numbers: the value itself, or free if it is open.

    Whole numbers with `ends` get these as bounds.
    """
    value, flags = known.v, error.flags
    if error.ends is None and not error.quiet:
        flags = flags | np.where(np.greater(error.e, 0), FREE, np.uint8(0))
    kind = kind_of(type_)
    if kind == "int":
        low, high = limits(type_)
        outside = (value < low) | (value > high)
        if outside.any():  # the standard does not define results that don't fit
            flags = flags | outside.astype(np.uint8) * FREE
            value = np.where(outside, 0, value)
    if kind != "text":
        value = value.astype(element_type(type_).dtype)
    every_flag = None if isinstance(flags, int) else np.broadcast_to(np.asarray(flags, np.uint8), value.shape)
    if error.ends is None:
        return Bounds(type_, value, value, value, every_flag)
    lower, upper = (np.broadcast_to(end, value.shape).astype(value.dtype) for end in error.ends)
    return Bounds(type_, value, lower, upper, every_flag)


def _where(lanes: Array, some: Bounds, others: Bounds) -> Bounds:
    """Return bounds merged from `some` in these lanes and `others` elsewhere, with the others' spread and residue."""
    shape = (-1, *(1,) * (some.value.ndim - 1))

    def chosen(a: Array | np.uint8, b: Array | np.uint8) -> Array:
        return np.where(lanes.reshape(shape), a, b)

    flags = (np.uint8(0) if bounds.flags is None else bounds.flags for bounds in (some, others))
    return replace(
        others,
        value=chosen(some.value, others.value),
        lower=chosen(some.lower, others.lower),
        upper=chosen(some.upper, others.upper),
        flags=None if some.flags is None and others.flags is None else chosen(*flags),
    )


def _laned(bounds: Bounds, lanes: int) -> Bounds:
    """Return bounds with all lanes; a single lane is repeated."""
    if len(bounds.value) == lanes:
        return bounds
    shape = (lanes, *bounds.value.shape[1:])
    value, lower, upper = (np.broadcast_to(a, shape) for a in (bounds.value, bounds.lower, bounds.upper))
    flags = None if bounds.flags is None else np.broadcast_to(bounds.flags, shape)
    return Bounds(bounds.type, value, lower, upper, flags)

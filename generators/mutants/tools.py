"""Wrong and compliant inferencers, checkers and converters, derived from what a program says and from its formula.

A tool of kind `infer` answers a text for each output, one of kind `check` refuses a program or accepts it, and one of
kind `convert` gives a call that another version reads. Wrong ones err in one way: in a text, in a rule, or because
they misread a call as a kernel may (`calls.py`). A compliant one says less, or chooses where a program leaves a choice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ...cases.batch import Batch
from ...cases.inferred import COMPUTED, INFERENCE, UNKNOWN, inferred, parsed
from ...cases.program import is_tensor
from ...specs.loader import Library
from ...specs.model import Spec, VersionSpec
from .calls import as_version, call_mutants, neighbours
from .formula import invocations, recorded
from .implementation import Implementation, Invocation, Refused

ToolKind: TypeAlias = Literal["infer", "check", "convert"]
Dims: TypeAlias = tuple[str, ...]
Refusal: TypeAlias = "tuple[str, str, Callable[[Seen], bool]]"
"""A name, a text, and when a program is refused."""

_INTEGERS = ("int", "ints", "s64", "s64s", "i64", "i32", "int64", "int64s")


@dataclass(frozen=True)
class Seen:
    """One case as a tool gets it; `batch` has the expectation of its kind.

    `is_static`: whether the program alone shows that it is invalid; `is_invalid`: whether it is.
    """

    batch: Batch
    library: Library
    is_invalid: bool = False
    is_static: bool = False

    @functools.cached_property
    def wanted(self) -> tuple[str, ...]:
        """The expected texts, in the form of `cases/inferred.py`; none if any answer, or none, is right."""
        for option in self.batch.expectation.options:
            if (INFERENCE, "exact") in option.labels:
                return tuple(str(bounds.value[0]) for bounds in option.outputs)
        return ()

    @functools.cached_property
    def right(self) -> tuple[str, ...]:
        """A right and exact answer."""
        return tuple(_chosen(text, 0) for text in self.wanted)

    @functools.cached_property
    def inputs(self) -> tuple[str, ...]:
        """The types and dimensions of the inputs, as texts."""
        return tuple(inferred(given.type, given.dims) for given in self.batch.program.given)

    @functools.cached_property
    def attributes(self) -> Mapping[str, Any]:
        """The values of the attributes that are given."""
        return {attribute.name: attribute.value for attribute in self.batch.program.attributes}

    @functools.cached_property
    def sizes(self) -> dict[str, str]:
        """The size that each symbolic dimension has in this case."""
        arrays = iter(self.batch.inputs)
        sizes: dict[str, str] = {}
        for given in self.batch.program.feeds:
            shapes = [next(arrays).shape[1:] for _ in given.leaves]
            if given.structure is None:
                pairs = zip(given.dims, shapes[0], strict=False)
                sizes |= {dim: str(size) for dim, size in pairs if isinstance(dim, str)}
        return sizes

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The symbolic dimensions of the inputs."""
        return tuple(self.sizes)

    @functools.cached_property
    def invocation(self) -> Invocation:
        """The call, for misreadings."""
        return next(invocations(self.library, self.batch.program, self.batch.inputs))[1]

    @functools.cached_property
    def shapes(self) -> tuple[str, ...]:
        """The texts of the outputs of the call as it is; none if it is refused, or if an output is no tensor."""
        try:
            return shape_texts(self.invocation)
        except Refused:
            return ()

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether all inputs and outputs are tensors with static shapes, so that calls may be misread."""
        return self.batch.program.is_plain and not self.names


@dataclass(frozen=True)
class Tool:
    """A tool that is wrong in one way, or a compliant variant.

    `infers` returns a text for each output and may raise Refused, `refuses` says whether a checker refuses, and
    `reads` returns the call after a conversion. One that is `about` an attribute or input counts only if that decides
    shapes. An `incidental` one does not count if no case has what it needs.
    """

    name: str
    kind: ToolKind
    text: str
    infers: Callable[[Seen], Sequence[str]] | None = None
    refuses: Callable[[Seen], bool] | None = None
    reads: Callable[[Invocation], Invocation] | None = None
    is_variant: bool = False
    about: str = ""
    incidental: bool = True


def _chosen(text: str, index: int) -> str:
    """Return an expected text as an exact answer: of several right names the one at a place, `?` if none is right."""
    type_, dims = parsed(text)
    if dims is None:
        return type_
    words = [UNKNOWN if dim == COMPUTED or dim.endswith(UNKNOWN) else _nth(dim.split("|"), index) for dim in dims]
    return inferred(type_, words)


def _nth(words: Sequence[str], index: int) -> str:
    return words[index if -len(words) <= index < len(words) else 0]


# Inference


def shape_texts(invocation: Invocation) -> tuple[str, ...]:
    """Return the types and shapes that a call's formula gives to its outputs, by its first reading.

    Empty if an output is no tensor. Raises Refused.
    """
    if not all(output is None or is_tensor(output.type) for output in invocation.program.outputs):
        return ()
    recording = recorded(invocation)
    fork = next((reading for reading in recording.forks if reading.kind in ("values", "any")), None)
    if fork is None or fork.structure:
        return ()
    nodes = [recording.graph.nodes[at] for at in fork.outputs]
    return tuple(inferred(node.type, node.shape) for node in nodes)


Change: TypeAlias = Callable[[str, Dims, Seen], tuple[str, Dims] | None]


def _of_tensors(change: Change) -> Callable[[Seen], Sequence[str]]:
    """Return the inference that changes the text of every tensor whose rank it knows; None leaves one as it is."""

    def infers(seen: Seen) -> Sequence[str]:
        answers = []
        for right in seen.right:
            type_, dims = parsed(right)
            made = None if dims is None else change(type_, dims, seen)
            answers.append(right if made is None else inferred(*made))
        return answers

    return infers


def _dims(change: Callable[[Dims, Seen], Dims]) -> Change:
    return lambda type_, dims, seen: (type_, change(dims, seen))


def _plus(dim: str, more: int) -> str:
    return str(int(dim) + more) if dim.isdecimal() else dim


def _more(dims: Dims, axis: int) -> Dims:
    return tuple(_plus(dim, int(at == axis)) for at, dim in enumerate(dims))


def _replaced(dims: Dims, words: Mapping[str, str]) -> Dims:
    return tuple(words.get(dim, dim) for dim in dims)


def _like(index: int, *, type_too: bool) -> Change:
    def change(type_: str, dims: Dims, seen: Seen) -> tuple[str, Dims] | None:
        own = parsed(seen.inputs[index]) if -len(seen.inputs) <= index < len(seen.inputs) else ("", None)
        if "(" in own[0] or own[1] is None:
            return None
        return (own[0], dims) if type_too else (type_, own[1])

    return change


def _by_wanted(change: Callable[[str, str, Seen], str]) -> Callable[[Seen], Sequence[str]]:
    """Return the inference that changes each dimension, given with the one that is wanted, where both are known."""

    def infers(seen: Seen) -> Sequence[str]:
        answers = []
        for right, wanted in zip(seen.right, seen.wanted, strict=True):
            (type_, dims), (_, words) = parsed(right), parsed(wanted)
            if dims is None or words is None:
                answers.append(right)
            else:
                pairs = zip(dims, words, strict=True)
                answers.append(inferred(type_, [change(dim, word, seen) for dim, word in pairs]))
        return answers

    return infers


def _of_another(dim: str, wanted: str, seen: Seen) -> str:
    others = [name for name in seen.names if name not in wanted.rstrip(UNKNOWN).split("|")]
    return others[0] if others and dim in seen.names else dim


def _computed_named(dim: str, wanted: str, seen: Seen) -> str:
    return seen.names[0] if seen.names and wanted == COMPUTED else dim


def _free_plus_one(dim: str, wanted: str, seen: Seen) -> str:
    return _plus(_free_told(dim, wanted, seen), int(wanted.endswith(UNKNOWN)))


def _free_told(dim: str, wanted: str, _: Seen) -> str:
    return wanted.rstrip(UNKNOWN).split("|")[0] if wanted.endswith(UNKNOWN) else dim


def wrong_inferencers() -> Iterator[Tool]:
    """Yield the mistakes in texts, which any operator version may have."""
    every: tuple[tuple[str, str, Change], ...] = (
        ("last-two-swapped", "swaps the last two dimensions", _dims(lambda d, _: (*d[:-2], *d[-2:][::-1]))),
        ("dims-reversed", "has the dimensions in reverse order", _dims(lambda d, _: d[::-1])),
        ("rank-one-more", "has one dimension of 1 too many", _dims(lambda d, _: (*d, "1"))),
        ("rank-one-less", "lacks the last dimension", _dims(lambda d, _: d[:-1])),
        ("ones-lost", "lacks dimensions of 1", _dims(lambda d, _: tuple(dim for dim in d if dim != "1"))),
        ("first-plus-one", "has 1 more in the first dimension", _dims(lambda d, _: _more(d, 0))),
        ("last-plus-one", "has 1 more in the last dimension", _dims(lambda d, _: _more(d, len(d) - 1))),
        ("empty-as-one", "has 1 in place of 0", _dims(lambda d, _: _replaced(d, {"0": "1"}))),
        ("unknown-as-minus-one", "has -1 for what it does not know", _dims(lambda d, _: _replaced(d, {UNKNOWN: "-1"}))),
        ("names-as-sizes", "has a size of one feed for a name", _dims(lambda d, seen: _replaced(d, seen.sizes))),
        ("first-input-shape", "gives the shape of the first input", _like(0, type_too=False)),
        ("last-input-shape", "gives the shape of the last input", _like(-1, type_too=False)),
        ("first-input-type", "gives the type of the first input", _like(0, type_too=True)),
        ("last-input-type", "gives the type of the last input", _like(-1, type_too=True)),
        ("always-float32", "gives the type float32", lambda _, d, __: ("float32", d)),
    )  # fmt: skip
    for name, text, change in every:
        yield Tool(name, "infer", text, _of_tensors(change))
    others: tuple[tuple[str, str, Callable[[Seen], Sequence[str]]], ...] = (
        ("name-of-another", "takes a symbolic dimension for another one of the inputs", _by_wanted(_of_another)),
        ("computed-as-name", "takes a computed dimension for one of the inputs", _by_wanted(_computed_named)),
        ("free-plus-one", "tells a size that data decide, and it is 1 too large", _by_wanted(_free_plus_one)),
        ("first-output-for-all", "gives every output what the first has", lambda s: s.right[:1] * len(s.right)),
        ("last-output-lost", "says nothing of the last output", lambda s: s.right[:-1]),
    )
    yield from (Tool(name, "infer", text, infers) for name, text, infers in others)
    for name, text, refusing in _REFUSALS:
        yield Tool(name, "infer", text, functools.partial(_unless, refusing))


def _unless(refusing: Callable[[Seen], bool], seen: Seen) -> Sequence[str]:
    if refusing(seen):
        raise Refused("not valid")
    return seen.right


_REFUSALS: tuple[Refusal, ...] = (
    ("everything-refused", "refuses every program", lambda _: True),
    ("symbolic-refused", "refuses symbolic dimensions", lambda seen: bool(seen.names)),
    (
        "empty-refused",
        "refuses an extent of 0",
        lambda seen: any("0" in (parsed(text)[1] or ()) for text in seen.inputs),
    ),
    ("scalar-refused", "refuses an input of rank 0", lambda seen: any(parsed(text)[1] == () for text in seen.inputs)),
)


def right_inferencers() -> Iterator[Tool]:
    """Yield inferencers that say less than the program, or choose among what is right."""
    every: tuple[tuple[str, str, Callable[[Seen], Sequence[str]]], ...] = (
        ("exact", "says what the program determines", lambda s: s.right),
        ("last-names", "has the last of several right names", lambda s: [_chosen(t, -1) for t in s.wanted]),
        ("free-told", "tells the sizes that data decide", _by_wanted(_free_told)),
        ("dims-unknown", "knows no dimension", _of_tensors(_dims(lambda d, _: (UNKNOWN,) * len(d)))),
        (
            "dims-named",
            "invents a name for each dimension",
            _of_tensors(_dims(lambda d, _: tuple(f"made_{n}" for n in range(len(d))))),
        ),
        (
            "dims-ranged",
            "knows that dimensions are not negative",
            _of_tensors(_dims(lambda d, _: ("0..",) * len(d))),
        ),
        ("ranks-unknown", "knows no rank", lambda s: [parsed(text)[0] for text in s.right]),
        ("types-unknown", "knows nothing", lambda s: [UNKNOWN] * len(s.right)),
    )
    yield from (Tool(name, "infer", text, infers, is_variant=True) for name, text, infers in every)


def misreadings_of_shapes(spec: Spec, version: VersionSpec) -> Iterator[tuple[Implementation, Tool, Tool]]:
    """Yield misread calls, each as an inferencer and as a checker that refuses what looks invalid to it.

    They read programs with static shapes only.
    """
    for mutant in call_mutants(spec, version):
        infers, refuses = functools.partial(_misread, mutant), functools.partial(_refuses_by_misreading, mutant)
        about = mutant.about or mutant.name
        yield (
            mutant,
            Tool(mutant.name, "infer", mutant.text, infers, about=about, incidental=mutant.incidental),
            Tool(mutant.name, "check", mutant.text, refuses=refuses, about=about),
        )


def _refuses_by_misreading(mutant: Implementation, seen: Seen) -> bool:
    if seen.is_invalid:
        return seen.is_static
    try:
        _misread(mutant, seen)
    except Refused:
        return True
    return False


def _misread(mutant: Implementation, seen: Seen) -> Sequence[str]:
    if not seen.is_plain or mutant.reading is None:
        return seen.right
    try:
        invocation = mutant.reading(seen.invocation)
        texts = seen.shapes if invocation is seen.invocation else shape_texts(invocation)
    except Refused:
        raise
    except Exception as error:  # a defect that raises looks like a refusal
        raise Refused(str(error)) from error
    return seen.right if texts == seen.shapes or len(texts) != len(seen.right) else texts


# Checkers


def wrong_checkers(version: VersionSpec, clauses: Sequence[str]) -> Iterator[Tool]:
    """Yield checkers with one rule too few or too many; `clauses` are those that some program breaks by itself."""
    yield Tool("everything-accepted", "check", "accepts every program", refuses=lambda _: False)
    yield from (_refusing(*refusal) for refusal in _REFUSALS)
    text = "accepts every program with symbolic dimensions"
    yield Tool("symbolic-accepted", "check", text, refuses=lambda seen: seen.is_static and not seen.names)
    for clause in clauses:
        name, text = f"forgets-{clause.rpartition('#')[2]}", f"does not know the rule {clause}"
        yield Tool(name, "check", text, refuses=functools.partial(_forgets, clause))
    yield from (_refusing(*refusal) for refusal in _refusals_of(version))


def _refusals_of(version: VersionSpec) -> Iterator[Refusal]:
    """Yield the conditions on attributes and types under which a checker may refuse valid programs."""
    for attribute in version.signature.attributes:
        name, default = attribute.name, attribute.default
        if default is not None:
            has_default = functools.partial(_has_default, name, default)
            yield f"{name}-default-refused", f"refuses {name} if its default is given", has_default
        if attribute.kind in _INTEGERS:
            has_negative = functools.partial(_has_negative, name)
            yield f"{name}-negative-refused", f"refuses negative numbers in {name}", has_negative
    for type_ in sorted({type_ for some in version.signature.types.values() for type_ in some}):
        yield f"{type_}-refused", f"refuses inputs of type {type_}", functools.partial(_has_type, type_)


def _refusing(name: str, text: str, when: Callable[[Seen], bool]) -> Tool:
    """Return the checker that also refuses some valid programs."""
    return Tool(name, "check", text, refuses=lambda seen: seen.is_static or (not seen.is_invalid and when(seen)))


def _forgets(clause: str, seen: Seen) -> bool:
    return seen.is_static and clause not in seen.batch.clauses


def _has_type(type_: str, seen: Seen) -> bool:
    return any(parsed(text)[0] == type_ for text in seen.inputs)


def _has_default(name: str, default: Any, seen: Seen) -> bool:
    return name in seen.attributes and bool(seen.attributes[name] == default)


def _has_negative(name: str, seen: Seen) -> bool:
    return name in seen.attributes and bool(np.any(np.asarray(seen.attributes[name]) < 0))


def right_checkers() -> Iterator[Tool]:
    """Yield checkers that differ where nothing is demanded."""
    for name, text, refuses in (
        ("exact", "refuses what the program shows to be invalid", lambda seen: seen.is_static),
        ("prophet", "also refuses what only data show", lambda seen: seen.is_invalid),
    ):
        yield Tool(name, "check", text, refuses=refuses, is_variant=True)


# Converters


def wrong_converters(spec: Spec, version: VersionSpec) -> Iterator[Tool]:
    """Yield conversions to the versions before and after; those that change no formula are none."""
    for other in neighbours(spec, version):
        target = f"{other.operator.name}-{other.operator.version}"
        text = f"keeps the node and says that it is {target}"
        yield Tool(f"relabelled-{target}", "convert", text, reads=functools.partial(replace, version=other))
        text = f"makes it {target}, and moves values between attributes and inputs; defaults are those of {target}"
        yield Tool(f"moved-{target}", "convert", text, reads=functools.partial(as_version, version=other))
        for attribute in version.signature.attributes:
            name, text = f"{attribute.name}-lost-{target}", f"makes it {target} and drops {attribute.name}"
            yield Tool(name, "convert", text, reads=functools.partial(_without, attribute.name, other))


def _without(name: str, version: VersionSpec, i: Invocation) -> Invocation:
    return as_version(i.with_attribute(name, None), version) if name in i.attributes else i


def right_converters(version: VersionSpec) -> Iterator[Tool]:
    """Yield conversions that keep what a program means."""
    yield Tool("unchanged", "convert", "changes nothing", reads=replace, is_variant=True)
    defaults = version.signature.defaults

    def written(i: Invocation) -> Invocation:
        return replace(i, attributes={**defaults, **i.attributes})

    yield Tool("defaults-written", "convert", "writes every default", reads=written, is_variant=True)

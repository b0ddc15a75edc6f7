"""Bonds between two operator versions: what maps to what.

A bond is stated under `as` in a spec file, or implied: two versions bound to the same formula, with the same reference,
or with the same name have ports and attributes that correspond.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...specs.loader import Library
from ...specs.model import Binding, BoundAttribute, Port, Spec, VersionSpec
from ..parameters import plain_text


@dataclass(frozen=True)
class Bond:
    """Two operator versions, and how a call of ours is one of theirs.

    `binding`: their names with ours; an attribute of theirs may be the value of an input of ours, and the reverse.
    `stated`: under `as`; else it is implied. `why`: its source, in words. `formula`: the version that is named there.
    `through`: the bonds of both with a third operator, if they are bound to it.
    """

    ours: VersionSpec
    theirs: VersionSpec
    our_spec: Spec
    their_spec: Spec
    binding: Binding
    why: str
    stated: bool = True
    formula: VersionSpec | None = None
    through: tuple[Bond, Bond] | None = None

    @functools.cached_property
    def outputs(self) -> Mapping[str, str]:
        """Our outputs that theirs are bound to, by their names, in their order."""
        return _bound(self.binding.outputs, self.theirs.signature.outputs)

    @functools.cached_property
    def inputs(self) -> Mapping[str, str]:
        """Our inputs that theirs are bound to, by their names."""
        return _bound(self.binding.inputs, self.theirs.signature.inputs)

    @functools.cached_property
    def attributes(self) -> Mapping[str, BoundAttribute]:
        """Their attributes with ours, or constants."""
        signature = self.theirs.signature
        return {name: each for name, each in self.binding.attributes.items() if signature.attribute(name) is not None}

    @functools.cached_property
    def only_ours(self) -> tuple[str, ...]:
        """Our attributes and inputs that no name of theirs is bound to; a function under `by` may read them."""
        bound = {*self.inputs.values(), *(each.source for each in self.binding.attributes.values())}
        return tuple(name for name in _names(self.ours) if name not in bound)

    @functools.cached_property
    def only_theirs(self) -> tuple[str, ...]:
        """Their attributes and inputs that are bound to none of ours."""
        bound = {*self.inputs, *(name for name, each in self.attributes.items() if each.source is not None)}
        return tuple(name for name in _names(self.theirs) if name not in bound)


def _bound(names: Mapping[str, str | None], ports: Sequence[Port]) -> dict[str, str]:
    known = {port.name for port in ports}
    return {name: own for name, own in names.items() if own is not None and name in known}


def _names(version: VersionSpec) -> dict[str, None]:
    signature = version.signature
    return dict.fromkeys([*(attribute.name for attribute in signature.attributes), *(p.name for p in signature.inputs)])


def bond(library: Library, each: str, other: str) -> Bond | None:
    """Return the bond of two operator versions, in whichever direction one is stated, else implied; None without any.

    Raises OpconformError for names of no version.
    """
    (spec, key), (other_spec, other_key) = library.operator_version(each), library.operator_version(other)
    first, second = (spec, spec.version(key)), (other_spec, other_spec.version(other_key))
    for (our_spec, ours), (their_spec, theirs) in ((first, second), (second, first)):
        binding = ours.binding
        if binding is not None and binding.operator == str(their_spec.operator):
            return replace(_to_formula(library, our_spec, ours), theirs=theirs, their_spec=their_spec)
    implied = _implied(second, first)
    if implied is None or implied.ours.binding is None or implied.theirs.binding is None:
        return implied
    return replace(implied, through=(_to_formula(library, *second), _to_formula(library, *first)))


def _to_formula(library: Library, spec: Spec, version: VersionSpec) -> Bond:
    """Return the bond of a version with the one whose formula it is bound to."""
    binding = version.binding
    assert binding is not None
    formula = library.spec(binding.operator)
    theirs = formula.version(binding.version)
    return Bond(version, theirs, spec, formula, binding, f"`as` of {version.operator}", formula=theirs)


def _implied(first: tuple[Spec, VersionSpec], second: tuple[Spec, VersionSpec]) -> Bond | None:
    (our_spec, ours), (their_spec, theirs) = first, second
    a, b = ours.binding, theirs.binding
    named = our_spec.name.lower() == their_spec.name.lower()
    if a is not None and b is not None and a.operator == b.operator and (named or not (a.by or b.by)):
        binding, why = _composed(ours, theirs, a, b), f"both are bound to {a.operator}"
    elif a is None and b is None and reference(our_spec) == reference(their_spec):
        binding, why = _by_name(ours, theirs), f"one formula, {'.'.join(reference(our_spec))}"
    elif named:
        binding, why = _by_name(ours, theirs), "one name, but formulas of their own"
    else:
        return None
    return Bond(ours, theirs, our_spec, their_spec, binding, why, stated=False)


def reference(spec: Spec) -> tuple[str, str]:
    """Return where the formula of an operator is."""
    return spec.family, spec.function


def _composed(ours: VersionSpec, theirs: VersionSpec, a: Binding, b: Binding) -> Binding:
    """Return the binding of two versions through the names of a third one, and by names for what it leaves open."""
    named = _by_name(ours, theirs)
    inputs = {own: a.inputs.get(name) for name, own in b.inputs.items() if own is not None}
    outputs = {own: a.outputs.get(name) for name, own in b.outputs.items() if own is not None}
    attributes: dict[str, BoundAttribute] = {}
    for name, theirs_bound in b.attributes.items():
        ours_bound = a.attributes.get(name)
        if theirs_bound.source is not None and ours_bound is not None and ours_bound.source is not None:
            back = {plain_text(word): own for own, word in theirs_bound.words.items()}
            through = ours_bound.words or {word: word for word in back}
            words = {own: back.get(plain_text(word), word) for own, word in through.items()}
            attributes[theirs_bound.source] = BoundAttribute(ours_bound.source, None, words)
    return replace(
        named,
        inputs={**named.inputs, **inputs},
        outputs={**named.outputs, **outputs},
        attributes={**named.attributes, **attributes},
    )


def _by_name(ours: VersionSpec, theirs: VersionSpec) -> Binding:
    """Return a binding of ports by name or position, of attributes by name; some are inputs of the other version."""
    our_attributes = {role_of(a.name): a.name for a in ours.signature.attributes}
    our_inputs = {port.name for port in ours.signature.inputs}
    attributes = {}
    for attribute in theirs.signature.attributes:
        name = attribute.name
        own = our_attributes.get(role_of(name)) or (name if name in our_inputs else None)
        if own is not None:
            attributes[attribute.name] = BoundAttribute(own)
    taken = {each.source for each in attributes.values()}
    inputs = dict(_positions(theirs.signature.inputs, [p for p in ours.signature.inputs if p.name not in taken]))
    for port in theirs.signature.inputs:
        if inputs[port.name] is None and role_of(port.name) in our_attributes:
            inputs[port.name] = our_attributes[role_of(port.name)]
    outputs = dict(_positions(theirs.signature.outputs, ours.signature.outputs))
    operator = f"{theirs.operator.standard}/{theirs.operator.name}"
    none: frozenset[str] = frozenset()
    return Binding(operator, theirs.operator.version, inputs, outputs, attributes, {}, {}, none)


def role_of(name: str) -> str:
    """Return a name without what standards write differently: `blocksize` and `block_size` are the same."""
    return name.replace("_", "").replace("-", "").lower()


def _positions(theirs: Sequence[Port], ours: Sequence[Port]) -> Iterator[tuple[str, str | None]]:
    """Yield their ports with ours: of the same name, else by position if those without a namesake are alike.

    A port that only one of them has makes positions meaningless, but for the first.
    """
    names, own_names = {port.name for port in theirs}, {port.name for port in ours}
    free = [port for port in ours if port.name not in names]
    lonely = [port for port in theirs if port.name not in own_names]
    known = [port.option for port in free] == [port.option for port in lonely]
    pairs = {port.name: own.name for port, own in zip(lonely, free, strict=True)} if known else {}
    if not known and free[:1] == [*ours[:1]] and lonely[:1] == [*theirs[:1]]:
        pairs = {port.name: own.name for port, own in zip(lonely[:1], free[:1], strict=False)}
    for port in theirs:
        yield port.name, port.name if port.name in own_names else pairs.get(port.name)

"""Calls of one operator version as calls of another one, which is bonded to it: the inverse of a binding.

Candidates have the values of the binding the other way round, else values that the plan tests; the first one that
amounts to the same call is taken, so that what a binding does in code needs no inverse.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...cases.elements import Array, element_type
from ...cases.errors import OpconformError
from ...specs.model import Port, Signature
from ..arithmetic.graph import lifted
from ..arithmetic.tape import Facts
from ..arithmetic.tape import Port as GivenPort
from ..families import reference_of
from ..parameters import plain_text
from ..primitives.errors import kind_of
from .bonds import Bond, role_of
from .situations import Inexpressible
from .their_calls import TheirCall, recorded, their_call, words_of


@dataclass(frozen=True)
class OurCall:
    """A call of ours by its facts and its inputs, lanes first, with the id of the planned case that it is, or means.

    `clauses`: those that the case tests, if it is ours. `mended`: what makes it valid, if it is invalid.
    """

    case: str
    facts: Facts
    arrays: tuple[Array, ...]
    elements: int = 0
    clauses: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


_MOST_TRIED = 400
_MOST_ASKED = 24
"""Up to so many candidates whose attributes differ are compared by what their formulas record."""
_UNSAID = 1_000
"""The place of a difference of two calls that may mean the same: one says what the other leaves out."""


def as_ours(bond: Bond, case: str, facts: Facts, arrays: Sequence[Array]) -> OurCall:
    """Return the call of ours that amounts to one of theirs. Raises Inexpressible.

    Candidates have the values of the binding the other way round, else values that the spec tests; the first one that
    amounts to the same call of theirs is returned.
    """
    given = _by_port(facts, arrays)
    wanted = TheirCall(
        {name: value for name, value in facts.attributes.items() if value is not None},
        {name: None if several is None else tuple(several) for name, several in _lifted(facts, given).items()},
    )
    inputs = [list(_input_candidates(bond, port, given, facts)) for port in bond.ours.signature.inputs]
    own = set(bond.only_ours)
    names = [attribute.name for attribute in bond.ours.signature.attributes]
    names.sort(key=own.__contains__)  # the last ones are tried in all combinations first
    attributes = [list(_attribute_candidates(bond, name, wanted, facts)) for name in names]
    why, far, asked = "", -1, 0
    for chosen in itertools.islice(itertools.product(*attributes, *inputs), _MOST_TRIED):
        values = dict(zip(names, chosen, strict=False))
        ports = dict(zip((p.name for p in bond.ours.signature.inputs), chosen[len(attributes) :], strict=True))
        try:
            call = _call(bond, case, ports, values, facts)
            result = their_call(bond, call.facts, call.arrays)
            lost = _lost(result, wanted, bond)
        except (Inexpressible, OpconformError) as error:
            why = why or (str(error) if isinstance(error, Inexpressible) else "")
            continue
        if lost is None:
            return call
        if lost[0] >= len(wanted.inputs) and asked < _MOST_ASKED:
            asked += 1
            if _is_implied(bond, facts, arrays, result):
                return call
        if lost[0] > far:  # the nearest call says best what is lacking
            far, why = lost[0], f"no call of {bond.ours.operator} was found for {lost[1]}"
    if not why:
        raise OpconformError(f"{case} is no call of {bond.ours.operator}")
    raise Inexpressible(why)


def _lifted(facts: Facts, given: Mapping[str, list[Array] | None]) -> dict[str, list[Array] | None]:
    return {
        name: None
        if several is None
        else [lifted(array, kind) for array, kind in zip(several, _kinds(facts.ports[name]), strict=True)]
        for name, several in given.items()
    }


def _kinds(ports: GivenPort | tuple[GivenPort, ...] | None) -> list[str]:
    return [] if ports is None else [ports.type] if isinstance(ports, GivenPort) else [each.type for each in ports]


def _is_implied(bond: Bond, facts: Facts, arrays: Sequence[Array], result: TheirCall) -> bool:
    """Return whether a call of theirs has the same formula as one with what `result` says besides."""
    kept = {name: value for name, value in facts.attributes.items() if name in bond.theirs.type_attributes}
    other = replace(facts, attributes={**result.attributes, **kept}, given=frozenset(result.attributes) | kept.keys())
    reference = reference_of(bond.their_spec, bond.theirs)
    try:
        each, two = (recorded(reference, said, arrays) for said in (facts, other))
    except OpconformError:
        return False
    return each.graph.content == two.graph.content and each.forks == two.forks


def check_same_formula(bond: Bond, call: OurCall, theirs: TheirCall) -> None:
    """Raise Inexpressible unless a call of ours and one of theirs amount to the same call of the third operator.

    Ours must hand its inputs on as they are, or its results may be arranged in another way, too.
    """
    if bond.through is None or theirs.facts is None:
        return
    to_ours, to_theirs = bond.through
    mine = their_call(to_ours, call.facts, call.arrays)
    arrays = [array for several in theirs.inputs.values() for array in several or ()]
    its = their_call(to_theirs, theirs.facts, arrays)
    given = _lifted(call.facts, _by_port(call.facts, call.arrays))
    raw = [(mine.inputs.get(name), given.get(own)) for name, own in to_ours.inputs.items()]
    if any(len(a or ()) != len(b or ()) or not all(map(_equal, a or (), b or ())) for a, b in raw):
        raise Inexpressible(f"{bond.ours.operator} prepares its inputs")
    lost = _lost(its, mine, to_theirs)
    if lost is not None and lost[0] != _UNSAID:
        raise Inexpressible(f"{bond.theirs.operator} prepares its inputs in another way: {lost[1]}")


def _by_port(facts: Facts, arrays: Sequence[Array]) -> dict[str, list[Array] | None]:
    given: dict[str, list[Array] | None] = {}
    left = list(arrays)
    for name, ports in facts.ports.items():
        count = 0 if ports is None else 1 if isinstance(ports, GivenPort) else len(ports)
        given[name], left = None if ports is None else left[:count], left[count:]
    return given


def _input_candidates(
    bond: Bond, port: Port, given: Mapping[str, list[Array] | None], facts: Facts
) -> Iterator[list[tuple[str, Array]] | None]:
    """Yield tensors for an input of ours, each with its type: as theirs has it, or what is an attribute there."""
    theirs = [name for name, own in bond.binding.inputs.items() if own == port.name and name in facts.ports]
    allowed = bond.ours.signature.types_of(port)
    if theirs:
        several, ports = given[theirs[0]], facts.ports[theirs[0]]
        if several is None or ports is None:
            yield None
            return
        plain = [
            _counted(bond.ours.signature, port, kind, array) for kind, array in zip(_kinds(ports), several, strict=True)
        ]
        yield plain
        if len(several) == 1 and several[0][0, ...].size == 1 and port is not bond.ours.signature.inputs[0]:
            yield [(plain[0][0], plain[0][1].reshape(1))]
        if bond.ours.signature.attribute(port.name) is not None:
            yield None
        return
    bound = (name for name, each in bond.binding.attributes.items() if each.source == port.name)
    number = facts.attributes.get(port.name)
    if number is None:
        number = facts.attributes.get(next(bound, ""))
    if isinstance(number, int | float | tuple) and not isinstance(number, bool):
        type_ = "int64" if "int64" in allowed else allowed[0]
        yield [(type_, np.asarray(number, dtype=np.float32 if "float" in type_ else np.int64)[np.newaxis, ...])]
    if port.option != "single" or not isinstance(number, int | float | tuple):
        yield None


def _counted(signature: Signature, port: Port, kind: str, array: Array) -> tuple[str, Array]:
    """Return an input of whole numbers in a type that a signature takes: a count or index is the same in each."""
    allowed = signature.types_of(port)
    if kind in allowed or kind_of(kind) != "int" or port.type == signature.inputs[0].type:
        return kind, array
    usual = "int64" if "int64" in allowed else allowed[0]
    if kind_of(usual) != "int":
        return kind, array
    cast = array.astype(element_type(usual).dtype)
    return (usual, cast) if np.array_equal(cast, array) else (kind, array)


def _attribute_candidates(bond: Bond, name: str, wanted: TheirCall, facts: Facts) -> Iterator[Any]:
    """Yield values for an attribute of ours, None for one left out."""
    attribute = bond.ours.signature.attribute(name)
    assert attribute is not None
    seen: list[Any] = []
    for value in _values_for(bond, name, attribute.kind, wanted, facts):
        if value is not None and attribute.kind in ("bool", "boolean") and value in (0, 1):
            value = bool(value)  # noqa: PLW2901 - the kind that this version has
        if any(plain_text(value) == plain_text(each) and type(value) is type(each) for each in seen):
            continue
        if value is None and attribute.required:
            continue
        seen.append(value)
        yield value


def _values_for(bond: Bond, name: str, kind: str, wanted: TheirCall, facts: Facts) -> Iterator[Any]:
    for letter, source in bond.ours.types_from.items():
        if source.attribute == name:
            same = [their for their, own in bond.outputs.items() if bond.ours.signature.letter(own) == letter]
            types = [facts.outputs.get(their) for their in same]
            yield from (source.names.get(type_, type_) for type_ in types if type_ is not None)
            yield None
            return
    yield from _bound_value(bond, name, wanted)
    yield from _namesakes(bond, name, kind, wanted)
    yield None
    if kind.endswith("s"):
        bound = any(each.source == name for each in bond.binding.attributes.values())
        yield from _parts(wanted, facts, bound=bound)
    else:
        levels = bond.ours.parameters.get(name, {}).values()
        yield from (level for level in levels if isinstance(level, bool | int | float | str))


def _bound_value(bond: Bond, name: str, wanted: TheirCall) -> Iterator[Any]:
    """Yield the value of the attribute that is bound to ours, in our words."""
    for their_name, each in bond.binding.attributes.items():
        if each.source == name:
            value = wanted.attributes.get(their_name)
            back = {plain_text(word): own for own, word in each.words.items()}
            if back:
                yield back.get(plain_text(value))
            elif not isinstance(value, str):
                yield value


def _namesakes(bond: Bond, name: str, kind: str, wanted: TheirCall) -> Iterator[Any]:
    """Yield the value of their attribute, and of their input, with the same name."""
    same = next((value for other, value in wanted.attributes.items() if role_of(other) == role_of(name)), None)
    if isinstance(same, str):
        yield next((word for word in words_of(bond.ours, name) if word.lower() == same.lower()), None)
    else:
        yield same
    tensors = wanted.inputs.get(name)
    if tensors is not None and kind.rstrip("s").endswith(("int", "64")):
        numbers = tuple(int(n) for n in tensors[0].reshape(-1))
        yield numbers if kind.endswith("s") else next(iter(numbers), None)


def _parts(wanted: TheirCall, facts: Facts, *, bound: bool) -> Iterator[tuple[Any, ...]]:
    """Yield lists with a number for each spatial axis: halves of lists with two, zeros; for a bound attribute ones."""
    ranks = (len(port.shape) for port in facts.ports.values() if isinstance(port, GivenPort))
    axes = max(0, next(ranks, 0) - 2)
    if bound:
        yield (1,) * axes
        return
    for value in wanted.attributes.values():
        if isinstance(value, tuple) and len(value) == 2 * axes:
            yield from (value[:axes], value[axes:])
    yield (0,) * axes


def _call(
    bond: Bond,
    case: str,
    ports: Mapping[str, list[tuple[str, Array]] | None],
    values: Mapping[str, Any],
    theirs: Facts,
) -> OurCall:
    """Return a call of ours. Raises Inexpressible for types that it does not take."""
    version, signature = bond.ours, bond.ours.signature
    types: dict[str, str] = {}
    for port in signature.inputs:
        for type_, _ in ports[port.name] or ():
            allowed = signature.types_of(port)
            if type_ not in allowed:
                raise Inexpressible(f"{version.operator}: {port.name} is never {type_}")
            if types.setdefault(port.type, type_) != type_ and port.option != "each":
                raise Inexpressible(f"{version.operator}: inputs of type {port.type} have one type")
        if ports[port.name] is None and port.option == "single" and not signature.attribute(port.name):
            raise Inexpressible(f"{version.operator} needs {port.name}")
    given = {name: value for name, value in values.items() if value is not None}
    outputs = {}
    back = {own: name for name, own in bond.outputs.items()}
    for port in signature.outputs:
        wanted = theirs.outputs.get(back.get(port.name, ""))
        source = version.types_from.get(port.type)
        if source is not None and (stated := source.stated(given, types)):
            types.setdefault(port.type, stated)
        allowed = signature.types_of(port)
        type_ = types.get(port.type) or (wanted if wanted in allowed else allowed[0])
        outputs[port.name] = type_ if wanted is not None else None
    floats = [type_ for several in ports.values() for type_, _ in several or ()]
    variadic = {port.name for port in signature.inputs if port.is_variadic}
    arrays = tuple(array for several in ports.values() for _, array in several or ())
    own = {
        name: None if several is None else _port(several, variadic=name in variadic) for name, several in ports.items()
    }
    facts = Facts(
        operator=f"{version.operator.standard}/{version.operator.name}",
        version=version.operator.version,
        ports=own,
        outputs=outputs,
        attributes={**signature.defaults, **given},
        given=frozenset(given),
        silences=version.options,
        clauses=version.clause_ids,
        precision=version.budgets(floats),
    )
    return OurCall(case, facts, arrays, sum(array.size for array in arrays))


def _port(several: Sequence[tuple[str, Array]], *, variadic: bool) -> GivenPort | tuple[GivenPort, ...]:
    ports = tuple(GivenPort(type_, array.shape[1:]) for type_, array in several)
    return ports if variadic else ports[0]


def _lost(result: TheirCall, wanted: TheirCall, bond: Bond) -> tuple[int, str] | None:
    """Return the first part of a call of theirs that another one lacks, and its index: inputs first, then attributes.

    Attributes that only state types don't count.
    """
    stated = bond.theirs.type_attributes | bond.theirs.unused.keys()
    ports = dict.fromkeys([*wanted.inputs, *result.inputs])
    for index, name in enumerate(ports):
        mine, its = result.inputs.get(name), wanted.inputs.get(name)
        if (mine is None) != (its is None) or len(mine or ()) != len(its or ()):
            return index, name if its is not None else f"a missing {name}"
        if any(not _equal(a, b) for a, b in zip(mine or (), its or (), strict=True)):
            return index, f"{name} of shape {', '.join(map(_dims, its or ()))}"
    attributes, unsaid = dict.fromkeys([*wanted.attributes, *result.attributes]), None
    for index, name in enumerate(attributes, len(ports)):
        each, other = result.attributes.get(name), wanted.attributes.get(name)
        if name in stated:
            continue
        if (each is None) != (other is None):
            unsaid = unsaid or (_UNSAID, f"a missing {name}" if other is None else f"{name}={plain_text(other)}")
        elif not _alike(each, other):
            return index, f"{name}={plain_text(other)}"
    return unsaid


def _dims(array: Array) -> str:
    return "x".join(map(str, array.shape[1:])) or "scalar"


def _alike(each: Any, other: Any) -> bool:
    if isinstance(each, str) or isinstance(other, str):
        return bool(each == other)
    try:
        return bool(np.array_equal(np.asarray(each), np.asarray(other), equal_nan=True))
    except TypeError:
        return bool(each == other)


def _equal(each: Array, other: Array) -> bool:
    if each.shape != other.shape:
        return False
    if each.dtype == object or other.dtype.kind not in "fiub" or each.dtype.kind not in "fiub":
        return list(map(str, each.reshape(-1))) == list(map(str, other.reshape(-1)))
    return bool(np.array_equal(each, other, equal_nan=each.dtype.kind == "f" and other.dtype.kind == "f"))

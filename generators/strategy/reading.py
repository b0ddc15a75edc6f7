"""From a case id back to settings with their types; only what the plan itself could have written is read."""

from __future__ import annotations

from ...cases.errors import CaseIdError, did_you_mean
from ...cases.ids import CaseId
from ...cases.program import count
from ...specs.model import AttributeSignature, Spec, Value, VersionSpec, Word
from ..envelope import kindest_opset, opset_range
from ..fills import UNDRAWN
from .rows import Own, Row, data_port, free_letters, identify, text_of

LARGEST = 1 << 24
"""How many elements a case may have in all; more would not fit into the memory of every machine."""

_WORDS = {word.value: word for word in (Word.OMITTED, Word.GIVEN)}
_NUMBERS = frozenset({"draw", "seed", "opset"})
_UNKNOWN = "unknown"
_INT64 = 1 << 63


def read_row(spec: Spec, version: VersionSpec, case: CaseId, own: Own) -> Row:
    """Return what an id says, typed by the signature. Raises CaseIdError for what the version doesn't have."""
    if case.edge is not None and case.edge not in version.edges:
        hint = did_you_mean(case.edge, version.edges) or f"; it has {', '.join(version.edges)}"
        raise CaseIdError(f"{case}: {version.operator} has no edge {case.edge!r}{hint}")
    settings = {name: _setting(version, name, text, case, own) for name, text in case.settings}
    row = Row(spec, version, case, settings, own)
    _check_numbers(row)
    if case.edge is None:
        _check_signature(row)
    return row


def mended_row(row: Row) -> Row | None:
    """Return the row of the valid case that an invalid edge is a damaged copy of."""
    edge = row.edge
    if edge is None or edge.mended is None:
        return None
    types = dict(zip(free_letters(row.version), row.id.types, strict=False))
    levels = {**edge.settings, **types, "fill": row.id.fill, **edge.mended}
    case = identify(row.spec, row.version, levels, row.own)
    return read_row(row.spec, row.version, case, row.own)


def _check_signature(row: Row) -> None:
    """Raise CaseIdError for types and numbers of inputs that only an edge may have, since they are invalid."""
    version, case = row.version, row.id
    letters = free_letters(version)
    if len(case.types) != len(letters):
        raise CaseIdError(f"{case}: {version.operator} varies {len(letters)} types; read {len(case.types)}")
    for letter, name in zip(letters, case.types, strict=True):
        if name not in version.signature.types[letter]:
            allowed = ", ".join(version.signature.types[letter])
            raise CaseIdError(f"{case}: {name} is invalid in {version.operator}, and no edge; {letter} is {allowed}")
    if not data_port(version).is_variadic and len(case.shapes) != 1:
        raise CaseIdError(f"{case}: {version.operator} has one data input; read {len(case.shapes)} shapes")
    if row.get(_UNKNOWN) is not Word.ABSENT:
        raise CaseIdError(f"{case}: an attribute that {version.operator} does not have is invalid, and no edge")


def _check_numbers(row: Row) -> None:
    """Raise CaseIdError for an opset, draw or seed that the id should not carry, and for too many elements."""
    case, span = row.id, opset_range(row.spec, row.version)
    opset = row.settings.get("opset")
    if isinstance(opset, int):
        if span is None or not span[0] <= opset <= span[1]:
            there = f"{span[0]} to {span[1]}" if span else "none"
            raise CaseIdError(f"{case}: the opsets of {row.version.operator} are {there}; read {opset}")
        if opset == kindest_opset(row.spec, row.version):
            raise CaseIdError(f"{case}: opset={opset} is what carries {row.version.operator} anyway: leave it out")
    for name in ("draw", "seed"):
        number = row.settings.get(name)
        if isinstance(number, int) and number < 1:
            raise CaseIdError(f"{case}: {name} is a whole number from 1, left out where it is 0; read {number}")
        if number is not None and case.fill in UNDRAWN:
            raise CaseIdError(f"{case}: fill {case.fill!r} draws nothing: leave {name} out")
    if sum(map(count, case.shapes)) > LARGEST:
        raise CaseIdError(f"{case}: more than {LARGEST:,} elements")


def _setting(version: VersionSpec, name: str, text: str, case: CaseId, own: Own) -> Value:
    """Return a setting's value; CaseIdError unless an id has it so."""
    value = _value(version, name, text, case, own)
    if text != (written := text_of(value)):
        raise CaseIdError(f"{case}: {name}={text} is written {name}={written}")
    if name in own and text == own[name][0]:
        raise CaseIdError(f"{case}: {name}={text} holds where nothing is said: leave it out")
    return value


def _value(version: VersionSpec, name: str, text: str, case: CaseId, own: Own) -> Value:
    """Return a setting's value by what the signature says of its name."""
    attribute, port = version.signature.attribute(name), version.signature.input(name)
    if port is data_port(version) or (attribute is None and port is None and name not in {*own, *_NUMBERS, _UNKNOWN}):
        known = [a.name for a in version.signature.attributes] + [p.name for p in version.signature.inputs[1:]]
        raise CaseIdError(
            f"{case}: {version.operator} has no parameter {name!r}{did_you_mean(name, [*known, *own, *_NUMBERS])}"
        )
    if name in own:
        if text not in own[name]:
            raise CaseIdError(f"{case}: {name} is {' or '.join(own[name])}; read {text!r}")
        return text
    if text in _WORDS:
        return _word(version, name, _WORDS[text], case)
    if attribute is None and port is None and name == _UNKNOWN:
        return text
    listed = attribute.kind in ("ints", "s64s") if attribute else port is not None
    if listed or attribute is None or attribute.kind in ("int", "s64"):
        return _whole(name, text, case, listed=listed)
    return _plain(attribute, text)


def _word(version: VersionSpec, name: str, word: Word, case: CaseId) -> Word:
    port = version.signature.input(name)
    if word is Word.OMITTED and port is not None and port.option == "optional":
        return word
    if word is Word.GIVEN and word in version.parameters.get(name, {}).values():
        return word
    raise CaseIdError(f"{case}: {name} cannot be {word.value} in {version.operator}")


def _whole(name: str, text: str, case: CaseId, *, listed: bool) -> Value:
    """Return a list of whole numbers, or one."""
    try:
        numbers = tuple(int(t) for t in text.split(",")) if text != "none" or not listed else ()
    except ValueError:
        numbers = (_INT64,)
    if not all(-_INT64 <= number < _INT64 for number in numbers) or (not listed and len(numbers) != 1):
        what = "whole numbers" if listed else "a whole number"
        raise CaseIdError(f"{case}: {name} holds {what} of 64 bits; read {text!r}")
    return numbers if listed else numbers[0]


def _plain(attribute: AttributeSignature, text: str) -> Value:
    return text == "true" if attribute.kind in ("boolean", "bool") else text

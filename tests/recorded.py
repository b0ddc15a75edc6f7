"""References asked directly: arrays in, the readings of a version's text out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opconform.cases.batch import Flag
from opconform.cases.elements import Array, type_of
from opconform.generators.arithmetic.tape import Asks, Facts, Port, record
from opconform.generators.families import reference_of, vocabularies
from opconform.specs.loader import Library
from opconform.specs.model import VersionSpec

LIBRARY = Library(vocabulary=vocabularies())
Given = Mapping[str, "Array | Sequence[Array] | None"]


@dataclass(frozen=True)
class Reading:
    """One reading of the text: the options of silences that it takes, and the outputs, none where it refuses."""

    taken: Mapping[str, str]
    kind: str
    values: Sequence[Array]
    lower: Sequence[Array]
    upper: Sequence[Array]
    flags: Sequence[Array]

    @property
    def open(self) -> list[bool]:
        """Which elements of the first output may be anything."""
        return [bool(flag & Flag.FREE) for flag in self.flags[0].reshape(-1).tolist()]


def readings(
    operator: str, given: Given, outputs: Mapping[str, str | None], /, **attributes: Any
) -> list[Reading] | str:
    """Return what `onnx/Gather-13` admits for inputs by name, or the clause that they break."""
    spec, number = LIBRARY.operator_version(operator)
    version = spec.versions[number]
    ports, arrays = _ports(version, given)
    silences = {name: silence.options for name, silence in version.silences.items()}
    usual = {a.name: a.default for a in version.signature.attributes if a.default is not None}
    facts = Facts(
        spec.operator,
        number,
        ports,
        outputs,
        usual | attributes,
        frozenset(attributes),
        silences,
        frozenset(version.clauses),
    )
    known: dict[str, Array] = {}
    while True:
        try:
            recording = record(reference_of(spec, version), facts, known)
            break
        except Asks as asked:
            known[asked.port] = np.asarray(given[asked.port])
    broken = [clause for clause, lanes in recording.invalid(arrays, 1).items() if lanes.any()]
    if recording.invalid_clause or broken:
        return recording.invalid_clause or broken[0]
    found = recording.expectation(arrays, lanes=1)
    return [
        Reading(
            dict(one.labels),
            one.kind,
            *([getattr(b, part)[0] for b in one.outputs] for part in ("value", "lower", "upper")),
            [np.zeros(b.value[0].shape, np.uint8) if b.flags is None else b.flags[0] for b in one.outputs],
        )
        for one in found.options
    ]


def values(operator: str, given: Given, outputs: Mapping[str, str | None], /, **attributes: Any) -> list[Array]:
    """Return the outputs by the first reading."""
    found = readings(operator, given, outputs, **attributes)
    assert not isinstance(found, str), f"invalid by {found}"
    return list(found[0].values)


def _ports(version: VersionSpec, given: Given) -> tuple[dict[str, Any], list[Array]]:
    ports: dict[str, Any] = {}
    arrays: list[Array] = []
    for port in version.signature.inputs:
        one = given.get(port.name)
        if one is None:
            ports[port.name] = None
        elif isinstance(one, np.ndarray):
            ports[port.name] = Port(type_of(one), one.shape)
            arrays.append(one[np.newaxis])
        else:
            ports[port.name] = tuple(Port(type_of(a), a.shape) for a in one)
            arrays += [a[np.newaxis] for a in one]
    return ports, arrays

"""What each backend does where its standard is silent, with the cases that show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...specs.globs import split_version
from ..tally import ChosenOptions
from .gather import Gathered
from .knowledge import Knowledge
from .writer import SiteWriter

EVERYWHERE: Mapping[str, str] = {
    "accumulator": "in which precision a sum is kept while it grows",
    "flush": "whether subnormal numbers are taken for zero",
    "integer-overflow": "what becomes of a sum that its integer type does not hold, though the result fits",
    "overflow": "whether a sum beyond the largest number becomes infinite, though the result fits",
    "summation": "whether the mean is a sum that is divided, or is kept up to date with each element",
    "zero-sign": "whether a zero keeps its sign",
}
"""Silences about how results are computed, which no spec file has."""


@dataclass(frozen=True)
class SilenceRow:
    """A silence of an operator, and the versions of it in which every backend does the same."""

    silence: str
    when: str | None
    options: Sequence[str]
    operator_versions: Sequence[str]
    taken: Mapping[str, ChosenOptions]

    @property
    def text(self) -> str:
        """What a search looks in."""
        options = [e.option for taken in self.taken.values() for e in taken.established]
        return " ".join([self.silence, self.when or "", *self.operator_versions, *options, *self.taken])


def write_silences(site: SiteWriter, gathered: Gathered, known: Knowledge) -> None:
    """Write `silences.html`."""
    found: dict[str, dict[str, dict[str, ChosenOptions]]] = {}
    for taken in gathered.tables.behaviours.chosen():
        if taken.silence != "invalid":  # that one is a figure: refusal
            by_silence = found.setdefault(taken.operator_version, {})
            by_silence.setdefault(taken.silence, {})[taken.backend] = taken
    operators: dict[str, list[str]] = {}
    for operator_version in gathered.by_operator_version():
        if operator_version in found:
            operators.setdefault(split_version(operator_version)[0], []).append(operator_version)
    rows = {operator: _rows(known, {v: found[v] for v in versions}) for operator, versions in operators.items()}
    site.page("silences.html", "silences.html.j2", operators=rows, invalid=gathered.terms.demands.required)


def _rows(known: Knowledge, found: Mapping[str, Mapping[str, Mapping[str, ChosenOptions]]]) -> list[SilenceRow]:
    """Return rows, those of versions in which every backend does the same as one."""
    alike: dict[tuple[str, tuple[object, ...]], list[tuple[str, Mapping[str, ChosenOptions]]]] = {}
    for operator_version, by_silence in found.items():
        for silence, by_backend in by_silence.items():
            told = tuple((backend, _told(taken)) for backend, taken in sorted(by_backend.items()))
            alike.setdefault((silence, told), []).append((operator_version, by_backend))
    rows = []
    for (silence, _), versions in alike.items():
        names = [operator_version for operator_version, _ in versions]
        side = known.side(names[-1])
        own = side.version.silences.get(silence) if side else None
        when = own.when if own else EVERYWHERE.get(silence)
        rows.append(SilenceRow(silence, when, own.options if own else (), names, versions[0][1]))
    order = list(dict.fromkeys(row.silence for row in rows))
    return sorted(rows, key=lambda row: order.index(row.silence))


def _told(taken: ChosenOptions) -> tuple[object, ...]:
    return (*sorted(evidence.option for evidence in taken.established), taken.consistent)

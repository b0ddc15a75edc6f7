"""Checks the binding of a spec to another operator's formula (`as`): every part of the other is bound or settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .model import Binding, BoundAttribute, Port, Signature, Silence, VersionSpec
from .reading import Keys, Problems
from .schema import BindingText, BoundAttributeText

OURS = "="
"""Begins the name of one of our silences, in place of an option."""


@dataclass(frozen=True)
class Ours:
    """The parts of a version that a binding may name."""

    signature: Signature
    clauses: frozenset[str]
    silences: Mapping[str, Silence]


def bound(ours: Ours, text: BindingText, path: Keys, theirs: VersionSpec, problems: Problems) -> Binding:
    """Return the binding that is written at `path`; its mistakes are added to `problems`.

    theirs: the version with the formula.
    """
    check = _Checks(ours, theirs, problems, path)
    signature = theirs.signature
    inputs = check.ports("inputs", text.inputs, signature.inputs, ours.signature.inputs)
    outputs = check.ports("outputs", text.outputs, signature.outputs, ours.signature.outputs)
    attributes = check.attributes(text.attributes)
    check.clauses(text.clauses)
    check.silences(text.silences)
    unbound = theirs.clause_ids - text.clauses.keys()
    operator = f"{theirs.operator.standard}/{theirs.operator.name}"
    version = theirs.operator.version
    return Binding(operator, version, inputs, outputs, attributes, text.clauses, text.silences, unbound, text.by)


class _Checks:
    def __init__(self, ours: Ours, theirs: VersionSpec, problems: Problems, path: Keys) -> None:
        self.ours, self.theirs, self.problems, self.path = ours, theirs, problems, path

    def ports(
        self, section: str, named: Mapping[str, str | None], theirs: tuple[Port, ...], ours: tuple[Port, ...]
    ) -> dict[str, str | None]:
        """Return our ports by theirs; a port of the same name on both sides needs no entry."""
        their_names, our_names = [port.name for port in theirs], [port.name for port in ours]
        for name, own in named.items():
            if name not in their_names:
                self.unknown((section, name), f"{self.theirs.operator} has no {section[:-1]}", name, their_names)
            if own is not None and own not in our_names:
                self.unknown((section, name), f"this version has no {section[:-1]}", own, our_names, key=False)
        pairs = {port.name: named.get(port.name, port.name if port.name in our_names else None) for port in theirs}
        for port in theirs:
            if port.option == "single" and pairs[port.name] is None and port.name not in named:
                self.missing(section, f"{section[:-1]} {port.name}")
        for name in set(our_names) - {*pairs.values()} if section == "outputs" else ():
            self.problems.add(
                (*self.path, section), f"no output of {self.theirs.operator} is bound to {name!r}", key=True
            )
        return pairs

    def attributes(self, named: Mapping[str, BoundAttributeText]) -> dict[str, BoundAttribute]:
        known = self.ours.signature
        names = [attribute.name for attribute in self.theirs.signature.attributes]
        for name, bound in named.items():
            if name not in names:
                self.unknown(("attributes", name), f"{self.theirs.operator} has no attribute", name, names)
            if bound.source is not None and known.attribute(bound.source) is None:
                ours = [attribute.name for attribute in known.attributes]
                self.unknown(("attributes", name), "this version has no attribute", bound.source, ours, key=False)
        left_open = self.theirs.type_attributes | self.theirs.unused.keys()
        for attribute in self.theirs.signature.attributes:
            if attribute.name not in named and attribute.name not in left_open:
                self.missing("attributes", f"attribute {attribute.name}")
        return {
            name: BoundAttribute(bound.source, bound.value if bound.source is None else bound.absent, bound.words)
            for name, bound in named.items()
        }

    def clauses(self, named: Mapping[str, str | None]) -> None:
        for name, own in named.items():
            if name not in self.theirs.clauses:
                self.unknown(("clauses", name), f"{self.theirs.operator} has no clause", name, self.theirs.clauses)
            if own is not None and own not in self.ours.clauses:
                self.unknown(("clauses", name), "this version has no clause", own, sorted(self.ours.clauses), key=False)

    def silences(self, named: Mapping[str, str]) -> None:
        for name, answer_name in named.items():
            options = self.theirs.options.get(name)
            if options is None:
                self.unknown(("silences", name), f"{self.theirs.operator} has no silence", name, self.theirs.options)
                continue
            own = self.ours.silences.get(answer_name.removeprefix(OURS)) if answer_name.startswith(OURS) else None
            if answer_name.startswith(OURS) and own is None:
                known = [OURS + id_ for id_ in self.ours.silences]
                self.unknown(("silences", name), "this version has no silence", answer_name, known, key=False)
            for option in (answer_name,) if own is None else own.options:
                if option not in options and not (own is None and answer_name.startswith(OURS)):
                    self.unknown(("silences", name), f"the silence {name} has no option", option, options, key=False)
        for name in self.theirs.options.keys() - named.keys():
            self.missing("silences", f"silence {name}")

    def unknown(self, at: Keys, what: str, word: str, known: Iterable[str], *, key: bool = True) -> None:
        self.problems.unknown((*self.path, *at), f"{what} {word!r}", word, known, key=key)

    def missing(self, section: str, what: str) -> None:
        path = (*self.path, section) if self.problems.document.has((*self.path, section)) else self.path
        self.problems.add(path, f"bind or settle the {what} of {self.theirs.operator}", key=True)

"""An operator version for people: its signature, where it is valid, its clauses and silences, and its cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..cases.ids import Selection
from ..generators.comparing.situations import Side, side
from ..generators.selection import selected
from ..generators.source import GeneratedCases
from ..specs.loader import Library
from .difference import attribute_text, port_text

_WIDE = 12
_TYPES = 90  # columns of a list of types
_FIRST = 3


def operator_text(source: GeneratedCases, name: str) -> str:
    """Return the description of `onnx/Relu-14`, or of the newest version of `onnx/Relu`.

    Raises OpconformError if there is no such operator or version.
    """
    newest = side(source, _newest(source.library, name))
    return "\n".join(_lines(source, newest))


def is_operator(library: Library, name: str) -> bool:
    """Return whether a name is that of an operator, or of a version."""
    versions = [str(version.operator) for spec in library.specs() for version in spec.versions.values()]
    return name in versions or any(spec.operator == name for spec in library.specs())


def _newest(library: Library, name: str) -> str:
    spec = next((spec for spec in library.specs() if spec.operator == name), None)
    return str([*spec.versions.values()][-1].operator) if spec else name


def _lines(source: GeneratedCases, newest: Side) -> Iterator[str]:
    spec, version, signature = newest.spec, newest.version, newest.version.signature
    others = [str(other.operator.version) for other in spec.versions.values()]
    clauses = list(version.clauses.values())
    yield _line("operator", newest.name + ("  (deprecated)" if signature.deprecated else ""))
    if any(others):
        yield _line("versions", ", ".join(others))
    if clauses:
        yield _line("standard", clauses[0].source)
    if version.change:
        yield _line("change", version.change)
    yield from _listed("inputs", [port_text(port) for port in signature.inputs])
    yield from _listed("outputs", [port_text(port) for port in signature.outputs])
    yield from _listed("attributes", [attribute_text(attribute) for attribute in signature.attributes])
    yield from _listed("types", _types(signature.types))
    yield ""
    for clause in clauses:
        status = "" if clause.status == "required" else f"  ({clause.status})"
        yield _line("clause", f"{clause.id}: {clause.text}{status}")
    for silence in version.silences.values():
        yield _line("silence", f"{silence.id}: {silence.when}; admitted: {' or '.join(silence.options)}")
    yield ""
    ids = list(selected(source, Selection((newest.name,))))
    yield _line("cases", f"{len(ids):,} in the default suite; opconform list cases --select '{newest.name}' has all")
    yield from (_line("", text) for text in sorted(ids, key=len)[:_FIRST])


def _types(types: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each type letter, or more if there are many types."""
    lines = []
    for letter, names in types.items():
        line = f"{letter}:"
        for name in names:
            if len(line) + len(name) > _TYPES:
                lines.append(line)
                line = " " * (len(letter) + 1)
            line += f" {name}"
        lines.append(line)
    return lines


def _listed(label: str, texts: Sequence[str]) -> Iterator[str]:
    for number, text in enumerate(texts or ["none"]):
        yield _line("" if number else label, text)


def _line(label: str, text: str) -> str:
    return f"{label:<{_WIDE}} {text}"

"""Files of declared arithmetic (`--arithmetic FILE`): what a device does on purpose, by element type."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from ..cases.declared import FORMATS, Declaration, DeclaredType, Flushed
from ..cases.elements import element_types
from ..cases.errors import did_you_mean
from ..specs.fields import Fields, shown
from ..specs.problems import Problems
from ..specs.reading import Key, read_file

_FLUSH = ("input", "output")
_WHOLE = ("threads", "deterministic")


def load_declaration(path: Path | str) -> Declaration:
    """Read a declaration; its digest is the sha256 of the file's bytes.

    Raises SpecError or SpecErrors for what is wrong in the file, OpconformError if it cannot be read.
    """
    document = read_file(path)
    problems = Problems(document)
    types = [t.name for t in element_types().values() if t.kind == "float"]
    keys = document.value if isinstance(document.value, dict) else {}
    for key in keys:
        if key not in types and key not in _WHOLE:
            problems.add((key,), _no_type(key, types), key=True)
    fields = Fields(problems, (), optional=[*types, *_WHOLE, *(k for k in keys if isinstance(k, str))])
    declared = {name: _declared(problems, name) for name in types if fields.has(name)}
    found = Declaration(declared, fields.whole("threads", 1), fields.flag("deterministic"), document.digest)
    problems.raise_any()
    return found


def _declared(problems: Problems, name: str) -> DeclaredType:
    fields = Fields(problems, (name,), optional=("compute", "accumulator", "flush"))
    if fields.has("flush") and fields.values["flush"] in _FLUSH:
        fields.fail("flush", f"expected a list, as in [input, output]; read {shown(fields.values['flush'])}")
        return DeclaredType()
    return DeclaredType(
        fields.word("compute", FORMATS, None),
        fields.word("accumulator", FORMATS, None),
        frozenset(cast("tuple[Flushed, ...]", fields.words("flush", _FLUSH))),
    )


def _no_type(key: Key, types: list[str]) -> str:
    if key in element_types():
        return f"{key} is no floating-point type; arithmetic is declared for {', '.join(types)}"
    known = [*types, *_WHOLE]
    return f"unknown key {key!r}{did_you_mean(str(key), known) or '; known here: ' + ', '.join(known)}"

"""Files of declared arithmetic (`--arithmetic FILE`): what a device does on purpose, by element type."""

from __future__ import annotations

from pathlib import Path

from ..cases.declared import Declaration, DeclaredType
from ..specs.reading import read_file


def load_declaration(path: Path | str) -> Declaration:
    """Read a declaration; its digest is the sha256 of the file's bytes.

    Raises SpecError or SpecErrors for what is wrong in the file, OpconformError if it cannot be read.
    """
    from ..specs.schema import DeclaredText, declaration_text, parsed  # noqa: PLC0415 - pydantic, which few runs need

    document = read_file(path)
    text = dict(parsed(declaration_text(), document))
    types = {
        name: DeclaredType(one.compute, one.accumulator, frozenset(one.flush))
        for name, one in text.items()
        if isinstance(one, DeclaredText)
    }
    return Declaration(types, text["threads"], text["deterministic"], document.digest)

"""Mutants and variants as backends: `mutant:NAME`, an entry point of the group `opconform.runners` with an argument."""

from __future__ import annotations

from ...cases.errors import OpconformError
from ..source import GeneratedCases
from .catalogue import implementation
from .implementation import Interpreter


def mutant(name: str = "") -> Interpreter:
    """Return the runner of the mutant or the compliant variant called `name`. Raises OpconformError."""
    if not name:
        raise OpconformError("mutant: expected mutant:NAME, as in mutant:count-plus-one; `opconform mutants` has all")
    library = GeneratedCases().library
    return Interpreter(f"mutant:{name}", implementation(library, name), library)

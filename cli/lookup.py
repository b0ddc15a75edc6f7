"""One case by its id, with a hint where there is none such."""

from __future__ import annotations

import difflib
from pathlib import Path

from ..cases.batch import Batch
from ..cases.declared import Declaration
from ..cases.errors import CaseIdError
from ..generators.plan import Selection, planned
from ..generators.source import GeneratedCases
from ..runners.declaration import load_declaration
from ..specs.loader import UnknownOperator

_LONGEST = 500  # characters of an id that are compared with those there are


def case_of(text: str, specs: Path | None = None, arithmetic: Path | None = None) -> tuple[GeneratedCases, Batch]:
    """Return a case and its source. Raises CaseIdError that names the nearest case of the suite."""
    declaration = load_declaration(arithmetic) if arithmetic else Declaration()
    source = GeneratedCases(specs, declaration)
    try:
        return source, source.case(text)
    except (CaseIdError, UnknownOperator) as error:
        raise CaseIdError(f"{error}{_nearest(source, text)}") from None


def _nearest(source: GeneratedCases, text: str) -> str:
    """Return the nearest id of the default suite, of the same operator version and types if there is one."""
    parts = text[:_LONGEST].split("/")
    known = list(planned(source.library, Selection())) if parts[1:] else []
    for length in (2, 3):
        known = [case for case in known if case.split("/")[:length] == parts[:length]] or known
    near = difflib.get_close_matches(text[:_LONGEST], known, 1, cutoff=0.3)
    return f"\n  the nearest case is {near[0]}" if near else "\n  `opconform list cases` shows all cases"

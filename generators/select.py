"""What a user selects: cases of the plan, and any case by its id, planned or not."""

from __future__ import annotations

from collections.abc import Iterator

from ..cases.errors import CaseIdError
from ..cases.ids import parse_id
from .plan import Selection, planned
from .source import GeneratedCases


def selected(source: GeneratedCases, selection: Selection) -> Iterator[str]:
    """Yield the ids of the selected cases, once each. Raises CaseIdError for an id that names no case.

    A glob that is a case id selects that case even if the strength or the draws would not plan it, so that every
    result can be run again by its id alone.
    """
    named = {glob: None for glob in selection.globs if _is_id(glob)}
    for text in planned(source.library, selection):
        named.pop(text, None)
        yield text
    for text in named:
        if selection.standards and text.partition("/")[0] not in selection.standards:
            continue
        source.case(text)
        yield text


def _is_id(glob: str) -> bool:
    try:
        return str(parse_id(glob)) == glob
    except CaseIdError:
        return False

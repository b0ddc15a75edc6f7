"""What a library's words for a refusal mean: tables of patterns, each with the reason that it tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..cases.runner import Reason


class Words(NamedTuple):
    """A pattern of a library's message, and what it tells.

    `plain` is whether these words say no more than "not implemented"; all else is an error of the backend.
    """

    pattern: str
    reason: Reason
    plain: bool = False


def meaning(table: Sequence[Words], message: str) -> Words | None:
    """Return the first entry of `table` that occurs in `message`."""
    return next((words for words in table if re.search(words.pattern, message)), None)

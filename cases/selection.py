"""What a user selects: cases by globs, drawn how, and which shard of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .errors import OpconformError
from .ids import CaseId

_FORM = re.compile(r"(\d{1,9})/(\d{1,9})")
_WHOLE_NUMBER = re.compile(r"(?:^|=)[0-9]+(?:\Z|[;/])")


@dataclass(frozen=True)
class Selection:
    """What to generate.

    `globs` are matched, as fnmatchcase does, against case ids and operator versions; none selects all. `strength` of
    the covering array, None for every combination. `draws` of each drawn fill; `seed` varies all of them. `standards`
    are those that a backend implements; none: all. `suite` is a list of cases by its name, in place of the plan.
    """

    globs: tuple[str, ...] = ()
    strength: int | None = 2
    draws: int = 1
    seed: int = 0
    standards: tuple[str, ...] = ()
    suite: str | None = None

    def admits(self, case: CaseId, text: str) -> bool:
        """Return whether a glob selects this case."""
        return self.admits_text(case.operator, text)

    def admits_text(self, operator_version: str, text: str) -> bool:
        """Return whether a glob selects a case, given as its operator version and its id."""
        return not self.globs or any(fnmatchcase(text, g) or fnmatchcase(operator_version, g) for g in self.globs)

    def may_admit(self, operator_version: str) -> bool:
        """Return whether a glob may select a case of this operator version; cheap, and true when in doubt."""
        if self.standards and operator_version.partition("/")[0] not in self.standards:
            return False
        return not self.globs or any(may_match(glob, operator_version) for glob in self.globs)


def strength_of(text: str) -> int | None:
    """Return a strength as a user writes it: a whole number from 1, or `full`, which is None. Raises OpconformError."""
    if text != "full" and not (text.isascii() and text.isdigit() and int(text)):
        raise OpconformError(f"strength {text}: expected a whole number from 1, or full")
    return None if text == "full" else int(text)


def may_match(glob: str, operator_version: str) -> bool:
    """Return whether a glob may select a case of an operator version; true when in doubt."""
    wild = min((i for i, c in enumerate(glob) if c in "*?["), default=len(glob))
    literal = glob[:wild]
    return literal.startswith(f"{operator_version}/") or (
        f"{operator_version}/".startswith(literal) and (wild < len(glob) or literal == operator_version)
    )


def matches_numbered(glob: str, before: str, after: str) -> bool | None:
    """Return whether a glob matches `before`, a whole number and `after`; None if that may hang on the number.

    `before` ends with `=`, and `after` begins with `;` or `/`, as in `…/axes=0;draw=` and `/uniform`.
    """
    if "?" in glob or "[" in glob:
        return None
    head, *pieces = glob.split("*")
    if not pieces or not before.startswith(head):
        return None if head.startswith(before) else False
    # a piece that reaches into the number has digits with nothing, `=`, `;` or `/` beside them
    if any(_WHOLE_NUMBER.search(piece) for piece in pieces):
        return None
    return fnmatchcase(f"{before}1{after}", glob)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` shards, the first is 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def shard_of(text: str) -> Shard:
    """Return the shard that a user writes as `I/N`. Raises OpconformError."""
    match = _FORM.fullmatch(text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise OpconformError(f"shard {text}: expected I/N with I from 1 to N, as in 2/8")
    return Shard(int(match[1]), int(match[2]))

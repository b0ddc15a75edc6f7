"""Results of a run put into a temporary table of the history's database, with the checks of a reader."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...cases.errors import OpconformError
from ...cases.results import Outcome
from ..merge import Part, Whole
from ..reading import RESULTS, read_results
from .database import History
from .state import DETAIL

_KEYS = (
    *("case", "backend", "outcome", "behaviour", "reason", "detail", "level", "clauses"),
    *("case_digest", "expectation_digest", "bound_ratio", "seconds"),
)
_PATHS = [f"$.{key}" for key in _KEYS]
_TEXT, _TEXT_OR_NULL = ("VARCHAR",), ("VARCHAR", "NULL")
_NUMBER_OR_NULL = ("NULL", "DOUBLE", "BIGINT", "UBIGINT", "HUGEINT")
_TYPES = {
    "case": _TEXT,
    "backend": _TEXT,
    "outcome": _TEXT,
    "behaviour": ("OBJECT",),
    "clauses": ("ARRAY",),
    **dict.fromkeys(("reason", "detail", "level", "case_digest", "expectation_digest"), _TEXT_OR_NULL),
    **dict.fromkeys(("bound_ratio", "seconds"), _NUMBER_OR_NULL),
}
_OF_THEIR_TYPES = " AND ".join(f"t[{_KEYS.index(key) + 1}] IN {(*types, '-')}" for key, types in _TYPES.items())
_LARGEST = 256 << 20  # bytes of one line
_READ = f"""
INSERT INTO arrived
SELECT ?, v[2], v[1], v[3], v[4], v[5], v[6][:{DETAIL}], v[7], v[8], v[9], v[10],
  coalesce(n = {len(_KEYS)} AND {_OF_THEIR_TYPES}, false)
FROM (SELECT json_extract_string(json, ?) AS v, json_type(json, ?) AS t, len(json_keys(json)) AS n
  FROM read_ndjson_objects(?, format = 'newline_delimited', compression = 'none', maximum_object_size = {_LARGEST}))
"""  # noqa: S608 - constants


def arrive(history: History, wholes: Sequence[Whole]) -> None:
    """Make the table `arrived` of all results; `whole` is the index of the run.

    Raises OpconformError for a line that is no result, a case that is there twice, and results of a backend that
    `run.json` does not name; a torn last line is dropped.
    """
    history.run(
        'CREATE OR REPLACE TEMP TABLE arrived (whole INTEGER, backend VARCHAR, "case" VARCHAR, outcome VARCHAR, '
        "behaviour VARCHAR, reason VARCHAR, detail VARCHAR, level VARCHAR, clauses VARCHAR, case_digest VARCHAR, "
        "expectation_digest VARCHAR, sound BOOLEAN)"
    )
    with tempfile.TemporaryDirectory(prefix="opconform-") as aside:
        for number, whole in enumerate(wholes):
            for part in whole.parts:
                _read(history, number, part, Path(aside))
                _check(history, number, part)
    _refuse_twice(history)


def _read(history: History, number: int, part: Part, aside: Path) -> None:
    file = part.folder / RESULTS
    link = aside / "results"  # the database would take a star in a path for a pattern
    link.unlink(missing_ok=True)
    try:
        if _is_torn(file):
            _copy_whole_lines(file, link)
        else:
            link.symlink_to(file.resolve())
    except OSError as error:
        raise OpconformError(f"{file}: cannot be read: {error.strerror}; expected a results folder") from None
    import duckdb  # noqa: PLC0415 - an extra

    try:
        history.run(_READ, [number, _PATHS, _PATHS, str(link)])
    except duckdb.Error as error:
        _tell_wrong_line(part.folder)
        reason = str(error).splitlines()[0].replace(str(link), str(file))
        raise OpconformError(f"{file}: cannot be read: {reason}") from None


def _is_torn(file: Path) -> bool:
    """Return whether the last line has no end."""
    with file.open("rb") as lines:
        size = lines.seek(0, 2)
        lines.seek(max(0, size - 1))
        return lines.read() not in (b"", b"\n")


def _copy_whole_lines(file: Path, target: Path) -> None:
    """Copy a file up to the end of its last whole line."""
    shutil.copyfile(file, target)
    with target.open("rb+") as lines:
        end = lines.seek(0, 2)
        while end:
            start = max(0, end - (1 << 20))
            lines.seek(start)
            place = lines.read(end - start).rfind(b"\n")
            if place >= 0:
                lines.truncate(start + place + 1)
                return
            end = start
        lines.truncate(0)


def _check(history: History, number: int, part: Part) -> None:
    """Raise OpconformError unless each result that was read is one."""
    outcomes = [str(outcome) for outcome in Outcome]
    wrong = history.one(
        "SELECT count(*) FROM arrived WHERE whole = ? AND NOT (sound AND list_contains(?, outcome))", [number, outcomes]
    )
    behaviours = (text for (text,) in history.rows("SELECT DISTINCT behaviour FROM arrived WHERE behaviour <> '{}'"))
    clauses = (text for (text,) in history.rows("SELECT DISTINCT clauses FROM arrived"))
    if wrong or not all(map(_is_behaviour, behaviours)) or not all(map(_is_texts, clauses)):
        _tell_wrong_line(part.folder)
        raise OpconformError(f"{part.folder / RESULTS}: holds lines that are no results")
    named = [str(name) for name in part.told["backends"]]
    asked = "SELECT backend FROM arrived WHERE whole = ? AND NOT list_contains(?, backend)"
    stranger = history.one(asked, [number, named])
    if stranger is not None:
        raise OpconformError(f"{part.folder / RESULTS}: has results of {stranger!r}, which run.json does not name")


def _is_behaviour(text: str) -> bool:
    return all(isinstance(o, list) and all(isinstance(name, str) for name in o) for o in json.loads(text).values())


def _is_texts(text: str) -> bool:
    return all(isinstance(clause, str) for clause in json.loads(text))


def _tell_wrong_line(folder: Path) -> None:
    """Raise OpconformError that names the first line which is no result, as the reader of all reports does."""
    for _ in read_results(folder):
        pass


def _refuse_twice(history: History) -> None:
    twice = history.rows('SELECT backend, "case" FROM arrived GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1')
    if twice:
        backend, case = twice[0]
        raise OpconformError(f"{case} on {backend} is there twice: the folders are not one run")

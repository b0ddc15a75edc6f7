"""Short case ids, such as `onnx/Div-7#k3f9ab`: the operator version, and the beginning of the long id's sha256."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from .errors import CaseIdError
from .ids import operator_version_of
from .lock import Lock, read_lock

LETTERS = 6
"""The number of letters of the digest: 30 bits. No two cases of an operator version in the default suite share them."""
RUNS = Path("opconform-results")
"""Where runs without `--out` keep their results folders; the cases of these runs have short ids, too."""

_SHORT = re.compile(r"[^#/\s]+/[^#/\s*?\[]+#([a-z2-7]{4,52})")
_LOCKS = Path(__file__).parent / "manifests"
_BEGINNING = b'{"case":'
_LISTED = 5


def short_id(case_id: str) -> str:
    """Return the short id of a case: `#` and the first letters of the sha256 of its id, in base32, lower case."""
    return f"{operator_version_of(case_id)}#{_letters(case_id)[:LETTERS]}"


def known_short_id(case_id: str) -> str:
    """Return the short id of a case of the default suite, which `long_id` can resolve; the same id for others."""
    return short_id(case_id) if case_id in _locked(operator_version_of(case_id)) else case_id


def is_short(text: str) -> bool:
    """Return whether a text has the form of a short id."""
    return _SHORT.fullmatch(text) is not None


def long_id(text: str, folders: Iterable[Path] = ()) -> str:
    """Return the case id that a short one stands for, and every other text unchanged.

    It is looked up in the default suite, then in `folders`, which are results folders, and in those in `RUNS`. Raises
    CaseIdError if no case has it, or several, which are listed.
    """
    if not is_short(text):
        return text
    operator_version, _, letters = text.partition("#")
    matches = [id_ for id_ in _locked(operator_version) if _letters(id_).startswith(letters)]
    folders = [*folders, *sorted((file.parent for file in RUNS.glob("*/run.json")), reverse=True)]
    for folder in folders if not matches else ():
        in_folder = (id_ for id_ in _ran(folder, operator_version) if _letters(id_).startswith(letters))
        if matches := sorted(set(in_folder)):
            break
    if len(matches) == 1:
        return matches[0]
    if matches:
        more = f"\n  and {len(matches) - _LISTED:,} more" if len(matches) > _LISTED else ""
        listed = "".join(f"\n  {short_id(id_)}  {id_}" for id_ in matches[:_LISTED])
        raise CaseIdError(f"{text}: {len(matches):,} cases begin so; use more letters, or the long id:{listed}{more}")
    where = " and ".join(["the default suite", *(str(folder) for folder in folders[:_LISTED])])
    raise CaseIdError(f"{text}: no case has this short id; looked in {where}. The long id of a case always works")


def _letters(case_id: str) -> str:
    return base64.b32encode(hashlib.sha256(case_id.encode()).digest()).decode().rstrip("=").lower()


def _locked(operator_version: str) -> list[str]:
    """Return the cases of an operator version in the default suite; none if it has no lock."""
    file = _LOCKS / Lock(operator_version, "", ()).file_name
    return [case.id for case in read_lock(file).cases] if file.is_file() else []


def _ran(folder: Path, operator_version: str) -> Iterator[str]:
    """Yield the cases of an operator version that have a result in a folder."""
    wanted = _BEGINNING + json.dumps(f"{operator_version}/")[:-1].encode()
    file = folder / "results.jsonl"
    if not file.is_file():
        return
    with file.open("rb") as lines:
        for line in lines:
            if line.startswith(wanted):
                yield json.JSONDecoder().raw_decode(line[len(_BEGINNING) :].decode())[0]

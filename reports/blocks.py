"""Results of neighbours that pass, or are refused alike, as one record: a worker writes it, and the parent reads it.

The parent takes the lines as they are, and what they have in common from the record's head; it reads no line.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from typing import Any, Final, TypeAlias

from ..cases.results import Result, result_from_json
from ..runners.accuracy import Accuracy, Grade
from ..runners.judge import Verdict
from ..runners.records import ResultLines, Told, escaped
from .grades import ATTACHMENT, Peak
from .passing import Passes

_SIZES: Final = 3  # of head, lines and what stands beside them: bytes each in eight bytes, little-endian
_SECONDS: Final = "d"
_GRADES: Final = frozenset({Accuracy, type(None)})

_LARGEST: Final = Accuracy._fields.index("ulp"), Accuracy._fields.index("share")
_UNGRADED: Final = None, "", 0

_Key: TypeAlias = tuple[int, Grade | None, str, int]
"""What results have in common that are counted together: a verdict's id, and of their accuracy `Passes` says what."""


@dataclass(frozen=True)
class ResultBlock:
    """Results of cases of one program. `lines` and `accuracy` are lines of their files, without the last one's end.

    `results` are what they are, without a case; `of` has the number of each case's, None where there is one for all.
    `alike` counts them. `seconds` are those of each case.
    """

    ids: Sequence[str]
    results: Sequence[Result]
    of: Sequence[int] | None
    alike: Sequence[Passes]
    seconds: Sequence[float]
    lines: bytes
    accuracy: bytes


@dataclass(frozen=True)
class TellTogether:
    """Makes a record of results, in the worker; picklable."""

    def __call__(self, lines: ResultLines, told: Told) -> bytes | None:
        """Return the record; None where more than the accuracy is attached to some result."""
        accuracies = told.attached.get(ATTACHMENT) or [None] * len(told.ids)
        others = (every for name, every in told.attached.items() if name != ATTACHMENT)
        if any(one is not None for every in others for one in every) or not _GRADES.issuperset(map(type, accuracies)):
            return None
        return _record(lines, told, accuracies)  # type: ignore[arg-type]  # as the types of them say


def _record(lines: ResultLines, told: Told, accuracies: Sequence[Accuracy | None]) -> bytes:
    verdicts = {id(verdict): verdict for verdict in told.verdicts if verdict is not None}
    numbers = {one: number for number, one in enumerate(verdicts)}
    alike = [
        {"of": numbers[verdict], "grade": grade, "type": name, "graded": graded}
        | _counted(told.ids, places, accuracies)
        for (verdict, grade, name, graded), places in _places(told.verdicts, accuracies).items()
    ]
    head = json.dumps(
        {
            "results": [lines.result(verdict).to_json() for verdict in verdicts.values()],
            "of": [numbers[id(verdict)] for verdict in told.verdicts] if len(verdicts) > 1 else None,
            "alike": alike,
        }
    ).encode()
    texts = "\n".join(lines.lines(told)).encode()
    beside = "\n".join(_accuracy_lines(lines.backend, told.ids, accuracies)).encode()
    sizes = b"".join([len(part).to_bytes(8, "little") for part in (head, texts, beside)])
    return b"".join([sizes, head, texts, beside, array(_SECONDS, told.seconds).tobytes()])


def _places(verdicts: Sequence[Verdict | None], accuracies: Sequence[Accuracy | None]) -> Mapping[_Key, Sequence[int]]:
    """Return the places of results that are counted together."""
    grades = [_UNGRADED if accuracy is None else accuracy[:3] for accuracy in accuracies]
    keys: list[_Key] = [(id(verdict), *grade) for verdict, grade in zip(verdicts, grades, strict=True)]
    found: dict[_Key, list[int]] = {key: [] for key in keys}
    if len(found) == 1:
        return {keys[0]: range(len(keys))}
    for place, key in enumerate(keys):
        found[key].append(place)
    return found


def _counted(ids: Sequence[str], places: Sequence[int], accuracies: Sequence[Accuracy | None]) -> dict[str, Any]:
    """Return what `Passes` tells of cases that are counted together."""
    cases = [ids[place] for place in places]
    graded = [accuracy for place in places if (accuracy := accuracies[place]) is not None]
    ulp, share = (_peak(cases, [one[index] for one in graded]) for index in _LARGEST)
    return {"first": cases[0], "least": min(cases), "count": len(cases), "ulp": ulp, "share": share}


def _peak(cases: Sequence[str], numbers: Sequence[Any]) -> tuple[float, str] | None:
    """Return the largest number, with the digits that are told, and the first case by its id that reaches it so."""
    known = [(c, n) for c, n in zip(cases, numbers, strict=True) if n is not None] if None in numbers else None
    if known is not None:
        cases, numbers = [c for c, _ in known], [n for _, n in known]
    if not numbers:
        return None
    largest = max(numbers)
    if not largest:
        return 0.0, min(cases)
    told, near = Accuracy.short(largest), largest * (1 - 1e-6)  # what is left out by these digits is less than that
    return told, min(
        [c for c, n in zip(cases, numbers, strict=True) if n >= near and (n == largest or Accuracy.short(n) == told)]
    )


def _accuracy_lines(backend: str, ids: Sequence[str], accuracies: Sequence[Accuracy | None]) -> list[str]:
    if not any(accuracies):
        return []
    of = f'","backend":{encode_basestring_ascii(backend)},'
    told = zip(escaped(ids), accuracies, strict=True)
    return [f'{{"case":"{case}{of}{one.to_json()[1:]}' for case, one in told if one is not None]


def read_block(ids: Sequence[str], record: bytes) -> ResultBlock:
    """Read a worker's record. Raises ValueError if it is none, or of another number of cases."""
    try:
        head, lines, accuracy, seconds = _parts(record)
        told = json.loads(head)
        results = [result_from_json(text) for text in told["results"]]
        alike = [_alike(results, one) for one in told["alike"]]
        block = ResultBlock(ids, results, told["of"], alike, array(_SECONDS, seconds), lines, accuracy)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"not a record of several results: {error}") from None
    counts = {len(ids), len(block.seconds), sum(one.count for one in alike), lines.count(b"\n") + 1}
    if len(counts) > 1:
        raise ValueError(f"a record of several results has {sorted(counts)} of them")
    return block


def _parts(record: bytes) -> list[bytes]:
    """Return the parts of a record."""
    place, found = 8 * _SIZES, []
    for number in range(_SIZES):
        size = int.from_bytes(record[8 * number : 8 * number + 8], "little")
        found.append(record[place : place + size])
        place += size
    return [*found, record[place:]]


def _alike(results: Sequence[Result], told: Mapping[str, Any]) -> Passes:
    ulp, share = (None if told[name] is None else Peak(*told[name]) for name in ("ulp", "share"))
    grade = None if told["grade"] is None else Grade(told["grade"])
    least, first, graded, count = told["least"], told["first"], told["graded"], told["count"]
    return Passes(results[told["of"]], least, first, grade, told["type"], graded, count, ulp, share)

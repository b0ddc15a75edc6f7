"""The pages of cases: what is put, what is admitted and why, and what each backend made of it."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...cases.batch import Batch, Option, cases_of
from ...cases.elements import Array, Declaration
from ...cases.errors import OpconformError
from ...cases.program import Input, count
from ...cases.results import Result
from ...generators.certificate import certificate
from ...generators.source import GeneratedCases
from ...runners.kept import tensor_from_json
from ...specs.model import Clause
from ..operation import node_text, operation_lines
from ..reading import ACCURACY, CERTIFICATES, OUTPUTS
from ..script import reproduction
from ..show import certificate_lines, clauses_of, output_names
from .case_lists import (
    chunks,
    failing_cases,
    index_of,
    reproduce_lines,
    strict_json,
    table_bytes,
    words_of,
    write_packed,
)
from .case_tensors import bounds_told, difference_told, tensor_told
from .gather import Gathered
from .writer import SiteWriter, shown

_LARGEST = 1 << 14
"""Elements that the inputs of a case may have together for its bounds to be derived once more, in fractions."""

_CERTIFICATE = 24 << 10  # bytes; a longer one is in the results folder, and `opconform show --certificate` prints it
_SCRIPT = 48 << 10  # characters; a longer one is printed by `opconform show --script`

_ANSWERS = 256 << 20  # bytes of a results folder's kept answers that are read; the rest is not shown

_TOGETHER = 128  # cases made at once: those that differ in their draw alone share their reference


@dataclass(frozen=True)
class Kept:
    """What results folders keep of some cases, by case and column: answers, accuracies, and certificates by case."""

    answers: Mapping[tuple[str, int], list[Any] | str] = field(default_factory=dict)
    accuracies: Mapping[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)
    certificates: Mapping[str, str] = field(default_factory=dict)


def kept_of(gathered: Gathered, wanted: Sequence[int]) -> Kept:
    """Read what is kept of these cases. What is damaged is left out: the report has told of it."""
    cases = {gathered.cases[number] for number in wanted}
    answers: dict[tuple[str, int], list[Any] | str] = {}
    accuracies: dict[tuple[str, int], Mapping[str, Any]] = {}
    certificates: dict[str, str] = {}
    places = {(folder, c.name): n for n, c in enumerate(gathered.columns) for folder in c.folders}
    for folder in dict.fromkeys(folder for folder, _ in places):
        for told in _lines(folder / OUTPUTS, cases, _ANSWERS):
            place = places.get((folder, str(told.get("backend"))))
            if place is not None:
                answers[told["case"], place] = told.get("outputs") or str(told.get("failed", "it was not kept"))
        for told in _lines(folder / ACCURACY, cases):
            place = places.get((folder, str(told.pop("backend", None))))
            if place is not None:
                accuracies[told.pop("case"), place] = told
        certificates |= _certificates(folder / CERTIFICATES, cases)
    return Kept(answers, accuracies, certificates)


def _lines(file: Path, cases: set[str], most: float = math.inf) -> Iterator[dict[str, Any]]:
    """Yield what lines about these cases say, until they have more than so many bytes together."""
    size = 0
    for case, line in _raw_lines(file, cases):
        size += len(line)
        if size > most:
            return
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, dict) and told.get("case") == case:
            yield told


def _raw_lines(file: Path, cases: set[str]) -> Iterator[tuple[str, bytes]]:
    """Yield lines about these cases, told by how they begin, so that the others are not parsed."""
    if not file.exists():
        return
    with file.open("rb") as lines:
        for line in lines:
            case = _case_at_head(line)
            if case in cases:
                yield case, line


def _case_at_head(line: bytes) -> str | None:
    try:
        return str(json.JSONDecoder().raw_decode(line[8 : line.index(b'",', 8) + 1].decode())[0])
    except ValueError:
        return None


def _certificates(file: Path, cases: set[str]) -> dict[str, str]:
    short = ((case, line) for case, line in _raw_lines(file, cases) if len(line) <= _CERTIFICATE)
    return {case: line.decode().strip() for case, line in short}


@dataclass(frozen=True)
class Asked:
    """What is to be made of a case: by its id, the digests that its results name, and the answers that were kept."""

    name: str
    digests: frozenset[tuple[str | None, str | None]]
    answers: Mapping[int, list[Any]]


@dataclass(frozen=True)
class Made:
    """What the suite tells of a case: all that needs its generators. `why` there is nothing, if so."""

    told: Mapping[str, Any]
    script: str | None
    why: str | None
    answers: Mapping[int, Mapping[str, Any]]


def make(source: GeneratedCases, asked: Sequence[Asked]) -> list[Made]:
    """Return what the suite tells of these cases; those that differ in their draw alone are to be neighbours."""
    made = made_again(source, [one.name for one in asked])
    return [_make(source, one, case, why) for one, (case, why) in zip(asked, made, strict=True)]


def _make(source: GeneratedCases, asked: Asked, case: Batch | None, why: str | None) -> Made:
    why = why or (None if case is None else _changed(case, asked.digests))
    same = None if why else case
    answers = {place: _answer(outputs, same) for place, outputs in asked.answers.items()}
    if same is None:
        return Made({}, None, why, answers)
    return Made(case_told(source, same), script_of(same), None, answers)


@dataclass(frozen=True)
class Details:
    """Makes the details of cases."""

    gathered: Gathered
    source: GeneratedCases
    kept: Kept

    def of(self, numbers: Sequence[int]) -> Iterator[tuple[int, dict[str, Any], str | None]]:
        """Yield each case's number, its details, and the script that reproduces it, None where there is none."""
        for start in range(0, len(numbers), _TOGETHER):
            part = sorted(numbers[start : start + _TOGETHER])
            results = self._results(part)
            yield from self._details(part, results, make(self.source, self._asked(part, results)))

    def _results(self, numbers: Sequence[int]) -> dict[int, dict[int, Result]]:
        found: dict[int, dict[int, Result]] = {number: {} for number in numbers}
        for place, column in enumerate(self.gathered.columns):
            for number, result in self.gathered.results(column, numbers):
                found[number][place] = result
        return found

    def _asked(self, numbers: Sequence[int], results: Mapping[int, Mapping[int, Result]]) -> list[Asked]:
        asked = []
        for number in numbers:
            name = self.gathered.cases[number]
            digests = frozenset((r.case_digest, r.expectation_digest) for r in results[number].values())
            kept = {place: self.kept.answers.get((name, place)) for place in results[number]}
            asked.append(Asked(name, digests, {place: o for place, o in kept.items() if isinstance(o, list)}))
        return asked

    def _details(
        self, numbers: Sequence[int], results: Mapping[int, Mapping[int, Result]], made: Sequence[Made]
    ) -> Iterator[tuple[int, dict[str, Any], str | None]]:
        for number, one in zip(numbers, made, strict=True):
            name = self.gathered.cases[number]
            told = {"id": name, "why": None if one.why is None else shown(one.why), **one.told}
            if name in self.kept.certificates:
                told["certificate"] = self.kept.certificates[name]
            told["results"] = [
                self._result(name, place, result, one.answers.get(place)) for place, result in results[number].items()
            ]
            yield number, told, one.script

    def _result(self, name: str, place: int, result: Result, answer: Mapping[str, Any] | None) -> dict[str, Any]:
        told: dict[str, Any] = {"backend": place, "outcome": str(result.outcome)}
        told["detail"] = None if result.detail is None else shown(result.detail)
        told["reason"] = None if result.reason is None else shown(result.reason, 100)
        told["behaviour"] = {shown(s, 100): [shown(o, 100) for o in options] for s, options in result.behaviour.items()}
        told |= {"share": result.bound_ratio, "level": result.level, "seconds": result.seconds}
        told["accuracy"] = self.kept.accuracies.get((name, place))
        if answer is not None:
            return {**told, **answer}
        why = self.kept.answers.get((name, place))
        return told | {"answer": None, "not_kept": shown(why, 300) if isinstance(why, str) else None}


def _answer(outputs: Sequence[Any], case: Batch | None) -> dict[str, Any]:
    """Return a kept answer and, if the case is known, how it differs from what is admitted."""
    try:
        arrays = [tensor_from_json(output) for output in outputs]
        answer = [_answer_told(output, array) for output, array in zip(outputs, arrays, strict=True)]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return {"answer": None, "not_kept": shown(error, 300)}
    known = [array for array in arrays if array is not None]
    if case is None or len(known) < len(arrays):
        return {"answer": answer}
    return {
        "answer": answer,
        "difference": difference_told(case.expectation, known, [output.name for output in case.program.answers]),
    }


def _answer_told(output: Mapping[str, Any], array: Array | None) -> dict[str, Any]:
    if array is not None:
        return tensor_told(array)
    why = shown(output.get("left_out", "only its digest was kept"), 300)
    return {"type": shown(output["type"], 100), "shape": output["shape"], "bits": None, "left_out": why}


def made_again(source: GeneratedCases, names: Sequence[str]) -> list[tuple[Batch | None, str | None]]:
    """Return the cases of these ids as the suite makes them today, or None and why there is none."""
    try:
        return [(case, None) for case in cases_of(source, names)]
    except (OpconformError, ValueError):
        return [_made_alone(source, name) for name in names]


def _made_alone(source: GeneratedCases, name: str) -> tuple[Batch | None, str | None]:
    try:
        return source.case(name), None
    except (OpconformError, ValueError) as error:
        return None, f"the suite has no such case today: {error}"


def _changed(case: Batch, told: Iterable[tuple[str | None, str | None]]) -> str | None:
    """Return why a case is another one than that which was run, by both digests; None if it is the same."""
    told = list(told)
    if any(digest not in (None, case.digest) for digest, _ in told):
        return "the suite makes this case with another program or other inputs today"
    if any(digest not in (None, case.expectation.digest) for _, digest in told):
        return "the suite expects something else of this case today"
    return None


def case_told(source: GeneratedCases, case: Batch) -> dict[str, Any]:
    """Return what is known of a case whatever a backend makes of it."""
    program = case.program
    owners = [feed for feed in program.feeds for _ in feed.leaves]
    names = [name for name, _ in program.named_leaves]
    fed = list(zip(names, owners, case.tensors(), strict=True))
    constants = [(i.name, i, i.array()) for i in program.inputs if i is not None and i.constant is not None]
    return {
        "operation": operation_lines(case),
        "node": node_text(program),
        "opset": program.opset,
        "mended": case.mended,
        "clauses": [_clause(name, clause) for name, clause in clauses_of(source, case).items()],
        "inputs": [_input(*one) for one in [*fed, *constants]],
        "silences": {silence: list(answers) for silence, answers in case.expectation.silences.items()},
        "options": [_option(option, output_names(program, option)) for option in case.expectation.options],
        "derivation": _derivation(source, case),
    }


def _clause(name: str, clause: Clause) -> dict[str, Any]:
    told = {"id": name, "text": clause.text, "status": clause.status, "source": clause.source}
    return told | ({"upstream": clause.upstream} if clause.upstream else {})


def _input(name: str, one: Input, array: Array) -> dict[str, Any]:
    symbolic = [str(d) for d in one.dims] if any(isinstance(d, str) for d in one.dims) else None
    told = {"name": name, "constant": one.constant is not None, "dims": symbolic}
    return told | tensor_told(array)


def _option(option: Option, names: Sequence[str]) -> dict[str, Any]:
    return {
        "labels": dict(option.labels),
        "kind": option.kind,
        "level": option.level,
        "exceptional": option.exceptional,
        "outputs": [bounds_told(bounds, name) for name, bounds in zip(names, option.outputs, strict=True)],
    }


def _derivation(source: GeneratedCases, case: Batch) -> list[str] | None:
    """Return the lines of the derivation, None where it would take too long."""
    if sum(count(array.shape) for array in case.tensors()) > _LARGEST:
        return None
    return [_short(line) for line in certificate_lines(certificate(source, case))]


def _short(line: str) -> str:
    return line if len(line) <= 1000 else f"{line[:1000]}…"


def script_of(case: Batch) -> str | None:
    """Return the script that reproduces a case, None for one that is too long, or of a standard that has none."""
    if any(_is_long(array) for array in case.tensors()):
        return None
    try:
        script = reproduction(case)
    except OpconformError:
        return None
    return script if len(script) <= _SCRIPT else None


def _is_long(array: Array) -> bool:
    """Whether no packing makes an array short enough for a script: a quick one falls short by far."""
    return array.nbytes > _SCRIPT and len(zlib.compress(array.tobytes(), 1)) > 2 * _SCRIPT


FEW = 5_000
"""Up to so many cases, details of all of them are written; of more, those of cases that a backend fails."""

MOST = 10_000
"""Cases whose details are written at most, whatever fails; the rest is shown without."""

ASSETS = ("case-store.js", "case-numbers.js", "case-parts.js", "case.js", "case-page.js", "cases.css")
LIBRARIES = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "vendor/tabulator.min.js", "vendor/tabulator.min.css")
LICENCES = ("vendor/VENDORED.md", "vendor/d3.LICENSE", "vendor/plot.LICENSE", "vendor/tabulator.LICENSE")


def write_cases(site: SiteWriter, gathered: Gathered) -> None:
    """Write the pages, their scripts, and the data of all cases. Raises OpconformError if a folder was changed."""
    numbers = detailed(gathered)
    chunk_of = [0] * len(gathered.cases)
    for place, chunk in enumerate(chunks(_details(gathered, numbers)), 1):
        write_packed(site, f"chunk-{place}", chunk.content)
        for number in chunk.cases:
            chunk_of[number] = place
    head, columns = index_of(gathered, chunk_of)
    head |= {"reproduce": reproduce_lines(gathered), "corpus": _from_files(gathered), "most": MOST, "few": FEW}
    write_packed(site, "index", table_bytes(head, columns))
    write_packed(site, "words", strict_json(words_of(gathered)))
    site.asset(*ASSETS, "cases.js", *LIBRARIES, *LICENCES)
    site.page("cases.html", "cases.html.j2", count=len(gathered.cases))
    site.page("case.html", "case.html.j2")


def detailed(gathered: Gathered) -> list[int]:
    """Return the cases whose details are written: where there are few all, otherwise those that a backend fails."""
    failing = failing_cases(gathered)
    if len(gathered.cases) > FEW:
        return sorted(failing[:MOST])
    return list(range(len(gathered.cases)))


def _details(gathered: Gathered, numbers: Sequence[int]) -> Any:
    return Details(gathered, source_of(gathered), kept_of(gathered, numbers)).of(numbers)


def source_of(gathered: Gathered) -> GeneratedCases:
    """Return where the cases of the runs come from, as far as they are generated."""
    told = [told for column in gathered.columns for told in column.told]
    specs = next(
        (t["options"]["specs"] for t in told if isinstance(t.get("options"), dict) and t["options"].get("specs")), None
    )
    return GeneratedCases(
        None if specs is None or not Path(specs).is_dir() else Path(specs),
        gathered.terms.declaration or Declaration(),
    )


def _from_files(gathered: Gathered) -> bool:
    return any(told.get("corpus") for column in gathered.columns for told in column.told)

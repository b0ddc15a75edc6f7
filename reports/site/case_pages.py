"""The pages of cases: inputs, what is admitted and why, and each backend's answer, with drawn tensors."""

from __future__ import annotations

import base64
import functools
import itertools
import json
import math
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from ...cases.batch import Batch, Bounds, Expectation, Option, cases_of
from ...cases.elements import Array, Declaration, comparable, content, element_type, element_types, to_json, type_of
from ...cases.errors import OpconformError
from ...cases.program import Input, count
from ...cases.results import Outcome, Result
from ...cases.runner import BackendKind
from ...generators.certificate import certificate
from ...generators.meanings import Meanings
from ...generators.source import GeneratedCases
from ...runners.judging.answers import admitted, ulp_exponent, within
from ...runners.judging.kept import tensor_from_json
from ...specs.model import Clause
from ..certificates import flag_names
from ..folder import inflated
from ..runs import ACCURACY, CERTIFICATES, OUTPUTS
from ..script import script_text, short_reproduction
from ..show import certificate_lines, clauses_of, node_text, operation_lines, output_names
from ..text import cut
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
from .gather import Gathered
from .writer import SiteWriter, shown

SHOWN = 128
"""Number of a tensor's elements that are written out; its summary covers all."""

CELLS = 2048
"""Number of elements that a difference shows one by one; in larger tensors each cell stands for a run of elements."""

MISMATCHES = 24

_IN_BROWSERS = frozenset({"float16", "bfloat16", "float32", "float64", "bool"}) | {
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_NO_NUMBERS = frozenset({"nan", "inf", "-inf"})


def tensor_told(array: Array) -> dict[str, Any]:
    """Return type, shape, the first elements and, if there are more, a summary of all.

    The elements are their bytes (little-endian, base64) if a browser has numbers for them, otherwise a list of texts.
    """
    fields = {"type": type_of(array), "shape": list(array.shape), "bits": _bits(array.reshape(-1)[:SHOWN])}
    return fields if array.size <= SHOWN else {**fields, "summary": _summary(array)}


def _bits(flat: Array) -> str | list[str] | None:
    if type_of(flat) in _IN_BROWSERS:
        return base64.b64encode(content(flat)).decode()
    return [_text(number) for number in to_json(flat)] if type_of(flat) in element_types() else None


def _text(entry: object) -> str:
    if isinstance(entry, list):
        return f"{entry[0]} + {entry[1]}i"
    return json.dumps(entry, ensure_ascii=False) if isinstance(entry, str) and entry not in _NO_NUMBERS else str(entry)


def _summary(array: Array) -> dict[str, Any]:
    if array.dtype.kind == "c" or array.dtype.hasobject:
        return {"elements": array.size}
    with np.errstate(all="ignore"):
        numbers = comparable(array)
        finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind == "f" else numbers.reshape(-1)
        counts: dict[str, Any] = {"zeros": int((numbers == 0).sum()), "elements": array.size}
        if finite.size:
            counts |= {"least": str(finite.min()), "greatest": str(finite.max())}
        if numbers.dtype.kind == "f":
            counts |= {"nan": int(np.isnan(numbers).sum()), "infinite": int(np.isinf(numbers).sum())}
    return counts


def bounds_told(bounds: Bounds, name: str = "") -> dict[str, Any]:
    """Return an output's requirements: the first elements' values, bounds and flags, and the bounds' type."""
    fields: dict[str, Any] = {"name": name, "type": bounds.type, "shape": list(bounds.shape)}
    fields |= {"in": type_of(bounds.value), "size": bounds.value.size}
    parts = {"value": bounds.value, "lower": bounds.lower, "upper": bounds.upper}
    fields |= {name: _bits(array.reshape(-1)[:SHOWN]) for name, array in parts.items()}
    if bounds.flags is not None:
        fields["flags"] = [flag_names(bits) for bits in bounds.flags.reshape(-1)[:SHOWN].tolist()]
    if bounds.spread is not None:
        fields["limit"] = bounds.spread.limit
    return fields


def difference_told(
    expectation: Expectation, outputs: Sequence[Array], names: Sequence[str] = ()
) -> dict[str, Any] | None:
    """Return how an answer to a single case differs from the closest option.

    `outputs` have no lanes, `names` are the outputs' names. None if no option has their shapes.
    """
    with np.errstate(all="ignore"):
        wrong = {number: _wrong(option, outputs) for number, option in enumerate(expectation.options)}
        fitting = {number: elements for number, elements in wrong.items() if elements is not None}
        if not fitting:
            return None
        closest = min(fitting, key=lambda number: sum(int(elements.sum()) for elements in fitting[number]))
        pairs = zip(expectation.options[closest].outputs, outputs, fitting[closest], strict=True)
        named = itertools.chain(names, itertools.repeat(""))
        outputs_told = [{"name": name, **_difference(*pair)} for name, pair in zip(named, pairs, strict=False)]
        return {"option": closest, "outputs": outputs_told}


def _wrong(option: Option, outputs: Sequence[Array]) -> list[Array] | None:
    """Return which elements of an answer an option does not admit; None if it does not have their shapes."""
    if option.kind != "values" or len(option.outputs) != len(outputs):
        return None
    pairs = list(zip(option.outputs, outputs, strict=True))
    if any(bounds.shape != output.shape or bounds.type != type_of(output) for bounds, output in pairs):
        return None
    numbers = [(bounds, comparable(output[np.newaxis])) for bounds, output in pairs]
    return [~admitted(bounds, number, within(bounds, number)) for bounds, number in numbers]


def _difference(bounds: Bounds, output: Array, wrong: Array) -> dict[str, Any]:
    numbers = comparable(output[np.newaxis])
    flat_wrong = wrong.reshape(-1)
    form = None if numbers.dtype.kind == "c" else element_type(bounds.type).format
    fields: dict[str, Any] = {"wrong": int(flat_wrong.sum()), "size": int(output.size), "float": form is not None}
    fields["in"] = type_of(bounds.value)
    if form is not None:
        errors = (numbers - bounds.value).reshape(-1)
    elif numbers.dtype.kind in "iu":
        errors = _whole_errors(numbers, comparable(bounds.value)).reshape(-1)
    else:  # truth values, complex numbers, text: there is no distance to draw
        errors = flat_wrong.astype(np.float64)
    shares = _shares(bounds, errors) if form else errors
    fields["cells"] = _cells(shares, flat_wrong)
    if form is not None:
        ulps = errors / np.ldexp(1.0, ulp_exponent(bounds.value.reshape(-1), form))
        fields["histogram"] = _histogram(ulps)
        fields["ulp"] = _number(np.abs(ulps[np.isfinite(ulps)]).max(initial=0.0))
    else:
        ulps = errors
    fields["share"] = _number(np.abs(shares[np.isfinite(shares)]).max(initial=0.0)) if form else None
    fields["mismatches"] = _mismatches(bounds, output, flat_wrong, ulps, shares)
    return fields


def _whole_errors(got: Array, want: Array) -> Array:
    """Return differences of whole numbers as float64, exact enough to draw them."""
    apart = got.astype(object) - want.astype(object)
    return np.asarray(apart, np.float64)


def _shares(bounds: Bounds, errors: Array) -> Array:
    """Return errors as shares of the judge's bound; infinite if the bound is zero, or if no number is wanted."""
    room = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower).reshape(-1)
    return np.where(errors == 0, 0.0, np.where(np.isnan(room), errors, errors / room))


def _cells(shares: Array, wrong: Array) -> dict[str, Any]:
    """Return the cells to draw: of each cell the largest error of an element, and whether any is wrong."""
    run = -(-shares.size // CELLS) if shares.size else 1
    starts = np.arange(0, shares.size, run)
    if not len(starts):
        return {"run": 1, "errors": [], "wrong": ""}
    shares = np.where(~wrong & ~np.isfinite(shares), 0.0, shares)  # infinity or NaN, as wanted
    size = np.where(np.isnan(shares), np.inf, np.abs(shares))
    padded = np.full(len(starts) * run, -1.0)
    padded[: shares.size] = size
    worst = starts + padded.reshape(-1, run).argmax(axis=1)
    any_wrong = np.logical_or.reduceat(wrong, starts)
    return {
        "run": int(run),
        "errors": [_number(share) for share in shares[worst].tolist()],
        "wrong": "".join("1" if w else "0" for w in any_wrong.tolist()),
    }


def _histogram(ulps: Array) -> dict[str, Any]:
    """Return how many errors lie in each range of ulps, doubling from half an ulp on, by sign."""
    finite = ulps[np.isfinite(ulps)]
    size = np.abs(finite)
    steps = np.where(size <= 0.5, 0, np.ceil(np.log2(np.maximum(size, 0.5))) + 1).astype(int)
    steps = np.minimum(steps, 65) * np.where(finite < 0, -1, 1)
    distinct, counts = np.unique(steps, return_counts=True)
    return {"steps": distinct.tolist(), "counts": counts.tolist(), "apart": int(ulps.size - finite.size)}


def _mismatches(bounds: Bounds, output: Array, wrong: Array, ulps: Array, shares: Array) -> dict[str, Any]:
    places = np.flatnonzero(wrong)[:MISMATCHES]
    flags = None if bounds.flags is None else bounds.flags.reshape(-1)[places].tolist()
    parts = {"got": output, "value": bounds.value, "lower": bounds.lower, "upper": bounds.upper}
    return {
        "places": places.tolist(),
        **{name: _bits(array.reshape(-1)[places]) for name, array in parts.items()},
        "flags": None if flags is None else [flag_names(bits) for bits in flags],
        "ulps": [_number(u) for u in ulps[places].tolist()],
        "shares": [_number(s) for s in shares[places].tolist()],
    }


def _number(value: float) -> float | str:
    """Return a number for strict JSON, with six digits, or the name of one that it lacks."""
    number = float(value)
    return float(f"{number:.6g}") if np.isfinite(number) else str(number)


_WRONG = frozenset({Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE})
_LARGEST = 1 << 14
"""Maximum number of input elements of a case whose bounds are derived again, in fractions."""

_CERTIFICATE = 24 << 10  # bytes; a longer one is in the results folder, and `opconform show --certificate` prints it
_SCRIPT = 48 << 10  # characters; a longer one is printed by `opconform show --script`

_ANSWERS = 256 << 20  # bytes of kept answers that are read from a results folder; the others are not shown

_TOGETHER = 128  # cases made at once: those that differ only in their draw share their reference


@dataclass(frozen=True)
class Kept:
    """What results folders keep of some cases, by case and column: answers, accuracies, and certificates by case."""

    answers: Mapping[tuple[str, int], list[Any] | str] = field(default_factory=dict)
    accuracies: Mapping[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)
    certificates: Mapping[str, str] = field(default_factory=dict)


def kept_of(gathered: Gathered, wanted: Sequence[int]) -> Kept:
    """Read what is kept of these cases. Damaged parts are omitted; the report has mentioned them."""
    cases = {gathered.cases[number] for number in wanted}
    answers: dict[tuple[str, int], list[Any] | str] = {}
    accuracies: dict[tuple[str, int], Mapping[str, Any]] = {}
    certificates: dict[str, str] = {}
    places = {
        (folder, c.name): n for n, c in enumerate(gathered.columns) for folder in (part.folder for part in c.parts)
    }
    for folder in dict.fromkeys(folder for folder, _ in places):
        for fields in _lines(folder / OUTPUTS, cases, _ANSWERS):
            column = places.get((folder, str(fields.get("backend"))))
            if column is not None:
                answers[fields["case"], column] = fields.get("outputs") or str(fields.get("failed", "it was not kept"))
        for fields in _lines(folder / ACCURACY, cases):
            column = places.get((folder, str(fields.pop("backend", None))))
            if column is not None:
                accuracies[fields.pop("case"), column] = fields
        certificates |= _certificates(folder / CERTIFICATES, cases)
    return Kept(answers, accuracies, certificates)


def _lines(file: Path, cases: set[str], most: float = math.inf) -> Iterator[dict[str, Any]]:
    """Yield the content of lines about these cases, until they have more than so many bytes together."""
    size = 0
    for case, line in _raw_lines(file, cases):
        size += len(line)
        if size > most:
            return
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(fields, dict) and fields.get("case") == case:
            yield fields


def _raw_lines(file: Path, cases: set[str]) -> Iterator[tuple[str, bytes]]:
    """Yield lines about these cases, recognised by their beginning, so that other lines are not parsed."""
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
    lines = ((case, inflated(line, _CERTIFICATE)) for case, line in _raw_lines(file, cases))
    return {case: line.decode().strip() for case, line in lines if line is not None}


def tool_lines(source: GeneratedCases, kind: BackendKind, name: str) -> list[str]:
    """Return what an inferencer or a checker has to say of a case, one admissible answer a line; none for others."""
    if kind not in ("infer", "check"):
        return []
    case = Meanings(source, kind).case(name)
    options = case.expectation.options
    if kind == "check":
        valid = "valid: a checker has to accept it"
        static = "invalid, as the program alone shows: a checker has to refuse it"
        return [static if not options else valid if len(options) == 1 else "a checker may accept or refuse it"]
    texts = [
        ", ".join(f"{o.name}: {b.value[0]}" for o, b in zip(case.program.answers, option.outputs, strict=True))
        for option in options
        if option.kind == "values"
    ]
    kinds = {option.kind for option in options}
    others = [words for kind, words in (("rejected", "a refusal"), ("anything", "any answer")) if kind in kinds]
    return [*dict.fromkeys(texts), *others]


@dataclass(frozen=True)
class Details:
    """Makes the details of cases; the ones that a backend fails also get a script."""

    gathered: Gathered
    source: GeneratedCases
    kept: Kept
    failing: Collection[int]

    def of(self, numbers: Sequence[int]) -> Iterator[tuple[int, dict[str, Any], str | None]]:
        """Yield each case's number, its details, and the script that reproduces it, None if there is none.

        Cases that differ only in their draw are neighbours, and made together.
        """
        for start in range(0, len(numbers), _TOGETHER):
            part = sorted(numbers[start : start + _TOGETHER])
            results = self._results(part)
            made = made_again(self.source, [self.gathered.cases[number] for number in part])
            for number, (case, why) in zip(part, made, strict=True):
                yield number, *self._details(number, results[number], case, why)

    def _results(self, numbers: Sequence[int]) -> dict[int, dict[int, Result]]:
        by_case: dict[int, dict[int, Result]] = {number: {} for number in numbers}
        for index, column in enumerate(self.gathered.columns):
            for number, result in self.gathered.results(column, numbers):
                by_case[number][index] = result
        return by_case

    def _details(
        self, number: int, results: Mapping[int, Result], case: Batch | None, why: str | None
    ) -> tuple[dict[str, Any], str | None]:
        """Return a case's details and its script; `why`: the reason if the suite does not make the case.

        A script takes as much space as everything else, and deriving bounds as much time: cases that fail get the
        former, wrong answers the latter.
        """
        name, kinds = self.gathered.cases[number], {column: self._kinds[column] for column in results}
        if case is not None:
            digests = {  # tools that run nothing have expectations of their own
                (r.case_digest, r.expectation_digest if kinds[column] == "run" else None)
                for column, r in results.items()
            }
            why = _changed(case, digests)
        same = None if why else case
        fields: dict[str, Any] = {"id": name, "why": None if why is None else shown(why)}
        script = None
        if same is not None:
            runs = not {"run", "convert"}.isdisjoint(kinds.values())
            script = script_of(same) if number in self.failing and runs else None
            wrong = any(r.outcome in _WRONG and kinds[column] == "run" for column, r in results.items())
            fields |= case_told(self.source, same, derived=wrong)
            every = dict.fromkeys(kinds.values())
            fields["tools"] = [{"kind": kind, "lines": tool_lines(self.source, kind, name)} for kind in every]
            fields["runs"] = runs
        if name in self.kept.certificates:
            fields["certificate"] = self.kept.certificates[name]
        fields["results"] = [self._result(name, column, result, same) for column, result in results.items()]
        return fields, script

    @functools.cached_property
    def _kinds(self) -> list[BackendKind]:
        """The kind of each column's backend."""
        kinds: list[BackendKind] = []
        for column in self.gathered.columns:
            abouts = (part.about(column.name) for part in column.parts)
            kind = next((about.facts["kind"] for about in abouts if "kind" in about.facts), "run")
            kinds.append(cast(BackendKind, kind) if kind in get_args(BackendKind) else "run")
        return kinds

    def _result(self, name: str, column: int, result: Result, case: Batch | None) -> dict[str, Any]:
        fields: dict[str, Any] = {"backend": column, "outcome": str(result.outcome)}
        fields["detail"] = None if result.detail is None else shown(result.detail)
        fields["reason"] = None if result.reason is None else shown(result.reason, 100)
        fields["behaviour"] = {
            shown(s, 100): [shown(o, 100) for o in options] for s, options in result.behaviour.items()
        }
        fields |= {"share": result.bound_ratio, "level": result.level, "seconds": result.seconds}
        fields["accuracy"] = self.kept.accuracies.get((name, column))
        # the message says what a tool answered
        kept = self.kept.answers.get((name, column)) if self._kinds[column] == "run" else None
        if isinstance(kept, list):
            return fields | _answer(kept, case)
        return fields | {"answer": None, "not_kept": shown(kept, 300) if isinstance(kept, str) else None}


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
    """Return the cases with these ids as the suite makes them today, or None and the reason."""
    try:
        return [(case, None) for case in cases_of(source, names)]
    except (OpconformError, ValueError):
        return [_made_alone(source, name) for name in names]


def _made_alone(source: GeneratedCases, name: str) -> tuple[Batch | None, str | None]:
    try:
        return source.case(name), None
    except (OpconformError, ValueError) as error:
        return None, f"the suite no longer has this case: {error}"


def _changed(case: Batch, digests: Collection[tuple[str | None, str | None]]) -> str | None:
    """Return why a case differs from the one that was run, by both digests; None if it is the same."""
    if any(digest not in (None, case.digest) for digest, _ in digests):
        return "the suite now makes this case with another program or other inputs"
    if any(digest not in (None, case.expectation.digest) for _, digest in digests):
        return "the suite now expects another answer to this case"
    return None


def case_told(source: GeneratedCases, case: Batch, *, derived: bool = True) -> dict[str, Any]:
    """Return the part of a case's details that does not depend on a backend; `derived`: also the derivation."""
    program = case.program
    owners = [feed for feed in program.feeds for _ in feed.leaves]
    names = [name for name, _ in program.named_leaves]
    fed = list(zip(names, owners, case.tensors(), strict=True))
    constants = [(i.name, i, i.array()) for i in program.inputs if i is not None and i.constant is not None]
    return {
        "operation": operation_lines(case),
        "node": node_text(program),
        "opset": program.opset,
        "mended": case.valid_variant,
        "clauses": [_clause(name, clause) for name, clause in clauses_of(source, case).items()],
        "inputs": [_input(*entry) for entry in [*fed, *constants]],
        "silences": {silence: list(answers) for silence, answers in case.expectation.silences.items()},
        "options": [_option(option, output_names(program, option)) for option in case.expectation.options],
        "derivation": _derivation(source, case) if derived else None,
    }


def _clause(name: str, clause: Clause) -> dict[str, Any]:
    fields = {"id": name, "text": clause.text, "status": clause.status, "source": clause.source}
    return fields | ({"upstream": clause.upstream} if clause.upstream else {})


def _input(name: str, input_: Input, array: Array) -> dict[str, Any]:
    symbolic = [str(d) for d in input_.dims] if any(isinstance(d, str) for d in input_.dims) else None
    fields = {"name": name, "constant": input_.constant is not None, "dims": symbolic}
    return fields | tensor_told(array)


def _option(option: Option, names: Sequence[str]) -> dict[str, Any]:
    return {
        "labels": dict(option.labels),
        "kind": option.kind,
        "level": option.level,
        "exceptional": option.exceptional,
        "outputs": [bounds_told(bounds, name) for name, bounds in zip(names, option.outputs, strict=True)],
    }


def _derivation(source: GeneratedCases, case: Batch) -> list[str] | None:
    """Return the lines of the derivation, None if it would take too long."""
    if sum(count(array.shape) for array in case.tensors()) > _LARGEST:
        return None
    return [cut(line, 1000) for line in certificate_lines(certificate(source, case))]


def script_of(case: Batch) -> str | None:
    """Return the script that `opconform show --script` prints, None if it is too long or there is none."""
    if any(_is_long(array) for array in case.tensors()):
        return None
    try:
        script = short_reproduction(case) or script_text(case)
    except OpconformError:
        return None
    return script if len(script) <= _SCRIPT else None


def _is_long(array: Array) -> bool:
    """Return whether an array is too long for a script even if packed, according to quick compression."""
    return array.nbytes > _SCRIPT and len(zlib.compress(array.tobytes(), 1)) > 2 * _SCRIPT


FEW = 1_000
"""Up to this number of cases, all get details; beyond it, only cases that a backend fails."""

MOST = 1_000
"""Maximum number of cases with details, which take 25 ms and 4 kB each; the others are shown without."""

ASSETS = ("case-store.js", "case-numbers.js", "case-parts.js", "case.js", "case-page.js", "cases.css")
LIBRARIES = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "vendor/tabulator.min.js", "vendor/tabulator.min.css")
LICENCES = ("vendor/VENDORED.md", "vendor/d3.LICENSE", "vendor/plot.LICENSE", "vendor/tabulator.LICENSE")


def write_cases(site: SiteWriter, gathered: Gathered) -> None:
    """Write the pages, their scripts, and the data of all cases. Raises OpconformError if a folder was changed."""
    numbers, failing = detailed(gathered), frozenset(failing_cases(gathered))
    details = Details(gathered, source_of(gathered), kept_of(gathered, numbers), failing).of(numbers)
    chunk_of = [0] * len(gathered.cases)
    for chunk_number, (cases, content_of_chunk) in enumerate(chunks(details), 1):
        write_packed(site, f"chunk-{chunk_number}", content_of_chunk)
        for number in cases:
            chunk_of[number] = chunk_number
    head, columns = index_of(gathered, chunk_of)
    from_files = any(part.run_json.get("corpus") for column in gathered.columns for part in column.parts)
    head |= {"reproduce": reproduce_lines(gathered), "corpus": from_files, "most": MOST, "few": FEW}
    write_packed(site, "index", table_bytes(head, columns))
    write_packed(site, "words", strict_json(words_of(gathered)))
    site.asset(*ASSETS, "cases.js", *LIBRARIES, *LICENCES)
    site.page("cases.html", "cases.html.j2", count=len(gathered.cases))
    site.page("case.html", "case.html.j2")


def detailed(gathered: Gathered) -> list[int]:
    """Return the cases that get details: all if there are few, otherwise those that a backend fails."""
    failing = failing_cases(gathered)
    if len(gathered.cases) > FEW:
        return sorted(failing[:MOST])
    return list(range(len(gathered.cases)))


def source_of(gathered: Gathered) -> GeneratedCases:
    """Return the source of the runs' cases, as far as they are generated."""
    options = [part.run_json.get("options") or {} for column in gathered.columns for part in column.parts]
    specs = next((given["specs"] for given in options if given.get("specs")), None)
    return GeneratedCases(
        None if specs is None or not Path(specs).is_dir() else Path(specs),
        gathered.terms.declaration or Declaration(),
    )

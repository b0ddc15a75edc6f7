"""`opconform dev meaningless`: cases that admit an answer without meaning, each with a reason, kept like the lock."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from rich.console import Console

from ..cases.batch import EXCEPTIONAL, Batch, Expectation, Option
from ..cases.elements import Array, comparable, element_type, equal, type_of
from ..cases.errors import OpconformError
from ..cases.lock import SHORT, CaseDigests, lock_of
from ..cases.results import Outcome
from ..generators.plan import Selection, by_version
from ..generators.source import GeneratedCases
from ..generators.suggestions import selects_nothing
from ..reports.reasons import read_reasons
from ..reports.text import check_parents, markdown_table, write_pages
from ..runners.judging.answers import RANDOM, Answers, Stack
from ..runners.judging.judge import judge
from .killing import part_of
from .locking import locked_digest, package_root
from .options import usable_cores
from .planning import made_of_each, planned_ids

if TYPE_CHECKING:
    from collections.abc import Callable

REASONS = package_root() / "specs" / "meaningless.yaml"
SHARE = 0.005
"""The largest share of cases that may admit an answer that means nothing."""

_FORMAT = 1
_REQUIRED = MappingProxyType({"flush": "none"})
"""An implementation that flushes partial results to zero may be off by the smallest normal number."""
_NUMBER, _OTHER, _UNSIGNED = 77, -3, 42
_NAMES = 3  # of operators in a row of the page

Answer: TypeAlias = Sequence[Array]


def _constant(number: int) -> Callable[[Array], Array]:
    def filled(right: Array) -> Array:
        if right.dtype == object:
            return np.full(right.shape, str(number), object)
        if right.dtype == bool:
            return np.full(right.shape, number > 0)
        least = -np.inf if right.dtype.kind != "u" and element_type(type_of(right)).smallest < 0 else 0
        with np.errstate(all="ignore"):
            return np.full(right.shape, number if number >= least else _UNSIGNED).astype(right.dtype)

    return filled


def _half_more(right: Array) -> Array:
    if right.dtype in (object, bool):
        return right
    with np.errstate(all="ignore"):
        wide = np.complex128 if right.dtype.kind == "c" else np.float64
        more = right + right // 2 if right.dtype.kind in "iu" else right.astype(wide) * 1.5
        return np.asarray(more).astype(right.dtype)


BACKENDS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "constant": _constant(_NUMBER),
        "other-constant": _constant(_OTHER),
        "axis-more": lambda right: right[:, np.newaxis],
        "half-more": _half_more,
    }
)
"""What backends without a meaning make of each right output, lanes first; `input` passes an input through."""


@dataclass(frozen=True)
class Admitted:
    """The valid cases of one operator version, without those that have no element, and what they admit.

    `digest` is the lock's. `cases` counts them; `backends` has the backends that each case admits, by id.
    """

    version: str
    digest: str
    cases: int
    backends: Mapping[str, Sequence[str]]


def run_meaningless(
    asked: Selection, *, specs: Path | None, jobs: int | None, record: Path | None, markdown: Path | None
) -> int:
    """Run the backends, show and write what cases admit.

    Returns 1 if a case has no reason, a reason has no case, or the share is too large. Raises OpconformError for a
    wrong option or file.
    """
    check_parents(record, markdown)
    source, complete = GeneratedCases(specs), asked == Selection()
    known = read_admitted(record) if record is not None and record.exists() else {}
    names = sorted(str(version.operator) for spec in source.library.specs() for version in spec.versions.values())
    unchanged = {name for name in names if name in known and known[name].digest == locked_digest(name)}
    selection = asked
    if complete and unchanged:
        selection = replace(asked, globs=tuple(name for name in names if name not in unchanged) or ("nothing",))
    ids = by_version(planned_ids(source, selection))
    if not ids and not unchanged:
        raise selects_nothing(source.library, asked)
    made = made_of_each(source, ids, jobs or usable_cores(), admitted_by)
    every = {name: admitted for name in names if (admitted := made.get(name) or known.get(name))}
    shown = every if record is not None else made
    reasons = read_reasons(REASONS)
    explanation = explained(shown.values(), reasons.written)
    write_pages(
        (record, lambda: record_text(every.values())),
        (markdown, lambda: page_text(explanation, every.values())),
    )
    return _print(Console(soft_wrap=True), explanation, shown.values(), complete=complete)


def _print(console: Console, reasons: Explained, every: Iterable[Admitted], *, complete: bool) -> int:
    wrong = [f"{id_}: admits {', '.join(backends)}, and no reason says why" for id_, backends in reasons.missing]
    wrong += [f"{REASONS.name}: {reason}: no case needs this reason" for reason in (reasons.idle if complete else ())]
    count, cases = _counts(every)
    if complete and count > SHARE * cases:
        wrong.append(f"more than {SHARE:.1%} of the cases admit an answer that means nothing")
    for line in wrong:
        console.print(line, markup=False, highlight=False)
    share = f"{count / cases:.2%}" if cases else "none"
    console.print(f"{count:,} of {cases:,} valid cases ({share}) admit an answer that means nothing", highlight=False)
    return 1 if wrong else 0


def _counts(every: Iterable[Admitted]) -> tuple[int, int]:
    versions = list(every)
    return sum(len(version.backends) for version in versions), sum(version.cases for version in versions)


def admitted_by(source: GeneratedCases, name: str, ids: Sequence[str]) -> Admitted:
    """Return which of the cases with these ids, all of one operator version, admit an answer that means nothing."""
    digests: list[CaseDigests] = []
    backends: dict[str, list[str]] = defaultdict(list)
    cases = 0
    for batch in source.batches(ids):
        digests += map(CaseDigests, batch.ids, batch.digests, batch.expectation_digests)
        if batch.expectation.invalid:
            continue
        for lanes, expectation in batch.expectation.by_pattern():
            part = part_of(batch, lanes.tolist(), expectation)
            right = _right(expectation)
            if right is None:  # refusals, or also any answer whatever
                open_ = any(option.kind == "anything" for option in expectation.options)
                cases += len(part) * open_
                backends.update({id_: [*BACKENDS] for id_ in part.ids if open_})
                continue
            if not sum(output.size for output in right):
                continue
            cases += len(part)
            for backend, answer in _answers(part, right):
                for id_ in _admitting(part, answer):
                    if backend not in backends[id_]:
                        backends[id_].append(backend)
    digest = lock_of("", "", digests).digest[:SHORT]
    return Admitted(name, digest, cases, {id_: backends[id_] for id_ in sorted(backends) if backends[id_]})


def _right(expectation: Expectation) -> Answer | None:
    """Return the right answer of the first reading that has one; None if every reading is a refusal."""
    first = next((option for option in expectation.options if option.kind == "values"), None)
    return None if first is None else _values(first)


def _values(option: Option) -> Answer:
    with np.errstate(all="ignore"):
        return [b.value.astype(element_type(b.type).dtype) for b in option.outputs]


def _answers(batch: Batch, right: Answer) -> Iterator[tuple[str, Answer]]:
    """Yield the backends with their answers; where numbers are random, none made from a right answer or an input."""
    checks = {check.name for option in batch.expectation.options for check in option.checks}
    for backend, change in BACKENDS.items():
        if backend != "half-more" or not checks & RANDOM:
            yield backend, [change(output) for output in right]
    if checks & RANDOM:
        return
    for array in batch.inputs:
        if all((array.shape, array.dtype) == (output.shape, output.dtype) for output in right):
            yield "input", [array] * len(right)


def _admitting(batch: Batch, answer: Answer) -> Iterator[str]:
    """Yield the cases that admit an answer that is no reading's right one."""
    first = next(option for option in batch.expectation.options if option.kind == "values")
    stack = Stack(range(len(batch)), tuple(answer), first.structure)
    passes = [verdict.outcome is Outcome.PASS for verdict in judge(batch, Answers(len(batch), (stack,)), _REQUIRED)]
    if any(passes):
        right = np.zeros(len(batch), bool)
        for option in batch.expectation.options:
            if option.kind == "values":
                right |= _is_right(option, answer)
        yield from (id_ for id_, ok, same in zip(batch.ids, passes, right, strict=True) if ok and not same)


def _is_right(option: Option, answer: Answer) -> Array:
    """Return the lanes in which an answer is a reading's right one, as far as a standard can say.

    Infinities and NaN that the reading admits count as right, and numbers below the normal range as zeros: both may
    come from the steps of a right computation.
    """
    right_lanes = np.ones(len(answer[0]), bool)
    for output, right, bounds in zip(answer, _values(option), option.outputs, strict=True):
        if (output.shape, output.dtype) != (right.shape, right.dtype):
            return np.zeros(len(right_lanes), bool)
        form = element_type(bounds.type).format
        if form is None:
            same = equal(output, right)
        else:
            numbers, wanted = (_flushed(comparable(array), form.tiny) for array in (output, right))
            same = equal(numbers, wanted)
            if bounds.flags is not None:
                same |= ~np.isfinite(numbers) & ((bounds.flags & EXCEPTIONAL) > 0)
        right_lanes &= same.reshape(len(right_lanes), -1).all(axis=1)
    return right_lanes


def _flushed(numbers: Array, tiny: float) -> Array:
    return np.where(np.abs(numbers) < tiny, 0.0, numbers)


# The record, the reasons and the page


def read_admitted(file: Path) -> dict[str, Admitted]:
    """Read a record, by operator version; empty if another release wrote it in another form."""
    head, *lines = file.read_text("utf-8").splitlines() or [""]
    if head != json.dumps({"format": _FORMAT}):
        return {}
    try:
        entries = map(json.loads, lines)
        versions = [Admitted(entry["version"], entry["digest"], entry["cases"], entry["admitted"]) for entry in entries]
    except (KeyError, TypeError, ValueError) as error:
        raise OpconformError(f"{file}: not a record of `opconform dev meaningless`: {error}") from None
    return {admitted.version: admitted for admitted in versions}


def record_text(every: Iterable[Admitted]) -> str:
    """Return the record: a line for each operator version."""
    head = {"format": _FORMAT}
    rest = (
        {"version": admitted.version, "digest": admitted.digest, "cases": admitted.cases, "admitted": admitted.backends}
        for admitted in every
    )
    return "".join(f"{json.dumps(line, allow_nan=False)}\n" for line in (head, *rest))


@dataclass(frozen=True)
class Explained:
    """The cases that admit an answer that means nothing.

    `counts`: with a reason, by operator and reason; `missing`: ids and backends of those without; `idle`: the reasons
    that no case needs.
    """

    counts: Mapping[tuple[str, str], Counter[str]]
    missing: Sequence[tuple[str, Sequence[str]]]
    idle: Sequence[str]


def explained(every: Iterable[Admitted], written: Mapping[str, Mapping[str, str]]) -> Explained:
    """Return what cases admit, with the first reason whose globs fit the operator version and the rest of the id."""
    unused = {(globs, name): None for globs, some in written.items() for name in some}
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    missing = []
    for admitted in every:
        fitting = [
            (globs, name, why)
            for globs, some in written.items()
            if any(fnmatchcase(admitted.version, glob) for glob in globs.split())
            for name, why in some.items()
        ]
        for id_, backends in admitted.backends.items():
            rest = id_.removeprefix(f"{admitted.version}/")
            globs, name, why = next((fit for fit in fitting if fnmatchcase(rest, fit[1])), ("", "", ""))
            if not why:
                missing.append((id_, backends))
                continue
            unused.pop((globs, name), None)
            counts[admitted.version.rpartition("-")[0] or admitted.version, why].update(["cases", *backends])
    return Explained(counts, missing, [f"{globs}: {name}" for globs, name in unused])


def page_text(explanation: Explained, every: Iterable[Admitted]) -> str:
    """Return the page: the share, and for each reason how many cases of which operators admit such an answer."""
    count, cases = _counts(every)
    reasons: dict[str, Counter[str]] = {}
    for (operator, why), counted in sorted(explanation.counts.items()):
        reasons.setdefault(why, Counter())[operator] += counted["cases"]
    lines = [
        "<!-- Made by `opconform dev meaningless --record docs/meaningless.jsonl "
        "--markdown docs/generated/meaningless.md`. -->",
        "# Answers that mean nothing",
        "",
        "Five backends without a meaning run on every valid case of the default suite that has an element: "
        f"one that answers {_NUMBER} everywhere, one that answers another number, one whose outputs have an axis too "
        "many, one that passes an input through, and one whose numbers are half as large again.",
        "A right answer by any reading of the standard does not count.",
        "",
        f"**{count:,} of {cases:,} cases ({count / max(cases, 1):.2%}) admit such an answer.**",
        "Each has a reason in [`specs/meaningless.yaml`](../../specs/meaningless.yaml); most cases first.",
        "",
    ]
    most_first = sorted(reasons.items(), key=lambda item: (-item[1].total(), item[0]))
    rows = [(why, f"{operators.total():,}", _shortened(list(operators))) for why, operators in most_first]
    return "\n".join([*lines, *markdown_table(("reason", "cases", "operators"), rows)]) + "\n"


def _shortened(operators: Sequence[str]) -> str:
    """Return up to three names, or two and how many more there are."""
    if len(operators) <= _NAMES:
        return ", ".join(operators)
    return f"{', '.join(operators[: _NAMES - 1])} and {len(operators) - _NAMES + 1} more"

"""`opconform claims`: what a backend supports, as a profile that later runs can check."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from ..cases.errors import CaseIdError, OpconformError
from ..cases.ids import CaseId, parse_id
from ..cases.program import NO_VERSION
from ..cases.results import Outcome, Result
from ..reports.runs import RUN, RunRecord, read_results, read_run
from ..runners.judging.terms import is_about_invalid
from .options import RunOptions
from .session import run_session


@dataclass(frozen=True, slots=True)
class Support:
    """The number of supported and unsupported valid cases of an operator version that share types and kind of shapes.

    `opset` is the one in the case ids, 0 if none. `example` is an unsupported case.
    """

    operator: str
    version: str
    types: tuple[str, ...]
    dynamic: bool
    opset: int
    supported: int
    unsupported: int
    example: str | None


@dataclass(frozen=True, slots=True)
class OperatorClaim:
    """A claim on an operator with no unsupported case inside it; without versions if nothing can be claimed.

    `claimed` and `left_out` count the supported cases inside and outside it; `example` is an unsupported one.
    """

    versions: tuple[str, ...]
    types: tuple[str, ...]
    claimed: int
    left_out: int
    example: str | None


def claims_of_run(options: RunOptions, *, as_json: bool) -> str:
    """Run a backend, and return its support as `claims_of_folder` does.

    Raises OpconformError if the run does not finish.
    """
    with tempfile.TemporaryDirectory() as made:
        out = Path(made) / "run"
        run_session(replace(options, out=out), [], Console(stderr=True), temporary=True)
        return claims_of_folder(out, None, as_json=as_json)


def claims_of_folder(folder: Path, backend: str | None, *, as_json: bool) -> str:
    """Return what a backend of a results folder supports: a profile in YAML, or `operators` of `hello` in JSON.

    Raises OpconformError if the folder is invalid or unfinished, or has several backends and none is named.
    """
    record = RunRecord(folder, read_run(folder))
    if not record.finished:
        raise OpconformError(f"{folder / RUN}: the run is not finished; `opconform run --resume` continues it")
    listed = record.run_json.get("backends")
    names = list(listed) if isinstance(listed, dict) else []
    if backend is None and len(names) != 1:
        raise OpconformError(f"{folder / RUN}: has {len(names)} backends; --backend says which: {', '.join(names)}")
    name = backend or names[0]
    if name not in names:
        raise OpconformError(f"{folder / RUN}: has no backend {name!r}; it has {', '.join(names)}")
    every = list(supported(result for result in read_results(folder) if result.backend == name))
    limits, claims = limited(every)
    if not any(claim.versions for claim in claims.values()):
        raise OpconformError(f"{name} supports none of the cases that were run, so there is nothing to claim")
    kept = {operator: _entry(claim) for operator, claim in claims.items() if claim.versions}
    if as_json:
        return json.dumps({"operators": kept} | ({"limits": limits} if limits else {}), indent=1) + "\n"
    # JSON is also YAML, with every string quoted
    lines = [f"name: {json.dumps(name)}", f"version: {json.dumps(record.about(name).version)}"]
    lines += [f"{word}: {json.dumps(value)}" for word, value in limits.items()]
    lines += ["operators:", *(f"  {operator}: {json.dumps(claim)}" for operator, claim in kept.items())]
    for operator, claim in claims.items():
        if claim.left_out:
            others = f"{claim.left_out} supported cases are not claimed, because others like them are unsupported"
            lines += [f"# {operator}: {others}", f"#   {claim.example}"]
    return "\n".join(lines) + "\n"


def supported(results: Iterable[Result]) -> Iterator[Support]:
    """Yield the number of supported cases for each group that claims treat alike."""
    counts: dict[tuple[str, str, tuple[str, ...], bool, int], Counter[bool]] = {}
    examples: dict[tuple[str, str, tuple[str, ...], bool, int], str] = {}
    for result in results:
        if is_about_invalid(result) or result.outcome is Outcome.RUNNER_ERROR:
            continue
        try:
            case = parse_id(result.case)
        except CaseIdError:
            continue
        asked = case.setting("opset") or ""
        dynamic, opset = case.setting("dims") in ("symbolic", "unranked"), int(asked) if asked.isdecimal() else 0
        key = (*_operator(case), tuple(sorted(set(case.types))), dynamic, opset)
        refused = result.outcome is Outcome.UNSUPPORTED
        counts.setdefault(key, Counter())[refused] += 1
        if refused:
            examples.setdefault(key, result.case)
    for key, count in sorted(counts.items()):
        yield Support(*key, count[False], count[True], examples.get(key))


def limited(every: Sequence[Support]) -> tuple[dict[str, Any], dict[str, OperatorClaim]]:
    """Return the limits under which most can be claimed, and the claims by operator.

    A library that does not know newer opsets refuses all models that use them, whatever the operator.
    """
    newest = max(support.opset if support.supported else 0 for support in every) if every else 0
    limits: dict[str, Any] = {}
    if beyond := [support.opset for support in every if support.opset > newest]:
        limits["opset"] = min(beyond) - 1
        every = [support for support in every if support.opset <= newest]
    static = [support for support in every if not support.dynamic]
    claims, of_static = (
        {name: largest(members) for name, members in _by_operator(some).items()} for some in (every, static)
    )
    if sum(claim.claimed for claim in of_static.values()) > sum(claim.claimed for claim in claims.values()):
        return {**limits, "shapes": ["static"]}, of_static
    return limits, claims


def _by_operator(every: Sequence[Support]) -> dict[str, list[Support]]:
    by_operator: dict[str, list[Support]] = {}
    for support in every:
        by_operator.setdefault(support.operator, []).append(support)
    return by_operator


def _operator(case: CaseId) -> tuple[str, str]:
    operator, dash, version = case.operator.rpartition("-")
    return (operator, version) if dash else (case.operator, NO_VERSION)


def largest(supports: Sequence[Support]) -> OperatorClaim:
    """Return a claim without unsupported cases: versions and types are removed, cheapest first.

    It may not be the largest possible claim: versions and types are dropped one at a time.
    """
    versions, types = (
        {support.version for support in supports},
        {name for support in supports for name in support.types},
    )

    def inside(without: tuple[str, str] | None = None) -> list[Support]:
        return [
            support
            for support in supports
            if support.version in versions
            and types.issuperset(support.types)
            and (without is None or not _has(support, without))
        ]

    while refused := [support for support in inside() if support.unsupported]:
        every = sum(support.supported for support in inside())
        words = {("version", support.version) for support in refused} | {
            ("type", name) for support in refused for name in support.types
        }
        cost = {word: every - sum(support.supported for support in inside(word)) for word in words}
        gain = {word: sum(support.unsupported for support in refused if _has(support, word)) for word in words}
        kind, name = min(words, key=lambda word: (cost[word] / gain[word], -gain[word], word))
        (versions if kind == "version" else types).discard(name)
    kept = [support for support in inside() if support.supported]
    claimed = sum(support.supported for support in kept)
    return OperatorClaim(
        tuple(sorted({support.version for support in kept}, key=lambda text: (len(text), text))),
        tuple(sorted({name for support in kept for name in support.types})),
        claimed,
        sum(support.supported for support in supports) - claimed,
        next((support.example for support in supports if support.example), None),
    )


def _has(support: Support, word: tuple[str, str]) -> bool:
    return support.version == word[1] if word[0] == "version" else word[1] in support.types


def _entry(claim: OperatorClaim) -> dict[str, object]:
    """Return a claim in the form of profiles and of `hello`."""
    entry: dict[str, object] = {}
    if claim.versions != (NO_VERSION,):
        entry["versions"] = [int(version) if version.isdecimal() else version for version in claim.versions]
    return {**entry, "types": list(claim.types)} if claim.types else entry

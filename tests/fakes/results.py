"""Results, what is attached to them, and their folders: made by hand, and what a run of the command line left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from fakes.judging import judge_answer

from opconform.cases.batch import Batch, cases_of
from opconform.cases.elements import Array
from opconform.cases.results import Outcome, Result
from opconform.generators.source import GeneratedCases
from opconform.reports.certificates import certificate_text
from opconform.reports.runs import Terms, terms_to_dict
from opconform.runners.judging.answers import Answer, Answers
from opconform.runners.judging.judge import Verdict
from opconform.runners.judging.kept import tensor_to_json

MEAN = "onnx/ReduceMean-13/float32/3x2x2/-/uniform"


def result(outcome: str = "pass", case: str = MEAN, backend: str = "alpha", **more: Any) -> Result:
    """A result; a pass is strict unless `level` says otherwise."""
    if outcome == "pass":
        more.setdefault("level", "strict")
    return Result(case, backend, Outcome(outcome), **more)


def case(operator: str = "onnx/ReduceMean-13", types: str = "float32", fill: str = "uniform", edge: str = "") -> str:
    """A case id."""
    return f"{operator}/{types}/3x2x2/-/{fill}" + (f"/{edge}" if edge else "")


def invalid(outcome: str, name: str = "", **more: Any) -> Result:
    """A result about an invalid input."""
    options = {"pass": ["rejected"], "accepted-invalid": ["answered"]}.get(outcome, [])
    return result(outcome, name or case(edge="axis-too-large"), behaviour={"invalid": options}, **more)


# Results folders made by hand: of these results, and a `run.json` that says as little as a report needs


def write_folder(
    path: Path,
    results: Iterable[Result],
    *,
    night: int = 1,
    versions: Mapping[str, str] | None = None,
    terms: Terms | None = None,
    **more: Any,
) -> Path:
    """Write a finished run that began on that day of January 2026 (32 is the first of February)."""
    path.mkdir(parents=True)
    kept = list(results)
    named = versions or dict.fromkeys((result.backend for result in kept), "1.0")
    told = {
        "status": "finished",
        "started": f"2026-{1 + (night - 1) // 31:02}-{1 + (night - 1) % 31:02}T01:00:00+00:00",
        "suite": {"version": "0.1.0", "digest": "d"},
        "backends": {name: {"version": version, "facts": {}} for name, version in named.items()},
        "planned": {name: sum(result.backend == name for result in kept) for name in named},
        "terms": terms_to_dict(terms or Terms()),
        **more,
    }
    (path / "run.json").write_text(json.dumps(told))
    (path / "results.jsonl").write_bytes(b"".join(b"%b\n" % result.to_json() for result in kept))
    return path


# What a run of the command line left behind


V13 = "onnx/ReduceMean-13"
INVALID = (
    "scalar/axes=0/ramp/rank-0-axis",
    "3x2x2/axes=-4/ramp/axis-too-small",
    "3x2x2/axes=3/ramp/axis-too-large",
    "3x2x2/unknown=reduction_mode/ramp/unknown-attribute",
)
INT32 = ("--select", f"{V13}/int32/*", *(word for case in INVALID for word in ("--select", f"{V13}/int32/{case}")))
FRACTION = f"{V13}/int32/2x2/axes=1/halves/fraction"
"""What the fakes stumble over."""


@dataclass(frozen=True)
class Ran:
    """What a run left behind."""

    code: int
    output: str
    folder: Path

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        return {r["case"]: r for r in self.lines}

    @property
    def lines(self) -> list[dict[str, Any]]:
        text = (self.folder / "results.jsonl").read_text()
        return [json.loads(line, parse_constant=_no_constant) for line in text.splitlines()]

    @property
    def about(self) -> Any:
        return json.loads((self.folder / "run.json").read_text(), parse_constant=_no_constant)

    @property
    def figures(self) -> Any:
        return self.about["figures"]["overall"]

    def outcomes(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for case, result in self.results.items():
            found.setdefault(result["outcome"], set()).add(case)
        return found

    def junit(self) -> ET.Element:
        return ET.parse(self.folder / "junit.xml").getroot()


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


# A folder made by hand for the site: real cases, a backend that is right, and one with a hostile name


SUM = "onnx/ReduceMean-18/float32/3x2x2/axes=1/uniform"
WHOLE = "onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53"
LARGE = "onnx/ReduceMean-18/float16/2x300/axes=1/uniform"
IDS = (SUM, WHOLE, LARGE)

HOSTILE = "</script><script>alert(1)</script>\u202eevil\x00\"'><img src=x onerror=alert(1)>"
MESSAGE = "<img src=x onerror=alert(1)></script>\u202e\x1b[31m" + "long " * 2_000_000  # 10 MB
RIGHT = "onnxruntime"


def write_site_results(folder: Path) -> Path:
    """Write the folder: all right on one backend, wrong, refused or left out on the other."""
    source = GeneratedCases()
    cases = list(cases_of(source, IDS))
    results = [_judged(RIGHT, case, right_answer(case))[0] for case in cases]
    wrong = [_judged(HOSTILE, case, wrong_answer(case)) for case in cases[:2]]
    results += [result for result, _ in wrong]
    results.append(Result(LARGE, HOSTILE, Outcome.ERROR, detail=MESSAGE, reason="other", clauses=cases[2].clauses))
    write_folder(folder, results, options={"specs": None})
    lines = [
        {
            "case": result.case,
            "backend": HOSTILE,
            "case_digest": result.case_digest,
            "outputs": [tensor_to_json(answer)],
        }
        for result, answer in wrong
    ]
    (folder / "outputs.jsonl").write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    told = "".join(f"{certificate_text(source, case)}\n" for case in cases[:2])
    (folder / "certificates.jsonl").write_text(told)
    return folder


def right_answer(case: Batch) -> Array:
    """The value that the first option expects, in the output's type."""
    bounds = case.expectation.options[0].outputs[0]
    return bounds.value[0].astype(case.tensors()[0].dtype)


def wrong_answer(case: Batch) -> Array:
    """The same with the first element one too large."""
    answer = right_answer(case).copy()
    answer.reshape(-1)[0] += np.ones((), answer.dtype)
    return answer


def _judged(backend: str, case: Batch, answer: Array) -> tuple[Result, Array]:
    verdict: Verdict = judge_answer(case.expectation, [answer])
    result = Result(
        case.id,
        backend,
        verdict.outcome,
        verdict.behaviour,
        verdict.reason,
        verdict.detail,
        verdict.bound_ratio,
        verdict.level,
        case.clauses,
        case.digest,
        case.expectation.digest,
    )
    return result, answer


# What the tests attach to results


def told(batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> Sequence[object]:
    """All that an attachment may be made of."""
    found: list[object] = []
    for lane, (text, verdict) in enumerate(zip(batch.ids, verdicts, strict=True)):
        answer = answers.answer(lane)
        outputs = [output.tolist() for output in answer.outputs] if isinstance(answer, Answer) else []
        found.append({"case": text, "outcome": str(verdict.outcome), "outputs": outputs})
    return found


def of_failures(batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> Sequence[object]:
    """Nothing for a pass."""
    return [None if verdict.outcome == "pass" else "a text with a \t and a \n" for verdict in verdicts]


def no_json(batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> Sequence[object]:
    """What strict JSON has no word for."""
    return [float("nan")] * len(verdicts)


def raises(batch: Batch, answers: Answers, verdicts: Sequence[Verdict]) -> Sequence[object]:
    raise ValueError("nothing comes of it")

"""A results folder made by hand for the site: real cases, a backend that is right, and one with a hostile name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from fakes.judging import judge_answer
from fakes.results import write_folder

from opconform.cases.batch import Batch, cases_of
from opconform.cases.elements import Array
from opconform.cases.results import Outcome, Result
from opconform.generators.source import GeneratedCases
from opconform.reports.certificates import certificate_text
from opconform.runners.judging.judge import Verdict
from opconform.runners.judging.kept import tensor_to_json

SUM = "onnx/ReduceMean-18/float32/3x2x2/axes=1/uniform"
WHOLE = "onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53"
LARGE = "onnx/ReduceMean-18/float16/2x300/axes=1/uniform"
INVALID = "onnx/ReduceMean-18/float32/2x3/axes=2/ramp/axis-too-large"
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

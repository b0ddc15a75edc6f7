"""The judge for single answers, from expectations alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from opconform.cases.batch import Batch, Expectation, Option
from opconform.cases.elements import Array
from opconform.cases.program import OperatorVersion, Output, Program
from opconform.runners.judging.accuracy import Accuracy, accuracies
from opconform.runners.judging.answers import Answers, Refusal
from opconform.runners.judging.judge import NONE_REQUIRED, Verdict, judge


def batch_of(expectation: Expectation) -> Batch:
    """Cases of no input, for an expectation; its outputs are called by their numbers."""
    outputs = tuple(Output(str(n), type_, None) for n, type_ in enumerate(expectation.types, start=1))
    ids = tuple(f"case {lane}" for lane in range(expectation.lanes))
    return Batch(ids, Program(OperatorVersion("onnx", "Any", 1), (), (), outputs), (), expectation)


def judge_answer(
    expectation: Expectation, outputs: Sequence[Array], required: Mapping[str, str] = NONE_REQUIRED
) -> Verdict:
    """Return the verdict on one answer."""
    answers = Answers.of_case(*(np.asarray(output) for output in outputs))
    return judge(batch_of(expectation), answers, required)[0]


def judge_refusal(
    expectation: Expectation, refusal: Refusal, *, variant_ran: bool, required: Mapping[str, str] = NONE_REQUIRED
) -> Verdict:
    """Return the verdict on a refusal."""
    return judge(batch_of(expectation), Answers.of([refusal]), required, variant_ran=variant_ran)[0]


def accuracy_of(expectation: Expectation, outputs: Sequence[Array]) -> Accuracy | None:
    """Return how accurate one answer is."""
    return accuracies(expectation, Answers.of_case(*(np.asarray(output) for output in outputs)))[0]


def single(*options: Option, types: Sequence[str]) -> Expectation:
    """Return the expectation of a single case, whose options' bounds are told without lanes."""
    laned = (replace(o, outputs=tuple(b.mapped(lambda array: array[np.newaxis]) for b in o.outputs)) for o in options)
    return Expectation(tuple(laned), tuple(types))

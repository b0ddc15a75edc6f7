"""What judges single answers: the judge, from expectations alone, and the scripts that are written for users."""

from __future__ import annotations

import base64
import functools
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np

from opconform.cases.batch import Batch, Expectation, Option
from opconform.cases.elements import Array, DeclaredType
from opconform.cases.program import OperatorVersion, Output, Program
from opconform.generators.arithmetic.formula import Rules
from opconform.reports.script import _option, literal
from opconform.runners.judging.accuracy import Accuracy, accuracies
from opconform.runners.judging.answers import Answers, Refusal
from opconform.runners.judging.judge import NONE_REQUIRED, Verdict, judge

from .recorded import recorded


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


# What the scripts of `opconform show --script` judge by, without the libraries that they drive


@functools.cache
def judging_script() -> dict[str, Any]:
    """Return the names that a script has for judging."""
    text = (resources.files("opconform.reports") / "scripts" / "judge.py.txt").read_text(encoding="utf-8")
    script: dict[str, Any] = {"np": np, "base64": base64, "zlib": zlib}
    script |= {"erf": math.erf, "inf": math.inf, "nan": math.nan}
    exec(text.partition("\ndef main(")[0], script)
    return script


def read_option(option: Option) -> Any:
    """Return an option of a single case as a script reads it."""
    return eval(literal([_option(option)]), {"nan": np.nan, "inf": np.inf})[0]


# What the package expects of means of arrays that tests make, with no case id around them


def over_axes(
    arrays: Sequence[Any],
    name: str,
    axes: tuple[int, ...],
    keepdims: bool,
    *,
    silences: dict[str, tuple[str, ...]] | None = None,
    random: bool = False,
    declared: DeclaredType | None = None,
) -> list[Expectation]:
    """Expectations of the means over `axes` of arrays of one shape, evaluated together."""
    stacked = [np.stack(arrays)]
    recording = recorded(lambda c, x: x.mean(axes, keep=keepdims), stacked, [name], silences)
    found = recording.expectation(stacked, Rules(random, {} if declared is None else {name: declared}))
    return [found.case(lane) for lane in range(len(arrays))]


def of_vectors(vectors: Sequence[Any], name: str, **rules: Any) -> list[Expectation]:
    """Expectations of the means of whole vectors of one length."""
    return over_axes(vectors, name, (0,), False, **rules)


def of_one(vector: Any, name: str, **rules: Any) -> Expectation:
    """The expectation of the mean over the first axis of one array."""
    return over_axes([np.asarray(vector)], name, (0,), False, **rules)[0]


def together(arrays: Sequence[Any], name: str) -> Expectation:
    """The expectation of the mean of several arrays, element by element."""
    laned = [np.asarray(array)[np.newaxis] for array in arrays]
    recording = recorded(lambda c, x, *xs: x.stack(*xs).mean((0,), keep=False), laned, [name])
    return recording.expectation(laned).case(0)

"""Outputs that a results folder keeps, as JSON that any language can read, and results judged again from them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import msgspec
import numpy as np

from ...cases.batch import Batch, Expectation
from ...cases.elements import Array, content, element_types, from_content, type_of
from ...cases.results import SIDE_EFFECTS, Outcome, Result
from ...cases.runner import Reason
from .answers import MOST_DIMENSIONS, Answer, Answers, Nesting, Refusal
from .judge import WRONG, Requirements, Verdict, asks_again, judge

Keep: TypeAlias = Literal["none", "digest", "failures", "all"]

LARGEST: Final = 64 << 20
"""Maximum size of the outputs of one case that are kept, in bytes."""

_COMPRESSED_FROM: Final = 1 << 10


@dataclass(frozen=True)
class KeepOutputs:
    """Attaches the kept part of an answer: see docs/results-folder.md. `required` are the required options of silences.

    `failures` are the answers that fail a run; `digest` keeps only the sha256 of every answer.
    """

    keep: Keep = "failures"
    required: Mapping[str, str] = field(default_factory=dict)
    largest: int = LARGEST

    def __call__(
        self,
        batch: Batch,  # noqa: ARG002 - the protocol of Attach
        answers: Answers,
        verdicts: Sequence[Verdict],
    ) -> list[list[dict[str, Any]] | dict[str, Any] | None]:
        """Return the outputs of each case as JSON, with their structure if they have one; None if nothing is kept."""
        by_lane: list[list[dict[str, Any]] | dict[str, Any] | None] = [None] * len(verdicts)
        for stack in answers.stacks:
            for row, lane in enumerate(stack.lanes):
                tensors = self._kept_outputs(verdicts[lane], stack.answer(row).outputs)
                structure = msgspec.to_builtins(tuple(map(Nesting.of, stack.structure)))
                by_lane[lane] = (
                    {"outputs": tensors, "structure": structure} if tensors is not None and structure else tensors
                )
        return by_lane

    def _kept_outputs(self, verdict: Verdict, outputs: Sequence[Array]) -> list[dict[str, Any]] | None:
        if self.keep == "digest":
            return [_described(output) for output in outputs]
        if not self.keeps(verdict):
            return None
        size = sum(output.nbytes for output in outputs)
        if size > self.largest:
            reason = f"the outputs have {size} bytes, more than the {self.largest} that are kept per case"
            return [{**_described(output), "left_out": reason} for output in outputs]
        return [tensor_to_json(output) for output in outputs]

    def keeps(self, verdict: Verdict) -> bool:
        """Return whether the bytes of an answer with this verdict are kept."""
        if self.keep == "failures":
            demanded = verdict.outcome is Outcome.ACCEPTED_INVALID and self.required.get("invalid") == "rejected"
            return verdict.outcome in WRONG or demanded
        return self.keep == "all"


def answer_from_json(answer: Mapping[str, Any]) -> Answer | None:
    """Return the answer that was kept; None if it was not kept whole. Raises ValueError, KeyError or TypeError."""
    tensors = [tensor_from_json(tensor) for tensor in answer["outputs"]]
    arrays = tuple(array for array in tensors if array is not None)
    structure = msgspec.convert(answer.get("structure", ()), tuple[Nesting, ...])
    return Answer(arrays, tuple(map(Nesting.structure, structure))) if len(arrays) == len(tensors) else None


def tensor_to_json(array: Array) -> dict[str, Any]:
    """Return a tensor with its bytes, in the form of `elements.content`, or without them if it has none."""
    described = _described(array)
    if "left_out" in described:
        return described
    held = content(array)
    packed = zlib.compress(held, 6) if len(held) >= _COMPRESSED_FROM else held
    if len(packed) < len(held):
        return {**described, "zlib_base64": base64.b64encode(packed).decode()}
    return {**described, "base64": base64.b64encode(held).decode()}


def tensor_from_json(tensor: Mapping[str, Any]) -> Array | None:
    """Return the tensor that was kept; None if its bytes were not.

    Raises ValueError if it is damaged or of an unknown type.
    """
    name, shape = str(tensor["type"]), [int(d) for d in tensor["shape"]]
    if len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"{len(shape)} dimensions, more than {MOST_DIMENSIONS}")
    known = element_types().get(name)
    dtype = _foreign(name) if known is None else known.dtype
    size = None if dtype.hasobject else math.prod(shape) * dtype.itemsize
    if known is not None and size is not None:
        size = known.size(math.prod(shape))
    held = _held(tensor, size)
    if held is None:
        return None
    if hashlib.sha256(held).hexdigest() != tensor["sha256"] or (size is not None and len(held) != size):
        raise ValueError("the bytes do not match the sha256")
    if known is None:
        return np.frombuffer(held, dtype.newbyteorder("<")).reshape(shape).astype(dtype)
    return from_content(name, shape, held).copy()


def _foreign(name: str) -> np.dtype[Any]:
    """Return a type that only an answer can have, not a case; ValueError if it is invalid or holds objects."""
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise ValueError(f"{name}: no element type") from error
    if dtype.hasobject:
        raise ValueError(f"{name}: no element type")
    return dtype


def _held(tensor: Mapping[str, Any], size: int | None) -> bytes | None:
    """Return the bytes; there must be `size`, and no more is unpacked. None if they were not kept.

    Text has no size; then there may be as many as are kept of a case.
    """
    try:
        if "base64" in tensor:
            return base64.b64decode(tensor["base64"], validate=True)
        if "zlib_base64" not in tensor:
            return None
        if not 0 <= (size or 0) <= LARGEST:
            raise ValueError(f"{size} bytes, more than the {LARGEST} that are kept per case")
        most = LARGEST if size is None else size
        stream = zlib.decompressobj()
        held = stream.decompress(base64.b64decode(tensor["zlib_base64"], validate=True), most + 1)
        if len(held) == size and not stream.eof:
            held += stream.decompress(stream.unconsumed_tail, 1)  # its checksum is at the stream's end
    except (binascii.Error, zlib.error) as error:
        raise ValueError(str(error)) from None
    if (size is not None and len(held) != size) or not stream.eof:
        raise ValueError(f"the stream does not have the {size} bytes of the shape")
    return held


def _described(array: Array) -> dict[str, Any]:
    described = {"type": type_of(array), "shape": list(array.shape)}
    try:
        return {**described, "sha256": hashlib.sha256(content(array)).hexdigest()}
    except TypeError:
        return {**described, "sha256": None, "left_out": "its elements are objects, which have no bytes of their own"}


_ENDED = frozenset({Outcome.CRASH, Outcome.TIMEOUT})
_REFUSED_ALTHOUGH = re.compile(r"refused \((.*)\), required: ", re.DOTALL)
REASONS = frozenset(get_args(Reason))
"""The reasons of refusals."""


class CannotJudge(Exception):  # noqa: N818 - it is an answer, and says why
    """The verdict cannot be decided from what was kept; the message says what is missing."""


def judged_anew(
    result: Result,
    case: Batch | None,
    answer: Answer | None,
    *,
    required: Requirements,
    before: Requirements,
) -> Result:
    """Return a result, as before waiving, with every field that follows from its case and its answer.

    The rest is what it claims: without an answer, words, reason and the kind of refusal or end. `case` is None if there
    is no case with this id any more, `answer` is None if it was not kept. `required` are the options required now,
    `before` those required when the backend ran. Raises CannotJudge.
    """
    if result.outcome is Outcome.RUNNER_ERROR:
        return result
    if case is None:
        raise CannotJudge("this case no longer exists")
    if case.digest != result.case_digest:
        raise CannotJudge("its program or its inputs have changed")
    verdict = _verdict(result, case, answer, required, before)
    if verdict is None:
        return msgspec.structs.replace(result, clauses=case.clauses)
    return msgspec.structs.replace(
        result,
        outcome=verdict.outcome,
        behaviour=verdict.behaviour,
        reason=verdict.reason,
        detail=verdict.detail,
        bound_ratio=verdict.bound_ratio,
        level=verdict.level,
        clauses=case.clauses,
        expectation_digest=case.expectation.digest,
    )


def same_verdict(a: Result, b: Result) -> bool:
    """Return whether two results of a case say the same, apart from words and ratios."""
    return _deciding(a) == _deciding(b)


def _deciding(result: Result) -> tuple[object, ...]:
    return result.outcome, dict(result.behaviour), result.level, result.clauses, result.expectation_digest


def _verdict(
    result: Result,
    case: Batch,
    answer: Answer | None,
    required: Requirements,
    before: Requirements,
) -> Verdict | None:
    """Return today's verdict, None if it needs an answer that was not kept, and nothing has changed.

    Raises CannotJudge.
    """
    expectation = case.expectation
    if answer is not None:
        alone = Answers.of([answer])
        (verdict,) = judge(case, alone, required)
        if asks_again(expectation) and dict(verdict.behaviour) != dict(result.behaviour):
            (verdict,) = judge(case, alone, required, again=alone)  # the answer of a fresh program is not kept
        if result.reason in SIDE_EFFECTS and verdict.outcome is Outcome.PASS:  # side effects of the run remain
            return replace(verdict, outcome=Outcome.WRONG_VALUE, reason=result.reason, detail=result.detail, level=None)
        return verdict
    same = expectation.digest == result.expectation_digest
    if result.outcome in _ENDED:
        behaviour: Mapping[str, list[str]] = {"invalid": []} if expectation.invalid else {}
        return Verdict(result.outcome, behaviour, result.detail, reason=result.reason)
    if result.reason in REASONS or result.outcome is Outcome.UNSUPPORTED:
        return _of_refusal(result, case, required)
    if same and not _asked_anew(expectation, required, before):
        return None
    why = "other options are required" if same else "the expectation has changed"
    raise CannotJudge(f"{why}, and the answer was not kept")


def _of_refusal(result: Result, case: Batch, required: Requirements) -> Verdict:
    expectation = case.expectation
    was_invalid = "invalid" in result.behaviour
    if was_invalid and expectation.invalid and result.outcome is Outcome.UNSUPPORTED:
        return Verdict(result.outcome, {"invalid": []}, result.detail, reason=result.reason)
    if was_invalid != expectation.invalid:
        raise CannotJudge("the input has become valid" if was_invalid else "the input has become invalid")
    return judge(case, Answers.of([_refusal(result)]), required)[0]


def _refusal(result: Result) -> Refusal:
    """Return the refusal that a result records; "not implemented" only matters for valid input."""
    words = result.detail or ""
    if result.outcome is Outcome.WRONG_VALUE and (match := _REFUSED_ALTHOUGH.match(words)):
        words = match[1]
    reason = cast(Reason, result.reason) if result.reason in REASONS else "other"
    return Refusal(words, result.outcome is Outcome.UNSUPPORTED, reason)


def _asked_anew(expectation: Expectation, required: Requirements, before: Requirements) -> bool:
    """Return whether a silence that applies now requires another option than before."""
    return any(required.get(silence) != before.get(silence) for silence in expectation.silences)

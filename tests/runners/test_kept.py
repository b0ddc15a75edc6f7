from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest

from opconform.cases.elements import Array
from opconform.cases.results import Outcome
from opconform.generators.source import GeneratedCases
from opconform.runners.judging.answers import Answers
from opconform.runners.judging.judge import Verdict
from opconform.runners.judging.kept import Keep, KeepOutputs, tensor_from_json, tensor_to_json

CASE = GeneratedCases().case("onnx/ReduceMean-13/float32/3x2x2/axes=2,0/ramp/axes-unsorted")
TENSORS: list[Array] = [
    np.arange(6, dtype=np.float32).reshape(2, 3).T,
    np.array(-0.0, np.float16),
    np.array([1.5, float("nan"), -np.inf], ml_dtypes.bfloat16),
    np.full(5000, -1, np.int64),
    np.zeros((2, 0, 3)),
    np.array([True, False]),
    np.array([255], np.uint8),
    np.array([1 + 2j]),
    np.array([1.0, 2.0], ">f4"),
]


@pytest.mark.parametrize("array", TENSORS, ids=lambda a: f"{a.dtype}-{a.size}")
def test_a_tensor_is_read_back_to_the_bit(array: Array) -> None:
    told = json.loads(json.dumps(tensor_to_json(array), allow_nan=False))
    read = tensor_from_json(told)
    assert read is not None
    assert (read.dtype, read.shape, read.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_bytes_are_little_endian_and_in_c_order() -> None:
    told = tensor_to_json(np.array([[1, 2], [3, 4]], np.int16, order="F"))
    assert base64.b64decode(told["base64"]) == b"\1\0\2\0\3\0\4\0"
    assert told["sha256"] == hashlib.sha256(b"\1\0\2\0\3\0\4\0").hexdigest()
    assert base64.b64decode(tensor_to_json(np.array(1.5, ml_dtypes.bfloat16))["base64"]) == b"\xc0\x3f"


def test_large_tensors_are_compressed_where_that_helps() -> None:
    assert "zlib_base64" in tensor_to_json(np.zeros(4096))
    noise = np.frombuffer(np.random.default_rng(1).bytes(4096), np.uint8)
    assert "base64" in tensor_to_json(noise)


def test_what_has_no_bytes_is_left_out_and_said() -> None:
    told = tensor_to_json(np.array([None, "x"], object))
    assert "objects" in told["left_out"]
    assert tensor_from_json(told) is None


@pytest.mark.parametrize(
    "damage",
    [{"base64": "AAAA"}, {"base64": "?"}, {"zlib_base64": "AAAA", "base64": None}, {"type": "float31"}, {"shape": [7]}],
)
def test_a_damaged_tensor_is_refused(damage: dict[str, Any]) -> None:
    told = {**tensor_to_json(np.ones(3, np.float32)), **damage}
    with pytest.raises(ValueError, match=r"."):
        tensor_from_json({key: value for key, value in told.items() if value is not None})


def kept_of(keep: KeepOutputs, verdict: Verdict, outputs: Sequence[Array]) -> list[dict[str, Any]] | None:
    """What is kept of the answer to one case."""
    return keep(CASE, Answers.of_case(*outputs), [verdict])[0]


OUTCOMES = (Outcome.PASS, Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.ACCEPTED_INVALID)


@pytest.mark.parametrize("keep", get_args(Keep))
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_what_is_kept_goes_by_the_outcome(keep: Any, outcome: Outcome) -> None:
    kept = kept_of(KeepOutputs(keep), Verdict(outcome), [np.ones(1)])
    wrong = outcome in OUTCOMES[1:4]
    assert (kept is not None) == (keep in ("digest", "all") or (keep == "failures" and wrong))
    assert ("base64" in (kept or [{}])[0]) == (kept is not None and keep != "digest")


def test_answers_to_invalid_inputs_are_kept_where_a_refusal_is_required() -> None:
    answered = Verdict(Outcome.ACCEPTED_INVALID)
    assert kept_of(KeepOutputs("failures", {"invalid": "rejected"}), answered, [np.ones(1)]) is not None
    assert kept_of(KeepOutputs("failures", {"invalid": "answered"}), answered, [np.ones(1)]) is None


def test_what_is_too_large_is_left_out_and_said_with_its_digest() -> None:
    outputs = [np.ones(10), np.zeros(10)]
    kept = kept_of(KeepOutputs("all", largest=159), Verdict(Outcome.PASS), outputs)
    assert kept is not None
    for told, output in zip(kept, outputs, strict=True):
        assert "160 bytes, more than the 159" in told["left_out"]
        assert told["sha256"] == hashlib.sha256(output.tobytes()).hexdigest()
        assert "base64" not in told
    whole = kept_of(KeepOutputs("all", largest=160), Verdict(Outcome.PASS), outputs)
    assert whole is not None
    assert "left_out" not in whole[0]

"""Outputs that a results folder keeps: as JSON that any language reads without this package, and back."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from ..cases.batch import Batch
from ..cases.elements import Array, element_types, type_of
from ..cases.results import Outcome
from .answers import Answers
from .judge import Verdict

Keep: TypeAlias = Literal["none", "digest", "failures", "all"]
KEEP: Final[tuple[Keep, ...]] = get_args(Keep)

LARGEST: Final = 64 << 20
"""The bytes that the outputs of one case may have together and still be kept."""

_COMPRESSED_FROM: Final = 1 << 10
_ALWAYS_WRONG = frozenset({Outcome.WRONG_VALUE, Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE})


@dataclass(frozen=True)
class KeepOutputs:
    """Attaches what is kept of an answer: see docs/results-folder.md. `required` are the silences answered.

    `failures` are the answers that fail a run; `digest` keeps the sha256 of every answer and no bytes.
    """

    keep: Keep = "failures"
    required: Mapping[str, str] = field(default_factory=dict)
    largest: int = LARGEST

    def __call__(
        self,
        batch: Batch,  # noqa: ARG002 - the protocol of Attach
        answers: Answers,
        verdicts: Sequence[Verdict],
    ) -> list[list[dict[str, Any]] | None]:
        """Return the outputs of each case as JSON, or None where nothing is kept."""
        found: list[list[dict[str, Any]] | None] = [None] * len(verdicts)
        for stack in answers.stacks:
            for row, lane in enumerate(stack.lanes):
                found[lane] = self._told(verdicts[lane], [output[row, ...] for output in stack.outputs])
        return found

    def _told(self, verdict: Verdict, outputs: Sequence[Array]) -> list[dict[str, Any]] | None:
        if self.keep == "digest":
            return [_described(output) for output in outputs]
        if not self.keeps(verdict):
            return None
        size = sum(output.nbytes for output in outputs)
        if size > self.largest:
            reason = f"the outputs have {size} bytes, more than the {self.largest} that are kept of a case"
            return [{**_described(output), "left_out": reason} for output in outputs]
        return [tensor_to_json(output) for output in outputs]

    def keeps(self, verdict: Verdict) -> bool:
        """Whether the bytes of an answer with this verdict are kept."""
        if self.keep == "failures":
            demanded = verdict.outcome is Outcome.ACCEPTED_INVALID and self.required.get("invalid") == "rejected"
            return verdict.outcome in _ALWAYS_WRONG or demanded
        return self.keep == "all"


def tensor_to_json(array: Array) -> dict[str, Any]:
    """Return a tensor with its bytes, in C order and little-endian; what has no bytes of its own is left out."""
    described = _described(array)
    if "left_out" in described:
        return described
    content = _bytes(array)
    packed = zlib.compress(content, 6) if len(content) >= _COMPRESSED_FROM else content
    if len(packed) < len(content):
        return {**described, "zlib_base64": base64.b64encode(packed).decode()}
    return {**described, "base64": base64.b64encode(content).decode()}


def tensor_from_json(told: Mapping[str, Any]) -> Array | None:
    """Read back a tensor; None if its bytes were not kept. Raises ValueError if it is damaged or none of our types."""
    name = str(told["type"])
    known = element_types().get(name)
    try:
        dtype = known.dtype if known else np.dtype(name)
    except TypeError as error:
        raise ValueError(f"{name}: no element type") from error
    shape = [int(d) for d in told["shape"]]
    size = math.prod(shape) * dtype.itemsize
    content = _content(told, size)
    if content is None:
        return None
    if dtype.hasobject or len(content) != size or hashlib.sha256(content).hexdigest() != told["sha256"]:
        raise ValueError("the bytes are not those of the sha256")
    array = np.frombuffer(content, dtype if dtype.byteorder != "=" else dtype.newbyteorder("<"))
    return array.reshape(shape).astype(dtype, copy=False)


def _content(told: Mapping[str, Any], size: int) -> bytes | None:
    """Return the bytes, of which there are to be `size`; no more than that is unpacked. None if they were not kept."""
    try:
        if "base64" in told:
            return base64.b64decode(told["base64"], validate=True)
        if "zlib_base64" not in told:
            return None
        if not 0 <= size <= LARGEST:
            raise ValueError(f"{size} bytes, more than the {LARGEST} that are kept of a case")
        stream = zlib.decompressobj()
        content = stream.decompress(base64.b64decode(told["zlib_base64"], validate=True), size + 1)
        if len(content) == size and not stream.eof:
            content += stream.decompress(stream.unconsumed_tail, 1)  # the stream's end has its checksum
    except (binascii.Error, zlib.error) as error:
        raise ValueError(str(error)) from None
    if len(content) != size or not stream.eof:
        raise ValueError(f"the stream does not have the {size} bytes of the shape")
    return content


def _described(array: Array) -> dict[str, Any]:
    described = {"type": type_of(array), "shape": list(array.shape)}
    if array.dtype.hasobject:
        return {**described, "sha256": None, "left_out": "its elements are objects, which have no bytes of their own"}
    return {**described, "sha256": hashlib.sha256(_bytes(array)).hexdigest()}


def _bytes(array: Array) -> bytes:
    """Return the elements in C order, little-endian where the type is one of ours."""
    swapped = sys.byteorder == "big" and type_of(array) in element_types()
    return (array.byteswap() if swapped else array).tobytes()

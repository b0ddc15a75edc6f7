"""Outputs that a results folder keeps: as JSON that any language reads without this package, and back."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from ..cases.batch import Batch
from ..cases.elements import Array, content, element_types, from_content, type_of
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
    """Return a tensor with its bytes, as `elements.content` writes them; what has none is left out."""
    described = _described(array)
    if "left_out" in described:
        return described
    held = content(array)
    packed = zlib.compress(held, 6) if len(held) >= _COMPRESSED_FROM else held
    if len(packed) < len(held):
        return {**described, "zlib_base64": base64.b64encode(packed).decode()}
    return {**described, "base64": base64.b64encode(held).decode()}


def tensor_from_json(told: Mapping[str, Any]) -> Array | None:
    """Read back a tensor; None if its bytes were not kept. Raises ValueError if it is damaged or none of our types."""
    name, shape = str(told["type"]), [int(d) for d in told["shape"]]
    known = element_types().get(name)
    dtype = _foreign(name) if known is None else known.dtype
    size = None if dtype.hasobject else math.prod(shape) * dtype.itemsize
    if known is not None and size is not None:
        size = known.size(math.prod(shape))
    held = _held(told, size)
    if held is None:
        return None
    if hashlib.sha256(held).hexdigest() != told["sha256"] or (size is not None and len(held) != size):
        raise ValueError("the bytes are not those of the sha256")
    if known is None:
        return np.frombuffer(held, dtype.newbyteorder("<")).reshape(shape).astype(dtype)
    return from_content(name, shape, held).copy()


def _foreign(name: str) -> np.dtype[Any]:
    """Return a type that cases cannot have, and an answer may; ValueError for what is none, or holds objects."""
    try:
        dtype = np.dtype(name)
    except TypeError as error:
        raise ValueError(f"{name}: no element type") from error
    if dtype.hasobject:
        raise ValueError(f"{name}: no element type")
    return dtype


def _held(told: Mapping[str, Any], size: int | None) -> bytes | None:
    """Return the bytes, of which there are to be `size`; no more than that is unpacked. None if they were not kept.

    Without a size, that of text, there may be as many as are kept of a case.
    """
    try:
        if "base64" in told:
            return base64.b64decode(told["base64"], validate=True)
        if "zlib_base64" not in told:
            return None
        if not 0 <= (size or 0) <= LARGEST:
            raise ValueError(f"{size} bytes, more than the {LARGEST} that are kept of a case")
        most = LARGEST if size is None else size
        stream = zlib.decompressobj()
        held = stream.decompress(base64.b64decode(told["zlib_base64"], validate=True), most + 1)
        if len(held) == size and not stream.eof:
            held += stream.decompress(stream.unconsumed_tail, 1)  # the stream's end has its checksum
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

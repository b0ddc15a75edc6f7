"""ONNX programs on the reference evaluator of the onnx package; a backend under test, not an oracle."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...cases.elements import Array, canonical, element_type
from ...cases.onnx_model import feeds, onnx_model
from ...cases.program import Program
from ...cases.runner import Executable, Reason, Unsupported, Words, meaning
from ..clients.python_client import optional_item
from .base import Refusing, Runs

WORDS = (
    Words(r"No registered schema for operator", "operator-version", plain=True),
    Words(r"(No registered|Not registered|No default|No) implementation for operator", "operator-version", plain=True),
    Words(r"No implementation was found for node type", "operator-version", plain=True),
    Words(r"Node type '.*' from domain '.*' is unknown", "operator-version", plain=True),
    Words(r"Scan is not implemented for|Scan with zero scan-input length", "attribute", plain=True),
    Words(r"This operator is not implemented shape", "rank", plain=True),
    Words(r"not supported for the input types|Invalid integer data type", "type"),
    Words(r"[Uu]nable to allocate", "memory"),
    Words(r"Attribute '.*' is expected|got an unexpected keyword argument", "attribute"),
    Words(r"broadcast", "shape"),
    Words(r"is out of bounds for array of dimension|duplicate value in 'axis'", "invalid"),
    Words(r"missing \d+ required positional argument|Issues with types", "invalid"),
)
"""The messages of onnx 1.16 to 1.23, and of NumPy."""


class OnnxReference(Refusing):
    """onnx.reference.ReferenceEvaluator, without NumPy's warnings."""

    name = "onnx-reference"
    standards: tuple[str, ...] = ("onnx",)
    words = WORDS

    def __init__(self) -> None:
        import onnx.reference  # noqa: PLC0415 - only a worker that runs it pays for it

        self._library: Any = onnx

    def version(self) -> str:
        """Return onnx's version."""
        return str(self._library.__version__)

    def describe(self) -> dict[str, str]:
        """Return the version of NumPy."""
        return {"numpy": np.__version__}

    def prepare(self, program: Program, /) -> Executable:
        """Make an evaluator for `program`. Raises Unsupported, or the evaluator's own error."""
        with self.refusing():
            evaluator = self._library.reference.ReferenceEvaluator(onnx_model(program))

        def run(inputs: Sequence[Array]) -> Sequence[Any]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                with self.refusing():
                    outputs = evaluator.run(None, _fed(program, inputs))
            if program.is_plain:
                return [canonical(output) for output in outputs]
            return [optional_item(answer.type, x) for answer, x in zip(program.answers, outputs, strict=True)]

        return Runs(run)

    def reason(self, error: BaseException, /) -> Reason:
        """Return why the evaluator refused, as far as its message shows."""
        if isinstance(error, MemoryError):
            return "memory"
        # "Issues with types" is raised from the more specific error.
        for raised in (error.__cause__, error):
            if entry := meaning(WORDS, str(raised)):
                return entry.reason
        return "other"

    def refuse_if_plain(self, error: Exception) -> None:
        """Raise Unsupported if `error` only says "not implemented"."""
        entry = meaning(WORDS, str(error))
        if isinstance(error, NotImplementedError) or (entry is not None and entry.plain):
            # The next lines list everything that is implemented.
            words = str(error).partition("\n")[0] or type(error).__name__
            raise Unsupported(words, self.reason(error)) from error


def _fed(program: Program, inputs: Sequence[Array]) -> dict[str, Any]:
    """Return the inputs: a map's values keep their type, which the evaluator cannot know otherwise."""
    fed = feeds(program, inputs)
    for feed, value in zip(program.feeds, fed.values(), strict=True):
        if feed.layout.kind == "map":
            kind = element_type(feed.leaves[1].type)
            if kind.kind != "string":
                value.update({key: kind.dtype.type(number) for key, number in value.items()})
    return fed

"""Tools around ONNX models that run nothing: inference of types and shapes, checkers, converters."""

from __future__ import annotations

import contextlib
import importlib.metadata
import itertools
import re
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import onnx.shape_inference
from onnx import ModelProto, checker, version_converter

from ...cases.elements import Array
from ...cases.errors import ProgramError
from ...cases.onnx_model import onnx_bytes, onnx_model, opset_of
from ...cases.program import OperatorVersion, Program
from ...cases.runner import BackendKind, Executable, Unsupported, Words
from ..clients.python_client import inferred_by_onnx, inferred_by_runtime
from .base import Refusing, Texts
from .onnx_joining import converted_together, may_join
from .onnxruntime import OnnxRuntime

WORDS = (
    Words(r"No schema registered|No Schema registered|No Op registered", "operator-version", plain=True),
    Words(r"unsupported type|Unsupported type|type inference failed", "type"),
    Words(r"[Uu]nrecognized attribute|[Aa]ttribute", "attribute"),
    Words(r"\brank\b|dimensions?\b", "shape"),
)
"""The messages of onnx 1.23."""

_NO_WAY = r"No Adapter|No Previous Version"
"""What the version converter says of an operator version, whatever the program."""


class OnnxInfer(Refusing):
    """onnx.shape_inference on the model without the types of its outputs."""

    name = "onnx-infer"
    standards: tuple[str, ...] = ("onnx",)
    kind: BackendKind = "infer"
    words = WORDS
    settings: ClassVar[dict[str, bool]] = {}

    def version(self) -> str:
        """Return onnx's version."""
        return str(onnx.__version__)

    def describe(self) -> dict[str, str]:
        """Return the settings of the inference."""
        return {"settings": ", ".join(name for name, is_set in self.settings.items() if is_set) or "default"}

    def prepare(self, program: Program, /) -> Executable:
        """Infer the types and shapes of `program`. Raises Unsupported, or onnx's own error."""
        model = onnx_model(program)
        with self.refusing():
            return Texts(inferred_by_onnx(onnx, model, self.settings))


class OnnxInferStrict(OnnxInfer):
    """onnx.shape_inference that refuses programs which it cannot infer, or whose types do not fit."""

    name = "onnx-infer-strict"
    settings: ClassVar[dict[str, bool]] = {"check_type": True, "strict_mode": True}


class OnnxInferData(OnnxInfer):
    """onnx.shape_inference that computes shapes from the values of constants."""

    name = "onnx-infer-data"
    settings: ClassVar[dict[str, bool]] = {"data_prop": True}


class OnnxCheck(OnnxInfer):
    """onnx.checker on the model."""

    name = "onnx-check"
    kind: BackendKind = "check"

    def prepare(self, program: Program, /) -> Executable:
        """Check `program`. Raises Unsupported, or onnx's own error."""
        model = onnx_model(program)
        with self.refusing():
            checker.check_model(model, **self.settings)
        return Texts(())


class OnnxCheckFull(OnnxCheck):
    """onnx.checker that also infers shapes, in strict mode."""

    name = "onnx-check-full"
    settings: ClassVar[dict[str, bool]] = {"full_check": True}


class OnnxConvert(OnnxInfer):
    """onnx.version_converter, to the newest opset that onnxruntime 1.32 runs."""

    name = "onnx-convert"
    kind: BackendKind = "convert"
    newest: ClassVar[int] = 26

    def describe(self) -> dict[str, str]:
        """Return the opset that programs are converted to."""
        return {"target": f"opset {self.newest}"}

    def target(self, program: Program) -> int:
        """Return the opset to convert a program to. Raises Unsupported if there is none."""
        return max(self.newest, opset_of(program))

    def prepare(self, program: Program, /) -> Executable:
        """Convert `program`. Raises Unsupported, or onnx's own error."""
        if program.operator.domain:
            raise Unsupported("the version converter only converts the default domain", "operator-version")
        target, model = self.target(program), onnx_model(program)
        with self.refusing():
            made = version_converter.convert_version(model, target)
        return Texts([_bytes_of(made)])

    def run_together(self, runs: Sequence[tuple[Program, Sequence[Array]]], /) -> Sequence[Sequence[Array] | None]:
        """Return the conversions of programs that are converted as one model, because a call takes so long.

        None stands for a program that must be converted alone.
        """
        answers: list[Sequence[Array] | None] = [None] * len(runs)
        models: dict[tuple[int, int, OperatorVersion], dict[int, ModelProto]] = {}
        for number, (program, _) in enumerate(runs):
            with contextlib.suppress(Unsupported, ProgramError):
                model, target = onnx_model(program), self.target(program)
                if may_join(model) and not program.operator.domain:
                    models.setdefault((target, opset_of(program), program.operator), {})[number] = model
        for (target, *_), several in models.items():
            convert = partial(version_converter.convert_version, target_version=target)
            for number, made in zip(several, converted_together([*several.values()], convert), strict=True):
                answers[number] = None if made is None else [_bytes_of(made)]
        return answers


class OnnxConvertDown(OnnxConvert):
    """onnx.version_converter, to the opset before an operator's version; it need not know how."""

    name = "onnx-convert-down"

    def __init__(self) -> None:
        self._unknown: dict[tuple[object, int], str] = {}

    def prepare(self, program: Program, /) -> Executable:
        """Convert `program`. Raises Unsupported; at once, if the converter has no way down from its version."""
        key = program.operator, opset_of(program)
        if key in self._unknown:
            raise Unsupported(self._unknown[key], "operator-version")
        try:
            return super().prepare(program)
        except Unsupported as refusal:
            if re.search(_NO_WAY, str(refusal)):
                self._unknown[key] = str(refusal)
            raise

    def run_together(self, runs: Sequence[tuple[Program, Sequence[Array]]], /) -> Sequence[Sequence[Array] | None]:
        """Return conversions as OnnxConvert does, but of no program that has no way down."""
        known = [(program.operator, opset_of(program)) not in self._unknown for program, _ in runs]
        answers = iter(super().run_together(list(itertools.compress(runs, known))))
        return [next(answers) if is_known else None for is_known in known]

    def describe(self) -> dict[str, str]:
        """Return the opset that programs are converted to."""
        return {"target": "the opset before the operator's version"}

    def target(self, program: Program) -> int:
        """Return the opset before the operator's version. Raises Unsupported for a first version."""
        before = int(program.operator.version) - 1
        if not before:
            raise Unsupported("there is no opset before 1", "operator-version")
        return before

    def refuse_if_plain(self, error: Exception) -> None:
        """Raise Unsupported: an older version may lack what a program needs."""
        raise Unsupported(str(error), self.reason(error)) from error


class OnnxScriptConvert(OnnxConvert):
    """onnxscript's version converter, without its fallback to onnx's, to the newest opset that it knows."""

    name = "onnxscript-convert"
    newest: ClassVar[int] = 25

    def version(self) -> str:
        """Return onnxscript's version."""
        return importlib.metadata.version("onnxscript")

    def prepare(self, program: Program, /) -> Executable:
        """Convert `program`. Raises Unsupported, or onnxscript's own error."""
        import onnx_ir  # noqa: PLC0415 - an extra
        from onnxscript import version_converter as of_onnxscript  # noqa: PLC0415 - an extra

        if program.operator.domain:
            raise Unsupported("the version converter only converts the default domain", "operator-version")
        if opset_of(program) > self.newest:
            raise Unsupported(f"the version converter knows opsets up to {self.newest}", "operator-version")
        model = onnx_ir.from_proto(onnx_model(program))  # of a ModelProto it would leave the opset as it is
        of_onnxscript.convert_version(model, self.newest)
        return Texts([_bytes_of(onnx_ir.to_proto(model))])

    def run_together(self, runs: Sequence[tuple[Program, Sequence[Array]]], /) -> Sequence[Sequence[Array] | None]:
        """Return None for each program: alone each takes a millisecond."""
        return [None] * len(runs)


class OnnxRuntimeInfer(OnnxRuntime):
    """What onnxruntime infers when it loads a model without the types of its outputs."""

    name = "onnxruntime-infer"
    kind: BackendKind = "infer"
    optimisations = "ORT_DISABLE_ALL"

    def prepare(self, program: Program, /) -> Executable:
        """Load `program`. Raises Unsupported, or onnxruntime's own error."""
        model = onnx_bytes(program)
        with self.refusing():
            return Texts(inferred_by_runtime(model, self.session))


def _bytes_of(model: ModelProto) -> Array:
    return np.frombuffer(model.SerializeToString(deterministic=True), np.uint8)

"""Backends that infer types and shapes: right, wrong, forgetful, and of a kind that there is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opconform.cases.inferred import inferred
from opconform.cases.onnx_model import onnx_model
from opconform.cases.program import Program


class Knows:
    """Infers what the program itself declares; a subclass spoils it."""

    name, standards, kind = "knows", ("onnx",), "infer"

    def version(self) -> str:
        return "1"

    def prepare(self, program: Program) -> Knows:
        self.texts = [inferred(o.type, self.dims(o.shape)) for o in program.answers]
        return self

    def dims(self, shape: tuple[int, ...] | None) -> tuple[int | None, ...] | None:
        return shape

    def run(self, inputs: Any) -> list[str]:
        return self.texts


class Adds(Knows):
    """Says that a tensor has one dimension more."""

    def dims(self, shape: tuple[int, ...] | None) -> tuple[int | None, ...] | None:
        return None if shape is None else (*shape, 1)


class Forgets(Knows):
    """Never knows the first dimension."""

    def dims(self, shape: tuple[int, ...] | None) -> tuple[int | None, ...] | None:
        return shape and (None, *shape[1:])


class Refuses(Knows):
    """Refuses every program."""

    def prepare(self, program: Program) -> Knows:
        raise ValueError("this program is invalid")


class Boasts(Knows):
    """Has a kind that there is not."""

    kind = "guess"


class RefusesToCheck(Refuses):
    """Finds every program invalid."""

    kind = "check"


class Keeps(Knows):
    """Converts nothing."""

    kind = "convert"

    def prepare(self, program: Program) -> Knows:
        model = self.changed(onnx_model(program))
        self.texts = [np.frombuffer(model.SerializeToString(), np.uint8)]
        return self

    def changed(self, model: Any) -> Any:
        return model


class Negates(Keeps):
    """Replaces every operator by Neg."""

    def changed(self, model: Any) -> Any:
        for node in model.graph.node:
            node.op_type = "Neg"
        return model


class RefusesToConvert(Refuses):
    """Converts no program."""

    kind = "convert"


class SpoilsTogether(Keeps):
    """Converts several programs at once to Neg, and each alone to itself."""

    def run_together(self, runs: Sequence[tuple[Program, Sequence[Any]]]) -> list[list[Any]]:
        return [Negates().prepare(program).texts for program, _ in runs]


class Raises(Keeps):
    """Says that a model is of opset 18, and changes nothing else."""

    def changed(self, model: Any) -> Any:
        model.opset_import[0].version = 18
        return model

"""Libraries: tools around models, libraries that list their operations, and onnxruntime without any care."""

from __future__ import annotations

import os
import signal
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from opconform.cases.elements import Array
from opconform.cases.errors import OpconformError
from opconform.cases.inferred import inferred
from opconform.cases.onnx_model import feeds, onnx_bytes, onnx_model
from opconform.cases.program import Program
from opconform.cases.runner import NotInstalled
from opconform.runners.backends.onednn_operations import OneDnnOperations
from opconform.runners.backends.openvino_operations import OpenVinoOperations
from opconform.specs.audit import LibrarySchema, Listing, Question

# Backends that infer types and shapes, check and convert: right, wrong, forgetful, and of a kind that there is not


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

    opset = 18

    def changed(self, model: Any) -> Any:
        model.opset_import[0].version = self.opset
        return model


class Garbles(Keeps):
    """Answers bytes that are no model."""

    def prepare(self, program: Program) -> Knows:
        self.texts = [np.frombuffer(b"\xff\xff\xffno model", np.uint8)]
        return self


class AddsOddParts(Keeps):
    """Adds a constant of a type that there is not, and a Constant without a value."""

    def changed(self, model: Any) -> Any:
        model.graph.initializer.add(name="odd", data_type=99, dims=[7], raw_data=b"1")
        model.graph.node.add(op_type="Constant", output=["none"])
        return model


class ComesFromTheFuture(Keeps):
    """Says that a model is of an IR version that nobody knows."""

    def changed(self, model: Any) -> Any:
        model.ir_version = 99
        return model


class Lowers(Raises):
    """Says that a model is of opset 1."""

    opset = 1


class Describes(Raises):
    """Also describes the inputs: that is more than a change of opset, so the text alone does not judge it."""

    def changed(self, model: Any) -> Any:
        for given in model.graph.input:
            given.doc_string = "an input"
        return super().changed(model)


class DescribesTo25(Describes):
    """Does so for opset 25."""

    opset = 25


# Libraries that can be asked about their operations: real ones about a few of them, and ones that go wrong


FEW = ("Add", "Convert", "ReduceMean", "Split", "StaticTranspose", "SoftMax")


def only(listing: Listing, names: Container[str] = FEW) -> Listing:
    versions = {name: of_name for name, of_name in listing.versions.items() if name in names}
    about = (listing.library, listing.version, listing.group)
    return Listing(*about, versions, listing.later, listing.newest)


class SomeOfOpenVino(OpenVinoOperations):
    def listing(self) -> Listing:
        return only(super().listing())


class SomeOfOneDnn(OneDnnOperations):
    def listing(self) -> Listing:
        return only(super().listing())


class ReduceMeanOfOpenVino(OpenVinoOperations):
    def listing(self) -> Listing:
        return only(super().listing(), ("ReduceMean",))


class ReduceMeanOfOneDnn(OneDnnOperations):
    def listing(self) -> Listing:
        return only(super().listing(), ("ReduceMean",))


class Faulty:
    """Knows three operators: one whose questions it answers, one that it dies of, one that it fails at."""

    exact = False
    untold = ("everything else",)

    def listing(self) -> Listing:
        return Listing("Faulty", "1.0", "all", dict.fromkeys(("Fine", "ReduceMean", "Raises"), (1,)))

    def schema(self, question: Question) -> LibrarySchema:
        if question.name == "ReduceMean":
            print("about to fall", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        if question.name == "Raises":
            raise ValueError("no such thing")
        return LibrarySchema({})


class DiesOfListing(Faulty):
    def listing(self) -> Listing:
        os._exit(9)


class DiesAtOnce(Faulty):
    def __init__(self) -> None:
        os._exit(7)


class Absent(Faulty):
    def __init__(self) -> None:
        raise NotInstalled("it needs a library: pip install it")


class Unusable(Faulty):
    def __init__(self) -> None:
        raise OpconformError("the library is broken; install it again")


# onnxruntime as somebody runs it who has just read docs/writing-a-runner.md: no words, no types, no options


class PlainOnnxRuntime:
    """A session a program."""

    name, standards = "plain", ("onnx",)

    def version(self) -> str:
        import onnxruntime

        return str(onnxruntime.__version__)

    def prepare(self, program: Program) -> PlainSession:
        return PlainSession(program)


class PlainSession:
    """A program and its session."""

    def __init__(self, program: Program) -> None:
        import onnxruntime

        self._program = program
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(onnx_bytes(program), options)

    def run(self, inputs: Sequence[Array]) -> Any:
        return self._session.run(None, feeds(self._program, inputs))

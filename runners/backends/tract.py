"""ONNX programs on tract, Sonos' inference engine in Rust, through its Python wheel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...cases.elements import Array
from ...cases.onnx_model import feeds, onnx_bytes
from ...cases.program import Program
from ...cases.runner import Words
from .onnx_library import Call, OnnxLibrary, nameless_file

WORDS = (
    Words(r"Unimplemented\(|Unsupported operator set for", "operator-version", plain=True),
    Words(r"Unsupported DatumType in the public API|does not support [A-Z]\d+$", "type", plain=True),
    # Inputs that it only takes as constants, and sizes that it must know.
    Words(r"Non (constant|uniform) \S+ is not supported", "dynamic", plain=True),
    Words(r"(must be|to be|[Aa]s|are not|is) (a )?(const(ants?)?\b|known)", "dynamic", plain=True),
    Words(r"input is variable|Only constant|[Ee]xpects? (a )?constant", "dynamic", plain=True),
    Words(r"can not be typed|Expected dim and value to be determined", "dynamic", plain=True),
    Words(r"Undetermined symbol in expression|square of symbols|Impossible to unify .*Sym\(", "dynamic", plain=True),
    Words(r"(is not supported|unsupported)( \(deprecated|$)|Unsupported mode", "attribute", plain=True),
    # Refusals of valid or invalid programs.
    Words(r"is not a number|Impossible to unify [A-Z]\w* with", "type"),
    Words(r"[Cc]an ?not broadcast|Impossible to unify", "shape"),
    Words(r"attribute", "attribute"),
    Words(r"Wrong input number|Wrong number of outputs|out of bounds", "invalid"),
)
"""The messages of tract 0.23."""


class Tract(OnnxLibrary):
    """tract: loads a model, infers its shapes, and optimises it."""

    name = module = package = "tract"
    words = WORDS

    def __init__(self) -> None:
        os.environ["RUST_LIB_BACKTRACE"] = "0"  # before its first error: a stack below each costs more than the run
        super().__init__()

    def compiled(self, program: Program) -> Call:
        """Load and optimise the model of `program`."""
        with nameless_file(onnx_bytes(program)) as path:
            model = self.library.onnx().load(path)
        names = [model.input_name(i) for i in range(model.input_count())]
        runnable = model.into_model().into_runnable()

        def run(inputs: Sequence[Array]) -> list[Any]:
            given = feeds(program, inputs)
            return [output.to_numpy() for output in runnable.run([given[name] for name in names])]

        return run

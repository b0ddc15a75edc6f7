"""The index of a corpus: every case in lines of words, for readers without JSON; and the names of folders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import quote

from ..batch import Batch
from ..errors import OpconformError
from ..expectation import Option
from ..program import Attribute, Body, Input, Program, SparseTensor, Tensor
from ..structures import Structure
from .descriptor import SCHEMA
from .programs import attribute_value

INDEX = "cases.txt"
LONGEST = 80
"""The characters that the name of a program's folder may have."""

_DIGEST = 12
_UNSAFE = re.compile(r"[^A-Za-z0-9-]+")
_FLOATS = ("float", "f32")


def index_head(form: str) -> str:
    """Return the first line of an index; `form` is the corpus's format."""
    return _line("opconform-corpus", str(SCHEMA), form)


def index_entry(case: Batch, folder: str) -> str:
    """Return the lines of one case, whose files are in `folder`; an empty one ends them.

    Raises OpconformError if a name is no word.
    """
    lines = [_line("case", folder), _line("id", case.id), *_program(case.program)]
    lines += [_line("output", one.name, one.type) if one else _line("omitted-output") for one in case.program.outputs]
    if case.expectation.invalid:
        lines.append(_line("invalid", *([] if case.mended is None else [case.mended])))
    for option in case.expectation.options:
        lines += _option(option)
    return "".join([*lines, "\n"])


def _program(program: Program) -> Iterator[str]:
    operator = program.operator
    opset = "-" if program.opset is None else str(program.opset)
    yield _line("operator", operator.standard, operator.domain or "-", operator.name, str(operator.version), opset)
    for attribute in program.attributes:
        yield _line("attribute", attribute.name, attribute.kind, *_values(attribute))
    for one in program.inputs:
        yield from [_line("omitted")] if one is None else _input(one)
    for one in program.captured:
        yield _line("captured", one.name)
        yield from _input(one)


def _input(given: Input) -> Iterator[str]:
    if given.structure is None:
        yield _line("input" if given.constant is None else "constant", given.name, given.type, *map(str, given.dims))
        return
    yield _line("structured", given.name, given.type, _structure(given.structure))
    for leaf in given.leaves:
        yield _line("input", given.name, leaf.type, *map(str, leaf.dims or ()))


def _structure(structure: Structure) -> str:
    """Return a structure as a word: `[2x3,scalar]` is a sequence, `?2x3` an optional, `{2}` a map of two entries."""
    match structure.kind:
        case "sequence":
            return f"[{','.join(map(_structure, structure.items))}]"
        case "optional":
            return f"?{''.join(map(_structure, structure.items))}"
        case "map":
            return f"{{{structure.count}}}"
    return "*" if structure.dims is None else "x".join(map(str, structure.dims)) or "scalar"


def _values(attribute: Attribute) -> Iterator[str]:
    for one in attribute.value if isinstance(attribute.value, tuple) else (attribute.value,):
        if isinstance(one, str):
            yield f"={quote(one, safe='')}"
        elif isinstance(one, Tensor | SparseTensor | Body):
            told = attribute_value(one)
            yield f"={quote(json.dumps(told, separators=(',', ':')), safe='')}"
        else:
            yield float(one).hex() if attribute.kind.startswith(_FLOATS) else str(int(one))


def _option(option: Option) -> Iterator[str]:
    flags = ["exceptional"] * option.exceptional + ["declared"] * (option.level == "declared")
    yield _line("option", option.kind, *flags, *(f"{silence}={answer}" for silence, answer in option.labels))
    if option.structure:
        yield _line("structure", *map(_structure, option.structure))
    for check in option.checks:
        settings = (f"{name}={quote(str(setting), safe='')}" for name, setting in check.settings)
        yield _line("check", check.name, *map(str, check.outputs), *settings)
    for place, bounds in enumerate(option.outputs):
        if bounds.spread is not None:
            yield _line("spread", str(place), bounds.spread.limit.hex())


def _line(*words: str) -> str:
    for word in words:
        if not word or not word.isascii() or not word.isprintable() or " " in word:
            raise OpconformError(f"{INDEX}: {word!r} is no word of printable ASCII, which a corpus needs for names")
    return " ".join(words) + "\n"


def program_folder(program: Program) -> str:
    """Return the name of a program's folder, made from its content alone.

    `test_onnx_ReduceMean-13_float32_3x2x2_6f1c52a0b3d4`: letters, digits, `-` and `_`. It differs from every other
    program's in more than upper and lower case, by the first digits of the program's key. ONNX's loader wants `test_`.
    """
    parts = [
        str(program.operator),
        "-".join(dict.fromkeys(i.type for i in program.feeds)),
        "-".join(dict.fromkeys("x".join(map(_extent, i.dims)) or "scalar" for i in program.feeds)),
    ]
    slug = "_".join(_UNSAFE.sub("_", part).strip("_") for part in parts if part)
    begun = f"test_{slug}"[: LONGEST - _DIGEST - 1].rstrip("_-")
    return f"{begun}_{program.key[:_DIGEST]}"


def _extent(size: int | str) -> str:
    return "n" if isinstance(size, str) else str(size)

"""The index of a corpus: every case in lines of words, for readers without JSON; see docs/cpp-vendors.md."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from .corpus_descriptor import SCHEMA
from .errors import OpconformError
from .expectation import Option
from .model import Attribute, Case, Program

INDEX = "cases.txt"
_FLOATS = ("float", "f32")


def index_head(form: str) -> str:
    """Return the first line of an index; `form` is the corpus's format."""
    return _line("opconform-corpus", str(SCHEMA), form)


def index_entry(case: Case, folder: str) -> str:
    """Return the lines of one case, whose files are in `folder`; an empty one ends them.

    Raises OpconformError if a name is no word.
    """
    lines = [_line("case", folder), _line("id", case.id), *_program(case.program)]
    lines += [_line("output", one.name, one.type) for one in case.program.outputs]
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
        if one is None:
            yield _line("omitted")
        else:
            yield _line("input" if one.constant is None else "constant", one.name, one.type, *map(str, one.dims))


def _values(attribute: Attribute) -> Iterator[str]:
    for one in attribute.value if isinstance(attribute.value, tuple) else (attribute.value,):
        if isinstance(one, str):
            yield f"={quote(one, safe='')}"
        else:
            yield float(one).hex() if attribute.kind.startswith(_FLOATS) else str(int(one))


def _option(option: Option) -> Iterator[str]:
    flags = ["exceptional"] * option.exceptional + ["declared"] * (option.level == "declared")
    yield _line("option", option.kind, *flags, *(f"{silence}={answer}" for silence, answer in option.labels))
    for place, bounds in enumerate(option.outputs):
        if bounds.spread is not None:
            yield _line("spread", str(place), bounds.spread.limit.hex())


def _line(*words: str) -> str:
    for word in words:
        if not word or not word.isascii() or not word.isprintable() or " " in word:
            raise OpconformError(f"{INDEX}: {word!r} is no word of printable ASCII, which a corpus needs for names")
    return " ".join(words) + "\n"

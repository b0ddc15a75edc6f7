"""Bodies of control flow: graphs in ONNX's own text, with the types of a case in place of letters."""

from __future__ import annotations

import functools
import re

from ..cases.errors import OpconformError
from ..cases.program import Body
from ..specs.model import VersionSpec

_LETTER = re.compile(r"\{(\w+)\}")
_NAMES = {"float32": "float", "float64": "double"}


def body_of(version: VersionSpec, types: tuple[str, ...], name: str) -> Body:
    """Return the body that a spec calls `name`, `{V}` in it replaced by the type that the case has for V.

    Raises OpconformError if there is no such body, or ONNX's parser does not read it.
    """
    if name not in version.graphs:
        raise OpconformError(f"{version.operator} has no graph {name!r}; it has {', '.join(version.graphs)}")
    letters = [letter for letter in version.signature.types if letter not in version.signature.ties]
    bound = dict(zip(letters, types, strict=False))
    text = _LETTER.sub(lambda found: _onnx_type(bound.get(found[1], found[1])), version.graphs[name])
    return _parsed(text)


def _onnx_type(name: str) -> str:
    return re.sub(r"\w+", lambda word: _NAMES.get(word[0], word[0]), name)


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> Body:
    import onnx.parser  # noqa: PLC0415 - it takes long, and few operators have bodies

    from ..cases.onnx_model import body_from  # noqa: PLC0415 - imports onnx

    try:
        return body_from(onnx.parser.parse_graph(text))
    except (onnx.parser.ParseError, ValueError) as error:
        raise OpconformError(f"{text!r} is no graph: {error}") from None

"""Case ids: a grammar that speaks, derived from a case's content alone, parsed and printed without loss.

`onnx/ReduceMean-13/float32/3x2x2/axes=-2;keepdims=0/uniform`: operator version, types, shapes, settings, fill, and the
edge's name where the case is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from .errors import CaseIdError

Shape: TypeAlias = tuple[int, ...]

_FORM = "standard/Operator-version/types/shapes/settings/fill[/edge]"
_TOO_MANY_INPUTS = 100_000
_WORD = re.compile(r"[A-Za-z0-9_.^+-]+")
_SETTING = re.compile(r"([A-Za-z_][\w.-]*)=([^=;/\s]+)")
_SHAPES = re.compile(r"(?:([1-9]\d{0,5})\*)?(scalar|\d{1,10}(?:x\d{1,10})*)")


@dataclass(frozen=True, slots=True)
class CaseId:
    """The parts of a case id.

    `types` and `shapes` are those that the case varies, in the signature's order. `settings` are sorted by name, their
    values as text. `edge` is None for a case that the covering array chose.
    """

    operator: str
    types: tuple[str, ...]
    shapes: tuple[Shape, ...]
    settings: tuple[tuple[str, str], ...]
    fill: str
    edge: str | None = None

    def __str__(self) -> str:
        settings = ";".join(f"{name}={value}" for name, value in self.settings) or "-"
        parts = [self.operator, ",".join(self.types), print_shapes(self.shapes), settings, self.fill]
        return "/".join([*parts, self.edge] if self.edge else parts)

    def setting(self, name: str) -> str | None:
        """Return the text of one setting, or None if the id does not carry it."""
        return next((value for key, value in self.settings if key == name), None)


def parse_id(text: str) -> CaseId:
    """Parse a case id. Raises CaseIdError that says which part is wrong."""
    parts = text.split("/")
    if len(parts) not in (6, 7):
        raise CaseIdError(f"{text!r} is no case id: it has {len(parts)} parts, expected {_FORM}")
    types = tuple(parts[2].split(","))
    for word in (*parts[:2], *types, *parts[5:]):
        if not _WORD.fullmatch(word):
            raise CaseIdError(f"{text!r} is no case id: {word!r} is no name, expected {_FORM}")
    settings = _parse_settings(parts[4], text)
    edge = parts[6] if len(parts) == 7 else None
    found = CaseId("/".join(parts[:2]), types, _parse_shapes(parts[3], text), settings, parts[5], edge)
    if str(found) != text:  # one id for one content
        raise CaseIdError(f"{text!r} is no case id: it is written {str(found)!r}")
    return found


def print_shapes(shapes: Iterable[Shape]) -> str:
    """Return shapes as an id has them: `3x2,scalar`, repeats as `40*3x2`, and `none` for no input."""
    runs = [(_print_shape(shape), len(list(run))) for shape, run in groupby(shapes)]
    return ",".join(f"{n}*{shape}" if n > 1 else shape for shape, n in runs) or "none"


def _print_shape(shape: Shape) -> str:
    return "x".join(map(str, shape)) if shape else "scalar"


def _parse_shapes(text: str, whole: str) -> tuple[Shape, ...]:
    if text == "none":
        return ()
    shapes: list[Shape] = []
    for part in text.split(","):
        match = _SHAPES.fullmatch(part)
        if not match:
            raise CaseIdError(f"{whole!r} is no case id: {part!r} is no shape; expected 3x2, scalar, 40*3x2 or none")
        shape = () if match[2] == "scalar" else tuple(int(d) for d in match[2].split("x"))
        shapes += [shape] * int(match[1] or 1)
        if len(shapes) > _TOO_MANY_INPUTS:
            raise CaseIdError(f"{whole!r} is no case id: more than {_TOO_MANY_INPUTS} inputs")
    return tuple(shapes)


def _parse_settings(text: str, whole: str) -> tuple[tuple[str, str], ...]:
    if text == "-":
        return ()
    settings = []
    for part in text.split(";"):
        match = _SETTING.fullmatch(part)
        if not match:
            raise CaseIdError(f"{whole!r} is no case id: {part!r} is no setting; expected name=value, or - for none")
        settings.append((match[1], match[2]))
    if settings != sorted(dict(settings).items()):
        raise CaseIdError(f"{whole!r} is no case id: settings stand once each, sorted by name")
    return tuple(settings)

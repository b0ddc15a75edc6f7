"""Profiles (`--profile FILE`): what a product promises to implement; inside it `unsupported` fails a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

from ..cases.errors import CaseIdError, OpconformError
from ..cases.ids import CaseId, parse_id, part_size
from ..cases.program import NO_VERSION
from ..specs.fields import Fields, shown
from ..specs.groups import expand
from ..specs.problems import Problems
from ..specs.reading import read_file

ShapeWord: TypeAlias = Literal["static", "bounded", "dynamic"]

_SHAPES: tuple[ShapeWord, ...] = ("static", "bounded", "dynamic")
_ALL = "all"
_OPERATOR = re.compile(r"[a-z]+/[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised of one operator: versions as text and element types; None stands for all."""

    versions: frozenset[str] | None = None
    types: frozenset[str] | None = None


@dataclass(frozen=True)
class Profile:
    """A promise, by operator (`onnx/ReduceMean`).

    `rank` and `elements` limit each tensor whose shape a case id names, None for no limit. A program with symbolic
    dimensions is `dynamic`; `bounded`, dynamic up to a largest extent, is for programs that state one.
    """

    name: str
    version: str
    operators: Mapping[str, Promise]
    rank: int | None = None
    elements: int | None = None
    shapes: frozenset[ShapeWord] = frozenset(_SHAPES)
    digest: str | None = None

    def promises(self, case_id: str) -> bool:
        """Return whether a case is inside the profile; what cannot be parsed is not."""
        try:
            case = parse_id(case_id)
        except CaseIdError:
            return False
        shape: ShapeWord = "dynamic" if case.setting("dims") == "symbolic" else "static"
        return shape in self.shapes and self._promises_operator(case) and self._fits(case)

    def _promises_operator(self, case: CaseId) -> bool:
        for operator, promise in self.operators.items():
            version = _version(case.operator, operator)
            if version is not None:
                return (promise.versions is None or version in promise.versions) and (
                    promise.types is None or promise.types.issuperset(case.types)
                )
        return False

    def _fits(self, case: CaseId) -> bool:
        return all(
            (self.rank is None or not isinstance(part, tuple) or len(part) <= self.rank)
            and (self.elements is None or part_size(part) <= self.elements)
            for part in case.shapes
        )


def load_profile(path: Path | str) -> Profile:
    """Read a profile; its digest is the sha256 of the file's bytes.

    Raises SpecError or SpecErrors for what is wrong in the file, OpconformError if it cannot be read.
    """
    document = read_file(path)
    problems = Problems(document)
    fields = Fields(problems, (), required=("name", "version", "operators"), optional=("rank", "elements", "shapes"))
    shapes = cast("tuple[ShapeWord, ...]", fields.words("shapes", _SHAPES))
    found = Profile(
        fields.text("name"),
        fields.version("version"),
        _operators(fields),
        fields.whole("rank", 0),
        fields.whole("elements", 0),
        frozenset(shapes or _SHAPES),
        document.digest,
    )
    problems.raise_any()
    return found


def _operators(fields: Fields) -> dict[str, Promise]:
    value = fields.values.get("operators", {})
    if not isinstance(value, dict) or (fields.has("operators") and not value):
        fields.fail("operators", f"expected a mapping of operators, such as onnx/ReduceMean; read {shown(value)}")
        return {}
    found = {}
    for operator in value:
        if not _OPERATOR.fullmatch(str(operator)):
            message = f"{operator!r} is no operator; expected a standard and a name without version, as onnx/ReduceMean"
            fields.problems.add(("operators", operator), message, key=True)
            continue
        promise = Fields(fields.problems, ("operators", operator), optional=("versions", "types"))
        found[str(operator)] = Promise(_versions(promise), _types(promise))
    return found


def _versions(fields: Fields) -> frozenset[str] | None:
    if fields.values.get("versions", _ALL) == _ALL:
        return None
    return frozenset(fields.listed("versions", _one_version))


def _one_version(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        quote = ": quote it" if isinstance(value, float) else ""
        raise OpconformError(f"versions: expected all, or a list of versions; read {shown(value)}{quote}")
    return str(value)


def _types(fields: Fields) -> frozenset[str] | None:
    if fields.values.get("types", _ALL) == _ALL:
        return None
    return frozenset(name for group in fields.listed("types", _one_type) for name in group)


def _one_type(value: object) -> tuple[str, ...]:
    if not isinstance(value, str):
        raise OpconformError(f"types: expected all, or a list of element types; read {shown(value)}")
    return expand(value)


def _version(operator_version: str, operator: str) -> str | None:
    """Return which version of `operator` this is, None if it is another operator."""
    if operator_version == operator:
        return NO_VERSION
    version = operator_version.removeprefix(f"{operator}-")
    return version if version != operator_version else None

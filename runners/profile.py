"""Profiles (`--profile FILE`): what a product promises to implement; inside it `unsupported` fails a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ..cases.errors import CaseIdError
from ..cases.ids import CaseId, parse_id, part_size
from ..cases.program import NO_VERSION
from ..specs.groups import expand
from ..specs.model import ShapeWord
from ..specs.reading import read_file


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
    shapes: frozenset[ShapeWord] = frozenset(get_args(ShapeWord))
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
    from ..specs.schema import ProfileText, parsed  # noqa: PLC0415 - pydantic, which few runs need

    document = read_file(path)
    text = parsed(ProfileText, document)
    operators = {
        operator: Promise(
            None if one.versions is None else frozenset(one.versions),
            None if one.types is None else frozenset(t for word in one.types for t in expand(word)),
        )
        for operator, one in text.operators.items()
    }
    shapes = frozenset(text.shapes)
    return Profile(text.name, text.version, operators, text.rank, text.elements, shapes, document.digest)


def _version(operator_version: str, operator: str) -> str | None:
    """Return which version of `operator` this is, None if it is another operator."""
    if operator_version == operator:
        return NO_VERSION
    version = operator_version.removeprefix(f"{operator}-")
    return version if version != operator_version else None

"""The front door to spec files: one file read, checked and resolved, and the library of all."""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from pathlib import Path

from ..cases.errors import OpconformError, did_you_mean
from ..cases.model import NO_VERSION
from .model import Spec, Version, Vocabulary
from .reading import Document, SpecErrors, read_file


class UnknownOperator(OpconformError):  # noqa: N818 - named for what is unknown
    """An operator, or a version of one, that no spec file describes."""


def default_root() -> Path:
    """Return the folder of the spec files that come with this package."""
    return Path(str(importlib.resources.files(__package__ or "opconform.specs")))


def load_spec(path: Path | str, vocabulary: Mapping[str, Vocabulary] | None = None) -> Spec:
    """Read, check and resolve a spec file.

    `vocabulary` has the words of each family by its module's name; with None, families and their words are not
    checked. Raises SpecError if the file is no YAML that is accepted here, SpecErrors with all mistakes otherwise.
    """
    return spec_of(read_file(path), vocabulary)


def spec_of(document: Document, vocabulary: Mapping[str, Vocabulary] | None = None) -> Spec:
    """Check and resolve a spec that is read already; see `load_spec`."""
    from .build import build  # noqa: PLC0415 - it imports pydantic, which listing operators does not need

    return build(document, vocabulary)


class Library:
    """The spec files of a folder, `<standard>/<Operator>.yaml`, each read when it is asked for."""

    def __init__(self, root: Path | None = None, vocabulary: Mapping[str, Vocabulary] | None = None) -> None:
        """Take the files of `root`, by default those of this package; `vocabulary` as for `load_spec`."""
        self.root = root or default_root()
        self._vocabulary = vocabulary
        self._loaded: dict[str, Spec] = {}
        self._files = {f"{file.parent.name}/{file.stem}": file for file in sorted(self.root.glob("*/*.yaml"))}

    def operators(self) -> list[str]:
        """Return the operators, `onnx/ReduceMean`, sorted; no file is opened."""
        return sorted(self._files)

    def spec(self, operator: str) -> Spec:
        """Return an operator's spec. Raises UnknownOperator, SpecError, SpecErrors."""
        if operator not in self._loaded:
            if operator not in self._files:
                raise UnknownOperator(self._no_operator(operator))
            spec = load_spec(self._files[operator], self._vocabulary)
            if spec.operator != operator:
                message = f"the file is that of {operator}; read {spec.operator}"
                raise SpecErrors([spec.error(("operator",), message)])
            self._loaded[operator] = spec
        return self._loaded[operator]

    def operator_version(self, name: str) -> tuple[Spec, Version]:
        """Return the spec and version of `onnx/ReduceMean-13`, or of `onednn/ReduceMean`, which has no version.

        Raises UnknownOperator, SpecError, SpecErrors.
        """
        operator, dash, version = name.rpartition("-")
        if not dash or operator not in self._files:
            return self._only_version(name)
        spec = self.spec(operator)
        for known in spec.versions:
            if str(known) == version and known != NO_VERSION:
                return spec, known
        listed = ", ".join(str(spec.versions[v].operator) for v in spec.versions)
        raise UnknownOperator(f"no operator version is called {name!r}; there is {listed}")

    def _only_version(self, name: str) -> tuple[Spec, Version]:
        if name not in self._files:
            raise UnknownOperator(self._no_operator(name.rpartition("-")[0] or name, name))
        spec = self.spec(name)
        if NO_VERSION in spec.versions:
            return spec, NO_VERSION
        listed = ", ".join(str(one.operator) for one in spec.versions.values())
        raise UnknownOperator(f"{name!r} names no version; there is {listed}")

    def _no_operator(self, operator: str, written: str | None = None) -> str:
        hint = did_you_mean(operator, self._files) or f"; there are {len(self._files)}, `opconform list` shows them"
        return f"no operator is called {written or operator!r}{hint}"

"""The front door to spec files: one file read, checked and resolved, and the library of all."""

from __future__ import annotations

import hashlib
import importlib.resources
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..cases.errors import OpconformError, did_you_mean
from ..cases.program import NO_VERSION
from .model import STANDARDS, Spec, Version, Vocabulary
from .reading import Document, SpecError, SpecErrors, read_file

if TYPE_CHECKING:
    from .families import Families


class UnknownOperator(OpconformError):  # noqa: N818 - named for what is unknown
    """An operator, or a version of one, that no spec file describes."""


def default_root() -> Path:
    """Return the folder of the spec files that come with this package."""
    return Path(str(importlib.resources.files(__package__ or "opconform.specs")))


def load_spec(path: Path | str, vocabulary: Mapping[str, Vocabulary] | None = None) -> Spec:
    """Read, check and resolve a spec file; the families that it uses are in the folder `families` beside its own.

    `vocabulary` has the words of each family by its module's name; with None, families and their words are not
    checked. Raises SpecError if the file is no YAML that is accepted here, SpecErrors with all mistakes otherwise.
    """
    return spec_of(read_file(path), vocabulary)


def spec_of(
    document: Document, vocabulary: Mapping[str, Vocabulary] | None = None, families: Families | None = None
) -> Spec:
    """Check and resolve a spec that is read already; see `load_spec`."""
    from .build import build  # noqa: PLC0415 - it imports pydantic, which listing operators does not need

    return build(document, vocabulary, families or _families(document))


def resolved(document: Document) -> str:
    """Return all that a spec file says, with what it uses, the origin beside each line. Raises SpecErrors."""
    from .build import fitted  # noqa: PLC0415 - as above
    from .families import resolved as written  # noqa: PLC0415

    return written(fitted(document, _families(document)))


def _families(document: Document) -> Families:
    from .families import Families  # noqa: PLC0415 - as above

    return Families(Path(document.file).parent.parent / "families")


class Library:
    """The spec files of a folder, `<standard>/<Operator>.yaml`, each read when it is asked for.

    `broken` are operators that were asked for among others and whose files are wrong, each with its mistakes.
    """

    def __init__(self, root: Path | None = None, vocabulary: Mapping[str, Vocabulary] | None = None) -> None:
        """Take the files of `root`, by default those of this package; `vocabulary` as for `load_spec`."""
        self.root = root or default_root()
        self._vocabulary = vocabulary
        self._loaded: dict[str, Spec | OpconformError] = {}
        self._families: Families | None = None
        self.broken: dict[str, OpconformError] = {}
        self._files = {f"{s}/{file.stem}": file for s in STANDARDS for file in sorted((self.root / s).glob("*.yaml"))}

    def operators(self) -> list[str]:
        """Return the operators, `onnx/ReduceMean`, sorted; no file is opened."""
        return sorted(self._files)

    def spec(self, operator: str) -> Spec:
        """Return an operator's spec. Raises UnknownOperator, SpecError, SpecErrors."""
        if operator not in self._loaded:
            if operator not in self._files:
                raise UnknownOperator(self._no_operator(operator))
            try:
                self._loaded[operator] = self._load(operator)
            except (SpecError, SpecErrors) as error:
                self._loaded[operator] = error
        found = self._loaded[operator]
        if isinstance(found, OpconformError):
            raise found
        return found

    def specs(self) -> list[Spec]:
        """Return all specs but those whose files are wrong."""
        return [found for operator in self.operators() if isinstance(found := self._found(operator), Spec)]

    def usable(self, operators: Iterable[str]) -> Iterator[Spec]:
        """Yield the specs of these operators; those whose files are wrong are told by `broken`.

        Raises SpecError or SpecErrors if the files of all of them are wrong.
        """
        wrong, has_any = [], False
        for operator in operators:
            found = self._found(operator)
            if isinstance(found, Spec):
                has_any = True
                yield found
            else:
                self.broken[operator] = found
                wrong.append(found)
        if wrong and not has_any:
            raise wrong[0]

    def refuse_broken(self) -> None:
        """Raise OpconformError with the mistakes of operators that were asked for among others and left out."""
        if self.broken:
            raise OpconformError("\n".join(f"{name} is left out: {error}" for name, error in self.broken.items()))

    def digest(self, operator: str) -> str:
        """Return the digest of an operator's file with all that it uses, whether it is right or not."""
        found = self._found(operator)
        return (
            found.digest if isinstance(found, Spec) else hashlib.sha256(self._files[operator].read_bytes()).hexdigest()
        )

    def _found(self, operator: str) -> Spec | OpconformError:
        try:
            return self.spec(operator)
        except (SpecError, SpecErrors) as error:
            return error

    def resolved(self, operator: str) -> str:
        """Return an operator's file with all that it uses, the origin beside each line.

        Raises UnknownOperator, SpecError, SpecErrors.
        """
        if operator not in self._files:
            raise UnknownOperator(self._no_operator(operator))
        return resolved(read_file(self._files[operator]))

    def _load(self, operator: str) -> Spec:
        if self._families is None:
            from .families import Families  # noqa: PLC0415 - it imports pydantic, which listing operators does not need

            self._families = Families(self.root / "families")
        spec = spec_of(read_file(self._files[operator]), self._vocabulary, self._families)
        if spec.operator != operator:
            raise SpecErrors([spec.error(("operator",), f"the file is that of {operator}; read {spec.operator}")])
        return spec

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

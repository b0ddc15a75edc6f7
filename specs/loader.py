"""Loads spec files: reads, checks and resolves one file, and the library of all files."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import importlib.resources
import importlib.util
import os
import pickle
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from ..cases.errors import OpconformError, did_you_mean
from ..cases.program import NO_VERSION
from .model import STANDARDS, Spec, Version, Vocabulary
from .reading import Document, SpecError, SpecErrors, read_file

if TYPE_CHECKING:
    from .families import Families


class UnknownOperator(OpconformError):  # noqa: N818 - named for what is unknown
    """No spec file has this operator or version."""


def default_root() -> Path:
    """Return the folder of the spec files that come with this package."""
    return Path(str(importlib.resources.files(__package__ or "opconform.specs")))


def spec_of(
    document: Document,
    vocabulary: Mapping[str, Vocabulary] | None = None,
    families: Families | None = None,
    formula: Callable[[str], tuple[Spec, Version]] | None = None,
) -> Spec:
    """Check and resolve a document; `families` are by default read from the folder next to the file's own.

    `formula` returns the spec and version of an operator version to whose formula a document is bound.

    `vocabulary` has the words of each family by its module's name; with None, families and their words are not
    checked. Raises SpecErrors with all mistakes.
    """
    from .build import build  # noqa: PLC0415 - it imports pydantic, which listing operators does not need
    from .families import Families  # noqa: PLC0415 - as above

    families = families or Families(Path(document.file).parent.parent / "families")
    return build(document, vocabulary, families, formula or Library(vocabulary=vocabulary).operator_version)


_VERSIONS = re.compile(rb"^versions:(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_VERSION = re.compile(rb"^  [^\s#:][^:\n]*:", re.MULTILINE)
_FORMULA = re.compile(rb"^[^#\n]*\bformula: *([a-z]+/\w+)", re.MULTILINE)


class _Compiled:
    """A cache of built specs, keyed by files and code, as Python caches bytecode."""

    def __init__(self, root: Path, vocabulary: Mapping[str, Vocabulary] | None) -> None:
        words = (
            [] if vocabulary is None else [(name, _sorted(words_of)) for name, words_of in sorted(vocabulary.items())]
        )
        digest = hashlib.sha256(repr((sys.version, vocabulary is None, words)).encode())
        own = Path(__file__).parent
        for file in sorted(
            [*own.glob("*.py"), own.parent / "cases" / "program.py", *(root / "families").glob("*.yaml")]
        ):
            digest.update(file.read_bytes())
        self._begun = digest.digest()
        self._kind = "unchecked" if vocabulary is None else "spec"  # each has a file, which the other would replace

    def load(self, file: Path, build: Callable[[], Spec], content: Callable[[], bytes]) -> Spec:
        """Return the spec of a file, from the cache or by `build`; errors are not cached.

        `content` returns all that the spec follows from besides families, and may raise OSError.
        """
        kept = Path(importlib.util.cache_from_source(str(file), optimization=self._kind))
        try:
            key = hashlib.sha256(self._begun + str(file).encode() + content()).digest()
        except OSError:
            return build()  # says why
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):  # missing, or truncated
            stored = kept.read_bytes()
            if stored.startswith(key):
                loaded: Spec = pickle.loads(stored[len(key) :])  # noqa: S301 - it stands beside our own code
                return loaded
        spec = build()
        if not sys.dont_write_bytecode:
            with contextlib.suppress(OSError):  # a read-only installation
                kept.parent.mkdir(parents=True, exist_ok=True)
                fresh = kept.with_suffix(f".{os.getpid()}")
                fresh.write_bytes(key + pickle.dumps(spec))
                fresh.replace(kept)
        return spec


def _sorted(words: Vocabulary) -> list[tuple[str, list[str] | None]]:
    """Return a vocabulary's content, in an order that does not depend on the process."""
    return [
        (field.name, None if (known := getattr(words, field.name)) is None else sorted(known))
        for field in fields(words)
    ]


class Library:
    """The spec files of a folder, `<standard>/<Operator>.yaml`, each read on first use.

    `broken` has the operators that `usable` left out because their files have mistakes, with the mistakes.
    """

    def __init__(
        self, root: Path | None = None, vocabulary: Mapping[str, Vocabulary] | None = None, *, keep: bool | None = None
    ) -> None:
        """Use the files of `root`, by default this package's; `vocabulary` as for `spec_of`.

        `keep`: cache built specs next to the files, in `__pycache__`; by default only for this package, since anybody
        who can write there can run code here.
        """
        self.root = root or default_root()
        self._vocabulary = vocabulary
        self._keep = root is None if keep is None else keep
        self._loaded: dict[str, Spec | OpconformError] = {}
        self._bound_to: set[str] = set()  # the operators whose formula is being looked up
        self.broken: dict[str, OpconformError] = {}
        self._files = {f"{s}/{file.stem}": file for s in STANDARDS for file in sorted((self.root / s).glob("*.yaml"))}

    def operators(self) -> list[str]:
        """Return the operators, `onnx/ReduceMean`, sorted; no file is opened."""
        return sorted(self._files)

    def version_counts(self) -> Counter[str]:
        """Return the number of operator versions of each standard, from the text of the files, without building specs.

        A file that cannot be read does not count.
        """
        counts: Counter[str] = Counter()
        for operator, file in self._files.items():
            with contextlib.suppress(OSError):
                section = _VERSIONS.search(file.read_bytes())
                counts[operator.partition("/")[0]] += len(_VERSION.findall(section[1])) if section else 0
        return counts

    def spec(self, operator: str) -> Spec:
        """Return an operator's spec. Raises UnknownOperator, SpecError, SpecErrors."""
        if operator not in self._loaded:
            try:
                self._loaded[operator] = self._load(operator)
            except (SpecError, SpecErrors) as error:
                self._loaded[operator] = error
        loaded = self._loaded[operator]
        if isinstance(loaded, OpconformError):
            raise loaded
        return loaded

    def specs(self, operators: Iterable[str] | None = None) -> list[Spec]:
        """Return the specs of these operators, by default of all, except for files with mistakes."""
        collects = gc.isenabled()
        gc.disable()  # nothing of what is read is garbage, and looking for some takes longer than reading
        try:
            names = self.operators() if operators is None else operators
            return [spec for operator in names if isinstance(spec := self._spec_or_error(operator), Spec)]
        finally:
            if collects:
                gc.enable()

    def usable(self, operators: Iterable[str]) -> Iterator[Spec]:
        """Yield the specs of these operators; operators whose files have mistakes are added to `broken`.

        Raises SpecError or SpecErrors if all of the files have mistakes.
        """
        wrong, has_any = [], False
        for operator in operators:
            spec = self._spec_or_error(operator)
            if isinstance(spec, Spec):
                has_any = True
                yield spec
            else:
                self.broken[operator] = spec
                wrong.append(spec)
        if wrong and not has_any:
            raise wrong[0]

    def refuse_broken(self) -> None:
        """Raise OpconformError with the mistakes of the operators that `usable` left out."""
        if self.broken:
            raise OpconformError("\n".join(f"{name} is left out: {error}" for name, error in self.broken.items()))

    @property
    def digest(self) -> str:
        """The sha256 of the names and the content of all files, those of families included."""
        digest = hashlib.sha256()
        families = {f"families/{file.stem}": file for file in (self.root / "families").glob("*.yaml")}
        for name, file in sorted({**self._files, **families}.items()):
            digest.update(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return digest.hexdigest()

    def _spec_or_error(self, operator: str) -> Spec | OpconformError:
        try:
            return self.spec(operator)
        except (SpecError, SpecErrors) as error:
            return error

    def resolved(self, operator: str) -> str:
        """Return an operator's file merged with its families, with the origin after each line.

        Raises UnknownOperator, SpecError, SpecErrors.
        """
        from .build import fitted  # noqa: PLC0415 - it imports pydantic, which listing operators does not need
        from .families import resolved  # noqa: PLC0415 - as above

        return resolved(fitted(read_file(self._file(operator)), self._families))

    def _file(self, operator: str) -> Path:
        if operator not in self._files:
            raise UnknownOperator(self._no_operator(operator))
        return self._files[operator]

    @functools.cached_property
    def _families(self) -> Families:
        from .families import Families  # noqa: PLC0415 - it imports pydantic, which kept specs do without

        return Families(self.root / "families")

    @functools.cached_property
    def _compiled(self) -> _Compiled:
        return _Compiled(self.root, self._vocabulary)

    def _load(self, operator: str) -> Spec:
        file = self._file(operator)

        def build() -> Spec:
            spec = spec_of(read_file(file), self._vocabulary, self._families, self._formula)
            if spec.operator != operator:
                raise SpecErrors(
                    [spec.error(("operator",), f"expected {operator}, as in the file's name; read {spec.operator}")]
                )
            return spec

        return self._compiled.load(file, build, lambda: self.content(operator)) if self._keep else build()

    def content(self, operator: str) -> bytes:
        """Return the bytes of an operator's file, and of the files of operators to whose formula it is bound.

        Raises UnknownOperator, OSError.
        """
        content = self._file(operator).read_bytes()
        bound = (self._files.get(name.decode()) for name in _FORMULA.findall(content))
        return b"".join([content, *(file.read_bytes() for file in bound if file is not None)])

    def _formula(self, name: str) -> tuple[Spec, Version]:
        """Return the operator version to whose formula a file is bound; from this package, if the folder has none."""
        operator = name.rpartition("-")[0] or name
        if operator in self._bound_to:
            raise OpconformError(f"{operator} is bound to its own formula, directly or by way of others")
        here = operator in self._files or self.root == default_root()
        self._bound_to.add(operator)
        try:
            return (self if here else Library(vocabulary=self._vocabulary)).operator_version(name)
        finally:
            self._bound_to.discard(operator)

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
        listed = ", ".join(str(version_spec.operator) for version_spec in spec.versions.values())
        raise UnknownOperator(f"{name!r} names no version; there is {listed}")

    def _no_operator(self, operator: str, written: str | None = None) -> str:
        hint = did_you_mean(operator, self._files) or f"; there are {len(self._files)}, `opconform list` shows them"
        return f"no operator is called {written or operator!r}{hint}"

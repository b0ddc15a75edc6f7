"""Globs that name cases: matched, as fnmatchcase does, against a case id, and against its operator version alone."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fnmatch import fnmatchcase

_WILD = frozenset("*?[")


def operator_version_of(case_id: str) -> str:
    """Return the operator version that a case id begins with, `onnx/ReduceMean-13`."""
    end = case_id.find("/", case_id.find("/") + 1)  # asked of every result, more than once
    return case_id if end < 0 or "/" not in case_id[:end] else case_id[:end]


def split_version(operator_version: str) -> tuple[str, str]:
    """Return operator and version, `onnx/ReduceMean` and `13`; the version is empty where the name carries none."""
    operator, dash, version = operator_version.rpartition("-")
    return (operator, version) if dash else (operator_version, "")


@dataclass(frozen=True)
class Glob:
    """A glob as it was written."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def is_case(self) -> bool:
        """Whether it is the id of one case."""
        return self._literal == self.text != operator_version_of(self.text)

    @functools.cached_property
    def _literal(self) -> str:
        return self.text[: next((i for i, c in enumerate(self.text) if c in _WILD), None)]

    @property
    def operator_version(self) -> str | None:
        """The one operator version that it is about, None where that part has a wildcard."""
        found = operator_version_of(self.text)
        return found if "/" in found and len(found) <= len(self._literal) else None

    def matches(self, case_id: str) -> bool:
        """Whether it names this case."""
        if not case_id.startswith(self._literal):  # most do not, and are told so cheaply
            return False
        return fnmatchcase(case_id, self.text) or fnmatchcase(operator_version_of(case_id), self.text)

    def concerns(self, operator_version: str) -> bool:
        """Whether it is about cases of this operator version; read part by part, so that `*` stops at a slash."""
        parts = self.text.split("/")
        if len(parts) > 2:
            return fnmatchcase(operator_version, "/".join(parts[:2]))
        return fnmatchcase(operator_version, self.text) or (
            self.text.endswith("*") and operator_version.startswith(self._literal)
        )

"""Reads what a standard's library tells of its operators, in processes of their own, which some questions end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from ..cases.errors import OpconformError
from ..cases.runner import NotInstalled
from ..specs.audit.library import LibraryAttribute, LibraryReading, LibrarySchema, Listing, Question
from ..specs.model import Signature, Spec, Version
from .loading import make
from .pool import Begin, Found, Limits, Loss, Pool, Stray, Task, WorkerStartError

OPERATIONS: Mapping[str, str] = {
    "openvino": f"{__package__}.openvino_operations:OpenVinoOperations",
    "onednn": f"{__package__}.onednn_operations:OneDnnOperations",
}
"""The class that asks the library of each standard."""

_LISTING = "listing"
_LIMITS = Limits(run_seconds=30.0)


class Operations(Protocol):
    """A library that can be asked about its operations."""

    exact: bool
    untold: tuple[str, ...]

    def listing(self) -> Listing:
        """Return its operators."""

    def told(self, question: Question, /) -> LibrarySchema:
        """Return what it tells of one of them."""


class LibraryLost(Exception):  # noqa: N818 - what happened to it
    """A library's process ended before the library said which operators it has."""


def read_library(standard: str, specs: Iterable[Spec], target: str | None = None) -> LibraryReading:
    """Return what a standard's library tells of all its operator versions, asked with the signatures of specs.

    `target` names another class than that of the standard. NotInstalled without the library, OpconformError if it
    cannot be used, LibraryLost.
    """
    signatures = {f"{spec.name}-{v}": one.signature for spec in specs for v, one in spec.versions.items()}
    answers = _Answers(partial(_Asking, target or OPERATIONS[standard], signatures))
    answers.read()
    if answers.listing is None:
        raise LibraryLost("it did not say which operators it has")
    return LibraryReading(standard, answers.listing, answers.told, answers.exact, answers.untold)


class _Answers:
    """What a library has said so far; what it is asked depends on its listing."""

    def __init__(self, factory: Callable[[], Task]) -> None:
        self._pool = Pool(factory, jobs=1, limits=_LIMITS)
        self._keys: dict[str, tuple[str, Version]] = {}
        self.listing: Listing | None = None
        self.exact = False
        self.untold: tuple[str, ...] = ()
        self.told: dict[tuple[str, Version], LibrarySchema | str] = {}

    def read(self) -> None:
        """Ask everything. Raises LibraryLost, NotInstalled, OpconformError."""
        try:
            for answer in self._pool.run(self._batches()):
                self._take(answer)
        except WorkerStartError as error:
            if error.kind == NotInstalled.__name__:
                raise NotInstalled(error.message) from None
            if error.kind == OpconformError.__name__:
                raise OpconformError(error.message) from None
            raise LibraryLost(f"{error}\n{error.tail}" if error.tail else str(error)) from None

    def _batches(self) -> Iterator[Sequence[str]]:
        yield [_LISTING]
        while self.listing is None:
            yield []
        yield list(self._keys)

    def _take(self, answer: Found) -> None:
        if isinstance(answer, Stray):  # what was asked then has been answered since
            return
        key = answer.key if isinstance(answer, Loss) else answer[0]
        if key != _LISTING:
            told = _words(answer) if isinstance(answer, Loss) else _told_from(json.loads(answer[1]))
            self.told[self._keys[key]] = told
        elif isinstance(answer, Loss):
            raise LibraryLost(f"asked for its operators, {_words(answer)}")
        else:
            self._take_listing(json.loads(answer[1]))

    def _take_listing(self, said: Mapping[str, Any]) -> None:
        versions = {name: tuple(of_name) for name, of_name in said["versions"].items()}
        about = (said["library"], said["version"], said["group"])
        self.listing = Listing(*about, versions, frozenset(said["later"]), said["newest"])
        self._keys = {f"{name}-{version}": (name, version) for name in versions for version in versions[name]}
        self.exact, self.untold = said["exact"], tuple(said["untold"])


class _Asking:
    """What the process of a library does: answers questions by their keys, as JSON."""

    def __init__(self, target: str, signatures: Mapping[str, Signature]) -> None:
        self._operations: Operations = make("the library", target)
        self._signatures = signatures

    def run(self, keys: Sequence[str], begin: Begin, /) -> Iterator[bytes]:
        """Yield the answers."""
        for index, key in enumerate(keys):
            begin(index, "run")
            yield json.dumps(self._listing() if key == _LISTING else self._told(key)).encode()

    def _told(self, key: str) -> dict[str, Any]:
        name, _, text = key.rpartition("-")
        version = int(text) if text.isdecimal() else text
        return _told_json(self._operations.told(Question(name, version, self._signatures.get(key))))

    def _listing(self) -> dict[str, Any]:
        listing, operations = self._operations.listing(), self._operations
        return {
            "library": listing.library,
            "version": listing.version,
            "group": listing.group,
            "versions": {name: list(versions) for name, versions in listing.versions.items()},
            "later": sorted(listing.later),
            "newest": listing.newest,
            "exact": operations.exact,
            "untold": operations.untold,
        }


def _told_json(told: LibrarySchema) -> dict[str, Any]:
    attributes = {
        name: [sorted(attribute.kinds), attribute.default, attribute.required]
        for name, attribute in (told.attributes or {}).items()
    }
    return {
        "attributes": None if told.attributes is None else attributes,
        "inputs": sorted(told.inputs),
        "outputs": sorted(told.outputs),
        "counted": told.counted,
        "types": {letter: sorted(types) for letter, types in told.types.items()},
    }


def _told_from(read: Mapping[str, Any]) -> LibrarySchema:
    attributes = None
    if read["attributes"] is not None:
        attributes = {name: _attribute(*parts) for name, parts in read["attributes"].items()}
    return LibrarySchema(
        attributes,
        frozenset(read["inputs"]),
        frozenset(read["outputs"]),
        read["counted"],
        {letter: frozenset(types) for letter, types in read["types"].items()},
    )


def _attribute(kinds: list[str], default: Any, required: bool | None) -> LibraryAttribute:
    return LibraryAttribute(frozenset(kinds), tuple(default) if isinstance(default, list) else default, required)


def _words(loss: Loss) -> str:
    if loss.kind == "raised":
        return f"it failed: {loss.tail.splitlines()[-1] if loss.tail else loss.exit}"
    return f"its process ended ({loss.exit})" + (f"; last it wrote:\n{loss.tail}" if loss.tail else "")

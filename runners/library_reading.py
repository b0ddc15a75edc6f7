"""Reads what a standard's library tells of its operators, in processes of their own, which some questions end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from ..cases.errors import OpconformError
from ..cases.runner import NotInstalled
from ..specs.model import Spec, Version
from ..specs.told import Listing, Question, Reading, Told, ToldAttribute
from .loading import make
from .pool import Begin, Found, Limits, Loss, Pool, WorkerStartError

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

    def told(self, question: Question, /) -> Told:
        """Return what it tells of one of them."""


class LibraryLost(Exception):  # noqa: N818 - what happened to it
    """A library's process ended before the library said which operators it has."""


def read_library(standard: str, specs: Iterable[Spec], target: str | None = None) -> Reading:
    """Return what a standard's library tells of all its operator versions, asked with the signatures of specs.

    `target` names another class than that of the standard. NotInstalled without the library, OpconformError if it
    cannot be used, LibraryLost.
    """
    target = target or OPERATIONS[standard]
    listing, exact, untold = _opened(target)
    signatures = {(spec.name, version): one.signature for spec in specs for version, one in spec.versions.items()}
    keys = [(name, version) for name, versions in listing.versions.items() for version in versions]
    questions = {f"{key[0]}-{key[1]}": Question(*key, signatures.get(key)) for key in keys}
    told: dict[tuple[str, Version], Told | str] = {}
    for answer in _answers(target, questions, list(questions)):
        question = questions[answer.key if isinstance(answer, Loss) else answer[0]]
        key = (question.name, question.version)
        told[key] = _words(answer) if isinstance(answer, Loss) else _told_from(json.loads(answer[1]))
    return Reading(standard, listing, told, exact, untold)


def _opened(target: str) -> tuple[Listing, bool, tuple[str, ...]]:
    (answer,) = _answers(target, {}, [_LISTING])
    if isinstance(answer, Loss):
        raise LibraryLost(f"asked for its operators, {_words(answer)}")
    said = json.loads(answer[1])
    versions = {name: tuple(of_name) for name, of_name in said["versions"].items()}
    about = (said["library"], said["version"], said["group"])
    return Listing(*about, versions, frozenset(said["later"]), said["newest"]), said["exact"], tuple(said["untold"])


def _answers(target: str, questions: Mapping[str, Question], keys: Sequence[str]) -> Iterator[Found]:
    pool = Pool(partial(_Asking, target, questions), jobs=1, limits=_LIMITS)
    try:
        yield from pool.run([keys])
    except WorkerStartError as error:
        if error.kind == NotInstalled.__name__:
            raise NotInstalled(error.message) from None
        if error.kind == OpconformError.__name__:
            raise OpconformError(error.message) from None
        raise LibraryLost(f"{error}\n{error.tail}" if error.tail else str(error)) from None


class _Asking:
    """What the process of a library does: answers questions by their keys, as JSON."""

    def __init__(self, target: str, questions: Mapping[str, Question]) -> None:
        self._operations: Operations = make("the library", target)
        self._questions = questions

    def run(self, keys: Sequence[str], begin: Begin, /) -> Iterator[bytes]:
        """Yield the answers."""
        for index, key in enumerate(keys):
            begin(index, "run")
            answer = self._listing() if key == _LISTING else _told_json(self._operations.told(self._questions[key]))
            yield json.dumps(answer).encode()

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


def _told_json(told: Told) -> dict[str, Any]:
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


def _told_from(read: Mapping[str, Any]) -> Told:
    attributes = None
    if read["attributes"] is not None:
        attributes = {name: _attribute(*parts) for name, parts in read["attributes"].items()}
    return Told(
        attributes,
        frozenset(read["inputs"]),
        frozenset(read["outputs"]),
        read["counted"],
        {letter: frozenset(types) for letter, types in read["types"].items()},
    )


def _attribute(kinds: list[str], default: Any, required: bool | None) -> ToldAttribute:
    return ToldAttribute(frozenset(kinds), tuple(default) if isinstance(default, list) else default, required)


def _words(loss: Loss) -> str:
    if loss.kind == "raised":
        return f"it failed: {loss.tail.splitlines()[-1] if loss.tail else loss.exit}"
    return f"its process ended ({loss.exit})" + (f"; last it wrote:\n{loss.tail}" if loss.tail else "")

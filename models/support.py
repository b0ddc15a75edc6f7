"""What a backend can do with a model: each node's version, types, attributes and ranks against known results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from ..api.call import library, source
from ..cases.elements import type_of
from ..cases.errors import OpconformError
from ..cases.ids import CaseId, Selection, operator_version_of, parse_id
from ..cases.program import Tensor
from ..cases.results import Outcome, Result
from ..generators.parameters import free_letters
from ..generators.plan import planned
from ..generators.rows import Row
from ..runners.judging.terms import ALWAYS_FAILING, is_about_invalid
from ..specs.model import VersionSpec, Word
from .reading import ModelNode, ReadModel

Answer: TypeAlias = Literal["passes", "fails", "unsupported", "unknown"]


class NodeSupport(msgspec.Struct, frozen=True):
    """What is known of one node: `case` is one that fails, or one that passes; `reason` says why nothing is known."""

    path: str
    operator: str
    answer: Answer
    types: str = ""
    case: str = ""
    passing: int = 0
    failing: int = 0
    reason: str = ""


@dataclass(frozen=True)
class _Wanted:
    """What a case has to share with a node: types by letter, attributes by name, the rank of the first input."""

    node: ModelNode
    version: VersionSpec
    types: Mapping[str, str]
    attributes: Mapping[str, object]
    rank: int | None

    @property
    def text(self) -> str:
        """The types in words."""
        return ", ".join(f"{letter}: {type_}" for letter, type_ in self.types.items())

    def has_types(self, case: CaseId) -> bool:
        """Return whether a case has the node's types, as far as these are known."""
        letters = zip(free_letters(self.version), case.types, strict=False)
        return all(self.types.get(letter, type_) == type_ for letter, type_ in letters)

    def is_like(self, row: Row) -> bool:
        """Return whether a case has the node's rank and attributes."""
        first = next((shape for shape in row.id.shapes if isinstance(shape, tuple)), None)
        if self.rank is not None and first is not None and len(first) != self.rank:
            return False
        return all(_alike(wanted, _given(row, name)) for name, wanted in self.attributes.items())


def _given(row: Row, name: str) -> object:
    value = row.get(name)
    signature = row.version.signature.attribute(name)
    return signature.default if value is Word.ABSENT and signature is not None else value


def _alike(wanted: object, given: object) -> bool:
    """Return whether two values of an attribute mean the same kind of call.

    Words and whole numbers are equal, numbers equal in float32, lists as long; tensors and bodies are not compared.
    """
    if isinstance(wanted, (str, int)):
        return wanted == given
    if isinstance(wanted, float):
        return isinstance(given, (int, float)) and np.float32(wanted) == np.float32(given)
    if isinstance(wanted, tuple):
        return isinstance(given, tuple) and len(wanted) == len(given)
    return wanted is not None or given is None or given is Word.ABSENT


def _wanted_of(model: ReadModel) -> list[tuple[ModelNode, _Wanted | None]]:
    """Return the nodes of a model with what their cases have to share; None for one without a spec file."""
    known = {name: type_of(array) for name, array in model.constants.items()} | dict(model.types)
    nodes = model.nodes(library())
    return [(node, _wanted(node, known, model.ranks) if node.operator else None) for node in nodes]


def _wanted(node: ModelNode, types: Mapping[str, str], ranks: Mapping[str, int]) -> _Wanted:
    spec, key = library().operator_version(node.operator)
    version = spec.version(key)
    signature = version.signature
    letters: dict[str, str] = {}
    for names, ports in ((node.inputs, signature.inputs), (node.outputs, signature.outputs)):
        for index, name in enumerate(names):
            port = ports[min(index, len(ports) - 1)] if ports else None
            if port is not None and name in types and port.type in signature.free_letters:
                letters.setdefault(port.type, types[name])
    own = {attribute.name: attribute.value for attribute in node.attributes}
    attributes = {
        attribute.name: own.get(attribute.name, attribute.default)
        for attribute in signature.attributes
        if not isinstance(own.get(attribute.name), Tensor)
    }
    first = next((ranks[name] for name in node.inputs if name in ranks), None)
    return _Wanted(node, version, letters, attributes, first)


def _by_operator(pairs: Iterable[tuple[ModelNode, _Wanted | None]]) -> dict[str, list[_Wanted]]:
    by_operator: dict[str, list[_Wanted]] = {}
    for node, wanted in pairs:
        if wanted is not None:
            by_operator.setdefault(node.operator, []).append(wanted)
    return by_operator


def supported(model: ReadModel, results: Iterable[Result]) -> list[NodeSupport]:
    """Return what results of one backend say of each node of a model.

    A node *passes* if valid cases of its version with its types, rank and attributes pass, and none fails; it *fails*
    if one of them fails. Lists of whole numbers, such as pads, need only be as long.
    """
    pairs = _wanted_of(model)
    typed, exact = defaultdict[str, list[Result]](list), defaultdict[str, list[Result]](list)
    by_operator = _by_operator(pairs)
    for result in results:
        some = by_operator.get(operator_version_of(result.case), ())
        if not some or is_about_invalid(result):
            continue
        case = parse_id(result.case)
        matching = [wanted for wanted in some if wanted.has_types(case)]
        row = _row(case) if matching else None
        if row is None or row.rejected:
            continue
        for wanted in matching:
            typed[wanted.node.path].append(result)
            if wanted.is_like(row):
                exact[wanted.node.path].append(result)
    return [_support(node, wanted, typed[node.path], exact[node.path]) for node, wanted in pairs]


def _row(case: CaseId) -> Row | None:
    try:
        return source().row(case)
    except OpconformError:  # a case of another release of the suite
        return None


def _support(node: ModelNode, wanted: _Wanted | None, typed: Sequence[Result], exact: Sequence[Result]) -> NodeSupport:
    """Return what is known of a node: `typed` results have its types, `exact` ones its rank and attributes too."""
    if wanted is None:
        return NodeSupport(node.path, node.version, "unknown", reason="no spec file for this operator version")
    failing = [result for result in exact if result.outcome in ALWAYS_FAILING]
    passing = [result for result in exact if result.outcome is Outcome.PASS]
    first = next(iter(failing or passing or exact), None)
    if first is None:
        return NodeSupport(node.path, node.operator, "unknown", wanted.text, reason=_unknown(typed))
    answer: Answer = "fails" if failing else "passes" if passing else "unsupported"
    return NodeSupport(
        node.path,
        node.operator,
        answer,
        wanted.text,
        first.case,
        len(passing),
        len(failing),
        reason=first.detail or "" if answer == "unsupported" else "",
    )


def _unknown(typed: Sequence[Result]) -> str:
    if not typed:
        return "no result with these types"
    failing = sum(result.outcome in ALWAYS_FAILING for result in typed)
    return f"no result with this rank and these attributes; of {len(typed)} with these types {failing} fail"


def cases_for(model: ReadModel, seed: int) -> Iterator[str]:
    """Yield the ids of the cases of a model's operator versions that have the types of one of its nodes."""
    for operator, some in _by_operator(_wanted_of(model)).items():
        for text in planned(library(), Selection(globs=(operator,), seed=seed)):
            case = parse_id(text)
            if any(wanted.has_types(case) for wanted in some):
                yield text


def support_lines(nodes: Sequence[NodeSupport], backend: str) -> Iterator[str]:
    """Yield the answers in words: a line for each kind of node, and the totals."""
    alike: dict[tuple[Any, ...], list[NodeSupport]] = {}
    for node in nodes:
        alike.setdefault((node.operator, node.answer, node.types, node.case, node.reason), []).append(node)
    for some in alike.values():
        first = some[0]
        more = f" and {len(some) - 1} more" if len(some) > 1 else ""
        text = first.reason if first.answer in ("unknown", "unsupported") else f"{first.passing} cases pass"
        text = f"{first.failing} cases fail, such as {first.case}" if first.answer == "fails" else text
        types = f" ({first.types})" if first.types else ""
        yield f"{first.answer:<12} {first.operator}{types}  {first.path}{more}: {text.splitlines()[0] if text else ''}"
    numbers = {answer: sum(node.answer == answer for node in nodes) for answer in ("passes", "fails", "unsupported")}
    yield (
        f"{len(nodes)} nodes on {backend}: {numbers['passes']} pass, {numbers['fails']} fail, "
        f"{numbers['unsupported']} unsupported, {len(nodes) - sum(numbers.values())} unknown"
    )

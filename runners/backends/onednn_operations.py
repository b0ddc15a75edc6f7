"""Finds out what operations the installed oneDNN has, from which ones it accepts or refuses."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from ...cases.program import NO_VERSION, AttributeValue
from ...specs.audit import LibraryAttribute, LibrarySchema, Listing, Question
from ...specs.model import Signature
from .library_reading import Layout, Operation, TypeOrAny, layout_of, taken
from .onednn import set_attribute, tensor_of_any_rank
from .onednn_library import ATTRIBUTES, CPU, OPERATIONS, TYPES, OneDnn, OneDnnError

_Value = AttributeValue | bool
_Set = Mapping[str, _Value]  # attribute to value

_MOST_INPUTS, _MOST_OUTPUTS = 6, 3  # without a spec; all of them then have one type
_NO_ATTRIBUTE = 0x7FFF  # a number without an attribute

# An attribute's number shows the kind of its value: the first number of each kind, last kind first.
_KINDS = ((0x80, "string"), (0x60, "bool"), (0x40, "s64s"), (0x30, "s64"), (0x20, "f32s"), (0x01, "f32"))
_WORDS = (
    *("none", "numpy", "NXC", "NCX", "OIX", "XIO", "IOX", "XOI", "per_tensor", "per_channel", "None", "VALID"),
    *("SAME_UPPER", "SAME_LOWER", "floor", "ceil", "nearest", "linear", "half_pixel", "align_corners", "strict"),
)
_VALUES: Mapping[str, tuple[_Value, ...]] = {
    "f32": (1.0,),
    "f32s": ((1.0,),),
    "s64": (1,),
    "s64s": ((1,), (0,)),
    "bool": (True,),
    "string": _WORDS,
}
"""Values to try for an attribute of each kind; an operation may accept only some."""


class OneDnnOperations:
    """Queries oneDNN about its operations; in a separate process, like all uses of a native library."""

    standard = "onednn"
    exact = True  # it checks an operation against a schema when it is added to a graph
    untold = (
        "names of inputs and outputs",
        "defaults",
        "attributes of operations that need some which no spec names",
    )

    def __init__(self) -> None:
        self._library = OneDnn()
        numbers = {name: self._library.type_number(name) for name in TYPES}
        self._types = {name: number for name, number in numbers.items() if number is not None}

    def listing(self) -> Listing:
        """Return the operations for which the library has a schema; it accepts an operation without one unchecked."""
        known = [name for name, number in OPERATIONS.items() if not self._takes_nonsense(number)]
        later = frozenset(OPERATIONS) - frozenset(known)
        return Listing("oneDNN", self._library.version, "graph", dict.fromkeys(known, (NO_VERSION,)), later)

    def schema(self, question: Question) -> LibrarySchema:
        """Return what can be found out about an operation."""
        kind = OPERATIONS[question.name]
        types = tuple(self._types)
        if question.signature is None:
            layout = Layout(("T",) * _MOST_INPUTS, ("T",) * _MOST_OUTPUTS, 1, 1, types, types)
        else:
            layout = layout_of(question.signature, types, types)
        for values in _required(question.signature):
            accepted = taken(layout, partial(self._make, kind, values))
            if accepted:
                attributes = dict(self._attributes(kind, values, accepted.least))
                return LibrarySchema(attributes, accepted.inputs, accepted.outputs, len(layout.inputs), accepted.types)
        return LibrarySchema()

    def _attributes(self, kind: int, values: _Set, least: Operation) -> Iterator[tuple[str, LibraryAttribute]]:
        """Yield the attributes that an operation takes, given the ones it already has."""
        for name in ATTRIBUTES:
            rest = {other: value for other, value in values.items() if other != name}
            tried = ({**rest, name: value} for value in _VALUES[_kind(name)])
            if any(self._make(kind, attributes, least.inputs, least.outputs) is not None for attributes in tried):
                required = self._make(kind, rest, least.inputs, least.outputs) is None
                yield name, LibraryAttribute(frozenset([_kind(name)]), required=required)

    def _make(
        self, kind: int, values: _Set, inputs: Sequence[TypeOrAny], outputs: Sequence[TypeOrAny], /
    ) -> int | None:
        try:
            self._add(kind, {ATTRIBUTES[name]: (_kind(name), value) for name, value in values.items()}, inputs, outputs)
        except OneDnnError:
            return None
        return len(outputs)

    def _takes_nonsense(self, kind: int) -> bool:
        try:
            self._add(kind, {_NO_ATTRIBUTE: ("f32", 1.0)}, [], [])
        except OneDnnError:
            return False
        return True

    def _add(
        self,
        kind: int,
        values: Mapping[int, tuple[str, _Value]],
        inputs: Sequence[TypeOrAny],
        outputs: Sequence[TypeOrAny],
    ) -> None:
        """Add an operation to a graph, which checks it against its schema.

        Raises OneDnnError if it violates the schema.
        """
        library = self._library
        with ExitStack() as handles:
            operation = library.create(handles, "graph_op", 0, kind, b"probe")
            for number, (t, add) in enumerate([*((t, "input") for t in inputs), *((t, "output") for t in outputs)]):
                tensor = tensor_of_any_rank(library, number, self._types[t or ""])
                library.call(f"graph_op_add_{add}", operation, ctypes.byref(tensor))
            for attribute, (of_kind, value) in values.items():
                set_attribute(library, operation, attribute, of_kind, value)
            graph = library.create(handles, "graph_graph", CPU)
            library.call("graph_add_op", graph, operation)


def _required(signature: Signature | None) -> Iterator[_Set]:
    """Yield attributes to make operations with: the ones that a spec requires, and none."""
    required = [a for a in signature.attributes if a.required and a.name in ATTRIBUTES] if signature else []
    if required:
        yield {a.name: _VALUES[_kind(a.name)][0] for a in required}
    yield {}


def _kind(attribute: str) -> str:
    return next(kind for first, kind in _KINDS if ATTRIBUTES[attribute] >= first)

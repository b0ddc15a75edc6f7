"""Finds out what operations the installed OpenVINO has: versions from its headers, the rest from made nodes."""

from __future__ import annotations

import functools
import importlib
import itertools
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...cases.errors import OpconformError
from ...cases.program import OperatorVersion
from ...specs.audit import LibraryAttribute, LibrarySchema, Listing, Question
from ...specs.model import Signature, Version
from ..clients.python_client import OPENVINO_TYPES
from .library_reading import COUNTED, Layout, Make, TypeOrAny, layout_of, taken
from .openvino import OpenVino
from .openvino_nodes import has_bodies

_TABLES = "include/openvino/opsets"
_ENTRY = re.compile(r"^_OPENVINO_OP_REG\((\w+), *([\w:]+)\)", re.MULTILINE)
_USUAL: tuple[TypeOrAny, ...] = (None, "float32", "int64", "int32", "bool")
_KINDS: Mapping[type, str] = {bool: "boolean", int: "int", float: "float", str: "string"}
_REQUIRED: Mapping[str, object] = {"boolean": False, "int": 1, "float": 1.0, "ints": [1, 1], "floats": [1.0, 1.0]}
_INPUTS_TO_LIVE: Mapping[str, int] = {"Broadcast": 2}
"""The inputs without which making an operation ends the process."""
_CONSTANTS: Mapping[str, tuple[int, ...]] = {"Unique": (1,)}
"""The inputs that an operation takes as constants only; they are made as scalars of 0."""
_UNNAMED = Layout(
    tuple(str(n) for n in range(1, COUNTED + 1)),  # without a spec, each input has a letter of its own
    (),
    least_inputs=0,
    least_outputs=0,
    types=tuple(OPENVINO_TYPES),
    usual=(None,),
)


class OpenVinoOperations:
    """Queries OpenVINO about its operations; in a separate process, because some questions crash it."""

    standard = "openvino"
    exact = False  # a node only examines the inputs that it needs
    untold = (
        "names of inputs and outputs",
        "whether an attribute is required",
        "types of outputs",
        "too many inputs, and wrong types: a node need not examine them all",
    )

    def __init__(self) -> None:
        self._runner = OpenVino()
        self._native: Any = importlib.import_module("openvino._pyopenvino")
        self._package = Path(self._runner.library.__file__).parent

    def listing(self) -> Listing:
        """Return the operations of all complete operation sets."""
        sets = list(_operation_sets(self._package))
        if not sets:
            raise OpconformError(f"{self._package} has no tables of operation sets in {_TABLES}")
        first: dict[tuple[str, str], int] = {}
        for number, entries in enumerate(sets, 1):
            for entry in entries:
                first.setdefault(entry, number)
        versions: dict[str, tuple[Version, ...]] = {}
        for (name, _), number in sorted(first.items(), key=lambda entry: (entry[0][0], entry[1])):
            versions[name] = (*versions.get(name, ()), number)
        newest = len(sets)
        return Listing("OpenVINO", self._runner.version(), f"opset1 to opset{newest}", versions, newest=newest)

    def schema(self, question: Question) -> LibrarySchema:
        """Return what can be found out about an operation; nothing of one with bodies, which cannot be made without."""
        if has_bodies(OperatorVersion("openvino", question.name, question.version)):
            return LibrarySchema()
        factory = self._native.NodeFactory(f"opset{question.version}")
        attributes = {name: _attribute(value) for name, value in factory.create(question.name).get_attributes().items()}
        signature = question.signature
        layout = layout_of(signature, tuple(OPENVINO_TYPES), _USUAL) if signature else _UNNAMED
        for values in _required(signature):
            make = self._maker(factory, question.name, values, layout.least_inputs)
            accepted = taken(layout, make, optional=signature is not None)
            if accepted:
                break
        else:
            return LibrarySchema(attributes)
        inputs, outputs, types = accepted.inputs, accepted.outputs, dict(accepted.types)
        for name, word in ((name, word) for name, words in question.words.items() for word in words):
            make = self._maker(factory, question.name, {**values, name: word}, layout.least_inputs)
            more = taken(layout, make, optional=signature is not None)
            if more:
                inputs, outputs = inputs | more.inputs, outputs | more.outputs
                types |= {letter: types.get(letter, frozenset()) | kinds for letter, kinds in more.types.items()}
        return LibrarySchema(attributes, inputs, outputs, len(layout.inputs), types)

    def _maker(self, factory: Any, name: str, values: Mapping[str, object], least_inputs: int) -> Make:
        """Return what makes an operation; nobody says its outputs, so the same inputs are tried once."""
        made = functools.cache(partial(self._make, factory, name, values, least_inputs))
        return lambda inputs, _outputs: made(tuple(inputs))

    def _make(
        self, factory: Any, name: str, values: Mapping[str, object], least_inputs: int, inputs: tuple[TypeOrAny, ...], /
    ) -> int | None:
        if (least_inputs and not inputs) or len(inputs) < _INPUTS_TO_LIVE.get(name, 0):
            return None  # a MaxPool-1 with attributes and no input at all ends the process, as such a Broadcast-1 does
        constants = _CONSTANTS.get(name, ())
        try:
            nodes = [self._zero(t) if n in constants and t else self._parameter(t) for n, t in enumerate(inputs)]
            node = factory.create(name, [node.output(0) for node in nodes], values)
        except Exception:
            return None
        return int(node.get_output_size())

    def _zero(self, element_type: str) -> Any:
        kind = getattr(self._native.Type, OPENVINO_TYPES[element_type])
        return self._native.op.Constant(kind, self._native.Shape([]), [0])

    def _parameter(self, element_type: TypeOrAny) -> Any:
        types = self._native.Type
        wanted = types.dynamic if element_type is None else getattr(types, OPENVINO_TYPES[element_type])
        return self._native.op.Parameter(wanted, self._native.PartialShape.dynamic())


def _operation_sets(package: Path) -> Iterator[frozenset[tuple[str, str]]]:
    """Yield the operations of opset1, opset2, ..., each with its C++ namespace, which distinguishes versions.

    While the newest set is being filled it is smaller than the one before; it is then left out.
    """
    size = 0
    for number in itertools.count(1):
        file = package / _TABLES / f"opset{number}_tbl.hpp"
        entries = frozenset(_ENTRY.findall(file.read_text())) if file.is_file() else frozenset()
        if not entries or len(entries) < size:
            return
        size = len(entries)
        yield entries


def _required(signature: Signature | None) -> Iterator[Mapping[str, object]]:
    """Yield values of attributes to make nodes with: the ones that a spec requires, and none."""
    required = [a for a in signature.attributes if a.required and a.kind in _REQUIRED] if signature else []
    if required:
        yield {a.name: _REQUIRED[a.kind] for a in required}
    yield {}


def _attribute(value: Any) -> LibraryAttribute:
    """Return what the value of an unset attribute shows."""
    if isinstance(value, (list, tuple)):
        kinds = {f"{_KINDS[type(entry)]}s" for entry in value if type(entry) in _KINDS}
        return LibraryAttribute(frozenset(kinds or {f"{kind}s" for kind in _KINDS.values()}), tuple(value))
    kind = _KINDS.get(type(value))
    return LibraryAttribute(frozenset([kind]), value) if kind else LibraryAttribute(frozenset())

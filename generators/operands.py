"""The inputs of a case, and its program: each input is filled, drawn, written or left out, and constant or fed.

The program, its feeds, the reference's arguments and the case id all follow from this module.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ..cases.elements import Array, content, element_type, from_tensor_proto, numbered, type_of
from ..cases.errors import CaseIdError, OpconformError
from ..cases.ids import Part
from ..cases.program import (
    NO_VERSION,
    UNRANKED,
    Attribute,
    AttributeKind,
    AttributeValue,
    Body,
    Input,
    Leaf,
    Node,
    OperatorVersion,
    Output,
    SparseTensor,
    Structure,
    Tensor,
    TypeExpression,
    count,
    element_names,
    held_by,
    is_tensor,
    leaves,
    optional,
    parse_type,
    sequence,
    tensor,
)
from ..specs.expressions import number, numbers
from ..specs.model import AttributeSignature, Operand, Port, Recipe, TensorValue, Value, VersionSpec, Word
from ..specs.native_bodies import native, results_of
from .families import family_of
from .fills import FIRST, RECIPES, Blank, Draw, Drawing, fill, restricted, suits, turned
from .parameters import (
    CONSTANT,
    FED,
    FROM,
    RANK,
    Symbols,
    as_symbol,
    bound_type,
    flat_value,
    free_letters,
    kindest_opset,
    resolve_type,
    usual_outputs,
)
from .rows import Row, fill_recipe

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, NodeProto, TypeProto, ValueInfoProto

Arrays: TypeAlias = tuple[Array, ...]
"""The tensors of one argument, lanes first."""


@dataclass(frozen=True)
class Argument:
    """One tensor, sequence, optional or map that a case passes to its operator.

    `name` is the name of the program's input, `type` an expression, `part` its shape or structure. `how`: filled by the
    case's fill, drawn by `recipe` (for a map, the keys; its values are filled), or written, with `value`.
    `constant`: part of the program. `again`: the tensor of an earlier argument, under the same name.
    """

    port: Port
    name: str
    type: str
    part: tuple[int, ...] | Structure
    how: Literal["filled", "drawn", "written"]
    constant: bool = False
    value: Array | None = None
    recipe: Recipe | None = None
    operand: Operand | None = None
    again: bool = False

    @property
    def fills_values(self) -> bool:
        """Whether a recipe draws the keys of a map and the case's fill its values."""
        return self.how == "drawn" and isinstance(self.part, Structure) and self.part.kind == "map"

    @functools.cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The tensors in it."""
        structure = Structure("tensor", self.part) if isinstance(self.part, tuple) else self.part
        return leaves(self.type, structure)

    @functools.cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of its tensors."""
        return tuple(tuple(int(d) for d in leaf.dims or ()) for leaf in self.leaves)

    def input(self, dims: object, memory: object, constant: bytes | None) -> Input:
        """Return the program's input; `dims` and `memory` are the settings of these names."""
        if isinstance(self.part, Structure):
            return Input(self.name, self.type, (), constant, self.part)
        if dims != "static" and self.how != "written" and constant is None:
            symbols = tuple(f"{self.name}_{i}" for i in range(len(self.part)))
            return Input(self.name, self.type, UNRANKED if dims == "unranked" else symbols)
        can_be = self.how != "written" and constant is None and not element_type(self.type).is_packed
        return Input(self.name, self.type, self.part, constant, None, _strides(self.part, memory) if can_be else None)


def _strides(shape: tuple[int, ...], memory: object) -> tuple[int, ...] | None:
    """Return the elements between neighbours along each axis; None in C order, which one axis always is in.

    `turned`: the first axis is innermost. `padded`: a place is free behind each line.
    """
    if memory in ("plain", "any") or len(shape) < 2:
        return None
    extents = [max(1, extent) for extent in shape]
    if memory == "turned":
        return tuple(math.prod(extents[:axis]) for axis in range(len(extents)))
    extents[-1] += 1
    return tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))


Given: TypeAlias = Mapping[str, "tuple[Argument, ...] | None"]
"""The arguments for each input of the signature, in its order; None for an input that is left out."""


def arguments(row: Row) -> Given:
    """Return the arguments of a case. Raises CaseIdError for numbers that don't fit an input's type."""
    parts, by_port = row.parts, dict[str, tuple[Argument, ...] | None]()
    for port in row.version.signature.inputs:
        own, delivery = _given(row, port, parts.get(port.name, ())), str(row.get(f"{port.name}{FROM}"))
        if own and row.version.signature.input(delivery) is not None:
            own = _again(row, own, (by_port.get(delivery) or own)[0])
        elif port.is_variadic and own and delivery == CONSTANT:
            own = (own[0], *(replace(argument, constant=True) for argument in own[1:]))
        by_port[port.name] = own
    return by_port


def _again(row: Row, given: tuple[Argument, ...], first: Argument) -> tuple[Argument, ...]:
    """Return arguments that all reuse the tensor of another one. Raises CaseIdError if their types or shapes differ."""

    def kind(argument: Argument) -> tuple[object, ...]:
        operand = argument.operand
        return argument.type, argument.part, argument.how, *(() if operand is None else (operand.domain, operand.fill))

    for argument in given:
        if kind(argument) != kind(first) or argument.how != "filled" or first.constant:
            raise CaseIdError(
                f"{row.id}: {argument.name} cannot be the tensor {first.name}: their types or shapes differ"
            )
    return tuple(
        argument if argument is first else replace(first, port=argument.port, again=True) for argument in given
    )


def _given(row: Row, port: Port, parts: tuple[Part, ...]) -> tuple[Argument, ...] | None:
    if row.is_written(port):
        return _written(row, port)
    operand = row.version.operands.get(port.name)
    if port.is_variadic:
        stem = port.name.removesuffix("_0")
        types = [resolve_type(row.version, row.id.types, port, i) for i in range(len(parts))]
        return tuple(
            Argument(port, f"{stem}_{i}", type_, part, "filled", operand=operand)
            for i, (type_, part) in enumerate(zip(types, parts, strict=True))
            if part is not None
        )
    (part,) = parts or (None,)
    if part is None:
        return None
    type_ = resolve_type(row.version, row.id.types, port)
    constant = row.get(f"{port.name}{FROM}") == CONSTANT
    chosen = row.settings.get(port.name)
    recipe = chosen if isinstance(chosen, Recipe) else operand.draws[0] if operand and operand.draws else None
    if recipe is None:
        return (Argument(port, port.name, type_, part, "filled", constant, operand=operand),)
    return (Argument(port, port.name, type_, part, "drawn", constant, recipe=recipe, operand=operand),)


def _written(row: Row, port: Port) -> tuple[Argument, ...] | None:
    value, delivery = row.get(port.name), row.get(f"{port.name}{FROM}")
    is_attribute = row.version.signature.attribute(port.name) is not None
    if isinstance(value, Word) or (is_attribute and delivery == CONSTANT):
        return None
    type_ = resolve_type(row.version, row.id.types, port)
    dims, flat = flat_value(value)
    if f"{port.name}{RANK}" in row.settings:
        dims = _ranked(row, port, len(flat))
    element = element_type(type_)
    array = np.array(flat, object).astype(element.dtype) if flat else np.zeros(0, element.dtype)
    array = array.reshape(dims)
    return (Argument(port, port.name, type_, dims, "written", delivery == CONSTANT, array),)


def _ranked(row: Row, port: Port, size: int) -> tuple[int, ...]:
    """Return the shape of a list that is written with another rank."""
    rank = row.get(f"{port.name}{RANK}")
    if rank == "0" and size != 1:
        raise CaseIdError(f"{row.id}: {port.name}{RANK}=0 holds one number; read {size}")
    return {"0": (), "1": (size,)}.get(str(rank), (1, size))


def inputs_of(row: Row, given: Given, fixed: Mapping[str, Arrays]) -> tuple[Input | None, ...]:
    """Return a program's inputs in the signature's order; `fixed` has the elements of constants, by argument."""
    dims, memory, inputs, last = row.get("dims") or "static", row.get("memory"), list[Input | None](), 0
    for name, several in given.items():
        if several is None:
            inputs.append(None)
            last = len(inputs) if _is_named_empty(row, name) else last
            continue
        for argument in several:
            held = b"".join(map(content, fixed[argument.name])) if argument.constant else None
            inputs.append(argument.input(dims, memory, held))
            last = len(inputs)
    return tuple(inputs[:last])


def _is_named_empty(row: Row, port: str) -> bool:
    """Return whether an input is left out as an empty name, even if it is the last one."""
    if row.get(port) is Word.OMITTED:
        return True
    index = [p.name for p in row.version.signature.inputs if not row.is_written(p)]
    return port in index and index.index(port) < len(row.id.shapes)


def captured_of(row: Row) -> tuple[Argument, ...]:
    """Return the outer values that the bodies of a case use. They are filled, and are not inputs of the operator.

    Only ONNX's bodies see outer values.
    """
    if row.spec.standard != _ONNX:
        return ()
    graphs = [a.name for a in row.version.signature.attributes if a.kind in ("graph", "graphs")]
    values = [row.get(name) for name in graphs]
    names = [str(word) for v in values if not isinstance(v, Word) for word in (v if isinstance(v, tuple) else (v,))]
    return tuple(
        Argument(
            Port(input_.name, input_.type),
            input_.name,
            input_.type,
            tuple(int(d) for d in input_.dims) if input_.structure is None else _sample(parse_type(input_.type)),
            "filled",
        )
        for input_ in captured_by(row.version, row.id.types, names)
    )


def _sample(expression: TypeExpression) -> Structure:
    """Return the structure of an outer value, whose type has no number of items: two items, or a full optional."""
    if expression.kind == "optional":
        return optional(_sample(held_by(expression)))
    return sequence(tensor(3), tensor(2)) if expression.kind == "sequence" else tensor(3)


def attributes_of(row: Row) -> tuple[Attribute, ...]:
    """Return the attributes that a case sets, in the signature's order, and last an attribute that no version has."""
    attributes = []
    for signature in row.version.signature.attributes:
        value = row.get(signature.name)
        letter = next((k for k, s in row.version.types_from.items() if s.attribute == signature.name), None)
        fed = row.version.signature.input(signature.name) is not None and row.get(f"{signature.name}{FROM}") == FED
        if letter is not None and (value is Word.GIVEN or value is Word.ABSENT) and _is_made(row, signature, letter):
            value = _of_type(row, signature, letter)
        if not isinstance(value, (Word, Recipe, Mapping)) and not fed:
            kind: AttributeKind = signature.kind  # type: ignore[assignment]  # audited names
            attributes.append(Attribute(signature.name, kind, _attribute_value(row, signature, letter, value)))
    unknown = row.get("unknown")
    if isinstance(unknown, str):
        attributes.append(Attribute(unknown, "int", 1))
    return tuple(attributes)


def _is_made(row: Row, signature: AttributeSignature, letter: str) -> bool:
    """Return whether an attribute states a type: always, unless leaving it out means that type."""
    types = dict(zip(free_letters(row.version), row.id.types, strict=True))
    needed = signature.required or types[letter] != row.version.types_from[letter].usual(types)
    return needed or row.get(signature.name) is Word.GIVEN


def _of_type(row: Row, signature: AttributeSignature, letter: str) -> Value:
    """Return the value of an attribute that states a type: its number or name in ONNX, or its expression."""
    type_ = row.id.types[free_letters(row.version).index(letter)]
    if type_ in (names := row.version.types_from[letter].names):
        return names[type_]
    if signature.kind == "int":
        return element_type(element_names(type_)[-1]).onnx
    if signature.kind == "string":
        return {"float32": "FLOAT", "float64": "DOUBLE"}.get(type_, type_.upper())
    return type_


def _attribute_value(row: Row, signature: AttributeSignature, letter: str | None, value: Value) -> AttributeValue:
    if isinstance(value, TensorValue):
        return _tensor(row, value, letter)
    if signature.kind == "graph":
        return body_of(row.version, row.id.types, str(value))
    if signature.kind == "type_proto" and isinstance(value, str):
        return bound_type(row.version, row.id.types, value)
    if signature.kind == "graphs" and isinstance(value, tuple):
        return tuple(body_of(row.version, row.id.types, str(name)) for name in value)
    return value  # type: ignore[return-value]  # typed when it was read


def _tensor(row: Row, value: TensorValue, letter: str | None) -> Tensor | SparseTensor:
    letters = dict(zip(free_letters(row.version), row.id.types, strict=False))
    name = value.type or letter or row.version.signature.letter(row.version.signature.outputs[0].name)
    element = element_type(letters.get(str(name), str(name)))
    try:
        if element.is_integer:
            for number in value.values:
                if not isinstance(number, int) or not element.smallest <= number <= element.largest:
                    raise ValueError(f"read {number!r}")
        held = np.array(value.values, object).astype(element.dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise CaseIdError(f"{row.id}: an attribute's tensor holds elements of {element.name}: {error}") from error
    if value.indices is None:
        return Tensor.of(held.reshape(value.dims))
    return SparseTensor(Tensor.of(held), Tensor.of(np.array(value.indices, np.int64)), value.dims)


def around_of(row: Row) -> Body | None:
    """Return the graph around the operator, if a case has one."""
    name = row.get("around")
    return body_of(row.version, row.id.types, name) if isinstance(name, str) else None


def opset(row: Row) -> int | None:
    """Return the opset of a row's model; None outside ONNX."""
    chosen = row.get("opset")
    return chosen if isinstance(chosen, int) else kindest_opset(row.spec, row.version)


def symbols(row: Row, given: Given) -> Symbols:
    """Return the symbols for expressions about a case's inputs: inputs' shapes, `d`, `r`, `n`, attributes, and numbers.

    The numbers are those that are written as an input.
    """
    values: Symbols = {}
    for signature in row.version.signature.attributes:
        value = row.get(signature.name)
        number = as_symbol(signature.default if isinstance(value, Word) else value)
        if number is not None:
            values[signature.name] = number
    for index, (name, several) in enumerate(given.items()):
        if several and isinstance(several[0].part, tuple):
            values[name] = several[0].part
            if index == 0:
                values |= {"d": several[0].part, "r": len(several[0].part), "n": len(several)}
            operand = several[0].operand
            if operand is not None and isinstance(operand.shape, tuple):
                values = {**_bound(operand.shape, several[0].part), **values}
    for port in row.version.signature.inputs[1:]:
        written = row.get(port.name)
        number = as_symbol(written[0] if isinstance(written, tuple) and len(written) == 1 else written)
        if not port.is_variadic and isinstance(number, int):
            values[port.name] = number
    return values


def _bound(shape: Sequence[int | str], actual: tuple[int, ...]) -> Symbols:
    """Return the values of the symbols that are dimensions of an operand's shape; `S...` takes the remaining ones."""
    sizes: Symbols = {}
    rest = len(actual) - len(shape) + 1
    axis = 0
    for word in shape:
        wide = rest if isinstance(word, str) and word.strip().endswith("...") else 1
        here = actual[axis : axis + max(wide, 0)]
        axis += max(wide, 0)
        if isinstance(word, str) and word.removesuffix("...").strip().isidentifier():
            sizes[word.removesuffix("...").strip()] = here if word.strip().endswith("...") else (*here, 0)[0]
    return sizes


@dataclass(frozen=True)
class Filling:
    """Makes the elements of a case's arguments, from a fill and a key for each lane.

    `terms`: the most elements that are summed into one of the result. `captured` are the outer values that bodies use.
    """

    row: Row
    given: Given
    terms: int
    captured: tuple[Argument, ...] = ()

    def tensors(self, fills: Sequence[str], keys: Sequence[str]) -> dict[str, Arrays]:
        """Return the tensors of each argument by name, lanes first; written ones are the same in all lanes."""
        tensors: dict[str, Arrays] = {}
        several = [
            *(argument for group in self.given.values() for argument in group or () if not argument.again),
            *self.captured,
        ]
        for argument in several:
            if argument.value is not None:
                tensors[argument.name] = (np.broadcast_to(argument.value, (len(keys), *argument.value.shape)),)
        tensors |= self._filled(
            [argument for argument in several if argument.how == "filled" or argument.fills_values], fills, keys
        )
        for argument in several:
            if argument.how == "drawn":
                tensors[argument.name] = (self._drawn(argument, tensors, keys), *tensors.get(argument.name, ())[1:])
        return tensors

    def _filled(self, wanted: Sequence[Argument], fills: Sequence[str], keys: Sequence[str]) -> dict[str, Arrays]:
        lanes: dict[str, list[int]] = {}
        for lane, name in enumerate(fills):
            lanes.setdefault(name, []).append(lane)
        if len(lanes) == 1:
            return self._filled_alike(wanted, fills[0], keys)
        filled: dict[str, list[Array]] = {
            argument_.name: [
                np.empty((len(keys), *s), element_type(t.type).dtype)
                for t, s in zip(argument_.leaves, argument_.shapes, strict=True)
            ]
            for argument_ in wanted
        }
        for name, places in lanes.items():
            for argument, arrays in self._filled_alike(wanted, name, [keys[i] for i in places]).items():
                for target, array in zip(filled[argument], arrays, strict=True):
                    target[places] = array
        return {name: tuple(arrays) for name, arrays in filled.items()}

    def _filled_alike(self, wanted: Sequence[Argument], name: str, keys: Sequence[str]) -> dict[str, Arrays]:
        """Fill all tensors of one type as one run of elements, so that one of them gets the NaN."""
        usual = fill_recipe(name)
        runs: dict[tuple[str, Recipe], list[tuple[int, ...]]] = {}
        for argument in wanted:
            for index, (leaf, shape) in enumerate(zip(argument.leaves, argument.shapes, strict=True)):
                if not _is_counted(argument, index):
                    runs.setdefault((leaf.type, self._recipe(argument, usual)), []).append(shape)
        made = {key: self._run(key, sum(map(count, shapes)), keys) for key, shapes in runs.items()}
        used = dict.fromkeys(runs, 0)
        filled: dict[str, Arrays] = {}
        for argument in wanted:
            arrays: list[Array] = []
            for index, (leaf, shape) in enumerate(zip(argument.leaves, argument.shapes, strict=True)):
                if _is_counted(argument, index):
                    arrays.append(_counted(argument, leaf, shape, len(keys)))
                    continue
                key = leaf.type, self._recipe(argument, usual)
                start, used[key] = used[key], used[key] + count(shape)
                elements = made[key][:, start : used[key]]
                if key[1].name == FIRST and key[1] is usual:
                    elements = turned(elements, [f"{text} {argument.name} {index}" for text in keys])
                elements = elements.reshape(len(keys), *shape)
                domain = argument.operand.domain if argument.operand else None
                arrays.append(elements if domain is None else restricted(domain.name, domain.arguments, elements))
            filled[argument.name] = tuple(arrays)
        return filled

    def _recipe(self, argument: Argument, usual: Recipe) -> Recipe:
        return argument.operand.fill if argument.operand is not None and argument.operand.fill is not None else usual

    def check(self, fill_name: str) -> None:
        """Raise CaseIdError for a fill that does not exist, or that suits none of the inputs that it fills."""
        usual = fill_recipe(fill_name)
        given = [*(argument for group in self.given.values() for argument in group or ()), *self.captured]
        wanted = [
            argument
            for argument in given
            if (argument.how == "filled" or argument.fills_values) and self._recipe(argument, usual) is usual
        ]
        leaves_of = [leaf for argument in wanted for leaf in argument.leaves]
        suiting = usual.name in RECIPES and any(suits(usual.name, element_type(leaf.type)) for leaf in leaves_of)
        if suiting or usual.name in self._family_fills:
            return
        if leaves_of and any(map(count, [shape for argument in wanted for shape in argument.shapes])):
            fill(usual.name, Blank(element_type(leaves_of[0].type), 0, 1), [])  # says why

    @functools.cached_property
    def _family_fills(self) -> Mapping[str, Any]:
        return family_of(self.row.spec).own_fills

    def _run(self, key: tuple[str, Recipe], size: int, keys: Sequence[str]) -> Array:
        type_, recipe = key
        blank = Blank(element_type(type_), size, self.terms)
        own = self._family_fills.get(recipe.name)
        if own is not None:
            arguments = tuple(self._arguments(recipe))
            return fill(recipe.name, blank, keys, lambda blank, draw: own(blank, draw, *arguments))
        return fill(recipe.name if suits(recipe.name, blank.type) else FIRST, blank, keys)

    def _arguments(self, recipe: Recipe) -> Iterator[str]:
        letters = dict(zip(free_letters(self.row.version), self.row.id.types, strict=False))
        return (letters.get(word, word) for word in recipe.arguments)

    def _drawn(self, argument: Argument, before: Mapping[str, Arrays], keys: Sequence[str]) -> Array:
        recipe, operand = argument.recipe, argument.operand
        if recipe is None or not (isinstance(argument.part, tuple) or argument.fills_values):
            why = f"a recipe draws only tensors and the keys of maps; {argument.name} is {argument.type}"
            raise OpconformError(f"{self.row.version.operator}: {why}")
        known = symbols(self.row, self.given)
        arguments = {name: _argument_of(value, known) for name, value in (operand.arguments if operand else {}).items()}
        arguments |= {f"_{index}": _argument_of(word, known) for index, word in enumerate(recipe.arguments)}
        drawing = Drawing(
            element_type(argument.leaves[0].type),
            argument.shapes[0],
            Draw([f"{key} {argument.name}" for key in keys]),
            self._attributes,
            {name: arrays[0] for name, arrays in before.items() if arrays},
            arguments,
        )
        try:
            array = np.asarray(family_of(self.row.spec).draws[recipe.name](drawing))
        except (ArithmeticError, LookupError, ValueError) as error:  # an attribute that the recipe needs is absent
            raise OpconformError(
                f"{self.row.id}: {argument.name} cannot be drawn as {recipe.name}: {error!r}"
            ) from error
        array = array.reshape(1 if array.ndim == 1 else len(array), *drawing.shape)
        return np.broadcast_to(array, (len(keys), *drawing.shape)).astype(drawing.type.dtype)

    @functools.cached_property
    def _attributes(self) -> Mapping[str, Any]:
        usual = {a.name: a.default for a in self.row.version.signature.attributes if a.default is not None}
        return {**usual, **{a.name: a.value for a in attributes_of(self.row)}}


def _argument_of(value: Value, known: Symbols) -> Any:
    """Return an argument of a recipe: expressions evaluated, other text as it is."""
    if isinstance(value, tuple):
        return tuple(numbers([v for v in value if isinstance(v, (int, float, str))], known))
    if not isinstance(value, str):
        return value
    try:
        return number(value, known)
    except OpconformError:
        return value


def _is_counted(argument: Argument, index: int) -> bool:
    """Return whether a tensor of a structure is numbered: a map's keys, a sparse tensor's indices."""
    kind = argument.part.kind if isinstance(argument.part, Structure) else ""
    return (kind == "map" and index == 0) or (kind == "sparse" and index == 1)


def _counted(argument: Argument, leaf: Leaf, shape: tuple[int, ...], lanes: int) -> Array:
    """Return keys or indices, sorted and distinct."""
    (size,) = shape
    element = element_type(leaf.type)
    if element.kind == "string":
        names = np.empty(size, object)
        names[:] = [f"key {i:03d}" for i in range(size)]
        return np.broadcast_to(names, (lanes, size))
    dims = argument.part.dims if isinstance(argument.part, Structure) else None
    total = count(tuple(int(d) for d in dims)) if dims else 3 * size
    return np.broadcast_to((np.arange(size) * total // max(size, 1)).astype(element.dtype), (lanes, size))


def output_ports(row: Row, attributes: Sequence[Attribute]) -> tuple[tuple[str, str | None], ...]:
    """Return the names and types of the requested outputs; None for one that is left out.

    Outputs of a variadic port are numbered; `outputs` says how many. If there is a body, they have the types of its
    outputs, or are sequences of these.
    """
    version, asked = row.version, row.get("outputs")
    (*_, last) = version.signature.outputs or (None,)
    if last is not None and last.is_variadic:
        many = asked if isinstance(asked, int) else len(asked) if isinstance(asked, tuple) else last.minimum
        held = results_of(attributes)
        allowed = version.signature.types.get(last.type, ())
        types_held = [
            in_sequence if (in_sequence := f"seq({o.type})") in allowed and o.type not in allowed else o.type
            for o in held
        ]
        types_held = types_held[-many:] if many <= len(held) else []
        types = types_held or [resolve_type(version, row.id.types, last, i) for i in range(many)]
        return tuple((f"{last.name}_{i}", type_) for i, type_ in enumerate(types))
    names = asked if isinstance(asked, tuple) else usual_outputs(version)
    ports = [
        (port.name, resolve_type(version, row.id.types, port) if port.name in names else None)
        for port in version.signature.outputs
    ]
    while ports and ports[-1][1] is None:
        ports.pop()
    return tuple(ports)


_ONNX = "onnx"
_LETTER = re.compile(r"\{(\w+)(\.item)?\}")
_NAMES = {"float32": "float", "float64": "double"}

# Types that the parser of the oldest supported ONNX has no name for, and the types that replace them.
_YOUNG = frozenset({"float4e2m1", "float6e2m3", "float6e3m2", "float8e8m0", "int2", "uint2"})
_STAND_INS = ("complex64", "complex128", "uint16", "int16", "uint32", "uint64")


def body_of(version: VersionSpec, types: tuple[str, ...], name: str) -> Body:
    """Return the body that a spec calls `name`, `{V}` in it replaced by the type that the case has for V.

    Raises OpconformError if there is no such body, or ONNX's parser does not read it.
    """
    return _read(version, types, name)[0]


def captured_by(version: VersionSpec, types: tuple[str, ...], names: Iterable[str]) -> tuple[Input, ...]:
    """Return the outer values that bodies use, in the order of their use, as inputs of the program.

    Each has the type and dimensions of the output that a body copies it to. Raises OpconformError if no body does.
    """
    captured: dict[str, Input | None] = {}
    for name in names:
        body, outputs = _read(version, types, name)
        for free, copy in _free(body, outputs, frozenset()):
            captured[free] = captured.get(free) or (None if copy is None else replace(copy, name=free))
        missing = [free for free, copy in captured.items() if copy is None]
        if missing:
            message = f"the type of {missing[0]} is unknown; copy it to an output, by Identity or a Loop"
            raise OpconformError(f"{version.operator}, graph {body.name!r}: {message}")
    return tuple(input_ for input_ in captured.values() if input_ is not None)


def _free(body: Body, outputs: Mapping[str, Input], around: frozenset[str]) -> Iterator[tuple[str, Input | None]]:
    """Yield the names that a body and its inner bodies use but do not define, with an output that copies each."""
    inside = around | {part.name for part in body.inputs} | {name for node in body.nodes for name in node.outputs}
    for node in body.nodes:
        copy = outputs.get(node.outputs[0]) if node.operator.name in ("Identity", "Loop") else None
        yield from ((name, copy) for name in node.inputs if name and name not in inside)
        for inner in (part.value for part in node.attributes if isinstance(part.value, Body)):
            plain = {
                part.name: Input(part.name, part.type, part.shape) for part in inner.outputs if part.shape is not None
            }
            yield from _free(inner, plain, inside)


def _read(version: VersionSpec, types: tuple[str, ...], name: str) -> tuple[Body, Mapping[str, Input]]:
    if name not in version.graphs:
        raise OpconformError(f"{version.operator} has no graph {name!r}; it has {', '.join(version.graphs)}")
    bound = dict(zip(free_letters(version), types, strict=False))

    def type_(match: re.Match[str]) -> str:
        name = bound.get(match[1], match[1])
        return _onnx_type(element_names(name)[-1] if match[2] else name)

    body, outputs = _parsed(_LETTER.sub(type_, version.graphs[name]))
    standard = version.operator.standard
    return (body if standard == _ONNX else native(body, standard)), outputs


def _onnx_type(name: str) -> str:
    return re.sub(r"\w+", lambda word: _NAMES.get(word[0], word[0]), name)


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[Body, Mapping[str, Input]]:
    """Return a body, and its outputs with their dimensions."""
    import onnx.parser  # noqa: PLC0415 - it takes long, and few operators have bodies

    words = set(re.findall(r"\w+", text))
    young, free = sorted(words & _YOUNG), (name for name in _STAND_INS if name not in words)
    stand_ins = dict(zip(young, free, strict=False))
    try:
        graph = onnx.parser.parse_graph(re.sub(r"\w+", lambda word: stand_ins.get(word[0], word[0]), text))
    except onnx.parser.ParseError as error:
        raise OpconformError(f"{text!r} is not a graph: {error}") from None
    named = {name: young for young, name in stand_ins.items()}
    return _body(graph, named), {output.name: _input(output, named) for output in graph.output}


def _body(graph: GraphProto, named: Mapping[str, str]) -> Body:
    fixed = {value.name: from_tensor_proto(value) for value in graph.initializer}
    return Body(
        graph.name,
        (
            *(_input(value, named) for value in graph.input if value.name not in fixed),
            *(Input(name, type_of(array), array.shape, content(array)) for name, array in fixed.items()),
        ),
        tuple(_output(_input(value, named)) for value in graph.output),
        tuple(_node(node, named) for node in graph.node),
    )


def _input(value: ValueInfoProto, named: Mapping[str, str]) -> Input:
    """Return a value of a graph as an input; `named` has the type that each replacement type is for."""
    type_ = _type(value.type, named)
    tensor = value.type.tensor_type
    dims = tuple(d.dim_param or d.dim_value for d in tensor.shape.dim) if value.type.HasField("tensor_type") else ()
    is_plain = is_tensor(type_) and tensor.HasField("shape")
    return Input(value.name, type_, dims, structure=None if is_plain else _structure(parse_type(type_)))


def _output(declared: Input) -> Output:
    if declared.structure is not None:
        return Output(declared.name, declared.type, None)
    sizes = tuple(d for d in declared.dims if isinstance(d, int))
    return Output(declared.name, declared.type, len(declared.dims), sizes if sizes == declared.dims else None)


def _structure(expression: TypeExpression) -> Structure:
    """Return the smallest structure of a type: bodies do not state a number of items or a rank."""
    return Structure(expression.kind, () if expression.kind == "sparse" else None)


def _type(type_: TypeProto, named: Mapping[str, str]) -> str:
    if type_.HasField("sequence_type"):
        return f"seq({_type(type_.sequence_type.elem_type, named)})"
    if type_.HasField("optional_type"):
        return f"optional({_type(type_.optional_type.elem_type, named)})"
    name = numbered(type_.tensor_type.elem_type)
    if name is None:
        raise OpconformError(f"a body has a value of type {type_}, which cases cannot have")
    return named.get(name.name, name.name)


def _node(node: NodeProto, named: Mapping[str, str]) -> Node:
    operator = OperatorVersion("onnx", node.op_type, NO_VERSION, node.domain)
    attributes = tuple(attribute_from(attribute, named) for attribute in node.attribute)
    return Node(operator, tuple(node.input), tuple(node.output), attributes)


def attribute_from(attribute: AttributeProto, named: Mapping[str, str] = MappingProxyType({})) -> Attribute:
    """Return an ONNX attribute in the form that programs use. Raises OpconformError for a kind that they cannot have.

    `named` has the type that each replacement type is for.
    """
    from onnx import AttributeProto, helper  # noqa: PLC0415 - as above

    kind: Any = AttributeProto.AttributeType.Name(attribute.type).lower()
    value: Any = helper.get_attribute_value(attribute)
    match kind:
        case "tensor":
            value = Tensor.of(from_tensor_proto(value))
        case "sparse_tensor":
            parts = Tensor.of(from_tensor_proto(value.values)), Tensor.of(from_tensor_proto(value.indices))
            value = SparseTensor(*parts, tuple(value.dims))
        case "graph":
            value = _body(value, named)
        case "type_proto":
            value = _type(value, named)
        case "string":
            value = value.decode()
        case "strings":
            value = tuple(text.decode() for text in value)
        case "ints" | "floats":
            value = tuple(value)
        case "int" | "float":
            pass
        case _:
            raise OpconformError(f"attribute {attribute.name} is of kind {kind}")
    return Attribute(attribute.name, kind, value)

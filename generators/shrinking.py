"""Simpler cases: the steps by which a failing case can be shrunk."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from ..cases.elements import Array, element_type
from ..cases.errors import OpconformError
from ..cases.ids import CaseId, Part, Shape, parse_id, print_shape
from ..cases.program import Structure, count
from ..specs.model import Port, Recipe, Word
from .fills import FIRST, UNDRAWN
from .parameters import elements_of, has_values, resolve_type, text_of, usual_rank
from .rows import draws, settle, without_settings
from .source import GeneratedCases

_MOST_WRITTEN = 256
"""The most elements that are written into an id."""
_MOST_SINGLE = 64
"""The most elements that are simplified one by one; more are simplified in runs."""
_MOST_TIED = 24
"""The most numbers in settings for which pairs are simplified together."""
_DRAWS = 8
"""The number of draws to try: another shape draws other elements, and perhaps only a few of them fail."""
_PLAIN_FILLS = (FIRST, "ones", "zeros")
_NO_NUMBERS = frozenset({"draw", "seed", "outputs", "opset"})
_AXES = re.compile(r"ax[ei]s|perm|dim")
_INTEGER = re.compile(r"-?\d+")
_Item = TypeVar("_Item")
_TextArray: TypeAlias = Array
"""An array of objects: the text of elements in ids."""


@dataclass(frozen=True)
class _Draft:
    """The parts of a case id: the inputs that it fills or draws, the inputs that it writes, and its other settings."""

    case: CaseId
    parts: tuple[Part, ...]
    written: Mapping[str, _TextArray]
    settings: Mapping[str, str]

    def having(self, name: str, text: str | None) -> _Draft:
        """Return the draft with another value of a setting; for None, without the setting."""
        settings = {**self.settings, name: text}
        return replace(self, settings={key: value for key, value in settings.items() if value is not None})


@dataclass(frozen=True)
class _Slot:
    """One dimension of an input: a filled one by its index, a written one by its name; `path` leads to an item."""

    index: int | str
    path: tuple[int, ...]
    axis: int
    rank: int
    extent: int


@dataclass(frozen=True)
class _List:
    """The numbers of an attribute in an id, after the head of a tensor; a single number is one word."""

    head: str
    words: tuple[str, ...]
    is_list: bool

    def __str__(self) -> str:
        kind, _, dims = self.head.rpartition(":")
        head = [self.head if "x" in dims or dims == "scalar" else ":".join(filter(None, (kind, str(len(self.words)))))]
        return ":".join([*(head if self.head else []), ",".join(self.words) or "none"])

    def having(self, index: int, word: str) -> _List:
        """Return the list with another word at an index."""
        return replace(self, words=(*self.words[:index], word, *self.words[index + 1 :]))

    def without(self, index: int) -> _List:
        """Return the list without one word."""
        return replace(self, words=(*self.words[:index], *self.words[index + 1 :]))


Size: TypeAlias = tuple[float, ...]


class Shrinker:
    """Simplifies the cases of one operator version."""

    def __init__(self, source: GeneratedCases, operator_version: str) -> None:
        spec, key = source.library.operator_version(operator_version)
        self._source, self._version = source, spec.version(key)

    @property
    def steps(self) -> Sequence[Callable[[str], Iterator[str]]]:
        """The kinds of steps, each from a case's id to the ids of simpler cases, the boldest first.

        A step may return an invalid id; generating its case raises an error.
        """
        kinds = (
            self._plain, self._inputs, self._settings, self._fills, self._ranks, self._extents,
            self._spelled_out, self._places, self._numbers, self._elements,
        )  # fmt: skip
        return [self._texts(kind) for kind in kinds]

    def draws(self, case_id: str) -> list[str]:
        """Return the case's id, and ids of other draws if its elements are drawn."""
        case = without_settings(parse_id(case_id), "draw")
        if not draws(self._version, case):
            return [case_id]
        numbered = [case.having({"draw": str(number)}) for number in range(1, _DRAWS)]
        return list(dict.fromkeys([case_id, *map(str, (case, *numbered))]))

    def size(self, case_id: str) -> Size:
        """Return a measure by which cases are compared: tuples, smaller if simpler."""
        case = parse_id(case_id)
        draft = self._draft(case)
        drawn = {name: int(draft.settings[name]) for name in ("draw", "seed") if name in draft.settings}
        slots = _slots(draft)
        words = [word for array in draft.written.values() for word in array.reshape(-1).tolist()]
        settings = [text for name, text in draft.settings.items() if name not in drawn]
        spelled = sum(self._is_filled(name) for name in draft.written)
        return (
            float(case.edge is not None),
            len(draft.written) + sum(map(_number_of, draft.parts)),
            len(slots),
            sum(slot.extent - 1 if slot.extent else 0.5 for slot in slots),
            len(settings),
            float(draws(self._version, case)),
            spelled + (case.fill != FIRST),
            sum(_cost(word) for text in settings for word in re.split(r"[,:]", text)),
            sum(map(_cost, words)),
            sum(drawn.values()),
            len(case_id),
        )

    # Between ids and drafts

    def _texts(self, kind: Callable[[_Draft], Iterator[_Draft]]) -> Callable[[str], Iterator[str]]:
        def texts(case_id: str) -> Iterator[str]:
            draft, size = self._draft(parse_id(case_id)), self.size(case_id)
            seen = {case_id}
            for simpler in kind(draft):
                text = self._text(simpler)
                if text is None or text in seen:
                    continue
                seen.add(text)
                with contextlib.suppress(OpconformError):  # not in the signature, so not a candidate
                    if self.size(text) < size:
                        yield text

        return texts

    def _draft(self, case: CaseId) -> _Draft:
        signature, written, settings = self._version.signature, dict[str, _TextArray](), dict[str, str]()
        typed = self._source.row(case).settings
        for name, text in case.settings:
            port = signature.input(name)
            is_tensor = port is not None and not port.is_variadic and signature.attribute(name) is None
            array = None
            if is_tensor and text not in ("omitted", "given") and not isinstance(typed.get(name), Recipe):
                array = _read(text, usual_rank(self._version, name))
            if array is None:
                settings[name] = text
            else:
                written[name] = array
        return _Draft(case, case.shapes, written, settings)

    def _text(self, draft: _Draft) -> str | None:
        """Return the id of a draft, None if it has none."""
        if not self._fits(draft):
            return None
        parts = list(draft.parts)
        while parts and parts[-1] is None:
            parts.pop()
        settings = dict(draft.settings)
        for name, array in draft.written.items():
            settings[name] = _write(array, usual_rank(self._version, name))
        case = replace(draft.case, shapes=tuple(parts), settings=tuple(sorted(settings.items())), edge=None)
        try:
            return str(parse_id(str(settle(self._version, case))))
        except (OpconformError, ValueError):
            return None

    def _is_filled(self, name: str) -> bool:
        """Whether a written input is data, which could be filled or drawn; lists such as axes are not."""
        port = self._version.signature.input(name)
        return port is not None and not has_values(self._version, port) and name not in self._bundled

    @functools.cached_property
    def _bundled(self) -> frozenset[str]:
        """The inputs that are written by levels of other parameters."""
        bundled = (entry for bundle in self._version.bundles for entry in bundle.items())
        return frozenset(name for name, value in bundled if not isinstance(value, Word | Recipe))

    def _fits(self, draft: _Draft) -> bool:
        """Whether every input has a rank that its operand allows, if the spec writes the operand's shape as a list."""
        for port in self._version.signature.inputs:
            shape = operand.shape if (operand := self._version.operands.get(port.name)) is not None else None
            index = self._index(draft, port.name)
            part = draft.parts[index] if index < len(draft.parts) and not has_values(self._version, port) else None
            part = draft.written[port.name].shape if port.name in draft.written else part
            if isinstance(shape, tuple) and isinstance(part, tuple) and not port.is_variadic:
                single = sum(not str(dim).endswith("...") for dim in shape)
                if len(part) < single or (len(part) > single and single == len(shape)):
                    return False
        return True

    def _index(self, draft: _Draft, name: str) -> int:
        """Return the index among the parts that an input would have."""
        index = 0
        for port in self._version.signature.inputs:
            if port.name == name:
                break
            index += port.name not in draft.written and not has_values(self._version, port)
        return index

    def _free_slots(self, draft: _Draft) -> list[_Slot]:
        """Return the dimensions that may change: none if a body declares them."""
        return [] if any(self._version.signature.kind(name) == "graph" for name in draft.settings) else _slots(draft)

    # Steps

    def _plain(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case without its edge's name, and with the ramp as its fill."""
        yield replace(draft.having("draw", None).having("seed", None), case=replace(draft.case, fill=FIRST))
        yield draft

    def _inputs(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case with fewer inputs: fewer tensors of a variadic port, fewer items, no optional ones."""
        parts = draft.parts
        many = len(parts) // 2
        for start, stop in dict.fromkeys([(0, many), (many, len(parts)), *((i, i + 1) for i in range(len(parts)))]):
            yield self._left_out(draft, start, stop)
            if all(part is not None for part in parts[start:stop]):
                yield replace(draft, parts=(*parts[:start], *[None] * (stop - start), *parts[stop:]))
        for index, part in enumerate(parts):
            for fewer in _fewer(part):
                yield replace(draft, parts=(*parts[:index], fewer, *parts[index + 1 :]))
        for name in draft.written:
            rest = {key: array for key, array in draft.written.items() if key != name}
            index, port = self._index(draft, name), self._version.signature.input(name)
            without = replace(draft, written=rest)
            if port is not None and not has_values(self._version, port) and index < len(parts):
                without = replace(without, parts=(*parts[:index], None, *parts[index:]))
            yield without
            yield replace(without, settings={**without.settings, name: "omitted"})

    def _left_out(self, draft: _Draft, start: int, stop: int) -> _Draft:
        """Return the case without some parts, and without their types if each has its own."""
        types = draft.case.types
        letters = len(self._version.signature.free_letters)
        first = len(draft.parts) - (len(types) - letters + 1)  # the part of the last letter's first type
        if len(types) > letters:
            types = tuple(t for i, t in enumerate(types) if not start <= i - (letters - 1) + first < stop)
        case = replace(draft.case, types=types)
        return replace(draft, case=case, parts=(*draft.parts[:start], *draft.parts[stop:]))

    def _settings(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case without all, one or two of its settings, and with fewer outputs."""
        names = [name for name in draft.settings if name not in ("draw", "seed")]
        yield replace(draft, settings={})
        for some in (*itertools.combinations(names, 1), *itertools.combinations(names, 2)):
            yield replace(draft, settings={n: text for n, text in draft.settings.items() if n not in some})
        for name in names:
            words = draft.settings[name].split(",")
            if name == "outputs" and words[0].isdigit():
                yield draft.having(name, str(max(int(words[0]) - 1, 0)))
            elif name == "outputs":
                yield from (draft.having(name, _joined(words, i)) for i in range(len(words)))
        if "draw" in draft.settings or "seed" in draft.settings:
            yield draft.having("seed", None)
            yield draft.having("draw", None)

    def _fills(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case with simpler fills, also in place of elements that are written."""
        filled = replace(draft, written={n: a for n, a in draft.written.items() if not self._is_filled(n)})
        for port in self._version.signature.inputs:  # in order, so that each gets its own index
            if port.name in draft.written and port.name not in filled.written:
                index = self._index(replace(draft, written=filled.written), port.name)
                dims = draft.written[port.name].shape
                filled = replace(filled, parts=(*filled.parts[:index], dims, *filled.parts[index:]))
        for fill in _PLAIN_FILLS:
            yield replace(filled, case=replace(draft.case, fill=fill))

    def _ranks(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case with one dimension less, in one or more inputs and in lists with a number per dimension."""
        slots = [s for s in self._free_slots(draft) if isinstance(s.index, int) or self._is_filled(s.index)]
        for slot in slots:
            alike = [other for other in slots if other.rank == slot.rank and other.axis == slot.axis]
            front = [other for other in slots if other.axis == slot.axis]
            back = [other for other in slots if other.axis - other.rank == slot.axis - slot.rank]
            for group in _distinct([alike, back, front, [slot]]):
                without = _without(draft, group)
                for first in (0, 2):
                    cut = self._cut(without, slot.axis, slot.rank, first)
                    shorter = _shorter(cut, slot.rank - first)
                    yield from (self._renumbered(cut, slot.axis, slot.rank), shorter, cut)
                yield without

    def _cut(self, draft: _Draft, axis: int, rank: int, first: int) -> _Draft:
        """Return the case with one dimension less in the lists that have a number per dimension from `first` on."""
        settings, written = dict(draft.settings), dict(draft.written)
        for name, text in draft.settings.items():
            if self._version.signature.kind(name).endswith("s") and (
                places := _places(text.split(","), axis, rank, first)
            ):
                settings[name] = _joined(text.split(","), *places)
        for name, array in draft.written.items():
            if array.ndim == 1 and not self._is_filled(name) and (places := _places(array.tolist(), axis, rank, first)):
                written[name] = np.delete(array, places)
        return replace(draft, settings=settings, written=written)

    def _renumbered(self, draft: _Draft, axis: int, rank: int) -> _Draft:
        """Return the case with axes renumbered after one was removed."""

        def renumbered(word: str) -> str:
            if not _INTEGER.fullmatch(word):
                return word
            number = int(word)
            return str(number - 1 if number > axis else number + 1 if number < axis - rank else number)

        names = (*filter(self._version.signature.kind, draft.settings), *draft.written)
        return _reworded(draft, set(filter(_AXES.search, names)), renumbered)

    def _extents(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case with smaller extents: of all dimensions, of dimensions that may be tied, of one."""
        slots = [slot for slot in self._free_slots(draft) if slot.extent != 1]
        yield from _resized(draft, dict.fromkeys(slots, 1))
        yield from _resized(draft, {slot: 1 for slot in slots if slot.extent})
        yield from _resized(draft, {slot: slot.extent - slot.extent // 2 for slot in slots})
        for extent in sorted({slot.extent for slot in slots}, reverse=True):
            for fewer in _fewer_than(extent):
                alike = {slot: fewer for slot in slots if slot.extent == extent}
                multiples = {
                    slot: slot.extent // extent * fewer for slot in slots if extent and not slot.extent % extent
                }
                for extents in (alike, multiples):
                    yield from _resized(draft, extents)
                    yield from _resized(self._replaced(draft, extents), extents)
        for slot in slots:
            same = [other for other in slots if other.extent == slot.extent]
            front = [other for other in same if other.axis == slot.axis]
            back = [other for other in same if other.axis - other.rank == slot.axis - slot.rank]
            pairs = ([slot, other] for other in same if other != slot)
            for group in _distinct([front, back, [slot], *pairs]):
                for fewer in _fewer_than(slot.extent):
                    resized = dict.fromkeys(group, fewer)
                    yield from _resized(draft, resized)
                    yield from _resized(self._replaced(draft, resized), resized)

    def _replaced(self, draft: _Draft, extents: Mapping[_Slot, int]) -> _Draft:
        """Return the case with the settings replaced that equal such an extent, such as a kernel's or a hidden size."""
        renamed = {str(slot.extent): str(extent) for slot, extent in extents.items()}
        lists = {name for name in draft.written if not self._is_filled(name)}
        return _reworded(
            draft,
            lists.union(filter(self._version.signature.kind, draft.settings)),
            lambda word: renamed.get(word, word),
        )

    def _spelled_out(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case with its drawn elements written out, so that they stay the same while it shrinks."""
        case = draft.case
        if case.edge is not None or not draws(self._version, case) or _elements_of(draft.parts) > _MOST_WRITTEN:
            return
        batch = self._source.case(str(case))
        arrays = dict(zip((name for name, _ in batch.program.named_leaves), batch.tensors(), strict=True))
        all_drawn = case.fill not in UNDRAWN
        ports = []
        for port in self._version.signature.inputs:
            operand = self._version.operands.get(port.name)
            is_drawn = all_drawn or (operand is not None and operand.draws)
            if is_drawn and port.name in arrays and not port.is_variadic and port.name not in draft.written:
                ports.append(port)
        for some in _distinct([ports, *([port] for port in ports)]):
            yield from self._with_elements(draft, some, arrays)

    def _with_elements(self, draft: _Draft, ports: Sequence[Port], arrays: Mapping[str, Array]) -> Iterator[_Draft]:
        parts, written = list(draft.parts), dict(draft.written)
        for port in sorted(ports, key=lambda port_: -self._index(draft, port_.name)):
            if self._index(draft, port.name) >= len(parts) or has_values(self._version, port):
                return
            array = _spelled(arrays[port.name], resolve_type(self._version, draft.case.types, port))
            if array is None:
                return
            written[port.name] = array
            del parts[self._index(draft, port.name)]
        settings = {name: text for name, text in draft.settings.items() if name not in {port.name for port in ports}}
        yield replace(draft, parts=tuple(parts), written=written, settings=settings)

    def _places(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case without one index of a dimension of written inputs."""
        slots = [slot for slot in self._free_slots(draft) if slot.extent != 1]
        for slot in slots:
            if isinstance(slot.index, int) or slot.extent > _MOST_SINGLE:
                continue
            same = [other for other in slots if other.extent == slot.extent]
            front = [other for other in same if other.axis == slot.axis]
            back = [other for other in same if other.axis - other.rank == slot.axis - slot.rank]
            for group in _distinct([front, back, [slot]]):
                for index in range(1, slot.extent - 1):
                    kept = [i for i in range(slot.extent) if i != index]
                    smaller = dict.fromkeys(group, len(kept))
                    yield _kept(draft, smaller, lambda _: kept)  # noqa: B023 - asked at once

    def _numbers(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case with shorter lists and simpler words in its settings; lists of equal length may be tied."""
        lists = self._lists(draft)
        lengths = sorted({len(entries.words) for entries in lists.values() if entries.is_list}, reverse=True)
        for length in lengths:
            tied = {
                name: entries for name, entries in lists.items() if entries.is_list and len(entries.words) == length
            }
            for index in reversed(range(length)):
                for some in _distinct([list(tied), *([name] for name in tied)]):
                    yield _with(draft, {name: tied[name].without(index) for name in some})
        for name, entries in lists.items():
            for simple in ("0", "1") if _number(entries.words[0]) is not None else ():
                yield _with(draft, {name: replace(entries, words=(simple,) * len(entries.words))})
            for index, word in enumerate(entries.words):
                yield from (_with(draft, {name: entries.having(index, simple)}) for simple in _simpler(word))
        numbers = [
            (name, i) for name, entries in lists.items() for i, word in enumerate(entries.words) if _number(word)
        ]
        pairs = itertools.combinations(numbers[:_MOST_TIED], 2)  # such as a kernel's extent and its padding
        for (one_name, i), (other, j) in pairs:
            for zero_or_one in itertools.product(("0", "1"), repeat=2):
                changed = {one_name: lists[one_name].having(i, zero_or_one[0])}
                changed[other] = changed.get(other, lists[other]).having(j, zero_or_one[1])
                yield _with(draft, changed)

    def _lists(self, draft: _Draft) -> dict[str, _List]:
        """Return the numbers and lists of attributes, by the attribute's name."""
        lists = {}
        for name, text in draft.settings.items():
            kind = self._version.signature.kind(name)
            head, _, rest = text.rpartition(":") if kind == "tensor" else ("", "", text)
            entries = _List(head, tuple(rest.split(",")), bool(head) or kind.endswith("s"))
            if name not in _NO_NUMBERS and kind and (entries.is_list or _number(rest) is not None):
                lists[name] = entries
        return lists

    def _elements(self, draft: _Draft) -> Iterator[_Draft]:
        """Yield the case with simpler elements in written inputs: zeros and ones, in runs and one by one."""
        for name, array in draft.written.items():
            flat = array.reshape(-1)
            length = flat.size
            while length:
                for start in range(0, flat.size, length):
                    for simple in _simplest(flat[start]):
                        changed = flat.copy()
                        changed[start : start + length] = simple
                        yield replace(draft, written={**draft.written, name: changed.reshape(array.shape)})
                length //= 2
            for index in range(flat.size) if flat.size <= _MOST_SINGLE else ():
                for simple in _simpler(flat[index]):
                    changed = flat.copy()
                    changed[index] = simple
                    yield replace(draft, written={**draft.written, name: changed.reshape(array.shape)})


def _reworded(draft: _Draft, names: Set[str], change: Callable[[str], str]) -> _Draft:
    """Return the case with each word changed in some settings and written inputs."""
    texts = {name: ",".join(map(change, text.split(","))) for name, text in draft.settings.items() if name in names}
    arrays = {name: _mapped(array, change) for name, array in draft.written.items() if name in names}
    return replace(draft, settings={**draft.settings, **texts}, written={**draft.written, **arrays})


def _with(draft: _Draft, lists: Mapping[str, _List]) -> _Draft:
    return replace(draft, settings={**draft.settings, **{name: str(entries) for name, entries in lists.items()}})


# Dimensions


def _slots(draft: _Draft) -> list[_Slot]:
    held: list[tuple[int | str, tuple[int, ...], Shape]] = []
    for index, part in enumerate(draft.parts):
        held += [(index, path, dims) for path, dims in _tensors(part)]
    held += [(name, (), array.shape) for name, array in draft.written.items()]
    return [_Slot(where, path, axis, len(dims), dims[axis]) for where, path, dims in held for axis in range(len(dims))]


def _tensors(part: Part) -> Iterator[tuple[tuple[int, ...], Shape]]:
    """Yield the dimensions of each tensor of an input, with the path to it through sequences and optionals."""
    if isinstance(part, tuple):
        yield (), part
    elif part is not None:
        if part.dims is not None:
            yield (), tuple(int(d) for d in part.dims)
        for index, item in enumerate(part.items):
            yield from (((index, *path), dims) for path, dims in _tensors(item))


def _reshaped(part: Part, path: tuple[int, ...], dims: Shape) -> Part:
    if part is None or isinstance(part, tuple):
        return dims
    if not path:
        return replace(part, dims=dims)
    items = list(part.items)
    inner = _reshaped(items[path[0]], path[1:], dims)
    assert isinstance(inner, Structure)
    items[path[0]] = inner
    return replace(part, items=tuple(items))


def _number_of(part: Part) -> int:
    """Return the number of tensors and entries of an input."""
    if isinstance(part, Structure):
        return 1 + part.count + sum(map(_number_of, part.items))
    return int(part is not None)


def _elements_of(parts: Iterable[Part]) -> int:
    return sum(count(dims) for part in parts for _, dims in _tensors(part))


def _fewer(part: Part) -> Iterator[Part]:
    """Yield an input with fewer items or entries, if it has any."""
    if not isinstance(part, Structure):
        return
    for index, item in enumerate(part.items):
        yield replace(part, items=(*part.items[:index], *part.items[index + 1 :]))
        for inner in _fewer(item):
            assert isinstance(inner, Structure)
            yield replace(part, items=(*part.items[:index], inner, *part.items[index + 1 :]))
    for number in _fewer_than(part.count) if part.count else ():
        yield replace(part, count=number)


def _fewer_than(extent: int) -> list[int]:
    """Return the extents that are simpler than `extent`; 0 is special, so 1 is simpler."""
    return [] if extent == 1 else list(dict.fromkeys([1, extent // 2, extent - 1])) if extent else [1]


def _resized(draft: _Draft, extents: Mapping[_Slot, int]) -> Iterator[_Draft]:
    """Yield the case with other extents; written inputs keep their first or their last elements."""
    written = [slot for slot in extents if isinstance(slot.index, str)]
    if any(slot.extent < extents[slot] for slot in written):  # further elements are unknown
        return
    yield _kept(draft, extents, lambda slot: range(extents[slot]))
    if written:
        yield _kept(draft, extents, lambda slot: range(slot.extent - extents[slot], slot.extent))


def _kept(draft: _Draft, extents: Mapping[_Slot, int], places: Callable[[_Slot], Sequence[int]]) -> _Draft:
    """Return the case with other extents; `places` has the indices to keep of a written input's dimension."""
    parts, written = list(draft.parts), dict(draft.written)
    for slot, extent in extents.items():
        if isinstance(slot.index, int):
            dims = dict(_tensors(parts[slot.index]))[slot.path]
            dims = (*dims[: slot.axis], extent, *dims[slot.axis + 1 :])
            parts[slot.index] = _reshaped(parts[slot.index], slot.path, dims)
        elif slot.index in written and slot.axis < written[slot.index].ndim:
            written[slot.index] = written[slot.index].take(places(slot), slot.axis)
    return replace(draft, parts=tuple(parts), written=written)


def _without(draft: _Draft, slots: Iterable[_Slot]) -> _Draft:
    """Return the case without some dimensions, at most one per tensor."""
    parts, written = list(draft.parts), dict(draft.written)
    for slot in slots:
        if isinstance(slot.index, int):
            dims = dict(_tensors(parts[slot.index]))[slot.path]
            parts[slot.index] = _reshaped(parts[slot.index], slot.path, (*dims[: slot.axis], *dims[slot.axis + 1 :]))
        elif slot.extent:
            written[slot.index] = written[slot.index].take(0, slot.axis)
            written[slot.index] = np.asarray(written[slot.index], object)  # also if it is a scalar
        else:
            written[slot.index] = written[slot.index].reshape(
                (*written[slot.index].shape[: slot.axis], *written[slot.index].shape[slot.axis + 1 :])
            )
    return replace(draft, parts=tuple(parts), written=written)


def _shorter(draft: _Draft, dimensions: int) -> _Draft:
    """Return the case with shorter filled lists, if they have one or two elements for each of some dimensions."""
    parts = [
        (part[0] - part[0] // dimensions,)
        if isinstance(part, tuple) and dimensions and part in ((dimensions,), (2 * dimensions,))
        else part
        for part in draft.parts
    ]
    return replace(draft, parts=tuple(parts))


def _distinct(groups: Iterable[list[_Item]]) -> Iterator[list[_Item]]:
    """Yield the groups that are not empty, each set of members once."""
    seen: list[set[int]] = []
    for group in groups:
        key = set(map(id, group))
        if group and key not in seen:
            seen.append(key)
            yield group


def _places(words: Sequence[str], axis: int, rank: int, first: int) -> list[int]:
    """Return the indices in a list that belong to a dimension, judged by the list's length."""
    if not first and sorted(words) == sorted(map(str, range(rank))):  # a permutation
        return [words.index(str(axis))]
    rest = rank - first
    if axis < first or rest < 2 or len(words) not in (rest, 2 * rest):  # a list must not become empty
        return []
    return list(range(axis - first, len(words), rest))


# Elements as text


def _read(text: str, rank: int) -> _TextArray | None:
    """Return the elements in a setting's text, None if it does not look like a tensor."""
    head, colon, rest = text.rpartition(":")
    words = rest.split(",") if rest != "none" else []
    try:
        dims = () if head == "scalar" else tuple(int(d) for d in head.split("x")) if colon else (len(words),) * rank
    except ValueError:
        return None
    if count(dims) != len(words):
        return None
    array = np.empty(len(words), object)
    array[:] = words
    return array.reshape(dims)


def _write(array: _TextArray, rank: int) -> str:
    text = ",".join(array.reshape(-1).tolist()) or "none"
    return text if array.ndim == rank < 2 else f"{print_shape(array.shape)}:{text}"


def _spelled(array: Array, type_: str) -> _TextArray | None:
    """Return the text of elements in ids; None for types that have no plain text."""
    element = element_type(type_) if "(" not in type_ else None
    if element is None or element.kind == "complex" or not array.size:
        return None
    wide = {"float": np.float64, "signed": np.int64, "unsigned": np.uint64}.get(element.kind)
    plain = array if wide is None else array.astype(wide)
    texts = np.empty(array.size, object)
    texts[:] = [text_of(value, elements_of(type_), {}, 0) for value in plain.reshape(-1).tolist()]
    return texts.reshape(array.shape)


def _mapped(array: _TextArray, function: Callable[[str], str]) -> _TextArray:
    mapped = np.empty(array.size, object)
    mapped[:] = [function(word) for word in array.reshape(-1).tolist()]
    return mapped.reshape(array.shape)


def _joined(words: Sequence[str], *left_out: int) -> str:
    return ",".join(word for index, word in enumerate(words) if index not in left_out) or "none"


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _cost(word: str) -> float:
    """Return how complex a number is: 0, 1, other digits, more digits."""
    number = _number(word)
    if number is None:
        return 0.0 if word == "false" else 1.0 if word == "true" else 2.0 + len(word)
    if word in ("0", "1"):
        return float(word) / 2
    tail = min(math.log2(1 + abs(number)), 2000) / 4000 if math.isfinite(number) else 0.5
    return 1 + len(word) + tail


def _simplest(word: str) -> tuple[str, ...]:
    return ("false",) if word in ("true", "false") else ("0", "1") if _number(word) is not None else ("%",)


def _simpler(word: str) -> Iterator[str]:
    """Yield simpler numbers than `word`, as text."""
    yield from _simplest(word)
    number = _number(word)
    if number is None or not math.isfinite(number):
        yield from ("inf",) if word == "-inf" else ()
        return
    if _INTEGER.fullmatch(word):
        integer = int(word)
        some = [-integer, abs(integer) // 2, integer // 2, integer // 10 * 10, integer - 1, integer + 1]
        yield from (str(number_) for number_ in some)
        return
    yield from (str(int(number_)) for number_ in (number, abs(number)) if abs(number) < 1 << 53)
    for digits in (1, 2, 3):
        rounded = float(f"{abs(number):.{digits}g}")
        yield from (_text(number_) for number_ in (rounded, math.copysign(rounded, number)))
    yield "0.5"


def _text(number: float) -> str:
    return str(text_of(number, "float", {}))

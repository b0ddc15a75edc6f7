"""A group of cases as bytes and back: its program, inputs, what is expected, and digests.

The bytes of arrays after a head of JSON; what was damaged is noticed.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from ..cases.elements import Array, element_type
from ..cases.expectation import Bounds, Option, Residue, Spread
from ..cases.lanes import CaseGroup, LanedExpectation, LanedOption
from ..cases.model import Attribute, Input, OperatorVersion, Output, Program

_MARK: Final = b"opconform cases 2\n"
_START: Final = len(_MARK) + 4 + 8  # bytes before the head: the mark, a checksum of the rest, and the head's size
_ALIGNED: Final = 64  # bytes at whose multiples arrays begin
_DIGEST: Final = 64  # hexadecimal digits of a sha256


def packed(group: CaseGroup) -> bytes:
    """Return a group as bytes; arrays that the options of its expectation share are written once."""
    arrays, expectation = _Arrays(), group.expectation
    options = [_option_to_json(one, arrays) for one in expectation.options]
    told = {
        "program": _program_to_json(group.program),
        "key": group.program.key,
        "clauses": group.clauses,
        "mended": group.mended,
        "types": expectation.types,
        "options": options,
        "digests": [arrays.add(_digests_to_array(digests)) for digests in (group.digests, expectation.digests)],
        "inputs": [_input_to_json(array, arrays) for array in group.inputs],
        "arrays": arrays.heads,
    }
    head = json.dumps(told, separators=(",", ":")).encode()
    head += b" " * (-(_START + len(head)) % _ALIGNED)
    return sealed(_MARK, b"".join([len(head).to_bytes(8, "little"), head, *arrays.contents]))


def unpacked(content: Array, ids: Sequence[str]) -> CaseGroup:
    """Read what `packed` returned of the cases with these ids, as uint8; the arrays are views of it.

    Raises ValueError, KeyError, TypeError or IndexError if it is none.
    """
    check(_MARK, content)
    end = _START + int.from_bytes(bytes(content[_START - 8 : _START]), "little")
    read: Any = json.loads(bytes(content[_START:end]))
    drawn = {place for place, shared in read["inputs"] if not shared}
    arrays, fixed = list[Array](), content.data.toreadonly()
    for place, (name, shape, size) in enumerate(read["arrays"]):
        whole = content.data if place in drawn else fixed  # a backend may write to its inputs
        arrays.append(np.ndarray(shape, element_type(name).dtype, whole, end))
        end += size + -size % _ALIGNED
    lanes = len(ids)
    of_cases, of_expectations = (_digests_from_array(arrays[place]) for place in read["digests"])
    if end != len(content) or {lanes} != {len(of_cases), len(of_expectations)}:
        raise ValueError("arrays of another size")
    options = tuple(_option_from_json(told, arrays) for told in read["options"])
    expectation = LanedExpectation(options, tuple(read["types"]), lanes)
    expectation.remember_digests(of_expectations)
    inputs = (
        np.broadcast_to(arrays[place], (lanes, *arrays[place].shape)) if shared else arrays[place]
        for place, shared in read["inputs"]
    )
    program = _program_from_json(read["program"], read["key"])
    group = CaseGroup(ids, program, tuple(inputs), expectation, tuple(read["clauses"]), read["mended"])
    group.remember_digests(of_cases)
    return group


def sealed(mark: bytes, body: bytes) -> bytes:
    """Return a file's content after its mark, with what `check` needs."""
    return b"".join([mark, zlib.crc32(body).to_bytes(4, "little"), body])


def check(mark: bytes, content: Array) -> None:
    """Raise ValueError unless a file begins with the mark and is whole."""
    if bytes(content[: len(mark)]) != mark:
        raise ValueError("another kind of file")
    start = len(mark) + 4
    if zlib.crc32(content.data[start:]) != int.from_bytes(bytes(content[len(mark) : start]), "little"):
        raise ValueError("damaged")


def _digests_to_array(digests: Sequence[str]) -> Array:
    return np.frombuffer(bytes.fromhex("".join(digests)), np.uint8)


def _digests_from_array(array: Array) -> list[str]:
    text = array.tobytes().hex()
    return [text[start : start + _DIGEST] for start in range(0, len(text), _DIGEST)]


def _input_to_json(array: Array, arrays: _Arrays) -> tuple[int, bool]:
    """Return an input's place, and whether all lanes share it."""
    shared = not array.flags.writeable and (array.strides[0] == 0 or len(array) == 1)
    return arrays.add(array[0, ...] if shared else array), shared


def _program_to_json(program: Program) -> dict[str, Any]:
    told = asdict(program)
    for one in told["inputs"]:
        if one is not None and one["constant"] is not None:
            one["constant"] = base64.b64encode(one["constant"]).decode()
    return told


def _program_from_json(told: Mapping[str, Any], key: str) -> Program:
    attributes = (Attribute(**{**a, "value": _plain(a["value"])}) for a in told["attributes"])
    program = Program(
        OperatorVersion(**told["operator"]),
        tuple(attributes),
        tuple(None if one is None else _input_from_json(one) for one in told["inputs"]),
        tuple(Output(**one) for one in told["outputs"]),
        told["opset"],
    )
    program.remember_key(key)
    return program


def _input_from_json(told: Mapping[str, Any]) -> Input:
    constant = told["constant"]
    content = None if constant is None else base64.b64decode(constant, validate=True)
    return Input(told["name"], told["type"], tuple(told["dims"]), content)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class _Arrays:
    """Arrays that are written, by their places; equal objects have one."""

    def __init__(self) -> None:
        self.heads: list[tuple[str, list[int], int]] = []
        self.contents: list[bytes] = []
        self._places: dict[int, tuple[Array, int]] = {}

    def place(self, array: Array | None) -> int | None:
        if array is None:
            return None
        if id(array) not in self._places:
            self._places[id(array)] = array, self.add(array)
        return self._places[id(array)][1]

    def add(self, array: Array) -> int:
        """Write an array that shares its memory with no other one."""
        self.heads.append((array.dtype.name, list(array.shape), array.nbytes))
        self.contents.append(array.tobytes() + bytes(-array.nbytes % _ALIGNED))
        return len(self.heads) - 1


def _option_to_json(one: LanedOption, arrays: _Arrays) -> list[Any]:
    o, place = one.option, arrays.place
    outputs = [
        (
            b.type,
            [place(array) for array in (b.value, b.lower, b.upper, b.flags)],
            b.spread and (place(b.spread.sigma), b.spread.limit),
            b.residue and (place(b.residue.rest), place(b.residue.doubt)),
        )
        for b in o.outputs
    ]
    return [o.labels, o.kind, o.exceptional, o.level, place(one.applies), outputs]


def _option_from_json(told: Sequence[Any], arrays: Sequence[Array]) -> LanedOption:
    labels, kind, exceptional, level, applies, outputs = told
    bounds = []
    for name, (value, lower, upper, flags), spread, residue in outputs:
        bounds.append(
            Bounds(
                name,
                arrays[value],
                arrays[lower],
                arrays[upper],
                None if flags is None else arrays[flags],
                None if spread is None else Spread(arrays[spread[0]], spread[1]),
                None if residue is None else Residue(arrays[residue[0]], arrays[residue[1]]),
            )
        )
    silences = tuple((silence, answer) for silence, answer in labels)
    return LanedOption(Option(silences, tuple(bounds), kind, exceptional, level), arrays[applies])

"""JPEG (ITU-T T.81, baseline): writes quantized coefficients as a stream, and bounds the pixels of its decoders."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ...cases.elements import Array

_LENGTHS: Final = (0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0)
"""The number of codes of each length in the usual table for first coefficients."""
_LONGER: Final = (0, 1, 1, 2, 3, 4, 4, 4, 8, 8, 16, 16, 32, 32, 31, 0)
"""The same for a table of all other coefficients, with codes of up to 15 bits."""
_RUNS: Final = (0, *(run << 4 | size for size in range(1, 11) for run in range(16)), 0xF0)
_ZIGZAG: Final = tuple(
    sorted(np.ndindex(8, 8), key=lambda at: (sum(at), at[0] if sum(at) % 2 else at[1]))  # row and column
)
_SLACK: Final = 0.1
"""The largest error of decoders that convert luma and chroma to colours in whole numbers, before rounding."""
_GRID: Final = 2.0**20
"""Samples are rounded to multiples of 1/_GRID, so that sums of cosines are the same on every processor."""


Shape: TypeAlias = tuple[tuple[int, int], int, int]
"""A part's number of blocks down and across, and its sampling factors, across and down."""


class Pixels(NamedTuple):
    """Whole numbers, [height, width, channels]: by the formula, and the smallest and the largest admissible ones."""

    value: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Part:
    """Luma or chroma: quantized coefficients [rows, columns, 64] of its blocks, in zigzag order.

    `across` and `down` are its sampling factors, `table` is the quantization table.
    """

    coefficients: Array
    across: int = 1
    down: int = 1
    table: int = 0


def encoded(height: int, width: int, parts: Sequence[Part], quanta: Sequence[Sequence[int]]) -> bytes:
    """Write a picture, grey or YCbCr; if there are coefficients after the first, they have a code table."""
    others = any(part.coefficients[..., 1:].any() for part in parts)
    lengths, symbols = (_LONGER, _RUNS) if others else ((1,) + (0,) * 15, (0,))
    factors = [bytes([i + 1, part.across << 4 | part.down, part.table]) for i, part in enumerate(parts)]
    segments = {
        0xE0: b"JFIF\0\1\1\0\0\1\0\1\0\0",
        0xDB: b"".join(bytes([i, *quantum]) for i, quantum in enumerate(quanta)),
        0xC0: struct.pack(">BHHB", 8, height, width, len(parts)) + b"".join(factors),
        0xC4: b"\0" + bytes(_LENGTHS) + bytes(range(12)) + b"\x10" + bytes(lengths) + bytes(symbols),
        0xDA: bytes([len(parts)]) + b"".join(bytes([i + 1, 0]) for i in range(len(parts))) + b"\0\x3f\0",
    }
    head = b"".join(bytes([0xFF, mark]) + struct.pack(">H", len(part) + 2) + part for mark, part in segments.items())
    first, rest = ({s: code for code, s in canonical(*t).items()} for t in ((_LENGTHS, range(12)), (lengths, symbols)))
    bits, before = list[str](), [0] * len(parts)
    for i, at in _units([(part.coefficients.shape[:2], part.across, part.down) for part in parts]):
        block = parts[i].coefficients[at].tolist()
        size, written = _magnitude(block[0] - before[i])
        before[i], last = block[0], 0
        bits += [first[size], written]
        for k in (k for k in range(1, 64) if block[k]):
            size, written = _magnitude(block[k])
            zeros = k - last - 1
            bits += [*[rest[0xF0]] * (zeros // 16), rest[zeros % 16 << 4 | size], written] if others else []
            last = k
        bits += [rest[0]] * (last < 63)
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    scan = bytes(int(text[at : at + 8], 2) for at in range(0, len(text), 8)).replace(b"\xff", b"\xff\0")
    return b"\xff\xd8" + head + scan + b"\xff\xd9"


def decoded_jpeg(data: bytes, repeats: Callable[[], bool] = lambda: False) -> Pixels:
    """Read a picture: [height, width, 1] of greys, or [height, width, 3] of red, green and blue.

    A sample may differ by 1 from the rounded exact inverse transform, unless its block has only a first coefficient,
    and this is a multiple of 8. `repeats` decides whether chroma that is at most two samples wide is repeated rather
    than interpolated. Raises OverflowError for formats that are not read here, ValueError, IndexError, KeyError or
    struct.error if it is not a JPEG.
    """
    segments, at = dict[int, bytes](), 2
    while 0xDA not in segments:
        mark, size = struct.unpack(">HH", data[at : at + 4])
        if mark & 0xFF == 0xDD or (0xC0 < mark & 0xFF < 0xD0 and mark & 0xFF != 0xC4):
            raise OverflowError("no JPEG with restarts, or but baseline is decoded here")
        segments[mark & 0xFF] = segments.get(mark & 0xFF, b"") + data[at + 4 : at + 2 + size]
        at += 2 + size
    end = data.index(b"\xff\xd9", at)
    bits = "".join(f"{byte:08b}" for byte in data[at:end].replace(b"\xff\0", b"\xff"))
    _, height, width, count = struct.unpack(">BHHB", segments[0xC0][:6])
    factors = [(segments[0xC0][7 + 3 * i] >> 4, segments[0xC0][7 + 3 * i] & 15) for i in range(count)]
    quanta = {segments[0xDB][i]: tuple(segments[0xDB][i + 1 : i + 65]) for i in range(0, len(segments[0xDB]), 65)}
    across, down = max(a for a, _ in factors), max(d for _, d in factors)
    if factors[1:] not in ([], [(1, 1)] * 2) or factors[0] not in ((1, 1), (2, 1), (2, 2)):
        raise OverflowError("no JPEG but of 4:4:4, 4:2:2 and 4:2:0 is decoded here")
    if count == 1:
        across, down, factors = 1, 1, [(1, 1)]
    units = -(-height // (8 * down)), -(-width // (8 * across))
    shapes = [((units[0] * d, units[1] * a), a, d) for a, d in factors]
    places = [segments[0xDA][2 + 2 * i] for i in range(count)]
    coefficients = _coefficients(bits, shapes, segments[0xC4], [(byte >> 4, byte & 15) for byte in places])
    planes = []
    for i, (quantized, (a, d)) in enumerate(zip(coefficients, factors, strict=True)):
        rows, columns = -(-height * d // down), -(-width * a // across)
        exact = _samples(quantized * np.array(quanta[segments[0xC0][8 + 3 * i]]))
        planes.append(Pixels(*(plane[:rows, :columns] for plane in exact)))
    if count == 1:
        return Pixels(*(plane[:, :, None].astype(np.int64) for plane in planes[0]))
    if across == 2 and width <= 4 and repeats():
        chroma = [Pixels(*(samples.repeat(down, 0).repeat(across, 1) for samples in plane)) for plane in planes[1:]]
    else:
        chroma = [_upsampled(plane, across, down) for plane in planes[1:]]
    return _coloured(planes[0], *(Pixels(*(samples[:height, :width] for samples in plane)) for plane in chroma))


def _units(shapes: Sequence[Shape]) -> list[tuple[int, tuple[int, int]]]:
    """The order of blocks, each by its part and position."""
    (rows, columns), across, down = shapes[0]
    return [
        (i, (row * d + y, column * a + x))
        for row, column in np.ndindex(rows // down, columns // across)
        for i, (_, a, d) in enumerate(shapes)
        for y, x in np.ndindex(d, a)
    ]


def canonical(lengths: Sequence[int], symbols: Sequence[int]) -> dict[str, int]:
    """A Huffman table, from bit strings to symbols; `lengths` has the number of codes of each length from 1 on."""
    table, code, rest = dict[str, int](), 0, iter(symbols)
    for length, count in enumerate(lengths, 1):
        for _ in range(count):
            table[f"{code:0{length}b}"] = next(rest)
            code += 1
        code <<= 1
    return table


def _magnitude(number: int) -> tuple[int, str]:
    """The number of bits of a number, and the bits that follow its code."""
    size = abs(number).bit_length()
    return size, f"{number if number > 0 else number + (1 << size) - 1:0{size}b}" if size else ""


def read_code(bits: str, position: int, table: Mapping[str, int]) -> tuple[int, int]:
    """The symbol of the code at a position, and the position after it."""
    for end in range(position + 1, min(position + 16, len(bits)) + 1):
        if bits[position:end] in table:
            return table[bits[position:end]], end
    raise ValueError("no code")


def _signed(bits: str, position: int, size: int) -> int:
    number = int(bits[position : position + size] or "0", 2)
    return number if not size or number >> (size - 1) else number - (1 << size) + 1


def _coefficients(bits: str, shapes: Sequence[Shape], written: bytes, chosen: Sequence[tuple[int, int]]) -> list[Array]:
    """The quantized coefficients of each part, [rows, columns, 64], in zigzag order.

    `written` are the code tables; each part uses one for its first coefficients and one for the others.
    """
    tables = {}
    while written:
        count = sum(written[1:17])
        tables[written[0]] = canonical(tuple(written[1:17]), tuple(written[17 : 17 + count]))
        written = written[17 + count :]
    coefficients = [np.zeros((*shape, 64), np.int64) for shape, _, _ in shapes]
    position, last = 0, [0] * len(shapes)
    for i, at in _units(shapes):
        first, others = tables[chosen[i][0]], tables[0x10 | chosen[i][1]]
        size, position = read_code(bits, position, first)
        last[i] += _signed(bits, position, size)
        coefficients[i][(*at, 0)] = last[i]
        position, k = position + size, 1
        while k < 64:
            symbol, position = read_code(bits, position, others)
            if not symbol:
                break
            k, size = k + (symbol >> 4), symbol & 15
            coefficients[i][(*at, k)] = _signed(bits, position, size)
            position, k = position + size, k + 1
    return coefficients


def _samples(coefficients: Array) -> Pixels:
    """The samples of a part, [8 * rows, 8 * columns], from its coefficients [rows, columns, 64], in zigzag order."""
    rows, columns, _ = coefficients.shape
    square = np.zeros((rows, columns, 8, 8))
    for k, (v, u) in enumerate(_ZIGZAG):
        square[:, :, v, u] = coefficients[:, :, k]
    waves = np.array(
        [[math.cos((2 * x + 1) * u * math.pi / 16) / (2 if u else math.sqrt(8)) for u in range(8)] for x in range(8)]
    )
    exact = np.round((waves @ square @ waves.T) * _GRID) / _GRID + 128
    sure = ~coefficients[..., 1:].any(-1) & (coefficients[..., 0] % 8 == 0)
    off = np.where(sure, 0, 1)[:, :, None, None]
    ends = np.rint(exact), np.ceil(exact - 0.5) - off, np.floor(exact + 0.5) + off
    return Pixels(*(np.clip(samples, 0, 255).swapaxes(1, 2).reshape(8 * rows, 8 * columns) for samples in ends))


def _upsampled(plane: Pixels, across: int, down: int) -> Pixels:
    """Chroma at every pixel: 3/4 of the nearest sample and 1/4 of the next one, in each direction with half resolution.

    Beyond the picture, the last sample is repeated. The standard defines one rounding; with two directions, it defines
    neither the order nor whether there are two.
    """
    if down == 1:
        return Pixels(*(_rounded(_between(samples, 1)) for samples in plane)) if across == 2 else plane
    value = _rounded(_between(_rounded(_between(plane.value, 0).T).T, 1))
    low, high = (_between(_between(samples, 0), 1) for samples in plane[1:])
    return Pixels(value, np.ceil(low - 1), np.floor(high + 1))


def _between(samples: Array, axis: int) -> Array:
    moved = np.moveaxis(samples, axis, -1)
    padded = np.concatenate([moved[..., :1], moved, moved[..., -1:]], -1)
    pairs = np.stack([0.25 * padded[..., :-2] + 0.75 * moved, 0.75 * moved + 0.25 * padded[..., 2:]], -1)
    return np.moveaxis(pairs.reshape(*moved.shape[:-1], -1), -1, axis)


def _rounded(doubled: Array) -> Array:
    """Rounds halves down in even columns and up in odd ones."""
    odd = np.arange(doubled.shape[1]) % 2
    return np.where(odd, np.floor(doubled + 0.5), np.ceil(doubled - 0.5))


def _coloured(y: Pixels, blue: Pixels, red: Pixels) -> Pixels:
    """Red, green and blue from luma and chroma (ITU-T T.871, clause 7), rounded."""

    def colours(y: Array, b: Array, r: Array, against: tuple[Array, Array]) -> Array:
        b, r, other_b, other_r = (samples - 128 for samples in (b, r, *against))
        green = y - (0.114 * 1.772 * other_b + 0.299 * 1.402 * other_r) / 0.587
        return np.stack([y + 1.402 * r, green, y + 1.772 * b], -1)

    low = np.ceil(colours(y.low, blue.low, red.low, (blue.high, red.high)) - 0.5 - _SLACK)
    high = np.floor(colours(y.high, blue.high, red.high, (blue.low, red.low)) + 0.5 + _SLACK)
    value = np.rint(colours(y.value, blue.value, red.value, (blue.value, red.value)))
    return Pixels(*(np.clip(samples, 0, 255).astype(np.int64) for samples in (value, low, high)))


def of_blocks(blocks: Array, across: int = 1) -> bytes:
    """A picture with one value for each block of 8 x 8 samples, [rows, columns, 1 or 3] luma and chroma.

    A block has only a first coefficient, a multiple of 8, so that no decoder has to round. Chroma comes from every
    `across`-th block.
    """
    rows, columns, count = blocks.shape
    coefficients = np.zeros((count, rows, columns, 64), np.int64)
    coefficients[..., 0] = np.moveaxis(blocks - 128, -1, 0)
    parts = [Part(coefficients[0], across), *(Part(plane[:, ::across]) for plane in coefficients[1:])]
    return encoded(8 * rows, 8 * columns, parts, [[8] + [1] * 63])


def of_waves(height: int, width: int, across: int = 1, down: int = 1, *, grey: bool = False) -> bytes:
    """A picture whose blocks have a first coefficient and some others, of every position and sign."""
    quanta = [[6, *(2 + 5 * k % 13 for k in range(1, 64))], [10, *(3 + 7 * k % 17 for k in range(1, 64))]]
    rows, columns = -(-height // (8 * down)), -(-width // (8 * across))
    mean = 90 if grey else 50  # colours of clipped samples would depend on when decoders clip
    parts = [Part(_waves(rows * down, columns * across, quanta[0], mean, 0), across, down)]
    parts += [] if grey else [Part(_waves(rows, columns, quanta[1], mean, i), table=1) for i in (1, 2)]
    return encoded(height, width, parts, quanta[:1] if grey else quanta)


def _waves(rows: int, columns: int, quantum: Sequence[int], mean: int, seed: int) -> Array:
    """Quantized coefficients: a mean at most `mean` off the middle, and up to six others of up to 12 per sample."""
    blocks = np.zeros((rows * columns, 64), np.int64)
    for n, block in enumerate(blocks):
        drawn = [((40 * n + 13 * seed + j) * 2654435761 + 12345 >> 9) % 65521 for j in range(13)]
        places = [63] if n % 7 == 3 else [1 + number % 63 for number in drawn[: 2 + n % 5]]
        block[0] = (drawn[12] % (2 * mean + 1) - mean) * 8 // quantum[0]
        for k, size in zip(places, itertools.islice(drawn, 6, None), strict=False):
            most = 48 // quantum[k]
            block[k] = size % (2 * most + 1) - most or most
    return blocks.reshape(rows, columns, 64)

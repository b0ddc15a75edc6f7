"""Lossless WebP (RFC 9649, chapter 3): writes pixels as a stream, and reads streams without copies or a cache."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ...cases.elements import Array
from .jpeg import canonical, read_code

_ORDER: Final = (17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
"""The order of code lengths in a table that is encoded by its code lengths' own codes."""
_SYMBOLS: Final = (280, 256, 256, 256, 40)
"""The numbers of symbols for green (with lengths of copies), red, blue, alpha and distances."""
_LESS_GREEN: Final = 2


def encoded_webp(samples: Array) -> bytes:
    """Write samples [height, width, 3], red and blue less green, with codes of 7 to 9 bits."""
    height, width, _ = samples.shape
    lengths = [(7, 8, 9, 9)[i % 4] for i in range(256)]
    of_lengths = {7: 1, 8: 2, 9: 2}
    short, words = ({s: code for code, s in _table(sizes).items()} for sizes in (of_lengths, dict(enumerate(lengths))))
    table = (
        "0" + _bits(len(_ORDER[:13]) - 4, 4) + "".join(_bits(of_lengths.get(length, 0), 3) for length in _ORDER[:13])
    )
    table += "1" + _bits(3, 3) + _bits(254, 8)  # 256 lengths follow
    table += "".join(short[length] for length in lengths)
    opaque, nowhere = "101" + _bits(255, 8), "100" + _bits(0, 1)
    head = _bits(0x2F, 8) + _bits(width - 1, 14) + _bits(height - 1, 14) + "0000"
    head += "1" + _bits(_LESS_GREEN, 2) + "0" + "00" + table * 3 + opaque + nowhere
    red, green, blue = np.moveaxis(samples.astype(np.int64), -1, 0)
    pixels = np.stack([green, (red - green) % 256, (blue - green) % 256], -1)
    text = head + "".join(words[pixel] for pixel in pixels.reshape(-1).tolist())
    text += "0" * (-len(text) % 16)
    content = bytes(int(text[at : at + 8][::-1], 2) for at in range(0, len(text), 8))
    chunk = b"VP8L" + struct.pack("<I", len(content)) + content
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def decoded_webp(data: bytes) -> Array:
    """Read a picture, [height, width, 3].

    Raises OverflowError for forms that are not read here, ValueError, IndexError, KeyError or struct.error if it is not
    a picture.
    """
    if data[8:12] != b"WEBP":
        raise ValueError("no WebP")
    if data[12:16] != b"VP8L":
        raise OverflowError("no JPEG 2000 or lossy WebP is decoded here")
    (size,) = struct.unpack("<I", data[16:20])
    stream = _Stream("".join(f"{byte:08b}"[::-1] for byte in data[20 : 20 + size]))
    if stream.number(8) != 0x2F:
        raise ValueError("no lossless WebP")
    width, height = stream.number(14) + 1, stream.number(14) + 1
    if stream.number(4):
        raise OverflowError("no WebP with transparency is decoded here")
    less_green = stream.number(1)
    others = less_green and (stream.number(2) != _LESS_GREEN or stream.number(1))
    if others or stream.number(1) or stream.number(1):
        raise OverflowError("no WebP with a cache, several tables, or transforms but that of green is decoded here")
    green, red, blue, alpha, _ = [stream.table(count) for count in _SYMBOLS]
    pixels = np.zeros((height * width, 3), np.int64)
    for pixel in pixels:
        pixel[1] = stream.symbol(green)
        if pixel[1] > 255:
            raise OverflowError("no WebP with copies is decoded here")
        pixel[0], pixel[2] = stream.symbol(red), stream.symbol(blue)
        stream.symbol(alpha)
    if less_green:
        pixels[:, ::2] = (pixels[:, ::2] + pixels[:, 1:2]) % 256
    return pixels.reshape(height, width, 3)


class _Stream:
    """Bits in reading order; numbers have their lowest bit first, codes their highest."""

    def __init__(self, bits: str) -> None:
        self._bits, self._position = bits, 0

    def number(self, size: int) -> int:
        """The next number. Raises ValueError at the end."""
        bits = self._bits[self._position : self._position + size]
        self._position += size
        if len(bits) < size:
            raise ValueError("the stream ends")
        return int(bits[::-1] or "0", 2)

    def symbol(self, table: Mapping[str, int]) -> int:
        """The next symbol; a table's only symbol takes no bit."""
        if "" in table:
            return table[""]
        symbol, self._position = read_code(self._bits, self._position, table)
        return symbol

    def table(self, count: int) -> Mapping[str, int]:
        """The next code table, for `count` symbols."""
        if self.number(1):
            two = self.number(1)
            symbols = [self.number(8 if self.number(1) else 1), *(self.number(8) for _ in range(two))]
            return {"01"[i] if two else "": symbol for i, symbol in enumerate(symbols)}
        shorts = _table({_ORDER[i]: self.number(3) for i in range(4 + self.number(4))})
        left = 2 + self.number(2 + 2 * self.number(3)) if self.number(1) else count
        lengths, last = list[int](), 8
        while len(lengths) < count and left:
            left -= 1
            symbol = self.symbol(shorts)
            if symbol < 16:
                lengths.append(symbol)
                last = symbol or last
            else:
                bits, least = {16: (2, 3), 17: (3, 3), 18: (7, 11)}[symbol]
                lengths += [last if symbol == 16 else 0] * (least + self.number(bits))
        return _table(dict(enumerate(lengths)))


def _bits(number: int, size: int) -> str:
    return f"{number:0{size}b}"[::-1]


def _table(lengths: Mapping[int, int]) -> dict[str, int]:
    """The codes of symbols with a length; a single one has an empty code."""
    symbols: Sequence[int] = sorted(
        (symbol for symbol in lengths if lengths[symbol]), key=lambda symbol: (lengths[symbol], symbol)
    )
    if len(symbols) == 1:
        return {"": symbols[0]}
    return canonical([sum(lengths[symbol] == size for symbol in symbols) for size in range(1, 16)], symbols)

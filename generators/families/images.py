"""ImageDecoder, and its pictures: encoders and decoders of formats with exact pixels."""

from __future__ import annotations

import functools
import itertools
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from ...cases.elements import Array
from ...cases.errors import OpconformError
from ..arithmetic.tape import Call, Value
from ..fills import Drawing
from .jpeg import Pixels, decoded_jpeg, of_blocks, of_waves
from .webp import decoded_webp, encoded_webp

_SIZES: Final = ((1, 1), (3, 5), (2, 33), (65, 3), (15, 16), (31, 32), (33, 40), (63, 64), (260, 260))
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PASSES: Final = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
"""The first row and column of each pass of an interlaced PNG (W3C PNG, 8.1), and the steps to the next ones."""
_TIE: Final = 0.1
_OTHERS: Final = (b"\0\0\0\x0cjP  ", b"\xff\x4f\xff\x51")


def image_decoder(c: Call, stream: Value) -> Value:
    """The pixels of a picture, [height, width, channels], in the order of pixel_format; empty if it is not a picture.

    stream: uint8, rank 1; result: uint8, with 3 channels, or 1 for Grayscale. Pictures with one channel repeat it three
    times. The conversion of colours to grey is open, unless all three are equal. Raises OpconformError for a format
    that is not decoded here. Samples of a JPEG may differ from the exact ones, see `decoded_jpeg`. Source: ONNX
    ImageDecoder-20.
    """
    c.require("stream-rank", stream.rank == 1)
    wanted = c.attr("pixel_format")
    c.require("format-known", wanted in ("RGB", "BGR", "Grayscale"))
    try:
        data = np.asarray(c.known(stream), np.uint8).tobytes()
        pixels = _decoded(data, lambda: c.open("narrow-chroma") == "repeated")
    except OverflowError as beyond:
        raise OpconformError(str(beyond)) from None
    if pixels is None:
        shapes = {"no-pixels": (0, 0, 0), "channels": (0, 0, 1 if wanted == "Grayscale" else 3), "vector": (0,)}
        return c.constant(0, "uint8").broadcast(*shapes.get(c.open("empty"), (0, 0)))
    if wanted == "Grayscale":
        grey = (pixels.value == pixels.value[:, :, :1]).all(2, keepdims=True)
        weights = np.array([0.299, 0.587, 0.114])
        pixels = Pixels(*(np.where(grey, rgb[:, :, :1], np.rint(rgb @ weights)[:, :, None]) for rgb in pixels))
    elif wanted == "BGR":
        pixels = Pixels(*(samples[:, :, ::-1] for samples in pixels))
    y, low, high = (c.constant(samples.astype(np.int64), "uint8") for samples in pixels)
    if (pixels.low < pixels.high).any():
        y = y.between(low, high)
    if wanted != "Grayscale" or grey.all():
        return y
    return y.undefined(c.constant(~grey, "bool"), "grey")


def _decoded(data: bytes, repeats: Callable[[], bool]) -> Pixels | None:
    """The pixels of a stream, [height, width, 3]; None if it is not a picture.

    Raises OverflowError for a picture that is not decoded here.
    """
    if data.startswith(_OTHERS):
        raise OverflowError("no JPEG 2000 or lossy WebP is decoded here")
    for magic, decode in (
        (_PNG, _of_png),
        (b"\xff\xd8\xff", functools.partial(decoded_jpeg, repeats=repeats)),
        (b"BM", _of_bmp),
        (b"P", _of_pnm),
        (b"II*\0", _of_tiff),
        (b"MM\0*", _of_tiff),
        (b"RIFF", decoded_webp),
    ):
        if data.startswith(magic):
            try:
                picture = decode(data)
            except (struct.error, zlib.error, ValueError, IndexError, KeyError):
                return None
            pixels = picture if isinstance(picture, Pixels) else Pixels(picture, picture, picture)
            return Pixels(*(np.broadcast_to(samples, (*samples.shape[:2], 3)).astype(np.int64) for samples in pixels))
    return None


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _stored(content: bytes) -> bytes:
    """A zlib stream of uncompressed blocks, since versions of zlib compress differently."""
    parts = [content[i : i + 0xFFFF] for i in range(0, len(content), 0xFFFF)] or [b""]
    blocks = [struct.pack("<BHH", part is parts[-1], len(part), 0xFFFF - len(part)) + part for part in parts]
    return b"\x78\x01" + b"".join(blocks) + struct.pack(">I", zlib.adler32(content))


def _to_png(samples: Array, colour: int, extra: bytes = b"", *, interlaced: bool = False) -> bytes:
    """Samples [height, width, channels] as PNG (W3C PNG, 3rd ed.), each row with another filter."""
    height, width, channels = samples.shape
    filtered = b""
    for y, x, down, across in _PASSES if interlaced else ((0, 0, 1, 1),):
        part = samples[y::down, x::across].astype(np.int64)
        rows = part.reshape(len(part), part.shape[1] * channels)
        for i, row in enumerate(rows if part.size else ()):
            above = rows[i - 1] if i else np.zeros_like(row)
            kind = (i + y + x) % 5  # so that even passes of one row have several filters
            filtered += bytes([kind]) + bytes(((row - _guesses(row, above, channels)[kind]) % 256).tolist())
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, interlaced)
    return _PNG + _chunk(b"IHDR", header) + extra + _chunk(b"IDAT", _stored(filtered)) + _chunk(b"IEND", b"")


def _guesses(row: Array, above: Array, channels: int) -> list[Array]:
    left = np.concatenate([np.zeros(channels, np.int64), row[:-channels]])
    corner = np.concatenate([np.zeros(channels, np.int64), above[:-channels]])
    return [np.zeros_like(row), left, above, (left + above) // 2, _paeth(left, above, corner)]


def _paeth(a: Array, b: Array, c: Array) -> Array:
    p = a + b - c
    first, second, third = abs(p - a), abs(p - b), abs(p - c)
    return np.where((first <= second) & (first <= third), a, np.where(second <= third, b, c))


def _of_png(data: bytes) -> Array:
    chunks, at = dict[bytes, bytes](), len(_PNG)
    while b"IEND" not in chunks:
        (size,), name = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        content = data[at + 8 : at + 8 + size]
        if struct.unpack(">I", data[at + 8 + size : at + 12 + size]) != (zlib.crc32(name + content),):
            raise ValueError("the checksum is of other content")
        chunks[name] = chunks.get(name, b"") + content
        at += 12 + size
    width, height, depth, colour, packing, filters, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    channels = {0: 1, 2: 3, 3: 1}[colour]
    if depth != 8:
        raise OverflowError("no PNG of another depth than 8 bits is decoded here")
    if packing or filters or interlaced > 1:
        raise ValueError("no method of PNG")
    content, start = zlib.decompress(chunks[b"IDAT"]), 0
    pixels = np.zeros((height, width, channels), np.int64)
    for y, x, down, across in _PASSES if interlaced else ((0, 0, 1, 1),):
        part = pixels[y::down, x::across]
        if part.size:
            end = start + len(part) * (1 + part.shape[1] * channels)
            part[:] = _unfiltered(content[start:end], len(part), channels).reshape(part.shape)
            start = end
    return np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)[pixels[:, :, 0]] if colour == 3 else pixels


def _unfiltered(content: bytes, height: int, channels: int) -> Array:
    """The samples of filtered rows, [height, width * channels]; each row starts with its filter."""
    lines = np.frombuffer(content, np.uint8).astype(np.int64).reshape(height, -1)
    rows = np.zeros((height, lines.shape[1] - 1), np.int64)
    for y, (kind, *line) in enumerate(lines.tolist()):
        above = rows[y - 1] if y else np.zeros_like(rows[0])
        for x, value in enumerate(line):
            a, corner = (int(r[x - channels]) if x >= channels else 0 for r in (rows[y], above))
            b = int(above[x])
            nearest = min((abs(b - corner), 0, a), (abs(a - corner), 1, b), (abs(a + b - 2 * corner), 2, corner))[2]
            guess = (0, a, b, (a + b) // 2, nearest)[kind]
            rows[y, x] = (value + guess) % 256
    return rows


def _to_bmp(samples: Array, palette: bytes = b"", *, down: bool = False) -> bytes:
    """Samples [height, width, 1 or 3] as a Windows bitmap, the last row first unless `down`."""
    height, width, channels = samples.shape
    rows = samples[:, :, ::-1] if down else samples[::-1, :, ::-1]
    pad = b"\0" * (-width * channels % 4)
    body = b"".join(row.astype(np.uint8).tobytes() + pad for row in rows)
    start = 54 + len(palette)
    sizes = 40, width, -height if down else height, 1, 8 * channels, 0, len(body), 2835, 2835, len(palette) // 4, 0
    return (
        struct.pack("<2sIHHI", b"BM", start + len(body), 0, 0, start)
        + struct.pack("<IiiHHIIiiII", *sizes)
        + palette
        + body
    )


def _of_bmp(data: bytes) -> Array:
    (start,) = struct.unpack("<I", data[10:14])
    size, width, height, _, bits, packed, _, _, _, colours, _ = struct.unpack("<IiiHHIIiiII", data[14:54])
    channels = {8: 1, 24: 3}[bits]
    if packed:
        raise OverflowError("no compressed bitmap is decoded here")
    stride = (width * channels + 3) // 4 * 4
    rows = np.frombuffer(data[start : start + stride * abs(height)], np.uint8).reshape(abs(height), stride)
    pixels = rows[:, : width * channels].reshape(abs(height), width, channels)
    pixels = pixels[:, :, ::-1] if height < 0 else pixels[::-1, :, ::-1]
    if bits == 8:
        table = np.frombuffer(data[14 + size : 14 + size + 4 * (colours or 256)], np.uint8).reshape(-1, 4)
        pixels = table[pixels[:, :, 0], 2::-1]
    return pixels


def _to_pnm(samples: Array, kind: int) -> bytes:
    """Samples as a portable bitmap (1, 4), graymap (2, 5) or pixmap (3, 6), as text or as bytes."""
    height, width, _ = samples.shape
    most = b"" if kind in (1, 4) else b"255\n"
    header = b"P%d\n# a comment\n%d %d\n%s" % (kind, width, height, most)
    if kind == 4:
        return header + np.packbits(samples[:, :, 0] == 0, axis=1).tobytes()
    numbers = (samples == 0).astype(int) if kind == 1 else samples
    return header + (samples.astype(np.uint8).tobytes() if kind > 4 else b"".join(b"%d\n" % n for n in numbers.flat))


def _of_pnm(data: bytes) -> Array:
    kind = int(data[1:2])
    words, at = list[int](), 2
    while len(words) < (2 if kind in (1, 4) else 3):
        if data[at : at + 1] == b"#":
            at = data.index(b"\n", at)
        elif data[at : at + 1].isspace():
            at += 1
        else:
            end = next(i for i in range(at, len(data)) if data[i : i + 1].isspace())
            words.append(int(data[at:end]))
            at = end
    width, height, channels = words[0], words[1], 3 if kind in (3, 6) else 1
    if words[2:] not in ([], [255]):
        raise OverflowError("no portable map of another largest sample than 255 is decoded here")
    count = height * width * channels
    if kind == 4:
        rows = np.frombuffer(data[at + 1 :], np.uint8).reshape(height, -1)
        return (1 - np.unpackbits(rows, axis=1)[:, :width, None]) * 255
    numbers = np.frombuffer(data[at + 1 :][:count], np.uint8) if kind > 4 else np.array(data[at:].split(), int)
    pixels = numbers.reshape(height, width, channels)
    return (1 - pixels) * 255 if kind == 1 else pixels


def _to_tiff(samples: Array, order: str) -> bytes:
    """Samples [height, width, 1 or 3] as TIFF 6.0, one uncompressed strip; order: < or >."""
    height, width, channels = samples.shape
    body, tail = samples.astype(np.uint8).tobytes(), struct.pack(order + "3H", 8, 8, 8)
    entries = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, channels, 8), (259, 3, 1, 1)]
    entries += [(262, 3, 1, 2 if channels == 3 else 1), (273, 4, 1, 0), (277, 3, 1, channels)]
    entries += [(278, 4, 1, height), (279, 4, 1, len(body))]
    end = 8 + 2 + 12 * len(entries) + 4
    directory = struct.pack(order + "H", len(entries))
    for tag, kind, count, value in entries:
        field = {273: end + len(tail), 258: end if channels == 3 else value}.get(tag, value)
        short = kind == 3 and count == 1
        directory += struct.pack(order + "HHI", tag, kind, count)
        directory += struct.pack(order + "HH", field, 0) if short else struct.pack(order + "I", field)
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return mark + struct.pack(order + "I", 8) + directory + struct.pack(order + "I", 0) + tail + body


def _of_tiff(data: bytes) -> Array:
    order = "<" if data.startswith(b"II") else ">"
    (at,) = struct.unpack(order + "I", data[4:8])
    (count,) = struct.unpack(order + "H", data[at : at + 2])
    tags = {}
    for i in range(at + 2, at + 2 + 12 * count, 12):
        tag, kind, many = struct.unpack(order + "HHI", data[i : i + 8])
        short = kind == 3 and many == 1
        (tags[tag],) = struct.unpack(order + ("H" if short else "I"), data[i + 8 : i + (10 if short else 12)])
    if tags[259] != 1 or tags[278] < tags[257] or tags[262] not in (1, 2):
        raise OverflowError("no TIFF that is compressed, of several strips or with a palette is decoded here")
    shape = tags[257], tags[256], tags[277]
    return np.frombuffer(data[tags[273] : tags[273] + tags[279]], np.uint8).reshape(shape)


def _blocks(height: int, width: int, parts: int) -> Array:
    """Luma and chroma of blocks whose colours every decoder rounds the same way."""
    blocks = _samples(height, width, parts)
    while parts == 3:
        blue, red = blocks[..., 1] - 128, blocks[..., 2] - 128
        exact = [1.402 * red, (0.114 * 1.772 * blue + 0.299 * 1.402 * red) / 0.587, 1.772 * blue]
        near = np.any([np.abs(colour % 1 - 0.5) < 2 * _TIE for colour in exact], axis=0)
        if not near.any():
            break
        blocks[..., 1:] = np.where(near[..., None], (blocks[..., 1:] * 5 + 7) % 256, blocks[..., 1:])
    return blocks


def _samples(height: int, width: int, channels: int, levels: int = 256) -> Array:
    """Reproducible pseudo-random samples; every fourth pixel is grey, the first is black and the last is white."""
    places = np.arange(height * width * channels, dtype=np.uint64)
    drawn = ((places * np.uint64(2654435761) + np.uint64(12345)) >> np.uint64(9)) % np.uint64(levels)
    samples = drawn.astype(np.int64).reshape(height * width, channels)
    samples[::4] = samples[::4, :1]
    samples[0], samples[-1] = 0, levels - 1
    return samples.reshape(height, width, channels)


def _palette(size: int) -> Array:
    return _samples(16, 16, 3).reshape(256, 3)[:size]


def _encoders() -> Mapping[str, Callable[[int, int], bytes]]:
    table = _palette(256)
    quads = np.concatenate([table[:, ::-1], np.zeros((256, 1), np.int64)], 1).astype(np.uint8).tobytes()
    plte = _chunk(b"PLTE", table.astype(np.uint8).tobytes())
    return {
        "png": lambda h, w: _to_png(_samples(h, w, 3), 2),
        "png-grey": lambda h, w: _to_png(_samples(h, w, 1), 0),
        "png-palette": lambda h, w: _to_png(_samples(h, w, 1), 3, plte),
        "png-interlaced": lambda h, w: _to_png(_samples(h, w, 3), 2, interlaced=True),
        "png-interlaced-grey": lambda h, w: _to_png(_samples(h, w, 1), 0, interlaced=True),
        "png-interlaced-palette": lambda h, w: _to_png(_samples(h, w, 1), 3, plte, interlaced=True),
        "bmp": lambda h, w: _to_bmp(_samples(h, w, 3)),
        "bmp-down": lambda h, w: _to_bmp(_samples(h, w, 3), down=True),
        "bmp-palette": lambda h, w: _to_bmp(_samples(h, w, 1), quads),
        "ppm": lambda h, w: _to_pnm(_samples(h, w, 3), 6),
        "pgm": lambda h, w: _to_pnm(_samples(h, w, 1), 5),
        "pbm": lambda h, w: _to_pnm(_samples(h, w, 1, 2) * 255, 4),
        "ppm-text": lambda h, w: _to_pnm(_samples(h, w, 3), 3),
        "tiff": lambda h, w: _to_tiff(_samples(h, w, 3), "<"),
        "jpeg": lambda h, w: of_blocks(_blocks(h, w, 3)),
        "jpeg-grey": lambda h, w: of_blocks(_blocks(h, w, 1)),
        "jpeg-422-flat": lambda h, w: of_blocks(_samples(h, 2 * w, 3), 2),
        "jpeg-waves": of_waves,
        "jpeg-waves-grey": lambda h, w: of_waves(h, w, grey=True),
        "jpeg-422": lambda h, w: of_waves(h, w, 2),
        "jpeg-420": lambda h, w: of_waves(h, w, 2, 2),
        "webp": lambda h, w: encoded_webp(_samples(h, w, 3)),
        "tiff-grey": lambda h, w: _to_tiff(_samples(h, w, 1), ">"),
    }


def _drawn(drawing: Drawing, name: str) -> Array:
    """A picture in a format, with a size that gives the wanted number of bytes; truncated if no size does."""
    encode = _encoders()[name]
    longer = b""
    for picture in itertools.starmap(encode, _SIZES):
        if len(picture) >= drawing.size:
            longer = picture
        if len(picture) == drawing.size:
            break
    cut = np.frombuffer(longer[: drawing.size].ljust(drawing.size, b"\0"), np.uint8)
    return cut.astype(np.int64)[None]


def png(drawing: Drawing) -> Array:
    """A colour PNG."""
    return _drawn(drawing, "png")


def png_grey(drawing: Drawing) -> Array:
    """A grey PNG."""
    return _drawn(drawing, "png-grey")


def png_palette(drawing: Drawing) -> Array:
    """A PNG with a palette."""
    return _drawn(drawing, "png-palette")


def bmp(drawing: Drawing) -> Array:
    """A colour bitmap."""
    return _drawn(drawing, "bmp")


def bmp_down(drawing: Drawing) -> Array:
    """A colour bitmap, with the first row first."""
    return _drawn(drawing, "bmp-down")


def bmp_palette(drawing: Drawing) -> Array:
    """A bitmap with a palette."""
    return _drawn(drawing, "bmp-palette")


def ppm(drawing: Drawing) -> Array:
    """A portable pixmap."""
    return _drawn(drawing, "ppm")


def pgm(drawing: Drawing) -> Array:
    """A portable graymap."""
    return _drawn(drawing, "pgm")


def pbm(drawing: Drawing) -> Array:
    """A portable bitmap of black and white."""
    return _drawn(drawing, "pbm")


def ppm_text(drawing: Drawing) -> Array:
    """A portable pixmap as text."""
    return _drawn(drawing, "ppm-text")


def tiff(drawing: Drawing) -> Array:
    """A colour TIFF."""
    return _drawn(drawing, "tiff")


def tiff_grey(drawing: Drawing) -> Array:
    """A grey TIFF, high bytes first."""
    return _drawn(drawing, "tiff-grey")


def jpeg(drawing: Drawing) -> Array:
    """A colour JPEG with one colour per block."""
    return _drawn(drawing, "jpeg")


def jpeg_grey(drawing: Drawing) -> Array:
    """A grey JPEG with one grey per block."""
    return _drawn(drawing, "jpeg-grey")


def png_interlaced(drawing: Drawing) -> Array:
    """An interlaced colour PNG."""
    return _drawn(drawing, "png-interlaced")


def png_interlaced_grey(drawing: Drawing) -> Array:
    """An interlaced grey PNG."""
    return _drawn(drawing, "png-interlaced-grey")


def png_interlaced_palette(drawing: Drawing) -> Array:
    """An interlaced PNG with a palette."""
    return _drawn(drawing, "png-interlaced-palette")


def jpeg_waves(drawing: Drawing) -> Array:
    """A colour JPEG whose blocks have further coefficients after the first."""
    return _drawn(drawing, "jpeg-waves")


def jpeg_waves_grey(drawing: Drawing) -> Array:
    """A grey JPEG whose blocks have further coefficients after the first."""
    return _drawn(drawing, "jpeg-waves-grey")


def jpeg_422(drawing: Drawing) -> Array:
    """A JPEG with chroma at half resolution in each row."""
    return _drawn(drawing, "jpeg-422")


def jpeg_420(drawing: Drawing) -> Array:
    """A JPEG with chroma at half resolution in rows and columns."""
    return _drawn(drawing, "jpeg-420")


def jpeg_422_flat(drawing: Drawing) -> Array:
    """A JPEG with chroma at half resolution in each row, and a single value per block."""
    return _drawn(drawing, "jpeg-422-flat")


def webp(drawing: Drawing) -> Array:
    """A lossless colour WebP."""
    return _drawn(drawing, "webp")

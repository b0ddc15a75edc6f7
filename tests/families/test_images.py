"""ImageDecoder against pictures whose bytes are written by hand, or by the standard library's compression."""

import struct
import zlib

import numpy as np
import pytest
from recorded import readings, values

from opconform.cases.errors import OpconformError

RED, GREEN, BLUE, GREY = (255, 0, 0), (0, 200, 0), (0, 0, 77), (9, 9, 9)


def decoded(data, **attributes):
    return values("onnx/ImageDecoder-20", stream(data), {"image": "uint8"}, **attributes)[0].tolist()


def stream(data):
    return {"encoded_stream": np.frombuffer(data, np.uint8)}


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(rows, width):
    header = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    content = zlib.compress(b"".join(bytes([kind, *row]) for kind, row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", content) + chunk(b"IEND", b"")


PICTURE = [[list(RED), list(GREEN)], [list(BLUE), list(GREY)]]
PNG = png([(0, (*RED, *GREEN)), (0, (*BLUE, *GREY))], 2)
BMP = (
    b"BM" + struct.pack("<IHHI", 70, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 2, 2, 1, 24, 0, 16, 0, 0, 0, 0)
    + bytes([*BLUE[::-1], *GREY[::-1], 0, 0, *RED[::-1], *GREEN[::-1], 0, 0])
)  # fmt: skip
PPM = b"P3 2 2\n255\n255 0 0  0 200 0\n0 0 77  9 9 9\n"


@pytest.mark.parametrize("data", [PNG, BMP, PPM, b"P6\n#c\n2 2 255\n" + bytes([*RED, *GREEN, *BLUE, *GREY])])
def test_a_picture_has_its_pixels_in_the_order_of_the_format(data) -> None:
    assert decoded(data) == PICTURE
    assert decoded(data, pixel_format="BGR") == [[pixel[::-1] for pixel in row] for row in PICTURE]
    one = readings("onnx/ImageDecoder-20", stream(data), {"image": "uint8"}, pixel_format="Grayscale")[0]
    assert one.values[0].shape == (2, 2, 1)
    assert one.values[0].reshape(-1)[3] == 9


def test_greys_are_open_where_colours_differ() -> None:
    found = readings("onnx/ImageDecoder-20", stream(PNG), {"image": "uint8"}, pixel_format="Grayscale")
    assert [one.open for one in found] == [[False] * 4, [True, True, True, False]]


def test_rows_of_a_png_are_the_differences_to_what_their_filter_guesses() -> None:
    # of [10, 20, 30], [40, 50, 60] twice: none, left, above, mean and Paeth (W3C PNG, 9.2)
    rows = [(0, (10, 20, 30, 40, 50, 60)), (1, (10, 20, 30, 30, 30, 30)), (2, (0,) * 6), (3, (5, 10, 15, 15, 15, 15))]
    rows.append((4, (0,) * 6))
    assert decoded(png(rows, 2)) == [[[10, 20, 30], [40, 50, 60]]] * 5


@pytest.mark.parametrize("data", [b"", b"no picture", PNG[:40], PNG[:20] + b"\1" + PNG[21:], PPM[:20]])
def test_what_cannot_be_decoded_is_an_empty_matrix(data) -> None:
    found = readings("onnx/ImageDecoder-20", stream(data), {"image": "uint8"})
    assert {one.taken["empty"]: one.values[0].shape for one in found} == {
        "no-pixels": (0, 0, 0),
        "channels": (0, 0, 3),
        "vector": (0,),
        "matrix": (0, 0),
    }


def test_pictures_beyond_what_is_decoded_here_are_refused_and_not_called_broken() -> None:
    with pytest.raises(OpconformError, match="WebP"):
        decoded(b"RIFF\0\0\0\0WEBP")


def jpeg(scan, parts):
    """Return a JPEG of 8 x 8 pixels: first coefficients in steps of 8, codes of 2 bits for sizes 0, 5 and 6."""
    segments = {
        0xDB: b"\0" + bytes([8] * 64),
        0xC0: struct.pack(">BHHB", 8, 8, 8, parts) + b"".join(bytes([i, 0x11, 0]) for i in range(parts)),
        0xC4: b"\0\0\3" + b"\0" * 14 + bytes([0, 5, 6]) + b"\x10\1" + b"\0" * 15 + b"\0",
        0xDA: bytes([parts]) + b"".join(bytes([i, 0]) for i in range(parts)) + b"\0\x3f\0",
    }
    head = b"".join(bytes([0xFF, mark]) + struct.pack(">H", len(part) + 2) + part for mark, part in segments.items())
    bits = scan.replace(" ", "")
    bits += "1" * (-len(bits) % 8)
    return b"\xff\xd8" + head + bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)) + b"\xff\xd9"


def test_a_jpeg_of_one_colour_a_block_is_exact() -> None:
    # 20 = 10100 of size 5; -50 is 63 - 50 = 001101 of size 6; 0 at the end of each block
    assert decoded(jpeg("01 10100 0", 1)) == [[[148] * 3] * 8] * 8
    assert decoded(jpeg("10 001101 0", 1)) == [[[78] * 3] * 8] * 8
    # luma 128, blue 0, red 20: 128 + 28.04, 128 - 14.28, 128
    assert decoded(jpeg("00 0  00 0  01 10100 0", 3)) == [[[156, 114, 128]] * 8] * 8

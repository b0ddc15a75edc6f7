"""ImageDecoder against pictures whose bytes are written by hand, or by the standard library's compression."""

import struct
import zlib

import numpy as np
import pytest
from recorded import readings, values

from opconform.cases.errors import OpconformError
from opconform.generators.families.jpeg import of_waves

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
        decoded(b"RIFF\0\0\0\0WEBPVP8 ")


def test_an_interlaced_png_has_its_pixels_in_seven_passes() -> None:
    # of 3 x 3 greys five have rows: the first; the third column's; the third row; the second column's; the second row
    rows = [(0, 1), (0, 3), (1, 7, 2), (0, 2), (2, 6), (4, 4, 1, 1)]
    header = struct.pack(">IIBBBBB", 3, 3, 8, 0, 0, 0, 1)
    content = zlib.compress(b"".join(map(bytes, rows)))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", content) + chunk(b"IEND", b"")
    assert decoded(data, pixel_format="Grayscale") == [[[1], [2], [3]], [[4], [5], [6]], [[7], [8], [9]]]


def test_a_lossless_webp_has_its_pixels_and_its_red_and_blue_may_be_less_green() -> None:
    def bits(*numbers):  # each with its size, the lowest bit first
        return "".join(f"{number:0{size}b}"[::-1] for number, size in numbers)

    one = [bits((0b101, 3), (symbol, 8)) for symbol in (250, 3, 255, 0)]  # red, blue, alpha, distance: one symbol each
    green = bits((0b111, 3), (10, 8), (20, 8))
    for less_green, pixels in (("0", [[250, 10, 3], [250, 20, 3]]), ("1010", [[4, 10, 13], [14, 20, 23]])):
        text = bits((0x2F, 8), (1, 14), (0, 14), (0, 4)) + less_green + "00" + green + "".join(one) + "01"
        text += "0" * (-len(text) % 16)
        content = bytes(int(text[at : at + 8][::-1], 2) for at in range(0, len(text), 8))
        data = b"WEBPVP8L" + struct.pack("<I", len(content)) + content
        assert decoded(b"RIFF" + struct.pack("<I", len(data)) + data) == [pixels]


def jpeg(scan, parts, width=8, height=8, factors=0x11):
    """Return a JPEG: coefficients in steps of 8, first ones by codes of 2 bits for sizes 0, 5 and 6.

    Of others: 0 ends a block, 10 is one of size 5 at once, 110 one behind a zero, 1110 is 16 zeros.
    """
    segments = {
        0xDB: b"\0" + bytes([8] * 64),
        0xC0: struct.pack(">BHHB", 8, height, width, parts)
        + b"".join(bytes([i, 0x11 if i else factors, 0]) for i in range(parts)),
        0xC4: b"\0\0\3" + b"\0" * 14 + bytes([0, 5, 6]) + b"\x10\1\1\1\1" + b"\0" * 12 + b"\0\5\x15\xf0",
        0xDA: bytes([parts]) + b"".join(bytes([i, 0]) for i in range(parts)) + b"\0\x3f\0",
    }
    head = b"".join(bytes([0xFF, mark]) + struct.pack(">H", len(part) + 2) + part for mark, part in segments.items())
    bits = scan.replace(" ", "")
    bits += "1" * (-len(bits) % 8)
    return b"\xff\xd8" + head + bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)) + b"\xff\xd9"


def admitted(data, **attributes):
    """Return the pixels by the formula, and the least and the largest that are admissible."""
    (one,) = readings("onnx/ImageDecoder-20", stream(data), {"image": "uint8"}, **attributes)
    return [one.values[0].astype(int), one.lower[0].astype(int), one.upper[0].astype(int)]


def test_a_jpeg_of_one_colour_a_block_is_exact() -> None:
    # 20 = 10100 of size 5; -50 is 63 - 50 = 001101 of size 6; 0 at the end of each block
    assert decoded(jpeg("01 10100 0", 1)) == [[[148] * 3] * 8] * 8
    assert decoded(jpeg("10 001101 0", 1)) == [[[78] * 3] * 8] * 8
    # luma 128, blue 0, red 20: 128 + 28.04, 128 - 14.28, 128
    one, low, high = admitted(jpeg("00 0  00 0  01 10100 0", 3))
    assert one.tolist() == low.tolist() == high.tolist() == [[[156, 114, 128]] * 8] * 8


@pytest.mark.parametrize(
    ("scan", "waves"),
    [
        ("00 10 10100 0", [(0, 1)]),  # how often it goes up and down in a column and in a row (T.81, figure 5)
        ("00 110 10100 0", [(1, 0)]),
        ("00 1110 1110 1110 110 10100 0", [(6, 4)]),
        (
            "00 1110 1110 1110" + "110 10100" * 7 + "10 10100",  # the last one, so that no code ends the block
            [(6, 4), (4, 6), (4, 7), (6, 5), (7, 5), (5, 7), (7, 6), (7, 7)],
        ),
    ],
)
def test_greys_of_waves_may_be_1_beside_the_exact_ones(scan, waves) -> None:
    cosines = [np.cos((2 * np.arange(8) + 1) * k * np.pi / 16) / (2 if k else 8**0.5) for k in range(8)]
    exact = np.rint(128 + 160 * sum(np.outer(cosines[v], cosines[u]) for v, u in waves))
    found = admitted(jpeg(scan, 1), pixel_format="Grayscale")
    for each, off in zip(found, (0, -1, 1), strict=True):
        assert (each[:, :, 0] == np.clip(exact + off, 0, 255)).all()


def test_chroma_of_half_the_width_is_interpolated_and_halves_are_rounded_in_turn() -> None:
    # red of 128, then of 146: 132.5 is rounded up, 141.5 down
    luma, step = "00 0 " * 2, "01 10010 0"
    one, low, high = admitted(jpeg(luma + "00 0 00 0" + luma + "00 0" + step, 3, 32, 8, 0x21))
    reds = [*[128] * 15, *(round(128 + 1.402 * n) for n in (5, 13)), *[round(128 + 1.402 * 18)] * 15]
    assert one[:, :, 0].tolist() == low[:, :, 0].tolist() == high[:, :, 0].tolist() == [reds] * 8
    assert (one[:, :, 2] == 128).all()


def test_chroma_of_half_the_extents_may_be_rounded_once_or_twice() -> None:
    luma, step = "00 0 " * 4, "01 10010 0"
    _, low, high = admitted(jpeg(luma + "00 0 00 0" + luma + "00 0" + step, 3, 32, 16, 0x22))
    for column, exact in ((15, 4.5), (16, 13.5)):
        assert (low[:, column, 0] <= round(128 + 1.402 * (exact - 0.5))).all()
        assert (high[:, column, 0] >= round(128 + 1.402 * (exact + 0.5))).all()
        assert (high[:, column, 0] - low[:, column, 0] <= 4).all()
    nearest = [*[128] * 16, *[153] * 16]
    assert ((nearest < low[0, :, 0]) | (nearest > high[0, :, 0])).sum() == 2


@pytest.mark.parametrize("luma", [2, 4])
def test_chroma_of_two_samples_in_a_row_may_be_repeated(luma) -> None:
    # samples of red: 248 cos((2 x + 1) pi / 16) / (2 sqrt 8), or 43.0 and 36.5
    data = jpeg("00 0 " * luma + "00 0" + "00 10 11111 0", 3, 4, 8, 0x21 if luma == 2 else 0x22)
    between, repeated = readings("onnx/ImageDecoder-20", stream(data), {"image": "uint8"})
    for one, offs in ((between, [43, 41, 38, 36.5]), (repeated, [43, 43, 36.5, 36.5])):
        low, high = (bound[0].astype(int)[:, :, 0] for bound in (one.lower, one.upper))
        exact = 128 + 1.402 * np.array(offs)
        assert ((low <= exact) & (exact <= high)).all()
        assert (high - low <= 6).all()
    assert (repeated.upper[0][:, 1, 0] > between.upper[0][:, 1, 0]).all()


@pytest.mark.parametrize(("across", "down", "grey"), [(1, 1, True), (1, 1, False), (2, 1, False), (2, 2, False)])
def test_what_is_written_is_read_within_bounds_that_are_narrow(across, down, grey) -> None:
    data = of_waves(31, 32, across, down, grey=grey)
    one, low, high = admitted(data)
    assert one.shape == (31, 32, 3)
    assert (low <= one).all()
    assert (one <= high).all()
    assert (high - low).max() <= (2 if grey else 11)
    assert len(np.unique(one)) > 100

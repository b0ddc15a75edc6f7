"""OpenVINO's Fourier transforms over several axes, against NumPy and against the sums that its pages write."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from recorded import readings, values

RANDOM = np.random.default_rng(7)


def drawn(*shape: int):
    return RANDOM.integers(-9, 10, shape).astype(np.float32)


def complexes(x):
    return x[..., 0] + np.complex128(1j) * x[..., 1]


def pairs(x):
    return np.stack([x.real, x.imag], -1)


def ports(data, axes, sizes):
    found = {"data": data, "axes": np.array(axes, np.int64)}
    return found if sizes is None else {**found, "signal_size": np.array(sizes, np.int64)}


def only(operator, data, axes, sizes=None):
    (found,) = values(f"openvino/{operator}", ports(data, axes, sizes), {"output": "float32"})
    return found


CALLS = [([1], None), ([-2], None), ([2, 0], None), ([0, 1, 2], None), ([1, 0], [5, 2]), ([0, 2], [-1, 3])]


@pytest.mark.parametrize(("axes", "sizes"), CALLS)
def test_transforms_over_axes_are_numpys(axes, sizes) -> None:
    x = drawn(3, 4, 5, 2)
    places = [a % 3 for a in axes]
    s = [x.shape[p] if n == -1 else n for p, n in zip(places, sizes or [-1] * len(axes), strict=True)]
    assert only("DFT-7", x, axes, sizes) == pytest.approx(pairs(np.fft.fftn(complexes(x), s, places)), abs=1e-9)
    assert only("IDFT-7", x, axes, sizes) == pytest.approx(pairs(np.fft.ifftn(complexes(x), s, places)), abs=1e-9)
    real = np.fft.rfftn(x[..., 0].astype(np.float64), s, places)
    assert only("RDFT-9", x[..., 0], axes, sizes) == pytest.approx(pairs(real), abs=1e-9)


@pytest.mark.parametrize(("axes", "sizes"), [*CALLS, ([1], [7]), ([1], [4]), ([2, 1], [-1, 12])])
def test_the_inverse_of_half_a_spectrum_is_numpys(axes, sizes) -> None:
    x = drawn(3, 4, 5, 2)
    places = [a % 3 for a in axes]
    s = [x.shape[p] if n == -1 else n for p, n in zip(places, sizes or [-1] * len(axes), strict=True)]
    if sizes is None or sizes[-1] == -1:
        s[-1] = 2 * (x.shape[places[-1]] - 1)
    found = readings("openvino/IRDFT-9", ports(x, axes, sizes), {"output": "float32"})
    assert found[0].values[0] == pytest.approx(np.fft.irfftn(complexes(x), s, places), abs=1e-9)


def test_half_a_spectrum_may_be_mirrored_before_it_gets_its_size_as_the_formula_of_the_page_says() -> None:
    x = drawn(2, 4, 2)
    half = complexes(x)
    whole = np.concatenate([half, half[:, 2:0:-1].conj()], 1)
    for n in (3, 5, 8):
        wanted = np.fft.ifft(whole, n, 1).real
        found = readings("openvino/IRDFT-9", ports(x, [1], [n]), {"output": "float32"})
        assert any(one.values[0] == pytest.approx(wanted, abs=1e-9) for one in found)


@pytest.mark.parametrize(("shape", "sizes"), [((2, 5), [0]), ((2, 0), None)])
def test_half_of_an_axis_without_elements_is_nothing_or_the_one_zero_that_the_page_counts(shape, sizes) -> None:
    found = readings("openvino/RDFT-9", ports(drawn(*shape), [1], sizes), {"output": "float32"})
    admitted = [one.values[0] for one in found if one.values]
    assert {value.shape for value in admitted} == {(2, 0, 2), (2, 1, 2)}
    assert not any(value.any() for value in admitted)


def one_by_one(x, order, type_):
    """Return transforms along axes as sums in a narrow type, one axis after another."""
    for axis in order:
        n = x.shape[axis]
        weights = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n).astype(type_)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights, -1, axis)
    return x


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_every_order_of_the_axes_is_admitted(order) -> None:
    parts = RANDOM.uniform(-1, 1, (3, 4, 8, 2)).astype(np.float32)
    y = pairs(one_by_one(complexes(parts).astype(np.complex64), order, np.complex64))
    found = readings("openvino/DFT-7", ports(parts, [2, 0, 1], None), {"output": "float32"})
    assert any(((one.lower[0] <= y) & (y <= one.upper[0])).all() for one in found)


def framed(signal, window, size, step, transposed=False):
    given = {"signal": signal, "window": window, "frame_size": np.array(size), "frame_step": np.array(step)}
    return readings("openvino/STFT-15", given, {"output": "float32"}, transpose_frames=transposed)


def test_frames_of_a_signal_are_numpys_and_a_short_window_lies_in_their_middle_or_at_their_start() -> None:
    signal, window = drawn(2, 20), np.array([1, 2, 3, 2, 1], np.float32)
    found = framed(signal, window, 8, 3)
    for one, before in zip(found[:: len(found) // 2], (1, 0), strict=True):
        weights = np.pad(window.astype(np.float64), (before, 3 - before))
        frames = np.stack([signal[:, i : i + 8] * weights for i in range(0, 13, 3)], 1)
        assert one.values[0] == pytest.approx(pairs(np.fft.rfft(frames)), abs=1e-9)
    (turned,) = {one.values[0].shape for one in framed(signal, window, 8, 3, transposed=True)}
    assert turned == (2, 5, 5, 2)


@pytest.mark.parametrize(("size", "step"), [(8, 3), (5, 2), (6, 6), (4, 1)])
@pytest.mark.parametrize("normalized", [False, True])
def test_frames_come_back_as_their_signal_whatever_is_divided_by_what(size, step, normalized) -> None:
    signal, window = drawn(2, size + 4 * step), np.arange(1, size + 1, dtype=np.float32)
    spectra = framed(signal, window, size, step, transposed=True)[0].values[0]
    data = (spectra / np.sqrt(size) if normalized else spectra).astype(np.float32)
    given = {"data": data, "window": window, "frame_size": np.array(size), "frame_step": np.array(step)}
    for center in (False, True):
        wanted = signal[:, size // 2 :][:, : 4 * step] if center else signal
        answers = readings("openvino/ISTFT-16", given, {"signal": "float32"}, center=center, normalized=normalized)
        for one in answers:
            if one.values:
                assert one.values[0] == pytest.approx(wanted, abs=1e-4)

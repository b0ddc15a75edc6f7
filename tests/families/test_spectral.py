"""Windows, Fourier transforms and mel weights against ONNX's function bodies, NumPy and sums as they are written."""

import operator

import gmpy2
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from recorded import readings, values

WINDOWS = {"BlackmanWindow": np.blackman, "HammingWindow": None, "HannWindow": np.hanning}
TYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int32": TensorProto.INT32}


def each(function, *xs):
    return np.vectorize(function, otypes=[object])(*xs)


def expanded(name, size, periodic):
    """Return what a window's body makes of a size, in exact arithmetic on the body's own constants."""
    found = {"size": gmpy2.mpfr(size)}
    for node in onnx.defs.get_schema(name, 17, "").function_body.node:
        xs = [found[n] for n in node.input]
        told = {a.name: helper.get_attribute_value(a) for a in node.attribute if not a.ref_attr_name}
        match node.op_type:
            case "Constant" if told:
                y = gmpy2.mpfr(float(numpy_helper.to_array(told["value"])))
            case "Constant":
                y = gmpy2.mpfr(periodic)
            case "Cast":
                y = xs[0]
            case "Range":
                y = each(gmpy2.mpfr, np.arange(int(xs[1])))
            case "Cos":
                y = each(gmpy2.cos, xs[0])
            case kind:
                y = {"Sub": operator.sub, "Mul": operator.mul, "Div": operator.truediv, "Add": operator.add}[kind](*xs)
        found[node.output[0]] = y
    return found["output"].astype(float)


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_is_what_its_function_body_gives(name, periodic) -> None:
    for size in (2, 3, 9, 64):
        with gmpy2.context(precision=200):
            wanted = expanded(name, size, periodic)
        found = readings(
            f"onnx/{name}-17",
            {"size": np.array(size)},
            {"output": "float64"},
            periodic=periodic,
            output_datatype=TYPES["float64"],
        )
        # the body's constants are those of float32, up to 2**-22 off
        assert any(np.allclose(one.values[0], wanted, rtol=0, atol=2.0**-22) for one in found)


@pytest.mark.parametrize("name", ["BlackmanWindow", "HannWindow"])
def test_a_symmetric_window_is_numpys_and_a_periodic_one_lacks_its_last_point(name) -> None:
    for size in (2, 5, 8):
        one, other = (
            values(f"onnx/{name}-17", {"size": np.array(size)}, {"output": "float32"}, periodic=p)[0] for p in (0, 1)
        )
        assert one == pytest.approx(WINDOWS[name](size), abs=1e-15)
        assert other == pytest.approx(WINDOWS[name](size + 1)[:-1], abs=1e-15)


def test_a_whole_window_is_one_at_its_peak_alone_if_it_is_not_missed() -> None:
    outputs = {"output": "int32"}
    found = readings("onnx/HannWindow-17", {"size": np.array(6)}, outputs, output_datatype=TYPES["int32"])
    assert [one.values[0].tolist() for one in found] == [[0, 0, 0, 1, 0, 0], [0] * 6]
    assert values("onnx/HannWindow-17", {"size": np.array(5)}, outputs, output_datatype=6)[0].tolist() == [0] * 5


def test_a_window_of_hamming_has_either_coefficient() -> None:
    found = readings("onnx/HammingWindow-17", {"size": np.array(4)}, {"output": "float32"})
    assert [one.values[0][0] for one in found] == pytest.approx([4 / 46, 0.08])


def spectrum(x, n, sign):
    """Return the sums as the page writes them, of lines of complex numbers."""
    k = np.arange(n)
    return x @ np.exp(sign * 2j * np.pi * np.outer(k, k) / n)


def pairs(x):
    return np.stack([x.real, x.imag], -1)


@given(st.sampled_from([1, 2, 3, 4, 5, 8, 12, 33]), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_transform_is_the_sum_as_it_is_written_and_its_inverse_divided(n, inverse, real, seed) -> None:
    parts = np.random.default_rng(seed).integers(-9, 10, (2, n, 1 if real else 2)).astype(np.float32)
    x = parts[..., 0] + (0 if real else 1j * parts[..., 1])
    wanted = spectrum(x, n, 1) / n if inverse else spectrum(x, n, -1)
    for found in readings("onnx/DFT-17", {"input": parts}, {"output": "float32"}, inverse=int(inverse)):
        assert found.values[0] == pytest.approx(pairs(wanted), abs=1e-9)
        assert (found.upper[0] - found.lower[0]).max() < 0.01 * max(1, np.abs(parts).max()) * n


def test_a_signal_is_cut_off_or_filled_up_along_its_axis() -> None:
    x = np.random.default_rng(1).integers(-9, 10, (5, 3, 2)).astype(np.float32)
    signal = np.moveaxis(x[..., 0] + 1j * x[..., 1], 0, -1)
    for n in (3, 8):
        line = np.zeros((3, n), complex)
        line[:, : min(n, 5)] = signal[:, : min(n, 5)]
        inputs = {"input": x, "dft_length": np.array(n), "axis": np.array(-3)}
        found = values("onnx/DFT-20", inputs, {"output": "float32"})[0]
        assert found == pytest.approx(pairs(spectrum(line, n, -1).T), abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_half_a_spectrum_comes_back_as_the_real_signal(n) -> None:
    signal = np.random.default_rng(2).integers(-9, 10, (2, n, 1)).astype(np.float32)
    half = values("onnx/DFT-20", {"input": signal}, {"output": "float64"}, onesided=1)[0]
    assert half.shape == (2, n // 2 + 1, 2)
    back = {"input": half, "dft_length": np.array(n)}
    again = values("onnx/DFT-20", back, {"output": "float64"}, onesided=1, inverse=1)[0]
    assert again == pytest.approx(signal, abs=1e-12)


def test_the_last_frame_lies_wholly_in_the_signal() -> None:
    signal = np.arange(11, dtype=np.float32).reshape(1, 11, 1)
    window = np.array([1, 2, 0, -1], np.float32)
    inputs = {"signal": signal, "frame_step": np.array(3), "window": window}
    found = values("onnx/STFT-17", inputs, {"output": "float32"}, onesided=0)[0]
    frames = np.stack([signal[0, i : i + 4, 0] * window for i in (0, 3, 6)])
    assert found == pytest.approx(pairs(spectrum(frames, 4, -1))[None], abs=1e-9)


def radix_2(x):
    """Return a fast transform in the type of x, all of whose weights are rounded."""
    if len(x) == 1:
        return x
    even, odd = radix_2(x[::2]), radix_2(x[1::2])
    weights = np.exp(-2j * np.pi * np.arange(len(x) // 2) / len(x)).astype(x.dtype)
    return np.concatenate([even + weights * odd, even - weights * odd])


def chirped(x):
    """Return Bluestein's transform in the type of x, through fast transforms of a power of two."""
    n, m = len(x), 1 << (2 * len(x) - 2).bit_length()
    chirp = np.exp(-1j * np.pi * np.arange(n) ** 2 / n).astype(x.dtype)
    a, b = np.zeros(m, x.dtype), np.zeros(m, x.dtype)
    a[:n], b[:n], b[m - n + 1 :] = x * chirp, chirp.conj(), chirp.conj()[:0:-1]
    product = radix_2(a) * radix_2(b)
    return (radix_2(product.conj()).conj() / np.float32(m))[:n] * chirp


@given(st.sampled_from([(radix_2, 8), (radix_2, 64), (chirped, 3), (chirped, 17), (chirped, 33)]), st.integers(0, 99))
def test_fast_algorithms_are_admitted_by_a_reading(algorithm, seed) -> None:
    fast, n = algorithm
    parts = np.random.default_rng(seed).uniform(-1, 1, (1, n, 2)).astype(np.float32)
    y = pairs(fast((parts[0, :, 0] + 1j * parts[0, :, 1]).astype(np.complex64)))[None]
    found = readings("onnx/DFT-17", {"input": parts}, {"output": "float32"})
    assert any(((one.lower[0] <= y) & (y <= one.upper[0])).all() for one in found)


def mel(f):
    return 2595 * np.log10(1 + f / 700)


def test_mel_bands_are_triangles_whose_corners_the_text_leaves_open() -> None:
    bands, n, rate, low, high = 5, 64, 8000, 100.0, 3900.0
    given = (bands, n, rate, low, high)
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    types = (np.int64, np.int64, np.int64, np.float32, np.float32)
    inputs = {name: np.array(v, t) for name, v, t in zip(names, given, types, strict=True)}
    for one in readings("onnx/MelWeightMatrix-17", inputs, {"output": "float32"}):
        way, y = one.taken["triangles"], one.values[0]
        steps = bands + (2 if way == "bins" else 1)
        hertz = 700 * (10 ** ((mel(low) + np.arange(bands + 2) * (mel(high) - mel(low)) / steps) / 2595) - 1)
        places, corners = np.arange(n // 2 + 1) * rate / n, hertz
        if "bins" in way:
            places, corners = np.arange(n // 2 + 1), np.floor((n + 1) * hertz / rate)
        elif way == "straight-over-mel":
            places, corners = mel(places), mel(hertz)
        for band in range(bands):
            wanted = np.interp(places, corners[band : band + 3], [0, 1, 0])
            assert y[:, band] == pytest.approx(wanted, abs=1e-9)


def test_where_rounding_decides_which_bin_an_edge_is_moved_to_either_is_admitted_and_no_other() -> None:
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    types = (np.int64, np.int64, np.int64, np.float32, np.float32)
    for low, admitted in ((300.0, {2, 3}), (340.0, {3})):  # 64 * 300 / 6400 is a whole number
        given = zip(names, (2, 63, 6400, low, 3000.0), types, strict=True)
        found = readings("onnx/MelWeightMatrix-17", {n: np.array(v, t) for n, v, t in given}, {"output": "float32"})
        bins = next(one for one in found if one.taken["triangles"] == "bins")
        corners = 700 * (10 ** ((mel(low) + np.arange(4) * (mel(3000.0) - mel(low)) / 4) / 2595) - 1)
        _, middle, right, _ = np.floor(64 * corners / 6400)
        for left in range(1, 6):
            y = np.interp(np.arange(32), [left, middle, right], [0, 1, 0]).astype(np.float32)
            inside = ((bins.lower[0][:, 0] <= y) & (y <= bins.upper[0][:, 0])).all()
            assert inside == (left in admitted), (low, left)
        assert (bins.upper[0][int(right) + 1 :, 0] == 0).all()


def test_bins_are_open_where_an_edge_times_the_length_is_beyond_the_type() -> None:
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    for type_, is_open in ((np.float16, True), (np.float32, False)):
        types = (np.int64, np.int64, np.int64, type_, type_)
        given = zip(names, (8, 64, 8192, 0.0, 4096.0), types, strict=True)
        found = readings("onnx/MelWeightMatrix-17", {n: np.array(v, t) for n, v, t in given}, {"output": "float32"})
        assert all(found[0].open) == is_open

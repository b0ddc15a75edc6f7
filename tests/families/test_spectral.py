"""Windows, Fourier transforms and mel weights against ONNX's function bodies, NumPy and sums as they are written."""

import operator

import gmpy2
import numpy as np
import onnx
import pytest
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

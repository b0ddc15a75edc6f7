"""A script that reproduces one case with onnxruntime and NumPy alone."""

from __future__ import annotations

import base64
import json
import zlib
from string import Template

import numpy as np

from ..cases.elements import Array, element_type, type_of
from ..cases.errors import OpconformError
from ..cases.expectation import Option
from ..cases.model import Case
from ..cases.onnx_model import onnx_model
from .show import node_text

_SCRIPT = Template('''\
"""$title

Reproduces a case of opconform with onnxruntime and NumPy alone. Exits 0 if the answer is admitted, 1 if not.
"""
import base64, ctypes, json, sys, zlib
import numpy as np
import onnxruntime as ort

MODEL = "$model"
INPUTS = json.loads('$inputs')  # name, element type, shape, content
OPTIONS = json.loads('$options')  # what the standard admits; none: the input is invalid
ONNX_TYPES = json.loads('$types')


def unpack(text, dtype, shape):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).reshape(shape)


def feed(kind, shape, text):
    if kind == "bfloat16":  # NumPy has no such type: the bits travel as uint16
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(unpack(text, "<u2", shape).copy(), ONNX_TYPES[kind])
    return ort.OrtValue.ortvalue_from_numpy(unpack(text, kind, shape).copy())


def answer(value):  # element type, array
    if value.data_type() != "tensor(bfloat16)":
        array = value.numpy()
        return str(array.dtype), array
    shape = tuple(value.shape())
    size = int(np.prod(shape, dtype="i8"))
    bits = np.frombuffer(ctypes.string_at(value.data_ptr(), 2 * size) if size else b"", "u2")
    return "bfloat16", (bits.astype("u4") << 16).view("f4").reshape(shape)


def admits(option, outputs):
    if option["kind"] != "values":
        return option["kind"] == "anything"
    if len(outputs) != len(option["outputs"]):
        return False
    shown = not option["exceptional"]
    for want, (name, got) in zip(option["outputs"], outputs):
        if name != want["type"] or list(got.shape) != want["shape"]:
            return False
        kind = "f8" if got.dtype.kind == "f" else got.dtype
        lower, upper = (unpack(want[k], kind, got.shape) for k in ("lower", "upper"))
        flags = unpack(want["flags"], "u1", got.shape)
        y = got.astype(kind)
        with np.errstate(invalid="ignore"):
            inside = (y >= lower) & (y <= upper)
        ok = inside | ((flags & 8) > 0)
        if got.dtype.kind == "f":
            for bit, hit in ((1, y == np.inf), (2, y == -np.inf), (4, np.isnan(y)), (16, y == 0)):
                ok |= ((flags & bit) > 0) & hit
            ok &= ~(((flags & 32) > 0) & ~np.signbit(y)) & ~(((flags & 64) > 0) & np.signbit(y))
        shown = shown or bool((ok & ~inside).any())
        if not ok.all():
            return False
        if want["spread"]:  # the errors as a whole: mean of (error/sigma)**2
            value, sigma = (unpack(want["spread"][k], "f8", got.shape) for k in ("value", "sigma"))
            if not np.mean(((y - value) / sigma) ** 2) <= want["spread"]["limit"]:
                return False
    return shown


def main():
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    ort.set_default_logger_severity(4)  # its log repeats what it raises
    try:
        model = zlib.decompress(base64.b64decode(MODEL))
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        outputs = [answer(v) for v in session.run_with_ort_values(None, {n: feed(*rest) for n, *rest in INPUTS})]
    except Exception as error:
        print("refused:", error)
        return 0 if not OPTIONS or any(o["kind"] != "values" for o in OPTIONS) else 1
    for name, got in outputs:
        print("got", name, list(got.shape), got.reshape(-1)[:16].tolist())
    if not OPTIONS:
        print("the input is invalid: a refusal was welcome")
        return 1
    for option in OPTIONS:
        print("admitted" if admits(option, outputs) else "not admitted", "as", option["labels"] or "the one answer")
        for want in option["outputs"]:
            kind = "f8" if "float" in want["type"] else want["type"]
            lower, upper = (unpack(want[k], kind, want["shape"]).reshape(-1)[:16].tolist() for k in ("lower", "upper"))
            print("    want", want["type"], want["shape"], "from", lower, "to", upper)
    return 0 if any(admits(o, outputs) for o in OPTIONS) else 1


sys.exit(main())
''')


def reproduction(case: Case) -> str:
    """Return the script. Raises OpconformError for a case of another standard than ONNX."""
    if case.program.operator.standard != "onnx":
        raise OpconformError(f"{case.id}: a script with onnxruntime reproduces cases of onnx alone")
    feeds = zip(case.program.feeds, case.inputs, strict=True)
    inputs = [[i.name, type_of(a), list(a.shape), _pack(a)] for i, a in feeds]
    return _SCRIPT.substitute(
        title=f"{case.id}\n\n{node_text(case.program)}",
        model=_packed(onnx_model(case.program).SerializeToString(deterministic=True)),
        inputs=json.dumps(inputs),
        options=json.dumps([_option(option) for option in case.expectation.options]),
        types=json.dumps({"bfloat16": element_type("bfloat16").onnx}),
    )


def _option(option: Option) -> dict[str, object]:
    outputs = [
        {
            "type": bounds.type,
            "shape": list(bounds.shape),
            "lower": _pack(bounds.lower),
            "upper": _pack(bounds.upper),
            "flags": _pack(bounds.flags if bounds.flags is not None else np.zeros(bounds.shape, np.uint8)),
            "spread": bounds.spread
            and {"limit": bounds.spread.limit, "sigma": _pack(bounds.spread.sigma), "value": _pack(bounds.value)},
        }
        for bounds in option.outputs
    ]
    return {"labels": dict(option.labels), "kind": option.kind, "exceptional": option.exceptional, "outputs": outputs}


def _pack(array: Array) -> str:
    little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.kind in "iuf" else array
    return _packed(little.tobytes())


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()

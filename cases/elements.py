"""Element types of tensors: their values and precision, and their forms in NumPy, bytes, ONNX and JSON."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from onnx import TensorProto

Array: TypeAlias = npt.NDArray[Any]
ElementKind: TypeAlias = Literal["float", "signed", "unsigned", "bool", "complex", "string"]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format (IEEE 754-2019, clause 3.3, and the OCP 8-bit and microscaling formats).

    `precision` counts significant bits including the hidden one. `emin` and `emax` are the exponents of the smallest
    normal and the largest finite number. `subnormals`: whether there are numbers below the normal ones, including zero.
    `reserved` counts the significands at the top of the largest exponent that are not finite numbers, in formats that
    use the rest of that exponent for numbers (1 in float8e4m3fn).
    """

    precision: int
    emin: int
    emax: int
    signed: bool = True
    subnormals: bool = True
    infinities: bool = True
    nans: bool = True
    negative_zero: bool = True
    reserved: int = 0

    roundoff: float = field(init=False, repr=False, compare=False)
    """The unit roundoff u: half the distance from 1 to the next number."""
    tiny: float = field(init=False, repr=False, compare=False)
    """The smallest positive normal number."""
    eta: float = field(init=False, repr=False, compare=False)
    """The smallest positive number, which is the distance between subnormal numbers."""
    largest: float = field(init=False, repr=False, compare=False)
    """The largest finite number."""
    overflow: float = field(init=False, repr=False, compare=False)
    """The magnitude from which rounding to nearest gives no finite number; infinity for float64.

    It is half a unit above `largest`. A tie rounds to even: away from `largest`, except in float8e4m3fn.
    """

    def __post_init__(self) -> None:
        largest = math.ldexp(2.0 - math.ldexp(1.0 + self.reserved, 1 - self.precision), self.emax)
        made = {
            "roundoff": math.ldexp(1.0, -self.precision),
            "tiny": math.ldexp(1.0, self.emin),
            "eta": math.ldexp(1.0, self.emin - self.precision + 1),
            "largest": largest,
            "overflow": math.inf if self.emax >= 1023 else largest + math.ldexp(1.0, self.emax - self.precision),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True)
class ElementType:
    """The type of a tensor's elements, with ONNX's name for it in NumPy's spelling (`float32`, `bfloat16`, `uint8`).

    `bits` is the size of an element when elements are packed, 0 for strings. `onnx` is the number in
    TensorProto.DataType. `format` is set for floating-point types, and for complex types to the format of their parts.
    """

    name: str
    kind: ElementKind
    bits: int
    onnx: int
    format: FloatFormat | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the NumPy dtype: from ml_dtypes if NumPy lacks it, `object` for strings."""
        return _dtype(self.name)

    @property
    def is_integer(self) -> bool:
        """Return whether the values are integers (bool is not)."""
        return self.kind in ("signed", "unsigned")

    @property
    def is_packed(self) -> bool:
        """Return whether several elements share a byte; in NumPy each has its own."""
        return 0 < self.bits < 8

    @property
    def smallest(self) -> int:
        """Return the smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.kind == "signed" else 0

    @property
    def largest(self) -> int:
        """Return the largest value of an integer type."""
        return (1 << (self.bits - (self.kind == "signed"))) - 1

    @property
    def float_format(self) -> FloatFormat:
        """Return the format of a floating-point type; TypeError for other types."""
        if self.format is None or self.kind != "float":
            raise TypeError(f"{self.name} is not a floating-point type")
        return self.format

    def size(self, count: int) -> int:
        """Return the number of bytes of `count` elements, packed; TypeError for strings, whose sizes vary."""
        if self.kind == "string":
            raise TypeError("strings have no fixed size")
        return -(-count * self.bits // 8)


@functools.cache
def element_types() -> dict[str, ElementType]:
    """Return all element types that cases can have, by name."""
    single, double = FloatFormat(24, -126, 127), FloatFormat(53, -1022, 1023)
    finite = FloatFormat(4, -6, 8, infinities=False, reserved=1)
    ocp4 = FloatFormat(2, 0, 2, infinities=False, nans=False)
    scale = FloatFormat(1, -127, 127, signed=False, subnormals=False, infinities=False, negative_zero=False)
    signed = ((8, 3), (16, 5), (32, 6), (64, 7), (4, 22), (2, 26))
    unsigned = ((8, 2), (16, 4), (32, 12), (64, 13), (4, 21), (2, 25))
    types = [
        ElementType("float16", "float", 16, 10, FloatFormat(11, -14, 15)),
        ElementType("bfloat16", "float", 16, 16, FloatFormat(8, -126, 127)),
        ElementType("float32", "float", 32, 1, single),
        ElementType("float64", "float", 64, 11, double),
        *(ElementType(f"int{bits}", "signed", bits, number) for bits, number in signed),
        *(ElementType(f"uint{bits}", "unsigned", bits, number) for bits, number in unsigned),
        ElementType("bool", "bool", 8, 9),
        ElementType("string", "string", 0, 8),
        ElementType("complex64", "complex", 64, 14, single),
        ElementType("complex128", "complex", 128, 15, double),
        ElementType("float8e4m3fn", "float", 8, 17, finite),
        ElementType("float8e4m3fnuz", "float", 8, 18, FloatFormat(4, -7, 7, infinities=False, negative_zero=False)),
        ElementType("float8e5m2", "float", 8, 19, FloatFormat(3, -14, 15)),
        ElementType("float8e5m2fnuz", "float", 8, 20, FloatFormat(3, -15, 15, infinities=False, negative_zero=False)),
        ElementType("float8e8m0", "float", 8, 24, scale),
        ElementType("float4e2m1", "float", 4, 23, ocp4),
        ElementType("float6e2m3", "float", 6, 27, FloatFormat(4, 0, 2, infinities=False, nans=False)),
        ElementType("float6e3m2", "float", 6, 28, FloatFormat(3, -2, 4, infinities=False, nans=False)),
    ]
    return {t.name: t for t in types}


def element_type(name: str) -> ElementType:
    """Return the element type called `name`; KeyError if cases cannot have it."""
    return element_types()[name]


def numbered(number: int) -> ElementType | None:
    """Return the element type with this number in ONNX's TensorProto.DataType, None if cases cannot have it."""
    return next((t for t in element_types().values() if t.onnx == number), None)


@functools.cache
def _dtype(name: str) -> np.dtype[Any]:
    if name == "string":
        return np.dtype(object)
    if name not in np.sctypeDict:
        import ml_dtypes  # noqa: PLC0415 - only the runs that need it pay for it

        # ml_dtypes ends a name with the features that the format lacks; ONNX does not
        named = {"float8e8m0": "float8_e8m0fnu", "float4e2m1": "float4_e2m1fn"}
        named |= {float6: f"{float6[:6]}_{float6[6:]}fn" for float6 in ("float6e2m3", "float6e3m2")}
        spelled = f"{name[:6]}_{name[6:]}" if name.startswith("float8") else name
        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, named.get(name, spelled)))
        return dtype
    return np.dtype(name)


@functools.cache
def _name_of(dtype: np.dtype[Any]) -> str:
    return next((t.name for t in element_types().values() if t.dtype == dtype), str(dtype))


def type_of(array: Array) -> str:
    """Return the name of an array's element type, or NumPy's name if cases cannot have it."""
    return _name_of(array.dtype)


def canonical(value: Any) -> Array:
    """Return a library's output as an array of an element type: strings of any form become an object array of `str`.

    Other arrays are returned unchanged, whatever their type. Raises TypeError for objects that are not text.
    """
    array: Array = value if type(value) is np.ndarray else np.asarray(value)
    if array.dtype.kind not in "OUST":
        return array
    texts = np.empty(array.size, object)
    texts[:] = [_text(entry) for entry in array.reshape(-1).tolist()]
    return texts.reshape(array.shape)


def _text(entry: Any) -> str:
    if isinstance(entry, bytes):
        return entry.decode("utf-8", "surrogateescape")
    if not isinstance(entry, str):
        raise TypeError(f"expected text, got {type(entry).__name__}")
    return str(entry)


def _utf8(text: Any) -> bytes:
    # bytes that were not UTF-8 when read are written back unchanged
    if not isinstance(text, str):
        raise TypeError(f"a tensor of strings can only hold text; got {type(text).__name__}")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def content(array: Array) -> bytes:
    """Return the elements in C order as bytes: little-endian, packed from the lowest bit, as ONNX's raw_data.

    Strings are UTF-8, each after its length in four bytes. Raises TypeError for objects that are not text.
    """
    element = element_types().get(type_of(array))
    if array.dtype.hasobject:
        words = [_utf8(text) for text in array.reshape(-1).tolist()]
        return b"".join(len(word).to_bytes(4, "little") + word for word in words)
    if element is not None and element.is_packed:
        return _packed(array, element.bits)
    return (array.astype(array.dtype.newbyteorder("<")) if array.dtype.byteorder == ">" else array).tobytes()


def lane_contents(array: Array) -> list[bytes]:
    """Return the content of each `array[lane]`: array of shape (lanes, ...)."""
    element = element_types().get(type_of(array))
    if array.dtype.hasobject or (element is not None and element.is_packed):
        return [content(np.asarray(array[lane, ...])) for lane in range(len(array))]
    view = memoryview(content(array))
    width = len(view) // max(1, len(array))
    return [bytes(view[lane * width : (lane + 1) * width]) for lane in range(len(array))]


def from_content(name: str, shape: Sequence[int], held: bytes) -> Array:
    """Return the array of element type `name` with the content `held`.

    Raises ValueError if the number of bytes does not match the shape, KeyError for an unknown type.
    """
    element, shape = element_type(name), tuple(shape)
    count = math.prod(shape)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"no shape: {list(shape)}")
    if element.kind == "string":
        return _strings(_split(held, count), shape)
    if len(held) != element.size(count):
        raise ValueError(f"{len(held):,} bytes; that is not the size of shape {list(shape)} of {name}")
    if element.is_packed:
        return _unpacked(held, element, count).reshape(shape)
    return np.frombuffer(held, element.dtype).reshape(shape)


def _split(held: bytes, count: int) -> list[bytes]:
    texts: list[bytes] = []
    at = 0
    while at < len(held) and len(texts) < count:
        end = at + 4 + int.from_bytes(held[at : at + 4], "little")
        texts.append(held[at + 4 : end])
        at = end
    if at != len(held) or len(texts) != count:
        raise ValueError(f"{len(held):,} bytes that are not {count:,} strings, each after its length")
    return texts


def _strings(words: Iterable[bytes], shape: Sequence[int]) -> Array:
    flat = np.empty(math.prod(shape), object)
    flat[:] = [word.decode("utf-8", "surrogateescape") for word in words]
    return flat.reshape(shape)


def _packed(array: Array, bits: int) -> bytes:
    each = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    spread = np.unpackbits(each.reshape(-1, 1), axis=1, bitorder="little")[:, :bits]
    return np.packbits(spread, bitorder="little").tobytes()


def _unpacked(held: bytes, element: ElementType, count: int) -> Array:
    spread = np.unpackbits(np.frombuffer(held, np.uint8), count=count * element.bits, bitorder="little")
    each = np.packbits(spread.reshape(count, element.bits), axis=1, bitorder="little")
    return each.reshape(-1).view(element.dtype)


def bits_of(array: Array) -> Array:
    """Return the elements' bits as unsigned integers; types of up to 8 bits give uint8 with the upper bits clear."""
    element = element_type(type_of(array))
    if element.kind in ("string", "complex"):
        raise TypeError(f"elements of {element.name} have no bits of their own")
    plain = np.ascontiguousarray(array).reshape(array.shape)
    bits: Array = plain.view(f"u{array.itemsize}")
    return bits & ((1 << element.bits) - 1) if element.is_packed else bits


def from_bits(name: str, bits: Array) -> Array:
    """Return the elements of type `name` with these bits: unsigned integers of the dtype's size, none too wide."""
    return np.ascontiguousarray(bits).reshape(bits.shape).view(element_type(name).dtype)


def equal(a: Array, b: Array) -> Array:
    """Return where two arrays of one type have the same number or text; NaN equals NaN, -0 equals 0."""
    if a.dtype.kind == "c":
        return equal(a.real, b.real) & equal(a.imag, b.imag)
    a, b = comparable(a), comparable(b)
    same = np.asarray(a == b, bool)
    return same | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else same


def comparable(array: Array) -> Array:
    """Return numbers in a type that NumPy orders: floats as float64, small integers as int8 or uint8, others unchanged.

    Every value is converted exactly.
    """
    known = element_types().get(type_of(array))
    if known is None:
        return array if array.dtype.kind in "iubcOUST" else array.astype(np.float64)
    if known.kind == "float":
        # ml_dtypes reads a bit above the element as its sign
        clean = from_bits(known.name, bits_of(array)) if known.is_packed else array
        with np.errstate(invalid="ignore"):  # signaling NaNs
            return clean.astype(np.float64, copy=False)
    if known.is_packed:
        return array.astype(np.int8 if known.kind == "signed" else np.uint8)
    return array


def to_json(array: Array) -> list[Any]:
    """Return the elements in C order for JSON: numbers, strings, booleans; `nan`, `inf`, `-inf` as strings.

    A complex number is a list of two numbers. Nothing is lost except the bits of a NaN.
    """
    flat = array.reshape(-1)
    if flat.dtype.kind == "c":
        return [[_json_float(number.real), _json_float(number.imag)] for number in flat.tolist()]
    plain = comparable(flat).tolist()
    return [_json_float(number) for number in plain] if plain and isinstance(plain[0], float) else plain


def _json_float(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


def from_json(name: str, shape: Sequence[int], values: Sequence[Any]) -> Array:
    """Return the array of type `name` that `to_json` wrote; ValueError or TypeError for other lists."""
    element = element_type(name)
    if element.kind == "string":
        return _strings((_utf8(entry) for entry in values), shape)
    if element.kind == "complex":
        parts = np.array([[float(entry) for entry in pair] for pair in values], np.float64).reshape(-1, 2)
        return parts.view(np.complex128).astype(element.dtype).reshape(shape)
    if element.kind == "float":
        return np.array([float(entry) for entry in values], np.float64).astype(element.dtype).reshape(shape)
    integers = np.array(values, object if element.bits == 64 else np.int64)
    if any(not isinstance(entry, int) for entry in values):
        raise TypeError(f"expected whole numbers of type {name}")
    if element.is_integer and any(not element.smallest <= entry <= element.largest for entry in values):
        raise ValueError(f"not in the range of {name}")
    return integers.astype(element.dtype).reshape(shape)


def tensor_proto(array: Array, name: str = "") -> TensorProto:
    """Return an array as ONNX's TensorProto: raw bytes, which suit every type, or string_data for strings."""
    from onnx import TensorProto  # noqa: PLC0415 - it takes long, and most readers do without

    number, dims = element_type(type_of(array)).onnx, array.shape
    if array.dtype.hasobject:
        words = [_utf8(text) for text in array.reshape(-1).tolist()]
        return TensorProto(name=name, data_type=number, dims=dims, string_data=words)
    return TensorProto(name=name, data_type=number, dims=dims, raw_data=content(array))


def from_tensor_proto(tensor: TensorProto) -> Array:
    """Return the array of a TensorProto in any of its forms; strings that are not UTF-8 keep their bytes.

    Raises ValueError if its type is unknown, its content is in another file, or its size does not match its shape.
    """
    element = numbered(tensor.data_type)
    shape, count = tuple(tensor.dims), math.prod(tensor.dims)
    if element is None:
        raise ValueError(f"data_type {tensor.data_type} is not a type that cases can have")
    if tensor.external_data or tensor.data_location:
        raise ValueError("its content is in another file; expected raw_data")
    if any(extent < 0 for extent in shape):
        raise ValueError(f"no shape: {list(shape)}")
    if element.kind == "string":
        if len(tensor.string_data) != count:
            raise ValueError(f"{len(tensor.string_data):,} strings; that does not match shape {list(shape)}")
        return _strings(tensor.string_data, shape)
    if tensor.HasField("raw_data"):
        return from_content(element.name, shape, tensor.raw_data)
    return _from_fields(tensor, element, count).reshape(shape)


def _from_fields(tensor: TensorProto, element: ElementType, count: int) -> Array:
    """Return the elements from the field that ONNX's TensorProto has for the type."""
    field, number = "int32_data", "int32"
    if element.name in ("float32", "complex64"):
        field, number = "float_data", "float32"
    elif element.name in ("float64", "complex128"):
        field, number = "double_data", "float64"
    elif element.name in ("uint32", "uint64"):
        field, number = "uint64_data", "uint64"
    elif element.name == "int64":
        field, number = "int64_data", "int64"
    numbers: Array = np.array(getattr(tensor, field), number)
    if element.bits in (2, 4):  # a number holds as many elements as a byte
        return from_content(element.name, (count,), numbers.astype(np.uint8).tobytes())
    if element.kind == "complex":
        numbers = numbers.view(element.dtype) if len(numbers) == 2 * count else numbers[:0]
    if len(numbers) != count:
        raise ValueError(f"{len(numbers):,} numbers in {field}; expected {count:,} of {element.name}")
    if element.kind == "float" and field == "int32_data":
        return from_bits(element.name, numbers.astype(f"u{element.dtype.itemsize}"))
    return numbers.astype(element.dtype, copy=False)


Flushed: TypeAlias = Literal["input", "output"]
Format: TypeAlias = Literal["float16", "bfloat16", "tf32", "float32", "float64"]
WholeFormat: TypeAlias = Literal["int8", "int16", "int32", "uint8", "uint16", "uint32"]


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """The arithmetic that a device declares for one element type; None means the usual format.

    `flush`: subnormal inputs are read as zero, and subnormal results, also intermediate ones, become zero. An integer
    type has only `compute`: its inputs and results are wrapped around in that type.
    """

    compute: str | None = None
    accumulator: str | None = None
    flush: frozenset[Flushed] = frozenset()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A whole declaration: the arithmetic by element type, and further statements.

    `digest` identifies it in `run.json`.
    """

    types: Mapping[str, DeclaredType] = field(default_factory=dict)
    threads: int | None = None
    deterministic: bool | None = None
    digest: str | None = None

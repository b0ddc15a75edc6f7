"""Judge the answers in a results folder again, using only Python's standard library.

    python check_certificate.py DIR

DIR is a folder that `opconform run` wrote. For every answer in outputs.jsonl, the certificate of its case shows:

1. the digests of the inputs and the bounds are those in results.jsonl;
2. the exact results, computed again from the inputs as fractions by the certificate's formula, equal the certificate's;
3. the bounds, derived again from the formula by the rules of docs/judging.md, match the certificate's: never narrower,
   and wider by no more than 2^-16 of the error;
4. the recorded answer, compared with the bounds, has the outcome that results.jsonl says.

Values that the standard library cannot compute, mostly of elementary functions, are taken from the certificate, and the
line says so. Exits 0 if all agree, 1 if anything differs, 2 if the folder cannot be read. The formats are described in
docs/results-folder.md and docs/certificates.md.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import json
import math
import operator
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

FORMAT = 2
FLAGS = ("positive-infinity", "negative-infinity", "nan", "free", "zero", "negative-zero", "positive-zero")
ODD = ("nan", "inf", "-inf")
WRONG = ("wrong-value", "wrong-shape", "wrong-dtype")
ALLOWANCE = Fraction(1, 1 << 16)  # a bound may be wider than the rules make it by this share of itself
LEAST = Fraction(1, 1 << 1072)  # four times float64's smallest number: what bounds lose below its range
PLAIN = dict(zip("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split(), "?bhiqBHIQ", strict=True))  # noqa: SIM905
PACKED = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4e2m1": 4}
# bits, precision and smallest exponent; whether infinities and NaN are as in IEEE 754, or what NaN is
FLOATS: dict[str, tuple[int, int, int, str]] = {
    "float16": (16, 11, -14, "ieee"),
    "bfloat16": (16, 8, -126, "ieee"),
    "float32": (32, 24, -126, "ieee"),
    "float64": (64, 53, -1022, "ieee"),
    "float8e4m3fn": (8, 4, -6, "ones"),
    "float8e4m3fnuz": (8, 4, -7, "minus zero"),
    "float8e5m2": (8, 3, -14, "ieee"),
    "float8e5m2fnuz": (8, 3, -15, "minus zero"),
    "float4e2m1": (4, 2, 0, "none"),
}
Shape = tuple[int, ...]
Format = dict[str, Any]


class Differs(Exception):  # noqa: N818 - it is a finding
    """The folder's statement, and what was found instead."""


class Unknown(Exception):  # noqa: N818 - it says what is not checked
    """Something that is not computed here."""


# Tensors and numbers


def content(told: dict[str, Any]) -> bytes:
    """Return a tensor's bytes: little-endian, in C order, packed from the lowest bit; text after its length."""
    try:
        found = base64.b64decode(told["base64" if "base64" in told else "zlib_base64"], validate=True)
        found = zlib.decompress(found) if "zlib_base64" in told else found
    except (ValueError, zlib.error) as error:
        raise Differs(f"a tensor's bytes are damaged: {error}") from error
    if hashlib.sha256(found).hexdigest() != told["sha256"]:
        raise Differs("a tensor's bytes do not match its sha256")
    return found


def values(told: dict[str, Any]) -> list[Any]:
    """Return a tensor's elements as Python's numbers and text, which represent all of them exactly."""
    found, kind, size = content(told), told["type"], math.prod(told["shape"])
    if kind == "string":
        return texts(found, size)
    if kind in ("complex64", "complex128"):
        code = "f" if kind == "complex64" else "d"
        parts = unpacked(found, code, 2 * size)
        return [complex(*parts[2 * i : 2 * i + 2]) for i in range(size)]
    if kind == "float8e8m0":
        return [math.nan if b == 255 else math.ldexp(1.0, b - 127) for b in unpacked(found, "B", size)]
    if kind in PLAIN:
        return unpacked(found, PLAIN[kind], size)
    bits = nibbles(found, PACKED[kind], size) if kind in PACKED else None
    if kind in FLOATS:
        whole = (
            bits if bits is not None else unpacked(found, {8: "B", 16: "H", 32: "I", 64: "Q"}[FLOATS[kind][0]], size)
        )
        return [floating(b, *FLOATS[kind]) for b in whole]
    if bits is None:
        raise Unknown(f"elements of type {kind}")
    half = 1 << (PACKED[kind] - 1)
    return [b - 2 * half if kind.startswith("int") and b >= half else b for b in bits]


def unpacked(found: bytes, code: str, size: int) -> list[Any]:
    """Return numbers by their code for `struct`."""
    if len(found) != size * struct.calcsize(f"<{code}"):
        raise Differs("a tensor has not as many bytes as its shape")
    return list(struct.unpack(f"<{size}{code}", found))


def nibbles(found: bytes, bits: int, size: int) -> list[int]:
    """Return elements of 2 or 4 bits, the lowest bits first."""
    if len(found) != -(-size * bits // 8):
        raise Differs("a tensor has not as many bytes as its shape")
    return [found[i * bits // 8] >> (i * bits % 8) & ((1 << bits) - 1) for i in range(size)]


def texts(found: bytes, size: int) -> list[str]:
    """Return texts, each after its length in four bytes."""
    told, at = [], 0
    for _ in range(size):
        length = int.from_bytes(found[at : at + 4], "little")
        told.append(found[at + 4 : at + 4 + length].decode("utf-8", "surrogateescape"))
        at += 4 + length
    if at != len(found):
        raise Differs("a tensor has not as many bytes as its shape")
    return told


def floating(bits: int, width: int, precision: int, emin: int, odd: str) -> float:
    """Return the float with these bits."""
    sign, body = bits >> (width - 1), bits & ((1 << (width - 1)) - 1)
    exponent, fraction = body >> (precision - 1), body & ((1 << (precision - 1)) - 1)
    top = (1 << (width - precision)) - 1
    if (odd == "minus zero" and sign and not body) or (odd == "ones" and body == (1 << (width - 1)) - 1):
        return math.nan
    if odd == "ieee" and exponent == top:
        return math.nan if fraction else math.copysign(math.inf, -sign)
    whole = fraction + (1 << (precision - 1) if exponent else 0)
    return math.copysign(math.ldexp(whole, max(exponent, 1) - 1 + emin - precision + 1), -sign)


def numbers(told: Any, type_: str = "") -> list[Any]:
    """Return the elements of a list in a certificate, or of a tensor if there are many; texts unchanged."""
    if type_ == "string" and isinstance(told, list):
        return told
    return values(told) if isinstance(told, dict) else [element(one) for one in told]


def element(told: Any) -> Any:
    """Return an element: a hexadecimal float, a decimal integer, a fraction in either notation, a pair of floats."""
    if isinstance(told, list):
        return complex(*map(float.fromhex, told))
    if "/" in told:
        return fraction(told)
    return float.fromhex(told) if "x" in told or told in ODD else int(told)


def fraction(told: str) -> Fraction:
    """Return a fraction from decimal or, if it has too many digits, hexadecimal notation."""
    return Fraction(*(int(part, 0) for part in told.split("/")))


def identity(x: Any) -> Any:
    """Return what distinguishes an element, also a zero's sign and NaN, whose values compare otherwise."""
    return (type(x).__name__, x.numerator, x.denominator) if isinstance(x, (int, Fraction)) else repr(x)


def flags(told: Any) -> list[int] | None:
    """Return the flags of each element as bits, or None."""
    return values(told) if isinstance(told, dict) else told and [sum(1 << FLAGS.index(f) for f in one) for one in told]


# 1. Digests


def digests(certificate: dict[str, Any]) -> dict[str, str]:
    """Return the digests of a certificate's content: of program and inputs, and of all that decides an outcome."""
    case = hashlib.sha256(certificate["program_key"].encode())
    case.update(repr([tuple(one["shape"]) for one in certificate["inputs"]]).encode())
    for one in certificate["inputs"]:
        case.update(content(one))
    heads, parts = [], []
    for option in certificate["options"]:
        shapes = [(bounds["type"], tuple(bounds["shape"])) for bounds in option["outputs"]]
        head = repr((tuple(option["labels"].items()), option["kind"], option["exceptional"], option["level"], shapes))
        heads.append(head if not option.get("beside") else f"{head[:-1]}, {option['beside']})")
        for bounds in option["outputs"]:
            parts += [packed(bounds["type"], bounds[end]) for end in ("lower", "upper")]
            if bounds["flags"] is not None:
                parts.append(bytes(flags(bounds["flags"]) or []))
            if bounds["spread"] is not None:
                parts += [packed("float64", told) for told in (bounds["value"], bounds["spread"]["sigma"])]
        parts += [content(one) for one in option.get("check_arrays", ())]
    expectation = hashlib.sha256(f"({tuple(certificate['outputs'])!r}, [{', '.join(heads)}])".encode())
    expectation.update(b"".join(parts))
    return {"case_digest": case.hexdigest(), "expectation_digest": expectation.hexdigest()}


def packed(kind: str, told: Any) -> bytes:
    """Return the bytes of bounds: floats as float64, others in the output's own type."""
    if isinstance(told, dict):
        return content(told)
    if kind == "string":
        words = [one.encode("utf-8", "surrogateescape") for one in told]
        return b"".join(len(word).to_bytes(4, "little") + word for word in words)
    found = numbers(told)
    if "complex" in kind:
        code = "f" if kind == "complex64" else "d"
        return struct.pack(f"<{2 * len(found)}{code}", *(part for one in found for part in (one.real, one.imag)))
    if "float" in kind:
        return struct.pack(f"<{len(found)}d", *found)
    if kind not in PACKED:
        return struct.pack(f"<{len(found)}{PLAIN[kind]}", *found)
    bits, whole = PACKED[kind], 0
    for place, one in enumerate(found):
        whole |= (one & ((1 << bits) - 1)) << (place * bits)
    return whole.to_bytes(-(-len(found) * bits // 8), "little")


# 2. Exact results: movement, by the origin of each element


def grid(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the index tuples of a tensor in C order."""
    return itertools.product(*map(range, shape))


def flat(index: Sequence[int], shape: Sequence[int]) -> int:
    """Return the number of an index tuple in C order; an extent of 1 accepts any index."""
    found = 0
    for i, d in zip(index, shape, strict=True):
        found = found * d + (0 if d == 1 else i)
    return found


def reached(index: Sequence[int], shape: Sequence[int]) -> int:
    """Return which element of a broadcast tensor is at an index."""
    return flat(index[len(index) - len(shape) :], shape)


def sliced(shape: Shape, key: list[Any]) -> Iterator[int]:
    """Yield the elements that whole numbers, slices and None select."""
    ranges, place = [], 0
    for k in key:
        if k is None:
            continue
        ranges.append([k % shape[place]] if isinstance(k, int) else range(*slice(*k).indices(shape[place])))
        place += 1
    ranges += [range(d) for d in shape[place:]]
    return (flat(index, shape) for index in itertools.product(*ranges))


def nest(told: Any) -> tuple[list[int], list[int]]:
    """Return shape and elements of nested lists."""
    if not isinstance(told, list):
        return [], [told]
    inner = [nest(one) for one in told]
    return [len(told), *(inner[0][0] if inner else [])], [x for _, xs in inner for x in xs]


def moved(node: dict[str, Any], shapes: list[Shape], xs: list[list[Any]]) -> list[tuple[int, int] | None]:
    """Return for each element of a result its operand, and its number there; None: a number of the frame."""
    op, p, out = node["op"], node["parameters"], tuple(node["shape"])
    shape = shapes[0]
    if op == "reshape":
        return [(0, i) for i in range(math.prod(out))]
    if op == "slice":
        return [(0, i) for i in sliced(shape, p["key"])]
    if op == "scatter":
        found: list[tuple[int, int] | None] = [(0, i) for i in range(math.prod(out))]
        for place, i in enumerate(xs[1]):
            found[i % len(found)] = (2, place)
        return found
    rule: dict[str, Callable[..., tuple[int, int] | None]] = {
        "transpose": lambda at: (0, flat([at[p["order"].index(k)] for k in range(len(shape))], shape)),
        "broadcast": lambda at: (0, reached(at, shape)),
        "stack": lambda at: (at[0], reached(at[1:], shapes[at[0]])),
        "flip": lambda at: (
            0,
            flat([d - 1 - i if k in p["axes"] else i for k, (i, d) in enumerate(zip(at, shape, strict=True))], shape),
        ),
        "concat": lambda at: part(at, p["axis"], shapes),
        "pad": lambda at: inside([i - f[0] for i, f in zip(at, framed(p["frame"], len(shape)), strict=True)], shape),
        "windows": lambda at: (0, flat(window(at, p, len(shape)), shape)),
        "along": lambda at: (
            0,
            flat([*at[: p["axis"]], xs[1][reached(at, shapes[1])] % shape[p["axis"]], *at[p["axis"] + 1 :]], shape),
        ),
    }
    if op in ("take", "gather"):
        dims, index = nest(p["index"]) if op == "take" else (list(shapes[1]), xs[1])
        a, r = p["axis"], len(dims)
        return [
            (0, flat([*at[:a], index[flat(at[a : a + r], dims)] % shape[a], *at[a + r :]], shape)) for at in grid(out)
        ]
    return [rule[op](at) for at in grid(out)]


MOVES = frozenset(
    "reshape slice scatter transpose broadcast stack flip concat pad windows along take gather".split()  # noqa: SIM905
)


def framed(frame: list[list[int]], rank: int) -> list[list[int]]:
    """Return a frame of the last dimensions as one of all."""
    return [[0, 0]] * (rank - len(frame)) + frame


def inside(index: list[int], shape: Shape) -> tuple[int, int] | None:
    """Return an element, None if there is none at this index."""
    return (0, flat(index, shape)) if all(0 <= i < d for i, d in zip(index, shape, strict=True)) else None


def part(at: tuple[int, ...], axis: int, shapes: list[Shape]) -> tuple[int, int]:
    """Return which operand of a concatenation has an index."""
    place = at[axis]
    for which, shape in enumerate(shapes):
        if place < shape[axis]:
            return which, flat([*at[:axis], place, *at[axis + 1 :]], shape)
        place -= shape[axis]
    raise Differs("the formula's shapes do not fit")


def window(at: tuple[int, ...], p: dict[str, Any], rank: int) -> list[int]:
    """Return the origin of a window's element: the last dimensions are those of starts, then those within."""
    k = len(p["kernel"])
    lead, start, offset = at[: rank - k], at[rank - k : rank], at[rank:]
    return [*lead, *(s * i + d * j for s, i, d, j in zip(p["strides"], start, p["dilations"], offset, strict=True))]


# 2. Exact results: arithmetic, over fractions and floats that are not numbers


def tidy(x: Any) -> Any:
    """Return a result as a fraction, or as the float that is not a number."""
    return Fraction(x) if isinstance(x, float) and math.isfinite(x) else x


def both(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return an operation of two operands, in floats if one is not a number."""

    def applied(a: Any, b: Any) -> Any:
        if isinstance(a, float) or isinstance(b, float):
            try:
                return tidy(operation(float(a), float(b)))
            except (ZeroDivisionError, OverflowError):
                raise Unknown("a division by zero") from None
        return operation(a, b)

    return applied


def divided(a: Any, b: Any) -> Any:
    """Divide; division by zero depends on the zero's sign, which a fraction does not have."""
    if b == 0:
        raise Unknown("a division by zero")
    return a / b


def isodd(x: Any) -> bool:
    """Return whether something is not a number."""
    return isinstance(x, float) and math.isnan(x)


def stands_beside(odd: float, other: Any) -> bool:
    """Return whether the second of two forms is used because the first is not a number."""
    return not isodd(other) and (not isinstance(other, float) or isodd(odd))


def larger(a: Any, b: Any, ignore: bool, sign: int) -> Any:
    """Return the larger of two, or the smaller."""
    if isodd(a) or isodd(b):
        return (b if isodd(a) else a) if ignore else math.nan
    return max(a, b) if sign > 0 else min(a, b)


def quotient(a: int, b: int, rounding: str) -> int:
    """Return a quotient of whole numbers, rounded."""
    exact = Fraction(a, b)
    away = math.floor(abs(exact) + Fraction(1, 2)) * (1 if exact > 0 else -1)
    roundings: dict[str, Any] = {
        "truncate": int,
        "floor": math.floor,
        "nearest-even": round,
        "nearest-away": lambda _: away,
    }
    return int(roundings[rounding](exact))


def fitted(x: int, kind: str, way: str) -> int:
    """Return a whole number in its type."""
    bits = int(kind.lstrip("u").removeprefix("int"))
    low, high = (0, (1 << bits) - 1) if kind.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if low <= x <= high:
        return x
    return (x - low) % (high - low + 1) + low if way == "wraps" else max(low, min(high, x))


def whole(x: Any, how: Callable[[Any], int]) -> Any:
    """Round to a whole number; infinities and NaN are unchanged."""
    return x if isinstance(x, float) else Fraction(how(x))


def away(x: Fraction) -> int:
    """Round half away from zero."""
    return int(math.copysign(math.floor(abs(x) + Fraction(1, 2)), x)) if x else 0


def cast(x: Any, p: dict[str, Any]) -> Any:
    """Return an element in another type, if that is exact, truncated or wrapped."""
    old, new = p["of"], p["to"]
    if new == "bool":
        return x != 0
    if new.lstrip("u").startswith("int") and old in FLOATS:
        if isinstance(x, float):
            raise Unknown("a cast of what is no number")
        return int(x)
    if new.lstrip("u").startswith("int"):
        return fitted(int(x), new, "wraps")
    if new in FLOATS and (old == "bool" or "int" in old or old in FLOATS):
        wide, narrow = FLOATS[new], FLOATS.get(old)
        if narrow and wide[1] >= narrow[1] and wide[2] <= narrow[2] and wide[0] >= 16:
            return x
        if wide[3] == "ieee":
            form = {"precision": wide[1], "emin": wide[2], "emax": 1 - wide[2]}
            rounded = nearest(form, Fraction(x) if not isinstance(x, float) else x)
            if p.get("saturate") and isinstance(rounded, float) and math.isinf(rounded):
                most = (1 - Fraction(1, 1 << wide[1])) * Fraction(2) ** (form["emax"] + 1)
                return most if rounded > 0 else -most
            return rounded
    raise Unknown(f"cast from {old} to {new}")


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": both(operator.add),
    "sub": both(operator.sub),
    "mul": both(operator.mul),
    "div": both(divided),
    "reciprocal": lambda a: both(divided)(Fraction(1), a),
    "neg": operator.neg,
    "abs": abs,
    "sign": lambda a: a if isodd(a) else type(a)((a > 0) - (a < 0)),
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "isnan": isodd,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": lambda a: not a if isinstance(a, bool) else ~a,
    "where": lambda a, b, mask: a if mask else b,
    "free": lambda a, _mask: a,
    "either": lambda a, other: other if isinstance(a, float) and stands_beside(a, other) else a,
    "between": lambda a, _low, _high: a,
    "within": lambda a: a,
    "floor": lambda a: whole(a, math.floor),
    "ceil": lambda a: whole(a, math.ceil),
    "trunc": lambda a: whole(a, int),
    "rint": lambda a: whole(a, round),
    "rint_away": lambda a: whole(a, away),
}
SETTLED: dict[str, Callable[..., Any]] = {  # primitives whose value does not only depend on the operands
    "isinf": lambda p, a: (p["positive"] and a == math.inf) or (p["negative"] and a == -math.inf),
    "maximum": lambda p, a, b: larger(a, b, p["nan"] == "ignore", 1),
    "minimum": lambda p, a, b: larger(a, b, p["nan"] == "ignore", -1),
    "fit": lambda p, a: fitted(a, p["type"], p["way"]),
    "quotient": lambda p, a, b: quotient(a, b, p["rounding"]),
    "cast": lambda p, a: cast(a, p),
}


def total(xs: list[Any]) -> Any:
    """Add up as whole multiples of one fraction, which is faster than one by one; in floats if one is not a number."""
    odd = [x for x in xs if isinstance(x, float)]
    if odd:
        return sum(odd)
    if all(isinstance(x, int) for x in xs):
        return sum(xs)
    common = math.lcm(*{x.denominator for x in xs})
    return Fraction(sum(x.numerator * (common // x.denominator) for x in xs), common)


def lines_of(shape: Shape, axes: list[int], xs: list[Any]) -> list[list[Any]]:
    """Group the elements that are reduced along axes."""
    groups: dict[tuple[int, ...], list[Any]] = {}
    for index, x in zip(grid(shape), xs, strict=True):
        groups.setdefault(tuple(i for k, i in enumerate(index) if k not in axes), []).append(x)
    if not xs:
        kept = [d for k, d in enumerate(shape) if k not in axes]
        groups = {index: [] for index in grid(kept)}
    return list(groups.values())


def reduced(op: str, p: dict[str, Any], xs: list[Any], kind: str) -> Any:
    """Return a sum, a mean, a product, the largest or the smallest."""
    if op == "sum":
        return total(xs) if xs else (0 if "int" in kind else Fraction(0))
    if op == "mean":
        if not xs:
            return math.nan
        mean = total(xs)
        return mean if isinstance(mean, float) else Fraction(mean) / len(xs)
    if not xs:
        raise Unknown(f"{op} of nothing")
    kept = [x for x in xs if not isodd(x)]
    if len(kept) < len(xs) and (p["nan"] != "ignore" or not kept):
        return math.nan
    return max(kept) if op == "max" else min(kept)


def product(a: Shape, b: Shape, xs: list[Any], ys: list[Any]) -> Iterator[list[tuple[Any, Any]]]:
    """Yield the pairs of factors of each element of a product of matrices."""
    lead = [max(pair) if 0 not in pair else 0 for pair in zip(a[:-2], b[:-2], strict=True)]
    for at in grid((*lead, a[-2], b[-1])):
        outer, row, column = at[:-2], at[-2], at[-1]
        yield [(xs[flat((*outer, row, k), a)], ys[flat((*outer, k, column), b)]) for k in range(a[-1])]


class Formula:
    """A derivation's formula over a certificate's inputs: the exact elements of every node, and their largest errors.

    `taken` are the primitives whose value or error comes from the certificate.
    """

    def __init__(self, certificate: dict[str, Any], derivation: dict[str, Any], like: Formula | None = None) -> None:
        self.nodes, self.told = derivation["formula"], derivation
        self.certificate = certificate
        self.taken: set[str] = set()
        self.values: list[list[Any]] = []
        if like is not None and like.key == self.key:  # another arithmetic of the same formula
            self.values, self.taken = like.values, set(like.taken)
        else:
            for place, node in enumerate(self.nodes):
                self.values.append(self._value(place, node))
        self.errors = self._errors(shortcuts=True)

    @property
    def key(self) -> Any:
        """Return what the exact values depend on besides the inputs."""
        return self.nodes, self.told["flushed_inputs"]

    @functools.cached_property
    def most(self) -> list[list[Any]]:
        """Return the errors if nothing is free because it is exact."""
        return self._errors(shortcuts=False)

    def _value(self, place: int, node: dict[str, Any]) -> list[Any]:
        try:
            return self._computed(node)
        except (Unknown, KeyError, TypeError, ZeroDivisionError, OverflowError):
            taken = self.told["taken"].get(str(place))
            if taken is None or taken["value"] is None:
                raise Unknown(node["op"]) from None
            self.taken.add(node["op"])
            return [tidy(x) for x in numbers(taken["value"])]

    def _computed(self, node: dict[str, Any]) -> list[Any]:
        op, kind = node["op"], node["type"]
        if op == "port":
            fixed = "constant" in node
            told = self.certificate["constants" if fixed else "inputs"][node["constant" if fixed else "input"]]
            return [self._input(x, kind) for x in values(told)]
        if op == "literal":
            return [
                tidy(element(x) if "/" in x else float.fromhex(x))
                if isinstance(x, str) and kind in FLOATS
                else self._input(x, kind)
                for x in node["elements"]
            ]
        xs = [self.values[place] for place in node["of"]]
        shapes = [self.shape(place) for place in node["of"]]
        p = node["parameters"]
        if op in MOVES:
            filler = p.get("number")
            frame = tidy(float.fromhex(filler)) if isinstance(filler, str) and kind in FLOATS else filler
            frame = Fraction(frame) if isinstance(frame, int) and kind in FLOATS else frame
            return [frame if at is None else xs[at[0]][at[1]] for at in moved(node, shapes, xs)]
        if op in ("sum", "mean", "max", "min"):
            return [reduced(op, p, line, kind) for line in lines_of(shapes[0], p["axes"], xs[0])]
        if op == "matmul":
            times = ELEMENTWISE["mul"]
            return [reduced("sum", p, [times(*pair) for pair in pairs], kind) for pairs in product(*shapes, *xs)]
        apply = ELEMENTWISE[op] if op in ELEMENTWISE else functools.partial(SETTLED[op], p)
        return [apply(*(x[reached(at, s)] for x, s in zip(xs, shapes, strict=True))) for at in grid(node["shape"])]

    def _input(self, x: Any, kind: str) -> Any:
        """Return an input as a fraction, or as the float that is not a number; subnormal ones as zero if so derived."""
        if kind not in FLOATS and not kind.startswith("float"):
            if isinstance(x, complex):
                raise Unknown("complex numbers")
            return x
        x = float(x)
        if not math.isfinite(x):
            return x
        tiny = 2.0 ** FLOATS[kind][2] if kind in FLOATS else 0.0
        return Fraction(0) if self.told["flushed_inputs"] and abs(x) < tiny else Fraction(x)

    def shape(self, place: int) -> Shape:
        """Return the shape of a node."""
        return tuple(self.nodes[place]["shape"])

    # 3. Bounds: the largest error of each node

    def _errors(self, shortcuts: bool) -> list[list[Any]]:
        found: list[list[Any]] = []
        for place, node in enumerate(self.nodes):
            exact = self.values[place]
            try:
                errors = self._error(node, exact, found, shortcuts)
            except Unknown:
                taken = self.told["taken"].get(str(place))
                if taken is None or taken["error"] is None:
                    raise Unknown(node["op"]) from None
                self.taken.add(node["op"])
                errors = [tidy(x) for x in numbers(taken["error"])]
            found.append(
                [
                    Fraction(0) if isinstance(x, float) and not isinstance(x, bool) else e
                    for x, e in zip(exact, errors, strict=True)
                ]
            )
        return found

    def _error(self, node: dict[str, Any], ys: list[Any], found: list[list[Any]], shortcuts: bool) -> list[Any]:
        op, none = node["op"], [Fraction(0)] * len(ys)
        es = [found[place] for place in node.get("of", ())]
        if node["type"] not in FLOATS or op in CHOICES:
            if any(map(any, es)):
                raise Unknown(op)
            return none
        xs, shapes = [self.values[place] for place in node["of"]], [self.shape(place) for place in node["of"]]
        if op in MOVES:
            return [Fraction(0) if at is None else es[at[0]][at[1]] for at in moved(node, shapes, xs)]
        arithmetic = self.told["arithmetic"]["types"].get(node["computes"])
        if arithmetic is None:
            raise Unknown(op)
        rules = Rules(arithmetic, shortcuts)
        if op in ("port", "literal"):
            return [rules.charged(y, Fraction(0)) for y in ys]
        if op in ("sum", "mean"):
            axes = node["parameters"]["axes"]
            lines = zip(lines_of(shapes[0], axes, xs[0]), lines_of(shapes[0], axes, es[0]), ys, strict=True)
            return [getattr(rules, op)(*line) for line in lines]
        if op == "matmul":
            return [rules.matmul(*each) for each in zip(product(*shapes, *xs), product(*shapes, *es), ys, strict=True)]
        rule = rules.elementwise(op)
        places = [[reached(at, s) for s in shapes] for at in grid(node["shape"])]
        return [
            rule([x[i] for x, i in zip(xs, at, strict=True)], [e[i] for e, i in zip(es, at, strict=True)], y)
            for at, y in zip(places, ys, strict=True)
        ]


CHOICES = frozenset(
    ("maximum", "minimum", "max", "min", "sign", "floor", "ceil", "trunc", "rint", "rint_away", "within", "free")
)


def size(x: Any) -> Fraction:
    """Return a magnitude, zero for infinities and NaN."""
    return Fraction(0) if isinstance(x, float) else abs(x)


class Rules:
    """The errors of primitives in one arithmetic. Without `shortcuts`, exact operations are charged too."""

    def __init__(self, arithmetic: dict[str, Any], shortcuts: bool) -> None:
        self.accumulator, self.storage = arithmetic["accumulator"], arithmetic["storage"]
        self.flush, self.running, self.shortcuts = (
            arithmetic["flush"],
            arithmetic["summation"] == "running-means",
            shortcuts,
        )
        self.shares_flushed = self.flush and arithmetic.get("shares", True)
        self.u_a, self.u_s = (Fraction(1, 2 ** form["precision"]) for form in (self.accumulator, self.storage))

    def under(self, form: Format, share: bool = False) -> Fraction:
        """Return the absolute error of a rounding in the subnormal range: of a share of a mean, or another number."""
        tiny = Fraction(2) ** form["emin"]
        flushed = self.shares_flushed if share else self.flush
        return tiny if flushed else max(tiny / 2 ** form["precision"], Fraction(1, 1 << 1074))

    def held(self, y: Any) -> bool:
        """Return whether storage represents a result exactly, if that makes it free."""
        return self.shortcuts and (isinstance(y, float) or nearest(self.storage, y) == y)

    def charged(self, y: Any, e: Fraction, roundings: int = 1) -> Fraction:
        """Return an error after more roundings to storage; exact results that storage represents are free."""
        if not roundings or (not e and self.held(y)):
            return e
        return e + roundings * (self.u_s * (size(y) + e) + self.under(self.storage))

    def elementwise(self, op: str) -> Callable[[list[Any], list[Fraction], Any], Fraction]:
        """Return the rule of a primitive that computes each element from one element of each operand.

        Raises Unknown.
        """
        rules = {"add": self.add, "sub": self.add, "mul": self.mul, "div": self.div, "where": self.where}
        if op in ("neg", "abs"):
            return lambda _x, e, _y: e[0]
        if op not in rules:
            raise Unknown(op)
        return rules[op]

    def where(self, x: list[Any], e: list[Fraction], _y: Any) -> Fraction:
        """Return the error of a selection."""
        if e[2]:
            raise Unknown("where")
        return e[0] if x[2] else e[1]

    def add(self, _x: list[Any], e: list[Fraction], y: Any) -> Fraction:
        """Return the error of a sum or difference of two."""
        return self.charged(y, e[0] + e[1])

    def mul(self, x: list[Any], e: list[Fraction], y: Any) -> Fraction:
        """Return the error of a product."""
        return self.charged(y, size(x[0]) * e[1] + size(x[1]) * e[0] + e[0] * e[1])

    def div(self, x: list[Any], e: list[Fraction], y: Any) -> Fraction:
        """Return the error of a quotient: two roundings, one for a power of two, none if it is exact."""
        below = size(x[1]) - e[1]
        if below <= 0:
            raise Unknown("a division by what may be zero")
        power = self.shortcuts and bool(x[1]) and is_power(size(x[1]))
        if not e[0] and not e[1]:
            return self.charged(y, Fraction(0), 0 if self.held(y) else 1 if power else 2)
        carried = (e[0] + e[1] * size(y)) / below
        return carried + 2 * (self.u_s * (size(y) + carried) + self.under(self.storage))

    def accumulated(self, xs: list[Any], es: list[Fraction]) -> Fraction:
        """Return the error of a sum in the accumulator, in any order: (n-1)·u·Σ|x|, zero if all orders are exact."""
        carried, sizes = total([Fraction(0), *es]), [size(x) for x in xs]
        whole_size = total([Fraction(0), *sizes])
        if any(isinstance(x, float) for x in xs):
            return Fraction(0)
        lowest = min((lowest_bit(x) for x in sizes if x), default=Fraction(0))
        if self.shortcuts and not carried and self.every_order_is_exact(whole_size, lowest):
            return Fraction(0)
        charge = self.adding([x + e for x, e in zip(sizes, es, strict=True)])
        return carried + charge + (len(xs) * Fraction(2) ** self.accumulator["emin"] if self.flush else 0)

    def adding(self, sizes: list[Fraction]) -> Fraction:
        """Return what the roundings of a sum add: (n-1)·u·Σ|x|, or less in few bits if small addends are lost."""
        u, whole_size = self.u_a, total([Fraction(0), *sizes])
        least = (len(sizes) - 1) * u * whole_size
        lost = Fraction(0)
        for few, size_ in enumerate(sorted(sizes)[:-1] if self.narrow else (), start=1):
            lost += size_
            meeting = lost * (1 + (few - 1) * u)
            others = (len(sizes) - few - 1) * u * (whole_size - lost + 2 * meeting)
            least = min(least, others + meeting + (few - 1) * u * lost)
        return least

    @property
    def narrow(self) -> bool:
        """Whether all is computed in a format of at most 11 significant bits."""
        return self.accumulator == self.storage and self.accumulator["precision"] <= 11

    def every_order_is_exact(self, whole_size: Fraction, lowest: Fraction) -> bool:
        """Whether all partial sums are multiples of the lowest set bit of any addend that the accumulator holds."""
        form = self.accumulator
        limit = lowest * 2 ** form["precision"]  # the limit for float64 sums, which are rounded themselves
        fits = whole_size < limit or (whole_size == limit and form["precision"] < 53)
        low, high = (Fraction(2) ** e for e in (form["emin"] - form["precision"] + 1, form["emax"] + 1))
        low = Fraction(2) ** form["emin"] if self.flush else low
        return not whole_size or (fits and lowest >= low and whole_size < high)

    def stored(self, y: Any, e: Fraction) -> Fraction:
        """Round the accumulator's value to storage."""
        if self.accumulator == self.storage:
            return e
        return self.charged(y, e, 0 if not e and self.held(y) else 1)

    def sum(self, xs: list[Any], es: list[Fraction], y: Any) -> Fraction:
        """Return the error of a sum."""
        return es[0] if len(xs) == 1 else self.stored(y, self.accumulated(xs, es))

    def mean(self, xs: list[Any], es: list[Fraction], y: Any) -> Fraction:
        """Return the error of a mean, divided before or after adding up, or updated addend by addend."""
        n = len(xs)
        if n <= 1 or isinstance(y, float):
            return es[0] if n == 1 else Fraction(0)
        sizes = [size(x) for x in xs]
        share = total(sizes) / n
        error = self.stored(total(xs), self.accumulated(xs, es))
        found = error / n + self.shares(error, sizes, y)
        if self.running and n >= 3 and not error:
            found = max(found, running_mean_error(n, share, max(xs) - min(xs), self.u_a, self.under(self.storage)))
        return found

    def shares(self, error: Fraction, sizes: list[Fraction], y: Any) -> Fraction:
        """Return what dividing a sum, or its addends first, may add: zero if both are exact."""
        n, share = len(sizes), total(sizes) / len(sizes)
        lowest = min((lowest_bit(x) for x in sizes if x), default=None)
        under, tiny = self.under(self.storage), Fraction(2) ** self.storage["emin"]
        lost = max(2 * n * self.under(self.storage, share=True), under)
        relative = 2 * self.u_s * (share + error / n)
        smallest = tiny if lowest is None else lowest / n
        if n & (n - 1):
            if self.storage != self.accumulator:
                relative += self.u_s * share  # their sum is rounded, although the exact one was not
            adding = max(self.adding(sizes) - error, Fraction(0)) / n
            return adding + relative + (under if smallest >= tiny and self.shortcuts else lost)
        eta = tiny / 2 ** (self.storage["precision"] - 1)
        inexact = Fraction(0) if self.shortcuts and smallest >= (tiny if self.shares_flushed else eta) else lost
        return inexact if not error and self.held(y) else inexact + relative / 2 + under

    def matmul(self, pairs: list[tuple[Any, Any]], errors: list[tuple[Fraction, Fraction]], y: Any) -> Fraction:
        """Return the error of a sum of products: n·u·Σ|xy|, zero if every order is exact."""
        if isinstance(y, float):
            return Fraction(0)
        n, sizes = len(pairs), [(size(a), size(b)) for a, b in pairs]
        magnitude = total([Fraction(0), *(a * b for a, b in sizes)])
        carried = total([Fraction(0), *(a * f + b * e + e * f for (a, b), (e, f) in zip(sizes, errors, strict=True))])
        rows, columns = ([lowest_bit(side[k]) for side in sizes if side[k]] for k in (0, 1))
        lowest = min(rows) * min(columns) if rows and columns else Fraction(0)
        if self.shortcuts and not carried and self.every_order_is_exact(magnitude, lowest):
            return self.stored(y, Fraction(0))
        if self.narrow:  # a product with a zero adds no error
            n = sum((a + e) * (b + f) > 0 for (a, b), (e, f) in zip(sizes, errors, strict=True))
        return self.stored(y, carried + n * (self.u_a * (magnitude + carried) + self.under(self.accumulator)))


def is_power(x: Fraction) -> bool:
    """Whether a number is a power of two."""
    return x.numerator & (x.numerator - 1) == 0 and x.denominator & (x.denominator - 1) == 0


def lowest_bit(x: Fraction) -> Fraction:
    """Return the lowest set bit of a binary fraction."""
    return Fraction(x.numerator & -x.numerator, x.denominator)


def nearest(form: Format, x: Any) -> Any:
    """Round to a binary format, to nearest and ties to even."""
    if x == 0 or isinstance(x, float):
        return x
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    spacing = Fraction(2) ** (max(exponent, form["emin"]) - form["precision"] + 1)
    rounded = round(x / spacing) * spacing
    return rounded if abs(rounded) < Fraction(2) ** (form["emax"] + 1) else math.copysign(math.inf, x)


def inward(end: Any, side: int) -> Any:
    """Round an interval's end to the nearest float64 number inside; `side` 1: it is the lower end."""
    found = nearest({"precision": 53, "emin": -1022, "emax": 1023}, end)
    if isinstance(found, float) or side * (end - found) <= 0:
        return found
    inner = math.nextafter(float(found), side * math.inf)
    return Fraction(inner) if math.isfinite(inner) else inner


def running_mean_error(n: int, mean_size: Fraction, span: Fraction, u: Fraction, half: Fraction) -> Any:
    """Return the largest error of a mean that is updated addend by addend; `span` is the largest less the smallest."""
    harmonic = Fraction(sum(1 / k for k in range(1, n)) if n <= 64 else math.log(n - 1) + 0.5773 + 0.5 / (n - 1))
    grown = (n + 3 * harmonic + 6) * u
    if span == 0 or grown >= Fraction(1, 2):
        return math.inf if span else Fraction(0)
    differences = min((1 + harmonic) * mean_size, Fraction(max(1.0, math.log2(n) / 2)) * span)
    return (u * (3 * differences + (n - 1) * mean_size) + n * half) / (1 - grown)


def check_derivation(formula: Formula) -> list[list[tuple[Any, Any, Any]]]:
    """Return for each result the exact elements with the least and the largest error that the rules admit.

    Whole numbers that may differ come with the least and the largest number that the formula names. Raises Differs
    unless the certificate's exact results and errors are the same.
    """
    told, found = formula.told, []
    slack = ALLOWANCE * (1 + Fraction(len(formula.nodes), 8))  # each step is widened by 2^-20
    for place, exact, errors in zip(told["results"], told["exact"], told["error"], strict=True):
        values_, least = formula.values[place], formula.errors[place]
        if exact is not None and list(map(identity, values_)) != list(map(identity, exact_of(exact, values_))):
            raise Differs("the exact results are not the certificate's")
        ends: list[tuple[Any, Any]] = [(None, None)] * len(values_)
        node = formula.nodes[place]
        while node["op"] == "free":
            node = formula.nodes[node["of"][0]]
        if node["op"] == "between":
            ends = list(zip(*(formula.values[end] for end in node["of"][1:]), strict=True))
        for at, error in enumerate(numbers(errors) if errors is not None else ()):
            if isinstance(values_[at], float):
                continue
            low, high = least[at], least[at] * (1 + slack) + LEAST
            if error > high:  # float64 did not detect that it is exact
                high = formula.most[place][at] * (1 + slack) + LEAST
            if not low * (1 - ALLOWANCE / 1024) - LEAST <= error <= high:
                raise Differs(f"element {at}: by the rules it may err by {float(low):g}, not by {error:g}")
            ends[at] = max(low * (1 - ALLOWANCE / 1024) - LEAST, Fraction(0)), high if high > LEAST else Fraction(0)
        found.append([(value, *end) for value, end in zip(values_, ends, strict=True)])
    return found


def check_steps(formula: Formula) -> None:
    """Raise Differs unless the certificate has the right n and M = Σ|x|/n of sums."""
    for step in formula.told["steps"]:
        node = formula.nodes[step["node"]]
        if step["M"] is None or node["op"] not in ("sum", "mean"):
            continue
        of = node["of"][0]
        lines = lines_of(formula.shape(of), node["parameters"]["axes"], formula.values[of])
        for xs, told in zip(lines, numbers(step["M"]), strict=True):
            n, mean = len(xs), total([size(x) for x in xs]) / len(xs)
            odd = any(isinstance(x, float) for x in xs)
            if step["n"] != n or not (odd or abs(Fraction(told) - mean) <= mean * ALLOWANCE + LEAST):
                raise Differs(f"n and M are not {n} and {float(mean):g}")


def exact_of(told: list[str], like: list[Any]) -> list[Any]:
    """Return exact numbers as a certificate has them, each of the kind that was computed."""
    found: list[Any] = []
    for text, x in zip(told, like, strict=True):
        if isinstance(x, bool | str):
            found.append(text == "True" if isinstance(x, bool) else text)
        else:
            found.append(float(text) if text in ODD else int(fraction(text)) if isinstance(x, int) else fraction(text))
    return found


def check_option(
    option: dict[str, Any], derivation: dict[str, Any], derived: list[list[tuple[Any, Any, Any]]], taken: bool
) -> None:
    """Raise Differs unless an option's bounds follow from exact results and errors.

    `taken`: some values come from the certificate, rounded to float64, but bounds in float64 need not be rounded. The
    loss is relative to the terms of a sum, and so a part of the error that is charged for them.
    """
    for bounds, elements in zip(option["outputs"], derived, strict=True):
        kind, told = bounds["type"], flags(bounds["flags"])
        if kind == "string":
            ends = list(zip(bounds["lower"], bounds["upper"], strict=True))
        else:
            ends = list(zip(numbers(bounds["lower"]), numbers(bounds["upper"]), strict=True))
        last = rounding_of(derivation, kind)
        for at, ((value, least, most), (low, high)) in enumerate(zip(elements, ends, strict=True)):
            if told and told[at] & 8 and kind not in FLOATS:
                continue
            if least is None:
                right = (low != low and high != high) if isodd(value) else low == high == value  # noqa: PLR0124
            elif kind.removeprefix("u").startswith("int"):
                right = (low, high) == (least, most)
            else:
                off = abs(value) / 2**53 + least / 16 if taken and kind == "float64" else Fraction(0)
                lows, highs = ([value - most - off, value - least + off], [value + least - off, value + most + off])
                if kind == "float64":  # ends that are rounded inward
                    lows, highs = ([inward(end, side) for end in some] for some, side in ((lows, 1), (highs, -1)))
                right = nearest(last, lows[0]) <= low <= nearest(last, lows[1])
                right = right and nearest(last, highs[0]) <= high <= nearest(last, highs[1])
            if not right:
                raise Differs(
                    f"element {at}: {low} to {high} is admitted, which is not what {value} and the rules give"
                )


def rounding_of(derivation: dict[str, Any], kind: str) -> Format:
    """Return the format of bounds: the output's type, or float64 if storage is that type already."""
    double = {"precision": 53, "emin": -1022, "emax": 1023}
    if kind not in FLOATS:
        return double
    _, precision, emin, _ = FLOATS[kind]
    own = {"precision": precision, "emin": emin, "emax": 1 - emin}
    arithmetic = derivation["arithmetic"]["types"].get(kind)
    storage = own if arithmetic is None else arithmetic["storage"]
    return double if storage["precision"] == precision and storage["emin"] == emin else own


def check_bounds(certificate: dict[str, Any]) -> set[str]:
    """Check exact results and bounds; return what is not derived here. Raises Differs."""
    taken: set[str] = set()
    formula: Formula | None = None
    derived: dict[int, list[list[tuple[Any, Any, Any]]] | None] = {}
    for option in (option for option in certificate["options"] if option["derivation"] is not None):
        place = option["derivation"]
        derivation = certificate["derivations"][place]
        if derivation["level"] == "declared":
            taken.add("declared arithmetic")
            continue
        if place not in derived:
            try:
                formula = Formula(certificate, derivation, formula)
                check_steps(formula)
                derived[place] = check_derivation(formula)
                taken |= formula.taken
            except Unknown as error:
                taken.add(str(error))
                derived[place] = None
        found = derived[place]
        if found is not None:
            check_option(option, derivation, found, bool(taken))
    return taken


# 4. Outcomes


def admits(option: dict[str, Any], outputs: list[dict[str, Any]]) -> bool:
    """Return whether an option admits an answer: all elements, and a bounded second moment of their errors."""
    if option["kind"] != "values":
        return bool(option["kind"] == "anything")
    if any(bounds["shape"] != told["shape"] for bounds, told in zip(option["outputs"], outputs, strict=True)):
        return False
    shows = False
    for bounds, told in zip(option["outputs"], outputs, strict=True):
        ys, bits = values(told), flags(bounds["flags"])
        lower, upper = (numbers(bounds[side], told["type"]) for side in ("lower", "upper"))
        for y, low, high, flagged in zip(ys, lower, upper, bits or [0] * len(ys), strict=True):
            if isinstance(y, str | complex):
                if y != low and not flagged & 8:
                    return False
                continue
            within = low <= y <= high
            if not (within or beside(y, flagged)) or wrong_zero(y, flagged):
                return False
            shows = shows or not within
        if bounds["spread"] is not None:
            errors = zip(ys, numbers(bounds["value"]), numbers(bounds["spread"]["sigma"]), strict=True)
            if math.fsum(((y - v) / s) ** 2 for y, v, s in errors) > bounds["spread"]["limit"] * len(ys):
                return False
    return shows or not option["exceptional"]


def beside(y: Any, bits: int) -> bool:
    """Return whether the flags admit an element outside its bounds."""
    shown = (y == math.inf, y == -math.inf, math.isnan(y), True, y == 0)
    return any(bits >> place & 1 and shows for place, shows in enumerate(shown))


def wrong_zero(y: Any, bits: int) -> bool:
    """Return whether a zero has the wrong sign according to the flags."""
    minus = math.copysign(1, y) < 0
    return bool((bits & 32 and not minus) or (bits & 64 and minus))


def outcome(certificate: dict[str, Any], outputs: list[dict[str, Any]], required: dict[str, str]) -> str:
    """Return the outcome of an answer."""
    options = certificate["options"]
    if not options:
        return "accepted-invalid"
    if len(outputs) != len(certificate["outputs"]):
        return "wrong-shape"
    if [told["type"] for told in outputs] != certificate["outputs"]:
        return "wrong-dtype"
    admitting = [option for option in options if admits(option, outputs)]
    if any(all(required.get(s, a) == a for s, a in option["labels"].items()) for option in admitting):
        return "pass"
    shapes = [[bounds["shape"] for bounds in option["outputs"]] for option in options if option["kind"] == "values"]
    return "wrong-value" if admitting or [told["shape"] for told in outputs] in shapes else "wrong-shape"


# The folder


def lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines, if it exists; the last line may be torn, as a killed run leaves it."""
    texts = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return [inflated(json.loads(text)) for text in texts[:-1]]


def inflated(told: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a line; long certificates are compressed, with zlib, in base64."""
    return dict(json.loads(zlib.decompress(base64.b64decode(told["deflated"])))) if "deflated" in told else told


def not_checked(certificate: dict[str, Any] | None, outputs: list[dict[str, Any]] | None) -> str:
    """Return why an answer is not checked; empty if it is."""
    if certificate is None or "failed" in certificate or outputs is None:
        return "no certificate or no outputs were kept"
    if certificate.get("format") != FORMAT:
        return f"a certificate of format {certificate.get('format', 1)}, which the checker of that release reads"
    if any(option.get("checks") for option in certificate["options"]):
        return "it is also judged by tests of whole outputs"
    return next((told["left_out"] for told in outputs if "left_out" in told), "")


def check(kept: dict[str, Any], certificate: dict[str, Any] | None, result: Any, required: dict[str, str]) -> str:
    """Check one answer and return what was found; raises Differs."""
    if result is None or result["case_digest"] != kept["case_digest"]:
        raise Differs("results.jsonl has no such case")
    outputs = kept.get("outputs")
    if (reason := not_checked(certificate, outputs)) or certificate is None or outputs is None:
        return f"not checked: {reason}"
    for name, digest in digests(certificate).items():
        if not digest == certificate[name] == result[name]:
            raise Differs(f"{name}: the certificate and the result are about different cases")
    taken = check_bounds(certificate)
    for told in outputs:
        content(told)
    found, said = outcome(certificate, outputs, required), str(result["outcome"])
    if found == "pass" and result["reason"] in certificate["also_fails"]:
        return f"pass agrees by its values; it fails since {certificate['also_fails'][result['reason']]}"
    if found != (result["detail"].split(",")[0] if said == "waived" else said):
        raise Differs(f"results.jsonl says {said}, the answer is {found}")
    if taken == {"declared arithmetic"}:
        return f"{found} agrees, by bounds that are not derived again here"
    return f"{found} agrees{f', with {chr(44).join(sorted(taken))} as the certificate has them' if taken else ''}"


def main(folder: Path) -> int:
    """Check a folder and print a line for each answer; returns the exit code."""
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    results = {(result["case"], result["backend"]): result for result in lines(folder / "results.jsonl")}
    certificates = {certificate["case"]: certificate for certificate in lines(folder / "certificates.jsonl")}
    answers = {(kept["case"], kept["backend"]): kept for kept in lines(folder / "outputs.jsonl")}
    counts = {"agree": 0, "differ": 0, "not checked": 0}
    for (case, backend), kept in answers.items():
        try:
            words = check(kept, certificates.get(case), results.get((case, backend)), run["required"])
            counts["not checked" if words.startswith("not") else "agree"] += 1
        except Differs as error:
            words = f"DIFFERS: {error}"
            counts["differ"] += 1
        print(f"{case}  on {backend}: {words}")
    if run["keep_outputs"] in ("failures", "all"):
        for key in (key for key, result in results.items() if result["outcome"] in WRONG and key not in answers):
            counts["differ"] += 1
            print(f"{key[0]}  on {key[1]}: DIFFERS: a wrong answer, which outputs.jsonl does not have")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    if sys.argv[1:] in (["--help"], ["-h"]):
        print(__doc__)
        sys.exit(0)
    try:
        if len(sys.argv) != 2:
            raise ValueError("expected one results folder")
        sys.exit(main(Path(sys.argv[1])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        print(f"check_certificate: cannot read that: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)

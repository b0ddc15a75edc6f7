"""Judge the answers that a results folder keeps once more, with Python's standard library alone.

    python check_certificate.py DIR

DIR is what `opconform run` left behind. For every answer in outputs.jsonl, by the certificate of its case:

1. the inputs and the bounds are those that results.jsonl names by their digests;
2. the exact result, computed again from the inputs as fractions, is the certificate's;
3. the bound, derived again from n, M, the unit roundoffs u and the smallest number eta, is the certificate's: never
   narrower, and wider by no more than 2^-16 of itself;
4. the recorded answer, held against the bounds, has the outcome that results.jsonl says.

Exits 0 if all agree, 1 if anything differs, 2 if the folder cannot be read. The formats are described in
docs/results-folder.md and docs/certificates.md, the rules in docs/judging.md.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import struct
import sys
import zlib
from fractions import Fraction
from pathlib import Path
from typing import Any

TYPES = "float16 bfloat16 float32 float64 bool int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()  # noqa: SIM905
CODES = dict(zip(TYPES, "eHfd?bhiqBHIQ", strict=True))  # as `struct` has them
FLAGS = ("positive-infinity", "negative-infinity", "nan", "free", "zero", "negative-zero", "positive-zero")
ODD = ("nan", "inf", "-inf")
DOUBLE = {"precision": 53, "emin": -1022, "emax": 1023}
WRONG = ("wrong-value", "wrong-shape", "wrong-dtype")
ALLOWANCE = Fraction(1, 1 << 16)  # by how much of itself a bound may be wider than the rules make it
LEAST = Fraction(1, 1 << 1072)  # four times float64's smallest number: what bounds lose below its range


class Differs(Exception):  # noqa: N818 - it is a finding
    """What the folder says, and what was found instead."""


# Tensors and numbers


def content(told: dict[str, Any]) -> bytes:
    """Return a tensor's bytes, which are little-endian and in C order."""
    try:
        found = base64.b64decode(told["base64" if "base64" in told else "zlib_base64"], validate=True)
        found = zlib.decompress(found) if "zlib_base64" in told else found
    except (ValueError, zlib.error) as error:
        raise Differs(f"a tensor's bytes are damaged: {error}") from error
    if hashlib.sha256(found).hexdigest() != told["sha256"]:
        raise Differs("a tensor's bytes are not those of its sha256")
    return found


def values(told: dict[str, Any]) -> list[Any]:
    """Return a tensor's elements as Python's numbers, which hold all of them exactly."""
    found, code = content(told), CODES[told["type"]]
    size = math.prod(told["shape"])
    if len(found) != size * struct.calcsize(f"<{code}"):
        raise Differs("a tensor has not as many bytes as its shape")
    elements = struct.unpack(f"<{size}{code}", found)
    if told["type"] == "bfloat16":  # the upper half of a float32
        elements = struct.unpack(f"<{size}f", struct.pack(f"<{size}I", *(bits << 16 for bits in elements)))
    return list(elements)


def numbers(told: Any) -> list[Any]:
    """Return the numbers of a certificate: hexadecimal floats, decimal integers, or a tensor where they are many."""
    if isinstance(told, dict):
        return values(told)
    return [float.fromhex(text) if "x" in text or text in ODD else int(text) for text in told]


def flags(told: Any) -> list[int] | None:
    """Return the flags of each element as bits, or None."""
    return values(told) if isinstance(told, dict) else told and [sum(1 << FLAGS.index(f) for f in one) for one in told]


# 1. Digests


def digests(certificate: dict[str, Any]) -> dict[str, str]:
    """Return the digests of what a certificate says: of program and inputs, and of all that decides an outcome."""
    case = hashlib.sha256(certificate["program_key"].encode())
    case.update(repr([tuple(one["shape"]) for one in certificate["inputs"]]).encode())
    for one in certificate["inputs"]:
        case.update(content(one))
    heads, arrays = [], []
    for option in certificate["options"]:
        shapes = [(bounds["type"], tuple(bounds["shape"])) for bounds in option["outputs"]]
        heads.append((tuple(option["labels"].items()), option["kind"], option["exceptional"], option["level"], shapes))
        for bounds in option["outputs"]:
            code = "d" if "float" in bounds["type"] else CODES[bounds["type"]]
            parts = [(code, numbers(bounds["lower"])), (code, numbers(bounds["upper"]))]
            if bounds["flags"] is not None:
                parts.append(("B", flags(bounds["flags"]) or []))
            if bounds["spread"] is not None:
                parts += [("d", numbers(bounds["value"])), ("d", numbers(bounds["spread"]["sigma"]))]
            arrays += [struct.pack(f"<{len(part)}{kind}", *part) for kind, part in parts]
    expectation = hashlib.sha256(b"".join([repr((tuple(certificate["outputs"]), heads)).encode(), *arrays]))
    return {"case_digest": case.hexdigest(), "expectation_digest": expectation.hexdigest()}


# 2. Exact results


def addends(certificate: dict[str, Any], derivation: dict[str, Any]) -> list[list[Any]] | None:
    """Return, for each output element, the input elements whose mean it is; None if the formula is another one."""
    made: list[tuple[list[int], list[Any]]] = []  # of each step of the formula: its shape and its elements
    for step in derivation["formula"]:
        if step["op"] == "input":
            told = certificate["inputs"][step["input"]]
            made.append((told["shape"], [[number(x, told["type"], derivation)] for x in values(told)]))
        elif step["op"] == "stack":
            made.append(stacked([made[place] for place in step["of"]]))
        elif step["op"] == "sum":
            shape, elements = made[step["of"][0]]
            made.append(summed(shape, elements, step["axes"], step["keepdims"]))
        elif step["op"] != "divide" or any(len(xs) != step["by"] for xs in made[-1][1]):
            return None
        else:
            made.append(made[-1])
    return made[-1][1]


def number(x: Any, kind: str, derivation: dict[str, Any]) -> Any:
    """Return an input as a fraction, or as the float that is no number; subnormal ones as zero where so derived."""
    if isinstance(x, float) and not math.isfinite(x):
        return x
    tiny = 2.0 ** (-1022 if kind == "float64" else -14 if kind == "float16" else -126)
    return Fraction(0) if derivation["flushed_inputs"] and abs(x) < tiny else Fraction(x)


def stacked(tensors: list[tuple[list[int], list[Any]]]) -> tuple[list[int], list[Any]]:
    """Broadcast tensors to one shape and stack them along a new first axis."""
    rank = max(len(shape) for shape, _ in tensors)
    padded = [[1] * (rank - len(shape)) + shape for shape, _ in tensors]
    whole = [next((d for d in dims if d != 1), 1) for dims in zip(*padded, strict=True)]
    elements = []
    for shape, (_, given) in zip(padded, tensors, strict=True):
        for index in itertools.product(*map(range, whole)):
            place = 0
            for i, d in zip(index, shape, strict=True):
                place = place * d + (i if d > 1 else 0)
            elements.append(given[place])
    return [len(tensors), *whole], elements


def summed(shape: list[int], elements: list[Any], axes: list[int], keepdims: bool) -> tuple[list[int], list[Any]]:
    """Put together what is added up along axes."""
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    groups: dict[tuple[int, ...], list[Any]] = {}
    for index, element in zip(itertools.product(*map(range, shape)), elements, strict=True):
        groups.setdefault(tuple(index[axis] for axis in kept), []).extend(element)
    reduced = [1 if axis in axes else d for axis, d in enumerate(shape) if keepdims or axis not in axes]
    return reduced, list(groups.values())


def total(xs: list[Fraction]) -> Fraction:
    """Add up, as whole multiples of one fraction: one by one takes longer."""
    common = math.lcm(*{x.denominator for x in xs})
    return Fraction(sum(x.numerator * (common // x.denominator) for x in xs), common)


def mean(xs: list[Any]) -> Any:
    """Return the exact mean; NaN or an infinity where an addend is one."""
    odd = [x for x in xs if isinstance(x, float)]
    return sum(odd) if odd else total(xs) / len(xs)


# 3. Bounds


def whole_mean(xs: list[Fraction], arithmetic: dict[str, Any]) -> int:
    """Return the mean of integers as this arithmetic has it: the sum's overflow, then the quotient's rounding."""
    low, high, whole = int(arithmetic["smallest"]), int(arithmetic["largest"]), int(total(xs))
    if arithmetic["overflow"] == "wraps":
        whole = (whole - low) % (high - low + 1) + low
    elif arithmetic["overflow"] == "saturates":
        whole = max(low, min(high, whole))
    quotient = Fraction(whole, len(xs))
    away = math.floor(abs(quotient) + Fraction(1, 2)) * (1 if quotient > 0 else -1)
    roundings: dict[str, Any] = {
        "truncate": int,
        "floor": math.floor,
        "nearest-even": round,
        "nearest-away": lambda _: away,
    }
    return int(roundings[arithmetic["rounding"]](quotient))


def nearest(form: dict[str, Any], x: Any) -> Any:
    """Round to a binary format, to nearest and ties to even."""
    if x == 0 or isinstance(x, float):
        return x
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    grid = Fraction(2) ** (max(exponent, form["emin"]) - form["precision"] + 1)
    rounded = round(x / grid) * grid
    return rounded if abs(rounded) < Fraction(2) ** (form["emax"] + 1) else math.copysign(math.inf, x)


def mean_error(xs: list[Fraction], arithmetic: dict[str, Any]) -> Any:
    """Return what an implementation of the mean in this arithmetic may err by, before its last rounding to the output.

    n addends, `size` Σ|x|, `mean_size` mean_size, u_a and u_s the unit roundoffs of accumulator and storage.
    """
    accumulator, storage, n = arithmetic["accumulator"], arithmetic["storage"], len(xs)
    if n == 1:
        return Fraction(0)
    u_a, u_s = (Fraction(1, 2 ** form["precision"]) for form in (accumulator, storage))
    eta, tiny = (Fraction(2) ** (storage["emin"] - bits) for bits in (storage["precision"] - 1, 0))
    half = max(eta / 2, Fraction(1, 1 << 1074))
    value, span, sizes = total(xs), max(xs) - min(xs), [abs(x) for x in xs]
    lowest: Any = min((Fraction(x.numerator & -x.numerator, x.denominator) for x in sizes if x), default=0)
    size, same, power = total(sizes), storage == accumulator, n & (n - 1) == 0
    mean_size = size / n
    # The sum, in any order: (n-1)·u_a·Σ|x|, and nothing where every partial sum is exact.
    error: Any = Fraction(0) if every_order_is_exact(size, lowest, accumulator) else (n - 1) * u_a * size
    if not same and (error or nearest(storage, value) != value):
        error += u_s * (abs(value) + error) + half
    # The division by n, after adding up or of each addend before.
    error /= n
    charge: Any
    if power:
        charge = 2 * n * half if 0 < lowest / n < eta else 0
        if error or nearest(storage, value / n) != value / n:
            charge += u_s * (mean_size + error) + half
    else:
        charge = max((n - 1) * u_a * mean_size - error, Fraction(0)) + (0 if same else u_s * mean_size)
        charge += 2 * u_s * (mean_size + error)
        charge += 2 * n * half if 0 < lowest / n < tiny else half
    if arithmetic["summation"] == "running-means" and n >= 3:
        return max(error + charge, running_mean_error(n, mean_size, span, u_a, half))
    return error + charge


def every_order_is_exact(size: Fraction, lowest: Any, form: dict[str, Any]) -> bool:
    """Whether all partial sums are multiples of the lowest set bit of any addend that the accumulator holds."""
    limit = lowest * 2 ** form["precision"]  # which float64 sums, being rounded themselves, must stay below
    fits = size < limit or (size == limit and form["precision"] < 53)
    low, high = (Fraction(2) ** e for e in (form["emin"] - form["precision"] + 1, form["emax"] + 1))
    return not size or (fits and lowest >= low and size < high)


def running_mean_error(n: int, mean_size: Fraction, span: Fraction, u: Fraction, half: Fraction) -> Any:
    """Return what a mean may err by that is updated addend by addend; `span` is the largest less the smallest."""
    harmonic = Fraction(sum(1 / k for k in range(1, n)) if n <= 64 else math.log(n - 1) + 0.5773 + 0.5 / (n - 1))
    grown = (n + 3 * harmonic + 6) * u
    if span == 0 or grown >= Fraction(1, 2):
        return math.inf if span else Fraction(0)
    differences = min((1 + harmonic) * mean_size, Fraction(max(1.0, math.log2(n) / 2)) * span)
    return (u * (3 * differences + (n - 1) * mean_size) + n * half) / (1 - grown)


def check_derivation(derivation: dict[str, Any], groups: list[list[Any]]) -> list[tuple[Any, Any]]:
    """Return each element's exact result and error by the rules; raises Differs unless they are the certificate's."""
    exact, told = [mean(xs) for xs in groups], derivation["exact"]
    if told is not None and repr(exact) != repr([float(t) if t in ODD else Fraction(t) for t in told]):
        raise Differs("the exact results are not the certificate's")
    if derivation["error"] is None:
        return [(whole_mean(xs, derivation["arithmetic"]), None) for xs in groups]
    errors: list[Any] = [None if isinstance(value, float) else Fraction(0) for value in exact]
    sums = [(step["n"], numbers(step["M"])) for step in derivation["steps"] if step["M"] is not None]
    for place, told_error in enumerate(numbers(derivation["error"])):
        if errors[place] is None:
            continue
        xs, error = groups[place], mean_error(groups[place], derivation["arithmetic"])
        size, errors[place] = mean([abs(x) for x in xs]), error
        if any(n != len(xs) or abs(Fraction(sizes[place]) - size) > size * ALLOWANCE + LEAST for n, sizes in sums):
            raise Differs(f"element {place}: n and M are not {len(xs)} and {float(size):g}")
        if not error - LEAST <= told_error <= error * (1 + ALLOWANCE) + LEAST:
            raise Differs(f"element {place}: by the rules it may err by {float(error):g}, not by {told_error:g}")
    return list(zip(exact, errors, strict=True))


def check_option(option: dict[str, Any], arithmetic: dict[str, Any], derived: list[tuple[Any, Any]]) -> None:
    """Raise Differs unless an option's bounds are those that exact results and errors give."""
    bounds = option["outputs"][0]
    ends = zip(derived, numbers(bounds["lower"]), numbers(bounds["upper"]), strict=True)
    for place, ((value, error), low, high) in enumerate(ends):
        if error is None:
            right = math.isnan(low) and math.isnan(high) if math.isnan(value) else low == high == value
        else:
            last = DOUBLE if arithmetic["storage"] == arithmetic["output"] else arithmetic["output"]
            least, most = max(error - LEAST, 0), error * (1 + ALLOWANCE) + (LEAST if error else 0)
            right = nearest(last, value - most) <= low <= nearest(last, value - least)
            right = right and nearest(last, value + least) <= high <= nearest(last, value + most)
        if not right:
            raise Differs(f"element {place}: {low} to {high} is admitted, which is not what {value} and the rules give")


def check_bounds(certificate: dict[str, Any]) -> bool:
    """Check exact results and bounds; returns whether all of them could be derived. Raises Differs."""
    whole = True
    derivations = certificate["derivations"]
    groups = [addends(certificate, derivation) for derivation in derivations]
    derived: dict[int, list[tuple[Any, Any]]] = {}
    for option in (option for option in certificate["options"] if option["derivation"] is not None):
        place = option["derivation"]
        found = groups[place]
        if found is None or option["level"] == "declared":
            whole = False
            continue
        if place not in derived:
            derived[place] = check_derivation(derivations[place], found)
        check_option(option, derivations[place]["arithmetic"], derived[place])
    return whole


# 4. Outcomes


def admits(option: dict[str, Any], outputs: list[dict[str, Any]]) -> bool:
    """Whether an option admits an answer: all elements, and the second moment of their errors where it is bounded."""
    if option["kind"] != "values":
        return bool(option["kind"] == "anything")
    if any(bounds["shape"] != told["shape"] for bounds, told in zip(option["outputs"], outputs, strict=True)):
        return False
    shows = False
    for bounds, told in zip(option["outputs"], outputs, strict=True):
        ys, bits = values(told), flags(bounds["flags"])
        lower, upper = numbers(bounds["lower"]), numbers(bounds["upper"])
        for y, low, high, flagged in zip(ys, lower, upper, bits or [0] * len(ys), strict=True):
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
    """Whether the flags admit an element that is not within its bounds."""
    shown = (y == math.inf, y == -math.inf, math.isnan(y), True, y == 0)
    return any(bits >> place & 1 and shows for place, shows in enumerate(shown))


def wrong_zero(y: Any, bits: int) -> bool:
    """Whether an element has the wrong sign where the flags ask for that of a zero."""
    minus = math.copysign(1, y) < 0
    return bool((bits & 32 and not minus) or (bits & 64 and minus))


def outcome(certificate: dict[str, Any], outputs: list[dict[str, Any]], required: dict[str, str]) -> str:
    """Return what an answer is worth."""
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
    """Read a file of JSON lines; the last line may be torn, as a killed run leaves it. There may be no such file."""
    texts = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return [json.loads(text) for text in texts[:-1]]


def check(kept: dict[str, Any], certificate: dict[str, Any] | None, result: Any, required: dict[str, str]) -> str:
    """Check one answer and return what was found; raises Differs."""
    if result is None or result["case_digest"] != kept["case_digest"]:
        raise Differs("results.jsonl has no such case")
    outputs = kept.get("outputs")
    if certificate is None or "failed" in certificate or outputs is None:
        return "not checked: no certificate or no outputs were kept"
    for name, digest in digests(certificate).items():
        if not digest == certificate[name] == result[name]:
            raise Differs(f"{name}: the certificate is not about what the result is about")
    derived = check_bounds(certificate)
    if any("left_out" in told for told in outputs):
        return f"not checked: {next(told['left_out'] for told in outputs if 'left_out' in told)}"
    for told in outputs:
        content(told)
    found, said = outcome(certificate, outputs, required), str(result["outcome"])
    if found != (result["detail"].split(",")[0] if said == "waived" else said):
        raise Differs(f"results.jsonl says {said}, the answer is {found}")
    return f"{found} agrees" if derived else f"{found} agrees, by bounds that are not derived again here"


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
    try:
        if len(sys.argv) != 2:
            raise ValueError("expected one results folder")
        sys.exit(main(Path(sys.argv[1])))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"check_certificate: cannot read that: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)

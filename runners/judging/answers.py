"""Answers of a backend to a batch, and how they compare with bounds, element by element and for all lanes at once.

Answers with the same types and shapes are stored together, lanes first. Options can also test whole outputs:

`order(axis, whole)`: the elements along an axis may come in any order, which is the same in all outputs named. With
`whole`, each slice across the axis moves as one (rows of indices); otherwise each line along it is sorted by itself.

`follows(axis, distinct, squeezed)`: the first output named holds indices along an axis of the first array (without an
axis: into all its elements); the elements that they select are the second output named, or else the second array.
`distinct`: no index appears twice along the axis. `squeezed`: the indices lack the axis.

`moments(alarm, reach, law, unit)`: the elements are random and independent, with the mean and the variance in the first
two arrays. The third is the fourth central moment (default: a normal distribution's), `reach` the largest distance of
an element from its mean (default: as for a normal distribution). With `law="normal"` they are normal, each rounded by
at most `unit` of itself; otherwise each is at most `unit` away from a number with this distribution, which with
`law="uniform"` covers the whole reach. Right answers fail with a probability of at most `alarm`.

`frequencies(alarm, unit)`: the output holds class numbers, drawn row by row (along its last axis) with the
probabilities in the array's last axis, which may be off by `unit` of themselves; a class of probability 0 never
appears. Right answers fail with a probability of at most `alarm`.

`mask-agrees`: the first output named is zero exactly where the second is false; elsewhere it is within its bounds.

`one-of`: each element of the output named is the element of one of the arrays at its place.

`reads-as`: each element of the output named is text, in plain or scientific notation, of the number in the array,
rounded or cut at some digit; infinities and NaN have their names.

`same-bits`: the bytes of each element of the output named, also of NaN, equal the last dimension of the array.

`infers(names, exact)`: the outputs are texts on types and shapes; see `inference.py`.

`same-seed(differs)`: a fresh program gives the same answer to the bit, or with `differs` another answer. The worker
runs it.

Arrays have lanes first; axes don't count them.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec
import numpy as np

from ...cases.batch import Bounds, Check, Flag, any_of_lane
from ...cases.elements import Array, FloatFormat, comparable, equal, type_of
from ...cases.program import Program, Structure, StructureKind, flat, is_tensor
from ...cases.runner import Reason
from .inference import is_weaker

# Plain numbers: arithmetic on enumeration members costs more than the arithmetic on arrays.
_FREE, _ZERO, _NAN = np.uint8(Flag.FREE), np.uint8(Flag.ZERO), np.uint8(Flag.NAN)
_POSITIVE_INFINITY, _NEGATIVE_INFINITY = np.uint8(Flag.POSITIVE_INFINITY), np.uint8(Flag.NEGATIVE_INFINITY)
_POSITIVE_ZERO, _NEGATIVE_ZERO = np.uint8(Flag.POSITIVE_ZERO), np.uint8(Flag.NEGATIVE_ZERO)

_ADMITS: tuple[tuple[np.uint8, Callable[[Array], Array]], ...] = (
    (_FREE, lambda output: np.ones(output.shape, bool)),
    (_POSITIVE_INFINITY, lambda output: output == np.inf),
    (_NEGATIVE_INFINITY, lambda output: output == -np.inf),
    (_NAN, np.isnan),
    (_ZERO, lambda output: output == 0),
)


MOST_DIMENSIONS = 60 if int(np.__version__.split(".")[0]) >= 2 else 28
"""Number of dimensions that an answer may have: a few less than NumPy's, because judging adds some."""


class ComparedOutputs:
    """The outputs of all lanes in the types in which they are compared; computed comparisons are cached."""

    def __init__(self, outputs: Sequence[Array]) -> None:
        with np.errstate(all="ignore"):  # signalling NaN
            self.numbers = tuple(comparable(output) for output in outputs)
        self.outputs = tuple(outputs)
        self._within: dict[tuple[int, int, int], tuple[Bounds, Array]] = {}
        self._errors: dict[tuple[int, int], tuple[Bounds, Array]] = {}

    def within(self, bounds: Bounds, index: int) -> Array:
        """Return the elements of an output that lie between the bounds, in the bounds' shape."""
        key = id(bounds.lower), id(bounds.upper), index
        if key not in self._within:  # the bounds are kept alive, so that their ids stay unique
            self._within[key] = bounds, within(bounds, self.numbers[index])
        return self._within[key][1]

    def errors(self, bounds: Bounds, index: int) -> Array:
        """Return the distance of each element of a floating-point output from the exact value."""
        key = id(bounds.value), index
        if key not in self._errors:
            self._errors[key] = bounds, np.abs(self.numbers[index] - bounds.value)
        return self._errors[key][1]


def within(bounds: Bounds, output: Array) -> Array:
    """Return the elements that lie between the bounds; complex numbers and text must equal the value."""
    lower, upper = comparable(bounds.lower), comparable(bounds.upper)
    if output.dtype.kind == "c" or output.dtype.hasobject:
        return equal(output, lower)
    return np.asarray((output >= lower) & (output <= upper))


def admitted(bounds: Bounds, output: Array, inside: Array) -> Array:
    """Add the elements that the flags admit to those within bounds, and remove zeros of the wrong sign."""
    flags = bounds.flags
    present = 0 if flags is None else int(np.bitwise_or.reduce(flags, axis=None))
    if flags is None or not present:
        return inside
    taken = inside.copy()
    for bit, shows in _ADMITS:
        if present & bit:
            taken |= ((flags & bit) > 0) & shows(output)
    for bit, minus in ((_NEGATIVE_ZERO, True), (_POSITIVE_ZERO, False)):
        if present & bit:
            taken &= ((flags & bit) == 0) | (np.signbit(output) == minus)
    return taken


def spread_holds(bounds: Bounds, output: Array, lanes: Sequence[int]) -> list[bool]:
    """Return for some lanes whether the errors of the whole tensor are within its spread."""
    if bounds.spread is None:
        return [True] * len(lanes)
    results = []
    for lane in lanes:
        scaled = (output[lane, ...] - bounds.value[lane, ...]) / bounds.spread.sigma[lane, ...]
        results.append(float(np.mean(scaled**2)) <= bounds.spread.limit)
    return results


def shares(bounds: Bounds, error: Array, judged: Array) -> list[float | None]:
    """Return each lane's largest error as a share of its bound, over the finite elements in `judged`.

    None if there is no such element; infinity if there is an error where the bound is zero.
    """
    exact = ~any_of_lane(error)
    if exact.all():
        return [0.0] * len(exact)
    judged = judged & np.isfinite(error)
    bound = np.maximum(bounds.upper - bounds.value, bounds.value - bounds.lower)
    ratios = np.where(judged & (error > 0), error / bound, 0.0).reshape(len(exact), -1).max(axis=1)
    known = exact | any_of_lane(judged)
    return [ratio if there else None for ratio, there in zip(ratios.tolist(), known.tolist(), strict=True)]


def all_of_lane(elements: Array) -> Array:
    """Return the lanes in which all elements are true."""
    return np.asarray(elements.reshape(len(elements), -1).all(axis=1))


def finite(number: float | None) -> float | None:
    """Return a number, or None if it is not finite."""
    return number if number is not None and math.isfinite(number) else None


def ulp_exponent(values: Array, form: FloatFormat) -> Array:
    """Return the exponent of the unit in the last place of real numbers, by Goldberg's definition extended to them.

    ulp(x) = 2^(max(e, emin)-p+1) where 2^e <=
    x
    < 2^(e+1); the smallest subnormal number for zero (Muller, On the definition of ulp(x), INRIA RR-5504, 2005).
    `values` are float64; the result for values that are not finite is undefined.
    """
    lowest = form.emin - form.precision + 1
    grid = np.maximum(np.frexp(values)[1] - form.precision, lowest)
    return np.where(values == 0, lowest, grid)


_SIGNIFICANT = 15
"""Texts of more digits may end in zeros for the rest."""
_LONGEST = 2000
"""The largest exponent of ten in a text that may be a number's."""

ALARM = 1e-12
"""The probability that a right answer fails a test of random elements: a run of a thousand such tests stays at 1e-9."""
RANDOM = frozenset({"moments", "frequencies"})
"""The tests that right answers may fail, with that small probability."""


def arranged(
    checks: Sequence[Check], outputs: Sequence[Bounds], numbers: Sequence[Array]
) -> tuple[list[Bounds], list[Array]]:
    """Return bounds and answers with both sorted along axes whose order is free."""
    bounds, arrays = list(outputs), list(numbers)
    for check in checks:
        if check.name != "order":
            continue
        settings = dict(check.settings)
        axis, whole_rows = int(settings["axis"]) + 1, bool(settings.get("whole"))
        codes = [_codes(comparable(bounds[output].value), arrays[output]) for output in check.outputs]
        wanted = _order([code for code, _ in codes], axis, whole_rows=whole_rows)
        given = _order([other for _, other in codes], axis, whole_rows=whole_rows)
        for output in check.outputs:
            shape = bounds[output].value.shape
            bounds[output] = bounds[output].mapped(functools.partial(_taken, order=wanted, axis=axis, shape=shape))
            arrays[output] = _taken(arrays[output], given, axis, shape)
    return bounds, arrays


def _codes(value: Array, answer: Array) -> tuple[Array, Array]:
    """Return whole numbers in the order of the elements of both, NaN last."""
    both = np.concatenate([value.reshape(-1), answer.reshape(-1)])
    _, codes = np.unique(both, return_inverse=True)
    codes = codes.reshape(-1)
    return codes[: value.size].reshape(value.shape), codes[value.size :].reshape(answer.shape)


def _order(codes: Sequence[Array], axis: int, *, whole_rows: bool) -> Array:
    """Return the sorting positions along an axis, by the first output, then the next; (lanes, n) if `whole_rows`."""
    if not whole_rows:
        keys = [np.moveaxis(code, axis, -1) for code in codes]
        return np.moveaxis(np.lexsort(keys[::-1], axis=-1), -1, axis)
    moved = [np.moveaxis(code, axis, 1) for code in codes]
    rows = [code.reshape(*code.shape[:2], math.prod(code.shape[2:])) for code in moved]
    columns = np.concatenate(rows, axis=2).transpose(2, 0, 1)
    if not len(columns):
        return np.tile(np.arange(codes[0].shape[axis]), (len(codes[0]), 1))
    return np.asarray(np.lexsort(columns[::-1], axis=-1))


def _taken(array: Array, order: Array, axis: int, shape: tuple[int, ...]) -> Array:
    if order.ndim == 2 and len(shape) > 2:
        order = order.reshape(len(order), *(order.shape[1] if at == axis else 1 for at in range(1, len(shape))))
        order = np.broadcast_to(order, shape)
    return np.take_along_axis(array, order, axis)


def holds(  # noqa: PLR0911 - one for each check
    check: Check, outputs: Sequence[Bounds], numbers: Sequence[Array], given: Sequence[Array]
) -> Array:
    """Return for each lane whether a check holds; `numbers` are answers as they are compared, `given` the originals."""
    lanes = len(numbers[0])
    match check.name:
        case "follows":
            return _follows(check, numbers)
        case "moments":
            return _moments(check, numbers[check.outputs[0]])
        case "frequencies":
            return _frequencies(check, numbers[check.outputs[0]])
        case "mask-agrees":
            return _mask_agrees(check, outputs, numbers)
        case "reads-as":
            return _reads_as(check, given[check.outputs[0]])
        case "same-bits":
            wanted = np.broadcast_to(check.arrays[0], (lanes, *check.arrays[0].shape[1:]))
            printed = np.ascontiguousarray(given[check.outputs[0]])[..., np.newaxis].view(np.uint8)
            return all_of_lane(printed == wanted)
        case "infers":
            return is_weaker(check, outputs, numbers)
        case "order" | "one-of" | "same-seed":  # the last belongs to running, the others to comparing
            return np.ones(lanes, bool)
    raise KeyError(check.name)


def _reads_as(check: Check, texts: Array) -> Array:
    values = np.broadcast_to(check.arrays[0], texts.shape)
    pairs = zip(*(array.reshape(len(texts), -1).tolist() for array in (texts, values)), strict=True)
    return np.array([all(map(reads_as, *pair)) for pair in pairs], bool)


_NUMBER = re.compile(r"([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")
_NAMES = MappingProxyType({"inf": math.inf, "infinity": math.inf, "nan": math.nan})


def reads_as(text: str, value: float) -> bool:
    """Return whether a text has digits of a number: it is off by less than a unit in the last digit that it shows."""
    name = _NAMES.get(text.lstrip("+-").lower())
    if name is not None:
        number = -name if text.startswith("-") else name
        return number == value or (math.isnan(name) and math.isnan(value))
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[2] or match[3]) or not math.isfinite(value):
        return False
    exponent, digits = int(match[4] or 0) - len(match[3]), match[2] + match[3]
    if len(digits) > _SIGNIFICANT and not match[3]:  # the last zeros may stand for digits that are not shown
        kept = digits.rstrip("0") or "0"
        exponent, digits = exponent + len(digits) - len(kept), kept
    if abs(exponent) > _LONGEST:
        return False
    unit = Fraction(10) ** exponent
    return abs(int(match[1] + digits) * unit - Fraction(value)) < unit


def is_one_of(check: Check, numbers: Sequence[Array]) -> Array:
    """Return the elements of the output that a check `one-of` names that are one of its arrays' elements."""
    output = numbers[check.outputs[0]]
    return np.asarray(np.logical_or.reduce([equal(output, comparable(array)) for array in check.arrays]))


def _follows(check: Check, numbers: Sequence[Array]) -> Array:
    settings, indices = dict(check.settings), numbers[check.outputs[0]]
    source = comparable(check.arrays[0])
    wanted = numbers[check.outputs[1]] if len(check.outputs) > 1 else comparable(check.arrays[1])
    lanes = len(indices)
    if "axis" not in settings:
        source, indices = source.reshape(lanes, -1), indices.reshape(lanes, -1)
        axis, wanted = 1, wanted.reshape(lanes, -1)
    else:
        axis = int(settings["axis"]) + 1
        if settings.get("squeezed"):
            indices, wanted = np.expand_dims(indices, axis), np.expand_dims(wanted, axis)
    inside = (indices >= 0) & (indices < source.shape[axis])
    if not source.shape[axis]:
        return all_of_lane(inside)
    pointed_at = np.take_along_axis(source, np.where(inside, indices, 0).astype(np.intp), axis)
    same = inside & equal(pointed_at, wanted)
    if settings.get("distinct"):
        ordered = np.sort(indices, axis)
        same &= np.insert(np.diff(ordered, axis=axis) > 0, 0, values=True, axis=axis)
    return all_of_lane(same)


def _moments(check: Check, output: Array) -> Array:
    """Test the sums of the errors and of their squares with tail bounds: Bernstein's, Laurent and Massart's.

    Sums of products of neighbours along an axis are tested too, by Bernstein's inequality: no element is first in one
    pair and second in another, so given the first ones the second ones are independent. With a law, the share of
    elements up to each one is compared with the distribution's, by the inequality of Dvoretzky, Kiefer, Wolfowitz and
    Massart.
    """
    settings, (mean, variance, *fourth) = dict(check.settings), check.arrays
    lanes, reach, law = len(output), float(settings.get("reach", 0.0)), settings.get("law")
    mean, variance = (
        np.broadcast_to(first_of_pair, output.shape).reshape(lanes, -1) for first_of_pair in (mean, variance)
    )
    errors = output.reshape(lanes, -1).astype(np.float64) - mean
    peaked = np.broadcast_to(fourth[0], output.shape).reshape(lanes, -1) if fourth else 3 * variance**2
    unit = np.abs(errors + mean) * float(settings.get("unit", 0.0)) if law == "normal" else settings.get("unit", 0.0)
    off = np.broadcast_to(np.asarray(unit, np.float64), errors.shape)
    lags = sorted({math.prod(output.shape[axis + 1 :]) for axis in range(1, output.ndim)} - {0})
    lags = [lag for lag in lags if lag < errors.shape[1]]
    doubt = _doubt(settings, 2 + (law is not None) + len(lags))
    first, total = errors.sum(axis=1), variance.sum(axis=1)
    second, spread = (errors**2).sum(axis=1) - total, (peaked - variance**2).sum(axis=1)
    farthest = reach**2 / 3 if reach else 2 * variance.max(axis=1, initial=0.0)
    allowed = np.sqrt(2 * doubt * total) + doubt * reach / 3
    allowed_second = np.sqrt(2 * doubt * spread) + doubt * farthest
    if law != "normal":  # their numbers are rounded to nearest, without bias
        allowed += off.sum(axis=1)
        allowed_second += (off * (2 * reach + off)).sum(axis=1)
    passes = np.isfinite(errors).all(axis=1) & (np.abs(first) <= allowed) & (np.abs(second) <= allowed_second)
    if law is not None and errors.size:
        scale = np.sqrt(2 * variance) if law == "normal" else np.full_like(errors, 2 * reach)
        passes &= _is_of_law(_LAWS[str(law)], errors, off, scale, doubt)
    for lag in lags:
        pairs = np.flatnonzero(np.arange(errors.shape[1] - lag) // lag % 2 == 0)
        first_of_pair, second_of_pair = errors[:, pairs], errors[:, pairs + lag]
        known = (first_of_pair**2 * variance[:, pairs + lag]).sum(axis=1)
        room = doubt * reach / 3 * np.abs(first_of_pair).max(axis=1) + (
            np.abs(first_of_pair) * off[:, pairs + lag]
        ).sum(axis=1)
        passes &= np.abs((first_of_pair * second_of_pair).sum(axis=1)) <= np.sqrt(2 * doubt * known) + room
    return np.asarray(passes)


def _doubt(settings: Mapping[str, int | float | str], tests: int) -> float:
    """Return the exponent of a tail bound if so many two-sided tests share the probability of a false alarm."""
    return math.log(2 * tests / float(settings.get("alarm", ALARM)))


_LAWS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "normal": lambda x: (1 + np.vectorize(math.erf, otypes=[float])(x)) / 2,
        "uniform": lambda x: np.clip(x + 0.5, 0.0, 1.0),
    }
)
"""Distribution functions: of normal errors over their deviation and root 2, of uniform errors over their range."""


def _is_of_law(law: Callable[[Array], Array], errors: Array, off: Array, scale: Array, doubt: float) -> Array:
    """Return the lanes in which errors may follow a law, each off by at most `off`; `scale`: the law's divisor."""
    order = np.argsort(errors / scale, axis=1)
    below, above = (law(np.take_along_axis((errors + sign * off) / scale, order, axis=1)) for sign in (-1, 1))
    count = errors.shape[1]
    ranks, slack = np.arange(count) / count, math.sqrt(doubt / (2 * count))
    return np.asarray(((below - slack <= ranks) & (ranks + 1 / count <= above + slack)).all(axis=1))


def _frequencies(check: Check, output: Array) -> Array:
    """Test how often each class appears in each row with Bernstein's inequality."""
    settings, (chances,) = dict(check.settings), check.arrays
    classes, draws = chances.shape[-1], output.shape[-1]
    chances = np.broadcast_to(chances, (*output.shape[:-1], classes))
    counts = (output[..., np.newaxis] == np.arange(classes)).sum(axis=-2)
    doubt = _doubt(settings, max(1, chances[0].size))
    expected = draws * chances
    allowed = np.sqrt(2 * doubt * expected * (1 - chances)) + doubt / 3 + expected * float(settings.get("unit", 0.0))
    likely = (np.abs(counts - expected) <= allowed) & ((counts == 0) | (chances > 0))
    complete = counts.sum(axis=-1) == draws  # something other than a class came
    return np.asarray(all_of_lane(likely) & all_of_lane(complete))


def _mask_agrees(check: Check, outputs: Sequence[Bounds], numbers: Sequence[Array]) -> Array:
    masked, mask = check.outputs[0], numbers[check.outputs[1]].astype(bool)
    bounds, output = outputs[masked], numbers[masked]
    flags = None if bounds.flags is None else bounds.flags & ~np.uint8(Flag.ZERO)
    kept = Bounds(bounds.type, bounds.value, bounds.lower, bounds.upper, flags)
    return all_of_lane(np.where(mask, admitted(kept, output, within(bounds, output)), output == 0))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A backend's refusal to answer: its own words, whether they say "not implemented", and the reason."""

    words: str
    unsupported: bool
    reason: Reason


@dataclass(frozen=True, slots=True)
class Answer:
    """A backend's answer to one case: all tensors, and the structure of each output if some are not tensors."""

    outputs: tuple[Array, ...]
    structure: tuple[Structure, ...] = ()

    def copy(self) -> Answer:
        """Return a copy in new memory, which the backend cannot overwrite."""
        return Answer(tuple(output.copy() for output in self.outputs), self.structure)

    @property
    def form(self) -> tuple[object, ...]:
        """Return types, shapes and structure."""
        return tuple((output.dtype, output.shape) for output in self.outputs), self.structure


class Nesting(msgspec.Struct, frozen=True, array_like=True):
    """A structure without extents, as a host sends it and a results folder keeps it: the tensors have the extents."""

    kind: StructureKind
    items: tuple[Nesting, ...] = ()
    count: int = 0

    @classmethod
    def of(cls, structure: Structure) -> Nesting:
        """Return the form to write."""
        return cls(structure.kind, tuple(map(cls.of, structure.items)), structure.count)

    def structure(self) -> Structure:
        """Return the structure that was written."""
        return Structure(self.kind, None, tuple(map(Nesting.structure, self.items)), self.count)


Answered: TypeAlias = Answer | Refusal


def answer_of(program: Program, values: Sequence[Any]) -> Answer:
    """Return a backend's answer, one value for each of `program.answers`. TypeError, ValueError if it is invalid."""
    if type(values) is list and program.is_plain and all(_is_plain(value) for value in values):  # the usual case
        return Answer(tuple(values))
    arrays, structure = flat(program, values)
    plain = all(is_tensor(output.type) for output in program.answers) and all(
        output.kind == "tensor" for output in structure
    )
    return Answer(tuple(arrays), () if plain else structure)


def _is_plain(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.kind not in "OUST"


def same_answer(a: object, b: object) -> bool:
    """Return whether two answers are the same to the bit; refusals, and whatever else is no answer, never are."""
    if not isinstance(a, Answer) or not isinstance(b, Answer) or a.form != b.form:
        return False
    return all(map(same_array, a.outputs, b.outputs))


def same_array(a: Array, b: Array) -> bool:
    """Return whether two arrays of one type and shape are the same to the bit."""
    return a.tolist() == b.tolist() if a.dtype.hasobject else a.tobytes() == b.tobytes()


@dataclass(frozen=True)
class Stack:
    """Answers of one form: the numbers of their lanes, and the outputs with one row for each lane."""

    lanes: Sequence[int]
    outputs: tuple[Array, ...]
    structure: tuple[Structure, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """Return the outputs' element types."""
        return tuple(map(type_of, self.outputs))

    @functools.cached_property
    def comparison(self) -> ComparedOutputs:
        """Return the outputs in the types in which they are compared."""
        return ComparedOutputs(self.outputs)

    def answer(self, row: int) -> Answer:
        """Return the answer of the lane that has this row."""
        return Answer(tuple(output[row, ...] for output in self.outputs), self.structure)


@dataclass(frozen=True)
class Answers:
    """A backend's answers to the `lanes` cases of a batch; a lane without an entry has no answer."""

    lanes: int
    stacks: tuple[Stack, ...] = ()
    refusals: Mapping[int, Refusal] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Sequence[Answered]) -> Answers:
        """Return the answers to all cases of a batch."""
        gathered = GatheredAnswers(len(answers))
        for lane, answer in enumerate(answers):
            gathered.add(lane, answer)
        return gathered.answers()

    @classmethod
    def of_case(cls, *outputs: Array) -> Answers:
        """Return the answer to a single case; `outputs` have no lanes."""
        return cls(1, (Stack((0,), tuple(output[np.newaxis] for output in outputs)),))

    def answer(self, lane: int) -> Answered | None:
        """Return one case's answer, None if it has none."""
        stacks = (stack.answer(stack.lanes.index(lane)) for stack in self.stacks if lane in stack.lanes)
        return self.refusals.get(lane) or next(stacks, None)

    def each(self) -> Iterator[tuple[int, Answer]]:
        """Yield the lanes that have an answer, with their answers."""
        for stack in self.stacks:
            for row, lane in enumerate(stack.lanes):
                yield lane, stack.answer(row)

    def replaced(self, others: Mapping[int, Answered]) -> Answers:
        """Return the answers with those of some lanes replaced."""
        if not others:
            return self
        known = {**dict(self.each()), **self.refusals, **others}
        gathered = GatheredAnswers(self.lanes)
        for lane in sorted(known):
            gathered.add(lane, known[lane])
        return gathered.answers()


class GatheredAnswers:
    """Collects answers as they come, and copies them, because a backend may reuse its memory."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._refusals: dict[int, Refusal] = {}
        self._first: list[Array] | None = None  # room for all lanes, in the form of the first answer
        self._structure: tuple[Structure, ...] = ()
        self._rows: list[int] = []
        self._others: dict[tuple[object, ...], list[tuple[int, Answer]]] = {}

    def add(self, lane: int, answer: Answered) -> None:
        """Take the answer to a lane."""
        if isinstance(answer, Refusal):
            self._refusals[lane] = answer
            return
        if self._first is None:
            self._structure = answer.structure
            self._first = [np.zeros((self._lanes, *output.shape), output.dtype) for output in answer.outputs]
        pairs = list(zip(self._first, answer.outputs, strict=False))
        alike = len(self._first) == len(answer.outputs) and self._structure == answer.structure
        if alike and all(o.shape == room.shape[1:] and o.dtype == room.dtype for room, o in pairs):
            for room, output in pairs:
                room[len(self._rows)] = output
            self._rows.append(lane)
        else:
            self._others.setdefault(answer.form, []).append((lane, answer.copy()))

    def answers(self, lanes: int | None = None) -> Answers:
        """Return the answers so far, only of the first `lanes` cases if given."""
        stacks = []
        if self._first is not None:  # at least the first answer is in it
            stacks.append(Stack(self._rows, tuple(room[: len(self._rows)] for room in self._first), self._structure))
        for alike in self._others.values():
            columns = zip(*(answer.outputs for _, answer in alike), strict=True)
            stacks.append(Stack([n for n, _ in alike], tuple(map(np.stack, columns)), alike[0][1].structure))
        return Answers(self._lanes if lanes is None else lanes, tuple(stacks), self._refusals)

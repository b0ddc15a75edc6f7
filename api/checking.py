"""`check` and `bound`: a function's answer against what the standard admits, and the admissible values themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ..cases.batch import Batch, Bounds, Expectation, Flag, Option
from ..cases.elements import Array, DeclaredType, comparable, element_type, type_of
from ..cases.errors import OpconformError
from ..cases.program import Structure
from ..cases.results import Outcome
from ..generators.arithmetic.formula import Rules
from ..runners.judging.answers import Answer, Answers
from ..runners.judging.judge import NONE_REQUIRED, Requirements, Verdict, judge, meets
from ..runners.judging.terms import load_declaration, required, silences
from ..specs.model import Clause, VersionSpec
from .call import NO_TYPES, Call, call, version_of
from .sampling import sampled
from .values import array_of, prepared, tensors_of

Require: TypeAlias = Mapping[str, str] | Iterable[str]
"""Required options of silences: `{"accumulator": "wide"}`, or `["accumulator=wide"]` as on the command line."""

NO_ATTRIBUTES: Mapping[str, Any] = MappingProxyType({})
MOST_WORK = 1 << 21
"""The elements of a whole computation, inputs and intermediate values included, up to which every element is judged."""

_MOST_CLAUSES = 3
_DECLARED: Mapping[str, Mapping[str, DeclaredType]] = MappingProxyType(
    {
        "tf32": {"float32": DeclaredType("tf32", "float32")},
        "bfloat16-accumulation": {
            name: DeclaredType(accumulator="bfloat16") for name in ("float32", "float16", "bfloat16")
        },
    }
)
"""Arithmetics with a name: products of float32 in tf32; sums in bfloat16."""


class NotConforming(AssertionError):  # noqa: N818 - named for what is found
    """An answer that the standard does not admit. `result` has the verdict."""

    def __init__(self, result: Checked, words: str) -> None:
        super().__init__(words)
        self.result = result


@dataclass(frozen=True)
class Checked:
    """The verdict on an answer.

    `share`: the largest error as a share of its bound, None if no element has such an error. `behaviour`: the options
    of silences that the answer shows. `level`: `strict`, or `declared` if only the declared arithmetic admits it.
    `judged` of `elements` were compared; `sample` says which, and is empty if all were.
    """

    operator: str
    outcome: Outcome
    share: float | None
    behaviour: Mapping[str, Sequence[str]]
    level: str | None
    detail: str
    judged: int
    elements: int
    sample: str = ""

    @property
    def passes(self) -> bool:
        """Whether the standard admits the answer."""
        return self.outcome is Outcome.PASS


@dataclass(frozen=True)
class Interval:
    """The admissible values of one output, as arrays of its shape.

    `expected`: exact, or rounded to float64. `lower` and `upper`: the smallest and the largest number that any option
    admits; both are NaN where only NaN is. `free`: the elements in which any value is admitted.
    """

    name: str
    type: str
    expected: Any
    lower: Any
    upper: Any
    free: Any


@dataclass(frozen=True)
class Bound:
    """The admissible answers of a call: an interval for each output, and what the standard leaves open.

    `open`: silences that matter for these inputs, each with its options. `anything`: an option admits any answer at
    all, or a refusal is as right as an answer.
    """

    operator: str
    outputs: Mapping[str, Interval]
    open: Mapping[str, Sequence[str]]
    anything: bool = False

    @property
    def expected(self) -> Any:
        """The expected value of the only output. Raises ValueError if there are several."""
        return self._only.expected

    @property
    def lower(self) -> Any:
        """The lower ends of the only output. Raises ValueError if there are several."""
        return self._only.lower

    @property
    def upper(self) -> Any:
        """The upper ends of the only output. Raises ValueError if there are several."""
        return self._only.upper

    @property
    def _only(self) -> Interval:
        if len(self.outputs) != 1:
            raise ValueError(f"{self.operator} has the outputs {', '.join(self.outputs)}: use .outputs[name]")
        return next(iter(self.outputs.values()))


def check(
    operator: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any] = NO_ATTRIBUTES,
    got: Any = None,
    *,
    require: Require = (),
    declared: str | Path | None = None,
    types: Mapping[str, str] = NO_TYPES,
    captured: Mapping[str, Any] = NO_TYPES,
    most_work: int = MOST_WORK,
    seed: int = 0,
) -> Checked:
    """Raise NotConforming, an AssertionError, unless the standard admits `got` as the operator's answer.

    operator: with its version, `onnx/Softmax-13`. inputs: by name; a list for a variadic input or a sequence, None for
    one left out. got: a tensor, a list of outputs in the signature's order with None for one left out, or a dict by
    name. require: options of silences; only these pass. declared: an arithmetic, `"tf32"` or
    `"bfloat16-accumulation"`, or a file as in docs/judging.md. types: of letters that nothing else shows. captured:
    values around the bodies of control flow. A call of more than `most_work` elements, with its intermediate values, is
    judged on a sample that `seed` chooses; the result says so. Raises ValueError for a call that the version's text
    does not allow.
    """
    answered = _answered(operator, got)
    made = call(
        operator,
        inputs,
        attributes,
        outputs=list(answered),
        types=types,
        answered={name: type_text(value) for name, value in answered.items()},
        captured=captured,
    )
    verdict = verdict_on(made, answered, require=require, declared=declared, most_work=most_work, seed=seed)
    return conforming(made, verdict)


def conforming(made: Call, result: Checked) -> Checked:
    """Return the verdict on the answer to a call. Raises NotConforming unless it passes."""
    if not result.passes:
        raise NotConforming(result, _failure_text(made, result))
    return result


def verdict_on(
    made: Call,
    answered: Mapping[str, Any],
    *,
    require: Require = (),
    declared: str | Path | None = None,
    most_work: int = MOST_WORK,
    seed: int = 0,
) -> Checked:
    """Return the verdict on the answer to a call, `answered` by output. Raises ValueError for an invalid call."""
    wanted, rules = _required(made, require), _rules(declared)
    answer = _answer(made, answered)
    elements = sum(array.size for array in answer.outputs)
    cut = sampled(made.recording, made.arrays, answer.outputs, most_work, seed) if not answer.structure else None
    if cut is None:
        expectation = _expectation(made, rules)
        verdict = _verdict(made, expectation, answer, wanted, ())
        return checked_of(made.operator, verdict, elements, elements)
    if cut.wrong_shape:
        verdict = Verdict(Outcome.WRONG_SHAPE, detail=cut.wrong_shape)
        return checked_of(made.operator, verdict, 0, elements)
    if cut.broken:
        made.refuse(cut.broken)
    expectation = cut.recording.expectation(cut.arrays, rules, 1)
    verdict = _verdict(made, expectation, Answer(cut.outputs), wanted, cut.grids)
    judged = sum(array.size for array in cut.outputs)
    sample = (
        f"judged on {judged:,} of {elements:,} elements: the ends, the middle and the ends of blocks "
        f"along each axis, the extremes of the answer, and others at random (seed {seed})"
    )
    return checked_of(made.operator, verdict, judged, elements, sample)


def checked_of(operator: str, verdict: Verdict, judged: int, elements: int, sample: str = "") -> Checked:
    """Return the judge's verdict in the API's form."""
    return Checked(
        operator,
        verdict.outcome,
        verdict.bound_ratio,
        verdict.behaviour,
        verdict.level,
        verdict.detail or "",
        judged,
        elements,
        sample,
    )


def bound(
    operator: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any] = NO_ATTRIBUTES,
    *,
    outputs: int | Iterable[str] | None = None,
    require: Require = (),
    declared: str | Path | None = None,
    types: Mapping[str, str] = NO_TYPES,
    captured: Mapping[str, Any] = NO_TYPES,
) -> Bound:
    """Return what the standard admits as the operator's answer: expected values, lower and upper ends, what is open.

    outputs: the requested ones by name (default: the required ones), or how many of a variadic output. Other arguments
    are those of `check`. Nothing is sampled. Raises ValueError for a call that the version's text does not allow, and
    for outputs that are not tensors.
    """
    made = call(operator, inputs, attributes, outputs=outputs, types=types, captured=captured)
    wanted = _required(made, require)
    expectation = _expectation(made, _rules(declared))
    (pattern,) = expectation.patterns
    labels = expectation.labels(pattern)
    applying = [option for option, applies in zip(expectation.options, pattern, strict=True) if applies]
    admitted = [option for option, own in zip(applying, labels, strict=True) if meets(own, wanted)]
    values = [option for option in admitted if option.kind == "values"]
    if any(option.structure for option in values):
        raise ValueError(f"{operator}: some outputs are no tensors, and have no bounds as arrays: use check")
    names = [name for name, type_ in made.outputs.items() if type_ is not None]
    anything = any(option.kind != "values" for option in admitted)
    intervals = {name: _interval(name, index, values) for index, name in enumerate(names)} if values else {}
    return Bound(operator, intervals, dict(expectation.silences), anything)


def _interval(name: str, index: int, options: Sequence[Option]) -> Interval:
    """Return the interval that holds all that options with the first one's shape admit."""
    first = options[0].outputs[index]
    expected = _first_row(first.value)
    if first.value.dtype.kind not in "fiub":
        return Interval(name, first.type, expected, expected, expected, np.zeros(expected.shape, bool))
    lower, upper, free = _ends(first)
    for option in options[1:]:
        other = option.outputs[index] if len(option.outputs) > index else None
        if other is None or other.shape != first.shape:
            continue
        low, high, vague = _ends(other)
        with np.errstate(invalid="ignore"):
            lower, upper, free = np.fmin(lower, low), np.fmax(upper, high), free | vague
    return Interval(name, first.type, expected, lower, upper, free)


def _ends(bounds: Bounds) -> tuple[Array, Array, Array]:
    """Return the smallest and the largest admitted numbers, and the elements that admit any value."""
    lower, upper = _first_row(comparable(bounds.lower)).copy(), _first_row(comparable(bounds.upper)).copy()
    if bounds.flags is None:
        return lower, upper, np.zeros(lower.shape, bool)
    flags = _first_row(bounds.flags)
    free = (flags & Flag.FREE) > 0
    if lower.dtype.kind == "f":
        lower[free | ((flags & Flag.NEGATIVE_INFINITY) > 0)] = -np.inf
        upper[free | ((flags & Flag.POSITIVE_INFINITY) > 0)] = np.inf
        zero = (flags & Flag.ZERO) > 0
        lower[zero], upper[zero] = np.fmin(lower[zero], 0), np.fmax(upper[zero], 0)
    elif lower.dtype.kind in "iu":
        element = element_type(bounds.type)
        lower[free], upper[free] = element.smallest, element.largest
    else:
        lower[free], upper[free] = False, True
    return lower, upper, free


def _first_row(array: Array) -> Array:
    return np.asarray(array[0, ...])


def _expectation(made: Call, rules: Rules) -> Expectation:
    arrays = [array[np.newaxis] for array in made.arrays]
    recording = made.recording
    made.check_values(recording, arrays)
    return recording.expectation(arrays, rules, 1)


def _verdict(
    made: Call, expectation: Expectation, answer: Answer, wanted: Requirements, grids: Sequence[Sequence[Array]]
) -> Verdict:
    batch = Batch((made.operator,), made.program, tuple(array[np.newaxis] for array in made.arrays), expectation)
    (verdict,) = judge(batch, Answers.of([answer]), wanted, places=grids)
    return verdict


def _failure_text(made: Call, result: Checked) -> str:
    lines = [f"{made.operator}: {result.outcome.value}", *(f"  {line}" for line in result.detail.splitlines())]
    clauses = clauses_of(made.version, made.attributes)[:_MOST_CLAUSES]
    lines += [f"  clause {clause.id}: {clause.text} ({clause.source})" for clause in clauses]
    if result.sample:
        lines.append(f"  {result.sample}")
    return "\n".join(lines)


def clauses_of(version: VersionSpec, attributes: Sequence[Any]) -> list[Clause]:
    """Return the clauses that valid calls with these attributes are about: those that always hold come first."""
    given = {attribute.name: attribute.value for attribute in attributes}
    always, holding = [], []
    for clause in version.clauses.values():
        if clause.when is None or clause.status == "withdrawn":
            continue
        if not clause.when:
            always.append(clause)
        elif all(
            name in given and any(given[name] == value for value in condition.values) != condition.negated
            for name, condition in clause.when.items()
        ):
            holding.append(clause)
    return [*always, *holding]


# The answer


def _answered(operator: str, got: Any) -> dict[str, Any]:
    """Return the values of an answer by output, without outputs that are left out. Raises ValueError."""
    _, version = version_of(operator)
    ports = version.signature.outputs
    if got is None:
        raise ValueError(f"{operator}: expected the answer `got`; it is None")
    names = _output_names(version, len(got) if isinstance(got, (list, tuple)) else 1)
    of_maps = any("map(" in type_ for port in ports for type_ in version.signature.types.get(port.type, (port.type,)))
    if isinstance(got, dict) and not of_maps:
        named = dict(got)
        known = _output_names(version, max(len(named), len(ports)))
        for name in named:
            if name not in known:
                raise ValueError(f"{operator}: no output is called {name!r}; there is {', '.join(known)}")
        return {name: _value(operator, name, named[name]) for name in known if named.get(name) is not None}
    several = len(ports) > 1 or (bool(ports) and ports[-1].is_variadic)
    if isinstance(got, tuple) or (isinstance(got, list) and several):
        if len(got) > len(names):
            raise ValueError(f"{operator}: expected at most {len(names)} outputs; read {len(got)}")
        pairs = zip(names, got, strict=False)
        return {name: _value(operator, name, value) for name, value in pairs if value is not None}
    return {names[0]: _value(operator, names[0], got)}


def _output_names(version: VersionSpec, many: int) -> list[str]:
    ports = version.signature.outputs
    names = [port.name for port in ports]
    if ports and ports[-1].is_variadic:
        names = names[:-1] + [f"{names[-1]}_{index}" for index in range(max(many, 1) - len(names) + 1)]
    return names


def _value(operator: str, name: str, value: Any) -> Any:
    try:
        return prepared(value) if isinstance(value, (list, tuple, dict)) else array_of(value)
    except ValueError as error:
        raise ValueError(f"{operator}: output {name}: {error}") from None


def type_text(value: Any) -> str:
    """Return the type of a prepared value; for one that shows none, the usual one."""
    if isinstance(value, np.ndarray):
        return type_of(value)
    if isinstance(value, list):
        return f"seq({type_text(value[0]) if value else 'float32'})"
    if isinstance(value, dict):
        return "map(int64,float32)"
    return "optional(float32)"


def _answer(made: Call, answered: Mapping[str, Any]) -> Answer:
    """Return an answer in the judge's form."""
    arrays: list[Array] = []
    structures: list[Structure] = []
    for name, type_ in made.outputs.items():
        if type_ is None or name not in answered:
            continue
        tensors, structure = tensors_of(type_, answered[name])
        arrays += tensors
        structures.append(Structure("tensor") if structure.kind == "tensor" else structure)
    plain = all(structure.kind == "tensor" for structure in structures)
    return Answer(tuple(arrays), () if plain else tuple(structures))


def _required(made: Call, require: Require) -> Requirements:
    texts = [f"{s}={o}" for s, o in require.items()] if isinstance(require, Mapping) else list(require)
    if not texts:
        return NONE_REQUIRED
    try:
        return required(texts, {**silences(), **made.version.options})
    except OpconformError as error:
        raise ValueError(str(error).replace("--require ", "require: ")) from None


def _rules(declared: str | Path | None) -> Rules:
    if declared is None:
        return Rules()
    if str(declared) in _DECLARED:
        return Rules(declared=_DECLARED[str(declared)])
    try:
        return Rules(declared=load_declaration(declared).types)
    except OpconformError as error:
        raise ValueError(f"declared: expected {', '.join(_DECLARED)}, or a file: {error}") from None

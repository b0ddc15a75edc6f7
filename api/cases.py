"""`inputs`: the suite's own inputs and attributes for an operator version, valid and invalid ones, each with a name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..cases.batch import Batch, cases_of
from ..cases.errors import OpconformError
from ..cases.ids import Selection, parse_id
from ..cases.program import AttributeValue, Program, Tensor, nest
from ..generators.parameters import free_letters
from ..generators.plan import planned
from ..generators.rows import draws
from ..runners.judging.answers import Answers, answer_of
from ..runners.judging.judge import judge
from .call import NO_TYPES, Call, call, library, source, version_of
from .checking import Checked, NotConforming, checked_of, conforming, verdict_on
from .values import prepared


@dataclass(frozen=True)
class OperatorCase:
    """One of the suite's cases: values to call a function with, and `check` for its answer.

    `name` is the case id. `inputs` are by name, without inputs that are left out: a tensor, or a list for a variadic
    input or a sequence. `attributes` are plain values, a tensor as an array, a body as a Body. `outputs` are the
    requested outputs. `valid`: whether the standard gives an answer; if not, a function should refuse. `filled`: the
    inputs whose elements are free to change. `types`: those of the signature's letters.
    """

    name: str
    operator: str
    inputs: Mapping[str, Any]
    attributes: Mapping[str, Any]
    outputs: Sequence[str]
    valid: bool
    clauses: Sequence[str]
    captured: Mapping[str, Any] = field(default_factory=dict)
    filled: frozenset[str] = frozenset()
    types: Mapping[str, str] = field(default_factory=dict)
    batch: Batch | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return self.name

    def check(self, got: Any) -> Checked:
        """Return the verdict on a function's answer: a tensor, or a list of the outputs. Raises NotConforming.

        For an invalid case any answer raises: the right thing is to refuse.
        """
        if self.batch is None:
            made = call_of(self)
            return conforming(made, verdict_on(made, dict(zip(self.outputs, self._values(got), strict=False))))
        batch = self.batch
        answer = answer_of(batch.program, self._values(got))
        (verdict,) = judge(batch, Answers.of([answer]))
        size = sum(array.size for array in answer.outputs)
        result = checked_of(self.operator, verdict, size, size)
        if not result.passes:
            lines = "\n".join(f"  {line}" for line in result.detail.splitlines())
            about = "".join(f"\n  clause {clause}" for clause in self.clauses[:3])
            raise NotConforming(result, f"{self.name}: {result.outcome.value}\n{lines}{about}")
        return result

    def _values(self, got: Any) -> list[Any]:
        several = isinstance(got, tuple) or (isinstance(got, list) and len(self.outputs) > 1)
        return [prepared(value) for value in (got if several else [got])]


def inputs(
    operator: str, *, types: Mapping[str, str] = NO_TYPES, seed: int = 0, most: int | None = None
) -> Iterator[OperatorCase]:
    """Yield the suite's cases of `onnx/Conv-11`, in the order of the plan, valid and invalid ones.

    types: only cases with these types of the signature's letters, `{"T": "float32"}`. seed: varies all drawn values.
    most: the number of cases after which to stop. Cases whose operator stands in a larger graph are left out. Raises
    ValueError for an unknown operator, letter or type.
    """
    _, version = version_of(operator)
    letters = free_letters(version)
    for letter, type_ in types.items():
        if letter not in letters:
            known = ", ".join(letters) or "none"
            raise ValueError(f"{operator}: no type letter is called {letter!r}; there is {known}")
        if type_ not in version.signature.types[letter]:
            raise ValueError(
                f"{operator}: {letter} cannot be {type_!r}; it can be {', '.join(version.signature.types[letter])}"
            )
    count = 0
    try:
        for text in planned(library(), Selection(globs=(operator,), seed=seed)):
            own = dict(zip(letters, parse_id(text).types, strict=False))
            if any(own.get(letter) != type_ for letter, type_ in types.items()):
                continue
            (batch,) = cases_of(source(), [text])
            if batch.program.around is not None:
                continue
            if most is not None and count >= most:
                return
            count += 1
            yield operator_case(batch)
    except OpconformError as error:
        raise ValueError(str(error)) from None


def operator_case(batch: Batch) -> OperatorCase:
    """Return a batch of one case as values to call a function with."""
    program, arrays = batch.program, iter(batch.tensors())
    fed = {feed.name: nest(feed.layout, arrays) for feed in program.feeds}
    values = {given.name: fed[given.name] if given.constant is None else given.array() for given in program.given}
    row = source().row(parse_id(batch.id))
    filled = frozenset[str]()
    if not batch.expectation.invalid and draws(row.version, row.id):
        filled = frozenset(
            argument.port.name
            for argument in source().prepared(row).arguments
            if argument.how == "filled" and not argument.constant and isinstance(argument.part, tuple)
        )
    return OperatorCase(
        batch.id,
        str(program.operator),
        dict(_by_port(program, values)),
        {attribute.name: _plain(attribute.value) for attribute in program.attributes},
        tuple(output.name for output in program.answers),
        not batch.expectation.invalid,
        batch.clauses,
        {given.name: values[given.name] for given in program.captured},
        filled,
        dict(zip(free_letters(row.version), row.id.types, strict=False)),
        batch,
    )


def call_of(case: OperatorCase) -> Call:
    """Return a case as a checked call. Raises ValueError if it is invalid."""
    types = {} if case.batch is None else {o.name: o.type for o in case.batch.program.answers}
    return call(
        case.operator,
        case.inputs,
        case.attributes,
        outputs=case.outputs,
        types=case.types,
        answered=types,
        captured=case.captured,
    )


def _by_port(program: Program, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the value of each input that is not left out; a list for a variadic one."""
    _, version = version_of(str(program.operator))
    rest = list(program.inputs)
    for port in version.signature.inputs:
        own, rest = (rest, []) if port.is_variadic else (rest[:1], rest[1:])
        entries = [values[given.name] if given is not None else None for given in own]
        if port.is_variadic:
            yield port.name, entries
        elif entries and (entries[0] is not None or own[0] is not None):
            yield port.name, entries[0]


def _plain(value: AttributeValue) -> Any:
    if isinstance(value, Tensor):
        return value.array()
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value

"""Computes one operator by the formula of another: a call under that operator's names, from this one's facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from ...cases.batch import CheckName
from ...cases.elements import Array
from ...cases.errors import OpconformError
from ...specs.model import Binding
from .graph import Value
from .tape import Call, Facts, Port, Question, Reference

Formula: TypeAlias = Callable[..., Any]
"""The bound formula, for a function that prepares its inputs: `formula(*inputs, **attributes)`, in its own terms."""

_OURS = "="
_NONE: Mapping[str, Any] = MappingProxyType({})


def through(reference: Reference, binding: Binding, by: Reference | None = None) -> Reference:
    """Return the reference that computes a version by another operator's.

    reference: that operator's; by: a function of our call, the bound `Formula`, and our ports, which calls it.
    """

    def computed(c: Call, *ports: Any) -> Any:
        named = dict(zip(c.facts.ports, ports, strict=True))

        def formula(*inputs: Any, **attributes: Any) -> Any:
            call = Bound(c, binding, dict(zip(binding.inputs, inputs, strict=False)), attributes)
            c.graph.asked = call  # for the silences that primitives meet
            try:
                return reference(call, *inputs)
            finally:
                c.graph.asked = c

        if by is not None:
            return by(c, formula, *ports)
        inputs = [None if own is None else named[own] for own in binding.inputs.values()]
        outputs = formula(*_without_end(inputs))
        results = dict(
            zip(binding.outputs.values(), outputs if isinstance(outputs, tuple) else (outputs,), strict=False)
        )
        return tuple(results[name] for name in c.output_types)

    return computed


def _without_end(inputs: Sequence[Any]) -> Sequence[Any]:
    """Return inputs without those at the end that are left out."""
    given = [index for index, value in enumerate(inputs) if value is not None]
    return inputs[: given[-1] + 1] if given else ()


class Bound(Call):
    """A call as the formula of another operator sees it; what it asks for and states reaches the real call."""

    def __init__(
        self, call: Call, binding: Binding, inputs: Mapping[str, Any], attributes: Mapping[str, Any] = _NONE
    ) -> None:
        self._call, self._binding, self._own = call, binding, attributes
        outputs = {name: call.output_types.get(own) if own else None for name, own in binding.outputs.items()}
        ports = {name: _port(value) for name, value in inputs.items()}
        facts = Facts(binding.operator, binding.version, ports, outputs, around=call.facts.around)
        super().__init__(replace(facts, structures=_NONE), call.graph, {}, {}, {})
        self.captured = call.captured

    def _ask(self, question: Question) -> Any:
        kind, name = question
        match kind:
            case "attribute":
                return self._attribute(name)
            case "given":
                return self._attribute(name) is not None
            case "clause":
                return self._clause(name)
            case "silence":
                bound = self._binding.silences.get(name)
                if bound is None or not bound.startswith(_OURS):
                    return None if bound is None else (bound,)
                return self._call._ask(("silence", bound.removeprefix(_OURS)))
        return self.facts.answer(question)

    def _attribute(self, name: str) -> Any:
        if name in self._own:
            return self._own[name]
        bound = self._binding.attributes.get(name)
        if bound is None:
            return None
        given = None if bound.source is None else self._call.attr(bound.source)
        try:
            return bound.value(given)
        except KeyError:
            operator = self._call.facts.operator
            raise OpconformError(f"{operator}: `as` has no word for {bound.source}={given!r}") from None

    def _clause(self, name: str) -> bool:
        binding = self._binding
        if name in binding.unbound:
            words = f"the formula of {binding.operator}-{binding.version} asks for its clause {name!r}"
            raise OpconformError(f"{self._call.facts.operator}: {words}; bind it under `as`, or say that it holds")
        own = binding.clauses.get(name, "")
        return own is None or (bool(own) and own in self._call.clauses)

    def require(self, clause: str, condition: bool | Value) -> None:
        """State a condition of our clause. Raises OpconformError if it is false and ours holds by construction."""
        own = self._binding.clauses.get(clause) if self._clause(clause) else None
        if own is not None:
            self._call.require(own, condition)
        elif not isinstance(condition, Value) and not condition:
            operator = self._call.facts.operator
            raise OpconformError(f"{operator}: {clause} of {self._binding.operator} does not hold, though `as` says so")

    def _silence(self, silence: str) -> str | None:
        """Return our silence for one of theirs, None if it is settled. Raises OpconformError if there is none."""
        bound = self._binding.silences.get(silence)
        if bound is None:
            raise OpconformError(f"{self._call.facts.operator}: `as` neither binds nor settles {silence!r}")
        return bound.removeprefix(_OURS) if bound.startswith(_OURS) else None

    def open(self, silence: str, where: Value | None = None) -> str:
        """Return the option that is settled, or the chosen one of our silence."""
        if silence == "flush":
            return self._call.open(silence, where)
        own = self._silence(silence)
        return self._binding.silences[silence] if own is None else self._call.open(own, where)

    def deferred(self, silence: str, where: Callable[[], Value] | None = None) -> tuple[str, ...]:
        """Return the option that is settled, or the options of our silence, which theirs may lack."""
        if silence not in self._binding.silences:
            return self._call.deferred(silence, where)
        own = self._silence(silence)
        return (self._binding.silences[silence],) if own is None else self._call.deferred(own, where)

    @property
    def frees_all(self) -> bool:
        """Whether an option of the real call leaves every element of every output open."""
        return self._call.frees_all

    def known(self, port: str | Value) -> Array:
        """Return the values of our port. Raises Asks if they are not known yet."""
        own = self._binding.inputs[port] if isinstance(port, str) else port
        assert own is not None
        return self._call.known(own)

    def check(
        self, name: CheckName, outputs: Sequence[str] = (), arrays: Sequence[Value] = (), **settings: float | str
    ) -> None:
        """Add a test of whole outputs, under our names."""
        ours = [own for name_ in outputs if (own := self._binding.outputs[name_]) is not None]
        self._call.check(name, ours, arrays, **settings)


def _port(value: Any) -> Port | tuple[Port, ...] | None:
    if value is None:
        return None
    if isinstance(value, Value):
        return Port(value.type, value.shape)
    return tuple(Port(tensor.type, tensor.shape) for tensor in value)

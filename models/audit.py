"""Audits a model: each node is judged alone, on the tensors that the backend itself produced around it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from ..api.call import Call, call, library
from ..api.checking import Checked, type_text, verdict_on
from ..cases.elements import Array, type_of
from ..cases.errors import OpconformError
from ..cases.program import nested_all
from ..runners.execution.host import Hosts, OurFailure, Request
from ..runners.judging.answers import Answer, Refusal
from ..runners.pool import Limits, Loss
from ..runners.registry import BackendSpec
from .reading import ModelNode, ReadModel, chunks

Status: TypeAlias = Literal["right", "wrong", "not-judged", "not-covered"]

TIME_IS_OVER = "the time is over"
_DETAIL = 2_000  # characters of a node's text
_WITH_BODIES = ("If", "Loop")


class NodeVerdict(msgspec.Struct, frozen=True):
    """The verdict on one node: a line of `nodes.jsonl`.

    `share`: the largest error as a share of its bound. `reason`: why it was not judged. `sample`: which elements were
    judged, empty for all. `inputs` and `outputs` are types and shapes in words.
    """

    path: str
    operator: str
    status: Status
    outcome: str = ""
    share: float | None = None
    detail: str = ""
    reason: str = ""
    sample: str = ""
    behaviour: Mapping[str, Sequence[str]] = {}
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class AuditOptions:
    """How a model is audited.

    `most_work`: the elements of a node's computation above which it is judged on a sample. `most_bytes`: of the values
    that one run of the backend returns. `seconds`: the time after which the rest is not judged, None for no limit.
    """

    most_work: int
    most_bytes: int
    seconds: float | None
    run_seconds: float
    memory_bytes: int | None
    require: tuple[str, ...]
    declared: str | None
    seed: int


@dataclass
class ModelAudit:
    """An audit: the backend's version, the verdicts in the order of the nodes, and what else is to be said."""

    backend: str
    version: str
    nodes: list[tuple[ModelNode, NodeVerdict]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def of(self, *statuses: Status) -> list[tuple[ModelNode, NodeVerdict]]:
        """Return the nodes with one of these statuses, in order."""
        return [pair for pair in self.nodes if pair[1].status in statuses]


@dataclass(frozen=True)
class JudgedNode:
    """A node with its verdict, and its call for scripts: None if it could not be called."""

    node: ModelNode
    verdict: NodeVerdict
    made: Call | None


def digest_of(model: ReadModel, arrays: Mapping[str, Array], about: str) -> str:
    """Return the digest of what an audit depends on: a later one with the same digest may go on from it."""
    digest = hashlib.sha256(model.proto.SerializeToString(deterministic=True))
    for name in sorted(arrays):
        digest.update(f"{name} {type_of(arrays[name])} {arrays[name].shape}".encode())
        held = arrays[name]
        digest.update(repr(held.tolist()).encode() if held.dtype.hasobject else np.ascontiguousarray(held).tobytes())
    digest.update(about.encode())
    return digest.hexdigest()


def audited(
    model: ReadModel,
    arrays: Mapping[str, Array],
    backend: BackendSpec,
    options: AuditOptions,
    *,
    known: Mapping[str, NodeVerdict],
    on_judged: Callable[[JudgedNode], None],
) -> ModelAudit:
    """Audit a model. `known` verdicts, by a node's path, are not made again; `on_judged` gets each new one.

    Raises OpconformError if the backend does not run the model, with its own words, and WorkerStartError if it cannot
    be opened.
    """
    limits = Limits(options.run_seconds, options.run_seconds, memory_bytes=options.memory_bytes)
    with Hosts(backend, limits) as hosts:
        audit = ModelAudit(backend.name, hosts.about.version)
        auditor = _Auditor(hosts, options, known, on_judged, audit)
        auditor.audit(model, arrays)
        auditor.compare_unchanged(model, arrays)
    return audit


@dataclass
class _Auditor:
    hosts: Hosts
    options: AuditOptions
    known: Mapping[str, NodeVerdict]
    on_judged: Callable[[JudgedNode], None]
    audit_: ModelAudit
    _began: float = field(default_factory=time.monotonic)
    _finals: dict[str, Any] = field(default_factory=dict)

    def audit(self, model: ReadModel, arrays: Mapping[str, Array]) -> None:
        """Judge all nodes of a model, then those of the bodies that ran."""
        nodes = model.nodes(library())
        given: dict[str, Any] = {**model.constants, **arrays}
        finals = {value.name for value in model.proto.graph.output}
        for group in chunks(nodes, model.sizes(arrays), self.options.most_bytes):
            self._group(model, group, given, arrays, finals)

    def _group(
        self,
        model: ReadModel,
        group: Sequence[ModelNode],
        given: Mapping[str, Any],
        arrays: Mapping[str, Array],
        finals: Set[str],
    ) -> None:
        """Judge nodes that one run gives the values of; if the process is lost on it, judge them in smaller groups."""
        if all(node.path in self.known and node.op_type not in _WITH_BODIES for node in group):
            self.audit_.nodes += [(node, self.known[node.path]) for node in group]
            return
        try:
            values = {**given, **self._run(model, _wanted(group, given), arrays)}
        except _ProcessLost as lost:
            half = len(group) // 2
            if half:
                self._group(model, group[:half], given, arrays, finals)
                self._group(model, group[half:], given, arrays, finals)
            else:
                self._take(_unjudged(group[0], given, "not-judged", str(lost)))
            return
        if not model.where:
            self._finals |= {name: value for name, value in values.items() if name in finals}
        for node in group:
            self._node(model, node, values)

    def _take(self, judged: JudgedNode) -> None:
        self.audit_.nodes.append((judged.node, judged.verdict))
        self.on_judged(judged)

    def _node(self, model: ReadModel, node: ModelNode, values: Mapping[str, Any]) -> None:
        if node.path in self.known:
            self.audit_.nodes.append((node, self.known[node.path]))
        else:
            self._take(self._judged(node, values))
        for attribute, inputs in _bodies(node, values):
            body = model.body(node, attribute, values, inputs)
            if body is None:
                self.audit_.notes.append(f"{node.path}: its body takes values that are no tensors, and is not entered")
                continue
            try:
                self.audit(*body)
            except OpconformError as error:
                self.audit_.notes.append(f"{node.path}: its body does not run as a model of its own: {error}")

    def _run(self, model: ReadModel, names: Sequence[str], arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Return some values of a model, as the backend computes them."""
        program, fed = model.with_outputs(names, arrays)
        (number,) = self.hosts.ask([Request(0, program, fed, fresh="own")])
        answer = self.hosts.reply(number).answer
        if isinstance(answer, Answer):
            values = nested_all(answer.structure, answer.outputs) if answer.structure else list(answer.outputs)
            return dict(zip(names, values, strict=False))
        if isinstance(answer, Loss):
            raise _ProcessLost(
                f"the backend's process was lost with its values as outputs: {answer.kind}, {answer.exit}"
            )
        words = answer.words if isinstance(answer, (Refusal, OurFailure)) else str(answer)
        raise OpconformError(f"{self.audit_.backend} does not run the model: {words}")

    def _judged(self, node: ModelNode, values: Mapping[str, Any]) -> JudgedNode:
        began = time.monotonic()
        if not node.operator:
            return _unjudged(node, values, "not-covered", "no spec file")
        if self.options.seconds is not None and began - self._began > self.options.seconds:
            return _unjudged(node, values, "not-judged", TIME_IS_OVER)
        made: Call | None = None
        checked: Checked | None = None
        reason, options = node.unread, self.options
        try:
            if not reason:
                made, answered = node_call(node, values)
                checked = verdict_on(
                    made,
                    answered,
                    require=options.require,
                    declared=options.declared,
                    most_work=options.most_work,
                    seed=options.seed,
                )
        except (ValueError, OpconformError) as error:
            reason = str(error).removeprefix(f"{node.operator}: ")
        except MemoryError:
            reason = "too large for the memory"
        except Exception as error:  # a defect of ours in one node only affects that node
            reason = f"failed on our side: {type(error).__name__}: {error}"
        if reason and node.op_type in _WITH_BODIES and not node.domain:
            reason = f"{reason} (the nodes of the body that ran are judged by themselves)"
        seconds = round(time.monotonic() - began, 3)
        verdict = replace(_verdict(node, values, checked, reason), seconds=seconds)
        return JudgedNode(node, verdict, made)

    def compare_unchanged(self, model: ReadModel, arrays: Mapping[str, Array]) -> None:
        """Say whether the model as it is gives the outputs that it gave with every value as an output."""
        names = [value.name for value in model.proto.graph.output if value.name in self._finals]
        if not names:
            return
        try:
            unchanged = self._run(model, names, arrays)
        except OpconformError as error:
            self.audit_.notes.append(f"without more outputs the model does not run: {error}")
            return
        for name in names:
            first, second = self._finals[name], unchanged.get(name)
            if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
                continue
            if not np.array_equal(first, second, equal_nan=first.dtype.kind == "f"):
                self.audit_.notes.append(
                    f"as it is, the model gives another {name!r} than with every value as an output "
                    f"({_distance(first, second)}): the backend fuses or reorders nodes, which this audit judges apart"
                )


class _ProcessLost(OpconformError):  # noqa: N818 - named for what happened
    """The backend's process was lost on a run, which may return too much."""


def _unjudged(node: ModelNode, values: Mapping[str, Any], status: Status, reason: str) -> JudgedNode:
    return JudgedNode(node, replace(_verdict(node, values, None, reason), status=status), None)


def _verdict(node: ModelNode, values: Mapping[str, Any], checked: Checked | None, reason: str) -> NodeVerdict:
    """Return the verdict on a node; without the one on its call it is not judged, for the `reason`."""
    inputs, outputs = (
        tuple(_described(values[name]) if name in values else "" for name in names)
        for names in (node.inputs, node.outputs)
    )
    unjudged = NodeVerdict(node.path, node.version, "not-judged", inputs=inputs, outputs=outputs)
    if checked is None:
        return replace(unjudged, reason=reason[:_DETAIL])
    return replace(
        unjudged,
        status="right" if checked.passes else "wrong",
        outcome=checked.outcome.value,
        share=None if checked.share is None or not np.isfinite(checked.share) else float(checked.share),
        detail=checked.detail[:_DETAIL],
        sample=checked.sample,
        behaviour=checked.behaviour,
    )


def _wanted(nodes: Sequence[ModelNode], given: Mapping[str, Any]) -> list[str]:
    """Return the values around some nodes that a run has to return."""
    names = dict.fromkeys(name for node in nodes for name in (*node.inputs, *node.outer, *node.outputs) if name)
    return [name for name in names if name not in given]


def node_call(node: ModelNode, values: Mapping[str, Any]) -> tuple[Call, dict[str, Any]]:
    """Return a node as a checked call, and its outputs by port. Raises ValueError."""
    spec, key = library().operator_version(node.operator)
    signature = spec.version(key).signature
    rest = list(node.inputs)
    inputs: dict[str, Any] = {}
    for port in signature.inputs:
        own, rest = (rest, []) if port.is_variadic else (rest[:1], rest[1:])
        present = [values[name] for name in own if name]
        if port.is_variadic:
            inputs[port.name] = present
        elif present:
            inputs[port.name] = present[0]
    if any(rest):
        raise ValueError(f"{len(node.inputs)} inputs; expected at most {len(signature.inputs)}")
    names, ports = [], signature.outputs
    for index, _ in enumerate(node.outputs):
        port = ports[min(index, len(ports) - 1)]
        names.append(f"{port.name}_{index - len(ports) + 1}" if port.is_variadic else port.name)
    answered = {own: values[name] for own, name in zip(names, node.outputs, strict=True) if name}
    return call(
        node.operator,
        inputs,
        {attribute.name: attribute.value for attribute in node.attributes},
        outputs=list(answered),
        answered={name: type_text(value) for name, value in answered.items()},
        captured={name: values[name] for name in node.outer if name in values},
    ), answered


def _bodies(node: ModelNode, values: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the bodies of a node that ran, each with its inputs: the branch taken, the first turn of a loop."""
    given = [values.get(name) if name else None for name in node.inputs]
    if node.domain or not given:
        return
    if node.op_type == "If":
        yield ("then_branch" if np.asarray(given[0]).reshape(-1)[:1].all() else "else_branch"), []
    elif node.op_type == "Loop":
        turns, goes_on = given[0], given[1] if len(given) > 1 else None
        if (turns is None or np.asarray(turns).reshape(-1)[0] > 0) and (goes_on is None or np.asarray(goes_on).all()):
            yield "body", [np.array(0, np.int64), np.array(True), *given[2:]]


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{type_of(value)} {'x'.join(map(str, value.shape)) or 'scalar'}"
    return "a sequence" if isinstance(value, list) else "nothing" if value is None else type(value).__name__


def _distance(first: Array, second: Array) -> str:
    if first.shape != second.shape or first.dtype.kind not in "fiu":
        return "not alike"
    with np.errstate(all="ignore"):
        apart = first.astype(np.float64) - second.astype(np.float64)
        most, size = (float(np.nanmax(np.abs(array), initial=0.0)) for array in (apart, first.astype(np.float64)))
    return f"by at most {most:.3g}, of numbers up to {size:.3g}"

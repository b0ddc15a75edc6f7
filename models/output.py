"""The folder of an audit: `nodes.jsonl` to go on from, `index.html`, and a script for each node that is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import msgspec
import numpy as np

from ..cases.batch import Batch
from ..cases.elements import Array
from ..cases.errors import OpconformError
from ..cases.program import Input, Output, Program
from ..reports.script import script_text
from ..reports.text import counted, first_line, write_text
from .audit import TIME_IS_OVER, JudgedNode, ModelAudit, NodeVerdict

NODES, INDEX = "nodes.jsonl", "index.html"
MOST_SCRIPTS = 20
_SHOWN = 5
_LONGEST_SCRIPT = 4096  # elements of a node's inputs and outputs; larger ones are kept in a file beside the script
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")

_WITH_FILE = '''"""{title}"""
import numpy as np
from onnxruntime import InferenceSession

from opconform import check

kept = np.load("{name}.npz")
session = InferenceSession("{name}.onnx", providers=["CPUExecutionProvider"])
fed = {{one.name: kept[one.name] for one in session.get_inputs()}}
got = dict(zip({outputs!r}, session.run(None, fed)))
inputs = {inputs}
check({operator!r}, inputs, {attributes!r}, got)
'''


@dataclass
class AuditFolder:
    """A folder that an audit is written to as it goes on; `known` has the verdicts that it goes on from."""

    path: Path
    known: Mapping[str, NodeVerdict]
    lines: TextIO
    scripts: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, digest: str, *, resume: bool) -> AuditFolder:
        """Make the folder, or go on in one. Raises OpconformError if it has another audit, or cannot be written."""
        file = path / NODES
        try:
            path.mkdir(parents=True, exist_ok=True)
            if file.exists():
                if not resume:
                    raise OpconformError(f"{path}: has an audit already; --resume goes on with it")
                return cls(path, dict(_read(file, digest)), file.open("a", encoding="utf-8"))
            folder = cls(path, {}, file.open("w", encoding="utf-8"))
            folder._line({"digest": digest})
        except OSError as error:
            raise OpconformError(f"{path}: cannot be written: {error.strerror}") from None
        return folder

    def add(self, judged: JudgedNode) -> None:
        """Write a verdict, and a script if the node is wrong."""
        self._line(msgspec.to_builtins(judged.verdict))
        if judged.verdict.status == "wrong" and len(self.scripts) < MOST_SCRIPTS:
            self.scripts.append(write_script(judged, self.path))

    def _line(self, content: Any) -> None:
        self.lines.write(json.dumps(content) + "\n")
        self.lines.flush()

    def finish(self, page: str) -> None:
        """Write the page."""
        self.lines.close()
        write_text(self.path / INDEX, page)


def _read(file: Path, digest: str) -> Iterator[tuple[str, NodeVerdict]]:
    first, *rest = file.read_text(encoding="utf-8").splitlines() or [""]
    if _digest(first) != digest:
        raise OpconformError(f"{file.parent}: has the audit of another model, input, backend or release")
    for line in rest:
        try:
            verdict = msgspec.json.decode(line, type=NodeVerdict)
        except (msgspec.DecodeError, msgspec.ValidationError):
            continue  # the torn end of an audit that was killed
        if verdict.reason != TIME_IS_OVER:
            yield verdict.path, verdict


def _digest(line: str) -> str | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry.get("digest") if isinstance(entry, dict) else None


def write_script(judged: JudgedNode, folder: Path) -> str:
    """Write the script of one node, and its model and tensors beside it if they are large; return its name.

    The short script needs onnxruntime and NumPy alone, the other one this package as well.
    """
    name = f"node-{judged.node.index}-{_UNSAFE.sub('_', judged.verdict.path)[:60]}"
    made = judged.made
    assert made is not None
    program, constants = node_program(judged)
    size = sum(array.size for array in made.arrays)
    if size <= _LONGEST_SCRIPT and not judged.verdict.sample:
        expectation = made.recording.expectation([array[np.newaxis] for array in made.arrays], None, 1)
        batch = Batch.of_case(f"{judged.node.operator} ({judged.verdict.path})", program, constants, expectation)
        try:
            write_text(folder / f"{name}.py", script_text(batch))
        except (OpconformError, ValueError, TypeError, KeyError):  # no short form: the other one always works
            pass
        else:
            return f"{name}.py"
    from ..cases.onnx_model import onnx_bytes  # noqa: PLC0415 - importing onnx takes a fifth of a second

    (folder / f"{name}.onnx").write_bytes(onnx_bytes(program))
    named = {feed.name: array for feed, array in zip(program.feeds, constants, strict=True)}
    np.savez(folder / f"{name}.npz", **named)  # type: ignore[arg-type]  # arrays by name
    text = _WITH_FILE.format(
        title=f"{judged.verdict.path}: {first_line(judged.verdict.detail)}".replace('"""', "'''"),
        name=name,
        outputs=[output for output, type_ in made.outputs.items() if type_ is not None],
        inputs=_inputs_text(judged),
        operator=judged.node.operator,
        attributes={attribute.name: attribute.value for attribute in made.attributes},
    )
    write_text(folder / f"{name}.py", text)
    return f"{name}.py"


def node_program(judged: JudgedNode) -> tuple[Program, list[Array]]:
    """Return a node as a program of its own, and its inputs."""
    made = judged.made
    assert made is not None
    inputs: list[Input | None] = []
    arrays: list[Array] = []
    for name, several in made.ports.items():
        for index, (type_, tensors, structure) in enumerate(several or ()):
            own = f"{name}_{index}" if len(several or ()) > 1 else name
            plain = structure.kind == "tensor"
            shape = tensors[0].shape if plain else ()
            inputs.append(Input(own, type_, shape, structure=None if plain else structure))
            arrays += tensors
        if several is None:
            inputs.append(None)
    while inputs and inputs[-1] is None:
        inputs.pop()
    outputs = tuple(
        None if type_ is None else Output(name if name not in made.ports else f"{name}_out", type_, None)
        for name, type_ in made.outputs.items()
    )
    operator = made.version.operator
    opset = operator.version if isinstance(operator.version, int) else None
    return Program(operator, made.attributes, tuple(inputs), outputs, opset), arrays


def _inputs_text(judged: JudgedNode) -> str:
    parts = []
    assert judged.made is not None
    variadic = {port.name for port in judged.made.version.signature.inputs if port.is_variadic}
    for name, several in judged.made.ports.items():
        if several is None:
            continue
        names = [f"{name}_{index}" if len(several) > 1 else name for index in range(len(several))]
        kept = ", ".join(f"kept[{key!r}]" for key in names)
        parts.append(f"{name!r}: [{kept}]" if name in variadic else f"{name!r}: {kept}")
    return "{" + ", ".join(parts) + "}"


def summary(audit: ModelAudit) -> Iterator[str]:
    """Yield an audit in a few lines: the first wrong node, the worst errors, what was not judged and why."""
    right, wrong = audit.of("right"), audit.of("wrong")
    yield (
        f"{counted(len(audit.nodes), 'node')} on {audit.backend} {audit.version}: {len(right)} right, "
        f"{len(wrong)} wrong, {len(audit.of('not-judged'))} not judged, "
        f"{len(audit.of('not-covered'))} without a spec file"
    )
    if wrong:
        _, first = wrong[0]
        yield f"first wrong node: {first.path} ({first.operator}, {', '.join(first.inputs)}): {first.outcome}"
        yield from (f"  {line}" for line in first.detail.splitlines())
        for _, verdict in wrong[1 : 1 + _SHOWN]:
            yield f"also wrong: {verdict.path} ({verdict.operator}): {verdict.outcome}: {first_line(verdict.detail)}"
        if len(wrong) > 1 + _SHOWN:
            yield f"and {counted(len(wrong) - 1 - _SHOWN, 'other node')}"
    ranked = sorted(
        (verdict for _, verdict in right if verdict.share is not None), key=lambda verdict: -(verdict.share or 0.0)
    )
    if ranked:
        shares = ", ".join(f"{verdict.path} {verdict.share:.2g}" for verdict in ranked[:_SHOWN])
        yield f"largest errors of right nodes, as shares of their bounds: {shares}"
    sampled = [verdict for _, verdict in (*right, *wrong) if verdict.sample]
    if sampled:
        yield f"judged on a sample of elements: {counted(len(sampled), 'node')}"
    reasons: dict[str, list[str]] = {}
    for _, verdict in audit.of("not-judged", "not-covered"):
        why = verdict.reason if verdict.status == "not-judged" else f"no spec file for {verdict.operator}"
        reasons.setdefault(why, []).append(verdict.path)
    for why, paths in reasons.items():
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        yield f"not judged: {', '.join(paths[:3])}{more}: {first_line(why)}"
    yield from audit.notes


def audit_json(audit: ModelAudit) -> str:
    """Return an audit as JSON."""
    nodes = [msgspec.to_builtins(verdict) for _, verdict in audit.nodes]
    return json.dumps({"backend": audit.backend, "version": audit.version, "notes": audit.notes, "nodes": nodes})

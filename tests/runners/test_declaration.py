from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from opconform.cases.elements import DeclaredType
from opconform.cases.errors import OpconformError
from opconform.runners.judging.terms import load_declaration

WHOLE = """
float32: {compute: tf32, accumulator: float32, flush: [input, output]}
float64: {compute: float32}
threads: 8
deterministic: true
"""


def test_a_declaration_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "device.yaml"
    file.write_text(WHOLE)
    found = load_declaration(file)
    assert found.types == {
        "float32": DeclaredType("tf32", "float32", frozenset({"input", "output"})),
        "float64": DeclaredType("float32"),
    }
    assert (found.threads, found.deterministic) == (8, True)
    assert found.digest == hashlib.sha256(WHOLE.encode()).hexdigest()


def test_what_is_not_declared_is_usual(tmp_path: Path) -> None:
    file = tmp_path / "device.yaml"
    file.write_text("bfloat16: {flush: [output]}\n")
    found = load_declaration(file)
    assert found.types == {"bfloat16": DeclaredType(flush=frozenset({"output"}))}
    assert (found.threads, found.deterministic) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flot32: {compute: tf32}", ":1:1: unknown key 'flot32'; did you mean 'float32'?"),
        ("int32: {compute: tf32}", ":1:18: expected int8, int16, int32, uint8, uint16 or uint32; read 'tf32'"),
        ("bool: {compute: tf32}", ":1:1: unknown key 'bool'; known here: float16, bfloat16, float32,"),
        ("float32: {compute: tf23}", ":1:20: expected float16, bfloat16, tf32, float32 or float64; read"),
        ("float32: {compute: tf23}", "did you mean 'tf32'?"),
        ("float32: {compute: [tf32]}", ":1:20: expected float16, bfloat16, tf32, float32 or float64; read a list"),
        ("float32: {acumulator: tf32}", ":1:11: unknown key 'acumulator'; did you mean 'accumulator'?"),
        ("float32: {flush: input}", ":1:18: expected a list; read 'input'"),
        ("float32: {flush: [inputs]}", ":1:19: expected input or output; read 'inputs'; did you mean"),
        ("float32: {flush: [input, input]}", ":1:18: 'input' appears twice"),
        ("float32: tf32", ":1:10: expected a mapping of compute, accumulator, flush; read 'tf32'"),
        ("threads: 0", ":1:10: expected 1 or more; read 0"),
        ("threads: true", "expected a whole number; read true"),
        ("deterministic: maybe", "expected true or false; read 'maybe'"),
        ("[float32]", ":1:1: expected a mapping"),
        ("3: {}", ":1:1: unknown key 3"),
    ],
)
def test_a_mistake_is_told_once_and_at_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "device.yaml"
    file.write_text(f"{text}\n")
    with pytest.raises(OpconformError) as raised:
        load_declaration(file)
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1

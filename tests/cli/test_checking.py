"""`opconform check-runner`: what a program does wrong of the process protocol is found, and told with a hint."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from fakes.sampled import slow

from opconform.cli import main

TESTS = Path(__file__).parents[1]


def checked(backend: str, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["check-runner", backend, *options])
    return done.exit_code, done.output


def lying(fault: str, where: str) -> str:
    return f"cmd:{shlex.join([sys.executable, '-S', '-E', str(TESTS / 'fakes' / 'lying_program.py'), fault, where])}"


def wrong(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("wrong ")]


@pytest.mark.slow
def test_a_right_program_has_no_mistakes() -> None:
    client = TESTS.parent / "examples" / "process" / "client.py"
    code, output = checked(f"cmd:{shlex.join([sys.executable, str(client)])}")
    assert (code, wrong(output)) == (0, []), output
    lines = output.splitlines()
    assert lines[0].startswith("numpy-client ")
    assert lines[1:4] == ["ok       hello", "ok       an operator that does not exist", "ok       an easy operator"]
    assert lines[4] == "ok       onnx/Abs-13 of 2x3"
    assert lines[-1] == "no mistakes found"
    assert lines[-3] == "skipped  text: unsupported: it does not claim onnx/Identity-13"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "where", "step", "problem", "hint"),
    [
        (
            "no-unsupported",
            "",
            "an operator that does not exist",
            "'error' to NoSuchOperator",
            "answer `unsupported` to",
        ),
        slow("takes-all", "", "an operator that does not exist", "it ran NoSuchOperator", "answer `unsupported` to"),
        ("takes-all", "", "an invalid program", "Abs of 0 inputs, as if it were valid", "answer `rejected` to"),
        ("big-endian", "", "onnx/Abs-13 of 2x3", "element [0, 0] is", "little-endian"),
        (
            "extra-output",
            "every-run",
            "onnx/Abs-13 of a scalar",
            "2 outputs; expected 1",
            "the outputs that the program",
        ),
        ("other-type", "every-run", "onnx/Abs-13 of 2x3", "int32 [2, 3]; expected float32 [2, 3]", "`program.outputs`"),
        slow(
            "other-shape", "every-run", "onnx/Abs-13 of a scalar", "[1]; expected float32 []", "the type and the shape"
        ),
        ("short", "every-run", "onnx/Abs-13 of 2x3", "21 bytes; that is not the size of shape [2, 3]", "in C order"),
        slow(
            "unknown-type",
            "every-run",
            "onnx/Abs-13 of 2x3",
            "'float33' is not an element type",
            "in lower case: float32",
        ),
        (
            "float32-always",
            "every-run",
            "onnx/Abs-13 of float64",
            "answered float32 [2, 3]; expected float64",
            "`program.outputs` has",
        ),
        slow(
            "types-fail",
            "",
            "onnx/Abs-13 of float16",
            "'error' to float16; expected 'unsupported'",
            "answer `unsupported` to",
        ),
        slow(
            "rejects-types", "", "onnx/Abs-13 of float64", "'rejected' to float64; expected", "answer `unsupported` to"
        ),
        slow("no-output", "every-run", "onnx/Abs-13 of 2x3", "0 outputs; expected 1", "the outputs that the program"),
        ("claims", "hello", "hello", "it claims onnx/Abs for 'float33'", "in lower case: float32"),
        slow("claims-standard", "hello", "hello", "claims 'Abs'; expected a name such as onnx/Abs", "`versions` has"),
        slow("claims-name", "hello", "hello", "; did you mean 'Abs'?", "`versions` has"),
        ("claims-version", "hello", "hello", "version 14 of onnx/Abs, which has 1, 6, 13", "not the opset"),
        ("file-cut", "every-run", "onnx/Abs-13 of 2x3", "its file ends after 23 bytes", "before the answer"),
        slow(
            "file-negative", "every-run", "onnx/Abs-13 of 2x3", "content.offset", "`offset` and `length` are in bytes"
        ),
        ("no-base64", "every-run", "onnx/Abs-13 of 2x3", "Invalid base64", "in C order"),
        slow("list-of-numbers", "every-run", "onnx/Abs-13 of 2x3", "Expected `str`, got `float`", "in C order"),
        ("no-id", "hello", "hello", "missing required field `id`", "copy the question's `id`"),
        slow("id", "every-run", "onnx/Abs-13 of 2x3", "it answered question", "copy the question's `id`"),
        ("chatter", "every-run", "onnx/Abs-13 of 2x3", "loading weights", ""),
        slow("late", "every-run", "onnx/Abs-13 of 2x3", "'done\\n'", "text for people goes to stderr"),
        slow("twice", "prepare", "an operator that does not exist", "more than one line", "a question has one answer"),
        slow(
            "exit", "every-run", "onnx/Abs-13 of 2x3", "it ended with exit code 3", "what it wrote to stderr says why"
        ),
        slow("silent", "every-run", "onnx/Abs-13 of 2x3", "no answer within 0.5 s", "flush stdout"),
        ("stays", "", "the end of stdin", "it still ran one second after", "end when stdin ends"),
        (
            "error",
            "every-run",
            "onnx/Abs-13 of 2x3",
            "'error' to a valid question: out of order",
            "`error` is a failure",
        ),
        ("no-json", "hello", "hello", "JSON is malformed", "goes to stderr"),
        ("unknown-key", "hello", "hello", "unknown field `ouputs`", "docs/process-protocol.md"),
        ("silent", "hello", "hello", "no answer within 0.5 s", "flush stdout"),
    ],
)
def test_each_mistake_is_found_where_it_is_made_and_has_a_hint(fault, where, step, problem, hint) -> None:
    code, output = checked(lying(fault, where), "--timeout", "0.5" if fault == "silent" else "5")
    assert code == 1
    (found,) = [line for line in wrong(output) if line.startswith(f"wrong    {step}: ")]
    assert problem in found
    assert hint in output.splitlines()[output.splitlines().index(found) + 1]
    assert f"{len(wrong(output))} mistake" in output.splitlines()[-1]
    if where == "":
        assert "ok       hello" in output


@pytest.mark.parametrize("command", ["true", "./no-such-program", lying("exit", "hello")[4:]])
def test_a_program_that_cannot_start_exits_2(command: str) -> None:
    code, output = checked(f"cmd:{command}")
    assert code == 2
    assert wrong(output) == []


@pytest.mark.parametrize("where", ["prepare", "every-run"])
def test_a_program_without_an_easy_operator_is_told_what_was_left_out(where: str) -> None:
    code, output = checked(lying("unsupported", where))
    assert code == 0, output
    assert "skipped  an easy operator: unsupported: no easy operator such as Abs" in output

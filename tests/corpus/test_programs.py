"""Programs as JSON: every structure, attribute and body comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.programs import STRUCTURED
from jsonschema import Draft202012Validator

import opconform.cases
from opconform.cases.corpus.descriptor import constants, program_from, program_json
from opconform.cases.corpus.manifest import program_folder
from opconform.cases.elements import content
from opconform.cases.program import Program

SCHEMA = json.loads((Path(opconform.cases.__file__).parent / "schemas" / "case.schema.json").read_text())


def read(program: Program, told: Any) -> Program:
    held = constants(program)
    return program_from(told, lambda name, type_, shape: held[name])


@pytest.mark.parametrize("kind", STRUCTURED)
def test_a_program_is_read_as_it_was_written(kind: str) -> None:
    program = STRUCTURED[kind][0]
    told = json.loads(json.dumps(program_json(program), allow_nan=False))
    assert read(program, told) == program
    assert read(program, told).key == program.key
    part = {"$schema": SCHEMA["$schema"], "$ref": "#/$defs/program", "$defs": SCHEMA["$defs"]}
    Draft202012Validator(part).validate(told)


def test_constants_are_named_in_order_those_that_bodies_read_included() -> None:
    program = STRUCTURED["branch"][0]
    assert [content(x) for x in constants(program).values()] == [program.captured[1].constant]
    assert program_json(program)["captured"][1]["constant"] == "constant_0"


def test_every_program_has_a_folder_of_its_own() -> None:
    names = [program_folder(program) for program, *_ in STRUCTURED.values()]
    assert len({name.lower() for name in names}) == len({program.key for program, *_ in STRUCTURED.values()})
    assert all(name.replace("-", "").replace("_", "").isalnum() and name.isascii() for name in names)


@pytest.mark.parametrize(
    "change",
    [
        {"attributes": [{"name": "a", "kind": "tensor", "value": {"type": "float32", "dims": [2], "content": "AAAA"}}]},
        {"attributes": [{"name": "a", "kind": "tensor", "value": {"type": "none", "dims": [], "content": ""}}]},
        {"attributes": [{"name": "a", "kind": "odd", "value": 1}]},
        {"attributes": [{"name": "a", "kind": "int", "value": {}}]},
        {"inputs": [{"name": "s", "type": "seq(float32)", "dims": [], "constant": None}]},
        {"inputs": [{"name": "s", "type": "float", "dims": [], "constant": None}]},
        {"outputs": [{"name": "s", "type": "seq(", "rank": None}]},
    ],
)
def test_what_is_no_program_is_refused(change: dict[str, Any]) -> None:
    program = STRUCTURED["sequence"][0]
    with pytest.raises((KeyError, TypeError, ValueError)):
        read(program, {**program_json(program), **change})

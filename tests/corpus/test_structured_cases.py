"""Cases with structure in a corpus: written and read in both formats, and checked by their schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.programs import STRUCTURED, case_of
from jsonschema import Draft202012Validator

import opconform.cases
from opconform.cases.batch import Batch
from opconform.cases.corpus.descriptor import (
    CorpusCase,
    case_from,
    described,
    other_tensors,
    read_values,
    tensors,
    value_files,
)
from opconform.cases.corpus.files import CorpusError
from opconform.cases.corpus.manifest import index_entry
from opconform.cases.corpus.tensors import read_npz, read_tensors_file, tensors_file, write_npz
from opconform.cases.elements import Array

SCHEMA = json.loads((Path(opconform.cases.__file__).parent / "schemas" / "case.schema.json").read_text())


def corpus_case(kind: str) -> CorpusCase:
    case, answer = case_of(kind)
    return CorpusCase(case, answer)


def read_again(one: CorpusCase, found: Mapping[str, Array], told: Any) -> Batch:
    return case_from(told, found, (one.case.digest, one.case.expectation.digest), "case.json")


@pytest.mark.parametrize("kind", STRUCTURED)
def test_a_case_is_read_as_it_was_written(kind: str) -> None:
    one = corpus_case(kind)
    told = json.loads(json.dumps(described(one), allow_nan=False))
    Draft202012Validator(SCHEMA["$defs"]["program"] | {"$defs": SCHEMA["$defs"]}).validate(told["program"])
    Draft202012Validator(SCHEMA["$defs"]["option"] | {"$defs": SCHEMA["$defs"]}).validate(told["options"][0])
    in_npz = read_npz(write_npz(tensors(one)), "case.npz")
    files = dict(value_files(one))
    in_onnx = read_values(told, files, "case.json")
    in_onnx |= read_tensors_file(tensors_file(other_tensors(one.case)), "bounds.pb")
    for found in (in_npz, in_onnx):
        back = read_again(one, found, told)
        assert back.program == one.case.program
        assert back.digest == one.case.digest
        assert back.expectation.options[0].structure == one.case.expectation.options[0].structure
        assert back.expectation.options[0].checks[0].settings == (("axis", 0), ("which", "largest"))
    assert len(files) == len(one.case.program.feeds) + len(one.case.program.answers)
    assert index_entry(one.case, "values/x/test_data_set_0")


def test_an_index_tells_structures_in_words() -> None:
    lines = index_entry(corpus_case("sequence").case, "f").splitlines()
    assert "structured s seq(float32) [2,3]" in lines
    assert [line for line in lines if line.startswith("input s ")] == ["input s float32 2", "input s float32 3"]
    assert "structure [*,*,*]" in lines
    assert "check same-seed axis=0 which=largest" in lines
    assert "omitted-output" in index_entry(corpus_case("omitted-outputs").case, "f").splitlines()
    assert "captured x" in index_entry(corpus_case("branch").case, "f").splitlines()


def test_a_value_of_another_structure_than_the_descriptor_tells_is_refused() -> None:
    one = corpus_case("sequence")
    told = json.loads(json.dumps(described(one)))
    found = read_npz(write_npz(tensors(one)), "case.npz")
    told["program"]["inputs"][0]["structure"]["items"].pop()
    with pytest.raises(CorpusError, match=r"^case\.json"):
        read_again(one, found, told)
    told["program"]["inputs"][0]["type"] = "float32"
    with pytest.raises(CorpusError, match=r"^case\.json"):
        read_again(one, found, told)

"""What the cases' pages load: it unpacks to what was put in, whatever that is."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import opconform.reports.site
from opconform.reports.site.case_lists import CHUNK_CASES, chunks, packed, parts_of, smallest, table_bytes, unpacked

VENDOR = Path(opconform.reports.site.__file__).parent / "assets" / "vendor"
DETAILS = st.dictionaries(st.text(max_size=20), st.text() | st.integers() | st.none(), max_size=4)


@given(st.binary(max_size=2000))
def test_packed_bytes_unpack_to_themselves_and_are_ascii(content: bytes) -> None:
    assert unpacked(packed(content)) == content
    assert packed(content).isascii()


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_whole_numbers_stand_in_the_narrowest_type_that_holds_them(values: list[int]) -> None:
    found = smallest(values)
    assert found.tolist() == values
    assert found.dtype.itemsize == (1 if max(values, default=0) < 256 else 2 if max(values) < 65536 else 4)


@given(st.dictionaries(st.text(max_size=8), st.lists(st.integers(0, 70_000), max_size=20), max_size=5), st.text())
def test_a_table_unpacks_to_its_columns_each_where_a_typed_array_can_begin(
    columns: dict[str, list[int]], word: str
) -> None:
    content = table_bytes({"word": word}, {name: smallest(values) for name, values in columns.items()})
    length = int.from_bytes(content[:4], "little")
    head = json.loads(content[4 : 4 + length])
    assert head["word"] == word
    for name, values in columns.items():
        kind, offset, count = head["columns"][name]
        assert (4 + length + offset) % 8 == 0
        assert np.frombuffer(content, f"<{kind}", count, 4 + length + offset).tolist() == values


@given(st.lists(st.tuples(DETAILS, st.none() | st.text()), max_size=130))
def test_chunks_hold_every_case_once_with_its_own_script(told: list[tuple[dict[str, object], str | None]]) -> None:
    found = []
    for cases, content in chunks((number, details, script) for number, (details, script) in enumerate(told)):
        read = json.loads(content)
        assert tuple(read["cases"]) == cases
        assert 1 <= len(cases) <= CHUNK_CASES
        found += list(zip(read["cases"], read["details"], read["scripts"], strict=True))
    assert found == [(number, details, script) for number, (details, script) in enumerate(told)]


def test_a_case_with_much_to_tell_has_a_chunk_of_its_own() -> None:
    large = {"text": "x" * 300_000}
    assert [cases for cases, _ in chunks([(0, {}, None), (1, large, None), (2, {}, None)])] == [(0,), (1,), (2,)]


@given(st.text(alphabet="ab/-;=<>\u202e", max_size=30))
def test_an_id_is_its_parts_joined(case: str) -> None:
    assert "/".join(part for part in parts_of(case) if part) == case


def test_the_parts_of_an_id_are_those_of_its_grammar() -> None:
    parts = parts_of("onnx/ReduceMean-13/int64/1/axes=0/beyond-2^53/beyond-2^53")
    assert parts == ("onnx/ReduceMean-13", "int64", "1", "axes=0", "beyond-2^53", "beyond-2^53")


def test_the_libraries_in_the_package_are_those_that_were_published() -> None:
    told = (VENDOR / "VENDORED.md").read_text()
    digests = dict(re.findall(r"^\| `([^`]+)` .*`([0-9a-f]{64})`", told, re.MULTILINE))
    files = {file.name for file in VENDOR.iterdir() if file.suffix in (".js", ".css")}
    assert digests == {name: hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() for name in files}
    assert {file.name for file in VENDOR.glob("*.LICENSE")} == {"d3.LICENSE", "plot.LICENSE", "tabulator.LICENSE"}
    assert sum(file.stat().st_size for file in VENDOR.iterdir()) < 1_200_000

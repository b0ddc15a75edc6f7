"""What OpenVINO and oneDNN tell of their operations, and what becomes of a library that does not live to tell."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path
from shutil import copytree

import pytest
from fakes.here import PoolHere

from opconform.cases.errors import OpconformError
from opconform.cases.runner import NotInstalled
from opconform.runners.backends import library_reading
from opconform.runners.backends.library_reading import LibraryLost, read_library
from opconform.runners.backends.onednn_library import is_installed
from opconform.specs.audit import Audit, LibraryAttribute, LibraryReading, LibrarySchema, audit
from opconform.specs.loader import Library, default_root

FAKES = "fakes.libraries"
SOME = {"openvino": f"{FAKES}:SomeOfOpenVino", "onednn": f"{FAKES}:SomeOfOneDnn"}
INSTALLED = {"openvino": importlib.util.find_spec("openvino") is not None, "onednn": is_installed()}
ALONE = {"openvino": f"{FAKES}:ReduceMeanOfOpenVino", "onednn": f"{FAKES}:ReduceMeanOfOneDnn"}
STANDARDS = [
    pytest.param(name, marks=pytest.mark.skipif(not INSTALLED[name], reason=f"{name} is not installed"))
    for name in INSTALLED
]
SHIPPED = {name: default_root() / name / "ReduceMean.yaml" for name in INSTALLED}


def library_of(folder: Path, standard: str, texts: Mapping[str, str]) -> Library:
    (folder / standard).mkdir(parents=True)
    copytree(default_root() / "families", folder / "families")
    for name, text in texts.items():
        (folder / standard / f"{name}.yaml").write_text(text)
    return Library(folder)


def read(standard: str, library: Library, target: str | None = None) -> LibraryReading:
    specs: Iterable = [library.spec(name) for name in library.operators() if name.startswith(f"{standard}/")]
    return read_library(standard, specs, target or SOME[standard])


def signature_of(standard: str) -> str:
    """Return the shipped spec's signature, with clauses that need no cases, and without a family's."""
    lines = SHIPPED[standard].read_text().partition("\nclauses:")[0].splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("uses:")) + "\nclauses:\n  rule: words\n"


def audited(folder: Path, standard: str, texts: Mapping[str, str]) -> Audit:
    library = library_of(folder, standard, texts)
    return audit(library, standard, reading=read(standard, library, ALONE[standard]))


@pytest.mark.parametrize("standard", STANDARDS)
def test_the_shipped_specs_do_not_differ_from_the_library(standard: str, tmp_path: Path) -> None:
    found = audited(tmp_path, standard, {"ReduceMean": SHIPPED[standard].read_text()})
    assert [str(error) for error in found.findings.differences] == []
    assert found.findings.unchecked == ()


# What is replaced in the signature of ReduceMean, by what («: where the audit must point), words of the difference.
DAMAGE = {
    "openvino": {
        "another default": ("boolean = false", "boolean = true", "keep_dims: here boolean = true, OpenVINO"),
        "another kind": ("boolean = false", "int = 0", "keep_dims: here int = 0, OpenVINO"),
        "an attribute too many": ("{keep_dims", "{«mode: optional string, keep_dims", "mode: here optional string"),
        "a missing attribute": ("    attributes: {keep_dims: boolean = false}\n", "", "keep_dims: here none, OpenVINO"),
        "a missing input": ("data: T, axes: I", "data: T", "input 2: here none, OpenVINO"),
        "an optional input": ("axes: I}", "«axes: optional I}", "input 2: here axes: optional I, OpenVINO"),
        "another input": ("axes: I}", "axes: I, «to: I}", "input 3: here to: I, OpenVINO"),
        "another output": ("output: T}", "output: T, «indices: I}", "output 2: here indices: I, OpenVINO"),
        "a type of data": ("[floats, integers]", "[floats, integers, bool]", "types of T: OpenVINO"),
        "a type of axes": ("I: [integers]", "«I: [integers, float32]", "refuses float32"),
        "another version": ("  1:\n", "  «2:\n", "has no version 2, but 1"),
        "another operator": ("/ReduceMean", "/ReduceMeen", "has no operator 'ReduceMeen'; did you mean 'ReduceMean'?"),
    },
    "onednn": {
        "another kind": ("bool = false", "s64 = 0", "keep_dims: here s64 = 0, oneDNN"),
        "a list that is none": ("optional s64s", "optional s64", "axes: here optional s64, oneDNN"),
        "a required attribute": ("axes: optional s64s", "«axes: s64s", "axes: here s64s, oneDNN"),
        "an attribute too many": ("{axes: opt", "{«axis: s64, axes: opt", "axis: here s64, oneDNN"),
        "a missing attribute": (", keep_dims: bool = false", "", "keep_dims: here none, oneDNN"),
        "a required input": ("axes: optional int32", "«axes: int32", "input 2: here axes: int32, oneDNN"),
        "another output": ("dst: T}", "dst: T, «mean: T}", "output 2: here mean: T, oneDNN"),
        "a type too few": ("[float32, bfloat16, float16]", "[float32, bfloat16]", "types of T: only in oneDNN"),
        "a type too many": (", float16]", ", float16, int32]", "types of T: only here: int32"),
        "other types": ("[float32, bfloat16, float16]", "[int64, bool]", "only here: bool, int64; only in oneDNN"),
        "another operator": ("/ReduceMean", "/ReduceMeen", "has no operator 'ReduceMeen'; did you mean 'ReduceMean'?"),
    },
}


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_spec_that_the_library_contradicts_is_found_out_at_its_place(
    standard: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_reading, "Pool", lambda factory, **_: PoolHere(factory))  # ReduceMean does no harm
    for number, (name, (old, new, expected)) in enumerate(DAMAGE[standard].items()):
        marked = signature_of(standard).replace(old, new, 1)
        assert marked != signature_of(standard), name
        operator = "ReduceMeen" if "Meen" in marked else "ReduceMean"
        found = audited(tmp_path / str(number), standard, {operator: marked.replace("«", "")}).findings.differences
        first = next((error for error in found if expected in error.message), None)
        assert first is not None, (name, found)
        if "«" in marked:
            before = marked[: marked.index("«")]
            place = (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
            assert (first.position.line, first.position.column) == place, name


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_signature_without_mistakes_is_borne_out(standard: str, tmp_path: Path) -> None:
    expected = {"openvino": [], "onednn": ["input 2: here axes: optional int32"]}[standard]
    found = audited(tmp_path, standard, {"ReduceMean": signature_of(standard)}).findings.differences
    assert [error.message.partition(",")[0] for error in found] == expected


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED["openvino"], reason="openvino is not installed")
def test_openvino_tells_versions_by_its_operation_sets(tmp_path: Path) -> None:
    reading = read_library("openvino", [])
    versions = reading.listing.versions
    assert versions["ReduceMean"] == versions["LogicalXor"] == (1,)
    assert versions["Softmax"][:2] == (1, 8)
    assert versions["MVN"][:2] == (2, 6)  # MVN is in no operation set before the second
    newest = reading.listing.newest
    assert newest is not None
    assert max(version for of_name in versions.values() for version in of_name) <= newest
    assert sum(map(len, versions.values())) >= 241 if newest >= 16 else newest >= 13
    died = {key for key, told in reading.schemas.items() if isinstance(told, str)}
    made = {key for key, told in reading.schemas.items() if isinstance(told, LibrarySchema) and told.inputs}
    assert len(made) > 0.75 * len(reading.schemas)
    assert len(died) < 0.05 * len(reading.schemas)  # a node without inputs may end the process that looks at it
    assert not died & {("ReduceMean", 1), ("Add", 1)}
    assert reading.schemas["Convert", 1].attributes == {
        "destination_type": LibraryAttribute(frozenset(["string"]), "dynamic")
    }


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED["openvino"], reason="openvino is not installed")
def test_a_required_attribute_of_the_spec_helps_to_make_nodes(tmp_path: Path) -> None:
    split = """\
operator: openvino/Split
family: a.b
source: https://example.org/page
versions:
  1: {attributes: {num_splits: int}, inputs: {data: T, axis: I}, outputs: {y: T}, types: {T: [floats], I: [integers]}}
clauses: {rule: words}
"""
    without = read("openvino", library_of(tmp_path / "without", "openvino", {}))
    assert without.schemas["Split", 1].inputs == frozenset()
    given = read("openvino", library_of(tmp_path / "with", "openvino", {"Split": split}))
    assert 2 in given.schemas["Split", 1].inputs
    assert given.schemas["Split", 1].outputs == {1}


@pytest.mark.skipif(not INSTALLED["onednn"], reason="oneDNN is not installed")
def test_onednn_tells_schemas_by_refusing_what_offends_against_them(tmp_path: Path) -> None:
    transpose = """\
operator: onednn/StaticTranspose
family: a.b
source: https://example.org/page
versions:
  any: {attributes: {order: s64s}, inputs: {src: T}, outputs: {dst: T}, types: {T: [float32, bfloat16, float16]}}
clauses: {rule: words}
"""
    library = library_of(tmp_path, "onednn", {"StaticTranspose": transpose})
    reading = read("onednn", library)
    assert reading.schemas["Add", "any"].inputs == {2}
    assert reading.schemas["SoftMax", "any"].attributes == {
        "axis": LibraryAttribute(frozenset(["s64"]), required=False)
    }
    order = LibraryAttribute(frozenset(["s64s"]), required=True)
    assert reading.schemas["StaticTranspose", "any"].attributes == {"order": order}
    assert audit(library, "onednn", reading=reading).findings.differences == ()


# Libraries that go wrong


@pytest.mark.slow
def test_an_operator_that_a_library_dies_of_costs_only_itself(tmp_path: Path) -> None:
    reading = read_library("openvino", [], f"{FAKES}:Faulty")
    assert reading.schemas["Fine", 1] == LibrarySchema({})
    assert reading.schemas["ReduceMean", 1] == "its process ended (signal SIGSEGV); last it wrote:\nabout to fall"
    assert reading.schemas["Raises", 1] == "it failed: ValueError: no such thing"


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("DiesOfListing", LibraryLost, "asked for its operators, its process ended \\(exit code 9\\)"),
        ("DiesAtOnce", LibraryLost, "exit code 7"),
        ("Absent", NotInstalled, "it needs a library: pip install it"),
        ("Unusable", OpconformError, "the library is broken; install it again"),
    ],
)
def test_a_library_that_says_nothing_at_all_is_an_error_that_says_why(name: str, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        read_library("openvino", [], f"{FAKES}:{name}")

"""The audit of specs against the installed onnx package's schemas, and the scaffold made from them."""

import json
import re
from pathlib import Path

import pytest

from opconform.cases.errors import OpconformError
from opconform.specs.audit import Coverage, Exercise, audit
from opconform.specs.audit.findings import DOMAINS, as_float32, newest_opset, onnx_signatures, onnx_version
from opconform.specs.loader import Library, default_root
from opconform.specs.scaffold import scaffold

SHIPPED = default_root() / "onnx"

# An operator with every kind of thing that can differ, as scaffolded: its file's name, and what is damaged.
OPERATORS = ("Add", "Clip", "Concat", "If", "Loop", "Mean", "ReduceMean", "Selu", "SequenceInsert", "Split", "Upsample")


def filled(operator: str) -> str:
    """Return a scaffold with its TODOs filled."""
    text = scaffold(operator).replace("family: TODO", "family: a.b").replace("change: TODO", "change: words")
    return text.replace("todo: TODO", "rule: words")


def library_of(folder: Path, texts: dict[str, str]) -> Library:
    """Return a library of ONNX specs, written to a folder."""
    (folder / "onnx").mkdir(parents=True)
    for name, text in texts.items():
        (folder / "onnx" / f"{name}.yaml").write_text(text)
    return Library(folder)


@pytest.mark.slow
def test_a_scaffold_of_every_operator_loads_and_audits_clean(tmp_path) -> None:
    texts = {name: filled(f"onnx/{d or 'ai.onnx'}/{name}") for d in DOMAINS for name in onnx_signatures(d)}
    library = library_of(tmp_path, texts)
    found = audit(library)
    assert found.findings.differences == ()
    assert found.findings.unchecked == ()
    for domain in DOMAINS:
        for name, versions in onnx_signatures(domain).items():
            spec = library.spec(f"onnx/{name}")
            assert (spec.domain, list(spec.versions)) == (domain, list(versions))
            assert max(map(len, texts[name].splitlines())) <= 120 or "[" in texts[name]


def test_a_scaffold_counts_inputs_and_outputs_as_the_schema_does() -> None:
    from onnx import defs

    unlimited = 2147483647
    for schema in defs.get_all_schemas_with_history():
        if schema.domain in DOMAINS:
            signature = onnx_signatures(schema.domain)[schema.name][schema.since_version]
            inputs, outputs = signature.input_counts, signature.output_counts
            assert (inputs[0], inputs[1] or unlimited if inputs[1] != 0 else 0) == (schema.min_input, schema.max_input)
            assert (outputs[0], unlimited if outputs[1] is None else outputs[1]) == (
                schema.min_output,
                schema.max_output,
            )


def test_a_scaffold_is_a_start_and_says_so() -> None:
    text = scaffold("onnx/Add")
    assert text.startswith("operator: onnx/Add\nfamily: TODO")
    assert "source: https://onnx.ai/onnx/operators/onnx__Add.html#add-{version}\n" in text
    assert "    types: {T: [..., bfloat16]}\n" in text
    assert "    attributes: {..., consumed_inputs: removed}\n" in text
    assert "domain: ai.onnx.ml\n" in scaffold("onnx/Scaler")
    assert scaffold("onnx/ai.onnx.ml/Scaler") == scaffold("onnx/Scaler")


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("onnx/Addd", "did you mean 'Add'?"),
        ("onnx/ai.onnx.ml/Add", "ONNX has no operator 'ai.onnx.ml/Add'"),
        ("Add", "name it as in onnx/Add"),
        ("openvino/Add", "write the file from the page, and `opconform dev audit openvino` checks it"),
        ("onnx/", "name it as in onnx/Add"),
    ],
)
def test_a_scaffold_of_nothing_says_what_was_meant(operator: str, expected: str) -> None:
    with pytest.raises(OpconformError) as caught:
        scaffold(operator)
    assert expected in str(caught.value)


# name: operator, what is replaced in its scaffold, by what («: where the audit must point), words of the difference
DAMAGE = {
    "a missing version": ("Add", r"  14:\n.*\n", "", ", and missing here"),
    "a version too many": ("Add", r"  13:\n", "  «12:\n    change: words\n  13:\n", "has no version 12, but 1, 6, 7"),
    "a missing attribute": (
        "Add",
        r"axis: optional int, ",
        "",
        "axis: here none, the schema has optional int",
    ),
    "an attribute too many": (
        "Add",
        r"\{axis:",
        "{«alpha: int, axis:",
        "attribute alpha: here int, the schema has none",
    ),
    "an attribute of another kind": ("Add", r"axis: optional int,", "«axis: optional ints,", "here optional ints, the"),
    "an attribute required": (
        "Add",
        r"axis: optional int,",
        "«axis: int,",
        "here int, the schema has optional int",
    ),
    "another default": ("Add", r"broadcast: int = 0", "«broadcast: int = 1", "1, the schema has int = 0"),
    "no default": (
        "Add",
        r"broadcast: int = 0",
        "«broadcast: optional int",
        "the schema has int = 0",
    ),
    "another default of a float": ("Selu", r"alpha: float = 1.6732,", "«alpha: float = 1.6731,", "has float = 1.67"),
    "another default of a string": ("Upsample", r"mode: string = nearest", "«mode: string = linear", "= nearest"),
    "another name of an input": ("Add", r"inputs: \{A: T, B: T\}", "inputs: {A: T, «C: T}", "here C: T, the"),
    "another order of inputs": ("Add", r"inputs: \{A: T, B: T\}", "inputs: {«B: T, A: T}", "input 1: here B: T, the"),
    "an input too few": (
        "Add",
        r"inputs: \{A: T, B: T\}",
        "«inputs: {A: T}",
        "here none, the schema has B: T",
    ),
    "an input too many": ("Add", r"A: T, B: T\}", "A: T, B: T, «C: T}", "here C: T, the schema has none"),
    "an optional input": ("Add", r"A: T, B: T\}", "A: T, «B: optional T}", "the schema has B: T"),
    "a required input": (
        "Clip",
        r"min: optional T, max",
        "«min: T, max",
        "the schema has min: optional T",
    ),
    "a variadic input of none": ("Mean", r"data_0: T\+", "«data_0: T*", "the schema has data_0: T+"),
    "a variadic input of one": ("Mean", r"data_0: T\+", "«data_0: T", "the schema has data_0: T+"),
    "a heterogeneous input": (
        "Mean",
        r"data_0: T\+",
        "«data_0: each T+",
        "the schema has data_0: T+",
    ),
    "a homogeneous output": (
        "If",
        r"outputs: each V\+",
        "«outputs: V+",
        "here outputs: V+, the schema has outputs: each V+",
    ),
    "another name of an output": ("Add", r"outputs: \{C", "outputs: {«D", "here D: T, the schema has C: T"),
    "another type of an input": (
        "ReduceMean",
        r"optional int64",
        "optional int32",
        "here axes: optional int32",
    ),
    "a type too few": ("Add", r"T: \[ieee\]", "«T: [float16, float32]", "only in the schema: float64"),
    "a type too many": ("Add", r"T: \[ieee\]", "«T: [ieee, bool]", "types of T: only here: bool"),
    "a type letter too many": ("Add", r"T: \[ieee\]\}", "T: [ieee], «U: [bool]}", "letter U is not in the schema"),
    "a deprecation left out": ("Upsample", r"    deprecated: true\n", "", "it is deprecated in the schema"),
    "a deprecation too many": (
        "Add",
        r"  14:\n",
        "  «14:\n    deprecated: true\n",
        "it is not deprecated in the schema",
    ),
    "an unknown operator": (
        "Add",
        r"onnx/Add",
        "«onnx/Adds",
        "no operator 'Adds'; did you mean 'Add'?",
    ),
    "an unknown domain": ("Add", r"\nfamily", "\ndomain: «ai.onnx.mk\nfamily", "no domain 'ai.onnx.mk'"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_spec_is_found_out_at_its_place(name: str, tmp_path) -> None:
    operator, old, new, expected = DAMAGE[name]
    marked, count = re.subn(old, new, filled(f"onnx/{operator}"), count=1)
    assert count == 1
    stem = "Adds" if name == "an unknown operator" else operator
    found = audit(library_of(tmp_path, {stem: marked.replace("«", "")})).findings.differences
    assert any(expected in error.message for error in found), found
    first = next(error for error in found if expected in error.message)
    if "«" in marked:
        assert first.position.line == marked.count("\n", 0, marked.index("«")) + 1
        assert first.position.column == marked.index("«") - marked.rfind("\n", 0, marked.index("«"))
    assert str(first).startswith(f"{tmp_path / 'onnx' / (stem + '.yaml')}:{first.position.line}:")


def test_what_versions_inherit_is_told_once_where_it_is_written(tmp_path) -> None:
    text = filled("onnx/Mean").replace("data_0: T+", "data_0: T*")
    found = audit(library_of(tmp_path, {"Mean": text})).findings.differences
    assert [error.message for error in found] == [
        "input 1: here data_0: T*, the schema has data_0: T+ (version 1, 6, 8, 13)"
    ]


def test_defaults_are_compared_as_the_float32_that_onnx_stores(tmp_path) -> None:
    text = filled("onnx/Clip")
    assert "max: float = 3.4028235e+38" in text
    text = text.replace("max: float = 3.4028235e+38", "max: float = 3.4028234663852886e+38")
    assert audit(library_of(tmp_path, {"Clip": text})).findings.differences == ()


def test_a_version_that_the_installed_onnx_is_too_old_for_is_no_difference(tmp_path) -> None:
    newer = newest_opset() + 1
    text = filled("onnx/Add").replace("\nclauses:", f"\n  {newer}:\n    types: {{T: [..., bool]}}\n\nclauses:")
    new = re.sub(r"(?s)  1:.*\nclauses", f"  {newer}: {{inputs: {{x: bool}}}}\nclauses", filled("onnx/Abs"))
    found = audit(library_of(tmp_path, {"Add": text, "New": new.replace("onnx/Abs", "onnx/New")}))
    assert found.findings.differences == ()
    assert found.findings.unchecked == (
        f"onnx/Add-{newer} cannot be checked: onnx {onnx_version()} is older",
        f"onnx/New-{newer} cannot be checked: onnx {onnx_version()} is older",
    )


def test_a_version_that_was_amended_is_not_held_against_earlier_releases(tmp_path) -> None:
    def of(amended: str) -> str:
        return filled("onnx/Add").replace("{T: [..., bfloat16]}", "{T: [..., bool]}" + amended)

    wrong = audit(library_of(tmp_path / "wrong", {"Add": of('\n    amended: "1.16"')}))
    assert "only here: bool" in wrong.findings.differences[0].message
    found = audit(library_of(tmp_path / "later", {"Add": of('\n    amended: "999.1"')}))
    assert f"onnx/Add-13 cannot be checked: onnx {onnx_version()} is older" in found.findings.unchecked
    assert all("version 13" not in error.message for error in found.findings.differences)


def test_a_release_that_is_a_number_is_told(tmp_path) -> None:
    text = filled("onnx/Add").replace("{T: [..., bfloat16]}", "{T: [..., bool]}\n    amended: 1.20")
    with pytest.raises(OpconformError, match=r"Add\.yaml:\d+:\d+: .*a release, in quotes: '1\.20'"):
        library_of(tmp_path, {"Add": text}).spec("onnx/Add")


@pytest.mark.slow
def test_the_shipped_specs_do_not_differ_from_the_standard() -> None:
    found = audit(Library())
    assert [str(error) for error in found.findings.differences] == []


def test_totals_are_those_of_the_standard(tmp_path) -> None:
    found = audit(library_of(tmp_path, {}))
    for domain, name in (("", "ai.onnx"), ("ai.onnx.ml", "ai.onnx.ml")):
        versions = [s for by_version in onnx_signatures(domain).values() for s in by_version.values()]
        counted = found.domains[name]
        assert counted.operator_versions == Coverage(0, len(versions))
        assert counted.type_triples == Coverage(0, sum(len(t) for s in versions for t in s.types.values()))
        assert counted.attributes == Coverage(0, sum(len(s.attributes) for s in versions))
        assert counted.clauses == Coverage(0, 0)
    if onnx_version().startswith("1.23."):
        assert found.domains["ai.onnx"].operator_versions.total == 629
        assert found.coverages.operator_versions.total == 659


def test_coverage_counts_what_cases_exercise() -> None:
    library = Library()
    exercised = {
        "onnx/Mean-13": Exercise(
            frozenset({("T", "float32"), ("T", "bool"), ("U", "float32")}), frozenset(), frozenset({"mean", "none"})
        ),
        "onnx/ReduceMean-18": Exercise(frozenset({("T", "int32"), ("T", "int64")}), frozenset({"keepdims"})),
    }
    found = audit(library, touched=exercised)
    assert found.coverages.operator_versions.covered == 2
    assert found.coverages.type_triples.covered == 3
    assert found.coverages.attributes.covered == 1
    assert found.coverages.clauses.covered == 1
    names = [o for o in library.operators() if str(o).startswith("onnx/")]
    clauses = [len(v.clauses) for name in names for v in library.spec(name).versions.values()]
    assert found.coverages.clauses.total == sum(clauses)
    assert "onnx/Mean-13: no case with T = bfloat16" in found.gaps
    assert "onnx/ReduceMean-18: no case sets noop_with_empty_axes to another value than its default" in found.gaps
    assert "onnx/Mean-1: no case tests clause mean" in found.gaps
    assert "onnx/Mean-13: no case tests clause mean" not in found.gaps


def test_the_json_has_the_keys_that_are_promised() -> None:
    found = audit(Library())
    read = json.loads(found.to_json())
    assert read["standard"] == "onnx"
    assert read["onnx"] == onnx_version()
    assert read["differences"] == []
    for key in ("operator_versions", "type_triples", "attributes", "clauses"):
        assert read[key].keys() == {"covered", "total"}
        assert read[key]["total"] == sum(domain[key]["total"] for domain in read["domains"].values())
    assert read["domains"].keys() == {domain or "ai.onnx" for domain in DOMAINS}


def test_differences_in_json_have_a_place(tmp_path) -> None:
    text = filled("onnx/Add").replace("broadcast: int = 0", "broadcast: int = 1")
    read = json.loads(audit(library_of(tmp_path, {"Add": text})).to_json())
    assert [(d["line"], d["column"]) for d in read["differences"]] == [(7, 38)]
    assert read["differences"][0]["file"].endswith("Add.yaml")


def test_another_standard_cannot_be_audited() -> None:
    with pytest.raises(OpconformError, match="'onxx' cannot be audited: it has no schema; did you mean 'onnx'"):
        audit(Library(), "onxx")


def test_types_of_schemas_are_spelled_as_in_specs() -> None:
    signature = onnx_signatures("ai.onnx.ml")["ZipMap"][1]
    assert signature.types["T"] == ("seq(map(string,float32))", "seq(map(int64,float32))")
    assert as_float32(3.4028234663852886e38) == 3.4028235e38

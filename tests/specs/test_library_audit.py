"""Specs against what a library tells: what it knows is held against the spec, and what it does not is said."""

import json
from pathlib import Path

import pytest

from opconform.cases.errors import OpconformError
from opconform.specs.audit import Audit, Coverage, Exercise, LibraryAttribute, LibraryReading, Listing, audit
from opconform.specs.audit import LibrarySchema as Schema
from opconform.specs.loader import Library

POOL = """\
operator: openvino/Pool
family: a.b
source: https://example.org/{version}
versions:
  1:
    attributes: {kernel: ints, mode: string = max, epsilon: optional float, sorted: boolean = false}
    inputs: {x: T, axes: optional I}
    outputs: {y: T}
    types: {T: [float16, float32], I: [int32]}
  8:
    types: {..., T: [..., float64]}
clauses:
  rule: words
"""
ATTRIBUTES = {
    "kernel": LibraryAttribute(frozenset(["ints", "floats"]), ()),
    "mode": LibraryAttribute(frozenset(["string"]), "max"),
    "epsilon": LibraryAttribute(frozenset(["float"]), 0.0),
    "sorted": LibraryAttribute(frozenset(["boolean"]), False),
}
HALF_SINGLE = frozenset(["float16", "float32"])
POOL_1 = Schema(ATTRIBUTES, frozenset([1, 2]), frozenset([1]), 8, {"T": HALF_SINGLE, "I": frozenset(["int32"])})
POOL_8 = Schema(
    ATTRIBUTES,
    frozenset([1, 2]),
    frozenset([1]),
    8,
    {"T": HALF_SINGLE | {"float64"}, "I": frozenset(["int32"])},
)
OTHER = Schema(
    {"a": LibraryAttribute(frozenset(["int"]))}, frozenset([1]), frozenset([1]), 8, {"1": frozenset(["int8"])}
)


def audited(
    folder: Path,
    text: str = POOL,
    told: dict[int, Schema | str] | None = None,
    *,
    exact: bool = False,
    later: tuple[str, ...] = (),
    exercised: dict[str, Exercise] | None = None,
) -> Audit:
    """Audit a spec against a library that has Pool-1, Pool-8 and Other-3, and tells what `told` has of Pool."""
    name = text.partition("openvino/")[2].partition("\n")[0]
    (folder / "openvino").mkdir(parents=True, exist_ok=True)
    (folder / "openvino" / f"{name}.yaml").write_text(text)
    listing = Listing("Lib", "1.2", "all sets", {"Other": (3,), "Pool": (1, 8)}, frozenset(later), 16)
    of_pool = {1: POOL_1, 8: POOL_8, **(told or {})}
    answers = {("Other", 3): OTHER, **{("Pool", version): one for version, one in of_pool.items()}}
    reading = LibraryReading("openvino", listing, answers, exact, ("names",))
    return audit(Library(folder), "openvino", exercised or {}, reading)


def messages(found: Audit) -> list[str]:
    return [error.message for error in found.findings.differences]


def test_a_spec_that_the_library_bears_out_has_no_differences(tmp_path) -> None:
    found = audited(tmp_path)
    assert messages(found) == []
    assert found.findings.unchecked == found.findings.beyond == found.findings.failures == ()


# what is replaced in POOL, by what («: where the audit must point), words of the difference
DAMAGE = {
    "another default": (
        "sorted: boolean = false",
        "«sorted: boolean = true",
        "here boolean = true, Lib 1.2 has boolean",
    ),
    "another default of a string": ("mode: string = max", "«mode: string = min", "Lib 1.2 has string = max"),
    "another kind": ("mode: string = max", "«mode: int = 1", "attribute mode: here int = 1, Lib 1.2 has string = max"),
    "a list that is none": ("epsilon: optional float", "«epsilon: optional floats", "Lib 1.2 has float = 0.0"),
    "an attribute too many": ("{kernel", "{«size: int, kernel", "attribute size: here int, Lib 1.2 has none"),
    "a missing attribute": ("mode: string = max, ", "", "attribute mode: here none, Lib 1.2 has string = max"),
    "an optional input that is required": (
        "axes: optional I",
        "«axes: I",
        "input 2: here axes: I, Lib 1.2 takes 1 or 2",
    ),
    "an input too many": ("axes: optional I", "axes: optional I, «z: optional I", "input 3: here z: optional I, Lib"),
    "an input that may be left out": ("x: T, axes", "«x: optional T, axes", "here x: optional T, Lib 1.2 takes 1 or 2"),
    "an output too many": ("y: T}", "y: T, «z: T}", "output 2: here z: T, Lib 1.2 gives 1 output"),
    "a type too many": ("T: [float16, float32]", "«T: [float16, float32, bool]", "types of T: Lib 1.2 refuses bool"),
    "a version too many": ("  8:\n", "  «4:\n    change: words\n  8:\n", "Lib 1.2 has no version 4, but 1, 8"),
    "a missing version": (
        "  8:\n    types: {..., T: [..., float64]}\n",
        "",
        "version 8 is in Lib 1.2, and missing here",
    ),
    "an unknown operator": (
        "openvino/Pool",
        "«openvino/Poole",
        "Lib 1.2 has no operator 'Poole'; did you mean 'Pool'?",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_spec_is_found_out_at_its_place(name: str, tmp_path) -> None:
    old, new, expected = DAMAGE[name]
    assert POOL.count(old) == 1
    marked = POOL.replace(old, new)
    found = audited(tmp_path, marked.replace("«", "")).findings.differences
    first = next((error for error in found if expected in error.message), None)
    assert first is not None, found
    if "«" in marked:
        before = marked[: marked.index("«")]
        assert (first.position.line, first.position.column) == (
            before.count("\n") + 1,
            len(before.rpartition("\n")[2]) + 1,
        )


def test_what_versions_inherit_is_told_once(tmp_path) -> None:
    found = audited(tmp_path, POOL.replace("= false", "= true"))
    assert messages(found) == ["attribute sorted: here boolean = true, Lib 1.2 has boolean = false (version 1, 8)"]


def test_a_default_or_a_requirement_that_the_library_does_not_tell_is_no_difference(tmp_path) -> None:
    untold = {name: LibraryAttribute(attribute.kinds) for name, attribute in ATTRIBUTES.items()}
    told = Schema(untold, POOL_1.inputs, POOL_1.outputs, 8, POOL_1.types)
    text = (
        POOL.replace("= false", "= true").partition("  8:")[0]
        + "  8:\n    types: {..., T: [..., float64]}\nclauses: {a: b}\n"
    )
    assert (
        messages(audited(tmp_path, text, {1: told, 8: Schema(untold, POOL_8.inputs, POOL_8.outputs, 8, POOL_8.types)}))
        == []
    )


@pytest.mark.parametrize(("required", "expected"), [(True, "Lib 1.2 has ints, required"), (False, "has optional ints")])
def test_a_requirement_that_the_library_tells_is_compared(required: bool, expected: str, tmp_path) -> None:
    kernel = LibraryAttribute(frozenset(["ints"]), required=required)
    told = Schema({**ATTRIBUTES, "kernel": kernel}, POOL_1.inputs, POOL_1.outputs, 8, POOL_1.types)
    text = POOL.replace("kernel: ints", "kernel: optional ints") if required else POOL
    assert any(expected in message for message in messages(audited(tmp_path, text, {1: told})))
    right = POOL if required else POOL.replace("kernel: ints", "kernel: optional ints")
    assert messages(audited(tmp_path, right, {1: told})) == []


def test_what_a_lax_library_takes_beyond_a_spec_is_said_and_no_difference(tmp_path) -> None:
    told = Schema(
        ATTRIBUTES, frozenset(range(1, 9)), frozenset([1]), 8, {**POOL_1.types, "T": HALF_SINGLE | {"string"}}
    )
    found = audited(tmp_path, told={1: told})
    assert messages(found) == []
    assert found.findings.beyond == ("openvino/Pool-1: Lib 1.2 takes T = string too",)


def test_inputs_that_come_together_are_no_difference_to_a_lax_library(tmp_path) -> None:
    told = {
        version: Schema(ATTRIBUTES, frozenset([1, 3]), frozenset([1]), 8, pool.types)
        for version, pool in ((1, POOL_1), (8, POOL_8))
    }
    together = POOL.replace("axes: optional I", "axes: optional I, z: optional I")
    assert messages(audited(tmp_path, together, told)) == []
    assert messages(audited(tmp_path, together, told, exact=True)) != []
    assert any("input 2" in message for message in messages(audited(tmp_path, POOL, told)))


def test_what_an_exact_library_takes_beyond_a_spec_is_a_difference(tmp_path) -> None:
    told = Schema(ATTRIBUTES, frozenset([1, 2, 3]), frozenset([1]), 8, {**POOL_1.types, "T": HALF_SINGLE | {"string"}})
    found = audited(tmp_path, told={1: told}, exact=True)
    assert messages(found) == [
        "input 3: here none, Lib 1.2 takes 1 to 3 inputs (version 1)",
        "types of T: only in Lib 1.2: string (version 1)",
    ]


DISPUTED = """\
  taken: {text: words, status: disputed, upstream: 'https://example.org/1', disputes: PART, before: 8}
"""


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("inputs.axes", "axes: optional I", "axes: I"),
        ("attributes.sorted", "= false", "= true"),
        ("types.T", "[float16, float32]", "[float16, float32, bool]"),
        ("[outputs.z, types.T]", "y: T}", "y: T, z: T}"),
    ],
)
def test_a_difference_that_a_disputed_clause_is_about_is_listed_apart(part, old, new, tmp_path) -> None:
    text = POOL.replace(old, new) + DISPUTED.replace("PART", part)
    found = audited(tmp_path, text)
    assert [error.message.endswith("(version 1)") for error in found.findings.disputed] == [True]
    assert "; disputed by clause taken, https://example.org/1" in found.findings.disputed[0].message
    assert [error.message.endswith("(version 8)") for error in found.findings.differences] == [True]  # it ended
    assert json.loads(found.to_json())["disputed"][0]["line"] == found.findings.disputed[0].position.line


def test_a_dispute_covers_no_other_part(tmp_path) -> None:
    text = POOL.replace("= false", "= true") + DISPUTED.replace("PART", "attributes.mode")
    found = audited(tmp_path, text)
    assert found.findings.disputed == ()
    assert len(found.findings.differences) == 1


def test_what_cannot_be_checked_is_said(tmp_path) -> None:
    found = audited(tmp_path, told={1: Schema(ATTRIBUTES), 8: Schema(None, frozenset([1, 2]), frozenset([1]), 8, {})})
    assert messages(found) == []
    assert found.findings.unchecked == (
        "openvino/Pool-1: inputs, outputs and types cannot be checked: Lib 1.2 refuses every operation that was tried",
        "openvino/Pool-8: the attributes cannot be checked",
        "openvino/Pool-8: the types of T cannot be checked",
        "openvino/Pool-8: the types of I cannot be checked",
    )
    assert found.authority.uncounted == ("openvino/Pool-1",)


def test_a_version_that_could_not_be_asked_about_is_a_failure_and_no_difference(tmp_path) -> None:
    found = audited(tmp_path, told={8: "its process ended (signal SIGSEGV)"})
    assert messages(found) == []
    assert found.findings.failures == (
        "openvino/Pool-8: Lib 1.2 could not be asked: its process ended (signal SIGSEGV)",
    )


def test_what_is_newer_than_the_library_is_no_difference(tmp_path) -> None:
    text = POOL.replace("clauses:", "  17:\n    change: words\nclauses:")
    assert audited(tmp_path, text).findings.unchecked == ("openvino/Pool-17 cannot be checked: Lib 1.2 is older",)
    new = POOL.replace("/Pool", "/New")
    found = audited(tmp_path / "new", new, later=("New",))
    assert messages(found) == []
    assert found.findings.unchecked[0] == "openvino/New-1 cannot be checked: Lib 1.2 is older"


def test_totals_are_what_the_library_tells(tmp_path) -> None:
    did = {"openvino/Pool-1": Exercise(frozenset([("T", "float16"), ("T", "bool")]), frozenset(["mode", "no"]))}
    found = audited(tmp_path, exercised=did)
    counted = found.domains["all sets"]
    assert counted.operator_versions == Coverage(1, 3)
    assert counted.type_triples == Coverage(1, 1 + 3 + 4)
    assert counted.attributes == Coverage(1, 1 + 4 + 4)
    assert counted.clauses == Coverage(0, 2)
    assert "openvino/Pool-1: no case with T = float32" in found.gaps
    assert "openvino/Pool-8: no case tests clause rule" in found.gaps


def test_leaving_types_out_of_a_spec_does_not_raise_its_coverage(tmp_path) -> None:
    did = {"openvino/Pool-1": Exercise(frozenset([("T", "float16")]))}
    whole = audited(tmp_path / "a", exercised=did).coverages.type_triples
    less = audited(tmp_path / "b", POOL.replace("[float16, float32]", "[float16]"), exercised=did)
    assert less.coverages.type_triples == whole


def test_the_json_has_the_keys_that_are_promised(tmp_path) -> None:
    read = json.loads(audited(tmp_path).to_json())
    for key in ("operator_versions", "type_triples", "attributes", "clauses"):
        assert read[key].keys() == {"covered", "total"}
    assert (read["standard"], read["openvino"], read["untold"]) == ("openvino", "1.2", ["names"])
    lists = ("differences", "disputed", "unchecked", "beyond", "failures", "gaps", "uncounted")
    assert all(isinstance(read[key], list) for key in lists)


def test_a_library_of_another_standard_is_refused(tmp_path) -> None:
    with pytest.raises(OpconformError, match="onednn is audited against its library"):
        audit(Library(tmp_path), "onednn")

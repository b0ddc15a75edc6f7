"""What spec files share: `uses` takes over the entries of families, and the file's own entries win."""

import pickle
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from opconform.cli import main
from opconform.specs.loader import Library, default_root, spec_of
from opconform.specs.model import Recipe
from opconform.specs.reading import SpecErrors, read_file

NARY = """\
arguments: {broadcast-since: null, port: A, word: required}
clauses:
  same-shape: {text: both inputs have one shape, having: broadcast, when: {broadcast: [absent, 0]}}
  broadcast: {text: "inputs broadcast, ${word}", since: $broadcast-since, lacking: [broadcast]}
  consumed: {text: no effect, having: consumed_inputs, when: {consumed_inputs: {not: absent}}}
  modulo: {text: the sign, when: {fmod: 1}}
  type-constraint: {text: the types are listed, when: edges}
  lonely: {text: no edge of this operator tests it, when: edges}
parameters:
  shapes:
    same: {A: [3, 2], B: [3, 2]}
    up: {value: {A: [], B: [2, 3]}, since: $broadcast-since}
  broadcast: [absent, 0]
  consumed_inputs: {absent: absent, zero: [0, 0]}
  fmod: [absent, 1]
  fill: [ramp]
exclude:
  - {shapes: up, fill: special}
  - {shapes: up, fmod: 1}
  - {shapes: [same, nowhere], broadcast: 0}
operands:
  $port: {domain: positive}
  Z: {domain: unit}
edges:
  type-bool: {with: {shapes: same, T: [bool]}, mended: {T: float32}, tests: [type-constraint, nix], expect: rejected}
  modulo: {with: {fmod: 1}, tests: modulo}
  lonely: {with: {fmod: 1}, tests: lonely}
"""
ADD = """\
operator: onnx/Add
family: pointwise.add
uses: {nary: {broadcast-since: 7, word: as NumPy's}}
source: https://example.org/
versions:
  1:
    attributes: {axis: optional int, broadcast: int = 0, consumed_inputs: optional ints}
    inputs: {A: T, B: T}
    outputs: {C: T}
    types: {T: [ieee]}
  6:
    attributes: {..., consumed_inputs: removed}
  7:
    attributes: {}
clauses:
  sum: the sum
parameters:
  T: all
  fill: [uniform]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("onnx", "families"):
        (tmp_path / folder).mkdir()
    (tmp_path / "families" / "nary.yaml").write_text(NARY)
    (tmp_path / "onnx" / "Add.yaml").write_text(ADD)
    return tmp_path


def changed(root: Path, old: str, new: str, file: str = "onnx/Add.yaml") -> Path:
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new, 1))
    return root


def test_entries_are_taken_over_where_they_fit(root) -> None:
    versions = spec_of(read_file(root / "onnx" / "Add.yaml")).versions
    assert list(versions[1].clauses) == ["sum", "same-shape", "consumed", "type-constraint"]
    assert list(versions[6].clauses) == ["sum", "same-shape", "type-constraint"]
    assert list(versions[7].clauses) == ["sum", "broadcast", "type-constraint"]
    assert versions[7].clauses["broadcast"].text == "inputs broadcast, as NumPy's"
    assert {name: list(levels) for name, levels in versions[1].parameters.items()} == {
        "T": ["float16", "float32", "float64"],
        "fill": ["uniform"],
        "shapes": ["same"],
        "broadcast": ["absent", "0"],
        "consumed_inputs": ["absent", "zero"],
    }
    assert list(versions[7].parameters) == ["T", "fill", "shapes"]
    assert list(versions[7].parameters["shapes"]) == ["same", "up"]
    assert versions[1].exclude == ({"shapes": ("same",), "broadcast": ("0",)},)
    assert versions[1].operands["A"].domain == Recipe("positive")
    assert list(versions[1].operands) == ["A", "B"]
    assert list(versions[7].edges) == ["type-bool"]
    assert versions[7].edges["type-bool"].tests == ("type-constraint",)


def test_an_entry_of_the_file_wins_and_removed_takes_one_away(root) -> None:
    text = (
        "  sum: the sum\n  type-constraint: removed\n  broadcast: {text: mine, since: 7}\nedges: {type-bool: removed}\n"
    )
    clauses = spec_of(read_file(changed(root, "  sum: the sum\n", text) / "onnx" / "Add.yaml")).versions[7].clauses
    assert list(clauses) == ["sum", "broadcast"]
    assert clauses["broadcast"].text == "mine"


@pytest.mark.parametrize("uses", ["uses: nary", "uses: [nary]"])
def test_a_family_may_be_named_alone(root, uses) -> None:
    changed(root, "word: required", "word: always", "families/nary.yaml")
    changed(root, "uses: {nary: {broadcast-since: 7, word: as NumPy's}}", uses)
    versions = spec_of(read_file(root / "onnx" / "Add.yaml")).versions
    assert versions[7].clauses["broadcast"].text == "inputs broadcast, always"


# name: the file, what is replaced in it by what, file and line that are told, words of the message
MISTAKES = {
    "an unknown family": (
        "onnx/Add.yaml",
        "{nary:",
        "{narry:",
        "Add.yaml:3:15",
        "no family file is called 'narry'; did",
    ),
    "an unknown argument": ("onnx/Add.yaml", "since: 7, word", "sinc: 7, word", "Add.yaml:3:15", "no argument 'broad"),
    "a missing argument": ("onnx/Add.yaml", ", word: as NumPy's", "", "Add.yaml:3:14", "argument 'word' is missing"),
    "a version that there is not": (
        *("onnx/Add.yaml", "broadcast-since: 7", "broadcast-since: 8"),
        *("nary.yaml:4", "since: 8 is no version of this operator"),
    ),
    "removing what is not there": (
        *("onnx/Add.yaml", "fill: [uniform]", "fil: removed"),
        *("Add.yaml:19:3", "'fil' is removed, but no family"),
    ),
    "an unknown section": ("families/nary.yaml", "exclude:", "excludes:", "nary.yaml:17:1", "did you mean 'exclude'?"),
    "a family that uses one": (
        "families/nary.yaml",
        "exclude:",
        "uses: x\nexclude:",
        "nary.yaml:17:1",
        "unknown section",
    ),
    "an argument that is not declared": (
        "families/nary.yaml",
        "${word}",
        "${wrd}",
        "nary.yaml:4",
        "did you mean 'word'",
    ),
    "a wrong value": (
        "families/nary.yaml",
        "broadcast: [absent, 0]\n",
        "broadcast: [1.5]\n",
        "nary.yaml:13:15",
        "is int",
    ),
    "a wrong key": ("families/nary.yaml", "no effect,", "no effect, stat: x,", "nary.yaml:5", "unknown key 'stat'"),
    "a level that there is not": (
        *("families/nary.yaml", "{shapes: same, T", "{shapes: smae, T"),
        *("nary.yaml:25:30", "did you mean 'same'?"),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_where_it_is_written(root, name) -> None:
    file, old, new, place, words = MISTAKES[name]
    changed(root, old, new, file)
    with pytest.raises(SpecErrors) as caught:
        spec_of(read_file(root / "onnx" / "Add.yaml"))
    told = [str(error) for error in caught.value.errors]
    assert any(place in error and words in error for error in told), told


def test_two_families_that_say_the_same_are_told(root) -> None:
    (root / "families" / "other.yaml").write_text("clauses: {broadcast: another}\n")
    changed(root, "word: as NumPy's}", "word: x}, other: {}")
    with pytest.raises(SpecErrors, match=r"Add.yaml:3:\d+: nary and other both define clauses.broadcast"):
        spec_of(read_file(root / "onnx" / "Add.yaml"))
    changed(root, "  sum: the sum\n", "  sum: the sum\n  broadcast: mine\n")
    assert spec_of(read_file(root / "onnx" / "Add.yaml")).versions[1].clauses["broadcast"].text == "mine"


def test_the_resolved_file_says_the_same_and_where_each_line_comes_from(root) -> None:
    library = Library(root)
    text = library.resolved("onnx/Add")
    assert re.search(r"^  sum: the sum +# .*onnx/Add.yaml:16$", text, re.MULTILINE)
    assert re.search(r"^  broadcast: \{.*\} +# .*families/nary.yaml:4$", text, re.MULTILINE)
    assert "modulo" not in text
    (root / "onnx" / "Whole.yaml").write_text(text)
    whole, spec = spec_of(read_file(root / "onnx" / "Whole.yaml")), library.spec("onnx/Add")
    assert whole.versions == spec.versions


def test_the_digest_follows_the_families(root) -> None:
    before = spec_of(read_file(root / "onnx" / "Add.yaml")).digest
    changed(root, "no effect", "no effect at all", "families/nary.yaml")
    assert spec_of(read_file(root / "onnx" / "Add.yaml")).digest != before


@pytest.mark.parametrize("file", ["onnx/Add.yaml", "onnx/Broken.yaml", "families/nary.yaml"])
def test_the_digest_of_a_library_is_of_every_file_those_that_cannot_be_read_too(root, file: str) -> None:
    (root / "onnx" / "Broken.yaml").write_text("a: [")
    before = Library(root).digest
    assert Library(root).digest == before
    (root / file).write_text(f"{(root / file).read_text()} ")
    assert Library(root).digest != before


def test_a_wrong_file_stops_its_own_operator_alone(root) -> None:
    (root / "onnx" / "Broken.yaml").write_text("a: [")
    library = Library(root)
    assert [spec.name for spec in library.usable(library.operators())] == ["Add"]
    assert list(library.broken) == ["onnx/Broken"]
    assert [spec.name for spec in library.specs()] == ["Add"]
    with pytest.raises(SpecErrors.__mro__[1], match=r"Broken.yaml:2:1: not YAML"):
        list(library.usable(["onnx/Broken"]))
    assert pickle.loads(pickle.dumps(library)).operators() == library.operators()


def test_show_prints_the_resolved_file_and_a_list_leaves_a_wrong_one_out(root) -> None:
    (root / "onnx" / "Mean.yaml").write_text("a: [")
    (root / "onnx" / "ReduceMean.yaml").write_text((default_root() / "onnx" / "ReduceMean.yaml").read_text())
    found = CliRunner().invoke(main, ["show", "onnx/Add", "--resolved", "--specs", str(root)])
    assert found.exit_code == 0
    assert "families/nary.yaml:4" in found.output
    glob = ["--select", "onnx/*Mean-1*/float32/scalar/-/ramp"]
    found = CliRunner().invoke(main, ["list", "cases", *glob, "--specs", str(root)])
    assert found.exit_code == 2
    assert "onnx/ReduceMean-11/float32/scalar/-/ramp" in found.output
    assert "onnx/Mean is left out: " in found.output
    found = CliRunner().invoke(main, ["list", "cases", "--select", "onnx/Mean*", "--specs", str(root)])
    assert found.exit_code == 2
    assert "Mean.yaml:2:1: not YAML" in found.output

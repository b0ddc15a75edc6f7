"""What a spec says about each version, and the library of spec files."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.specs import MEAN, REDUCE, VOCABULARY, spec_from

from opconform.cases.errors import OpconformError
from opconform.cases.program import OperatorVersion
from opconform.specs.loader import Library, UnknownOperator, default_root, spec_of
from opconform.specs.model import AttributeSignature, Condition, Operand, Port, Recipe, Word
from opconform.specs.reading import SpecErrors, read, read_file

WITHOUT_VERSION = """\
operator: onednn/X
family: reduction.mean
source: https://example.org/
versions: {any: {inputs: {x: float32}}}
clauses: {a: b}
"""


def test_versions_are_resolved_from_their_differences() -> None:
    versions = spec_from(REDUCE).versions
    first, last = versions[1].signature, versions[18].signature
    assert list(versions) == [1, 11, 13, 18]
    assert first.attributes == (
        AttributeSignature("axes", "ints", required=False),
        AttributeSignature("keepdims", "int", required=False, default=1),
    )
    assert first.inputs == (Port("data", "T"),)
    assert first.outputs == last.outputs == (Port("reduced", "T"),)
    assert last.inputs == (Port("data", "T"), Port("axes", "int64", "optional", 0))
    assert last.attribute("axes") is None
    seven = ("uint32", "uint64", "int32", "int64", "float16", "float32", "float64")
    assert [dict(v.signature.types) for v in versions.values()] == [{"T": seven}] * 2 + [
        {"T": (*seven, "bfloat16")}
    ] * 2
    assert versions[11].change == "axes may be negative"
    assert versions[13].change is None


def test_the_head_of_a_spec() -> None:
    spec = spec_from(REDUCE, "specs/onnx/ReduceMean.yaml")
    assert (spec.operator, spec.domain, spec.family, spec.function) == ("onnx/ReduceMean", "", "reduction", "mean")
    assert spec.file == "specs/onnx/ReduceMean.yaml"
    assert len(spec.digest) == 64
    assert spec.versions[13].operator == OperatorVersion("onnx", "ReduceMean", 13)
    assert spec.version(13) is spec.versions[13]
    with pytest.raises(OpconformError, match="has no version 12; it has 1, 11, 13, 18"):
        spec.version(12)


def test_ports_attributes_and_defaults_of_every_form_are_read() -> None:
    text = """\
operator: onnx/Everything
family: elementwise.mean
source: https://example.org/
versions:
  1:
    attributes:
      a: graph
      b: optional tensor
      c: float = 1e-05
      d: string = NOTSET
      e: "string = a, b"
      f: "ints = [0, 2, 3]"
      g: "strings = [Tanh, Tanh]"
      h: 'string = ""'
      i: boolean = false
      j: "ints = []"
      k: floats
    inputs: {x: T, y: optional seq(T), z: each V*}
    outputs: {o: int64, p: S+}
    types: {T: [ieee], S: seq(T), V: [bool, "map(string,float32)", seq(floats)]}
clauses: {c: words}
"""
    signature = spec_from(text).versions[1].signature
    assert {a.name: (a.kind, a.required, a.default) for a in signature.attributes} == {
        "a": ("graph", True, None),
        "b": ("tensor", False, None),
        "c": ("float", False, 1e-5),
        "d": ("string", False, "NOTSET"),
        "e": ("string", False, "a, b"),
        "f": ("ints", False, (0, 2, 3)),
        "g": ("strings", False, ("Tanh", "Tanh")),
        "h": ("string", False, ""),
        "i": ("boolean", False, False),
        "j": ("ints", False, ()),
        "k": ("floats", True, None),
    }
    assert signature.inputs == (Port("x", "T"), Port("y", "seq(T)", "optional", 0), Port("z", "V", "each", 0))
    assert signature.outputs == (Port("o", "int64"), Port("p", "S", "variadic", 1))
    assert signature.types["S"] == ("seq(float16)", "seq(float32)", "seq(float64)")
    assert signature.ties == {"S": "seq(T)"}
    assert signature.types["V"][:3] == ("bool", "map(string,float32)", "seq(bfloat16)")
    assert [signature.letter(port) for port in ("x", "y", "z", "o", "p", "q")] == ["T", "T", "V", None, "S", None]
    assert signature.input_counts == (2, None)
    assert signature.output_counts == (2, None)


def test_optional_inputs_before_the_last_required_one_count() -> None:
    text = MEAN.replace("{data_0: T+}", "{a: optional T, data_0: T, c: optional T}").replace(
        "data_0: [1, 2]", "opset: [first]"
    )
    text = text.replace("[[3, 2]]", "[3, 2]").replace("[[3, 1], [1, 4]]", "[3, 1]")
    text = text.replace("[float32, float64]", "[float32]").replace("data_0: 2, shapes: same, ", "shapes: row-column, ")
    text = text.replace("mended: {type(data_0): float32}", "mended: {shapes: same}")
    assert spec_from(text).versions[1].signature.input_counts == (2, 3)


def test_parameters_apply_where_their_names_and_spans_do() -> None:
    versions = spec_from(REDUCE).versions
    assert list(versions[1].parameters) == ["T", "shapes", "axes", "keepdims", "fill"]
    assert list(versions[18].parameters) == [
        *("T", "shapes", "axes", "axes-from", "keepdims", "noop_with_empty_axes", "fill"),
    ]
    assert list(versions[1].parameters["axes"]) == ["absent", "first", "last"]
    assert versions[11].parameters["axes"] == {
        "absent": Word.ABSENT,
        "first": (0,),
        "last": ("r - 1",),
        "negative": (-1,),
    }
    assert versions[1].parameters["keepdims"] == {"absent": Word.ABSENT, "0": 0, "1": 1}
    assert "bfloat16" not in versions[11].parameters["T"]
    assert versions[13].parameters["T"]["bfloat16"] == "bfloat16"


def test_the_type_of_a_port_goes_by_its_letter_and_levels_keep_their_types() -> None:
    versions = spec_from(MEAN).versions
    assert list(versions[1].parameters["T"]) == ["float16", "float32", "float64"]
    assert versions[1].parameters["data_0"] == {"1": 1, "2": 2}
    assert versions[1].parameters["consumed_inputs"] == {"absent": Word.ABSENT, "zero": ("0 x n",)}
    assert "consumed_inputs" not in versions[6].parameters
    assert list(versions[6].parameters["shapes"]) == ["same"]
    assert versions[8].parameters["shapes"]["row-column"] == ((3, 1), (1, 4))


def test_two_ports_that_share_a_letter_share_what_both_list() -> None:
    text = MEAN.replace("type(data_0): all", "type(data_0): [float32, float64]\n  type(mean): [float16, float64]")
    assert list(spec_from(text).versions[1].parameters["T"]) == ["float64"]


def test_words_stand_for_themselves_only_where_they_are_wrapped() -> None:
    text = MEAN.replace(
        "  data_0: [1, 2]\n",
        "  data_0: [1, 2]\n  legacy: {a: {dims: absent}, b: {outputs: [omitted, mean]}, c: {value: absent}}\n",
    )
    levels = spec_from(text).versions[1].parameters["legacy"]
    assert levels == {"a": {"dims": Word.ABSENT}, "b": {"outputs": (Word.OMITTED, "mean")}, "c": "absent"}


def test_a_bundle_applies_where_the_version_has_all_that_it_sets() -> None:
    text = MEAN.replace("  consumed_inputs: {absent: absent, zero: [0 x n]}\n", "")
    text = text.replace("  data_0: [1, 2]\n", "  data_0: [1, 2]\n  legacy: {none: {}, old: {consumed_inputs: [0]}}\n")
    versions = spec_from(text).versions
    assert list(versions[1].parameters["legacy"]) == ["none", "old"]
    assert list(versions[6].parameters["legacy"]) == ["none"]


def test_exclusions_name_the_levels_of_the_version() -> None:
    versions = spec_from(REDUCE).versions
    integers = ("uint32", "uint64", "int32", "int64")
    assert versions[1].exclude == (
        {"shapes": ("scalar",), "axes": ("first", "last")},
        {"T": integers, "fill": ("uniform",)},
    )
    assert versions[18].exclude == (
        {"shapes": ("scalar",), "axes": ("first", "last", "negative")},
        {"T": (*integers, "bfloat16"), "fill": ("uniform",)},
        {"noop_with_empty_axes": ("1",), "keepdims": ("0",)},
    )


def test_clauses_and_silences_apply_where_their_spans_do() -> None:
    versions = spec_from(REDUCE).versions
    assert list(versions[1].clauses) == ["mean", "keepdims-default", "axes-kept"]
    assert list(versions[18].clauses) == ["mean", "keepdims-default", "axes-range", "axes-kept"]
    assert [list(v.silences) for v in versions.values()] == [["rounding", "empty-axes"]] * 3 + [["rounding"]]
    clauses = versions[13].clauses
    assert clauses["mean"].when == {}
    assert clauses["mean"].source == "https://example.org/ReduceMean.html#13"
    assert versions[1].silences["rounding"].source == "https://example.org/ReduceMean.html#1"
    assert versions[1].silences["rounding"].options == ("truncate", "floor")
    assert clauses["keepdims-default"].when == {"keepdims": Condition((Word.ABSENT,))}
    assert clauses["axes-range"].when is None
    assert clauses["axes-kept"].status == "inferred"
    assert clauses["axes-kept"].source == "https://example.org/elsewhere"
    assert clauses["axes-kept"].when == {
        "axes": Condition((Word.ABSENT, Word.NONE), negated=True),
        "T": Condition(("float16", "float32", "float64")),
    }


def test_a_disputed_clause_carries_its_issue() -> None:
    disputed = "status: disputed\n    upstream: https://example.org/issues/1\n    disputes: inputs.axes"
    text = REDUCE.replace("status: inferred", disputed)
    clause = spec_from(text).versions[1].clauses["axes-kept"]
    assert (clause.status, clause.upstream) == ("disputed", "https://example.org/issues/1")
    assert clause.disputes == ("inputs.axes",)


def test_edges_apply_where_the_version_has_what_they_set() -> None:
    versions = spec_from(REDUCE).versions
    assert list(versions[1].edges) == ["empty", "fraction", "wrong-type", "unknown"]
    assert list(versions[18].edges) == ["too-large", "fraction", "wrong-type", "unknown"]
    fraction = versions[1].edges["fraction"]
    assert fraction.settings == {"shapes": (2, 2), "axes": ("r - 1",), "fill": "halves", "T": ("int32",)}
    assert fraction.tests == ("rounding", "mean")
    assert not fraction.rejected
    assert versions[13].edges["fraction"].settings["T"] == ("int32", "bfloat16")
    assert versions[1].edges["empty"].settings == {"shapes": (3, 2, 2), "axes": ()}


def test_a_rejected_edge_carries_what_mends_it() -> None:
    versions = spec_from(REDUCE).versions
    edge = versions[11].edges["too-large"]
    assert edge.rejected
    assert edge.settings == {"axes": ("r",)}
    assert edge.mended == {"axes": ("r - 1",)}
    assert versions[11].edges["unknown"].mended == {"unknown": Word.ABSENT}


def test_a_type_that_is_wrong_on_purpose_is_one_that_the_version_lacks() -> None:
    versions = spec_from(REDUCE).versions
    assert versions[11].edges["wrong-type"].settings["T"] == ("bool", "bfloat16")
    assert versions[13].edges["wrong-type"].settings["T"] == ("bool",)
    assert versions[13].edges["wrong-type"].mended == {"T": ("float32",)}


def test_the_types_of_a_variadic_input_stay_one_case() -> None:
    edge = spec_from(MEAN).versions[1].edges["types-differ"]
    assert edge.settings == {"data_0": 2, "shapes": ((3, 2),), "type(data_0)": ("float32", "float64")}
    assert edge.mended == {"type(data_0)": ("float32",)}


def test_an_unknown_attribute_is_unknown_only_where_the_version_lacks_it() -> None:
    text = REDUCE.replace("unknown: weights", "unknown: noop_with_empty_axes")
    versions = spec_from(text).versions
    assert [("unknown" in v.edges) for v in versions.values()] == [True, True, True, False]


def test_a_level_of_other_versions_keeps_the_edge_out() -> None:
    text = REDUCE.replace("axes: last, fill: halves", "axes: negative, fill: halves")
    assert ["fraction" in v.edges for v in spec_from(text).versions.values()] == [False, True, True, True]


def test_shapes_and_graphs_are_kept() -> None:
    text = REDUCE + "shapes: {data: [d0, 2*r, 'd[1:]...'], axes: same(data)}\n"
    text += 'graphs: {g: "a () => ({V}[N] y) { y = Identity (x) }"}\n'
    spec = spec_from(text)
    assert spec.versions[1].operands == {"data": Operand("data", ("d0", "2*r", "d[1:]..."))}
    assert spec.versions[18].operands["axes"] == Operand("axes", Recipe("same", ("data",)))
    assert "Identity" in spec.graphs["g"]


def test_a_graph_that_is_none_is_told() -> None:
    with pytest.raises(SpecErrors, match=r"spec.yaml:\d+:13: not ONNX's text for a graph: .*Expected"):
        spec_from(REDUCE + 'graphs: {g: "a () -> y"}\n')


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ("a () => (float[3] y) { y = Identityy (x) }", "ONNX has no operator 'Identityy'"),
        ("a () => (float[3] y) { z = Identity (x) }", "nothing in the body makes its output 'y'"),
    ],
)
def test_a_body_that_no_case_could_use_is_told_when_it_is_read(graph: str, words: str) -> None:
    with pytest.raises(SpecErrors, match=rf"spec.yaml:\d+:13: {words}"):
        spec_from(REDUCE + f'graphs: {{g: "{graph}"}}\n')


def test_a_body_of_another_standard_names_the_sets_of_its_operations() -> None:
    text = (default_root() / "openvino" / "If.yaml").read_text()
    with pytest.raises(SpecErrors, match=r"'set1' is no operation set: write opset1\.Negative and the like"):
        spec_from(text.replace("opset1.Negative", "set1.Negative"))


@pytest.mark.parametrize("word", ["T65537", "T1", "axes65537", "r65537"])
def test_a_condition_on_something_that_no_version_has_is_told_with_its_line(word: str) -> None:
    text = REDUCE.replace("clauses:\n", f"clauses:\n  odd: {{text: it is odd, when: {{{word}: [1]}}}}\n")
    assert text != REDUCE
    with pytest.raises(SpecErrors, match=rf"spec.yaml:\d+:\d+: .*{word}"):
        spec_from(text)


def test_versions_may_be_text_or_none_at_all() -> None:
    dotted = REDUCE.replace("onnx/", "onednn/").replace("  1:", '  "1.9":').replace("  11:", '  "1.10":')
    dotted = dotted.replace("  13:", '  "2.0":').replace("  18:", '  "3":')
    for number, text in (("11", '"1.10"'), ("18", '"3"')):
        dotted = dotted.replace(f"since: {number}", f"since: {text}").replace(f"before: {number}", f"before: {text}")
    assert list(spec_from(dotted).versions) == ["1.9", "1.10", "2.0", "3"]
    spec = spec_from(WITHOUT_VERSION)
    assert str(spec.versions["any"].operator) == "onednn/X"


def test_without_vocabulary_a_familys_words_pass() -> None:
    text = REDUCE.replace("reduction.mean", "nobody.knows").replace("[ramp, uniform]", "[this, that]")
    text = text.replace("fill: uniform", "fill: this")
    assert list(spec_of(read(text)).versions[1].parameters["fill"]) == ["this", "that"]


def test_a_signatures_part_is_found_where_it_was_written() -> None:
    spec = spec_from(REDUCE)
    assert spec.written_at(13, "attributes", "keepdims") == ("versions", 1, "attributes", "keepdims")
    assert spec.written_at(18, "attributes", "axes") == ("versions", 18, "attributes")
    assert spec.written_at(18, "types", "T") == ("versions", 13, "types", "T")
    assert spec.position(("versions", 13, "types", "T")).line == 14
    assert str(spec.error(("family",), "words")) == "spec.yaml:2:9: words"


@pytest.fixture
def library(tmp_path) -> Library:
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "ReduceMean.yaml").write_text(REDUCE)
    (tmp_path / "onnx" / "Mean.yaml").write_text(MEAN)
    (tmp_path / "onnx" / "Broken.yaml").write_text("a: [")
    return Library(tmp_path, VOCABULARY)


def test_a_library_lists_without_opening_and_loads_what_is_asked_for(library) -> None:
    assert library.operators() == ["onnx/Broken", "onnx/Mean", "onnx/ReduceMean"]
    assert library.spec("onnx/Mean").name == "Mean"
    assert library.spec("onnx/Mean") is library.spec("onnx/Mean")


def test_operator_versions_are_found_by_name(library) -> None:
    spec, version = library.operator_version("onnx/ReduceMean-13")
    assert (spec.operator, version) == ("onnx/ReduceMean", 13)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("onnx/ReduceMaen-13", "no operator is called 'onnx/ReduceMaen-13'; did you mean 'onnx/ReduceMean'?"),
        (
            "onnx/ReduceMean-12",
            "there is onnx/ReduceMean-1, onnx/ReduceMean-11, onnx/ReduceMean-13, onnx/ReduceMean-18",
        ),
        ("onnx/ReduceMean", "'onnx/ReduceMean' names no version; there is onnx/ReduceMean-1,"),
        ("onnx/ReduceMean-", "no operator version is called"),
        ("zzz", "no operator is called 'zzz'; there are 3"),
    ],
)
def test_an_unknown_operator_version_says_what_there_is(library, name, expected) -> None:
    with pytest.raises(UnknownOperator) as caught:
        library.operator_version(name)
    assert expected in str(caught.value)


def test_an_unknown_operator_says_what_was_meant(library) -> None:
    with pytest.raises(UnknownOperator, match="did you mean 'onnx/Mean'"):
        library.spec("onnx/Maen")


def test_an_operator_without_versions_is_found_by_its_name(tmp_path) -> None:
    (tmp_path / "onednn").mkdir()
    (tmp_path / "onednn" / "X.yaml").write_text(WITHOUT_VERSION)
    assert Library(tmp_path).operator_version("onednn/X")[1] == "any"
    with pytest.raises(UnknownOperator, match=r"there is onednn/X$"):
        Library(tmp_path).operator_version("onednn/X-1")


def test_a_file_named_for_another_operator_is_told(tmp_path) -> None:
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "Sum.yaml").write_text(MEAN)
    with pytest.raises(SpecErrors, match=r"Sum.yaml:1:11: expected onnx/Sum, as in the file's name; read onnx/Mean"):
        Library(tmp_path, VOCABULARY).spec("onnx/Sum")


@pytest.mark.slow
def test_the_shipped_specs_load() -> None:
    library = Library()
    assert {"onnx/Mean", "onnx/ReduceMean"} <= set(library.operators())
    for operator in library.operators():
        assert library.spec(operator).operator == operator
    assert (default_root() / "onnx" / "Mean.yaml").is_file()


def test_listing_operators_imports_nothing_heavy() -> None:
    code = "import sys; from opconform.specs.loader import Library; Library().operators(); "
    code += "print([m for m in ('pydantic', 'onnx', 'numpy.testing', 'onnxruntime') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_spec_can_be_sent_to_another_process(tmp_path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(REDUCE)
    spec = spec_of(read_file(path), VOCABULARY)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_a_spec_is_built_once_of_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    monkeypatch.setattr("sys.pycache_prefix", None)
    folder = tmp_path / "onnx"
    folder.mkdir()
    (folder / "ReduceMean.yaml").write_text(REDUCE)
    fresh = Library(tmp_path, VOCABULARY).spec("onnx/ReduceMean")
    assert not list(folder.glob("__pycache__/*"))
    assert Library(tmp_path, VOCABULARY, keep=True).spec("onnx/ReduceMean") == fresh
    with monkeypatch.context() as patched:
        patched.setattr("opconform.specs.build.build", lambda *_: pytest.fail("built again"))
        assert Library(tmp_path, VOCABULARY, keep=True).spec("onnx/ReduceMean") == fresh
    (kept,) = folder.glob("__pycache__/*")
    kept.write_bytes(kept.read_bytes()[:-100])
    assert Library(tmp_path, VOCABULARY, keep=True).spec("onnx/ReduceMean") == fresh
    (folder / "ReduceMean.yaml").write_text(REDUCE.replace("change: axes may be negative", "change: another"))
    assert Library(tmp_path, VOCABULARY, keep=True).spec("onnx/ReduceMean").versions[11].change == "another"
    with pytest.raises(SpecErrors):  # other words, other mistakes
        Library(tmp_path, {}, keep=True).spec("onnx/ReduceMean")

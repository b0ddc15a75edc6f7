"""The words that say how inputs, types and settings come about: each is carried to the plan, or refused."""

import re
from pathlib import Path

import pytest
from fakes.specs import REDUCE, spec_from

from opconform.specs.loader import Library, spec_of
from opconform.specs.model import Condition, Operand, Recipe, TensorValue, TypeSource, Vocabulary, Word
from opconform.specs.reading import SpecError, SpecErrors, read

EXAMPLES = Library(Path(__file__).parent / "examples")

HEAD = """\
operator: onnx/Some
family: some.some
source: https://example.org/
versions:
  1:
    attributes: {to: int, axis: int = 0, alpha: optional float, betas: optional floats, names: optional strings,
                 value: optional tensor, sparse: optional sparse_tensor, kind: optional type_proto}
    inputs: {x: T, indices: I, scale: optional T}
    outputs: {y: U, z: optional U}
    types: {T: [ieee], I: [int32, int64], U: [ieee, string], S: seq(T)}
  7:
    attributes: {axis: int = 0}
clauses: {c: words}
"""


def some(more: str, vocabulary: Vocabulary | None = None):
    """Return the spec of HEAD and more."""
    return spec_of(read(HEAD + more, "some.yaml"), {"some": vocabulary} if vocabulary else None)


def refused(more: str, vocabulary: Vocabulary | None = None) -> list[str]:
    """Return what loading HEAD and more tells."""
    with pytest.raises((SpecErrors, SpecError)) as caught:
        some(more, vocabulary)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("operator", EXAMPLES.operators())
def test_the_examples_of_every_family_load(operator: str) -> None:
    spec = EXAMPLES.spec(operator)
    for version in spec.versions.values():
        assert list(version.operands) == [port.name for port in version.signature.inputs]
        assert all(edge.tests for edge in version.edges.values())


def test_there_are_examples_of_all_three_standards() -> None:
    names = EXAMPLES.operators()
    assert len(names) == 23
    assert {name.partition("/")[0] for name in names} == {"onnx", "openvino", "onednn"}


def test_operands_carry_shapes_draws_domains_and_arguments() -> None:
    version = some(
        """\
operands:
  x: {shape: d, domain: "between(-1, 1)", fill: lattice}
  indices: {shape: q, draw: [any, {signed: {since: 7}}, absent], below: "d[axis]", steps: [1, r]}
  scale: [{shape: [], before: 7}, {shape: same(x), since: 7}]
parameters: {shapes: {some: {d: [3, 2], q: [4]}}}
"""
    )
    first, last = version.versions[1], version.versions[7]
    assert first.operands["x"] == Operand("x", ("d...",), (), Recipe("between", ("-1", "1")), Recipe("lattice"))
    arguments = {"below": "d[axis]", "steps": (1, "r")}
    assert first.operands["indices"] == Operand("indices", ("q...",), (Recipe("any"),), arguments=arguments)
    assert last.operands["indices"].draws == (Recipe("any"), Recipe("signed"))
    assert last.parameters["indices"] == {"any": Recipe("any"), "signed": Recipe("signed"), "absent": Word.ABSENT}
    assert first.operands["scale"].shape == ()
    assert last.operands["scale"].shape == Recipe("same", ("x",))


def test_shapes_and_domains_are_short_forms() -> None:
    version = some("shapes: {x: [d0, 2*r]}\ndomains: {scale: positive}\n").versions[1]
    assert version.operands["x"].shape == ("d0", "2*r")
    assert version.operands["scale"].domain == Recipe("positive")


def test_an_edge_of_a_drawn_input_names_a_recipe_with_arguments() -> None:
    text = "operands: {indices: {draw: [any]}}\nedges: {e: {with: {indices: overlap(0.5)}, tests: c}}\n"
    assert some(text).versions[1].edges["e"].settings == {"indices": Recipe("overlap", ("0.5",))}
    text = "parameters: {scale: {one: 1, drawn: {draw: fits(T)}}}\n"
    assert some(text).versions[1].parameters["scale"] == {"one": 1, "drawn": Recipe("fits", ("T",))}


def test_values_are_what_the_signature_says() -> None:
    text = """\
parameters:
  alpha: [absent, 1, 0.5, .inf]
  betas: {some: [0.5, 0.25], more: [1, 2 x r]}
  names: {some: [Tanh, absent]}
  value: {seven: [7], table: [[1, 2], [3, 4]], none: {dims: [0, 3], values: [], type: float32}}
  sparse: {one: {dims: [3], values: [2.5], indices: [1]}}
  kind: {same: seq(T), text: string}
edges:
  e: {with: {alpha: 3, betas: [1, 2], value: 4}, tests: c}
"""
    version = some(text).versions[1]
    assert version.parameters["alpha"] == {"absent": Word.ABSENT, "1": 1.0, "0.5": 0.5, "inf": float("inf")}
    assert type(version.parameters["alpha"]["1"]) is float
    assert version.parameters["betas"] == {"some": (0.5, 0.25), "more": (1.0, "2 x r")}
    assert version.parameters["names"] == {"some": ("Tanh", "absent")}
    assert version.parameters["value"] == {
        "seven": TensorValue((1,), (7,)),
        "table": TensorValue((2, 2), (1, 2, 3, 4)),
        "none": TensorValue((0, 3), (), "float32"),
    }
    assert version.parameters["sparse"] == {"one": TensorValue((3,), (2.5,), None, (1,))}
    assert version.parameters["kind"] == {"same": "seq(T)", "text": "string"}
    bundle = some("parameters: {all: {plain: {alpha: 2, axis: 1}}}\n").versions[1].parameters["all"]["plain"]
    assert bundle == {"alpha": 2.0, "axis": 1}
    assert type(bundle["alpha"]) is float
    assert version.edges["e"].settings == {"alpha": 3.0, "betas": (1.0, 2.0), "value": TensorValue((), (4,))}


def test_a_spanned_word_is_a_word_and_wrapped_twice_it_is_text() -> None:
    text = "parameters: {scale: {a: {value: absent, since: 7}, b: 1}, U: [string]}\n"
    assert some(text).versions[7].parameters["scale"] == {"a": Word.ABSENT, "b": 1}
    text = "parameters: {names: {a: [x]}, how: {a: {value: {value: absent}, since: 7}, b: x}}\n"
    assert some(text).versions[7].parameters["how"] == {"a": "absent", "b": "x"}


def test_types_from_an_attribute_leave_out_what_a_missing_one_cannot_be() -> None:
    text = "types-from: {y: {attribute: to, absent: float32}}\nparameters: {to: [absent, given], U: all}\n"
    version = some(text).versions[1]
    assert version.types_from == {"U": TypeSource("to", "float32")}
    assert version.exclude == ({"to": ("absent",), "U": ("float16", "float64", "string")},)
    assert some(text).versions[7].types_from == {}


def test_letters_precision_and_strength() -> None:
    text = """\
same: [T, U]
precision: {erf: 16, tanh: {float32: 8, float64: 4.5}}
strength: {3: [T, axis, indices]}
parameters: {T: all, axis: [0, 1], indices: {a: [0], b: [1]}}
"""
    version = some(text).versions[1]
    assert version.same == (("T", "U"),)
    assert version.precision == {"erf": {"": 16.0}, "tanh": {"float32": 8.0, "float64": 4.5}}
    assert version.strength == {3: (("T", "axis", "indices"),)}


def test_bundles_have_free_names_and_may_bind_symbols() -> None:
    text = """\
shapes: {x: [N, D, M]}
parameters:
  way: {none: {}, one: {axis: 0, M: 2}, named: {outputs: [y, omitted]}, both: {outputs: [y, z]}, alpha: {alpha: 1}}
  shapes: {some: {N: 3}}
  D: [1, 2]
"""
    versions = some(text).versions
    levels = versions[1].parameters["way"]
    assert levels["one"] == {"axis": 0, "M": 2}
    assert levels["named"] == {"outputs": ("y", Word.OMITTED)}
    assert list(versions[7].parameters["way"]) == ["none", "one", "named", "both"]
    assert versions[1].parameters["D"] == {"1": 1, "2": 2}


def test_spans_may_name_the_signature() -> None:
    text = """\
silences:
  p: {when: x, options: [b], having: alpha}
  q: {when: x, options: [b], lacking: [alpha, inputs.x]}
  r: {when: x, options: [b], lacking: alpha}
parameters: {axis: [0, {value: 1, having: attributes.alpha}]}
"""
    versions = some(text).versions
    assert [list(v.silences) for v in versions.values()] == [["p"], ["r"]]
    assert [list(v.parameters["axis"]) for v in versions.values()] == [["0", "1"], ["0"]]


def test_a_condition_may_name_a_level() -> None:
    text = HEAD.replace("{c: words}", "{c: {text: words, when: {way: one, scale: half}}}")
    text += "parameters: {way: {one: {axis: 1}, two: {axis: 0}}, scale: {half: 0.5}}\n"
    clause = spec_of(read(text)).versions[1].clauses["c"]
    assert clause.when == {"axis": Condition((1,)), "scale": Condition((0.5,))}


def test_an_edge_is_found_under_names_that_it_had() -> None:
    text = REDUCE.replace(
        "tests: [rounding, mean]}", "tests: [rounding, mean], also-known-as: {old: [], fraction-bfloat16: [bfloat16]}}"
    )
    versions = spec_from(text).versions
    assert versions[1].aliases.keys() == {"old"}
    assert versions[13].aliases["fraction-bfloat16"].settings["T"] == ("bfloat16",)
    assert versions[13].edge("old").id == "old"
    assert versions[13].edge("old").settings == versions[13].edge("fraction").settings
    assert versions[13].edge("nothing") is None
    assert "old" not in versions[13].edges


def test_a_pair_of_tied_letters_may_be_wrong_together() -> None:
    edge = EXAMPLES.spec("onnx/SequenceInsert").versions[11].edges["other-type"]
    assert edge.settings["S"] == ("seq(float32)",)
    assert edge.settings["T"] == ("int64",)
    assert edge.mended == {"S": ("seq(int64)",)}


# what is added to HEAD, «: where the message must point; words of it
MISTAKES = {
    "an operand that is no input": ("operands: {«y: {domain: positive}}", "'y' is no input of any version"),
    "a shape with a symbol that nothing binds": ("operands: {x: {shape: [«N]}}", "'N': nothing binds 'N'"),
    "the same as nothing": ("operands: {x: {shape: «same(w)}}", "read same(x), x an input"),
    "a shape said twice": ("shapes: {x: [1]}\noperands: {x: {«shape: [2]}}", "is already in `shapes`"),
    "a domain said twice": ("domains: {x: a}\noperands: {x: {«domain: b}}", "is already in `domains`"),
    "draws and levels": ("operands: {x: {draw: [a]}}\nparameters: {«x: [1]}", "the levels of x are its draws"),
    "a draw that is none": ("operands: {x: {draw: [«[1]]}}", "a draw is a recipe"),
    "two operands at once": ("operands: {«x: [{shape: [1]}, {shape: [2], since: 7}]}", "two operands 'x' apply to"),
    "an argument that is a mapping": ("operands: {x: {below: «{a: b}}}", "expected a number, a word, an expression"),
    "a domain that is no word": ("domains: {x: «a b}", "'a b' names no function"),
    "a type from no attribute": ("types-from: {y: {attribute: «dtype}}", "'dtype' is no attribute of any version"),
    "a type of no letter": ("types-from: {«Q: {attribute: to}}", "'Q' is no type letter, and no output"),
    "given, and nothing says what": ("parameters: {axis: [0, «given]}", "the value of axis is unknown"),
    "one letter together": ("same: «[T]", "there are two at least"),
    "a letter that there is not": ("same: [T, «Q]", "'Q' is no type letter"),
    "no budget": ("precision: {erf: «0}", "expected a number of ulp greater than 0"),
    "a budget of no type": ("precision: {erf: {floot: «1}}", "'floot' is no element type"),
    "a strength beyond the names": ("strength: {3: «[axis]}\nparameters: {axis: [0]}", "3 of 1 names interact"),
    "a strength of no parameter": ("strength: {2: [axis, «to]}\nparameters: {axis: [0]}", "'to' is no parameter"),
    "dims that bind": ("parameters: {dims: {a: «{N: 1}}}", "dims are: static or symbolic"),
    "a delivery that is none": ("parameters: {x-from: [«initializer]}", "how an input comes: constant or graph-input"),
    "a rank that is none": ("parameters: {x-rank: [0, «3]}", "the rank of what is written: 0 or 1 or 2; read 3"),
    "a negative extent": ("parameters: {shapes: {a: {x: «-1}}}", "a shape is a list of dimensions; read -1"),
    "a bundle under an attribute's name": ("parameters: {axis: {a: «{alpha: 1}}}", "a bundle has a name of its own"),
    "a bundle of what has levels": (
        *("parameters: {way: {a: {«axis: 1}}, axis: [0]}", "'axis' has levels of its own"),
    ),
    "a list of shapes for inputs with names": ("parameters: {shapes: {a: «[[1], [2]]}}", "name the inputs, {A: [3], B"),
    "outputs by number": ("parameters: {outputs: {a: «2}}", "no output is variadic"),
    "a float that is text": ("parameters: {alpha: [«high]}", "alpha is float; read 'high'"),
    "a list in a list of floats": ("parameters: {betas: {a: [«[1]]}}", "betas is floats; read (1,)"),
    "a list of text that holds a number": ("parameters: {names: {a: [x, «1]}}", "names is strings; read 1"),
    "a ragged tensor": ("parameters: {value: {a: «[[1], [1, 2]]}}", "the rows of a tensor have one length"),
    "a tensor with a word too many": ("parameters: {value: {a: «{vals: [1]}}}", "read vals"),
    "a sparse tensor without places": ("parameters: {sparse: {a: «{values: [1]}}}", "a sparse tensor has indices"),
    "a type that is none": ("parameters: {kind: {a: «Q}}", "kind is a type"),
    "a recipe for an attribute": ("parameters: {axis: {a: «{draw: b}}}", "axis is no input"),
    "an element that is a word": ("parameters: {indices: {a: «all-of-them}}", "nothing binds 'all'"),
    "a whole number that is a symbol of nothing": ("parameters: {axis: [«k]}", "nothing binds 'k'"),
    "having what there is not": ("parameters: {axis: {levels: [0], having: «beta}}", "'beta' is no attribute, input"),
    "an alias that is an edge": (
        "edges: {a: {with: {axis: 0}, tests: c, also-known-as: {«b: []}}, b: {with: {axis: 1}, tests: c}}",
        "'b' is already an edge",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_word_that_cannot_be_obeyed_is_refused_at_its_place(name: str) -> None:
    more, words = MISTAKES[name]
    text = HEAD + more
    told = refused(more.replace("«", "") + "\n")
    at = text.index("«")
    place = f"some.yaml:{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}: "
    assert any(line.startswith(place) and words in line for line in told), told


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("operands: {x: {shape: per-axis}}", "no shape is called 'per-axis'"),
        ("operands: {x: {draw: [some]}}", "no recipe is called 'some'"),
        ("operands: {x: {domain: half}}", "no domain is called 'half'"),
        ("operands: {x: {above: 1}}", "no argument is called 'above'"),
        ("precision: {erfc: 1}", "no primitive is called 'erfc'"),
    ],
)
def test_words_of_the_family_are_checked_where_it_says_them(more: str, words: str) -> None:
    known = {name: frozenset({"erf"}) for name in ("shapes", "draws", "domains", "arguments", "precision")}
    vocabulary = Vocabulary(references=frozenset({"some"}), **known)
    assert re.search(re.escape(words), refused(more + "\n", vocabulary)[0])

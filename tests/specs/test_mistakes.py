"""Typical mistakes in a spec file: each is told once, at its line and column, with what was expected."""

import pytest
from fakes.specs import MEAN, REDUCE, spec_from

from opconform.specs.reading import Position, SpecError, SpecErrors

# name: what is replaced in REDUCE, by what, and words of the message. « stands where the message must point.
MISTAKES = {
    # sections and keys
    "an unknown section": ("silences:", "«silence:", "unknown key 'silence'; did you mean 'silences'?"),
    "an unknown key in a version": ("change: axes may", "«chnge: axes may", "did you mean 'change'?"),
    "an unknown key in a clause": ("status: inferred", "«state: inferred", "did you mean 'status'?"),
    "an unknown key in an edge": ("expect: rejected}\n  fr", "«expects: rejected}\n  fr", "did you mean 'expect'?"),
    "an unknown key in a silence": ("options: [truncate", "«option: [truncate", "did you mean 'options'?"),
    "no source": (
        "operator: onnx/ReduceMean\nfamily: reduction.mean\nsource: https://example.org/ReduceMean.html#{version}\n",
        "«operator: onnx/ReduceMean\nfamily: reduction.mean\n",
        "key 'source' is missing",
    ),
    "an edge that tests nothing": (
        "  empty: {with: {shapes: cube, axes: []}, tests: empty-axes",
        "  «empty: {with: {axes: []}",
        "key 'tests' is missing in edges.empty",
    ),
    "an unquoted comma in a clause": (
        '"axes lie in [-r, r-1]"',
        "axes lie in x, «y",
        "'y' has no value; text that holds a comma is quoted inside {}",
    ),
    "a silence without options": ("[truncate, floor]", "«[]", "expected at least one entry; read an empty list"),
    "text where a list is needed": ("[truncate, floor]", "«truncate", "expected a list; read 'truncate'"),
    "a number as an option": ("[truncate, floor]", "[truncate, «0]", "expected an id of small letters, digits and"),
    "a list as a clause": ("mean: the mean of the elements", "mean: «[a]", "expected the clause's text, or a mapping"),
    "text for deprecated": (
        "change: axes may",
        "deprecated: «maybe",
        "expected true or false; read 'maybe be",
    ),
    "a fraction as a version": ("since: 11, when", "since: «1.5, when", "expected a version"),
    "a status that there is not": (
        "status: inferred",
        "status: «infered",
        "expected required, inferred, disputed or withdrawn; read 'infered'",
    ),
    "an expectation that there is not": (
        "expect: rejected}\n  fr",
        "expect: «reject}\n  fr",
        "expected rejected; ",
    ),
    # head
    "a standard that there is not": (
        "operator: onnx/",
        "operator: «onyx/",
        "expected a standard (onnx, openvino",
    ),
    "a family without a function": ("reduction.mean", "«reduction", "expected module.function, as in reduction.mean"),
    "an unknown family": ("reduction.mean", "«reductoin.mean", "did you mean 'reduction'?"),
    "an unknown reference": ("reduction.mean", "«reduction.maen", "did you mean 'mean'?"),
    "a source that is no address": ("https://example.org/elsewhere", "«elsewhere", "expected a web address"),
    "a field that no address has": (
        "https://example.org/elsewhere",
        "«https://example.org/{opset}",
        "in which {version} alone is replaced; read",
    ),
    "a domain of another standard": ("family:", "domain: «preview\nfamily:", "expected a domain, as in ai.onnx.ml"),
    # versions
    "an unknown kind of attribute": ("keepdims: int = 1}\n    inputs: {data: T}", "keepdims: «integer = 1}", "kind"),
    "a default of another kind": (
        "keepdims: int = 1}\n    inputs: {data: T}",
        "keepdims: «int = one}\n    inputs: {data: T}",
        "'one' is no value of kind int",
    ),
    "an optional attribute with a default": (
        "keepdims: int = 1}\n    inputs: {data: T}",
        "keepdims: «optional int = 1}\n    inputs: {data: T}",
        "an attribute with a default is optional anyway",
    ),
    "a question mark": ("axes: optional int64", 'axes: «"int64?"', "write 'T', 'optional T', 'T+' (1 or more)"),
    "each without a star": ("axes: optional int64", "axes: «each int64", "write 'T', 'optional T'"),
    "an undeclared type letter": ("outputs: {reduced: T}", "outputs: {reduced: «U}", "nor a letter of `types`"),
    "an unknown type": ("[..., bfloat16]", "[..., «bfloat]", "no element type and no group"),
    "a type that was there before": ("[..., bfloat16]", "«[..., float32]", "T lists float32 twice"),
    "a type of another letter's list": (
        "types: {T: [..., b",
        "types: {..., U: «[..., b",
        "U does not exist in",
    ),
    "dots in the first version": ("{axes: optional ints,", "{«..., axes: optional ints,", "there is nothing before it"),
    "dots that do not come first": ("[..., bfloat16]", "«[bfloat16, ...]", "... comes first"),
    "removing what is not there": (
        "attributes: {keepdims: int = 1, noop",
        "attributes: {..., «axis: removed, noop",
        "the version before has none",
    ),
    "removing without dots": (
        "attributes: {keepdims: int = 1, noop",
        "attributes: {«axes: removed, noop",
        "without ... first nothing is there to remove",
    ),
    "repeating what was there": (
        "attributes: {keepdims: int = 1, noop",
        "attributes: {..., «keepdims: int = 1, axes: removed, noop",
        "'keepdims' is the same as in the previous version: leave it out",
    ),
    "a version that differs in nothing": ("  11:\n    change: axes may be negative", "  «11: {}", "nothing differs"),
    "a version that is left to do": ("change: axes may be negative", "change: «TODO", "replace TODO"),
    "versions that go down": ("  13:\n", "  «9:\n", "versions must ascend"),
    "a tie to nothing": ("T: [wide-integers, ieee]}", "T: [wide-integers, ieee], S: «seq(U)}", "'U' is no letter with"),
    # since and before
    "an opset instead of a version": (
        "since: 11, when",
        "since: «12, when",
        "since: 12 is no version of this operator; it has 1, 11, 13, 18",
    ),
    "since the first version": ("since: 11, when", "since: «1, when", "always true: leave it out"),
    "before the first version": ("none], before: 18", "none], before: «1", "never true"),
    "a level since no version": ("[-1], since: 11", "[-1], since: «17", "since: 17 is no version"),
    "levels before no version": ("graph-input], since: 18", "graph-input], before: «17", "before: 17 is no version"),
    "a span with nothing in it": ("[-1], since: 11", "[-1], since: 13, before: «11", "leaves nothing after since: 13"),
    # parameters
    "an unknown parameter": ("  keepdims: [absent", "  «keepdim: [absent", "did you mean 'keepdims'?"),
    "a type of an unknown port": ("  T: all\n", "  «type(dta): all\n", "did you mean 'data'?"),
    "a level that needs a name": ("keepdims: [absent, 0", "keepdims: [absent, «[0]", "needs a name"),
    "a level of another kind": ("keepdims: [absent, 0", "keepdims: [absent, «0.5", "keepdims is int; read 0.5"),
    "a number where a list is needed": ("zero: [0 x n]", "zero: «0", "consumed_inputs is ints, a list; read 0"),
    "text in a list of numbers": ("zero: [0 x n]", "zero: [0 x n, «0.5]", "consumed_inputs is ints; read 0.5"),
    "a wrong expression": ("last: [r - 1]", "last: [«r -]", "'r -' is no expression"),
    "an expression with a call": ("last: [r - 1]", "last: [«rank(x)]", "is no expression"),
    "no levels": ("keepdims: [absent, 0, 1]\n  noop", "keepdims: «[]\n  noop", "at least one level"),
    "levels that are one word": ("keepdims: [absent, 0, 1]\n  noop", "keepdims: «some\n  noop", "levels are a list"),
    "all of what is no type": (
        "keepdims: [absent, 0, 1]\n  noop",
        "keepdims: «all\n  noop",
        "`all` is for type",
    ),
    "the same level twice": ("keepdims: [absent, 0, 1]", "keepdims: [absent, 0, «0]", "level '0' appears twice"),
    "an unknown key beside value": ("[-1], since: 11", "[-1], «sinc: 11", "did you mean 'since'?"),
    "an unknown key beside levels": (
        "graph-input], since: 18",
        "graph-input], «from: 18",
        "unknown key 'from'",
    ),
    "an unknown fill recipe": ("fill: [ramp, uniform]", "fill: [ramp, uniform, «unform]", "did you mean 'uniform'?"),
    "null as a level": ("first: [0]", "first: «null", "write absent if nothing is given"),
    "an attribute left out by an empty name": (
        "keepdims: [absent",
        "keepdims: [«omitted",
        "an input can be omitted",
    ),
    "a level that no version has": ("T: all\n", "T: [ieee, «string]\n", "level 'string' of T applies to no version"),
    "a level's name with a comma": ("first: [0]", '«"fir, st": [0]', "has no spaces"),
    # exclude
    "excluding an unknown parameter": ("{shapes: scalar, axes", "{«shape: scalar, axes", "did you mean 'shapes'?"),
    "excluding an unknown level": ("axes: [first, last, n", "axes: [first, «lst, n", "did you mean 'last'?"),
    "excluding an unknown type": ("{T: {not: ieee}", "{T: {not: «iee}", "did you mean 'ieee'?"),
    "excluding a type of no version": ("{T: {not: ieee}", "{T: {not: «string}", "string is a type of T in no version"),
    # clauses and silences
    "a condition on an unknown name": ("when: {keepdims:", "when: {«keepdim:", "did you mean 'keepdims'?"),
    "a condition of another kind": ("{keepdims: absent}}", "{keepdims: «0.5}}", "keepdims is int; read 0.5"),
    "a condition on an unknown type": ("T: [ieee]}", "T: [«iee]}", "did you mean 'ieee'?"),
    "a list as a type in a condition": ("T: [ieee]}", "T: [«[ieee]]}", "expected an element type or a group of them"),
    "when that is a word": ("when: {keepdims: absent}", "when: «always", "expected a mapping of settings, or edges"),
    "a disputed clause without an issue": ("status: inferred", "status: «disputed", "needs `upstream`"),
    "a dispute of a clause that is not disputed": (
        "status: inferred",
        "status: inferred\n    «disputes: inputs.axes",
        "only a clause with status: disputed",
    ),
    "a dispute about no part of the signature": (
        "status: inferred",
        "status: disputed\n    upstream: https://example.org/1\n    disputes: «inputs.axis",
        "'inputs.axis' is no part of the signature; did you mean 'inputs.axes'?",
    ),
    "a dispute about several, one of which is none": (
        "status: inferred",
        "status: disputed\n    upstream: https://example.org/1\n    disputes: [types.T, «type.T]",
        "'type.T' is no part",
    ),
    "a clause that no edge tests": (
        "  mean: the",
        "  lonely: {text: x, when: «edges}\n  mean: the",
        "no edge tests 'lonely'",
    ),
    "a silence with a clause's id": ("  rounding: {when", "  «mean: {when", "'mean' is already a clause"),
    "an id with capitals": ("  keepdims-default:", "  «keepdimsDefault:", "expected an id of small letters"),
    "an option twice": ("[truncate, floor]", "«[truncate, truncate]", "'truncate' appears twice"),
    # edges
    "an edge that tests an unknown clause": ("tests: empty-axes", "tests: «empty-axis", "did you mean 'empty-axes'?"),
    "an unknown clause in a list": ("[rounding, mean]", "[rounding, «maen]", "did you mean 'mean'?"),
    "an edge that sets an unknown name": ("axes: []}, tests", "«axis: []}, tests", "did you mean 'axes'?"),
    "an edge that names an unknown level": ("{shapes: cube, axes", "{shapes: «cub, axes", "did you mean 'cube'?"),
    "an edge with an unknown type": ("[int32, bfloat16]", "[int32, «bfloat]", "did you mean 'bfloat16'?"),
    "a rejected edge that nothing mends": (
        "mended: {axes: [r - 1]}, tests: axes-range, since: 11, ",
        "tests: axes-range, since: 11, «",
        "needs `mended`: the settings",
    ),
    "a valid edge that is mended": (
        "tests: empty-axes",
        "«mended: {axes: [0]}, tests: empty-axes",
        "mended is for edges with `expect: rejected`",
    ),
    "a mending that changes nothing": ("mended: {axes: [r - 1]}", "mended: «{axes: [r]}", "mended changes nothing"),
    "a mending with two types": ("mended: {T: float32}", "mended: {T: «ieee}", "a mended program has one type"),
    "a silence that demands rejection": (
        "unknown: absent}, tests: mean",
        "unknown: absent}, tests: «rounding",
        "cannot demand rejection",
    ),
    "an opset that is a number": ("{shapes: cube, axes", "{opset: «10, shapes: cube, axes", "opset is: first or last"),
    "an edge that runs where its silence does not apply": (
        "tests: empty-axes, before: 18",
        "tests: «empty-axes",
        "empty-axes does not apply to version 18, where this edge runs",
    ),
    "an edge that runs nowhere": (
        "  empty: {with: {shapes: cube",
        "  «empty: {with: {noop_with_empty_axes: 0, shapes: cube",
        "this edge runs in no version",
    ),
}


def position_of_marker(text: str) -> Position:
    """Return where « stands in the text."""
    at = text.index("«")
    return Position(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def errors_of(text: str) -> list[SpecError]:
    """Return the mistakes that loading the text tells."""
    try:
        spec_from(text)
    except SpecErrors as several:
        return list(several.errors)
    except SpecError as one:
        return [one]
    return []


def test_all_mistakes_of_a_kind_are_told_at_once() -> None:
    text = REDUCE.replace("[first, last, negative]", "[frist, lst, negative]").replace("tests: mean", "tests: maen")
    told = errors_of(text)
    assert [error.message.partition(";")[0] for error in told] == [
        "'frist' is no level of axes",
        "'lst' is no level of axes",
        "no clause or silence is called 'maen'",
        "no clause or silence is called 'maen'",
    ]
    assert told == sorted(told, key=lambda error: error.position)


def test_the_unchanged_texts_have_no_mistakes() -> None:
    assert errors_of(REDUCE) == []
    assert errors_of(MEAN) == []


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_at_its_place_with_what_was_expected(name: str) -> None:
    old, new, expected = MISTAKES[name]
    whole = REDUCE if old in REDUCE else MEAN
    assert old in whole
    marked = whole.replace(old, new, 1)
    told = errors_of(marked.replace("«", ""))
    assert len(told) == 1, told
    position = position_of_marker(marked)
    assert str(told[0]).startswith(f"spec.yaml:{position.line}:{position.column}: ")
    assert expected in told[0].message

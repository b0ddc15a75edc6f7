"""Case ids: the fixed grammar, printed and parsed without loss, and nothing else accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.errors import CaseIdError
from opconform.cases.ids import CaseId, decode_text, encode_text, parse_id
from opconform.cases.program import Structure, optional, sequence, tensor
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases

WHOLE = "onnx/ReduceMean-13/float32/3x2x2/axes=-2;keepdims=0/uniform"

# What the grammar promises, text by text: other people's scripts read it.
EXAMPLES = {
    WHOLE: CaseId("onnx/ReduceMean-13", ("float32",), ((3, 2, 2),), (("axes", "-2"), ("keepdims", "0")), "uniform"),
    "onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53": CaseId(
        "onnx/ReduceMean-18", ("int64",), ((1,),), (("axes", "0"),), "beyond-2^53"
    ),
    "onnx/Mean-8/float16/3x1,1x4/-/ramp": CaseId("onnx/Mean-8", ("float16",), ((3, 1), (1, 4)), (), "ramp"),
    "onnx/Mean-13/float64/40*3x2/-/ramp": CaseId("onnx/Mean-13", ("float64",), ((3, 2),) * 40, (), "ramp"),
    "onnx/Mean-8/float32/4,2x3x4,2*scalar/-/ramp": CaseId(
        "onnx/Mean-8", ("float32",), ((4,), (2, 3, 4), (), ()), (), "ramp"
    ),
    "onnx/Mean-6/float32/none/-/ramp/none": CaseId("onnx/Mean-6", ("float32",), (), (), "ramp", "none"),
    "onnx/Mean-13/float32,float64/2*3x2/-/ramp/types-differ": CaseId(
        "onnx/Mean-13", ("float32", "float64"), ((3, 2), (3, 2)), (), "ramp", "types-differ"
    ),
    "onnx/ReduceMean-18/float32/3x2x2/axes=none;axes-from=graph-input;dims=symbolic/ramp/empty-all-fed": CaseId(
        "onnx/ReduceMean-18",
        ("float32",),
        ((3, 2, 2),),
        (("axes", "none"), ("axes-from", "graph-input"), ("dims", "symbolic")),
        "ramp",
        "empty-all-fed",
    ),
    "onnx/ReduceMean-13/float32/scalar/draw=2;opset=13;seed=7/uniform": CaseId(
        "onnx/ReduceMean-13", ("float32",), ((),), (("draw", "2"), ("opset", "13"), ("seed", "7")), "uniform"
    ),
    "onnx/ReduceMean-18/float32/2x0x3/axes=omitted/ramp": CaseId(
        "onnx/ReduceMean-18", ("float32",), ((2, 0, 3),), (("axes", "omitted"),), "ramp"
    ),
    "onnx/If-13/seq.float32/none/cond=true/ramp": CaseId(
        "onnx/If-13", ("seq(float32)",), (), (("cond", "true"),), "ramp"
    ),
    "onnx/LSTM-14/float32/3x2x4,1x12x4,1x12x3,_,2,seq:2x3+scalar/-/ramp": CaseId(
        "onnx/LSTM-14",
        ("float32",),
        ((3, 2, 4), (1, 12, 4), (1, 12, 3), None, (2,), sequence(tensor(2, 3), tensor())),
        (),
        "ramp",
    ),
    "onnx/Constant-13/-/none/value_string=a%20b/ramp": CaseId(
        "onnx/Constant-13", (), (), (("value_string", "a%20b"),), "ramp"
    ),
    "onednn/ReduceMean/float32/3/-/ramp": CaseId("onednn/ReduceMean", ("float32",), ((3,),), (), "ramp"),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_id_is_written_as_the_grammar_says(text: str) -> None:
    assert str(EXAMPLES[text]) == text
    assert parse_id(text) == EXAMPLES[text]


WRONG = {
    "": "1 parts",
    "onnx/ReduceMean-13": "2 parts",
    WHOLE + "/edge/more": "8 parts",
    "onnx//float32/3/-/ramp": "'' is not a name",
    "onnx/ReduceMean-13//3/-/ramp": "'' is not a name",
    "onnx/ReduceMean-13/float32,/3/-/ramp": "'' is not a name",
    "onnx/ReduceMean-13/float32/3/-/ramp/": "'' is not a name",
    "onnx/ReduceMean 13/float32/3/-/ramp": "'ReduceMean 13' is not a name",
    "onnx/ReduceMean-13/float32/[3]/-/ramp": r"'\[3\]' is not a shape",
    "onnx/ReduceMean-13/float32/3x/-/ramp": "'3x' is not a shape",
    "onnx/ReduceMean-13/float32/-3/-/ramp": "'-3' is not a shape",
    "onnx/ReduceMean-13/float32//-/ramp": "'' is not a shape",
    "onnx/Mean-13/float32/0*3/-/ramp": r"'0\*3' is not a shape",
    "onnx/Mean-13/float32/999999*3,999999*3/-/ramp": "inputs",
    "onnx/ReduceMean-13/float32/3//ramp": "'' is not a setting",
    "onnx/ReduceMean-13/float32/3/axes/ramp": "'axes' is not a setting",
    "onnx/ReduceMean-13/float32/3/axes=/ramp": "'axes=' is not a setting",
    "onnx/ReduceMean-13/float32/3/axes=0 1/ramp": "'axes=0 1' is not a setting",
    "onnx/ReduceMean-13/float32/3/keepdims=0;axes=0/ramp": "sorted by name",
    "onnx/ReduceMean-13/float32/3/axes=0;axes=0/ramp": "each setting appears once",
    "onnx/ReduceMean-13/float32/03/-/ramp": "is written 'onnx/ReduceMean-13/float32/3/-/ramp'",
    "onnx/Mean-13/float32/1*3/-/ramp": "is written 'onnx/Mean-13/float32/3/-/ramp'",
    "onnx/Mean-13/float32/3,3/-/ramp": r"is written 'onnx/Mean-13/float32/2\*3/-/ramp'",
    "onnx/ReduceMean-13/float32/٣/-/ramp": "is written 'onnx/ReduceMean-13/float32/3/-/ramp'",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_id_says_which_part_is_wrong(text: str) -> None:
    with pytest.raises(CaseIdError, match=WRONG[text]):
        parse_id(text)


@pytest.mark.slow
def test_every_id_of_the_suite_is_printed_as_it_was_parsed() -> None:
    selections = (
        Selection(),
        Selection(("*/ReduceMean*",), strength=3, draws=2, seed=5),
        Selection(("onnx/Mean-6",), strength=None),
    )
    library = GeneratedCases().library
    ids = {text for selection in selections for text in planned(library, selection, from_lock=True)}
    assert len(ids) > 3000
    for text in ids:
        assert str(parse_id(text)) == text
        assert not set(text) & set("[](){} \t\"'\\")


word = st.from_regex(r"[A-Za-z0-9_.^+-]{1,8}", fullmatch=True)
setting_name = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,6}", fullmatch=True)
setting_value = st.text(
    st.characters(codec="utf-8", exclude_characters="=;/", exclude_categories=["Z", "C"]), min_size=1
)
shape = st.lists(st.integers(0, 9_999_999_999), max_size=4).map(tuple)
whole = st.integers(0, 99)
structure = st.recursive(
    shape.map(lambda dims: tensor(*dims)),
    lambda inner: st.one_of(
        st.lists(inner.filter(lambda one: one.kind in ("tensor", "map")), max_size=3).map(lambda some: sequence(*some)),
        st.lists(inner.filter(lambda one: one.kind != "optional"), max_size=1).map(lambda some: optional(*some)),
        whole.map(lambda n: Structure("map", count=n)),
        st.builds(lambda dims, n: Structure("sparse", dims, count=n), shape, whole),
    ),
    max_leaves=4,
).filter(lambda one: one.kind != "tensor")
type_name = st.sampled_from(
    ["float32", "T", "seq(float32)", "optional(seq(int8))", "map(int64,string)", "seq(map(string,float32))"]
)
case_ids = st.builds(
    CaseId,
    st.tuples(word, word).map("/".join),
    st.lists(type_name, max_size=3).map(tuple),
    st.lists(st.one_of(shape, st.sampled_from([(3,), (), None]), structure), max_size=5).map(tuple),
    st.dictionaries(setting_name, setting_value, max_size=4).map(lambda d: tuple(sorted(d.items()))),
    word,
    st.none() | word,
)


@given(case_ids)
def test_any_id_is_parsed_as_what_it_was_printed_from(case: CaseId) -> None:
    assert parse_id(str(case)) == case


@given(st.text(max_size=60) | st.lists(st.sampled_from([*WHOLE, "/", "=", "*", ";", ","]), max_size=60).map("".join))
def test_any_text_is_an_id_or_is_refused(text: str) -> None:
    try:
        found = parse_id(text)
    except CaseIdError:
        return
    assert str(found) == text


@given(st.text())
def test_any_text_is_a_setting_and_comes_back(text: str) -> None:
    assert decode_text(encode_text(text)) == text
    case = CaseId("onnx/X-1", ("string",), (), (("words", encode_text(text)),), "ramp")
    assert parse_id(str(case)) == case

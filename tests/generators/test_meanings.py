"""What a program says of its outputs without being run."""

from __future__ import annotations

import onnx
import pytest

from opconform.cases.onnx_model import onnx_model
from opconform.generators.meanings import CasesOfEveryKind, is_static, one_of_each_program
from opconform.generators.source import shipped


def source() -> CasesOfEveryKind:
    found = CasesOfEveryKind()
    found.__dict__["library"] = shipped()
    return found


def wanted(text: str) -> list[list[str]]:
    """Return the expected texts of each exact option."""
    options = source().meaning("infer").case(text).expectation.options
    return [[o.lower[0] for o in option.outputs] for option in options if ("inference", "exact") in option.labels]


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        ("onnx/ReduceMean-13/float32/3x2x2/axes=0/ramp", ["float32[1,2,2]"]),
        ("onnx/ReduceMean-13/float32/3x2x2/axes=0;dims=symbolic;keepdims=0/ramp", ["float32[data_1,data_2]"]),
        ("onnx/Add-7/float32/3x1,1x4/dims=symbolic/ramp", ["float32[*,*]"]),
        ("onnx/Reshape-13/float32/3x2x4/shape=-1/ramp", ["float32[24]"]),
        ("onnx/Reshape-13/float32/3x2x4/shape=-1;shape-from=graph-input/ramp", ["float32[24?]"]),
        ("onnx/TopK-11/float32,int64/3x5/K=1;axis=-1;dims=symbolic/ramp", ["float32[X_0,1]", "int64[X_0,1]"]),
    ],
)
def test_a_program_determines_shapes_by_constants_and_names(case: str, texts: list[str]) -> None:
    assert wanted(case) == [texts]


def test_an_invalid_program_may_be_refused_or_answered() -> None:
    batch = source().meaning("infer").case("onnx/ReduceMean-13/float32/3x2x2/axes=3/ramp/axis-too-large")
    assert [option.kind for option in batch.expectation.options] == ["rejected", "anything"]


def test_only_one_valid_case_of_each_program_remains_but_named_ones_do() -> None:
    ids = [
        "onnx/ReduceMean-13/float32/3x2x2/axes=0/ramp",
        "onnx/ReduceMean-13/float32/3x2x2/axes=0/uniform",
        "onnx/ReduceMean-13/float32/3x2x2/axes=1/uniform",
        "onnx/ReduceMean-13/float32/3x2x2/axes=3/ramp/axis-too-large",
    ]
    assert list(one_of_each_program(source(), iter(ids), ())) == [ids[0], ids[2]]
    assert list(one_of_each_program(source(), iter(ids), ids[3:])) == [ids[0], ids[2], ids[3]]


@pytest.mark.parametrize(
    ("case", "static"),
    [
        ("onnx/Concat-1/float32/2*4x4x4/axis=3/ramp/axis-large", True),
        ("onnx/ReduceMean-13/float32/3x2x2/axes=3/ramp/axis-too-large", True),
        ("onnx/TopK-10/float32,int64/3/K=-1/ramp/k-negative", True),
        ("onnx/SequenceAt-11/float32,int32/seq:3+3+3/position=-4/ramp/before-the-first", False),
        ("onnx/Bernoulli-15/float32,float32/none/input=0.5,1.5,0.25,-1/ramp/beyond", False),
    ],
)
def test_an_invalid_case_is_static_if_no_fed_value_matters(case: str, static: bool) -> None:
    (part,) = source().parts([case])
    assert is_static(part) is static


def test_only_static_invalid_cases_are_for_checkers() -> None:
    ids = ["onnx/Concat-1/float32/2*4x4x4/axis=3/ramp/axis-large"]
    ids += ["onnx/SequenceAt-11/float32,int32/seq:3+3+3/position=-4/ramp/before-the-first"]
    assert list(one_of_each_program(source(), iter(ids), (), "check")) == ids[:1]


DICTIONARY = "onnx/DictVectorizer-1/map.int64.float32/map:0/int64_vocabulary=1,2/ramp"  # a vector, or a row
KEEPDIMS_OF_TWO = "onnx/ArgMax-13/float32/3x2x4/keepdims=2/ramp/keepdims-two"
TWO_BODIES = "onnx/FlexAttention-1/float32/2x2x3x8,2*2x2x5x8/prob_mod=squared;score_mod=halved/eighths"


@pytest.mark.parametrize("case", [DICTIONARY, KEEPDIMS_OF_TWO, TWO_BODIES])
def test_a_checker_gets_a_model_that_declares_the_rank_of_each_output(case: str) -> None:
    program = source().meaning("check").case(case).program
    onnx.checker.check_model(onnx_model(program))
    assert None not in [output.rank for output in program.answers]


@pytest.mark.parametrize("case", [DICTIONARY, KEEPDIMS_OF_TWO])
def test_a_backend_that_runs_or_infers_is_told_no_rank_that_readings_disagree_on(case: str) -> None:
    for made in (source().case(case), source().meaning("infer").case(case)):
        assert [output.rank for output in made.program.answers] == [None]


def test_a_checker_has_to_find_the_mistake_itself_in_a_model_with_an_output_too_many() -> None:
    too_many = "onnx/Split-2/float32/6/axis=0;outputs=3;split=2,4/ramp/too-many-outputs"
    program = source().meaning("check").case(too_many).program
    assert [output.rank for output in program.answers] == [1, 1, 1]


def test_two_bodies_of_which_both_run_leave_the_shape_fixed() -> None:
    assert wanted(TWO_BODIES) == [["float32[2,2,3,8]"]]
    either = "onnx/If-25/float32,bool/none/cond=scalar:true;else_branch=rank-3;then_branch=first/ramp/ranks-differ"
    assert [output.rank for output in source().case(either).program.answers] == [None]


@pytest.mark.parametrize(
    ("case", "text"),
    [
        ("openvino/Select-1/bool,float32/3*2x1x3x1x2x2/dims=symbolic/uniform", "float32[*,*,*,*,*,*]"),
        (
            "openvino/Divide-1/float32/2*2x1x3x1x2x2/auto_broadcast=pdpd;dims=symbolic/large",
            "float32[A_0,A_1,A_2,A_3,A_4,A_5]",  # B stretches to A
        ),
    ],
)
def test_no_name_is_right_by_chance_among_many_symbolic_dimensions(case: str, text: str) -> None:
    assert wanted(case) == [[text]]


@pytest.mark.parametrize(
    ("case", "may_refuse"),
    [
        ("onnx/Attention-25/float32,float16,bool/2x2x3x8,2*2x2x5x8/-/eighths/mixed", True),  # scores may be infinite
        ("onnx/Gather-1/float32,int64/5x3,4/indices=signed/ramp/negative-early", False),
    ],
)
def test_a_refusal_is_right_if_no_data_settle_the_question_that_allows_it(case: str, may_refuse: bool) -> None:
    options = source().meaning("infer").case(case).expectation.options
    assert ("rejected" in [option.kind for option in options]) is may_refuse


GAINED_OR_LOST = {
    ("GridSample", "mode", frozenset({16})): {"bilinear", "bicubic"},
    ("GridSample", "mode", frozenset({20, 22})): {"linear", "cubic"},
    ("Pad", "mode", frozenset({19, 21, 23, 24, 25})): {"wrap"},
    ("Resize", "mode", frozenset({11, 13, 18, 19})): {"cubic"},
    ("Resize", "coordinate_transformation_mode", frozenset({11})): {"tf_half_pixel_for_nn"},
    ("Resize", "coordinate_transformation_mode", frozenset({19})): {"half_pixel_symmetric"},
    ("ScatterElements", "reduction", frozenset({18})): {"max", "min"},
    ("ScatterND", "reduction", frozenset({18})): {"max", "min"},
    ("Upsample", "mode", frozenset({1})): {"bilinear"},
    ("Upsample", "mode", frozenset({7, 9, 10})): {"linear"},
}
"""By operator, attribute and versions, the words that only these versions have, by the pages of ONNX."""


@pytest.mark.slow
def test_the_words_that_only_some_versions_of_an_operator_have_are_those_of_its_pages() -> None:
    words: dict[tuple[str, str, frozenset[int]], set[str]] = {}
    for spec in (spec for spec in shipped().specs() if spec.operator.startswith("onnx/")):
        for name in {a.name for v in spec.versions.values() for a in v.signature.attributes if a.kind == "string"}:
            with_it = {int(n): v for n, v in spec.versions.items() if v.signature.attribute(name)}
            for word in {
                w for v in with_it.values() for w in v.parameters.get(name, {}).values() if isinstance(w, str)
            }:
                versions = frozenset(n for n, v in with_it.items() if word in v.parameters.get(name, {}).values())
                if versions != with_it.keys():
                    words.setdefault((spec.operator.partition("/")[2], name, versions), set()).add(word)
    assert words == GAINED_OR_LOST

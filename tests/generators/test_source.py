"""Cases from ids: the same everywhere, complete, and none for what the standard forbids."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from fakes.judging import judge_answer

from opconform.cases.batch import Expectation, cases_of
from opconform.cases.corpus.descriptor import program_from, program_json
from opconform.cases.errors import CaseIdError, OpconformError
from opconform.cases.ids import parse_id
from opconform.cases.onnx_model import onnx_model
from opconform.cases.results import Outcome
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.runners.judging.terms import silences
from opconform.specs.loader import UnknownOperator

SOURCE = GeneratedCases()
VERSIONS = {
    str(version.operator): version
    for operator in SOURCE.library.operators()
    if operator.endswith(("/Mean", "/ReduceMean"))
    for version in SOURCE.library.spec(operator).versions.values()
}
each_version = pytest.mark.parametrize("name", VERSIONS)


@dataclass(frozen=True)
class Fact:
    """What the tests ask of a case, kept without its tensors."""

    id: str
    digests: tuple[str, str]
    clauses: tuple[str, ...]
    silences: dict[str, tuple[str, ...]]
    invalid: bool
    valid_variant: str | None

    @property
    def operator(self) -> str:
        return parse_id(self.id).operator


@cache
def suite() -> tuple[Fact, ...]:
    ids = list(planned(SOURCE.library, Selection(("*/ReduceMean*", "*/Mean-*"))))
    return tuple(
        Fact(
            case.id,
            (case.digest, case.expectation.digest),
            case.clauses,
            case.expectation.silences,
            case.expectation.invalid,
            case.valid_variant,
        )
        for case in cases_of(SOURCE, ids)
    )


# The suite exercises what the specs say


@each_version
def test_every_clause_is_tested_by_some_case(name: str) -> None:
    operator = name.partition("-")[0]
    tested = {clause for fact in suite() if fact.operator == name for clause in fact.clauses}
    assert tested == {f"{operator}#{clause}" for clause in VERSIONS[name].clauses}


@each_version
def test_every_silence_arises_with_every_option_in_some_case(name: str) -> None:
    arisen: dict[str, set[str]] = {}
    for fact in suite():
        if fact.operator == name:
            for silence, options in fact.silences.items():
                arisen.setdefault(silence, set()).update(options)
    declared = {s.id: set(s.options) for s in VERSIONS[name].silences.values()}
    everywhere = {"accumulator", "flush", "overflow", "summation", "zero-sign"}
    assert {silence: arisen.get(silence) for silence in declared} == declared
    assert set(arisen) == set(declared) | everywhere
    known = silences(SOURCE.library)
    assert all(arisen[silence] <= set(known[silence]) for silence in arisen)


@each_version
def test_invalid_inputs_of_every_kind_are_there_with_a_valid_sibling(name: str) -> None:
    invalid = [fact for fact in suite() if fact.operator == name and fact.invalid]
    kinds = {parse_id(fact.id).edge for fact in invalid}
    standard, version = name.partition("/")[0], int(name.partition("-")[2] or 1)
    wanted = {"unknown-attribute"} if standard == "onnx" else {"axis-too-large", "axis-too-small"}
    if standard == "openvino":
        wanted |= {"axis-twice", "axes-matrix", "axes-missing", "axes-float", "type-bool"}
    elif standard == "onednn":
        wanted |= {"axis-twice-fed", "axes-scalar-fed", "axes-both", "type-int32", "type-float64"}
    elif "Reduce" in name:
        wanted |= {"type-int8"} | ({"axis-too-large", "axis-too-small"} if version >= 11 else set())
    else:
        wanted |= {"none", "types-differ", "type-int32"} | ({"cannot-broadcast"} if version >= 8 else {"differs"})
    wanted |= {"type-bfloat16"} if version < 13 and standard == "onnx" else set()
    assert kinds >= wanted
    for fact in invalid:
        assert fact.valid_variant is not None
        sibling = SOURCE.case(fact.valid_variant)
        assert not sibling.expectation.invalid
        assert sibling.valid_variant is None
        assert parse_id(fact.valid_variant).operator == name
        assert fact.valid_variant != fact.id


def test_only_invalid_cases_have_a_sibling() -> None:
    assert all((fact.valid_variant is not None) == fact.invalid for fact in suite())


def test_equal_content_is_one_case() -> None:
    """Only an edge, which tests clauses of its own, or a draw that falls as another recipe's may repeat a content."""
    seen: dict[str, str] = {}
    for fact in sorted(suite(), key=lambda f: parse_id(f.id).edge is not None):  # edges last
        other, case = seen.setdefault(fact.digests[0], fact.id), parse_id(fact.id)
        if other != fact.id and not case.edge:
            assert case.fill != parse_id(other).fill, (fact.id, other)
            assert case.size == 1, (fact.id, other)


# The same bytes everywhere


@pytest.mark.slow
def test_a_case_is_the_same_alone_and_among_others() -> None:
    for fact in suite()[::9]:
        alone = GeneratedCases().case(fact.id) if fact.id.endswith("/ramp") else SOURCE.case(fact.id)
        assert (alone.digest, alone.expectation.digest) == fact.digests


@pytest.mark.parametrize(
    "glob",
    [
        "onnx/Softmax-1/float16/*",
        "onnx/ReduceMean-18/float16/2x300/*",
        "onnx/Add-14/float32/*",
        "onnx/Reciprocal-13/float32/8x63/*",
    ],
)
def test_neighbours_in_a_batch_change_no_expectation(glob: str) -> None:
    together = [batch for batch in SOURCE.batches(list(planned(SOURCE.library, Selection((glob,))))) if len(batch) > 1]
    assert together
    for batch in together:
        for text, digest in zip(batch.ids, batch.expectation_digests, strict=True):
            assert SOURCE.case(text).expectation_digests == [digest], text


@pytest.mark.slow
def test_draws_are_the_same_alone_and_together() -> None:
    ids = list(
        planned(SOURCE.library, Selection(("onnx/ReduceMean-18/float*/4x4/*", "onnx/Mean-13/float16/*"), draws=4))
    )
    together = [(case.id, case.digest, case.expectation.digest) for case in cases_of(SOURCE, ids)]
    assert [t[0] for t in together] == ids
    assert len({t[1] for t in together}) > 100
    for text, digest, expectation_digest in together[::-1]:
        case = SOURCE.case(text)
        assert (case.digest, case.expectation.digest) == (digest, expectation_digest)


@pytest.mark.slow
def test_a_source_that_travelled_to_another_process_gives_the_same() -> None:
    text = "onnx/ReduceMean-13/float16/4x4/axes=0/mixed"
    travelled = pickle.loads(pickle.dumps(SOURCE))
    assert travelled.case(text).digest == SOURCE.case(text).digest


@pytest.mark.slow
def test_another_process_with_another_hash_seed_gives_the_same_digests() -> None:
    sample = {fact.id: list(fact.digests) for fact in suite()[::10]}
    script = (
        "import json, sys\n"
        "from opconform.cases.batch import cases_of\n"
        "from opconform.generators.source import GeneratedCases\n"
        "ids = json.load(sys.stdin)\n"
        "print(json.dumps({c.id: [c.digest, c.expectation.digest] for c in cases_of(GeneratedCases(), ids)}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(list(sample)),
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == sample


# The first bytes of every recipe, so that no change of a machine or a library goes unnoticed.
INPUTS = {
    "onnx/ReduceMean-13/float32/7/-/uniform": "d5c6969ca313c1b7",
    "onnx/ReduceMean-13/float32/7/draw=3;seed=2/uniform": "917bbe04930e2ab7",
    "onnx/ReduceMean-13/float64/7/-/cancelling": "20c8feb3fc0baa33",
    "onnx/ReduceMean-13/bfloat16/7/-/mixed": "e64579bdf3e4f405",
    "onnx/ReduceMean-13/float16/7/-/overflow": "7574afcee4a913d4",
    "onnx/ReduceMean-13/float16/7/-/subnormal": "b01b6d0627a8c866",
    "onnx/ReduceMean-13/float32/7/-/special": "763ba32ebc3312d9",
    "onnx/ReduceMean-13/float64/7/-/infinity": "cf76f0b62fa1b36e",
    "onnx/ReduceMean-13/int64/7/-/large": "9065b0dd6139a855",
    "onnx/ReduceMean-13/uint64/7/-/beyond-2^53": "019523ec65cf7760",
    "onnx/ReduceMean-13/int32/7/-/lattice": "4cc743c62f7904c5",
}


@pytest.mark.parametrize("text", INPUTS)
def test_inputs_have_the_same_bytes_on_every_machine(text: str) -> None:
    (tensor,) = SOURCE.case(text).inputs
    little = tensor.astype(tensor.dtype.newbyteorder("<")) if tensor.dtype.kind in "iuf" else tensor
    assert hashlib.sha256(little.tobytes()).hexdigest()[:16] == INPUTS[text]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("onnx/ReduceMean-13/float32/2x0x3/-/ramp/empty-set", (1, 1, 1)),
        ("onnx/ReduceMean-13/float32/3x2x2/axes=-4/ramp/axis-too-small", None),
        ("onnx/ReduceMean-13/float32/2x3/axes=1;keepdims=1/ramp", (2, 1)),
        ("onnx/ReduceMean-13/float32/2x3/axes=1;dims=symbolic/ramp", None),
        ("onnx/ReduceMean-18/float32/2x3/axes=1/ramp", (2, 1)),
        ("onnx/ReduceMean-18/float32/2x3/axes=1;axes-from=graph-input/ramp", None),
        ("onnx/ReduceMean-13/float32/scalar/-/ramp", ()),
        ("onnx/NonZero-13/float32/2x0/-/ramp", None),
        ("onnx/QuantizeLinear-10/float32,int8/3*scalar/-/lattice", ()),
    ],
)
def test_a_program_declares_the_shape_of_an_output_where_it_fixes_it(text: str, shape: tuple[int, ...] | None) -> None:
    program = SOURCE.case(text).program
    (output,) = program.answers
    assert output.shape == shape
    (declared,) = onnx_model(program).graph.output
    dims = declared.type.tensor_type.shape.dim
    if shape is None:
        assert all(d.WhichOneof("value") == "dim_param" for d in dims)
    else:
        assert tuple(d.dim_value for d in dims) == shape
        assert declared.type.tensor_type.HasField("shape")
    assert program_from(program_json(program), lambda *_: np.array([1])).answers[0].shape == shape


def test_a_seed_and_a_draw_change_what_is_drawn() -> None:
    base = "onnx/Mean-13/float32/2*3x2/{}/uniform"
    settings = ("-", "seed=1", "seed=2", "draw=1", "draw=2", "draw=1;seed=1")
    assert len({SOURCE.case(base.format(s)).digest for s in settings}) == len(settings)


# Golden values, by hand from the pages of the operators

GRID = [[[5, 1], [20, 2]], [[30, 1], [40, 2]], [[55, 1], [60, 2]]]
REDUCED = [
    ("axes=1;keepdims=0", [[12.5, 1.5], [35.0, 1.5], [57.5, 1.5]]),
    ("axes=1;keepdims=1", [[[12.5, 1.5]], [[35.0, 1.5]], [[57.5, 1.5]]]),
    ("axes=1", [[[12.5, 1.5]], [[35.0, 1.5]], [[57.5, 1.5]]]),
    ("axes=-2", [[[12.5, 1.5]], [[35.0, 1.5]], [[57.5, 1.5]]]),
    ("-", [[[18.25]]]),
    ("keepdims=1", [[[18.25]]]),
    ("keepdims=0", 18.25),
    ("axes=0,2;keepdims=0", [(5 + 1 + 30 + 1 + 55 + 1) / 6, (20 + 2 + 40 + 2 + 60 + 2) / 6]),
]


def expected(text: str, *given: object) -> Expectation:
    """Return the expectation of a case whose data tensors are replaced by these."""
    reasoning = SOURCE.reasoning(SOURCE.case(text))
    assert reasoning is not None
    data = reasoning.arrays[: len(given)]
    arrays = [np.array(g, t.dtype)[np.newaxis] for g, t in zip(given, data, strict=True)]
    assert [a.shape for a in arrays] == [t.shape for t in data]
    return reasoning.recording.expectation([*arrays, *reasoning.arrays[len(given) :]], lanes=1).case(0)


@pytest.mark.parametrize(("settings", "answer"), REDUCED)
@pytest.mark.parametrize("version", [11, 13, 18])
def test_reduce_mean_of_the_page_s_example(version: int, settings: str, answer: object) -> None:
    expectation = expected(f"onnx/ReduceMean-{version}/float32/3x2x2/{settings}/ramp", GRID)
    right = np.array(answer, np.float32)
    assert judge_answer(expectation, [right]).outcome is Outcome.PASS
    assert judge_answer(expectation, [right + 1]).outcome is Outcome.WRONG_VALUE
    if "axes" in settings and "," not in settings:  # half of a sum of two: there is one right answer
        assert judge_answer(expectation, [np.nextafter(right, np.float32(99))]).outcome is Outcome.WRONG_VALUE
    assert judge_answer(expectation, [right.reshape(1, *right.shape)]).outcome is Outcome.WRONG_SHAPE
    assert judge_answer(expectation, [right.astype(np.float64)]).outcome is Outcome.WRONG_DTYPE


def test_reduce_mean_with_empty_axes_and_noop_is_its_input() -> None:
    text = "onnx/ReduceMean-18/float32/3x2x2/axes=none;noop_with_empty_axes=1/ramp"
    expectation = expected(text, GRID)
    assert judge_answer(expectation, [np.array(GRID, np.float32)]).outcome is Outcome.PASS
    assert judge_answer(expectation, [np.full((1, 1, 1), 18.25, np.float32)]).outcome is Outcome.WRONG_SHAPE


def test_mean_of_the_page_s_example() -> None:
    # The page's tensors have shape 3; broadcasting gives the others.
    expectation = expected("onnx/Mean-13/float32/3*3/-/ramp", [3, 0, 2], [1, 3, 4], [2, 6, 6])
    assert judge_answer(expectation, [np.array([2, 3, 4], np.float32)]).outcome is Outcome.PASS
    assert judge_answer(expectation, [np.array([2, 3, 5], np.float32)]).outcome is Outcome.WRONG_VALUE
    one = expected("onnx/Mean-13/float32/3/-/ramp", [3, 0, 2])
    assert judge_answer(one, [np.array([3, 0, 2], np.float32)]).outcome is Outcome.PASS
    two = expected("onnx/Mean-13/float32/2*3/-/ramp", [3, 0, 2], [1, 3, 4])
    assert judge_answer(two, [np.array([2, 1.5, 3], np.float32)]).outcome is Outcome.PASS
    broad = expected("onnx/Mean-8/float32/scalar,2x1,2/-/ramp", 3, [[6], [9]], [0, 3])
    assert judge_answer(broad, [np.array([[3, 4], [4, 5]], np.float32)]).outcome is Outcome.PASS


# What is no case

R13, R18, M13 = "onnx/ReduceMean-13/float32/3x2x2/", "onnx/ReduceMean-18/float32/3x2x2/", "onnx/Mean-13/float32/"
NO_CASES = {
    "onnx/ReduceMean-13/int8/3x2x2/-/ramp": "int8 is invalid in onnx/ReduceMean-13, and the id names no edge",
    "onnx/ReduceMean-11/bfloat16/3x2x2/-/ramp": "bfloat16 is invalid",
    "onnx/ReduceMean-13/complex64/3x2x2/-/ramp": "complex64 is invalid",
    "onnx/ReduceMean-13/float32,float32/3x2x2/-/ramp": "varies 1 types; read 2",
    "onnx/ReduceMean-13/float32/3x2x2,3/-/ramp": "one input to fill or draw; read 2",
    "onnx/ReduceMean-13/float32/none/-/ramp": "the id names no edge: it needs data",
    R13 + "axes=3/ramp": r"the id names no edge: axes lie in \[-r, r-1\]",
    R13 + "axes=-4/ramp": "the id names no edge",
    "onnx/ReduceMean-13/float32/scalar/axes=0/ramp": "the id names no edge",
    R18 + "unknown=foo/ramp": "an attribute that onnx/ReduceMean-18 does not have is invalid, and the id names no edge",
    "onnx/Mean-6/float32/3,2/-/ramp": "invalid in onnx/Mean-6, and the id names no edge: all inputs",
    "onnx/Mean-6/float32/3,1/-/ramp": "invalid in onnx/Mean-6, and the id names no edge: all inputs",
    M13 + "3,2/-/ramp": "the id names no edge: inputs broadcast",
    M13 + "none/-/ramp": "the id names no edge: a node without inputs is invalid",
    "onnx/Mean-13/float32,float64/2*3/-/ramp": "varies 1 types",
    # edges with another content than theirs: they say what is expected
    R18 + "axes=1/ramp/axis-too-large": "has another content: onnx/ReduceMean-18/float32/3x2x2/axes=3/ramp",
    R18 + "axes=3/uniform/axis-too-large": "has another content",
    M13 + "2*3x2/-/ramp/none": "has another content: onnx/Mean-13/float32/none/-/ramp/none",
    R18 + "-/ramp/axis-to-large": "has no edge 'axis-to-large'; did you mean 'axis-too-large'",
    # what a version does not have
    R13 + "axes=omitted/ramp": "axes cannot be omitted in onnx/ReduceMean-13",
    R13 + "noop_with_empty_axes=1/ramp": "has no parameter 'noop_with_empty_axes'",
    R18 + "keepdim=1/ramp": "has no parameter 'keepdim'; did you mean 'keepdims'",
    R18 + "data=1/ramp": "0 inputs to fill or draw; read 1",
    R18 + "axes=given/ramp": "axes cannot be given",
    "onnx/Mean-6/float32/2*3/consumed_inputs=0,0/ramp": "no parameter 'consumed_inputs'",
    R18 + "opset=17/ramp": "opsets of onnx/ReduceMean-18 are 18 to",
    R18 + "keepdims=x/ramp": "keepdims holds a whole number of 64 bits; read 'x'",
    R18 + "keepdims=9223372036854775808/ramp": "64 bits",
    R18 + "axes=x/ramp": "axes holds whole numbers of int64; read 'x'",
    R18 + "axes=1;axes-from=here/ramp": "axes-from is constant or graph-input or both; read 'here'",
    R18 + "dims=dynamic/ramp": "dims is static or symbolic",
    R18 + "-/subnormals": "no fill is called 'subnormals'",
    R18 + "-/beyond-2^53": "makes no sense for float32",
    "onnx/ReduceMean-18/int32/3x2x2/-/nan": "makes no sense for int32",
    # other texts of ids that there are
    R18 + "axes=+1/ramp": r"write axes=\+1 as axes=1",
    R18 + "axes=01/ramp": "write axes=01 as axes=1",
    R18 + "axes=1,_2/ramp": "axes",
    R18 + "dims=static/ramp": "write it as",
    R18 + "axes-from=graph-input/ramp": "write it as onnx/ReduceMean-18/float32/3x2x2/-/ramp",
    R13 + "axes=1;axes-from=graph-input/ramp": "has no parameter 'axes-from'",
    R18 + "seed=0/uniform": "seed",
    R18 + "draw=0/uniform": "draw is a whole number from 1",
    R18 + "draw=01/uniform": "write draw=01 as draw=1",
    R18 + "draw=1/ramp": "draws nothing",
    R18 + "seed=1/ones": "draws nothing",
    "onnx/ReduceMean-18/float32/1/seed=1/ramp": "draws nothing",
    R18 + "draw=1;axes=1/uniform": "sorted by name",
    R18 + "draw=1;draw=2/uniform": "each setting appears once",
    "onnx/ReduceMean-18/float32/2x0x3/axes=0/uniform": "write it as onnx/ReduceMean-18/float32/2x0x3/axes=0/ramp",
    "onnx/ReduceMean-18/float32/scalar/dims=symbolic/ramp": "write it as onnx/ReduceMean-18/float32/scalar/-/ramp",
    "onnx/Constant-13/int32/none/value=T:3:1,2,0.5/ramp": "holds elements of int32: read 0.5",
    "onnx/Constant-13/uint8/none/value=T:2:1,300/ramp": "holds elements of uint8: read 300",
    # too large for a machine
    "onnx/ReduceMean-18/float32/100000x100000/-/ramp": "more than 16,777,216 elements",
    M13 + "10000x1,1x10000/-/ramp": "more than 16,777,216 elements",
    # no operator
    "onnx/ReduceMean-14/float32/3/-/ramp": "no operator version is called 'onnx/ReduceMean-14'",
    "onnx/ReduceMena-13/float32/3/-/ramp": "did you mean 'onnx/ReduceMean'",
    "onnx/ReduceMean/float32/3/-/ramp": "names no version",
    "tosa/Mean-1/float32/3/-/ramp": "no operator is called",
}


@pytest.mark.parametrize("text", NO_CASES)
def test_what_is_no_case_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(OpconformError, match=NO_CASES[text]) as raised:
        SOURCE.case(text)
    assert isinstance(raised.value, (CaseIdError, UnknownOperator))


def test_a_wrong_id_among_others_costs_itself_alone() -> None:
    cases = cases_of(SOURCE, [R18 + "-/ramp", R18 + "-/nonesuch", R18 + "axes=0/ramp"])
    assert next(cases).id == R18 + "-/ramp"
    with pytest.raises(CaseIdError):
        next(cases)


def test_an_id_may_name_the_default_opset_as_ids_of_earlier_suites_do() -> None:
    assert SOURCE.case(R18 + "opset=18/ramp").program == SOURCE.case(R18 + "-/ramp").program


def test_cases_beyond_the_plan_are_rebuilt_too() -> None:
    case = SOURCE.case("onnx/ReduceMean-18/float16/5x1x4/axes=-3,2;axes-from=graph-input;keepdims=0;opset=20/uniform")
    assert case.program.opset == 20
    assert [i.shape for i in case.tensors()] == [(5, 1, 4), (2,)]
    assert case.expectation.options[0].outputs[0].shape == (1,)

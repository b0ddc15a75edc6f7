"""If, TensorIterator and Loop are the loops that their pages tell, and a loop with a mistake is not."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from opconform.cases.batch import Batch
from opconform.cases.corpus.descriptor import program_from, program_json
from opconform.cases.elements import comparable
from opconform.cases.program import Body, Input, Node, OperatorVersion
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases

SOURCE = GeneratedCases()
TWO = np.int64(2)
BODIES: Mapping[str, Callable[..., Sequence[Any]]] = {
    "first": lambda a: [a],
    "second": lambda b: [b],
    "both": lambda a, b: [a, b],
    "swapped": lambda a, b: [b, a],
    "twice": lambda b: [b, b],
    "sum": lambda a, b: [a + b],
    "product": lambda a, b: [a * b],
    "steps": lambda a, b: [a + b, np.concatenate([b, a + b, a])],
    "joined": lambda a, b: [np.concatenate([a, b])],
    "third": lambda c: [c],
    "three_inputs": lambda h, w, b: [True, h * w + b],
    "fixed": lambda: [np.array([7, 8], np.float32)],
    "other": lambda: [np.array([1, -2, 3], np.float32)],
    "opposite": lambda a: [-a],
    "compared": lambda a, b: [a < b],
    "also": lambda a, b: [a > b],
    "within": lambda a, b: [np.concatenate([b, a])],
    "same": lambda *given: [*([] if len(given) == 1 else [True]), *given],
    "shift": lambda x, h: [h, x],
    "pair": lambda x, w: [x, w],
    "held": lambda x, w: [w, x],
    "scaled": lambda x, w: [x * w],
    "two_states": lambda x, g, h: [x + g, g + h],
    "once": lambda h: [False, h + h],
    "once_vector": lambda h: [False, h + h],
    "three_times": lambda i, h: [i < TWO, h + h],
    "three_times_32": lambda i, h: [i < TWO, h + h],
    "numbered": lambda i: [True, i],
    "summed": lambda x, h: [True, x + h],
    "one_piece": lambda x: [True, x],
}
OF_LOOPS = {"recurrent": lambda h, w: [True, h * w + w], "doubled": lambda h: [True, h + h]}
OF_ITERATORS = {"recurrent": lambda x, h, w: [x + h * w], "doubled": lambda x: [np.concatenate([x, x])]}
MISTAKES = ["state", "order", "last", "concatenated-order", "start", "end", "stride", "axis", "condition", "trips"]


def told(node: Node) -> dict[str, Any]:
    return {one.name: one.value for one in node.attributes}


def iterated(case: Batch, mistake: str) -> list[np.ndarray]:
    """The outputs of a TensorIterator or a Loop, or those with a mistake."""
    bodies = {one.name: one.value for one in case.program.attributes if isinstance(one.value, Body)}
    body, edges = bodies["body"], bodies["back_edges"].nodes if "back_edges" in bodies else ()
    given = dict(zip((one.name for one in case.program.inputs), operands(case), strict=True))
    is_loop = case.program.operator.name == "Loop"
    trips, go = (int(given["trip_count"].item()), bool(given["execution_condition"].item())) if is_loop else (-1, True)
    step = {**BODIES, **(OF_LOOPS if is_loop else OF_ITERATORS)}[body.name]
    values, pieces, number, again = dict[str, Any](), dict[str, list[Any]](), "", ""
    for node in bodies["port_map"].nodes:
        rule, to = told(node), node.outputs[0]
        if node.operator.name == "output":
            again = node.inputs[0] if "purpose" in rule else again
        elif "purpose" in rule:
            number = to
        elif "axis" in rule:
            pieces[to] = cut(given[node.inputs[0]], rule, mistake)
        else:
            values[to] = given[node.inputs[0]]
    rows: list[dict[str, Any]] = []
    while go and len(rows) != trips and all(len(rows) < len(several) for several in pieces.values()):
        now = {**values, **{name: several[len(rows)] for name, several in pieces.items()}}
        fed = [one for one in body.inputs if one.constant is None]
        arguments = [numbered(one, len(rows)) if one.name == number else now[one.name] for one in fed]
        rows.append(dict(zip((one.name for one in body.outputs), step(*arguments), strict=True)))
        if mistake != "state":
            values |= {node.outputs[0]: rows[-1][node.inputs[0]] for node in edges}
        if is_loop and mistake != "condition":
            go = bool(np.all(rows[-1][again]))
        if mistake == "trips" and len(rows) == 2:
            break
    return [
        output(node, rows, mistake)
        for node in bodies["port_map"].nodes
        if node.operator.name == "output" and "purpose" not in told(node)
    ]


def operands(case: Batch) -> list[Any]:
    return case.program.operands([x[0] for x in case.inputs])


def numbered(one: Input, number: int) -> np.ndarray:
    return np.full(tuple(map(int, one.dims)), number, one.type)


def cut(x: np.ndarray, rule: Mapping[str, Any], mistake: str) -> list[np.ndarray]:
    axis = -1 if mistake == "axis" else rule["axis"]
    stride = rule.get("stride", 1)
    stride = int(np.sign(stride)) if mistake == "stride" else stride
    x = np.moveaxis(x, axis, 0)
    places = list(range(len(x)))
    start, end = rule.get("start", 0), rule.get("end", -1)
    if mistake == "start":
        start = 0 if stride > 0 else -1
    if mistake == "end":
        end = -1 if stride > 0 else 0
    low, high = (places[end], places[start]) if stride < 0 else (places[start], places[end])
    starts = list(range(low, high + 2 - abs(stride), abs(stride)))
    if stride < 0 and mistake != "order":
        starts.reverse()
    return [np.moveaxis(x[at : at + abs(stride)], 0, axis) for at in starts]


def output(node: Node, rows: Sequence[Mapping[str, Any]], mistake: str) -> np.ndarray:
    rule, several = told(node), [row[node.inputs[0]] for row in rows]
    if "axis" not in rule:
        return several[0 if mistake == "last" else -1]
    if rule.get("stride", 1) < 0 and mistake != "concatenated-order":
        several.reverse()
    return np.concatenate(several, rule["axis"])


def chosen(case: Batch, mistake: str) -> list[np.ndarray]:
    condition, *given = operands(case)
    taken = bool(np.all(condition)) == (mistake != "other")
    body = next(one.value for one in case.program.attributes if one.name == ("then_body" if taken else "else_body"))
    names = [one.name for one in body.inputs if one.constant is None]
    return list(BODIES[body.name](*(given[int(name.removeprefix("inputs_"))] for name in names)))


@cache
def cases(glob: str) -> list[Batch]:
    """The cases that have an admissible value."""
    made = (SOURCE.case(text) for text in planned(SOURCE.library, Selection((glob,))))
    return [case for case in made if any(option.kind == "values" for option in case.expectation.options)]


def admits(case: Batch, found: Sequence[Any]) -> bool:
    return any(
        all(
            np.shape(x) == bounds.value.shape[1:] and np.all((bounds.lower[0] <= y) & (y <= bounds.upper[0]))
            for x, bounds in zip(found, option.outputs, strict=True)
            for y in [comparable(np.asarray(x))]
        )
        for option in case.expectation.options
        if option.kind == "values"
    )


@pytest.mark.parametrize("operator", ["If-8", "TensorIterator-1", "Loop-5"])
@pytest.mark.parametrize("type_", ["float32", "int32"])
def test_every_case_is_what_its_page_tells(operator: str, type_: str) -> None:
    several = [case for case in cases(f"openvino/{operator}/{type_}*") if "special" not in case.ids[0]]
    judged = [case for case in several if "no-iteration" not in dict(case.expectation.options[0].labels)]
    for case in judged:
        found = chosen(case, "") if operator == "If-8" else iterated(case, "")
        assert admits(case, found), case.ids[0]
    assert len(judged) > (20 if type_ == "float32" else 1)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_loop_with_a_mistake_is_found(mistake: str) -> None:
    several = [*cases("openvino/TensorIterator-1/float32/*"), *cases("openvino/Loop-5/float32,*")]
    several = [one for one in several if "special" not in one.ids[0] and "most" not in one.ids[0]]
    several = [one for one in several if "no-iteration" not in dict(one.expectation.options[0].labels)]
    if mistake == "condition":  # a loop without a limit would not end
        several = [one for one in several if "trip_count=scalar:5" in one.ids[0]]
    if mistake == "stride":  # pieces of other numbers would leave no iteration
        several = [one for one in several if "port_map=pairs-" in one.ids[0]]
    assert not all(admits(case, iterated(case, mistake)) for case in several)


def test_an_if_that_takes_the_other_body_is_found() -> None:
    several = [case for case in cases("openvino/If-8/float32,*") if "special" not in case.ids[0]]
    assert sum(not admits(case, chosen(case, "other")) for case in several) > len(several) / 2


@pytest.mark.parametrize(
    "text",
    [
        "openvino/If-8/float32,bool/2*3/cond=scalar:true;else_body=first;outputs=1;then_body=within/ramp/nested",
        "openvino/TensorIterator-1/float32/6x3/body=same;outputs=1;port_map=pairs-backward/ramp/pairs-backward",
    ],
)
def test_a_program_with_bodies_is_read_from_its_json_unchanged(text: str) -> None:
    program = SOURCE.case(text).program
    held = {name: given.array() for name, given in zip(("constant_0",), program.given, strict=False) if given.constant}
    read = program_from(json.loads(json.dumps(program_json(program))), lambda name, _type, _shape: held[name])
    assert read == program


def test_an_operation_in_a_body_has_the_version_that_its_set_names() -> None:
    (case,) = SOURCE.batches(
        ["openvino/If-8/float32,bool/2*3/cond=scalar:true;else_body=first;outputs=1;then_body=within/ramp/nested"]
    )
    then = case.program.attributes[0].value
    assert isinstance(then, Body)
    (inner,) = then.nodes
    assert inner.operator == OperatorVersion("openvino", "If", 8)
    other = inner.attributes[1].value
    assert isinstance(other, Body)
    assert [node.operator for node in other.nodes] == [OperatorVersion("openvino", "Concat", 1)]
    assert [(one.name, one.dims) for one in other.inputs] == [("inputs_0", ("...",)), ("inputs_1", ("...",))]
    assert not case.program.captured

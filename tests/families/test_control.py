"""Scan is the loop that its page writes down, and a loop with a mistake is not; SequenceMap is its function body."""

import json
from collections.abc import Iterator, Sequence

import numpy as np
import onnx
import onnx.reference
import pytest

from opconform.cases.batch import Batch, Flag
from opconform.cases.corpus.descriptor import constants, program_from, program_json
from opconform.cases.elements import comparable, equal
from opconform.cases.onnx_model import feeds, onnx_model
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases

BODIES = {
    "shifted": lambda s, x, z: [x, s, z],
    "zipped": lambda s, x, z: [x, z, x],
    "sum": lambda s, x: [s + x, s + x],
    "fold": lambda s, x: [s + x],
    "map": lambda x: [x],
    "zip": lambda x, u, z: [z, u, x],
    "scalars": lambda s, x: [x, s],
}
MISTAKES = {
    8: ["directions", "last", "state", "order", "batch", "lens"],
    9: ["input_directions", "output_directions", "input_axes", "output_axes", "last", "state", "order"],
}


def scanned(case: Batch, mistake: str) -> list[np.ndarray]:
    """Return the outputs of a case of version 9 or later by the page's own loop, or one with a mistake."""
    told = {a.name: a.value for a in case.program.attributes if a.name != f"scan_{mistake}"}
    return loop(told, case.program.operands([x[0] for x in case.inputs]), mistake, body(case))


def loop(told, inputs: Sequence[np.ndarray], mistake: str, step, count: int | None = None) -> list[np.ndarray]:
    many = told["num_scan_inputs"]
    states, scans = list(inputs[:-many]), list(inputs[-many:])
    axes, turned = (told.get(f"scan_input_{name}", (0,) * many) for name in ("axes", "directions"))
    scans = [np.moveaxis(x, axis, 0) for x, axis in zip(scans, axes, strict=True)]
    count = len(scans[0]) if count is None else count
    scans = [x[:count][::-1] if back else x[:count] for x, back in zip(scans, turned, strict=True)]
    rows, initial = [], states
    for t in range(count - (mistake == "last")):
        at = count - 1 - t if mistake == "order" else t
        found = step(*(initial if mistake == "state" else states), *(x[at] for x in scans))
        states = found[: len(states)]
        rows.append(found[len(states) :])
    outputs = [list(one) for one in zip(*rows, strict=True)]
    axes, turned = (told.get(f"scan_output_{name}", (0,) * len(outputs)) for name in ("axes", "directions"))
    made = [row[::-1] if back else row for row, back in zip(outputs, turned, strict=True)]
    return [*states, *(np.stack(row, axis) for row, axis in zip(made, axes, strict=True))]


def batched(case: Batch, mistake: str) -> list[np.ndarray]:
    """Return the outputs of a case of version 8, each batch by itself."""
    told = {a.name: a.value for a in case.program.attributes if a.name != mistake}
    lens, *given = case.program.operands([x[0] for x in case.inputs])
    longest = given[-1].shape[1]
    told["scan_input_directions"] = told.get("directions", (0,) * told["num_scan_inputs"])
    found = []
    for b in range(len(given[-1])):
        count = longest if lens is None or mistake == "lens" else int(lens[b])
        one = loop(told, [x[0 if mistake == "batch" else b] for x in given], mistake, body(case), count)
        kept = len(given) - told["num_scan_inputs"]
        found.append([x if i < kept else padded(x, longest) for i, x in enumerate(one)])
    return [np.stack(several) for several in zip(*found, strict=True)]


def padded(x: np.ndarray, longest: int) -> np.ndarray:
    return np.concatenate([x, np.zeros((longest - len(x), *x.shape[1:]), x.dtype)])


def body(case: Batch):
    (name,) = (a.value.name for a in case.program.attributes if a.name == "body")
    return BODIES[name]


def cases(version: int) -> Iterator[Batch]:
    source = GeneratedCases()
    for case in source.cases(planned(source.library, Selection((f"onnx/Scan-{version}/float32*",)))):
        (name,) = (a.value.name for a in case.program.attributes if a.name == "body")
        kinds = [option.kind for option in case.expectation.options]
        if name in BODIES and kinds == ["values"] and not case.ids[0].endswith("padded-none"):
            yield case


def agrees(case: Batch, version: int, mistake: str) -> bool:
    try:
        found = (batched if version == 8 else scanned)(case, mistake)
    except (ValueError, IndexError):
        return False
    (option,) = case.expectation.options
    if len(found) != len(option.outputs):
        return False
    for bounds, array in zip(option.outputs, found, strict=True):
        if bounds.shape != array.shape:
            return False
        free = 0 if bounds.flags is None else bounds.flags[0] & Flag.FREE
        if not np.all((bounds.lower[0] <= array) & (array <= bounds.upper[0]) | (free != 0) | np.isnan(array)):
            return False
    return True


@pytest.mark.parametrize("version", [8, 9, 11])
def test_a_scan_is_the_loop_of_its_page_and_no_other(version) -> None:
    held = list(cases(version))
    assert len(held) > 20
    assert [case.ids[0] for case in held if not agrees(case, version, "")] == []
    for mistake in MISTAKES[min(version, 9)]:
        assert not all(agrees(case, version, mistake) for case in held), mistake


def expanded(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose one node calls the operator's own function body."""
    (node,) = model.graph.node
    types = {value.name: value.type.SerializeToString() for value in model.graph.input}
    schema = onnx.defs.get_schema(node.op_type, 17, "")
    text = schema.get_context_dependent_function(node.SerializeToString(), [types[name] for name in node.input])
    body = onnx.FunctionProto.FromString(text)
    body.domain, body.name = "expanded", "Expanded"
    body.ClearField("attribute")
    call = onnx.helper.make_node(body.name, node.input, node.output, domain=body.domain)
    graph = onnx.helper.make_graph([call], "expanded", model.graph.input, model.graph.output)
    opsets = [*model.opset_import, onnx.helper.make_opsetid(body.domain, 1)]
    return onnx.helper.make_model(graph, functions=[body], opset_imports=opsets)


def test_a_sequence_map_is_its_function_body() -> None:
    source, count = GeneratedCases(), 0
    for case in source.cases(planned(source.library, Selection(("onnx/SequenceMap-17/seq.float32,*",)))):
        kinds = [option.kind for option in case.expectation.options]
        if kinds != ["values"] or case.ids[0].endswith(("captured", "-fixed")):  # a function sees nothing around it
            continue
        evaluator = onnx.reference.ReferenceEvaluator(expanded(onnx_model(case.program)))
        answers = evaluator.run(None, feeds(case.program, [x[0] for x in case.inputs]))
        arrays = [np.asarray(item) for answer in answers for item in answer]
        (option,) = case.expectation.options
        assert len(arrays) == len(option.outputs), case.ids[0]
        for bounds, array in zip(option.outputs, arrays, strict=True):
            assert bounds.shape == array.shape, case.ids[0]
            same, numbers = equal(bounds.value, comparable(array[np.newaxis])), array.dtype.kind == "f"
            within = (bounds.lower <= array) & (array <= bounds.upper) if numbers else same
            assert (same | within).all(), case.ids[0]
        count += 1
    assert count > 50


def matrices(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    return [2 * (a @ b) @ b.T, 2 * a.T @ (a @ b)]


GRADIENTS = {
    "product": lambda x, z: [z, x],
    "sum": lambda x, z: [1 + 0 * x, 1 + 0 * z],
    "difference": lambda x, z: [1 + 0 * x, -1 + 0 * z],
    "polynomial": lambda x, z: [1 - 2 * x * z, -x * x],
    "squares": lambda x: [2 * x],
    "spread": lambda a, b: [np.broadcast_to(b, a.shape), a.sum(0)],
    "matrices": matrices,
    "fed": lambda h: [2 * h],
    "scaled": lambda x, z: [z],
    "sized": lambda x, z: [z.size],
}


def test_a_gradient_is_what_is_derived_by_hand() -> None:
    source, met = GeneratedCases(), set()
    for case in source.cases(planned(source.library, Selection(("onnx/Gradient-1/float32*",)))):
        (option, *others) = case.expectation.options or [None]
        if option is None or others or option.kind != "values" or case.ids[0].endswith(("special", "within")):
            continue
        program, told = case.program, {a.name: a.value for a in case.program.attributes}
        held = constants(program)
        assert (
            program_from(json.loads(json.dumps(program_json(program))), lambda name, *_, held=held: held[name])
            == program
        )
        given = [
            x.astype(np.float64) if x.dtype.kind in "fi" else x for x in program.operands([x[0] for x in case.inputs])
        ]
        names = [*told["xs"], *told.get("zs", ())]
        ordered = dict(sorted(zip(names, given, strict=True)))
        derived = dict(zip(ordered, GRADIENTS[program.around.name](*ordered.values()), strict=False))
        for bounds, name in zip(option.outputs, told["xs"], strict=False):
            assert np.all(np.abs(bounds.value[0] - derived[name]) <= 1e-6 * np.abs(derived[name]) + 1e-12), case.ids[0]
        met.add(program.around.name)
    assert met == set(GRADIENTS)

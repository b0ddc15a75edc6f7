"""An operation in the words of its standard: what is printed is what the standard's own tools would read."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from fakes.judging import single
from fakes.programs import STRUCTURED, constant, feed, onnx_program

from opconform.cases.batch import Batch, Bounds, Option
from opconform.cases.program import Attribute, Input, OperatorVersion, Output, Program
from opconform.generators.source import GeneratedCases
from opconform.reports.show import node_text, operation_lines


def values(*shape: int) -> Option:
    zeros = np.zeros(shape)
    return Option((), (Bounds("float32", zeros, zeros, zeros),))


def case(program: Program, *options: Option) -> Batch:
    """A case without tensors."""
    return Batch.of_case("a case", program, (), single(*options, types=("float32",)))


def native(standard: str, *inputs: Input, rank: int | None = 1, **attributes: tuple[Any, Any]) -> Program:
    """A program of an operation that there is not; attributes by name, as kind and value."""
    version = OperatorVersion(standard, "Blend", 7 if standard == "openvino" else "any")
    written = tuple(Attribute(name, kind, value) for name, (kind, value) in attributes.items())
    return Program(version, written, inputs, (Output("out", "float32", rank),))


def layer(of: Batch) -> ET.Element:
    """The layer that is printed, read as XML."""
    text = "\n".join(line[13:] for line in operation_lines(of))
    return ET.fromstring(text)


def ports(of: ET.Element) -> list[tuple[str | None, str | None, list[str | None]]]:
    """Each port's number, precision and dimensions, inputs first."""
    return [(p.get("id"), p.get("precision"), [d.text for d in p]) for p in of.iter("port")]


# One line


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (
            onnx_program("Mean", 13, [feed("a", "float32", 2), None], attributes=[("k", "ints", ())]),
            'y = Mean(a, ""; k=[])  (opset 13)',
        ),
        (native("openvino", feed("a", "float32", 2), keep=("boolean", True)), "out = Blend(a; keep=true)  (opset7)"),
        (
            native("onednn", feed("a", "float32", 2), axes=("s64s", (0, 1)), keep=("bool", False)),
            "out = Blend(a; axes=[0, 1], keep=false)",
        ),
    ],
)
def test_a_line_says_the_operation_whatever_the_standard(program: Program, text: str) -> None:
    assert node_text(program) == text


# OpenVINO

SERIALIZED = [
    "float32,int64/3x2x2/axes=2,0/ramp/axes-unsorted",
    "bfloat16,int64/2x4/axes=1/overflow/sum-overflow-float",
    "float16,int64/2x3/axes=1/negative-zero/negative-zero",
    "uint8,int64/3x2x2/axes=0,1,2;keep_dims=true/ramp/all-kept",
    "float64,int64/2x0x3/axes=0,1,2/ramp/empty-set",
    "float32,int64/3x2x2/axes=none;axes-from=graph-input;dims=symbolic/ramp/axes-empty-fed",
    "float32,int64/scalar/axes=none;axes-from=graph-input/ramp/rank-0-axes-fed",
]


@pytest.mark.parametrize("text", SERIALIZED)
def test_a_layer_is_what_openvino_itself_writes(text: str, tmp_path: Path) -> None:
    of = GeneratedCases().case(f"openvino/ReduceMean-1/{text}")
    told, written = layer(of), serialized(of.program, tmp_path)
    assert [told.get(k) for k in ("type", "version")] == [written.get(k) for k in ("type", "version")]
    given = {a.name for a in of.program.attributes}
    assert {n: v for n, v in attributes(written).items() if n in given} == attributes(told)
    ours, theirs = ports(told), ports(written)
    if any(i is not None and i.constant is None and i.name == "axes" for i in of.program.inputs):
        # before it runs the library does not know which dimensions are reduced
        ours, theirs = [p[:2] if p[0] == "2" else p for p in ours], [p[:2] if p[0] == "2" else p for p in theirs]
    assert ours == theirs


def attributes(of: ET.Element) -> dict[str, str]:
    found = of.find("data")
    return dict(found.attrib) if found is not None else {}


def serialized(program: Program, folder: Path) -> ET.Element:
    """The layer as OpenVINO serializes it."""
    ov = pytest.importorskip("openvino")
    types = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "uint8": "u8", "int64": "i64"}
    nodes = []
    for i in program.inputs:
        assert i is not None
        dims = [-1 if isinstance(d, str) else d for d in i.dims]
        type_ = getattr(ov.Type, types[i.type])
        operations = part("op")
        fed = operations.Parameter(type_, ov.PartialShape(dims))
        nodes.append(fed if i.constant is None else operations.Constant(type_, ov.Shape(dims), i.array().reshape(-1)))
    factory = part("utils.node_factory").NodeFactory(f"opset{program.operator.version}")
    node = factory.create(program.operator.name, nodes, {a.name: a.value for a in program.attributes})
    fed = [n for n, i in zip(nodes, program.inputs, strict=True) if i is not None and i.constant is None]
    ov.save_model(ov.Model(node.outputs(), fed, "model"), folder / "model.xml", compress_to_fp16=False)
    layers = ET.parse(folder / "model.xml").iter("layer")
    return next(found for found in layers if found.get("type") == program.operator.name)


def part(name: str) -> Any:
    """A module of OpenVINO, which kept it elsewhere until 2025."""
    try:
        return importlib.import_module(f"openvino.{name}")
    except ModuleNotFoundError:
        return importlib.import_module(f"openvino.runtime.{name}")


def test_a_layer_tells_constants_in_comments_as_the_pages_do() -> None:
    inputs = (
        feed("data", "float32", "n", 2),
        constant("axes", np.array([-1, 0])),
        constant("scalar", np.array(3, np.int32)),
        constant("long", np.arange(20, dtype=np.uint8)),
        feed("fed", "bool"),
    )
    lines = operation_lines(case(native("openvino", *inputs), values(2)))
    text = "\n".join(lines)
    for words in (
        '<port id="0" precision="FP32">  <!-- data -->',
        '<port id="1" precision="I64">  <!-- axes: value is [-1, 0] -->',
        '<port id="2" precision="I32" />  <!-- scalar: value is 3 -->',
        '<port id="3" precision="U8">  <!-- long: value is [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …] -->',
        '<port id="4" precision="BOOL" />  <!-- fed, a scalar -->',
    ):
        assert words in text
    assert ports(layer(case(native("openvino", *inputs), values(2))))[-1] == ("5", "FP32", ["-1"])


@pytest.mark.parametrize(
    ("options", "rank", "dims", "words"),
    [
        ([values(2, 1), values(2, 1)], 2, ["2", "1"], "<!-- out -->"),
        ([values()], 0, [], "<!-- out, a scalar -->"),
        ([values(2, 1), values(2)], None, [], "<!-- out, whose rank the standard leaves open -->"),
        ([values(1), values(2)], 1, ["-1"], "<!-- out -->"),
        ([], 2, ["-1", "-1"], "<!-- out -->"),
        ([Option((), kind="rejected"), values(3)], 1, ["3"], "<!-- out -->"),
    ],
)
def test_an_output_has_the_shape_that_all_answers_have(
    options: list[Option], rank: int | None, dims: list[str], words: str
) -> None:
    of = case(native("openvino", feed("data", "float32", 2, 2), rank=rank), *options)
    assert ports(layer(of))[-1] == ("1", "FP32", dims)
    assert words in "\n".join(operation_lines(of))


def test_a_layer_stays_xml_whatever_names_and_texts_there_are() -> None:
    odd = {"mode": ("string", 'a<b & "c"'), "pads": ("ints", (1, -1)), "on": ("boolean", False), "by": ("float", 0.5)}
    of = case(native("openvino", feed("--> <", "float32"), **odd), values(1))
    assert attributes(layer(of)) == {"mode": 'a<b & "c"', "pads": "1, -1", "on": "false", "by": "0.5"}


# oneDNN


def test_an_op_has_attributes_inputs_and_outputs_as_its_page_lists_them() -> None:
    program = native(
        "onednn",
        feed("src", "bfloat16", 3, 2),
        feed("axes", "int32", 1),
        axes=("s64s", ()),
        keep_dims=("bool", True),
        mode=("str", "sum"),
    )
    assert operation_lines(case(program, values(3, 1))) == [
        "operation    Blend",
        "               attributes",
        "                 axes: s64[] = []",
        "                 keep_dims: bool = true",
        "                 mode: str = sum",
        "               inputs",
        "                 0  src: bf16 [3, 2]",
        "                 1  axes: s32 [1]",
        "               outputs",
        "                 0  out: f32 [3, 1]",
    ]


def test_an_op_without_attributes_and_with_shapes_that_are_open_says_so() -> None:
    lines = operation_lines(case(native("onednn", feed("src", "uint64", 2), rank=None), values(1), values(2)))
    assert lines[1] == "               attributes: none"
    assert lines[3] == "                 0  src: uint64 [2]", "oneDNN has no such type"
    assert lines[-1] == "                 0  out: f32 unknown dimensions"


@pytest.mark.parametrize("kind", STRUCTURED)
def test_programs_with_structure_have_a_text(kind: str) -> None:
    program = STRUCTURED[kind][0]
    text = node_text(program)
    assert program.operator.name in text
    assert all(one.name in text for one in program.answers)
    assert "object at" not in text


def test_a_body_is_written_with_its_nodes() -> None:
    text = node_text(STRUCTURED["branch"][0])
    assert "then_branch=then() { sum = Add(x, k) } -> sum" in text
    assert node_text(STRUCTURED["omitted-outputs"][0]).startswith('y0, "", "", y3 = Unique(x)')

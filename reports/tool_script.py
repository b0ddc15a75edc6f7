"""Scripts that reproduce a case on a tool around ONNX models that runs nothing, with only the tool's package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from ..cases.batch import Batch
from ..cases.elements import element_type, element_types
from ..cases.errors import OpconformError
from ..cases.program import Program
from ..cases.runner import BackendKind
from ..generators.meanings import CasesOfEveryKind
from .script import docstring, literal, packed_text, short_reproduction
from .show import node_text

_HEAD = '''"""{title}
Needs onnx, and exits 1 unless {demand}.
"""
import base64, zlib
import onnx
{imports}
model = onnx.load_from_string(zlib.decompress(base64.b64decode({model})))
'''


def tool_script(source: CasesOfEveryKind, case_id: str, backend: str) -> str:
    """Return the script for a case on a tool. Raises OpconformError for a backend without such scripts."""
    if backend not in _MADE:
        raise OpconformError(f"there are no scripts for {backend!r}, only for {', '.join(_MADE)}")
    kind, lines = _MADE[backend]
    cases = source if kind == "convert" else source.meaning(kind)  # a conversion has to compute what the original does
    return "\n".join(lines(cases.case(case_id), backend))


def _inference(case: Batch, backend: str) -> Iterator[str]:
    from ..cases.onnx_model import onnx_model  # noqa: PLC0415 - importing onnx costs a fifth of a second

    model = onnx_model(case.program)
    for output in model.graph.output:
        output.ClearField("type")
    wanted = dict.fromkeys(
        tuple(str(bounds.value[0]) for bounds in option.outputs)
        for option in case.expectation.options
        if option.kind == "values"
    )
    yield _head(
        case,
        model.SerializeToString(deterministic=True),
        "the inferred types and shapes are right",
        "from onnx import shape_inference\n",
    )
    names = {element_type(name).onnx: name for name in element_types()}
    yield f"NAMES = {literal(names)}"
    yield ""
    yield ""
    yield "def text(type_):"
    yield "    kind = type_.WhichOneof('value')"
    yield "    if kind != 'tensor_type':"
    yield "        return kind or '?'"
    yield "    tensor = type_.tensor_type"
    yield "    name = NAMES.get(tensor.elem_type, '?')"
    yield "    dims = [str(d.dim_value) if d.HasField('dim_value') else d.dim_param or '?' for d in tensor.shape.dim]"
    yield "    return f\"{name}[{','.join(dims)}]\" if tensor.HasField('shape') else name"
    yield ""
    yield "# What the program determines; 'N?' may be unknown or N, 'a|b' either, '*' only unknown."
    yield f"WANT = {literal([list(texts) for texts in wanted])}"
    yield f"made = shape_inference.infer_shapes(model{_SETTINGS[backend]})"
    yield "got = [text(output.type) for output in made.graph.output]"
    yield 'print("got", *got)'
    yield 'print("want", *WANT, sep="\\n  ")'
    yield _AGREES


_AGREES = '''

def agrees(want, got):
    """Whether an inferred type and shape contradict none of the expected words."""
    if "(" in want or want.partition("[")[0] != got.partition("[")[0]:
        return "(" in want or got.startswith("?")
    if "[" not in want or "[" not in got:
        return True
    want, got = ([d for d in text[text.index("[") + 1 : -1].split(",") if d] for text in (want, got))
    return len(want) == len(got) and all(not g.isdigit() or g in w.rstrip("?").split("|") for w, g in zip(want, got))


assert any(all(map(agrees, want, got)) for want in WANT), "wrong"'''

_SETTINGS: Mapping[str, str] = MappingProxyType({
    "onnx-infer": "",
    "onnx-infer-strict": ", check_type=True, strict_mode=True",
    "onnx-infer-data": ", data_prop=True",
})  # fmt: skip


def _check(case: Batch, backend: str) -> Iterator[str]:
    from ..cases.onnx_model import onnx_bytes  # noqa: PLC0415 - importing onnx costs a fifth of a second

    invalid = not case.expectation.options
    yield _head(case, onnx_bytes(case.program), f"the checker {'refuses' if invalid else 'accepts'} the model", "")
    yield "try:"
    yield f"    onnx.checker.check_model(model{', full_check=True' if backend == 'onnx-check-full' else ''})"
    yield "except Exception as error:"
    yield '    print(f"refused: {error}")'
    yield f"    raise SystemExit({int(not invalid)}) from None"
    verdict = literal("accepted, but the program is invalid whatever it is fed") if invalid else "0"
    yield f"raise SystemExit({verdict})"


def _conversion(case: Batch, backend: str) -> Iterator[str]:
    text = short_reproduction(case)
    if text is None:
        raise OpconformError(f"{case.id}: there is no short script, and so none for {backend}")
    loaded = "zlib.decompress(base64.b64decode(MODEL))"
    needs, imports, lines = _converting(case.program, backend)
    quiet = "ort.set_default_logger_severity(4)"
    head, _, tail = text.partition(quiet)
    head = head.replace("import numpy as np\n", "import numpy as np\nimport onnx\n")
    yield head.replace("Needs onnxruntime", f"Needs {needs}, onnxruntime").rstrip()
    yield from imports
    yield ""
    yield f"ORIGINAL = onnx.load_from_string({loaded})"
    yield from lines
    yield quiet + tail.replace(loaded, "CONVERTED")


def _converting(program: Program, backend: str) -> tuple[str, list[str], list[str]]:
    """Return the packages that a conversion of the model ORIGINAL needs, its imports, and the lines that make it."""
    if backend == "onnxscript-convert":
        lines = [
            "made = onnx_ir.from_proto(ORIGINAL)",
            "version_converter.convert_version(made, 25)",
            "CONVERTED = onnx_ir.to_proto(made).SerializeToString()",
        ]
        return "onnx, onnxscript", ["import onnx_ir", "from onnxscript import version_converter"], lines
    target, lines = "OPSET", ["OPSET = max(26, *(one.version for one in ORIGINAL.opset_import if not one.domain))"]
    if backend == "onnx-convert-down":
        target, lines = str(int(program.operator.version) - 1), []
    made = f"CONVERTED = version_converter.convert_version(ORIGINAL, {target}).SerializeToString()"
    return "onnx", ["from onnx import version_converter"], [*lines, made]


_MADE: Mapping[str, tuple[BackendKind, Callable[[Batch, str], Iterator[str]]]] = MappingProxyType({
    **dict.fromkeys(_SETTINGS, ("infer", _inference)),
    **dict.fromkeys(("onnx-check", "onnx-check-full"), ("check", _check)),
    **dict.fromkeys(("onnx-convert", "onnx-convert-down", "onnxscript-convert"), ("convert", _conversion)),
})  # fmt: skip


def _head(case: Batch, model: bytes, demand: str, imports: str) -> str:
    title = docstring(f"{case.id}\n{node_text(case.program)}")
    return _HEAD.format(title=title, demand=demand, imports=imports, model=literal(packed_text(model)))

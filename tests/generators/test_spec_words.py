"""Every word of docs/spec-format.md does something: it changes the cases, or what is told of them, or it is refused."""

from __future__ import annotations

import dataclasses
import functools
import re
import shutil
from pathlib import Path

import pytest

from opconform.cases.batch import cases_of
from opconform.cases.errors import OpconformError
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.specs.loader import default_root
from opconform.specs.model import COMMON_PARAMETERS, GROUPS, Word

PAGE = (Path(__file__).parents[2] / "docs" / "spec-format.md").read_text()

TOPK = """\
operator: onnx/TopK
family: sorting.top_k
source: https://example.org/TopK
versions:
  10:
    attributes: {axis: int = -1}
    inputs: {X: T, K: int64}
    outputs: {Values: T, Indices: I}
    types: {T: [float16, float32], I: [int64]}
  11:
    change: another order
    attributes: {axis: int = -1, largest: int = 1, sorted: int = 1}
clauses:
  values: the largest elements
  range: {text: the axis lies in range, when: edges}
silences:
  k-zero: {when: k is 0, options: [nothing, rejected]}
  nan: {when: an element is NaN, options: [largest, smallest, anything]}
operands: {K: {shape: [1]}}
parameters:
  T: all
  shapes: {vector: [9], matrix: [3, 5]}
  K: {one: [1], two: [2]}
  axis: [absent, 0, -1]
  fill: [few]
edges:
  more: {with: {shapes: [3], K: [0], T: [float32]}, tests: values}
  heap: {with: {shapes: [30], K: [12], T: [float32]}, tests: values}
  large: {with: {shapes: [3], K: [1], axis: 1, T: [float32]}, mended: {axis: 0}, tests: range, expect: rejected}
"""
GATHER = """\
operator: onnx/Gather
family: indexing.gather
source: https://example.org/Gather
versions:
  13:
    attributes: {axis: int = 0}
    inputs: {data: T, indices: I}
    outputs: {output: T}
    types: {T: [float32, int8], I: [int32, int64]}
clauses: {gather: one row after the other}
silences: {index-negative-early: {when: an index is negative, options: [from-the-end, rejected]}}
operands: {indices: {shape: [4], draw: [any], below: "d[axis]"}}
parameters: {T: all, I: all, shapes: {rows: {data: [5, 3]}, more: {data: [7, 2]}}, axis: [0, 1], fill: [ramp, few]}
"""
SOFTMAX = """\
operator: onnx/Softmax
family: normalization.softmax
source: https://example.org/Softmax
versions: {13: {attributes: {axis: int = -1}, inputs: {input: T}, outputs: {output: T}, types: {T: [float32]}}}
clauses: {along-axis: it sums along the axis, axis-range: {text: the axis lies in range, when: edges}}
silences: {infinite: {when: an element is infinite, options: [not-a-number, as-written]}}
edges: {e: {with: {shapes: [2], axis: 1}, mended: {axis: 0}, tests: axis-range, expect: rejected}}
parameters: {T: all, shapes: {some: [3, 7]}, fill: [uniform]}
"""
CAST = """\
operator: onnx/Cast
family: cast.cast
source: https://example.org/Cast
versions:
  9:
    attributes: {to: int}
    inputs: {input: T1}
    outputs: {output: T2}
    types: {T1: [int8, int32], T2: [int8, int32]}
clauses: {to: the output has the type}
types-from: {output: {attribute: to}}
parameters: {T1: all, T2: all, to: [given], shapes: {some: [3]}, fill: [ramp]}
"""
IF = """\
operator: onnx/If
family: control.if
source: https://example.org/If
versions:
  11:
    attributes: {else_branch: graph, then_branch: graph}
    inputs: {cond: B}
    outputs: {outputs: V+}
    types: {V: [float32], B: [bool]}
graphs:
  first: "first () => ({V}[3] y) { y = Identity (outer_a) }"
  second: "second () => ({V}[3] y) { y = Identity (outer_b) }"
clauses: {choose: one of the two}
parameters: {V: all, cond: [true], branches: {both: {then_branch: first, else_branch: second}}, fill: [ramp]}
"""

# the word: a file, what is replaced in it and by what
CASES = {
    "operator": (GATHER, "operator: onnx/", "operator: openvino/"),
    "domain": (GATHER, "family:", "domain: ai.onnx.ml\nfamily:"),
    "family": (TOPK, "sorting.top_k", "sorting.top"),
    "uses": (TOPK, "versions:\n", "uses: shared\nversions:\n"),
    "versions": (TOPK, "  11:\n", "  12:\n"),
    "attributes": (TOPK, "axis: int = -1, largest", "axis: int = 0, largest"),
    "inputs": (GATHER, "indices: I}", "indices: int64}"),
    "outputs": (TOPK, "Values: T, Indices: I", "Values: T, Indices: optional I"),
    "types": (TOPK, "[float16, float32]", "[float16, float64]"),
    "since": (TOPK, "axis: [absent, 0, -1]", "axis: [0, {value: -1, since: 11}]"),
    "before": (TOPK, "K: [12], T: [float32]}, tests: values}", "K: [12], T: [float32]}, tests: values, before: 11}"),
    "having": (
        TOPK,
        "K: [12], T: [float32]}, tests: values}",
        "K: [12], T: [float32]}, tests: values, having: largest}",
    ),
    "lacking": (TOPK, "axis: [absent, 0, -1]", "axis: {levels: [0, -1], lacking: largest}"),
    "operands": (GATHER, 'operands: {indices: {shape: [4], draw: [any], below: "d[axis]"}}\n', ""),
    "shape": (GATHER, "{shape: [4]", "{shape: [3]"),
    "draw": (GATHER, "draw: [any]", "draw: [signed]"),
    "below": (GATHER, 'below: "d[axis]"', "below: 1"),
    "domains": (TOPK, "parameters:", "domains: {X: power-of-two}\nparameters:"),
    "operand.domain": (TOPK, "operands: {", "operands: {X: {domain: power-of-two}, "),
    "operand.fill": (TOPK, "operands: {", "operands: {X: {fill: ramp}, "),
    "types-from": (CAST, "types-from: {output: {attribute: to}}\n", ""),
    "absent": (TOPK, "[absent, 0, -1]", "[0, -1]"),
    "omitted": (TOPK, "  axis:", "  outputs: {second: [omitted, Indices]}\n  axis:"),
    "given": (CAST, "to: [given]", "to: [1]"),
    "same": (GATHER, "parameters:", "same: [T, I]\nparameters:"),
    "precision": (SOFTMAX, "parameters:", "precision: {exp: 99}\nparameters:"),
    "strength": (GATHER, "parameters:", "strength: {4: [T, shapes, axis, fill]}\nparameters:"),
    "graphs": (IF, "Identity (outer_b)", "Identity (outer_c)"),
    "clauses": (TOPK, "  values: the largest elements\n", "  values: the largest elements\n  order: in order\n"),
    "when": (TOPK, "values: the largest elements", "values: {text: the largest elements, when: {axis: 0}}"),
    "none": (TOPK, "values: the largest elements", "values: {text: words, when: {K: none}}"),
    "negative": (TOPK, "values: the largest elements", "values: {text: words, when: {axis: negative}}"),
    "symbolic": (TOPK, "values: the largest elements", "values: {text: words, when: {dims: symbolic}}"),
    "silences": (TOPK, "  nan: {when: an element is NaN, options: [largest, smallest, anything]}\n", ""),
    "options": (TOPK, "[nothing, rejected]", "[nothing]"),
    "parameters": (TOPK, "  axis: [absent, 0, -1]\n", ""),
    "shapes": (TOPK, "vector: [9]", "vector: [8]"),
    "section shapes": (GATHER, "operands: {indices: {shape: [4], ", "shapes: {indices: [2]}\noperands: {indices: {"),
    "dims": (TOPK, "  axis:", "  dims: [static, symbolic]\n  axis:"),
    "fill": (TOPK, "fill: [few]", "fill: [ramp]"),
    "NAME-from": (TOPK, "  axis:", "  K-from: [constant, graph-input]\n  axis:"),
    "values-from": (TOPK, "  axis:", "  values-from: [constant, graph-input]\n  axis:"),
    "NAME-rank": (TOPK, "  axis:", "  K-rank: [1, 0]\n  axis:"),
    "outputs asked for": (TOPK, "  axis:", "  outputs: {both: [Values, Indices], one: [Values]}\n  axis:"),
    "opset": (TOPK, "K: [12],", "K: [12], opset: last,"),
    "around": (IF, "fill: [ramp]", "fill: [ramp], around: [first, second]"),
    "unknown": (TOPK, "K: [12],", "K: [12], unknown: weights,"),
    "memory": (TOPK, "K: [12],", "K: [12], memory: turned,"),  # refused: only oneDNN has strides
    "exclude": (TOPK, "edges:", "exclude: [{shapes: vector, axis: -1}]\nedges:"),
    "edges": (TOPK, "  heap:", "  other:"),
    "with": (TOPK, "K: [12],", "K: [13],"),
    "tests": (TOPK, "K: [12], T: [float32]}, tests: values}", "K: [12], T: [float32]}, tests: range}"),
    "expect": (TOPK, "mended: {axis: 0}, tests: range, expect: rejected", "tests: range"),
    "mended": (TOPK, "mended: {axis: 0}", "mended: {axis: -1}"),
}
# words that do not change a case: they are in what is told of the operator, and of its clauses
TOLD = {
    "unused": (TOPK, "clauses:", "unused: {axis: it has no effect}\n\nclauses:"),
    "as": (
        *(SOFTMAX.replace("operator: onnx", "operator: openvino"), "clauses: {along"),
        "as: {formula: onnx/Softmax-13, attributes: {axis: axis}, silences: {infinite: =infinite}, "
        "clauses: {along-axis: along-axis, axis-range: axis-range}}\nclauses: {along",
    ),
    "source": (TOPK, "example.org/TopK", "example.org/other"),
    "change": (TOPK, "change: another order", "change: another type"),
    "deprecated": (TOPK, "change: another order", "deprecated: true"),
    "amended": (TOPK, "change: another order", 'change: another order\n    amended: "1.20"'),
    "text": (TOPK, "the largest elements", "{text: the smallest elements}"),
    "status": (TOPK, "the largest elements", "{text: the largest elements, status: inferred}"),
    "upstream": (TOPK, "the largest elements", "{text: the largest elements, upstream: an issue}"),
    "disputes": (
        *(TOPK, "the largest elements"),
        "{text: the largest elements, status: disputed, upstream: an issue, disputes: inputs.K}",
    ),
    "excludes": (TOPK, "the largest elements", '{text: the largest elements, excludes: ["rank=0"]}'),
    "also-known-as": (
        TOPK,
        "K: [12], T: [float32]}, tests: values}",
        "K: [12], T: [float32]}, tests: values, also-known-as: {old: []}}",
    ),
}
EXPRESSIONS = {
    "r - 1": (TOPK, "axis: [absent, 0, -1]", "axis: {a: r - 1}"),
    "2*k": (GATHER, "shape: [4]", "shape: [2*axis]"),
    "-(r // 2)": (TOPK, "axis: [absent, 0, -1]", "axis: {a: -(r // 2)}"),
    "0 .. r-1": (GATHER, "shape: [4]", "shape: [1 .. r]"),
    "2 x k": (GATHER, "shape: [4]", "shape: [2 x 3]"),
    "S...": (GATHER, "shape: [4]", "shape: [d...]"),
    "d[axis]": (GATHER, "shape: [4]", 'shape: ["d[axis]"]'),
    "d0": (GATHER, "shape: [4]", "shape: [d0]"),
    "d[-1]": (GATHER, "shape: [4]", 'shape: ["d[-1]"]'),
    "d[1:]...": (GATHER, "shape: [4]", 'shape: ["d[1:]..."]'),
}
SHARED = """\
silences: {k-zero: {when: k is 0, options: [nothing, rejected]}}
edges: {e: {with: {shapes: [5], K: [2], T: [float32]}, tests: values}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return what a spec file makes: cases with their digests, and what is said of its versions; words if refused."""

    root = tmp_path_factory.mktemp("specs")

    def make(text: str) -> tuple[object, object]:
        operator = re.match(r"operator: (\S+)", text)[1]
        for name, words in (("onnx/Softmax", SOFTMAX), (operator, text)):  # the first is the formula of another
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / f"{name}.yaml").write_text(words)
        shutil.copytree(default_root() / "families", root / "families", dirs_exist_ok=True)
        (root / "families" / "shared.yaml").write_text(SHARED)
        source = GeneratedCases(root)
        try:
            versions = source.library.spec(operator).versions
            ids = list(planned(source.library, Selection((f"{operator}-*",))))
            cases = {
                case.id: (
                    case.digest,
                    case.expectation.digest,
                    case.clauses,
                    case.valid_variant,
                    case.expectation.silences,
                )
                for case in cases_of(source, ids)
            }
        except OpconformError as error:
            return str(error), str(error)
        assert cases
        return cases, {v: dataclasses.asdict(one) for v, one in versions.items()}

    return functools.cache(make)


@pytest.mark.parametrize("word", [*CASES, *EXPRESSIONS])
def test_a_word_changes_the_cases_or_is_refused(word: str, made) -> None:
    text, old, new = (CASES | EXPRESSIONS)[word]
    assert text.count(old) == 1
    before, after = made(text)[0], made(text.replace(old, new))[0]
    assert isinstance(before, dict)
    assert after != before


@pytest.mark.parametrize("word", TOLD)
def test_a_word_about_the_standard_is_told_and_leaves_the_cases(word: str, made) -> None:
    text, old, new = TOLD[word]
    assert text.count(old) == 1
    before, after = made(text), made(text.replace(old, new))
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_the_words_are_those_of_the_page() -> None:
    tables = PAGE[PAGE.index("## Sections") :]
    first = [cell for row in re.findall(r"^\|(.*?)\|", tables, re.MULTILINE) for cell in re.findall("`(.+?)`", row)]
    words = {word.partition(":")[0] if word.endswith(("rejected", "true")) else word for word in first} - {"type(port)"}
    assert words - set(GROUPS) <= CASES.keys() | TOLD.keys() | EXPRESSIONS.keys()
    assert COMMON_PARAMETERS | {word.value for word in Word} <= CASES.keys()

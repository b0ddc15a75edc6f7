"""Small spec files, folders of few operators, and small corpora made of them."""

from __future__ import annotations

import shutil
from pathlib import Path

from click.testing import CliRunner, Result

from opconform.cli import main
from opconform.specs.loader import default_root, spec_of
from opconform.specs.model import Spec, Vocabulary
from opconform.specs.reading import read


def specs_of(folder: Path, *operators: str) -> Path:
    """Return a new folder of spec files in `folder` that has these operators alone, as `onnx/Mean`."""
    root = folder / "specs"
    for operator in operators:
        file = root / f"{operator}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(default_root() / f"{operator}.yaml", file)
    (root / "families").symlink_to(default_root() / "families")
    return root


def specs_of_means(folder: Path) -> Path:
    """Return those of the two means of ONNX, eight operator versions."""
    return specs_of(folder, "onnx/Mean", "onnx/ReduceMean")


# Small spec files, right in every respect, and the words of the families that they name


VOCABULARY = {
    "reduction": Vocabulary(
        frozenset({"axes-from"}), frozenset({"ramp", "uniform", "halves", "fits"}), frozenset({"mean", "sum"})
    ),
    "elementwise": Vocabulary(frozenset({"legacy"}), frozenset({"ramp"}), frozenset({"mean"})),
}

REDUCE = """\
operator: onnx/ReduceMean
family: reduction.mean
source: https://example.org/ReduceMean.html#{version}

versions:
  1:
    attributes: {axes: optional ints, keepdims: int = 1}
    inputs: {data: T}
    outputs: {reduced: T}
    types: {T: [wide-integers, ieee]}
  11:
    change: axes may be negative
  13:
    types: {T: [..., bfloat16]}
  18:
    change: axes become an input
    attributes: {keepdims: int = 1, noop_with_empty_axes: int = 0}
    inputs: {data: T, axes: optional int64}

clauses:
  mean: the mean of the elements
  keepdims-default: {text: a missing keepdims means 1, when: {keepdims: absent}}
  axes-range: {text: "axes lie in [-r, r-1]", since: 11, when: edges}
  axes-kept:
    text: axes that are given are reduced
    status: inferred
    source: https://example.org/elsewhere
    when: {axes: {not: [absent, none]}, T: [ieee]}

silences:
  rounding: {when: T is integer and the mean is not whole, options: [truncate, floor]}
  empty-axes: {when: axes is present and empty, options: [all, none], before: 18}

parameters:
  T: all
  shapes: {scalar: [], cube: [3, 2, 2], zero: [2, 0, 3]}
  axes:
    absent: absent
    first: [0]
    last: [r - 1]
    negative: {value: [-1], since: 11}
  axes-from: {levels: [constant, graph-input], since: 18}
  keepdims: [absent, 0, 1]
  noop_with_empty_axes: [absent, 0, 1]
  fill: [ramp, uniform]

exclude:
  - {shapes: scalar, axes: [first, last, negative]}
  - {T: {not: ieee}, fill: uniform}
  - {noop_with_empty_axes: 1, keepdims: 0}

edges:
  empty: {with: {shapes: cube, axes: []}, tests: empty-axes, before: 18}
  too-large: {with: {axes: [r]}, mended: {axes: [r - 1]}, tests: axes-range, since: 11, expect: rejected}
  fraction: {with: {shapes: [2, 2], axes: last, fill: halves, T: [int32, bfloat16]}, tests: [rounding, mean]}
  wrong-type: {with: {T: [bool, bfloat16]}, mended: {T: float32}, tests: mean, expect: rejected}
  unknown: {with: {unknown: weights}, mended: {unknown: absent}, tests: mean, expect: rejected}
"""

MEAN = """\
operator: onnx/Mean
family: elementwise.mean
source: https://example.org/Mean.html#{version}
versions:
  1:
    attributes: {consumed_inputs: optional ints}
    inputs: {data_0: T+}
    outputs: {mean: T}
    types: {T: [ieee]}
  6:
    attributes: {}
  8:
    change: inputs broadcast
  13:
    types: {T: [..., bfloat16]}
clauses:
  mean: the sum of the inputs divided by how many there are
  same-type: {text: all inputs have one type, when: edges}
parameters:
  type(data_0): all
  data_0: [1, 2]
  shapes: {same: [[3, 2]], row-column: {value: [[3, 1], [1, 4]], since: 8}}
  consumed_inputs: {absent: absent, zero: [0 x n]}
edges:
  types-differ:
    with: {data_0: 2, shapes: same, type(data_0): [float32, float64]}
    mended: {type(data_0): float32}
    tests: same-type
    expect: rejected
"""


def spec_from(text: str, file: str = "spec.yaml") -> Spec:
    """Return the spec that `text` is, with the families of VOCABULARY."""
    return spec_of(read(text, file), VOCABULARY)


# Small corpora to verify and to damage


SELECT = ("--select", "onnx/ReduceMean-18/bfloat16/4x4/*", "--select", "onnx/ReduceMean-18/int32/3x2x2/*/axi*")


def exported(folder: Path) -> Path:
    """Write a corpus in both forms, each as a folder and as an archive; returns the folder."""
    for form in ("onnx", "npz"):
        words = ["--out", str(folder / form), "--pack", str(folder / f"{form}.zip"), *SELECT]
        assert CliRunner().invoke(main, ["export", "--format", form, *words]).exit_code == 0
    return folder


def verified(path: Path) -> Result:
    """Return what `opconform verify` makes of a corpus."""
    return CliRunner().invoke(main, ["verify", str(path)])


def some(corpus: Path, name: str) -> Path:
    """Return the first file of a name."""
    return sorted(corpus.rglob(name))[0]

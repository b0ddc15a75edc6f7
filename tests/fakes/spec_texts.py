"""Small spec files, right in every respect, and the words of the families that they name."""

from opconform.specs.loader import spec_of
from opconform.specs.model import Spec, Vocabulary
from opconform.specs.reading import read

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

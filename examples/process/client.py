"""A backend over the process protocol that only needs NumPy, to copy from: docs/process-protocol.md has the fields.

From this folder: `opconform run 'cmd:python3 client.py' --select 'onnx/Add-*'`.
"""

import base64
import json
import sys

import numpy as np

OPERATORS = {  # by name: the function, the number of inputs, the versions
    "Abs": (np.abs, 1, [6, 13]),
    "Neg": (np.negative, 1, [6, 13]),
    "Relu": (lambda x: np.where(x < 0, np.zeros_like(x), x), 1, [14]),
    "Add": (np.add, 2, [7, 13, 14]),
    "Sub": (np.subtract, 2, [7, 13, 14]),
    "Mul": (np.multiply, 2, [7, 13, 14]),
}
TYPES = ["float32", "float64", "int32", "int64"]
prepared = {}  # by the question's id: the function, the operands' names, the constants


def tensor(told):
    """Return the array in a tensor of a question."""
    dtype = np.dtype(told["type"]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(told["content"]), dtype).reshape(told["shape"])


def hello(_question):
    """Return what this program is, and what it supports."""
    claims = {f"onnx/{name}": {"versions": versions, "types": TYPES} for name, (_, _, versions) in OPERATORS.items()}
    told = {"answer": "hello", "protocol": 1, "name": "numpy-client", "version": np.__version__}
    return {**told, "standards": ["onnx"], "operators": claims}


def prepare(question):
    """Check a program, and keep what its runs need."""
    program, inputs = question["program"], question["program"]["inputs"]
    compute, arity, versions = OPERATORS.get(program["name"], (None, 0, []))
    if program["standard"] != "onnx" or program["domain"] or program["version"] not in versions:
        raise NotImplementedError(f"{program['name']}-{program['version']} is not implemented")
    if len(inputs) != arity or None in inputs or program["attributes"] or len({one["type"] for one in inputs}) != 1:
        raise ValueError(f"{program['name']} takes {arity} inputs of one type, and no attributes")
    if inputs[0]["type"] not in TYPES:
        raise NotImplementedError(f"{inputs[0]['type']} is not implemented")
    for name in question.get("drop", []):
        prepared.pop(name, None)
    constants = {one["name"]: tensor(question["constants"][one["constant"]]) for one in inputs if one["constant"]}
    prepared[question["id"]] = compute, [one["name"] for one in inputs], constants
    return {"answer": "prepared"}


def run(question):
    """Run a program that was prepared."""
    compute, names, constants = prepared[question["program"]]
    fed = [name for name in dict.fromkeys(names) if name not in constants]  # two inputs with the same name are fed once
    values = constants | dict(zip(fed, map(tensor, question["inputs"]), strict=True))
    with np.errstate(all="ignore"):
        y = np.asarray(compute(*(values[name] for name in names)))
    content = base64.b64encode(y.astype(y.dtype.newbyteorder("<")).tobytes()).decode()
    return {"answer": "outputs", "outputs": [{"type": y.dtype.name, "shape": y.shape, "content": content}]}


for line in sys.stdin:
    question = json.loads(line)
    try:
        answer = {"hello": hello, "prepare": prepare, "run": run}[question["ask"]](question)
    except NotImplementedError as error:
        answer = {"answer": "unsupported", "words": str(error)}
    except ValueError as error:
        answer = {"answer": "rejected", "words": str(error)}
    print(json.dumps({"id": question["id"], **answer}), flush=True)

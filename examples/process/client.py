"""A backend over the process protocol with NumPy alone, to be copied: docs/process-protocol.md says what goes where.

From this folder: `opconform run 'cmd:python3 client.py' --select 'onnx/Add-*'`.
"""

import base64
import json
import sys

import numpy as np

OPERATORS = {  # by name: what computes it, how many inputs it takes, its versions
    "Abs": (np.abs, 1, [6, 13]),
    "Neg": (np.negative, 1, [6, 13]),
    "Relu": (lambda x: np.where(x < 0, np.zeros_like(x), x), 1, [14]),
    "Add": (np.add, 2, [7, 13, 14]),
    "Sub": (np.subtract, 2, [7, 13, 14]),
    "Mul": (np.multiply, 2, [7, 13, 14]),
}
TYPES = ["float32", "float64", "int32", "int64"]
prepared = {}  # by the id of the question: what computes it, names of its operands, those that are constants


def tensor(told):
    """Return the array that a tensor of a question holds."""
    dtype = np.dtype(told["type"]).newbyteorder("<")
    return np.frombuffer(base64.b64decode(told["content"]), dtype).reshape(told["shape"])


def hello(_question):
    """Say what this is, and what may be asked."""
    claims = {f"onnx/{name}": {"versions": versions, "types": TYPES} for name, (_, _, versions) in OPERATORS.items()}
    told = {"answer": "hello", "protocol": 1, "name": "numpy-client", "version": np.__version__}
    return {**told, "standards": ["onnx"], "operators": claims}


def prepare(question):
    """Check a program, and keep what running it needs."""
    program, inputs = question["program"], question["program"]["inputs"]
    compute, arity, versions = OPERATORS.get(program["name"], (None, 0, []))
    if program["standard"] != "onnx" or program["domain"] or program["version"] not in versions:
        raise NotImplementedError(f"{program['name']}-{program['version']} is not here")
    if len(inputs) != arity or None in inputs or program["attributes"] or len({one["type"] for one in inputs}) != 1:
        raise ValueError(f"{program['name']} takes {arity} inputs of one type, and no attributes")
    if inputs[0]["type"] not in TYPES:
        raise NotImplementedError(f"{inputs[0]['type']} is not here")
    for name in question.get("drop", []):
        prepared.pop(name, None)
    constants = {one["name"]: tensor(question["constants"][one["constant"]]) for one in inputs if one["constant"]}
    prepared[question["id"]] = compute, [one["name"] for one in inputs], constants
    return {"answer": "prepared"}


def run(question):
    """Run a program that was prepared."""
    compute, names, constants = prepared[question["program"]]
    fed = [name for name in dict.fromkeys(names) if name not in constants]  # two of one name are fed once
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

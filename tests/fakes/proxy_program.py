"""A program over the process protocol that puts what it is asked to a backend of this package: `BACKEND [files]`."""

import base64
import json
import sys
from typing import Any

import numpy as np

from opconform.cases.corpus.descriptor import program_from, structure_json
from opconform.cases.elements import Array, content, from_content
from opconform.cases.program import flat
from opconform.cases.runner import Classifies, Unsupported
from opconform.runners.programs.command import tensor_json
from opconform.runners.registry import open_runner

runner = open_runner(sys.argv[1])
prepared: dict[int, Any] = {}
files = sys.argv[2:] == ["files"]


def array(told: dict[str, Any], question: dict[str, Any]) -> Array:
    match told["content"]:
        case str(text):
            return from_content(told["type"], told["shape"], base64.b64decode(text))
        case {"offset": offset, "length": length}:
            with open(question["files"]["read"], "rb") as read:  # noqa: PTH123 - as a client would
                read.seek(offset)
                return from_content(told["type"], told["shape"], read.read(length))
        case texts:
            return np.array([*texts, ""], object)[:-1].reshape(told["shape"])


def tensor(one: Array, question: dict[str, Any]) -> dict[str, Any]:
    """Return a tensor of an answer; with files, all but text and what is empty is in the file."""
    told = tensor_json(one)
    if not files or one.dtype.hasobject or not one.size:
        return told
    held = content(one)
    with open(question["files"]["write"], "r+b") as write:  # noqa: PTH123
        offset = write.seek(0, 2)
        write.write(held)
    return {**told, "content": {"offset": offset, "length": len(held)}}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    if question["ask"] == "hello":
        told = {"answer": "hello", "protocol": 1, "name": runner.name, "version": runner.version()}
        return {**told, "standards": list(runner.standards), "files": files}
    if question["ask"] == "prepare":
        program = program_from(question["program"], lambda name, *_: array(question["constants"][name], question))
        prepared[question["id"]] = program, runner.prepare(program)
        for gone in question.get("drop", ()):
            del prepared[gone]
        return {"answer": "prepared"}
    program, executable = prepared[question["program"]]
    arrays, structure = flat(program, executable.run([array(one, question) for one in question["inputs"]]))
    outputs = {"answer": "outputs", "outputs": [tensor(one, question) for one in arrays]}
    return outputs if program.is_plain else {**outputs, "structure": [structure_json(one) for one in structure]}


for line in sys.stdin:
    question = json.loads(line)
    try:
        told = answer(question)
    except Unsupported as error:
        told = {"answer": "unsupported", "words": str(error), "reason": error.reason}
    except Exception as error:
        reason = runner.reason(error) if isinstance(runner, Classifies) else "other"
        told = {"answer": "error", "words": str(error), "reason": reason}
    print(json.dumps({"id": question["id"], **told}), flush=True)

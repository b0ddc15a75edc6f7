"""A program over the process protocol that computes Abs of float32, and goes wrong in one way: `FAULT [WHERE]`.

WHERE is hello, prepare, every-run, or run: where the input has the shape [64]. Standard library alone.
A fault that begins with `file-` makes it answer in files. A third word is a file that it creates as it goes wrong; if
the file is there already, it is right.
"""

import base64
import json
import os
import signal
import struct
import sys
import time
from pathlib import Path

fault, where, *once = sys.argv[1:4]
held_last = bytearray()


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def deep(levels):
    return {"kind": "optional", "items": [deep(levels - 1)]} if levels else {"kind": "tensor"}


def sequence(*acts):
    for act in acts:
        act()


TENSORS = {  # what stands in the first tensor of an answer
    "short": lambda one: {"content": one["content"][4:]},
    "unknown-type": lambda one: {"type": "float33"},
    "other-type": lambda one: {"type": "int32"},
    "negative-shape": lambda one: {"shape": [-64]},
    "huge-shape": lambda one: {"shape": [1 << 39, 1 << 39]},
    "other-shape": lambda one: {"shape": [1, *one["shape"]]},
    "no-base64": lambda one: {"content": "?" + one["content"][1:]},
    "list-of-numbers": lambda one: {"content": [1.0]},
}
ANSWERS = {  # what stands in an answer
    "no-output": lambda told: {"outputs": []},
    "extra-output": lambda told: {"outputs": told["outputs"] * 2},
    "structure": lambda told: {"structure": [{"kind": "sequence", "items": []}]},
    "deep-structure": lambda told: {"structure": [deep(50)]},
    "id": lambda told: {"id": told["id"] + 1},
    "other-answer": lambda told: {"answer": "prepared" if "outputs" in told else "outputs"},
    "unknown-key": lambda told: {"ouputs": []},
    "claims": lambda told: {"operators": {"onnx/Abs": {"types": ["float32", "float33"]}}},
    "claims-standard": lambda told: {"operators": {"Abs": {}}},
    "claims-name": lambda told: {"operators": {"onnx/Ab": {}}},
    "claims-version": lambda told: {"operators": {"onnx/Abs": {"versions": [13, 14]}}},
    "protocol": lambda told: {"protocol": 2},
    "no-standard": lambda told: {"standards": []},
}
FILES = {  # what is done to the file before an answer, and where the answer says that its content is
    "file-right": lambda path, size: (put(path, size), 0, size)[1:],
    "file-empty": lambda path, size: (0, size),
    "file-cut": lambda path, size: (put(path, size - 1), 0, size)[1:],
    "file-beyond": lambda path, size: (put(path, size), 1, size)[1:],
    "file-short": lambda path, size: (put(path, size), 0, size - 4)[1:],
    "file-negative": lambda path, size: (put(path, size), -1, size)[1:],
    "file-twice": lambda path, size: (put(path, size), 0, size)[1:],
    "file-unsaid": lambda path, size: (0, size),
    "file-huge": lambda path, size: (os.truncate(path, 1 << 40), 0, size)[1:],
}
LINES = {  # what is written in place of an answer
    "no-id": lambda told: json.dumps({key: told[key] for key in told if key != "id"}) + "\n",
    "twice": lambda told: 2 * (json.dumps(told) + "\n"),
    "chatter": lambda told: "loading weights\n" + json.dumps(told) + "\n",
    "no-json": lambda told: "\x00\x01 what?\n",
    "nan": lambda told: json.dumps({**told, "outputs": [float("nan")]}) + "\n",
    "deep": lambda told: '{"id":0,"answer":"outputs","structure":' + "[" * 10**6 + "\n",
    "error": lambda told: json.dumps({**refusal(told), "answer": "error", "reason": "memory"}) + "\n",
    "rejected": lambda told: json.dumps({**refusal(told), "answer": "rejected"}) + "\n",
    "unsupported": lambda told: json.dumps({**refusal(told), "answer": "unsupported", "reason": "shape"}) + "\n",
}
ACTS = {  # what is done in place of an answer
    "before-reading": lambda told: write(f"{json.dumps(told)}\n{json.dumps({**told, 'id': told['id'] + 1})}\n"),
    "no-utf8": lambda told: os.write(1, b'{"id": 1, "answer": "\xff"}\n'),
    "gigabyte": lambda told: [write("a" * (1 << 20)) for _ in range(1024)],
    "silent": lambda told: time.sleep(3600),
    "half": lambda told: sequence(lambda: write(json.dumps(told)[:20]), lambda: time.sleep(3600)),
    "late": lambda told: sequence(
        lambda: write(json.dumps(told) + "\n"), lambda: time.sleep(0.02), lambda: write("done\n")
    ),
    "segv": lambda told: sequence(
        lambda: print("about to fall", file=sys.stderr, flush=True), lambda: os.kill(os.getpid(), signal.SIGSEGV)
    ),
    "exit": lambda told: sys.exit(3),
    "half-exit": lambda told: sequence(lambda: write(json.dumps(told)[:20]), lambda: sys.exit(0)),
    "closed": lambda told: sequence(lambda: os.close(1), lambda: time.sleep(3600)),
}


def refusal(told):
    return {"id": told["id"], "words": "out of order"}


def put(path, size):
    with Path(path).open("r+b") as file:
        file.write(held_last[:size])


def give(told, wrong):
    """Write an answer, or what is there in its place."""
    if wrong and fault in ACTS:
        ACTS[fault](told)
        return
    if wrong and fault in TENSORS:
        told["outputs"][0].update(TENSORS[fault](told["outputs"][0]))
    if wrong and fault in FILES:
        one = told["outputs"][0]
        held_last[:] = base64.b64decode(one["content"])
        offset, length = FILES[fault](question.get("files", {}).get("write"), len(held_last))
        one["content"] = {"offset": offset, "length": length}
        told["outputs"] *= 2 if fault == "file-twice" else 1
    if wrong and fault in ANSWERS:
        told.update(ANSWERS[fault](told))
    write(LINES[fault](told) if wrong and fault in LINES else json.dumps(told) + "\n")


def contents(question, told):
    if isinstance(told, str):
        return base64.b64decode(told)
    with Path(question["files"]["read"]).open("rb") as file:
        file.seek(told["offset"])
        return file.read(told["length"])


def answered(question):
    match question["ask"]:
        case "hello":
            told = {"answer": "hello", "protocol": 1, "name": "lying", "version": "1", "standards": ["onnx"]}
            return {**told, "files": True} if fault in FILES and fault != "file-unsaid" else told
        case "prepare":
            program = question["program"]
            if fault != "takes-all" and program["name"] != "Abs":
                told = "error" if fault == "no-unsupported" else "unsupported"
                return {"answer": told, "words": f"no {program['name']}"}
            if fault != "takes-all" and (len(program["inputs"]) != 1 or program["attributes"]):
                return {"answer": "rejected", "words": "Abs takes one input"}
            if program["inputs"] and program["inputs"][0]["type"] != "float32" and fault != "float32-always":
                told = {"types-fail": "error", "rejects-types": "rejected"}.get(fault, "unsupported")
                return {"answer": told, "words": "float32 alone"}
            return {"answer": "prepared"}
    (x,) = question["inputs"] or [{"shape": [0], "content": ""}]
    held = contents(question, x["content"])
    if x.get("type") == "float64":
        held = struct.pack(f"<{len(held) // 8}f", *struct.unpack(f"<{len(held) // 8}d", held))
    order = ">" if fault == "big-endian" else "<"
    numbers = [abs(one) for one in struct.unpack(f"<{len(held) // 4}f", held)]
    content = base64.b64encode(struct.pack(f"{order}{len(numbers)}f", *numbers)).decode()
    return {"answer": "outputs", "outputs": [{"type": "float32", "shape": x["shape"], "content": content}]}


for line in sys.stdin:
    question = json.loads(line)
    told = {"id": question["id"], **answered(question)}
    meant = where == question["ask"] or (where == "every-run" and question["ask"] == "run")
    if where == "run" and meant:
        meant = [64] in [one["shape"] for one in question["inputs"]]
    if meant and once:
        meant = not Path(once[0]).exists()
        Path(once[0]).touch()
    give(told, meant)
if fault == "stays":
    time.sleep(3600)

"""A program over the process protocol that returns its first input: `python echo_program.py [files]`."""

import base64
import json
import sys
from pathlib import Path

FILES = sys.argv[1:] == ["files"]


def answer(question):
    """Return the answer to a question; contents are decoded and encoded, as in a program that computes."""
    if question["ask"] == "hello":
        return {"answer": "hello", "protocol": 1, "name": "echo", "version": "1", "standards": ["onnx"], "files": FILES}
    if question["ask"] == "prepare":
        return {"answer": "prepared"}
    tensor = question["inputs"][0]
    if isinstance(tensor["content"], str):
        content = base64.b64encode(base64.b64decode(tensor["content"])).decode()
        return {"answer": "outputs", "outputs": [{**tensor, "content": content}]}
    with Path(question["files"]["write"]).open("r+b") as write:
        write.write(Path(question["files"]["read"]).read_bytes())
    return {"answer": "outputs", "outputs": [tensor]}


for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps({"id": question["id"], **answer(question)}), flush=True)

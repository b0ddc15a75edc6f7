"""onnxruntime as somebody runs it who has just read docs/writing-a-runner.md: no words, no types, no options."""

import onnxruntime

from opconform.cases.onnx_model import feeds, onnx_bytes


class Plain:
    """A session a program."""

    name, standards = "plain", ("onnx",)

    def version(self):
        """Return onnxruntime's version."""
        return onnxruntime.__version__

    def prepare(self, program):
        """Make a session."""
        return Session(program)


class Session:
    """A program and its session."""

    def __init__(self, program):
        self._program = program
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(onnx_bytes(program), options)

    def run(self, inputs):
        """Return the outputs."""
        return self._session.run(None, feeds(self._program, inputs))

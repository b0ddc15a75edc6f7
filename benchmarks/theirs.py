"""The cost per case of other ways to test: a bare loop with a session per case, and ONNX's own tests under pytest."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

from opconform.cases.batch import Batch, cases_of
from opconform.cases.onnx_model import onnx_bytes
from opconform.generators.source import GeneratedCases
from opconform.runners.judging.answers import Answers
from opconform.runners.judging.judge import judge

_OWN_TESTS = """
import onnx.backend.test
import onnxruntime.backend
tests = onnx.backend.test.BackendTest(onnxruntime.backend, __name__)
tests.include("test_reduce_mean_.*_cpu")
tests.include("test_mean_.*_cpu")
globals().update(tests.test_cases)
"""


def bare_loop(source: GeneratedCases, ids: list[str], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of session, run and compare for all cases; the cases are made outside the clock."""
    made = [(case, onnx_bytes(case.program)) for case in cases_of(source, ids)]
    started = clock()
    for case, model in made:
        _bare(case, model)
    return clock() - started


def _bare(case: Batch, model: bytes) -> None:
    import onnxruntime as ort  # noqa: PLC0415 - only this part needs it

    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        feeds = dict(zip([i.name for i in case.program.feeds], case.tensors(), strict=True))
        outputs = session.run(None, feeds)
    except Exception:  # a refusal is an answer too
        return
    judge(case, Answers.of_case(*outputs))


def own_tests() -> tuple[int, float]:
    """Run ONNX's node tests of means on onnxruntime; return their number, and the seconds of each according to pytest.

    This excludes starting Python, importing and collecting. Raises RuntimeError if none ran.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_own.py").write_text(_OWN_TESTS)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=own.xml", "test_own.py"]
        told = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
        file = Path(folder) / "own.xml"
        cases = list(ET.parse(file).iter("testcase")) if file.exists() else []
    seconds = [float(case.get("time", 0)) for case in cases if case.find("skipped") is None]
    if not seconds:
        raise RuntimeError(f"none of ONNX's own tests ran: {told.stdout[-500:]}")
    return len(seconds), sum(seconds) / len(seconds)

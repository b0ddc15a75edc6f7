"""Wheels of a package called onnxruntime that is none, for pip without an index: it knows Abs alone."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

LIBRARY = """
import numpy as np
from .capi import onnxruntime_pybind11_state
__version__ = "{version}"
{more}
class SessionOptions:
    def add_session_config_entry(self, name, value): pass
class RunOptions: pass
class OrtValue: pass
class GraphOptimizationLevel:
    ORT_ENABLE_ALL = 99
def set_default_logger_severity(level): print("nobody's answer")
class InferenceSession:
    def __init__(self, model, options, providers, enable_fallback):
        if b"Abs" not in model:
            raise RuntimeError("Unsupported model IR version: 99, max supported IR version: 9")
    def run(self, names, feeds, options):
        (x,) = feeds.values()
        return [{formula}]
"""
STATE = "class NotImplemented(Exception): pass\n"


def wheel(folder: Path, version: str, *, formula: str = "np.abs(x)", more: str = "") -> Path:
    """Write a release; it finds NumPy where the running interpreter has it."""
    info = f"onnxruntime-{version}.dist-info"
    files = {
        "onnxruntime/__init__.py": LIBRARY.format(version=version, formula=formula, more=more),
        "onnxruntime/capi/__init__.py": "",
        "onnxruntime/capi/onnxruntime_pybind11_state.py": STATE,
        "numpy_of_the_tests.pth": str(Path(np.__file__).parents[1]),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    path = folder / f"onnxruntime-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path

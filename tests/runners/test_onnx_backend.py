"""Modules and classes with ONNX's backend interface as backends."""

from __future__ import annotations

import itertools
import sys
import textwrap

import numpy as np
import pytest
from fakes.programs import mean, reduce_mean

from opconform.cases.elements import element_type
from opconform.cases.errors import OpconformError
from opconform.cases.runner import Unsupported
from opconform.runners.backends.onnx_backend import OnnxBackend

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
_numbers = itertools.count()

REP = """
import numpy as np

class Rep:
    def __init__(self, model):
        self.operator = model.graph.node[0].op_type

    def run(self, inputs, **kwargs):
        assert isinstance(inputs, list)
        return (np.full((1, 1), len(inputs), inputs[0].dtype),)
"""


@pytest.fixture
def backend(tmp_path, monkeypatch):
    """Return a function that makes the runner of a module written for the test."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(source: str, attribute: str = "") -> OnnxBackend:
        name = f"fake_onnx_backend_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(REP + textwrap.dedent(source), encoding="utf-8")
        return OnnxBackend(f"onnx-backend:{name}{attribute}", f"{name}{attribute}")

    return make


def answer(runner: OnnxBackend) -> list[np.ndarray]:
    return list(runner.prepare(reduce_mean(13, (3, 2))).run([X]))


@pytest.mark.parametrize(
    ("source", "attribute"),
    [
        ("def prepare(model, device='CPU', **kwargs): return Rep(model)", ""),
        ("""
         class Backend:
             @classmethod
             def prepare(cls, model, device="CPU", **kwargs): return Rep(model)
         """, ":Backend"),
        ("""
         class Backend:
             def prepare(self, model, device="CPU", **kwargs): return Rep(model)
         """, ":Backend"),
        ("""
         class Backend:
             def prepare(self, model, device="CPU", **kwargs): return Rep(model)
         backend = Backend()
         """, ":backend"),
        ("def run_model(model, inputs, device='CPU'): return Rep(model).run(inputs)", ""),
        ("""
         from onnx.backend.base import Backend as Base
         class Backend(Base):
             @classmethod
             def run_model(cls, model, inputs, device="CPU", **kwargs): return Rep(model).run(inputs)
         """, ":Backend"),
    ],
    ids=["module", "class", "class-of-instances", "instance", "run_model-only", "prepare-gives-nothing"],
)  # fmt: skip
def test_every_form_of_the_interface_runs(backend, source: str, attribute: str) -> None:
    (y,) = answer(backend(source, attribute))
    assert (y.dtype, y.tolist()) == (np.float32, [[1.0]])


@pytest.mark.parametrize(
    ("returned", "types"),
    [
        ("np.float16(1)", ["float16"]),
        ("{'y': np.int32([1]), 'other': 2}", ["int32"]),
        ("[np.float32(1)]", ["float32"]),
        ("collections.namedtuple('Outputs', 'y')(2.5)", ["float64"]),
    ],
)
def test_outputs_come_as_they_are_in_whatever_container(backend, returned: str, types: list[str]) -> None:
    runner = backend(f"""
        import collections
        def run_model(model, inputs, device): return {returned}
    """)
    assert [y.dtype.name for y in answer(runner)] == types


REFUSALS = [
    ("from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt as E", "E('no such operator')"),
    ("E = type('BackendIsNotSupposedToImplementIt', (Exception,), {})", "E('no such operator')"),
    ("from unittest import SkipTest", "SkipTest('no such operator')"),
    ("", "NotImplementedError('no such operator')"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "error"), REFUSALS)
def test_a_backend_that_is_not_supposed_to_implement_it_is_unsupported(backend, first: str, error: str) -> None:
    for place in ("prepare", "run"):
        runner = backend(f"""
            {first}
            def refuse(*args): raise {error}
            class Refusing:
                run = refuse
            def prepare(model, device):
                return refuse() if {place == "prepare"} else Refusing()
        """)
        with pytest.raises(Unsupported, match="no such operator"):
            answer(runner)


def test_an_incompatible_model_is_unsupported(backend) -> None:
    runner = backend("""
        def is_compatible(model, device): return model.graph.node[0].op_type != "ReduceMean"
        def prepare(model, device): return Rep(model)
    """)
    with pytest.raises(Unsupported, match="is_compatible"):
        answer(runner)
    (y,) = runner.prepare(mean(13, (3, 2))).run([X])
    assert y.tolist() == [[1.0]]


def test_any_other_error_of_the_backend_passes_through(backend) -> None:
    with pytest.raises(ZeroDivisionError):
        answer(backend("def prepare(model, device): 1 / 0"))


def test_a_backend_without_a_cpu_is_refused_when_it_is_opened(backend) -> None:
    with pytest.raises(OpconformError, match=r"does not support 'CPU'"):
        backend("""
            def supports_device(device): return device == "CUDA"
            def prepare(model, device): return Rep(model)
        """)


def test_a_module_without_the_interface_is_refused_when_it_is_opened(backend) -> None:
    with pytest.raises(OpconformError, match=r"has neither 'prepare' nor 'run_model'"):
        backend("def Prepare(model, device): return Rep(model)")


def test_the_version_is_that_of_the_module_or_unknown(backend) -> None:
    door = "def prepare(model, device): return Rep(model)\n"
    assert backend(f"__version__ = '1.2.3'\n{door}").version() == "1.2.3"
    assert backend(door).version() == "unknown"


def test_the_version_is_that_of_the_installed_package_if_the_module_has_none(monkeypatch) -> None:
    monkeypatch.setattr(sys.modules["pytest"], "prepare", lambda model, device: None, raising=False)
    monkeypatch.delattr(sys.modules["pytest"], "__version__")
    assert OnnxBackend("onnx-backend:pytest", "pytest").version()[0].isdigit()


def test_bfloat16_reaches_the_backend_with_the_type_of_ml_dtypes(backend) -> None:
    bfloat16 = element_type("bfloat16").dtype
    executable = backend("def prepare(model, device): return Rep(model)").prepare(mean(13, (1, 1), type_="bfloat16"))
    (y,) = executable.run([np.ones((1, 1), bfloat16)])
    assert y.dtype == bfloat16


def test_the_backend_module_of_onnxruntime_plugs_in_with_no_code() -> None:
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxruntime.backend")
    runner = OnnxBackend("onnx-backend:onnxruntime.backend", "onnxruntime.backend")
    (y,) = answer(runner)
    assert (runner.name, runner.version(), y.tolist()) == (
        "onnx-backend:onnxruntime.backend",
        ort.__version__,
        [[3.5]],
    )
    with pytest.raises(Unsupported, match="Could not find an implementation"):
        runner.prepare(reduce_mean(13, (3, 2), type_="uint32"))

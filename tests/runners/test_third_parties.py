"""Libraries by their own functions, from examples: adapters that hide nothing, and agree with what is expected."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fakes.judging import judge_answer
from fakes.programs import constant, mean, onnx_program, reduce_mean

from opconform.cases.program import Input
from opconform.cases.results import Outcome
from opconform.cases.runner import NotInstalled, Unsupported
from opconform.generators.source import GeneratedCases
from opconform.runners.backends.cuda import CudaDevice, first_device

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = GeneratedCases()
LIBRARIES = ("Numpy", "Torch", "Jax", "TensorFlow")
CASES = (
    "onnx/ReduceMean-1/float32/2x3/axes=1/ramp",
    "onnx/ReduceMean-13/float64/2x3/axes=0,1;keepdims=0/uniform",
    "onnx/ReduceMean-18/float32/2x3/axes=-1;axes-from=graph-input/uniform",
    "onnx/ReduceMean-18/float32/3x2x2/noop_with_empty_axes=1/negative-zero/noop-zeros",
    "onnx/ReduceMean-13/float32/scalar/-/negative-zero/negative-zero-alone",
    "onnx/Mean-13/float32/4*4/-/lattice",
    "onnx/Add-7/float32/3x2,2/-/uniform",
    "onnx/Add-14/float32/2*2x1x3x1x2x2/B-from=A/uniform",
    "onnx/Max-8/float32/3*4/-/uniform",
    "onnx/Clip-6/float32/7/max=3;min=-2/ramp",
    "onnx/Clip-13/float32/7/max=3;min=-2/ramp",
    "onnx/Gather-13/float32,int64/4x5,3/axis=-1/ramp",
    "onnx/Cast-13/float32,int32/17/-/fits:T2",
    "onnx/Equal-13/int32,bool/3x2,2/-/few",
    "onnx/Exp-13/float32/7/-/uniform",
    "onnx/ReduceSum-13/float32/2x3/axes=1/uniform",
)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    import third_parties  # type: ignore[import-not-found]

    return third_parties  # type: ignore[no-any-return]


def made(module: ModuleType, name: str) -> Any:
    try:
        return getattr(module, name)()
    except NotInstalled as absent:
        pytest.skip(str(absent))


@pytest.mark.parametrize("name", LIBRARIES)
def test_what_a_library_answers_is_what_is_expected(module: ModuleType, name: str) -> None:
    library, found = made(module, name), {}
    for case in SOURCE.cases(CASES):
        answer = library.prepare(case.program).run([array[0, ...] for array in case.inputs])
        found[case.id] = judge_answer(case.expectation, answer).outcome
    assert {one: outcome for one, outcome in found.items() if outcome is not Outcome.PASS} == {}


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_name_in_the_table_is_a_function(module: ModuleType, name: str) -> None:
    library = made(module, name)
    names = [row[1:][library.column] for row in module.ROWS.values()]
    assert all(callable(library.function(one)) for one in names if one != "-")
    assert {row[0] for row in module.ROWS.values()} == module.FORMS.keys()


def test_a_wrong_function_is_found_out(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.ROWS, "Add", ["elementwise", "subtract", "-", "-", "-"])
    case = SOURCE.case("onnx/Add-7/float32/3x2,2/-/uniform")
    answer = module.Numpy().prepare(case.program).run([array[0, ...] for array in case.inputs])
    assert judge_answer(case.expectation, answer).outcome is Outcome.WRONG_VALUE


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (onnx_program("LSTM", 14, []), "operator-version"),
        (onnx_program("Erf", 13, []), "operator-version"),
        (onnx_program("Identity", 16, [constant("x", np.array(["a"], object))], type_="string"), "type"),
    ],
)
def test_what_a_library_has_not_is_unsupported(module: ModuleType, program: Any, reason: str) -> None:
    with pytest.raises(Unsupported) as refusal:
        module.Numpy().prepare(program)
    assert refusal.value.reason == reason


def test_a_mean_of_whole_numbers_that_is_a_float_is_another_operator(module: ModuleType) -> None:
    with pytest.raises(Unsupported, match="gives float64 for int32"):
        module.Numpy().prepare(reduce_mean(13, (2,), type_="int32")).run([np.int32([1, 2])])


@pytest.mark.parametrize(
    ("program", "inputs", "error"),
    [
        (reduce_mean(18, (3, 2), axes=(1,)), [np.zeros((3, 2), np.float32)], ValueError),
        (reduce_mean(13, (3, 2), axes=(2,)), [np.zeros((3, 2), np.float32)], ValueError),
        (reduce_mean(13, (2,), type_="bool"), [np.zeros(2, bool)], TypeError),
        (mean(6, (2,), (1,)), [np.zeros(2, np.float32), np.zeros(1, np.float32)], ValueError),
        (mean(8, (2,), type_="bfloat16"), [np.zeros(2, np.float32)], TypeError),
        (mean(13), [], ValueError),
    ],
)
def test_what_a_schema_excludes_is_refused(module: ModuleType, program: Any, inputs: Any, error: Any) -> None:
    with pytest.raises(error):
        module.Numpy().prepare(program).run(inputs)


class FakeTensor:
    """A tensor on a device of PyTorch's."""

    def __init__(self, array: Any, device: str = "cpu") -> None:
        self.array, self.device, self.dtype = array, device, array.dtype

    def to(self, device: str) -> FakeTensor:
        return FakeTensor(self.array, device)

    def cpu(self) -> FakeTensor:
        return self.to("cpu")

    def resolve_conj(self) -> FakeTensor:
        return self

    resolve_neg = resolve_conj

    def numpy(self) -> Any:
        assert self.device == "cpu"
        return self.array


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A PyTorch with `abs` on a CUDA device alone."""

    def absolute(x: FakeTensor) -> FakeTensor:
        assert x.device == "cuda"
        return FakeTensor(np.abs(x.array), x.device)

    fake: Any = ModuleType("torch")
    fake.__version__, fake.bfloat16, fake.abs, fake.from_numpy = "2.0", "bfloat16", absolute, FakeTensor
    fake.nn = SimpleNamespace(functional=ModuleType("functional"))
    fake.version, fake.cuda = SimpleNamespace(cuda="12.6"), SimpleNamespace(is_available=lambda: True)
    fake.set_num_threads = lambda _: None
    fake.set_float32_matmul_precision = lambda one: setattr(fake, "precision", one)
    fake.backends = SimpleNamespace(cudnn=SimpleNamespace(allow_tf32=None))
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


@pytest.mark.parametrize("tf32", [False, True])
def test_torch_on_a_device_computes_there_and_says_in_what_precision(module, torch, tf32: bool, monkeypatch) -> None:
    monkeypatch.setattr(module, "first_device", lambda: CudaDevice("NVIDIA X1", "12.4"))
    library = module.TorchCudaTf32() if tf32 else module.TorchCuda()
    assert (torch.precision, torch.backends.cudnn.allow_tf32) == ("high" if tf32 else "highest", tf32)
    told = {"device": "NVIDIA X1", "driver": "12.4", "precision": "tf32" if tf32 else "float32", "cuda": "12.6"}
    assert library.describe() == told
    program = onnx_program("Abs", 13, [Input("x", "float32", (2,))], rank=1)
    (y,) = library.prepare(program).run([np.float32([-1, 2])])
    assert (y.tolist(), y.dtype) == ([1, 2], np.float32)


def test_torch_without_a_device_is_unsupported_at_once_with_the_reason(module, torch, monkeypatch) -> None:
    monkeypatch.setattr(module, "first_device", lambda: first_device("libcuda-that-nobody-has.so"))
    library = module.TorchCuda()
    with pytest.raises(Unsupported, match="no NVIDIA driver: libcuda-that-nobody-has"):
        library.prepare(mean(13, (2,)))
    assert library.describe()["device"].startswith("none: no NVIDIA driver")
    monkeypatch.setattr(module, "first_device", lambda: CudaDevice("NVIDIA X1", "12.4"))
    torch.cuda.is_available = lambda: False
    with pytest.raises(Unsupported, match=r"PyTorch 2\.0 can't use the device"):
        module.TorchCuda().prepare(mean(13, (2,)))

"""onnxruntime's CUDA provider, as far as a machine without a device shows it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from fakes.programs import mean

from opconform.cases.runner import Unsupported
from opconform.cli import main
from opconform.reports.runs import read_results, read_run
from opconform.runners.backends import cuda
from opconform.runners.backends.cuda import CudaDevice, NoDevice, OnnxRuntimeCuda, OnnxRuntimeCudaTf32, first_device
from opconform.runners.judging.terms import load_declaration

pytest.importorskip("onnxruntime")
DOCS = Path(__file__).parents[2] / "docs"
A_DEVICE = CudaDevice("NVIDIA X1", "12.4")


def no_device(driver: str = "") -> CudaDevice:
    raise NoDevice("no NVIDIA driver: libcuda.so.1: cannot open shared object file")


@pytest.mark.parametrize("made", [OnnxRuntimeCuda, OnnxRuntimeCudaTf32])
def test_without_a_device_every_program_is_unsupported_at_once_with_the_reason(made, monkeypatch) -> None:
    monkeypatch.setattr(cuda, "first_device", no_device)
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CUDAExecutionProvider"])
    runner = made()
    monkeypatch.setattr(runner.library, "InferenceSession", None)  # none is made
    with pytest.raises(Unsupported, match="no NVIDIA driver"):
        runner.prepare(mean(13, (2,)))
    assert runner.describe()["device"].startswith("none: no NVIDIA driver")
    assert runner.describe()["precision"] == ("tf32" if made.tf32 else "float32")


def test_an_onnxruntime_for_the_cpu_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(Unsupported, match=re.escape("no CUDAExecutionProvider: pip install onnxruntime-gpu")):
        OnnxRuntimeCuda().prepare(mean(13, (2,)))


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_does_not_load_is_not_replaced_by_the_cpu(monkeypatch) -> None:
    monkeypatch.setattr(cuda, "first_device", lambda: A_DEVICE)
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CUDAExecutionProvider"])

    class OfTheCpu:
        def __init__(self, *_: object, **__: object) -> None: ...

        def get_providers(self) -> list[str]:
            return ["CPUExecutionProvider"]

    monkeypatch.setattr("onnxruntime.InferenceSession", OfTheCpu)
    with pytest.raises(Unsupported, match="does not load: it needs the CUDA"):
        OnnxRuntimeCuda().prepare(mean(13, (2,)))


def test_sessions_are_of_the_device_alone_and_say_their_precision(monkeypatch) -> None:
    made: list[tuple[object, ...]] = []

    class OfTheDevice:
        def __init__(self, _model: bytes, options: object = None, *, providers: object, **_: object) -> None:
            made.append((options, providers))

        def get_providers(self) -> list[str]:
            return ["CUDAExecutionProvider", "CPUExecutionProvider"]

    monkeypatch.setattr(cuda, "first_device", lambda: A_DEVICE)
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr("onnxruntime.InferenceSession", OfTheDevice)
    for runner, tf32 in ((OnnxRuntimeCuda(), "0"), (OnnxRuntimeCudaTf32(), "1")):
        runner.prepare(mean(13, (2,)))
        options, providers = made[-1]
        assert providers == [("CUDAExecutionProvider", {"use_tf32": tf32})]
        assert options.get_session_config_entry("session.disable_cpu_ep_fallback") == "1"  # type: ignore[attr-defined]
        told = runner.describe()
        assert (told["device"], told["driver"]) == ("NVIDIA X1", "12.4")


@pytest.mark.slow
def test_a_run_without_a_device_says_so_in_its_results_and_exits_2(tmp_path: Path) -> None:
    words = ["run", "onnxruntime-cuda", "--select", "onnx/Abs-13/float32/scalar/-/ramp", "--quiet", "--jobs", "1"]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "out")])
    facts = read_run(tmp_path / "out")["backends"]["onnxruntime-cuda"]["facts"]
    if not facts["device"].startswith("none: "):
        pytest.skip("there is a CUDA device")
    assert done.exit_code == 2
    (result,) = read_results(tmp_path / "out")
    assert str(result.outcome) == "unsupported"
    assert (result.detail or "") == facts["device"].removeprefix("none: ")


DRIVER = """
#include <string.h>
int cuInit(unsigned flags) { return INIT; }
int cuDeviceGetCount(int *count) { *count = COUNT; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char *name, int length, int device) { strncpy(name, "NVIDIA X1", length); return 0; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("init", "count", "found"),
    [(0, 2, A_DEVICE), (0, 0, "the driver has none"), (100, 1, "cuInit gives 100")],
)
def test_the_driver_is_asked_for_its_first_device(init: int, count: int, found: object, tmp_path: Path) -> None:
    (tmp_path / "cuda.c").write_text(DRIVER)
    words = ["gcc", "-shared", "-fPIC", f"-DINIT={init}", f"-DCOUNT={count}", "-o", "libcuda.so", "cuda.c"]
    subprocess.run(words, cwd=tmp_path, check=True)
    if isinstance(found, CudaDevice):
        assert first_device(str(tmp_path / "libcuda.so")) == found
    else:
        with pytest.raises(NoDevice, match=str(found)):
            first_device(str(tmp_path / "libcuda.so"))


def test_a_machine_without_a_driver_has_no_device() -> None:
    with pytest.raises(NoDevice, match="no NVIDIA driver"):
        first_device("libcuda-that-is-not-there.so")


def test_the_arithmetic_that_the_page_declares_for_tf32_is_read(tmp_path: Path) -> None:
    page = (DOCS / "cuda.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "tf32.yaml").write_text(text)
    declared = load_declaration(tmp_path / "tf32.yaml")
    assert declared.types["float32"].compute == "tf32"

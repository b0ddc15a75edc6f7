"""ONNX programs on onnxruntime's CUDA provider, in full float32 and in TF32; without a device all is unsupported."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from ...cases.onnx_model import onnx_bytes
from ...cases.program import Input, OperatorVersion, Output, Program
from ...cases.runner import Executable, Unsupported
from .onnxruntime import OnnxRuntime

_DRIVER = "libcuda.so.1"
_NAME_LENGTH = 256
_IDENTITY = Program(
    OperatorVersion("onnx", "Identity", 13), (), (Input("x", "float32", (1,)),), (Output("y", "float32", 1),), 13
)


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """The first CUDA device, and the newest CUDA version that its driver knows."""

    name: str
    cuda: str


class NoDevice(Exception):  # noqa: N818 - a state of the machine
    """There is no CUDA device; the text says why."""


def first_device(driver: str = _DRIVER) -> CudaDevice:
    """Return the first CUDA device, as the driver's library reports it. Raises NoDevice.

    Source: the CUDA Driver API, cuInit, cuDeviceGetCount, cuDeviceGet, cuDeviceGetName, cuDriverGetVersion.
    """
    try:
        library = ctypes.CDLL(driver)
    except OSError as error:
        raise NoDevice(f"no NVIDIA driver: {error}") from None
    count, device, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(_NAME_LENGTH)
    for function, arguments in (
        ("cuInit", (0,)),
        ("cuDeviceGetCount", (ctypes.byref(count),)),
        ("cuDeviceGet", (ctypes.byref(device), 0)),
        ("cuDeviceGetName", (name, _NAME_LENGTH, device)),
        ("cuDriverGetVersion", (ctypes.byref(version),)),
    ):
        if code := getattr(library, function)(*arguments):
            raise NoDevice(f"no CUDA device: {function} gives {code}")
        if function == "cuDeviceGetCount" and not count.value:
            raise NoDevice("no CUDA device: the driver has none")
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    return CudaDevice(name.value.decode(errors="replace"), cuda)


def device_facts(device: CudaDevice | NoDevice, tf32: bool) -> dict[str, str]:
    """Return what results record of a device: its name, the newest CUDA of its driver, the precision of float32."""
    precision = {"precision": "tf32" if tf32 else "float32"}
    if isinstance(device, NoDevice):
        return {"device": f"none: {device}", **precision}
    return {"device": device.name, "driver": device.cuda, **precision}


class OnnxRuntimeCuda(OnnxRuntime):
    """onnxruntime's CUDA provider, which computes float32 in float32.

    Operators without a CUDA kernel don't run on the CPU.
    """

    name = "onnxruntime-cuda"
    provider = "CUDAExecutionProvider"
    tf32 = False

    def __init__(self) -> None:
        """Look for a device; without one everything is unsupported, with the reason."""
        super().__init__()
        self.provider_options = {"use_tf32": str(int(self.tf32))}
        self.options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        try:
            self._device: CudaDevice | NoDevice = self._usable_device()
        except NoDevice as error:
            self._device = error

    def describe(self) -> dict[str, str]:
        """Return what the CPU runner describes, with device, driver and precision."""
        return {**super().describe(), **device_facts(self._device, self.tf32)}

    def prepare(self, program: Program, /) -> Executable:
        """Make a session for `program`. Raises Unsupported (always without a device), or onnxruntime's error."""
        if isinstance(self._device, NoDevice):
            raise Unsupported(str(self._device))
        return super().prepare(program)

    def _usable_device(self) -> CudaDevice:
        """Return the device. Raises NoDevice, also if the library skips a provider that does not load."""
        if self.provider not in self.library.get_available_providers():
            raise NoDevice(f"this onnxruntime has no {self.provider}: pip install onnxruntime-gpu")
        device = first_device()
        session = self.library.InferenceSession(onnx_bytes(_IDENTITY), providers=[self.provider])
        if self.provider not in session.get_providers():
            raise NoDevice(f"{self.provider} does not load: it needs the CUDA and cuDNN that it was built for")
        return device


class OnnxRuntimeCudaTf32(OnnxRuntimeCuda):
    """onnxruntime's CUDA provider, which multiplies float32 in TF32, onnxruntime's default."""

    name = "onnxruntime-cuda-tf32"
    tf32 = True

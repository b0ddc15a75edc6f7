"""oneDNN's shared library: finds it, loads it with one thread, and declares its C functions and header's numbers."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...cases.errors import OpconformError
from ...cases.runner import NotInstalled

_NUMBERED = """
Abs AbsBackward Add AvgPool AvgPoolBackward BatchNormTrainingBackward BatchNormForwardTraining BatchNormInference
BiasAdd BiasAddBackward Clamp ClampBackward Concat Convolution ConvolutionBackwardData ConvolutionBackwardWeights
ConvTranspose ConvTransposeBackwardData ConvTransposeBackwardWeights Dequantize Divide DynamicDequantize DynamicQuantize
Elu EluBackward End Exp GELU GELUBackward HardSwish HardSwishBackward Interpolate InterpolateBackward LayerNorm
LayerNormBackward LeakyReLU Log LogSoftmax LogSoftmaxBackward MatMul Maximum MaxPool MaxPoolBackward Minimum Mish
MishBackward Multiply PReLU PReLUBackward Quantize Reciprocal ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin
ReduceProd ReduceSum ReLU ReLUBackward Reorder Round Sigmoid SigmoidBackward SoftMax SoftMaxBackward SoftPlus
SoftPlusBackward Sqrt SqrtBackward Square SquaredDifference StaticReshape StaticTranspose Subtract Tanh TanhBackward
TypeCast Wildcard HardSigmoid HardSigmoidBackward Select Pow GroupNorm GenIndex GreaterEqual RMSNorm Dropout
"""

OPERATIONS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(_NUMBERED.split())}
"""The kinds of operations by the names of their pages; up to Select in oneDNN 3.2, to Pow in 3.3, all in 3.13.

New kinds are always added at the end. A library accepts a number that it does not know.
"""


def _numbered(first: int, names: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


ATTRIBUTES: Final[Mapping[str, int]] = {
    # The library identifies a value's kind by its number: a float, floats, an integer, integers, a bool, a string.
    **_numbered(0x01, "alpha beta epsilon max min momentum"),
    **_numbered(0x20, "scales"),
    **_numbered(0x30, "axis begin_norm_axis groups"),
    **_numbered(
        0x40,
        "axes dilations dst_shape kernel order output_padding pads_begin pads_end shape sizes src_shape strides"
        " weights_shape zps group_shape",
    ),
    **_numbered(
        0x60,
        "exclude_pad keep_dims keep_stats per_channel_broadcast special_zero transpose_a transpose_b use_affine"
        " use_dst",
    ),
    **_numbered(
        0x80,
        "auto_broadcast auto_pad coordinate_transformation_mode data_format mode qtype rounding_type weights_format"
        " accumulation_mode",
    ),
}
"""The attributes of operations."""

SINCE: Final[Mapping[tuple[str, str], tuple[int, int]]] = {
    ("GELU", "mode"): (3, 9),
    ("GELUBackward", "mode"): (3, 9),
    ("MatMul", "accumulation_mode"): (3, 10),
}
"""The first releases in which operations have attributes that were added later."""

TYPES: Final[Mapping[str, tuple[str, int]]] = {
    "float16": ("f16", 1),
    "bfloat16": ("bf16", 2),
    "float32": ("f32", 3),
    "float64": ("f64", 7),
    "int8": ("s8", 5),
    "uint8": ("u8", 6),
    "int16": ("s16", 16),
    "uint16": ("u16", 17),
    "int32": ("s32", 4),
    "int64": ("s64", 16),
    "bool": ("boolean", 8),
    "float8e5m2": ("f8_e5m2", 9),
    "float8e4m3fn": ("f8_e4m3", 10),
    "int4": ("s4", 11),
    "uint4": ("u4", 12),
    "float8e8m0": ("e8m0", 13),
    "float4e2m1": ("f4_e2m1", 14),
}
"""oneDNN's names and numbers of our element types; it has never had uint32 and uint64.

Headers disagree about 16, so a number counts only if the library has that name for it.
"""

VARIABLE: Final = "OPCONFORM_ONEDNN_LIBRARY"
"""The environment variable that names another build of oneDNN."""

INSTALL: Final = "pip install onednn-cpu-gomp"
MOST_DIMENSIONS: Final = 12
"""The maximum number of dimensions of a logical tensor (DNNL_MAX_NDIMS)."""

CPU: Final = 1  # dnnl_engine_kind_t
_PACKAGES = ("onednn-cpu-gomp", "onednn-cpu-iomp", "onednn-cpu-tbb", "onednn-cpu-dpcpp-gpu-dpcpp", "onednn")
_LIBRARY_FILE = re.compile(r"libdnnl\.so[.\d]*")
_ABSENT_DEPENDENCY = re.compile(r"([^\s/]+): cannot open shared object file")
_OPENCL_DEVICE = "libintelocl.so"
_OPENCL_DEVICES = "OCL_ICD_FILENAMES"
_DIMENSIONS = ctypes.c_int64 * MOST_DIMENSIONS
_IN_ORDER = 1  # dnnl_stream_flags_t


class OneDnnError(Exception):
    """A function of oneDNN returned a status other than success."""

    def __init__(self, function: str, status: str) -> None:
        super().__init__(f"{function}: {status}")
        self.function = function
        self.status = status


class LogicalTensor(ctypes.Structure):
    """oneDNN's description of a tensor (dnnl_graph_logical_tensor_t); strides count elements."""

    _fields_ = (
        ("id", ctypes.c_size_t),
        ("ndims", ctypes.c_int),
        ("dims", _DIMENSIONS),
        ("data_type", ctypes.c_int),
        ("property", ctypes.c_int),
        ("layout_type", ctypes.c_int),
        ("strides", _DIMENSIONS),
    )


class _Version(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("patch", ctypes.c_int),
        ("hash", ctypes.c_char_p),
        ("cpu_runtime", ctypes.c_uint),
        ("gpu_runtime", ctypes.c_uint),
    )


_HANDLE = ctypes.c_void_p
_NEW = ctypes.POINTER(_HANDLE)
_TENSOR = ctypes.POINTER(LogicalTensor)
_SIZE = ctypes.c_size_t
_INT = ctypes.c_int
_NUMBERS = ctypes.POINTER(ctypes.c_int64)

# The arguments of each function that returns a status, without the prefix dnnl_.
_FUNCTIONS: Final[Mapping[str, tuple[Any, ...]]] = {
    "engine_create": (_NEW, _INT, _SIZE),
    "engine_destroy": (_HANDLE,),
    "stream_create": (_NEW, _HANDLE, ctypes.c_uint),
    "stream_wait": (_HANDLE,),
    "stream_destroy": (_HANDLE,),
    "graph_logical_tensor_init": (_TENSOR, _SIZE, _INT, ctypes.c_int32, _INT, _INT),
    "graph_logical_tensor_init_with_dims": (_TENSOR, _SIZE, _INT, ctypes.c_int32, _NUMBERS, _INT, _INT),
    "graph_logical_tensor_init_with_strides": (_TENSOR, _SIZE, _INT, ctypes.c_int32, _NUMBERS, _NUMBERS, _INT),
    "graph_logical_tensor_get_mem_size": (_TENSOR, ctypes.POINTER(_SIZE)),
    "graph_op_create": (_NEW, _SIZE, _INT, ctypes.c_char_p),
    "graph_op_add_input": (_HANDLE, _TENSOR),
    "graph_op_add_output": (_HANDLE, _TENSOR),
    "graph_op_set_attr_f32": (_HANDLE, _INT, ctypes.POINTER(ctypes.c_float), _SIZE),
    "graph_op_set_attr_s64": (_HANDLE, _INT, _NUMBERS, _SIZE),
    "graph_op_set_attr_bool": (_HANDLE, _INT, ctypes.POINTER(ctypes.c_uint8), _SIZE),
    "graph_op_set_attr_str": (_HANDLE, _INT, ctypes.c_char_p, _SIZE),
    "graph_op_destroy": (_HANDLE,),
    "graph_graph_create": (_NEW, _INT),
    "graph_add_op": (_HANDLE, _HANDLE),
    "graph_graph_finalize": (_HANDLE,),
    "graph_graph_filter": (_HANDLE, _INT),
    "graph_graph_get_partition_num": (_HANDLE, ctypes.POINTER(_SIZE)),
    "graph_graph_get_partitions": (_HANDLE, _SIZE, _NEW),
    "graph_graph_destroy": (_HANDLE,),
    "graph_partition_is_supported": (_HANDLE, ctypes.POINTER(ctypes.c_uint8)),
    "graph_partition_compile": (
        *(_HANDLE, _HANDLE),
        *(_SIZE, ctypes.POINTER(_TENSOR)),
        *(_SIZE, ctypes.POINTER(_TENSOR)),
        _HANDLE,
    ),
    "graph_partition_destroy": (_HANDLE,),
    "graph_compiled_partition_create": (_NEW, _HANDLE),
    "graph_compiled_partition_query_logical_tensor": (_HANDLE, _SIZE, _TENSOR),
    "graph_compiled_partition_execute": (_HANDLE, _HANDLE, _SIZE, _NEW, _SIZE, _NEW),
    "graph_compiled_partition_destroy": (_HANDLE,),
    "graph_tensor_create": (_NEW, _TENSOR, _HANDLE, ctypes.c_void_p),
    "graph_tensor_set_data_handle": (_HANDLE, ctypes.c_void_p),
    "graph_tensor_destroy": (_HANDLE,),
}


@dataclass(frozen=True, slots=True)
class Location:
    """The path of a library, and the installed package that contains it, if any."""

    path: Path
    package: str | None = None


def find_library() -> Location | None:
    """Return the library to load: the environment variable's, a package's, or one beside this Python's own.

    Raises OpconformError if the environment variable does not name a file.
    """
    if named := os.environ.get(VARIABLE):
        if not Path(named).is_file():
            raise OpconformError(f"{VARIABLE} is {named!r}, which is not a file; set it to a libdnnl.so")
        return Location(Path(named))
    for package in _PACKAGES:
        try:
            distribution = importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        if path := _library_among(Path(str(distribution.locate_file(file))) for file in distribution.files or ()):
            return Location(path, f"{package} {distribution.version}")
    folder = Path(sys.prefix, "lib")
    path = _library_among(folder.glob("libdnnl.so*"))
    return Location(path) if path else None


def is_installed() -> bool:
    """Return whether there is a library to load."""
    return find_library() is not None


class OneDnn:
    """The loaded library, with an engine and a stream on the CPU, computing in one thread."""

    def __init__(self) -> None:
        location = find_library()
        if location is None:
            raise NotInstalled(f"oneDNN is not installed: {INSTALL}")
        self.location = location
        with ExitStack() as handles, _one_thread(), _finding_a_cpu(location.path.parent):
            self._library = _load(location.path)
            if set_threads := getattr(self._library, "omp_set_num_threads", None):  # of the OpenMP that it is linked to
                set_threads(1)  # if OpenMP was loaded before, it may have read the environment already
            self._functions = {name: self._declared(name, *types) for name, types in _FUNCTIONS.items()}
            self._version = self._text("version", ctypes.POINTER(_Version))().contents
            self.engine = self.create(handles, "engine", CPU, 0)
            self.stream = self.create(handles, "stream", self.engine, _IN_ORDER)
            self.close = handles.pop_all().close

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function by its name without `dnnl_`. Raises OneDnnError unless it returns success."""
        self._functions[function](*arguments)

    def create(self, handles: ExitStack, what: str, *arguments: Any) -> ctypes.c_void_p:
        """Return a new `what`, which `handles` destroys. Raises OneDnnError."""
        handle = _HANDLE()
        self.call(f"{what}_create", ctypes.byref(handle), *arguments)
        handles.callback(self.call, f"{what}_destroy", handle)
        return handle

    def type_number(self, element: str) -> int | None:
        """Return the library's number of one of our element types, None if it lacks the type."""
        name, number = TYPES.get(element, ("", 0))
        return number if name and self._name("dt", number) == name else None

    @property
    def release(self) -> tuple[int, int]:
        """The library's release, as (3, 2)."""
        return self._version.major, self._version.minor

    @property
    def version(self) -> str:
        """The library's version, as 3.2.0."""
        return f"{self._version.major}.{self._version.minor}.{self._version.patch}"

    def describe(self) -> dict[str, str]:
        """Return the library's build, and the CPU features that it uses."""
        threads = getattr(self._library, "omp_get_max_threads", None)
        return {
            "package": self.location.package or "none",
            "library": self.location.path.name,
            "hash": (self._version.hash or b"unknown").decode(),
            "cpu_runtime": self._name("runtime", self._version.cpu_runtime),
            "gpu_runtime": self._name("runtime", self._version.gpu_runtime),
            "cpu_isa": self._name("cpu_isa", self._text("get_effective_cpu_isa", ctypes.c_int)()).removeprefix(
                "cpu_isa_"
            ),
            "threads": str(threads() if threads else 1),
        }

    def _name(self, of: str, number: int) -> str:
        """Return the library's own name for a number of an enumeration."""
        text: bytes = self._text(f"{of}2str", ctypes.c_char_p, ctypes.c_uint)(number)
        return text.decode()

    def _text(self, name: str, result: Any, *types: Any) -> Any:
        function = getattr(self._library, f"dnnl_{name}", None)
        if function is None:
            file = self.location.path.name
            raise OpconformError(
                f"{file} has no function dnnl_{name}; oneDNN 3.0 or later with its Graph API is needed"
            )
        function.restype, function.argtypes = result, types
        return function

    def _declared(self, name: str, *types: Any) -> Any:
        function = self._text(name, ctypes.c_int, *types)

        def checked(status: int, _function: Any, _arguments: Any) -> int:
            if status:
                raise OneDnnError(f"dnnl_{name}", self._name("status", status))
            return status

        function.errcheck = checked
        return function


def _library_among(paths: Iterable[Path]) -> Path | None:
    """Return the file whose name has the most detailed version; packages contain the library under several names."""
    libraries = [path for path in paths if _LIBRARY_FILE.fullmatch(path.name) and path.is_file()]
    return max(libraries, key=lambda path: len(path.name), default=None)


def _load(path: Path) -> ctypes.CDLL:
    """Load a library, after the libraries beside it that the loader would not find there."""
    loaded: set[Path] = set()
    while True:
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            absent = _ABSENT_DEPENDENCY.match(str(error))
            dependency = _near(path.parent, absent[1]) if absent else None
            if dependency is None or dependency in loaded:
                raise OpconformError(f"{path.name} cannot be loaded: {error}") from error
            loaded.add(dependency)
            _load(dependency)


def _near(folder: Path, name: str) -> Path | None:
    """Return the file of that name in `folder`, or where packages put libraries."""
    return next((path for path in (folder / name, Path(sys.prefix, "lib", name)) if path.is_file()), None)


@contextmanager
def _finding_a_cpu(folder: Path) -> Iterator[None]:
    """Tell a SYCL build the location of the CPU's OpenCL device, which its package installed beside it."""
    device = None if _OPENCL_DEVICES in os.environ else _near(folder, _OPENCL_DEVICE)
    with _environment({_OPENCL_DEVICES: str(device)} if device else {}):
        yield


@contextmanager
def _one_thread() -> Iterator[None]:
    """Make threading libraries that start in this context use one thread.

    OpenMP reads a variable, TBB counts the processors that this process may use.
    """
    with _environment({"OMP_NUM_THREADS": "1"}):
        if not hasattr(os, "sched_setaffinity"):
            yield
            return
        allowed = os.sched_getaffinity(0)
        processor = sorted(allowed)[os.getpid() % len(allowed)]  # a different one for the next worker
        os.sched_setaffinity(0, {processor})
        try:
            yield
        finally:
            os.sched_setaffinity(0, allowed)


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

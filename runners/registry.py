"""Backends by their command-line names: lists them, loads them, and opens them in a worker."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ..cases.errors import OpconformError, did_you_mean
from ..cases.runner import BackendKind, NotInstalled, Runner, kind_of
from .clients.python_client import LIBRARIES
from .fitting import misfit
from .loading import is_target, load, make
from .programs.environments import checked_interpreter, client_command, environment, kept_environments

STANDARDS = ("onnx", "openvino", "onednn")
_METHODS = ("version", "prepare")

Scheme: TypeAlias = Literal["built-in", "interpreter", "plug-in", "python", "onnx-backend", "cmd"]

ENTRY_POINTS = "opconform.runners"
_OWN_FORMS: Mapping[Scheme, str] = {
    "python": "python:package.module:Class",
    "onnx-backend": "onnx-backend:package.module[:Class]",
    "cmd": "cmd:./program args",
}
OWN: frozenset[Scheme] = frozenset(_OWN_FORMS)
"""The schemes of users' own backends; reports call these by the names that they have given themselves."""


@dataclass(frozen=True, slots=True)
class BackendSpec:
    """A backend by name, in the form that is sent to a worker: picklable, without importing the backend.

    `name` is the name in results. `target` is `module:Class`, or the words of a command; `path` goes before `sys.path`
    in the worker. `standards` is empty if only the opened backend knows them. `argument` is the argument that a plug-in
    is called with, if any; for a built-in runner under another interpreter it is the runner's name. `preload` are
    modules that a process can import before it is forked; missing ones are imported in each worker. `kind` is that of a
    built-in backend; others say it when they are opened.
    """

    name: str
    scheme: Scheme
    target: str
    path: tuple[str, ...] = ()
    standards: tuple[str, ...] = ()
    argument: str | None = None
    preload: tuple[str, ...] = ()
    kind: BackendKind = "run"


@dataclass(frozen=True, slots=True)
class KnownBackend:
    """A line of `opconform list backends`.

    `standards` is empty for plug-ins, which only report them when opened. `install` is the command that installs a
    built-in one's library. `version` is the version of the library's or the plug-in's package, None if it is unknown
    before it is opened. `origin`: how it was found. `lacks` says what else is missing on this machine, None if nothing.
    """

    name: str
    standards: tuple[str, ...]
    summary: str
    installed: bool
    install: str | None = None
    version: str | None = None
    origin: Literal["built-in", "extra", "entry point", "environment"] = "built-in"
    lacks: str | None = None


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in backend: its class, what it is, and the module of its library.

    `fork_safe` are the modules to import before workers are forked, None if the library is not known to bear that.
    """

    target: str
    summary: str
    library: str
    requirement: str | None = None  # the name for pip, if it differs from the library's
    fork_safe: tuple[str, ...] | None = None
    kind: BackendKind = "run"
    standards: tuple[str, ...] = ("onnx",)

    @property
    def preload(self) -> tuple[str, ...]:
        """Return what can be imported before workers are forked, with the runner's own module."""
        own = f"{_BACKENDS}.{self.target.partition(':')[0]}"
        return () if self.fork_safe is None else (own, *self.fork_safe)

    @property
    def package(self) -> str:
        """Return the package that installs the library."""
        return self.requirement or self.library

    @property
    def install(self) -> str:
        """Return the command that installs the library."""
        return f"pip install {self.package}"


_LIBDNNL = "libdnnl"  # not a module: a shared library

_BACKENDS = f"{__package__}.backends"

_OPENVINO = (f"{_BACKENDS}.openvino_package",)

# Modules there that a worker imports when it opens them.
_BUILT_INS: Mapping[str, BuiltIn] = {
    "onnxruntime": BuiltIn(
        "onnxruntime:OnnxRuntime", "onnxruntime on the CPU, one thread", "onnxruntime", fork_safe=("onnxruntime",)
    ),
    "onnxruntime-noopt": BuiltIn(
        "onnxruntime:OnnxRuntimeNoOpt",
        "onnxruntime on the CPU, without graph optimisations",
        "onnxruntime",
        fork_safe=("onnxruntime",),
    ),
    "onnxruntime-cuda": BuiltIn(
        "cuda:OnnxRuntimeCuda", "onnxruntime on a CUDA device, in float32", "onnxruntime", "onnxruntime-gpu"
    ),
    "onnxruntime-cuda-tf32": BuiltIn(
        "cuda:OnnxRuntimeCudaTf32", "onnxruntime on a CUDA device, float32 in TF32", "onnxruntime", "onnxruntime-gpu"
    ),
    "onnx-reference": BuiltIn(
        "onnx_reference:OnnxReference",
        "the reference evaluator of the onnx package",
        "onnx",
        fork_safe=("onnx.reference.ops._op_list",),
    ),
    "onnx-infer": BuiltIn("onnx_tools:OnnxInfer", "the shape inference of the onnx package", "onnx", kind="infer"),
    "onnx-infer-strict": BuiltIn(
        "onnx_tools:OnnxInferStrict",
        "the same with strict_mode and check_type, which refuses what it cannot infer",
        "onnx",
        kind="infer",
    ),
    "onnx-infer-data": BuiltIn("onnx_tools:OnnxInferData", "the same with data propagation", "onnx", kind="infer"),
    "onnx-check": BuiltIn("onnx_tools:OnnxCheck", "the checker of the onnx package", "onnx", kind="check"),
    "onnx-check-full": BuiltIn(
        "onnx_tools:OnnxCheckFull", "the same with full_check, which infers shapes", "onnx", kind="check"
    ),
    "onnx-convert": BuiltIn("onnx_tools:OnnxConvert", "onnx's version converter, to opset 26", "onnx", kind="convert"),
    "onnx-convert-down": BuiltIn(
        "onnx_tools:OnnxConvertDown", "the same, to the opset before the operator's version", "onnx", kind="convert"
    ),
    "onnxscript-convert": BuiltIn(
        "onnx_tools:OnnxScriptConvert", "onnxscript's version converter, to opset 25", "onnxscript", kind="convert"
    ),
    "onnxruntime-infer": BuiltIn(
        "onnx_tools:OnnxRuntimeInfer",
        "the types and shapes that onnxruntime infers when it loads a model",
        "onnxruntime",
        kind="infer",
    ),
    "onednn": BuiltIn(
        "onednn:OneDnnGraph",
        "oneDNN Graph on the CPU, one thread",
        _LIBDNNL,
        "onednn-cpu-gomp",
        fork_safe=(),
        standards=("onednn",),
    ),
    "openvino": BuiltIn(
        "openvino:OpenVino",
        "OpenVINO's CPU plugin in float32",
        "openvino",
        fork_safe=_OPENVINO,
        standards=("openvino",),
    ),
    "openvino-evaluate": BuiltIn(
        "openvino:OpenVinoEvaluate",
        "OpenVINO's own kernels, without a plugin",
        "openvino",
        fork_safe=_OPENVINO,
        standards=("openvino",),
    ),
    "openvino-infer": BuiltIn(
        "openvino_inference:OpenVinoInfer",
        "the types and shapes that OpenVINO's operations infer",
        "openvino",
        kind="infer",
        standards=("openvino",),
    ),
    "openvino-onnx-infer": BuiltIn(
        "openvino_inference:OpenVinoOnnxInfer",
        "the types and shapes after OpenVINO's ONNX front end",
        "openvino",
        kind="infer",
    ),
    "openvino-onnx": BuiltIn(
        "openvino:OpenVinoOnnx", "OpenVINO's ONNX front end and CPU plugin", "openvino", fork_safe=_OPENVINO
    ),
    "tract": BuiltIn("tract:Tract", "tract on the CPU", "tract"),
    "nxrt": BuiltIn("nxrt:Nxrt", "nxrt's CPU provider", "nxrt"),
    "opencv": BuiltIn("opencv:OpenCv", "OpenCV's DNN module, one thread", "cv2", "opencv-python-headless"),
    "emx-onnx-cgen": BuiltIn(
        "emx:Emx", "C that emx-onnx-cgen generates, compiled and run", "emx_onnx_cgen", "emx-onnx-cgen"
    ),
    "tinygrad": BuiltIn("tinygrad:Tinygrad", "tinygrad's ONNX front end", "tinygrad"),
    "tvm": BuiltIn("tvm:Tvm", "TVM's Relax, compiled by LLVM", "tvm", "apache-tvm"),
    "mnn": BuiltIn("mnn:Mnn", "MNN on the CPU, one thread", "MNN"),
}

PORTABLE: Mapping[str, BuiltIn] = {name: _BUILT_INS[name] for name in LIBRARIES}
"""The built-in backends that can run under another interpreter."""


def backend_spec(name: str, python: Path | None = None) -> BackendSpec:
    """Return the backend called `name`, without importing it; `python` is the interpreter for a built-in one.

    For `onnxruntime==1.15.0` the environment is made, if it does not exist. Raises OpconformError for an unknown or
    malformed name, and for an environment that cannot be made; NotInstalled if a built-in backend's library is missing.
    """
    plug_ins = _plug_ins()
    if release := _release(name):
        runner, version = release
        given = None if python is None else checked_interpreter(python)
        return _interpreter_spec(name, runner, environment(PORTABLE[runner].package, version, given))
    if python is not None:
        if name not in PORTABLE:
            raise OpconformError(f"--python: {_only_here(name)}")
        return _interpreter_spec(name, name, checked_interpreter(python, PORTABLE[name].package))
    return _built_in_spec(name) if name in _BUILT_INS else _spec_by_form(name, plug_ins)


def standards_of_name(name: str, python: Path | None = None) -> tuple[str, ...]:
    """Return the standards that follow from a backend's name, empty if unknown; no environment is made.

    Raises what `backend_spec` raises.
    """
    release = _release(name)
    if release is None:
        return backend_spec(name, python).standards
    if python is not None:
        checked_interpreter(python)
    return PORTABLE[release[0]].standards


def open_runner(backend: BackendSpec | str) -> Runner:
    """Make the runner of a backend; this imports its library, so it is only called inside a worker.

    Raises OpconformError if a user's class cannot be loaded or is not a runner; NotInstalled.
    """
    spec = backend_spec(backend) if isinstance(backend, str) else backend
    sys.path[:] = [*spec.path, *(folder for folder in sys.path if folder not in spec.path)]
    if spec.scheme == "onnx-backend":
        from .backends.onnx_backend import OnnxBackend  # noqa: PLC0415 - it imports onnx

        return OnnxBackend(spec.name, spec.target)
    if spec.scheme == "cmd":
        from .programs.command import Command  # noqa: PLC0415 - it imports onnx

        return Command(spec.name, spec.target)
    if spec.scheme == "interpreter" and spec.argument is not None:
        from .programs.interpreter import OtherInterpreter  # noqa: PLC0415 - it imports onnx

        built_in = load(spec.name, f"{_BACKENDS}.{PORTABLE[spec.argument].target}")
        return OtherInterpreter(spec.name, spec.target, built_in.words)
    if spec.scheme == "built-in":
        try:
            return _checked(spec.name, make(spec.name, f"{_BACKENDS}.{spec.target}"))
        except OpconformError as error:
            package = package_of(spec.name)
            words = error.__cause__ and package and misfit(spec.name, package, error.__cause__)
            raise OpconformError(words or str(error)) from error
    return _checked(spec.name, make(spec.name, spec.target, *([] if spec.argument is None else [spec.argument])))


def package_of(name: str) -> str | None:
    """Return the package that installs the library of a built-in backend; None for other backends."""
    return _BUILT_INS[name].package if name in _BUILT_INS else None


def known_backends() -> list[KnownBackend]:
    """Return the built-in backends, releases with an environment, and the installed plug-ins, by name.

    Raises OpconformError if two have the same name.
    """
    plug_ins = _plug_ins()
    packages = importlib.metadata.packages_distributions()
    backends = [
        KnownBackend(
            name,
            built_in.standards,
            built_in.summary,
            _is_installed(built_in.library),
            built_in.install,
            _version_of(packages.get(built_in.library, ())),
            "built-in" if built_in.library == "onnx" else "extra",
            _lacking(built_in, packages),
        )
        for name, built_in in _BUILT_INS.items()
    ]
    for package, version in kept_environments():
        name = next((name for name, portable in PORTABLE.items() if portable.package == package), None)
        if name is not None:
            about = (f"{name}=={version}", PORTABLE[name].standards, PORTABLE[name].summary)
            backends.append(KnownBackend(*about, installed=True, version=version, origin="environment"))
    for name, entry in plug_ins.items():
        of = entry.dist.version if entry.dist else None
        backends.append(KnownBackend(name, (), _origin(entry), installed=True, version=of, origin="entry point"))
    return sorted(backends, key=lambda known: known.name)


def _lacking(built_in: BuiltIn, packages: Mapping[str, Sequence[str]]) -> str | None:
    """Return what a backend for a CUDA device lacks besides its library: the package with the provider, or a device."""
    if not built_in.target.startswith("cuda:") or not _is_installed(built_in.library):
        return None
    having = packages.get(built_in.library, ())
    if built_in.package not in having:
        return f"{', '.join(having)} has no CUDA provider: {built_in.install} in its place, on a machine with a device"
    from .backends.cuda import NoDevice, first_device  # noqa: PLC0415 - only where it is asked for

    try:
        first_device()
    except NoDevice as error:
        return str(error)
    return None


def _version_of(distributions: Sequence[str]) -> str | None:
    """Return the version of the distribution that a module comes from; None without one, or if several differ."""
    versions = {importlib.metadata.version(distribution) for distribution in distributions}
    return versions.pop() if len(versions) == 1 else None


def _built_in_spec(name: str) -> BackendSpec:
    built_in = _BUILT_INS[name]
    if not _is_installed(built_in.library):
        raise NotInstalled(f"{name} needs {built_in.library}, which is not installed: {built_in.install}")
    about = (built_in.preload, built_in.kind)
    return BackendSpec(name, "built-in", built_in.target, (), built_in.standards, None, *about)


def _release(name: str) -> tuple[str, str] | None:
    """Return the runner and the version in a name such as `onnxruntime==1.15.0`. Raises OpconformError for others."""
    runner, both, version = name.partition("==")
    if not both or ":" in runner:
        return None
    if runner in PORTABLE:
        return runner, version
    if runner in _BUILT_INS:
        raise OpconformError(f"{name}: {_only_here(runner)}")
    near = did_you_mean(runner, list(PORTABLE))
    raise OpconformError(f"{name}: no known releases of {runner!r}{near}; expected one of {', '.join(PORTABLE)}")


def _only_here(name: str) -> str:
    """Return the message for a backend that cannot run under another interpreter."""
    words = f"{name} can't use another interpreter; these can: {', '.join(PORTABLE)}"
    if name not in _BUILT_INS:
        return words
    return f"{words}. For another release of {name}, install opconform beside it"


def _interpreter_spec(name: str, runner: str, python: Path) -> BackendSpec:
    command, built_in = client_command(runner, python), PORTABLE[runner]
    preload = (f"{__package__}.programs.interpreter",)
    return BackendSpec(name, "interpreter", command, (), built_in.standards, runner, preload, built_in.kind)


def _spec_by_form(name: str, plug_ins: Mapping[str, importlib.metadata.EntryPoint]) -> BackendSpec:
    """Return the spec of a plug-in, or of a name whose form shows where the backend is."""
    if name in plug_ins:
        return _plug_in_spec(name, plug_ins[name])
    match name.partition(":"):
        case ("python", ":", target):
            return _own_spec(name, "python", target)
        case ("onnx-backend", ":", target):
            return _own_spec(name, "onnx-backend", target)
        case ("cmd", ":", command):
            return _command_spec(name, command)
        case (plug_in, ":", argument) if plug_in in plug_ins:
            return _plug_in_spec(name, plug_ins[plug_in], argument)
    raise OpconformError(_unknown(name, [*_BUILT_INS, *plug_ins]))


def _plug_in_spec(name: str, entry: importlib.metadata.EntryPoint, argument: str | None = None) -> BackendSpec:
    return BackendSpec(name, "plug-in", f"{entry.module}:{entry.attr}", argument=argument)


def _own_spec(name: str, scheme: Literal["python", "onnx-backend"], target: str) -> BackendSpec:
    # A console script lacks the current folder, where a backend under development is.
    folder = Path.cwd()
    file, colon, path = target.partition(":")
    if file.endswith(".py"):
        if not (folder / file).is_file():
            raise OpconformError(f"{name}: there is no file {file}; looked in {folder}")
        folder, target = (folder / file).parent, f"{Path(file).stem}{colon}{path}"
    if not is_target(target, with_class=scheme == "python"):
        raise OpconformError(f"{name}: expected {_OWN_FORMS[scheme]}, or {scheme}:folder/file.py:Class")
    standards = ("onnx",) if scheme == "onnx-backend" else ()
    return BackendSpec(name, scheme, target, (str(folder),), standards)


def _command_spec(name: str, command: str) -> BackendSpec:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise OpconformError(f"{name}: the command is not valid shell syntax: {error}") from None
    if not words:
        raise OpconformError(f"{name}: expected {_OWN_FORMS['cmd']}")
    if shutil.which(words[0]) is None:
        raise OpconformError(f"{name}: {words[0]!r} is not an executable program; looked in {Path.cwd()} and on PATH")
    return BackendSpec(name, "cmd", command, preload=(f"{__package__}.programs.command",))


def _unknown(name: str, known: list[str]) -> str:
    near = did_you_mean(name, known)
    own = "" if near or ":" not in name else f"; your own are named {', '.join(_OWN_FORMS.values())}"
    return f"no backend is called {name!r}{near or own + ';'} `opconform list backends` shows all"


def _plug_ins() -> dict[str, importlib.metadata.EntryPoint]:
    plug_ins: dict[str, importlib.metadata.EntryPoint] = {}
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        # The same distribution may be found twice, for example an editable one.
        if entry.name in _BUILT_INS or (entry.name in plug_ins and plug_ins[entry.name].value != entry.value):
            other = f"one from {_origin(plug_ins[entry.name])}" if entry.name in plug_ins else "the built-in one"
            raise OpconformError(
                f"two backends are called {entry.name!r}: {other} and one from {_origin(entry)}; remove one"
            )
        plug_ins[entry.name] = entry
    return plug_ins


def _origin(entry: importlib.metadata.EntryPoint) -> str:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"
    return f"{package} ({entry.value})"


def _is_installed(library: str) -> bool:
    if library == _LIBDNNL:
        from .backends.onednn_library import is_installed  # noqa: PLC0415 - only where it is asked for

        return is_installed()
    return importlib.util.find_spec(library) is not None


# Opened runners, checked against the protocol


def _checked(backend: str, made: Any) -> Runner:
    """Return `made` if it has everything that a runner needs; OpconformError names what is missing or wrong."""
    faults = [fault for fault in (_name_fault(made), _standards_fault(made), _kind_fault(made)) if fault]
    faults += [f"no method {name!r}" for name in _METHODS if not callable(getattr(made, name, None))]
    if faults:
        raise OpconformError(
            f"{backend}: {type(made).__name__} is not a runner: {', '.join(faults)}; docs/writing-a-runner.md shows one"
        )
    runner: Runner = made
    return runner


def _name_fault(made: Any) -> str | None:
    name = getattr(made, "name", None)
    return None if isinstance(name, str) and name else f"'name' is {name!r}, expected a string"


def _kind_fault(made: Any) -> str | None:
    try:
        kind_of(made)
    except ValueError as error:
        return str(error)
    return None


def _standards_fault(made: Any) -> str | None:
    standards = getattr(made, "standards", None)
    if not isinstance(standards, tuple | list) or not standards:
        return f"'standards' is {standards!r}, expected a tuple such as ('onnx',)"
    unknown = [s for s in standards if s not in STANDARDS]
    if not unknown:
        return None
    near = did_you_mean(str(unknown[0]), STANDARDS)
    return f"{unknown[0]!r} in 'standards' is not one of {', '.join(STANDARDS)}{near}"

"""Interpreters for built-in runners: the command that runs one under another, and environments with a release.

Environments are in a cache. `uv` makes them if it is on PATH, otherwise `venv` and pip. Only wheels are installed:
nothing is built.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...cases.errors import OpconformError
from ...cases.runner import NotInstalled

OLDEST_PYTHON = 9
"""The oldest Python that runs a backend is 3.9."""

_VERSION = re.compile(r"\d+(\.\d+)*([-._+]?[a-z]\w*)*")
_MADE = "opconform.json"
"""The file that marks an environment as complete."""
_NO_WHEEL = re.compile(r"No matching distribution found|Could not find a version|No solution found|has no wheels")
_LISTED = re.compile(r"\(from versions: ([^)]*)\)")
_SHOWN = 400


def client_command(runner: str, python: Path) -> str:
    """Return the command that runs a runner's client under an interpreter."""
    client = Path(__file__).parents[1] / "clients" / "python_client.py"
    return shlex.join([str(python), "-E", str(client), runner])


PINS = (("onnxruntime", (1, 19), "numpy<2"),)  # built against NumPy 1; metadata of 1.15 to 1.17 lacks it
"""Packages, the releases before which their metadata lacks a requirement, and those requirements."""


def release_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, which order releases. Raises OpconformError for an invalid version."""
    if _VERSION.fullmatch(version) is None:
        raise OpconformError(f"{version[:_SHOWN]!r} is not a version; expected one such as 1.20.1")
    return tuple(int(part) for part in re.match(r"[\d.]*\d", version)[0].split("."))  # type: ignore[index]


def requirements(package: str, version: str) -> list[str]:
    """Return what to install for a release: itself, and requirements that its metadata lacks."""
    release = release_of(version)
    pins = [pin for name, before, pin in PINS if name == package and release < before]
    return [f"{package}=={version}", *pins]


def cache_folder() -> Path:
    """Return the folder that keeps environments: `opconform/environments` under XDG_CACHE_HOME or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opconform" / "environments"


def kept_environments() -> list[tuple[str, str]]:
    """Return the packages and releases whose environments match today's requirements."""
    kept = []
    for marker in sorted(cache_folder().glob(f"*/{_MADE}")):
        package, _, rest = marker.parent.name.partition("-")
        version = rest.rpartition("-py3.")[0]
        with contextlib.suppress(OpconformError):  # not a version
            kept += [(package, version)] if _is_whole(marker.parent, requirements(package, version)) else []
    return list(dict.fromkeys(kept))


def environment(package: str, version: str, python: Path | None = None) -> Path:
    """Return the interpreter of an environment with a release; make the environment if it does not exist.

    `python` is the interpreter to make it with. Without it an existing environment is used; otherwise this interpreter
    is tried first, then others from Python 3.9 on, the closest version first. Raises OpconformError, which says why
    each one failed.
    """
    wanted = requirements(package, version)
    for kept in sorted(cache_folder().glob(f"{package}-{version}-py3.*/bin/python")) if python is None else ():
        if _is_whole(kept.parents[1], wanted) and kept.exists():
            return kept
    failures = []
    for minor, executable in interpreters(python):
        folder = cache_folder() / f"{package}-{version}-py3.{minor}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            made = folder / "bin" / "python"
            if _is_whole(folder, wanted) and made.exists():
                return made
            words = f"opconform: making an environment with {' '.join(wanted)} on Python 3.{minor}: {folder}"
            print(words, file=sys.stderr, flush=True)
            failure = _make(folder, executable, minor, wanted)
            if failure is None:
                return made
        failures.append(f"\n  Python 3.{minor} ({executable}): {failure}")
    raise OpconformError(f"{package}=={version}: no environment can be made{''.join(failures)}")


def releases(package: str) -> list[str]:
    """Return the final releases of a package that this interpreter can install according to pip, oldest first."""
    pip, uv = [sys.executable, "-m", "pip"], shutil.which("uv")
    if uv and importlib.util.find_spec("pip") is None:  # as in the environments that uv makes
        pip = [uv, "tool", "run", "--quiet", "--python", sys.executable, "pip"]
    command = [*pip, "index", "versions", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - pip
    listed = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if listed is None:
        raise OpconformError(f"{package}: pip lists no releases: {_last_words(done)}")
    versions = [version.strip() for version in listed[1].split(",")]
    return sorted((version for version in versions if re.fullmatch(r"[\d.]+", version)), key=release_of)


def interpreters(given: Path | None = None) -> Iterator[tuple[int, Path]]:
    """Yield interpreters and their minor versions: this one, then those on PATH and of pyenv, the closest first.

    `given` is the only one if set. Raises OpconformError if it cannot be run, or is too old.
    """
    if given is not None:
        minor = _minor(given)
        if minor is None:
            raise OpconformError(f"{given}: it cannot be run as Python 3.{OLDEST_PYTHON} or newer")
        yield minor, given
        return
    own = sys.version_info.minor
    yield own, Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    names = [shutil.which(f"python3.{minor}") for minor in range(OLDEST_PYTHON, own + 10)]
    paths: dict[int, Path] = {}
    for path in [*(Path(name) for name in names if name), *sorted(pyenv.glob("versions/3.*/bin/python3"))]:
        minor = _minor(path)
        if minor is not None and minor != own:
            paths.setdefault(minor, path)
    yield from sorted(paths.items(), key=lambda entry: (abs(entry[0] - own), entry[0]))


def _minor(python: Path) -> int | None:
    """Return the minor version of an interpreter; None if it does not run, or is too old."""
    command = [str(python), "-E", "-c", "import sys; print(*sys.version_info[:2])"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
        major, minor = map(int, done.stdout.split())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return minor if major == 3 and minor >= OLDEST_PYTHON else None


def checked_interpreter(python: Path, package: str | None = None) -> Path:
    """Return the absolute path of an interpreter that has NumPy, and a package if one is named.

    Raises OpconformError if it is not Python 3.9 or newer, NotInstalled if it lacks a package.
    """
    executable = shutil.which(python)
    if executable is None:
        raise OpconformError(f"--python {python}: not an executable program; looked in {Path.cwd()} and on PATH")
    path = Path(executable).absolute()  # not resolved: an environment's interpreter is a link to the one that made it
    next(interpreters(path))
    wanted = ["numpy", package] if package else []
    look = "import sys; from importlib.util import find_spec; print(*(n for n in sys.argv[1:] if not find_spec(n)))"
    command = [str(path), "-E", "-c", look, *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - the user's interpreter
    if missing := done.stdout.split():
        raise NotInstalled(f"--python {python}: it lacks {', '.join(missing)}: {python} -m pip install {package} numpy")
    return path


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Prevent other processes from making the same environment at the same time."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_whole(folder: Path, wanted: Sequence[str]) -> bool:
    try:
        marker = json.loads((folder / _MADE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(marker, dict) and marker.get("requirements") == list(wanted)


def _make(folder: Path, python: Path, minor: int, wanted: Sequence[str]) -> str | None:
    """Make an environment; return why this interpreter cannot. Raises OpconformError if another could not either."""
    shutil.rmtree(folder, ignore_errors=True)
    made = str(folder / "bin" / "python")
    if uv := shutil.which("uv"):
        create = [uv, "venv", "--quiet", "--python", str(python), str(folder)]
        install = [uv, "pip", "install", "--python", made]
    elif minor == sys.version_info.minor and importlib.util.find_spec("pip"):  # starts ten times as fast
        create = [str(python), "-m", "venv", "--without-pip", str(folder)]
        install = [sys.executable, "-m", "pip", "--python", made, "install", "--no-compile"]
    else:
        create = [str(python), "-m", "venv", str(folder)]
        install = [made, "-m", "pip", "install", "--no-compile"]
    steps = [create, [*install, "--quiet", "--only-binary", ":all:", *wanted]]
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    for number, command in enumerate(steps):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean)  # noqa: S603
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            words = _last_words(done)
            if number and (newest := _newest_below(wanted[0], done.stderr)):
                raise OpconformError(f"{wanted[0]}: no such release; the newest is {newest}")
            if number == 0 or _NO_WHEEL.search(done.stderr):
                return words
            raise OpconformError(f"{wanted[0]}: cannot be installed: {words}")
    (folder / _MADE).write_text(json.dumps({"requirements": list(wanted)}) + "\n", encoding="utf-8")
    return None


def _newest_below(requirement: str, words: str) -> str | None:
    """Return the newest release if all are older than the required one, as pip tells them, or lists them for uv."""
    package, _, version = requirement.partition("==")
    listed = _LISTED.search(words)
    versions = [word.strip() for word in listed[1].split(",")] if listed else []
    if not versions and "no version of" in words:
        with contextlib.suppress(OpconformError):
            versions = releases(package)
    final = sorted((text for text in versions if re.fullmatch(r"[\d.]+", text)), key=release_of)
    return final[-1] if final and release_of(final[-1]) < release_of(version) else None


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last informative line of an error; of pip's two about a missing wheel, the first; for uv, all."""
    lines = [line.strip() for line in (done.stderr.strip() or done.stdout.strip()).splitlines() if line.strip()]
    words = next((line for line in lines if _NO_WHEEL.search(line)), lines[-1] if lines else "")
    if Path(done.args[0]).name == "uv":  # the first line says what failed, the others why
        words = " ".join(lines)
    return words[:_SHOWN] + ("…" if len(words) > _SHOWN else "") or f"exit code {done.returncode}"

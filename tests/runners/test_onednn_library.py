"""The library of oneDNN: where it is found, what is said where it is not, and what it does to its process."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from opconform.cases.errors import OpconformError
from opconform.cases.runner import NotInstalled
from opconform.runners.backends.onednn import OneDnnGraph
from opconform.runners.backends.onednn_library import VARIABLE, find_library, is_installed
from opconform.runners.registry import backend_spec, open_runner

if not is_installed():
    pytest.skip("oneDNN is not installed", allow_module_level=True)


@pytest.mark.slow
def test_running_and_refusing_take_no_more_memory_with_time() -> None:
    done = in_process("""
        import numpy as np
        from fakes.programs import reduction
        from opconform.runners.backends.onednn import OneDnnGraph
        runner, x = OneDnnGraph(), np.ones((2, 2), np.float32)
        used = lambda: int(open("/proc/self/statm").read().split()[1]) * 4096
        executable = runner.prepare(reduction((2, 2), (1,)))
        def work(runs, programs):
            for _ in range(runs):
                executable.run([x])
            for _ in range(programs):
                runner.prepare(reduction((2, 2), (0,))).run([x])
                try:
                    runner.prepare(reduction((2, 2), (5,)))
                except Exception:
                    pass
        work(2000, 40)
        before = used()
        work(20_000, 40)
        print(used() - before)
    """)
    assert int(done) < 4 << 20  # a run that kept one handle of 300 bytes would keep 6 MB


def test_loading_leaves_the_environment_and_the_processors_as_they_were() -> None:
    told = in_process("""
        import os
        from opconform.runners.backends.onednn import OneDnnGraph
        state = lambda: (dict(os.environ), os.sched_getaffinity(0))
        before = state()
        OneDnnGraph()
        print(state() == before)
    """)
    assert told == "True\n"


def test_the_environment_may_name_another_build(tmp_path) -> None:
    location = find_library()
    assert location is not None
    (tmp_path / "libdnnl-own.so").symlink_to(location.path)
    told = in_process(
        """
        import json
        from fakes.programs import reduction
        from opconform.runners.registry import open_runner
        runner = open_runner("onednn")
        runner.prepare(reduction((2, 2), (1,)))
        print(json.dumps(runner.describe()))
        """,
        **{VARIABLE: str(tmp_path / "libdnnl-own.so")},
    )
    facts = json.loads(told)
    assert (facts["package"], facts["library"]) == ("none", "libdnnl-own.so")


def test_a_name_in_the_environment_that_leads_nowhere_is_told_with_what_to_do(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nothing.so"))
    with pytest.raises(OpconformError, match=rf"^{VARIABLE} is '.*nothing.so', which is not a file"):
        backend_spec("onednn")
    (tmp_path / "text.so").write_text("no library")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "text.so"))
    with pytest.raises(OpconformError, match=r"^text.so cannot be loaded: "):
        open_runner("onednn")


def test_a_library_without_the_graph_interface_is_refused_by_name(monkeypatch) -> None:
    import _ctypes

    monkeypatch.setenv(VARIABLE, str(_ctypes.__file__))
    with pytest.raises(OpconformError, match=r"has no function dnnl_\w+; oneDNN 3.0 or later"):
        open_runner("onednn")


def test_without_a_library_it_says_what_to_install(monkeypatch, tmp_path) -> None:
    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    for opened in (lambda: backend_spec("onednn"), OneDnnGraph):
        with pytest.raises(NotInstalled, match=r"pip install onednn-cpu-gomp$"):
            opened()


def test_a_library_beside_python_is_found_without_a_package(monkeypatch, tmp_path) -> None:
    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / "lib").mkdir()
    for name in ("libdnnl.so", "libdnnl.so.3", "libdnnl.so.3.2", "libdnnl.so.3.2.txt", "libother.so.3.2.1"):
        (tmp_path / "lib" / name).touch()
    found = find_library()
    assert found is not None
    assert (found.path.name, found.package) == ("libdnnl.so.3.2", None)


@pytest.mark.slow
def test_what_aborts_costs_its_case_and_the_run_goes_on(tmp_path) -> None:
    narrow, wide = (
        f"onednn/ReduceMean/{t}/3x4x5/axes=0;keep_dims=true/ramp/page-example" for t in ("float16", "float32")
    )
    command = [sys.executable, "-m", "opconform", "run", "onednn", "--jobs", "1", "--out", str(tmp_path / "out")]
    subprocess.run([*command, "--select", narrow, "--select", wide], capture_output=True, cwd=tmp_path, check=False)
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    results = {r["case"]: r for r in map(json.loads, lines)}
    assert results.keys() == {narrow, wide}
    assert results[wide]["outcome"] == "pass"
    # oneDNN 3.2 aborts where the processor has no AVX512-FP16; 3.13 says that it does not support the partition.
    assert results[narrow]["outcome"] in {"pass", "crash", "unsupported"}
    if results[narrow]["outcome"] == "crash":
        assert "signal SIGABRT" in results[narrow]["detail"]


def in_process(source: str, **environment: str) -> str:
    """Return what a program prints that runs in a process of its own."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout

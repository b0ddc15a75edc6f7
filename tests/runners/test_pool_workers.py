"""The pool's workers as processes: how they start, what surrounds them, and that none stays behind."""

from __future__ import annotations

import ast
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fakes import pool_tasks
from fakes.pool_tasks import Faulty, run

from opconform.cases.errors import OpconformError
from opconform.runners.pool import Limits, Loss, Pool, WorkerStartError

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the fakes look into /proc"),
    pytest.mark.usefixtures("no_waiting_for_ever"),
]

TESTS = Path(__file__).parents[1]


# Starting workers


def test_a_factory_that_raises_says_why_in_the_parent() -> None:
    with pytest.raises(WorkerStartError) as raised:
        run(["ok-1"], jobs=2, factory=pool_tasks.RaisesAtStart())
    assert raised.value.kind == "ModuleNotFoundError"
    assert raised.value.message == "no library called 'nonesuch'\nand a second line"
    assert "Traceback" in raised.value.tail
    assert "nonesuch" in str(raised.value)
    assert isinstance(raised.value, OpconformError)


def test_workers_that_die_at_start_are_tried_three_times(tmp_path: Path) -> None:
    with pytest.raises(WorkerStartError, match="exit code 7") as raised:
        run(["ok-1"], factory=pool_tasks.DiesAtStart(tmp_path))
    assert raised.value.kind == "died"
    assert raised.value.tail == "no such device"
    assert len(list(tmp_path.iterdir())) == 3


def test_one_death_at_start_loses_nothing(tmp_path: Path) -> None:
    _, losses = run(["ok-1", "ok-2"], factory=pool_tasks.DiesAtFirstStart(tmp_path / "died"))
    assert not losses


def test_a_worker_that_hangs_at_start_is_given_up() -> None:
    with pytest.raises(WorkerStartError, match=r"not ready after 0\.3 s") as raised:
        run(["ok-1"], factory=pool_tasks.HangsAtStart(), limits=Limits(start_seconds=0.3))
    assert raised.value.kind == "timeout"


def test_an_interpreter_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(WorkerStartError, match="/no/such/python"):
        list(Pool(Faulty, jobs=1).run([["ok-1"]]))


def test_no_jobs_are_refused() -> None:
    with pytest.raises(OpconformError, match="jobs is 0"):
        Pool(Faulty, jobs=0)


# The worker as a process


def test_a_worker_has_its_own_session_and_this_process_s_surroundings() -> None:
    asked = ["pid", "session", "cwd", "path", "main", "core", "stdin", "sigint", "modules"]
    records, _ = run(asked, factory=pool_tasks.Witness)
    facts = {key: ast.literal_eval(record.decode()) for key, record in records.items()}
    assert facts["session"] == facts["pid"] != os.getpid()
    assert facts["cwd"] == str(Path.cwd())
    assert facts["path"] == sys.path
    assert facts["main"] is None
    assert facts["core"] < resource.getpagesize()
    assert facts["stdin"] == b""
    assert facts["sigint"] == "SIG_IGN"
    assert not {"numpy", "onnx", "pydantic", "multiprocessing", "asyncio"} & set(facts["modules"])


@pytest.mark.parametrize("way", ["-c", "stdin", "script"])
def test_it_works_from_any_kind_of_script_and_runs_none_twice(way: str, tmp_path: Path) -> None:
    script = parent_script("print(sorted(Pool(Faulty, jobs=2).run([['ok-1'], ['ok-2']])))")
    (tmp_path / "script.py").write_text(script)
    arguments = {"-c": ["-c", script], "stdin": ["-"], "script": ["script.py"]}[way]
    given = script if way == "stdin" else None
    done = subprocess.run(
        [sys.executable, *arguments], input=given, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "started\n[('ok-1', b'ok-1'), ('ok-2', b'ok-2')]\n"


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_worker_or_file_outlives_the_parent(signal_number: int, tmp_path: Path) -> None:
    keys = [["pid-0", "ok-1"], ["pid-2", "ok-3"], ["hang-4"], ["hang-5"], ["ok-6"]]
    script = parent_script(f"for found in Pool(Witness, jobs=2).run({keys}): print(found[1].decode(), flush=True)")
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        lines = [parent.stdout.readline() for _ in range(5)]
        workers = {int(line) for line in lines if line.strip().isdigit()}
        workers |= children(parent.pid)
        parent.send_signal(signal_number)
    assert workers
    assert_gone(workers)
    assert list(tmp_path.iterdir()) == []


def test_closing_the_iterator_ends_workers_and_what_they_started() -> None:
    found = Pool(pool_tasks.Witness, jobs=1).run([["pid-0", "child-1"], ["hang-2"]])
    first, second = next(found), next(found)
    assert not isinstance(first, Loss)
    assert not isinstance(second, Loss)
    found.close()  # type: ignore[attr-defined]
    assert_gone({int(first[1]), int(second[1])})


@pytest.mark.slow
def test_a_run_with_faults_leaves_no_descriptor_and_no_child() -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are what is compared
    others = children(os.getpid())  # those of other tests, such as a browser's driver
    run(["ok-0", "segv-1", "orphan-2", "hang-3", "garbage-4", "closeall-5"], jobs=2, batch=2)
    assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208
    assert children(os.getpid()) <= others


def parent_script(last: str) -> str:
    return textwrap.dedent(f"""\
        import sys
        print("started", flush=True)
        sys.path.append({str(TESTS)!r})
        from fakes.pool_tasks import Faulty, Witness
        from opconform.runners.pool import Pool
        {last}
        """)


def children(parent: int) -> set[int]:
    return {int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}


def assert_gone(pids: set[int]) -> None:
    """Wait for processes to end; a zombie, which its new parent has not looked at, has ended."""
    end = time.monotonic() + 20
    while left := {pid for pid in pids if running(pid)}:
        assert time.monotonic() < end, f"still running: {left}"
        time.sleep(0.02)


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"

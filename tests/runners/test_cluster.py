"""Runs on a real scheduler with workers in processes of their own, some of which are killed or unfit."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.backends import STRUCK
from fakes.results import Ran

from opconform.cases.errors import OpconformError
from opconform.cli import main
from opconform.runners.execution.executors import opened_executor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="distributed is not installed"),
]

TESTS = Path(__file__).parent.parent
V13 = "onnx/ReduceMean-13"
INT32 = ("--select", f"{V13}/int32/*")
GOOD = ("--resource", "good=1")
FRACTION = f"{V13}/int32/2x2/axes=1/halves/fraction"
GUARD = 120.0


@dataclass(frozen=True)
class Cluster:
    """A scheduler with two good workers, of which one has a device, and four that are unfit, each by its resource."""

    address: str
    client: Any
    folder: Path

    @property
    def where(self) -> tuple[str, str]:
        return "--executor", f"dask:{self.address}"

    def workers(self, resource: str) -> dict[str, int]:
        """Return the workers that have a resource, with their process ids."""
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        chosen = [address for address, worker in known.items() if resource in worker["resources"]]
        return dict(self.client.run(os.getpid, workers=chosen)) if chosen else {}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    import distributed  # a second's work, not to be done where these tests are left out

    folder = tmp_path_factory.mktemp("cluster")
    file = folder / "scheduler.json"
    with contextlib.ExitStack() as stack:
        failures = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
        start(stack, folder, "scheduler", "--port=0", "--no-dashboard", f"--scheduler-file={file}", **failures)
        common = ("--nthreads=1", "--no-dashboard", "--preload=fakes.cluster_preload", f"--scheduler-file={file}")
        start(stack, folder, "worker", *common, "--resources=good=1")
        start(stack, folder, "worker", *common, "--resources=good=1 npu=1", FAKE_DEVICE="1")
        for unfit in ("old", "bare", "alias", "omit"):
            start(stack, folder, "worker", *common, "--no-nanny", f"--resources={unfit}=1")
        wait_until(file.exists)
        address = json.loads(file.read_text())["address"]
        client = stack.enter_context(distributed.Client(address, set_as_default=False))
        wait_until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == 6)
        yield Cluster(address, client, folder)


def start(stack: contextlib.ExitStack, folder: Path, what: str, *arguments: str, **environment: str) -> None:
    paths = {"PYTHONPATH": str(TESTS), "DASK_TEMPORARY_DIRECTORY": str(folder)}
    paths["DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL"] = "1s"  # not fifty times a second in seven processes
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-P", "-m", f"distributed.cli.dask_{what}", *arguments],
            cwd=folder,
            env={**os.environ, **paths, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    )
    stack.callback(process.terminate)


def wait_until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + GUARD
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


class ClusterRan(Ran):
    @property
    def results(self) -> dict[str, Any]:
        """The results by case, without what differs from run to run."""
        return {r["case"]: {**r, "seconds": None, "backend": None} for r in self.lines}

    @property
    def executor(self) -> Any:
        return self.about["executor"]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., ClusterRan]:
    def started(backend: str, *arguments: str) -> Ran:
        name = f"python:fakes.{backend[1:]}" if backend.startswith("@") else backend
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        done = CliRunner().invoke(main, ["run", name, *arguments, "--out", str(out)], catch_exceptions=False)
        return ClusterRan(done.exit_code, done.output, out)

    return started


def processes_below(pid: int) -> list[int]:
    return [int(p) for task in Path(f"/proc/{pid}/task").iterdir() for p in (task / "children").read_text().split()]


# What a cluster does as one machine does


def test_results_are_those_of_a_local_run_and_nothing_stays_behind(cluster: Cluster, run: Any) -> None:
    select = ("--select", "onnx/Mean-13/*", "--select", "onnx/ReduceMean-18/float32/*", "--keep-outputs", "all")
    there = run("onnx-reference", *select, *cluster.where, *GOOD)
    here = run("onnx-reference", *select, "--jobs", "1")
    assert there.results == here.results
    assert len(there.lines) == len(there.results) > 100
    assert (there.code, here.code) == (1, 1)
    kept = [sorted((ran.folder / "outputs.jsonl").read_text().splitlines()) for ran in (there, here)]
    assert kept[0] == kept[1]
    assert there.executor == {"kind": "dask", "workers": 2, "resources": {"good": 1.0}}
    wait_until(lambda: not any(processes_below(pid) for pid in cluster.workers("good").values()))
    known = cluster.client.run_on_scheduler(lambda: [name for name in sys.modules if name.startswith("opconform")])
    assert known == [], "the scheduler needs nothing of ours"


def test_a_cluster_on_this_machine_needs_no_scheduler(run: Any) -> None:
    there = run("@backends:Right", *INT32, "--executor", "dask", "--jobs", "1")
    assert there.code == 0, there.output
    assert there.executor["workers"] == 1
    assert there.results == run("@backends:Right", *INT32, "--jobs", "1").results


def test_a_crash_costs_its_case_and_no_worker_of_the_cluster(cluster: Cluster, run: Any) -> None:
    before = cluster.workers("good")
    there = run("@backends:Crashes", *INT32, *cluster.where, *GOOD)
    assert there.results == run("@backends:Crashes", *INT32, "--jobs", "1").results
    assert [case for case, r in there.results.items() if r["outcome"] == "crash"] == [FRACTION]
    assert cluster.workers("good") == before


def test_a_resource_is_where_it_is(cluster: Cluster, run: Any) -> None:
    there = run("@backends:NeedsDevice", *INT32, *cluster.where, "--resource", "npu=1")
    assert there.code == 0, there.output
    assert there.executor["workers"] == 1
    nowhere = run("@backends:NeedsDevice", *INT32, *cluster.where, *GOOD)
    assert nowhere.code == 2
    (lacking,) = set(cluster.workers("good")) - set(cluster.workers("npu"))
    assert "OSError: no device found" in nowhere.output
    assert lacking in nowhere.output


# Losing workers


def test_a_worker_killed_during_a_run_costs_nothing(cluster: Cluster, run: Any) -> None:
    select = ("--select", f"{V13}/*")
    before = cluster.workers("good")
    there = run("@backends:KillsNodeOnce", *select, *cluster.where, *GOOD)
    assert (cluster.folder / STRUCK).read_text().count("once") > 1, "one was killed, and its batch ran again"
    assert there.results == run("@backends:Right", *select, "--jobs", "1").results
    assert len(there.lines) == len(there.results)
    wait_until(lambda: len(cluster.workers("good")) == 2)
    assert len(cluster.workers("good").items() & before.items()) == 1


def test_a_case_that_kills_its_node_each_time_is_a_crash_and_the_others_are_judged(cluster: Cluster, run: Any) -> None:
    there = run("@backends:KillsNode", *INT32, *cluster.where, *GOOD)
    crashed = {case: r for case, r in there.results.items() if r["outcome"] == "crash"}
    assert list(crashed) == [FRACTION]
    assert "KilledWorker: 2 workers of the cluster died" in crashed[FRACTION]["detail"]
    here = run("@backends:Right", *INT32, "--jobs", "1").results
    assert {**there.results, FRACTION: None} == {**here, FRACTION: None}
    wait_until(lambda: len(cluster.workers("good")) == 2)


# What is refused


def test_a_worker_with_another_suite_is_named_with_what_differs(cluster: Cluster, run: Any) -> None:
    ran = run("@backends:Right", *INT32, *cluster.where, "--resource", "old=1")
    assert ran.code == 2
    (address,) = cluster.workers("old")
    assert f"worker {address} has opconform 0.0.1, this machine has" in ran.output


def test_a_worker_without_the_suite_is_named(cluster: Cluster, run: Any) -> None:
    ran = run("@backends:Right", *INT32, *cluster.where, "--resource", "bare=1")
    assert ran.code == 2
    (address,) = cluster.workers("bare")
    assert f"worker {address} has no opconform" in ran.output


def test_workers_with_different_versions_of_a_backend_are_refused(cluster: Cluster, run: Any) -> None:
    ran = run("@backends:AVersionEach", *INT32, *cluster.where, *GOOD)
    assert ran.code == 2
    assert "one run, one version" in ran.output


@pytest.mark.parametrize(("lie", "told"), [("alias", "on 'onnxruntime'"), ("omit", "it has 0 results")])
def test_a_worker_that_answers_otherwise_than_it_is_asked_is_named(
    cluster: Cluster, run: Any, lie: str, told: str
) -> None:
    ran = run("@backends:Right", *INT32, *cluster.where, "--resource", f"{lie}=1")
    assert ran.code == 2
    assert "its answer does not match the request: it " in ran.output
    assert told in ran.output
    assert ran.lines == []


def test_a_resource_that_no_worker_has_is_told_with_what_there_is(cluster: Cluster) -> None:
    from opconform.runners.execution.cluster import DaskExecutor

    with pytest.raises(
        OpconformError, match=r"after 0\.5 s, no worker .* has npu=2 \(its workers: .*1 with good=1, npu=1"
    ) as told:
        DaskExecutor(cluster.address, resources={"npu": 2}, patience=0.5).__enter__()
    assert cluster.address in str(told.value)


def test_a_scheduler_that_cannot_be_reached_is_named() -> None:
    from opconform.runners.execution.cluster import DaskExecutor

    with pytest.raises(OpconformError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:1 within 0\.5 s"):
        DaskExecutor("tcp://127.0.0.1:1", resources={}, patience=0.5).__enter__()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--executor", "slurm"), "expected local, dask"),
        (("--executor", "dask:"), "expected local, dask"),
        (("--executor", "dask:morse://host:1"), "is not the address of a dask scheduler"),
        (("--executor", "dask", *GOOD), "with --executor dask they have none"),
        (GOOD, "with --executor local they have none"),
        (("--executor", "dask:tcp://host:1", "--resource", "npu"), "expected NAME=NUMBER"),
        (("--executor", "dask:tcp://host:1", "--resource", "npu=0"), "expected NAME=NUMBER"),
        (("--executor", "dask:tcp://host:1", *GOOD, *GOOD), "given twice"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_written(run: Any, words: tuple[str, ...], told: str) -> None:
    ran = run("@backends:Right", *INT32, *words)
    assert ran.code == 2
    assert told in ran.output
    assert not ran.folder.exists()


def test_without_dask_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "distributed" else find(name))
    with pytest.raises(OpconformError, match=r"pip install distributed$"), opened_executor("dask", jobs=1):
        pass


# Batches


def test_batches_grow_with_what_workers_manage_and_lose_no_case() -> None:
    from opconform.runners.execution.cluster import Pace, gathered

    pace = Pace()
    small = [[f"{start + i}" for i in range(10)] for start in range(0, 50_000, 10)]
    sizes, seen = [], []
    for batch in gathered(small, pace):
        sizes.append(len(batch))
        seen += batch
        pace.learn(len(batch), 0.001 * len(batch))
    assert seen == [text for batch in small for text in batch]
    assert sizes[0] < 30
    assert max(sizes[:-1]) == 5000
    pace.learn(5000, 50_000)
    assert pace.size < 50, "a slow backend gets few cases at a time"


def test_what_there_is_goes_out_when_the_source_has_nothing_for_now() -> None:
    from opconform.runners.execution.cluster import Pace, gathered

    assert list(gathered([["a"], [], [], ["b"]], Pace())) == [["a"], [], ["b"]]

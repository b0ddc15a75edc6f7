"""Which key a worker's death is charged to, and where the workers come from."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from fakes.pool_tasks import Counting, Faulty, Poisonous, WarmFactory, Witness

from opconform.runners.pool import Limits, Loss, Pool, Stray, Task

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the fakes look into /proc"),
    pytest.mark.usefixtures("no_waiting_for_ever"),
]

TESTS = Path(__file__).parents[1]
SOON = Limits(run_seconds=0.5, prepare_seconds=0.5)
BOTH = pytest.mark.parametrize("fork", [False, True], ids=["spawn", "fork"])


class Outcome:
    """What a pool says of keys, each of which must come back once."""

    def __init__(
        self,
        keys: Sequence[str],
        factory: Callable[[], Task] = Faulty,
        *,
        batch: int = 10,
        jobs: int = 1,
        limits: Limits = SOON,
        fork: bool = True,
        reuse: bool = True,
    ) -> None:
        pool = Pool(factory, jobs=jobs, limits=limits, fork=fork, reuse=reuse)
        found = list(pool.run(keys[start : start + batch] for start in range(0, len(keys), batch)))
        self.records = {f[0]: f[1].decode() for f in found if isinstance(f, tuple)}
        self.losses = {f.key: f for f in found if isinstance(f, Loss)}
        self.strays = [f for f in found if isinstance(f, Stray)]
        assert sorted([*self.records, *self.losses]) == sorted(keys)
        assert len(self.records) + len(self.losses) + len(self.strays) == len(found)


# Who is charged


@BOTH
def test_what_an_earlier_key_broke_is_charged_to_none_and_told(fork: bool) -> None:
    ran = Outcome(["a-0", "a-1", "poison-2", "a-3", "a-4"], Poisonous, batch=1, fork=fork)
    assert ran.records["a-3"] == "a-3"
    assert not ran.losses
    (stray,) = ran.strays
    assert (stray.key, stray.kind, stray.phase, stray.exit) == ("a-3", "crash", "run", "signal SIGSEGV")
    assert stray.tail == "about to fall"
    assert stray.before == ("a-0", "a-1", "poison-2")


def test_the_keys_told_of_a_death_reach_back_over_batches_and_are_few() -> None:
    keys = [*(f"a-{i}" for i in range(20)), "poison-20", "a-21", "a-22"]
    (stray,) = Outcome(keys, Poisonous, batch=7).strays
    assert stray.key == "a-21"
    assert stray.before == (*(f"a-{i}" for i in range(13, 20)), "poison-20")


def test_what_leaves_every_worker_broken_is_told_each_time() -> None:
    ran = Outcome([f"{'poison' if i % 2 else 'a'}-{i}" for i in range(8)], Poisonous, batch=1)
    assert not ran.losses
    assert [stray.key for stray in ran.strays] == ["a-2", "a-4", "a-6"]


def test_a_key_that_crashes_a_used_worker_is_run_once_more_and_reported_once(tmp_path: Path) -> None:
    ran = Outcome(["ok-0", "ok-1", "segv-2", "ok-3"], Counting(tmp_path))
    assert list(ran.losses) == ["segv-2"]
    assert not ran.strays
    assert ran_in(tmp_path)["segv-2"] == 2


def test_a_key_that_crashes_a_fresh_worker_is_not_run_again(tmp_path: Path) -> None:
    ran = Outcome(["segv-0", "ok-1", "ok-2"], Counting(tmp_path))
    assert list(ran.losses) == ["segv-0"]
    assert ran_in(tmp_path)["segv-0"] == 1


def test_a_key_that_hangs_is_run_once_for_its_limit_is_its_cost(tmp_path: Path) -> None:
    ran = Outcome(["ok-0", "sleep-1", "ok-2"], Counting(tmp_path))
    assert ran.losses["sleep-1"].kind == "timeout"
    assert ran_in(tmp_path)["sleep-1"] == 1


def test_a_worker_that_dies_with_nothing_to_do_is_told() -> None:
    asked = ["pid-0"]

    def batches() -> Iterator[list[str]]:
        while True:
            yield [asked.pop()] if asked else []

    found = Pool(Witness, jobs=1, fork=True).run(batches())
    first = next(found)
    assert isinstance(first, tuple)
    os.kill(int(first[1]), signal.SIGKILL)
    stray = next(found)
    found.close()  # type: ignore[attr-defined]
    assert isinstance(stray, Stray)
    assert (stray.key, stray.exit, stray.before) == (None, "signal SIGKILL", ("pid-0",))


def test_many_faults_at_once_find_their_keys_and_leave_no_death_unexplained() -> None:
    dice = random.Random(7)
    faults = ["segv", "exit3", "abort", "garbage", "closeall", "raise", "orphan"]
    keys = [f"{dice.choice(faults) if dice.random() < 0.3 else 'ok'}-{i}" for i in range(150)]
    ran = Outcome(keys, jobs=3, batch=12)
    assert {key for key in keys if not key.startswith("ok")} == set(ran.losses)
    assert not ran.strays


def ran_in(folder: Path) -> Counter[str]:
    return Counter((folder / "ran").read_text().splitlines())


# A process for each key


@BOTH
def test_without_reuse_each_key_has_a_process_of_its_own(fork: bool) -> None:
    ran = Outcome([f"pid-{i}" for i in range(6)], Witness, batch=4, jobs=2, fork=fork, reuse=False)
    assert len(set(ran.records.values())) == 6


def test_without_reuse_no_key_suffers_from_another() -> None:
    ran = Outcome(["poison-0", "a-1", "poison-2", "a-3"], Poisonous, reuse=False)
    assert not ran.losses
    assert not ran.strays


# Where workers come from


def test_forked_workers_come_from_one_process_which_is_warm() -> None:
    ran = Outcome(["pid-0", "parent-1", "warm-2", "segv-3", "pid-4", "parent-5", "warm-6"], WarmFactory(), batch=1)
    facts = ran.records
    assert facts["pid-0"] != facts["pid-4"]
    assert facts["parent-1"] == facts["parent-5"] != str(os.getpid())
    assert facts["warm-2"] == facts["warm-6"] == f"[{facts['parent-1']}]"


def test_without_forking_nothing_is_warm() -> None:
    assert Outcome(["warm-0"], WarmFactory(), fork=False).records == {"warm-0": "[]"}


@pytest.mark.parametrize("fault", ["segv", "exit3", "sysexit", "raise", "kill"])
def test_what_fails_where_it_is_made_warm_fails_no_worker(fault: str) -> None:
    ran = Outcome(["ok-0", "segv-1", "ok-2"], WarmFactory(fault))
    assert list(ran.losses) == ["segv-1"]


def test_what_hangs_where_it_is_made_warm_is_given_up() -> None:
    ran = Outcome(["ok-0", "ok-1"], WarmFactory("hang"), limits=Limits(start_seconds=1.0))
    assert not ran.losses


@BOTH
@pytest.mark.parametrize("jobs", [1, 3])
def test_a_key_that_kills_the_process_it_comes_from_is_charged_and_its_neighbours_are_not(
    jobs: int, fork: bool
) -> None:
    keys = [f"{'killparent' if i == 20 else 'slow'}-{i}" for i in range(40)]
    ran = Outcome(keys, jobs=jobs, batch=4, fork=fork)
    assert list(ran.losses) == ["killparent-20"]


@BOTH
def test_a_run_outlives_the_process_that_its_workers_come_from(fork: bool) -> None:
    keys = ["parent-0", *(f"slow-{i}" for i in range(1, 30)), "parent-30"]
    came: list[str] = []
    parents: list[int] = []
    strays: list[Stray] = []
    for found in Pool(Witness, jobs=2, fork=fork).run([keys[:1], *([key] for key in keys[1:])]):
        assert not isinstance(found, Loss)
        if isinstance(found, Stray):
            strays.append(found)
            continue
        came.append(found[0])
        if found[0].startswith("parent"):
            parents.append(int(found[1]))
        if found[0] == "parent-0":
            os.kill(parents[0], signal.SIGKILL)
    assert sorted(came) == sorted(keys)
    assert parents[0] != parents[-1]
    assert strays
    assert {stray.exit for stray in strays} == {"killed together with the process that started it"}


@BOTH
def test_a_terminated_starting_process_takes_its_workers_along_and_is_replaced(fork: bool) -> None:
    keys = ["parent-0", "pid-1", *(f"slow-{i}" for i in range(2, 20)), "parent-20"]
    facts: dict[str, int] = {}
    for found in Pool(Witness, jobs=1, fork=fork).run([[key] for key in keys]):
        if isinstance(found, tuple) and found[1].isdigit():
            facts[found[0]] = int(found[1])
            if found[0] == "pid-1":
                os.kill(facts["parent-0"], signal.SIGTERM)
    assert facts["parent-0"] != facts["parent-20"]
    assert not Path(f"/proc/{facts['pid-1']}").exists()


@pytest.mark.slow
def test_a_stopped_starting_process_costs_seconds_and_no_key() -> None:
    keys = ["parent-0", "kill-1", *(f"ok-{i}" for i in range(2, 20))]
    kinds: dict[str, str] = {}
    started = time.monotonic()
    for found in Pool(Witness, jobs=1, fork=True).run([[key] for key in keys]):
        if isinstance(found, tuple):
            kinds[found[0]] = "answered"
            if found[0] == "parent-0":
                os.kill(int(found[1]), signal.SIGSTOP)
        elif isinstance(found, Loss):
            kinds[found.key] = found.kind
    assert kinds == dict.fromkeys(keys, "answered") | {"kill-1": "crash"}
    assert time.monotonic() - started < 45


# What stays behind


@BOTH
def test_nothing_stays_behind_when_the_parent_is_killed_at_any_time(fork: bool, tmp_path: Path) -> None:
    dice, mark = random.Random(11), uuid.uuid4().hex
    keys = [[f"{'child' if i % 9 == 5 else 'segv' if i % 7 == 3 else 'ok'}-{i}", f"slow-{i}"] for i in range(1000)]
    keys.insert(20, ["hang-0"])
    script = textwrap.dedent(f"""\
        import sys
        sys.path.append({str(TESTS)!r})
        from fakes.pool_tasks import Witness
        from opconform.runners.pool import Pool
        print("up", flush=True)
        for found in Pool(Witness, jobs=2, fork={fork}).run({keys}): pass
        """)
    before = shared_files()
    seen = 0
    for _ in range(10):  # twice ten, with the other way of starting workers
        with subprocess.Popen(
            [sys.executable, "-c", script],
            env={**os.environ, "TMPDIR": str(tmp_path), "OPCONFORM_TEST": mark},
            stdout=subprocess.PIPE,
        ) as parent:
            assert parent.stdout is not None
            parent.stdout.readline()
            time.sleep(dice.random())
            seen = max(seen, len(marked(mark)))
            parent.kill()
        end = time.monotonic() + 20
        while left := marked(mark):
            assert time.monotonic() < end, f"still running: {left}"
            time.sleep(0.02)
    assert seen >= 3, "some of them had a template and a worker when they were killed"
    assert list(tmp_path.iterdir()) == []
    assert {name for name in shared_files() - before if "opconform" in name} == set()


@BOTH
def test_a_stopped_starting_process_does_not_stay_behind_when_the_parent_is_killed(fork: bool, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    keys = [["parent-0"], *([f"child-{i}", f"slow-{i}"] for i in range(1, 1000))]
    script = textwrap.dedent(f"""\
        import sys
        sys.path.append({str(TESTS)!r})
        from fakes.pool_tasks import Witness
        from opconform.runners.pool import Pool
        for found in Pool(Witness, jobs=1, fork={fork}).run({keys}):
            print(found[1].decode(), flush=True)
        """)
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "TMPDIR": str(tmp_path), "OPCONFORM_TEST": mark},
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        os.kill(int(parent.stdout.readline()), signal.SIGSTOP)
        parent.kill()
    end = time.monotonic() + 20
    while left := marked(mark):
        assert time.monotonic() < end, f"still running: {left}"
        time.sleep(0.02)


def shared_files() -> set[str]:
    return {entry.name for entry in Path("/dev/shm").iterdir()}


def marked(mark: str) -> set[int]:
    """Return the processes that run with a mark in their environment; a zombie has none any more."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"OPCONFORM_TEST={mark}".encode() in environment:
                found.add(int(entry.name))
    return found


def test_a_forked_worker_is_a_session_of_its_own_with_this_process_s_surroundings() -> None:
    facts = Outcome(["pid-0", "session-1", "cwd-2", "path-3", "sigint-4", "stdin-5"], Witness).records
    assert facts["session-1"] == facts["pid-0"]
    assert facts["cwd-2"] == repr(str(Path.cwd()))
    assert facts["path-3"] == repr(sys.path)
    assert facts["sigint-4"] == "'SIG_IGN'"
    assert facts["stdin-5"] == "b''"


def test_forked_workers_leave_no_descriptor_and_no_child() -> None:
    descriptors, others = len(os.listdir("/proc/self/fd")), children()  # noqa: PTH208
    Outcome(["ok-0", "segv-1", "orphan-2", "garbage-3", "killparent-4", "ok-5"], jobs=2, batch=2)
    assert len(os.listdir("/proc/self/fd")) == descriptors  # noqa: PTH208
    assert children() <= others


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())

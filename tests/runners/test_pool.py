"""The worker pool: every key comes back once, whatever happens in a worker, and nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from typing import cast

import pytest
from fakes import pool_tasks
from fakes.pool_tasks import SOON, Faulty, TooMany, run, split
from fakes.sampled import slow

from opconform.runners.pool import Limits, Loss, Pool, Stray

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the fakes look into /proc"),
    pytest.mark.usefixtures("no_waiting_for_ever"),
]

# What each fault is reported as, and how the process ended.
ENDS = {
    "segv": ("crash", "signal SIGSEGV"),
    "abort": ("crash", "signal SIGABRT"),
    "kill": ("crash", "signal SIGKILL"),
    "exit0": ("crash", "exit code 0"),
    "exit3": ("crash", "exit code 3"),
    "sysexit": ("crash", "exit code 5"),
    "orphan": ("crash", "signal SIGKILL"),
    "sleep": ("timeout", "killed after 0.5 s"),
    "hang": ("timeout", "killed after 0.5 s"),
    "garbage": ("corrupt", "stray bytes"),
    "fakemessage": ("corrupt", "a damaged message"),
    "closeall": ("corrupt", "message channel"),
    "closehang": ("corrupt", "message channel"),
    "raise": ("raised", ""),
}
USUAL = ("segv", "exit0", "hang", "garbage", "closeall", "raise")


def around(key: str) -> list[str]:
    return [*(f"ok-{i}" for i in range(14)), key, *(f"ok-{i}" for i in range(15, 30))]


def test_more_records_than_there_are_keys_are_the_tasks_mistake() -> None:
    _, losses = run(["ok-1", "ok-2"], factory=TooMany)
    assert {loss.kind for loss in losses.values()} == {"raised"}
    assert "more than" in losses["ok-2"].tail


@pytest.mark.parametrize(("batch", "jobs"), [(1, 1), (7, 2), (100, 3)])
def test_each_key_comes_back_once_with_its_own_record(batch: int, jobs: int) -> None:
    keys = [f"ok-{i}" for i in range(50)]
    records, losses = run(keys, batch=batch, jobs=jobs)
    assert records == {key: key.encode() for key in keys}
    assert not losses


@pytest.mark.parametrize(
    ("fault", "fork"),
    [
        *(pytest.param(fault, True, id=f"{fault}-fork") for fault in ENDS),
        *(pytest.param(fault, False, id=f"{fault}-spawn") for fault in USUAL),
        *(slow(fault, False, id=f"{fault}-spawn") for fault in ENDS if fault not in USUAL),
    ],
)
def test_whatever_a_key_does_costs_that_key_only(fault: str, fork: bool) -> None:
    kind, end = ENDS[fault]
    limits = SOON if kind == "timeout" else Limits(run_seconds=10, prepare_seconds=10)
    _, losses = run(around(f"{fault}-14"), limits=limits, fork=fork)
    assert list(losses) == [f"{fault}-14"]
    assert losses[f"{fault}-14"].kind == kind
    assert end in losses[f"{fault}-14"].exit


def test_a_worker_that_closes_only_its_output_loses_nothing() -> None:
    _, losses = run(around("closeoutput-14"))
    assert not losses


@pytest.mark.parametrize("fork", [False, True], ids=["spawn", "fork"])
def test_a_flood_on_stdout_costs_its_key_only(fork: bool) -> None:
    _, losses = run(around("flood-14"), limits=Limits(output_bytes=1 << 20), fork=fork)
    assert [(loss.key, loss.kind, loss.phase) for loss in losses.values()] == [("flood-14", "flood", "run")]


def test_output_of_many_keys_together_is_no_flood() -> None:
    keys = [f"chat-{i}" for i in range(1000)]
    _, losses = run(keys, batch=100, limits=Limits(output_bytes=200_000))
    assert not losses


@pytest.mark.parametrize("fork", [False, True], ids=["spawn", "fork"])
def test_growing_over_the_memory_limit_costs_the_key_that_grows(fork: bool) -> None:
    _, losses = run(around("leak-14"), limits=Limits(memory_bytes=300 << 20), fork=fork)
    assert [(loss.key, loss.kind) for loss in losses.values()] == [("leak-14", "memory")]


@pytest.mark.slow
def test_what_many_keys_leave_behind_is_charged_to_none_of_them() -> None:
    _, losses = run([f"leaksome-{i}" for i in range(12)], limits=Limits(memory_bytes=150 << 20), strays=True)
    assert not losses


@pytest.mark.slow
def test_a_loss_names_the_phase_and_each_phase_has_its_own_limit() -> None:
    limits = Limits(run_seconds=30, prepare_seconds=0.3)
    _, losses = run(["ok-0", "p:hang-1", "p:segv-2", "segv-3"], limits=limits)
    assert {key: (loss.kind, loss.phase) for key, loss in losses.items()} == {
        "p:hang-1": ("timeout", "prepare"),
        "p:segv-2": ("crash", "prepare"),
        "segv-3": ("crash", "run"),
    }
    assert losses["p:hang-1"].exit == "killed after 0.3 s"
    assert losses["p:hang-1"].seconds >= 0.3


def test_a_loss_carries_the_last_lines_that_the_process_wrote() -> None:
    _, losses = run(["segv-0", "control-1"])
    assert losses["segv-0"].tail == "about to fall"
    assert losses["control-1"].tail == "\\x1b[31mred\\x07�"


def test_a_loss_does_not_carry_what_was_written_long_before_its_key() -> None:
    _, losses = run(["chat-0", *(f"slow-{i}" for i in range(8)), "abort-9"])
    assert losses["abort-9"].tail == ""


def test_an_exception_of_the_task_comes_with_its_traceback_and_the_worker_lives_on() -> None:
    records, losses = run(["pid-0", "raise-1", "pid-2"], factory=pool_tasks.Witness)
    assert losses["raise-1"].tail.endswith("LookupError: this is the task's own mistake")
    assert losses["raise-1"].phase == "run"
    assert records["pid-0"] == records["pid-2"]


@pytest.mark.slow
def test_a_death_between_keys_is_traced_by_running_the_keys_one_by_one() -> None:
    keys = ["a", "b", "die-1", "c", "stick-2", "d"]
    _, losses = run(keys, factory=pool_tasks.BetweenKeys)
    assert {key: (loss.kind, loss.phase) for key, loss in losses.items()} == {
        "die-1": ("crash", None),
        "stick-2": ("timeout", None),
    }


@pytest.mark.parametrize(("count", "lost"), [(2, "n-3"), (0, "n-0"), (5, "y")])
def test_a_task_that_miscounts_its_records_is_told_so(count: int, lost: str) -> None:
    keys = [f"n-{count}", "x", "y"]
    found = next(f for f in Pool(pool_tasks.Miscounts, jobs=1).run([keys]) if isinstance(f, Loss))
    assert found.key == (keys[count] if count < 3 else "y")
    assert found.kind == "raised"
    assert f"{count} records for 3 keys" in found.tail or "more than 3 records for 3 keys" in found.tail


def test_a_record_holds_any_bytes() -> None:
    keys = ["a", "b\nb", "\x00\t\n", ""]
    records, losses = run(keys, factory=pool_tasks.Newlines)
    assert records == {key: key.encode() for key in keys}
    assert not losses


def test_long_keys_and_large_batches_pass_whole() -> None:
    keys = [f"ok-{i}-{'x' * 3000}é" for i in range(1000)]
    records, _ = run(keys, batch=500)
    assert all(records[key] == key.encode() for key in keys)


def test_no_batches_start_no_worker() -> None:
    assert list(Pool(pool_tasks.RaisesAtStart(), jobs=2).run([[], []])) == []


def test_batches_are_taken_as_they_are_needed() -> None:
    taken: list[int] = []

    def batches() -> Iterator[list[str]]:
        for i in range(100):
            taken.append(i)
            yield [f"slow-{i}"]

    found = Pool(Faulty, jobs=2).run(batches())
    next(found)
    assert len(taken) < 12
    found.close()  # type: ignore[attr-defined]


def test_an_empty_batch_says_that_there_is_nothing_for_now_and_ends_nothing() -> None:
    keys = [f"ok-{i}" for i in range(6)]
    found = list(Pool(Faulty, jobs=2).run([[], keys[:2], [], [], keys[2:5], [], keys[5:], []]))
    assert sorted(found) == [(key, key.encode()) for key in keys]  # type: ignore[type-var]


def test_keys_can_be_asked_for_one_at_a_time_after_the_answer_to_the_last() -> None:
    asked = ["pid-0"]

    def batches() -> Iterator[list[str]]:
        while True:
            yield [asked.pop()] if asked else []

    found = Pool(pool_tasks.Witness, jobs=1).run(batches())
    answers = []
    for number in range(1, 6):
        key, record = cast("tuple[str, bytes]", next(found))
        answers.append((key, record))
        asked.append(f"pid-{number}")
    found.close()  # type: ignore[attr-defined]
    assert [key for key, _ in answers] == [f"pid-{i}" for i in range(5)]
    assert len({record for _, record in answers}) == 1, "one worker answers them all"


@pytest.mark.slow
def test_a_source_with_nothing_for_a_while_is_asked_again_now_and_then() -> None:
    begun = time.monotonic()
    asks = 0

    def batches() -> Iterator[list[str]]:
        nonlocal asks
        yield ["ok-0"]
        while time.monotonic() < begun + 1.5:
            asks += 1
            yield []
        yield ["ok-1"]

    assert len(list(Pool(Faulty, jobs=2).run(batches()))) == 2
    assert 1 < asks < 1000, "neither never nor without a pause"


@pytest.mark.slow
def test_keys_that_fail_at_random_come_back_once_each_with_the_right_kind() -> None:
    dice = random.Random(5)
    faults = [f for f in ENDS if f not in ("sleep", "closehang")]
    names = [dice.choice(faults) if dice.random() < 0.15 else "ok" for _ in range(200)]
    keys = [f"{'p:' if dice.random() < 0.3 else ''}{name}-{i}" for i, name in enumerate(names)]
    _, losses = run(keys, jobs=3, batch=8)
    expected = {key: ENDS[name][0] for key, name in zip(keys, names, strict=True) if name != "ok"}
    assert {key: loss.kind for key, loss in losses.items()} == expected


@pytest.mark.slow
def test_a_worker_killed_from_outside_costs_no_key_and_is_told() -> None:
    keys = ["pid-0", *(f"slow-{i}" for i in range(20))]
    found = Pool(pool_tasks.Witness, jobs=1).run([keys[:1], keys[1:11], keys[11:]])
    came: list[str] = []
    strays: list[Stray] = []
    for one in found:
        if isinstance(one, Loss | Stray):
            assert isinstance(one, Stray)
            strays.append(one)
        else:
            came.append(one[0])
            if one[0] == "pid-0":
                os.kill(int(one[1]), signal.SIGKILL)
    assert sorted(came) == sorted(keys)
    assert [stray.exit for stray in strays] == ["signal SIGKILL"]


@pytest.mark.slow
def test_a_caller_that_takes_its_time_makes_no_timeouts() -> None:
    keys = [f"{'slow' if i % 2 else 'chat'}-{i}" for i in range(10)]
    found = Pool(Faulty, jobs=1, limits=SOON).run(split(keys, 2))
    came = [next(found)]
    time.sleep(1.6)
    came += found
    assert not [one for one in came if isinstance(one, Loss)]
    assert len(came) == len(keys)


@pytest.mark.slow
def test_it_works_without_the_newer_system_calls_of_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.delattr(os, "pidfd_open")
    _, losses = run(["ok-0", "segv-1", "ok-2", "hang-3", "garbage-4", "ok-5"])
    assert {key: loss.kind for key, loss in losses.items()} == {
        "segv-1": "crash",
        "hang-3": "timeout",
        "garbage-4": "corrupt",
    }

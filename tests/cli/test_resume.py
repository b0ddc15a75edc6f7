"""Runs that are killed and go on: nothing is lost, nothing is there twice, and it is the same run or none."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import random
import re
import shutil
import time
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result
from fakes.here import run_command, run_here

from opconform.cli import main
from opconform.reports.folder import ResultsFolder
from opconform.specs.loader import default_root

V13 = "onnx/ReduceMean-13"
BACKEND = "python:fakes.backends:Unhurried"
UNSORTED = "uint32/3x2x2/axes=2,0/ramp/axes-unsorted"
GLOBS = ("uint32/*", UNSORTED, "uint32/3x2x2/axes=3/ramp/axis-too-large", "float16/?x?/axes=1/*", "float32/?x?/*")
SELECTED = (*(word for glob in GLOBS for word in ("--select", f"{V13}/{glob}")), "--draws", "5")
LINES = ("results.jsonl", "outputs.jsonl", "certificates.jsonl", "accuracy.jsonl")
WAIVER = (
    "- case: '{case}'\n  outcome: {outcome}\n  reason: known\n  link: https://example.org/9\n"
    "  owner: me\n  expires: 2999-01-01\n"
)


def call(*arguments: object) -> Result:
    with run_here():
        done = CliRunner().invoke(main, ["run", *map(str, arguments), "--jobs", "1"], catch_exceptions=False)
    assert "Traceback" not in done.output
    return done


@pytest.fixture(scope="session")
def waivers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that is true and one that is stale."""
    file = tmp_path_factory.mktemp("waivers") / "waivers.yaml"
    true = WAIVER.format(case=f"{V13}/{UNSORTED}", outcome="wrong-value")
    file.write_text(true + WAIVER.format(case=f"{V13}/float16/3x2x2/axes=1/uniform", outcome="crash"))
    return file


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, waivers: Path) -> Path:
    """The folder of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    assert call(BACKEND, *SELECTED, "--waivers", waivers, "--out", folder).exit_code == 1
    assert all((folder / name).exists() for name in LINES)
    return folder


def told(folder: Path) -> dict[str, Any]:
    """All that a run leaves behind, but for times and the order of lines."""
    found: dict[str, Any] = {}
    for name in LINES:
        lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
        found[name] = sorted(json.dumps({**line, "seconds": None}) for line in lines)
    run = json.loads((folder / "run.json").read_text())
    del run["started"], run["command"], run["machine"], run["options"]["jobs"]
    cases = ET.parse(folder / "junit.xml").getroot().iter("testcase")
    found["junit"] = sorted((str(c.get("name")), [child.tag for child in c]) for c in cases)
    return {**found, "run": _sorted(run)}


def _sorted(value: Any) -> Any:
    """Tables stand in the order in which results came."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return sorted(map(_sorted, value), key=json.dumps) if isinstance(value, list) else value


def torn(whole: Path, folder: Path, share: float = 0.5) -> Path:
    """Return the folder of a run that was killed when a share of its results was written."""
    shutil.copytree(whole, folder)
    (folder / "junit.xml").unlink()
    run = json.loads((folder / "run.json").read_text())
    kept = {k: v for k, v in run.items() if k not in ("exit_code", "figures", "waiver_problems")}
    (folder / "run.json").write_text(json.dumps({**kept, "status": "running"}))
    content = (folder / "results.jsonl").read_bytes()
    (folder / "results.jsonl").write_bytes(content[: int(len(content) * share)])
    return folder


# Going on


@pytest.mark.slow
@pytest.mark.parametrize("share", [0, 0.3, 0.999, 1])
def test_a_run_that_goes_on_ends_as_if_it_had_never_stopped(
    whole: Path, tmp_path: Path, waivers: Path, share: float
) -> None:
    done = call("--resume", torn(whole, tmp_path / "out", share), BACKEND, "--waivers", waivers)
    assert done.exit_code == 1
    assert told(tmp_path / "out") == told(whole)
    assert "28 failures of 1 kind in 83 results" in done.output


@pytest.mark.slow
def test_options_that_agree_may_be_given_again(whole: Path, tmp_path: Path, waivers: Path) -> None:
    elsewhere = shutil.copy(waivers, tmp_path / "the-same.yaml")
    again = (BACKEND, *SELECTED, "--seed", "0", "--quiet", "--waivers", elsewhere, "--junit", tmp_path / "j.xml")
    done = call("--resume", torn(whole, tmp_path / "out"), *again)
    assert done.exit_code == 1
    assert (tmp_path / "j.xml").read_bytes() == (tmp_path / "out" / "junit.xml").read_bytes()


@pytest.mark.slow
def test_a_finished_run_has_nothing_to_do_and_tells_the_same(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    shutil.copytree(whole, folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    done = call("--resume", folder, "--junit", tmp_path / "again.xml")
    assert done.exit_code == 1
    assert "non-conformant" in done.output
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert (tmp_path / "again.xml").read_bytes() == before["junit.xml"]


# Another run


def specs_with_a_change(folder: Path) -> Path:
    shutil.copytree(default_root(), folder / "specs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    file = folder / "specs" / "onnx" / "Mean.yaml"
    file.write_text(f"# another one\n{file.read_text()}")
    return folder / "specs"


CHANGED: dict[str, tuple[Callable[[Path], tuple[object, ...]], str]] = {
    "seed": (lambda _: ("--seed", 5), "seed: 0 when it began, 5 now"),
    "draws": (lambda _: ("--draws", 7), "draws: 5 when it began, 7 now"),
    "strength": (lambda _: ("--strength", "full"), "strength: 2 when it began, full now"),
    "selection": (lambda _: ("--select", "onnx/*"), r"select: .*uint32.* when it began, onnx/\* now"),
    "backend": (lambda _: ("onnx-reference",), f"backends: {BACKEND} when it began, onnx-reference now"),
    "shard": (lambda _: ("--shard", "1/2"), "shard: none when it began, 1/2 now"),
    "require": (lambda _: ("--require", "invalid=rejected"), "require: none when it began, invalid=rejected now"),
    "timeout": (lambda _: ("--timeout", 3), "timeout: 10.0 when it began, 3.0 now"),
    "outputs": (lambda _: ("--keep-outputs", "all"), "keep-outputs: failures when it began, all now"),
    "suite": (lambda folder: ("--specs", specs_with_a_change(folder)), r"suite digest: \w+ when it began, \w+ now"),
    "waivers": (
        lambda folder: ("--waivers", written(folder / "w.yaml", "[]\n")),
        r"waivers digest: \w+ when it began, \w+ now",
    ),
    "errata": (
        lambda folder: ("--errata", written(folder / "e.yaml", "[]\n")),
        r"errata digest: \w+ when it began, \w+ now",
    ),
    "arithmetic": (
        lambda folder: ("--arithmetic", written(folder / "a.yaml", "float32: {compute: tf32}\n")),
        r"arithmetic digest: none when it began, \w+ now",
    ),
    "out": (lambda folder: ("--out", folder / "other"), "leave it out with --resume"),
}


def written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


@pytest.mark.parametrize("what", CHANGED)
def test_what_would_make_it_another_run_is_refused_and_named(
    whole: Path, tmp_path: Path, waivers: Path, what: str
) -> None:
    folder = torn(whole, tmp_path / "out")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    arguments, words = CHANGED[what]
    named = () if what == "backend" else (BACKEND, "--waivers", waivers)
    done = call("--resume", folder, *named, *arguments(tmp_path))
    assert done.exit_code == 2
    assert re.search(words, done.output), done.output
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_another_version_of_the_backend_is_refused(
    whole: Path, tmp_path: Path, waivers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_VERSION", "1.1")
    done = call("--resume", torn(whole, tmp_path / "out"), BACKEND, "--waivers", waivers)
    assert done.exit_code == 2
    assert f"version of {BACKEND}: 1.0 when it began, 1.1 now" in done.output


@pytest.mark.slow
def test_a_folder_that_another_process_writes_to_is_refused(whole: Path, tmp_path: Path, waivers: Path) -> None:
    with ResultsFolder.resume(torn(whole, tmp_path / "out")):
        done = call("--resume", tmp_path / "out")
        assert (done.exit_code, done.output.count("\n")) == (2, 1)
        assert "another process is writing results there" in done.output
    assert call("--resume", tmp_path / "out", BACKEND, "--waivers", waivers).exit_code == 1


@pytest.mark.parametrize(
    ("given", "named"),
    [(("--waivers",), f"again: {BACKEND}"), ((BACKEND,), "again: --waivers "), ((), f"again: {BACKEND} --waivers ")],
)
def test_code_and_files_that_a_folder_alone_names_are_not_used(
    whole: Path, tmp_path: Path, waivers: Path, given: tuple[str, ...], named: str
) -> None:
    folder = torn(whole, tmp_path / "out")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    done = call("--resume", folder, *(word for one in given for word in (one, waivers)[: 1 + one.startswith("--")]))
    assert (done.exit_code, named in done.output) == (2, True), done.output
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_path_for_junit_is_taken_from_no_folder(whole: Path, tmp_path: Path, waivers: Path) -> None:
    folder = torn(whole, tmp_path / "out", 1)
    run = json.loads((folder / "run.json").read_text())
    run["options"]["junit"] = str(tmp_path / "elsewhere.xml")
    (folder / "run.json").write_text(json.dumps(run))
    assert call("--resume", folder, BACKEND, "--waivers", waivers).exit_code == 1
    assert not (tmp_path / "elsewhere.xml").exists()


@pytest.mark.parametrize("name", ["outputs.jsonl", "results.jsonl", "junit.xml", ".run.json.part"])
def test_a_folder_that_leads_elsewhere_is_refused(whole: Path, tmp_path: Path, waivers: Path, name: str) -> None:
    folder, mine = torn(whole, tmp_path / "out"), tmp_path / "mine"
    mine.write_text("precious, and no line")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(mine)
    done = call("--resume", folder, BACKEND, "--waivers", waivers)
    assert (done.exit_code, f"{name}: not a regular file" in done.output) == (2, True)
    assert mine.read_text() == "precious, and no line"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": -1}, "Expected `float` > 0.0"),
        ({"timeout": None}, "$.options.timeout"),
        ({"jobs": "many"}, "$.options.jobs"),
        ({"isolation": "none"}, "$.options.isolation"),
        ({"selection": {"globs": "*"}}, "$.options.selection.globs"),
        ({"selection": {"seed": -1}}, "$.options.selection.seed"),
        ({"backends": [3]}, "$.options.backends"),
    ],
)
def test_options_of_another_form_are_refused(
    whole: Path, tmp_path: Path, options: dict[str, object], said: str
) -> None:
    folder = torn(whole, tmp_path / "out")
    run = json.loads((folder / "run.json").read_text())
    run["options"] |= options
    (folder / "run.json").write_text(json.dumps(run))
    done = call("--resume", folder, BACKEND)
    assert (done.exit_code, said in done.output) == (2, True), done.output


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    assert "expected a results folder" in call("--resume", tmp_path).output
    (tmp_path / "run.json").write_text('{"status": "running"}')
    done = call("--resume", tmp_path)
    assert (done.exit_code, "names no options" in done.output) == (2, True)


def test_without_a_backend_and_a_run_to_go_on_with_there_is_nothing_to_do() -> None:
    done = call()
    assert (done.exit_code, "Missing argument 'BACKEND...'" in done.output) == (2, True)


def test_a_damaged_line_in_the_middle_is_told_and_nothing_is_touched(
    whole: Path, tmp_path: Path, waivers: Path
) -> None:
    for name in LINES:
        folder = torn(whole, tmp_path / name)
        lines = (whole / name).read_bytes().splitlines(keepends=True)
        damaged = b"".join([lines[0], lines[1][:20] + b"\n", *lines[2:]])
        (folder / name).write_bytes(damaged)
        done = call("--resume", folder, BACKEND, "--waivers", waivers)
        assert done.exit_code == 2
        assert f"{name}:2: " in done.output, done.output
        assert (folder / name).read_bytes() == damaged


# Killed


KILLS = 12


@pytest.fixture(scope="module")
def context() -> Any:
    """What starts processes that have all imported."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["fakes.here", "fakes.warmed"])
    with pytest.MonkeyPatch.context() as patch:  # the server takes no path from here, and skips what it does not find
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        forkserver.ensure_running()
    return found


def begin(folder: Path, waivers: Path) -> list[str]:
    return ["run", BACKEND, *SELECTED, "--waivers", str(waivers), "--jobs", "1", "--out", str(folder)]


def resume(folder: Path, waivers: Path) -> list[str]:
    return ["run", BACKEND, "--waivers", str(waivers), "--resume", str(folder)]


@pytest.mark.slow
def test_many_kills_lose_nothing_and_double_nothing(whole: Path, tmp_path: Path, waivers: Path, context: Any) -> None:
    for timed in (tmp_path / "first", tmp_path / "second"):  # before the first one, all is imported
        started = time.monotonic()
        assert run_until(context, begin(timed, waivers), 120) == 1
        longest = time.monotonic() - started
    chance = random.Random(7)
    kills = midway = 0
    for number in itertools.count():
        folder = tmp_path / f"out-{number}"
        while not finished(folder):
            begun = (folder / "run.json").exists()
            arguments = resume(folder, waivers) if begun else begin(folder, waivers)
            before = lines_of(folder)
            left = 1 - before / lines_of(whole) / 2  # what is written need not be done again, all the rest must be
            seconds = chance.uniform(0, longest * left) if kills < KILLS else 120
            upon = folder if kills % 2 and kills < KILLS else None  # each second one as soon as there is a result
            code = run_until(context, arguments, seconds, upon=upon)
            assert code in (None, 1), f"{arguments} exited {code}"
            kills += code is None
            midway += before < lines_of(folder) < lines_of(whole)
        assert told(folder) == told(whole)
        if kills >= KILLS:
            break
    assert midway, "kills fall into the run, too, and not into its start alone"


@pytest.mark.slow
def test_a_run_that_is_killed_with_its_workers_at_work_goes_on(
    whole: Path, tmp_path: Path, waivers: Path, context: Any
) -> None:
    arguments, folder = begin(tmp_path / "out", waivers), tmp_path / "out"
    for lines in (1, 30):
        process = context.Process(target=run_command, args=(arguments, True))
        process.start()
        end = time.monotonic() + 120
        while lines_of(folder) < lines:
            assert time.monotonic() < end
            time.sleep(0.005)
        process.kill()
        process.join()
        assert not finished(folder)
        arguments = resume(folder, waivers)
    assert run_until(context, arguments, 120, own_workers=True) == 1
    assert told(folder) == told(whole)


def run_until(
    context: Any, arguments: list[str], seconds: float, *, upon: Path | None = None, own_workers: bool = False
) -> int | None:
    """Run the command line, and kill it after so many seconds, or once it has added a result to a folder.

    Returns its exit code, None if it was killed.
    """
    before = lines_of(upon) if upon else 0
    process = context.Process(target=run_command, args=(arguments, own_workers))
    process.start()
    if upon:
        while process.exitcode is None and lines_of(upon) <= before:
            time.sleep(0.001)
    else:
        process.join(seconds)
    if process.exitcode is not None:
        return int(process.exitcode)
    process.kill()
    process.join()
    return None


def lines_of(folder: Path) -> int:
    file = folder / "results.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def finished(folder: Path) -> bool:
    run = folder / "run.json"
    return run.exists() and json.loads(run.read_text())["status"] == "finished"

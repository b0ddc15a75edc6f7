"""The nightly job as one shell script: two nights, of which the second tells what changed; what fails, and goes on."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "nightly.sh"
pytestmark = pytest.mark.slow

MODULE = """
import os
from fakes.backends import Right, WrongOnUint32

class First(WrongOnUint32 if os.environ.get("WORSE") else Right):
    pass

class Second(Right):
    pass
"""
FIRST, SECOND = (f"python:changing:{name}" for name in ("First", "Second"))
SELECT = "--select onnx/ReduceMean-13/uint32/2x300/* --jobs 1"
REAL = f"exec {shlex.quote(sys.executable)} -P -c 'from opconform.cli import main; main()' \"$@\""
STUB = """
printf '%s|' "$@" >> calls; echo >> calls
case "$1 $2" in
  'run lost') exit 2 ;;
  'run stopped') exit 130 ;;
  'run '*) for last; do :; done; [ "$2" = --resume ] || { mkdir -p "$4" && echo '{}' > "$4/run.json"; } ;;
esac
case "$2" in ours) exit 3 ;; wrong) exit 1 ;; esac
case "$1" in report) exit "${REPORT:-0}" ;; compare) exit "${COMPARE:-0}" ;; history) : > "${6:-db}" ;; esac
"""
"""Stands in for opconform where only the script's own doing is in question: keeps the calls."""


class Nights:
    """A folder in which nights are run."""

    def __init__(self, folder: Path, command: str = STUB) -> None:
        self.folder = folder
        (folder / "changing.py").write_text(MODULE)
        (folder / "opconform").write_text(f"#!/bin/sh\n{command}\n")
        (folder / "opconform").chmod(0o755)

    def run(self, night: str, *backends: str, **settings: str) -> subprocess.CompletedProcess[str]:
        own = {name: value for name, value in settings.items() if name.isupper()}
        told = {f"OPCONFORM_{name.upper()}": value for name, value in settings.items() if name not in own}
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OPCONFORM_")},
            "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(self.folder)]),
            "OPCONFORM_OUT": "nights of ours",
            "OPCONFORM_NIGHT": night,
            "OPCONFORM_RUN_OPTIONS": SELECT,
            **own,
            **told,
        }
        command = ["sh", str(SCRIPT), *backends]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def __getitem__(self, night: str) -> Path:
        return self.folder / "nights of ours" / night

    @property
    def calls(self) -> list[list[str]]:
        """What opconform was called with."""
        return [line.split("|")[:-1] for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Two nights of two backends; in the second night, the first backend is worse."""
    pytest.importorskip("duckdb")
    found = Nights(tmp_path_factory.mktemp("nights"), REAL)
    found.first = found.run("one", FIRST, SECOND)
    found.second = found.run("two", FIRST, SECOND, WORSE="1")
    return found


# With opconform


def test_the_first_night_has_nothing_to_compare_with_and_leaves_every_report(nights) -> None:
    assert nights.first.returncode == 0, nights.first.stdout + nights.first.stderr
    assert "the first night: nothing to compare with" in nights.first.stdout
    for name in ("report.txt", "report.json", "junit.xml", "summary.md"):
        assert (nights["one"] / name).stat().st_size
    assert len(list((nights["one"] / "badges").glob("*.svg"))) == 2
    told = json.loads((nights["one"] / "report.json").read_text())
    assert set(told["backends"]) == {FIRST, SECOND}
    assert told["figures"]["overall"]["correctness"] == 1


def test_the_second_night_tells_what_changed_and_fails_for_it(nights) -> None:
    assert nights.second.returncode == 1, nights.second.stdout + nights.second.stderr
    assert "uint32/2x300" in (nights["two"] / "changes.md").read_text()
    assert json.loads((nights["two"] / "changes.json").read_text())


def test_both_nights_are_in_the_history_and_the_site_is_there(nights) -> None:
    command = [str(nights.folder / "opconform"), "history", "show", "--db", str(nights["history.duckdb"]), "--json"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert '"one"' in shown
    assert '"two"' in shown
    assert (nights["site"] / "index.html").exists()


def test_a_night_that_is_run_again_is_not_compared_with_itself_and_puts_nothing_to_a_backend(nights) -> None:
    (nights.folder / "changing.py").rename(nights.folder / "gone.py")
    again = nights.run("two", FIRST, SECOND, steps="run compare", WORSE="1")
    assert again.returncode == 1, again.stdout + again.stderr
    assert "exit 1: non-conformant" in again.stdout


# Without


def test_a_backend_that_cannot_run_costs_its_own_results_alone(tmp_path) -> None:
    found = Nights(tmp_path)
    done = found.run("one", "lost", "ours", "good", steps="run report")
    assert done.returncode == 3
    assert "lost: left out" in done.stdout
    report = next(call for call in found.calls if call[0] == "report")
    assert [word.rpartition("/")[2] for word in report[1:3]] == ["good.shard-1-of-1", "ours.shard-1-of-1"]
    assert report[3] == "--partial"


def test_an_interruption_ends_the_night_and_the_next_call_goes_on(tmp_path) -> None:
    found = Nights(tmp_path)
    assert found.run("one", "good", "stopped", "other").returncode == 130
    assert [call[:2] for call in found.calls] == [["run", "good"], ["run", "stopped"]]
    assert found.run("one", "good", "other", steps="run").returncode == 0
    assert [call[:2] for call in found.calls[2:]] == [["run", "--resume"], ["run", "other"]]


def test_options_of_a_run_reach_it_with_their_globs_as_they_are(tmp_path) -> None:
    found = Nights(tmp_path)
    found.run("one", "good", steps="run", run_options="--select onnx/* --select *")
    [call] = found.calls
    assert call[-5:] == ["--select", "onnx/*", "--select", "*", "--quiet"]


def test_a_name_with_anything_in_it_is_one_backend_in_a_folder_of_its_own(tmp_path) -> None:
    found = Nights(tmp_path)
    names = ["cmd:./prog a", "cmd:./prog-a", "../up", "*"]
    assert found.run("one", *names, steps="run").returncode == 0
    assert [call[1] for call in found.calls] == names
    assert len({call[3] for call in found.calls}) == len(names)
    assert len(list((found["one"] / "results").glob("*/run.json"))) == len(names)


def test_one_job_runs_one_shard_and_another_puts_them_together(tmp_path) -> None:
    found = Nights(tmp_path)
    for shard in ("1", "2"):
        assert found.run("one", "good", shards="2", shard=shard, steps="run").returncode == 0
    assert [call[4:6] for call in found.calls] == [["--shard", "1/2"], ["--shard", "2/2"]]
    assert found.run("one", steps="report").returncode == 0
    report = found.calls[-1]
    assert [word.rpartition("/")[2] for word in report[1:3]] == ["good.shard-1-of-2", "good.shard-2-of-2"]


def test_all_shards_are_run_one_after_the_other(tmp_path) -> None:
    found = Nights(tmp_path)
    found.run("one", "good", "other", shards="2", steps="run")
    assert [(call[1], call[5]) for call in found.calls] == [
        *(("good", "1/2"), ("good", "2/2"), ("other", "1/2"), ("other", "2/2"))
    ]


def test_backends_may_stand_in_a_variable_one_a_line(tmp_path) -> None:
    found = Nights(tmp_path)
    assert found.run("one", backends="cmd:./prog a\ngood\n", steps="run").returncode == 0
    assert [call[1] for call in found.calls] == ["cmd:./prog a", "good"]


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"REPORT": "1"}, 0),
        ({"REPORT": "1", "fail_on": "failure"}, 1),
        ({"REPORT": "3"}, 3),
        ({"COMPARE": "1"}, 1),
        ({"COMPARE": "2"}, 3),
        ({"COMPARE": "1", "REPORT": "3"}, 3),
    ],
    ids=str,
)
def test_the_exit_code_is_the_highest_that_applies(tmp_path, settings, code) -> None:
    assert Nights(tmp_path).run("one", "wrong", previous="before", **settings).returncode == code


def test_never_failing_is_not_asked_of_compare(tmp_path) -> None:
    found = Nights(tmp_path)
    found.run("one", "good", previous="before", fail_on="never")
    assert "--fail-on" not in next(call for call in found.calls if call[0] == "compare")
    found.run("two", "good", previous="before", fail_on="change")
    assert found.calls[-4 + 1][-2:] == ["--fail-on", "change"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "name the backends"),
        ({"shards": "two"}, "OPCONFORM_SHARDS: two"),
        ({"shards": "0"}, "OPCONFORM_SHARDS: 0"),
        ({"fail_on": "always"}, "OPCONFORM_FAIL_ON: always"),
        ({"steps": "run rest"}, "there is no rest"),
    ],
    ids=str,
)
def test_wrong_settings_are_told_and_exit_2(tmp_path, settings, words) -> None:
    done = Nights(tmp_path).run("one", **settings)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_night_without_results_is_no_success(tmp_path) -> None:
    assert Nights(tmp_path).run("one", steps="report").returncode == 3


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_the_scripts_are_clean() -> None:
    scripts = [str(SCRIPT), *map(str, (ROOT / ".github").rglob("*.sh"))]
    subprocess.run(["shellcheck", *scripts], check=True)

"""The action for vendors and this repository's workflows: what they may do, what they pin, and what the action does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WORKFLOWS = {file.stem: yaml.safe_load(file.read_text()) for file in (ROOT / ".github" / "workflows").glob("*.yml")}
STUB = """#!/bin/sh
printf '%s|' "$@" >> calls; echo >> calls
case $1 in
  run) mkdir -p "$4"; [ "$CODE" = 2 ] || echo '{}' > "$4/run.json"; exit "$CODE" ;;
  report) echo '{"figures": {"overall": {"correctness": 0.75, "support": null}}}' > "$9"; echo page > "$7" ;;
esac
"""
INPUTS = {name: (told.get("default") or "") for name, told in ACTION["inputs"].items()}


def steps() -> list[dict[str, Any]]:
    found = [*ACTION["runs"]["steps"]]
    for workflow in WORKFLOWS.values():
        found += [step for job in workflow["jobs"].values() for step in job["steps"]]
    return found


def test_every_action_is_pinned_to_a_commit_and_says_its_version() -> None:
    files = [ROOT / "action.yml", *(ROOT / ".github" / "workflows").glob("*.yml")]
    used = [found for file in files for found in re.findall(r"uses: (.*)", file.read_text())]
    assert len(used) > 20
    assert [
        name for name in used if name != "./" and not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", name)
    ] == []
    assert len(set(used)) == len({name.partition("@")[0] for name in used})  # each in one version


def test_a_checkout_has_credentials_only_in_a_job_that_pushes_and_such_a_job_installs_nothing() -> None:
    for workflow in WORKFLOWS.values():
        for job in workflow["jobs"].values():
            writes = job.get("permissions", {}).get("contents") == "write"
            checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
            assert all(step["with"]["persist-credentials"] is writes for step in checkouts)
            if writes:
                script = "\n".join(step.get("run", "") for step in job["steps"])
                assert "git push" in script or "branch.sh" in script
                assert not re.search(r"\b(pip|npm|uv|opconform (?!-))\b", script)
                assert {step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step} <= {
                    "actions/checkout",
                    "actions/download-artifact",
                }


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_and_only_the_jobs_that_need_it_write(name) -> None:
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())
    writing = {job: told.get("permissions", {}) for job, told in workflow["jobs"].items() if "permissions" in told}
    expected = {
        "nightly": {"keep": {"contents": "write"}},
        "publish": {"publish": {"id-token": "write"}, "release": {"contents": "write"}},
    }
    assert writing == expected.get(name, {})


def test_no_input_and_no_event_is_put_into_a_script() -> None:
    """Anything may stand in them: a script gets them as environment variables."""
    for step in steps():
        assert set(re.findall(r"\$\{\{ *([\w.]+)", step.get("run", ""))) <= {"github.action_path"}


def test_what_the_workflow_gives_the_action_is_what_it_takes() -> None:
    given = [step["with"] for step in WORKFLOWS["nightly"]["jobs"]["run"]["steps"] if step.get("uses") == "./"]
    assert given
    assert all(set(inputs) <= set(INPUTS) for inputs in given)


def test_every_input_of_the_action_is_described_and_used() -> None:
    text = json.dumps(ACTION["runs"])
    for name, told in ACTION["inputs"].items():
        assert told["description"]
        assert f"inputs.{name} " in text or f"inputs.{name}}}" in text


def test_a_release_is_published_by_its_tag_alone_without_a_token_from_what_was_built_and_checked() -> None:
    jobs = WORKFLOWS["publish"]["jobs"]
    assert [step["run"] for step in jobs["build"]["steps"] if "run" in step] == ["bash .github/publish/build.sh"]
    publish = jobs["publish"]
    assert (publish["needs"], publish["if"]) == (["build", "try"], "github.event_name == 'push'")
    assert (jobs["release"]["needs"], jobs["release"]["if"]) == ("publish", "github.event_name == 'push'")
    assert not [step for step in publish["steps"] if "run" in step or "password" in step.get("with", {})]
    (downloaded,) = [step["with"] for step in publish["steps"] if "download" in step["uses"]]
    (built,) = [step["with"] for step in jobs["build"]["steps"] if "upload" in step.get("uses", "")]
    assert downloaded["name"] == built["name"]
    assert WORKFLOWS["publish"][True]["push"] == {"tags": ["v*.*.*"]}  # YAML 1.1 reads `on` as true


def test_a_workflow_calls_scripts_that_there_are() -> None:
    called = {name for step in steps() for name in re.findall(r"\.github/publish/[\w.]+", step.get("run", ""))}
    assert len(called) >= 7
    assert [name for name in called if not (ROOT / name).is_file()] == []


def test_a_release_is_built_from_requirements_that_all_have_hashes_and_no_others() -> None:
    publish = ROOT / ".github" / "publish"
    blocks = re.split(
        r"^(?=\w)", re.sub(r"^#.*\n", "", (publish / "requirements.txt").read_text(), flags=re.M), flags=re.M
    )
    locked = [block for block in blocks if block.strip()]
    assert all(re.match(r"[\w.-]+==\S+ ", block) and "--hash=sha256:" in block for block in locked)
    names = {re.match(r"[\w.-]+", block)[0] for block in locked}
    assert {re.match(r"[\w.-]+", line)[0] for line in (publish / "requirements.in").read_text().splitlines()} <= names
    build = (publish / "build.sh").read_text()
    assert len(re.findall(r"\bpip\b.* install", build)) == build.count("--require-hashes") == 1
    assert "--no-isolation" in build


def test_the_action_of_the_docs_is_given_what_it_takes() -> None:
    page = (ROOT / "docs" / "start-nightly.md").read_text(encoding="utf-8")
    printed = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(- uses.*?)```", page, re.DOTALL)]
    assert printed
    for used in printed:
        action = used[-1]
        assert re.fullmatch(r"\./opconform|[\w-]+/opconform@v\d+", action["uses"])
        assert action["uses"] != "./opconform" or used[0]["with"]["path"] == "opconform"
        assert set(action["with"]) <= set(INPUTS)


def test_an_issue_form_has_what_a_form_needs() -> None:
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = [yaml.safe_load(file.read_text()) for file in folder.glob("*.yml") if file.stem != "config"]
    assert len(forms) == 3
    for form in forms:
        assert form["name"]
        assert form["description"]
        asked = [field for field in form["body"] if field["type"] != "markdown"]
        assert {field["type"] for field in asked} <= {"input", "textarea", "dropdown"}
        assert all(field["attributes"]["label"] and "required" in field["validations"] for field in asked)
        ids = [field["id"] for field in asked]
        assert len(set(ids)) == len(ids)


def test_the_gate_is_what_ci_runs() -> None:
    assert [step["run"] for step in WORKFLOWS["ci"]["jobs"]["gate"]["steps"] if "run" in step] == ["bash .ci/run"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
class TestStep:
    """The action's own script, with a stand-in for opconform that keeps its calls."""

    def run(self, folder: Path, code: int = 0, **inputs: str) -> tuple[int, list[list[str]], dict[str, str], str]:
        (folder / "opconform").write_text(STUB)
        (folder / "opconform").chmod(0o755)
        given = {"backend": "mine", **{name.replace("_", "-"): value for name, value in inputs.items()}}
        told = {f"INPUT_{name.upper().replace('-', '_')}": value for name, value in {**INPUTS, **given}.items()}
        files = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", str(ROOT / ".github" / "action" / "run.sh")],
            cwd=folder,
            env={**os.environ, **told, **files, "PATH": path, "CODE": str(code)},
            check=False,
        )
        calls = [line.split("|")[:-1] for line in (folder / "calls").read_text().splitlines()]
        outputs = dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())
        summary = folder / "summary"
        return done.returncode, calls, outputs, summary.read_text() if summary.exists() else ""

    def test_inputs_become_options_and_stay_as_they_are(self, tmp_path) -> None:
        select = "onnx/ReduceMean-*\n$(touch hacked)\n"
        code, calls, _, _ = self.run(tmp_path, select=select, shard="1/2", options="--draws 3\n--seed 4", waivers="a b")
        assert code == 0
        selected = ["--select", "onnx/ReduceMean-*", "--select", "$(touch hacked)"]
        more = ["--shard", "1/2", "--waivers", "a b", "--draws", "3", "--seed", "4", "--quiet"]
        assert calls[0] == ["run", "mine", "--out", "opconform-out/results", *selected, *more]
        assert not (tmp_path / "hacked").exists()

    def test_outputs_and_summary_are_told(self, tmp_path) -> None:
        code, _, outputs, summary = self.run(tmp_path, 1, backend="cmd:./a b", shard="1/2", fail_on="never")
        assert code == 0
        assert outputs == {
            "exit-code": "1",
            "correctness": "0.75",
            "support": "",
            "results": "opconform-out/results",
            "artifact": "opconform-cmd-.-a-b-1-2",
        }
        assert summary == "page\n"

    @pytest.mark.parametrize(
        ("fail_on", "code", "ends"),
        [("failure", 1, 1), ("error", 1, 0), ("error", 3, 3), ("never", 3, 0), ("whatever", 0, 2)],
    )
    def test_what_fails_the_step_is_chosen(self, tmp_path, fail_on, code, ends) -> None:
        assert self.run(tmp_path, code, fail_on=fail_on)[0] == ends

    def test_a_run_that_did_not_begin_has_no_report(self, tmp_path) -> None:
        code, calls, outputs, summary = self.run(tmp_path, 2)
        assert (code, len(calls), outputs["correctness"], summary) == (2, 1, "", "")

"""What is published: a wheel and a source distribution that are whole, of one version, which the tag has to be."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

import opconform

ROOT = Path(__file__).parents[1]
PUBLISH = ROOT / ".github" / "publish"
BUILD = PUBLISH / "build.sh"
LINK = re.compile(r"(!?)\[([^]]*)\]\(([^()\s]+)\)")


def built(kind: str, source: Path, out: Path) -> Path:
    """Return what the build backend makes of a checkout."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    ran = subprocess.run([sys.executable, "-c", code, out], cwd=source, capture_output=True, text=True, check=True)
    return out / ran.stdout.split()[-1]


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout without git: no tag and no history says which version it is."""
    ignored = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "build", "dist", "*.egg-info", ".venv")
    return Path(shutil.copytree(ROOT, tmp_path / "checkout", ignore=ignored))


def test_the_version_is_one_wherever_it_is_told() -> None:
    assert importlib.metadata.version("opconform") == opconform.__version__


@pytest.mark.slow
def test_the_wheel_of_the_source_distribution_is_that_of_the_checkout(checkout: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    archive = built("sdist", checkout, out)
    assert archive.name == f"opconform-{opconform.__version__}.tar.gz"
    with tarfile.open(archive) as files:
        files.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    (out / "again").mkdir()
    wheel = content(built("wheel", checkout, out))
    assert content(built("wheel", unpacked, out / "again")) == wheel
    for folder in ("cases", "specs", "generators", "runners", "reports", "cli"):
        there = {f"opconform/{file.relative_to(ROOT)}" for file in (ROOT / folder).rglob("*.py")}
        assert there <= wheel.keys()
    assert {"opconform/specs/onnx/Add.yaml", "opconform/generators/suites/smoke.txt", "opconform/py.typed"} <= set(
        wheel
    )
    assert any(name.startswith("opconform/cases/manifests/") for name in wheel)


@pytest.mark.parametrize("name", ["v9.9.9", opconform.__version__, ""])
def test_a_tag_that_is_not_the_version_is_refused_before_anything_is_built(name: str) -> None:
    environment = {**os.environ, "REF_TYPE": "tag", "REF_NAME": name}
    ran = subprocess.run(["bash", BUILD], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert f"expected the tag v{opconform.__version__}" in ran.stderr


def long_description(url: str) -> str:
    """Return what an index shows of README.md, of version 1.2.3."""
    command = ["bash", PUBLISH / "readme.sh", "1.2.3", url]
    with (ROOT / "README.md").open("rb") as readme:
        return subprocess.run(command, stdin=readme, capture_output=True, text=True, check=True).stdout


def test_every_link_and_picture_of_the_long_description_leads_to_the_repository_at_its_tag() -> None:
    readme, url = (ROOT / "README.md").read_text(encoding="utf-8"), "https://example.org/owner/opconform"
    text, found = long_description(url), LINK.findall(readme)
    assert {picture for picture, _, _ in found} == {"", "!"}
    for picture, words, target in found:
        absolute = target if ":" in target else f"{url}/{'raw' if picture else 'blob'}/v1.2.3/{target}"
        assert f"{picture}[{words}]({absolute})" in text
    assert LINK.sub("", text) == LINK.sub("", readme)


def test_without_a_repository_the_long_description_has_no_link_that_leads_nowhere() -> None:
    readme, text = (ROOT / "README.md").read_text(encoding="utf-8"), long_description("")
    assert all(":" in target for _, _, target in LINK.findall(text))
    assert all(picture or words in text for picture, words, _ in LINK.findall(readme))


def test_a_tag_is_refused_as_long_as_the_package_does_not_say_where_its_repository_is() -> None:
    if "[project.urls]" in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        pytest.skip("it says so")
    environment = {**os.environ, "REF_TYPE": "tag", "REF_NAME": f"v{opconform.__version__}"}
    ran = subprocess.run(["bash", BUILD], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, "first_release.py" in ran.stderr) == (2, True)


def switched(checkout: Path, url: str = "https://github.com/someone/op-conform") -> subprocess.CompletedProcess[str]:
    script = checkout / ".github" / "publish" / "first_release.py"
    return subprocess.run([sys.executable, script, url], capture_output=True, text=True, check=False)


def test_the_switch_of_the_first_release_puts_the_package_first_and_the_address_everywhere(checkout: Path) -> None:
    assert switched(checkout).returncode == 0
    pages = {
        file.name: file.read_text(encoding="utf-8") for file in [*checkout.glob("*.md"), *checkout.glob("docs/*.md")]
    }
    assert not [name for name, text in pages.items() if "OWNER" in text and name != "releasing.md"]
    assert not [
        name for name, text in pages.items() if "first release -->" in text or "from the first release on" in text
    ]
    for name in ("README.md", "start-vendor.md", "start-kernel-or-model.md", "start-nightly.md", "start-cpp.md"):
        assert re.search(r"pip install .*", pages[name])[0].startswith(
            ("pip install opconform", "pip install 'opconform[")
        )
    assert "<!-- run-the-suite -->\n```console\n$ python3 -m venv" in pages["README.md"]
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Repository"] == "https://github.com/someone/op-conform"
    citation = yaml.safe_load((checkout / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == project["urls"]["Repository"]
    links = yaml.safe_load((checkout / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text(encoding="utf-8"))
    assert links["contact_links"][0]["url"].startswith(project["urls"]["Repository"])
    assert switched(checkout).stdout == ""


def test_the_switch_takes_nothing_for_an_address_that_is_none(checkout: Path) -> None:
    for url in ("", "someone/opconform", "https://github.com/someone", "https://github.com/a/b' c"):
        ran = switched(checkout, url)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert "https://github.com/OWNER/opconform" in ran.stderr


def test_the_citation_has_the_version_and_the_license_of_the_package() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["cff-version"] == "1.2.0"
    assert (citation["version"], citation["license"]) == (opconform.__version__, project["license"])
    assert citation["authors"] == project["authors"]
    assert {"message", "title", "type"} <= citation.keys()


def test_the_notes_of_a_release_are_the_section_of_its_version_and_one_without_a_section_is_refused() -> None:
    log = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [1.2.3] - 2027-01-02\n\n- this\n\n## [1.2.2]\n\n- old\n"
    for version, code, notes in (("1.2.3", 0, "- this"), ("1.2.2", 0, "- old"), ("1.2.4", 2, ""), ("1.2", 2, "")):
        command = ["bash", PUBLISH / "notes.sh", version]
        ran = subprocess.run(command, input=log, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout.strip()) == (code, notes)


class Repository:
    """A clone that can push, and what its origin has."""

    def __init__(self, folder: Path) -> None:
        self.origin, self.clone = folder / "origin", folder / "clone"
        git("init", "--quiet", "--bare", self.origin)
        git("init", "--quiet", self.clone)
        git("remote", "add", "origin", self.origin, cwd=self.clone)

    def put(self, branch: str, *pairs: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", PUBLISH / "branch.sh", branch, "what it is", *pairs]
        return subprocess.run(command, cwd=self.clone, capture_output=True, text=True, check=False)

    def files(self, branch: str) -> list[str]:
        return git("ls-tree", "-r", "--name-only", branch, cwd=self.origin).splitlines()

    def text(self, branch: str, file: str) -> str:
        return git("show", f"{branch}:{file}", cwd=self.origin)


def git(*arguments: str | Path, cwd: Path | None = None) -> str:
    return subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.mark.slow
def test_a_branch_of_results_has_one_commit_and_keeps_what_is_not_replaced(
    repository: Repository, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    (site / "css").mkdir(parents=True)
    for night in ("first", "second"):
        (site / "css" / f"{night}.css").touch()
        (site / "index.html").write_text(night)
        (tmp_path / "night.db").write_text(night)
        assert repository.put("history", "opconform.db=../night.db").returncode == 0
        assert repository.put("pages", f"results/{night}=../site", "results/latest=../site").returncode == 0
        (site / "css" / f"{night}.css").unlink()
    assert repository.files("history") == ["opconform.db"]
    assert repository.text("history", "opconform.db") == "second"
    assert git("rev-list", "--count", "pages", cwd=repository.origin).strip() == "1"
    assert repository.text("pages", "results/first/index.html") == "first"
    found = {name for name in repository.files("pages") if name.startswith("results/latest/")}
    assert found == {"results/latest/index.html", "results/latest/css/second.css"}


@pytest.mark.slow
def test_the_pages_lead_to_the_newest_version_and_list_all(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.html").write_text("documentation")
    for version in ("0.9.0", "0.10.0", "0.2.1"):
        assert repository.put("pages", f"{version}=../docs", f"results/{version}=../docs").returncode == 0
    listed = json.loads(repository.text("pages", "versions.json"))
    assert [one["version"] for one in listed] == ["0.10.0", "0.9.0", "0.2.1"]
    assert "url=0.10.0/" in repository.text("pages", "index.html")
    assert "url=../0.10.0/" in repository.text("pages", "latest/index.html")
    assert ".nojekyll" in repository.files("pages")


def test_a_branch_that_cannot_be_read_stays_as_it_is(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "night.db").write_text("night")
    assert repository.put("history", "opconform.db=../night.db").returncode == 0
    git("remote", "set-url", "origin", tmp_path / "nowhere", cwd=repository.clone)
    assert repository.put("history", "opconform.db=../night.db").returncode != 0
    assert repository.put("history", "opconform.db=../missing").returncode != 0
    assert repository.text("history", "opconform.db") == "night"


@pytest.fixture
def environment(checkout: Path, tmp_path: Path) -> Path:
    """An environment with the wheel of the checkout, and the libraries of this one, but not its opconform."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/*/site-packages")
    libraries = [path for path in sys.path if path.endswith("site-packages")]  # paths: no editable install in them
    (packages / "libraries.pth").write_text("\n".join(libraries) + "\n")
    wheel = built("wheel", checkout, tmp_path)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", wheel], check=True)
    return folder


@pytest.mark.slow
def test_the_quick_starts_work_with_the_wheel_alone(checkout: Path, request: pytest.FixtureRequest) -> None:
    for library in ("onnxruntime", "duckdb"):
        pytest.importorskip(library)
    if output := os.environ.get("OPCONFORM_QUICK_STARTS"):  # the gate has run them, and left what they printed
        printed = Path(output).read_text(encoding="utf-8")
    else:
        script = checkout / ".github" / "publish" / "quick_starts.py"
        command = [sys.executable, script, "--environment", request.getfixturevalue("environment")]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        printed = ran.stdout
    assert printed.count("== start-") == 4


def test_the_switch_of_the_first_release_changes_no_command_of_the_quick_starts(checkout: Path) -> None:
    pages = runpy.run_path(str(PUBLISH / "quick_starts.py"))
    wheels = (None, checkout / "opconform-1.2.3-py3-none-any.whl")

    def texts() -> list[str]:
        return [(checkout / "docs" / name).read_text(encoding="utf-8") for name in pages["PAGES"]]

    def commands() -> list[list[str]]:
        scripts = [pages["script"](text, wheel) for text in texts() for wheel in wheels]
        return [[line for line in script.splitlines() if line] for script in scripts]

    before, said = texts(), commands()
    assert switched(checkout).returncode == 0
    assert all(old != new for old, new in zip(before, texts(), strict=True))
    assert commands() == said


@pytest.mark.slow
def test_a_release_s_pages_and_cases_are_made_by_the_wheel(checkout: Path, environment: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    (environment / "bin" / "mkdocs").write_text('#!/bin/sh\nmkdir -p "$5" && echo "$*" > "$5/index.html"\n')
    (environment / "bin" / "mkdocs").chmod(0o755)
    some = ["--select", "onnx/Relu-14/float32/*"]
    commands = environment / "bin"
    subprocess.run(["bash", PUBLISH / "pages.sh", tmp_path / "public", commands, *some], cwd=checkout, check=True)
    subprocess.run(["bash", PUBLISH / "assets.sh", tmp_path / "assets", commands / "opconform", *some], check=True)
    assert "build --strict" in (tmp_path / "public" / "docs" / "index.html").read_text()
    assert "onnx/Relu-14" in "".join(file.read_text() for file in (tmp_path / "public" / "results").glob("*.html"))
    assert {file.suffix for file in (tmp_path / "public" / "results" / "badges").iterdir()} == {".svg", ".json"}
    for kind in ("onnx", "npz"):
        told = (tmp_path / "assets" / f"opconform-cases-{kind}.txt").read_text()
        corpus = tmp_path / "assets" / f"opconform-cases-{kind}.zip"
        done = subprocess.run([commands / "opconform", "verify", corpus], capture_output=True, text=True, check=True)
        (digest,) = re.findall(r"digest (\w{64})", told)
        assert digest in done.stdout


def test_every_release_has_its_heading_in_the_changelog_and_in_the_list_of_changed_expectations() -> None:
    """`opconform dev lock` reads in the second which version was released last."""
    files = (ROOT / "CHANGELOG.md", ROOT / "docs" / "expectation-changes.md")
    log, changes = (re.findall(r"^## .*", file.read_text(encoding="utf-8"), re.MULTILINE) for file in files)
    assert log == changes
    assert log[0] == "## [Unreleased]"

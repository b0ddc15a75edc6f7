"""The pages say what is so: their files are written, their commands run, and the output is what is printed."""

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from fakes.here import run_here

from opconform.cases.corpus import descriptor
from opconform.cases.results import Outcome
from opconform.cases.short import long_id, short_id
from opconform.cli import main, submission
from opconform.generators.primitives import ROOMS
from opconform.generators.source import GeneratedCases
from opconform.reports.history import database
from opconform.runners.backends import onednn_library
from opconform.runners.judging.terms import silences
from opconform.runners.programs import command
from opconform.runners.registry import known_backends

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
JUDGING = (ROOT / "docs" / "judging.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = ("cases", "specs", "generators", "runners", "reports", "cli", "__init__.py", "__main__.py")


class Shown(NamedTuple):
    """A command of a page and the output under it."""

    command: str
    output: str


Act = Callable[[Path], None]
Shell = Callable[[str], tuple[int, str]]


def steps(page: str) -> Iterator[Shown | Act]:
    """Yield what a reader of the page does, in order: files written, lines changed, commands run."""
    for match in re.finditer(r"```(\w+)\n(.*?)```", page, re.DOTALL):
        language, block = match[1], match[2]
        if language == "console":
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                yield Shown(command, output)
        elif language == "diff":
            yield _changing(re.findall(r"`([\w/]+\.py)`", page[: match.start()])[-1], block)
        elif named := re.match(r"# (append to )?([\w/]+\.(?:py|yaml))\n", block):
            yield _writing(named[2], block[named.end() :], append=bool(named[1]))


def _writing(name: str, text: str, *, append: bool) -> Act:
    def act(folder: Path) -> None:
        before = (folder / name).read_text(encoding="utf-8") + "\n\n" if append else ""
        (folder / name).write_text(before + text, encoding="utf-8")

    return act


def _changing(name: str, diff: str) -> Act:
    def act(folder: Path) -> None:
        old, new = (re.findall(rf"^\{sign}(.*\n)", diff, re.MULTILINE) for sign in "-+")
        text = (folder / name).read_text(encoding="utf-8")
        assert text.count("".join(old)) == 1, f"{name} has not the lines that the page changes"
        (folder / name).write_text(text.replace("".join(old), "".join(new)), encoding="utf-8")

    return act


def prints(shown: str, output: str) -> bool:
    """Whether output is as shown; `…` stands for any lines where it is alone, else for any part of a line."""
    lines = [r"(?:.*\n)*?" if s == "…" else re.escape(s).replace("…", ".*") + r"\n" for s in _lines(shown)]
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in _lines(output))) is not None


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def follow(page: str, folder: Path, shell: Shell) -> int:
    """Do what the page says in `folder`; returns how many commands ran."""
    ran = 0
    for step in steps(page):
        if not isinstance(step, Shown):
            step(folder)
            continue
        code, output = shell(step.command)
        assert prints(step.output, output), f"{step.command} printed\n{output}\nand the page shows\n{step.output}"
        assert (code == 2) if step.output.startswith("opconform:") else code in (0, 1), f"{step.command} exits {code}"
        ran += 1
    return ran


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty current folder, from which modules can be imported, and a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def in_process(command: str) -> tuple[int, str]:
    """Run `opconform` here, and Python in a process of its own."""
    program, *arguments = shlex.split(command)
    if program == "opconform":
        done = CliRunner().invoke(main, arguments)
        return done.exit_code, done.output
    assert program == "python"
    ran = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.slow
def test_the_commands_and_snippets_of_the_page_on_judging_print_what_it_shows(folder) -> None:
    assert follow(JUDGING, folder, in_process) == 7


@pytest.mark.slow
def test_the_commands_of_the_page_on_accuracy_print_what_it_shows(folder) -> None:
    assert follow((ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8"), folder, in_process) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("page", "commands"), [("start-vendor.md", 3), ("start-contributor.md", 2)])
def test_the_commands_of_the_quick_starts_print_what_they_show(page: str, commands: int, folder) -> None:
    assert follow((ROOT / "docs" / page).read_text(encoding="utf-8"), folder, in_process) == commands


def test_a_case_passes_the_modules_of_the_quick_start_in_their_order(folder) -> None:
    page = (ROOT / "docs" / "start-contributor.md").read_text(encoding="utf-8")
    way = re.findall(r"^\| `(\w+/[\w/]+\.py)` \| `([\w.]+)`", page, re.MULTILINE)
    assert len(way) == 15
    wanted = {(str(ROOT / module), function): (module, function) for module, function in way}
    entered: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        place = wanted.get((frame.f_code.co_filename, frame.f_code.co_qualname))
        if event == "call" and place is not None:
            entered.setdefault(place)

    with run_here():
        threading.setprofile(note)  # the plan is made by a thread
        sys.setprofile(note)
        try:
            status, output = in_process(
                "opconform run onnxruntime --quiet --out out --select 'onnx/Relu-14/float32/*/ramp'"
            )
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert status == 0, output
    assert list(entered) == way


@pytest.mark.slow
def test_a_required_option_fails_the_run(folder) -> None:
    for step in steps(JUDGING):
        if not isinstance(step, Shown):
            step(folder)
        elif "--require" in step.command:
            assert in_process(step.command)[0] == 1
            return
    pytest.fail("the page shows no --require")


def checkout_shell(checkout: Path, commands: Path) -> Shell:
    """Return a shell in a copy of the checkout, with an `opconform` that is the copy's."""
    commands.mkdir()
    (commands / "opconform").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c "from opconform.cli import main; main()" "$@"\n'
    )
    (commands / "opconform").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(checkout.parent),
        "PYTHONUTF8": "1",
    }

    def shell(command: str) -> tuple[int, str]:
        ran = subprocess.run(
            command,
            shell=True,
            cwd=checkout,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        return ran.returncode, ran.stdout

    return shell


@pytest.fixture
def checkout(folder) -> Path:
    """A copy of the package in the current folder, with the spec files of few operators: each audit plans them all."""
    checkout = folder / "opconform"
    checkout.mkdir()
    for name in PACKAGE:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, checkout / name)
    for file in (checkout / "specs").glob("*/*.yaml"):
        if file.parent.name != "families" and not file.stem.startswith("Reduce"):
            file.unlink()
    return checkout


@pytest.mark.slow
def test_an_operator_is_added_as_contributing_says(folder, checkout) -> None:
    (checkout / "specs" / "onnx" / "ReduceSum.yaml").unlink()
    assert follow(CONTRIBUTING, checkout, checkout_shell(checkout, folder / "bin")) == 7


@pytest.mark.slow
def test_operators_of_each_kind_are_added_as_their_page_says(folder, checkout) -> None:
    pytest.importorskip("onnxruntime")
    page = (ROOT / "docs" / "adding-an-operator.md").read_text(encoding="utf-8")
    if not onednn_library.is_installed():
        pytest.skip("oneDNN is not installed")
    added = re.findall(r"^operator: (\w+/\w+)$", page, re.MULTILINE)
    for name in added:
        (checkout / "specs" / f"{name}.yaml").unlink(missing_ok=True)
    assert follow(page, checkout, checkout_shell(checkout, folder / "bin")) == len(added) == 7


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the tables under a heading, without their heads."""
    section = page.split(f"\n{heading}\n", 1)[1].split("\n## ", 1)[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| ") and not line.startswith("| ---")
    ]


def test_the_page_on_judging_names_silences_with_their_options_and_all_of_the_means() -> None:
    section = JUDGING.split("\n### A narrow accumulator", 1)[0]
    told = {
        cells[0].strip("`"): set(re.findall(r"`([\w-]+)`", cells[1]))
        for cells in rows(section, "## Silences")
        if cells[0].startswith("`")
    }
    library = GeneratedCases().library
    every = {silence: set(options) for silence, options in silences(library).items()}
    of_means: dict[str, set[str]] = {}  # other operators may give a silence of this name more options
    for spec in library.specs():
        for version in spec.versions.values() if spec.name in ("Mean", "ReduceMean") else ():
            for silence in version.silences.values():
                of_means.setdefault(silence.id, set()).update(silence.options)
    assert of_means
    assert {silence: of_means.get(silence, every.get(silence)) for silence in {*told, *of_means}} == told


def test_the_page_on_judging_has_the_budget_of_every_function() -> None:
    told = {
        name: (int(cells[1]), int(cells[2]))
        for cells in rows(JUDGING, "### What each primitive adds")
        if len(cells) == 3
        for name in re.findall(r"`(\w+)`", cells[0])
    }
    budgets = {name: re.search(r": (\d+) ulp \(half: (\d+)\)", room.text) for name, room in ROOMS.items()}
    assert told == {name: (int(found[1]), int(found[2])) for name, found in budgets.items() if found}


def test_the_page_on_judging_names_every_outcome() -> None:
    told = {cells[0].strip("`") for cells in rows(JUDGING, "## Outcomes") if cells[0].startswith("`")}
    assert told == {str(outcome) for outcome in Outcome}


def test_every_dependency_has_its_line() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    listed = [
        *project["project"]["dependencies"],
        *project["build-system"]["requires"],
        *(d for e in extras for d in e),
    ]
    names = {re.match(r"[\w.-]+", requirement)[0] for requirement in listed} - {"opconform"}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([\w.-]+)` \|", page, re.MULTILINE)) == names


def requirement_names() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"], *(d for extra in project["optional-dependencies"].values() for d in extra)]
    return {re.match(r"[\w.-]+", requirement)[0] for requirement in listed} - {"opconform"}


def test_every_hint_what_to_install_names_a_requirement_that_can_be_had_without_this_package() -> None:
    sources = [file for name in PACKAGE for file in [ROOT / name, *(ROOT / name).glob("**/*.py")] if file.is_file()]
    texts = [file.read_text(encoding="utf-8") for file in [*sources, *PAGES]]
    then = re.compile(r"<!-- from the first release on\n.*?-->", re.DOTALL)
    published = "[project.urls]" in (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    assert published or not [text for text in texts if "pip install 'opconform" in then.sub("", text)]
    hints = [one.install for one in known_backends() if one.install]
    hints += [hint for text in texts for hint in re.findall(r"not installed: (pip install [\w-]+)", text)]
    assert len(hints) > 7
    assert {hint.removeprefix("pip install ") for hint in hints} <= requirement_names()


COVERAGE = {"onnx": "coverage.md", "openvino": "coverage-openvino.md", "onednn": "coverage-onednn.md"}


@pytest.mark.slow
@pytest.mark.parametrize("standard", COVERAGE)
def test_the_page_on_coverage_is_what_the_audit_writes(standard: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "generated" / COVERAGE[standard]).read_text(encoding="utf-8")
    made = Path(os.environ.get("OPCONFORM_COVERAGE", tmp_path)) / COVERAGE[standard]  # the gate has made it already
    if not made.exists():
        assert CliRunner().invoke(main, ["dev", "audit", standard, "--markdown", str(made)]).exit_code == 0
    written = made.read_text(encoding="utf-8")
    against = r"compared with (.+?)\. \[Audit"
    if re.search(against, page)[1] != re.search(against, written)[1]:
        pytest.skip("the page was written with another release of the library")
    assert written == page


@pytest.mark.parametrize("page", COVERAGE.values())
def test_what_has_no_case_is_listed_with_its_operator(page: str) -> None:
    gaps = (ROOT / "docs" / "generated" / page).read_text(encoding="utf-8").partition("## Without a case\n")[2]
    listed = [line for line in gaps.splitlines() if line.startswith("- ")]
    assert listed or gaps.strip() == "Nothing."
    assert not [line for line in listed if not re.match(r"- [A-Z]\w+ \w", line)]


def test_the_readme_says_the_figures_of_the_page_on_coverage() -> None:
    page = (ROOT / "docs" / "generated" / "coverage.md").read_text(encoding="utf-8")
    covered, total = re.findall(r"\d+", re.search(r"^\| operator versions \|.*\| (.*) \|$", page, re.MULTILINE)[1])[:2]
    release = re.search(r"schemas of onnx (\d+\.\d+)", page)[1]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert covered == total
    assert f"All {total} operator versions that ONNX {release} defines" in readme


def test_the_page_on_stability_names_what_there_is_and_its_versions() -> None:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    versions = {cells[0].split(":")[0]: cells[1] for cells in rows(page, "## Formats")}
    assert versions["a corpus"] == str(descriptor.SCHEMA)
    assert versions["a submission"] == str(submission.SCHEMA)
    assert versions["the process protocol"] == str(command.PROTOCOL)
    assert versions["the history's database"] == str(database.SCHEMA)
    for module, names in (cells for cells in rows(page, "## The Python API") if cells[0].startswith("`opconform.")):
        for name in re.findall(r"`(\w+)`", names):
            assert hasattr(importlib.import_module(module.strip("`")), name), f"{module} has no {name}"


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]))
    moved = {"README.md": "index.md"}
    docs = ROOT / "docs"
    inside = {str(file.relative_to(docs)) for file in PAGES if docs in file.parents}
    pages = inside | {moved.get(file.name, file.name.lower()) for file in PAGES if docs not in file.parents}
    assert pages == listed


@pytest.mark.slow
def test_the_documentation_site_builds_strictly_and_holds_what_its_pages_link_to_in_folders_with_dots(tmp_path) -> None:
    if importlib.util.find_spec("material") is None and os.environ.get("OPCONFORM_DOCS") != "required":
        pytest.skip("needs the extra docs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path]
    built = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert not [file for file in tmp_path.rglob("*") if file.name.startswith(".")], "servers leave them out"
    page = (tmp_path / "nightly.html").read_text(encoding="utf-8")
    (workflow,) = re.findall(r'href="(source/[\w./-]+nightly\.yml\.html)"', page)
    assert "persist-credentials" in (tmp_path / workflow).read_text(encoding="utf-8")
    assert "first release on" not in (tmp_path / "start-nightly.html").read_text(encoding="utf-8"), "it is a comment"


def links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"[a-z]+:", target):
                yield page, target


def test_every_short_id_on_a_page_is_a_case_of_the_suite() -> None:
    named = {name for page in PAGES for name in re.findall(r"`(\w+/\w+-\d+#[a-z2-7]{6})`", page.read_text("utf-8"))}
    assert len(named) > 300
    assert [name for name in sorted(named) if short_id(long_id(name)) != name] == []


@pytest.mark.parametrize(
    ("page", "target"), list(links()), ids=lambda part: part.name if isinstance(part, Path) else part
)
def test_every_link_within_the_repository_leads_somewhere(page: Path, target: str) -> None:
    name, _, anchor = target.partition("#")
    file = page.parent / name if name else page
    assert file.exists()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}

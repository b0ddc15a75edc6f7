"""`opconform dev audit` of OpenVINO and oneDNN: what it prints, its JSON, and its exit codes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import CliRunner, Result
from fakes.specs import specs_of, specs_of_means

from opconform.cli import auditing, main
from opconform.generators.source import shipped
from opconform.runners.backends.library_reading import OPERATIONS, read_library
from opconform.runners.backends.onednn_library import is_installed
from opconform.specs.audit import LibraryReading, findings
from opconform.specs.audit.findings import onnx_signatures
from opconform.specs.loader import default_root
from opconform.specs.model import Spec

FAKES = "fakes.libraries"
needs_openvino = pytest.mark.skipif(not importlib.util.find_spec("openvino"), reason="openvino is not installed")
needs_onednn = pytest.mark.skipif(not is_installed(), reason="oneDNN is not installed")


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch):
    """Return a function that puts a fake in place of a standard's library."""
    return lambda standard, name: monkeypatch.setitem(OPERATIONS, standard, f"{FAKES}:{name}")


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask a library once for all that a test prints of it."""
    known: dict[str, LibraryReading] = {}

    def read(standard: str, specs: list[Spec]) -> LibraryReading:
        if standard not in known:
            known[standard] = read_library(standard, specs)
        return known[standard]

    monkeypatch.setattr(auditing, "read_library", read)


def specs_with(folder: Path, standard: str, old: str, new: str, *, file: str = "") -> Path:
    """Return a folder with one standard's ReduceMean and the families, one of the files changed."""
    (folder / standard).mkdir()
    copytree(default_root() / "families", folder / "families")
    spec = f"{standard}/ReduceMean.yaml"
    (folder / spec).write_text((default_root() / spec).read_text())
    text = (folder / (file or spec)).read_text()
    assert old in text
    (folder / (file or spec)).write_text(text.replace(old, new, 1))
    return folder


def versions_of(standard: str) -> int:
    """Return how many operator versions of a standard have spec files."""
    return sum(len(spec.versions) for spec in shipped().specs() if str(spec.operator).startswith(f"{standard}/"))


def audited(standard: str) -> str:
    """Return what the audit of a standard prints, once it has passed; the gate has made it already."""
    folder = os.environ.get("OPCONFORM_COVERAGE")
    if folder and (kept := Path(folder, f"{standard}.txt")).exists():
        return kept.read_text(encoding="utf-8")
    done = call("dev", "audit", standard)
    assert done.exit_code == 0, done.output
    return done.output


def covered(output: str, label: str) -> tuple[int, int]:
    """Return a row of an audit's table: how many of how many have a case."""
    read = re.search(rf"^{label} +(\d+) / (\d+) ", output, re.MULTILINE)
    assert read is not None, output
    return int(read[1]), int(read[2])


@pytest.mark.slow
@needs_openvino
def test_openvino_bears_out_its_specs_and_says_what_it_does_not_tell() -> None:
    output = audited("openvino")
    assert "openvino: no differences from OpenVINO 20" in output
    assert "no case opens" not in output
    assert "not shown by OpenVINO 20" in output
    assert "takes T = float4e2m1" in output  # more than numeric types, which proves nothing
    versions, there = covered(output, "operator versions")
    assert versions == versions_of("openvino")
    assert there > 200
    assert covered(output, "type triples")[1] > there
    uncounted = re.search(r"^types of (\d+) operator versions are not counted", output, re.MULTILINE)
    assert 0 < int(uncounted[1]) < 80
    tested, clauses = covered(output, "clauses")
    assert tested == clauses > 10


@pytest.mark.slow
@needs_onednn
def test_what_onednn_refuses_of_its_page_is_disputed_and_no_failure() -> None:
    output = audited("onednn")
    assert "onednn: no differences from oneDNN 3." in output
    assert "no case opens" not in output
    (disputed,) = re.findall(r"^disputed: .*ReduceMean\.yaml:(\d+):(\d+): (.*)$", output, re.MULTILINE)
    line, column, message = int(disputed[0]), int(disputed[1]), disputed[2]
    assert message.startswith("input 2: here axes: optional int32, oneDNN 3.")
    lines = (default_root() / "onednn" / "ReduceMean.yaml").read_text().splitlines()
    assert lines[line - 1][column - 1 :].startswith("axes: optional int32")
    assert covered(output, "attributes")[0] >= 20
    assert covered(output, "type triples")[0] >= 38
    younger = output.count(" is older\n")  # operations that this release does not have yet
    versions, there = covered(output, "operator versions")
    assert versions == versions_of("onednn") - younger
    assert there >= 83


@needs_onednn
def test_json_has_what_is_disputed_and_the_counts_of_the_table(tmp_path: Path, library, read_once: None) -> None:
    library("onednn", "ReduceMeanOfOneDnn")
    root = specs_with(tmp_path, "onednn", "operator: onednn/ReduceMean", "operator: onednn/ReduceMean")
    output = call("dev", "audit", "onednn", "--specs", root).output
    read = json.loads(call("dev", "audit", "onednn", "--specs", root, "--json").output)
    assert (read["standard"], read["differences"], read["uncounted"]) == ("onednn", [], [])
    for label in ("operator versions", "type triples", "attributes", "clauses"):
        counted = read[label.replace(" ", "_")]
        assert covered(output, label) == (counted["covered"], counted["total"])
    (disputed,) = (error for error in read["disputed"] if error["message"].startswith("input 2: here axes"))
    assert f"disputed: {disputed['file']}:{disputed['line']}:{disputed['column']}: {disputed['message']}" in output


@needs_onednn
def test_without_the_dispute_the_same_difference_fails(tmp_path: Path, library) -> None:
    library("onednn", "ReduceMeanOfOneDnn")
    root = specs_with(tmp_path, "onednn", "    disputes: inputs.axes\n", "", file="families/axes.yaml")
    done = call("dev", "audit", "onednn", "--specs", root)
    assert done.exit_code == 1
    assert f"{tmp_path}/onednn/ReduceMean.yaml:8:22: input 2: here axes: optional int32, oneDNN" in done.output


@pytest.mark.slow
@needs_openvino
def test_a_spec_that_openvino_contradicts_exits_1_and_names_the_line(tmp_path: Path, library) -> None:
    library("openvino", "ReduceMeanOfOpenVino")
    root = specs_with(tmp_path, "openvino", "keep_dims: boolean = false", "keep_dims: boolean = true")
    done = call("dev", "audit", "openvino", "--specs", root)
    assert done.exit_code == 1
    assert f"{root}/openvino/ReduceMean.yaml:8:18: attribute keep_dims: here boolean = true, OpenVINO" in done.output
    read = json.loads(call("dev", "audit", "openvino", "--specs", root, "--json").output)
    assert [d["line"] for d in read["differences"]] == [8]


@pytest.mark.slow
def test_an_operator_that_the_library_dies_of_exits_3_and_says_so(tmp_path: Path, library) -> None:
    library("openvino", "Faulty")
    root = specs_with(tmp_path, "openvino", "edges:\n", "edges:\n")
    done = call("dev", "audit", "openvino", "--specs", root)
    assert done.exit_code == 3
    assert "not asked: openvino/ReduceMean-1: Faulty 1.0 could not be asked: its process ended (signal" in done.output
    assert "coverage" in done.output  # the others were asked


@pytest.mark.slow
def test_a_library_that_dies_before_it_says_anything_exits_3(library) -> None:
    library("openvino", "DiesAtOnce")
    done = call("dev", "audit", "openvino")
    assert done.exit_code == 3
    assert "opconform: the library of openvino was lost" in done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [("Absent", "it needs a library: pip install it"), ("Unusable", "the library is broken; install it again")],
)
def test_a_library_that_is_not_there_or_not_usable_exits_2_and_says_what_to_do(name: str, words: str, library) -> None:
    library("onednn", name)
    done = call("dev", "audit", "onednn")
    assert done.exit_code == 2
    assert words in done.output


def test_onnx_needs_no_library(library, tmp_path: Path) -> None:
    library("openvino", "Absent")
    done = call("dev", "audit", "--json", "--specs", specs_of_means(tmp_path))
    assert done.exit_code == 0
    assert json.loads(done.output).keys() == {
        *("standard", "operator_versions", "type_triples", "attributes", "clauses"),
        *("domains", "differences", "breaches", "unchecked", "gaps", "without_spec", "onnx"),
    }


def test_a_version_that_a_new_release_brings_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = onnx_signatures("")
    newer = {**known, "Abs": {**known["Abs"], 99: known["Abs"][13]}, "Absolute": {99: known["Abs"][13]}}
    monkeypatch.setattr(findings, "onnx_signatures", lambda domain="": newer if not domain else onnx_signatures(domain))
    done = call("dev", "audit", "onnx", "--json", "--specs", specs_of(tmp_path, "onnx/Abs"))
    assert done.exit_code == 1
    read = json.loads(done.output)
    assert {"onnx/Abs-99", "onnx/Absolute-99"} <= set(read["without_spec"])
    assert any("version 99 is in onnx" in difference["message"] for difference in read["differences"])


def test_a_scaffold_of_another_standard_says_what_to_do() -> None:
    done = call("dev", "scaffold", "onednn/Add")
    assert done.exit_code == 2
    assert "write the file from the page, and `opconform dev audit onednn` checks it" in done.output


@needs_onednn
def test_the_page_of_coverage_counts_cases_types_values_and_edges_of_each_operation(tmp_path: Path, library) -> None:
    library("onednn", "ReduceMeanOfOneDnn")
    root, page = specs_with(tmp_path, "onednn", "edges:\n", "edges:\n"), tmp_path / "coverage.md"
    call("dev", "audit", "onednn", "--specs", root, "--markdown", page)
    written = page.read_text(encoding="utf-8")
    assert "| operator | versions | cases | types | values | edges |" in written
    (row,) = [line for line in written.splitlines() if line.startswith("| ReduceMean | any |")]
    _, _, _, cases, types, values, edges, _ = map(str.strip, row.split("|"))
    assert int(cases) > 30
    assert types == "3 of 3"
    assert int(values) > 3
    assert edges.split(" of ")[0] == edges.split(" of ")[1]


def test_onnx_has_the_same_page(tmp_path: Path) -> None:
    page = tmp_path / "coverage.md"
    assert call("dev", "audit", "onnx", "--specs", specs_of_means(tmp_path), "--markdown", page).exit_code == 0
    assert "| Mean | 1, 6, 8, 13 |" in page.read_text(encoding="utf-8")

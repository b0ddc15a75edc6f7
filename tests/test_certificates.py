"""A results folder is judged again by examples/check_certificate.py, which has the standard library alone."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fakes.here import run_here
from fakes.sampled import slow

from opconform.cli import main
from opconform.reports.folder import inflated

CHECKER = Path(__file__).parents[1] / "examples" / "check_certificate.py"
FAKES = "python:fakes.backends:"
FLOAT = "onnx/ReduceMean-13/float32/3x2x2/axes=2,0/ramp/axes-unsorted"
Line = dict[str, Any]

RUNS = {
    "values, types and shapes": (
        "@WrongOnUint32",
        "@WrongShape",
        "@WrongType",
        "--select",
        "onnx/ReduceMean-18/*32/3x2x2/*/axes-*",
    ),
    "integers": ("@WrongOnUint32", "--select", "onnx/ReduceMean-18/uint32/2x*"),
    "a narrow accumulator": ("@Narrow", "--keep-outputs", "all", "--select", "onnx/ReduceMean-13/float16/4096/*"),
    "many narrow accumulators": ("@Narrow", "--keep-outputs", "all", "--select", "onnx/ReduceMean-13/float16/2048x*"),
    "what is required": ("@Narrow", "--require", "accumulator=wide", "--select", "onnx/ReduceMean-13/*16/4096/*"),
    "what is flushed": ("@Flushes", "--keep-outputs", "all", "--select", "onnx/Mean-13/float32/2*"),
    "double precision": ("@DoubleAsFloat", "--keep-outputs", "all", "--select", "onnx/ReduceMean-11/float64/2*x*"),
    "inputs overwritten": (
        "python:fakes.fragile_backends:OverwritesInputs",
        "--select",
        "onnx/Mean-13/float32/*/uniform",
    ),
    "leaking state": ("@LeaksIntoOneBuffer", "--draws", "2", "--select", "onnx/Mean-13/float32/*/uniform"),
    "invalid inputs": (
        "@AnswersInvalid",
        "--require",
        "invalid=rejected",
        "--select",
        "onnx/ReduceMean-13/float32/3*/axis-*",
    ),
    "onnxruntime": ("onnxruntime", "--select", "onnx/ReduceMean-18/int64/[127]*"),
    "thousands of digits": ("mutant:zeros", "--select", "onnx/ReduceProd-18/float64/*/near-one"),
    "numbers beside infinities and NaN": (
        "mutant:zeros",
        *("--select", "onnx/ReduceMax-20/float32/4x4/*/special"),
        *("--select", "onnx/MaxPool-1/float32/*/depths/*"),
    ),
    "whole numbers between two": ("mutant:zeros", "--select", "onnx/ImageDecoder-20/*/*jpeg-420*"),
    "powers of two": ("mutant:zeros", "--select", "onnx/CastLike-24/float32,float8e8m0/17,3/*"),
    "functions in double precision": ("mutant:zeros", "--select", "onnx/Cos-22/float64/8x63/-/mixed"),
    "fractions in a formula": (
        "onnxruntime",
        "--keep-outputs",
        "all",
        "--select",
        "onnx/Resize-19/float32,float32/1x1x1x1/*half_pixel_symmetric;cubic*",
    ),
    "onnx-reference": ("onnx-reference", "--select", "onnx/ReduceMean-18/*/*/noop-zeros"),
}
LONG = ("many narrow accumulators",)
"""The checker adds up 65,536 fractions."""


def ran(folder: Path, *arguments: str) -> Path:
    """Run the command line and return its results folder."""
    words = [a.replace("@", FAKES) if a.startswith("@") else a for a in arguments]
    with run_here():
        done = CliRunner().invoke(main, ["run", *words, "--quiet", "--jobs", "1", "--out", str(folder)])
    assert done.exit_code in (0, 1), done.output
    return folder


def checked(folder: Path) -> tuple[int, list[str]]:
    """Run the checker as somebody who has nothing but Python, and return its exit code and lines."""
    command = [sys.executable, "-I", "-S", str(CHECKER), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, (done.stdout + done.stderr).splitlines()


def lines(file: Path) -> list[Line]:
    return [json.loads(inflated(line, 1 << 24) or b"") for line in file.read_bytes().splitlines()]


@pytest.mark.parametrize(
    "arguments",
    [slow(words, id=name) if name in LONG else pytest.param(words, id=name) for name, words in RUNS.items()],
)
def test_every_kept_answer_is_judged_the_same_from_its_certificate_alone(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    if arguments[0] == "onnxruntime":
        pytest.importorskip("onnxruntime")
    folder = ran(tmp_path / "out", *arguments)
    code, said = checked(folder)
    kept = lines(folder / "outputs.jsonl")
    assert code == 0, "\n".join(line for line in said if "DIFFERS" in line)
    assert said[-1] == f"{len(kept)} agree, 0 differ, 0 not checked"
    assert not any("not derived" in line for line in said)
    wrong = [r for r in lines(folder / "results.jsonl") if r["outcome"].startswith(("wrong-", "accepted-"))]
    assert wrong or "all" in arguments, "the run is there for what it gets wrong"
    assert {r["case"] for r in wrong} <= {k["case"] for k in kept}


def test_declared_arithmetic_and_waived_failures_are_judged_by_the_bounds(tmp_path: Path) -> None:
    device, waivers = tmp_path / "device.yaml", tmp_path / "waivers.yaml"
    device.write_text("float32: {compute: tf32}\n")
    waivers.write_text(
        "- case: 'onnx/*'\n  backend: '*'\n  outcome: wrong-value\n  reason: known\n"
        "  link: https://example.com/1\n  owner: me\n  expires: 2099-01-01\n"
    )
    select = (
        "--select",
        "onnx/ReduceMean-13/float32/*/axes-*",
        "--select",
        FLOAT.replace("float32", "uint32"),
        "--arithmetic",
        str(device),
        "--waivers",
        str(waivers),
    )
    folder = ran(
        tmp_path / "out",
        "@WrongOnUint32",
        "--keep-outputs",
        "all",
        *select,
        "--arithmetic",
        str(device),
        "--waivers",
        str(waivers),
    )
    assert any(r["outcome"] == "waived" for r in lines(folder / "results.jsonl"))
    code, said = checked(folder)
    assert code == 0
    assert any("wrong-value agrees" in line for line in said)
    assert any("pass agrees, by bounds that are not derived again here" in line for line in said)


# Tampering


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All answers of a backend that is right on float32 and wrong on uint32."""
    select = ("--select", FLOAT, "--select", FLOAT.replace("float32", "uint32"))
    return ran(tmp_path_factory.mktemp("original") / "out", "@WrongOnUint32", "--keep-outputs", "all", *select)


@pytest.fixture
def tampered(original: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Change lines of a copy of that folder, and return what the checker says differs."""

    def changed(**by_file: Callable[[Line], object]) -> list[str]:
        folder = shutil.copytree(original, tmp_path / "copy")
        for name, change in by_file.items():
            found = lines(folder / f"{name}.jsonl")
            for line in found:
                change(line)
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in found if line))
        code, said = checked(folder)
        differing = [line for line in said if "DIFFERS" in line]
        assert code == (1 if differing else 0), said
        return differing

    return changed


def digests(certificate: Line) -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("check_certificate", CHECKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, str] = module.digests(certificate)
    return found


def of_float(change: Callable[[Line], object]) -> Callable[[Line], object]:
    return lambda line: change(line) if line["case"] == FLOAT else None


def test_nothing_differs_where_nothing_was_changed(tampered: Any) -> None:
    assert tampered(outputs=lambda line: None) == []


def test_a_changed_output_byte_is_noticed(tampered: Any) -> None:
    def last_bit(line: Line) -> None:
        (output,) = line["outputs"]
        content = bytearray(base64.b64decode(output["base64"]))
        content[0] ^= 1
        output["base64"] = base64.b64encode(content).decode()

    differing = tampered(outputs=last_bit)
    assert len(differing) == 2
    assert all("do not match its sha256" in line for line in differing)


def test_a_changed_output_is_noticed_though_its_digest_was_mended(tampered: Any) -> None:
    def other(line: Line) -> None:
        (output,) = line["outputs"]
        content = struct.pack("<2f", 9.0, 9.0)
        assert len(base64.b64decode(output["base64"])) == len(content)
        output |= {"base64": base64.b64encode(content).decode(), "sha256": hashlib.sha256(content).hexdigest()}

    (found,) = tampered(outputs=of_float(other))
    assert "results.jsonl says pass, the answer is wrong-value" in found


@pytest.mark.parametrize("factor", [0.5, 3.0])
@pytest.mark.parametrize("mended", [False, True])
def test_a_changed_bound_is_noticed(tampered: Any, factor: float, mended: bool, original: Path) -> None:
    found: dict[str, str] = {}

    def moved(line: Line) -> None:
        for option in line["options"]:
            ends = option["outputs"][0]
            value = float.fromhex(ends["value"][0])
            ends["lower"][0] = (value - factor * (value - float.fromhex(ends["lower"][0])) - (factor > 1)).hex()
            ends["upper"][0] = (value + factor * (float.fromhex(ends["upper"][0]) - value) + 1e-9).hex()
        if mended:
            line.update(digests(line))
            found.update(digests(line))

    differing = tampered(certificates=of_float(moved), results=of_float(lambda line: line.update(found)))
    assert len(differing) == 1
    assert ("is not what" if mended else "expectation_digest") in differing[0]


def mended(change: Callable[[Line], object]) -> dict[str, Callable[[Line], object]]:
    """Change the certificate of the float case, and the digests as one who wants to deceive would."""
    found: dict[str, str] = {}

    def certificate(line: Line) -> None:
        change(line)
        line.update(digests(line))
        found.update(digests(line))

    return {"certificates": of_float(certificate), "results": of_float(lambda line: line.update(found))}


def derivation(line: Line) -> Any:
    return line["derivations"][0]


def summed(line: Line) -> Any:
    return next(step for step in derivation(line)["steps"] if step["n"] is not None)


def storage(line: Line) -> Any:
    return derivation(line)["arithmetic"]["types"]["float32"]["storage"]


DECEITS: dict[str, tuple[Callable[[Line], object], str]] = {
    "the exact result": (lambda line: derivation(line)["exact"][0].__setitem__(0, "5/7"), "exact results"),
    "the error": (lambda line: derivation(line)["error"][0].__setitem__(0, "0x1p-3"), "by the rules it may err by"),
    "n": (lambda line: summed(line).update(n=7), "n and M are not"),
    "M": (lambda line: summed(line)["M"].__setitem__(0, "0x1p+9"), "n and M are not"),
    "the axes": (lambda line: derivation(line)["formula"][1]["parameters"].update(axes=[0, 1]), "DIFFERS"),
    "the precision": (lambda line: storage(line).update(precision=8), "may err by"),
}


@pytest.mark.parametrize(("change", "words"), DECEITS.values(), ids=DECEITS)
def test_a_derivation_that_is_none_is_noticed_though_all_digests_were_mended(
    tampered: Any, change: Callable[[Line], object], words: str
) -> None:
    (found,) = tampered(**mended(change))
    assert words in found


@pytest.mark.parametrize("outcome", ["pass", "wrong-shape", "unsupported", "crash"])
def test_a_changed_outcome_is_noticed(tampered: Any, outcome: str) -> None:
    differing = tampered(results=lambda line: line.update(outcome=outcome))
    assert len(differing) == (1 if outcome == "pass" else 2)
    assert all(f"results.jsonl says {outcome}, the answer is " in line for line in differing)


def test_an_answer_that_was_taken_out_is_noticed(tampered: Any) -> None:
    (found,) = tampered(outputs=lambda line: line.clear())
    assert "a wrong answer, which outputs.jsonl does not have" in found
    assert "uint32" in found


def test_a_torn_last_line_as_a_killed_run_leaves_it_is_no_difference(original: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(original, tmp_path / "copy")
    for name in ("outputs", "certificates"):
        with (folder / f"{name}.jsonl").open("ab") as file:
            file.write(b'{"case": "onnx/Redu')
    assert checked(folder)[0] == 0


def test_what_cannot_be_read_exits_2(original: Path, tmp_path: Path) -> None:
    assert checked(tmp_path / "nowhere")[0] == 2
    folder = shutil.copytree(original, tmp_path / "copy")
    (folder / "certificates.jsonl").write_text('{"case": 1\n')
    code, said = checked(folder)
    assert code == 2
    assert "cannot read that" in said[-1]


# What a run leaves behind


@pytest.mark.parametrize(
    ("keep", "files"),
    [("none", set()), ("digest", {"outputs"}), ("failures", {"outputs", "certificates"})],
)
def test_a_run_keeps_what_it_is_told_to_and_says_so(keep: str, files: set[str], tmp_path: Path) -> None:
    folder = ran(tmp_path / "out", "@WrongOnUint32", "--keep-outputs", keep, "--select", FLOAT.replace("float", "uint"))
    assert {f.stem for f in folder.glob("*.jsonl")} == {"results", *files}
    assert json.loads((folder / "run.json").read_text())["keep_outputs"] == keep
    if keep == "digest":
        (line,) = lines(folder / "outputs.jsonl")
        assert line["outputs"][0].keys() == {"type", "shape", "sha256"}


def test_a_case_that_several_backends_get_wrong_has_one_certificate(tmp_path: Path) -> None:
    folder = ran(tmp_path / "out", "@WrongShape", "@WrongType", "--select", FLOAT)
    assert [line["backend"] for line in lines(folder / "outputs.jsonl")] == [FAKES + "WrongShape", FAKES + "WrongType"]
    assert [line["case"] for line in lines(folder / "certificates.jsonl")] == [FLOAT]


# The certificate itself


def test_show_prints_a_certificate_that_tells_the_exact_result_and_every_option() -> None:
    case = "onnx/ReduceMean-18/int32/2x2/axes=1/halves/fraction"
    done = CliRunner().invoke(main, ["show", "--certificate", case])
    assert done.exit_code == 0
    told = json.loads(done.output)
    exact = {d["labels"]["integer-rounding"]: d["exact"][0] for d in told["derivations"]}
    answers = {option["labels"]["integer-rounding"]: option["outputs"][0]["lower"] for option in told["options"]}
    assert exact == answers
    assert answers == {
        "truncate": ["3", "-3"],
        "floor": ["3", "-4"],
        "nearest-even": ["4", "-4"],
        "nearest-away": ["4", "-4"],
    }
    assert digests(told) == {name: told[name] for name in ("case_digest", "expectation_digest")}


def test_script_and_certificate_exclude_each_other() -> None:
    done = CliRunner().invoke(main, ["show", "--certificate", "--script", FLOAT])
    assert done.exit_code == 2
    assert "one at a time" in done.output

"""Programs over the process protocol: what they answer is judged as any backend's, and a lie costs its case alone."""

from __future__ import annotations

import base64
import importlib.resources
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.programs import STRUCTURED, constant, onnx_program
from fakes.sampled import slow
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from opconform.cases.corpus.descriptor import structure_json
from opconform.cases.elements import element_types, type_of
from opconform.cases.errors import OpconformError
from opconform.cases.program import Input, Program, leaves, nested_all
from opconform.cases.results import Result
from opconform.cases.runner import Unsupported
from opconform.generators.plan import Selection, planned
from opconform.generators.source import GeneratedCases
from opconform.runners.execution.execute import Assignment, Death
from opconform.runners.execution.running import Judged, run_cases
from opconform.runners.pool import Limits, WorkerStartError
from opconform.runners.programs import command
from opconform.runners.programs.command import Command, Refused
from opconform.runners.programs.command_check import CommandCheck
from opconform.runners.registry import backend_spec, open_runner

TESTS = Path(__file__).parents[1]
EXAMPLES = TESTS.parent / "examples" / "process"
SOURCE = GeneratedCases()
ABS = "onnx/Abs-13/float32"
MEANT, INVALID = f"{ABS}/64/-/magnitudes", f"{ABS}/scalar/unknown=weights/ramp/unknown-attribute"
OTHERS = [f"{ABS}/scalar/-/ramp", f"{ABS}/2x0/-/ramp", f"{ABS}/8x63/-/uniform", INVALID]
LIMITS = Limits(run_seconds=10, prepare_seconds=10)
SLOW = Limits(run_seconds=60)


def lying(fault: str, where: str = "run", *once: Path) -> str:
    program = str(TESTS / "fakes" / "lying_program.py")
    return f"cmd:{shlex.join([sys.executable, '-S', '-E', program, fault, where, *map(str, once)])}"


def found(backend: str, cases: list[str], limits: Limits = LIMITS) -> tuple[dict[str, Result], list[Death]]:
    told = list(run_cases(Assignment(backend_spec(backend), SOURCE), [[case] for case in cases], jobs=1, limits=limits))
    results = {one.result.case: one.result for one in told if isinstance(one, Judged)}
    assert sorted(results) == sorted(cases)
    return results, [one for one in told if isinstance(one, Death)]


@pytest.mark.slow
def test_a_program_is_judged_as_any_backend() -> None:
    results, deaths = found(lying("none"), [MEANT, *OTHERS, "onnx/Neg-13/float32/scalar/-/ramp"])
    outcomes = {case: str(result.outcome) for case, result in results.items()}
    assert [outcomes.pop(case) for case in (MEANT, *OTHERS)] == ["pass"] * 5
    assert set(outcomes.values()) == {"unsupported"}
    assert not deaths


LIES = {
    "short": ("crash", "outputs[0] of type float32 and shape [64]: 253 bytes; that is not the size of shape"),
    "unknown-type": ("crash", "'float33' is not an element type"),
    "negative-shape": ("crash", "Expected `int` >= 0 - at `$.outputs[0].shape[0]`"),
    "huge-shape": ("crash", "256 bytes; that is not the size of shape"),
    "no-base64": ("crash", "Invalid base64 encoded string - at `$.outputs[0].content`"),
    "list-of-numbers": ("crash", "Expected `str`, got `float`"),
    "structure": ("crash", "its structure does not match its tensors: more tensors"),
    "deep-structure": ("crash", "its structure does not match its tensors: not a structure"),
    "id": ("crash", "but question 2 was asked"),
    "no-id": ("crash", "Object missing required field `id`"),
    "other-answer": ("crash", "protocol 1"),
    "unknown-key": ("crash", "unknown field `ouputs`"),
    "twice": ("crash", 'it wrote more than one line to stdout: \'{"id": 2'),
    "chatter": ("crash", "'loading weights"),
    "no-json": ("crash", "JSON is malformed"),
    "no-utf8": ("crash", 'it begins \'{"id": 1, "answer": "\ufffd"}\''),
    "nan": ("crash", "JSON is malformed"),
    "deep": ("crash", "not an answer of protocol 1"),
    "silent": ("timeout", "no answer after"),
    "half": ("timeout", "no answer after"),
    "segv": ("crash", "the process died (signal SIGSEGV) while running it; last it wrote:\nabout to fall\ncmd:"),
    "exit": ("crash", "the process died (exit code 3) while running it"),
    "half-exit": ("crash", 'it ended with exit code 0 in the middle of a line: \'{"id": 2'),
    "closed": ("crash", "it closed its stdout"),
    "other-type": ("wrong-dtype", "int32"),
    "extra-output": ("wrong-shape", "2 outputs"),
    "file-empty": ("crash", "its file ends after 0 bytes; an output is 256 from 0 on"),
    "file-cut": ("crash", "its file ends after 255 bytes; an output is 256 from 0 on"),
    "file-beyond": ("crash", "its file ends after 256 bytes; an output is 256 from 1 on"),
    "file-short": ("crash", "outputs[0] of type float32 and shape [64]: 252 bytes; that is not the size of shape"),
    "file-negative": ("crash", "Expected `int` >= 0 - at `$.outputs[0].content.offset`"),
    "file-huge": ("crash", "its file has 1,099,511,627,776 bytes, more than 268,435,456"),
    "file-twice": ("crash", "its file has 256 bytes, and its outputs take 512: they overlap"),
    "file-unsaid": ("crash", "its content is in a file, though `hello` did not say `files`"),
    "file-right": ("pass", ""),
    "error": ("error", "Refused: out of order"),
    "rejected": ("error", "Rejected: out of order"),
    "unsupported": ("unsupported", "out of order"),
}
REASONS = {"error": "memory", "rejected": "invalid", "unsupported": "shape"}
USUAL = ["file-right", "file-cut", "short", "twice", "segv", "unsupported"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [one if one in USUAL else slow(one) for one in [*LIES, "gigabyte"]])
def test_a_lie_a_crash_and_a_hang_cost_one_case_whose_detail_says_what_it_was(fault: str) -> None:
    hangs = fault in ("silent", "half")
    limits = Limits(run_seconds=1, prepare_seconds=10) if hangs else LIMITS
    results, _ = found(lying(fault), [OTHERS[0], MEANT, *OTHERS[1:]], limits)
    outcome, words = LIES.get(fault, ("crash", "a line of more than 268,435,456 bytes: 'aaa"))
    assert (str(results[MEANT].outcome), results[MEANT].reason) == (outcome, REASONS.get(fault))
    assert words in (results[MEANT].detail or "")
    assert len(results[MEANT].detail or "") < 3000
    assert {str(results[case].outcome) for case in OTHERS} == {"pass"}


BREACHES = [fault for fault, (outcome, _) in LIES.items() if outcome == "crash"] + ["gigabyte", "before-reading"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "where"),
    [
        *((one, "run") if one in ("twice", "id", "exit", "segv") else slow(one, "run") for one in BREACHES),
        *(slow(one, "prepare") for one in ("twice", "id", "exit", "segv", "gigabyte", "before-reading")),  # read alike
    ],
)
def test_a_breach_costs_its_case_even_if_it_never_comes_again(fault: str, where: str, tmp_path: Path) -> None:
    results, deaths = found(lying(fault, where, tmp_path / "once"), [OTHERS[0], MEANT, OTHERS[2]])
    assert (tmp_path / "once").exists()
    assert Counter(str(one.outcome) for one in results.values()) == {"crash": 1, "pass": 2}
    assert not deaths
    assert str(results[MEANT if where == "run" else OTHERS[0]].outcome) == "crash"


@pytest.mark.slow
def test_a_lie_over_an_invalid_program_is_no_refusal() -> None:
    results, _ = found(lying("id", "prepare"), [INVALID])
    assert str(results[INVALID].outcome) == "crash"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("protocol", "it speaks protocol 2; expected 1"),
        slow("no-standard", "it names no standard"),
        ("no-json", "not an answer of protocol 1"),
        slow("exit", "it ended with exit code 3"),
        slow("unsupported", "it answered 'unsupported' to 'hello'; expected 'hello'"),
        ("claims", "it claims onnx/Abs for 'float33' is not a type; expected float32"),
    ],
)
def test_a_program_that_does_not_say_what_it_is_ends_the_run_and_says_why(fault: str, words: str) -> None:
    with pytest.raises(WorkerStartError, match=rf"^cmd:.*: cannot be started: .*{words}"):
        found(lying(fault, "hello"), [MEANT])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cmd:", "expected cmd:./program args"),
        ("cmd:'./a", "not valid shell syntax"),
        ("cmd:./no-such-program --flag", "'./no-such-program' is not an executable program"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_by_name(name: str, words: str) -> None:
    with pytest.raises(OpconformError, match=words):
        backend_spec(name)


def test_a_file_that_is_no_program_is_told_when_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\x7fnothing")
    (tmp_path / "odd").chmod(0o755)
    with pytest.raises(OpconformError, match=r"cannot be started: .*Exec format error"):
        open_runner(f"cmd:{tmp_path / 'odd'}")


# What goes over the wire


@pytest.fixture
def schema() -> Draft202012Validator:
    def read(package: str, name: str) -> Any:
        return json.loads((importlib.resources.files(package) / "schemas" / name).read_text(encoding="utf-8"))

    case = Resource.from_contents(read("opconform.cases", "case.schema.json"))
    told = read("opconform.runners", "process.schema.json")
    Draft202012Validator.check_schema(told)
    return Draft202012Validator(told, registry=Registry().with_resource("urn:opconform:case:2", case))


RECORDER = """
import json, sys
log, answers = open(sys.argv[1], "w"), json.load(open(sys.argv[2]))
for line in sys.stdin:
    question = json.loads(line)
    answer = {"id": question["id"], **answers[question["ask"]]}
    print(line, json.dumps(answer), sep="", file=log, flush=True)
    print(json.dumps(answer), flush=True)
"""
HELLO = {"answer": "hello", "protocol": 1, "name": "r", "version": "2", "standards": ["onnx"], "facts": {"device": "x"}}


class Recorder:
    """A program that gives the same answers each time, and writes what it reads and answers to a file."""

    def __init__(self, folder: Path, **answers: Any) -> None:
        self._log, told = folder / "log", folder / "answers"
        (folder / "program.py").write_text(RECORDER)
        told.write_text(json.dumps({"hello": HELLO, "prepare": {"answer": "prepared"}} | answers))
        words = [sys.executable, "-S", str(folder / "program.py"), str(self._log), str(told)]
        self.runner = open_runner(f"cmd:{shlex.join(words)}")

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()]


def wire(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    return command.tensor_json(array)


def test_the_lines_that_the_page_shows_are_as_the_schema_says(schema) -> None:
    page = (TESTS.parent / "docs" / "process-protocol.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    for line in lines:
        schema.validate(json.loads(line))
    answers = {told["answer"] for told in map(json.loads, lines) if "answer" in told}
    assert answers == {"hello", "prepared", "outputs", "unsupported", "rejected", "error"}
    for line in lines:
        assert "ask" in json.loads(line) or command._read(line.encode())


@pytest.mark.parametrize("kind", STRUCTURED)
def test_programs_and_values_of_every_structure_go_as_the_schema_says(kind: str, schema, tmp_path: Path) -> None:
    program, inputs, structures, answer = STRUCTURED[kind]
    types = [leaf.type for out, one in zip(program.answers, structures, strict=True) for leaf in leaves(out.type, one)]
    arrays = [np.array(value, element_types()[t].dtype) for t, value in zip(types, answer, strict=True)]
    structure = [structure_json(one.outline) for one in structures]
    outputs = {"answer": "outputs", "outputs": [wire(one) for one in arrays], "structure": structure}
    recorder = Recorder(tmp_path, run=outputs)
    values = recorder.runner.prepare(program).run(inputs)
    wanted = nested_all(structures, arrays)
    assert repr(values) == repr(wanted)
    lines = recorder.lines()
    assert [line.get("ask", line.get("answer")) for line in lines] == ["hello"] * 2 + [
        "prepare",
        "prepared",
        "run",
        "outputs",
    ]
    for line in lines:
        schema.validate(line)
    assert lines[4]["program"] == lines[2]["id"]
    assert [one["type"] for one in lines[4]["inputs"]] == [leaf.type for leaf in program.leaves]
    assert set(lines[2]["constants"]) == {one["constant"] for one in ports(program, lines[2]) if one["constant"]}
    assert recorder.runner.version() == "2"
    assert isinstance(recorder.runner, Command)
    assert recorder.runner.describe() == {"device": "x", "program": "r"}


def ports(program: Program, line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (one for one in (*line["program"]["inputs"], *line["program"].get("captured", ())) if one)


@pytest.mark.parametrize("type_", list(element_types()))
def test_every_type_comes_back_as_it_went(type_: str) -> None:
    known = element_types()[type_]
    array = np.array(["", "a\n", "ä😀"] if type_ == "string" else [0, 1, 1], object if type_ == "string" else None)
    array = array.astype(known.dtype).reshape(3, 1)
    told = json.loads(json.dumps(command.tensor_json(array)))
    content: Any = told["content"]
    if type_ != "string":
        content = base64.b64decode(content)
    back = command.tensor_from(command._WireTensor(told["type"], tuple(told["shape"]), content), 0)
    assert (type_of(back), back.shape, str(back.tolist())) == (type_, (3, 1), str(array.tolist()))


def test_what_nobody_needs_any_more_is_dropped_with_the_next_program(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    program = onnx_program("Abs", 13, [Input("x", "float32", (2,))], rank=1)
    first = recorder.runner.prepare(program)
    second = recorder.runner.prepare(program)
    del first
    third = recorder.runner.prepare(program)
    asked = [line for line in recorder.lines() if line.get("ask") == "prepare"]
    assert [line.get("drop") for line in asked] == [None, None, [asked[0]["id"]]]
    del second, third


@pytest.mark.parametrize(
    ("operators", "reason"),
    [
        ({}, "operator-version"),
        ({"onnx/Neg": {}}, "operator-version"),
        ({"onnx/Abs": {"versions": [6]}}, "operator-version"),
        ({"onnx/Abs": {"versions": [6, 13], "types": ["int32", "float16"]}}, "type"),
        ({"onnx/Abs": {"versions": "all", "types": ["float32"]}}, None),
        ({"onnx/Abs": {}}, None),
        (None, None),
    ],
)
def test_every_refusal_of_what_is_not_claimed_is_unsupported(operators, reason, schema, tmp_path: Path) -> None:
    error = {"answer": "error", "words": "broken"}
    recorder = Recorder(tmp_path, hello={**HELLO, "operators": operators}, prepare=error)
    program = onnx_program("Abs", 13, [Input("x", "float32", (2,))], rank=1)
    if reason is None:
        with pytest.raises(Refused, match="broken"):
            recorder.runner.prepare(program)
    else:
        with pytest.raises(Unsupported, match=r"claim.*: broken") as refusal:
            recorder.runner.prepare(program)
        assert refusal.value.reason == reason
    assert len(recorder.lines()) == 4
    for line in recorder.lines():
        schema.validate(line)


def test_text_that_is_no_utf8_is_unsupported_and_the_program_lives_on(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    texts = constant("t", np.array(["a\udcff"], object))
    with pytest.raises(Unsupported, match="UTF-8"):
        recorder.runner.prepare(onnx_program("Identity", 13, [texts], rank=1, type_="string"))
    recorder.runner.prepare(onnx_program("Abs", 13, [Input("x", "float32", (2,))], rank=1))


def test_base64_for_text_is_a_lie_and_no_exception_that_passes_for_a_refusal(tmp_path: Path, capfd) -> None:
    output = {"type": "string", "shape": [1], "content": "AQAAAGE="}
    runner = Recorder(tmp_path, run={"answer": "outputs", "outputs": [output]}).runner
    made = runner.prepare(onnx_program("Abs", 13, [Input("x", "float32", (2,))], rank=1))
    with pytest.raises(SystemExit):
        made.run([np.zeros(2, np.float32)])
    assert "outputs[0]: the content of text is a list of strings" in capfd.readouterr().err


LARGE = np.arange(1 << 17, dtype=np.float32).reshape(2, -1)


def test_large_tensors_go_through_files_and_come_back(schema, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, hello={**HELLO, "files": True}, run={"answer": "error", "words": "no"})
    sum_of = onnx_program("Add", 14, [constant("c", LARGE), Input("x", "float32", LARGE.shape)], rank=2)
    prepared = recorder.runner.prepare(sum_of)
    with pytest.raises(Refused):
        prepared.run([LARGE])
    for line in recorder.lines():
        schema.validate(line)
    _, _, prepare, _, run, _ = recorder.lines()
    assert prepare["constants"]["constant_0"]["content"] == {"offset": 0, "length": LARGE.nbytes}
    assert run["inputs"][0]["content"] == {"offset": 0, "length": LARGE.nbytes}
    assert Path(run["files"]["read"]).read_bytes() == LARGE.tobytes()
    assert Path(run["files"]["write"]).stat().st_size == 0
    paths = run["files"]
    del recorder, prepared
    assert not any(Path(path).exists() for path in paths.values())
    proxy = shlex.join([sys.executable, str(TESTS / "fakes" / "proxy_program.py"), "onnx-reference", "files"])
    runner = open_runner(f"cmd:{proxy}")
    for times in (1, 2):  # the files are used again
        (found,) = runner.prepare(sum_of).run([times * LARGE])
        np.testing.assert_array_equal(found, (1 + times) * LARGE)


def test_a_program_that_says_nothing_of_files_gets_large_tensors_inline(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, run={"answer": "error", "words": "no"})
    sum_of = onnx_program("Add", 14, [constant("c", LARGE), Input("x", "float32", LARGE.shape)], rank=2)
    with pytest.raises(Refused):
        recorder.runner.prepare(sum_of).run([LARGE])
    asked = [line for line in recorder.lines() if "ask" in line][1:]
    assert all("files" not in line for line in asked)
    assert asked[1]["inputs"] == [json.loads(json.dumps(wire(LARGE)))]


KINDS = ("BitCast-26", "Cast-25", "SequenceInsert-11", "StringConcat-20", "If-25", "Optional-*", "ZipMap-1", "TopK-24")


@pytest.mark.slow
def test_a_backend_finds_the_same_behind_the_protocol_whatever_goes_over_it() -> None:
    cases = list(planned(SOURCE.library, Selection(tuple(f"onnx/{kind}/*" for kind in KINDS), suite="smoke")))
    assert {case.split("/")[1].split("-")[0] for case in cases} >= {kind.split("-")[0] for kind in KINDS}
    here = found("onnx-reference", cases, limits=SLOW)[0]
    assert {str(one.outcome) for one in here.values()} > {"pass", "unsupported"}
    for files in ((), ("files",)):
        proxy = shlex.join([sys.executable, str(TESTS / "fakes" / "proxy_program.py"), "onnx-reference", *files])
        there = found(f"cmd:{proxy}", cases, limits=SLOW)[0]
        assert not {case for case in cases if there[case].outcome != here[case].outcome}


# What stays behind


def alive(marker: str) -> list[int]:
    listed = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                marker.encode() in (folder / "cmdline").read_bytes()
                and "Z" not in (folder / "stat").read_text().split()[2]
            ):
                listed.append(int(folder.name))
        except OSError:
            continue
    return listed


@pytest.mark.slow
@pytest.mark.parametrize("orderly", [False, True])
def test_nothing_stays_behind_a_program_that_hangs(orderly: bool, tmp_path: Path) -> None:
    program = tmp_path / "hangs.py"
    program.write_bytes((TESTS / "fakes" / "lying_program.py").read_bytes())
    backend = f"cmd:{shlex.join([sys.executable, '-S', str(program), 'silent', 'run'])}"
    words = ["run", backend, "--select", MEANT, "--jobs", "1", "--quiet", "--out", str(tmp_path / "out")]
    words += ["--timeout", "2" if orderly else "60"]
    run = subprocess.Popen([sys.executable, "-m", "opconform", *words], stdout=subprocess.DEVNULL)
    started = time.monotonic()
    looks = 0
    while looks < 10 and time.monotonic() - started < 60:  # the run and the program, which is started twice
        looks = looks + 1 if len(alive(str(program))) >= 2 else 0
        time.sleep(0.05)
    assert looks == 10
    if not orderly:
        os.kill(run.pid, signal.SIGKILL)
    run.wait(60)
    until = time.monotonic() + 10
    while alive(str(program)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(str(program))


# The clients to copy


def outcomes_of(backend: str, *globs: str) -> set[str]:
    cases = list(planned(SOURCE.library, Selection(globs)))
    told = run_cases(Assignment(backend_spec(backend), SOURCE), [cases], jobs=1, limits=LIMITS)
    outcomes = [one.result for one in told if isinstance(one, Judged)]
    assert len(outcomes) == len(cases) > 5
    return {str(one.outcome) for one in outcomes}


CLIENT = f"cmd:{shlex.join([sys.executable, str(EXAMPLES / 'client.py')])}"


@pytest.mark.slow
def test_the_client_in_python_passes_what_it_claims() -> None:
    assert outcomes_of(CLIENT, "onnx/Add-14/float32/*", "onnx/Relu-14/float64/*") == {"pass"}


@pytest.mark.slow
def test_the_client_in_python_passes_all_of_its_operators() -> None:
    globs = [f"onnx/{name}-*" for name in ("Abs", "Neg", "Relu", "Add", "Sub", "Mul")]
    assert outcomes_of(CLIENT, *globs) == {"pass", "unsupported"}
    for type_ in ("float32", "float64", "int32", "int64"):
        assert outcomes_of(CLIENT, *[glob.replace("*", f"13/{type_}/*") for glob in globs if "Relu" not in glob]) == {
            "pass"
        }


@pytest.fixture(scope="session")
def mean_in_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("c") / "mean"
    checked = ["-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *checked, *sanitized, "-o", str(built), str(EXAMPLES / "mean.c")], check=True)
    return built


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["Mean-*", "ReduceMean-1", "ReduceMean-11", "ReduceMean-13", "ReduceMean-18"])
def test_the_client_in_c_passes_what_it_claims(operator: str, mean_in_c: Path) -> None:
    globs = [f"onnx/{operator}/{type_}/*" for type_ in ("float32", "float64")]
    assert outcomes_of(f"cmd:{mean_in_c}", *globs) == {"pass"}


ONNXRUNTIME_WEB = "1.30.0"


@pytest.fixture(scope="session")
def onnxruntime_web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the client and the package that it needs."""
    folder = tmp_path_factory.mktemp("web")
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("there is no Node.js with npm")
    words = ["npm", "install", "--silent", "--no-audit", "--no-fund", f"onnxruntime-web@{ONNXRUNTIME_WEB}"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode and os.environ.get("OPCONFORM_WEB") != "required":
        pytest.skip(f"npm cannot install onnxruntime-web: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return Path(shutil.copy(EXAMPLES / "onnxruntime_web.mjs", folder))


@pytest.mark.slow
def test_the_client_of_onnxruntime_web_keeps_to_the_protocol(onnxruntime_web: Path) -> None:
    checked = CommandCheck("cmd:node", shlex.join(["node", str(onnxruntime_web)]), 60)
    assert checked.hello is not None
    assert (checked.hello.name, checked.hello.version) == ("onnxruntime-web", ONNXRUNTIME_WEB)
    steps = list(checked.steps())
    # the last step allows it a second to end, which a busy machine may not give it
    assert not [one for one in steps[:-1] if one.problem or one.skipped]
    assert len(steps) > 10


@pytest.mark.slow
def test_the_client_of_onnxruntime_web_runs_tensors_of_its_types_and_says_what_else_it_lacks(onnxruntime_web) -> None:
    backend = f"cmd:{shlex.join(['node', str(onnxruntime_web)])}"
    kinds = ["Add-14", "Cast-21", "Relu-14", "Where-16", "TopK-11", "StringNormalizer-10", "Sequence*-11", "If-21"]
    cases = list(planned(SOURCE.library, Selection(tuple(f"onnx/{one}" for one in kinds), suite="smoke")))
    results, deaths = found(backend, cases, SLOW)
    outcomes = Counter(str(one.outcome) for one in results.values())
    assert not deaths
    assert outcomes["pass"] > 100
    assert outcomes["pass"] > 9 * sum(outcomes[one] for one in outcomes if one not in ("pass", "unsupported"))
    sequences = {str(one.outcome) for case, one in results.items() if "/seq" in case and "Sequence" in case}
    assert sequences == {"unsupported"}


@pytest.mark.slow
def test_a_trap_in_webassembly_costs_onnxruntime_web_one_case(onnxruntime_web: Path) -> None:
    trap = "onnx/Div-7/int32/none/A=-2147483648,7;B=-1,-1/ramp/smallest"
    cases = [OTHERS[0], trap, OTHERS[1]]
    results, _ = found(f"cmd:{shlex.join(['node', str(onnxruntime_web)])}", cases, SLOW)
    assert [str(results[case].outcome) for case in cases] == ["pass", "crash", "pass"]
    assert "RuntimeError: divide" in (results[trap].detail or "")

"""The command line: what each command prints, and one clear message for everything that a user can get wrong."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result
from fakes.sampled import slow
from fakes.specs import specs_of_means

from opconform.cli import dev, main

INT32 = ["--select", "onnx/ReduceMean-13/int32/*"]
BEYOND = "onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53"
PLANNED = BEYOND.replace("/1/axes=0/", "/2x300/axes=-1/")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments], catch_exceptions=False)


def fails(*arguments: object) -> str:
    """Return the one message of a command that is used wrongly."""
    done = call(*arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def specs_with(folder: Path, old: str, new: str) -> Path:
    """Return such a folder in which ReduceMean's file has one text for another."""
    root = specs_of_means(folder)
    file = root / "onnx" / "ReduceMean.yaml"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    return root


# Help


def test_help_names_every_command() -> None:
    done = call("--help")
    assert done.exit_code == 0
    for name in ("run", "list", "show", "dev"):
        assert re.search(rf"^  {name}  ", done.output, re.MULTILINE)
    for name in ("audit", "scaffold", "lock", "mutants"):
        assert not re.search(rf"^  {name}  ", done.output, re.MULTILINE)
        assert re.search(rf"^  {name}  ", call("dev", "--help").output, re.MULTILINE)


def test_a_maintainers_command_without_its_group_is_named_in_full() -> None:
    done = call("audit", "onnx")
    assert done.exit_code == 2
    assert "no such command 'audit'; expected `" in done.output
    assert "dev audit`" in done.output


NAMES = [name for name in main.commands if name != "dev"] + [f"dev {name}" for name in dev.commands]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_each_command_s_help_shows_an_example_of_it(name: str) -> None:
    done = call(*name.split(), "--help")
    assert done.exit_code == 0
    _, _, examples = done.output.partition("Examples:")
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert lines
    assert all(f"opconform {name}" in line for line in lines)


def test_help_and_version_load_no_library() -> None:
    script = (
        "import sys\nfrom opconform.cli import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    for words in (["--help"], ["run", "--help"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True, env=bare_environment()
        )
        loaded = ast.literal_eval(done.stdout.splitlines()[-1])
        assert "click" in loaded
        assert not {"onnx", "numpy", "pydantic", "rich", "yaml", "ml_dtypes", "onnxruntime", "gmpy2"} & set(loaded)


@pytest.mark.slow
def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "opconform", "list", "backends"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "onnx-reference" in done.stdout


def bare_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}


# What a user can get wrong

MEAN = "onnx/Mean-13/float32/3/-"

WRONG = {
    "an unknown backend": ("run onnxruntim", "no backend is called 'onnxruntim'; did you mean 'onnxruntime'?"),
    "a backend nothing is like": ("run xyzzy", "no backend is called 'xyzzy'; `opconform list backends`"),
    "a file that is not there": ("run python:my/backend.py:B", "there is no file my/backend.py; looked in "),
    "no class": ("run python:backend", "expected python:package.module:Class"),
    "a program that is not there": ("run cmd:./backend", "'./backend' is not an executable program"),
    "a backend that is no program": ("check-runner onnxruntime", "is for programs over the process protocol"),
    "an unknown scheme": ("run pyton:backend:B", "python:package.module:Class"),
    "no backend": ("run", "Missing argument 'BACKEND...'"),
    "a glob that selects nothing": ("run onnxruntime --select onnx/Nonesuch-*", "onnx/Nonesuch-* selects no case"),
    "an id that is no case": (f"run onnxruntime --select {BEYOND.replace('/1/', '/x/')}", "selects no case"),
    "a strength of nothing": ("run onnxruntime --strength 0", "strength 0: expected a whole number from 1, or full"),
    "a strength in words": ("list --strength two", "strength two: expected a whole number"),
    "no draws": ("run onnxruntime --draws 0", "Invalid value for '--draws'"),
    "a negative seed": ("run onnxruntime --seed -1", "Invalid value for '--seed'"),
    "no workers": ("run onnxruntime --jobs 0", "Invalid value for '--jobs'"),
    "no time": ("run onnxruntime --timeout 0", "Invalid value for '--timeout'"),
    "a time that is none": ("run onnxruntime --timeout nan", "nan is not a number of seconds"),
    "a requirement without option": ("run onnxruntime --require flush", "expected SILENCE=OPTION"),
    "an unknown silence": (
        "run onnxruntime --require accumulatr=wide",
        "no silence is called 'accumulatr'; did you mean 'accumulator'?",
    ),
    "an unknown option": (
        "run onnxruntime --require accumulator=wid",
        "accumulator has the options wide, stepwise, narrow",
    ),
    "two options": ("run onnxruntime --require flush=none --require flush=output", "flush=none is already required"),
    "no waivers": ("run onnxruntime --waivers nowhere.yaml", "nowhere.yaml: cannot be read: No such file"),
    "no errata": ("run onnxruntime --errata nowhere.yaml", "nowhere.yaml: cannot be read: No such file"),
    "no profile": ("run onnxruntime --profile nowhere.yaml", "nowhere.yaml: cannot be read: No such file"),
    "no declaration": ("run onnxruntime --arithmetic nowhere.yaml", "nowhere.yaml: cannot be read: No such file"),
    "no folder of specs": ("list --specs nowhere", "Directory 'nowhere' does not exist"),
    "no list of that": ("list versions", "is not one of 'operators', 'cases', 'backends'"),
    "a misspelt operator": ("list --select onnx/RedcueMean-*", "did you mean 'onnx/ReduceMean-*'?"),
    "a version without its standard": ("run onnxruntime --select ReduceMean-13", "did you mean 'onnx/ReduceMean-13'?"),
    "an operator in small letters": (
        "run onnxruntime --select onnx/reducemean-18",
        "did you mean 'onnx/ReduceMean-18'?",
    ),
    "an operator without version": ("list cases --select onnx/ReduceMean", "did you mean 'onnx/ReduceMean-*'?"),
    "cases without standard": ("list cases --select Mean-13/float16/*", "did you mean 'onnx/Mean-13/float16/*'?"),
    "a version that there is not": (
        "run onnxruntime --dry-run --select onnx/ReduceMean-12",
        "onnx/ReduceMean-12 selects no case; there is onnx/ReduceMean-1, onnx/ReduceMean-11, onnx/ReduceMean-13",
    ),
    "a version of what has none": ("list --select onednn/reducemean-*", "did you mean 'onednn/ReduceMean'?"),
    "a misspelt case": (
        f"run onnxruntime --select {PLANNED.replace('beyond', 'beyon')}",
        f"the nearest case is {PLANNED}",
    ),
    "a misspelt case to mutate": ("dev mutants --select onnx/Meen-13", "did you mean 'onnx/Mean-13'?"),
    "a misspelt case to show": (f"show {PLANNED.replace('ReduceMean', 'RedceMean')}", f"the nearest case is {PLANNED}"),
    "two archives": ("export --format npz --out a.zip --pack b.zip", "two archives, a.zip and b.zip"),
    "nothing to list": ("list cases --select nonesuch", "nonesuch selects no case"),
    "no operators to list": ("list --select nonesuch", "nonesuch selects no case"),
    "an unknown standard": ("dev audit onxx", "'onxx' cannot be audited: it has no schema; did you mean 'onnx'?"),
    "an unknown operator": ("dev scaffold onnx/RedceMean", "no operator 'RedceMean'; did you mean 'ReduceMean'?"),
    "an unknown command": ("rnu", "No such command 'rnu'"),
    "an unknown option of a command": ("run onnxruntime --nonesuch", "No such option"),
    "no case id": ("show garbage", "'garbage' is not a case id: it has 1 parts, expected standard/Operator-version/"),
    "a fill that is none": (
        f"show {BEYOND.replace('beyond-2^53', 'rmap')}",
        "no fill is called 'rmap'; did you mean 'ramp'?",
    ),
    "a fill that is like none": (
        f"show {BEYOND.replace('beyond-2^53', 'zzz')}",
        "no fill is called 'zzz'; there are ramp,",
    ),
    "a case without its standard": (
        "show Mean-13/float32/3/-/ramp",
        "did you mean 'onnx/Mean-13/float32/3/-/ramp'?",
    ),
    "a key for what is not there": ("verify x.zip --key x.pem", "x.zip: no such folder or archive"),
    "an archive of results": ("run onnxruntime --out x.zip", "`opconform submit DIR --out x.zip` packs one"),
    "an unknown version": (
        "show onnx/ReduceMean-19/float32/3/-/ramp",
        "no operator version is called 'onnx/ReduceMean-19'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_in_one_message(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, words = WRONG[name]
    assert words in fails(*arguments.split())
    assert list(tmp_path.iterdir()) == [], "nothing is touched"


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime-noopt"])
def test_a_backend_that_is_not_installed_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # type: ignore[arg-type]  # as if it were not there
    message = f"{name} needs onnxruntime, which is not installed: pip install onnxruntime"
    assert message in fails("run", name, *INT32)
    listed = call("list", "backends").output
    assert re.search(rf"^{name} .*not installed: pip install onnxruntime\)", listed, re.MULTILINE)


@pytest.mark.parametrize("script", [(), ("--script",)])
def test_a_case_that_there_is_not_suggests_the_nearest(script: tuple[str, ...]) -> None:
    message = fails("show", *script, "onnx/ReduceMean-13/float32/3x2x2/axes=2,0/ramp/axis-unsorted")
    assert "has no edge 'axis-unsorted'; did you mean 'axes-unsorted'" in message
    assert message.endswith("the nearest case is onnx/ReduceMean-13/float32/3x2x2/axes=2,0/ramp/axes-unsorted")
    assert "the nearest case is onnx/Mean-13/" in fails("show", "onnx/Mean-13/float32/3,2/-/ramp")
    assert "the nearest case is onnx/Mean-" in fails("show", "onnx/Maen-13/float32/3/-/ramp")


def test_what_an_id_says_reaches_no_terminal_raw() -> None:
    message = fails("show", "onnx/Mean-13/float32/3/-/ra\x1b[31mmp")
    assert "\x1b" not in message
    message = fails("run", "python:x\x1b[31m:Y")
    assert "\x1b" not in message


@pytest.mark.parametrize("command", [["show", BEYOND], ["list", "--select", "onnx/ReduceMean-*"], ["dev", "audit"]])
def test_malformed_yaml_names_file_line_and_column(command: list[str], tmp_path: Path) -> None:
    root = specs_with(tmp_path, "operator: onnx/ReduceMean\n", "operator: onnx/ReduceMean\nfamily: [reduction\n")
    message = fails(*command, "--specs", root)
    assert re.search(rf"{root}/onnx/ReduceMean\.yaml:\d+:\d+: ", message)


@pytest.mark.parametrize(
    "command", [["list"], ["run", "onnx-reference", "--select", "onnx/*/float32/*/ramp", "--jobs", "1"]]
)
def test_a_mistake_in_a_spec_is_told_and_stops_its_own_operator_alone(command: list[str], tmp_path: Path) -> None:
    root = specs_with(tmp_path, "clauses:\n", "clausses:\n")
    out = ["--out", tmp_path / "out", "--quiet", "--verbose"] if command[0] == "run" else []
    done = call(*command, "--specs", root, *out)
    assert done.exit_code == 2
    assert "onnx/Mean-13" in done.stdout
    told = " ".join(done.output.split())
    assert re.search(r"ReduceMean is left out: \S*ReduceMean\.yaml:\d+:1: .*'clausses'; did you mean 'clauses'", told)


def test_no_corpus_is_written_where_a_spec_file_is_wrong(tmp_path: Path) -> None:
    root = specs_with(tmp_path, "clauses:\n", "clausses:\n")
    fails("export", "--format", "npz", "--out", tmp_path / "corpus", "--specs", root)
    assert not list((tmp_path / "corpus").glob("**/*.json"))


def test_a_folder_without_specs_is_told(tmp_path: Path) -> None:
    for command in (["list"], ["show", BEYOND], ["run", "onnxruntime"], ["dev", "audit"]):
        assert f"{tmp_path}: no spec file there" in fails(*command, "--specs", tmp_path)


# The results folder


def test_a_folder_that_is_not_empty_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("data")
    message = fails("run", "onnxruntime", *INT32, "--out", tmp_path)
    assert "the folder is not empty" in message
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]
    assert (tmp_path / "precious").read_text() == "data"


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "file/below"):
        assert f"{tmp_path / name}: " in (message := fails("run", "onnxruntime", *INT32, "--out", tmp_path / name))
        assert "choose" in message
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "Permission denied" in fails("run", "onnxruntime", *INT32, "--out", tmp_path / "out")


def test_options_are_checked_before_the_results_folder_is_made(tmp_path: Path) -> None:
    waivers = tmp_path / "waivers.yaml"
    waivers.write_text("- case: onnx/Mean-13/*\n  outcome: broken\n  expires: tomorrow\n")
    message = fails("run", "onnxruntime", *INT32, "--waivers", waivers, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    for words in ("waivers.yaml:2:", "'broken'", "waivers.yaml:3:", "YYYY-MM-DD", "'reason'", "'owner'", "'link'"):
        assert words in message


TREE = (
    "onnx/TreeEnsemble-5/float16/1x1/leaf_targetids=0;leaf_weights=T:1:2;nodes_falseleafs=0;nodes_falsenodeids=0;"
    "nodes_featureids=0;nodes_modes=uint8:1:0;nodes_splits=T:1:0.5;nodes_trueleafs=0;nodes_truenodeids={};"
    "tree_roots=0/ramp"
)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (TREE.format(0), "TreeEnsemble: its formula has no answer for such an input: RecursionError"),  # its own branch
        (TREE.format(9), "TreeEnsemble: its formula has no answer for such an input: IndexError"),  # nobody's
        ("onnx/NegativeLogLikelihoodLoss-13/float16,int32/2x3,2,3/target=ignoring/ramp", "target cannot be drawn"),
    ],
)
def test_a_case_that_nobody_foresaw_is_a_mistake_of_its_id(case: str, message: str) -> None:
    assert message in fails("show", case)


# Lists


def test_operators_are_listed_with_the_number_of_their_cases(tmp_path: Path) -> None:
    specs = ("--specs", specs_of_means(tmp_path))
    lines = call("list", *specs).output.splitlines()
    assert len(lines) == 8
    counts = {line.split()[0]: int(line.split()[1]) for line in lines}
    assert counts["onnx/Mean-13"] == len(call("list", "cases", "--select", "onnx/Mean-13").output.splitlines())
    listed = call("list", "operators", "--json", "--select", "onnx/Reduce*", *specs).output
    told = [json.loads(line) for line in listed.splitlines()]
    assert [t["operator"] for t in told] == [f"onnx/ReduceMean-{v}" for v in (1, 11, 13, 18)]
    assert all(t["cases"] == counts[t["operator"]] and t["clauses"] > 10 for t in told)


def test_cases_are_listed_as_ids_or_as_their_parts() -> None:
    select = ["--select", "onnx/Mean-*/float32/*", "--draws", "2", "--seed", "3"]
    ids = call("list", "cases", *select).output.splitlines()
    assert all(fnmatchcase(text, "onnx/Mean-*/float32/*") for text in ids)
    assert any("draw=1;seed=3" in text for text in ids)
    told = [json.loads(line) for line in call("list", "cases", *select, "--json").output.splitlines()]
    assert [t["case"] for t in told] == ids
    one = next(t for t in told if t["edge"] == "grows-twice" and t["operator"] == "onnx/Mean-8")
    assert one == {
        "case": "onnx/Mean-8/float32/2,3x1,4x1x1/seed=3/ramp/grows-twice",
        "operator": "onnx/Mean-8",
        "types": ["float32"],
        "shapes": [[2], [3, 1], [4, 1, 1]],
        "settings": {"seed": "3"},
        "fill": "ramp",
        "edge": "grows-twice",
    }


def test_strength_and_selections_change_how_many_cases_there_are() -> None:
    def number(*more: str) -> int:
        return len(call("list", "cases", "--select", "onnx/Mean-6", *more).output.splitlines())

    assert number("--strength", "1") < number() < number("--strength", "3") < number("--strength", "full")
    assert number() < number("--select", "onnx/Mean-1")


def test_backends_are_listed_with_what_they_need() -> None:
    lines = call("list", "backends").output.splitlines()
    assert {line.split()[0] for line in lines} >= {"onnxruntime", "onnxruntime-noopt", "onnx-reference"}
    told = {t["name"]: t for t in map(json.loads, call("list", "backends", "--json").output.splitlines())}
    assert told["onnxruntime"]["standards"] == ["onnx"]
    assert told["onnxruntime"]["install"] == "pip install onnxruntime"
    assert isinstance(told["onnxruntime"]["installed"], bool)


# Audit and scaffold


@pytest.mark.slow
def test_the_audit_finds_no_difference_and_tells_coverage(tmp_path: Path) -> None:
    specs = ("--specs", specs_of_means(tmp_path))
    done = call("dev", "audit", "onnx", *specs)
    assert done.exit_code == 0
    assert "no differences" in done.output
    assert "no case:" not in done.output
    told = json.loads(call("dev", "audit", "--json", *specs).output)
    assert told["standard"] == "onnx"
    assert told["operator_versions"]["covered"] == 8
    assert told["clauses"]["covered"] == told["clauses"]["total"] > 50


CONTRADICTIONS = {
    "attributes: {axes: optional ints, keepdims: int = 1}": "attributes: {axes: optional ints, keepdims: int = 0}",
    "attributes: {keepdims: int = 1, noop_with_empty_axes: int = 0}": "attributes: {keepdims: int = 1, "
    "noop_with_empty_axes: optional int}",
}


@pytest.mark.slow
@pytest.mark.parametrize("right", [slow(one) if "noop" in one else one for one in CONTRADICTIONS])
def test_a_spec_that_contradicts_the_schema_exits_1_and_names_the_line(right: str, tmp_path: Path) -> None:
    root = specs_with(tmp_path, right, CONTRADICTIONS[right])
    line = next(
        n
        for n, text in enumerate((root / "onnx/ReduceMean.yaml").read_text().splitlines(), 1)
        if CONTRADICTIONS[right] in text
    )
    done = call("dev", "audit", "--specs", root)
    assert done.exit_code == 1
    assert re.search(rf"{root}/onnx/ReduceMean\.yaml:{line}:\d+: .*the schema", done.output)
    told = json.loads(call("dev", "audit", "--specs", root, "--json").output)
    assert {d["line"] for d in told["differences"]} == {line}


def test_a_scaffold_is_a_signature_to_begin_with() -> None:
    done = call("dev", "scaffold", "onnx/Add")
    assert done.exit_code == 0
    assert "operator: onnx/Add" in done.output
    assert "  14:" in done.output


# One case

SHOWN = {
    "onnx/ReduceMean-13/float32/3x2x2/axes=2,0/ramp/axes-unsorted": [
        r"operation    reduced = ReduceMean\(data; axes=\[2, 0\]\)  \(opset 13\)",
        r"tensor       data: float32 3x2x2: \[-6.0, ",
        r"exact        \[-3/2, 1/2\]",
        r"rule         .*n = 6, M = ",
        r"clause       axes-order: .*\(inferred\)\n +https://onnx.ai/",
        r"digests      case [0-9a-f]{16}…, expectation [0-9a-f]{16}…",
    ],
    "onnx/ReduceMean-13/int32/3x2x2/axes=3/ramp/axis-too-large": [
        "expectation  invalid input: no answer is right",
        "mended       onnx/ReduceMean-13/int32/3x2x2/axes=2/ramp",
        "clause       axes-range: ",
    ],
    "onnx/ReduceMean-13/int32/2x2/axes=1/halves/fraction": [
        "silence      integer-rounding: truncate, floor, nearest-even, nearest-away",
        r"option 1 .*integer-rounding=truncate",
        r"result       %\d+ .*\nexact        \[3, -3\]",
    ],
    "onnx/ReduceMean-18/bfloat16/3x2x2/noop_with_empty_axes=1/negative-zero/noop-zeros": ["negative zero"],
    "onnx/ReduceMean-1/float16/3x2x2/axes=3/ramp/axis-beyond": ["invalid input: no answer is right", "mended"],
    "onnx/ReduceMean-13/float16/2x0x3/-/ramp/empty-set": ["any value", "empty-set=rejected: a refusal"],
    "onnx/ReduceMean-13/float16/1x65537/axes=1/ones": ["… 65525 more", "overflow=infinite"],
    "openvino/ReduceMean-1/float32,int64/3x2x2/axes=2,0/ramp/axes-unsorted": [
        r'operation    <layer id="1" name="ReduceMean" type="ReduceMean" version="opset1">\n {17}<input>\n',
        r"\n {21}<port id=\"1\" precision=\"I64\">  <!-- axes: value is \[2, 0\] -->\n {25}<dim>2</dim>\n",
        r"\n             </layer>\ntensor       data: float32 3x2x2: ",
    ],
    "onednn/ReduceMean/bfloat16/3x2x2/axes=1;axes-from=both/ramp/axes-both": [
        r"operation    ReduceMean\n {15}attributes\n {17}axes: s64\[\] = \[1\]\n",
        r"\n {15}inputs\n {17}0  src: bf16 \[3, 2, 2\]\n {17}1  axes: s32 \[1\]\n",
        r"tensor       axes: int32 1: \[1\]",
    ],
    BEYOND: [r"option 1     the one answer\n    int64 1\n    \[0\] (\d{16})\n(?:.*\n)*exact        \[\1\]"],
}


@pytest.mark.parametrize("case", SHOWN)
def test_a_case_is_shown_with_what_is_expected_and_why(case: str) -> None:
    done = call("show", case)
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"case         {case}\n")
    for pattern in SHOWN[case]:
        assert re.search(pattern, done.output), pattern


def test_a_declared_option_is_shown_as_such(tmp_path: Path) -> None:
    file = tmp_path / "device.yaml"
    file.write_text("float32: {compute: tf32}\n")
    done = call("show", "onnx/Mean-13/float32/2*3x2/-/uniform", "--arithmetic", file)
    assert "(only under declared arithmetic)" in done.output


@pytest.mark.slow
def test_quoting_in_a_shell_is_safe_for_every_id() -> None:
    for text in call("list", "cases").output.splitlines():
        assert re.fullmatch(r"[A-Za-z0-9_.^+*,;=/:@%-]+", text), text


def test_an_interrupt_before_anything_was_judged_exits_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("opconform.cli.session.opened", interrupted)
    done = call("run", "onnxruntime", *INT32)
    assert (done.exit_code, done.stdout, done.stderr) == (130, "", "opconform: interrupted\n")


# What a run would take


@pytest.mark.slow
def test_a_dry_run_tells_the_cases_and_programs_of_the_backend_s_standards(tmp_path: Path) -> None:
    select = ["--select", "onnx/ReduceMean-18/int64/*", "--select", "onednn/*"]
    ids = call("list", "cases", *select).stdout.split()
    for backend, standard in ("onnxruntime", "onnx"), ("onednn", "onednn"):
        done = call("run", backend, *select, "--dry-run", "--out", tmp_path / backend)
        assert done.exit_code == 0
        of_it = [i for i in ids if i.startswith(f"{standard}/")]
        assert re.match(
            rf"{standard}: {len(of_it):,} cases of [\d,]+ programs, about \d+ s of one processor", done.stdout
        )
        assert len(done.stdout.splitlines()) == 1
        assert not (tmp_path / backend).exists()


def test_a_dry_run_of_nothing_exits_2() -> None:
    assert call("run", "onednn", "--select", "onnx/Mean-13", "--dry-run").exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_options_and_backends(shell: str) -> None:
    done = call("completion", shell)
    assert done.exit_code == 0
    assert "_OPCONFORM_COMPLETE" in done.stdout
    assert "opconform" in done.stdout


def test_what_a_shell_completes() -> None:
    words = ShellComplete(main, {}, "opconform", "_OPCONFORM_COMPLETE")
    assert "minimise" in [one.value for one in words.get_completions([], "min")]
    backends = {one.value for one in words.get_completions(["run"], "onnxr")}
    assert backends >= {"onnxruntime", "onnxruntime-noopt"}
    assert all(name.startswith("onnxr") for name in backends)
    assert "--select" in [one.value for one in words.get_completions(["run", "onnxruntime"], "--se")]

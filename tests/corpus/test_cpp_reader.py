"""examples/corpus: a reader in C++ that judges as we do, finds wrong backends, and survives damaged files."""

from __future__ import annotations

import fcntl
import functools
import itertools
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from fakes.judging import judge_answer, judge_refusal

from opconform.cases.batch import Batch, Expectation, Option, cases_of
from opconform.cases.corpus.cases import CorpusCases
from opconform.cases.corpus.tensors import write_npz
from opconform.cases.elements import Array, bits_of, element_type, element_types, from_bits, type_of
from opconform.cases.results import Outcome
from opconform.cli import main
from opconform.runners.judging.answers import Refusal

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "corpus"
CHECKED = ("-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O1")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
BROKEN = 99
"""What a program exits with when a sanitizer finds something."""
NAMES = ("onnx/ReduceMean-", "openvino/ReduceMean-", "onednn/ReduceMean")  # `*/` would plan all other operators, too
MEANS = (
    *(name + glob for name in NAMES for glob in ("*/2x2/*", "*/overflow/*", "*/special/*", "*/negative-zero/*")),
    *(name + "*/axis-t*" for name in NAMES),
    "onnx/Mean-13/*/scalar/*", "onnx/Mean-13/*/2*3x2/*",
    "onnx/ReduceMean-1/*/axis-beyond", "onnx/ReduceMean-13/bfloat16/512x32/*", "onnx/ReduceMean-18/*int64/*",
    "openvino/ReduceMean-1/bool*", "openvino/ReduceMean-1/int8*",
)  # fmt: skip
OTHERS = ("onnx/Cast-25/*", "onnx/TopK-11/*", "onnx/StringConcat-20/*", "onnx/SequenceInsert-11/*", "onnx/Add-14/*")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")]


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that the first of all test processes makes, since that takes long."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / name).exists():
            making = shared / f"{name}.partial"
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir()
            make(making)
            making.rename(shared / name)
    return shared / name


def export(folder: Path, selected: Sequence[str] = MEANS) -> None:
    globs = [word for glob in selected for word in ("--select", glob)]
    done = CliRunner().invoke(main, ["export", "--format", "npz", "--strength", "1", "--out", str(folder), *globs])
    assert done.exit_code == 0, done.output


def build(folder: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "cpp-vendors.md").read_text()
    (folder / "my_backend.cpp").write_text(page.split("```cpp\n")[1].split("```")[0])
    backends = (EXAMPLE / "toy_mean.cpp", HERE.parent / "fakes" / "recorded_answers.cpp", folder / "my_backend.cpp")
    sources = (EXAMPLE / "read_corpus.cpp", *backends)
    compiling = [
        subprocess.Popen(["g++", *CHECKED, *SANITIZED, f"-I{EXAMPLE}", "-c", source, "-o", folder / f"{source.stem}.o"])
        for source in sources
    ]
    assert {process.wait() for process in compiling} == {0}
    for backend in backends:
        objects = [folder / "read_corpus.o", folder / f"{backend.stem}.o"]
        subprocess.run(["g++", *SANITIZED, *objects, "-o", folder / backend.stem], check=True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return once(tmp_path_factory, "cpp-corpus", export)


@pytest.fixture(scope="module")
def of_all_kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with types that NumPy lacks, text, sequences and tests of whole outputs."""
    return once(tmp_path_factory, "cpp-corpus-of-all-kinds", functools.partial(export, selected=(*MEANS, *OTHERS)))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example's reader: with the toy, with recorded answers, and with the backend of the page."""
    return once(tmp_path_factory, "cpp-built", build)


def judged(program: Path, *words: Path, **environment: object) -> tuple[int, list[list[str]], str]:
    """Return the exit code, outcome and id of every case, and what was said of the whole."""
    code, lines, said = answered(program, *words, **environment)
    return code, [line.split(" ", 1) for line in lines if not line.startswith("  ")], said


def answered(program: Path, *words: Path, **environment: object) -> tuple[int, list[str], str]:
    """Return the exit code, the lines, and what was said of the whole."""
    options = dict.fromkeys(("ASAN_OPTIONS", "UBSAN_OPTIONS"), f"exitcode={BROKEN}")
    known = os.environ | options | {name: str(value) for name, value in environment.items()}
    done = subprocess.run([program, *words], env=known, capture_output=True, text=True, errors="replace", check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_the_example_is_as_short_as_it_promises() -> None:
    assert len((EXAMPLE / "read_corpus.cpp").read_text().splitlines()) < 330


def test_the_backend_of_the_page_for_vendors_is_built_and_judged(built: Path, corpus: Path, tmp_path: Path) -> None:
    code, found, said = judged(built / "my_backend", corpus)
    assert code == 1, said
    seen = Counter((outcome, case.split("/")[1].split("-")[0]) for outcome, case in found)
    assert {outcome for outcome, _ in seen} == {"pass", "refused"}
    assert seen["pass", "Mean"] > 3
    refused = sum(outcome == "refused" for outcome, _ in found)
    assert said == f"{len(found)} cases, {refused} failures, {refused} of them refused\n"
    code, _, said = judged(built / "my_backend", tmp_path / "nowhere")
    assert (code, said) == (2, f"cannot read: {tmp_path / 'nowhere'}/cases.txt: no such file\n")


def test_a_right_backend_in_cpp_passes_every_case(built: Path, corpus: Path) -> None:
    code, found, said = judged(built / "toy_mean", corpus)
    assert code == 0, [one for one in found if one[0] not in ("pass", "unsupported")]
    assert [case for _, case in found] == list(CorpusCases(corpus).ids())
    assert {outcome for outcome, _ in found} == {"pass", "accepted-invalid"}
    assert said == f"{len(found)} cases, 0 failures\n"


@pytest.mark.parametrize(
    ("wrong", "outcome"), [(1, "wrong-value"), (2, "wrong-value"), (3, "accepted-invalid"), (4, "wrong-shape")]
)
def test_a_wrong_backend_in_cpp_is_found(wrong: int, outcome: str, built: Path, corpus: Path) -> None:
    right = Counter(found for found, _ in judged(built / "toy_mean", corpus)[1])
    code, found, _ = judged(built / "toy_mean", corpus, TOY_MEAN_WRONG=wrong)
    assert code == (0 if outcome == "accepted-invalid" else 1)
    assert Counter(one for one, _ in found)[outcome] > right[outcome]


def test_a_wrong_answer_is_told_in_numbers(built: Path, corpus: Path) -> None:
    _, lines, _ = answered(built / "toy_mean", corpus, TOY_MEAN_WRONG=2)
    told = {case: why for case, why in itertools.pairwise(lines) if case.startswith("wrong-value ")}
    assert told
    number = r"(?:-?[0-9.]+(?:e[+-][0-9]+)?|-?inf|-?nan)"
    element = rf"  element \[[0-9, ]*\]: got {number}, want .+ \([0-9]+ of [0-9]+ wrong\)"
    assert [why for why in told.values() if not re.fullmatch(element, why)] == []
    _, lines, _ = answered(built / "toy_mean", corpus, TOY_MEAN_WRONG=4)
    shapes = [why for case, why in itertools.pairwise(lines) if case.startswith("wrong-shape ")]
    assert shapes
    assert all(re.fullmatch(r"  output 0: got \[[0-9, ]*\], want \[[0-9, ]*\]", why) for why in shapes)


def test_what_is_refused_beyond_a_profile_is_no_failure(built: Path, corpus: Path, tmp_path: Path) -> None:
    _, found, _ = judged(built / "my_backend", corpus)
    passed = next(case for outcome, case in found if outcome == "pass" and "/Mean-" in case)
    profile = tmp_path / "profile.txt"
    profile.write_text(f"# what it can do\n{passed}\n")
    code, found, said = judged(built / "my_backend", corpus, profile)
    assert code == 0
    unsupported = sum(outcome == "unsupported" for outcome, _ in found)
    assert unsupported
    assert said == f"{len(found)} cases, 0 failures; {unsupported} unsupported beyond the profile\n"
    profile.write_text("onnx/Mean-13\n")
    code, found, _ = judged(built / "my_backend", corpus, profile)
    assert code == 1
    assert {case.split("/")[1] for outcome, case in found if outcome == "refused"} == {"Mean-13"}
    profile.write_text("")
    code, _, said = judged(built / "my_backend", corpus, profile)
    assert (code, said.startswith(f"cannot read: {profile}: no profile")) == (2, True)


# The same verdicts as ours


def test_its_verdicts_are_ours_on_answers_of_every_kind(built: Path, of_all_kinds: Path, tmp_path: Path) -> None:
    corpus = of_all_kinds
    read, seen = CorpusCases(corpus), Counter[str]()
    skipped = {
        case
        for outcome, case in judged(built / "recorded_answers", corpus, ANSWERS=tmp_path)[1]
        if outcome == "skipped"
    }
    of_skipped = {case.split("/")[1].split("-")[0] for case in skipped}
    assert of_skipped == {"Add", "Cast", "TopK", "StringConcat", "SequenceInsert"}
    cases = [case for case in cases_of(read, read.ids()) if case.id not in skipped]
    assert {"float8e5m2", "int4", "float4e2m1"} <= {name for case in cases for name in case.expectation.types}
    for number in (0, 1, 2, 3, 4, 5, 6, 7, 10, 11):
        chance, ours = random.Random(number), []
        folder = tmp_path / str(number)
        folder.mkdir()
        for case in cases:
            outputs = _answer(case, number, chance)
            ours.append([_verdict(case.expectation, outputs), case.id])
            if outputs is not None:
                named = read.manifest.cases[case.id].folder.replace("/", ".")
                content = write_npz({f"{k}_{_name(one)}": one for k, one in enumerate(outputs)})
                (folder / f"{named}.npz").write_bytes(content)
        code, found, said = judged(built / "recorded_answers", corpus, ANSWERS=folder)
        assert [one for one in found if one[1] not in skipped] == ours, said
        assert code == any(outcome not in ("pass", "accepted-invalid") for outcome, _ in ours)
        seen.update(outcome for outcome, _ in ours)
    assert seen.keys() == {"pass", "wrong-value", "wrong-shape", "wrong-dtype", "accepted-invalid", "refused"}
    assert min(seen.values()) > 10


def _verdict(expectation: Expectation, outputs: Sequence[Array] | None) -> str:
    if outputs is not None:
        return str(judge_answer(expectation, outputs).outcome)
    outcome = judge_refusal(expectation, Refusal("no", False, "other"), variant_ran=True).outcome
    return "refused" if outcome is Outcome.ERROR else str(outcome)


def _name(array: Array) -> str:
    return next(name for name, known in element_types().items() if known.dtype == array.dtype)


def _answer(case: Batch, number: int, chance: random.Random) -> tuple[Array, ...] | None:
    """Return an answer of the kind with this number, most of them close to where the verdict turns."""
    options = [option for option in case.expectation.options if option.kind == "values"]
    if number == 0:
        return None
    if not options:
        return (np.zeros((2,), element_type(case.expectation.types[0]).dtype),)
    if number == 1:
        other = next(one for one in ("float32", "int64", "bool") if one not in case.expectation.types)
        return tuple(np.zeros(b.shape, other) for b in options[0].outputs)
    answers = list(_near(chance.choice(options), number, chance))
    return (*answers, answers[0]) if number == 2 and chance.random() < 0.5 else tuple(answers)


def _near(option: Option, number: int, chance: random.Random) -> Iterator[Array]:
    for bounds in option.outputs:
        kind = element_type(bounds.type)
        with np.errstate(all="ignore"):
            ends = [bounds.lower[0], bounds.upper[0], bounds.value[0]]
            array = np.array(chance.choice(ends), copy=True).astype(kind.dtype)
            if array.size and number > 3:
                place = tuple(chance.randrange(extent) for extent in array.shape)
                where = place if number % 2 else ...
                array[where] = _odd(array[where], number, chance)
        yield array.reshape((1, *array.shape)) if number == 3 else array


def _odd(value: Array, number: int, chance: random.Random) -> Array | float:
    kind = element_type(type_of(value))
    if kind.kind == "float" and number < 10:
        return chance.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30])
    if value.dtype == bool:
        return ~value
    if kind.is_packed:
        return from_bits(kind.name, bits_of(value) ^ 1)
    bits = value.view(f"u{value.dtype.itemsize}") + np.array(chance.choice([1, -1]), np.int64).astype(
        f"u{value.dtype.itemsize}"
    )  # the next number up or down
    found: Array = bits.view(value.dtype)
    return found


# Damaged files


@pytest.fixture
def small(corpus: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A corpus of the first case with several options, and an answer to it."""
    read = CorpusCases(corpus)
    case = next(c for c in cases_of(read, read.ids()) if len(c.expectation.options) > 2 and len(c.program.inputs) > 1)
    folder = read.manifest.cases[case.id].folder
    shutil.copytree(corpus / folder, tmp_path / "small" / folder)
    head, *blocks = (corpus / "cases.txt").read_text().replace("\n", "\n\n", 1).split("\n\n")
    block = next(block for block in blocks if f"case {folder}\n" in block)
    (tmp_path / "small" / "cases.txt").write_text(f"{head}\n{block}\n\n")
    (tmp_path / "answers").mkdir()
    outputs = {f"{k}_{b.type}": b.lower[0].astype(element_type(b.type).dtype) for k, b in enumerate(_bounds(case))}
    (tmp_path / "answers" / f"{folder.replace('/', '.')}.npz").write_bytes(write_npz(outputs))
    return tmp_path / "small", tmp_path / "answers"


def _bounds(case: Batch) -> Sequence[object]:
    return next(option.outputs for option in case.expectation.options if option.kind == "values")


def test_damaged_files_are_refused_and_never_crash_it(built: Path, small: tuple[Path, Path]) -> None:
    corpus, answers = small
    run = built / "recorded_answers"
    assert judged(run, corpus, ANSWERS=answers)[0] in (0, 1)
    codes, chance = Counter[int](), random.Random(3)
    for file in (corpus / "cases.txt", next(corpus.rglob("case.npz"))):
        whole = file.read_bytes()
        damaged = [whole[: chance.randrange(len(whole))] for _ in range(15)]
        for _ in range(15):
            changed = bytearray(whole)
            for _ in range(chance.choice([1, 1, 20])):
                changed[chance.randrange(len(changed))] = chance.choice([0, 0xFF, 0x39, chance.randrange(256)])
            damaged.append(bytes(changed))
        for content in damaged:
            file.write_bytes(content)
            code, _, said = judged(run, corpus, ANSWERS=answers)
            assert code in (0, 1, 2), said
            codes[code] += 1
        file.write_bytes(whole)
    assert codes[2] > 30


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("opconform-corpus 2", "opconform-corpus 3", "expected version 2"),
        ("case ", "case ../", "leads elsewhere"),
        ("\n\n", "\n", "cut off"),
        ("\ninput ", "\ninput more int4 2\ninput ", "of another type"),
    ],
)
def test_an_index_that_is_none_is_refused(old: str, new: str, said: str, built: Path, small: tuple[Path, Path]) -> None:
    corpus, answers = small
    text = (corpus / "cases.txt").read_text()
    (corpus / "cases.txt").write_text(text.replace(old, new, 1))
    code, _, words = judged(built / "recorded_answers", corpus, ANSWERS=answers)
    assert (code, said in words) == (2, True), words

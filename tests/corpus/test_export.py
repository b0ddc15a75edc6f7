"""What `opconform export` writes: whole, safe on every file system, the same every time, and read back to the bit."""

from __future__ import annotations

import json
import math
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner, Result
from fakes.judging import judge_answer
from fakes.sampled import slow

import opconform.cases
from opconform.cases.batch import Batch, cases_of
from opconform.cases.corpus.cases import CorpusCases
from opconform.cases.corpus.descriptor import CorpusCase, case_from, described, tensors
from opconform.cases.corpus.files import CorpusError, compact_json, read_json
from opconform.cases.corpus.manifest import LONGEST, index_entry, program_folder
from opconform.cases.corpus.tensors import read_npz, read_tensors_file, tensors_file, write_npz
from opconform.cases.errors import CaseIdError, OpconformError
from opconform.cases.program import Attribute
from opconform.cases.results import Outcome
from opconform.cli import main
from opconform.generators.plain_answers import RELATIVE, plain_answer
from opconform.generators.plan import Selection
from opconform.generators.selection import selected
from opconform.generators.source import GeneratedCases

SELECT = [
    *("--select", "onnx/ReduceMean-18/float16/[2-7]*", "--select", "onnx/ReduceMean-18/int32/[12]*"),
    *("--select", "onnx/ReduceMean-18/uint16/3x2x2/*/type-uint16"),  # invalid
]
OTHERS = ("--select", "openvino/ReduceMean-1/bfloat16,int64/*", "--select", "onednn/ReduceMean/bfloat16/[23]*")
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def exported(*words: object) -> Result:
    return CliRunner().invoke(main, ["export", *map(str, words)])


@pytest.fixture(scope="module")
def onnx_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora") / "onnx"
    assert exported("--format", "onnx", "--out", folder, *SELECT).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def npz_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora") / "npz"
    assert exported("--format", "npz", "--out", folder, *SELECT, *OTHERS).exit_code == 0
    return folder


@pytest.fixture(params=["onnx", "npz"])
def corpus(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(f"{request.param}_corpus")
    return found


def files_below(folder: Path) -> list[Path]:
    return sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())


def schema(name: str) -> jsonschema.Draft202012Validator:
    file = Path(str(opconform.cases.__file__)).parent / "schemas" / f"{name}.schema.json"
    return jsonschema.Draft202012Validator(json.loads(file.read_text()))


# The whole suite


@pytest.fixture(scope="module")
def suite() -> tuple[Batch, ...]:
    source = GeneratedCases()
    return tuple(cases_of(source, list(selected(source, Selection(("*/ReduceMean*", "*/Mean-*"))))))


@pytest.fixture(scope="module")
def few() -> tuple[Batch, ...]:
    source = GeneratedCases()
    return tuple(
        cases_of(source, list(selected(source, Selection(("onnx/ReduceMean-18", "onnx/Mean-13", "onednn/ReduceMean")))))
    )


@pytest.mark.slow
def test_every_case_of_the_suite_survives_its_descriptor_and_its_tensors(suite: tuple[Batch, ...]) -> None:
    validator = schema("case")
    for number, case in enumerate(suite):
        one = CorpusCase(case)
        told = read_json(compact_json(described(one)), "case.json")
        packed, digests = read_npz(write_npz(tensors(one)), "case.npz"), (case.digest, case.expectation.digest)
        back = case_from(told, packed, digests, "case.json")  # holds it against both
        assert (back.program, back.clauses, back.valid_variant) == (case.program, case.clauses, case.valid_variant)
        assert back.expectation.silences == case.expectation.silences
        if number % 10 == 0:
            validator.validate(told)
            held = read_tensors_file(tensors_file(tensors(one)), "bounds.pb")
            assert case_from(told, held, digests, "case.json").expectation.digest == case.expectation.digest


@pytest.mark.slow
def test_what_only_grades_an_answer_is_kept_as_well(suite: tuple[Batch, ...]) -> None:
    graded = 0
    for case in suite[::7]:
        one = CorpusCase(case)
        digests = (case.digest, case.expectation.digest)
        back = case_from(described(one), tensors(one), digests, "case.json")
        for was, now in zip(case.expectation.options, back.expectation.options, strict=True):
            for wanted, found in zip(was.outputs, now.outputs, strict=True):
                np.testing.assert_array_equal(wanted.value, found.value)
                assert (wanted.residue is None) == (found.residue is None)
                if wanted.residue is not None and found.residue is not None:
                    np.testing.assert_array_equal(wanted.residue.rest, found.residue.rest)
                    np.testing.assert_array_equal(wanted.residue.doubt, found.residue.doubt)
                    graded += 1
    assert graded


@pytest.mark.slow
@pytest.mark.parametrize("cases", ["few", slow("suite")])
def test_the_answer_of_every_case_is_one_that_the_judge_admits(cases: str, request: pytest.FixtureRequest) -> None:
    for case in request.getfixturevalue(cases):
        plain = plain_answer(case.expectation)
        if plain is None:
            assert not any(option.kind == "values" for option in case.expectation.options)
        else:
            assert judge_answer(case.expectation, plain.outputs).outcome is Outcome.PASS, case.id


@pytest.mark.slow
@pytest.mark.parametrize("cases", ["few", slow("suite")])
def test_the_tolerance_of_a_case_admits_both_ends_of_every_option(cases: str, request: pytest.FixtureRequest) -> None:
    ends = 0
    for case in request.getfixturevalue(cases):
        plain = plain_answer(case.expectation)
        if plain is None or plain.tolerance is None:
            continue
        answers = [pair for o in case.expectation.options for pair in zip(o.outputs, plain.outputs, strict=False)]
        for bounds, answer in answers:
            for end in (bounds.lower[0], bounds.upper[0]):
                wanted = answer.astype(end.dtype)
                told = np.where(np.isnan(end), wanted, end) if end.dtype.kind == "f" else end
                relative = RELATIVE if end.dtype.kind == "f" else 0
                np.testing.assert_allclose(told, wanted, rtol=relative, atol=plain.tolerance, err_msg=case.id)
                ends += 1
    assert ends


@pytest.mark.parametrize("cases", ["few", slow("suite")])
def test_names_of_folders_speak_and_every_file_system_holds_them(cases: str, request: pytest.FixtureRequest) -> None:
    programs = {case.program.key: case.program for case in request.getfixturevalue(cases)}
    names = {program_folder(program) for program in programs.values()}
    assert len({name.lower() for name in names}) == len(programs)
    assert all(re.fullmatch(r"test_[A-Za-z0-9_-]+", name) and len(name) <= LONGEST for name in names)
    assert not any(RESERVED.fullmatch(name) for name in names)
    assert any(name.startswith("test_onnx_ReduceMean-18_float32_3x2x2_") for name in names)


# The files


@pytest.mark.slow
def test_a_corpus_read_back_has_the_generated_cases(corpus: Path) -> None:
    read, source = CorpusCases(corpus), GeneratedCases()
    assert len(read.ids()) > 30
    for case in cases_of(read, read.ids()):
        generated = source.case(case.id)
        assert (case.digest, case.expectation.digest) == (generated.digest, generated.expectation.digest)


@pytest.mark.slow
def test_a_corpus_can_be_pickled_and_asked_by_id(npz_corpus: Path) -> None:
    read = CorpusCases(npz_corpus)
    first = read.case(read.ids()[0])
    copied = pickle.loads(pickle.dumps(read))
    assert copied.case(first.id).digest == first.digest
    with pytest.raises(CaseIdError, match="has no case"):
        read.case("onnx/ReduceMean-18/float32/1/axes=0/none")


@pytest.mark.slow
def test_descriptors_and_manifest_fulfil_their_published_schemas(corpus: Path) -> None:
    schema("manifest").validate(json.loads((corpus / "manifest.json").read_text()))
    validator = schema("case")
    descriptors = [json.loads(file.read_text()) for file in corpus.rglob("case.json")]
    for told in descriptors:
        validator.validate(told)
    assert any(told["rejected"] for told in descriptors)
    assert any(told["certificate"] and told["certificate"]["derivations"] for told in descriptors)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**descriptors[0], "id": "no id"})


@pytest.mark.slow
def test_every_clause_that_a_case_tests_is_told_with_its_text(corpus: Path) -> None:
    read = CorpusCases(corpus)
    for text in read.ids():
        told = read.descriptor(text)["clauses"]
        assert tuple(clause["id"] for clause in told) == read.case(text).clauses
        assert all(clause["text"] and clause["source"] and clause["status"] for clause in told)


def test_cases_that_share_a_program_are_data_sets_of_one_model(onnx_corpus: Path) -> None:
    sets = [sorted(p.name for p in model.parent.glob("test_data_set_*")) for model in onnx_corpus.rglob("model.onnx")]
    assert max(map(len, sets)) > 1
    assert all(names == [f"test_data_set_{n}" for n in range(len(names))] for names in sets)


def test_onnx_s_own_loader_reads_the_folders(onnx_corpus: Path) -> None:
    from onnx.backend.test.loader import load_model_tests

    for kind in ("values", "open"):
        found = load_model_tests(str(onnx_corpus), kind)
        assert len(found) == len(list((onnx_corpus / kind).iterdir()))
    exact = [one for one in load_model_tests(str(onnx_corpus), "values") if "_int32" in one.name]
    assert exact
    assert all((one.rtol, one.atol) == (0, 0) for one in exact)


def test_only_what_has_an_answer_has_output_files(onnx_corpus: Path) -> None:
    assert list((onnx_corpus / "refused").rglob("case.json"))
    assert not list((onnx_corpus / "refused").rglob("output_*.pb"))
    for descriptor in [*(onnx_corpus / "values").rglob("case.json"), *(onnx_corpus / "open").rglob("case.json")]:
        assert (descriptor.parent / "output_0.pb").exists()


def test_numpy_reads_the_npz_form_without_pickle(npz_corpus: Path) -> None:
    for file in npz_corpus.rglob("case.npz"):
        told = json.loads((file.parent / "case.json").read_text())
        with np.load(file, allow_pickle=False) as arrays:
            for place, one in enumerate(told["inputs"]):
                assert arrays[f"input_{place}"].dtype == ("uint16" if one["type"] == "bfloat16" else one["type"])


@pytest.mark.slow
def test_the_index_tells_in_words_what_the_descriptors_tell(corpus: Path) -> None:
    head, *blocks = (corpus / "cases.txt").read_text().rstrip("\n").replace("\n", "\n\n", 1).split("\n\n")
    manifest = json.loads((corpus / "manifest.json").read_text())
    assert head == f"opconform-corpus {manifest['schema']} {manifest['format']}"
    assert len(blocks) == len(manifest["cases"])
    for block, (case, entry) in zip(blocks, manifest["cases"].items(), strict=True):
        lines = [line.split(" ") for line in block.splitlines()]
        told = json.loads((corpus / entry["folder"] / "case.json").read_text())
        assert lines[:2] == [["case", entry["folder"]], ["id", case]]
        inputs = [line for line in lines if line[0] in ("input", "constant")]
        program = [one for one in told["program"]["inputs"] if one is not None]
        assert [line[1:] for line in inputs] == [[i["name"], i["type"], *map(str, i["dims"])] for i in program]
        assert [line[0] == "constant" for line in inputs] == [i["constant"] is not None for i in program]
        options = [line for line in lines if line[0] == "option"]
        assert [line[1] for line in options] == [option["kind"] for option in told["options"]]
        assert [line for line in lines if line[0] == "invalid"] == [["invalid", told["mended"]]] * told["rejected"]
        attributes = [line[1] for line in lines if line[0] == "attribute"]
        assert attributes == [attribute["name"] for attribute in told["program"]["attributes"]]


def test_a_program_with_every_kind_of_attribute_is_told_in_words(few: tuple[Batch, ...]) -> None:
    given = (
        Attribute("a", "int", -3),
        Attribute("b", "floats", (0.5, -math.inf)),
        Attribute("c", "strings", ("ij, jk", "")),
        Attribute("d", "ints", ()),
        Attribute("e", "boolean", 1),
        Attribute("f", "f32", 0.5),
        Attribute("g", "s64s", (2, 0)),
    )
    case = replace(few[0], program=replace(few[0].program, attributes=given, inputs=(None,)))
    lines = index_entry(case, "values/one").splitlines()
    assert [line for line in lines if line.startswith(("attribute", "omitted"))] == [
        "attribute a int -3",
        "attribute b floats 0x1.0000000000000p-1 -inf",
        "attribute c strings =ij%2C%20jk =",
        "attribute d ints",
        "attribute e boolean 1",
        "attribute f f32 0x1.0000000000000p-1",
        "attribute g s64s 2 0",
        "omitted",
    ]
    with pytest.raises(OpconformError, match="not a word of printable ASCII"):
        index_entry(replace(case, ids=("two words",)), "values/one")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="coreutils are not installed")
def test_the_program_sha256sum_checks_a_corpus(corpus: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(corpus, tmp_path / "corpus")
    command = ["sha256sum", "--quiet", "--strict", "--check", "SHA256SUMS"]
    assert subprocess.run(command, cwd=copied, capture_output=True, check=False).returncode == 0
    whole = subprocess.run(["sha256sum", "SHA256SUMS"], cwd=copied, capture_output=True, text=True, check=True)
    assert whole.stdout.split()[0] == CorpusCases(copied).sums.digest
    sums = (copied / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in sums} == {f.as_posix() for f in files_below(copied)} - {"SHA256SUMS"}
    (copied / "cases.txt").write_text("")
    changed = subprocess.run(command, cwd=copied, capture_output=True, text=True, check=False)
    assert (changed.returncode, "cases.txt: FAILED" in changed.stdout) == (1, True)


# The same every time


@pytest.mark.slow
def test_two_exports_are_the_same_to_the_byte(npz_corpus: Path, tmp_path: Path) -> None:
    words = [*SELECT, *OTHERS, "--format", "npz", "--out", tmp_path / "again", "--pack", tmp_path / "again.zip"]
    script = "import sys; from opconform.cli import main; main(sys.argv[1:])"
    subprocess.run([sys.executable, "-c", script, "export", *map(str, words)], check=True, env={"PYTHONHASHSEED": "7"})
    assert files_below(tmp_path / "again") == files_below(npz_corpus)
    for file in files_below(npz_corpus):
        assert (tmp_path / "again" / file).read_bytes() == (npz_corpus / file).read_bytes()
    packed = CorpusCases(tmp_path / "again.zip")
    assert packed.sums == CorpusCases(npz_corpus).sums
    assert packed.case(packed.ids()[-1]).digest == CorpusCases(npz_corpus).case(packed.ids()[-1]).digest


def test_an_out_that_ends_in_zip_is_an_archive(tmp_path: Path) -> None:
    words = ["--format", "npz", "--select", "onnx/Mean-13/float32/*/ramp"]
    for option, name in (("--out", "out.zip"), ("--pack", "packed.zip")):
        assert CliRunner().invoke(main, ["export", *words, option, str(tmp_path / name)]).exit_code == 0
    assert (tmp_path / "out.zip").read_bytes() == (tmp_path / "packed.zip").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_corpus_differs_by_what_was_selected(tmp_path: Path) -> None:
    words = ["--format", "npz", "--select", "onnx/Mean-13/float32/*/uniform"]
    digests = set()
    for number, more in enumerate([[], ["--draws", 2], ["--seed", 3]]):
        done = exported(*words, *more, "--json", "--out", tmp_path / str(number))
        digests.add(json.loads(done.output)["digest"])
    assert len(digests) == 3


# What is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "npz", "--select", "onnx/None-1", "--out", "@"], "selects no case"),
        (["--format", "onnx", "--select", "openvino/*", "--out", "@"], "use --format npz"),
        (["--format", "npz", "--select", "onnx/ReduceMean-18/float32/3x2x2/*"], "--out DIR"),
        (["--format", "npz", "--select", "onnx/ReduceMean-18/float32/3x2x2/*", "--out", "."], "not an empty folder"),
    ],
)
def test_an_export_that_makes_no_sense_exits_2_and_writes_nothing(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    done = exported(*[str(tmp_path / "new") if word == "@" else word for word in words])
    assert done.exit_code == 2
    assert said in done.output
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_a_corpus_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no such folder"):
        CorpusCases(tmp_path / "nowhere").ids()


@pytest.mark.parametrize("format_", ["onnx", "npz"])
def test_maps_go_in_and_out_of_a_corpus(tmp_path, format_) -> None:
    globs = ("onnx/DictVectorizer-1/*/text-keys", "onnx/ZipMap-1/*/texts")
    words = [word for glob in globs for word in ("--select", glob)]
    assert exported("--format", format_, "--out", tmp_path / "maps", *words).exit_code == 0
    ids, written, made = (
        [*selected(GeneratedCases(), Selection(globs))],
        CorpusCases(tmp_path / "maps"),
        GeneratedCases(),
    )
    for text in ids:
        case, other = written.case(text), made.case(text)
        assert case.digests == other.digests
        assert case.expectation_digests == other.expectation_digests
    assert len(ids) > 2

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from fakes.results import case, invalid, result

from opconform.cases.errors import OpconformError
from opconform.runners.judging.terms import Demands, Profile, load_profile

WHOLE = """
name: edge
version: "2.1"
operators:
  onnx/ReduceMean: {versions: [13, 18], types: [float16, float32]}
  onnx/Mean: {versions: all, types: floats}
  onednn/ReduceMean: {}
rank: 3
elements: 100
shapes: [static]
"""


def loaded(path: Path, text: str) -> Profile:
    file = path / "profile.yaml"
    file.write_text(text)
    return load_profile(file)


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    return loaded(tmp_path, WHOLE.replace("types: floats", "types: [floats]"))


@pytest.mark.parametrize(
    "promised",
    [
        "onnx/ReduceMean-13/float32/3x2x2/-/uniform",
        "onnx/ReduceMean-18/float16/scalar/-/uniform/some-edge",
        "onnx/Mean-6/bfloat16/3*10x10/-/ramp",
        "onnx/Mean-13/float64/none/-/ramp",
        "onednn/ReduceMean/int8/3/-/ramp",
    ],
)
def test_a_case_within_every_limit_is_promised(profile: Profile, promised: str) -> None:
    assert profile.promises(promised)


@pytest.mark.parametrize(
    "beyond",
    [
        "onnx/ReduceMean-11/float32/3x2x2/-/uniform",
        "onnx/ReduceMean-13/int64/3x2x2/-/uniform",
        "onnx/ReduceMean-13/float32,int64/3x2x2/-/uniform",
        "onnx/ReduceMean-13/float32/3x2x2x1/-/uniform",
        "onnx/ReduceMean-13/float32/3x2,101/-/uniform",
        "onnx/ReduceMean-13/float32/3x2x2/dims=symbolic/uniform",
        "onnx/ReduceMeanish-13/float32/3x2x2/-/uniform",
        "onnx/Add-13/float32/3x2x2/-/uniform",
        "no case id",
    ],
)
def test_a_case_beyond_any_limit_is_not(profile: Profile, beyond: str) -> None:
    assert not profile.promises(beyond)


def test_without_limits_all_of_an_operator_is_promised(tmp_path: Path) -> None:
    profile = loaded(tmp_path, "name: all\nversion: 1\noperators: {onnx/Mean: {}}\n")
    assert profile.version == "1"
    assert profile.promises("onnx/Mean-1/uint8/9x9x9x9x9x9x9/dims=symbolic/ramp")


def test_a_profile_is_known_by_its_bytes(tmp_path: Path) -> None:
    text = "name: all\nversion: 1\noperators: {onnx/Mean: {}}\n"
    assert loaded(tmp_path, text).digest == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: edge", "", "key 'name' is missing"),
        ('"2.1"', "2.1", ":3:10: expected text; read 2.1: quote it"),
        ("versions: [13, 18]", "versions: 13", ":5:31: expected all, or a list of versions; read 13"),
        ("versions: [13, 18]", "versions: [1.5]", ":5:32: expected text; read 1.5: quote it"),
        ("versions: [13, 18]", "version: [13]", ":5:21: unknown key 'version'; did you mean 'versions'?"),
        ("types: [float16, float32]", "types: [flot16]", ":5:49: 'flot16' is no element type"),
        ("types: [float16, float32]", "types: []", ":5:48: expected all, or a list of element types; read an"),
        ("onnx/ReduceMean:", "onnx/ReduceMean-13:", ":5:3: expected a standard and a name without version"),
        ("rank: 3", "rank: -1", ":8:7: expected 0 or more; read -1"),
        ("shapes: [static]", "shapes: [symbolic]", "expected static, bounded or dynamic; read 'symbolic'"),
        ("shapes: [static]", "shape: [static]", ":10:1: unknown key 'shape'; did you mean 'shapes'?"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_is_told_at_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = WHOLE.replace("types: floats", "types: [floats]")
    assert old in text
    with pytest.raises(OpconformError) as raised:
        loaded(tmp_path, text.replace(old, new))
    assert message in str(raised.value)


def test_operators_are_required_and_a_mapping(tmp_path: Path) -> None:
    for operators in ("[onnx/Mean]", "{}", "onnx/Mean"):
        with pytest.raises(OpconformError, match=r":3:12: expected (a mapping|at least one entry); read"):
            loaded(tmp_path, f"name: a\nversion: 1\noperators: {operators}\n")


def test_unsupported_fails_inside_the_promise_alone_and_never_for_invalid_inputs(profile: Profile) -> None:
    demands = Demands(profile=profile)
    assert demands.fails(result("unsupported"))
    assert not demands.fails(result("unsupported", case=case("onnx/ReduceMean-11")))
    assert not demands.fails(invalid("unsupported"))
    assert not Demands().fails(result("unsupported"))

from __future__ import annotations

from click.testing import CliRunner

from opconform.cli import main


def shown(name: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["show", name], catch_exceptions=False)
    return done.exit_code, done.output


def test_an_operator_version_is_described() -> None:
    code, text = shown("onnx/ReduceMean-13")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line]
    assert code == 0
    assert lines[0] == ["operator", "onnx/ReduceMean-13"]
    assert ["versions", "1, 11, 13, 18"] in lines
    assert ["inputs", "data: T"] in lines
    assert ["attributes", "axes: optional ints"] in lines
    assert "clause       mean: every output element is the arithmetic mean" in text
    assert "in the default suite; opconform list cases --select 'onnx/ReduceMean-13' has all" in text


def test_an_operator_without_a_version_is_described_by_its_newest() -> None:
    assert shown("onnx/ReduceMean")[1] == shown("onnx/ReduceMean-18")[1]
    assert shown("onednn/ReduceMean")[0] == 0


def test_what_is_no_operator_is_still_an_error_with_a_suggestion() -> None:
    code, text = shown("onnx/ReduceMeen-13")
    assert code == 2
    assert "the nearest case is onnx/ReduceMean-13/" in text

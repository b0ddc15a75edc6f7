"""The Python of docs/writing-a-runner.md runs as it is printed."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from fakes.programs import mean

from opconform.cases.runner import Unsupported
from opconform.runners.registry import open_runner

PAGE = Path(__file__).parents[2] / "docs" / "writing-a-runner.md"


@pytest.fixture
def blocks(tmp_path, monkeypatch) -> list[str]:
    """The page's Python blocks; the first is the module `my_backend` of the current folder."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "my_backend.py").write_text(found[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    importlib.invalidate_caches()
    yield found
    sys.modules.pop("my_backend", None)


def test_the_class_and_the_test_of_it_run_as_printed(blocks) -> None:
    printed: dict[str, object] = {}
    exec(compile(blocks[1], str(PAGE), "exec"), printed)
    assert printed["y"].tolist() == [0, 2]


def test_the_class_says_what_it_does_not_implement(blocks) -> None:
    with pytest.raises(Unsupported, match="onnx/Mean-13 is not implemented yet") as refusal:
        open_runner("python:my_backend:Relu").prepare(mean(13, (2,)))
    assert refusal.value.reason == "operator-version"


@pytest.mark.parametrize("link", re.findall(r"\]\((\.\./[^)]+)\)", PAGE.read_text(encoding="utf-8")))
def test_every_file_that_the_page_links_to_is_there(link: str) -> None:
    assert (PAGE.parent / link).is_file()

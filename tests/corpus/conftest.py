"""A corpus, exported once, and a copy of it to damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fakes.specs import exported


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus in both forms, each as a folder and as an archive."""
    return exported(tmp_path_factory.mktemp("made"))


@pytest.fixture
def corpus(made: Path, tmp_path: Path) -> Path:
    """A corpus to damage."""
    return shutil.copytree(made / "onnx", tmp_path / "corpus")

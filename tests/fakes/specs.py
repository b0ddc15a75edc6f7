"""Spec files of few operators, so that what a test asks of a suite does not grow with the suite."""

from __future__ import annotations

import shutil
from pathlib import Path

from opconform.specs.loader import default_root


def specs_of(folder: Path, *operators: str) -> Path:
    """Return a new folder of spec files in `folder` that has these operators alone, as `onnx/Mean`."""
    root = folder / "specs"
    for operator in operators:
        file = root / f"{operator}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(default_root() / f"{operator}.yaml", file)
    (root / "families").symlink_to(default_root() / "families")
    return root


def specs_of_means(folder: Path) -> Path:
    """Return those of the two means of ONNX, eight operator versions."""
    return specs_of(folder, "onnx/Mean", "onnx/ReduceMean")

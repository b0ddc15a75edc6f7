"""Small corpora to verify and to damage."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from opconform.cli import main

SELECT = ("--select", "onnx/ReduceMean-18/bfloat16/4x4/*", "--select", "onnx/ReduceMean-18/int32/3x2x2/*/axi*")


def exported(folder: Path) -> Path:
    """Write a corpus in both forms, each as a folder and as an archive; returns the folder."""
    for form in ("onnx", "npz"):
        words = ["--out", str(folder / form), "--pack", str(folder / f"{form}.zip"), *SELECT]
        assert CliRunner().invoke(main, ["export", "--format", form, *words]).exit_code == 0
    return folder


def verified(path: Path) -> Result:
    """Return what `opconform verify` makes of a corpus."""
    return CliRunner().invoke(main, ["verify", str(path)])


def some(corpus: Path, name: str) -> Path:
    """Return the first file of a name."""
    return sorted(corpus.rglob(name))[0]

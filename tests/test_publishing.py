"""What is published: a wheel and a source distribution that are whole, of one version, which the tag has to be."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import opconform

ROOT = Path(__file__).parents[1]
BUILD = ROOT / ".github" / "publish" / "build.sh"


def built(kind: str, source: Path, out: Path) -> Path:
    """Return what the build backend makes of a checkout."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    ran = subprocess.run([sys.executable, "-c", code, out], cwd=source, capture_output=True, text=True, check=True)
    return out / ran.stdout.split()[-1]


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the checkout without git: no tag and no history says which version it is."""
    ignored = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "build", "dist", "*.egg-info", ".venv")
    return Path(shutil.copytree(ROOT, tmp_path / "checkout", ignore=ignored))


def test_the_version_is_one_wherever_it_is_told() -> None:
    assert importlib.metadata.version("opconform") == opconform.__version__


@pytest.mark.slow
def test_the_wheel_of_the_source_distribution_is_that_of_the_checkout(checkout: Path, tmp_path: Path) -> None:
    pytest.importorskip("setuptools", "77")
    out = tmp_path / "out"
    out.mkdir()
    archive = built("sdist", checkout, out)
    assert archive.name == f"opconform-{opconform.__version__}.tar.gz"
    with tarfile.open(archive) as files:
        files.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    (out / "again").mkdir()
    wheel = content(built("wheel", checkout, out))
    assert content(built("wheel", unpacked, out / "again")) == wheel
    for folder in ("cases", "specs", "generators", "runners", "reports", "cli"):
        there = {f"opconform/{file.relative_to(ROOT)}" for file in (ROOT / folder).rglob("*.py")}
        assert there <= wheel.keys()
    assert {"opconform/specs/onnx/Add.yaml", "opconform/generators/suites/smoke.txt", "opconform/py.typed"} <= set(
        wheel
    )
    assert any(name.startswith("opconform/cases/manifests/") for name in wheel)


@pytest.mark.parametrize("name", ["v9.9.9", opconform.__version__, ""])
def test_a_tag_that_is_not_the_version_is_refused_before_anything_is_built(name: str) -> None:
    environment = {**os.environ, "REF_TYPE": "tag", "REF_NAME": name}
    ran = subprocess.run(["bash", BUILD], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert f"expected the tag v{opconform.__version__}" in ran.stderr

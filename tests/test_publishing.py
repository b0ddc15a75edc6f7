"""What is published: a wheel and a source distribution that are whole, of one version, which the tag has to be."""

from __future__ import annotations

import importlib.metadata
import os
import re
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
LINK = re.compile(r"(!?)\[([^]]*)\]\(([^()\s]+)\)")


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


def long_description(url: str) -> str:
    """Return what an index shows of README.md, of version 1.2.3."""
    environment = {**os.environ, "REPOSITORY_URL": url}
    with (ROOT / "README.md").open("rb") as readme:
        command = ["bash", BUILD.with_name("readme.sh"), "1.2.3"]
        return subprocess.run(command, stdin=readme, env=environment, capture_output=True, text=True, check=True).stdout


def test_every_link_and_picture_of_the_long_description_leads_to_the_repository_at_its_tag() -> None:
    readme, url = (ROOT / "README.md").read_text(encoding="utf-8"), "https://example.org/owner/opconform"
    text, found = long_description(url), LINK.findall(readme)
    assert {picture for picture, _, _ in found} == {"", "!"}
    for picture, words, target in found:
        absolute = target if ":" in target else f"{url}/{'raw' if picture else 'blob'}/v1.2.3/{target}"
        assert f"{picture}[{words}]({absolute})" in text
    assert LINK.sub("", text) == LINK.sub("", readme)


def test_without_a_repository_the_long_description_has_no_link_that_leads_nowhere() -> None:
    readme, text = (ROOT / "README.md").read_text(encoding="utf-8"), long_description("")
    assert all(":" in target for _, _, target in LINK.findall(text))
    assert all(picture or words in text for picture, words, _ in LINK.findall(readme))

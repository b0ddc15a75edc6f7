"""A site of a real run in a real browser; where there is none the tests are skipped, or fail if that is required."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opconform.cli import main

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
RUN = [
    *("run", "onnxruntime", "onnx-reference", "openvino", "--suite", "smoke", "--quiet", "--jobs", "1"),
    *("--select", "onnx/ReduceMean-1[38]", "--select", "openvino/ReduceMean-1"),
]


def _missing(what: str) -> None:
    if os.environ.get("OPCONFORM_BROWSER") == "required":
        pytest.fail(f"{what} is missing, and OPCONFORM_BROWSER=required")
    pytest.skip(f"{what} is missing")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, one for all tests of a process."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("playwright")
    if not Path(CHROMIUM).exists():
        _missing(CHROMIUM)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a small run of three backends, made once whatever the number of test processes."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    place = shared / "site-of-a-run"
    with (shared / "site-of-a-run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _made(shared / "site-of-a-run.part", place)
    return place / "site"


def _made(aside: Path, place: Path) -> None:
    for arguments in (
        [*RUN, "--out", str(aside / "results")],
        ["report", str(aside / "results"), "--html", str(aside / "site")],
    ):
        done = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert done.exit_code in (0, 1), done.output
    aside.rename(place)


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """A window without a past, of a desk's size, in light colours."""
    made = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield made
    made.close()


@pytest.fixture
def page(context: Any) -> Iterator[Any]:
    """A page; an error in its console fails the test, and so does a request beyond files."""
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else wrong.append(r.url))
    yield opened
    assert wrong == []

"""`opconform compare`: what changed between two runs, shown and written."""

from __future__ import annotations

import json as json_text
from pathlib import Path

from rich.console import Console

from ..cases.errors import OpconformError
from ..reports.history.compare import compared, comparison_json, comparison_markdown, opened, print_comparison
from ..reports.junit import check_target


def run_compare(
    old: str,
    new: str,
    *,
    json: Path | None = None,
    markdown: Path | None = None,
    fail_on: str | None = None,
    partial: bool = False,
    console: Console | None = None,
) -> int:
    """Show and write what changed, and return the exit code.

    Raises OpconformError if a side cannot be read, they have no backend in common, or a file cannot be written.
    """
    for target in (json, markdown):
        if target is not None:
            check_target(target)
    with opened(old, partial=partial) as one, opened(new, partial=partial) as other:
        comparison = compared(one, other)
    if json is not None:
        _write(json, json_text.dumps(comparison_json(comparison), allow_nan=False, indent=2) + "\n")
    if markdown is not None:
        _write(markdown, comparison_markdown(comparison))
    print_comparison(console or Console(), comparison)
    return comparison.exit_code(fail_on)


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None

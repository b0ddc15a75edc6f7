"""The page of the docs on wrong inferencers, checkers and converters: how many are exposed, and why others are not."""

from __future__ import annotations

from collections.abc import Iterator

from .matrix import STATUSES, Matrix
from .text import markdown_table

_KINDS = {"infer": "inferencers", "check": "checkers", "convert": "converters"}
_REMARK = (
    "<!-- Made by `opconform dev mutants --tools --record docs/tool-kills.jsonl "
    "--markdown docs/generated/tool-kills.md`. -->"
)


def tools_markdown(matrix: Matrix) -> str:
    """Return the page of the docs; survivors have their reasons."""
    return "".join(f"{line}\n" for line in _page(matrix))


def _page(matrix: Matrix) -> Iterator[str]:
    yield _REMARK
    yield "# Wrong tools"
    yield ""
    yield "Inferencers, checkers and converters that are wrong in one way on one operator version; how many the suite"
    yield "exposes. See [Test the suite](../testing-the-suite.md#tools)."
    yield "A survivor is `admitted` if the standard leaves open whether what it says is wrong, on all cases that it"
    yield "changes, and `unmet` if no case has what it needs."
    yield ""
    rows = []
    for kind, words in _KINDS.items():
        made, killed = (sum(tested.tried.get(kind, (0, 0))[at] for tested in matrix.tested.values()) for at in (0, 1))
        left = [fate for _, fate in matrix.survivors if fate.kind == kind]
        counts = [sum(fate.status == status for fate in left) for status in STATUSES if status != "unseen"]
        share = f" ({killed / made:.1%})" if made else ""
        rows.append((words, f"{made:,}", f"{killed:,}{share}", *(f"{count:,}" for count in counts)))
    yield from markdown_table(("", "made", "exposed", "admitted", "unmet"), rows)
    cases, variants = (
        sum(getattr(tested, name) for tested in matrix.tested.values()) for name in ("cases", "variants")
    )
    yield ""
    yield f"{len(matrix.tested):,} operator versions, {cases:,} cases. {variants:,} compliant variants,"
    yield f"of which {len(matrix.blamed):,} are blamed."
    yield ""
    yield "## Survivors"
    yield ""
    yield "| why | tools | such as |"
    yield "| --- | --- | --- |"
    reasons: dict[str, list[str]] = {}
    for version, fate in matrix.survivors:
        reason = f"{fate.status}: {fate.why}" if fate.why else fate.status
        reasons.setdefault(reason, []).append(f"{version} {fate.name}")
    for reason, some in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"| {reason.replace('|', chr(92) + '|')} | {len(some):,} | `{some[0]}` |"

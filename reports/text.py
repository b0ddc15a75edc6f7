"""Makes text from elsewhere safe to show, and formats numbers for readers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..cases.errors import OpconformError
from ..cases.results import SIDE_EFFECTS, Result

NOTHING = "\N{EN DASH}"
"""Shown if there is no figure."""

WIDE = 180
"""The width of a table in columns if the output is not a terminal."""

STANDARD_NAMES: Mapping[str, str] = MappingProxyType({"onnx": "ONNX", "openvino": "OpenVINO", "onednn": "oneDNN Graph"})
"""The standards as people write them, by their names in ids."""

_BEFORE = re.compile(r"; it is that to (\S+)$", re.MULTILINE)
_FORBIDDEN_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    """Return text in which control and other unprintable characters, except line ends, are escaped visibly."""
    if text.isprintable():  # the usual case
        return text
    return "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in text)


def cut(text: str, longest: int) -> str:
    """Return a text, or the beginning of a longer one."""
    return text if len(text) <= longest else f"{text[:longest]}…"


def xml_text(text: str) -> str:
    """Return text in which characters that XML 1.0 cannot contain are escaped visibly."""
    return _FORBIDDEN_IN_XML.sub(lambda match: ascii(match[0])[1:-1], text)


def shell_quoted(text: str) -> str:
    """Return text as one word of a POSIX shell, always in quotes."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def markdown_text(text: str) -> str:
    """Return text that Markdown shows literally, on one line; long text is cut."""
    return "".join(f"\\{c}" if c in _SPECIAL_IN_MARKDOWN else c for c in _line(text))


_SPECIAL_IN_MARKDOWN = frozenset("\\`*_[]<>|~#")


def markdown_code(text: str) -> str:
    """Return text as code within a Markdown table, between more backquotes than it has next to each other."""
    line = _line(text).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    return f"{'`' * (longest + 1)} {line} {'`' * (longest + 1)}" if longest else f"`{line}`"


def _line(text: str) -> str:
    """Return the beginning of a text on one line: a page on a CI server has a limit, of 1 MiB on GitHub."""
    line = " ".join(printable(text[:_LONGEST]).split())
    return line if len(text) <= _LONGEST else f"{line}…"


_LONGEST = 500


def percent(share: Fraction | None) -> str:
    """Return a share as a percentage, rounded down so that 100% means all; NOTHING for none."""
    if share is None:
        return NOTHING
    tenths = int(share * 1000)
    if share and not tenths:
        return "<0.1%"
    return f"{tenths // 10}%" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10}%"


def counted(number: int, what: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 case`, `1,234 cases`."""
    return f"{number:,} {what if number == 1 else plural or what + 's'}"


def deaths_told(deaths: Sequence[Mapping[str, Any]], untold: int = 0) -> list[str]:
    """Return a line for each of the first deaths of worker processes that no case explains, as in `run.json`.

    `untold`: how many there were beside those in `run.json`.
    """
    lines = []
    for death in deaths[:_DEATHS]:
        during = f" at {death.get('case')}, which passes in a process of its own" if death.get("case") else ""
        lines.append(f"{death.get('backend')}: a worker process ended ({death.get('exit')}){during}")
    more = len(deaths) - len(lines) + untold
    return [*lines, f"and {counted(more, 'more worker process', 'more worker processes')}"] if more > 0 else lines


_DEATHS, _DETAIL, _LONGEST_COMMAND = 5, 160, 2000
_OF_FILES = re.compile(r"[/;]from=")
"""What the ids of cases from folders in ONNX's layout have; see cases/foreign.py."""
TOOLS = (
    *("onnx-infer", "onnx-infer-strict", "onnx-infer-data", "onnx-check", "onnx-check-full"),
    *("onnx-convert", "onnx-convert-down", "onnxscript-convert"),
)
"""The backends that do not run programs and have scripts of their own."""
_SCRIPTED = {
    "onnxruntime": "| python",
    "onnxruntime-noopt": "--full | python - --noopt",
    "openvino": "| python",
    "openvino-evaluate": "| python - --evaluate",
    "onednn": "| python",
    **{name: f"--on {name} | python" for name in TOOLS},
}
"""The command that runs a case's script, for the backends whose library it uses."""


def reproduce_line(result: Result, named: Callable[[str], str] = str) -> str:
    """Return a command that runs the case against the backend again, if possible with only its own library.

    `named` returns a case's name in the command, such as its short id; the default is its id. If a run changed the
    answer of the case before it, both cases run. A case that a file alone holds needs its folder.
    """
    case = shell_quoted(printable(named(result.case)))
    if _OF_FILES.search(result.case):
        return f"opconform run {shlex.quote(printable(result.backend))} --corpus DIR --select {case}"
    if result.backend in _SCRIPTED and result.reason not in SIDE_EFFECTS:
        return f"opconform show --script {case} {_SCRIPTED[result.backend]}"
    before = _BEFORE.findall(result.detail or "") if result.reason == "answer-changed" else []
    cases = [*(shell_quoted(printable(named(text))) for text in before), case]
    return " --select ".join([f"opconform run {shlex.quote(printable(result.backend))}", *cases])


def write_text(target: Path, text: str) -> None:
    """Write a file. Raises OpconformError if that is not possible."""
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OpconformError(f"{target}: cannot be written: {error.strerror}") from None


def check_parents(*targets: Path | None) -> None:
    """Raise OpconformError if a file is to be written to a folder that does not exist."""
    for target in targets:
        if target is not None and not target.absolute().parent.is_dir():
            raise OpconformError(f"{target}: {target.parent} is not a folder; create it first")


def write_pages(*pages: tuple[Path | None, Callable[[], str]]) -> None:
    """Write each page that has a target. Raises OpconformError."""
    for target, page in pages:
        if target is not None:
            write_text(target, page())


def first_line(detail: str | None) -> str:
    """Return the beginning of a result's detail, short enough for a table."""
    return cut((detail or "").partition("\n")[0], _DETAIL)


def markdown_reproduction(result: Result) -> list[str]:
    """Return the lines of a page on how to reproduce its first failure; none if they would be too long."""
    line = reproduce_line(result)
    if len(line) > _LONGEST_COMMAND or "\n" in line:  # it could end the block
        return []
    return ["Reproduce the first:", "", "```console", f"$ {line}", "```", ""]


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(row)} |"

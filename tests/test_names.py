"""Names say what they hold: the words that say nothing are kept out of the package."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORDS = frozenset({"found", "one", "told", "place", "whole"})
"""Words that fit anything: a function, a class or a variable has the name of what it does or holds."""
FOLDERS = ("api", "cases", "cli", "generators", "models", "reports", "runners", "specs")
KEPT = frozenset({("runners/judging/terms.py", "place")})
"""Names that are keys of a stored format, here of the waivers in `run.json`."""


def named(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names of functions, classes, parameters, variables, fields and attributes, each with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                yield name, node.lineno


def vague(text: str) -> list[tuple[str, int]]:
    return [(name, line) for name, line in named(ast.parse(text)) if name.strip("_").lower() in WORDS]


@pytest.mark.slow
def test_names_say_what_they_hold() -> None:
    files = [*ROOT.glob("*.py"), *(file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py")))]
    paths = {file.relative_to(ROOT).as_posix(): file for file in files}
    assert [
        f"{path}:{line}: {name}: name it after what it holds"
        for path, file in paths.items()
        for name, line in vague(file.read_text("utf-8"))
        if (path, name) not in KEPT
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "def told(): ...",
        "class Place: ...",
        "def f(_one): ...",
        "class C:\n    whole: int",
        "self._found = 1",
        "[one for one in some]",
        "match x:\n    case [place]: ...",
    ],
)
def test_vague_names_are_seen(text: str) -> None:
    assert vague(text)
    clear = functools.reduce(lambda changed, word: re.sub(word, "cases", changed, flags=re.IGNORECASE), WORDS, text)
    assert not vague(clear)

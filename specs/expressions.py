"""Expressions for numbers and lists: `r - 1`, `0 .. r-1`, `2 x k`, `S...`, `d[axis]`; no calls or conditions."""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from ..cases.errors import OpconformError, did_you_mean
from .model import Recipe

Number: TypeAlias = int | float
Symbols: TypeAlias = Mapping[str, int | Sequence[int]]

LONGEST_TEXT = 120
LONGEST_LIST = 1 << 16
LARGEST_NUMBER = 1 << 64

# Possessive: a token matches whole or not at all, so that text with a mistake at its end is scanned only once.
_TOKENS = re.compile(
    r"(?:\s++|//|[-+*():]|[\[\]]|[0-9]++(?:\.[0-9]++)?(?![\w.])|[A-Za-z_]\w*+(?:\.[dr]\b)?)*+", re.ASCII
)
_REPEATED = re.compile(r"(.+?)\s+x\s+(.+)")
_SPLICED = re.compile(r"\s*([A-Za-z_]\w*(?:\.d)?(?:\[.*\])?)\s*\.\.\.\s*", re.ASCII)
_DIMENSION = re.compile(r"(d)([0-9]+)")
_RECIPE = re.compile(r"([A-Za-z][\w^+-]*(?:\.[\w-]+)*)(?:\((.+)\))?", re.ASCII | re.DOTALL)
_COMMA = re.compile(r",(?![^(\[]*[)\]])")
_OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}
)


class ExpressionError(OpconformError):
    """Text that is not an expression, or an expression that the given symbols cannot evaluate."""


def number(text: str, symbols: Symbols) -> Number:
    """Evaluate one number, such as `r - 1`, with integers for symbols. Raises ExpressionError."""
    value = _evaluate(_parse(text), text, symbols)
    if abs(value) > LARGEST_NUMBER:
        raise ExpressionError(f"{text!r} is larger than 2^64")
    return value


def numbers(parts: Iterable[Number | str], symbols: Symbols) -> list[Number]:
    """Evaluate a list: plain numbers, `a .. b` with both ends, `a x n` as n times a, `S...` as all of S.

    A symbol is an integer, or, if it is spliced or indexed, a list of integers. `d0` means `d[0]`; `x.d` and `x.r` are
    the dimensions and the rank of operand x. Raises ExpressionError.
    """
    values: list[Number] = []
    for part in parts:
        values += [part] if not isinstance(part, str) else _part(part, symbols)
        if len(values) > LONGEST_LIST:
            raise ExpressionError(f"a list of more than {LONGEST_LIST} numbers")
    return values


def recipe(text: str) -> Recipe:
    """Parse a function with its arguments, `fits(T2)`: words with dashes, between commas. Raises ExpressionError."""
    match = _RECIPE.fullmatch(text)
    if not match:
        raise ExpressionError(
            f"{text!r} names no function: write it as in ramp, overlap(0.5) or 'moments(mean, scale)'"
        )
    return Recipe(match[1], tuple(map(str.strip, _COMMA.split(match[2]))) if match[2] else ())


@functools.lru_cache(maxsize=4096)
def names(text: str) -> frozenset[str]:
    """Return the symbols that one part of a list uses, and check its syntax. Raises ExpressionError."""
    if spliced := _SPLICED.fullmatch(text):
        return _names(spliced[1])
    kind, sides = _sides(text)
    return frozenset(name for side in (sides if kind else [text]) for name in _names(side))


def is_expression(text: str) -> bool:
    """Whether a text is a valid part of a list."""
    try:
        names(text)
    except ExpressionError:
        return False
    return True


def _names(text: str) -> frozenset[str]:
    tree = _parse(text)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in inner}
    names = {"d" if _DIMENSION.fullmatch(name) else name for name in names}
    return frozenset(names | {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)})


def _part(text: str, symbols: Symbols) -> list[Number]:
    if spliced := _SPLICED.fullmatch(text):
        value = _listed(_parse(spliced[1]), text, symbols)
        if isinstance(value, (int, float)):
            raise ExpressionError(f"{text!r}: {spliced[1]} is a number, no list to splice")
        return list(value)
    kind, (left, right) = _sides(text)
    if kind == "x":
        return [number(left, symbols)] * _integer(right, symbols, least=0)
    if kind == "..":
        start, stop = _integer(left, symbols), _integer(right, symbols)
        if stop - start > LONGEST_LIST:
            raise ExpressionError(f"{text!r} is longer than {LONGEST_LIST} numbers")
        return list(range(start, stop + 1))
    return [number(text, symbols)]


def _sides(text: str) -> tuple[str, tuple[str, str]]:
    """Return `x` or `..` and the text to its left and right; "" for a plain number."""
    if len(text) > LONGEST_TEXT:
        raise ExpressionError(f"{text[:20]!r}... is longer than {LONGEST_TEXT} characters")
    if repeated := _REPEATED.fullmatch(text):
        return "x", (repeated[1], repeated[2])
    left, dots, right = text.partition("..")
    return (dots, (left, right)) if dots else ("", (text, ""))


def _integer(text: str, symbols: Symbols, least: int | None = None) -> int:
    value = number(text, symbols)
    if not isinstance(value, int):
        raise ExpressionError(f"{text!r} is {value}, where a whole number is needed")
    if least is not None and not least <= value <= LONGEST_LIST:
        raise ExpressionError(f"{text!r} is {value}: repeated {least} to {LONGEST_LIST} times")
    return value


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    wrong = ExpressionError(
        f"{text.strip()[:60]!r} is no expression: whole or decimal numbers, symbols, + - * // and brackets, "
        "'a .. b', 'a x n' and 'S...' in a list"
    )
    if len(text) > LONGEST_TEXT or not _TOKENS.fullmatch(text):
        raise wrong
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise wrong from None
    if not all(_allowed(node) for node in ast.walk(tree)):
        raise wrong
    return tree


def _allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    if isinstance(node, ast.BinOp):
        return type(node.op) in _OPERATORS
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, (ast.Name, ast.Attribute))
    if isinstance(node, ast.Slice):
        return node.step is None
    return isinstance(node, (ast.Name, ast.Attribute, ast.operator, ast.unaryop, ast.expr_context))


def _evaluate(node: ast.expr, text: str, symbols: Symbols) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name() | ast.Attribute() | ast.Subscript():
            listed = _listed(node, text, symbols)
            if isinstance(listed, (int, float)):
                return listed
            written = ast.unparse(node)
            raise ExpressionError(f"{text!r}: {written} is a list; write {written}... to splice it")
        case ast.UnaryOp(operand=operand):
            return -_evaluate(operand, text, symbols)
        case ast.BinOp(left=left, op=sign, right=right):
            a, b = _evaluate(left, text, symbols), _evaluate(right, text, symbols)
            if isinstance(sign, ast.FloorDiv) and b == 0:
                raise ExpressionError(f"{text!r} divides by zero")
            return _OPERATORS[type(sign)](a, b)
    raise ExpressionError(f"{text!r} is no expression")  # pragma: no cover - _parse admits nothing else


def _listed(node: ast.expr, text: str, symbols: Symbols) -> Number | Sequence[int]:
    """Return the value of a symbol, or of an item or slice of one."""
    match node:
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper)):
            first, last = (None if end is None else _index(end, text, symbols) for end in (lower, upper))
            return _items(value, text, symbols)[first:last]
        case ast.Subscript(value=value, slice=index):
            items, at = _items(value, text, symbols), _index(index, text, symbols)
            if not -len(items) <= at < len(items):
                raise ExpressionError(f"{text!r}: there is no {ast.unparse(value)}[{at}], of {len(items)}")
            return items[at]
        case ast.Name() | ast.Attribute():
            return _symbol(ast.unparse(node), text, symbols)
    return _evaluate(node, text, symbols)


def _items(node: ast.expr, text: str, symbols: Symbols) -> Sequence[int]:
    items = _symbol(ast.unparse(node), text, symbols)
    if isinstance(items, int):
        raise ExpressionError(f"{text!r}: {ast.unparse(node)} is a number, which has no items")
    return items


def _index(node: ast.expr, text: str, symbols: Symbols) -> int:
    value = _evaluate(node, text, symbols)
    if not isinstance(value, int):
        raise ExpressionError(f"{text!r}: {value} is no index")
    return value


def _symbol(name: str, text: str, symbols: Symbols) -> int | Sequence[int]:
    if name not in symbols and (dimension := _DIMENSION.fullmatch(name)):
        items = _items(ast.Name(dimension[1]), text, symbols)
        if int(dimension[2]) >= len(items):
            raise ExpressionError(f"{text!r}: there is no dimension {dimension[2]}, of {len(items)}")
        return items[int(dimension[2])]
    if name not in symbols:
        known = f"; known: {', '.join(sorted(symbols))}" if symbols else ""
        raise ExpressionError(f"{text!r}: no symbol {name!r}{did_you_mean(name, symbols) or known}")
    return symbols[name]

"""Case ids: a readable grammar, derived only from a case's content, which is parsed and printed without loss.

`onnx/ReduceMean-13/float32/3x2x2/axes=-2;keepdims=0/uniform`: operator version, types, shapes, settings, fill, and for
an edge case the edge's name. Shapes are given for the inputs that a fill or a recipe makes, in the signature's order;
`_` is an omitted input; `seq:2x3+2x3` and the like are sequences, optionals, maps and sparse tensors. Text in settings
is percent-encoded.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby
from typing import TypeAlias
from urllib.parse import quote, unquote

from .errors import CaseIdError, OpconformError
from .program import Structure, parse_type, tensor

Shape: TypeAlias = tuple[int, ...]

_FORM = "standard/Operator-version/types/shapes/settings/fill[/edge]"
_TOO_MANY_INPUTS = 100_000
_TYPE = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_WORD = re.compile(r"[A-Za-z0-9_.^+-]+")
_FILL = re.compile(r"[A-Za-z0-9_.^+-]+(?::[A-Za-z0-9_.^+,-]+)?")
_SETTING = re.compile(r"([A-Za-z_][\w.-]*)=([^=;/\s]+)")
_SHAPE = re.compile(r"scalar|\d{1,10}(?:x\d{1,10})*")
_COUNT = re.compile(r"\d{1,10}")
_RUN = re.compile(r"([1-9]\d{0,5})\*(.+)")
_EMPTY_TEXT = "%"
_SAFE = "@+:^~-._"  # letters, digits and these: characters without meaning in a shell or in other parts of an id


Part: TypeAlias = "Shape | Structure | None"
"""The shape of one input in an id: of a tensor, the structure of another value, or None for an omitted input."""


@dataclass(frozen=True, slots=True)
class CaseId:
    """The parts of a case id.

    `types` are the types that the case varies, in the signature's order. `shapes` has a part for each input that is, or
    could be, filled or drawn. `settings` are sorted by name, their values as text. `edge` is None for a case that the
    covering array chose.
    """

    operator: str
    types: tuple[str, ...]
    shapes: tuple[Part, ...]
    settings: tuple[tuple[str, str], ...]
    fill: str
    edge: str | None = None

    def __str__(self) -> str:
        settings = ";".join(f"{name}={value}" for name, value in self.settings) or "-"
        types = ",".join(map(_type_word, self.types)) or "-"
        parts = [self.operator, types, print_shapes(self.shapes), settings, self.fill]
        return "/".join([*parts, self.edge] if self.edge else parts)

    @property
    def size(self) -> int:
        """Return the number of elements of the inputs that a fill or a recipe makes."""
        return sum(map(part_size, self.shapes))

    def setting(self, name: str) -> str | None:
        """Return the text of one setting, or None if the id does not have it."""
        return next((value for key, value in self.settings if key == name), None)

    def having(self, settings: Mapping[str, str]) -> CaseId:
        """Return the case with more settings, in place of its own of the same names."""
        return replace(self, settings=tuple(sorted({**dict(self.settings), **settings}.items())))


def part_size(part: Part) -> int:
    """Return the number of elements of an input, from its part of the id."""
    if isinstance(part, Structure):
        dense = part.dims is not None and part.kind == "tensor"
        return part.count + sum(map(part_size, part.items)) + (math.prod(_static_dims(part.dims)) if dense else 0)
    return 0 if part is None else math.prod(part)


def parse_id(text: str) -> CaseId:
    """Parse a case id. Raises CaseIdError, which names the wrong part."""
    parts = text.split("/")
    if len(parts) not in (6, 7):
        raise CaseIdError(f"{text!r} is not a case id: it has {len(parts)} parts, expected {_FORM}")
    words = () if parts[2] == "-" else tuple(parts[2].split(","))
    for word in (*parts[:2], *words, *parts[6:]):
        if not (_TYPE if word in words else _WORD).fullmatch(word):
            raise CaseIdError(f"{text!r} is not a case id: {word!r} is not a name, expected {_FORM}")
    if not _FILL.fullmatch(parts[5]):
        raise CaseIdError(f"{text!r} is not a case id: {parts[5]!r} is not a name, expected {_FORM}")
    settings = _parse_settings(parts[4], text)
    edge = parts[6] if len(parts) == 7 else None
    types = tuple(_type_of(word, text) for word in words)
    case = CaseId("/".join(parts[:2]), types, _parse_shapes(parts[3], text), settings, parts[5], edge)
    if str(case) != text:  # each content has exactly one id
        raise CaseIdError(f"{text!r} is not a case id: it is written {str(case)!r}")
    return case


def operator_version_of(case_id: str) -> str:
    """Return the operator version at the start of a case id, such as `onnx/ReduceMean-13`."""
    end = case_id.find("/", case_id.find("/") + 1)  # called for every result, more than once
    return case_id if end < 0 or "/" not in case_id[:end] else case_id[:end]


def split_version(operator_version: str) -> tuple[str, str]:
    """Return operator and version, `onnx/ReduceMean` and `13`; the version is empty if the name has none."""
    operator, dash, version = operator_version.rpartition("-")
    return (operator, version) if dash else (operator_version, "")


def encode_text(text: str) -> str:
    """Return a text in the form of a setting: percent-encoded, and without any of `, ; = /` and blanks."""
    return quote(text, safe=_SAFE) or _EMPTY_TEXT


def decode_text(text: str) -> str:
    """Return what `encode_text` was given. Raises UnicodeDecodeError."""
    return "" if text == _EMPTY_TEXT else unquote(text, errors="strict")


def print_shapes(shapes: Iterable[Part]) -> str:
    """Return shapes as in an id: `3x2,scalar`, repeats as `40*3x2`, `_`, `seq:3x2+4`, `none` without inputs."""
    words = []
    for shape, run in groupby(shapes):
        length = len(list(run))
        word = print_shape(shape)
        words += [f"{length}*{word}"] if length > 1 and shape is not None else [word] * length
    return ",".join(words) or "none"


def print_shape(shape: Part) -> str:
    """Return one shape in the form of an id."""
    if shape is None:
        return "_"
    if isinstance(shape, tuple):
        return "x".join(map(str, shape)) if shape else "scalar"
    match shape.kind:
        case "map":
            return f"map:{shape.count}"
        case "sparse":
            return f"sparse:{print_shape(_static_dims(shape.dims))}+{shape.count}"
        case "tensor":
            return print_shape(_static_dims(shape.dims))
    kind = "seq" if shape.kind == "sequence" else shape.kind
    return f"{kind}:{'+'.join(map(print_shape, shape.items)) or 'none'}"


def _static_dims(dims: tuple[int | str, ...] | None) -> Shape:
    return tuple(int(d) for d in dims or ())


def _parse_shapes(text: str, case: str) -> tuple[Part, ...]:
    if text == "none":
        return ()
    shapes: list[Part] = []
    for word in text.split(","):
        run = _RUN.fullmatch(word)
        shapes += [None] if word == "_" else [_parse_shape(run[2] if run else word, case)] * int(run[1] if run else 1)
        if len(shapes) > _TOO_MANY_INPUTS:
            raise CaseIdError(f"{case!r} is not a case id: more than {_TOO_MANY_INPUTS} inputs")
    return tuple(shapes)


def _parse_shape(word: str, case: str) -> Shape | Structure:
    kind, _, rest = word.partition(":")
    if kind == "seq":
        return Structure("sequence", items=() if rest == "none" else tuple(_item(p, case) for p in rest.split("+")))
    if kind == "optional" and rest:
        return Structure("optional", items=() if rest == "none" else (_item(rest, case),))
    if kind == "map" and _COUNT.fullmatch(rest):
        return Structure("map", count=int(rest))
    dims, _, number = rest.partition("+")
    if kind == "sparse" and _COUNT.fullmatch(number):
        return Structure("sparse", _item(dims, case).dims, count=int(number))
    if not _SHAPE.fullmatch(word):
        raise CaseIdError(f"{case!r} is not a case id: {word!r} is not a shape; expected 3x2, scalar, 40*3x2, _, none")
    return () if word == "scalar" else tuple(int(d) for d in word.split("x"))


def _item(word: str, case: str) -> Structure:
    item = _parse_shape(word, case)
    return tensor(*item) if isinstance(item, tuple) else item


def _type_word(name: str) -> str:
    """Return a type in the form of an id: `seq.float32` for `seq(float32)`."""
    return re.sub(r"[(,]\s*", ".", name).replace(")", "")


def _type_of(word: str, case: str) -> str:
    """Return the type that `_type_word` wrote; a plain name is unchanged."""
    head, *rest = word.split(".")
    try:
        match head, rest:
            case "map", [key, element]:
                return str(parse_type(f"map({key},{element})"))
            case (("seq" | "optional" | "sparse"), [_, *_]):
                return str(parse_type(f"{head}({_type_of('.'.join(rest), case)})"))
            case _, []:
                return head
    except ValueError:
        pass
    raise CaseIdError(f"{case!r} is not a case id: {word!r} is not a type; expected float32, seq.float32 or the like")


def _parse_settings(text: str, case: str) -> tuple[tuple[str, str], ...]:
    if text == "-":
        return ()
    settings = []
    for part in text.split(";"):
        match = _SETTING.fullmatch(part)
        if not match:
            raise CaseIdError(f"{case!r} is not a case id: {part!r} is not a setting; expected name=value, - for none")
        settings.append((match[1], match[2]))
    if settings != sorted(dict(settings).items()):
        raise CaseIdError(f"{case!r} is not a case id: each setting appears once, sorted by name")
    return tuple(settings)


_OF_VERSIONS = re.compile(r"[^/\[]*/[^/]*")  # a slash in brackets is one of several characters
_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_MOST_SHARDS = 100_000
_WILD = frozenset("*?[")
_WHOLE_NUMBER = re.compile(r"(?:^|=)[0-9]+(?:\Z|[;/])")


def _literal(glob: str) -> str:
    """Return the text of a glob before its first wildcard."""
    return glob[: next((i for i, c in enumerate(glob) if c in _WILD), None)]


@dataclass(frozen=True)
class Glob:
    """A glob, with the text that the user wrote."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def is_case(self) -> bool:
        """Return whether it is the id of one case."""
        return self._literal == self.text != operator_version_of(self.text)

    @functools.cached_property
    def _literal(self) -> str:
        return _literal(self.text)

    @property
    def operator_version(self) -> str | None:
        """Return the one operator version that the glob can match, None if that part has a wildcard."""
        operator_version = operator_version_of(self.text)
        return operator_version if "/" in operator_version and len(operator_version) <= len(self._literal) else None

    def matches(self, case_id: str) -> bool:
        """Return whether the glob matches this case."""
        if not case_id.startswith(self._literal):  # a fast answer for the many cases that don't match
            return False
        return fnmatchcase(case_id, self.text) or fnmatchcase(operator_version_of(case_id), self.text)

    def concerns(self, operator_version: str) -> bool:
        """Return whether the glob matches cases of this operator version; `*` stops at a slash."""
        parts = self.text.split("/")
        if len(parts) > 2:
            return fnmatchcase(operator_version, "/".join(parts[:2]))
        return fnmatchcase(operator_version, self.text) or (
            self.text.endswith("*") and operator_version.startswith(self._literal)
        )


@dataclass(frozen=True)
class Selection:
    """What to generate.

    `globs` are matched, as fnmatchcase does, against case ids and operator versions; a glob with one slash, such as
    `onnx/*Mean-*`, against operator versions alone. No globs select everything.
    `strength` is the strength of the covering array, None for every combination. `draws` is the number of draws of each
    drawn fill; `seed` varies all of them. `standards` are the standards that a backend implements; none means all.
    `suite` names a list of cases to use in place of the plan.
    """

    globs: tuple[str, ...] = ()
    strength: int | None = 2
    draws: int = 1
    seed: int = 0
    standards: tuple[str, ...] = ()
    suite: str | None = None

    def admits(self, operator_version: str, text: str) -> bool:
        """Return whether a glob selects a case, given as its operator version and its id."""
        return not self.globs or any(
            fnmatchcase(operator_version, g) or (not is_of_versions(g) and fnmatchcase(text, g)) for g in self.globs
        )

    def may_admit(self, operator_version: str) -> bool:
        """Return whether a glob may select a case of this operator version; fast, and true when in doubt."""
        if self.standards and operator_version.partition("/")[0] not in self.standards:
            return False
        return not self.globs or any(may_match(glob, operator_version) for glob in self.globs)


def strength_of(text: str) -> int | None:
    """Return the strength that a user wrote: a whole number from 1, or `full`, which is None. Raises OpconformError."""
    if text != "full" and not (re.fullmatch("[0-9]{1,9}", text) and int(text)):
        raise OpconformError(f"strength {text}: expected a whole number from 1, or full")
    return None if text == "full" else int(text)


def is_of_versions(glob: str) -> bool:
    """Return whether a glob selects operator versions by their names alone: it has no third part."""
    return _OF_VERSIONS.fullmatch(glob) is not None


def may_match(glob: str, operator_version: str) -> bool:
    """Return whether a glob may select a case of an operator version; true when in doubt."""
    if is_of_versions(glob):
        return fnmatchcase(operator_version, glob)
    literal = _literal(glob)
    return literal.startswith(f"{operator_version}/") or (
        f"{operator_version}/".startswith(literal) and (literal != glob or literal == operator_version)
    )


def matches_numbered(glob: str, before: str, after: str) -> bool | None:
    """Return whether a glob matches `before`, a whole number and `after`; None if that may depend on the number.

    `before` ends with `=`, and `after` begins with `;` or `/`, as in `…/axes=0;draw=` and `/uniform`.
    """
    if "?" in glob or "[" in glob:
        return None
    head, *pieces = glob.split("*")
    if not pieces or not before.startswith(head):
        return None if head.startswith(before) else False
    # a piece that reaches into the number has digits with nothing, `=`, `;` or `/` beside them
    if any(_WHOLE_NUMBER.search(piece) for piece in pieces):
        return None
    return fnmatchcase(f"{before}1{after}", glob)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` shards; the first has number 1."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


def shard_of(text: str) -> Shard:
    """Return the shard that a user wrote as `I/N`. Raises OpconformError."""
    match = _SHARD.fullmatch(text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise OpconformError(f"shard {text}: expected I/N with I from 1 to N, as in 2/8")
    if int(match[2]) > _MOST_SHARDS:
        raise OpconformError(f"shard {text}: more than {_MOST_SHARDS:,} shards")
    return Shard(int(match[1]), int(match[2]))


_DRAWN = re.compile(r"(draw|seed)=\d+;?")
_PLAIN = re.compile(
    r"ramp|negative-zero|ones|maximum|halves|underflow|subnormal-among|nan-among|zeros|(beside|upon)-2\^\d+"
)
"""The fills whose numbers are not drawn; their sums are short."""

# The cost of a case in tenths of a microsecond, measured on one core: see docs/shards-and-resume.md.
_PROGRAM = 15_000
_CASE = 1_000
_ELEMENT = 2
_ELEMENT_OF_DOUBLES = 40  # their exact sums need numbers of 160 bits
_LARGEST_PART = 1_000_000


def of_shard(ids: Iterable[str], shard: Shard | None) -> Iterator[str]:
    """Yield the ids that belong to a shard, or all ids without one, in order; memory use stays constant."""
    if shard is None:
        yield from ids
        return
    for index, part in shared_out(ids, shard.count):
        if index == shard.index:
            yield from part


def share(ids: Iterable[str], shard: Shard) -> int:
    """Return how many of the ids are in a shard. Raises OpconformError if there are fewer parts than shards."""
    parts: Counter[int] = Counter()
    cases = 0
    for index, part in shared_out(ids, shard.count):
        parts[index] += 1
        cases += len(part) if index == shard.index else 0
    if len(parts) < shard.count:
        raise OpconformError(
            f"--shard {shard}: the cases have {parts.total()} parts, one per program; choose at most that many shards"
        )
    return cases


def shared_out(ids: Iterable[str], count: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the parts that ids are split into, each with the index of its shard: the one with the least work so far.

    A part has consecutive cases of one program, so that a shard prepares the program once. The assignment depends only
    on the ids and `count`.
    """
    loads = [(0, index) for index in range(1, count + 1)]
    for part, cost in _parts(ids):
        load, index = loads[0]
        heapq.heapreplace(loads, (load + cost, index))
        yield index, part


def _parts(ids: Iterable[str]) -> Iterator[tuple[list[str], int]]:
    """Yield parts and their costs; many draws of one program are split if the part would cost too much."""
    for _, group in itertools.groupby(ids, _program_of):
        part: list[str] = []
        cost = _PROGRAM
        for text in group:
            part.append(text)
            cost += cost_of(text)
            if cost >= _LARGEST_PART:
                yield part, cost
                part, cost = [], _PROGRAM
        if part:
            yield part, cost


def cost_of(case_id: str) -> int:
    """Return the approximate cost of a case in tenths of a microsecond, without preparing its program."""
    operator, types, shapes, _, fill, *_ = (*case_id.split("/", 1)[1].split("/"), "", "", "")
    return _cost(operator, types, shapes, fill)


@functools.lru_cache(maxsize=4096)
def _cost(operator: str, types: str, shapes: str, fill: str) -> int:
    of_any = parse_id(f"any/{operator}/{types}/{shapes}/-/{fill}")
    elements = of_any.size
    slow = of_any.types[:1] == ("float64",) and not _PLAIN.fullmatch(fill)
    return _CASE + elements * (_ELEMENT_OF_DOUBLES if slow else _ELEMENT)


def _program_of(case_id: str) -> str:
    """Return what the cases of one program have in common; with symbolic dimensions one program serves all shapes."""
    operator, types, shapes, settings = case_id.split("/", 1)[1].split("/")[:4]
    own = _DRAWN.sub("", settings).rstrip(";") or "-"
    if "dims=symbolic" in own:
        shapes = ",".join(str(shape.count("x")) for shape in shapes.split(","))
    return f"{case_id.partition('/')[0]}/{operator}/{types}/{shapes}/{own}"

"""The manifest of a corpus, the sha256 of every file, and the index for readers without JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from ..batch import Batch, Option
from ..errors import OpconformError
from ..program import Attribute, Body, Input, Program, SparseTensor, Structure, Tensor
from .descriptor import SCHEMA, attribute_value, check_schema
from .files import LARGEST_JSON, CorpusError, Files, check_path, lined_json, read_json

MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
"""The file with the sha256 of every other file, in the format of the program sha256sum."""
FORMATS = ("onnx", "npz")
SIBLINGS = "siblings"
"""The key in a manifest's selection that names the cases that are present only because invalid ones need them."""

_SUM = re.compile(r"([0-9a-f]{64})  ([^\n]+)\n")


@dataclass(frozen=True, slots=True)
class CaseEntry:
    """The manifest's entry for one case: the folder of its files, and its digests."""

    folder: str
    case_digest: str
    expectation_digest: str


@dataclass(frozen=True)
class Manifest:
    """The manifest of a corpus. `counts` are cases by operator version, `selection` is what the user selected.

    `suite` is the suite's version. `files` and `size` are the number and the bytes of all files except the manifest and
    the sums.
    """

    format: str
    suite: str
    selection: Mapping[str, Any]
    counts: Mapping[str, int]
    cases: Mapping[str, CaseEntry]
    files: int
    size: int

    @property
    def siblings(self) -> frozenset[str]:
        """Return the cases that were not selected, but are present because an invalid case was made from them."""
        return frozenset(self.selection.get(SIBLINGS, ()))

    def to_bytes(self) -> bytes:
        """Return the content of `manifest.json`."""
        fields = {
            "schema": SCHEMA,
            "format": self.format,
            "suite": {"version": self.suite},
            "selection": dict(self.selection),
            "counts": dict(self.counts),
            "files": self.files,
            "bytes": self.size,
            "cases": {name: asdict(entry) for name, entry in self.cases.items()},
        }
        return lined_json(fields)


@dataclass(frozen=True)
class Sums:
    """The sha256 of every file of a corpus except this one, by path.

    `digest` is the sha256 of this file; it identifies the whole corpus.
    """

    files: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Return the digest of the whole corpus."""
        return sha256(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the content of `SHA256SUMS`."""
        return "".join(f"{digest}  {path}\n" for path, digest in sorted(self.files.items())).encode()


def sha256(content: bytes) -> str:
    """Return the digest of a file's content."""
    return hashlib.sha256(content).hexdigest()


def read_manifest(files: Files) -> Manifest:
    """Read the manifest of a corpus. Raises CorpusError, which names the file, if it is invalid."""
    name = f"{files.name}: {MANIFEST}"
    fields = read_json(files.read(MANIFEST, LARGEST_JSON), name)
    check_schema(fields, name)
    try:
        manifest = _manifest(fields)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorpusError(f"{name}: not a manifest of schema {SCHEMA}: {type(error).__name__}: {error}") from None
    for case in manifest.cases.values():
        check_path(case.folder, name)
    return manifest


def _manifest(fields: Mapping[str, Any]) -> Manifest:
    if fields["format"] not in FORMATS:
        raise ValueError(f"format {fields['format']!r}; expected one of {', '.join(FORMATS)}")
    cases = {
        name: CaseEntry(str(c["folder"]), str(c["case_digest"]), str(c["expectation_digest"]))
        for name, c in fields["cases"].items()
    }
    counts = {name: _size(number) for name, number in fields["counts"].items()}
    suite = str(fields["suite"]["version"])
    if not re.fullmatch(r"\d{1,9}\.\d{1,9}\.\d{1,9}", suite):
        raise ValueError(f"suite version {suite!r}; expected X.Y.Z")
    selection = dict(fields["selection"])
    siblings = selection.get(SIBLINGS, [])
    if not isinstance(siblings, list) or not all(isinstance(sibling, str) and sibling in cases for sibling in siblings):
        raise ValueError(f"{SIBLINGS}: expected a list of cases in this manifest")
    return Manifest(fields["format"], suite, selection, counts, cases, _size(fields["files"]), _size(fields["bytes"]))


def _size(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ValueError(f"expected a size, read {number!r}")
    return number


def read_sums(files: Files) -> Sums:
    """Read the sums of a corpus. Raises CorpusError, which names the file and the line, if they are invalid."""
    name, sums = f"{files.name}: {SUMS}", dict[str, str]()
    lines = files.read(SUMS, LARGEST_JSON).decode("ascii", "replace").splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        match = _SUM.fullmatch(line)
        if match is None or match[2] in sums or match[2] == SUMS:
            expected = "expected a sha256 in lower case, two spaces, and the path of another file, each path once"
            raise CorpusError(f"{name}:{number}: {expected}; read {line.rstrip()[:200]!r}")
        check_path(match[2], f"{name}:{number}")
        sums[match[2]] = match[1]
    return Sums(sums)


def checked_read(files: Files, sums: Sums, path: str, largest: int) -> bytes:
    """Return a file's content. Raises CorpusError if it does not match its sha256, or is larger than `largest`."""
    wanted = sums.files.get(path)
    if wanted is None:
        raise CorpusError(f"{files.name}: {path}: {SUMS} does not list it")
    content = files.read(path, largest)
    if sha256(content) != wanted:
        raise CorpusError(f"{files.name}: {path}: its sha256 differs from the one in {SUMS}")
    return content


def differences(files: Files, manifest: Manifest, sums: Sums) -> Iterator[str]:
    """Yield what differs from the sums and the manifest: missing, added and changed files, and these two."""
    if files.read(SUMS, LARGEST_JSON) != sums.to_bytes():
        yield f"changed: {SUMS} (its lines are not sorted)"
    yield from files.flaws()
    there = files.sizes()
    yield from (f"missing: {path}" for path in sums.files if path not in there)
    yield from (f"added: {path}" for path in there if path not in sums.files and path != SUMS)
    for path in sums.files:
        if path in there:  # no file may have more bytes than all files together
            yield from _changes(files, sums, path, LARGEST_JSON if path == MANIFEST else manifest.size)


def _changes(files: Files, sums: Sums, path: str, largest: int) -> Iterator[str]:
    try:
        checked_read(files, sums, path, largest)
    except CorpusError as error:
        reason = str(error).removeprefix(f"{files.name}: {path}: ")
        yield f"changed: {path} ({reason})"


INDEX = "cases.txt"
LONGEST = 80
"""The characters that a program folder's name may have."""

_DIGEST = 12
_UNSAFE = re.compile(r"[^A-Za-z0-9-]+")
_FLOATS = ("float", "f32")


def index_head(form: str) -> str:
    """Return the first line of an index; `form` is the corpus's format."""
    return _line("opconform-corpus", str(SCHEMA), form)


def index_entry(case: Batch, folder: str) -> str:
    """Return the lines of one case, with an empty line at the end; `folder` has its files.

    Raises OpconformError if a name cannot be a word of the index.
    """
    lines = [_line("case", folder), _line("id", case.id), *_program(case.program)]
    lines += [
        _line("output", output.name, output.type) if output else _line("omitted-output")
        for output in case.program.outputs
    ]
    if case.expectation.invalid:
        lines.append(_line("invalid", *([] if case.valid_variant is None else [case.valid_variant])))
    for option in case.expectation.options:
        lines += _option(option)
    return "".join([*lines, "\n"])


def _program(program: Program) -> Iterator[str]:
    operator = program.operator
    opset = "-" if program.opset is None else str(program.opset)
    yield _line("operator", operator.standard, operator.domain or "-", operator.name, str(operator.version), opset)
    for attribute in program.attributes:
        yield _line("attribute", attribute.name, attribute.kind, *_values(attribute))
    fed = [i.name for i in program.feeds for _ in i.leaves]
    met: set[str] = set()
    for input_ in program.inputs:
        again = input_ is not None and input_.name in met
        met |= {input_.name} if input_ is not None else set()
        if input_ is None or again:
            yield _line("omitted") if input_ is None else _line("again", str(fed.index(input_.name)))
        else:
            yield from _input(input_)
    for input_ in program.captured:
        yield _line("captured", input_.name)
        yield from _input(input_)
    if program.around is not None:
        yield _line("around", *_values(Attribute("around", "graph", program.around)))


def _input(given: Input) -> Iterator[str]:
    if given.structure is None:
        yield _line("input" if given.constant is None else "constant", given.name, given.type, *map(str, given.dims))
        return
    yield _line("structured", given.name, given.type, _structure(given.structure))
    for leaf in given.leaves:
        yield _line("input", given.name, leaf.type, *map(str, leaf.dims or ()))


def _structure(structure: Structure) -> str:
    """Return a structure as a word: `[2x3,scalar]` is a sequence, `?2x3` an optional, `{2}` a map of two entries."""
    match structure.kind:
        case "sequence":
            return f"[{','.join(map(_structure, structure.items))}]"
        case "optional":
            return f"?{''.join(map(_structure, structure.items))}"
        case "map":
            return f"{{{structure.count}}}"
    return "*" if structure.dims is None else "x".join(map(str, structure.dims)) or "scalar"


def _values(attribute: Attribute) -> Iterator[str]:
    for value in attribute.value if isinstance(attribute.value, tuple) else (attribute.value,):
        if isinstance(value, str):
            yield f"={quote(value, safe='')}"
        elif isinstance(value, Tensor | SparseTensor | Body):
            encoded = attribute_value(value)
            yield f"={quote(json.dumps(encoded, separators=(',', ':')), safe='')}"
        else:
            yield float(value).hex() if attribute.kind.startswith(_FLOATS) else str(int(value))


def _option(option: Option) -> Iterator[str]:
    flags = ["exceptional"] * option.exceptional + ["declared"] * (option.level == "declared")
    yield _line("option", option.kind, *flags, *(f"{silence}={answer}" for silence, answer in option.labels))
    if option.structure:
        yield _line("structure", *map(_structure, option.structure))
    for check in option.checks:
        settings = (f"{name}={quote(str(setting), safe='')}" for name, setting in check.settings)
        yield _line("check", check.name, *map(str, check.outputs), *settings)
    for number, bounds in enumerate(option.outputs):
        if bounds.spread is not None:
            yield _line("spread", str(number), bounds.spread.limit.hex())


def _line(*words: str) -> str:
    for word in words:
        if not word or not word.isascii() or not word.isprintable() or " " in word:
            raise OpconformError(f"{INDEX}: {word!r} is not a word of printable ASCII, as names in a corpus must be")
    return " ".join(words) + "\n"


def program_folder(program: Program) -> str:
    """Return the name of a program's folder, made only from the program's content.

    `test_onnx_ReduceMean-13_float32_3x2x2_6f1c52a0b3d4`: letters, digits, `-` and `_`. The first digits of the
    program's key make names differ in more than upper and lower case. ONNX's loader requires `test_`.
    """
    all_dims = (["n" if isinstance(size, str) else size for size in feed.dims] for feed in program.feeds)
    parts = [
        str(program.operator),
        "-".join(dict.fromkeys(i.type for i in program.feeds)),
        "-".join(dict.fromkeys("x".join(map(str, dims)) or "scalar" for dims in all_dims)),
    ]
    slug = "_".join(_UNSAFE.sub("_", part).strip("_") for part in parts if part)
    begun = f"test_{slug}"[: LONGEST - _DIGEST - 1].rstrip("_-")
    return f"{begun}_{program.key[:_DIGEST]}"

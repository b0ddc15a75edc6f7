"""`opconform dev mutants`: cases against wrong and compliant implementations, one process per operator version."""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import json
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

from rich.console import Console

from ..cases.errors import OpconformError
from ..cases.ids import parse_id
from ..cases.lock import SHORT
from ..generators.families import modules_of_bindings
from ..generators.plan import Selection, by_version
from ..generators.selection import selected, suite_cases, suite_file, suite_text
from ..generators.source import GeneratedCases
from ..generators.suggestions import selects_nothing
from ..reports.matrix import Matrix, matrix_html, matrix_markdown, print_matrix, read_record
from ..reports.reasons import TOOL_REASONS, read_reasons
from ..reports.text import check_parents, write_pages
from ..reports.tool_matrix import tools_markdown
from ..specs.model import Spec, VersionSpec
from .killing import tested
from .killing_tools import tools_tested
from .locking import locked_digest, package_root
from .options import usable_cores
from .planning import made_of_each, planned_ids

_REMARK = (
    "The suite `smoke`: some six small cases of each operator version, which kill most mutants that the suite kills.\n"
    "Made by `opconform dev mutants --write-smoke FILE`."
)


@dataclass(frozen=True)
class MutationOptions:
    """The options of `opconform dev mutants`; see its help."""

    selection: Selection = field(default_factory=Selection)
    specs: Path | None = None
    jobs: int | None = None
    record: Path | None = None
    json: Path | None = None
    html: Path | None = None
    markdown: Path | None = None
    write_smoke: Path | None = None
    tools: bool = False


def run_mutants(options: MutationOptions) -> int:
    """Make the kill matrix, show and write it.

    Returns 1 if a compliant variant is blamed, or if a mutant survives that is not a survivor in the record, if there
    is one. Raises OpconformError for a wrong option or file.
    """
    if options.tools:
        return run_tools(options)
    source = GeneratedCases(options.specs)
    check_parents(options.record, options.json, options.html, options.markdown, options.write_smoke)
    known = Matrix({})
    if options.record is not None and options.record.exists():
        known = read_record(options.record, _smoke(options.write_smoke))
    specs = {str(v.operator): spec for spec in source.library.specs() for v in sorted(spec.versions.values(), key=_age)}
    codes = _codes({name: spec for name, spec in specs.items() if options.selection.may_admit(name)})
    unchanged = _unchanged(codes, known, options.selection)
    ids = by_version(planned_ids(source, _without(options.selection, unchanged, specs)))
    ids = {name: cases for name, cases in ids.items() if name not in unchanged}
    if not ids and not unchanged:
        raise selects_nothing(source.library, options.selection)
    tried = made_of_each(source, ids, options.jobs or usable_cores(), tested)
    made = Matrix({name: replace(version, code=codes[name]) for name, version in tried.items()})
    every = {**known.tested, **made.tested}
    matrix = Matrix({name: every[name] for name in specs if name in every})
    reasons = read_reasons()
    explained = reasons.explained(matrix)
    write_pages(
        (options.record, matrix.to_record),
        (options.json, lambda: json.dumps(explained.to_dict(), indent=1, allow_nan=False) + "\n"),
        (options.html, lambda: matrix_html(explained)),
        (options.markdown, lambda: matrix_markdown(explained)),
        (options.write_smoke, lambda: suite_text(matrix.smoke, _REMARK)),
    )
    new = made.beyond(known)
    print_matrix(Console(), reasons.explained(new) if options.record is not None else explained)
    return 1 if matrix.blamed or new.survivors else 0


def run_tools(options: MutationOptions) -> int:
    """Make the matrix of wrong inferencers, checkers and converters; show and write it.

    Without a selection, of an operator of two formulas of each family, in its newest version. Returns 1 if a compliant
    variant is blamed, or a survivor has no reason. Raises OpconformError for a wrong option or file.
    """
    if options.write_smoke is not None or options.html is not None:
        raise OpconformError("--tools has no smoke suite and no HTML page; leave --write-smoke and --html out")
    source = GeneratedCases(options.specs)
    selection = options.selection
    if not selection.globs:
        selection = replace(selection, globs=tuple(_of_each_family(source)))
    ids = {
        name: some for name, some in by_version(selected(source, selection)).items() if not name.startswith("onednn")
    }
    if not ids:
        raise selects_nothing(source.library, options.selection)
    test = functools.partial(tools_tested, smoke=_smoke(None))
    matrix = Matrix(made_of_each(source, ids, options.jobs or usable_cores(), test))
    reasons = read_reasons(TOOL_REASONS)
    explained = reasons.explained(matrix)
    write_pages(
        (options.record, explained.to_record),
        (options.json, lambda: json.dumps(explained.to_dict(), indent=1, allow_nan=False) + "\n"),
        (options.markdown, lambda: tools_markdown(explained)),
    )
    print_matrix(Console(), explained)
    return 1 if matrix.blamed or reasons.missing(matrix) else 0


_FORMULAS = 2  # of each family, whose operators tools are tried on


def _of_each_family(source: GeneratedCases) -> Iterator[str]:
    """Yield the newest version of the first operator of the first formulas of each family, in standards with tools."""
    known: dict[tuple[str, str], set[str]] = {}
    for spec in source.library.specs():
        of_family = known.setdefault((spec.standard, spec.family), set())
        if spec.standard != "onednn" and spec.function not in of_family and len(of_family) < _FORMULAS:
            of_family.add(spec.function)
            yield str(max(spec.versions.values(), key=_age).operator)


def _age(version: VersionSpec) -> int:
    number = version.operator.version
    return number if isinstance(number, int) else 0


def _smoke(file: Path | None) -> Mapping[str, Sequence[str]]:
    """Return the cases of the smoke suite by operator version, from a file to be written or from the package."""
    cases = suite_cases("smoke") if file is None else suite_file(file) if file.exists() else ()
    by_operator: dict[str, list[str]] = {}
    for text in cases:
        by_operator.setdefault(parse_id(text).operator, []).append(text)
    return by_operator


def _unchanged(codes: Mapping[str, str], known: Matrix, selection: Selection) -> frozenset[str]:
    """Return the operator versions that are selected completely, have locked cases, and are in the record with them."""
    if replace(selection, globs=()) != Selection():
        return frozenset()
    return frozenset(
        name
        for name, code in codes.items()
        if _is_whole(name, selection)
        and (recorded := known.tested.get(name)) is not None
        and (recorded.digest, recorded.code) == (locked_digest(name), code)
    )


def _is_whole(name: str, selection: Selection) -> bool:
    return not selection.globs or any(fnmatchcase(name, glob) for glob in selection.globs)


def _without(selection: Selection, unchanged: frozenset[str], names: Iterable[str]) -> Selection:
    """Return the selection without whole operator versions; it then selects nothing if it selects only those."""
    admitted = [name for name in names if selection.may_admit(name)]
    if not unchanged or not all(_is_whole(name, selection) for name in admitted):
        return selection
    return replace(selection, globs=tuple(n for n in admitted if n not in unchanged) or ("nothing",))


def _codes(specs: Mapping[str, Spec]) -> dict[str, str]:
    """Return for each operator version a digest of the code that makes its mutants.

    The code of primitives is not included: a change there that matters changes expectations, and so the lock.
    """
    generators = package_root() / "generators"
    shared = [*sorted((generators / "mutants").glob("*.py")), generators / "arithmetic" / "native.py"]
    for apart in ("backends", "tools"):  # which finds mutants by name; which makes wrong inferencers, and no kernel
        shared.remove(generators / "mutants" / f"{apart}.py")
    shared.append(generators / "primitives" / "machine.py")
    shared += [package_root() / "cli" / f"{name}.py" for name in ("bounds", "killing")]
    common = "".join(map(_code, shared))
    modules = {name: (spec.family, *modules_of_bindings(spec)) for name, spec in specs.items()}
    families = {name: _code(generators / "families" / f"{name}.py") for name in set(chain(*modules.values()))}
    digests = {
        names: hashlib.sha256((common + "".join(families[name] for name in names)).encode()).hexdigest()[:SHORT]
        for names in set(modules.values())
    }
    return {name: digests[names] for name, names in modules.items()}


def _code(file: Path) -> str:
    """Return the lines of a module without imports, docstrings, comments and empty lines."""
    text = file.read_text("utf-8")
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]]
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and (is_text or isinstance(node, ast.Import | ast.ImportFrom)):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "".join(f"{line.rstrip()}\n" for line in lines if line.strip())

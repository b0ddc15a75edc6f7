"""Writes the signature part of a new spec file from the standard's schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from ..cases.errors import OpconformError, did_you_mean
from .audit.findings import DOMAINS, attribute_text, onnx_signatures, port_type_text
from .families import flow
from .model import Signature, compress, expand
from .reading import ELLIPSIS
from .resolve import REMOVED

TODO = "TODO"
WIDTH = 118

_Section: TypeAlias = Mapping[str, Any]  # name to text, or to a list of types
_Sections: TypeAlias = Mapping[str, _Section]


def scaffold(operator: str) -> str:
    """Return a new spec file for `onnx/Add`, or `onnx/ai.onnx.ml/Scaler`: signatures of all versions, TODO elsewhere.

    The domain may be left out if only one domain has the operator. Raises OpconformError for an unknown operator.
    """
    domain, name = _find(operator)
    versions = onnx_signatures(domain)[name]
    return "\n".join([*_head(domain, name), *_versions(versions), *_TAIL]) + "\n"


_TAIL = (
    "",
    "clauses:",
    "  # id: one rule of the standard, in your own words",
    "  # id: {text: a rule that some versions have, since: VERSION, before: VERSION}",
    "  # id: {text: a rule that some cases test, when: {ATTRIBUTE: absent}}",
    "  # id: {text: a rule that only edges test, when: edges}",
    "  # rules, parameters and edges that many operators share: uses: [FAMILY, FAMILY], from specs/families",
    "  # an output's type that an attribute sets: types-from: {OUTPUT: {attribute: NAME}}",
    f"  {TODO.lower()}: {TODO}",
)


def _find(operator: str) -> tuple[str, str]:
    standard, _, rest = operator.partition("/")
    if standard in ("openvino", "onednn"):
        raise OpconformError(
            f"{operator!r}: a scaffold is made from ONNX's schemas, so name it as in onnx/Add; "
            f"the library of {standard} does not report the names of inputs: write the file from the page, "
            f"and `opconform dev audit {standard}` checks it"
        )
    if standard != "onnx" or not rest:
        raise OpconformError(f"{operator!r}: a scaffold is made from ONNX's schemas; name it as in onnx/Add")
    wanted, _, name = rest.rpartition("/")
    domains = [d for d in DOMAINS if name in onnx_signatures(d) and wanted in ("", d or "ai.onnx")]
    if len(domains) == 1:
        return domains[0], name
    if domains:
        listed = " or ".join(f"onnx/{d or 'ai.onnx'}/{name}" for d in domains)
        raise OpconformError(f"{operator!r} is in several domains: write {listed}")
    hint = did_you_mean(name, [n for d in DOMAINS for n in onnx_signatures(d)])
    raise OpconformError(f"ONNX has no operator {rest!r}{hint}")


def _head(domain: str, name: str) -> Iterator[str]:
    yield f"operator: onnx/{name}"
    if domain:
        yield f"domain: {domain}"
    yield f"family: {TODO}  # module.function, as in reduction.mean"
    page = f"onnx_{domain.replace('.', '')}_{name}" if domain else f"onnx__{name}"
    yield f"source: https://onnx.ai/onnx/operators/{page}.html#{name.lower()}-{{version}}"
    yield ""


def _versions(versions: Mapping[int, Signature]) -> Iterator[str]:
    yield "versions:"
    before: Signature | None = None
    for version, signature in versions.items():
        sections = _sections(signature)
        changed = sections if before is None else _changed(sections, _sections(before))
        lines = [line for section, entries in changed.items() if entries or before for line in _lines(section, entries)]
        if signature.deprecated:
            lines.insert(0, "    deprecated: true")
        same = before is not None and before.deprecated == signature.deprecated
        if not lines or (not changed and not same):
            lines.insert(0, f"    change: {TODO}")
        yield f"  {version}:"
        yield from lines
        before = signature


def _sections(signature: Signature) -> _Sections:
    """Return the complete sections of a signature in the syntax of specs."""
    return {
        "attributes": {a.name: attribute_text(a) for a in signature.attributes},
        "inputs": {p.name: port_type_text(p) for p in signature.inputs},
        "outputs": {p.name: port_type_text(p) for p in signature.outputs},
        "types": {letter: _types(letter, signature.types) for letter in signature.types},
    }


def _types(letter: str, types: Mapping[str, tuple[str, ...]]) -> str | tuple[str, ...]:
    """Return a tie, `seq(T)`, if a letter depends on another one, else the shortest list."""
    own = types[letter]
    for other, inner in types.items():
        for wrap in ("seq", "optional"):
            if other != letter and len(own) > 1 and set(own) == {f"{wrap}({t})" for t in inner}:
                return f"{wrap}({other})"
    return compress(own)


def _changed(now: _Sections, before: _Sections) -> _Sections:
    changed = {name: _delta(name, entries, before[name]) for name, entries in now.items()}
    return {name: entries for name, entries in changed.items() if entries is not None}


def _delta(section: str, now: _Section, before: _Section) -> _Section | None:
    """Return the text of a section: None if it is unchanged, a delta if that is shorter, else all of it."""
    if _same(section, now, before):
        return None
    fresh = {name: text for name, text in now.items() if not _equal(text, before.get(name))}
    shortened = {name: _grown(text, before.get(name)) for name, text in fresh.items()}
    gone = {name: REMOVED for name in before if name not in now}
    kept = len(now) - len(fresh)
    in_order = [name for name in before if name in now] + [name for name in now if name not in before]
    if section in ("inputs", "outputs") and in_order != list(now):
        return now
    if section == "types" and not kept and not gone:
        return shortened
    # even a complete section may write type lists as additions
    is_shorter = len(fresh) + len(gone) < len(now) and kept > (section != "types")
    return {ELLIPSIS: None, **shortened, **gone} if is_shorter else {**now, **(shortened if section == "types" else {})}


def _same(section: str, now: _Section, before: _Section) -> bool:
    ordered = section in ("inputs", "outputs")
    names = list(now) == list(before) if ordered else now.keys() == before.keys()
    return names and all(_equal(text, before[name]) for name, text in now.items())


def _equal(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return _flat(a) == _flat(b)
    return a == b


def _grown(now: Any, before: Any) -> Any:
    """Return only the additions if a type list grew, so that a reviewer sees what is new."""
    if not isinstance(now, tuple) or not isinstance(before, tuple) or not _flat(before) < _flat(now):
        return now
    added = [t for word in now for t in expand(word) if t not in _flat(before)]
    return (ELLIPSIS, *compress(added))


def _flat(words: Iterable[str]) -> frozenset[str]:
    return frozenset(t for word in words for t in expand(word))


def _lines(section: str, entries: _Section) -> list[str]:
    """Return a section on one line if it fits, else with one line per entry."""
    line = f"    {section}: {flow(entries)}"
    if len(line) <= WIDTH:
        return [line]
    parts = (f"{ELLIPSIS}:" if name == ELLIPSIS else f"{flow(name)}: {flow(text)}" for name, text in entries.items())
    return [f"    {section}:", *(f"      {part}" for part in parts)]

"""The form of the YAML files that are read: which sections and keys there are, and what each takes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, RootModel, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails

from ..cases.errors import did_you_mean
from .model import STANDARDS, Status, Version
from .reading import Document, Key, SpecError

ID = r"[a-z0-9][a-z0-9_.^+-]*"

_Model = TypeVar("_Model", bound=BaseModel)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _OrText:
    """Says in the JSON Schema that plain text will do for the mapping."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


_Words = Annotated[list[str], BeforeValidator(_listed), _OrText()]
_Groups = Annotated[list[list[str]], BeforeValidator(lambda v: [v] if _is_words(v) else v)]


def _is_words(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


class VersionText(_Section):
    """Signature of a version; the first is complete, a later one names the sections that change."""

    change: str | None = None
    deprecated: bool = False
    attributes: dict[str, str | None] | None = None
    inputs: dict[str, str | None] | None = None
    outputs: dict[str, str | None] | None = None
    types: dict[str, list[str] | str | None] | None = None


class Spanned(_Section):
    """A part of a file that applies to some of the versions."""

    since: Version | None = None
    before: Version | None = None
    having: _Words = Field(default_factory=list)
    lacking: _Words = Field(default_factory=list)


class ClauseText(Spanned):
    """One rule of the standard, in our own words."""

    text: str = Field(min_length=1)
    when: dict[str, Any] | Literal["edges"] | None = None
    source: str | None = None
    status: Status = "required"
    upstream: str | None = None
    disputes: _Words = Field(default_factory=list)


class SilenceText(Spanned):
    """A question that the standard leaves open."""

    when: str = Field(min_length=1)
    options: list[str] = Field(min_length=1)
    source: str | None = None


class EdgeText(Spanned):
    """A single case that always runs."""

    settings: dict[str, Any] = Field(alias="with")
    mended: dict[str, Any] | None = Field(default=None, min_length=1)
    tests: _Words = Field(min_length=1)
    expect: Literal["rejected"] | None = None
    runs: int = Field(default=1, ge=1, le=1000)
    formerly: dict[str, _Words] = Field(default_factory=dict, alias="also-known-as")


class OperandText(Spanned):
    """An input: its shape, and how its elements come about; other keys are arguments of the draw."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    shape: list[Any] | str | None = None
    draw: Annotated[list[Any] | None, BeforeValidator(_listed), Field(min_length=1)] = None
    domain: str | None = None
    fill: str | None = None


class TypesFromText(Spanned):
    """A type letter, or an output's, that is what an attribute says."""

    attribute: str
    absent: str | None = None


_Clause = Annotated[ClauseText, BeforeValidator(lambda v: {"text": v} if isinstance(v, str) else v), _OrText()]
_Operands = Annotated[list[OperandText], BeforeValidator(lambda v: [v] if isinstance(v, dict) else v)]
_TypesFrom = Annotated[list[TypesFromText], BeforeValidator(lambda v: [v] if isinstance(v, dict) else v)]


class FamilyText(_Section):
    """What files may share: every section but those that say what the operator is."""

    shapes: dict[str, list[Any] | str] = Field(default_factory=dict)
    domains: dict[str, str] = Field(default_factory=dict)
    operands: dict[str, _Operands] = Field(default_factory=dict)
    types_from: dict[str, _TypesFrom] = Field(default_factory=dict, alias="types-from")
    same: _Groups = Field(default_factory=list)
    precision: dict[str, float | dict[str, float]] = Field(default_factory=dict)
    strength: dict[int, _Groups] = Field(default_factory=dict)
    graphs: dict[str, str] = Field(default_factory=dict)
    clauses: dict[str, _Clause] = Field(default_factory=dict)
    silences: dict[str, SilenceText] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)
    exclude: list[dict[str, Any]] = Field(default_factory=list)
    edges: dict[str, EdgeText] = Field(default_factory=dict)


class SpecText(FamilyText):
    """One file: all versions of one operator."""

    operator: str = Field(pattern=rf"^({'|'.join(STANDARDS)})/[A-Za-z_]\w*$")
    domain: str | None = Field(default=None, pattern=r"^[a-z]+(\.[a-z]+)+$")
    family: str = Field(pattern=r"^[a-z]\w*\.[a-z]\w*$")
    uses: str | list[str] | dict[str, dict[str, Any] | None] = Field(default_factory=list)
    source: str = Field(min_length=1)
    versions: dict[Version, VersionText] = Field(min_length=1)
    clauses: dict[str, _Clause] = Field(min_length=1)


class ErratumText(_Section):
    """A decision about a disputed verdict."""

    id: str = Field(min_length=1)
    affects: str = Field(min_length=1)
    decision: str = Field(min_length=1)
    link: str = Field(min_length=1)
    since: Annotated[str, BeforeValidator(lambda v: str(v) if type(v) is int else v)] = Field(min_length=1)


class ErrataText(RootModel[list[ErratumText]]):
    """The file of errata."""


def structured(document: Document) -> tuple[SpecText | None, list[SpecError]]:
    """Return what a spec file says if its structure is right, else None and every mistake in it."""
    if not isinstance(document.value, dict):
        return None, [document.error((), f"a spec file is a mapping of sections; read {_shown(document.value)}")]
    return validated(SpecText, document)


def validated(model: type[_Model], document: Document) -> tuple[_Model | None, list[SpecError]]:
    """Return a file's content as a model, else None and every mistake in it, at its place."""
    try:
        return model.model_validate(document.value), []
    except ValidationError as error:
        details = error.errors(include_url=False)
        misspelt = {(d["loc"][:-1], _meant(model, d)) for d in details if d["type"] == "extra_forbidden"}
        told = [d for d in details if d["type"] != "missing" or (d["loc"][:-1], d["loc"][-1]) not in misspelt]
        found = [_located(model, document, detail) for detail in told]
        return None, list({(e.file, e.position, e.message): e for e in found}.values())


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of spec files, for editors that complete and check YAML by it."""
    schema = SpecText.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "opconform spec file",
    }


_EXPECTED: Mapping[str, str] = {
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "list_type": "expected a list",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "too_short": "expected at least one entry",
    "string_too_short": "expected some text",
}
_PATTERNS: Mapping[str, str] = {
    "operator": f"expected a standard ({', '.join(STANDARDS)}), a slash and a name, as in onnx/ReduceMean",
    "domain": "expected a domain, as in ai.onnx.ml; for ai.onnx leave it out",
    "family": "expected module.function, as in reduction.mean",
}
_MODELS: Mapping[str, type[BaseModel]] = {
    "versions": VersionText,
    "clauses": ClauseText,
    "silences": SilenceText,
    "edges": EdgeText,
    "types-from": TypesFromText,
}


def _meant(model: type[BaseModel], detail: ErrorDetails) -> str | None:
    """Return the key that an unknown one is nearest to."""
    near = difflib.get_close_matches(str(detail["loc"][-1]), _keys_at(model, detail["loc"][:-1]), 1)
    return near[0] if near else None


def _located(model: type[BaseModel], document: Document, detail: ErrorDetails) -> SpecError:
    path = _real_path(document, detail["loc"])
    kind, read = detail["type"], detail["input"]
    if kind == "extra_forbidden":
        known = _keys_at(model, path[:-1])
        hint = did_you_mean(str(path[-1]), known) or f"; known here: {', '.join(known)}"
        return document.error(path, f"unknown key {path[-1]!r}{hint}", key=True)
    if kind == "missing":
        return document.error(path, f"key {detail['loc'][-1]!r} is missing{_missing_from(path)}", key=True)
    return document.error(path, f"{_expected(detail, path)}; read {_shown(read)}")


def _real_path(document: Document, steps: Iterable[Key]) -> tuple[Key, ...]:
    """Drop the steps that name a member of a union or a validator, which the file does not have."""
    path: tuple[Key, ...] = ()
    for step in steps:
        if document.has((*path, step)):
            path = (*path, step)
    return path


def _missing_from(path: tuple[Key, ...]) -> str:
    return f" in {'.'.join(map(str, path))}" if path else ""


def _keys_at(model: type[BaseModel], path: tuple[Key, ...]) -> list[str]:
    if model is ErrataText:
        model = ErratumText
    elif path:
        model = _MODELS.get(str(path[0]), model)
    return [found.alias or name for name, found in model.model_fields.items()]


def _expected(detail: ErrorDetails, path: tuple[Key, ...]) -> str:
    kind = detail["type"]
    if special := _expected_here(detail, path):
        return special
    if kind == "string_pattern_mismatch":
        return _PATTERNS[str(path[-1])]
    if kind == "literal_error":
        return "expected " + str(detail.get("ctx", {}).get("expected", "")).replace("'", "")
    return _EXPECTED.get(kind) or detail["msg"][0].lower() + detail["msg"][1:]


def _expected_here(detail: ErrorDetails, path: tuple[Key, ...]) -> str | None:  # noqa: PLR0911 - a table
    """Return what a place takes where pydantic sees a union, or a type of its own."""
    match path:
        case ("clauses", _):
            return "expected the clause's text, or a mapping with text"
        case ("clauses", _, "when"):
            return "expected a mapping of settings, or edges"
        case ("versions", _, "types", _):
            return "expected a list of types, or seq(T) or optional(T) of another letter"
        case (_, _, "since" | "before"):
            return "expected a version: a number, or quoted text such as '3.10'"
        case (*_, "having" | "lacking"):
            return "expected the name of an attribute, input, output or type letter, or a list of them"
        case ("edges", _, "tests") if detail["type"] == "list_type":
            return "expected the id of a clause or silence, or a list of them"
        case ("same",) | ("strength", _):
            return "expected a list of names, or a list of such lists"
        case ("precision", _):
            return "expected a number of ulp, or one for each type"
    return None


def _shown(read: object) -> str:
    if isinstance(read, dict):
        return "a mapping"
    if isinstance(read, list):
        return "a list" if read else "an empty list"
    text = repr(read)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return {"None": "nothing", "True": "true", "False": "false", "''": "an empty text"}.get(text, text)

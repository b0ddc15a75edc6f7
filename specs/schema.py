"""The form of all YAML input files: keys, accepted values, and messages for mistakes."""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    RootModel,
    Tag,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
    create_model,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from ..cases.elements import Flushed, Format, WholeFormat, element_types
from ..cases.errors import OpconformError, did_you_mean
from .model import STANDARDS, ShapeWord, Status, Version, expand
from .reading import Document, Key, SpecError, SpecErrors

_Model = TypeVar("_Model", bound=BaseModel)
_T = TypeVar("_T")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _OrText:
    """States in the JSON Schema that plain text may replace the mapping."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler(schema)]}


def _expected(words: str) -> WrapValidator:
    """Return a validator that reports `expected WORDS` for any wrong value."""

    def check(value: Any, handler: Callable[[Any], Any]) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise PydanticCustomError("expected", "expected {words}", {"words": words}) from None

    return WrapValidator(check)


def _checked(check: Callable[[_T], object]) -> AfterValidator:
    """Return a validator that reports the OpconformError that `check` raises; otherwise the value stays unchanged."""

    def run(value: _T) -> _T:
        try:
            check(value)
        except OpconformError as error:
            raise PydanticCustomError("told", "{words}", {"words": str(error)}) from None
        return value

    return AfterValidator(run)


def _check_different(values: list[Any]) -> None:
    if twice := next((entry for index, entry in enumerate(values) if entry in values[:index]), None):
        raise OpconformError(f"{twice!r} appears twice")


def _date(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
        raise PydanticCustomError("expected", "expected a date, YYYY-MM-DD")
    try:
        return dt.date.fromisoformat(value)
    except ValueError as error:
        raise PydanticCustomError("expected", "{words}", {"words": str(error)}) from None


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _is_words(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


ID = r"[a-z0-9][a-z0-9_.^+-]*"

_Text = Annotated[str, Field(pattern=r"\S")]
_Id = Annotated[
    str,
    Field(pattern=rf"^{ID}$"),
    _expected("an id of small letters, digits and - _ . ^ +, that begins with a letter or digit"),
]
_Address = Annotated[
    str,
    Field(pattern=r"^https?://[^\s/{}]+/([^\s{}]|\{version\})*$"),
    _expected("a web address, https://..., in which {version} alone is replaced"),
]
_Date = Annotated[dt.date, BeforeValidator(_date)]
_Release = Annotated[_Text, BeforeValidator(lambda v: str(v) if type(v) is int else v)]
_Version = Annotated[Version, _expected("a version: a number, or quoted text such as '3.10'")]
_Words = Annotated[list[str], BeforeValidator(_listed), _OrText()]
_Parts = Annotated[_Words, _expected("the name of an attribute, input, output or type letter, or a list of them")]
_Groups = Annotated[
    list[list[str]],
    BeforeValidator(lambda v: [v] if _is_words(v) else v),
    _expected("a list of names, or a list of such lists"),
]
_Type = Annotated[str, _checked(expand)]
_Different = _checked(_check_different)


class VersionText(_Section):
    """The signature of a version; the first is complete, a later one has only the sections that change."""

    change: str | None = None
    amended: Annotated[str | None, Field(pattern=r"^\d+(\.\d+)+$"), _expected("a release, in quotes: '1.20'")] = None
    deprecated: bool = False
    attributes: dict[str, str | None] | None = None
    inputs: dict[str, str | None] | None = None
    outputs: dict[str, str | None] | None = None
    types: (
        dict[
            str,
            Annotated[list[str] | str | None, _expected("a list of types, or seq(T) or optional(T) of another letter")],
        ]
        | None
    ) = None


class Spanned(_Section):
    """A part of a file that applies to some of the versions."""

    since: _Version | None = None
    before: _Version | None = None
    having: _Parts = Field(default_factory=list)
    lacking: _Parts = Field(default_factory=list)


class ClauseText(Spanned):
    """One rule of the standard, in the author's words."""

    text: _Text
    when: Annotated[dict[str, Any] | Literal["edges"] | None, _expected("a mapping of settings, or edges")] = None
    source: _Address | None = None
    status: Status = "required"
    upstream: str | None = None
    disputes: _Words = Field(default_factory=list)
    excludes: _Words = Field(default_factory=list)


class SilenceText(Spanned):
    """A question that the standard leaves open."""

    when: _Text
    options: Annotated[list[_Id], Field(min_length=1), _Different]
    source: _Address | None = None


class UnusedText(Spanned):
    """An attribute or input that the formula does not read, with the reason."""

    reason: _Text


class EdgeText(Spanned):
    """A single case that always runs."""

    settings: dict[str, Any] = Field(alias="with")
    mended: dict[str, Any] | None = Field(default=None, min_length=1)
    tests: Annotated[_Words, Field(min_length=1), _expected("the id of a clause or silence, or a list of them")]
    expect: Literal["rejected"] | None = None
    formerly: dict[_Id, _Words] = Field(default_factory=dict, alias="also-known-as")


class LevelText(Spanned):
    """A level of a parameter; a plain `{value: x}` is kept as it is in `value`."""

    value: Any


def _level(value: object) -> object:
    fields = value if isinstance(value, dict) and "value" in value and len(value) > 1 else {"value": value}
    if fields["value"] is None or fields["value"] == {"value": None}:
        raise PydanticCustomError("told", "null is not a value; write absent if nothing is given")
    return fields


def _unnamed(value: object) -> object:
    held = value["value"] if isinstance(value, dict) and "value" in value else value
    if isinstance(held, (list, dict)):
        raise PydanticCustomError("told", "a level that is a list or a mapping needs a name: write {name: value}")
    return value


def _parameter(value: object) -> object:
    fields = value if isinstance(value, dict) and "levels" in value else {"levels": value}
    levels = fields["levels"]
    if levels != "all" and not isinstance(levels, (list, dict)):
        raise PydanticCustomError("expected", "levels are a list, a mapping of names to values, or `all` (for a type)")
    if not levels:
        raise PydanticCustomError("told", "a parameter has at least one level")
    return fields


_Level = Annotated[LevelText, BeforeValidator(_level)]


class ParameterText(Spanned):
    """A parameter: its levels, with or without names, or all types of a letter."""

    levels: Annotated[
        Annotated[dict[Key, _Level], Tag("{}")]
        | Annotated[list[Annotated[_Level, BeforeValidator(_unnamed)]], Tag("[]")]
        | Annotated[Literal["all"], Tag("all")],
        Discriminator(lambda v: "all" if v == "all" else "[]" if isinstance(v, list) else "{}"),
    ]


_Parameter = Annotated[ParameterText, BeforeValidator(_parameter), WithJsonSchema({})]


def _draw(value: object) -> object:
    if isinstance(value, str):
        return {value: {}}
    if not isinstance(value, dict) or len(value) != 1:
        raise PydanticCustomError("expected", "a draw is a recipe, or {recipe: {since: 11}}")
    return value


_Shape = Annotated[
    list[Annotated[int, Field(ge=0)] | str] | str,
    _expected("a shape: a list of numbers from 0 and expressions, a symbol, same(x), or a function of the family"),
]
_ArgumentName = Annotated[
    str, Field(pattern=r"^[a-z][a-z0-9-]*$"), _expected("an argument's name, of small letters, digits and -")
]
_Argument = Annotated[
    int | float | str | list[int | float | str], _expected("a number, a word, an expression, or a list of them")
]
_Draw = Annotated[dict[str, Spanned], BeforeValidator(_draw), WithJsonSchema({})]


class OperandText(Spanned):
    """An input: its shape, and the source of its elements; other keys are arguments of the draw."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    __pydantic_extra__: dict[_ArgumentName, _Argument]

    shape: _Shape | None = None
    draw: Annotated[list[_Draw] | None, BeforeValidator(_listed), Field(min_length=1)] = None
    domain: str | None = None
    fill: str | None = None


class TypesFromText(Spanned):
    """A type letter, or an output's letter, whose type an attribute states."""

    attribute: str
    absent: str | None = None
    names: dict[str, str] = Field(default_factory=dict)


def _text_of(key: str, words: str) -> BeforeValidator:
    """Return a validator that reads plain text as a mapping with `key`, and reports anything else but a mapping."""

    def read(value: object) -> object:
        if not isinstance(value, (str, dict)):
            expected = "expected {words}, or a mapping with {key}"
            raise PydanticCustomError("expected", expected, {"words": words, "key": key})
        return {key: value} if isinstance(value, str) else value

    return BeforeValidator(read)


_Clause = Annotated[ClauseText, _text_of("text", "the clause's text"), _OrText()]
_Unused = Annotated[UnusedText, _text_of("reason", "the reason"), _OrText()]
_Bound = Annotated[
    "BoundAttributeText",
    BeforeValidator(lambda v: v if isinstance(v, dict) else {"from": v} if isinstance(v, str) else {"value": v}),
    _OrText(),
]
_Operands = Annotated[list[OperandText], BeforeValidator(lambda v: [v] if isinstance(v, dict) else v)]
_TypesFrom = Annotated[list[TypesFromText], BeforeValidator(lambda v: [v] if isinstance(v, dict) else v)]
_Ulp = Annotated[float, Field(gt=0)]
_Budget = Annotated[_Ulp | dict[str, _Ulp], _expected("a number of ulp greater than 0, or one for each type")]


class BoundAttributeText(_Section):
    """The value of another operator's attribute: `from` one of ours, by `words` or as it is; or a `value`."""

    source: str | None = Field(default=None, alias="from")
    words: dict[str, Any] = Field(default_factory=dict)
    absent: Any = None
    value: Any = None


class BindingText(Spanned):
    """Another operator's formula, in whose terms this operator is written."""

    formula: Annotated[
        str,
        Field(pattern=rf"^({'|'.join(STANDARDS)})/[A-Za-z_]\w*(-\w+)?$"),
        _expected("an operator version, as in onnx/Softmax-13"),
    ]
    inputs: dict[str, str | None] = Field(default_factory=dict)
    outputs: dict[str, str | None] = Field(default_factory=dict)
    attributes: dict[str, _Bound] = Field(default_factory=dict)
    clauses: dict[str, str | None] = Field(default_factory=dict)
    silences: dict[str, str] = Field(default_factory=dict)
    by: Annotated[
        str | None, Field(pattern=r"^[a-z]\w*\.[a-z]\w*$"), _expected("module.function, as in openvino.add")
    ] = None


class SpecText(_Section):
    """One file: all versions of one operator."""

    # the sections that a family file has, too
    shapes: dict[str, _Shape] = Field(default_factory=dict)
    domains: dict[str, str] = Field(default_factory=dict)
    operands: dict[str, _Operands] = Field(default_factory=dict)
    types_from: dict[str, _TypesFrom] = Field(default_factory=dict, alias="types-from")
    same: _Groups = Field(default_factory=list)
    precision: dict[str, _Budget] = Field(default_factory=dict)
    strength: dict[int, _Groups] = Field(default_factory=dict)
    graphs: dict[str, str] = Field(default_factory=dict)
    unused: dict[str, _Unused] = Field(default_factory=dict)
    clauses: dict[_Id, _Clause] = Field(min_length=1)
    silences: dict[_Id, SilenceText] = Field(default_factory=dict)
    parameters: dict[str, _Parameter] = Field(default_factory=dict)
    exclude: list[dict[str, Any]] = Field(default_factory=list)
    edges: dict[_Id, EdgeText] = Field(default_factory=dict)

    operator: Annotated[
        str,
        Field(pattern=rf"^({'|'.join(STANDARDS)})/[A-Za-z_]\w*$"),
        _expected(f"a standard ({', '.join(STANDARDS)}), a slash and a name, as in onnx/ReduceMean"),
    ]
    domain: Annotated[
        str | None,
        Field(pattern=r"^[a-z]+(\.[a-z]+)+$"),
        _expected("a domain, as in ai.onnx.ml; for ai.onnx leave it out"),
    ] = None
    family: Annotated[str, Field(pattern=r"^[a-z]\w*\.[a-z]\w*$"), _expected("module.function, as in reduction.mean")]
    uses: str | list[str] | dict[str, dict[str, Any] | None] = Field(default_factory=list)
    source: _Address
    versions: dict[Version, VersionText] = Field(min_length=1)
    bindings: Annotated[list[BindingText], BeforeValidator(lambda v: [v] if isinstance(v, dict) else v)] = Field(
        default_factory=list, alias="as"
    )


class ErratumText(_Section):
    """A decision about a disputed verdict."""

    id: _Text
    affects: _Text
    decision: _Text
    link: _Text
    since: _Release


class ErrataText(RootModel[list[ErratumText]]):
    """The file of errata."""


class WaiverText(_Section):
    """A known failure."""

    case: _Text
    outcome: Literal[
        "wrong-value", "wrong-shape", "wrong-dtype", "accepted-invalid", "error", "unsupported", "crash", "timeout"
    ]
    reason: _Text
    link: _Text
    owner: _Text
    expires: _Date
    backend: _Text = "*"
    detail: _Text | None = None
    since: _Date | None = None


class WaiversText(RootModel[list[WaiverText]]):
    """A file of waivers."""


class ExplanationText(_Section):
    """An explanation of stored answers that are not admitted: GLOB of folders, difference, culprit and reason."""

    test: _Text
    detail: _Text
    verdict: Literal["theirs", "ours", "open"]
    reason: _Text


class ExplanationsText(RootModel[list[ExplanationText]]):
    """A file of explanations."""


def _all_or(words: str) -> BeforeValidator:
    """Return a validator that reads `all` as None, and refuses anything else but a list."""

    def read(value: object) -> object:
        if value != "all" and (not isinstance(value, list) or not value):
            raise PydanticCustomError("expected", "expected all, or a list of {words}", {"words": words})
        return None if value == "all" else value

    return BeforeValidator(read)


class PromiseText(_Section):
    """A promise for one operator; None means everything."""

    versions: Annotated[Annotated[list[_Release], _Different] | None, _all_or("versions")] = None
    types: Annotated[Annotated[list[_Type], _Different] | None, _all_or("element types")] = None


_OperatorName = Annotated[
    str,
    Field(pattern=r"^[a-z]+/[A-Za-z_]\w*$"),
    _expected("a standard and a name without version, as in onnx/ReduceMean"),
]


class ProfileText(_Section):
    """A profile: a product's promises."""

    name: _Text
    version: _Release
    operators: dict[_OperatorName, PromiseText] = Field(min_length=1)
    rank: int | None = Field(default=None, ge=0)
    elements: int | None = Field(default=None, ge=0)
    opset: int | None = Field(default=None, ge=1)
    shapes: Annotated[list[ShapeWord], Field(min_length=1), _Different] = Field(default=[*get_args(ShapeWord)])


class DeclaredText(_Section):
    """How a device computes with one element type."""

    compute: Format | None = None
    accumulator: Format | None = None
    flush: Annotated[list[Flushed], Field(min_length=1), _Different] = Field(default_factory=list)


class DeclaredWholeText(_Section):
    """The type in which a device computes with integers of another one."""

    compute: WholeFormat


def declaration_text() -> type[BaseModel]:
    """Return the model of a file of declared arithmetic: a key for each type of numbers, and two general ones."""
    forms: dict[str, Any] = {"float": DeclaredText, "signed": DeclaredWholeText, "unsigned": DeclaredWholeText}
    types: dict[str, Any] = {t.name: (forms[t.kind], None) for t in element_types().values() if t.kind in forms}
    return create_model(
        "DeclarationText",
        __base__=_Section,
        **types,
        threads=(Annotated[int, Field(ge=1)], None),
        deterministic=(bool, None),
    )


def parsed(model: type[_Model], document: Document) -> _Model:
    """Return a file's content. Raises SpecErrors with every mistake in its form, each with its position."""
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        details = error.errors(include_url=False)
    misspelt = {(d["loc"][:-1], _meant(model, d)) for d in details if d["type"] == "extra_forbidden"}
    reported = [d for d in details if d["type"] != "missing" or (d["loc"][:-1], d["loc"][-1]) not in misspelt]
    errors = [_located(model, document, detail) for detail in reported]
    raise SpecErrors({(e.file, e.position, e.message): e for e in errors}.values())


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of spec files, for editors that complete and check YAML with it."""
    schema = SpecText.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "opconform spec file"}


_EXPECTED: Mapping[str, str] = {
    "string_type": "expected text",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "list_type": "expected a list",
    "dict_type": "expected a mapping",
    "too_short": "expected at least one entry",
    "string_pattern_mismatch": "expected some text",
}
_OF_MODELS = ("model_type", "model_attributes_type")


def _meant(model: type[BaseModel], detail: ErrorDetails) -> str | None:
    """Return the known key nearest to an unknown one."""
    near = difflib.get_close_matches(str(detail["loc"][-1]), _keys_at(model, detail["loc"][:-1]), 1)
    return near[0] if near else None


def _located(model: type[BaseModel], document: Document, detail: ErrorDetails) -> SpecError:
    path, kind = _real_path(document, detail["loc"]), detail["type"]
    is_key = detail["loc"][-1:] == ("[key]",)
    if kind in ("extra_forbidden", "invalid_key"):
        known = _keys_at(model, path[:-1])
        hint = did_you_mean(str(path[-1]), known) or f"; known here: {', '.join(known)}"
        return document.error(path, f"unknown key {path[-1]!r}{hint}", key=True)
    if kind == "missing":
        where = f" in {'.'.join(map(str, path))}" if path else ""
        return document.error(path, f"key {detail['loc'][-1]!r} is missing{where}", key=True)
    if kind == "told":
        return document.error(path, detail["msg"], is_key)
    expected = (
        f"expected a mapping of {', '.join(_keys_at(model, path))}" if kind in _OF_MODELS else _expectation(detail)
    )
    return document.error(path, f"{expected}; read {shown(detail['input'])}{_hint(detail)}", is_key)


def _real_path(document: Document, steps: Iterable[Key]) -> tuple[Key, ...]:
    """Remove the steps that name a member of a union or a validator, which the file does not have."""
    path: tuple[Key, ...] = ()
    for step in steps:
        if document.has((*path, step)):
            path = (*path, step)
    return path


def _keys_at(model: type[BaseModel], path: tuple[Key, ...]) -> list[str]:
    """Return the keys that a mapping accepts; steps that are not a model's fields lead to an entry of the same form."""
    if issubclass(model, RootModel):
        model = _model_in(model.model_fields["root"].annotation) or model
    for step in path:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        if step in fields:
            model = _model_in(fields[str(step)].annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)


def _expectation(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "literal_error":
        return f"expected {str(context['expected']).replace(chr(39), '')}"
    if kind == "greater_than_equal":
        return f"expected {context['ge']} or more"
    return _EXPECTED.get(kind) or detail["msg"][0].lower() + detail["msg"][1:]


def _hint(detail: ErrorDetails) -> str:
    """Return a hint for a wrong value: the nearest word, or to quote it."""
    read = detail["input"]
    if detail["type"] == "literal_error" and isinstance(read, str):
        return did_you_mean(read, re.findall(r"'([^']*)'", str(detail["ctx"]["expected"])))
    is_number = isinstance(read, (int, float)) and not isinstance(read, bool)
    return ": quote it" if detail["type"] == "string_type" and is_number else ""


def shown(read: object) -> str:
    """Return the text of a value for messages."""
    if isinstance(read, dict):
        return "a mapping"
    if isinstance(read, list):
        return "a list" if read else "an empty list"
    text = repr(read)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return {"None": "nothing", "True": "true", "False": "false", "''": "an empty text"}.get(text, text)

"""The drafts of JSON Schema as a table: their URIs, their keywords, and the conversion of old keywords to 2020-12."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import jsonschema_rs

from registry.formats.json_pointer import SchemaProblem, escape

Holds = Literal["schema", "list", "map", "schema or list", "map of schemas or names"]


@dataclass(frozen=True, slots=True)
class Draft:
    """One draft: `number` increases over time, `id_keyword` names a schema's URI, `code` is the validator's number."""

    name: str
    number: int
    uri: str
    id_keyword: str
    code: int
    definitions: str

    @property
    def ref_hides_siblings(self) -> bool:
        """Whether keywords next to `$ref` are ignored."""
        return self.number < 2019


_ROWS: Final = (
    Draft("draft 4", 4, "http://json-schema.org/draft-04/schema#", "id", jsonschema_rs.Draft4, "definitions"),
    Draft("draft 6", 6, "http://json-schema.org/draft-06/schema#", "$id", jsonschema_rs.Draft6, "definitions"),
    Draft("draft 7", 7, "http://json-schema.org/draft-07/schema#", "$id", jsonschema_rs.Draft7, "definitions"),
    Draft(
        "draft 2019-09",
        2019,
        "https://json-schema.org/draft/2019-09/schema",
        "$id",
        jsonschema_rs.Draft201909,
        "$defs",
    ),
    Draft(
        "draft 2020-12",
        2020,
        "https://json-schema.org/draft/2020-12/schema",
        "$id",
        jsonschema_rs.Draft202012,
        "$defs",
    ),
)

DRAFTS: Final[Mapping[int, Draft]] = {draft.number: draft for draft in _ROWS}
DEFAULT_DRAFT: Final = DRAFTS[7]
NEWEST_DRAFT: Final = DRAFTS[2020]


def _plain(uri: str) -> str:
    return uri.strip().removesuffix("#").removeprefix("https://").removeprefix("http://")


_BY_URI: Final[Mapping[str, Draft]] = {
    **{_plain(draft.uri): draft for draft in _ROWS},
    "json-schema.org/schema": DEFAULT_DRAFT,
}


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword that contains schemas, and the first and last number of the drafts that have it."""

    name: str
    holds: Holds
    first: int = 4
    last: int = 2020


_KEYWORD_ROWS: Final = (
    Keyword("definitions", "map"),
    Keyword("$defs", "map"),
    Keyword("properties", "map"),
    Keyword("patternProperties", "map"),
    Keyword("additionalProperties", "schema"),
    Keyword("propertyNames", "schema", 6),
    Keyword("dependencies", "map of schemas or names", 4, 7),
    Keyword("dependentSchemas", "map", 2019),
    Keyword("unevaluatedProperties", "schema", 2019),
    Keyword("items", "schema or list"),
    Keyword("prefixItems", "list", 2020),
    Keyword("additionalItems", "schema", 4, 2019),
    Keyword("unevaluatedItems", "schema", 2019),
    Keyword("contains", "schema", 6),
    Keyword("allOf", "list"),
    Keyword("anyOf", "list"),
    Keyword("oneOf", "list"),
    Keyword("not", "schema"),
    Keyword("if", "schema", 7),
    Keyword("then", "schema", 7),
    Keyword("else", "schema", 7),
)


REF_KEYWORDS: Final = ("$ref", "$recursiveRef", "$dynamicRef")
_REF_DRAFTS: Final[Mapping[str, frozenset[int]]] = {
    "$ref": frozenset({4, 6, 7, 2019, 2020}),
    "$recursiveRef": frozenset({2019}),
    "$dynamicRef": frozenset({2020}),
}


def knows_ref(draft: Draft, keyword: str) -> bool:
    """Return whether a draft has a keyword that refers to another schema."""
    return draft.number in _REF_DRAFTS[keyword]


def _of_draft(number: int) -> Mapping[str, Keyword]:
    return {row.name: row for row in _KEYWORD_ROWS if row.first <= number <= row.last}


APPLICATORS: Final[Mapping[int, Mapping[str, Keyword]]] = {number: _of_draft(number) for number in DRAFTS}


# The assertion keywords without schemas, and the first and last draft that have them.
_ASSERTION_ROWS: Final[Mapping[str, tuple[int, int]]] = {
    "type": (4, 2020),
    "enum": (4, 2020),
    "const": (6, 2020),
    "multipleOf": (4, 2020),
    "maximum": (4, 2020),
    "exclusiveMaximum": (4, 2020),
    "minimum": (4, 2020),
    "exclusiveMinimum": (4, 2020),
    "maxLength": (4, 2020),
    "minLength": (4, 2020),
    "pattern": (4, 2020),
    "maxItems": (4, 2020),
    "minItems": (4, 2020),
    "uniqueItems": (4, 2020),
    "maxContains": (2019, 2020),
    "minContains": (2019, 2020),
    "maxProperties": (4, 2020),
    "minProperties": (4, 2020),
    "required": (4, 2020),
    "dependentRequired": (2019, 2020),
}
ASSERTIONS: Final[Mapping[int, frozenset[str]]] = {
    number: frozenset(name for name, (first, last) in _ASSERTION_ROWS.items() if first <= number <= last)
    for number in DRAFTS
}


def draft_of(value: Any, default: Draft = DEFAULT_DRAFT) -> Draft:
    """Return the draft in `$schema`; `default` if there is none. Raises SchemaProblem."""
    if not isinstance(value, dict) or "$schema" not in value:
        return default
    named = value["$schema"]
    if not isinstance(named, str):
        raise SchemaProblem('"$schema" must be a string: the URI of a draft', "/$schema")
    try:
        return _BY_URI[_plain(named)]
    except KeyError:
        supported = ", ".join(draft.uri for draft in _ROWS)
        raise SchemaProblem(
            f'"$schema" is not a supported draft ({named[:120]}): use one of {supported}', "/$schema"
        ) from None


def is_schema(value: Any) -> bool:
    """Return whether a JSON value has the form of a schema."""
    return isinstance(value, (dict, bool))


def subschemas(value: Any, number: int) -> Iterator[tuple[str, Any]]:
    """Yield the schemas directly inside a schema, as (pointer below it, schema), by the keywords of a draft."""
    if not isinstance(value, dict):
        return
    keywords = APPLICATORS[number]
    for name, content in value.items():
        keyword = keywords.get(name)
        if keyword is None:
            continue
        at = f"/{escape(name)}"
        if isinstance(content, dict) and keyword.holds.startswith("map"):
            yield from ((f"{at}/{escape(key)}", item) for key, item in content.items() if is_schema(item))
        elif isinstance(content, list) and keyword.holds in ("list", "schema or list"):
            yield from ((f"{at}/{index}", item) for index, item in enumerate(content) if is_schema(item))
        elif is_schema(content) and keyword.holds in ("schema", "schema or list"):
            yield at, content


def modernized(schema: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """Return the schema, whose inner schemas are converted already, with the keywords of draft 2020-12."""
    modern = dict(schema)
    if draft.number <= 2019:
        _tuples(modern)
    if "dependencies" in modern:
        _dependencies(modern)
    if draft.number == 4:
        for limit in ("maximum", "minimum"):
            _limit(modern, limit, f"exclusive{limit.capitalize()}")
    return modern


def inexact_in_modern(schema: dict[str, Any], draft: Draft) -> str:
    """Return what the newest draft interprets differently in a schema; empty if nothing."""
    types = schema.get("type")
    names = types if isinstance(types, list) else [types]
    if draft.number == 4 and "integer" in names:
        return "in draft 4, 1.0 is not an integer; in later drafts, it is"
    if draft.number == 2019 and "contains" in schema:
        return "contains counts for unevaluatedItems in draft 2020-12 and not in 2019-09"
    return ""


def _tuples(schema: dict[str, Any]) -> None:
    rest = schema.pop("additionalItems", None)
    if isinstance(schema.get("items"), list):
        items = schema.pop("items")
        if items:
            schema["prefixItems"] = items
        if rest is not None:
            schema["items"] = rest


def _dependencies(schema: dict[str, Any]) -> None:
    dependencies = schema.pop("dependencies")
    if not isinstance(dependencies, dict):
        return
    names = {
        key: [item] if isinstance(item, str) else item
        for key, item in dependencies.items()
        if isinstance(item, (list, str))
    }
    schemas = {key: item for key, item in dependencies.items() if isinstance(item, (dict, bool))}
    if names:
        schema["dependentRequired"] = {**names, **schema.get("dependentRequired", {})}
    if schemas:
        schema["dependentSchemas"] = {**schemas, **schema.get("dependentSchemas", {})}


def _limit(schema: dict[str, Any], inclusive: str, exclusive: str) -> None:
    """Convert draft 4's `exclusiveMaximum: true` next to `maximum` to the number that later drafts use."""
    is_exclusive = schema.pop(exclusive, False)
    if is_exclusive is True and inclusive in schema:
        schema[exclusive] = schema.pop(inclusive)

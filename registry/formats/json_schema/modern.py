"""The keywords of older drafts said in those of draft 2020-12, one level of a schema at a time."""

from __future__ import annotations

from typing import Any

from registry.formats.json_schema.drafts import Draft


def modernized(schema: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """The schema (whose inner schemas are modern already) with the keywords of draft 2020-12."""
    found = dict(schema)
    if draft.number <= 2019:
        _tuples(found)
    if "dependencies" in found:
        _dependencies(found)
    if draft.number == 4:
        for limit in ("maximum", "minimum"):
            _limit(found, limit, f"exclusive{limit.capitalize()}")
    return found


def inexact_in_modern(schema: dict[str, Any], draft: Draft) -> str:
    """What of a schema the newest draft reads in another way; empty if nothing."""
    types = schema.get("type")
    names = types if isinstance(types, list) else [types]
    if draft.number == 4 and "integer" in names:
        return "draft 4 takes 1.0 for no integer, later drafts do"
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
    held = schema.pop("dependencies")
    if not isinstance(held, dict):
        return
    names = {
        key: [item] if isinstance(item, str) else item for key, item in held.items() if isinstance(item, (list, str))
    }
    schemas = {key: item for key, item in held.items() if isinstance(item, (dict, bool))}
    if names:
        schema["dependentRequired"] = {**names, **schema.get("dependentRequired", {})}
    if schemas:
        schema["dependentSchemas"] = {**schemas, **schema.get("dependentSchemas", {})}


def _limit(schema: dict[str, Any], inclusive: str, exclusive: str) -> None:
    """Draft 4 says `exclusiveMaximum: true` beside `maximum`; later drafts give the number itself."""
    is_exclusive = schema.pop(exclusive, False)
    if is_exclusive is True and inclusive in schema:
        schema[exclusive] = schema.pop(inclusive)

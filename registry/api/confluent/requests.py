"""What the calls carry, checked: each wrong type is named with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rest_framework.request import Request

from registry.errors import InvalidInput, InvalidSchema
from registry.formats.base import Reference

_MISSING = object()


@dataclass(frozen=True)
class SchemaBody:
    """The body of a registration, a look-up or a compatibility check."""

    text: str
    schema_type: str
    references: tuple[Reference, ...]
    metadata: dict[str, Any] | None
    rule_set: dict[str, Any] | None


def schema_body(request: Request) -> SchemaBody:
    """The schema in the body. Raises InvalidInput, which names the property."""
    body = object_body(request)
    text = _typed(body, "schema", str, "")
    if not text.strip():
        raise InvalidSchema("Empty schema")
    references = _typed(body, "references", list, [])
    rule_set = body.get("ruleSet") or body.get("ruleset") or None
    return SchemaBody(
        text=text,
        schema_type=_typed(body, "schemaType", str, "AVRO").upper() or "AVRO",
        references=tuple(_reference(item, position) for position, item in enumerate(references)),
        metadata=_typed(body, "metadata", dict, None) or None,
        rule_set=_typed({"ruleSet": rule_set}, "ruleSet", dict, None) or None,
    )


def object_body(request: Request) -> dict[str, Any]:
    """The body, which is a JSON object. Raises InvalidInput."""
    body = request.data
    if not body and not int(request.META.get("CONTENT_LENGTH") or 0):
        raise InvalidInput("The request has no body; send a JSON object.")
    if not isinstance(body, dict):
        raise InvalidInput(f"The body is {_name(body)}; send a JSON object.")
    return body


def _reference(item: Any, position: int) -> Reference:
    if not isinstance(item, dict):
        raise InvalidInput(f"/references/{position} is {_name(item)}; it takes an object with name, subject, version.")
    where = f"references/{position}/"
    return Reference(
        name=_typed(item, "name", str, _MISSING, where),
        subject=_typed(item, "subject", str, _MISSING, where),
        version=_typed(item, "version", int, _MISSING, where),
    )


def _typed(body: dict[str, Any], name: str, kind: type, default: Any, where: str = "") -> Any:
    value = body.get(name)
    if value is None:
        if default is _MISSING:
            raise InvalidInput(f"/{where}{name} is missing.")
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidInput(f"/{where}{name} is {_name(value)}; it takes {_KINDS[kind]}.")
    return value


_KINDS = {str: "a string", int: "a number", list: "an array", dict: "an object", bool: "true or false"}


def _name(value: Any) -> str:
    return (
        "null" if value is None else next((words for kind, words in _KINDS.items() if type(value) is kind), "a number")
    )


def flag(request: Request, name: str) -> bool:
    """A boolean query parameter, false unless it says `true`. Raises InvalidInput for anything but true and false."""
    text = request.query_params.get(name, "").lower()
    if text not in ("", "true", "false"):
        raise InvalidInput(f"The parameter {name} is {text[:40]!r}; it takes true or false.")
    return text == "true"


def page(request: Request, rows: list[Any]) -> list[Any]:
    """The rows between `offset` and `limit` (-1: all). Raises InvalidInput."""
    offset, limit = (_number(request, name, default) for name, default in (("offset", 0), ("limit", -1)))
    return rows[max(offset, 0) :][: limit if limit >= 0 else None]


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    try:
        return int(text[:12]) if text else default
    except ValueError:
        raise InvalidInput(f"The parameter {name} is {text[:40]!r}; it takes a whole number.") from None

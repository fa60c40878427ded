"""Requests and answers of this dialect: errors name the place of a wrong type; empty properties are left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from registry.api.confluent.http import Request
from registry.api.request_reading import number_words
from registry.errors import InvalidInput, InvalidVersion
from registry.formats import DEFAULT_FORMAT
from registry.formats.base import Reference
from registry.formats.tags import FIELD, RECORD, EntityTags
from registry.subjects.associations.requests import Resource
from registry.subjects.associations.rules import AssociationInfo
from registry.subjects.listing.listing import ALL_CONTEXTS
from registry.subjects.policy.data_contracts import Contract, read_metadata, read_rule_set
from registry.subjects.policy.effective_policy import OwnConfig
from registry.subjects.remote.remote_client import SETTINGS
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, check_context, parse_subject
from registry.subjects.versions.versions import SchemaInfo, VersionInfo


def version_answer(info: VersionInfo, **more: Any) -> dict[str, Any]:
    """Return a version as `Schema`; `more` replaces or adds properties."""
    return _without_empty({"subject": info.subject.qualified, **_numbers(info), **_definition(info.schema), **more})


def registered_answer(info: VersionInfo, **more: Any) -> dict[str, Any]:
    """Return a version as the answer to its registration."""
    return _without_empty({**_numbers(info), **_definition(info.schema), **more})


def schema_answer(info: SchemaInfo, **more: Any) -> dict[str, Any]:
    """Return a definition by its id as `SchemaString`."""
    return _without_empty({**_definition(info), **more})


def config_answer(settings: OwnConfig, *, level: str) -> dict[str, Any]:
    """Return the settings as `Config`; `level` is the effective one if none is set."""
    values = {name: getattr(settings, setting) for name, setting in SETTINGS.items()}
    return _without_empty({**values, "compatibilityLevel": settings.level or level})


def references_answer(references: Sequence[Reference], *, context: str = DEFAULT_CONTEXT) -> list[dict[str, Any]]:
    """Return references as they were written; with a context, their subjects' names are qualified."""
    return [
        {"name": item.name, "subject": parse_subject(item.subject, context=context).qualified, "version": item.version}
        if context != DEFAULT_CONTEXT
        else {"name": item.name, "subject": item.subject, "version": item.version}
        for item in references
    ]


def tags_answer(entities: Iterable[EntityTags]) -> list[dict[str, Any]]:
    """Return tagged records and fields as `SchemaTags`."""
    return [
        {"schemaEntity": {"entityPath": item.path, "entityType": item.kind}, "tags": list(item.tags)}
        for item in entities
    ]


def association_answer(info: AssociationInfo) -> dict[str, Any]:
    """Return a resource's use of a subject as `Association`; its lifecycle implies whether it is frozen."""
    return {
        "subject": info.subject.qualified,
        "guid": info.guid,
        **_resource(info.resource),
        "associationType": info.association_type,
        "lifecycle": info.lifecycle,
        "createTs": _milliseconds(info.created_at),
        "updateTs": _milliseconds(info.updated_at),
    }


def associated_answer(
    resource: Resource, associations: Iterable[AssociationInfo], versions: Mapping[str, VersionInfo]
) -> dict[str, Any]:
    """Return a resource's associations as `AssociationResponse`, with the registered schemas, by type."""
    infos = [
        _without_empty(
            {
                "subject": info.subject.qualified,
                "associationType": info.association_type,
                "lifecycle": info.lifecycle,
                "schema": version_answer(versions[info.association_type])
                if info.association_type in versions
                else None,
            }
        )
        for info in associations
    ]
    return _without_empty({**_resource(resource), "associations": infos})


def _resource(resource: Resource) -> dict[str, Any]:
    return {
        "resourceName": resource.name or None,
        "resourceNamespace": resource.namespace or None,
        "resourceId": resource.id or None,
        "resourceType": resource.type,
    }


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _numbers(info: VersionInfo) -> dict[str, Any]:
    return {
        "version": info.version,
        "id": info.schema.schema_id,
        "ts": _milliseconds(info.created_at),
        "deleted": info.deleted or None,
    }


def _definition(info: SchemaInfo) -> dict[str, Any]:
    return {
        "guid": info.guid,
        "schemaType": None if info.schema_type == DEFAULT_FORMAT else info.schema_type,
        "references": references_answer(info.references),
        "metadata": info.metadata,
        "ruleSet": info.rule_set,
        "schema": info.text,
    }


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [], {})}


_MISSING = object()
_MOST = 2**31 - 1


@dataclass(frozen=True)
class SchemaBody:
    """The body of a registration, a lookup or a compatibility check; the call decides on an empty text."""

    text: str
    schema_type: str
    references: tuple[Reference, ...]
    metadata: Contract | None
    rule_set: Contract | None
    version: int
    schema_id: int | None
    tags_to_add: tuple[EntityTags, ...] = ()
    tags_to_remove: tuple[EntityTags, ...] = ()
    propagate_tags: bool = False


def schema_body(request: Request) -> SchemaBody:
    """Return the schema in the body. Raises InvalidInput, which names the property, and InvalidRuleSet."""
    return read_schema_body(object_body(request))


def read_schema_body(body: dict[str, Any]) -> SchemaBody:
    """Return the schema in a JSON object. Raises InvalidInput, which names the property, and InvalidRuleSet."""
    references = typed(body, "references", list, [])
    rules = body.get("ruleSet") if body.get("ruleSet") is not None else body.get("ruleset")
    return SchemaBody(
        text=typed(body, "schema", str, ""),
        schema_type=typed(body, "schemaType", str, DEFAULT_FORMAT).upper() or DEFAULT_FORMAT,
        references=tuple(_reference(item, position) for position, item in enumerate(references)),
        metadata=read_metadata(body.get("metadata")),
        rule_set=read_rule_set(rules),
        version=number_between(body, "version", 0),
        schema_id=number_between(body, "id", None),
        tags_to_add=read_tags(body, "schemaTagsToAdd"),
        tags_to_remove=read_tags(body, "schemaTagsToRemove"),
        propagate_tags=typed(body, "propagateSchemaTags", bool, False),
    )


def read_tags(body: dict[str, Any], name: str) -> tuple[EntityTags, ...]:
    """Return tags of records and fields, to add to a schema's text or remove from it. Raises InvalidInput."""
    return tuple(_entity_tags(item, f"{name}/{position}") for position, item in enumerate(typed(body, name, list, [])))


def _entity_tags(item: Any, where: str) -> EntityTags:
    if not isinstance(item, dict):
        raise InvalidInput(f"/{where} is {_name(item)}; it must be an object with schemaEntity and tags.")
    entity = typed(item, "schemaEntity", dict, _MISSING, f"{where}/")
    path = typed(entity, "entityPath", str, _MISSING, f"{where}/schemaEntity/")
    kind = typed(entity, "entityType", str, _MISSING, f"{where}/schemaEntity/")
    if kind not in (RECORD, FIELD):
        raise InvalidInput(f"/{where}/schemaEntity/entityType is {kind[:40]!r}; it must be {RECORD} or {FIELD}.")
    tags = typed(item, "tags", list, [], f"{where}/")
    if not all(isinstance(tag, str) for tag in tags):
        raise InvalidInput(f"/{where}/tags must be an array of strings.")
    return EntityTags("sr_record" if kind == RECORD else "sr_field", path, tuple(tags))


def object_body(request: Request) -> dict[str, Any]:
    """Return the body, which must be a JSON object. Raises InvalidInput."""
    body = request.data
    if not body and not _has_body(request):
        raise InvalidInput("The request has no body; send a JSON object.")
    if not isinstance(body, dict):
        raise InvalidInput(f"The body is {_name(body)}; send a JSON object.")
    return body


def _has_body(request: Request) -> bool:
    length = request.META.get("CONTENT_LENGTH") or "0"
    return length.isdigit() and int(length) > 0


def _reference(item: Any, position: int) -> Reference:
    if not isinstance(item, dict):
        raise InvalidInput(
            f"/references/{position} is {_name(item)}; it must be an object with name, subject, version."
        )
    where = f"references/{position}/"
    name, subject = (typed(item, part, str, _MISSING, where) for part in ("name", "subject"))
    version = typed(item, "version", int, _MISSING, where)
    if version != -1 and not 1 <= version <= _MOST:
        raise InvalidVersion(
            f"/{where}version is {number_words(version)}; it must be a number from 1 to 2^31-1, or -1."
        )
    return Reference(name, subject, version)


def typed(body: dict[str, Any], name: str, kind: type, default: Any, where: str = "") -> Any:
    """Return a property of that type, the default if it is missing or null. Raises InvalidInput."""
    value = body.get(name)
    if value is None:
        if default is _MISSING:
            raise InvalidInput(f"/{where}{name} is missing.")
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        if kind is int and isinstance(value, int | float):
            raise InvalidInput(f"/{where}{name} is {number_words(value)}; it must be a whole number.")
        raise InvalidInput(f"/{where}{name} is {_name(value)}; it must be {_KINDS[kind]}.")
    return value


def number_between(body: dict[str, Any], name: str, default: int | None) -> Any:
    """Return a 32-bit integer. Raises InvalidInput."""
    value = typed(body, name, int, default)
    if value is not None and not -_MOST <= value <= _MOST:
        raise InvalidInput(f"/{name} is {number_words(value)}; it must be a whole number of at most 2^31-1.")
    return value


_KINDS = {str: "a string", int: "a number", list: "an array", dict: "an object", bool: "true or false"}


def _name(value: Any) -> str:
    return (
        "null" if value is None else next((label for kind, label in _KINDS.items() if type(value) is kind), "a number")
    )


def flag(request: Request, name: str) -> bool:
    """Return a boolean query parameter, by default false. Raises InvalidInput for anything but true and false."""
    text = request.query_params.get(name, "").lower()
    if text not in ("", "true", "false"):
        raise InvalidInput(f"The parameter {name} is {text[:40]!r}; it must be true or false.")
    return text == "true"


def takes_more_than_the_id(request: Request) -> bool:
    """Return whether a registration's answer may have more than the id. Raises InvalidInput.

    Confluent answered only `{"id": …}` until 7.4 (until 7.9 if nothing changed), and the whole version from 8.0 on; its
    cloud service requires a header. So the header decides. Without it, a client that sends neither `Accept` nor a newer
    parameter expects the oldest answer.
    """
    value = request.META.get("HTTP_CONFLUENT_ACCEPT_UNKNOWN_PROPERTIES", "").strip().lower()
    if value not in ("", "true", "false"):
        raise InvalidInput(
            f"The header Confluent-Accept-Unknown-Properties is {value[:40]!r}; it must be true or false."
        )
    return value == "true" if value else bool(request.META.get("HTTP_ACCEPT")) or bool(request.query_params)


def page(request: Request, rows: list[Any]) -> list[Any]:
    """Return the rows between `offset` and `limit`; all if the limit isn't above 0. Raises InvalidInput."""
    offset, limit = window(request)
    return rows[offset : offset + limit]


def window(request: Request, *, most: int = _MOST) -> tuple[int, int]:
    """Return the start and length of a page: a limit that isn't from 1 to `most` means `most`. Raises InvalidInput."""
    offset, limit = (_number(request, name, default) for name, default in (("offset", 0), ("limit", -1)))
    return max(offset, 0), limit if 0 < limit <= most else most


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "").strip()
    if not text:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        raise InvalidInput(f"The parameter {name} is {text[:40]!r}; it must be a whole number.")
    return int(text)


def subject_prefix(request: Request, context: str | None, default: str = "") -> tuple[str | None, str]:
    """Return the context (None: all) and the name's prefix in `subjectPrefix`, relative to the URL's context.

    `:*:` is every context, `:.name:` a specific one. Raises InvalidName.
    """
    prefix = request.query_params.get("subjectPrefix", default if context is None else "")
    if prefix.startswith(ALL_CONTEXTS):
        return None, prefix.removeprefix(ALL_CONTEXTS)
    if prefix.startswith(":."):
        name, _, rest = prefix[1:].partition(":")
        return check_context(name), rest
    return context or DEFAULT_CONTEXT, prefix

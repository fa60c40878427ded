"""What the calls answer: empty and null properties are left out, `schemaType` too where it is AVRO."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from registry.formats.base import Reference
from registry.formats.tags import EntityTags
from registry.subjects.associations import Resource
from registry.subjects.names import DEFAULT_CONTEXT, parse_subject
from registry.subjects.remote_answers import SETTINGS
from registry.subjects.selectors.associations import AssociationInfo
from registry.subjects.selectors.effective import OwnConfig
from registry.subjects.selectors.versions import SchemaInfo, VersionInfo


def version_answer(info: VersionInfo, **more: Any) -> dict[str, Any]:
    """A version as `Schema`; `more` replaces or adds properties."""
    return _without_empty({"subject": info.subject.qualified, **_numbers(info), **_definition(info.schema), **more})


def registered_answer(info: VersionInfo, **more: Any) -> dict[str, Any]:
    """A version as the answer to its registration."""
    return _without_empty({**_numbers(info), **_definition(info.schema), **more})


def schema_answer(info: SchemaInfo, **more: Any) -> dict[str, Any]:
    """A definition by its id as `SchemaString`."""
    return _without_empty({**_definition(info), **more})


def config_answer(settings: OwnConfig, *, level: str) -> dict[str, Any]:
    """The settings as `Config`; `level` is the one that counts where none is set."""
    values = {name: getattr(settings, setting) for name, setting in SETTINGS.items()}
    return _without_empty({**values, "compatibilityLevel": settings.level or level})


def references_answer(references: Sequence[Reference], *, context: str = DEFAULT_CONTEXT) -> list[dict[str, Any]]:
    """References as they were written; with a context their subjects' names say which one they are of."""
    return [
        {"name": item.name, "subject": parse_subject(item.subject, context=context).qualified, "version": item.version}
        if context != DEFAULT_CONTEXT
        else {"name": item.name, "subject": item.subject, "version": item.version}
        for item in references
    ]


def tags_answer(found: Iterable[EntityTags]) -> list[dict[str, Any]]:
    """Tagged records and fields as `SchemaTags`."""
    return [
        {"schemaEntity": {"entityPath": item.path, "entityType": item.kind}, "tags": list(item.tags)} for item in found
    ]


def association_answer(info: AssociationInfo) -> dict[str, Any]:
    """A resource's use of a subject as `Association`; whether it is frozen goes without saying by its lifecycle."""
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
    """What a resource uses as `AssociationResponse`, with the schemas that were registered along, by type."""
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
        "schemaType": None if info.schema_type == "AVRO" else info.schema_type,
        "references": references_answer(info.references),
        "metadata": info.metadata,
        "ruleSet": info.rule_set,
        "schema": info.text,
    }


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [], {})}

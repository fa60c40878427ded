"""What the calls answer: empty and null properties are left out, `schemaType` too where it is AVRO."""

from __future__ import annotations

from typing import Any

from registry.subjects.selectors.versions import SchemaInfo, VersionInfo


def version_answer(info: VersionInfo) -> dict[str, Any]:
    """A version as `Schema`."""
    return _without_empty(
        {
            "subject": info.subject.qualified,
            "version": info.version,
            "id": info.schema.schema_id,
            **_definition(info.schema),
            "ts": int(info.created_at.timestamp() * 1000),
            "deleted": info.deleted or None,
        }
    )


def schema_answer(info: SchemaInfo) -> dict[str, Any]:
    """A definition by its id as `SchemaString`."""
    return _without_empty(_definition(info))


def _definition(info: SchemaInfo) -> dict[str, Any]:
    return {
        "guid": info.guid,
        "schemaType": None if info.schema_type == "AVRO" else info.schema_type,
        "references": [{"name": r.name, "subject": r.subject, "version": r.version} for r in info.references],
        "metadata": info.metadata,
        "ruleSet": info.rule_set,
        "schema": info.text,
    }


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [], {})}

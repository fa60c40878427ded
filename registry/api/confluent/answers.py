"""What the calls answer: empty and null properties are left out, `schemaType` too where it is AVRO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from registry.formats.base import Reference
from registry.subjects.names import DEFAULT_CONTEXT, parse_subject
from registry.subjects.remote_answers import SETTINGS
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


def _numbers(info: VersionInfo) -> dict[str, Any]:
    return {
        "version": info.version,
        "id": info.schema.schema_id,
        "ts": int(info.created_at.timestamp() * 1000),
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

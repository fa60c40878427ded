"""What the calls answer.

The service's documents call three properties otherwise than its Python client does; every reader ignores names that
it doesn't know, so each stands there under both.
"""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from registry.api.google.names import subject_label
from registry.api.google.wire import SCHEMA_TYPES, enum
from registry.subjects.selectors.versions import SchemaInfo, VersionInfo

#: name in the documents → name in the Python client
BOTH_NAMES = {"version": "versionId", "id": "schemaId", "schema": "schemaPayload"}


def version_answer(request: Request, info: VersionInfo, context: str) -> dict[str, Any]:
    """A version as `SchemaVersion`, for an address in a context."""
    values = {
        "subject": subject_label(info.subject, context),
        "version": info.version,
        "id": info.schema.schema_id,
        **_definition(request, info.schema),
    }
    return _under_both_names(values)


def schema_answer(request: Request, info: SchemaInfo) -> dict[str, Any]:
    """A definition as `Schema`."""
    return _under_both_names(_definition(request, info))


def _definition(request: Request, info: SchemaInfo) -> dict[str, Any]:
    values: dict[str, Any] = {
        "schemaType": enum(request, info.schema_type, SCHEMA_TYPES),
        "schema": info.text,
    }
    if info.references:
        values["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in info.references]
    return values


def _under_both_names(values: dict[str, Any]) -> dict[str, Any]:
    return values | {other: values[name] for name, other in BOTH_NAMES.items() if name in values}

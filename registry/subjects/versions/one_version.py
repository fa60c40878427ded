"""One version, or one definition by its id, each in a single statement: the most frequent reads of programs.

The statements are hand-written because building them with the ORM took most of a read's time. PostgreSQL keeps their
plans, so they leave it no choice: first the subject, then its version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import connection

from registry.errors import SchemaNotFound
from registry.formats.base import Reference
from registry.subjects.models import Registry
from registry.subjects.versions.lookup import get_subject
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.versions.versions import (
    SchemaInfo,
    StatusInfo,
    VersionInfo,
    no_version,
    parse_version,
    statuses_of_schemas,
)

#: the columns and references of a schema `d`, for `_schema`
_SCHEMA: Final = """d.schema_id, d.schema_type, d.canonical, d.guid::text, d.fingerprint, d.metadata, d.rule_set, (
    SELECT jsonb_agg(jsonb_build_array(r.name, r.subject_name, g.version) ORDER BY r.position)
    FROM subjects_schemareference r JOIN subjects_schemaversion g ON g.id = r.target_id WHERE r.schema_id = d.id)"""
#: the subject with a name, to precede what reads its versions; with the parameters of `named`
PLACE: Final = """WITH place AS MATERIALIZED (
    SELECT s.id FROM subjects_context c JOIN subjects_subject s ON s.context_id = c.id
    WHERE c.registry_id = %(registry)s::bigint AND c.name = %(context)s::text AND s.name = %(subject)s::text
)"""
#: a version `v` with its schema and status, for `_version`
VERSION_COLUMNS: Final = f"""v.id, v.version, v.submitted, v.created_at, v.created_by, v.door, v.deleted_at IS NOT NULL,
    t.standing, t.message, t.ends_at, t.decided_by, t.decided_at, {_SCHEMA}"""
_VERSION: Final = f"""{PLACE}
SELECT {VERSION_COLUMNS}
FROM subjects_schemaversion v JOIN subjects_schema d ON d.id = v.schema_id
LEFT JOIN subjects_versionstanding t ON t.version_id = v.id
WHERE v.subject_id = (SELECT id FROM place)"""  # noqa: S608
_NUMBERED: Final = f"{_VERSION} AND v.version = %(number)s::integer AND (%(deleted)s::boolean OR v.deleted_at IS NULL)"
_LATEST: Final = f"""{_VERSION} AND v.id = (
    SELECT n.id FROM subjects_schemaversion n WHERE n.subject_id = (SELECT id FROM place) AND n.deleted_at IS NULL
    ORDER BY n.version DESC LIMIT 1)"""  # noqa: S608
_OF_SCHEMA: Final = f"""{_VERSION} AND d.schema_id = %(schema_id)s::bigint
ORDER BY v.deleted_at DESC NULLS FIRST, v.version DESC LIMIT 1"""
_BY_ID: Final = f"""SELECT d.id, EXISTS (
    SELECT FROM subjects_schemaversion v JOIN subjects_versionstanding t ON t.version_id = v.id
    WHERE v.schema_id = d.id), {_SCHEMA}
FROM subjects_context c JOIN subjects_schema d ON d.context_id = c.id
WHERE c.registry_id = %(registry)s::bigint AND c.name = %(context)s::text AND d.schema_id = %(schema_id)s::bigint"""  # noqa: S608


def get_version(registry: Registry, subject: SubjectName, version: int | str, *, deleted: bool = False) -> VersionInfo:
    """Return a version with its definition; `latest` and -1 mean the newest live one. One query.

    Raises InvalidVersion, SubjectNotFound, VersionNotFound.
    """
    number = parse_version(version)
    if number is None:
        row = _read(_LATEST, named(registry, subject))
    else:
        row = _read(_NUMBERED, {**named(registry, subject), "number": number, "deleted": deleted})
    if row is None:
        get_subject(registry, subject, deleted=deleted)
        raise no_version(number)
    return version_from(subject, row)


def get_version_of_schema(registry: Registry, schema_id: int, subject: SubjectName) -> VersionInfo | None:
    """Return the subject's version with the id, live ones before soft-deleted ones; None if it has none. One query."""
    row = _read(_OF_SCHEMA, {**named(registry, subject), "schema_id": schema_id})
    return version_from(subject, row) if row else None


def get_schema(registry: Registry, schema_id: int, *, context: str = DEFAULT_CONTEXT) -> SchemaInfo:
    """Return the definition with that id in the context, also of soft-deleted versions. Raises SchemaNotFound.

    One query; two if a version of it isn't active.
    """
    row = _read(_BY_ID, {"registry": registry.pk, "context": context, "schema_id": schema_id})
    if row is None:
        raise SchemaNotFound(f"Schema {schema_id} not found", schema_id=schema_id)
    pk, is_marked, *columns = row
    return _schema(context, columns, statuses_of_schemas([pk]).get(pk) if is_marked else None)


def named(registry: Registry, subject: SubjectName) -> dict[str, Any]:
    """Return the parameters of `PLACE`."""
    return {"registry": registry.pk, "context": subject.context, "subject": subject.subject}


def _read(statement: str, values: Mapping[str, Any]) -> Sequence[Any] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: Sequence[Any] | None = cursor.fetchone()
    return row


def version_from(subject: SubjectName, row: Sequence[Any]) -> VersionInfo:
    """Return the version in a row of `VERSION_COLUMNS`."""
    version_id, version, submitted, created_at, created_by, channel, deleted = row[:7]
    return VersionInfo(
        id=version_id,
        subject=subject,
        version=version,
        schema=_schema(subject.context, row[12:]),
        submitted=submitted,
        created_at=created_at,
        created_by=created_by,
        channel=channel,
        deleted=deleted,
        status=StatusInfo(*row[7:12]) if row[7] else None,
    )


def _schema(context: str, columns: Sequence[Any], status: StatusInfo | None = None) -> SchemaInfo:
    schema_id, schema_type, text, guid, fingerprint, metadata, rule_set, references = columns
    return SchemaInfo(
        schema_id=schema_id,
        context=context,
        schema_type=schema_type,
        text=text,
        guid=guid,
        fingerprint=fingerprint,
        references=tuple(Reference(*item) for item in json.loads(references)) if references else (),
        metadata=json.loads(metadata) if metadata else None,
        rule_set=json.loads(rule_set) if rule_set else None,
        status=status,
    )

"""Schemas by id, in bulk: what a scan holds messages against."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from registry.subjects import engines
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.selectors.parsed import parse_stored


@dataclass(frozen=True)
class VersionOfId:
    """A version and the schema id that it has."""

    schema_id: int
    subject: SubjectName
    version: int
    deleted: bool


def all_versions(registry: Registry, *, context: str = DEFAULT_CONTEXT) -> Iterator[VersionOfId]:
    """Every version of a context, the soft-deleted ones too; one query, streamed."""
    rows = SchemaVersion.objects.filter(subject__context__registry=registry, subject__context__name=context)
    values = rows.values_list("schema__schema_id", "subject__name", "version", "deleted_at")
    for schema_id, name, version, deleted_at in values.iterator(chunk_size=2000):
        yield VersionOfId(schema_id, SubjectName(context, name), version, deleted_at is not None)


def self_contained_schemas(
    registry: Registry, schema_ids: Collection[int], *, schema_type: str, context: str = DEFAULT_CONTEXT
) -> dict[int, str]:
    """The texts of the ids of one format, with everything that they refer to inside."""
    rows = list(
        Schema.objects.filter(
            context__registry=registry, context__name=context, schema_id__in=schema_ids, schema_type=schema_type
        )
    )
    return {row.schema_id: engines.self_contained(parsed) for row, parsed in zip(rows, parse_stored(rows), strict=True)}

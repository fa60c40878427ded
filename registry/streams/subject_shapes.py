"""Versions of subjects as Spark reads them, from the registry; one query, however many there are."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db.models import Q

from registry.streams.shapes import VersionShape, spark_shape
from registry.subjects.models import Registry, SchemaVersion


def shapes_of(registry: Registry, subjects: Collection[tuple[str, str]]) -> list[VersionShape]:
    """All versions of those subjects (context, name) that Spark's `from_avro` reads, soft-deleted ones too, ascending.

    Versions of JSON Schema and Protobuf are left out: what a state has of them isn't told.
    """
    if not subjects:
        return []
    wanted = Q()
    for context in sorted({context for context, _ in subjects}):
        names = [name for place, name in subjects if place == context]
        wanted |= Q(subject__context__name=context, subject__name__in=names)
    rows = (
        SchemaVersion.objects.filter(wanted, subject__context__registry=registry, schema__schema_type="AVRO")
        .order_by("subject_id", "version")
        .values_list("subject__context__name", "subject__name", "version", "created_at", "schema__canonical")
    )
    found: list[VersionShape] = []
    for context, name, version, created_at, text in rows:
        shape = spark_shape(text)
        if shape is not None:
            found.append(VersionShape(context, name, version, int(created_at.timestamp() * 1000), shape))
    return found


def latest_of(shapes: Sequence[VersionShape]) -> dict[tuple[str, str], VersionShape]:
    """The newest version of each subject."""
    return {(each.context, each.subject): each for each in shapes}

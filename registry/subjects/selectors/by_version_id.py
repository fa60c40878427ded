"""Versions by their own id and by format: how Spring's clients ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from registry.errors import SchemaNotFound
from registry.formats import FORMATS
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.versions import VersionInfo, live, version_infos


def version_by_id(registry: Registry, version_id: int) -> VersionInfo:
    """The live version of this registry that has the id. Raises SchemaNotFound."""
    rows = SchemaVersion.objects.filter(pk=version_id, subject__context__registry=registry)
    found = live(rows).first()
    if found is None:
        raise SchemaNotFound(f"Schema {version_id} not found", schema_id=version_id)
    return version_infos([found])[0]


def versions_of_format(
    registry: Registry, subject: SubjectName, schema_type: str, *, version: int | None = None
) -> list[VersionInfo]:
    """The subject's live versions of a format, ascending (with `version`: that one alone); empty where there are none.

    A constant number of queries, however many versions there are.
    """
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry,
        subject__context__name=subject.context,
        subject__name=subject.subject,
        schema__schema_type=schema_type,
    )
    if version is not None:
        rows = rows.filter(version=version)
    return version_infos(list(live(rows).order_by("version")))


def canonical_texts(registry: Registry, subject: SubjectName, schema_type: str) -> Iterator[tuple[int, str]]:
    """Number and canonical text of the subject's live versions of a format, ascending; one query, streamed."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry,
        subject__context__name=subject.context,
        subject__name=subject.subject,
        schema__schema_type=schema_type,
    )
    yield from live(rows).order_by("version").values_list("version", "schema__canonical").iterator(chunk_size=50)


def standalone_texts(versions: Sequence[VersionInfo]) -> dict[int, str]:
    """By the versions' ids, texts that a reader without references understands.

    It is the text as submitted; one that refers to other schemas comes with these inside. Two queries and one for each
    depth of references.
    """
    texts = {info.id: info.submitted for info in versions}
    referring = [info.id for info in versions if info.schema.references]
    if not referring:
        return texts
    pairs = SchemaVersion.objects.filter(pk__in=referring).values_list("pk", "schema_id")
    schema_of = dict(pairs)
    rows = list(Schema.objects.filter(pk__in=set(schema_of.values())))
    whole = {
        row.pk: FORMATS[row.schema_type].self_contained(parsed)
        for row, parsed in zip(rows, parse_stored(rows), strict=True)
    }
    return texts | {version_id: whole[schema_pk] for version_id, schema_pk in schema_of.items()}

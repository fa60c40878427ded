"""Versions and schemas, as the dialects and the pages read them, with their status.

A version is deprecated, retired or quarantined; an active one has no row for its status.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from registry.errors import InvalidInput, InvalidVersion, SchemaNotFound, VersionNotFound
from registry.formats.base import Reference
from registry.subjects.models import Context, Registry, Schema, SchemaReference, SchemaVersion, Subject, VersionStatus
from registry.subjects.models.versions import SchemaVersionQuerySet
from registry.subjects.versions.lookup import get_subject
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

#: from the mildest to the most severe
SEVERITY: Final = {word: rank for rank, word in enumerate(VersionStatus.STATUSES)}
PAGE: Final = 100


@dataclass(frozen=True)
class StatusInfo:
    """A version's status: since when, set by whom and why; `ends_at`: use it no longer than until then."""

    status: str
    message: str
    ends_at: datetime | None
    decided_by: str
    decided_at: datetime


@dataclass(frozen=True)
class VersionWithStatus:
    """A status with its version; `id` is the version's own, for paging."""

    id: int
    subject: SubjectName
    version: int
    deleted: bool
    status: StatusInfo


def status_info(row: VersionStatus | None) -> StatusInfo | None:
    """Return the row as a value; None for None."""
    return None if row is None else _info(row)


def _info(row: VersionStatus) -> StatusInfo:
    return StatusInfo(row.status, row.message, row.ends_at, row.decided_by, row.decided_at)


def joined_status(row: SchemaVersion) -> StatusInfo | None:
    """Return the status of a version's row; needs `select_related("status")`, otherwise it costs a query."""
    return status_info(getattr(row, "status", None))


def list_version_statuses(
    registry: Registry, *, subject: SubjectName | None = None, status: str = "", after: int = 0, limit: int = PAGE
) -> list[VersionWithStatus]:
    """Return the versions of a registry, or of one subject, that aren't active, by id; one query.

    `after` is the last id of the previous page. Raises InvalidInput for an unknown status.
    """
    if status and status not in SEVERITY:
        raise InvalidInput(f"Unknown status {status[:40]!r}. Use one of {', '.join(SEVERITY)}.")
    rows = VersionStatus.objects.filter(version__subject__context__registry=registry, version__gt=after)
    if subject is not None:
        rows = rows.filter(version__subject__context__name=subject.context, version__subject__name=subject.subject)
    if status:
        rows = rows.filter(status=status)
    rows = rows.select_related("version__subject__context").order_by("version")[:limit]
    return [
        VersionWithStatus(
            id=row.version.pk,
            subject=SubjectName(row.version.subject.context.name, row.version.subject.name),
            version=row.version.version,
            deleted=row.version.deleted_at is not None,
            status=_info(row),
        )
        for row in rows
    ]


def statuses_of_schemas(
    schema_pks: Collection[int], versions: QuerySet[SchemaVersion] | None = None
) -> Mapping[int, StatusInfo]:
    """Return the status of whole definitions, by their rows; one query. `versions` limits those considered (None: all).

    A definition has a status only if all its live versions (or, without live ones, its soft-deleted ones) have one: a
    client that reads by id may use any of them. The result is the mildest status, with the latest end if each has one.
    """
    by_schema: dict[int, list[tuple[bool, StatusInfo | None]]] = {}
    every = SchemaVersion.objects.all() if versions is None else versions
    rows = every.filter(schema__in=schema_pks).select_related("status").defer("submitted")
    for row in rows.order_by("pk"):
        by_schema.setdefault(row.schema_id, []).append((row.deleted_at is None, joined_status(row)))
    joined = {pk: _together(versions) for pk, versions in by_schema.items()}
    return {pk: status for pk, status in joined.items() if status is not None}


def _together(versions: Iterable[tuple[bool, StatusInfo | None]]) -> StatusInfo | None:
    listed = list(versions)
    counted = [status for live, status in listed if live] or [status for _, status in listed]
    marked = [status for status in counted if status is not None]
    if not marked or len(marked) < len(counted):
        return None
    mildest = min(marked, key=lambda status: (SEVERITY[status.status], -status.decided_at.timestamp()))
    ends = [status.ends_at for status in marked if status.ends_at is not None]
    return StatusInfo(
        status=mildest.status,
        message=mildest.message,
        ends_at=max(ends) if len(ends) == len(marked) else None,
        decided_by=mildest.decided_by,
        decided_at=max(status.decided_at for status in marked),
    )


if TYPE_CHECKING:
    from registry.subjects.permissions import Visible

LATEST = ("latest", "-1")
MAX_VERSION = 2**31 - 1
#: the relations of a version's row that `infos_of` reads
JOINED = ("schema__context", "subject__context", "status")


@dataclass(frozen=True)
class SchemaInfo:
    """A stored definition."""

    schema_id: int
    context: str
    schema_type: str
    text: str
    guid: str
    fingerprint: str
    references: tuple[Reference, ...]
    metadata: dict[str, Any] | None
    rule_set: dict[str, Any] | None
    #: for a definition read by id or GUID: the status of all its versions
    status: StatusInfo | None = None


@dataclass(frozen=True)
class VersionInfo:
    """A version of a subject with its definition. `id` is the version's own, across all registries."""

    id: int
    subject: SubjectName
    version: int
    schema: SchemaInfo
    submitted: str
    created_at: datetime
    created_by: str
    channel: str
    deleted: bool
    status: StatusInfo | None = None


def parse_version(value: int | str) -> int | None:
    """Parse a version number from 1 to 2^31-1, or None for `latest` and -1. Raises InvalidVersion."""
    text = str(value).strip()
    if text.lower() in LATEST:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:12]) <= MAX_VERSION:
        raise InvalidVersion(
            f"The specified version '{text[:40]}' is not a valid version id. Allowed values are between"
            ' [1, 2^31-1] and the string "latest"',
            version=text[:40],
        )
    return int(text)


def live(rows: SchemaVersionQuerySet, *, deleted: bool = False) -> SchemaVersionQuerySet:
    """Return the rows without the soft-deleted ones, unless `deleted`."""
    return rows if deleted else rows.filter(deleted_at=None)


def list_versions(registry: Registry, subject: SubjectName, *, deleted: bool = False) -> list[int]:
    """Return version numbers, ascending. Raises SubjectNotFound."""
    row = get_subject(registry, subject, deleted=deleted)
    return list(live(row.versions.all(), deleted=deleted).order_by("version").values_list("version", flat=True))


def named_versions(registry: Registry, subject: SubjectName, *, deleted: bool = False) -> SchemaVersionQuerySet:
    """Return the versions of a subject by its name, with what `_version_info` reads, unordered."""
    rows = SchemaVersion.objects.filter(
        subject__context__registry=registry, subject__context__name=subject.context, subject__name=subject.subject
    )
    return live(rows, deleted=deleted).select_related(*JOINED)


def joined_rows(keys: Sequence[tuple[Registry, SubjectName, int | str]]) -> list[SchemaVersion]:
    """Return the rows of versions like `joined_row`, in one query if all are numbers.

    Raises InvalidVersion, SubjectNotFound, VersionNotFound.
    """
    condition = Q(pk__in=())
    for registry, subject, version in keys:
        if number := parse_version(version):
            context = {"context__registry": registry, "context__name": subject.context}
            here = {f"subject__{name}": value for name, value in (context | {"name": subject.subject}).items()}
            condition |= Q(version=number, **here)
    rows = {
        (row.subject.context.registry_id, SubjectName(row.subject.context.name, row.subject.name), row.version): row
        for row in SchemaVersion.objects.filter(condition).select_related(*JOINED)
    }
    return [
        rows.get((registry.pk, subject, parse_version(version) or 0)) or joined_row(registry, subject, version)
        for registry, subject, version in keys
    ]


def joined_row(registry: Registry, subject: SubjectName, version: int | str) -> SchemaVersion:
    """Return the row of a version, also a soft-deleted one, with what `infos_of` and a parser read; one query.

    Raises InvalidVersion, SubjectNotFound, VersionNotFound.
    """
    number = parse_version(version)
    rows = named_versions(registry, subject, deleted=True)
    row = rows.filter(version=number).first() if number else rows.order_by("-version").first()
    if row is None:
        get_subject(registry, subject, deleted=True)
        raise no_version(number)
    return row


def no_version(number: int | None) -> VersionNotFound:
    """Return the error for a missing version (None: the latest)."""
    return VersionNotFound(f"Version {number or 'latest'} not found.", version=number)


def version_row(subject: Subject, number: int | None, *, deleted: bool = False) -> SchemaVersion:
    """Return the row of a version (None: the newest). Raises VersionNotFound."""
    rows = live(subject.versions.all(), deleted=deleted)
    row = rows.filter(version=number).first() if number else rows.order_by("-version").first()
    if row is None:
        raise no_version(number)
    return row


def version_infos(rows: Sequence[SchemaVersion]) -> list[VersionInfo]:
    """Return the rows as values, in their order, with a constant number of queries.

    Raises VersionNotFound if one was deleted since it was read.
    """
    full = SchemaVersion.objects.filter(pk__in=[row.pk for row in rows]).select_related(*JOINED).in_bulk()
    if gone := [row for row in rows if row.pk not in full]:
        raise no_version(gone[0].version)
    return infos_of([full[row.pk] for row in rows])


def infos_of(
    rows: Sequence[SchemaVersion], references: Mapping[int, tuple[Reference, ...]] | None = None
) -> list[VersionInfo]:
    """Return joined rows, as those of `named_versions`, as values; one query, none with `references`."""
    if references is None:
        references = references_of([row.schema_id for row in rows])
    return [_version_info(row, references.get(row.schema_id, ()), joined_status(row)) for row in rows]


def info_of_new(row: SchemaVersion, references: tuple[Reference, ...]) -> VersionInfo:
    """Return a row that was just created, of a schema with those references, as a value; without a query."""
    return _version_info(row, references, None)


def _version_info(row: SchemaVersion, references: tuple[Reference, ...], status: StatusInfo | None) -> VersionInfo:
    return VersionInfo(
        id=row.pk,
        subject=SubjectName(row.subject.context.name, row.subject.name),
        version=row.version,
        schema=schema_info(row.schema, references),
        submitted=row.submitted,
        created_at=row.created_at,
        created_by=row.created_by,
        channel=row.channel,
        deleted=row.deleted_at is not None,
        status=status,
    )


def schema_info(row: Schema, references: tuple[Reference, ...], status: StatusInfo | None = None) -> SchemaInfo:
    """Return a schema's row as a value."""
    return SchemaInfo(
        schema_id=row.schema_id,
        context=row.context.name,
        schema_type=row.schema_type,
        text=row.canonical,
        guid=str(row.guid),
        fingerprint=row.fingerprint,
        references=references,
        metadata=row.metadata,
        rule_set=row.rule_set,
        status=status,
    )


def references_of(schema_pks: Sequence[int]) -> dict[int, tuple[Reference, ...]]:
    """Return the references of each schema; one query."""
    references_by_schema: dict[int, list[Reference]] = {}
    for row in SchemaReference.objects.filter(schema_id__in=schema_pks).select_related("target"):
        references_by_schema.setdefault(row.schema_id, []).append(
            Reference(row.name, row.subject_name, row.target.version)
        )
    return {pk: tuple(references) for pk, references in references_by_schema.items()}


def find_version(
    registry: Registry, subject: SubjectName, identities: Sequence[str], *, deleted: bool = False
) -> VersionInfo | None:
    """Return the subject's newest version with one of those schema identities, or None. Raises SubjectNotFound."""
    row = get_subject(registry, subject, deleted=deleted)
    rows = live(row.versions.filter(schema__identity__in=identities), deleted=deleted).select_related(*JOINED)
    version = rows.order_by("-version").first()
    return infos_of([version])[0] if version else None


def elsewhere(registry: Registry, subject: SubjectName) -> list[SubjectName]:
    """Return the subjects with the same name outside the default context; none for a name with a context."""
    if subject.context != DEFAULT_CONTEXT:
        return []
    rows = Subject.objects.filter(context__registry=registry, name=subject.subject).exclude(
        context__name=DEFAULT_CONTEXT
    )
    return [
        SubjectName(name, subject.subject)
        for name in rows.order_by("context__name").values_list("context__name", flat=True)
    ]


def latest_with_metadata(
    registry: Registry, subject: SubjectName, properties: Mapping[str, str], *, deleted: bool = False
) -> VersionInfo:
    """Return the newest version whose metadata has all those properties. Raises SubjectNotFound, SchemaNotFound."""
    rows = named_versions(registry, subject, deleted=deleted).filter(schema__metadata__isnull=False)
    row = rows.filter(schema__metadata__contains={"properties": dict(properties)}).order_by("-version").first()
    if not properties:
        row = rows.order_by("-version").first()
    if row is None:
        get_subject(registry, subject, deleted=deleted)
        raise SchemaNotFound("Schema not found", subject=subject.qualified)
    return infos_of([row])[0]


def schemas_of_guid(registry: Registry, guid: str) -> list[SchemaInfo]:
    """Return the definitions with that GUID, one per context and id, default context first. Raises SchemaNotFound."""
    try:
        parsed_guid = uuid.UUID(guid)
    except ValueError:
        parsed_guid = None
    rows = _marked(Schema.objects.filter(context__registry=registry, guid=parsed_guid)) if parsed_guid else ()
    schemas = sorted(rows, key=lambda row: (row.context.name != DEFAULT_CONTEXT, row.context.name, row.schema_id))
    if not schemas:
        raise SchemaNotFound(f"Schema {guid[:80]} not found", guid=guid[:80])
    references, statuses = references_of([row.pk for row in schemas]), _statuses(schemas)
    return [schema_info(row, references.get(row.pk, ()), statuses.get(row.pk)) for row in schemas]


def last_schema_id(registry: Registry, context: str) -> int:
    """Return the highest id that was assigned in a context; 0 before the first."""
    row = Context.objects.filter(registry=registry, name=context).values_list("next_schema_id", flat=True).first()
    return (row or 1) - 1


def find_schema(registry: Registry, schema_id: int, *, context: str = DEFAULT_CONTEXT) -> Schema | None:
    """Return the row with that id, or None."""
    rows = Schema.objects.filter(context__registry=registry, context__name=context, schema_id=schema_id)
    return _marked(rows).first()


def _marked(rows: QuerySet[Schema]) -> QuerySet[Schema]:
    """Annotate the definitions with whether any version has a status: most need no further query."""
    marked = VersionStatus.objects.filter(version__schema=OuterRef("pk"))
    return rows.select_related("context").annotate(is_marked=Exists(marked))


def _statuses(rows: Sequence[Schema]) -> Mapping[int, StatusInfo]:
    marked = [row.pk for row in rows if row.is_marked]  # type: ignore[attr-defined]  # annotated
    return statuses_of_schemas(marked) if marked else {}


def versions_of_schema(
    registry: Registry, schema_id: int, *, context: str = DEFAULT_CONTEXT, deleted: bool = False
) -> list[tuple[SubjectName, int]]:
    """Return the subject and number of every version that has the id, in that order. Raises SchemaNotFound.

    Thousands of subjects can have the same schema, such as that of a plain key.
    """
    schema = find_schema(registry, schema_id, context=context)
    if schema is None:
        raise SchemaNotFound("Schema not found", schema_id=schema_id)
    rows = live(schema.versions.all(), deleted=deleted).order_by("subject__name", "version")
    names = rows.values_list("subject__context__name", "subject__name", "version")
    return [(SubjectName(within, name), version) for within, name, version in names]


def referenced_by(
    registry: Registry,
    subject: SubjectName,
    version: int | str,
    *,
    deleted: bool = False,
    visible: Visible | None = None,
) -> list[int]:
    """Return the ids of the schemas that refer to a version, ascending; `visible` keeps the readable ones.

    Raises as get_version does.
    """
    row = version_row(get_subject(registry, subject, deleted=True), parse_version(version), deleted=True)
    referrers = Schema.objects.filter(references__target=row)
    if not deleted:
        referrers = referrers.filter(versions__deleted_at=None)
    ids = set(referrers.values_list("pk", "schema_id"))
    return sorted({number for pk, number in ids if visible is None or visible.has_schema(pk)})

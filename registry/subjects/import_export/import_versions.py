"""Versions imported together: each is checked in turn, then all are written with one statement per table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from registry.access.roles import Actor
from registry.errors import InvalidInput, OperationNotPermitted, SchemadeskError
from registry.formats.base import Reference, ResolvedReference
from registry.subjects.import_export.snapshot import Problem, VersionKey, VersionRecord
from registry.subjects.models import Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.registration.locks import lock_subjects, make_subjects, pass_schema_ids
from registry.subjects.registration.registration_state import links_of, schema_of
from registry.subjects.registration.submission import Submission
from registry.subjects.versions.parsed_schemas import (
    MAX_REFERENCE_DEPTH,
    Resolver,
    keyed_references,
    missing_reference,
    parse_schema,
    read_graph,
    refuse_too_large,
    targets_of,
    too_deep,
)
from registry.subjects.versions.parsed_schemas import ReferenceKey as SchemaPlace
from registry.subjects.versions.qualified_names import SubjectName, check_context, parse_subject
from registry.subjects.versions.versions import MAX_VERSION

#: a reference, and the key of its target
KeyedReference = tuple[Reference, SchemaPlace]
#: a reference in a text, and the version that it points to
ReferenceLink = tuple[ResolvedReference, SchemaVersion]


class References:
    """The targets of a batch's references: existing versions, also soft-deleted ones, and imported ones.

    An imported version is added in its turn, so that later ones find it. By then its schema has a unique, possibly
    temporary, primary key.
    """

    def __init__(self, registry: Registry, keys: Collection[SchemaPlace]) -> None:
        self._targets = targets_of(registry, set(keys), deleted=True) if keys else {}
        schemas = {row.schema_id for row in self._targets.values()}
        self._graph = read_graph(schemas).rows if schemas else {}
        self._resolver = Resolver(self._graph)

    def add(self, name: SubjectName, row: SchemaVersion, links: Sequence[ReferenceLink]) -> None:
        """Add an imported version with its references."""
        self._targets[name, row.version] = row
        newest = self._targets.get((name, None))
        if newest is None or newest.version < row.version:
            self._targets[name, None] = row
        self._graph.setdefault(
            row.schema_id,
            [SchemaReference(name=item.name, subject_name=item.subject, target=target) for item, target in links],
        )

    def resolve(self, references: Sequence[KeyedReference]) -> tuple[ReferenceLink, ...]:
        """Return each reference with its text and its version. Raises InvalidReference."""
        for reference, key in references:
            if key not in self._targets:
                raise missing_reference(reference)
        targets = [self._targets[key] for _, key in references]
        self._refuse_deep({row.schema_id for row in targets})
        return tuple(
            (self._resolver.to(reference.name, reference.subject, target), target)
            for (reference, _), target in zip(references, targets, strict=True)
        )

    def _refuse_deep(self, schemas: set[int]) -> None:
        """Enforce the depth limit that reading a single schema has."""
        followed, level = set(schemas), schemas
        for _ in range(MAX_REFERENCE_DEPTH):
            level = {link.target.schema_id for schema in level for link in self._graph[schema]} - followed
            if not level:
                return
            followed |= level
        raise too_deep()


# Django's bulk_create would set the current time on each row.
_ADD: Final = """
INSERT INTO subjects_schemaversion
    (subject_id, version, schema_id, submitted, created_at, created_by, door, deleted_at, imported)
SELECT w.subject_id, w.version, w.schema_id, w.submitted, w.created_at, w.created_by, w.door, w.deleted_at, true
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::timestamptz[], %s::text[], %s::text[],
    %s::timestamptz[]) WITH ORDINALITY
    AS w(subject_id, version, schema_id, submitted, created_at, created_by, door, deleted_at, place)
ORDER BY w.place
RETURNING subject_id, version, id
"""


def add_versions(
    registry: Registry,
    subjects: Mapping[SubjectName, Subject],
    versions: Sequence[tuple[SubjectName, SchemaVersion]],
    schemas: Sequence[tuple[SubjectName, Schema, Sequence[ReferenceLink]]],
) -> None:
    """Store new versions, with their new schemas and these schemas' references.

    `subjects` exist and are locked; the others are created. The lock order is the usual one: subjects, then counters. A
    schema may refer to one of these versions, so references are written last.
    """
    names = dict.fromkeys(name for name, _ in versions)
    there = {**subjects, **make_subjects(registry, [name for name in names if name not in subjects])}
    newest = {there[name].context_id: 0 for name in names}
    for name, schema, _ in schemas:
        schema.context = there[name].context
        newest[schema.context_id] = max(newest[schema.context_id], schema.schema_id)
    pass_schema_ids(newest)
    for _, schema, _ in schemas:
        schema.pk = None
    Schema.objects.bulk_create(schema for _, schema, _ in schemas)
    for name, row in versions:
        row.subject, row.schema = there[name], row.schema
    _insert([row for _, row in versions])
    SchemaReference.objects.bulk_create(link for _, schema, links in schemas for link in links_of(schema, links))


def _insert(rows: Sequence[SchemaVersion]) -> None:
    number = SchemaVersion._meta.get_field("version")
    columns: tuple[list[Any], ...] = (
        [row.subject_id for row in rows],
        [number.get_db_prep_save(row.version, connection) for row in rows],
        [row.schema_id for row in rows],
        [row.submitted for row in rows],
        [row.created_at for row in rows],
        [row.created_by for row in rows],
        [row.channel for row in rows],
        [row.deleted_at for row in rows],
    )
    rows_by_version = {(row.subject_id, row.version): row for row in rows}
    with connection.cursor() as cursor:
        cursor.execute(_ADD, columns)
        for subject, version, pk in cursor.fetchall():
            rows_by_version[subject, version].pk = pk


@dataclass(frozen=True)
class ImportResult:
    """The result of a batch: versions that were new, whose deletion changed, that existed already; and the problems."""

    added: int = 0
    changed: int = 0
    same: int = 0
    problems: tuple[Problem, ...] = ()

    def __add__(self, other: ImportResult) -> ImportResult:
        return ImportResult(
            self.added + other.added,
            self.changed + other.changed,
            self.same + other.same,
            self.problems + other.problems,
        )


def import_batch(registry: Registry, records: Sequence[VersionRecord], by: Actor) -> ImportResult:
    """Import versions with different keys, each after those it refers to, inside the caller's savepoint.

    A version that can't be imported is reported and changes nothing. Raises IntegrityError or DataError if the database
    rejects one.
    """
    read: list[tuple[VersionRecord, list[KeyedReference] | SchemadeskError]] = [(item, _read(item)) for item in records]
    sound = {item.key: references for item, references in read if isinstance(references, list)}
    batch = _Batch(registry, [item for item in records if item.key in sound], sound, by)
    done = ImportResult()
    for item, references in read:
        try:
            if isinstance(references, SchemadeskError):
                raise references
            done += batch.judge(item, references)
        except SchemadeskError as error:
            done += ImportResult(problems=(Problem(item.title, error.message),))
    batch.write()
    return done


def _read(item: VersionRecord) -> list[KeyedReference] | SchemadeskError:
    """Return a version's references, or an error that doesn't depend on the registry's contents."""
    try:
        check_context(item.subject.context)
        if parse_subject(item.subject.qualified) != item.subject:
            raise InvalidInput("its name would refer to another subject.")
        refuse_too_large(item.text)
        return keyed_references(item.references, context=item.subject.context)
    except SchemadeskError as error:
        return error


@dataclass(frozen=True)
class _There:
    """A version that exists."""

    pk: int
    schema_id: int
    identity: str
    deleted: bool


class _Batch:
    """What exists of what the versions need, and what has to be written."""

    def __init__(
        self,
        registry: Registry,
        records: Sequence[VersionRecord],
        references: Mapping[VersionKey, Sequence[KeyedReference]],
        by: Actor,
    ) -> None:
        self._registry, self._by, self._now = registry, by, timezone.now()
        self._subjects = lock_subjects(registry, {item.subject for item in records})
        self._versions = self._read_versions(records)
        self._schemas = self._read_schemas(records)
        self._references = References(registry, {key for keyed in references.values() for _, key in keyed})
        self._comes: list[tuple[SubjectName, SchemaVersion]] = []
        self._schemas_come: list[tuple[SubjectName, Schema, Sequence[ReferenceLink]]] = []
        self._changes: list[SchemaVersion] = []
        #: primary key of a schema → the first of the imported versions with it; `_holders` has the existing ones
        self._coming_holders: dict[int, tuple[str, int]] = {}

    def judge(self, item: VersionRecord, references: Sequence[KeyedReference]) -> ImportResult:
        """Decide what a version needs. Raises the errors of a registration, and OperationNotPermitted."""
        links = self._references.resolve(references)
        submission = _submission(item, links)
        schema = schema_of(submission, submission.canonical(normalize=False))
        there = self._versions.get(item.key)
        if there is not None:
            return self._settle(there, item, submission, schema)
        self._add(item, submission, self._stored(item, submission, schema, links), links)
        return ImportResult(added=1)

    def write(self) -> None:
        """Write what was decided for all versions."""
        if self._comes:
            add_versions(self._registry, self._subjects, self._comes, self._schemas_come)
        if self._changes:
            SchemaVersion.objects.bulk_update(self._changes, ["deleted_at", "imported"])

    def _settle(self, there: _There, item: VersionRecord, submission: Submission, schema: Schema) -> ImportResult:
        """Update a version that exists: nothing, or its deletion."""
        if there.schema_id != item.schema_id:
            raise OperationNotPermitted(f"it has schema id {there.schema_id} here and {item.schema_id} there.")
        if there.identity not in submission.identities(schema.canonical):
            raise OperationNotPermitted(f"it is another schema here with the same id {item.schema_id}.")
        if there.deleted == item.deleted:
            return ImportResult(same=1)
        self._changes.append(SchemaVersion(pk=there.pk, deleted_at=self._deleted_at(item), imported=True))
        return ImportResult(changed=1)

    def _stored(
        self, item: VersionRecord, submission: Submission, schema: Schema, links: Sequence[ReferenceLink]
    ) -> Schema:
        """Return the schema with the version's id: stored, imported, or this one. Raises OperationNotPermitted."""
        id_key = item.subject.context, item.schema_id
        stored_schema = self._schemas.get(id_key)
        if stored_schema is None:
            self._schemas_come.append((item.subject, schema, links))
            schema.schema_id, schema.imported = item.schema_id, True
            schema.pk = -len(self._schemas_come)  # temporary: stored keys are never negative
            self._schemas[id_key] = schema
            return schema
        if stored_schema.identity not in submission.identities(schema.canonical):
            raise OperationNotPermitted(f"schema id {item.schema_id} is used by {self._holder(stored_schema)} here.")
        return stored_schema

    def _add(self, item: VersionRecord, submission: Submission, schema: Schema, links: Sequence[ReferenceLink]) -> None:
        row = SchemaVersion(
            version=item.version,
            schema=schema,
            submitted=submission.submitted,
            created_at=item.created_at or self._now,
            created_by=item.created_by or self._by.name,
            channel=item.channel or self._by.channel,
            deleted_at=self._deleted_at(item),
            imported=True,
        )
        self._comes.append((item.subject, row))
        self._references.add(item.subject, row, links)
        holder = item.subject.subject, item.version
        self._coming_holders[schema.pk] = min(holder, self._coming_holders.get(schema.pk, holder))

    def _deleted_at(self, item: VersionRecord) -> Any:
        return (item.deleted_at or self._now) if item.deleted else None

    # -- what is there

    def _read_versions(self, records: Sequence[VersionRecord]) -> dict[VersionKey, _There]:
        keys = {
            (self._subjects[item.subject].pk, item.version): item.key
            for item in records
            if item.subject in self._subjects and item.version <= MAX_VERSION
        }
        if not keys:
            return {}
        with connection.cursor() as cursor:
            cursor.execute(_VERSIONS, [[subject for subject, _ in keys], [version for _, version in keys]])
            return {keys[subject, version]: _There(*row) for subject, version, *row in cursor.fetchall()}

    def _read_schemas(self, records: Sequence[VersionRecord]) -> dict[tuple[str, int], Schema]:
        ids: dict[str, set[int]] = {}
        for item in records:
            if item.schema_id <= MAX_VERSION:
                ids.setdefault(item.subject.context, set()).add(item.schema_id)
        condition = Q(pk__in=())
        for context, numbers in ids.items():
            condition |= Q(context__name=context, schema_id__in=numbers)
        rows = Schema.objects.filter(condition, context__registry=self._registry).select_related("context")
        return {(row.context.name, row.schema_id): row for row in rows}

    def _holder(self, schema: Schema) -> str:
        holders = [first_versions.get(schema.pk) for first_versions in (self._holders, self._coming_holders)]
        first = min((holder for holder in holders if holder is not None), default=None)
        return "another schema" if first is None else f"another schema ({first[0]} version {first[1]})"

    @cached_property
    def _holders(self) -> dict[int, tuple[str, int]]:
        """The first version of each existing schema, by subject and number."""
        stored = [row.pk for row in self._schemas.values() if row.pk > 0]
        rows = SchemaVersion.objects.filter(schema__in=stored).order_by("schema_id", "subject__name", "version")
        listed = rows.distinct("schema_id").values_list("schema_id", "subject__name", "version")
        return {schema: (name, version) for schema, name, version in listed}


_VERSIONS: Final = """
SELECT v.subject_id, v.version, v.id, d.schema_id, d.identity, v.deleted_at IS NOT NULL
FROM unnest(%s::bigint[], %s::bigint[]) AS w(subject_id, version)
JOIN subjects_schemaversion v ON v.subject_id = w.subject_id AND v.version = w.version
JOIN subjects_schema d ON d.id = v.schema_id
"""


def _submission(item: VersionRecord, links: Sequence[ReferenceLink]) -> Submission:
    resolved = tuple(reference for reference, _ in links)
    schema = parse_schema(item.schema_type, item.text, resolved, is_new=False)
    if item.submitted:  # then the text is the stored one, which may be normalized
        schema = replace(schema, canonical=item.text)
    return Submission(
        schema=schema,
        resolved=resolved,
        targets=tuple(target for _, target in links),
        submitted=item.submitted or item.text,
        metadata=item.metadata,
        rule_set=item.rule_set,
    )

"""Versions that come together from elsewhere: each is judged in its turn against what is there, then all are written.

What is there is read once for all of them, and what comes before is there for what comes after. Nothing else registers
meanwhile: whoever calls this is alone in the registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from registry.access.roles import Actor
from registry.errors import InvalidInput, OperationNotPermitted, SchemadeskError
from registry.subjects.models import Registry, Schema, SchemaVersion
from registry.subjects.names import SubjectName, check_context, parse_subject
from registry.subjects.selectors.parsed import parse_schema, wanted_of
from registry.subjects.selectors.resolving import Found, References, Wanted
from registry.subjects.selectors.submission import Submission, refuse_too_large
from registry.subjects.selectors.versions import MAX_VERSION
from registry.subjects.services.locks import lock_subjects
from registry.subjects.services.storing import schema_of
from registry.subjects.services.storing_many import add_versions
from registry.subjects.snapshot import Place, Problem, VersionRecord


@dataclass(frozen=True)
class Brought:
    """What became of a batch: versions that were new, whose deletion changed, that were there; and the problems."""

    added: int = 0
    changed: int = 0
    same: int = 0
    problems: tuple[Problem, ...] = ()

    def __add__(self, other: Brought) -> Brought:
        return Brought(
            self.added + other.added,
            self.changed + other.changed,
            self.same + other.same,
            self.problems + other.problems,
        )


def bring_together(registry: Registry, records: Sequence[VersionRecord], by: Actor) -> Brought:
    """Bring versions of different places, each after those that it refers to, inside the caller's savepoint.

    What can't be brought is told and changes nothing. Raises IntegrityError, DataError where the database refuses one.
    """
    read: list[tuple[VersionRecord, list[Wanted] | SchemadeskError]] = [(item, _read(item)) for item in records]
    sound = {item.place: asked for item, asked in read if isinstance(asked, list)}
    batch = _Batch(registry, [item for item in records if item.place in sound], sound, by)
    done = Brought()
    for item, asked in read:
        try:
            if isinstance(asked, SchemadeskError):
                raise asked
            done += batch.judge(item, asked)
        except SchemadeskError as error:
            done += Brought(problems=(Problem(item.title, error.message),))
    batch.write()
    return done


def _read(item: VersionRecord) -> list[Wanted] | SchemadeskError:
    """What a version refers to, or what is wrong with it whatever is there."""
    try:
        check_context(item.subject.context)
        if parse_subject(item.subject.qualified) != item.subject:
            raise InvalidInput("its name would mean another subject.")
        refuse_too_large(item.text)
        return wanted_of(item.references, context=item.subject.context)
    except SchemadeskError as error:
        return error


@dataclass(frozen=True)
class _There:
    """A version that is there."""

    pk: int
    schema_id: int
    identity: str
    deleted: bool


class _Batch:
    """What is there of what the versions need, and what is to be written of them."""

    def __init__(
        self,
        registry: Registry,
        records: Sequence[VersionRecord],
        wanted: Mapping[Place, Sequence[Wanted]],
        by: Actor,
    ) -> None:
        self._registry, self._by, self._now = registry, by, timezone.now()
        self._subjects = lock_subjects(registry, {item.subject for item in records})
        self._versions = self._read_versions(records)
        self._schemas = self._read_schemas(records)
        self._references = References(registry, {place for asked in wanted.values() for _, place in asked})
        self._comes: list[tuple[SubjectName, SchemaVersion]] = []
        self._schemas_come: list[tuple[SubjectName, Schema, Sequence[Found]]] = []
        self._changes: list[SchemaVersion] = []
        #: primary key of a schema → the first of the versions that come with it, as `_holders` has those that are there
        self._coming_holders: dict[int, tuple[str, int]] = {}

    def judge(self, item: VersionRecord, wanted: Sequence[Wanted]) -> Brought:
        """What becomes of a version. Raises what a registration of it would, and OperationNotPermitted."""
        found = self._references.resolve(wanted)
        submission = _submission(item, found)
        schema = schema_of(submission, submission.canonical(normalize=False))
        there = self._versions.get(item.place)
        if there is not None:
            return self._settle(there, item, submission, schema)
        self._add(item, submission, self._stored(item, submission, schema, found), found)
        return Brought(added=1)

    def write(self) -> None:
        """Write what came of all of them."""
        if self._comes:
            add_versions(self._registry, self._subjects, self._comes, self._schemas_come)
        if self._changes:
            SchemaVersion.objects.bulk_update(self._changes, ["deleted_at", "imported"])

    def _settle(self, there: _There, item: VersionRecord, submission: Submission, schema: Schema) -> Brought:
        """What a version that is there already needs: nothing, or its deletion as it is elsewhere."""
        if there.schema_id != item.schema_id:
            raise OperationNotPermitted(f"here it has schema id {there.schema_id}, there {item.schema_id}.")
        if there.identity not in submission.identities(schema.canonical):
            raise OperationNotPermitted(f"here it is another schema under the same id {item.schema_id}.")
        if there.deleted == item.deleted:
            return Brought(same=1)
        self._changes.append(SchemaVersion(pk=there.pk, deleted_at=self._deleted_at(item), imported=True))
        return Brought(changed=1)

    def _stored(self, item: VersionRecord, submission: Submission, schema: Schema, found: Sequence[Found]) -> Schema:
        """The schema of the version's id: the one that is there or comes, or this one. Raises OperationNotPermitted."""
        place = item.subject.context, item.schema_id
        known = self._schemas.get(place)
        if known is None:
            self._schemas_come.append((item.subject, schema, found))
            schema.schema_id, schema.imported = item.schema_id, True
            schema.pk = -len(self._schemas_come)  # until it has one: none that is stored is below zero
            self._schemas[place] = schema
            return schema
        if known.identity not in submission.identities(schema.canonical):
            raise OperationNotPermitted(f"schema id {item.schema_id} stands for {self._holder(known)} here.")
        return known

    def _add(self, item: VersionRecord, submission: Submission, schema: Schema, found: Sequence[Found]) -> None:
        row = SchemaVersion(
            version=item.version,
            schema=schema,
            submitted=submission.submitted,
            created_at=item.created_at or self._now,
            created_by=item.created_by or self._by.name,
            door=item.door or self._by.door,
            deleted_at=self._deleted_at(item),
            imported=True,
        )
        self._comes.append((item.subject, row))
        self._references.add(item.subject, row, found)
        place = item.subject.subject, item.version
        self._coming_holders[schema.pk] = min(place, self._coming_holders.get(schema.pk, place))

    def _deleted_at(self, item: VersionRecord) -> Any:
        return (item.deleted_at or self._now) if item.deleted else None

    # -- what is there

    def _read_versions(self, records: Sequence[VersionRecord]) -> dict[Place, _There]:
        places = {
            (self._subjects[item.subject].pk, item.version): item.place
            for item in records
            if item.subject in self._subjects and item.version <= MAX_VERSION
        }
        if not places:
            return {}
        with connection.cursor() as cursor:
            cursor.execute(_VERSIONS, [[subject for subject, _ in places], [version for _, version in places]])
            return {places[subject, version]: _There(*row) for subject, version, *row in cursor.fetchall()}

    def _read_schemas(self, records: Sequence[VersionRecord]) -> dict[tuple[str, int], Schema]:
        ids: dict[str, set[int]] = {}
        for item in records:
            if item.schema_id <= MAX_VERSION:
                ids.setdefault(item.subject.context, set()).add(item.schema_id)
        wanted = Q(pk__in=())
        for context, numbers in ids.items():
            wanted |= Q(context__name=context, schema_id__in=numbers)
        rows = Schema.objects.filter(wanted, context__registry=self._registry).select_related("context")
        return {(row.context.name, row.schema_id): row for row in rows}

    def _holder(self, schema: Schema) -> str:
        held = [each.get(schema.pk) for each in (self._holders, self._coming_holders)]
        first = min((each for each in held if each is not None), default=None)
        return "another schema" if first is None else f"another schema ({first[0]} version {first[1]})"

    @cached_property
    def _holders(self) -> dict[int, tuple[str, int]]:
        """The first version of each schema that is there, by subject and number."""
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


def _submission(item: VersionRecord, found: Sequence[Found]) -> Submission:
    resolved = tuple(reference for reference, _ in found)
    schema = parse_schema(item.schema_type, item.text, resolved, is_new=False)
    if item.submitted:  # then the text is what was kept, which may be the normalized one
        schema = replace(schema, canonical=item.text)
    return Submission(
        schema=schema,
        resolved=resolved,
        targets=tuple(target for _, target in found),
        submitted=item.submitted or item.text,
        metadata=item.metadata,
        rule_set=item.rule_set,
    )

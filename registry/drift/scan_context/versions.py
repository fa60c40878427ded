"""Registered versions and stored schemas as a scan needs them.

Versions come with their marks, their subjects and whether a promotion released them; schemas with declared fields,
record names and texts to decode with; topics with possible writer schemas.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Case, Count, Exists, Min, OuterRef, Q, QuerySet, Value, When

from registry.drift.judge.declared_fields import DeclaredFields, declared_fields
from registry.drift.judge.model import Mark, RegisteredVersion, SubjectSummary
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.judge.versions import BELOW
from registry.drift.models import SchemaUse, Source
from registry.drift.scan_context.contract_rules import rules_of
from registry.errors import SchemadeskError
from registry.formats import format_of
from registry.formats.base import ParsedSchema
from registry.observations import Framing, WriterSchema
from registry.subjects.comparison.parsed_versions import parse_readable
from registry.subjects.engine import schema_engine
from registry.subjects.models import Registry, Schema, SchemaVersion, Subject, VersionStatus
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.versions.versions import joined_status

LARGEST_ID: Final = 2**31 - 1
MAX_MARKS: Final = 20_000
#: `prefix.subject.vN`: both prefix and subject may contain dots
CONTENT_TYPE: Final = re.compile(r"(?P<names>.{3,1000})\.v(?P<version>[1-9][0-9]{0,8})", re.DOTALL)


@dataclass(frozen=True)
class VersionRow:
    """A version with the primary keys of its rows, which the judge doesn't need."""

    version: RegisteredVersion
    context: str
    name: str
    schema_pk: int


def is_target(registry: Registry) -> bool:
    """Return whether the registry gets versions by promotions: its environment is closed, or not the first."""
    environment = environment_of(registry)
    return environment is not None and (environment.is_closed or _before(environment).exists())


def environment_before(registry: Registry) -> Registry | None:
    """Return the registry of the previous environment in the promotion order; None without one."""
    environment = environment_of(registry)
    previous = environment and _before(environment).order_by("-position").select_related("registry").first()
    return previous.registry if previous else None


def _before(environment: Any) -> Any:
    return type(environment).objects.filter(position__lt=environment.position)


def is_last(registry: Registry) -> bool:
    """Return whether the registry is the last environment that gets promotions: production; three queries."""
    environment = environment_of(registry)
    if environment is None or not is_target(registry):
        return False
    return not type(environment).objects.filter(position__gt=environment.position).exists()


def environment_of(registry: Registry) -> Any:
    """Return the registry's environment; None if it isn't one."""
    try:
        return registry.environment  # type: ignore[attr-defined]  # the relation is of registry.promotions
    except ObjectDoesNotExist:
        return None


def version_rows(registry: Registry, condition: Q, *, unapproved: Q | None) -> list[VersionRow]:
    """Return the registry's versions that match a condition, including soft-deleted ones; one query.

    `unapproved` is the result of `registry.subjects.policy.change_guard.unrequested`; None: `released` is left unknown.
    """
    rows: QuerySet[SchemaVersion] = (
        SchemaVersion.objects.filter(condition, subject__context__registry=registry)
        .select_related("schema", "subject__context", "subject__minimum_version", "status")
        .annotate(can_be_newer=Exists(_not_below_minimum()))
        .defer("submitted", "schema__canonical", "schema__metadata", "schema__rule_set")
        .order_by("subject_id", "version")
    )
    if unapproved is not None:
        rows = rows.annotate(is_unapproved=Case(When(unapproved, then=Value(True)), default=Value(False)))
    return [_row(row, with_release=unapproved is not None) for row in rows]


def _row(row: Any, *, with_release: bool) -> VersionRow:
    name = SubjectName(row.subject.context.name, row.subject.name)
    version = RegisteredVersion(
        subject=name.qualified,
        version=row.version,
        deleted=row.deleted_at is not None,
        schema_id=row.schema.schema_id,
        released=not row.is_unapproved if with_release else None,
        registered_at=milliseconds(row.created_at),
        registered_by=row.created_by,
        channel=row.channel,
        schema_type=row.schema.schema_type,
        fingerprint=row.schema.fingerprint,
        guid=str(row.schema.guid),
        **_status(row),
    )
    return VersionRow(version, name.context, name.subject, row.schema_id)


def _not_below_minimum() -> QuerySet[SchemaVersion]:
    """Return the live versions that producers may still write; without any, the minimum version applies to none."""
    minimum = OuterRef("subject__minimum_version__version")
    return SchemaVersion.objects.filter(subject=OuterRef("subject"), deleted_at=None, version__gte=minimum)


def _status(row: Any) -> dict[str, Any]:
    """Return a version's status; being below the subject's minimum version outweighs a deprecation."""
    status = joined_status(row)
    minimum = getattr(row.subject, "minimum_version", None)
    is_mild = status is None or status.status == VersionStatus.DEPRECATED
    if minimum is not None and row.version < minimum.version and row.can_be_newer and is_mild:
        return {
            "status": BELOW,
            "status_since": milliseconds(minimum.set_at),
            "status_message": minimum.reason,
            "minimum_version": minimum.version,
        }
    if status is None:
        return {}
    return {
        "status": status.status,
        "status_since": milliseconds(status.decided_at),
        "status_until": milliseconds(status.ends_at) if status.ends_at else 0,
        "status_message": status.message,
    }


def condition_of(marks: Collection[Mark]) -> Q:
    """Return a condition for the versions that marks may refer to, in any context; ignores impossible marks."""
    ids, guids, named = set(), set(), set()
    for framing, text in sorted(marks)[:MAX_MARKS]:
        if framing == "id" and text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= LARGEST_ID:
            ids.add(int(text))
        elif framing == "guid" and (guid := _guid(text)) is not None:
            guids.add(guid)
        elif framing == "content_type":
            named |= set(subjects_of_content_type(text))
    names = {name for name, _ in named}
    numbers = {version for _, version in named}
    return Q(schema__schema_id__in=ids) | Q(schema__guid__in=guids) | Q(subject__name__in=names, version__in=numbers)


def _guid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def subjects_of_content_type(text: str) -> Iterator[tuple[str, int]]:
    """Yield what `prefix.subject.vN` may mean: every split into prefix and subject, with the version."""
    match = CONTENT_TYPE.fullmatch(text)
    if match is None or "\0" in text:
        return
    parts = match["names"].split(".")
    for first in range(1, min(len(parts), 20)):
        yield ".".join(parts[first:]), int(match["version"])


def by_mark(rows: Iterable[VersionRow], marks: Collection[Mark]) -> dict[Mark, list[VersionRow]]:
    """Return the versions of each mark, in every context."""
    by_id: dict[str, list[VersionRow]] = {}
    by_guid: dict[str, list[VersionRow]] = {}
    by_name: dict[tuple[str, int], list[VersionRow]] = {}
    for row in rows:
        by_id.setdefault(str(row.version.schema_id), []).append(row)
        by_guid.setdefault(row.version.guid, []).append(row)
        by_name.setdefault((row.name, row.version.version), []).append(row)
    matches: dict[Mark, list[VersionRow]] = {}
    for mark in marks:
        framing, text = mark
        if framing == "id":
            matches[mark] = by_id.get(text, [])
        elif framing == "guid":
            matches[mark] = by_guid.get(str(_guid(text) or ""), [])
        else:
            # The shortest prefix first: `vnd` is the default.
            splits = (by_name.get(split, []) for split in subjects_of_content_type(text))
            matches[mark] = next((rows_ for rows_ in splits if rows_), [])
    return matches


def subject_summaries(registry: Registry, context: str) -> dict[str, SubjectSummary]:
    """Return all subjects of a context that have a version, by name without the context; one query."""
    rows = (
        Subject.objects.filter(context__registry=registry, context__name=context, versions__isnull=False)
        .annotate(live=Count("versions", filter=Q(versions__deleted_at=None)), since=Min("versions__created_at"))
        .values_list("name", "live", "since")
    )
    return {
        name: SubjectSummary(SubjectName(context, name).qualified, live, milliseconds(since))
        for name, live, since in rows
    }


MAX_PARSED: Final = 400  # schemas that one scan parses


@dataclass(frozen=True)
class ReadSchema:
    """A parsed stored schema; `text` is self-contained, None if it can't be made so."""

    row: Schema
    parsed: ParsedSchema

    @property
    def declared(self) -> DeclaredFields | None:
        """Return its fields; None if they aren't known."""
        return declared_fields(self.parsed)

    @property
    def record(self) -> str:
        """Return the full name of its record or message."""
        return format_of(self.parsed.schema_type).record_name(self.parsed)

    def text(self) -> str | None:
        """Return the text for `registry.observations.WriterSchema`; None for a schema that can't be read here."""
        engine = format_of(self.parsed.schema_type)
        if engine.has_descriptors:
            return None if self.parsed.model is None else engine.descriptor_set(self.parsed)
        try:
            return schema_engine.self_contained(self.parsed)
        except SchemadeskError:  # too costly: its bodies aren't decoded, only counted by id
            return None


def read_schemas(rows: Iterable[Schema]) -> dict[int, ReadSchema]:
    """Return at most MAX_PARSED parsed schemas by row; omits those that can't be read.

    One query per depth of references.
    """
    selected = dict(list({row.pk: row for row in rows}.items())[:MAX_PARSED])
    return {pk: ReadSchema(selected[pk], parsed) for pk, parsed in parse_readable(list(selected.values())).items()}


def declared_of(read: Mapping[int, ReadSchema], pks: Iterable[int]) -> dict[int, DeclaredFields]:
    """Return the declared fields of those schemas, as far as they are known."""
    declarations = {pk: read[pk].declared for pk in pks if pk in read}
    return {pk: declared for pk, declared in declarations.items() if declared is not None}


MAX_WRITERS: Final = 300


def writers_for(
    source: Source,
    topics: Collection[str],
    marks: Collection[tuple[Framing, str]] = (),
    *,
    rule: dict[str, Any] | None = None,
) -> tuple[WriterSchema, ...]:
    """Return the possible writer schemas of those topics' bodies, at most MAX_WRITERS, one per mark.

    Candidates are the topic's subjects by TopicName, those named `<topic>-…`, all that earlier scans saw in these
    topics, and `marks`. Schemas that were seen come first, then the newest. Unreadable schemas are omitted.
    With `rule`, of a data contract, each schema has that one in place of its own.
    """
    registry, context = source.registry, source.context or DEFAULT_CONTEXT
    uses = SchemaUse.objects.filter(topic__source=source, topic__name__in=topics)
    seen_marks: set[Mark] = {*marks, *cast("Iterable[Mark]", uses.values_list("framing", "mark").distinct())}
    names = _named_after(topics, subject_summaries(registry, context))
    condition = condition_of(seen_marks) | Q(subject__name__in=names)
    rows = [
        row
        for row in version_rows(registry, condition & Q(subject__context__name=context), unapproved=None)
        if row.version.schema_id
    ]
    order: dict[Mark, VersionRow] = {}
    for mark, candidates in sorted(by_mark(rows, seen_marks).items()):
        if candidates:
            order[mark] = candidates[0]
    for row in sorted(rows, key=lambda row: -row.version.registered_at):
        if row.name in names:
            order.setdefault(("id", str(row.version.schema_id)), row)
    chosen = dict(list(order.items())[:MAX_WRITERS])
    read = read_schemas(Schema.objects.filter(pk__in={row.schema_pk for row in chosen.values()}))
    texts = {pk: schema.text() for pk, schema in read.items()}
    rules = {
        pk: rules_of(schema.row, schema.parsed, rule) for pk, schema in read.items() if rule or schema.row.rule_set
    }
    return tuple(
        WriterSchema(mark[0], mark[1], row.version.schema_type, text, *rules.get(row.schema_pk, ()))
        for mark, row in chosen.items()
        if (text := texts.get(row.schema_pk)) is not None
    )


def _named_after(topics: Collection[str], subjects: Iterable[str]) -> set[str]:
    """Return the subjects named `<topic>-…` for any of the topics."""
    topic_names = set(topics)
    return {
        name
        for name in subjects
        if any(char == "-" and name[:position] in topic_names for position, char in enumerate(name))
    }

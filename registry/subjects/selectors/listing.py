"""Lists of registries, contexts and subjects."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from django.conf import settings
from django.db.models import Count, Exists, F, Func, Max, OuterRef, QuerySet, TextField, Value

from registry.subjects.models import Config, Context, Registry, SchemaVersion, Subject, SubjectActivity, SubjectNote
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.selectors.effective import DEFAULT_LEVEL

ALL_CONTEXTS = ":*:"


@dataclass(frozen=True)
class RegistryInfo:
    """A registry and how much is in it."""

    name: str
    project: str
    location: str
    kind: str
    subjects: int


@dataclass(frozen=True)
class SubjectRow:
    """A line of the subject list: the versions of the same subject in every registry, by registry name."""

    subject: SubjectName
    schema_type: str
    latest_version: int
    live_versions: int
    versions: dict[str, int]
    level: str
    level_is_own: bool
    changed_at: datetime
    changed_by: str


def list_registries() -> list[RegistryInfo]:
    """All registries, the configured default first."""
    rows = Registry.objects.annotate(subject_count=Count("contexts__subjects"))
    infos = [
        RegistryInfo(row.name, row.project, row.location, row.kind, row.subject_count) for row in rows.order_by("pk")
    ]
    return sorted(infos, key=lambda info: info.name != settings.DEFAULT_REGISTRY)


def list_contexts(registry: Registry) -> list[str]:
    """`.` and the other contexts, sorted."""
    names = Context.objects.filter(registry=registry).values_list("name", flat=True)
    return sorted({DEFAULT_CONTEXT, *names})


def subject_rows(
    registry: Registry,
    *,
    text: str = "",
    schema_type: str = "",
    level: str = "",
    tag: str = "",
    owned: Collection[str] | None = None,
    offset: int = 0,
    limit: int = 50,
) -> tuple[list[SubjectRow], int]:
    """A page of the subject list and the number of all that match; a constant number of queries.

    `tag` is one of the subjects' notes, in any case of letters; `owned` are the patterns of what an owner has.
    """
    rows = _matching(registry, text=text, schema_type=schema_type, level=level)
    if tag:
        rows = rows.filter(Exists(tagged(tag).filter(subject=OuterRef("subject"))))
    if owned is not None:
        rows = rows.filter(subject__in=_fitting(registry, owned))
    total = rows.count()
    order = rows.order_by("-changed_at", "subject_id")
    shown = order.values("subject_id")[offset : offset + limit]  # of an index alone, however late the page is
    chosen = SubjectActivity.objects.filter(subject_id__in=shown).order_by("-changed_at", "subject_id")
    page = list(chosen.select_related("subject__context"))
    newest = _newest_versions([row.subject_id for row in page])
    elsewhere = _latest_by_registry(registry, [row.subject.name for row in page])
    levels = _own_levels(registry)
    inherited = levels.get((None, None)) or DEFAULT_LEVEL
    return [
        _subject_row(row, newest[row.subject_id], elsewhere, levels, inherited)
        for row in page
        if row.subject_id in newest
    ], total


def tagged(tag: str) -> QuerySet[SubjectNote]:
    """The notes that have a tag, however its letters are written."""
    words = Func(F("tags"), Value(" "), function="array_to_string", output_field=TextField())
    if not tag.isascii() or not tag.isprintable() or " " in tag:
        return SubjectNote.objects.none()
    return SubjectNote.objects.annotate(words=words).filter(words__iregex=rf"(^| ){re.escape(tag)}( |$)")


def _fitting(registry: Registry, patterns: Collection[str]) -> list[int]:
    """The subjects whose qualified name one of the patterns fits; one query, for none without patterns."""
    if not patterns:
        return []
    rows = Subject.objects.filter(context__registry=registry).values_list("pk", "context__name", "name")
    return [
        pk
        for pk, context, name in rows
        if any(fnmatchcase(SubjectName(context, name).qualified, pattern) for pattern in patterns)
    ]


def _matching(registry: Registry, *, text: str, schema_type: str, level: str) -> QuerySet[SubjectActivity]:
    rows = SubjectActivity.objects.filter(registry_id=registry.pk)
    for word in text.split():
        rows = rows.filter(subject__name__icontains=word)
    if schema_type:
        rows = rows.filter(
            Exists(SchemaVersion.objects.filter(subject=OuterRef("subject"), schema__schema_type=schema_type))
        )
    if level:
        own = Config.objects.filter(
            registry=registry, context=OuterRef("subject__context"), subject_name=OuterRef("subject__name")
        )
        base = (
            Config.objects.filter(registry=registry, context=None).values_list("compatibility_level", flat=True).first()
        )
        has_own = Exists(own.filter(compatibility_level__isnull=False))
        wanted = Exists(own.filter(compatibility_level=level))
        rows = rows.filter(wanted | ~has_own) if (base or DEFAULT_LEVEL) == level else rows.filter(wanted)
    return rows


def _newest_versions(subject_pks: list[int]) -> dict[int, SchemaVersion]:
    rows = (
        SchemaVersion.objects.filter(subject_id__in=subject_pks, deleted_at=None)
        .select_related("schema")
        .order_by("subject_id", "-version")
        .distinct("subject_id")
    )
    return {row.subject_id: row for row in rows}


def _latest_by_registry(registry: Registry, names: list[str]) -> dict[tuple[str, str], dict[str, int]]:
    """(context, subject) → registry name → latest live version, over the registries of the same project and location."""
    rows = (
        SchemaVersion.objects.filter(
            subject__name__in=names,
            deleted_at=None,
            subject__context__registry__project=registry.project,
            subject__context__registry__location=registry.location,
        )
        .values("subject__context__name", "subject__name", "subject__context__registry__name")
        .annotate(latest=Max("version"))
    )
    found: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        key = (row["subject__context__name"], row["subject__name"])
        found.setdefault(key, {})[row["subject__context__registry__name"]] = row["latest"]
    return found


def _own_levels(registry: Registry) -> dict[tuple[str | None, str | None], str | None]:
    rows = Config.objects.filter(registry=registry).values_list("context__name", "subject_name", "compatibility_level")
    return {(context, subject): level for context, subject, level in rows}


def _subject_row(
    row: SubjectActivity,
    newest: SchemaVersion,
    elsewhere: dict[tuple[str, str], dict[str, int]],
    levels: dict[tuple[str | None, str | None], str | None],
    inherited: str,
) -> SubjectRow:
    context, name = row.subject.context.name, row.subject.name
    own = levels.get((context, name))
    return SubjectRow(
        subject=SubjectName(context, name),
        schema_type=newest.schema.schema_type,
        latest_version=newest.version,
        live_versions=row.live_versions,
        versions=elsewhere.get((context, name), {}),
        level=own or levels.get((context, None)) or inherited,
        level_is_own=own is not None,
        changed_at=newest.created_at,
        changed_by=newest.created_by,
    )

"""Lists of registries, contexts and subjects."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Window
from django.db.models.functions import Coalesce

from registry.access.name_patterns import name_pattern
from registry.access.roles import Actor
from registry.audit.time_travel import MOMENT, DerivedTable, by_then
from registry.errors import InvalidInput
from registry.subjects.listing.filters import ALL, SubjectNarrowing, narrowed
from registry.subjects.models import Config, Context, Registry, SchemaVersion, Subject, SubjectActivity
from registry.subjects.permissions import Visible, qualified_name
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

ALL_CONTEXTS = ":*:"
_CURSOR: Final = re.compile(r"(?P<microseconds>[0-9]{1,17})\.(?P<subject>[0-9]{1,18})")
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_QUALIFIED: Final = "qualified_name_to_match"
#: the columns of a version that the list shows
_SHOWN: Final = ("subject", "version", "created_at", "created_by", "deleted_at")


@dataclass(frozen=True)
class RegistryInfo:
    """A registry with its number of subjects that have a live version."""

    name: str
    project: str
    location: str
    kind: str
    subjects: int


@dataclass(frozen=True)
class SubjectRow:
    """A row of the subject list: the subject's versions in every registry, by registry name.

    `schemas` are the fingerprints of their schemas: equal numbers don't mean equal schemas.
    """

    subject: SubjectName
    schema_type: str
    latest_version: int
    live_versions: int
    versions: dict[str, int]
    level: str
    level_is_own: bool
    changed_at: datetime
    changed_by: str
    deleted: bool = False
    schemas: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SubjectRows:
    """A page of the subject list: its rows, how many subjects match, and how many of these precede the page.

    `before` and `after` are the cursors of the neighbouring pages, "" if there is none. `total` is None if too many
    match to be counted. If subjects without an owner come first, they were searched among the `looked` that changed
    last; None for all.
    """

    rows: list[SubjectRow]
    total: int | None
    skipped: int
    before: str
    after: str
    looked: int | None = None


class _Position(NamedTuple):
    """A row's position in the list: the last change first, then by id."""

    changed_at: datetime
    subject: int

    @property
    def cursor(self) -> str:
        """The position as text, for a page's address."""
        return f"{(self.changed_at - _BEGINNING) // timedelta(microseconds=1)}.{self.subject}"


def list_registries() -> list[RegistryInfo]:
    """Return all registries, the configured default first."""
    there = SubjectActivity.objects.filter(registry_id=OuterRef("pk")).order_by().values("registry_id")
    live = Coalesce(Subquery(there.annotate(number=Count("*")).values("number")), 0)
    rows = Registry.objects.order_by("pk").values_list("name", "project", "location", "kind", live)
    return [RegistryInfo(*row) for row in sorted(rows, key=lambda row: row[0] != settings.DEFAULT_REGISTRY)]


def registry_names(by: Actor | None = None) -> list[str]:
    """Return only the names of registries that `by` may read something of, in the same order, without counting."""
    rows = Registry.objects.visible_to(by) if by else Registry.objects.all()
    names = rows.order_by("pk").values_list("name", flat=True)
    return sorted(names, key=lambda name: name != settings.DEFAULT_REGISTRY)


def has_subjects() -> bool:
    """Return whether any registry has a subject with a live version."""
    return SubjectActivity.objects.exists()


def newest_two_versions(by: Actor) -> tuple[str, SubjectName, int, int] | None:
    """Return the registry, name and two newest live versions, older first, of the subject that changed last with two."""
    rows = Subject.objects.visible_to(by).filter(activity__live_versions__gte=2).order_by("-activity__changed_at")
    row = rows.select_related("context__registry").first()
    if row is None:
        return None
    versions = SchemaVersion.objects.filter(subject=row, deleted_at=None).order_by("-version")
    newer, older = versions.values_list("version", flat=True)[:2]
    return row.context.registry.name, SubjectName(row.context.name, row.name), older, newer


def has_matching_subject(registry: str, pattern: str, by: Actor) -> bool:
    """Return whether `by` may read a subject of the registry ("": of any) that matches, also a deleted one."""
    names = [name for name in registry_names(by) if registry in ("", name)]
    fitting = name_pattern(pattern).as_q(_QUALIFIED)
    matching = Subject.objects.alias(**{_QUALIFIED: qualified_name()}).filter(fitting)
    return any(
        Visible(row, by).narrowed(matching.filter(context__registry=row)).exists()
        for row in Registry.objects.filter(name__in=names)
    )


def list_contexts(registry: Registry, visible: Visible | None = None) -> list[str]:
    """Return `.` and the other contexts, sorted; if `visible` is limited, only those with readable subjects."""
    rows = Context.objects.filter(registry=registry)
    if visible is not None and not visible.is_whole:
        rows = rows.filter(pk__in=visible.narrowed(Subject.objects.filter(context__in=rows)).values("context"))
    names = rows.values_list("name", flat=True)
    return sorted({DEFAULT_CONTEXT, *names})


def subject_rows(
    registry: Registry,
    narrowing: SubjectNarrowing = ALL,
    *,
    after: str = "",
    before: str = "",
    offset: int = 0,
    limit: int = 50,
) -> SubjectRows:
    """Return a page of the subject list, the last change first; a constant number of queries.

    `after` and `before` are cursors of another page: rows that are added or removed meanwhile move no row across the
    edge. `offset` is for callers without a cursor. Raises InvalidInput for an invalid cursor.
    """
    rows = narrowed(SubjectActivity.objects.filter(registry_id=registry.pk), registry, narrowing, at="subject__")
    if narrowing.is_expensive and not (after or before or offset):
        page, total, skipped = *_first_page(rows, limit), 0
    else:
        page = _page(rows, after=_position_of(after), before=_position_of(before), offset=offset, limit=limit)
        total, skipped = _counted(rows, _Position(page[0].changed_at, page[0].subject_id) if page else None)
    edge = _Position(page[0].changed_at, page[0].subject_id) if page else None
    last = _Position(page[-1].changed_at, page[-1].subject_id) if page else None
    return SubjectRows(
        rows=rows_of(registry, page),
        total=total,
        skipped=skipped,
        before=edge.cursor if edge and skipped else "",
        after=last.cursor if last and skipped + len(page) < total else "",
    )


def rows_of(registry: Registry, page: Collection[SubjectActivity], *, deleted: bool = False) -> list[SubjectRow]:
    """Return the rows of some subjects, in four queries; `deleted` is for those without a live version."""
    newest = _newest_versions([row.subject_id for row in page], deleted=deleted)
    elsewhere = _latest_by_registry(registry, [row.subject.name for row in page])
    levels = _own_levels(registry)
    inherited = levels.get((None, None)) or DEFAULT_LEVEL
    return [
        _subject_row(row, newest[row.subject_id], elsewhere, levels, inherited)
        for row in page
        if row.subject_id in newest
    ]


def counted(
    rows: QuerySet[Any], total: int | None, shown: int, skipped: int, *, is_whole: bool, is_counted: bool
) -> int | None:
    """Return how many there are: `shown` if that is everything, else the earlier count; None if nobody counts."""
    if is_whole:
        return shown
    if total is None and not is_counted:
        return None
    return max(rows.count() if total is None else total, skipped + shown)


def _position_of(cursor: str) -> _Position | None:
    """Return the position in a cursor, None for no cursor. Raises InvalidInput."""
    if not cursor:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("The cursor is not from the list of subjects. Start without a cursor.")
    return _Position(_BEGINNING + timedelta(microseconds=int(match["microseconds"])), int(match["subject"]))


def _page(
    rows: QuerySet[SubjectActivity], *, after: _Position | None, before: _Position | None, offset: int, limit: int
) -> list[SubjectActivity]:
    """Return the rows of one page in the order of the list; an index-only scan finds them, however late the page is."""
    if before is not None:
        keys = rows.filter(_ahead(before)).order_by("changed_at", "-subject_id")[:limit]
    elif after is not None:
        keys = rows.filter(_behind(after)).order_by("-changed_at", "subject_id")[:limit]
    else:
        keys = rows.order_by("-changed_at", "subject_id")[offset : offset + limit]
    return _of(keys.values("subject_id"))


def _first_page(rows: QuerySet[SubjectActivity], limit: int) -> tuple[list[SubjectActivity], int]:
    """Return the first rows and the total; since all names must be read, both come from one pass."""
    ordered = rows.order_by("-changed_at", "subject_id").annotate(whole=Window(Count("pk")))
    numbered_rows = list(ordered.values_list("subject_id", "whole")[:limit])
    return _of([key for key, _ in numbered_rows]), numbered_rows[0][1] if numbered_rows else 0


def _of(keys: Any) -> list[SubjectActivity]:
    rows = SubjectActivity.objects.filter(subject_id__in=keys).order_by("-changed_at", "subject_id")
    return list(rows.select_related("subject__context"))


def _behind(position: _Position) -> Q:
    """Return the condition for rows after a position; the first part lets an index scan start there."""
    later = Q(changed_at__lt=position.changed_at) | Q(subject_id__gt=position.subject)
    return Q(changed_at__lte=position.changed_at) & later


def _ahead(position: _Position) -> Q:
    """Return the condition for rows before a position."""
    earlier = Q(changed_at__gt=position.changed_at) | Q(subject_id__lt=position.subject)
    return Q(changed_at__gte=position.changed_at) & earlier


def _counted(rows: QuerySet[SubjectActivity], edge: _Position | None) -> tuple[int, int]:
    """Return how many rows there are, and how many precede the edge; all of them if there is no edge."""
    if edge is None:
        total = rows.count()
        return total, total
    counts = rows.aggregate(total=Count("pk"), skipped=Count("pk", filter=_ahead(edge)))
    return counts["total"], counts["skipped"]


def _newest_versions(subject_pks: list[int], *, deleted: bool) -> dict[int, SchemaVersion]:
    """Return each subject's newest version, without texts, by index lookups: a subject may have many versions."""
    theirs = SchemaVersion.objects.filter(subject=OuterRef("pk"), deleted_at__isnull=not deleted)
    newest = Subject.objects.filter(pk__in=subject_pks).values_list(
        Subquery(theirs.order_by("-version").values("pk")[:1])
    )
    rows = SchemaVersion.objects.filter(pk__in=newest).select_related("schema").only(*_SHOWN, "schema__schema_type")
    return {row.subject_id: row for row in rows}


#: context and name → registry → the newest live version and the fingerprint of its schema
_Newest = dict[tuple[str, str], dict[str, tuple[int, str]]]


def _latest_by_registry(registry: Registry, names: list[str]) -> _Newest:
    """Search the registries of the same project and location, by index lookups: there may be many versions."""
    live = SchemaVersion.objects.filter(subject=OuterRef("pk"), deleted_at=None).order_by("-version")
    rows = Subject.objects.filter(
        name__in=names, context__registry__project=registry.project, context__registry__location=registry.location
    ).annotate(
        newest=Subquery(live.values("version")[:1]), fingerprint=Subquery(live.values("schema__fingerprint")[:1])
    )
    latest: _Newest = {}
    columns = ("context__name", "name", "context__registry__name", "newest", "fingerprint")
    for context, name, there, version, fingerprint in rows.exclude(newest=None).values_list(*columns):
        latest.setdefault((context, name), {})[there] = (version, fingerprint)
    return latest


def _own_levels(registry: Registry) -> dict[tuple[str | None, str | None], str | None]:
    rows = Config.objects.filter(registry=registry).values_list("context__name", "subject_name", "compatibility_level")
    return {(context, subject): level for context, subject, level in rows}


def _subject_row(
    row: SubjectActivity,
    newest: SchemaVersion,
    elsewhere: _Newest,
    levels: dict[tuple[str | None, str | None], str | None],
    inherited: str,
) -> SubjectRow:
    context, name = row.subject.context.name, row.subject.name
    own = levels.get((context, name))
    newest_by_registry = elsewhere.get((context, name), {})
    return SubjectRow(
        subject=SubjectName(context, name),
        schema_type=newest.schema.schema_type,
        latest_version=newest.version,
        live_versions=row.live_versions,
        versions={there: version for there, (version, _) in newest_by_registry.items()},
        level=own or levels.get((context, None)) or inherited,
        level_is_own=own is not None,
        changed_at=newest.deleted_at or newest.created_at,
        changed_by="" if newest.deleted_at else newest.created_by,
        deleted=newest.deleted_at is not None,
        schemas={there: fingerprint for there, (_, fingerprint) in newest_by_registry.items()},
    )


# -- the list as of a moment: recounts the activity of subjects that changed since -------------------------------------

_CHANGES_SINCE: Final = """
    FROM public.audit_auditevent e
    WHERE e."table" = 'subjects_schemaversion' AND e.operation <> 'INSERT' AND e.at > {moment}"""
_CHANGED_SUBJECTS: Final = f"SELECT (e.before ->> 'subject_id')::bigint {_CHANGES_SINCE.format(moment=MOMENT)}"
_ACTIVITY_COLUMNS: Final = "subject_id, registry_id, live_versions, changed_at, schema_type"
PAST_ACTIVITY: Final = f"""
SELECT {_ACTIVITY_COLUMNS} FROM (
    SELECT {_ACTIVITY_COLUMNS}, true AS "is of now" FROM public.subjects_subjectactivity
    UNION ALL
    SELECT {_ACTIVITY_COLUMNS}, false FROM (
        WITH counted AS MATERIALIZED (
            SELECT changed.subject_id, place.registry_id, live.live_versions, live.changed_at, newest.schema_type
            FROM (
                SELECT a.subject_id FROM public.subjects_subjectactivity a WHERE a.changed_at > {MOMENT} UNION {_CHANGED_SUBJECTS}
            ) changed
            CROSS JOIN LATERAL (
                SELECT count(*)::integer AS live_versions, max(v.created_at) AS changed_at,
                    (array_agg(v.schema_id ORDER BY v.version DESC))[1] AS newest
                FROM past.subjects_schemaversion v
                WHERE v.subject_id = changed.subject_id AND v.deleted_at IS NULL HAVING count(*) > 0
            ) live
            CROSS JOIN LATERAL (
                SELECT sc.schema_type FROM past.subjects_schema sc WHERE sc.id = live.newest OFFSET 0
            ) newest
            CROSS JOIN LATERAL (
                SELECT c.registry_id FROM past.subjects_subject s JOIN past.subjects_context c ON c.id = s.context_id
                WHERE s.id = changed.subject_id OFFSET 0
            ) place
        ) SELECT * FROM counted
    ) before
) both_of_them
WHERE NOT "is of now" OR ({by_then("changed_at")} AND CASE WHEN subject_id IN ({_CHANGED_SUBJECTS}) THEN 1 ELSE 0 END <> 1)"""  # noqa: S608
UNCHANGED: Final = f"""NOT EXISTS (SELECT {_CHANGES_SINCE.format(moment="$1")})
    AND NOT EXISTS (SELECT FROM public.subjects_subjectactivity WHERE changed_at > $1)"""  # noqa: S608


#: how the views of the past compute the activity
past_activity: Final = DerivedTable(query=PAST_ACTIVITY, unchanged=UNCHANGED)

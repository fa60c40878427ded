"""Lists of registries, contexts and subjects."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, TypeVar

from django.conf import settings
from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    Func,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
    Window,
)
from django.db.models.functions import Coalesce, Concat
from django.db.models.lookups import Regex

from registry.errors import InvalidInput
from registry.subjects.models import (
    Config,
    Context,
    Registry,
    SchemaVersion,
    Subject,
    SubjectActivity,
    SubjectNote,
    VersionStanding,
)
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.selectors.effective import DEFAULT_LEVEL

ALL_CONTEXTS = ":*:"
_CURSOR: Final = re.compile(r"(?P<microseconds>[0-9]{1,17})\.(?P<subject>[0-9]{1,18})")
_WILD: Final = {"*": ".*", "?": "."}
_SIGNS: Final = frozenset("\\^$.|()[]{}+")
Rows = TypeVar("Rows", bound=QuerySet[Any])
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RegistryInfo:
    """A registry and how many subjects with a live version are in it."""

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
    deleted: bool = False


@dataclass(frozen=True)
class SubjectRows:
    """A page of the subject list: its rows, how many match at all, and how many of these stand before the page.

    `before` and `after` are the cursors of the pages beside it, "" where there is none.
    """

    rows: list[SubjectRow]
    total: int
    skipped: int
    before: str
    after: str


@dataclass(frozen=True)
class Narrowing:
    """Which subjects: empty means all.

    `tag` is one of the subjects' notes, in any case of letters; `owned` are the patterns of what an owner has, `unowned`
    those of what anybody has, none of which may fit; `standing` is that of a live version; `among` are names.
    """

    text: str = ""
    schema_type: str = ""
    level: str = ""
    tag: str = ""
    owned: Collection[str] | None = None
    unowned: Collection[str] | None = None
    standing: str = ""
    among: Collection[SubjectName] | None = None


ALL: Final = Narrowing()


class _Place(NamedTuple):
    """Where a row stands in the list: the last change first, and of one moment by number."""

    changed_at: datetime
    subject: int

    @property
    def cursor(self) -> str:
        """The place as text, for the address of a page."""
        return f"{(self.changed_at - _BEGINNING) // timedelta(microseconds=1)}.{self.subject}"


def list_registries() -> list[RegistryInfo]:
    """All registries, the configured default first."""
    there = SubjectActivity.objects.filter(registry_id=OuterRef("pk")).order_by().values("registry_id")
    live = Coalesce(Subquery(there.annotate(number=Count("*")).values("number")), 0)
    rows = Registry.objects.order_by("pk").values_list("name", "project", "location", "kind", live)
    return [RegistryInfo(*row) for row in sorted(rows, key=lambda row: row[0] != settings.DEFAULT_REGISTRY)]


def registry_names() -> list[str]:
    """Their names alone, in the same order: nothing is counted for it."""
    names = Registry.objects.order_by("pk").values_list("name", flat=True)
    return sorted(names, key=lambda name: name != settings.DEFAULT_REGISTRY)


def has_subjects() -> bool:
    """Whether any registry has a subject with a live version."""
    return SubjectActivity.objects.exists()


def list_contexts(registry: Registry) -> list[str]:
    """`.` and the other contexts, sorted."""
    names = Context.objects.filter(registry=registry).values_list("name", flat=True)
    return sorted({DEFAULT_CONTEXT, *names})


def subject_rows(
    registry: Registry,
    given: Narrowing = ALL,
    *,
    after: str = "",
    before: str = "",
    offset: int = 0,
    limit: int = 50,
) -> SubjectRows:
    """A page of the subject list, the last change first; a constant number of queries.

    `after` and `before` are cursors of another page: what comes and goes
    meanwhile moves no row over the edge between the two. `offset` is for who has none. Raises InvalidInput for a cursor
    that is none.
    """
    rows = narrowed(SubjectActivity.objects.filter(registry_id=registry.pk), registry, given, at="subject__")
    if given.text and not (after or before or offset):
        page, total, skipped = *_first_page(rows, limit), 0
    else:
        page = _page(rows, after=_place_of(after), before=_place_of(before), offset=offset, limit=limit)
        total, skipped = _counted(rows, _Place(page[0].changed_at, page[0].subject_id) if page else None)
    edge = _Place(page[0].changed_at, page[0].subject_id) if page else None
    last = _Place(page[-1].changed_at, page[-1].subject_id) if page else None
    return SubjectRows(
        rows=rows_of(registry, page),
        total=total,
        skipped=skipped,
        before=edge.cursor if edge and skipped else "",
        after=last.cursor if last and skipped + len(page) < total else "",
    )


def rows_of(registry: Registry, page: Collection[SubjectActivity], *, deleted: bool = False) -> list[SubjectRow]:
    """The lines of some subjects, in four queries; `deleted` is of those that have no live version."""
    newest = _newest_versions([row.subject_id for row in page], deleted=deleted)
    elsewhere = _latest_by_registry(registry, [row.subject.name for row in page])
    levels = _own_levels(registry)
    inherited = levels.get((None, None)) or DEFAULT_LEVEL
    return [
        _subject_row(row, newest[row.subject_id], elsewhere, levels, inherited)
        for row in page
        if row.subject_id in newest
    ]


def _place_of(cursor: str) -> _Place | None:
    """The place that a cursor names, None for no cursor. Raises InvalidInput."""
    if not cursor:
        return None
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidInput("The cursor is none that the list of subjects gave: begin without one.")
    return _Place(_BEGINNING + timedelta(microseconds=int(found["microseconds"])), int(found["subject"]))


def _page(
    rows: QuerySet[SubjectActivity], *, after: _Place | None, before: _Place | None, offset: int, limit: int
) -> list[SubjectActivity]:
    """The rows of one page in the order of the list, read from an index alone, however late the page is."""
    if before is not None:
        keys = rows.filter(_ahead(before)).order_by("changed_at", "-subject_id")[:limit]
    elif after is not None:
        keys = rows.filter(_behind(after)).order_by("-changed_at", "subject_id")[:limit]
    else:
        keys = rows.order_by("-changed_at", "subject_id")[offset : offset + limit]
    return _of(keys.values("subject_id"))


def _first_page(rows: QuerySet[SubjectActivity], limit: int) -> tuple[list[SubjectActivity], int]:
    """The first rows, and how many there are, of rows that are found by reading all names: they are read once."""
    ordered = rows.order_by("-changed_at", "subject_id").annotate(whole=Window(Count("pk")))
    found = list(ordered.values_list("subject_id", "whole")[:limit])
    return _of([key for key, _ in found]), found[0][1] if found else 0


def _of(keys: Any) -> list[SubjectActivity]:
    rows = SubjectActivity.objects.filter(subject_id__in=keys).order_by("-changed_at", "subject_id")
    return list(rows.select_related("subject__context"))


def _behind(place: _Place) -> Q:
    """What comes after a place; the first condition is the one that an index can begin at."""
    later = Q(changed_at__lt=place.changed_at) | Q(subject_id__gt=place.subject)
    return Q(changed_at__lte=place.changed_at) & later


def _ahead(place: _Place) -> Q:
    """What comes before a place."""
    earlier = Q(changed_at__gt=place.changed_at) | Q(subject_id__lt=place.subject)
    return Q(changed_at__gte=place.changed_at) & earlier


def _counted(rows: QuerySet[SubjectActivity], edge: _Place | None) -> tuple[int, int]:
    """How many there are, and how many of them before the edge; all where there is none."""
    if edge is None:
        total = rows.count()
        return total, total
    found = rows.aggregate(total=Count("pk"), skipped=Count("pk", filter=_ahead(edge)))
    return found["total"], found["skipped"]


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


def narrowed(rows: Rows, registry: Registry, given: Narrowing, *, at: str) -> Rows:
    """The rows that the filters leave; `at` is how they get to the subject, "" for subjects themselves."""
    key = at.removesuffix("__") or "pk"
    for word in given.text.split():
        rows = rows.filter(**{f"{at}name__icontains": word})
    if given.schema_type:
        of_type = SchemaVersion.objects.filter(subject=OuterRef(key), schema__schema_type=given.schema_type)
        rows = rows.filter(Exists(of_type))
    if given.level:
        rows = rows.filter(_of_level(registry, given.level, at))
    if given.tag:
        rows = rows.filter(Exists(tagged(given.tag).filter(subject=OuterRef(key))))
    if given.owned is not None:
        rows = rows.filter(_fits(registry, given.owned, at))
    if given.unowned is not None:
        rows = rows.filter(~_fits(registry, given.unowned, at))
    if given.standing:
        stands = VersionStanding.objects.filter(standing=given.standing, version__deleted_at=None)
        rows = rows.filter(**{f"{key}__in": stands.values("version__subject")})
    return rows if given.among is None else rows.filter(_among(given.among, at))


def _of_level(registry: Registry, level: str, at: str) -> Q:
    own = Config.objects.filter(registry=registry, context=OuterRef(f"{at}context"), subject_name=OuterRef(f"{at}name"))
    base = Config.objects.filter(registry=registry, context=None).values_list("compatibility_level", flat=True).first()
    wanted = Q(Exists(own.filter(compatibility_level=level)))
    has_own = Exists(own.filter(compatibility_level__isnull=False))
    return wanted | ~Q(has_own) if (base or DEFAULT_LEVEL) == level else wanted


def _among(names: Collection[SubjectName], at: str) -> Q:
    """The subjects of these names: as many conditions as there are contexts among them."""
    by_context: dict[str, set[str]] = {}
    for name in names:
        by_context.setdefault(name.context, set()).add(name.subject)
    wanted = Q(pk__in=())
    for context, subjects in by_context.items():
        wanted |= Q(**{f"{at}context__name": context, f"{at}name__in": subjects})
    return wanted


def _fits(registry: Registry, patterns: Collection[str], at: str) -> Q:
    """Whether one of the patterns fits the qualified name, told by the database where it reads them as shells do."""
    if not patterns:
        return Q(pk__in=())
    if "*" in patterns:
        return ~Q(pk__in=())
    if any("[" in pattern for pattern in patterns):  # a set of characters, which PostgreSQL reads otherwise
        return Q(**{f"{at.removesuffix('__') or 'pk'}__in": _fitting(registry, patterns)})
    qualified = Case(
        When(**{f"{at}context__name": DEFAULT_CONTEXT}, then=F(f"{at}name")),
        default=Concat(Value(":"), f"{at}context__name", Value(":"), f"{at}name", output_field=TextField()),
        output_field=TextField(),
    )
    expression = "|".join(sorted({_as_expression(pattern) for pattern in patterns}))
    return Q(Regex(qualified, Value(f"^({expression})$")))


def _as_expression(pattern: str) -> str:
    """A shell pattern without sets of characters as one of PostgreSQL's regular expressions."""
    return "".join(_WILD.get(sign) or (f"\\{sign}" if sign in _SIGNS else sign) for sign in pattern)


def _newest_versions(subject_pks: list[int], *, deleted: bool) -> dict[int, SchemaVersion]:
    rows = (
        SchemaVersion.objects.filter(subject_id__in=subject_pks, deleted_at__isnull=not deleted)
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
        changed_at=newest.deleted_at or newest.created_at,
        changed_by="" if newest.deleted_at else newest.created_by,
        deleted=newest.deleted_at is not None,
    )

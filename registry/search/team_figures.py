"""What the subjects of each owner have and lack: a description, an owner, a channel, docs of fields; today and by day.

One query counts all owners of a registry. A field is documented if it has a doc or a business term.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from datetime import UTC, date, timedelta
from typing import Any, Final

from django.db.models import F
from django.utils import timezone

from registry.access.name_patterns import name_pattern
from registry.access.permission_filters import READ, require_extent
from registry.access.roles import Actor, system_actor
from registry.access.selectors import Ownerships, ownerships_in
from registry.errors import InvalidInput
from registry.search.models import TeamFigure
from registry.search.selectors.conditions import TookTooLong, in_time, rows_of
from registry.subjects.models import Registry, Subject
from registry.subjects.models.registries import qualified
from registry.subjects.versions.lookup import get_registry

logger = logging.getLogger(__name__)

#: the rows that are no owner's: a colon is in every owner's name
ALL_SUBJECTS, UNOWNED = "all", "unowned"
#: days of a trend, and days that are kept
DAYS: Final = 90
KEPT_DAYS: Final = 400
#: the database's time for a page, and for the figures that a task keeps
_SECONDS: Final = 10.0
_TASK_SECONDS: Final = 60.0
_SUMS: Final = (
    "count(*), count(*) FILTER (WHERE described), count(*) FILTER (WHERE has_owner), count(*) FILTER (WHERE has_channel),"
    " coalesce(sum(fields), 0)::bigint, coalesce(sum(documented), 0)::bigint"
)
_FIGURES: Final = f"""
WITH seen AS MATERIALIZED ({{subjects}}),
owned AS MATERIALIZED (
    SELECT DISTINCT seen.id, told.owner FROM seen
    JOIN unnest(%(likes)s::text[], %(liked)s::int[]) AS told(pattern, owner) ON seen.name LIKE told.pattern
),
documented AS (
    SELECT each.subject_id, count(*) AS fields FROM (
        SELECT f.subject_id FROM search_indexedfield f WHERE f.doc_id IS NOT NULL
        UNION ALL
        SELECT f.subject_id FROM subjects_fieldterm meant
        JOIN search_indexedfield f ON f.subject_id = meant.subject_id AND f.doc_id IS NULL
        JOIN search_searchterm name ON name.id = f.name_id
        JOIN search_searchterm parent ON parent.id = f.parent_id
        WHERE meant.path = concat_ws('.', nullif(parent.value, ''), nullif(name.value, ''))
    ) each GROUP BY 1
),
facts AS MATERIALIZED (
    SELECT seen.id, coalesce(note.doc, '') <> '' AS described, seen.id IN (SELECT id FROM owned) AS has_owner,
        coalesce(note.channel, '') <> ''
            OR seen.id IN (SELECT id FROM owned WHERE owner = ANY (%(talking)s::int[])) AS has_channel,
        coalesce(entry.field_count, 0) AS fields, coalesce(documented.fields, 0) AS documented
    FROM seen
    LEFT JOIN subjects_subjectnote note ON note.subject_id = seen.id
    LEFT JOIN search_indexedsubject entry ON entry.subject_id = seen.id
    LEFT JOIN documented ON documented.subject_id = seen.id
)
SELECT owned.owner, {_SUMS} FROM facts JOIN owned USING (id) GROUP BY 1
UNION ALL SELECT 0, {_SUMS} FROM facts
UNION ALL SELECT -1, {_SUMS} FROM facts WHERE NOT has_owner"""  # noqa: S608  of constants


@dataclass(frozen=True)
class OwnerFigures:
    """The numbers of an owner's subjects: with a description, an owner, a channel; of their fields, and those documented.

    `owner` is `group:NAME`, `user:NAME`, `all` or `unowned`.
    """

    owner: str
    subjects: int = 0
    described: int = 0
    owned: int = 0
    with_channel: int = 0
    fields: int = 0
    documented: int = 0


@dataclass(frozen=True)
class DayFigures(OwnerFigures):
    """The figures as a task kept them on a day."""

    day: date | None = None


def team_figures(registry: str, *, by: Actor) -> tuple[OwnerFigures, ...]:
    """Return the figures of all subjects that the actor may read, of those without an owner, and of each owner.

    Owners of none of them are left out for actors who may not read the whole registry. Raises NotSignedIn, NotAllowed,
    RegistryNotFound, and InvalidInput if counting takes too long.
    """
    is_whole = require_extent(by, READ, registry=registry).has_all_of(registry)
    rows = _counted(get_registry(registry), by, seconds=_SECONDS)
    return tuple(row for row in rows if is_whole or row.subjects or row.owner in (ALL_SUBJECTS, UNOWNED))


def days_of(registry: str, owner: str, *, by: Actor) -> tuple[DayFigures, ...]:
    """Return an owner's figures of the last days; none for actors who may not read the whole registry.

    Raises NotSignedIn, NotAllowed, RegistryNotFound.
    """
    if not require_extent(by, READ, registry=registry).has_all_of(registry):
        return ()
    rows = TeamFigure.objects.filter(registry_id=get_registry(registry).pk, owner=owner, day__gt=_today(-DAYS))
    return tuple(DayFigures(**row) for row in rows.order_by("day").values(*DayFigures.__dataclass_fields__))


def keep_figures() -> int:
    """Keep the figures of today for each registry that has none; return for how many."""
    today, by = _today(), system_actor("schedule")
    TeamFigure.objects.filter(day__lt=_today(-KEPT_DAYS)).delete()
    done = 0
    for registry in Registry.objects.exclude(pk__in=TeamFigure.objects.filter(day=today).values("registry_id")):
        try:
            rows = _counted(registry, by, seconds=_TASK_SECONDS)
        except InvalidInput as error:
            logger.warning("no figures of %s for %s: %s", registry.name, today, error.message)
            continue
        days = (TeamFigure(registry_id=registry.pk, day=today, **asdict(row)) for row in rows)
        TeamFigure.objects.bulk_create(days, ignore_conflicts=True)
        done += 1
    return done


def _counted(registry: Registry, by: Actor, *, seconds: float) -> list[OwnerFigures]:
    """Return the figures: of all, of those without an owner, and by owner."""
    owners = ownerships_in(registry.name)
    names = [ALL_SUBJECTS, *(f"{kind}:{name}" for kind, name in owners.names)]
    sql, parameters = _subjects(registry, by)
    try:
        with in_time(seconds):
            counted = rows_of(_FIGURES.format(subjects=sql), parameters | _patterns(owners))
    except TookTooLong:
        raise InvalidInput("There are too many subjects and owners to count in time.") from None
    figures = {number: values for number, *values in counted}
    rows = {-1: UNOWNED, **dict(enumerate(names))}
    return [OwnerFigures(rows[number], *figures.get(number, ())) for number in (0, -1, *range(1, len(names)))]


def _patterns(owners: Ownerships) -> dict[str, Any]:
    """Return the owners' patterns with their numbers, from 1, and the numbers of those with a channel."""
    pairs = [
        (pattern.like, number)
        for number, owner in enumerate(owners.names, 1)
        for pattern in map(name_pattern, owners.patterns_of(*owner))
        if not pattern.is_void
    ]
    talking = [
        number for number, (kind, name) in enumerate(owners.names, 1) if kind == "group" and name in owners.channels
    ]
    return {"likes": [like for like, _ in pairs], "liked": [number for _, number in pairs], "talking": talking}


def _subjects(registry: Registry, by: Actor) -> tuple[str, dict[str, Any]]:
    """Return the query of the ids and names of the live subjects that the actor may read, and its parameters."""
    live = Subject.objects.filter(context__registry=registry, activity__isnull=False).visible_to(by)
    rows = live.order_by().values_list("pk", qualified(F("context__name"), F("name")))
    sql, values = rows.query.sql_with_params()
    keys = [f"s{number}" for number in range(len(values))]
    parameters = dict(zip(keys, values, strict=True))
    return f"SELECT * FROM ({sql % tuple(f'%({key})s' for key in keys)}) AS live(id, name)", parameters  # noqa: S608


def _today(days: int = 0) -> date:
    return timezone.now().astimezone(UTC).date() + timedelta(days=days)

"""The list of subjects with all its filters, and the problems of subjects, worst first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q

from registry.access.name_patterns import any_allows
from registry.access.permission_filters import WHOLE, Extent
from registry.access.selectors import Ownerships, ownerships_in
from registry.drift.selectors import open_findings_by_subject
from registry.drift.usage.unused_subjects import needed_subjects
from registry.errors import InvalidInput
from registry.promotions.requests.linked_requests import pending_subjects
from registry.promotions.selectors import list_environments
from registry.search.list_query import ListQuery, list_query_of
from registry.search.selectors.conditions import TookTooLong, in_time
from registry.subjects.listing import ranked_list
from registry.subjects.listing.filters import (
    Condition,
    SubjectNarrowing,
    has_own_level,
    is_referred_to,
    numbered,
    of_level,
    of_mode,
    readable,
    refers,
)
from registry.subjects.models import MODES, SubjectActivity, SubjectNote, VersionStatus
from registry.subjects.selectors import SubjectRow, SubjectRows, subject_rows
from registry.subjects.versions.lookup import Registry, among, fits
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: problems of a subject: open drift; an open request that breaks or fails a check; no compatibility checks in
#: production; no owner
OPEN_DRIFT, REQUEST, UNCHECKED, NO_OWNER = "drift", "request", "unchecked", "unowned"
WORST_FIRST: Final = (OPEN_DRIFT, REQUEST, UNCHECKED, NO_OWNER)
NO_CHECKS: Final = "NONE"


@dataclass(frozen=True)
class HealthData:
    """The data behind the problems of a registry's subjects: findings, open requests and owners."""

    registry: Registry
    findings: Mapping[str, int]
    pending: Mapping[SubjectName, bool]
    is_production: bool
    owners: Ownerships

    @cached_property
    def troubled(self) -> frozenset[SubjectName]:
        """The subjects of open requests that are breaking or have a failing check."""
        return frozenset(name for name, fails in self.pending.items() if fails)

    @cached_property
    def owned(self) -> tuple[str, ...]:
        """The patterns of all ownerships."""
        return self.owners.patterns

    def of(self, row: SubjectRow) -> tuple[str, ...]:
        """Return the problems of a subject, worst first; empty if it has none."""
        name = row.subject.qualified
        problems = {
            OPEN_DRIFT: name in self.findings,
            REQUEST: row.subject in self.troubled,
            UNCHECKED: self.is_production and row.level == NO_CHECKS,
            NO_OWNER: not any_allows(self.owned, name),
        }
        return tuple(sign for sign in WORST_FIRST if problems[sign])

    def subjects_that_need(self, attention: str) -> list[SubjectName] | None:
        """Return the subjects with open findings or an open request; None for other kinds of attention."""
        if attention == DRIFT:
            return [parse_subject(name) for name in self.findings]
        return list(self.pending) if attention == PENDING else None

    def tiers(self, *, since: datetime | None = None) -> list[Q]:
        """Return the conditions of the problems, in that order; only subjects changed `since` are checked for owners.

        Without `since`, all are.
        """
        registry, at = self.registry, "subject__"
        nobody = Q(pk__in=())
        recent = Q() if since is None else Q(changed_at__gte=since)
        conditions = {
            OPEN_DRIFT: among([parse_subject(name) for name in self.findings], at),
            REQUEST: among(self.troubled, at),
            UNCHECKED: of_level(registry, NO_CHECKS, at) if self.is_production else nobody,
            NO_OWNER: recent & ~fits(registry, self.owned, at),
        }
        return [conditions[sign] for sign in WORST_FIRST]


def read_health(registry: Registry, order: list[str] | None = None) -> HealthData:
    """Read the data behind the problems of its subjects.

    Four queries, one less with the environments' names in `order`.
    """
    order = list_environments() if order is None else order
    return HealthData(
        registry=registry,
        findings=open_findings_by_subject(registry.name),
        pending=pending_subjects(),
        is_production=len(order) > 1 and order[-1] == registry.name,
        owners=ownerships_in(registry.name),
    )


DELETED: Final = "deleted"
BY_NAME, BY_CHANGE, BY_VERSIONS = "name", "changed", "versions"
DRIFT, PENDING, UNOWNED = "drift", "pending", "unowned"
OWN, INHERITED = "own", "inherited"
REFERS, REFERRED = "refers", "referred"
UNUSED: Final = "unused"
DESCRIPTION, CHANNEL = "description", "channel"
#: limits of looking for subjects without an owner: subjects, last changed first, and matches with patterns in all
MAX_SCANNED: Final = 10_000
MAX_PATTERN_MATCHES: Final = 100_000
_COLUMNS: Final = {BY_CHANGE: ranked_list.CHANGED_AT, BY_VERSIONS: ranked_list.LIVE_VERSIONS}
#: the database's time for each statement of a list if each subject's fields must be checked
_SECONDS: Final = 1.0
#: filter → its values
VALUES: Final = {
    "state": (*VersionStatus.STATUSES, DELETED),
    "attention": (DRIFT, PENDING, UNOWNED),
    "mode": MODES,
    "level_from": (OWN, INHERITED),
    "references": (REFERS, REFERRED),
    "use": (UNUSED,),
    "lacks": (DESCRIPTION, CHANNEL),
    "sort": (BY_NAME, BY_CHANGE, BY_VERSIONS),
}


@dataclass(frozen=True)
class SubjectFilter:
    """Which subjects to list; empty means all.

    `text` has words of the name, and operators of the search (`field:email`; see `registry.search.query`). `owner` is
    `user:NAME` or `group:NAME`; `state` the status of a live version, or `deleted` for subjects with only soft-deleted
    versions; `attention` is `drift` (open findings), `pending` (an open request) or `unowned`. `mode` is the effective
    one; `level_from` says whether the level is the subject's `own` or `inherited`; `references` whether a live version
    `refers` to another schema or the subject is `referred` to by another; `use` is `unused` for subjects that nothing
    is known to need, which are none if no topic was scanned; `lacks` is `description` or `channel`, of which a subject
    has its own or its owners'.

    What needs attention most comes first, unless `sort` is `name`, `changed` (last change first) or `versions` (most
    first). Deleted subjects are always sorted by name. `readable` is what of the registry the reader may read, without
    the registry's name.
    """

    text: str = ""
    format: str = ""
    level: str = ""
    tag: str = ""
    owner: str = ""
    state: str = ""
    attention: str = ""
    mode: str = ""
    level_from: str = ""
    references: str = ""
    use: str = ""
    lacks: str = ""
    readable: Extent = WHOLE
    sort: str = ""


@dataclass(frozen=True)
class Page:
    """A page of a list, by the cursor of the page before or after it."""

    after: str = ""
    before: str = ""
    limit: int = 50


def find_subjects(
    registry: Registry,
    chosen: SubjectFilter,
    page: Page,
    *,
    signs: HealthData | None = None,
    total: int | None = None,
    list_query: ListQuery | None = None,
) -> SubjectRows:
    """Return a page of the list, in a constant number of queries.

    Callers that have them already pass `signs`, the `total` that the filters leave, and the parsed text as
    `list_query`. Raises InvalidInput for an invalid filter value or cursor and for a text that can't be answered,
    InvalidName.
    """
    for name, values in VALUES.items():
        value = getattr(chosen, name)
        if value and value not in values:
            raise InvalidInput(f"{value[:40]!r} is not a valid {name} of subjects. Use one of {', '.join(values)}.")
    list_query = list_query or list_query_of(registry, chosen.text)
    if not list_query.is_wide:
        return _read(registry, chosen, page, list_query, signs=signs, total=total)
    try:
        with in_time(_SECONDS):
            return _read(registry, chosen, page, list_query, signs=signs, total=total)
    except TookTooLong:
        raise InvalidInput(
            "There are too many matches to apply the filters in time. Enter a longer text, or use the search over "
            "everything."
        ) from None


def _read(
    registry: Registry,
    chosen: SubjectFilter,
    page: Page,
    query: ListQuery,
    *,
    signs: HealthData | None,
    total: int | None,
) -> SubjectRows:
    narrowing, deleted = narrowing_of(registry, chosen, query, signs), chosen.state == DELETED
    edges: dict[str, Any] = {"after": page.after, "before": page.before, "limit": page.limit}
    if deleted or chosen.sort == BY_NAME:
        edges |= {"total": total, "is_counted": not query.is_wide}
        return ranked_list.subject_rows_by_name(registry, narrowing, deleted=deleted, **edges)
    if chosen.sort == BY_CHANGE and not query.is_indexed:
        return subject_rows(registry, narrowing, **edges)
    few_keys = ranked_list.few_subject_keys(registry, narrowing)
    if few_keys is not None:
        narrowing, total = SubjectNarrowing(keys=few_keys), len(few_keys)
    edges |= {"total": total, "is_counted": not query.is_wide}
    if chosen.sort in _COLUMNS:
        return ranked_list.subject_rows_in_tiers(registry, narrowing, column=_COLUMNS[chosen.sort], **edges)
    signs = signs or read_health(registry)
    looked = min(MAX_SCANNED, MAX_PATTERN_MATCHES // max(1, len(signs.owned)))
    since = _newest(registry, looked) if signs.owned and few_keys is None else None
    rows = ranked_list.subject_rows_in_tiers(registry, narrowing, tiers=signs.tiers(since=since), **edges)
    return replace(rows, looked=looked if since else None)


def _newest(registry: Registry, number: int) -> datetime | None:
    """Return the time of the change at an index, last change first; None if there are fewer."""
    rows = SubjectActivity.objects.filter(registry_id=registry.pk).order_by("-changed_at", "subject_id")
    return rows.values_list("changed_at", flat=True)[number : number + 1].first()


def narrowing_of(
    registry: Registry, chosen: SubjectFilter, list_query: ListQuery | None = None, signs: HealthData | None = None
) -> SubjectNarrowing:
    """Translate the filters, except the one for soft-deleted subjects, which are another list.

    Raises InvalidInput as `list_query_of` does.
    """
    kind, _, name = chosen.owner.partition(":")
    if chosen.owner or chosen.attention:
        signs = signs or read_health(registry, [])
    list_query = list_query or list_query_of(registry, chosen.text)
    return SubjectNarrowing(
        text=list_query.name_part,
        schema_type=chosen.format,
        level=chosen.level,
        tag=chosen.tag,
        owned=signs.owners.patterns_of(kind, name) if signs and chosen.owner else None,
        unowned=signs.owned if signs and chosen.attention == UNOWNED else None,
        status="" if chosen.state == DELETED else chosen.state,
        among=signs.subjects_that_need(chosen.attention) if signs else None,
        also={
            **{f"text {number}": condition for number, condition in enumerate(list_query.conditions)},
            **_also(registry, chosen),
        },
        is_sought=bool(
            list_query.is_indexed or chosen.references or chosen.level_from == OWN or chosen.readable != WHOLE
        )
        and not list_query.is_wide,
    )


def _also(registry: Registry, chosen: SubjectFilter) -> dict[str, Condition]:
    """Return the conditions of the filters that query other tables, by their names."""
    conditions: dict[str, Condition] = {}
    if chosen.readable != WHOLE:
        conditions["readable"] = lambda at: readable(registry, chosen.readable, at)
    if chosen.mode:
        conditions["mode"] = lambda at: of_mode(registry, chosen.mode, at)
    if chosen.level_from == OWN:
        conditions["level_from"] = lambda at: has_own_level(registry, at)
    elif chosen.level_from:
        conditions["level_from"] = lambda at: ~has_own_level(registry, at)
    if chosen.references:
        conditions["references"] = refers if chosen.references == REFERS else is_referred_to
    if chosen.lacks == DESCRIPTION:
        conditions["lacks"] = lambda at: Q(~_noted("doc", at))
    elif chosen.lacks == CHANNEL:
        patterns = ownerships_in(registry.name).patterns_with_channel
        conditions["lacks"] = lambda at: Q(~_noted("channel", at)) & ~fits(registry, patterns, at)
    if chosen.use == UNUSED:
        needed = needed_subjects(registry)
        conditions["use"] = lambda at: Q(pk__in=()) if needed is None else ~numbered(needed, at)
    return conditions


def _noted(column: str, at: str) -> Exists:
    """Return the condition that a subject's note has a text in the column."""
    notes = SubjectNote.objects.filter(subject=OuterRef(at.removesuffix("__") or "pk"))
    return Exists(notes.exclude(**{column: ""}))

"""The filters of the list of subjects: labels, names in the URL, and the number of subjects for each value.

Counts that are the same for everybody are cached in Valkey for a minute; without Valkey they are computed each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Final, TypeVar

from django.core.cache import cache
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from redis.exceptions import RedisError

from dashboard.components.badges import format_name
from dashboard.components.links import form_text, subjects_url, with_query
from dashboard.components.tables import ListFilter, active_filters
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Filter, SearchBox
from dashboard.subjects.descriptions import owner_choices, tag_choices
from dashboard.subjects.presenters import SubjectNumbers
from registry.access.permission_filters import WHOLE, Extent
from registry.audit.time_travel import moment
from registry.formats import FORMATS
from registry.formats.compatibility import LEVELS
from registry.search import subject_list
from registry.search.facets import Facets, are_quick, facet_counts
from registry.search.list_query import ListQuery
from registry.subjects.lifecycle.notes import tag_counts
from registry.subjects.models import MODES
from registry.subjects.versions.lookup import Registry

T = TypeVar("T")
KEPT_SECONDS: Final = 60


def cached(what: str, read: Callable[[], T]) -> tuple[T, datetime]:
    """Return the result of `read`, cached, and the time of the reading.

    `what` names the result and everything that it depends on except the moment of the past. Results are plain values
    because another release may read them.
    """
    key = f"kept:{sha256(f'{moment()} {what}'.encode()).hexdigest()}"
    try:
        cached: tuple[T, datetime] | None = cache.get(key)
    except (RedisError, OSError):
        return read(), timezone.now()
    if cached is None:
        cached = read(), timezone.now()
        try:
            cache.set(key, cached, KEPT_SECONDS)
        except (RedisError, OSError):
            return cached
    return cached


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectListFilter(ListFilter):
    """A filter of the list; rarer ones are in a collapsed group. Counts of `untold` values can be unknown."""

    is_rarer: bool = False
    untold: tuple[str, ...] = ()


#: in the order of their selects; lengths are limited as in the API: each word costs database time
FILTERS: Final = {
    item.name: item
    for item in (
        SubjectListFilter(name="q", chip=_("text"), longest=1_300),
        SubjectListFilter(
            name="format",
            chip=_("format"),
            label=_("Format"),
            values={"": _("Any format"), **{name: format_name(name) for name in sorted(FORMATS)}},
        ),
        SubjectListFilter(
            name="level",
            chip=_("level"),
            label=_("Compatibility"),
            values={"": _("Any level"), **{name: name for name in LEVELS}},
        ),
        SubjectListFilter(
            name="level_from",
            chip=_("level"),
            label=_("Source of the level"),
            values={
                "": _("Own or inherited level"),
                subject_list.OWN: _("Own level"),
                subject_list.INHERITED: _("Inherited level"),
            },
            is_rarer=True,
        ),
        SubjectListFilter(
            name="mode",
            chip=_("mode"),
            label=_("Mode"),
            values={"": _("Any mode"), **{mode: mode for mode in MODES}},
            is_rarer=True,
        ),
        SubjectListFilter(
            name="state",
            chip=_("state"),
            label=_("State"),
            values={
                "": _("Any state"),
                "deprecated": _("Deprecated"),
                "retired": _("Retired"),
                "quarantined": _("Quarantined"),
                subject_list.DELETED: _("Soft-deleted"),
            },
        ),
        SubjectListFilter(
            name="attention",
            chip=_("attention"),
            label=_("Needs attention"),
            values={
                "": _("Any findings or requests"),
                subject_list.DRIFT: _("Open drift findings"),
                subject_list.PENDING: _("Open request"),
                subject_list.UNOWNED: _("No owner"),
            },
            untold=(subject_list.UNOWNED, subject_list.DRIFT),
        ),
        SubjectListFilter(
            name="references",
            chip=_("references"),
            label=_("References"),
            values={
                "": _("With or without references"),
                subject_list.REFERS: _("Refers to others"),
                subject_list.REFERRED: _("Referred to by others"),
            },
            is_rarer=True,
        ),
        SubjectListFilter(
            name="use",
            chip=_("use"),
            label=_("Use"),
            values={"": _("Used or unused"), subject_list.UNUSED: _("Unused")},
            is_rarer=True,
            untold=(subject_list.UNUSED,),
        ),
        SubjectListFilter(
            name="lacks",
            chip=_("lacks"),
            label=_("Lacks"),
            values={
                "": _("With or without a description"),
                subject_list.DESCRIPTION: _("No description"),
                subject_list.CHANNEL: _("No channel"),
            },
            is_rarer=True,
        ),
        SubjectListFilter(name="tag", chip=_("tag"), label=_("Tag"), longest=64),
        SubjectListFilter(name="owner", chip=_("owner"), label=_("Owner"), longest=160),
        SubjectListFilter(
            name="sort",
            chip=_("order"),
            label=_("Order"),
            values={
                "": _("Needs attention first"),
                subject_list.BY_CHANGE: _("Last change first"),
                subject_list.BY_NAME: _("By name"),
                subject_list.BY_VERSIONS: _("Most versions first"),
            },
        ),
    )
}
#: filters that accept any value: an unknown format or level finds nothing
_FREE: Final = ("format", "level")
MAX_VALUE: Final = 40


#: time limit of the database for all counts; later counts are omitted
COUNTING_SECONDS: Final = 2.0
#: parameter that requests the counts with the page, however long they take
COUNTS: Final = "counts"
#: name in the URL → name in the selector
_THEIRS: Final = {"q": "text"}


@dataclass(frozen=True, slots=True)
class SubjectFilters:
    """The filters in the URL, whether the page must include the counts, and what the reader may read."""

    values: Mapping[str, str]
    counts: bool
    readable: Extent

    @classmethod
    def of(cls, request: HttpRequest, readable: Extent) -> SubjectFilters:
        """Read the filters from the URL. Raises InvalidInput for a value that a filter doesn't have."""
        values = {name: FILTERS[name].value_in(request.GET) for name in FILTERS if name not in _FREE}
        values |= {name: form_text(request.GET, name)[:MAX_VALUE] for name in _FREE}
        return cls(values, COUNTS in request.GET, readable)

    @property
    def subject_filter(self) -> subject_list.SubjectFilter:
        """The same filters for the selector."""
        named = {_THEIRS.get(name, name): value for name, value in self.values.items()}
        return subject_list.SubjectFilter(**named, readable=self.readable)


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts and their time; None if nothing is counted yet."""

    facets: Facets
    at: datetime | None = None

    @property
    def with_page(self) -> bool:
        """Whether the counts were made with this page."""
        return self.facets.total is not None and self.at is None

    @property
    def is_later(self) -> bool:
        """Whether the counts are still to be made."""
        return self.facets.total is None and self.at is None


def counted_with_page(
    registry: Registry, chosen: SubjectFilters, signs: subject_list.HealthData, query: ListQuery
) -> Counted:
    """Return the counts to include in the page: new ones if that is quick, cached ones if the URL requests them."""
    if chosen.counts:
        return counted_in_time(registry, chosen, signs)
    is_quick = not query.is_wide and are_quick(registry, len(signs.owned))
    return Counted(facet_counts(registry, chosen.subject_filter, signs=signs) if is_quick else Facets())


def counted_in_time(registry: Registry, chosen: SubjectFilters, signs: subject_list.HealthData) -> Counted:
    """Return counts at most a minute old. A timeout is cached too, so that not everybody repeats it."""

    def count() -> tuple[int | None, dict[str, dict[str, int]]]:
        facets = facet_counts(registry, chosen.subject_filter, signs=signs, seconds=COUNTING_SECONDS)
        return facets.total, {name: dict(counts) for name, counts in facets.counts.items()}

    key = json.dumps(astuple(chosen.subject_filter)[:-1])  # without the order, which doesn't affect counts
    (total, counts), at = cached(f"numbers:{registry.pk}:{key}", count)
    return Counted(Facets(total, counts), at)


def numbers_part(
    registry: Registry, chosen: SubjectFilters, counted: Counted, filters: Sequence[Filter]
) -> SubjectNumbers | None:
    """Return the counts, and the labels of `filters` on a page that has other counts; None if there are none."""
    has_none = chosen.values["state"] == subject_list.DELETED
    if has_none and not filters:
        return None
    url = with_query(subjects_url(registry.name), chosen.values)
    is_later = counted.is_later and not has_none
    return SubjectNumbers(
        url=url if is_later else "",
        count_url=with_query(subjects_url(registry.name), {**chosen.values, COUNTS: "1"}) if is_later else "",
        at=counted.at,
        is_there=counted.facets.total is not None,
        is_whole=counted.facets.is_whole,
        choices=tuple(choice for one in filters for choice in one.choices),
    )


def _tags(registry: Registry, *, at_once: bool) -> list[str]:
    """Return the registry's tags, most used first; those of a large registry are up to a minute old."""
    if at_once:
        return list(tag_counts(registry))
    tags, _ = cached(f"tags:{registry.pk}", lambda: tag_counts(registry))
    return list(tags)


def search_of(registry: Registry, chosen: Mapping[str, str], counted: Counted, filters: Sequence[Filter]) -> SearchBox:
    """Return the search box with its filters, and the active ones."""
    base = subjects_url(registry.name)
    return SearchBox(
        url=base,
        query=chosen["q"],
        label=gettext("Search subjects"),
        placeholder="orders field:email",
        filters=tuple(one for one in filters if not FILTERS[one.name].is_rarer),
        rarer=tuple(one for one in filters if FILTERS[one.name].is_rarer),
        active=active_filters(
            (item for name, item in FILTERS.items() if name != "sort"), chosen, lambda values: with_query(base, values)
        ),
        is_later=counted.is_later and chosen["state"] != subject_list.DELETED,
    )


def choice_id(name: str, value: str) -> str:
    """Return the HTML id of a filter's choice, valid for any value."""
    return f"{name}-{sha256(value.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def filters_of(chosen: SubjectFilters, counted: Counted, signs: subject_list.HealthData) -> tuple[Filter, ...]:
    """Return the filters with their counts."""
    return tuple(
        replace(one, choices=tuple(replace(choice, id=choice_id(one.name, choice.value)) for choice in one.choices))
        for one in _filters(chosen.values, counted, signs, is_whole=chosen.readable == WHOLE)
    )


def _filters(
    chosen: Mapping[str, str], counted: Counted, signs: subject_list.HealthData, *, is_whole: bool
) -> Iterator[Filter]:
    counts = dict(counted.facets.counts)
    if moment() and (attention := counts.get("attention")) is not None:
        # the past has no findings
        counts["attention"] = {value: number for value, number in attention.items() if value != subject_list.DRIFT}
    owners = signs.owners.names
    if is_whole:
        tags = _tags(signs.registry, at_once=counted.with_page)
    else:  # those of subjects that aren't readable aren't named
        tags, there = list(counts.get("tag") or ()), counts.get("owner") or {}
        owners = [(kind, name) for kind, name in owners if there.get(f"{kind}:{name}")]
    for name, item in FILTERS.items():
        if name == "tag":
            yield Filter(name=name, label=item.label, choices=tag_choices(tags, counts.get(name), chosen[name]))
        elif name == "owner":
            choices = owner_choices(owners, counts.get(name), chosen[name])
            yield Filter(name=name, label=item.label, choices=choices)
        elif item.label:
            yield item.select(chosen[name], count=partial(_count, counts.get(name), item.untold))


def _count(counts: Mapping[str, int] | None, untold: Collection[str], value: str) -> int | None:
    """Return the count of a value; None for soft-deleted subjects, another list, and for "any", the paging's total."""
    if counts is None or value in ("", subject_list.DELETED):
        return None
    return counts.get(value, None if value in untold else 0)

"""The filters of the list of subjects: labels, names in the address, and how many subjects each value leaves.

What everybody may see of them is cached for a minute in Valkey; without Valkey it is computed each time.
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
from dashboard.components.links import given_text, subjects_url, with_query
from dashboard.components.tables import ListFilter, active_filters
from dashboard.components.translation import later
from dashboard.components.widgets import Filter, SearchBox
from dashboard.subjects.descriptions import owner_choices, tag_choices
from dashboard.subjects.presenters import SubjectNumbers
from registry.audit.time_travel import moment
from registry.formats import FORMATS
from registry.formats.compatibility import LEVELS
from registry.search.facets import Facets, are_quick, facet_counts
from registry.search.list_query import ListQuery
from registry.search.subject_list import (
    BY_CHANGE,
    BY_NAME,
    BY_VERSIONS,
    DELETED,
    DRIFT,
    INHERITED,
    OWN,
    PENDING,
    REFERRED,
    REFERS,
    UNOWNED,
    UNUSED,
    Signs,
    SubjectFilter,
)
from registry.subjects.lifecycle.notes import tag_counts
from registry.subjects.models import MODES
from registry.subjects.versions.lookup import Registry

T = TypeVar("T")
KEPT_SECONDS: Final = 60


def cached(what: str, read: Callable[[], T]) -> tuple[T, datetime]:
    """What `read` gives, and when it was read. `what` names it with all that it depends on; of the past, beside the moment.

    Plain values alone: another release may read what this one wrote.
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
    """A filter of the list; a rarer one is in a fold below the others. Of its `untold` values no number may be known."""

    is_rarer: bool = False
    untold: tuple[str, ...] = ()


#: in the order of their selects; the longest texts are those that the API takes: each word costs the database
FILTERS: Final = {
    item.name: item
    for item in (
        SubjectListFilter(name="q", chip=later("text"), longest=1_300),
        SubjectListFilter(
            name="format",
            chip=later("format"),
            label=later("Format"),
            values={"": later("Any format"), **{name: format_name(name) for name in sorted(FORMATS)}},
        ),
        SubjectListFilter(
            name="level",
            chip=later("level"),
            label=later("Compatibility"),
            values={"": later("Any level"), **{name: name for name in LEVELS}},
        ),
        SubjectListFilter(
            name="level_from",
            chip=later("level"),
            label=later("Source of the level"),
            values={
                "": later("Own or inherited level"),
                OWN: later("Own level"),
                INHERITED: later("Inherited level"),
            },
            is_rarer=True,
        ),
        SubjectListFilter(
            name="mode",
            chip=later("mode"),
            label=later("Mode"),
            values={"": later("Any mode"), **{mode: mode for mode in MODES}},
            is_rarer=True,
        ),
        SubjectListFilter(
            name="state",
            chip=later("state"),
            label=later("State"),
            values={
                "": later("Any state"),
                "deprecated": later("Deprecated"),
                "retired": later("Retired"),
                "quarantined": later("Quarantined"),
                DELETED: later("Soft-deleted"),
            },
        ),
        SubjectListFilter(
            name="attention",
            chip=later("attention"),
            label=later("Needs attention"),
            values={
                "": later("Any findings or requests"),
                DRIFT: later("Open drift findings"),
                PENDING: later("Open request"),
                UNOWNED: later("No owner"),
            },
            untold=(UNOWNED, DRIFT),
        ),
        SubjectListFilter(
            name="references",
            chip=later("references"),
            label=later("References"),
            values={
                "": later("With or without references"),
                REFERS: later("Refers to others"),
                REFERRED: later("Referred to by others"),
            },
            is_rarer=True,
        ),
        SubjectListFilter(
            name="use",
            chip=later("use"),
            label=later("Use"),
            values={"": later("Used or unused"), UNUSED: later("Unused")},
            is_rarer=True,
            untold=(UNUSED,),
        ),
        SubjectListFilter(name="tag", chip=later("tag"), label=later("Tag"), longest=64),
        SubjectListFilter(name="owner", chip=later("owner"), label=later("Owner"), longest=160),
        SubjectListFilter(
            name="sort",
            chip=later("order"),
            label=later("Order"),
            values={
                "": later("Needs attention first"),
                BY_CHANGE: later("Last change first"),
                BY_NAME: later("By name"),
                BY_VERSIONS: later("Most versions first"),
            },
        ),
    )
}
#: those that take any value in an address: a format or a level that doesn't exist finds nothing
_FREE: Final = ("format", "level")
MAX_VALUE: Final = 40


#: the database's time for all numbers; what isn't counted by then isn't told
COUNTING_SECONDS: Final = 2.0
#: asks for the numbers with the page, however long they take
COUNTS: Final = "counts"
#: name in the address → as the selector has it
_THEIRS: Final = {"q": "text"}


@dataclass(frozen=True, slots=True)
class SubjectFilters:
    """What the address says: the value of each filter, and whether the numbers are to come with the page."""

    values: Mapping[str, str]
    counts: bool

    @classmethod
    def of(cls, request: HttpRequest) -> SubjectFilters:
        """The filters of an address. Raises InvalidInput for a value that a filter doesn't have."""
        values = {name: FILTERS[name].value_in(request.GET) for name in FILTERS if name not in _FREE}
        values |= {name: given_text(request.GET, name)[:MAX_VALUE] for name in _FREE}
        return cls(values, COUNTS in request.GET)

    @property
    def subject_filter(self) -> SubjectFilter:
        """The same as the selector has it."""
        return SubjectFilter(**{_THEIRS.get(name, name): value for name, value in self.values.items()})


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted, and when; None where nothing was yet."""

    facets: Facets
    at: datetime | None = None

    @property
    def with_page(self) -> bool:
        """Whether that was so quick that it is of this very moment."""
        return self.facets.total is not None and self.at is None

    @property
    def is_later(self) -> bool:
        """Whether it is yet to be counted."""
        return self.facets.total is None and self.at is None


def counted_with_page(registry: Registry, chosen: SubjectFilters, signs: Signs, query: ListQuery) -> Counted:
    """The numbers that the page has: all of them where that is quick, those that are kept where they are asked for."""
    if chosen.counts:
        return counted_in_time(registry, chosen, signs)
    is_quick = not query.is_wide and are_quick(registry, len(signs.owned))
    return Counted(facet_counts(registry, chosen.subject_filter, signs=signs) if is_quick else Facets())


def counted_in_time(registry: Registry, chosen: SubjectFilters, signs: Signs) -> Counted:
    """The numbers as they were at most a minute ago. That they take too long is kept too: it isn't tried for everybody."""

    def count() -> tuple[int | None, dict[str, dict[str, int]]]:
        facets = facet_counts(registry, chosen.subject_filter, signs=signs, seconds=COUNTING_SECONDS)
        return facets.total, {name: dict(counts) for name, counts in facets.counts.items()}

    key = json.dumps(astuple(chosen.subject_filter)[:-1])  # in any order as many
    (total, counts), at = cached(f"numbers:{registry.pk}:{key}", count)
    return Counted(Facets(total, counts), at)


def numbers_part(
    registry: Registry, chosen: SubjectFilters, counted: Counted, filters: Sequence[Filter]
) -> SubjectNumbers | None:
    """What is told of the numbers, and the words of the `filters` with them for a page that has others; None for nothing."""
    has_none = chosen.values["state"] == DELETED
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
    """The tags of the registry, most used first; of a large one those of at most a minute ago."""
    if at_once:
        return list(tag_counts(registry))
    tags, _ = cached(f"tags:{registry.pk}", lambda: tag_counts(registry))
    return list(tags)


def search_of(registry: Registry, chosen: Mapping[str, str], counted: Counted, filters: Sequence[Filter]) -> SearchBox:
    """The search box with its filters, and those in force."""
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
        is_later=counted.is_later and chosen["state"] != DELETED,
    )


def choice_id(name: str, value: str) -> str:
    """By which a choice of a filter is found on its page, whatever its value is."""
    return f"{name}-{sha256(value.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"


def filters_of(chosen: Mapping[str, str], counted: Counted, signs: Signs) -> tuple[Filter, ...]:
    """The filters with their numbers."""
    return tuple(
        replace(one, choices=tuple(replace(choice, id=choice_id(one.name, choice.value)) for choice in one.choices))
        for one in _filters(chosen, counted, signs)
    )


def _filters(chosen: Mapping[str, str], counted: Counted, signs: Signs) -> Iterator[Filter]:
    counts = dict(counted.facets.counts)
    if moment() and (attention := counts.get("attention")) is not None:
        # findings aren't part of the past
        counts["attention"] = {value: number for value, number in attention.items() if value != DRIFT}
    for name, item in FILTERS.items():
        if name == "tag":
            tags = _tags(signs.registry, at_once=counted.with_page)
            yield Filter(name=name, label=item.label, choices=tag_choices(tags, counts.get(name), chosen[name]))
        elif name == "owner":
            choices = owner_choices(signs.owners.names, counts.get(name), chosen[name])
            yield Filter(name=name, label=item.label, choices=choices)
        elif item.label:
            yield item.select(chosen[name], count=partial(_count, counts.get(name), item.untold))


def _count(counts: Mapping[str, int] | None, untold: Collection[str], value: str) -> int | None:
    """How many subjects a value leaves; soft-deleted ones are another list, and "any" is the paging's number."""
    if counts is None or value in ("", DELETED):
        return None
    return counts.get(value, None if value in untold else 0)

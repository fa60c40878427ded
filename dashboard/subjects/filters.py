"""The filters of the list of subjects: labels, names in the address, and how many subjects each value leaves.

What everybody may see of them is cached for a minute in Valkey; without Valkey it is computed each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final, TypeVar
from urllib.parse import urlencode

from django.core.cache import cache
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from redis.exceptions import RedisError

from dashboard.components.badges import format_name
from dashboard.components.links import chosen_value, given_text, subjects_url
from dashboard.components.translation import later
from dashboard.components.widgets import ActiveFilter, Choice, Filter, SearchBox
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


STATES: Final = {
    "": later("Any state"),
    "deprecated": later("Deprecated"),
    "retired": later("Retired"),
    "quarantined": later("Quarantined"),
    DELETED: later("Soft-deleted"),
}
ATTENTION: Final = {
    "": later("Any findings or requests"),
    DRIFT: later("Open drift findings"),
    PENDING: later("Open request"),
    UNOWNED: later("No owner"),
}
MODES_BY_NAME: Final = {"": later("Any mode"), **{mode: mode for mode in MODES}}
LEVELS_FROM: Final = {
    "": later("Own or inherited level"),
    OWN: later("Own level"),
    INHERITED: later("Inherited level"),
}
REFERENCES: Final = {
    "": later("With or without references"),
    REFERS: later("Refers to others"),
    REFERRED: later("Referred to by others"),
}
USES: Final = {"": later("Used or unused"), UNUSED: later("Unused")}
ORDERS: Final = {
    "": later("Needs attention first"),
    BY_CHANGE: later("Last change first"),
    BY_NAME: later("By name"),
    BY_VERSIONS: later("Most versions first"),
}
#: filters that have no other values
KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "level_from": LEVELS_FROM,
    "mode": MODES_BY_NAME,
    "state": STATES,
    "attention": ATTENTION,
    "references": REFERENCES,
    "use": USES,
    "sort": ORDERS,
}
#: name in the address → the name that a chip shows
NAMES: Final = {
    "q": later("text"),
    "format": later("format"),
    "level": later("level"),
    "level_from": later("level"),
    "mode": later("mode"),
    "state": later("state"),
    "attention": later("attention"),
    "references": later("references"),
    "use": later("use"),
    "tag": later("tag"),
    "owner": later("owner"),
    "sort": later("order"),
}
#: characters of a filter that an address may have, as the API takes them: each word costs the database
LONGEST: Final[Mapping[str, int]] = {"q": 1_300, "tag": 64, "owner": 160}
MAX_VALUE: Final = 40


#: the database's time for all numbers; what isn't counted by then isn't told
COUNTING_SECONDS: Final = 2.0
#: asks for the numbers with the page, however long they take
COUNTS: Final = "counts"
#: filters in a fold below the others
RARER: Final = ("level_from", "mode", "references", "use")
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
        values = {name: given_text(request.GET, name)[: LONGEST.get(name, MAX_VALUE)] for name in NAMES}
        checked = {name: chosen_value(request.GET, name, texts) for name, texts in KNOWN.items()}
        return cls({**values, **checked}, COUNTS in request.GET)

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
    active = tuple(
        ActiveFilter(
            label=f"{NAMES[name]}: {KNOWN.get(name, {}).get(value, value)}", url=with_query(base, {**chosen, name: ""})
        )
        for name, value in chosen.items()
        if value and name != "sort"
    )
    return SearchBox(
        url=base,
        query=chosen["q"],
        label=gettext("Search subjects"),
        placeholder="orders field:email",
        filters=tuple(one for one in filters if one.name not in RARER),
        rarer=tuple(one for one in filters if one.name in RARER),
        active=active,
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


def _filters(chosen: Mapping[str, str], counted: Counted, signs: Signs) -> tuple[Filter, ...]:
    counts = {name: counted.facets.counts.get(name) for name in NAMES}
    if moment() and (attention := counts["attention"]) is not None:
        # findings aren't part of the past
        counts["attention"] = {value: number for value, number in attention.items() if value != DRIFT}
    tags = _tags(signs.registry, at_once=counted.with_page)
    return (
        Filter(
            name="format",
            label=gettext("Format"),
            choices=_choices(sorted(FORMATS), chosen["format"], gettext("Any format"), counts["format"]),
        ),
        Filter(
            name="level",
            label=gettext("Compatibility"),
            choices=_choices(LEVELS, chosen["level"], gettext("Any level"), counts["level"]),
        ),
        *_own(chosen, counts, ("level_from", "mode", "state")),
        Filter(
            name="attention",
            label=gettext("Needs attention"),
            choices=_named_choices(ATTENTION, chosen["attention"], counts["attention"], untold=(UNOWNED, DRIFT)),
        ),
        *_own(chosen, counts, ("references", "use")),
        Filter(name="tag", label=gettext("Tag"), choices=tag_choices(tags, counts["tag"], chosen["tag"])),
        Filter(
            name="owner",
            label=gettext("Owner"),
            choices=owner_choices(signs.owners.names, counts["owner"], chosen["owner"]),
        ),
        Filter(name="sort", label=gettext("Order"), choices=_named_choices(ORDERS, chosen["sort"])),
    )


def _own(
    chosen: Mapping[str, str], counts: Mapping[str, Mapping[str, int] | None], names: Collection[str]
) -> tuple[Filter, ...]:
    """Filters with a few values of their own."""
    labels = {
        "level_from": gettext("Source of the level"),
        "mode": gettext("Mode"),
        "state": gettext("State"),
        "references": gettext("References"),
        "use": gettext("Use"),
    }
    untold = {"use": (UNUSED,)}
    return tuple(
        Filter(
            name=name,
            label=labels[name],
            choices=_named_choices(KNOWN[name], chosen[name], counts[name], untold=untold.get(name, ())),
        )
        for name in names
    )


def _named_choices(
    texts: Mapping[str, str], chosen: str, counts: Mapping[str, int] | None = None, untold: Collection[str] = ()
) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            value=value,
            label=str(word),
            selected=value == chosen,
            # soft-deleted ones are another list, and "any" is the paging's number
            count=None
            if counts is None or value in ("", DELETED)
            else counts.get(value, None if value in untold else 0),
        )
        for value, word in texts.items()
    )


def _choices(values: Iterable[str], chosen: str, any_word: str, counts: Mapping[str, int] | None) -> tuple[Choice, ...]:
    return (
        Choice(value="", label=any_word, selected=not chosen),
        *(
            Choice(
                value=name,
                label=format_name(name),
                selected=name == chosen,
                count=None if counts is None else counts.get(name, 0),
            )
            for name in values
        ),
    )


def with_query(base: str, query: Mapping[str, object]) -> str:
    """The address with what of the query isn't empty."""
    parameters = {name: value for name, value in query.items() if value}
    return f"{base}?{urlencode(parameters)}" if parameters else base

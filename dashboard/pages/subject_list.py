"""The list of subjects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url, subjects_url
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.notes import bulk_form, owner_chips, owner_choices, tag_chips, tag_choices
from dashboard.pages.sources_words import given_text
from dashboard.presenters.frame import ActiveFilter, Choice, Filter, Link, Paging, Search, Section
from dashboard.presenters.looks import SubjectHealth, format_name
from dashboard.presenters.subjects import (
    SubjectList,
    SubjectRow,
    VersionChip,
)
from dashboard.texts import counted, later
from registry.access.selectors import owners_of_many
from registry.drift.selectors.carried import NOTHING, Carried, carried_of
from registry.formats import FORMATS
from registry.formats.compatibility import LEVELS
from registry.promotions.selectors import list_environments, open_requests_of
from registry.search.facets import Facets, facet_counts
from registry.search.health import REQUEST, UNCHECKED, Signs, signs_of
from registry.search.subject_list import (
    BY_CHANGE,
    BY_NAME,
    BY_VERSIONS,
    DELETED,
    DRIFT,
    PENDING,
    UNOWNED,
    Page,
    SubjectFilter,
    find_subjects,
)
from registry.subjects import selectors
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.selectors.notes import notes_of
from registry.subjects.selectors.places import Registry, get_registry
from registry.subjects.selectors.remotes import mirror_of

PAGE_ROWS = 50
STATES: Final = {
    "": later("Any state"),
    "deprecated": later("Deprecated"),
    "retired": later("Retired"),
    "quarantined": later("Quarantined"),
    DELETED: later("Soft-deleted"),
}
ATTENTION: Final = {
    "": later("All"),
    DRIFT: later("With open drift"),
    PENDING: later("With an open request"),
    UNOWNED: later("Without an owner"),
}
ORDERS: Final = {
    "": later("Needs attention first"),
    BY_CHANGE: later("Last change first"),
    BY_NAME: later("By name"),
    BY_VERSIONS: later("Most versions first"),
}
#: what is wrong → the sentence that says so
_WHY: Final = {
    DRIFT: later("What was seen of it isn’t what is approved: findings are open."),
    REQUEST: later("An open request for it breaks something, or a check of it fails."),
    UNCHECKED: later("It is in production with compatibility NONE: nothing is checked."),
    UNOWNED: later("Nobody answers for it."),
}
#: name in the address → as the selector has it
_THEIRS: Final = {"q": "text"}
#: filters that have no other values
KNOWN: Final[Mapping[str, Mapping[str, str]]] = {"state": STATES, "attention": ATTENTION, "sort": ORDERS}
#: name in the address → the name that a chip shows
NAMES: Final = {
    "q": later("text"),
    "format": later("format"),
    "level": later("level"),
    "state": later("state"),
    "attention": later("attention"),
    "tag": later("tag"),
    "owner": later("owner"),
    "sort": later("order"),
}


def subject_list(request: HttpRequest, registry: str) -> SubjectList:
    """The page of a registry's subjects, filtered and paged by the query. Raises RegistryNotFound, InvalidInput."""
    place = get_registry(registry)
    chosen = {name: given_text(request.GET, name) for name in NAMES}
    for name, known in KNOWN.items():
        chosen[name] = chosen[name] if chosen[name] in known else ""
    wanted, base = (
        SubjectFilter(**{_THEIRS.get(name, name): value for name, value in chosen.items()}),
        subjects_url(registry),
    )
    facets, signs = facet_counts(place, wanted), signs_of(place)
    found = _found(request, place, wanted, facets, signs)
    return SubjectList(
        frame=make_frame(
            request, title=gettext("Subjects"), section=Section.SUBJECTS, registry=registry, mirror=mirror_of(place)
        ),
        registry=registry,
        search=_search(place, base, chosen, facets),
        rows=_rows(place, found.rows, signs),
        paging=_paging(base, chosen, found),
        add_command=f"curl -X POST -H 'Content-Type: application/json' {request.scheme}://{request.get_host()}"
        + ("" if registry == "dev" else f"/registries/{quote(registry)}")
        + '/subjects/orders-value/versions -d \'{"schema": "\\"string\\""}\'',
        bulk=bulk_form(page_actor(request), registry) if found.rows and chosen["state"] != DELETED else None,
        links=_links(registry, chosen["q"]),
    )


def _links(registry: str, query: str) -> tuple[Link, ...]:
    """Where the same words are looked for in everything, and lists that are made of subjects' lives."""
    base = subjects_url(registry)
    found = [
        Link(label=gettext("Subjects that nothing needs"), url=reverse("ui:orphans", args=[registry])),
        Link(label=gettext("Deprecated"), url=_with(base, {"state": "deprecated"})),
        Link(label=gettext("Soft-deleted"), url=_with(base, {"state": DELETED})),
    ]
    if query:
        words = gettext("Search everything for “%(query)s”") % {"query": query[:100]}
        found.insert(0, Link(label=words, url=f"{reverse('ui:search')}?{urlencode({'q': query})}"))
    return tuple(found)


def _found(
    request: HttpRequest, place: Registry, wanted: SubjectFilter, facets: Facets, signs: Signs
) -> selectors.SubjectRows:
    """The page that the address names; the first one where all that came after the place it names is gone."""
    # what the numbers tell already isn't looked for: that nobody lacks an owner takes all names to find out, too many in a
    # registry that is too large to be counted, where those without one stand among the others
    nobodys = not wanted.attention and (facets.total is None or facets.counts.get("attention", {}).get(UNOWNED) == 0)
    known: dict[str, Any] = {"signs": signs, "total": facets.total, "without": (UNOWNED,) if nobodys else ()}
    after, before = (request.GET.get(name, "").replace("\0", "") for name in ("after", "before"))
    found = find_subjects(place, wanted, Page(after, before, PAGE_ROWS), **known)
    return find_subjects(place, wanted, Page(limit=PAGE_ROWS), **known) if found.total and not found.rows else found


def _search(place: Registry, base: str, chosen: dict[str, str], facets: Facets) -> Search:
    counts = {name: facets.counts.get(name) for name in NAMES}
    filters = (
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
        Filter(name="state", label=gettext("State"), choices=_words(STATES, chosen["state"], counts["state"])),
        Filter(
            name="attention",
            label=gettext("Needs attention"),
            choices=_words(ATTENTION, chosen["attention"], counts["attention"], facets.unowned_beyond),
        ),
        Filter(name="tag", label=gettext("Tag"), choices=tag_choices(place, counts["tag"], chosen["tag"])),
        Filter(
            name="owner", label=gettext("Owner"), choices=owner_choices(place, counts["owner"] or {}, chosen["owner"])
        ),
        Filter(name="sort", label=gettext("Order"), choices=_words(ORDERS, chosen["sort"])),
    )
    active = tuple(
        ActiveFilter(
            label=f"{NAMES[name]}: {KNOWN.get(name, {}).get(value, value)}", url=_with(base, {**chosen, name: ""})
        )
        for name, value in chosen.items()
        if value and name != "sort"
    )
    return Search(
        url=base,
        query=chosen["q"],
        label=gettext("Search subjects"),
        placeholder="orders",
        filters=filters,
        active=active,
    )


#: what isn't counted in every registry: a number that isn't there isn't none
_UNTOLD: Final[Mapping[str, int | None]] = {UNOWNED: None}


def _words(
    words: Mapping[str, str], chosen: str, counts: Mapping[str, int] | None = None, unowned_beyond: bool = False
) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            value=value,
            label=str(word),
            selected=value == chosen,
            # soft-deleted ones are another list, and "any" is the paging's number
            count=None if counts is None or value in ("", DELETED) else counts.get(value, _UNTOLD.get(value, 0)),
            beyond=unowned_beyond and value == UNOWNED,
        )
        for value, word in words.items()
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


def _with(base: str, query: Mapping[str, object]) -> str:
    given = {name: value for name, value in query.items() if value}
    return f"{base}?{urlencode(given)}" if given else base


def _paging(base: str, chosen: dict[str, str], found: selectors.SubjectRows) -> Paging:
    """The pages before and after, with the same filters."""
    shown = len(found.rows)
    return Paging(
        first=found.skipped + 1 if shown else 0,
        last=found.skipped + shown,
        total=found.total,
        previous_url=_with(base, {**chosen, "before": found.before}) if found.before else "",
        next_url=_with(base, {**chosen, "after": found.after}) if found.after else "",
    )


def _rows(registry: Registry, rows: list[selectors.SubjectRow], signs: Signs) -> tuple[SubjectRow, ...]:
    order = list_environments()
    columns = order if registry.name in order else [registry.name]
    pending = open_requests_of([row.subject for row in rows])
    notes = notes_of(registry, [row.subject for row in rows])
    owners = owners_of_many(registry.name, [row.subject.qualified for row in rows])
    carried = carried_of(registry, [row.subject for row in rows])
    return tuple(
        replace(
            _row(registry.name, row, columns, order, signs, pending),
            tags=tag_chips(registry.name, notes[row.subject].tags) if row.subject in notes else (),
            owners=owner_chips(registry.name, owners[row.subject.qualified]),
            carriers=_carriers(carried.get(row.subject.qualified, NOTHING)),
            carriers_url=subject_url(registry.name, row.subject.qualified, "usage"),
            last_seen=carried.get(row.subject.qualified, NOTHING).last_seen,
        )
        for row in rows
    )


def _carriers(carried: Carried) -> str:
    topics = counted(carried.topics, "%(n)s topic", "%(n)s topics") if carried.topics else ""
    queries = counted(carried.queries, "%(n)s query", "%(n)s queries") if carried.queries else ""
    return ", ".join(filter(None, (topics, queries)))


def _findings_url(registry: str, name: str) -> str:
    return f"{reverse('ui:findings')}?{urlencode({'subject': name, 'registry': registry})}"


def _row(
    registry: str,
    row: selectors.SubjectRow,
    columns: list[str],
    order: list[str],
    signs: Signs,
    pending: dict[SubjectName, int],
) -> SubjectRow:
    name = row.subject.qualified
    newest = max(row.versions.values(), default=0)
    request = pending.get(row.subject)
    wrong = () if row.deleted else signs.of(row)
    return SubjectRow(
        name=row.subject.subject,
        qualified=name,
        context="" if row.subject.context == DEFAULT_CONTEXT else row.subject.context,
        url=subject_url(registry, name),
        format=format_name(row.schema_type),
        level=row.level,
        level_inherited=not row.level_is_own,
        versions=tuple(
            VersionChip(
                environment=environment_of(place, order),
                version=row.versions.get(place),
                behind=newest - row.versions[place] if place in row.versions else 0,
                url=subject_url(place, name) if place in row.versions else "",
            )
            for place in columns
        ),
        version_count=row.live_versions,
        open_findings=signs.findings.get(name, 0),
        findings_url=_findings_url(registry, name) if name in signs.findings else "",
        pending=gettext("request %(request)s") % {"request": request} if request else "",
        pending_url=reverse("ui:promotion", args=[request]) if request else "",
        changed_at=row.changed_at,
        changed_by=row.changed_by,
        deleted=row.deleted,
        health=None if row.deleted else SubjectHealth.of(wrong[0]) if wrong else SubjectHealth.GOOD,
        reasons=tuple(_WHY[sign] for sign in wrong) or (gettext("Nothing of it needs attention."),),
    )

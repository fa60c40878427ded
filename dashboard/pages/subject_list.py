"""The list of subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url, subjects_url
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.notes import bulk_form, owner_chips, tag_chips
from dashboard.pages.subject_filters import (
    Chosen,
    Counted,
    counted_in_time,
    counted_with_page,
    numbers_part,
    search_of,
    with_query,
)
from dashboard.presenters.frame import Link, Paging, Section
from dashboard.presenters.looks import SubjectHealth, format_name
from dashboard.presenters.subjects import (
    ColumnOrder,
    SubjectList,
    SubjectNumbers,
    SubjectRow,
    VersionChip,
)
from dashboard.texts import counted, later
from registry.access.extent import extent_of
from registry.access.roles import Actor, may
from registry.access.selectors import owners_of_many
from registry.drift.selectors.carried import NOTHING, Carried, carried_of
from registry.errors import InvalidInput
from registry.promotions.selectors import list_environments, open_requests_of
from registry.search.facets import Facets
from registry.search.health import REQUEST, UNCHECKED, Signs, signs_of
from registry.search.in_list import Asked, asked_of, has_operators
from registry.search.subject_list import (
    BY_CHANGE,
    BY_NAME,
    DELETED,
    DRIFT,
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
NOTHING_FOUND: Final = selectors.SubjectRows(rows=[], total=0, skipped=0, before="", after="")
READ: Final = "schema.read"
#: column → its order
_COLUMNS: Final = {"health": "", "name": BY_NAME, "changed": BY_CHANGE}
#: what is wrong → the sentence that says so
_WHY: Final = {
    DRIFT: later("What was seen of it isn’t what is approved: findings are open."),
    REQUEST: later("An open request for it breaks something, or a check of it fails."),
    UNCHECKED: later("It is in production with compatibility NONE: nothing is checked."),
    UNOWNED: later("Nobody answers for it."),
}


def subject_list(request: HttpRequest, registry: str) -> SubjectList:
    """The page of a registry's subjects, filtered and paged by the query. Raises RegistryNotFound, InvalidInput."""
    place = get_registry(registry)
    chosen, signs = Chosen.of(request), signs_of(place)
    try:
        asked = asked_of(place, chosen.values["q"])
        numbers = counted_with_page(place, chosen, len(signs.owned), asked)
        found, unanswered = _found(request, place, chosen.wanted, signs, numbers.facets.total, asked), ""
    except InvalidInput as problem:
        if not has_operators(chosen.values["q"]):
            raise
        numbers, found, unanswered = Counted(Facets(total=0)), NOTHING_FOUND, problem.message
    is_part = bool(getattr(request, "htmx", None))
    return SubjectList(
        frame=make_frame(
            request, title=gettext("Subjects"), section=Section.SUBJECTS, registry=registry, mirror=mirror_of(place)
        ),
        registry=registry,
        search=search_of(place, chosen.values, numbers),
        rows=_rows(place, found.rows, signs, page_actor(request)),
        paging=_paging(subjects_url(registry), chosen.values, found),
        add_command=f"curl -X POST -H 'Content-Type: application/json' {request.scheme}://{request.get_host()}"
        + ("" if registry == "dev" else f"/registries/{quote(registry)}")
        + '/subjects/orders-value/versions -d \'{"schema": "\\"string\\""}\'',
        bulk=bulk_form(page_actor(request), registry) if found.rows and chosen.values["state"] != DELETED else None,
        links=_links(registry, chosen.values["q"]),
        numbers=numbers_part(place, chosen, numbers, with_words=is_part),
        unowned=_unowned(subjects_url(registry), chosen.values, found),
        unanswered=unanswered,
        orders=_orders(subjects_url(registry), chosen.values),
    )


def subject_numbers(request: HttpRequest, registry: str) -> SubjectNumbers | None:
    """The numbers of the list that came without; None where nothing is counted. Raises RegistryNotFound, InvalidInput."""
    place, chosen = get_registry(registry), Chosen.of(request)
    return numbers_part(place, chosen, counted_in_time(place, chosen), with_words=True)


def _found(
    request: HttpRequest, place: Registry, wanted: SubjectFilter, signs: Signs, total: int | None, asked: Asked
) -> selectors.SubjectRows:
    """The page that the address names; the first one where all that came after the place it names is gone."""
    after, before = (request.GET.get(name, "").replace("\0", "") for name in ("after", "before"))
    known: dict[str, Any] = {"signs": signs, "total": total, "asked": asked}
    found = find_subjects(place, wanted, Page(after, before, PAGE_ROWS), **known)
    if (after or before) and not found.rows:
        return find_subjects(place, wanted, Page(limit=PAGE_ROWS), **known)
    return found


def _unowned(base: str, chosen: Mapping[str, str], found: selectors.SubjectRows) -> Link | None:
    """What is told, with the way to all of them, where not all without an owner come first."""
    if found.looked is None:
        return None
    words = gettext("Of those without an owner, the ones among the last %(looked)s that changed come first: see all")
    label = words % {"looked": f"{found.looked:,}"}
    return Link(label=label, url=with_query(base, {**chosen, "attention": UNOWNED}))


def _links(registry: str, query: str) -> tuple[Link, ...]:
    """Where the same words are looked for in everything, and lists that are made of subjects' lives."""
    base = subjects_url(registry)
    found = [
        Link(label=gettext("Subjects that nothing needs"), url=reverse("ui:orphans", args=[registry])),
        Link(label=gettext("Deprecated"), url=with_query(base, {"state": "deprecated"})),
        Link(label=gettext("Soft-deleted"), url=with_query(base, {"state": DELETED})),
    ]
    if query:
        words = gettext("Search everything for “%(query)s”") % {"query": query[:100]}
        found.insert(0, Link(label=words, url=f"{reverse('ui:search')}?{urlencode({'q': query})}"))
    return tuple(found)


def _orders(base: str, chosen: Mapping[str, str]) -> dict[str, ColumnOrder]:
    """The columns that an index has in order; soft-deleted subjects are by name always."""
    if chosen["state"] == DELETED:
        return {"name": ColumnOrder(url=with_query(base, chosen), is_on=True, is_up=True)}
    return {
        column: ColumnOrder(
            url=with_query(base, {**chosen, "sort": sort}), is_on=chosen["sort"] == sort, is_up=sort == BY_NAME
        )
        for column, sort in _COLUMNS.items()
    }


def _paging(base: str, chosen: Mapping[str, str], found: selectors.SubjectRows) -> Paging:
    """The pages before and after, with the same filters."""
    shown = len(found.rows)
    return Paging(
        first=found.skipped + 1 if shown else 0,
        last=found.skipped + shown,
        total=found.total,
        previous_url=with_query(base, {**chosen, "before": found.before}) if found.before else "",
        next_url=with_query(base, {**chosen, "after": found.after}) if found.after else "",
    )


def _rows(registry: Registry, rows: list[selectors.SubjectRow], signs: Signs, actor: Actor) -> tuple[SubjectRow, ...]:
    order, readable = list_environments(), extent_of(actor, READ)
    columns = [each for each in order if readable.has(each)] if registry.name in order else [registry.name]
    rows = [_as_read(row, actor) for row in rows]
    pending = open_requests_of([row.subject for row in rows], actor)
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


def _as_read(row: selectors.SubjectRow, actor: Actor) -> selectors.SubjectRow:
    """The row with the versions of those registries alone in which the reader may read the subject."""
    name = row.subject.qualified
    seen = {place: found for place, found in row.versions.items() if may(actor, READ, registry=place, subject=name)}
    return replace(row, versions=seen)


def _pending(request: int | None) -> str:
    """An open request in words: by its number for whoever may read it."""
    return gettext("request %(request)s") % {"request": request} if request else gettext("an open request")


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
    pending: dict[SubjectName, int | None],
) -> SubjectRow:
    name = row.subject.qualified
    newest = max(row.versions.values(), default=0)
    request, is_asked = pending.get(row.subject), row.subject in pending
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
        pending=_pending(request) if is_asked else "",
        pending_url=reverse("ui:promotion", args=[request]) if request else "",
        changed_at=row.changed_at,
        changed_by=row.changed_by,
        deleted=row.deleted,
        health=None if row.deleted else SubjectHealth.of(wrong[0]) if wrong else SubjectHealth.GOOD,
        reasons=tuple(_WHY[sign] for sign in wrong) or (gettext("Nothing of it needs attention."),),
    )

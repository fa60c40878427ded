"""The list of subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import subjects_url, with_query
from dashboard.components.tables import ColumnOrder, ListColumn, ListTable
from dashboard.components.widgets import Environment, Link, Paging, Section
from dashboard.subjects.bulk import bulk_form
from dashboard.subjects.descriptions import owner_chips, tag_chips
from dashboard.subjects.filters import (
    Counted,
    SubjectFilters,
    counted_in_time,
    counted_with_page,
    filters_of,
    numbers_part,
    search_of,
)
from dashboard.subjects.presenters import SubjectList, SubjectNumbers
from dashboard.subjects.tables import SubjectLine, columns
from registry.access.permission_filters import WHOLE, extent_of
from registry.access.roles import Actor, may
from registry.drift.usage.subject_topics import NOTHING, carriers_of
from registry.errors import InvalidInput
from registry.promotions.selectors import list_environments, open_requests_of
from registry.search.facets import Facets
from registry.search.list_query import ListQuery, has_operators, list_query_of
from registry.search.subject_list import DELETED, UNOWNED, HealthData, Page, SubjectFilter, find_subjects, read_health
from registry.subjects import selectors
from registry.subjects.lifecycle.notes import notes_of
from registry.subjects.permissions import Visible
from registry.subjects.policy.registries import mirror_of
from registry.subjects.versions.lookup import Registry, get_registry

PAGE_ROWS = 50
NOTHING_FOUND: Final = selectors.SubjectRows(rows=[], total=0, skipped=0, before="", after="")
READ: Final = "schema.read"


def subject_list(request: HttpRequest, registry: str) -> SubjectList:
    """Return the readable subjects of a registry, filtered and paged by the query.

    Raises RegistryNotFound, InvalidInput.
    """
    registry_row, actor = get_registry(registry), page_actor(request)
    readable = Visible(registry_row, actor).extent
    chosen, order = SubjectFilters.of(request, readable), list_environments()
    signs = read_health(registry_row, order)
    try:
        list_query = list_query_of(registry_row, chosen.values["q"])
        numbers = counted_with_page(registry_row, chosen, signs, list_query)
        page_rows, unanswered = (
            _page_of_subjects(request, registry_row, chosen.subject_filter, signs, numbers.facets.total, list_query),
            "",
        )
    except InvalidInput as problem:
        if not has_operators(chosen.values["q"]):
            raise
        numbers, page_rows, unanswered = Counted(Facets(total=0)), NOTHING_FOUND, problem.message
    is_part = bool(getattr(request, "htmx", None))
    filters = filters_of(chosen, numbers, signs)
    drawn = columns(_environments(registry_row, actor, order))
    # bulk changes and unused subjects are only for readers of the whole registry
    has_bulk = page_rows.rows and chosen.values["state"] != DELETED and readable == WHOLE
    bulk = bulk_form(actor, registry) if has_bulk else None
    return SubjectList(
        frame=make_frame(
            request,
            title=gettext("Subjects"),
            section=Section.SUBJECTS,
            registry=registry,
            mirror=mirror_of(registry_row),
            order=order,
        ),
        registry=registry,
        search=search_of(registry_row, chosen.values, numbers, filters),
        table=ListTable(
            caption=gettext("Subjects of the registry %(registry)s") % {"registry": registry},
            columns=drawn,
            rows=_lines(registry_row, page_rows.rows, signs, actor),
            orders=_orders(drawn, subjects_url(registry), chosen.values),
            pick="subject" if bulk else "",
            pick_form="bulk",
            value_of=lambda row: row.qualified,
        ),
        paging=_paging(subjects_url(registry), chosen.values, page_rows),
        add_command=f"curl -X POST -H 'Content-Type: application/json' {request.scheme}://{request.get_host()}"
        + ("" if registry == "dev" else f"/registries/{quote(registry)}")
        + '/subjects/orders-value/versions -d \'{"schema": "\\"string\\""}\'',
        bulk=bulk,
        links=_links(registry, chosen.values["q"], is_whole=readable == WHOLE),
        numbers=numbers_part(registry_row, chosen, numbers, filters if is_part else ()),
        unowned=_unowned(subjects_url(registry), chosen.values, page_rows),
        unanswered=unanswered,
    )


def subject_numbers(request: HttpRequest, registry: str) -> SubjectNumbers | None:
    """Return counts for a list sent without; None if nothing is counted. Raises RegistryNotFound, InvalidInput."""
    registry_row = get_registry(registry)
    chosen = SubjectFilters.of(request, Visible(registry_row, page_actor(request)).extent)
    signs = read_health(registry_row)
    counted = counted_in_time(registry_row, chosen, signs)
    return numbers_part(registry_row, chosen, counted, filters_of(chosen, counted, signs))


def _page_of_subjects(
    request: HttpRequest,
    registry: Registry,
    filters: SubjectFilter,
    signs: HealthData,
    total: int | None,
    query: ListQuery,
) -> selectors.SubjectRows:
    """Return the page in the URL; the first one if nothing is left after its position."""
    after, before = (request.GET.get(name, "").replace("\0", "") for name in ("after", "before"))
    arguments: dict[str, Any] = {"signs": signs, "total": total, "list_query": query}
    page_rows = find_subjects(registry, filters, Page(after, before, PAGE_ROWS), **arguments)
    if (after or before) and not page_rows.rows:
        return find_subjects(registry, filters, Page(limit=PAGE_ROWS), **arguments)
    return page_rows


def _unowned(base: str, chosen: Mapping[str, str], page_rows: selectors.SubjectRows) -> Link | None:
    """Return a hint with a link to all subjects without an owner; None if all of them come first."""
    if page_rows.looked is None:
        return None
    text = gettext(
        "Subjects without an owner are listed first only if they are among the last %(looked)s changed. Show all"
    )
    label = text % {"looked": f"{page_rows.looked:,}"}
    return Link(label=label, url=with_query(base, {**chosen, "attention": UNOWNED}))


def _links(registry: str, query: str, *, is_whole: bool) -> tuple[Link, ...]:
    """Return links to a search over everything and to lists by status."""
    base = subjects_url(registry)
    unused = Link(label=gettext("Unused subjects"), url=reverse("ui:unused_subjects", args=[registry]))
    links = [
        *([unused] if is_whole else []),
        Link(label=gettext("Deprecated"), url=with_query(base, {"state": "deprecated"})),
        Link(label=gettext("Soft-deleted"), url=with_query(base, {"state": DELETED})),
    ]
    if query:
        text = gettext("Search everything for “%(query)s”") % {"query": query[:100]}
        links.insert(0, Link(label=text, url=f"{reverse('ui:search')}?{urlencode({'q': query})}"))
    return tuple(links)


def _orders(drawn: Sequence[ListColumn], base: str, chosen: Mapping[str, str]) -> dict[str, ColumnOrder]:
    """Return the columns that can be sorted by an index; soft-deleted subjects are always sorted by name."""
    if chosen["state"] == DELETED:
        return {"name": ColumnOrder(url=with_query(base, chosen), is_on=True, is_up=True)}
    return {
        column.name: ColumnOrder(
            url=with_query(base, {**chosen, "sort": column.sort}),
            is_on=chosen["sort"] == column.sort,
            is_up=column.is_up,
        )
        for column in drawn
        if column.sort is not None
    }


def _paging(base: str, chosen: Mapping[str, str], page_rows: selectors.SubjectRows) -> Paging:
    """Return links to the previous and next page with the same filters."""
    shown = len(page_rows.rows)
    return Paging(
        first=page_rows.skipped + 1 if shown else 0,
        last=page_rows.skipped + shown,
        total=page_rows.total,
        previous_url=with_query(base, {**chosen, "before": page_rows.before}) if page_rows.before else "",
        next_url=with_query(base, {**chosen, "after": page_rows.after}) if page_rows.after else "",
    )


def _environments(registry: Registry, actor: Actor, order: list[str]) -> list[Environment]:
    """Return the environments where the reader may read something, in order; only the registry if it isn't one."""
    readable = extent_of(actor, READ)
    names = [name for name in order if readable.has(name)] if registry.name in order else [registry.name]
    return [environment_of(name, order) for name in names]


def _lines(
    registry: Registry, rows: list[selectors.SubjectRow], signs: HealthData, actor: Actor
) -> tuple[SubjectLine, ...]:
    rows, now = [_as_read(row, actor) for row in rows], timezone.now()
    subjects = [row.subject for row in rows]
    pending, notes = open_requests_of(subjects, actor), notes_of(registry, subjects)
    carried = carriers_of(registry, subjects)
    return tuple(
        SubjectLine(
            registry=registry.name,
            info=row,
            now=now,
            signs=() if row.deleted else signs.of(row),
            findings=signs.findings.get(row.subject.qualified, 0),
            request=pending.get(row.subject),
            has_request=row.subject in pending,
            tags=tag_chips(registry.name, notes[row.subject].tags) if row.subject in notes else (),
            owners=owner_chips(registry.name, signs.owners.of(row.subject.qualified)),
            carriers=carried.get(row.subject.qualified, NOTHING),
        )
        for row in rows
    )


def _as_read(row: selectors.SubjectRow, actor: Actor) -> selectors.SubjectRow:
    """Return the row without versions in registries where the reader may not read the subject."""
    name = row.subject.qualified
    readable_versions = {
        registry: version
        for registry, version in row.versions.items()
        if may(actor, READ, registry=registry, subject=name)
    }
    return replace(row, versions=readable_versions)

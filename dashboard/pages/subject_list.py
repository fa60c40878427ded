"""The list of subjects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from urllib.parse import quote, urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of, make_frame, page_actor, subjects_url
from dashboard.pages.notes import bulk_form, owned_patterns, owner_chips, owner_choices, tag_chips, tag_choices
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import given_text
from dashboard.presenters.frame import ActiveFilter, Choice, Filter, Paging, Search, Section
from dashboard.presenters.looks import format_name
from dashboard.presenters.subjects import (
    SubjectList,
    SubjectRow,
    VersionChip,
)
from registry.access.selectors import owners_of_many
from registry.drift.selectors import open_findings_by_subject
from registry.formats import FORMATS
from registry.formats.compatibility import LEVELS
from registry.promotions.selectors import list_environments, open_requests_of
from registry.subjects import selectors
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.selectors.notes import notes_of
from registry.subjects.selectors.places import Registry, get_registry
from registry.subjects.selectors.remotes import mirror_of

PAGE_ROWS = 50


def subject_list(request: HttpRequest, registry: str) -> SubjectList:
    """The page of a registry's subjects, filtered and paged by the query. Raises RegistryNotFound, InvalidInput."""
    place = get_registry(registry)
    query = request.GET.get("q", "").strip()
    schema_type, level = request.GET.get("format", ""), request.GET.get("level", "")
    tag, owner = given_text(request.GET, "tag"), given_text(request.GET, "owner")
    chosen = {"q": query, "format": schema_type, "level": level, "tag": tag, "owner": owner}
    found, base = _found(request, place, chosen), subjects_url(registry)
    return SubjectList(
        frame=make_frame(
            request, title=gettext("Subjects"), section=Section.SUBJECTS, registry=registry, mirror=mirror_of(place)
        ),
        registry=registry,
        search=_search(place, base, chosen),
        rows=_rows(place, found.rows),
        paging=_paging(base, chosen, found),
        add_command=f"curl -X POST -H 'Content-Type: application/json' {request.scheme}://{request.get_host()}"
        + ("" if registry == "dev" else f"/registries/{quote(registry)}")
        + '/subjects/orders-value/versions -d \'{"schema": "\\"string\\""}\'',
        bulk=bulk_form(page_actor(request), registry) if found.rows else None,
    )


def _found(request: HttpRequest, place: Registry, chosen: dict[str, str]) -> selectors.SubjectRows:
    """The page that the address names; the first one where all that came after the place it names is gone."""
    find = partial(
        selectors.subject_rows,
        place,
        text=chosen["q"],
        schema_type=chosen["format"],
        level=chosen["level"],
        tag=chosen["tag"],
        owned=owned_patterns(place, chosen["owner"]),
        limit=PAGE_ROWS,
    )
    after, before = given_text(request.GET, "after"), given_text(request.GET, "before")
    found = find(after=after, before=before, offset=whole_number(request.GET.get("offset", "")) or 0)
    return find() if found.total and not found.rows else found


def _search(place: Registry, base: str, chosen: dict[str, str]) -> Search:
    filters = (
        Filter(
            name="format",
            label=gettext("Format"),
            choices=_choices(sorted(FORMATS), chosen["format"], gettext("Any format")),
        ),
        Filter(
            name="level",
            label=gettext("Compatibility"),
            choices=_choices(LEVELS, chosen["level"], gettext("Any level")),
        ),
        Filter(name="tag", label=gettext("Tag"), choices=tag_choices(place, chosen["tag"])),
        Filter(name="owner", label=gettext("Owner"), choices=owner_choices(place, chosen["owner"])),
    )
    active = tuple(
        ActiveFilter(label=f"{name}: {value}", url=_with(base, {**chosen, name: ""}))
        for name, value in chosen.items()
        if value
    )
    return Search(
        url=base,
        query=chosen["q"],
        label=gettext("Search subjects"),
        placeholder="orders",
        filters=filters,
        active=active,
    )


def _choices(values: Iterable[str], chosen: str, any_word: str) -> tuple[Choice, ...]:
    return (
        Choice(value="", label=any_word, selected=not chosen),
        *(Choice(value=name, label=format_name(name), selected=name == chosen) for name in values),
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


def _rows(registry: Registry, rows: list[selectors.SubjectRow]) -> tuple[SubjectRow, ...]:
    order = list_environments()
    columns = order if registry.name in order else [registry.name]
    findings = open_findings_by_subject(registry.name)
    pending = open_requests_of([row.subject for row in rows])
    notes = notes_of(registry, [row.subject for row in rows])
    owners = owners_of_many(registry.name, [row.subject.qualified for row in rows])
    return tuple(
        replace(
            _row(registry.name, row, columns, order, findings, pending),
            tags=tag_chips(registry.name, notes[row.subject].tags) if row.subject in notes else (),
            owners=owner_chips(registry.name, owners[row.subject.qualified]),
        )
        for row in rows
    )


def _row(
    registry: str,
    row: selectors.SubjectRow,
    columns: list[str],
    order: list[str],
    findings: dict[str, int],
    pending: dict[SubjectName, int],
) -> SubjectRow:
    name = row.subject.qualified
    newest = max(row.versions.values(), default=0)
    request = pending.get(row.subject)
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
        open_findings=findings.get(name, 0),
        findings_url=reverse("ui:findings") + "?" + urlencode({"q": name}),
        pending=gettext("request %(request)s") % {"request": request} if request else "",
        pending_url=reverse("ui:promotion", args=[request]) if request else "",
        changed_at=row.changed_at,
        changed_by=row.changed_by,
    )

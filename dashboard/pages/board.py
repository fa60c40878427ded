"""The board: subjects by environment."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of, make_frame, page_actor, subjects_url
from dashboard.pages.subject_list import PAGE_ROWS, page_offset, paging_of
from dashboard.presenters.frame import (
    Action,
    Search,
    Section,
)
from dashboard.presenters.promotions import (
    BoardCell,
    BoardRow,
    EnvironmentBoard,
    EnvironmentRule,
)
from registry.access.roles import refusal
from registry.promotions import selectors
from registry.subjects import selectors as subjects
from registry.subjects.selectors.places import get_registry


def board(request: HttpRequest) -> EnvironmentBoard:
    """Subjects by environment, those of the first environment that has them."""
    order = selectors.list_environments()
    query = request.GET.get("q", "").strip()
    offset = page_offset(request)
    first = get_registry(order[0])
    rows, total = subjects.subject_rows(first, text=query, offset=offset, limit=PAGE_ROWS)
    counts = {info.name: info.subjects for info in subjects.list_registries()}
    base = reverse("ui:environments")
    return EnvironmentBoard(
        frame=make_frame(request, title="Environments", section=Section.ENVIRONMENTS),
        rules=tuple(_environment_rule(name, order, counts.get(name, 0)) for name in order),
        search=Search(url=base, query=query, label="Search subjects", placeholder="orders"),
        rows=tuple(_board_row(request, row, order) for row in rows),
        paging=paging_of(base, {"q": query}, offset, len(rows), total),
    )


def _environment_rule(name: str, order: list[str], count: int) -> EnvironmentRule:
    registry = get_registry(name)
    mode = subjects.effective_mode(registry).mode
    rule = (
        "Changes by release only: one review by somebody else."
        if mode == "READONLY"
        else "Open: clients register directly."
    )
    return EnvironmentRule(
        environment=environment_of(name, order, url=subjects_url(name)),
        rule=rule,
        subjects=count,
        level=subjects.effective_config(registry).level,
        mode=mode,
    )


def _board_row(request: HttpRequest, row: subjects.SubjectRow, order: list[str]) -> BoardRow:
    name = row.subject.qualified
    return BoardRow(
        subject=name,
        url=subject_url(order[0], name),
        cells=tuple(_board_cell(request, row, place, order) for place in order),
    )


def _board_cell(request: HttpRequest, row: subjects.SubjectRow, place: str, order: list[str]) -> BoardCell:
    name, newest = row.subject.qualified, row.versions.get(order[0], 0)
    version = row.versions.get(place)
    reason = refusal(page_actor(request), "promotion.request", registry=place, subject=name)
    behind = newest - version if version and place != order[0] else 0
    query = urlencode({"source": order[0], "target": place, "subject": name, "version": newest})
    can_ask = place != order[0] and (version is None or behind > 0)
    return BoardCell(
        environment=environment_of(place, order),
        version=version,
        url=subject_url(place, name) if version else "",
        note="not there yet" if version is None else f"{behind} behind" if behind > 0 else "",
        behind=max(0, behind),
        promote=Action(
            label=f"Promote version {newest}",
            url=f"{reverse('ui:promotion_request')}?{query}",
            allowed=not reason,
            reason=reason,
        )
        if can_ask
        else None,
    )

"""The board: subjects by environment, and what could go on to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.promotions import at_utc
from dashboard.pages.promotions_form import WAY
from dashboard.pages.sources_words import given_text
from dashboard.pages.subject_life import standing_mark
from dashboard.presenters.frame import Action, ActiveFilter, Choice, Environment, Filter, Link, Paging, Search, Section
from dashboard.presenters.looks import Outlook
from dashboard.presenters.promotions_board import BoardCell, BoardRow, EnvironmentBoard, EnvironmentRule
from dashboard.texts import counted, later
from registry.access.extent import extent_of
from registry.access.roles import Actor, may_somewhere, refusal
from registry.audit import past
from registry.drift.selectors.seen import last_seen
from registry.promotions import selectors
from registry.promotions.selectors import EnvironmentInfo
from registry.promotions.selectors import board as boards
from registry.subjects import selectors as subjects

PAGE_ROWS: Final = 50
SHOWS: Final = {
    boards.BEHIND: later("Behind"),
    boards.BLOCKED: later("Blocked"),
    boards.OTHER_ID: later("Id differs"),
    boards.OTHER_CONTENT: later("Same number, different content"),
}
_NOT_NEW: Final = "needs approval"


def board(request: HttpRequest) -> EnvironmentBoard:
    """Subjects that the reader may read, by name; filtered by the address. Raises NotSignedIn, NotAllowed, InvalidInput."""
    actor = page_actor(request)
    query, show, after = (given_text(request.GET, name) for name in ("q", "show", "after"))
    shows = _shows()
    show = show if show in shows else ""
    rows, filters = selectors.environment_rows(), [show] if show else []
    found = boards.board_rows(by=actor, text=query, filters=filters, after=after, limit=PAGE_ROWS, rows=rows)
    infos, readable = selectors.environment_infos(rows), extent_of(actor, "schema.read")
    order, base = [info.name for info in infos], reverse("ui:environments")
    shown = [info for info in infos if readable.has(info.name)]
    chosen = {name: value for name, value in (("q", query), ("show", show)) if value}
    counts = {info.name: info.subjects for info in subjects.list_registries() if readable.has_all_of(info.name)}
    return EnvironmentBoard(
        frame=make_frame(request, title=gettext("Environments"), section=Section.ENVIRONMENTS, order=order),
        rules=tuple(_rule(info, order, counts.get(info.name)) for info in shown),
        search=_search(base, query, show),
        rows=_rows(found, order, actor),
        paging=Paging(
            first=1 if found.rows else 0,
            last=len(found.rows),
            total=found.total if not after else None,
            previous_url=f"{base}?{urlencode(chosen)}" if after else "",
            next_url=f"{base}?{urlencode({**chosen, 'after': found.after})}" if found.after else "",
        ),
        ways=tuple(
            Choice(
                value=f"{one}{WAY}{other}", label=gettext("from %(one)s to %(other)s") % {"one": one, "other": other}
            )
            for one, other in pairwise(info.name for info in shown)
        ),
        preview=_preview(actor),
        export_url=reverse("ui:promotion_plan"),
        alone=len(order) < 2,
    )


def _shows() -> dict[str, str]:
    """What can be asked for; what could go on at an earlier time isn't kept."""
    return {value: label for value, label in SHOWS.items() if value != boards.BLOCKED or past.moment() is None}


def _preview(actor: Actor) -> Action:
    reason = "" if may_somewhere(actor, "promotion.request") else refusal(actor, "promotion.request")
    return Action(
        label=gettext("Preview as one plan"),
        url=reverse("ui:promotion_request"),
        allowed=not reason,
        reason=reason,
        tone="primary",
        icon="eye",
    )


def _search(base: str, query: str, show: str) -> Search:
    choices = (
        Choice(value="", label=gettext("All subjects"), selected=not show),
        *(Choice(value=value, label=label, selected=value == show) for value, label in _shows().items()),
    )
    without = f"{base}?{urlencode({'q': query})}" if query else base
    return Search(
        url=base,
        query=query,
        label=gettext("Search subjects"),
        placeholder="orders",
        filters=(Filter(name="show", label=gettext("Show"), choices=choices),),
        active=(ActiveFilter(label=gettext("show: %(what)s") % {"what": SHOWS[show].lower()}, url=without),)
        if show
        else (),
    )


def _rule(info: EnvironmentInfo, order: list[str], count: int | None) -> EnvironmentRule:
    return EnvironmentRule(
        environment=environment_of(info.name, order),
        rule=rule_sentence(info),
        url=reverse("ui:environment", args=[info.name]),
        subjects=count,
        level=info.level,
        mode=info.mode,
        alarm=alarm_of(info),
    )


def rule_sentence(info: EnvironmentInfo) -> str:
    """How an environment changes, in a sentence or two."""
    reviews = (
        counted(
            info.reviews_needed,
            "%(n)s approval the requester’s own among them",
            "%(n)s approvals the requester’s own among them",
        )
        if info.own_approval_allowed
        else counted(
            info.reviews_needed,
            "%(n)s approval by somebody else than the requester",
            "%(n)s approvals by somebody else than the requester",
        )
    )
    if info.rules:
        reviews = counted(
            len(info.rules),
            "%(reviews)s, and %(n)s rule beside it",
            "%(reviews)s, and %(n)s rules beside it",
            reviews=reviews,
        )
    if info.is_closed:
        return gettext("Closed: it changes by releases alone. A request takes %(reviews)s.") % {"reviews": reviews}
    return gettext("Open: it can be changed directly. A request takes %(reviews)s.") % {"reviews": reviews}


def alarm_of(info: EnvironmentInfo) -> str:
    """What is out of the ordinary: a freeze, an open break-glass, one that nobody confirmed."""
    now = next((glass for glass in info.break_glass if glass.is_open), None)
    if now:
        return gettext("The glass is broken until %(at_utc)s, by %(opened_by)s.") % {
            "at_utc": at_utc(now.ends_at),
            "opened_by": now.opened_by,
        }
    if info.has_red:
        return gettext("A break-glass was never confirmed by a second person.")
    return (
        gettext("Frozen until %(at_utc)s: %(reason)s")
        % {"at_utc": at_utc(info.frozen.ends_at), "reason": info.frozen.reason}
        if info.frozen
        else ""
    )


@dataclass(frozen=True)
class _Around:
    """What the rows of a board have in common: the environments as they are shown, the page that asks, who looks."""

    places: Mapping[str, Environment]
    ask: str
    actor: Actor
    seen: Mapping[int, datetime]


def _rows(found: boards.Board, order: list[str], actor: Actor) -> tuple[BoardRow, ...]:
    seen = last_seen([row for each in found.rows for cell in each.cells for _, row in cell.live])
    around = _Around(
        {name: environment_of(name, order) for name in order}, reverse("ui:promotion_request"), actor, seen
    )
    return tuple(_row(row, around) for row in found.rows)


def _row(row: boards.BoardRow, around: _Around) -> BoardRow:
    name = row.subject.qualified
    first = next((cell.place for cell in row.cells if cell.version), row.cells[0].place)
    before = ("", *(cell.place for cell in row.cells))
    cells = tuple(_cell(cell, name, before[number], around) for number, cell in enumerate(row.cells))
    return BoardRow(
        subject=name, url=subject_url(first, name), cells=cells, markable=any(cell.behind for cell in row.cells)
    )


def _cell(cell: boards.BoardCell, name: str, before: str, around: _Around) -> BoardCell:
    return BoardCell(
        environment=around.places[cell.place],
        version=cell.version or None,
        schema_id=cell.schema_id or None,
        url=subject_url(cell.place, name) if cell.version else "",
        since=cell.since,
        seen_at=around.seen.get(cell.row),
        seen_older=_older(cell, around.seen),
        marks=(standing_mark(cell.standing),) if cell.standing else (),
        notes=_notes(cell, before),
        behind=gettext("lacks version %(wanted)s of %(before)s") % {"wanted": cell.wanted, "before": before}
        if cell.behind
        else "",
        outlook=Outlook.of(cell.verdict) if cell.verdict and past.moment() is None else None,
        reasons=_reasons(cell) if past.moment() is None else (),
        request=Link(
            label=gettext("request %(request)s") % {"request": cell.request},
            url=reverse("ui:promotion", args=[cell.request]),
        )
        if cell.request
        else None,
        promote=_promote(cell, name, before, around) if cell.behind and not cell.request else None,
    )


def _older(cell: boards.BoardCell, seen: Mapping[int, datetime]) -> str:
    """The newest of the earlier versions that messages carry, where none carries the current one."""
    numbers = [number for number, row in cell.live if row in seen]
    if not numbers or cell.row in seen:
        return ""
    return gettext("messages carry version %(version)s") % {"version": numbers[-1]}


def _notes(cell: boards.BoardCell, before: str) -> tuple[str, ...]:
    notes = [gettext("id differs from %(before)s") % {"before": before}] if cell.id_differs else []
    if cell.other_content:
        numbers = ", ".join(map(str, cell.other_content[:5]))
        notes.append(
            gettext("version %(numbers)s: same number, other content than in %(before)s")
            % {"numbers": numbers, "before": before}
        )
    return tuple(notes)


def _promote(cell: boards.BoardCell, name: str, before: str, around: _Around) -> Action:
    reason = refusal(around.actor, "promotion.request", registry=cell.place, subject=name)
    query = urlencode({"source": before, "target": cell.place, "subject": name, "version": cell.wanted})
    return Action(
        label=gettext("Promote version %(wanted)s") % {"wanted": cell.wanted},
        url=f"{around.ask}?{query}",
        allowed=not reason,
        reason=reason,
    )


def _reasons(cell: boards.BoardCell) -> tuple[str, ...]:
    """Why not; where it only needs its approvals that is said by the verdict already."""
    if cell.verdict == _NOT_NEW:
        return ()
    said = [f"{reason['sentence']} {reason.get('cure', '')}".strip() for reason in cell.reasons[:3]]
    if cell.verdict == "unknown":
        return (gettext("It is being worked out."),)
    return tuple(said)

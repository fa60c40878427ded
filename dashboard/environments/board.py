"""The board: subjects by environment, and what could be promoted to the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext

from dashboard.components.badges import Outlook
from dashboard.components.frame import environment_of, make_frame, page_actor
from dashboard.components.links import chosen_value, cursor_paging, form_text, subject_url
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import (
    Action,
    ActiveFilter,
    Choice,
    Environment,
    Filter,
    Frame,
    Link,
    Paging,
    SearchBox,
    Section,
)
from dashboard.promotions.request_form import WAY
from dashboard.promotions.request_list import at_utc
from dashboard.subjects.lifecycle import VersionMark, status_mark
from registry.access.permission_filters import extent_of
from registry.access.roles import Actor, may_somewhere, refusal
from registry.audit import time_travel
from registry.drift.usage.subject_topics import last_seen
from registry.promotions import selectors
from registry.promotions.board import rows as boards
from registry.promotions.selectors import EnvironmentInfo
from registry.subjects import selectors as subjects

LONGEST_LABEL: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardCell:
    """A subject in an environment: its newest version there, or None; `behind` says which version is missing.

    The version exists `since`, and `marks` are its status. Scans last saw messages with it at `seen_at` (None: never);
    `seen_older` says that messages use an earlier version. `outlook` says whether the previous environment's version
    could be promoted here (None: there is none), `reasons` why not, with cures.
    """

    environment: Environment
    version: int | None = None
    schema_id: int | None = None
    url: str = ""
    since: datetime | None = None
    marks: tuple[VersionMark, ...] = ()
    notes: tuple[str, ...] = ()
    behind: str = ""
    seen_at: datetime | None = None
    seen_older: str = ""
    outlook: Outlook | None = None
    reasons: tuple[str, ...] = ()
    request: Link | None = None
    promote: Action | None = None

    @property
    def label(self) -> str:
        """The environment's name above the cell on narrow pages without columns."""
        name = self.environment.name
        return name if len(name) <= LONGEST_LABEL else Truncator(name).chars(LONGEST_LABEL)

    @property
    def version_words(self) -> str:
        """The version in words; in Python, because a template takes five times as long, and a page has hundreds."""
        return gettext("version %(version)s") % {"version": self.version}

    @property
    def id_words(self) -> str:
        """The schema id in words."""
        return gettext("id %(schema_id)s") % {"schema_id": self.schema_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """A subject across the environments, in order; `markable` says that it can be selected for a plan."""

    subject: str
    url: str
    cells: tuple[BoardCell, ...]
    markable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRule:
    """An environment and its rules in words; `alarm` is about open or unconfirmed break-glass, or a freeze.

    `subjects` is None for a reader who may not read all of them.
    """

    environment: Environment
    rule: str
    url: str
    subjects: int | None = 0
    level: str = ""
    mode: str = ""
    alarm: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentBoard:
    """Subjects by environment. `ways` are the pairs of environments to promote a selection between.

    `alone`: there are fewer than two environments, so that nothing can be promoted.
    """

    frame: Frame
    rules: tuple[EnvironmentRule, ...]
    search: SearchBox
    rows: tuple[BoardRow, ...]
    paging: Paging
    ways: tuple[Choice, ...] = ()
    preview: Action | None = None
    export_url: str = ""
    alone: bool = False


PAGE_ROWS: Final = 25
SHOWS: Final = {
    boards.BEHIND: _("Behind"),
    boards.BLOCKED: _("Blocked"),
    boards.OTHER_ID: _("Schema id differs"),
    boards.OTHER_CONTENT: _("Same version number, different content"),
}
_NOT_NEW: Final = "needs approval"


def board(request: HttpRequest) -> EnvironmentBoard:
    """Return the subjects that the reader may read, by name, with the URL's filters.

    Raises NotSignedIn, NotAllowed, InvalidInput.
    """
    actor = page_actor(request)
    query, after = (form_text(request.GET, name) for name in ("q", "after"))
    show = chosen_value(request.GET, "show", _shows())
    rows, filters = selectors.environment_rows(), [show] if show else []
    page = boards.board_rows(by=actor, text=query, filters=filters, after=after, limit=PAGE_ROWS, rows=rows)
    infos, readable = selectors.environment_infos(rows), extent_of(actor, "schema.read")
    order, base = [info.name for info in infos], reverse("ui:environments")
    shown = [info for info in infos if readable.has(info.name)]
    chosen = {name: value for name, value in (("q", query), ("show", show)) if value}
    counts = {info.name: info.subjects for info in subjects.list_registries() if readable.has_all_of(info.name)}
    return EnvironmentBoard(
        frame=make_frame(request, title=gettext("Environments"), section=Section.ENVIRONMENTS, order=order),
        rules=tuple(_rule(info, order, counts.get(info.name)) for info in shown),
        search=_search(base, query, show),
        rows=_rows(page, order, actor),
        paging=cursor_paging(
            page.rows, base, chosen, is_first=not after, total=None if after else page.total, after=page.after
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
    """Return the available filters; the past doesn't store readiness."""
    return {value: label for value, label in SHOWS.items() if value != boards.BLOCKED or time_travel.moment() is None}


def _preview(actor: Actor) -> Action:
    reason = "" if may_somewhere(actor, "promotion.request") else refusal(actor, "promotion.request")
    return Action(
        label=gettext("Preview plan"), url=reverse("ui:promotion_request"), reason=reason, tone="primary", icon="eye"
    )


def _search(base: str, query: str, show: str) -> SearchBox:
    choices = (
        Choice(value="", label=gettext("All subjects"), selected=not show),
        *(Choice(value=value, label=label, selected=value == show) for value, label in _shows().items()),
    )
    without = f"{base}?{urlencode({'q': query})}" if query else base
    return SearchBox(
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
    """Describe the environment's rules in a sentence or two."""
    needed = info.settings["reviews_needed"] or 1
    reviews = (
        counted(
            needed,
            "%(n)s approval, which can be the requester’s own",
            "%(n)s approvals, one of which can be the requester’s own",
        )
        if info.settings["own_approval_allowed"]
        else counted(needed, "%(n)s approval from another person", "%(n)s approvals from other people")
    )
    if info.rules and not info.settings["reviews_needed"]:
        reviews = gettext("the approvals of its review rules, or one where none applies")
    elif info.rules:
        reviews = counted(
            len(info.rules),
            "%(reviews)s. %(n)s additional review rule applies",
            "%(reviews)s. %(n)s additional review rules apply",
            reviews=reviews,
        )
    if info.is_closed:
        return gettext("Closed: only releases can change it. A request needs %(reviews)s.") % {"reviews": reviews}
    return gettext("Open: it can be changed directly. A request needs %(reviews)s.") % {"reviews": reviews}


def alarm_of(info: EnvironmentInfo) -> str:
    """Describe an exceptional state: open or unconfirmed break-glass, or a freeze."""
    now = next((glass for glass in info.break_glass if glass.is_open), None)
    if now:
        return gettext("Break-glass is open until %(at_utc)s, opened by %(opened_by)s.") % {
            "at_utc": at_utc(now.ends_at),
            "opened_by": now.opened_by,
        }
    if info.has_red:
        return gettext("A use of break-glass was not confirmed by a second person.")
    return (
        gettext("Frozen until %(at_utc)s: %(reason)s")
        % {"at_utc": at_utc(info.frozen.ends_at), "reason": info.frozen.reason}
        if info.frozen
        else ""
    )


@dataclass(frozen=True)
class _RowContext:
    """Values for all rows of a board: the environments, the request form's URL, the reader, and last sightings."""

    environments: Mapping[str, Environment]
    ask: str
    actor: Actor
    last_seen_at: Mapping[int, datetime]


def _rows(page: boards.Board, order: list[str], actor: Actor) -> tuple[BoardRow, ...]:
    last_seen_at = last_seen([row for row_ in page.rows for cell in row_.cells for _, row in cell.live])
    context = _RowContext(
        {name: environment_of(name, order) for name in order}, reverse("ui:promotion_request"), actor, last_seen_at
    )
    return tuple(_row(row, context) for row in page.rows)


def _row(row: boards.BoardRow, context: _RowContext) -> BoardRow:
    name = row.subject.qualified
    first = next((cell.place for cell in row.cells if cell.version), row.cells[0].place)
    before = ("", *(cell.place for cell in row.cells))
    cells = tuple(_cell(cell, name, before[number], context) for number, cell in enumerate(row.cells))
    return BoardRow(
        subject=name, url=subject_url(first, name), cells=cells, markable=any(cell.behind for cell in row.cells)
    )


def _cell(cell: boards.BoardCell, name: str, before: str, context: _RowContext) -> BoardCell:
    return BoardCell(
        environment=context.environments[cell.place],
        version=cell.version or None,
        schema_id=cell.schema_id or None,
        url=subject_url(cell.place, name) if cell.version else "",
        since=cell.since,
        seen_at=context.last_seen_at.get(cell.row),
        seen_older=_older(cell, context.last_seen_at),
        marks=(status_mark(cell.status),) if cell.status else (),
        notes=_notes(cell, before),
        behind=_behind(cell, before),
        outlook=Outlook.of(cell.verdict) if cell.verdict and time_travel.moment() is None else None,
        reasons=_reasons(cell) if time_travel.moment() is None else (),
        request=Link(
            label=gettext("request %(request)s") % {"request": cell.request},
            url=reverse("ui:promotion", args=[cell.request]),
        )
        if cell.request
        else None,
        promote=_promote(cell, name, before, context) if cell.behind and not cell.request else None,
    )


def _behind(cell: boards.BoardCell, before: str) -> str:
    """Say which version of the previous environment is missing; "" if none."""
    if not cell.behind:
        return ""
    if cell.rolled_back:
        return gettext("rolled back from version %(version)s") % {"version": cell.rolled_back}
    return gettext("missing version %(wanted)s from %(before)s") % {"wanted": cell.wanted, "before": before}


def _older(cell: boards.BoardCell, last_seen_at: Mapping[int, datetime]) -> str:
    """Say which earlier version messages use if none uses the current one."""
    numbers = [number for number, row in cell.live if row in last_seen_at]
    if not numbers or cell.row in last_seen_at:
        return ""
    return gettext("messages use version %(version)s") % {"version": numbers[-1]}


def _notes(cell: boards.BoardCell, before: str) -> tuple[str, ...]:
    notes = [gettext("schema id differs from %(before)s") % {"before": before}] if cell.id_differs else []
    if cell.other_content:
        numbers = ", ".join(map(str, cell.other_content[:5]))
        notes.append(
            gettext("version %(numbers)s: content differs from %(before)s") % {"numbers": numbers, "before": before}
        )
    return tuple(notes)


def _promote(cell: boards.BoardCell, name: str, before: str, context: _RowContext) -> Action:
    reason = refusal(context.actor, "promotion.request", registry=cell.place, subject=name)
    if cell.rolled_back:
        return Action(
            label=gettext("Roll back to version %(version)s") % {"version": cell.rolled_back},
            url=subject_url(cell.place, name, version=cell.rolled_back),
            reason=reason,
        )
    query = urlencode({"source": before, "target": cell.place, "subject": name, "version": cell.wanted})
    return Action(
        label=gettext("Promote version %(wanted)s") % {"wanted": cell.wanted},
        url=f"{context.ask}?{query}",
        reason=reason,
    )


def _reasons(cell: boards.BoardCell) -> tuple[str, ...]:
    """Say why the version can't be promoted; empty if it only needs approvals, which the verdict already says."""
    if cell.verdict == _NOT_NEW:
        return ()
    sentences = [f"{reason['sentence']} {reason.get('cure', '')}".strip() for reason in cell.reasons[:3]]
    if cell.verdict == "unknown":
        return (gettext("Being calculated."),)
    return tuple(sentences)

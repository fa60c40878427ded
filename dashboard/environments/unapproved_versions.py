"""Unapproved versions: those that came into an environment without a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import chosen_value, given_text, whole_number
from dashboard.components.translation import later
from dashboard.components.widgets import (
    ActiveFilter,
    Choice,
    Filter,
    Frame,
    Paging,
    SearchBox,
    Section,
)
from dashboard.subjects.header import DOORS
from dashboard.subjects.lifecycle import REQUEST, STANDING, AdoptForm, LifeMark, StandingForm, standing_mark
from registry.access.roles import Actor, may_in, may_somewhere, refusal, require
from registry.drift.usage.subject_topics import last_seen
from registry.promotions import selectors
from registry.promotions.requests.timeline import (
    ASKED,
    QUARANTINED,
    UNDECIDED,
    UnapprovedVersion,
    unapproved_version_page,
)


class QuarantineForm(StandingForm):
    """Prevents the use of a version, from the list of unapproved ones."""

    label = later("Quarantine")
    standing = forms.CharField(widget=forms.HiddenInput, initial=QUARANTINED)  # type: ignore[assignment]
    ends_at = None  # type: ignore[assignment]
    message = forms.CharField(  # type: ignore[assignment]
        label=later("Reason for the quarantine"),
        help_text=later(
            "A quarantined version can’t be promoted and is no longer proposed as the latest. Messages stay readable."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnapprovedVersionRow:
    """An unapproved version, whether messages carry it, and what was decided about it.

    `adopt` requests its review and `quarantine` prevents its use; each is None if that was done already, and its `refused`
    why the reader may not.
    """

    info: UnapprovedVersion
    seen_at: datetime | None = None
    mark: LifeMark | None = None
    adopt: AdoptForm | None = None
    adopt_refused: str = ""
    quarantine: QuarantineForm | None = None
    quarantine_refused: str = ""

    @property
    def door(self) -> str:
        """How it was registered."""
        return str(DOORS.get(self.info.door, self.info.door))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnapprovedVersionsPage:
    """The unapproved versions that the reader may see, newest first; `back` is where a decision redirects to."""

    frame: Frame
    search: SearchBox
    rows: tuple[UnapprovedVersionRow, ...]
    paging: Paging
    back: str
    alone: bool = False


#: few, because every row has two forms
PAGE_ROWS: Final = 25
STATES: Final = {
    "": later("Any decision"),
    UNDECIDED: later("Undecided"),
    ASKED: later("Adoption requested"),
    QUARANTINED: later("Quarantined"),
}
#: name in the address → the name that a chip shows
NAMES: Final = {"q": later("text"), "environment": later("environment"), "state": later("state")}


def unapproved_versions_page(request: HttpRequest) -> UnapprovedVersionsPage:
    """The page of unapproved versions, filtered and paged by its address. Raises NotSignedIn, NotAllowed, RegistryNotFound."""
    actor, order = page_actor(request), selectors.list_environments()
    if not may_somewhere(actor, "schema.read"):
        require(actor, "schema.read")
    chosen = {name: given_text(request.GET, name) for name in NAMES}
    chosen["state"] = chosen_value(request.GET, "state", STATES)
    if chosen["environment"]:
        selectors.get_environment(chosen["environment"])
    before = whole_number(request.GET.get("before", ""), digits=18)
    page = unapproved_version_page(
        by=actor,
        environment=chosen["environment"],
        text=chosen["q"],
        state=chosen["state"],
        before=before,
        limit=PAGE_ROWS,
    )
    last_seen_at = last_seen([ghost.id for ghost in page.rows])
    return UnapprovedVersionsPage(
        frame=make_frame(request, title=gettext("Unapproved versions"), section=Section.PROMOTIONS, order=order),
        search=_search(chosen, [name for name in order if may_in(actor, "schema.read", name)]),
        rows=tuple(_row(ghost, actor, last_seen_at.get(ghost.id)) for ghost in page.rows),
        paging=Paging(
            first=1 if page.rows else 0,
            last=len(page.rows),
            previous_url=_url(chosen) if before else "",
            next_url=_url({**chosen, "before": str(page.before)}) if page.before else "",
        ),
        back=request.get_full_path(),
        alone=len(order) < 2,
    )


def _url(values: Mapping[str, str]) -> str:
    query = {name: value for name, value in values.items() if value}
    base = reverse("ui:ghosts")
    return f"{base}?{urlencode(query)}" if query else base


def _search(chosen: Mapping[str, str], order: list[str]) -> SearchBox:
    environments = {"": gettext("Any environment"), **{name: name for name in order}}
    filters = (("environment", gettext("Environment"), environments), ("state", gettext("Decided"), STATES))
    return SearchBox(
        url=reverse("ui:ghosts"),
        query=chosen["q"],
        label=gettext("Search subjects"),
        placeholder="orders",
        filters=tuple(
            Filter(
                name=name,
                label=label,
                choices=tuple(
                    Choice(value=value, label=str(word), selected=value == chosen[name])
                    for value, word in values.items()
                ),
            )
            for name, label, values in filters
        ),
        active=tuple(
            ActiveFilter(
                label=f"{NAMES[name]}: {STATES.get(value, value) if name == 'state' else value}",
                url=_url({**chosen, name: ""}),
            )
            for name, value in chosen.items()
            if value
        ),
    )


def _row(ghost: UnapprovedVersion, actor: Actor, seen_at: datetime | None) -> UnapprovedVersionRow:
    of = {"registry": ghost.environment, "subject": ghost.subject.qualified}
    is_quarantined = ghost.standing is not None and ghost.standing.standing == QUARANTINED
    return UnapprovedVersionRow(
        info=ghost,
        seen_at=seen_at,
        mark=standing_mark(ghost.standing) if ghost.standing else None,
        adopt=None if ghost.request else AdoptForm(key=ghost.id),
        adopt_refused=refusal(actor, REQUEST, **of),
        quarantine=None if is_quarantined else QuarantineForm(key=ghost.id),
        quarantine_refused=refusal(actor, STANDING, **of),
    )

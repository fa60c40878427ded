"""Unapproved versions: those added to an environment without a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.badges import channel_name
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import cursor_paging, whole_number, with_query
from dashboard.components.tables import ListFilter, active_filters, read_filters
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Frame, Paging, SearchBox, Section
from dashboard.subjects.lifecycle import REQUEST, STATUS, AdoptForm, StatusForm, VersionMark, status_mark
from registry.access.roles import Actor, may_in, may_somewhere, refusal, require
from registry.drift.usage.subject_topics import last_seen
from registry.promotions import selectors
from registry.promotions.requests import timeline


class QuarantineForm(StatusForm):
    """A form that quarantines a version in the list of unapproved ones."""

    label = _("Quarantine")
    status = forms.CharField(widget=forms.HiddenInput, initial=timeline.QUARANTINED)  # type: ignore[assignment]
    ends_at = None  # type: ignore[assignment]
    message = forms.CharField(  # type: ignore[assignment]
        label=_("Reason for the quarantine"),
        help_text=_(
            "A quarantined version can’t be promoted and is no longer proposed as the latest. Messages stay readable."
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnapprovedVersionRow:
    """An unapproved version, when messages last used it, and the decision about it.

    `adopt` requests its review and `quarantine` prevents its use; each is None if already done, and its `…_refused`
    says why the reader may not.
    """

    info: timeline.UnapprovedVersion
    seen_at: datetime | None = None
    mark: VersionMark | None = None
    adopt: AdoptForm | None = None
    adopt_refused: str = ""
    quarantine: QuarantineForm | None = None
    quarantine_refused: str = ""

    @property
    def channel(self) -> str:
        """The channel by which it was registered."""
        return channel_name(self.info.channel)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnapprovedVersionsPage:
    """The unapproved versions that the reader may see, newest first; decisions redirect to `back`."""

    frame: Frame
    search: SearchBox
    rows: tuple[UnapprovedVersionRow, ...]
    paging: Paging
    back: str
    alone: bool = False


#: a small number because every row has two forms
PAGE_ROWS: Final = 25
FILTERS: Final = (
    ListFilter(name="q", chip=_("text")),
    ListFilter(name="environment", chip=_("environment"), label=_("Environment"), values={"": _("Any environment")}),
    ListFilter(
        name="state",
        chip=_("state"),
        label=_("Decided"),
        values={
            "": _("Any decision"),
            timeline.UNDECIDED: _("Undecided"),
            timeline.ASKED: _("Adoption requested"),
            timeline.QUARANTINED: _("Quarantined"),
        },
    ),
)


def unapproved_versions_page(request: HttpRequest) -> UnapprovedVersionsPage:
    """Return the unapproved versions, with the URL's filters and page.

    Raises NotSignedIn, NotAllowed, RegistryNotFound.
    """
    actor, order = page_actor(request), selectors.list_environments()
    if not may_somewhere(actor, "schema.read"):
        require(actor, "schema.read")
    chosen = read_filters(FILTERS, request.GET)
    if chosen["environment"]:
        selectors.get_environment(chosen["environment"])
    before = whole_number(request.GET.get("before", ""), digits=18)
    page = timeline.unapproved_version_page(
        by=actor,
        environment=chosen["environment"],
        text=chosen["q"],
        state=chosen["state"],
        before=before,
        limit=PAGE_ROWS,
    )
    last_seen_at = last_seen([info.id for info in page.rows])
    return UnapprovedVersionsPage(
        frame=make_frame(request, title=gettext("Unapproved versions"), section=Section.PROMOTIONS, order=order),
        search=_search(chosen, [name for name in order if may_in(actor, "schema.read", name)]),
        rows=tuple(_row(info, actor, last_seen_at.get(info.id)) for info in page.rows),
        paging=cursor_paging(
            page.rows, reverse("ui:unapproved_versions"), chosen, is_first=not before, before=page.before
        ),
        back=request.get_full_path(),
        alone=len(order) < 2,
    )


def _search(chosen: Mapping[str, str], order: list[str]) -> SearchBox:
    _, environment, state = FILTERS
    return SearchBox(
        url=reverse("ui:unapproved_versions"),
        query=chosen["q"],
        label=gettext("Search subjects"),
        placeholder="orders",
        filters=(
            environment.select(chosen["environment"], {name: name for name in order}),
            state.select(chosen["state"]),
        ),
        active=active_filters(FILTERS, chosen, lambda values: with_query(reverse("ui:unapproved_versions"), values)),
    )


def _row(info: timeline.UnapprovedVersion, actor: Actor, seen_at: datetime | None) -> UnapprovedVersionRow:
    of = {"registry": info.environment, "subject": info.subject.qualified}
    is_quarantined = info.status is not None and info.status.status == timeline.QUARANTINED
    return UnapprovedVersionRow(
        info=info,
        seen_at=seen_at,
        mark=status_mark(info.status) if info.status else None,
        adopt=None if info.request else AdoptForm(key=info.id),
        adopt_refused=refusal(actor, REQUEST, **of),
        quarantine=None if is_quarantined else QuarantineForm(key=info.id),
        quarantine_refused=refusal(actor, STATUS, **of),
    )

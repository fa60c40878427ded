"""The list of ghosts: versions that came into an environment without a request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of, make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import given_text
from dashboard.pages.subject_life import ADOPT_FIELD, standing_mark
from dashboard.pages.subject_words import DOORS
from dashboard.presenters.frame import Action, ActiveFilter, Choice, Field, Filter, Link, Paging, Search, Section
from dashboard.presenters.ghosts import GhostRow, GhostsPage
from dashboard.presenters.looks import format_name
from dashboard.texts import later
from registry.access.roles import Actor, may_in, may_somewhere, refusal, require
from registry.drift.selectors.seen import last_seen
from registry.promotions import selectors
from registry.promotions.selectors.ghosts import ASKED, QUARANTINED, UNDECIDED, GhostInfo, ghost_page

#: a row has two forms, which take a browser its time
PAGE_ROWS: Final = 25
STATES: Final = {
    "": later("Any decision"),
    UNDECIDED: later("Undecided"),
    ASKED: later("Adoption asked for"),
    QUARANTINED: later("Quarantined"),
}
#: name in the address → the name that a chip shows
NAMES: Final = {"q": later("text"), "environment": later("environment"), "state": later("state")}
_QUARANTINE_FIELD: Final = Field(
    name="message",
    label=later("Why it isn’t trusted"),
    required=True,
    help=later("It is no longer promoted nor the latest that is proposed; messages stay readable."),
)


def ghosts_page(request: HttpRequest) -> GhostsPage:
    """The page, filtered and paged by its address. Raises NotSignedIn, NotAllowed, RegistryNotFound."""
    actor, order = page_actor(request), selectors.list_environments()
    if not may_somewhere(actor, "schema.read"):
        require(actor, "schema.read")
    chosen = {name: given_text(request.GET, name) for name in NAMES}
    chosen["state"] = chosen["state"] if chosen["state"] in STATES else ""
    if chosen["environment"]:
        selectors.get_environment(chosen["environment"])
    before = whole_number(request.GET.get("before", ""), digits=18)
    found = ghost_page(
        by=actor,
        environment=chosen["environment"],
        text=chosen["q"],
        state=chosen["state"],
        before=before,
        limit=PAGE_ROWS,
    )
    seen = last_seen([ghost.id for ghost in found.rows])
    return GhostsPage(
        frame=make_frame(request, title=gettext("Ghosts"), section=Section.PROMOTIONS, order=order),
        search=_search(chosen, [name for name in order if may_in(actor, "schema.read", name)]),
        rows=tuple(_row(ghost, order, actor, seen.get(ghost.id)) for ghost in found.rows),
        paging=Paging(
            first=1 if found.rows else 0,
            last=len(found.rows),
            previous_url=_url(chosen) if before else "",
            next_url=_url({**chosen, "before": str(found.before)}) if found.before else "",
        ),
        back=request.get_full_path(),
        alone=len(order) < 2,
    )


def _url(given: Mapping[str, str]) -> str:
    kept = {name: value for name, value in given.items() if value}
    base = reverse("ui:ghosts")
    return f"{base}?{urlencode(kept)}" if kept else base


def _search(chosen: Mapping[str, str], order: list[str]) -> Search:
    places = {"": gettext("Any environment"), **{name: name for name in order}}
    filters = (("environment", gettext("Environment"), places), ("state", gettext("Decided"), STATES))
    return Search(
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


def _row(ghost: GhostInfo, order: list[str], actor: Actor, seen_at: datetime | None) -> GhostRow:
    name = ghost.subject.qualified
    is_quarantined = ghost.standing is not None and ghost.standing.standing == QUARANTINED
    adopt = (
        None if ghost.request else _action(ghost, actor, "promotion.request", gettext("Ask for its adoption"), "adopt")
    )
    return GhostRow(
        number=ghost.id,
        environment=environment_of(ghost.environment, order),
        subject=name,
        url=subject_url(ghost.environment, name, version=ghost.version),
        version=ghost.version,
        format=format_name(ghost.schema_type),
        schema_id=ghost.schema_id,
        at=ghost.registered_at,
        who=ghost.registered_by,
        door=str(DOORS.get(ghost.door, ghost.door)),
        seen_at=seen_at,
        mark=standing_mark(ghost.standing) if ghost.standing else None,
        request=Link(
            label=gettext("request %(request)s") % {"request": ghost.request},
            url=reverse("ui:promotion", args=[ghost.request]),
        )
        if ghost.request
        else None,
        adopt=adopt,
        adopt_field=ADOPT_FIELD,
        quarantine=None
        if is_quarantined
        else _action(ghost, actor, "version.standing", gettext("Quarantine"), "standing"),
        quarantine_field=_QUARANTINE_FIELD,
    )


def _action(ghost: GhostInfo, actor: Actor, right: str, label: str, page: str) -> Action:
    name = ghost.subject.qualified
    reason = refusal(actor, right, registry=ghost.environment, subject=name)
    url = f"{subject_url(ghost.environment, name)}{page}"
    return Action(label=label, url=url, method="post", allowed=not reason, reason=reason)

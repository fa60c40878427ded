"""The pages of the inbox and of subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.pages.frame import make_frame, page_actor
from dashboard.presenters.frame import Action, Choice, Crumb, Field, Paging, Problem
from dashboard.presenters.notifications import (
    DefaultRow,
    DigestChoice,
    InboxPage,
    NoticeRow,
    StopPage,
    SubscriptionRow,
    SubscriptionsPage,
)
from dashboard.texts import later
from registry.access.roles import ACTION_WORDS
from registry.errors import NotFound, SchemadeskError
from registry.notifications import selectors
from registry.notifications.digest_mail import person_in
from registry.notifications.digests import digest_of
from registry.notifications.events import ANY, EVENTS, SUBSCRIBABLE
from registry.notifications.models import DAILY, OFF, WEEKLY

LONGEST_NUMBER = 18


def number_in(text: str) -> int | None:
    """A row's number as a query has it; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def inbox_page(request: HttpRequest) -> InboxPage:
    """One's notices, newest first. Raises NotSignedIn."""
    actor = page_actor(request)
    only_unread = request.GET.get("show") == "unread"
    before = number_in(request.GET.get("before", ""))
    found = selectors.list_entries(actor, unread=only_unread, before=before, limit=selectors.PAGE + 1)
    entries, more = found[: selectors.PAGE], len(found) > selectors.PAGE
    frame = make_frame(request, title=gettext("Inbox"))
    return InboxPage(
        frame=frame,
        rows=tuple(
            NoticeRow(
                number=entry.id,
                title=entry.title,
                registry=entry.registry,
                subject=entry.subject,
                text=entry.text,
                url=entry.url,
                at=entry.at,
                read=entry.read,
            )
            for entry in entries
        ),
        unread=frame.unread,
        only_unread=only_unread,
        paging=older(request.path, request.GET.dict(), [entry.id for entry in entries], more=more),
        newest=entries[0].id if entries else 0,
        back=request.get_full_path(),
    )


def older(path: str, query: Mapping[str, str], numbers: list[int], *, more: bool) -> Paging:
    """Paging by number: how many are shown, and where those before them are."""
    after = {**query, "before": str(numbers[-1])} if numbers else {}
    return Paging(first=1, last=len(numbers), next_url=f"{path}?{urlencode(after)}" if more else "")


def subscriptions_page(request: HttpRequest, problem: SchemadeskError | None = None) -> SubscriptionsPage:
    """One's subscriptions and the form of a new one. Raises NotSignedIn."""
    given = request.POST if request.method == "POST" else request.GET
    rows = selectors.list_subscriptions(page_actor(request))
    return SubscriptionsPage(
        frame=make_frame(request, title=gettext("Subscriptions"), crumbs=(Crumb(label=gettext("Inbox"), url=reverse("ui:inbox")),)),
        rows=tuple(
            SubscriptionRow(
                title=row.title,
                registry_pattern=row.registry_pattern,
                subject_pattern=row.subject_pattern,
                wanted=row.wanted,
                remove=Action(label=gettext("Remove"), url=reverse("ui:unsubscribe", args=[row.id]), method="post"),
            )
            for row in rows
        ),
        fields=(
            _select("wanted", gettext("What to do"), {"yes": gettext("Tell me"), "no": gettext("Don’t tell me")}, given.get("wanted", "yes")),
            _select(
                "event", gettext("Event"), {ANY: gettext("Everything"), **{name: EVENTS[name].title for name in SUBSCRIBABLE}},
                given.get("event", ANY),
            ),
            _pattern("registry_pattern", gettext("In registries"), given.get("registry_pattern", "*")),
            _pattern("subject_pattern", gettext("For subjects"), given.get("subject_pattern", "*")),
        ),
        submit=Action(label=gettext("Subscribe"), url=reverse("ui:subscriptions"), method="post", tone="primary"),
        defaults=tuple(
            DefaultRow(title=event.title, concerns=ACTION_WORDS[event.concerns])
            for event in EVENTS.values()
            if event.concerns
        )
        + tuple(DefaultRow(title=event.title, concerns=gettext("own the subject")) for event in EVENTS.values() if event.for_owners),
        digest=_digest(request),
        problem=Problem(what=problem.message, cure=gettext("Change the form below. Nothing was saved.")) if problem else None,
    )  # fmt: skip


EVERY: Final = {OFF: later("No mail"), DAILY: later("Every day"), WEEKLY: later("Every Monday")}
LAST: Final = {
    "delivered": later("The last one was sent"),
    "failed": later("The last one couldn’t be sent"),
    "queued": later("The next one is being sent"),
    "sending": later("The next one is being sent"),
}


def _digest(request: HttpRequest) -> DigestChoice:
    """One's digest by mail. Raises NotSignedIn."""
    info = digest_of(page_actor(request))
    reason = ""
    if not info.is_sent:
        reason = gettext("No mail server is set up here (SCHEMADESK_MAIL_HOST): nothing is sent, whatever you choose.")
    elif not info.address:
        reason = gettext("Your account has no address of mail: an admin gives it one on the page of people.")
    hours = {str(hour): f"{hour:02}:00" for hour in range(24)}
    zone = timezone.get_current_timezone_name()
    return DigestChoice(
        fields=(
            _select("every", gettext("How often"), {key: str(words) for key, words in EVERY.items()}, info.every),
            _select("hour", gettext("At (time zone %(zone)s)") % {"zone": zone}, hours, str(info.hour)),
        ),
        submit=Action(label=gettext("Save"), url=reverse("ui:digest"), method="post", tone="primary"),
        address=info.address,
        reason=reason,
        next_at=info.next_at,
        last=str(LAST.get(info.last_state, "")),
        last_error=info.last_error,
        last_at=info.last_at,
    )


def stop_page(request: HttpRequest, token: str, *, done: bool = False) -> StopPage:
    """What the link in a digest leads to. Raises NotFound for a link that isn't ours."""
    if not done and person_in(token) is None:
        raise NotFound(gettext("This link ends no digest: it is cut off, or the account is gone."))
    url = reverse("ui:digest_stop", args=[token])
    return StopPage(
        frame=make_frame(request, title=gettext("No more mail") if done else gettext("End the digest by mail?")),
        stop=None if done else Action(label=gettext("Send me no more"), url=url, method="post", tone="primary"),
    )


def _select(name: str, label: str, choices: dict[str, str], chosen: str) -> Field:
    shown = tuple(Choice(value=value, label=words, selected=value == chosen) for value, words in choices.items())
    return Field(name=name, label=label, kind="select", choices=shown, required=True)


def _pattern(name: str, label: str, value: str) -> Field:
    return Field(
        name=name,
        label=label,
        value=value,
        code=True,
        required=True,
        help=gettext("A pattern: * stands for anything, ? for one character."),
    )

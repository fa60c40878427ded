"""The pages of the inbox, of subscriptions and of the end of a digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.forms import ServiceForm
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.widgets import Action, Crumb, Fact, Frame, Paging, Problem
from dashboard.notifications.forms import DigestForm, SubscribeForm
from dashboard.sources.labels import chosen_value
from registry.access.roles import ACTION_WORDS
from registry.errors import NotFound
from registry.notifications import selectors
from registry.notifications.digests import DigestInfo, digest_of, person_in
from registry.notifications.events import EVENTS
from registry.notifications.selectors import EntryInfo, SubscriptionInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxPage:
    """The inbox; `newest` is the number of the newest entry shown, up to which all can be marked as read."""

    frame: Frame
    entries: Sequence[EntryInfo]
    unread: int
    only_unread: bool
    paging: Paging
    newest: int
    back: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionsPage:
    """One's subscriptions and digest, with their forms; `defaults` are events that come without, and to whom."""

    frame: Frame
    subscriptions: Sequence[SubscriptionInfo]
    defaults: tuple[Fact, ...]
    digest: DigestInfo
    form: ServiceForm
    digest_form: ServiceForm
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPage:
    """The page behind the link in a digest: the button that ends digests, or None once they are ended."""

    frame: Frame
    stop: Action | None = None


LONGEST_NUMBER = 18


def number_in(text: str) -> int | None:
    """A row's number from a query parameter; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else None


def inbox_page(request: HttpRequest) -> InboxPage:
    """One's notices, newest first. Raises NotSignedIn, InvalidInput."""
    actor = page_actor(request)
    only_unread = chosen_value(request.GET, "show", ["unread"]) == "unread"
    before = number_in(request.GET.get("before", ""))
    page_and_next = selectors.list_entries(actor, unread=only_unread, before=before, limit=selectors.PAGE + 1)
    entries, more = page_and_next[: selectors.PAGE], len(page_and_next) > selectors.PAGE
    frame = make_frame(request, title=gettext("Inbox"))
    return InboxPage(
        frame=frame,
        entries=entries,
        unread=frame.unread,
        only_unread=only_unread,
        paging=older(request.path, request.GET.dict(), [entry.id for entry in entries], more=more),
        newest=entries[0].id if entries else 0,
        back=request.get_full_path(),
    )


def older(path: str, query: Mapping[str, str], numbers: list[int], *, more: bool) -> Paging:
    """Paging by number: how many rows are shown, and the address of older ones."""
    after = {**query, "before": str(numbers[-1])} if numbers else {}
    return Paging(first=1, last=len(numbers), next_url=f"{path}?{urlencode(after)}" if more else "")


def subscriptions_page(request: HttpRequest, sent: ServiceForm | None = None) -> SubscriptionsPage:
    """One's subscriptions and digest; `sent` is a form that was refused. Raises NotSignedIn."""
    actor = page_actor(request)
    digest = digest_of(actor)
    to_owners = [event for event in EVENTS.values() if event.for_owners]
    return SubscriptionsPage(
        frame=make_frame(
            request,
            title=gettext("Subscriptions"),
            crumbs=(Crumb(label=gettext("Inbox"), url=reverse("ui:inbox")),),
        ),
        subscriptions=selectors.list_subscriptions(actor),
        defaults=(
            *(Fact(label=row.title, value=ACTION_WORDS[row.concerns]) for row in EVENTS.values() if row.concerns),
            *(Fact(label=event.title, value=gettext("own the subject")) for event in to_owners),
        ),
        digest=digest,
        form=sent if isinstance(sent, SubscribeForm) else SubscribeForm(initial=request.GET.dict()),
        digest_form=sent
        if isinstance(sent, DigestForm)
        else DigestForm(initial={"every": digest.every, "hour": digest.hour}),
        problem=sent.problem if sent else None,
    )


def stop_page(request: HttpRequest, token: str, *, done: bool = False) -> StopPage:
    """The page behind the link in a digest. Raises NotFound for an invalid token."""
    if not done and person_in(token) is None:
        raise NotFound(gettext("This link doesn’t work. It is incomplete, or the account no longer exists."))
    url = reverse("ui:digest_stop", args=[token])
    return StopPage(
        frame=make_frame(
            request, title=gettext("Email digest turned off") if done else gettext("Turn off the email digest?")
        ),
        stop=None if done else Action(label=gettext("Turn off digest"), url=url, method="post", tone="primary"),
    )

"""What people do with their inbox and their subscriptions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from registry.access.patterns import checked_pattern
from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import InvalidInput, NotFound
from registry.notifications.events import ANY, SUBSCRIBABLE
from registry.notifications.models import InboxEntry, Subscription
from registry.notifications.selectors import person_of

MAX_SUBSCRIPTIONS: Final = 100  # of one person: each is matched with every change


def mark_read(*, by: Actor, entries: Collection[int] | None = None, up_to: int | None = None) -> int:
    """Mark entries of one's own inbox as read: those named, or (None) all, or all up to a number; gives how many.

    `up_to` is the newest entry that the person saw: what came since stays unread. Numbers of other people's entries
    do nothing. Raises NotSignedIn.
    """
    rows = InboxEntry.objects.filter(user=person_of(by), read_at=None)
    if entries is not None:
        rows = rows.filter(pk__in=list(entries))
    if up_to is not None:
        rows = rows.filter(pk__lte=up_to)
    return rows.update(read_at=timezone.now())


@transaction.atomic
def subscribe(
    *, event: str, registry_pattern: str = "*", subject_pattern: str = "*", wanted: bool = True, by: Actor
) -> int:
    """Want to be told of an event (`*`: of all) where both shell patterns fit, or not to be told; gives its number.

    The same wish again changes whether it is wanted. Raises InvalidInput, NotSignedIn, NotAllowed.
    """
    user_id = person_of(by)
    registry_pattern, subject_pattern = checked_patterns(registry_pattern, subject_pattern)
    require(by, "notification.subscribe", registry=registry_pattern, subject=subject_pattern)
    if event != ANY and event not in SUBSCRIBABLE:
        raise InvalidInput(f"There is no event {event[:64]!r}; known are *, {', '.join(SUBSCRIBABLE)}.")
    known = Subscription.objects.filter(user=user_id)
    place: dict[str, Any] = {"event": event, "registry_pattern": registry_pattern, "subject_pattern": subject_pattern}
    if known.count() >= MAX_SUBSCRIPTIONS and not known.filter(**place).exists():
        raise InvalidInput(f"You have {MAX_SUBSCRIPTIONS} subscriptions; remove one, or widen a pattern.")
    record(by=by, why=f"{'subscribe to' if wanted else 'leave out'} {event} of {registry_pattern}/{subject_pattern}")
    row, _ = Subscription.objects.update_or_create(user_id=user_id, **place, defaults={"wanted": wanted})
    return row.pk


@transaction.atomic
def unsubscribe(*, subscription_id: int, by: Actor) -> None:
    """Remove a subscription of one's own. Raises NotFound (also for others'), NotSignedIn."""
    row = Subscription.objects.filter(user=person_of(by), pk=subscription_id).first()
    if row is None:
        raise NotFound(f"You have no subscription {subscription_id}.")
    record(by=by, why=f"unsubscribe from {row.event} of {row.registry_pattern}/{row.subject_pattern}")
    row.delete()


def checked_patterns(registry_pattern: str, subject_pattern: str) -> tuple[str, str]:
    """Both patterns without blanks around them; empty ones mean all. Raises InvalidInput."""
    return checked_pattern(registry_pattern, "registry"), checked_pattern(subject_pattern, "subject")

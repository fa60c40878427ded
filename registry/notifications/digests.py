"""Digests by mail: who wants them, which are due, and sending each once.

A digest is a row of its person and its day, so two workers make one. It is claimed by a conditional update before it is
sent. A worker that dies while it sends may have sent it, so that one isn't sent again: what it told of stays unread in
the inbox. A mail server that refuses is asked again a few times.
"""

from __future__ import annotations

import logging
import smtplib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.core.mail import BadHeaderError
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from registry.access.models import User
from registry.access.roles import Actor, may_somewhere, require, system_actor
from registry.access.selectors import actor_of_user
from registry.audit.services import record
from registry.errors import InvalidInput, NotFound
from registry.notifications.digest_mail import mail_of, person_in
from registry.notifications.digest_times import next_after, zone_of
from registry.notifications.models import (
    DELIVERED,
    EMPTY,
    EVERY,
    FAILED,
    OFF,
    QUEUED,
    SENDING,
    Digest,
    DigestWish,
    InboxEntry,
)
from registry.notifications.selectors import EntryInfo, list_entries, person_of
from registry.notifications.services import storable

logger = logging.getLogger(__name__)
ACTION: Final = "notification.subscribe"
MOST: Final = 50  # notices in one mail
TRIES: Final = 5
BETWEEN: Final = timedelta(minutes=10)
#: longer than a mail server is waited for
LEASE: Final = timedelta(minutes=5)
#: a digest that was handed to a worker and not begun is handed out again after this long
HANDED: Final = timedelta(minutes=2)
AT_A_TIME: Final = 500
_GONE: Final = "The worker that sent it vanished; it may have been sent."


@dataclass(frozen=True)
class DigestInfo:
    """What a person chose, where it goes, and how the last one ended. `address` is "" for an account without one."""

    every: str
    hour: int
    zone: str
    next_at: datetime | None
    address: str
    is_sent: bool
    last_state: str = ""
    last_at: datetime | None = None
    last_error: str = ""


def digest_of(actor: Actor) -> DigestInfo:
    """One's own digest; `is_sent` says whether this installation has a mail server. Raises NotSignedIn."""
    user = User.objects.get(pk=person_of(actor))
    wish = DigestWish.objects.filter(user=user).first() or DigestWish(user=user)
    last = Digest.objects.filter(user=user).exclude(state=EMPTY).first()
    return DigestInfo(
        every=wish.every,
        hour=wish.hour,
        zone=wish.zone,
        next_at=wish.next_at,
        address=user.email,
        is_sent=bool(settings.EMAIL_HOST),
        last_state=last.state if last else "",
        last_at=last.finished_at if last else None,
        last_error=last.error if last else "",
    )


@transaction.atomic
def choose_digest(*, every: str, hour: int, zone: str = "UTC", by: Actor) -> None:
    """Get unread notices by mail, or not. Raises InvalidInput, NotSignedIn, NotAllowed."""
    user_id = person_of(by)
    if not may_somewhere(by, ACTION):
        require(by, ACTION)
    if every not in EVERY:
        raise InvalidInput(f"There is no {every[:40]!r}; choose one of {', '.join(EVERY)}.", field="every")
    if not 0 <= hour <= 23:
        raise InvalidInput("The hour is a number from 0 to 23.", field="hour")
    if zone_of(zone).key != zone:
        raise InvalidInput(f"There is no time zone {zone[:64]!r}.", field="zone")
    record(by=by, why="choose no digest by mail" if every == OFF else f"choose a {every} digest by mail")
    _choose(user_id, every, hour, zone)


@transaction.atomic
def stop_digest(*, token: str) -> None:
    """End the digests of whom a mail's token is for. Raises NotFound for a token that isn't ours."""
    user_id = person_in(token)
    wish = DigestWish.objects.filter(user=user_id).first() if user_id is not None else None
    if wish is None:
        raise NotFound("This link ends no digest: it is cut off, or the account is gone.")
    record(by=system_actor("the link in a digest"), why="choose no digest by mail")
    _choose(wish.user_id, OFF, wish.hour, wish.zone)


def _choose(user_id: int, every: str, hour: int, zone: str) -> None:
    chosen = {"every": every, "hour": hour, "zone": zone}
    next_at = next_after(timezone.now(), every=every, hour=hour, zone=zone)
    DigestWish.objects.update_or_create(user_id=user_id, defaults={**chosen, "next_at": next_at})


@transaction.atomic
def due_digests() -> list[int]:
    """Numbers of digests to hand to workers now. Without a mail server none are made: the days pass."""
    now = timezone.now()
    due = DigestWish.objects.filter(next_at__lte=now).order_by("next_at").select_for_update(skip_locked=True)
    for wish in due[:AT_A_TIME]:
        if settings.EMAIL_HOST and wish.next_at is not None:
            day = wish.next_at.astimezone(zone_of(wish.zone)).date()
            Digest.objects.get_or_create(user_id=wish.user_id, day=day, defaults={"next_attempt_at": now})
        wish.next_at = next_after(now, every=wish.every, hour=wish.hour, zone=wish.zone)
        wish.save(update_fields=["next_at"])
    Digest.objects.filter(state=SENDING, next_attempt_at__lt=now).update(state=FAILED, error=_GONE, finished_at=now)
    waiting = Digest.objects.filter(state=QUEUED, next_attempt_at__lte=now).select_for_update(skip_locked=True)
    numbers = [row.pk for row in waiting[:AT_A_TIME]]
    Digest.objects.filter(pk__in=numbers).update(next_attempt_at=now + HANDED)
    return numbers


def prune() -> None:
    """Remove digests that are older than notices are kept."""
    oldest = timezone.now() - timedelta(days=settings.NOTIFICATION_DAYS)
    Digest.objects.filter(finished_at__lt=oldest).delete()


def send_digest(digest_id: int) -> str:
    """Send a digest; gives the state it ends in, "" where it isn't this worker's to send."""
    lease = timezone.now() + LEASE
    mine = Digest.objects.filter(pk=digest_id, state=QUEUED)
    if not mine.update(state=SENDING, next_attempt_at=lease, attempts=F("attempts") + 1):
        return ""
    row = Digest.objects.select_related("user").get(pk=digest_id)
    try:
        return _send(row)
    except (smtplib.SMTPRecipientsRefused, BadHeaderError, ValueError) as error:
        return _finish(row, FAILED, error=f"The address isn't taken: {type(error).__name__}.")
    except (smtplib.SMTPException, OSError) as error:
        said = f"The mail server can't be used: {type(error).__name__}."
        logger.warning("digest %s: %s", row.pk, said)
        return _finish(row, FAILED if row.attempts >= TRIES else QUEUED, error=said)


def _send(row: Digest) -> str:
    """Send what is new since the last one and not read; what the person may no longer read is left out."""
    user = row.user
    before = Digest.objects.filter(user=user, state=DELIVERED).aggregate(newest=Max("up_to"))["newest"] or 0
    actor = actor_of_user(user, door="task")
    found = [entry for entry in list_entries(actor, unread=True, limit=MOST) if entry.url or entry.registry]
    fresh = [entry for entry in found if entry.id > before]
    if not fresh or not user.email or not user.is_active:
        return _finish(row, EMPTY)
    unread = InboxEntry.objects.filter(user=user, read_at=None).count()
    mail_of(user_id=user.pk, address=user.email, entries=fresh, more=unread - len(fresh)).send()
    return _finish(row, DELIVERED, told=fresh)


def _finish(row: Digest, state: str, *, error: str = "", told: list[EntryInfo] | None = None) -> str:
    now = timezone.now()
    row.state, row.error = state, storable(error, 500)
    row.notices, row.up_to = len(told or ()), max((entry.id for entry in told or ()), default=0)
    row.finished_at = None if state == QUEUED else now
    row.next_attempt_at = now + BETWEEN
    row.save()
    return state

"""Digests by mail: who wants them, when they are due, their text and HTML, and sending each once.

A digest is one row per person and day, so two workers can't make two. A worker claims it by a conditional update before it
sends it. If the worker dies while sending, the mail may have left, so it isn't sent again: its events stay unread in the
inbox. If the mail server refuses, the digest is retried a few times.
"""

from __future__ import annotations

import logging
import smtplib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Final
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.core.mail import BadHeaderError, EmailMultiAlternatives
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from registry.access.models import User
from registry.access.roles import Actor, may_somewhere, require, require_whole_token, system_actor
from registry.access.selectors import actor_of_user
from registry.audit.context import record
from registry.errors import InvalidInput, NotFound
from registry.notifications.models import (
    DAILY,
    DELIVERED,
    EMPTY,
    EVERY,
    FAILED,
    OFF,
    QUEUED,
    SENDING,
    WEEKLY,
    Digest,
    DigestPreference,
    InboxEntry,
)
from registry.notifications.selectors import EntryInfo, list_entries, person_of
from registry.notifications.services import storable

SALT: Final = "schemadesk digest"
PATH: Final = "/ui/digest/stop/"
LONGEST: Final = 500


def stop_token(user_id: int) -> str:
    """Return a token that lets the recipient of the mail end that person's digests, and nothing else."""
    return Signer(salt=SALT).sign(str(user_id))


def person_in(token: str) -> int | None:
    """Return the user id in a token, None if its signature is invalid."""
    try:
        return int(Signer(salt=SALT).unsign(token))
    except (BadSignature, ValueError):
        return None


def mail_of(*, user_id: int, address: str, entries: Sequence[EntryInfo], more: int) -> EmailMultiAlternatives:
    """Make the mail; `more` is the number of older unread notices that aren't in it."""
    count = len(entries)
    subject = f"{count} new {'notice' if count == 1 else 'notices'} in Schemadesk"
    stop = f"{settings.SITE_URL}{PATH}{quote(stop_token(user_id))}" if settings.SITE_URL else ""
    headers = {"Auto-Submitted": "auto-generated"}
    if stop:
        headers |= {"List-Unsubscribe": f"<{stop}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    mail = EmailMultiAlternatives(subject, _text(entries, more, stop), to=[address], headers=headers)
    mail.attach_alternative(_html(subject, entries, more, stop), "text/html")
    return mail


def _text(entries: Sequence[EntryInfo], more: int, stop: str) -> str:
    parts = [
        f"{_clean(entry.title)}: {_clean(entry.text)}\n{_registry_and_subject(entry)}{_link(entry)}".rstrip()
        for entry in entries
    ]
    parts += [_more(more)] if more else []
    parts.append(_why(stop) + (f"\n{stop}" if stop else ""))
    return "\n\n".join(parts) + "\n"


def _html(subject: str, entries: Sequence[EntryInfo], more: int, stop: str) -> SafeString:
    rows = format_html_join("", "<li><p><strong>{}</strong><br>{}<br>{}{}</p></li>", (_row(entry) for entry in entries))
    rest = format_html("<p>{}</p>", _more(more)) if more else SafeString("")
    end = (
        format_html('<p>{} <a href="{}">Turn off digest</a></p>', _why(stop), stop)
        if stop
        else format_html("<p>{}</p>", _why(stop))
    )
    page = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{}</title></head><body><ul>{}</ul>{}{}</body></html>'
    return format_html(page, subject, rows, rest, end)


def _row(entry: EntryInfo) -> tuple[str, str, str, SafeString]:
    link = _link(entry)
    shown = format_html('<br><a href="{}">Open</a>', link) if link else SafeString("")
    return _clean(entry.title), _clean(entry.text), _registry_and_subject(entry).strip(), shown


def _registry_and_subject(entry: EntryInfo) -> str:
    parts = [_clean(part) for part in (entry.registry, entry.subject) if part]
    return f"{' · '.join(parts)}\n" if parts else ""


def _link(entry: EntryInfo) -> str:
    return (
        f"{settings.SITE_URL}{quote(entry.url, safe='/:?=&%#,;@!$+*~.-_')}" if settings.SITE_URL and entry.url else ""
    )


def _more(more: int) -> str:
    return f"{more} older {'notice is' if more == 1 else 'notices are'} unread."


def _why(stop: str) -> str:
    where = "" if stop else " Change this in Inbox, Subscriptions."
    return f"You get this email because you chose a digest of unread notices.{where}"


def _clean(text: str) -> str:
    """Put text from outside on one line, without unprintable characters, cut to a length."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone of that name, UTC if it is unknown."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def next_after(now: datetime, *, every: str, hour: int, zone: str) -> datetime | None:
    """Return the next time at that hour in the zone: every day, or on Mondays; None for never.

    An hour that the clock skips counts as the moment of the change; an hour that occurs twice counts once.
    """
    if every == OFF:
        return None
    tz = zone_of(zone)
    day = now.astimezone(tz).date()
    step = timedelta(days=1)
    for _ in range(9):
        moment = datetime.combine(day, time(hour), tzinfo=tz).astimezone(now.tzinfo)
        if moment > now and (every == DAILY or (every == WEEKLY and day.weekday() == 0)):
            return moment
        day += step
    raise AssertionError("a week has a Monday")


logger = logging.getLogger(__name__)
ACTION: Final = "notification.subscribe"
MOST: Final = 50  # notices in one mail
TRIES: Final = 5
BETWEEN: Final = timedelta(minutes=10)
#: longer than the time-out of the mail server
LEASE: Final = timedelta(minutes=5)
#: a queued digest that no worker has started is queued again after this time
HANDED: Final = timedelta(minutes=2)
AT_A_TIME: Final = 500
_GONE: Final = "The worker stopped while sending. The email may have been sent."


@dataclass(frozen=True)
class DigestInfo:
    """A person's digest settings, the address ("" if the account has none), and the result of the last digest."""

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
    """Return one's own digest; `is_sent` says whether this installation has a mail server. Raises NotSignedIn."""
    user = User.objects.get(pk=person_of(actor))
    wish = DigestPreference.objects.filter(user=user).first() or DigestPreference(user=user)
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
    """Set how often unread notices are mailed. Raises InvalidInput, NotSignedIn, NotAllowed."""
    user_id = person_of(by)
    if not may_somewhere(by, ACTION):
        require(by, ACTION)
    require_whole_token(by, "change the email digest")
    if every not in EVERY:
        raise InvalidInput(
            f"{every[:40]!r} is not a digest frequency. Choose one of {', '.join(EVERY)}.", field="every"
        )
    if not 0 <= hour <= 23:
        raise InvalidInput("The hour must be a number from 0 to 23.", field="hour")
    if zone_of(zone).key != zone:
        raise InvalidInput(f"Unknown time zone {zone[:64]!r}. Use a name such as Europe/Berlin.", field="zone")
    record(by=by, why="turn off the email digest" if every == OFF else f"choose a {every} email digest")
    _choose(user_id, every, hour, zone)


@transaction.atomic
def stop_digest(*, token: str) -> None:
    """End the digests of the person in a mail's token. Raises NotFound for an invalid token."""
    user_id = person_in(token)
    wish = DigestPreference.objects.filter(user=user_id).first() if user_id is not None else None
    if wish is None:
        raise NotFound("This link doesn't work. It is incomplete, or the account no longer exists.")
    record(by=system_actor("the link in a digest"), why="turn off the email digest")
    _choose(wish.user_id, OFF, wish.hour, wish.zone)


def _choose(user_id: int, every: str, hour: int, zone: str) -> None:
    chosen = {"every": every, "hour": hour, "zone": zone}
    next_at = next_after(timezone.now(), every=every, hour=hour, zone=zone)
    DigestPreference.objects.update_or_create(user_id=user_id, defaults={**chosen, "next_at": next_at})


@transaction.atomic
def due_digests() -> list[int]:
    """Make the digests that are due; return the ids of those to give to workers now.

    Without a mail server, no digests are made.
    """
    now = timezone.now()
    due = DigestPreference.objects.filter(next_at__lte=now).order_by("next_at").select_for_update(skip_locked=True)
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
    """Delete digests that are older than the retention of notices."""
    oldest = timezone.now() - timedelta(days=settings.NOTIFICATION_DAYS)
    Digest.objects.filter(finished_at__lt=oldest).delete()


def send_digest(digest_id: int) -> str:
    """Send a digest; return its new state, "" if another worker has it."""
    lease = timezone.now() + LEASE
    mine = Digest.objects.filter(pk=digest_id, state=QUEUED)
    if not mine.update(state=SENDING, next_attempt_at=lease, attempts=F("attempts") + 1):
        return ""
    row = Digest.objects.select_related("user").get(pk=digest_id)
    try:
        return _send(row)
    except (smtplib.SMTPRecipientsRefused, BadHeaderError, ValueError) as error:
        return _finish(row, FAILED, error=f"The mail server rejected the address: {type(error).__name__}.")
    except (smtplib.SMTPException, OSError) as error:
        problem = f"Sending through the mail server failed: {type(error).__name__}."
        logger.warning("digest %s: %s", row.pk, problem)
        return _finish(row, FAILED if row.attempts >= TRIES else QUEUED, error=problem)


def _send(row: Digest) -> str:
    """Send the unread notices since the last digest, without those that the person may no longer read."""
    user = row.user
    before = Digest.objects.filter(user=user, state=DELIVERED).aggregate(newest=Max("up_to"))["newest"] or 0
    actor = actor_of_user(user, channel="task")
    unread_entries = [entry for entry in list_entries(actor, unread=True, limit=MOST) if entry.url or entry.registry]
    fresh = [entry for entry in unread_entries if entry.id > before]
    if not fresh or not user.email or not user.is_active:
        return _finish(row, EMPTY)
    unread = InboxEntry.objects.filter(user=user, read_at=None).count()
    mail_of(user_id=user.pk, address=user.email, entries=fresh, more=unread - len(fresh)).send()
    return _finish(row, DELIVERED, entries=fresh)


def _finish(row: Digest, state: str, *, error: str = "", entries: list[EntryInfo] | None = None) -> str:
    now = timezone.now()
    row.state, row.error = state, storable(error, 500)
    row.notices, row.up_to = len(entries or ()), max((entry.id for entry in entries or ()), default=0)
    row.finished_at = None if state == QUEUED else now
    row.next_attempt_at = now + BETWEEN
    row.save()
    return state

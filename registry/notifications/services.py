"""Notifications of people and webhooks in the transaction of the change, and changes of inboxes and subscriptions.

Deliveries are sent after the commit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from celery import current_app
from celery.exceptions import OperationalError
from django.db import DatabaseError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.models import GroupGrant, RoleGrant
from registry.access.name_patterns import checked_pattern
from registry.access.roles import ACTIONS, Actor, Grant, may, require, require_whole_token
from registry.audit.context import record, storable_text
from registry.errors import InvalidInput, NotFound
from registry.notifications.events import (
    ANY,
    EVENTS,
    SUBSCRIBABLE,
    Event,
    Receiver,
    RestrictedText,
    SubscriptionRule,
    may_read_registry,
    people_concerned,
    sentence_of,
    webhooks_concerned,
)
from registry.notifications.models import Delivery, InboxEntry, Notice, Subscription, Webhook
from registry.notifications.selectors import person_of

logger = logging.getLogger(__name__)

MAX_TEXT: Final = 2000
MAX_URL: Final = 4096
MAX_DATA: Final = 16 * 1024  # characters of JSON
BATCH: Final = 2000
KEEP_USERS: Final = "SELECT id FROM access_user WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"
KEEP_WEBHOOKS: Final = "SELECT id FROM notifications_webhook WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"
#: the SQL condition that somebody may subscribe to one of `%(events)s`, among which is ANY; for embedding too
HAS_SUBSCRIBERS: Final = (
    "(EXISTS (SELECT 1 FROM notifications_subscription WHERE wanted AND event = ANY(%(events)s))"
    " OR EXISTS (SELECT 1 FROM notifications_webhook WHERE active))"
)
_PLACE: Final = ("role", "registry", "subject_pattern")
#: the name of a task, because services don't import tasks
SWEEP: Final = "registry.notifications.tasks.queue_due_deliveries"


def notify(
    *,
    event: str,
    registry: str,
    subject: str,
    text: str,
    url: str,
    to: Collection[int] = (),
    data: Mapping[str, Any] | None = None,
    by: int | None = None,
) -> int:
    """Notify about one event; see `notify_many`. An empty `text` means the type's own sentence."""
    return notify_many([Event(event, registry, subject, text=text, url=url, to=tuple(to), data=data or {}, by=by)])


def notify_many(events: Sequence[Event]) -> int:
    """Write inbox entries and deliveries for all recipients of events; return how many.

    Takes at most seven queries to read and three to write, however many events and people (in batches of 2000 rows);
    one if nobody is named, concerned by role, or subscribes. A database error is logged and rolled back to a savepoint:
    no change fails because of its notifications. Raises KeyError for an unknown event type, TransactionManagementError
    outside a transaction.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("notify(…) works only inside a transaction")
    whole = [_cleaned(event) for event in events]
    if not whole or not _is_anybody_there(whole):
        return 0
    try:
        with transaction.atomic():
            entries, deliveries = _write(whole)
    except DatabaseError:
        if connection.needs_rollback:
            raise  # the savepoint is lost too, and with it the change, so the caller must know
        logger.exception("%d notices could not be written, the first of %s", len(whole), whole[0].type)
        return 0
    if deliveries:
        wake_deliveries()
    return entries + deliveries


def _is_anybody_there(events: Sequence[Event]) -> bool:
    """Return whether there may be recipients: mostly nobody subscribes.

    Runs outside the savepoint, which would cost more than the query.
    """
    if any(event.to or event.owners or EVENTS[event.type].concerns for event in events):
        return True
    type_ids = sorted({event.type for event in events} | {ANY})
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {HAS_SUBSCRIBERS}", {"events": type_ids})
        (exists,) = cursor.fetchone()
    return bool(exists)


def wake_deliveries() -> None:
    """Send queued deliveries once this transaction is committed; beat does it if the message is lost."""
    send_on_commit(SWEEP)


def send_on_commit(task: str, *args: Any) -> None:
    """Send a task once this transaction is committed; beat does what it is for while the broker is down."""

    def send() -> None:
        try:
            current_app.send_task(task, args, retry=False)
        except (OSError, OperationalError) as error:
            logger.warning("%s waits for beat, because the broker is down: %s", task, type(error).__name__)

    transaction.on_commit(send, robust=True)


def _write(events: Sequence[Event]) -> tuple[int, int]:
    """Write the rows; return how many inbox entries and deliveries."""
    type_ids = {event.type for event in events}
    rules = [
        SubscriptionRule(row.user_id, row.event, row.registry_pattern, row.subject_pattern, row.wanted)
        for row in Subscription.objects.filter(event__in=[*type_ids, ANY])
    ]
    receivers = [
        Receiver(row.pk, row.owner_id, row.events, row.registry_pattern, row.subject_pattern)
        for row in Webhook.objects.filter(active=True)
    ]
    named = {number for event in events for number in (*event.to, *event.owners)}
    people = _people(type_ids, named | {rule.user_id for rule in rules} | {item.owner_id for item in receivers})
    recipients = [
        (event, people_concerned(event, rules, people), webhooks_concerned(event, receivers, people))
        for event in events
    ]
    owners = {receiver.id: receiver.owner_id for receiver in receivers}
    recipients = [part for whole in recipients for part in _by_permission(*whole, owners, people)]
    users_there = _locked_rows(KEEP_USERS, {number for _, users, _ in recipients for number in users})
    webhooks_there = _locked_rows(KEEP_WEBHOOKS, {number for _, _, numbers in recipients for number in numbers})
    recipients = [
        (event, [u for u in users if u in users_there], [w for w in numbers if w in webhooks_there])
        for event, users, numbers in recipients
    ]
    recipients = [item for item in recipients if item[1] or item[2]]
    notices = Notice.objects.bulk_create([_notice(event) for event, _, _ in recipients], batch_size=BATCH)
    now = timezone.now()
    entries = [
        InboxEntry(user_id=user, notice=notice)
        for notice, (_, users, _) in zip(notices, recipients, strict=True)
        for user in users
    ]
    deliveries = [
        Delivery(webhook_id=number, notice=notice, next_attempt_at=now)
        for notice, (_, _, numbers) in zip(notices, recipients, strict=True)
        for number in numbers
    ]
    InboxEntry.objects.bulk_create(entries, batch_size=BATCH)
    Delivery.objects.bulk_create(deliveries, batch_size=BATCH)
    return len(entries), len(deliveries)


def _by_permission(
    event: Event, users: list[int], webhooks: list[int], owners: Mapping[int, int], people: Mapping[int, Actor]
) -> list[tuple[Event, list[int], list[int]]]:
    """Split the recipients into those of the full text and those who may not read the whole registry."""
    if event.narrow is None:
        return [(event, users, webhooks)]
    named = {*users, *(owners[number] for number in webhooks)}
    whole = {number for number in named if may_read_registry(people.get(number), event)}
    narrow = replace(event, text=event.narrow.text, data=event.narrow.data)
    return [
        (event, [user for user in users if user in whole], [one for one in webhooks if owners[one] in whole]),
        (narrow, [user for user in users if user not in whole], [one for one in webhooks if owners[one] not in whole]),
    ]


def _locked_rows(statement: str, numbers: Collection[int]) -> set[int]:
    """Return the ids that still exist, with their rows locked against deletion until this transaction ends.

    Foreign keys are checked at the commit: deleting a person or webhook before then would fail the whole change.
    """
    if not numbers:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(statement, [sorted(numbers)])
        return {number for (number,) in cursor.fetchall()}


def _people(type_ids: Iterable[str], numbers: Collection[int]) -> dict[int, Actor]:
    """Return the active people who may be recipients, with their grants and those of their groups, in two queries.

    Every role may read, so the grants by which an event type concerns a person also allow reading it.
    """
    actions = {EVENTS[type_id].concerns for type_id in type_ids} - {""}
    roles = {role for action in actions for role in ACTIONS[action]}
    own = RoleGrant.objects.filter(Q(user__in=numbers) | Q(role__in=roles), user__is_active=True)
    by_group = GroupGrant.objects.filter(Q(group__user__in=numbers) | Q(role__in=roles), group__user__is_active=True)
    grants: dict[int, list[Grant]] = {}
    for number, *scope in (*own.values_list("user", *_PLACE), *by_group.values_list("group__user", *_PLACE)):
        grants.setdefault(number, []).append(Grant(*scope))
    return {number: Actor(str(number), "task", number, tuple(own_grants)) for number, own_grants in grants.items()}


def _notice(event: Event) -> Notice:
    return Notice(
        event=event.type,
        registry=event.registry,
        subject=event.subject,
        text=event.text,
        url=event.url,
        data=event.data,
    )


def _cleaned(event: Event) -> Event:
    """Make an event storable: names and texts from outside may have any characters and any length."""
    text = event.text or sentence_of(event.type, registry=event.registry, subject=event.subject)
    return replace(
        event,
        type=EVENTS[event.type].id,
        registry=storable(event.registry, 255),
        subject=storable(event.subject, 1400),
        text=storable(text, MAX_TEXT),
        url=storable(event.url, MAX_URL) if is_own_path(event.url) else "",
        data=_storable_data(event.data),
        narrow=event.narrow
        and RestrictedText(storable(event.narrow.text, MAX_TEXT), _storable_data(event.narrow.data)),
    )


def is_own_path(url: str) -> bool:
    """Return whether it is a path on this site that browsers can't interpret as another host."""
    return url.startswith("/") and url[1:2] not in ("/", "\\") and len(url) <= MAX_URL and url.isprintable()


def storable(text: str, longest: int) -> str:
    """Make a text storable in PostgreSQL, cut to a number of characters."""
    clean = storable_text(text)
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def _storable_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data as storable JSON; if it is too large or not JSON, a note in its place."""
    try:
        text = json.dumps(dict(data), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {"left_out": "the data is not JSON"}
    if len(text) > MAX_DATA:
        return {"left_out": f"the data has more than {MAX_DATA} characters"}
    whole: dict[str, Any] = json.loads(_storable_json(text))
    return whole


def _storable_json(text: str) -> str:
    """Remove NUL and lone surrogates, which PostgreSQL's jsonb can't store."""
    if "\\u0000" not in text and "\\ud" not in text:
        return text
    return json.dumps(_clean_values(json.loads(text)))


def _clean_values(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value, MAX_DATA)
    if isinstance(value, list):
        return [_clean_values(item) for item in value]
    if isinstance(value, dict):
        return {storable(name, MAX_DATA): _clean_values(item) for name, item in value.items()}
    return value


SUBSCRIBE: Final = "notification.subscribe"
MAX_SUBSCRIPTIONS: Final = 100  # per person; each is matched with every event


def mark_read(*, by: Actor, entries: Collection[int] | None = None, up_to: int | None = None) -> int:
    """Mark entries of one's own inbox as read: those given, or (None) all, or all up to an id; return how many.

    `up_to` is the newest entry that the person saw: later ones stay unread. Ignores the ids of other people's
    entries, and of entries that the token doesn't cover. Raises NotSignedIn, NotAllowed.
    """
    rows = InboxEntry.objects.filter(user=person_of(by), read_at=None)
    require_token(by, "" if entries is not None else "mark all notifications as read")
    if entries is not None:
        listed = rows.filter(pk__in=list(entries)).select_related("notice")
        rows = rows.filter(pk__in=[row.pk for row in listed if not by.limit or _is_covered(row.notice, by)])
    if up_to is not None:
        rows = rows.filter(pk__lte=up_to)
    return rows.update(read_at=timezone.now())


@transaction.atomic
def subscribe(
    *, event: str, registry_pattern: str = "*", subject_pattern: str = "*", wanted: bool = True, by: Actor
) -> int:
    """Subscribe to an event type (`*`: all) where both name patterns match, or opt out; return the subscription's id.

    For an existing type and patterns, this changes `wanted`. Raises InvalidInput, NotSignedIn, NotAllowed.
    """
    user_id = person_of(by)
    registry_pattern, subject_pattern = checked_patterns(registry_pattern, subject_pattern)
    require(by, SUBSCRIBE, registry=registry_pattern, subject=subject_pattern)
    if event != ANY and event not in SUBSCRIBABLE:
        raise InvalidInput(f"Unknown event {event[:64]!r}. Use * or one of {', '.join(SUBSCRIBABLE)}.")
    subscriptions = Subscription.objects.filter(user=user_id)
    key: dict[str, Any] = {"event": event, "registry_pattern": registry_pattern, "subject_pattern": subject_pattern}
    if subscriptions.count() >= MAX_SUBSCRIPTIONS and not subscriptions.filter(**key).exists():
        raise InvalidInput(
            f"You have {MAX_SUBSCRIPTIONS} subscriptions, which is the maximum. Remove one, or widen a pattern."
        )
    record(by=by, why=f"{'subscribe to' if wanted else 'leave out'} {event} of {registry_pattern}/{subject_pattern}")
    row, _ = Subscription.objects.update_or_create(user_id=user_id, **key, defaults={"wanted": wanted})
    return row.pk


@transaction.atomic
def unsubscribe(*, subscription_id: int, by: Actor) -> None:
    """Remove one's own subscription. Raises NotFound (also for other people's), NotSignedIn, NotAllowed."""
    require_token(by, "unsubscribe")
    row = Subscription.objects.filter(user=person_of(by), pk=subscription_id).first()
    if row is None:
        raise NotFound(f"You don't have a subscription {subscription_id}.")
    record(by=by, why=f"unsubscribe from {row.event} of {row.registry_pattern}/{row.subject_pattern}")
    row.delete()


def require_token(by: Actor, of_all: str = "") -> None:
    """Require of a token the scope that subscribing takes, and to do `of_all`, if given, that it is not limited.

    People change what reaches their own inbox whatever their roles. Raises NotAllowed.
    """
    if by.limit and not by.limit.has(SUBSCRIBE):
        require(by, SUBSCRIBE)
    if of_all:
        require_whole_token(by, of_all)


def _is_covered(notice: Notice, by: Actor) -> bool:
    return may(by, SUBSCRIBE, registry=notice.registry, subject=notice.subject)


def checked_patterns(registry_pattern: str, subject_pattern: str) -> tuple[str, str]:
    """Strip and validate both patterns; empty ones mean all. Raises InvalidInput."""
    return checked_pattern(registry_pattern, "registry"), checked_pattern(subject_pattern, "subject")

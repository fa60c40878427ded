"""Telling whom it concerns, in the transaction of the change. Deliveries leave after the commit."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from celery import current_app
from django.db import DatabaseError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.models import GroupGrant, RoleGrant
from registry.access.roles import ACTIONS, Actor, Grant
from registry.notifications.concerned import (
    Happening,
    Narrow,
    Receiver,
    Wish,
    is_in_sight,
    people_concerned,
    webhooks_concerned,
)
from registry.notifications.events import ANY, EVENTS, sentence_of
from registry.notifications.models import Delivery, InboxEntry, Notice, Subscription, Webhook

logger = logging.getLogger(__name__)

MAX_TEXT: Final = 2000
MAX_URL: Final = 4096
MAX_DATA: Final = 16 * 1024  # characters of JSON
BATCH: Final = 2000
KEEP_USERS: Final = "SELECT id FROM access_user WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"
KEEP_WEBHOOKS: Final = "SELECT id FROM notifications_webhook WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"
ANYBODY: Final = (
    "SELECT EXISTS (SELECT 1 FROM notifications_subscription WHERE wanted AND event = ANY(%s))"
    " OR EXISTS (SELECT 1 FROM notifications_webhook WHERE active)"
)
_PLACE: Final = ("role", "registry", "subject_pattern")
#: by its name, because services don't import tasks
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
    """Tell of one change; see `notify_many`. `text` empty: the event's own sentence."""
    return notify_many([Happening(event, registry, subject, text=text, url=url, to=tuple(to), data=data or {}, by=by)])


def notify_many(happenings: Sequence[Happening]) -> int:
    """Write inbox entries and deliveries for all whom changes concern; gives how many entries and deliveries.

    At most seven queries to read and three to write, however many happenings and people (in batches of 2000 rows); one
    where nobody is named, concerned by role, or subscribes.
    What the database refuses is logged and undone to a savepoint: no change fails because nobody could be told.
    Raises KeyError for an event that the table doesn't have, TransactionManagementError outside a transaction.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("notify(…) works only inside a transaction")
    whole = [_cleaned(happening) for happening in happenings]
    if not whole or not _is_anybody_there(whole):
        return 0
    try:
        with transaction.atomic():
            entries, deliveries = _write(whole)
    except DatabaseError:
        if connection.needs_rollback:
            raise  # not even the savepoint is there any more: the change is lost, whoever made it must know
        logger.exception("%d notices could not be written, the first of %s", len(whole), whole[0].event)
        return 0
    if deliveries:
        wake_deliveries()
    return entries + deliveries


def _is_anybody_there(happenings: Sequence[Happening]) -> bool:
    """Whether anybody may have to be told: registrations ask this each time, and mostly nobody subscribes.

    Not inside the savepoint, which would cost more than the question.
    """
    if any(happening.to or happening.owners or EVENTS[happening.event].concerns for happening in happenings):
        return True
    events = sorted({happening.event for happening in happenings} | {ANY})
    with connection.cursor() as cursor:
        cursor.execute(ANYBODY, [events])
        (found,) = cursor.fetchone()
    return bool(found)


def wake_deliveries() -> None:
    """Have what is queued delivered once this transaction is committed; beat does it where the message is lost."""
    transaction.on_commit(lambda: current_app.send_task(SWEEP, retry=False), robust=True)


def _write(happenings: Sequence[Happening]) -> tuple[int, int]:
    """Rows of all of it; gives how many inbox entries and deliveries."""
    events = {happening.event for happening in happenings}
    wishes = [
        Wish(row.user_id, row.event, row.registry_pattern, row.subject_pattern, row.wanted)
        for row in Subscription.objects.filter(event__in=[*events, ANY])
    ]
    receivers = [
        Receiver(row.pk, row.owner_id, row.events, row.registry_pattern, row.subject_pattern)
        for row in Webhook.objects.filter(active=True)
    ]
    named = {number for happening in happenings for number in (*happening.to, *happening.owners)}
    people = _people(events, named | {wish.user_id for wish in wishes} | {item.owner_id for item in receivers})
    told = [
        (happening, people_concerned(happening, wishes, people), webhooks_concerned(happening, receivers, people))
        for happening in happenings
    ]
    owners = {receiver.id: receiver.owner_id for receiver in receivers}
    told = [part for whole in told for part in _by_sight(*whole, owners, people)]
    users_there = _held(KEEP_USERS, {number for _, users, _ in told for number in users})
    webhooks_there = _held(KEEP_WEBHOOKS, {number for _, _, numbers in told for number in numbers})
    told = [
        (happening, [u for u in users if u in users_there], [w for w in numbers if w in webhooks_there])
        for happening, users, numbers in told
    ]
    told = [item for item in told if item[1] or item[2]]
    notices = Notice.objects.bulk_create([_notice(happening) for happening, _, _ in told], batch_size=BATCH)
    now = timezone.now()
    entries = [
        InboxEntry(user_id=user, notice=notice)
        for notice, (_, users, _) in zip(notices, told, strict=True)
        for user in users
    ]
    deliveries = [
        Delivery(webhook_id=number, notice=notice, next_attempt_at=now)
        for notice, (_, _, numbers) in zip(notices, told, strict=True)
        for number in numbers
    ]
    InboxEntry.objects.bulk_create(entries, batch_size=BATCH)
    Delivery.objects.bulk_create(deliveries, batch_size=BATCH)
    return len(entries), len(deliveries)


def _by_sight(
    happening: Happening, users: list[int], webhooks: list[int], owners: Mapping[int, int], people: Mapping[int, Actor]
) -> list[tuple[Happening, list[int], list[int]]]:
    """Whom to tell of it as it is, and whom in the words for those who may not read all of the registry."""
    if happening.narrow is None:
        return [(happening, users, webhooks)]
    named = {*users, *(owners[number] for number in webhooks)}
    whole = {number for number in named if is_in_sight(people.get(number), happening)}
    narrow = replace(happening, text=happening.narrow.text, data=happening.narrow.data)
    return [
        (happening, [user for user in users if user in whole], [one for one in webhooks if owners[one] in whole]),
        (narrow, [user for user in users if user not in whole], [one for one in webhooks if owners[one] not in whole]),
    ]


def _held(statement: str, numbers: Collection[int]) -> set[int]:
    """Those rows that are still there, kept from being deleted until this transaction has ended.

    Foreign keys are tested at the commit: a person or webhook that is deleted before it would fail the whole change.
    """
    if not numbers:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(statement, [sorted(numbers)])
        return {number for (number,) in cursor.fetchall()}


def _people(events: Iterable[str], numbers: Collection[int]) -> dict[int, Actor]:
    """Active people who may be concerned, with their grants and those of their groups, in two queries.

    Every role may read, so the grants by which an event concerns somebody are enough to read it, too.
    """
    actions = {EVENTS[event].concerns for event in events} - {""}
    roles = {role for action in actions for role in ACTIONS[action]}
    own = RoleGrant.objects.filter(Q(user__in=numbers) | Q(role__in=roles), user__is_active=True)
    by_group = GroupGrant.objects.filter(Q(group__user__in=numbers) | Q(role__in=roles), group__user__is_active=True)
    grants: dict[int, list[Grant]] = {}
    for number, *place in (
        *own.values_list("user", *_PLACE),
        *by_group.values_list("group__user", *_PLACE),
    ):
        grants.setdefault(number, []).append(Grant(*place))
    return {number: Actor(str(number), "task", number, tuple(found)) for number, found in grants.items()}


def _notice(happening: Happening) -> Notice:
    return Notice(
        event=happening.event,
        registry=happening.registry,
        subject=happening.subject,
        text=happening.text,
        url=happening.url,
        data=happening.data,
    )


def _cleaned(happening: Happening) -> Happening:
    """The happening in what a row can hold: names and texts of others may have any character and any length."""
    text = happening.text or sentence_of(happening.event, registry=happening.registry, subject=happening.subject)
    return replace(
        happening,
        event=EVENTS[happening.event].id,
        registry=storable(happening.registry, 255),
        subject=storable(happening.subject, 1400),
        text=storable(text, MAX_TEXT),
        url=storable(happening.url, MAX_URL) if is_own_path(happening.url) else "",
        data=_storable_data(happening.data),
        narrow=happening.narrow
        and Narrow(storable(happening.narrow.text, MAX_TEXT), _storable_data(happening.narrow.data)),
    )


def is_own_path(url: str) -> bool:
    """Whether it is an address on this site: it starts at its root, and browsers can't read it as another host's."""
    return url.startswith("/") and url[1:2] not in ("/", "\\") and len(url) <= MAX_URL and url.isprintable()


def storable(text: str, longest: int) -> str:
    """A text that PostgreSQL takes, cut to so many characters."""
    clean = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}…"


def _storable_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data as JSON that a row can hold; what is too large or no JSON is left out, and that is said."""
    try:
        text = json.dumps(dict(data), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {"left_out": "the data is no JSON"}
    if len(text) > MAX_DATA:
        return {"left_out": f"the data has more than {MAX_DATA} characters"}
    whole: dict[str, Any] = json.loads(_storable_json(text))
    return whole


def _storable_json(text: str) -> str:
    """PostgreSQL's jsonb has neither NUL nor halves of surrogate pairs; texts with either lose just those."""
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

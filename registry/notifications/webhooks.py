"""Webhooks: creating, changing and removing them, their keys and signatures, and replaying messages.

Signatures follow the Standard Webhooks specification; keys are derived and never stored. Key: HKDF-SHA256
(RFC 5869) of the deployment's secret key, with the webhook's public id and the number of the key. While the secret key is
rotated, its fallbacks sign too. Signature: HMAC-SHA256
over `ID.TIMESTAMP.BODY`, in base64 after `v1,`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from registry.access.egress import current_policy, parse_connection
from registry.access.roles import Actor, require
from registry.audit.context import record
from registry.errors import InvalidInput, NotFound, RemoteUnavailable, WrongState
from registry.notifications.events import EVENTS, FOR_WEBHOOKS, TEST
from registry.notifications.models import DELIVERED, FAILED, KINDS, QUEUED, SIGNED, Delivery, Notice, Webhook
from registry.notifications.selectors import person_of, webhook_row
from registry.notifications.services import checked_patterns, wake_deliveries

KEY_BYTES: Final = 32
SALT: Final = b"schemadesk webhook signing"
PREFIX: Final = "whsec_"
#: how long messages are also signed with the previous key, so that receivers can switch
OVERLAP: Final = timedelta(hours=24)


def key_of(public_id: str, key_version: int, secret_key: str | None = None) -> bytes:
    """Return the 32-byte signing key of a webhook, by default from the current secret key."""
    info = f"{public_id}\0{key_version}".encode()
    source = settings.SECRET_KEY if secret_key is None else secret_key
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=SALT, info=info).derive(source.encode())


def keys_in_force(webhook: Webhook, now: datetime) -> list[bytes]:
    """Return the keys to sign with: those of its versions, from the secret key and then from its fallbacks."""
    versions = versions_in_force(webhook.key_version, webhook.rotated_at, now)
    secret_keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return [key_of(webhook.public_id, version, secret_key) for secret_key in secret_keys for version in versions]


def shown_secret(public_id: str, key_version: int) -> str:
    """Return the key in the form that its owner sees once: `whsec_` and base64."""
    return PREFIX + base64.b64encode(key_of(public_id, key_version)).decode()


def versions_in_force(key_version: int, rotated_at: datetime | None, now: datetime) -> tuple[int, ...]:
    """Return the key versions to sign with: the current one, and the previous one for a day after a rotation."""
    if key_version > 1 and rotated_at is not None and now - rotated_at < OVERLAP:
        return key_version, key_version - 1
    return (key_version,)


def signature(*, keys: Collection[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`: one signature per key, separated by spaces.

    `timestamp` is in Unix seconds.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join("v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode("ascii") for key in keys)


MAX_NAME: Final = 100
MAX_WEBHOOKS: Final = 50  # per person
CHANGEABLE: Final = ("name", "url", "kind", "events", "registry_pattern", "subject_pattern", "active")


@dataclass(frozen=True)
class NewKey:
    """A webhook's public id and its key, shown only once."""

    webhook: str
    secret: str


def create_webhook(
    *,
    name: str,
    url: str,
    kind: str = SIGNED,
    events: Collection[str] = (),
    registry_pattern: str = "*",
    subject_pattern: str = "*",
    by: Actor,
) -> NewKey:
    """Create one's own webhook; return its id and its key, "" for a chat program. No events means all.

    Raises InvalidInput and AddressRefused for an unusable address, WrongState for a name that is taken, NotSignedIn,
    NotAllowed.
    """
    user_id = person_of(by)
    fields = _checked(
        {
            "name": name,
            "url": url,
            "kind": kind,
            "events": events,
            "registry_pattern": registry_pattern,
            "subject_pattern": subject_pattern,
        }
    )
    _require(by, fields["registry_pattern"], fields["subject_pattern"])
    fields |= {"host": _judged_host(fields["url"])}
    with transaction.atomic():
        if Webhook.objects.filter(owner=user_id).count() >= MAX_WEBHOOKS:
            raise InvalidInput(f"You have {MAX_WEBHOOKS} webhooks, which is the maximum. Remove one first.")
        record(by=by, why=f"create webhook {fields['name']}")
        row = _saved(Webhook(owner_id=user_id, **fields))
    return _key_of(row)


def _key_of(row: Webhook) -> NewKey:
    return NewKey(row.public_id, shown_secret(row.public_id, row.key_version) if row.kind == SIGNED else "")


def update_webhook(*, webhook: str, changes: Mapping[str, Any], by: Actor) -> None:
    """Change name, url, kind, events, patterns or whether it is active. Pending messages are delivered if it is active.

    Raises NotFound, InvalidInput, AddressRefused, WrongState, NotSignedIn, NotAllowed.
    """
    unknown = sorted(set(changes) - set(CHANGEABLE))
    if unknown:
        raise InvalidInput(f"A webhook has no field {unknown[0][:40]!r}. You can change {', '.join(CHANGEABLE)}.")
    before = webhook_row(by, webhook)
    fields = _checked({name: changes.get(name, getattr(before, name)) for name in CHANGEABLE[:-1]})
    _require(by, before.registry_pattern, before.subject_pattern)
    _require(by, fields["registry_pattern"], fields["subject_pattern"])
    host = _judged_host(fields["url"]) if fields["url"] != before.url else before.host
    with transaction.atomic():
        row = Webhook.objects.select_for_update().get(pk=before.pk)
        record(by=by, why=f"change webhook {row.name}")
        for name, value in fields.items():
            setattr(row, name, value)
        row.host = host
        if "active" in changes and bool(changes["active"]) != row.active:
            row.active = bool(changes["active"])
            row.disabled_reason = "" if row.active else f"Turned off by {by.name}."
            row.failing_since = None
        _saved(row)
        if row.active:
            wake_deliveries()


def remove_webhook(*, webhook: str, by: Actor) -> None:
    """Remove a webhook with its log. Raises NotFound, NotSignedIn, NotAllowed."""
    row = webhook_row(by, webhook)
    _require(by, row.registry_pattern, row.subject_pattern)
    with transaction.atomic():
        record(by=by, why=f"remove webhook {row.name}")
        row.delete()


def rotate_key(*, webhook: str, by: Actor) -> NewKey:
    """Sign with a new key from now on, and for a day with the previous one too; return the new key, shown only once.

    Raises NotFound, WrongState for a webhook without signatures, NotSignedIn, NotAllowed.
    """
    number = webhook_row(by, webhook)
    _require(by, number.registry_pattern, number.subject_pattern)
    if number.kind != SIGNED:
        raise WrongState(f"Webhook {number.name} sends chat messages, which are not signed, so it has no key.")
    with transaction.atomic():
        row = Webhook.objects.select_for_update().get(pk=number.pk)
        record(by=by, why=f"rotate the key of webhook {row.name}")
        row.key_version += 1
        row.rotated_at = timezone.now()
        row.save(update_fields=["key_version", "rotated_at"])
    return _key_of(row)


def send_test(*, webhook: str, by: Actor) -> int:
    """Queue a test message; return the delivery's id. Raises NotFound, WrongState, NotSignedIn, NotAllowed."""
    row = webhook_row(by, webhook)
    _require(by, row.registry_pattern, row.subject_pattern)
    if not row.active:
        raise WrongState(f"Webhook {row.name} is turned off. Turn it on first.")
    with transaction.atomic():
        notice = Notice.objects.create(event=TEST, text=f"A test message for {row.name}.", url="/ui/webhooks")
        delivery = Delivery.objects.create(webhook=row, notice=notice, next_attempt_at=timezone.now())
        wake_deliveries()
    return delivery.pk


def replay(*, webhook: str, delivery_id: int, by: Actor) -> None:
    """Deliver a message again, with the same `webhook-id`; the attempts start from zero.

    Raises NotFound, WrongState if it is already in progress, NotSignedIn, NotAllowed.
    """
    row = webhook_row(by, webhook)
    _require(by, row.registry_pattern, row.subject_pattern)
    with transaction.atomic():
        mine = Delivery.objects.filter(webhook=row, pk=delivery_id)
        done = mine.filter(state__in=(DELIVERED, FAILED)).update(
            state=QUEUED, attempts=0, next_attempt_at=timezone.now(), enqueued_at=None, finished_at=None
        )
        if done:
            wake_deliveries()
            return
        if not mine.exists():
            raise NotFound(f"Delivery {delivery_id} of this webhook not found.")
        raise WrongState(f"Delivery {delivery_id} is already in progress.")


def _require(by: Actor, registry_pattern: str, subject_pattern: str) -> None:
    """Require the right to manage webhooks there.

    Events that the owner may not read aren't sent, whatever the patterns.
    """
    require(by, "webhook.manage", registry=registry_pattern, subject=subject_pattern)


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    name = str(fields["name"]).strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise InvalidInput(f"A webhook's name must have 1 to {MAX_NAME} printable characters.")
    if fields["kind"] not in KINDS:
        raise InvalidInput(f"Unknown webhook kind {str(fields['kind'])[:40]!r}. Use one of {', '.join(KINDS)}.")
    events = sorted({str(event) for event in fields["events"]})
    allowed = FOR_WEBHOOKS
    unknown = [event for event in events if event not in EVENTS or event not in allowed]
    if unknown:
        raise InvalidInput(f"Unknown event {unknown[0][:64]!r}. Use one of {', '.join(allowed)}.")
    registry_pattern, subject_pattern = checked_patterns(
        str(fields["registry_pattern"]), str(fields["subject_pattern"])
    )
    return {
        "name": name,
        "url": str(fields["url"]).strip(),
        "kind": fields["kind"],
        "events": events,
        "registry_pattern": registry_pattern,
        "subject_pattern": subject_pattern,
    }


def _judged_host(url: str) -> str:
    """Return the host of an address, if the egress policy allows all addresses that it resolves to.

    Each delivery checks again, because the name may then resolve to another address.
    """
    connection = parse_connection(url)
    try:
        current_policy().addresses(connection)
    except RemoteUnavailable as error:
        raise InvalidInput(f"The address can't be used: {error.message}") from error
    return connection.netloc


def _saved(row: Webhook) -> Webhook:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise WrongState(f"You already have a webhook named {row.name!r}.") from error
    return row

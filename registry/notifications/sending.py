"""One message to one webhook: its body, its signature, the exchange, and what came of it."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils import timezone

from registry.access.egress import parse_connection
from registry.access.outgoing import Limits, OutgoingClient
from registry.errors import SchemadeskError
from registry.notifications.chat import chat_body
from registry.notifications.models import SLACK, Notice, Webhook
from registry.notifications.services import storable
from registry.notifications.signing import key_of, signature, versions_in_force

LIMITS: Final = Limits(connect_seconds=5.0, read_seconds=10.0, total_seconds=15.0, max_bytes=64 * 1024)
EXCERPT: Final = 300
SECRET_LIKE: Final = re.compile(r"[A-Za-z0-9_\-+/=.]{16,}")


@dataclass(frozen=True)
class Claim:
    """A delivery that this worker has, and all that it takes to send it."""

    delivery_id: int
    tag: str
    attempt: int
    message_id: str
    webhook: Webhook
    notice: Notice


@dataclass(frozen=True)
class Outcome:
    """What came back: `status` None where no answer came; `error` empty where it was taken."""

    status: int | None
    error: str
    excerpt: str
    seconds: float

    @property
    def taken(self) -> bool:
        """Whether the receiver has it: any status of success."""
        return self.status is not None and 200 <= self.status < 300


def body_of(notice: Notice) -> bytes:
    """The message: the same bytes at every attempt."""
    document = {
        "type": notice.event,
        "timestamp": notice.at.isoformat(),
        "data": {
            "registry": notice.registry,
            "subject": notice.subject,
            "text": notice.text,
            "url": notice.url,
            "details": notice.data,
        },
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def signed_headers(webhook: Webhook, message_id: str, body: bytes, now: datetime) -> dict[str, str]:
    """The headers that a receiver verifies. Source: the Standard Webhooks specification."""
    timestamp = int(now.timestamp())
    versions = versions_in_force(webhook.key_version, webhook.rotated_at, now)
    keys = [key_of(webhook.public_id, version) for version in versions]
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(keys=keys, message_id=message_id, timestamp=timestamp, body=body),
    }


def _message(claim: Claim) -> tuple[bytes, dict[str, str]]:
    """Body and headers in the form that the webhook sends."""
    if claim.webhook.kind == SLACK:
        return chat_body(claim.notice), {"Content-Type": "application/json"}
    body = body_of(claim.notice)
    return body, signed_headers(claim.webhook, claim.message_id, body, timezone.now())


def send(claim: Claim, limits: Limits = LIMITS) -> Outcome:
    """Send the message once. What goes wrong on the way is an outcome, not an error."""
    body, headers = _message(claim)
    started = time.monotonic()
    status: int | None
    try:
        # The address is judged again here, by the client, and the connection goes to what was judged.
        with OutgoingClient(parse_connection(claim.webhook.url), limits=limits) as client:
            path = "/" if claim.webhook.url.endswith("/") else ""
            answer = client.call("POST", path, body=body, headers=headers)
        status, error, excerpt = answer.status, "", excerpt_of(answer.body)
        if not 200 <= status < 300:
            error = f"The server answered {status}."
    except SchemadeskError as problem:
        status, error, excerpt = getattr(problem, "status", None), storable(problem.message, 500), ""
    return Outcome(status, error, excerpt, round(time.monotonic() - started, 3))


def excerpt_of(body: bytes) -> str:
    """How an answer begins, on one line; what may be a key or token in it is masked."""
    text = body[: EXCERPT * 8].decode("utf-8", "replace")
    shown = SECRET_LIKE.sub("…", " ".join("".join(c if c.isprintable() else " " for c in text).split()))
    return storable(shown, EXCERPT)

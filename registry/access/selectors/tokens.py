"""Tokens as lists; what a token is, nobody can ask for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F
from django.utils import timezone

from registry.access.models import ApiToken

MAX_TOKENS = 500


@dataclass(frozen=True)
class TokenInfo:
    """A token; `state` is `live`, `expired` or `revoked`."""

    token_id: int
    username: str
    name: str
    scope: str
    registry: str
    subject_pattern: str
    state: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    last_used_from: str


def list_tokens(*, user_id: int | None) -> list[TokenInfo]:
    """A person's tokens, None for everybody's: 500 at most, live ones and then the newest first, in one query."""
    now = timezone.now()
    rows = ApiToken.objects.select_related("user")
    if user_id is not None:
        rows = rows.filter(user_id=user_id)
    found = [_info(row, now) for row in rows.order_by(F("revoked_at").desc(nulls_first=True), "-pk")[:MAX_TOKENS]]
    return sorted(found, key=lambda info: info.state != "live")


def _info(row: ApiToken, now: datetime) -> TokenInfo:
    state = "revoked" if row.revoked_at else "expired" if row.expires_at <= now else "live"
    return TokenInfo(
        token_id=row.pk,
        username=row.user.username,
        name=row.name,
        scope=row.scope,
        registry=row.registry,
        subject_pattern=row.subject_pattern,
        state=state,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
        last_used_from=row.last_used_from,
    )

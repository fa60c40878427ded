"""Issuing and revoking API tokens. A token is shown once; its SHA-256 is stored."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from registry.access.models import ApiToken, User
from registry.access.permission_filters import checked_scope
from registry.access.roles import ALL, SCOPES, Actor, may, may_somewhere, refusal
from registry.access.selectors import digest
from registry.audit.context import record
from registry.errors import InvalidInput, NotAllowed, NotFound, NotSignedIn

TOKEN_BYTES = 32
DEFAULT_DAYS = 90
MAX_DAYS = 366
MAX_LIVE_TOKENS = 100  # per person
UNATTENDED = ("command", "task")


@dataclass(frozen=True)
class IssuedToken:
    """A new token. `secret` is the token itself, which can't be read again."""

    token_id: int
    secret: str
    expires_at: datetime


def issue_token(
    *,
    username: str,
    name: str,
    by: Actor,
    scope: str = ALL,
    registry: str = "",
    subject_pattern: str = "*",
    days: int = DEFAULT_DAYS,
) -> str:
    """Make a token like `make_token`, but return only the secret."""
    return make_token(
        username=username, name=name, by=by, scope=scope, registry=registry, subject_pattern=subject_pattern, days=days
    ).secret


@transaction.atomic
def make_token(
    *,
    username: str,
    name: str,
    by: Actor,
    scope: str = ALL,
    registry: str = "",
    subject_pattern: str = "*",
    days: int = DEFAULT_DAYS,
) -> IssuedToken:
    """Make a token for a person, valid for some days.

    People make only their own tokens; commands and tasks on the server make them for anybody. A token can make another
    only if it is unlimited, and the new one expires no later. Raises NotSignedIn, NotAllowed and InvalidInput.
    """
    name = _checked_name(name)
    if scope not in SCOPES:
        raise InvalidInput(f"Unknown scope {scope[:40]!r}. The scopes are {', '.join(SCOPES)}.")
    if not 1 <= days <= MAX_DAYS:
        raise InvalidInput(f"A token can be valid for 1 to {MAX_DAYS} days, not for {days}.")
    _refuse_maker(by, username)
    registry, subject_pattern = checked_scope(registry, subject_pattern, by)
    people = User.objects.select_for_update(no_key=True)
    user = people.filter(username=username, is_active=True).first() if username.isprintable() else None
    if user is None:
        raise InvalidInput(f"Active user {username[:150]!r} not found.")
    now = timezone.now()
    live = ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=now)
    if live.count() >= MAX_LIVE_TOKENS:
        raise InvalidInput(
            f"{username} already has {MAX_LIVE_TOKENS} active tokens, which is the maximum. Revoke some first."
        )
    expires_at = now + timedelta(days=days)
    if by.limit and by.limit.expires_at:
        expires_at = min(expires_at, by.limit.expires_at)
    record(by=by, why=f"issue token {name} with scope {scope} to {username}")
    secret = secrets.token_urlsafe(TOKEN_BYTES)
    row = ApiToken.objects.create(
        user=user,
        name=name,
        digest=digest(secret),
        scope=scope,
        registry=registry,
        subject_pattern=subject_pattern,
        signed_in_by=by.signed_in_by,
        created_at=now,
        expires_at=expires_at,
    )
    return IssuedToken(token_id=row.pk, secret=secret, expires_at=expires_at)


@transaction.atomic
def revoke_token(*, token_id: int, by: Actor) -> None:
    """Revoke a token immediately; a revoked one stays as it is.

    People revoke their own tokens, admins any. Raises NotSignedIn, NotAllowed, and NotFound for a missing token and for
    somebody else's.
    """
    refuse_stranger(by)
    row = ApiToken.objects.select_for_update(no_key=True).filter(pk=token_id).first()
    if row is None or not (row.user_id == by.user_id or may(by, "token.manage")):
        raise NotFound(f"You don't have a token {token_id}.")
    if row.revoked_at is None:
        record(by=by, why=f"revoke token {row.name}")
        row.revoked_at = timezone.now()
        row.save(update_fields=["revoked_at"])


def refuse_stranger(by: Actor) -> None:
    """Raise NotSignedIn or NotAllowed for an actor who can't have tokens."""
    if by.channel in UNATTENDED:
        return
    if by.user_id is None:
        raise NotSignedIn("Sign in to see and create tokens.", action="token.own")
    if not may_somewhere(by, "token.own"):
        raise NotAllowed(refusal(by, "token.own"), action="token.own")


def _refuse_maker(by: Actor, username: str) -> None:
    if by.channel in UNATTENDED:
        return
    refuse_stranger(by)
    if by.name != username:
        raise NotAllowed(
            "A token acts for the person who created it, so only its owner can create it. For a program, let"
            " an operator run the command issue_token."
        )
    if by.limit and not by.limit.is_whole:
        raise NotAllowed("A limited token can't create tokens. Sign in, or use a token with the scope all.")


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= 100 or not name.isprintable():
        raise InvalidInput("A token name must have 1 to 100 visible characters.")
    return name

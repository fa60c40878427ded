"""Actors from accounts and tokens, with their grants."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection
from django.utils import timezone

from registry.access.models import GroupGrant, RoleGrant, User
from registry.access.roles import ADMIN, Actor, Grant, TokenLimit

logger = logging.getLogger(__name__)
LAST_USE_SECONDS = 60

#: a person's own roles and those of their groups, distinct and sorted, as JSON
_GRANTS: Final = """(
    SELECT jsonb_agg(jsonb_build_array(role, registry, subject_pattern) ORDER BY role, registry, subject_pattern) FROM (
        SELECT role, registry, subject_pattern FROM access_rolegrant WHERE user_id = {user}
        UNION
        SELECT g.role, g.registry, g.subject_pattern FROM access_groupgrant g
        JOIN access_user_groups m ON m.group_id = g.group_id WHERE m.user_id = {user}
    ) AS held)"""
#: a valid token and its maker, for `actor_from`; takes the parameters of `token_values`
TOKEN: Final = f"""
SELECT t.id, t.name, t.scope, t.registry, t.subject_pattern, t.expires_at, t.signed_in_by,
       coalesce(t.last_used_at > %(now)s::timestamptz - make_interval(secs => %(seconds)s), false),
       u.id, u.username, {_GRANTS.format(user="u.id")}
FROM access_apitoken t JOIN access_user u ON u.id = t.user_id
WHERE t.digest = %(digest)s AND t.revoked_at IS NULL AND t.expires_at > %(now)s::timestamptz AND u.is_active
"""  # noqa: S608

TOKEN_WIDTH: Final = 11  # number of its columns

# SKIP LOCKED: a request never waits for a change of the token.
_NOTE_USE = """
UPDATE access_apitoken SET last_used_at = %(now)s, last_used_from = %(origin)s
WHERE id = (SELECT id FROM access_apitoken WHERE id = %(id)s
            AND (last_used_at IS NULL OR last_used_at < %(now)s - make_interval(secs => %(seconds)s))
            FOR NO KEY UPDATE SKIP LOCKED)
"""


def actor_of_user(
    user: User, *, channel: str, origin: str = "", signed_in_by: str = "", limit: TokenLimit | None = None
) -> Actor:
    """Return the actor for a signed-in user, with their groups' roles; an inactive user has no grants."""
    return Actor(
        name=user.get_username(),
        channel=channel,
        user_id=user.pk,
        grants=grants_of(user.pk) if user.is_active else (),
        origin=origin,
        signed_in_by=signed_in_by,
        limit=limit,
    )


def grants_of(user_id: int) -> tuple[Grant, ...]:
    """Return a person's own roles and those of their groups, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_GRANTS.format(user='%(user)s::bigint')}", {"user": user_id})
        (grants,) = cursor.fetchone()
    return _grants(grants)


def _grants(text: str | None) -> tuple[Grant, ...]:
    return tuple(Grant(*scope) for scope in json.loads(text or "[]"))


def actor_of_token(token: str, *, channel: str, origin: str = "") -> Actor | None:
    """Return the actor of a token, in one query; None if it is unknown, revoked, expired or of an inactive user."""
    with connection.cursor() as cursor:
        cursor.execute(TOKEN, token_values(token))
        row = cursor.fetchone()
    return actor_from(row, channel=channel, origin=origin) if row else None


def token_values(token: str) -> dict[str, Any]:
    """Return the parameters of `TOKEN` for a token."""
    return {"digest": digest(token), "now": timezone.now(), "seconds": LAST_USE_SECONDS}


def actor_from(row: Sequence[Any], *, channel: str, origin: str = "") -> Actor:
    """Make the actor from a row of `TOKEN`, and note the use of the token."""
    token_id, name, *limit, signed_in_by, was_used, user_id, username, grants = row
    if not was_used:
        note_use(token_id, timezone.now(), origin=origin)
    return Actor(
        name=username,
        channel=channel,
        user_id=user_id,
        grants=_grants(grants),
        origin=f"{origin} token {name}".strip(),
        signed_in_by=signed_in_by,
        limit=TokenLimit(*limit),
    )


def note_use(token_id: int, now: datetime, *, origin: str) -> None:
    """Store when and from where a token was used, at most once a minute.

    Outside a transaction, a database error is only logged.
    """
    values: dict[str, Any] = {"now": now, "origin": origin[:64], "id": token_id, "seconds": LAST_USE_SECONDS}
    try:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE_USE, values)
    except DatabaseError:
        if connection.in_atomic_block:
            raise  # the transaction is aborted, so its owner must know
        logger.warning("the last use of token %s was not written", token_id, exc_info=True)


def approval_refusal(actor: Actor) -> str:
    """Return why the actor's sign-in isn't enough to approve, as a sentence; "" if it is.

    If people sign in through an issuer, one person may also have a password account, and could approve their own
    request with it. A token counts as its maker's sign-in.
    """
    if not settings.OIDC_ISSUER or actor.signed_in_by == "oidc":
        return ""
    return f"To approve, sign in with {settings.OIDC_NAME}. A password doesn't prove who a person is."


def anonymous_actor(*, channel: str, is_local: bool, origin: str = "") -> Actor:
    """Return the actor for a call without credentials, which has no rights.

    Under `up`, a call straight from this machine (`is_local`) has the role in the settings.
    """
    role = settings.ANONYMOUS_ROLE if is_local else ""
    return Actor(name="anonymous", channel=channel, grants=(Grant(role),) if role else (), origin=origin)


def digest(token: str) -> str:
    """Return the hash under which a token is stored. 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def admin_names(limit: int) -> list[str]:
    """Return the names of the first `limit` full admins, for people who need a role."""
    names = User.objects.filter(pk__in=full_admins()).order_by("username").values_list("username", flat=True)
    return list(names[:limit])


def full_admins() -> set[int]:
    """Return the ids of the active people who are admins of everything, by their own role or a group's."""
    full = {"role": ADMIN, "registry": "", "subject_pattern": "*"}
    own = RoleGrant.objects.filter(**full, user__is_active=True).order_by().values_list("user_id", flat=True)
    groups = Group.objects.filter(role_grants__in=GroupGrant.objects.filter(**full))
    members = User.objects.filter(groups__in=groups, is_active=True).order_by().values_list("pk", flat=True)
    return set(own.union(members))

"""Who calls."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection
from django.utils import timezone

from registry.access.models import ApiToken, GroupGrant, RoleGrant, User
from registry.access.roles import ADMIN, Actor, Grant
from registry.access.scopes import Limit

logger = logging.getLogger(__name__)
LAST_USE_SECONDS = 60
_PLACE = ("role", "registry", "subject_pattern")

# SKIP LOCKED: a reader never waits for somebody who is changing the token.
_NOTE_USE = """
UPDATE access_apitoken SET last_used_at = %(now)s, last_used_from = %(origin)s
WHERE id = (SELECT id FROM access_apitoken WHERE id = %(id)s
            AND (last_used_at IS NULL OR last_used_at < %(now)s - make_interval(secs => %(seconds)s))
            FOR NO KEY UPDATE SKIP LOCKED)
"""


def actor_of_user(
    user: User, *, door: str, origin: str = "", signed_in_by: str = "", limit: Limit | None = None
) -> Actor:
    """The actor that a signed-in user is, with the roles of their groups; an inactive one has no grants."""
    return Actor(
        name=user.get_username(),
        door=door,
        user_id=user.pk,
        grants=grants_of(user.pk) if user.is_active else (),
        origin=origin,
        signed_in_by=signed_in_by,
        limit=limit,
    )


def grants_of(user_id: int) -> tuple[Grant, ...]:
    """A person's own roles and those of their groups, in one query."""
    own = RoleGrant.objects.filter(user_id=user_id).order_by().values_list(*_PLACE)
    through_groups = GroupGrant.objects.filter(group__user=user_id).order_by().values_list(*_PLACE)
    return tuple(Grant(*row) for row in own.union(through_groups).order_by(*_PLACE))


def actor_of_token(token: str, *, door: str, origin: str = "") -> Actor | None:
    """The actor that a token stands for; None for one that is unknown, revoked, expired or of an inactive user."""
    row = (
        ApiToken.objects.filter(
            digest=digest(token), revoked_at=None, user__is_active=True, expires_at__gt=timezone.now()
        )
        .select_related("user")
        .first()
    )
    if row is None:
        return None
    note_use(row, origin=origin)
    return actor_of_user(
        row.user,
        door=door,
        origin=f"{origin} token {row.name}".strip(),
        signed_in_by=row.signed_in_by,
        limit=Limit(row.scope, row.registry, row.subject_pattern, row.expires_at),
    )


def note_use(token: ApiToken, *, origin: str) -> None:
    """Keep when and from where a token was used, at most once a minute, and never at the cost of the call."""
    now = timezone.now()
    if token.last_used_at and (now - token.last_used_at).total_seconds() < LAST_USE_SECONDS:
        return
    values: dict[str, Any] = {"now": now, "origin": origin[:64], "id": token.pk, "seconds": LAST_USE_SECONDS}
    try:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE_USE, values)
    except DatabaseError:
        if connection.in_atomic_block:
            raise  # the transaction is lost, whoever began it must know
        logger.warning("the last use of token %s was not written", token.pk, exc_info=True)


def approval_refusal(actor: Actor) -> str:
    """Why the actor's sign-in is not enough to approve, as a sentence; empty where it is.

    Where people sign in through an issuer, one person may have a password account besides: approving with that would
    be approving one's own request. A token counts as its maker's sign-in.
    """
    if not settings.OIDC_ISSUER or actor.signed_in_by == "oidc":
        return ""
    return f"Approvals take a sign-in through {settings.OIDC_NAME} here: a password doesn't say who a person is."


def anonymous_actor(*, door: str, origin: str = "") -> Actor:
    """The actor without credentials: no right at all, but under `up` on one's own machine the role that it sets."""
    role = settings.ANONYMOUS_ROLE
    return Actor(name="anonymous", door=door, grants=(Grant(role),) if role else (), origin=origin)


def digest(token: str) -> str:
    """The form in which a token is stored. 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def full_admins() -> set[int]:
    """The active people who are admins of everything, by a role of their own or of a group."""
    full = {"role": ADMIN, "registry": "", "subject_pattern": "*"}
    own = RoleGrant.objects.filter(**full, user__is_active=True).order_by().values_list("user_id", flat=True)
    groups = Group.objects.filter(role_grants__in=GroupGrant.objects.filter(**full))
    members = User.objects.filter(groups__in=groups, is_active=True).order_by().values_list("pk", flat=True)
    return set(own.union(members))

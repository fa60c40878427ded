"""Who somebody is."""

from __future__ import annotations

import hashlib

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from registry.access.models import ApiToken, User
from registry.access.roles import Actor, Grant


def actor_of_user(user: User, *, door: str) -> Actor:
    """The actor that a signed-in user is; an inactive one has no grants."""
    grants = tuple(
        Grant(role=row.role, registry=row.registry, subject_pattern=row.subject_pattern)
        for row in (user.role_grants.all() if user.is_active else ())
    )
    return Actor(name=user.get_username(), door=door, user_id=user.pk, grants=grants)


def actor_of_token(token: str, *, door: str) -> Actor | None:
    """The actor that a token stands for; None for one that is unknown, revoked, expired or of an inactive user."""
    now = timezone.now()
    row = (
        ApiToken.objects.filter(digest=digest(token), revoked_at=None, user__is_active=True)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))
        .select_related("user")
        .prefetch_related("user__role_grants")
        .first()
    )
    return actor_of_user(row.user, door=door) if row else None


def anonymous_actor(*, door: str) -> Actor:
    """The actor without credentials: no right at all, but under `up` on one's own machine the role that it sets."""
    role = settings.ANONYMOUS_ROLE
    return Actor(name="anonymous", door=door, grants=(Grant(role),) if role else ())


def digest(token: str) -> str:
    """The form in which a token is stored. 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()

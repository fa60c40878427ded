"""Making people and tokens."""

from __future__ import annotations

import secrets

from django.db import transaction

from registry.access.models import ApiToken, RoleGrant, User
from registry.access.roles import ROLES, Actor
from registry.access.selectors import digest
from registry.audit.services import record
from registry.errors import InvalidInput

TOKEN_BYTES = 32


@transaction.atomic
def ensure_person(*, username: str, role: str, by: Actor) -> str | None:
    """Make a user with a role in all registries; gives the new password, or None where the user is there already.

    Raises InvalidInput for a role that doesn't exist.
    """
    if role not in ROLES:
        raise InvalidInput(f"There is no role {role!r}; the roles are {', '.join(ROLES)}.")
    record(by=by, why=f"give {username} the role {role}")
    user, created = User.objects.get_or_create(username=username)
    RoleGrant.objects.get_or_create(user=user, role=role)
    if not created:
        return None
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    return password


@transaction.atomic
def issue_token(*, username: str, name: str, by: Actor) -> str:
    """Make a token for a user and give it, this one time. Raises InvalidInput for an unknown user."""
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise InvalidInput(f"There is no active user {username!r}.")
    record(by=by, why=f"issue token {name} to {username}")
    token = secrets.token_urlsafe(TOKEN_BYTES)
    ApiToken.objects.create(user=user, name=name, digest=digest(token))
    return token

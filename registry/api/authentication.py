"""Token authentication: `Authorization: Bearer TOKEN`, or Basic with any user name and the token as password."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from registry.access.request_origin import is_local
from registry.access.roles import Actor
from registry.access.selectors import actor_of_token, anonymous_actor
from registry.api.response_marks import recent_in
from registry.errors import NotSignedIn
from registry.subjects.models import Registry
from registry.subjects.versions.lookup import get_registry, get_registry_and_subject, read_call, registry_not_found
from registry.subjects.versions.qualified_names import SubjectName

REFUSED = "The token is unknown, expired or revoked. Create another one on the page API tokens."


def token_of(header: str) -> str | None:
    """Return the token in an Authorization header; None without one. Raises NotSignedIn for an unreadable header."""
    if not header:
        return None
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() == "bearer":
        return credentials.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(credentials, validate=True).decode().partition(":")[2]
        except ValueError as error:
            raise NotSignedIn("The Authorization header isn't valid Basic authentication.") from error
    if not credentials:  # it may be a token, which no message or log may repeat
        raise NotSignedIn("The Authorization header has no scheme; use Bearer or Basic with a token.")
    raise NotSignedIn(f"Authorization by {scheme[:20]!r} is not supported; use Bearer or Basic with a token.")


def authenticate(environment: Mapping[str, Any], *, channel: str) -> Actor:
    """Return the caller of a request with this environment.

    Without credentials that is the anonymous actor; wrong ones raise NotSignedIn.
    """
    origin = str(environment.get("REMOTE_ADDR") or "")
    token = token_of(environment.get("HTTP_AUTHORIZATION", ""))
    if token is None:
        return anonymous_actor(channel=channel, is_local=is_local(environment), origin=origin)
    actor = actor_of_token(token, channel=channel, origin=origin)
    if actor is None:
        raise NotSignedIn(REFUSED)
    return actor


def authenticate_at(
    environment: Mapping[str, Any], registry: str, subject: SubjectName | None, *, channel: str
) -> tuple[Actor, Registry, SubjectName | None]:
    """Return the caller, the registry, and the subject with its alias resolved; one query, none if both are recent.

    Raises NotSignedIn before RegistryNotFound.
    """
    token = token_of(environment.get("HTTP_AUTHORIZATION", ""))
    if token is None:
        actor = authenticate(environment, channel=channel)
        return (
            (actor, *get_registry_and_subject(registry, subject)) if subject else (actor, get_registry(registry), None)
        )
    origin, recent = str(environment.get("REMOTE_ADDR") or ""), recent_in(environment)
    who, where = (token, channel, origin), (registry, subject)
    caller, place = recent.get(who), recent.get(where)
    if caller is None or place is None or _has_expired(caller):
        call = read_call(token, registry, subject, channel=channel, origin=origin)
        caller, place = call.actor, (call.registry, call.subject)
        if caller is None:
            raise NotSignedIn(REFUSED)
        if call.registry is None:
            raise registry_not_found(registry)
        recent.keep(who, caller)
        recent.keep(where, place)
    return caller, *place


def _has_expired(actor: Actor) -> bool:
    expires_at = actor.limit and actor.limit.expires_at
    return bool(expires_at and expires_at <= timezone.now())


class TokenAuthentication(BaseAuthentication):
    """Sets `request.user` to the Actor; its channel is the view's `channel`."""

    def authenticate(self, request: Request) -> tuple[Actor, None]:
        """Return the actor of the request. Raises NotSignedIn."""
        view = request.parser_context.get("view") if request.parser_context else None
        return authenticate(request.META, channel=getattr(view, "channel", "product")), None

    def authenticate_header(self, request: Request) -> str:
        """Return the `WWW-Authenticate` header of a 401."""
        return 'Basic realm="Schemadesk"'

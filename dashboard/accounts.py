"""Accounts are made by administrators; nobody signs up."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from dashboard import sign_in_limits
from registry.access.models import User
from registry.access.selectors import actor_of_user
from registry.audit.services import record

#: how allauth calls a way to sign in → how Actor.signed_in_by does
WAYS = {"password": "password", "socialaccount": "oidc"}


def signed_in_by(request: HttpRequest) -> str:
    """How the person of this session proved last who they are; "" where the session doesn't say."""
    records = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY) or [{}]
    return WAYS.get(records[-1].get("method", ""), "")


class ClosedAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Keeps the sign-up page shut, and passwords under audit."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """No."""
        return False

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Refuse an attempt after too many failed ones, before anything is hashed."""
        self._login_failed_rl_usage = sign_in_limits.consume(request, str(credentials.get("username") or ""))
        if self._login_failed_rl_usage is None:
            raise self.validation_error("too_many_login_attempts")

    def post_login(self, request: HttpRequest, user: User, **more: Any) -> HttpResponse:
        """Go on to where the person wanted to, with a browser that is known from now on."""
        response: HttpResponse = super().post_login(request, user, **more)
        sign_in_limits.remember(request, response, user.username)
        return response

    @transaction.atomic
    def set_password(self, user: User, password: str) -> None:
        """Change a password in the name of the person whose it is, so that the audit says so."""
        record(by=actor_of_user(user, door="ui"), why="change the own password")
        super().set_password(user, password)

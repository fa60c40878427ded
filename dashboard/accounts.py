"""Accounts are made by administrators; nobody signs up."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.db import transaction
from django.http import HttpRequest

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

    @transaction.atomic
    def set_password(self, user: User, password: str) -> None:
        """Change a password in the name of the person whose it is, so that the audit says so."""
        record(by=actor_of_user(user, door="ui"), why="change the own password")
        super().set_password(user, password)

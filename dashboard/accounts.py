"""Accounts are made by administrators; nobody signs up."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class ClosedAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Keeps the sign-up page shut."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """No."""
        return False

"""Who may do what."""

from __future__ import annotations

from django.apps import AppConfig


class AccessConfig(AppConfig):
    """Who may do what."""

    name = "registry.access"
    label = "access"

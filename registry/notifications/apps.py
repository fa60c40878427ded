"""Who is told of what."""

from __future__ import annotations

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    """Who is told of what."""

    name = "registry.notifications"
    label = "notifications"

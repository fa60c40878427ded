"""The app of notifications."""

from __future__ import annotations

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    """Notifications."""

    name = "registry.notifications"
    label = "notifications"

"""The app that records changes."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class AuditConfig(AppConfig):
    """The audit: all changes, in a table that the application can't rewrite."""

    name = "registry.audit"
    label = "audit"

    def ready(self) -> None:
        """Set up the views of the past and the application role's rights around every migration."""
        from registry.audit.time_travel import forget_views, make_views
        from registry.audit.triggers import grant_to_application

        pre_migrate.connect(forget_views, sender=self, dispatch_uid="forget_views")
        post_migrate.connect(make_views, sender=self, dispatch_uid="make_views")
        post_migrate.connect(grant_to_application, sender=self, dispatch_uid="grant_to_application")

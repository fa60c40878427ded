"""What was done."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AuditConfig(AppConfig):
    """What was done, in a table that the application can't rewrite."""

    name = "registry.audit"
    label = "audit"

    def ready(self) -> None:
        """Set the application role's rights after every migration."""
        from registry.audit.grants import grant_to_application

        post_migrate.connect(grant_to_application, sender=self, dispatch_uid="grant_to_application")

"""The site's own app: pages, composition, embedded services."""

from __future__ import annotations

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """Loads the Celery application, so that tasks find their broker in every process, and the deployment checks."""

    name = "dashboard"

    def ready(self) -> None:
        """Import the Celery application and the checks."""
        from dashboard import celery, checks  # noqa: F401

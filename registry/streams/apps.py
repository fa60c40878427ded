"""Streaming queries: the history of their state, and the check of a restart."""

from __future__ import annotations

from django.apps import AppConfig


class StreamsConfig(AppConfig):
    """Queries with their state, and checks of planned state schemas."""

    name = "registry.streams"
    label = "streams"

    def ready(self) -> None:
        """Tells the apps below that Spark state is a consumer: of versions, and of what promotions bring."""
        from registry.promotions.checks.check_plugins import outlook
        from registry.streams.promotion_check import NAME, state_checks
        from registry.streams.subject_usage import PROVIDER, state_evidence
        from registry.subjects.usage.evidence import provide

        provide(PROVIDER, "state", state_evidence)
        outlook(NAME, state_checks)

"""Streaming queries: the history of their state, and what is said of it before they restart."""

from __future__ import annotations

from django.apps import AppConfig


class StreamsConfig(AppConfig):
    """Queries with their state, and checks of planned state schemas."""

    name = "registry.streams"
    label = "streams"

    def ready(self) -> None:
        """Tells the apps below that Spark state is a consumer: of versions, and of what promotions bring."""
        from registry.promotions.outlook import outlook
        from registry.streams.following import NAME, state_checks
        from registry.streams.state_evidence import PROVIDER, state_evidence
        from registry.subjects.evidence import provide

        provide(PROVIDER, "state", state_evidence)
        outlook(NAME, state_checks)

"""Streaming queries: the history of their state, and the check of a restart."""

from __future__ import annotations

from django.apps import AppConfig


class StreamsConfig(AppConfig):
    """The streaming queries with their state, and checks of planned state schemas."""

    name = "registry.streams"
    label = "streams"

    def ready(self) -> None:
        """Register Spark state as evidence for versions and as a check of promotions."""
        from registry import hooks
        from registry.promotions.hook_points import CheckProvider
        from registry.streams.subject_usage import restart_checks, state_checks, state_evidence
        from registry.subjects.usage.evidence import EvidenceProvider

        hooks.version_evidence.register("state", EvidenceProvider("state", state_evidence))
        hooks.promotion_checks.register("state", CheckProvider(state_checks))
        hooks.release_checks.register("state", restart_checks)

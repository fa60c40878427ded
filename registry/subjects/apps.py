"""Registries, contexts, subjects, versions."""

from __future__ import annotations

from django.apps import AppConfig


class SubjectsConfig(AppConfig):
    """Registries, contexts, subjects, versions."""

    name = "registry.subjects"
    label = "subjects"

    def ready(self) -> None:
        """Tells whoever asks for evidence of versions what clients say, and views of the past how activity is read."""
        from registry.subjects.listing.listing import declare_past_activity
        from registry.subjects.usage.clients import PROVIDER, client_evidence
        from registry.subjects.usage.evidence import provide

        provide(PROVIDER, "clients", client_evidence)
        declare_past_activity()

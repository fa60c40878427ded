"""Registries, contexts, subjects, versions."""

from __future__ import annotations

from django.apps import AppConfig


class SubjectsConfig(AppConfig):
    """Registries, contexts, subjects, versions."""

    name = "registry.subjects"
    label = "subjects"

    def ready(self) -> None:
        """Tells whoever asks for evidence of versions what clients say, and views of the past how activity is read."""
        from registry.subjects.evidence import provide
        from registry.subjects.past import declare
        from registry.subjects.selectors.client_evidence import PROVIDER, client_evidence

        provide(PROVIDER, "clients", client_evidence)
        declare()

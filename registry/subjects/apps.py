"""Registries, contexts, subjects, versions."""

from __future__ import annotations

from django.apps import AppConfig


class SubjectsConfig(AppConfig):
    """Registries, contexts, subjects, versions."""

    name = "registry.subjects"
    label = "subjects"

    def ready(self) -> None:
        """Tells whoever asks for evidence of versions what clients say, views of the past how activity is read, and
        whoever gives rights which registries and subjects there are."""
        from registry.access.hooks import ScopeCatalog, add_catalog
        from registry.subjects.listing.listing import declare_past_activity, has_matching_subject, registry_names
        from registry.subjects.usage.clients import PROVIDER, client_evidence
        from registry.subjects.usage.evidence import provide

        provide(PROVIDER, "clients", client_evidence)
        declare_past_activity()
        add_catalog("subjects", ScopeCatalog(registry_names, has_matching_subject))

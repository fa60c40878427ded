"""Registries, contexts, subjects, versions."""

from __future__ import annotations

from django.apps import AppConfig


class SubjectsConfig(AppConfig):
    """Registries, contexts, subjects, versions."""

    name = "registry.subjects"
    label = "subjects"

    def ready(self) -> None:
        """Registers the evidence of clients, the past of activity, and the registries and subjects of a right."""
        from registry import hooks
        from registry.access.rights_changes import ScopeCatalog
        from registry.subjects.listing.listing import has_matching_subject, past_activity, registry_names
        from registry.subjects.usage.clients import client_evidence
        from registry.subjects.usage.evidence import EvidenceProvider

        hooks.version_evidence.register("declared clients", EvidenceProvider("clients", client_evidence))
        hooks.derived_tables.register("subjects_subjectactivity", past_activity)
        hooks.scope_catalogs.register("subjects", ScopeCatalog(registry_names, has_matching_subject))

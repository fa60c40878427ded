"""Registries, contexts, subjects, versions."""

from __future__ import annotations

from django.apps import AppConfig


class SubjectsConfig(AppConfig):
    """Registries, contexts, subjects, versions."""

    name = "registry.subjects"
    label = "subjects"

    def ready(self) -> None:
        """Register the installation's formats, the clients' evidence, the past of activity, and scopes of rights."""
        from django.conf import settings

        from registry import hooks
        from registry.access.roles import ScopeCatalog
        from registry.formats.schema_format import load_formats
        from registry.subjects.listing.listing import has_matching_subject, past_activity, registry_names
        from registry.subjects.usage.clients import client_evidence
        from registry.subjects.usage.evidence import EvidenceProvider

        load_formats(settings.SCHEMA_FORMATS)
        hooks.version_evidence.register("declared clients", EvidenceProvider("clients", client_evidence))
        hooks.derived_tables.register("subjects_subjectactivity", past_activity)
        hooks.scope_catalogs.register("subjects", ScopeCatalog(registry_names, has_matching_subject))

"""The Django app of sources, scans and findings."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class DriftConfig(AppConfig):
    """Sources, scans, findings."""

    name = "registry.drift"
    label = "drift"

    def ready(self) -> None:
        """Register further source kinds, and the hooks that promotions and version evidence need."""
        from registry import hooks
        from registry.drift.findings.promotion_check import drift_facts, findings_of, open_breaks_of, open_drift
        from registry.drift.replay.evidence import filled_fields
        from registry.drift.usage.retirement import data_evidence
        from registry.promotions.hook_points import CheckProvider
        from registry.subjects.usage.evidence import EvidenceProvider

        if settings.SOURCE_KINDS:
            from registry.drift.sources import register_kinds

            register_kinds(settings.SOURCE_KINDS)
        hooks.version_evidence.register("topic scans", EvidenceProvider("data", data_evidence, filled_fields))
        hooks.promotion_checks.register("drift", CheckProvider(open_drift, drift_facts))
        hooks.open_breaks.register("drift", open_breaks_of)
        hooks.origin_findings.register("drift", findings_of)

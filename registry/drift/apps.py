"""Sources, scans, findings."""

from __future__ import annotations

from django.apps import AppConfig


class DriftConfig(AppConfig):
    """Sources, scans, findings."""

    name = "registry.drift"
    label = "drift"

    def ready(self) -> None:
        """Tells the apps below whom to ask: of versions what scans know, of promotions what is open and what they answer."""
        from registry.drift.findings.promotion_check import NAME, drift_facts, findings_of, open_breaks_of, open_drift
        from registry.drift.usage.retirement import PROVIDER, data_evidence
        from registry.promotions.checks.check_plugins import find_breaks, outlook
        from registry.promotions.requests.finding_links import find_origins
        from registry.subjects.usage.evidence import provide

        provide(PROVIDER, "data", data_evidence)
        outlook(NAME, open_drift, drift_facts)
        find_breaks(NAME, open_breaks_of)
        find_origins(NAME, findings_of)

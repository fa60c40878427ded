"""Sources, scans, findings."""

from __future__ import annotations

from django.apps import AppConfig


class DriftConfig(AppConfig):
    """Sources, scans, findings."""

    name = "registry.drift"
    label = "drift"

    def ready(self) -> None:
        """Tells the apps below whom to ask: of versions what scans know, of promotions what is open and what they answer."""
        from registry.drift.answering import findings_of
        from registry.drift.promoting import NAME, drift_facts, open_breaks_of, open_drift
        from registry.drift.retiring import PROVIDER, data_evidence
        from registry.promotions.origins import find_origins
        from registry.promotions.outlook import find_breaks, outlook
        from registry.subjects.evidence import provide

        provide(PROVIDER, "data", data_evidence)
        outlook(NAME, open_drift, drift_facts)
        find_breaks(NAME, open_breaks_of)
        find_origins(NAME, findings_of)

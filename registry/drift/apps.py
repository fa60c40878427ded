"""Sources, scans, findings."""

from __future__ import annotations

from django.apps import AppConfig


class DriftConfig(AppConfig):
    """Sources, scans, findings."""

    name = "registry.drift"
    label = "drift"

    def ready(self) -> None:
        """Tells the subjects app whom to ask what the scans know of versions."""
        from registry.drift.retiring import PROVIDER, data_evidence
        from registry.subjects.evidence import provide

        provide(PROVIDER, "data", data_evidence)

"""Sources, scans, findings."""

from __future__ import annotations

from django.apps import AppConfig


class DriftConfig(AppConfig):
    """Sources, scans, findings."""

    name = "registry.drift"
    label = "drift"

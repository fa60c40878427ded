"""Search."""

from __future__ import annotations

from django.apps import AppConfig


class SearchConfig(AppConfig):
    """Search."""

    name = "registry.search"
    label = "search"

"""The site's app for the gallery: its templates and tags, without the composition that the real one loads."""

from __future__ import annotations

from django.apps import AppConfig


class GalleryConfig(AppConfig):
    """Named like the real app, so that templates find their tags; loads nothing."""

    name = "dashboard"

"""What every page knows."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def site(request: HttpRequest) -> dict[str, Any]:
    """The registries for the environment switch, the theme, and whether this is `up` on one's own machine."""
    return {
        "default_registry": settings.DEFAULT_REGISTRY,
        "under_up": settings.UNDER_UP,
        "theme": request.COOKIES.get("theme", ""),
    }

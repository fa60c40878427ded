"""One address for a page and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

#: what of the request decides which part is answered
VARIES: Final = ("HX-Request", "HX-Target")


def render_page(request: HttpRequest, template: str, page: Any, parts: Mapping[str, str]) -> HttpResponse:
    """The page, or the part of its template whose target htmx asks for (target's id → part's name)."""
    htmx = getattr(request, "htmx", None)
    part = parts.get(htmx.target or "") if htmx and not htmx.boosted else None
    response = render(request, f"{template}#{part}" if part else template, {"page": page})
    patch_vary_headers(response, VARIES)
    return response
